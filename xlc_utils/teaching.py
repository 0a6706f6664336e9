"""Tells a student whether the answer to an exercise is right, without saying what it is.

Right answers are computed from the student's own run, so that they are right for whatever was run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from xlc_utils.registry.files import suggestion
from xlc_utils.registry.problems import Problem

TOLERANCE = 0.005  # of numbers: two digits are enough


@dataclass(frozen=True)
class Checked:
    """True or false, and what to tell the student."""

    right: bool
    said: str

    def __bool__(self) -> bool:
        return self.right

    def __repr__(self) -> str:
        return self.said


@dataclass(frozen=True)
class Exercise:
    """What is asked for, how a run answers it, and what helps who is wrong.

    Attributes:
        form: what the answer must be.
        hint: for an answer of that form that is wrong.
        right: whether an answer is right, given the run. What it cannot compare raises as usual.
    """

    form: str
    hint: str
    right: Callable[[object, object], bool]


def check(run, exercise: str, answer: object) -> Checked:
    """Whether an answer to an exercise is right in this run.

    Args:
        run: the notebook's run.
        exercise: notebook and number, such as "04-1".
        answer: see the exercise; `Checked.said` says the form if it has another one.

    Raises:
        Problem: there is no such exercise, or the run lacks what it is about.
    """
    if exercise not in EXERCISES:
        raise Problem(f"exercise {exercise}", "it has no check", suggestion(exercise, sorted(EXERCISES)))
    asked = EXERCISES[exercise]
    try:
        right = asked.right(run, answer)
    except (TypeError, ValueError, KeyError, AttributeError):
        return Checked(False, f"{exercise}: this cannot be compared. The answer is {asked.form}.")
    return Checked(bool(right), f"{exercise}: right." if right else f"{exercise}: not yet. {asked.hint}")


def _is_one_of(best: pd.Series, answer: object) -> bool:
    """Whether the answer is the name of a highest value; of equal ones each is right."""
    if not isinstance(answer, str):
        raise TypeError
    return answer in set(best.index[np.isclose(best, best.max())])


def _same(right: float | pd.Series, answer: object) -> bool:
    """Numbers within the tolerance, missing ones included; of a series those of every name."""
    if isinstance(right, pd.Series):
        given = pd.Series(answer).astype(float)
        return set(given.index) == set(right.index) and np.allclose(
            given.reindex(right.index), right, atol=TOLERANCE, equal_nan=True
        )
    return bool(np.isclose(float(answer), right, atol=TOLERANCE, equal_nan=True))


# ---- the right answers -----------------------------------------------------------------------------------------------
def _lengths(run) -> pd.Series:
    return -run.read("responses", "known-answers").groupby("language")["characters"].median()


def _posts(run, answer: pd.DataFrame) -> bool:
    """Replies of one of the run's models to post-02 in at least two languages, English first."""
    replies = run.read("responses").query("prompt_id == 'post-02'")
    known = set(zip(replies["language"], replies["text"], strict=True))
    given = list(zip(answer["language"], answer["text"], strict=True))
    return len(given) > 1 and given[0][0] == "en" and len(dict(given)) == len(given) and set(given) <= known


def _degenerate(run) -> pd.Series:
    sentences = run.read("sentences")
    return (sentences["outcome"] == "degenerate").groupby(sentences["language"]).mean()


def _correlation(run) -> float:
    table = pd.read_csv(run.folder / "tables" / "fact_survival.csv")
    return float(table["chrf"].rank().corr(table["share"].rank()))


def _gains(run) -> pd.Series:
    """What each system's mean F gains when answers that are not answers to the question are left out."""
    scores = run.read("information").dropna(subset=["f"])
    kept = scores[~scores["outcome"].isin(["error", "off_target", "refused", "empty"])]
    return (kept.groupby("model")["f"].mean() - scores.groupby("model")["f"].mean()).fillna(0.0)


def _chrf_auc(run) -> float:
    from sacrebleu.metrics import CHRF

    from xlc_utils.information.evaluator import pairs_of
    from xlc_utils.information.ruler import auc

    pairs, chrf = pairs_of(run).query("text == 'untranslated'"), CHRF()
    scores = [chrf.sentence_score(c, [r]).score for c, r in zip(pairs["claim"], pairs["reference"], strict=True)]
    return auc(np.array(scores), pairs["supported"].to_numpy(bool))


def _two_of_three(run) -> pd.Series:
    scores = run.read("empathy").dropna(subset=["same_ER", "same_IP", "same_EX"])
    agree = scores[["same_ER", "same_IP", "same_EX"]].sum(axis=1) >= 2
    return agree.groupby(scores["model"]).mean()


def _error_of_p(_, answer: object) -> bool:
    """Monte Carlo standard error of p = .05 with 500 and with 50,000 draws, to a twentieth."""
    few, many = answer
    right = [np.sqrt(0.05 * 0.95 / n) for n in (500, 50_000)]
    return bool(np.allclose([float(few), float(many)], right, rtol=0.05, atol=0))


def _long_mattr(_) -> float:
    from scipy.stats import kendalltau

    from xlc_utils.judges.automatic import LANGUAGE_PAIRS, read_metrics

    long = read_metrics().query("n_tokens_whole >= 100")
    means = long.groupby(["model", "language"])["mattr_whole"].mean().unstack()
    pairs = [means[[a, b]].dropna() for a, b in LANGUAGE_PAIRS]
    return float(np.mean([kendalltau(p.iloc[:, 0], p.iloc[:, 1]).statistic for p in pairs]))


def _widths(run) -> pd.Series:
    table = run.read_csv("information_by_language", "04")
    return (table["high"] - table["low"]).groupby(table["language"]).max().dropna()


def _difference(run, answer: object) -> bool:
    tables = [
        run.read_csv(f"{d}_by_language", n).set_index(["model", "language"])["value"]
        for d, n in (("information", "04"), ("empathy", "05"))
    ]
    right = (tables[0] - tables[1]).dropna()
    given = answer.stack() if isinstance(answer, pd.DataFrame) else answer
    return _same(right, given.dropna())


EXERCISES = {
    "01-1": Exercise(
        "the code of a language, such as 'es'",
        "Take the median of characters by language, of `known-answers` alone. A character holds more in some scripts.",
        lambda run, answer: _is_one_of(_lengths(run), answer),
    ),
    "01-2": Exercise(
        "a frame with the columns `language` and `text`, one row a language",
        "Are all rows replies of one model to `post-02`, each language once, English on top?",
        _posts,
    ),
    "02-1": Exercise(
        "the code of a language, such as 'es'",
        "A share is a mean: of all sentences of a language, over all systems, not of the answers.",
        lambda run, answer: _is_one_of(_degenerate(run), answer),
    ),
    "03-2": Exercise(
        "one number: Spearman's correlation of chrF and fact survival over languages",
        "Correlate ranks, one point a language, from the table `fact_survival`.",
        lambda run, answer: _same(_correlation(run), answer),
    ),
    "04-1": Exercise(
        "the name of a model",
        "Compare means of F before and after, each over the answers that are scored then.",
        lambda run, answer: _is_one_of(_gains(run), answer),
    ),
    "04-2": Exercise(
        "one number: the AUC of chrF over the untranslated pairs of `pairs_of(run)`",
        "The claim is the hypothesis, the text it is verified against the reference; score each claim by itself.",
        lambda run, answer: _same(_chrf_auc(run), answer),
    ),
    "05-2": Exercise(
        "a series or dict: model to share",
        "Count same_ER + same_IP + same_EX >= 2; a pair without a profile is neither equal nor different.",
        lambda run, answer: _same(_two_of_three(run), answer),
    ),
    "06-1": Exercise(
        "two numbers: by how much p = .05 may move (its standard error) with 500 draws and with 50,000",
        "A p-value from n draws is a share of n: its standard error is that of a binomial share.",
        _error_of_p,
    ),
    "06-2": Exercise(
        "one number: the mean of tau over the six pairs of languages",
        "Keep dialogues of 100 tokens and more, means by model and language; of each pair the models that have both.",
        lambda run, answer: _same(_long_mattr(run), answer),
    ),
    "07-1": Exercise(
        "the code of a language, such as 'es'",
        "high − low of each row of `information_by_language`; a language is as wide as its widest system.",
        lambda run, answer: _is_one_of(_widths(run), answer),
    ),
    "07-2": Exercise(
        "a frame with models as rows and languages as columns, or a series indexed by both",
        "Information minus empathy, by model and language, where both are there.",
        _difference,
    ),
}
