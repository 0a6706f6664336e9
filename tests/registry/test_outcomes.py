"""registry/outcomes.py: how items ended, counted beside what is made of them."""

from __future__ import annotations

import pandas as pd

from xlc_utils.registry.outcomes import with_outcomes

ITEMS = pd.DataFrame(
    [("a", "es", "ok", True), ("a", "es", "truncated", True), ("a", "es", "error", False), ("a", "hi", "ok", True),
     ("b", "es", "refused", True)],
    columns=["model", "language", "outcome", "scored"],
)  # fmt: skip


def test_the_outcomes_that_occur_sum_to_n():
    table = pd.DataFrame({"model": ["b", "a"], "value": [0.0, 0.5]})
    found = with_outcomes(table, ITEMS, on=["model"])
    assert list(found) == ["model", "value", "n", "ok", "refused", "truncated", "error", "scored"]
    assert found.to_dict("records") == [
        {"model": "b", "value": 0.0, "n": 1, "ok": 0, "refused": 1, "truncated": 0, "error": 0, "scored": 1},
        {"model": "a", "value": 0.5, "n": 4, "ok": 2, "refused": 0, "truncated": 1, "error": 1, "scored": 3},
    ]


def test_a_row_without_items_has_none_of_them():
    table = pd.DataFrame({"model": ["a", "a", "b"], "language": ["es", "hi", "hi"], "value": [0.5, 1.0, None]})
    found = with_outcomes(table, ITEMS, on=["model", "language"])
    assert found["n"].tolist() == [3, 1, 0] and found["scored"].tolist() == [2, 1, 0]
    assert pd.isna(found["value"][2]), "a missing score stays missing"
    assert found[["ok", "refused", "truncated", "error"]].sum(axis=1).tolist() == found["n"].tolist()
