"""How an item ended. Every row of every item-level table carries one of these; none of them is silently a score."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


#: Responses that hold an answer, to be translated and scored; the others have no text.
WITH_TEXT = (Outcome.OK, Outcome.TRUNCATED, Outcome.OFF_TARGET)


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


def with_outcomes(table: pd.DataFrame, items: pd.DataFrame, on: Sequence[str]) -> pd.DataFrame:
    """A table of scores with how the items behind each row ended.

    Args:
        table: one row a group, the columns ``on`` and its scores.
        items: the items of all groups: the columns ``on``, outcome, and scored (bool: it counts in the scores).
        on: the columns that name a group.

    Returns:
        ``table`` with the columns n, the outcomes that occur in any group, which sum to n, and scored.
    """
    on = list(on)
    counts = outcome_counts(items["outcome"], by={key: items[key] for key in on})
    occurring = [str(o) for o in Outcome if counts[str(o)].any()]
    scored = items.groupby(on)["scored"].sum().reset_index()
    counts = counts[[*on, "n", *occurring]].merge(scored, on=on)
    out = table.merge(counts, on=on, how="left")
    return out.fillna(dict.fromkeys(counts.columns.difference(on), 0)).astype({c: int for c in counts.columns.drop(on)})
