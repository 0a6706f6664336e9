"""How an item ended. Every row of every item-level table carries one of these; none of them is silently a score."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import pandas as pd


class Outcome(StrEnum):
    OK = "ok"
    REFUSED = "refused"  # the model or its provider declined (paper A writes "No answer" for Gemini's RECITATION)
    EMPTY = "empty"  # the model returned nothing
    TRUNCATED = "truncated"  # stopped by the token limit
    DEGENERATE = "degenerate"  # a repetition loop, or a translation that is no translation
    OFF_TARGET = "off_target"  # written in another language than the one asked for
    UNPARSED = "unparsed"  # the reply does not have the form that was asked for
    ERROR = "error"  # the call failed


def outcome_counts(outcomes: Iterable[str], by: dict[str, Iterable[str]] | None = None) -> pd.DataFrame:
    """Counts of every outcome, zeros included, whose row sums are ``n``.

    Args:
        outcomes: one outcome an item.
        by: columns to group by, each as long as ``outcomes``.

    Returns:
        One row a group (or one row in all), columns ``n`` and the eight outcomes.
    """
    frame = pd.DataFrame(
        {"outcome": [str(Outcome(o)) for o in outcomes], **{k: list(v) for k, v in (by or {}).items()}}
    )
    keys = [frame[k] for k in by] if by else [pd.Series(["all"] * len(frame), name="group")]
    counts = pd.crosstab(keys, frame["outcome"]).reindex(columns=[str(o) for o in Outcome], fill_value=0)
    counts.insert(0, "n", counts.sum(axis=1))
    return counts.rename_axis(columns=None).reset_index()
