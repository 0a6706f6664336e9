"""An evaluator maps English texts and their English references to scores. The paper's two modes are `Pairwise`, which
looks at both texts at once, and `Property`, which measures each alone and then compares (paper A §3.1 and §3.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd

from xlc_utils.evaluation.rules import Rules, english_outcomes


class Evaluator(Protocol):
    """One dimension of consistency.

    Attributes:
        name: how tables call it.
        parts: the columns of its scores: ("score",), or ("precision", "recall") of which F is reported.
    """

    name: str
    parts: tuple[str, ...]

    def compare(self, texts: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """Scores in 0–1, shape (n, len(parts)); NaN where the evaluator cannot tell."""
        ...


@dataclass(frozen=True)
class Pairwise:
    """Looks at both texts at once: ``score(text, reference)`` is in 0–1."""

    name: str
    score: Callable[[str, str], float]
    parts: tuple[str, ...] = ("score",)

    def compare(self, texts: Sequence[str], references: Sequence[str]) -> np.ndarray:
        scores = [self.score(t, r) for t, r in zip(texts, references, strict=True)]
        return np.array(scores, float).reshape(-1, 1)


@dataclass(frozen=True)
class Property:
    """Measures each text alone, then compares: empathy, sentiment, politeness, anything.

    Args:
        name: how tables call it.
        measure: texts -> one value a text, of any kind.
        agree: (value, value of the reference) -> 0–1; by default 1 where they are equal, as paper A §3.2 has it.
    """

    name: str
    measure: Callable[[Sequence[str]], Sequence[Any]]
    agree: Callable[[Any, Any], float] = np.array_equal
    parts: tuple[str, ...] = ("score",)

    def compare(self, texts: Sequence[str], references: Sequence[str]) -> np.ndarray:
        distinct = list(dict.fromkeys([*texts, *references]))  # the English answer is measured once for all languages
        values = dict(zip(distinct, self.measure(distinct), strict=True)) if distinct else {}
        scores = [self.agree(values[t], values[r]) for t, r in zip(texts, references, strict=True)]
        return np.array(scores, float).reshape(-1, 1)


def consistency_table(answers: pd.DataFrame, evaluator: Evaluator, rules: Rules | None = None) -> pd.DataFrame:
    """Each answer of one model against its English answer.

    Args:
        answers: prompt_id, language, english (the text in English), outcome; English answers included.
        evaluator: compares.
        rules: for answers that are not ok.

    Returns:
        prompt_id, language, outcome, the evaluator's parts (missing where not scored), reason (see `Rules.reasons`;
        "no score" where the evaluator could not tell).
    """
    rules = rules or Rules()
    foreign = answers[answers["language"] != "en"].reset_index(drop=True)
    reason = rules.reasons(foreign["outcome"], english_outcomes(answers, foreign["prompt_id"]))
    english = answers[answers["language"] == "en"].set_index("prompt_id")["english"]
    values = np.full((len(foreign), len(evaluator.parts)), np.nan)
    values[reason == "scored 0"] = 0.0
    read = foreign[reason == ""]
    if len(read):
        values[reason == ""] = evaluator.compare(list(read["english"]), list(english[read["prompt_id"]]))
    reason[(reason == "") & np.isnan(values).any(axis=1)] = "no score"
    scores = dict(zip(evaluator.parts, values.T, strict=True))
    return foreign[["prompt_id", "language", "outcome"]].assign(**scores, reason=reason)
