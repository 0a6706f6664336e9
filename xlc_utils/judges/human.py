"""The human labels of paper B (section 2.2, appendix C): who rated what, what the labels say, how far people agree.

120 Estonian dialogues of one generator, rated for coherence (0 or 1) and fluency (0–3). The paper says three
annotators and 100 dialogues; the released tables hold five annotators' ratings, two of them partial. The
authors' code keeps three (`KEY_ANNOTATORS`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from xlc_utils.judges.automatic import DATA, read_committed
from xlc_utils.statistics import agreement

QUESTIONS = ("coherence", "fluency")
ANNOTATORS = ("Annotator1", "Annotator2", "Annotator3", "Annotator4", "Annotator5")
#: The three whose ratings give the paper's kappas.
KEY_ANNOTATORS = ("Annotator1", "Annotator2", "Annotator4")

#: How one label is made of a dialogue's ratings. A majority is the most frequent value; the rules part on ties.
REFERENCE_LABELS = {
    "mean": np.mean,
    "median": np.median,
    "majority, ties to the first": lambda values: _modes(values)[0],
    "majority, ties to the lowest": lambda values: min(_modes(values)),
    "majority, ties to the highest": lambda values: max(_modes(values)),
    "majority, ties to their median": lambda values: np.median(_modes(values)),
}
#: The ratings themselves, pooled, instead of one label a dialogue.
POOLED = "pooled ratings"


def read_ratings(path: str | Path = DATA / "human_ratings.csv") -> pd.DataFrame:
    """The human ratings kept in data/human_ratings.csv: annotator, dialogue, question, value.

    Raises:
        Problem: the file is missing or unreadable, or lacks a column.
    """
    return read_committed(path, ("annotator", "dialogue", "question", "value"))


def rating_matrix(ratings: pd.DataFrame, question: str, annotators: Sequence[str] = KEY_ANNOTATORS) -> np.ndarray:
    """Ratings of one question as `xlc_utils.statistics.agreement` takes them: (n_dialogues, n_annotators).

    Rows are the dialogues that at least one of the annotators rated, by id; NaN where one gave no rating.
    """
    chosen = ratings[(ratings["question"] == question) & ratings["annotator"].isin(annotators)]
    by_annotator = chosen.pivot(index="dialogue", columns="annotator", values="value")
    return by_annotator.reindex(columns=annotators).to_numpy(float)


def coverage(ratings: pd.DataFrame) -> pd.DataFrame:
    """Who rated how much: annotator, question, n (dialogues rated), mean and sd of the ratings."""
    groups = ratings.groupby(["question", "annotator"])["value"]
    return groups.agg(n="size", mean="mean", sd="std").reset_index()


def reference_labels(
    ratings: pd.DataFrame, question: str, rule: str, annotators: Sequence[str] = KEY_ANNOTATORS
) -> np.ndarray:
    """One label a dialogue (by id), or the ratings themselves.

    Args:
        ratings: see `read_ratings`.
        question: "coherence" or "fluency".
        rule: key of `REFERENCE_LABELS`, or `POOLED`. "The first" of tied values is the one the first of
            `annotators` to hold one gave.
        annotators: whose ratings count.
    """
    matrix = rating_matrix(ratings, question, annotators)
    if rule == POOLED:
        return matrix[~np.isnan(matrix)]
    return np.array([REFERENCE_LABELS[rule](row[~np.isnan(row)]) for row in matrix])


def _modes(values: np.ndarray) -> list[float]:
    """The most frequent values, in order of their first appearance."""
    found = list(values)
    most = max(found.count(value) for value in found)
    return [value for value in dict.fromkeys(found) if found.count(value) == most]


def label_means(ratings: pd.DataFrame, annotators: Sequence[str] = KEY_ANNOTATORS) -> pd.DataFrame:
    """Mean and sample standard deviation of the labels under every definition.

    Returns:
        question, definition (a rule of `REFERENCE_LABELS`, or `POOLED`), n (labels), mean, sd (n − 1).
    """
    rows = []
    for question in QUESTIONS:
        for definition in (POOLED, *REFERENCE_LABELS):
            labels = reference_labels(ratings, question, definition, annotators)
            rows.append((question, definition, len(labels), labels.mean(), labels.std(ddof=1)))
    return pd.DataFrame(rows, columns=["question", "definition", "n", "mean", "sd"])


def label_means_of_all(ratings: pd.DataFrame) -> pd.DataFrame:
    """`label_means` of every set of two to five annotators, which is a further column, in ids joined by "+"."""
    tables = [label_means(ratings, chosen).assign(annotators=_joined(chosen)) for chosen in _sets(2, 5)]
    return pd.concat(tables, ignore_index=True)


def _sets(smallest: int, largest: int) -> list[tuple[str, ...]]:
    return [chosen for size in range(smallest, largest + 1) for chosen in combinations(ANNOTATORS, size)]


def _joined(annotators: Sequence[str]) -> str:
    """ "1+2+4" for Annotator1, Annotator2 and Annotator4."""
    return "+".join(annotator.removeprefix("Annotator") for annotator in annotators)


def fleiss_as_published(ratings: np.ndarray) -> float:
    """Fleiss' kappa as the authors' code computes it: as if every dialogue had as many ratings as the first one.

    Where some have fewer, their missing ratings count as disagreements, and the shares of the values do not add
    up to 1. With equal numbers of ratings it is Fleiss' kappa (`corrected_fleiss`). For `KEY_ANNOTATORS` it gives
    .3854 and .3217, which the paper prints as .385 and .321 (section 2.2).

    Args:
        ratings: (n_dialogues, n_annotators) as `rating_matrix` gives them, NaN where missing. Rows with fewer than
            two ratings are left out.
    """
    usable = ratings[(~np.isnan(ratings)).sum(axis=1) >= 2]
    if not len(usable):
        return float("nan")
    values = np.unique(usable[~np.isnan(usable)])
    counts = (usable[:, :, None] == values).sum(axis=1)
    n = counts[0].sum()
    observed = ((counts**2).sum(axis=1) - n).sum() / (len(counts) * n * (n - 1))
    expected = ((counts.sum(axis=0) / (len(counts) * n)) ** 2).sum()
    return float((observed - expected) / (1 - expected))


def corrected_fleiss(ratings: np.ndarray) -> float:
    """Fleiss' kappa with each dialogue's own number of ratings; see `xlc_utils.statistics.agreement.fleiss`.

    Args:
        ratings: (n_dialogues, n_annotators), NaN where missing.
    """
    return agreement.fleiss(ratings).value


def agreement_table(
    ratings: pd.DataFrame, sets: Sequence[Sequence[str]] = (KEY_ANNOTATORS, ANNOTATORS)
) -> pd.DataFrame:
    """Every coefficient for each set of annotators.

    Returns:
        question, annotators ("1+2+4"), n_dialogues (with at least two ratings), fleiss_as_published, fleiss
        (corrected), krippendorff_nominal, krippendorff_interval, cohen (mean over pairs of annotators),
        cohen_quadratic, full_agreement (share of dialogues). Coefficients for values without order and for
        values on a scale stand side by side, since fluency is a scale.
    """
    rows = [
        _agreement(rating_matrix(ratings, question, chosen)) | {"question": question, "annotators": _joined(chosen)}
        for question in QUESTIONS
        for chosen in sets
    ]
    table = pd.DataFrame(rows)
    return table[["question", "annotators", *table.columns.drop(["question", "annotators"])]]


def agreement_by_language(ratings: pd.DataFrame) -> pd.DataFrame:
    """`agreement_table` of all annotators of each language, with a column language; of a run's own dialogues.

    Args:
        ratings: with a column language, as `rating_sheets.dialogue_labels` gives them. Languages with one annotator
            have no rows.
    """
    made = [
        agreement_table(own, [sorted(own["annotator"].unique())]).assign(language=language)
        for language, own in ratings.groupby("language")
        if own["annotator"].nunique() > 1
    ]
    return pd.concat(made, ignore_index=True) if made else pd.DataFrame(columns=["question", "annotators", "language"])


def agreement_of_all_trios(ratings: pd.DataFrame) -> pd.DataFrame:
    """`agreement_table` for the ten sets of three annotators."""
    return agreement_table(ratings, _sets(3, 3))


def _agreement(matrix: np.ndarray) -> dict[str, float]:
    corrected = agreement.fleiss(matrix)
    return {
        "n_dialogues": corrected.n_items,
        "fleiss_as_published": fleiss_as_published(matrix),
        "fleiss": corrected.value,
        "krippendorff_nominal": agreement.krippendorff(matrix, "nominal").value,
        "krippendorff_interval": agreement.krippendorff(matrix, "interval").value,
        "cohen": agreement.cohen(matrix).value,
        "cohen_quadratic": agreement.cohen(matrix, "quadratic").value,
        "full_agreement": agreement.full_agreement(matrix).value,
    }


def kappa_intervals(
    ratings: pd.DataFrame, *, seed: int, samples: int = 2000, annotators: Sequence[str] = KEY_ANNOTATORS
) -> pd.DataFrame:
    """Fleiss' kappa and Krippendorff's interval alpha with 95% percentile intervals over dialogues.

    Returns:
        question, coefficient, value, low, high, n_dialogues.
    """
    coefficients = {
        "fleiss": agreement.fleiss,
        "krippendorff_interval": partial(agreement.krippendorff, level_of_measurement="interval"),
    }
    rows = []
    for question in QUESTIONS:
        matrix = rating_matrix(ratings, question, annotators)
        for name, coefficient in coefficients.items():
            found = agreement.agreement_interval(coefficient, matrix, seed=seed, samples=samples)
            rows.append((question, name, found.value, found.low, found.high, found.n_items))
    return pd.DataFrame(rows, columns=["question", "coefficient", "value", "low", "high", "n_dialogues"])
