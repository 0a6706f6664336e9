"""Rank stability of judges' scores: one row a judge, dimension and pair of languages, and one point in the figure."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from xlc_utils.judges.stability_tables import for_plot, judge_stability
from xlc_utils.reporting.figures import stability_plot

GENERATORS, DRAWS = ["a", "b", "c"], 30
# Mean grammar of each generator in English and in Estonian: one judge keeps the order, the other reverses it.
MEANS = {"steady": ([1, 2, 3], [1, 2, 3]), "fickle": ([1, 2, 3], [3, 2, 1])}


@pytest.fixture(scope="module")
def scores() -> pd.DataFrame:
    generator = np.random.default_rng(1)
    rows = []
    for judge, languages in MEANS.items():
        for language, means in zip(("en", "et"), languages, strict=True):
            for name, mean in zip(GENERATORS, means, strict=True):
                grammar = mean + 0.2 * generator.normal(size=DRAWS)
                rows += [
                    {"judge": judge, "language": language, "generator": name, "dialogue_id": draw, "G": score}
                    for draw, score in enumerate(grammar)
                ]
    return pd.DataFrame(rows)


def test_each_judge_has_rows_and_points_of_its_own(scores):
    table = judge_stability(scores, 100, 100, 0)
    assert dict(zip(table["judge"], table["tau"], strict=True)) == {"steady": 1, "fickle": -1}
    points = for_plot(table)
    assert points["metric"].tolist() == ["grammar, steady", "grammar, fickle"]
    axes = stability_plot(points).axes[0]
    assert [label.get_text().replace("\n", " ") for label in axes.get_xticklabels()] == points["metric"].tolist()
    drawn = sorted(float(y) for line in axes.lines if line.get_marker() not in ("", "None") for y in line.get_ydata())
    assert drawn == [-1, 1]


def test_a_single_judge_is_not_named_in_every_metric(scores):
    table = judge_stability(scores[scores["judge"] == "fickle"], 100, 100, 0)
    assert for_plot(table)["metric"].tolist() == ["grammar"]


def test_the_interval_is_what_settled_pairs_leave(scores):
    row = judge_stability(scores[scores["judge"] == "steady"], 100, 100, 0).iloc[0]
    assert (row["low"], row["high"], row["settled"], row["pairs"]) == (1, 1, 3, 3)
    few = judge_stability(scores[(scores["judge"] == "steady") & (scores["dialogue_id"] < 4)], 100, 100, 0).iloc[0]
    assert (few["low"], few["high"], few["settled"]) == (-1, 1, 0)
    assert (few["draws_low"], few["draws_high"]) == (1, 1)
