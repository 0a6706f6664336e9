"""Rank stability of judges' scores: one row a judge, dimension and pair of languages, and one point in the figure."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.multitest import multipletests

from xlc_utils.judges import automatic
from xlc_utils.judges.rubric import NOT_JUDGED
from xlc_utils.judges.stability_tables import for_plot, judge_means, judge_stability, own_evaluators, stability_grid
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


def test_a_single_language_gives_tables_without_rows():
    """A run whose dialogues are all in one language has no pair of languages, and says so by an empty table."""
    metrics = automatic.read_metrics()
    columns = set(stability_grid(metrics, 100, 100, 0))
    alone = stability_grid(metrics[metrics["language"] == "fi"], 100, 100, 0)
    assert alone.empty and set(alone) == columns and {"metric", "pair", "p_items_holm"} <= columns


def test_a_judge_of_a_single_language_has_no_ranks_to_compare(scores):
    alone = judge_stability(scores[scores["language"] == "et"], 100, 100, 0)
    assert alone.empty and set(alone) == set(judge_stability(scores, 100, 100, 0))


def test_the_figure_stars_what_survives_holm(scores):
    table = judge_stability(scores, 100, 100, 0)
    table["p_items"], table["p_items_holm"] = [0.04, 0.03], [0.06, 0.06]
    assert [text.get_text() for text in stability_plot(for_plot(table)).axes[0].texts][:2] == ["0", "3"]


def test_the_scores_of_each_language_are_counted(scores):
    read = scores.assign(G=scores["G"].where((scores["language"] == "en") | (scores["dialogue_id"] >= 4)))
    row = judge_stability(read, 100, 100, 0).iloc[0]
    assert (row["n_first"], row["n_second"]) == (3 * (DRAWS - 4),) * 2, "paired: scored in both languages"
    assert row["rho_low"] <= row["rho"] <= row["rho_high"]


class Scored:
    """What `own_evaluators` needs of a run: two systems, scored by chance."""

    model_names = ("known-answers", "a", "b")
    params = SimpleNamespace(languages=["es", "fr", "pt"], seed=0)

    def read(self, dimension: str, model: str) -> pd.DataFrame:
        generator = np.random.default_rng([len(dimension), ord(model)])
        columns = {"f": generator.random(60), "consistent": generator.integers(0, 2, 60).astype(float)}
        return pd.DataFrame({"language": ["es", "fr", "pt"] * 20, "prompt_id": np.repeat(range(20), 3), **columns})


def test_own_evaluators_share_one_correction():
    table = own_evaluators(Scored(), 100, 99)
    assert table["dimension"].tolist() == ["information"] * 3 + ["empathy"] * 3
    assert table["p_items_holm"].to_numpy() == pytest.approx(multipletests(table["p_items"], method="holm")[1])


def test_means_of_scores_stand_beside_how_the_replies_ended():
    """Five dialogues: two replies read, one refused, one that is no JSON, and one dialogue that had no turns."""
    frame = pd.DataFrame(
        {
            "judge": "j", "language": "et", "generator": "g", "dialogue_id": [f"d{i}" for i in range(5)],
            "outcome": ["ok", "ok", "refused", "unparsed", "unparsed"],
            "detail": ["", "in a code fence", "content_filter", "no JSON object", NOT_JUDGED],
            "G": [4, 2, np.nan, np.nan, np.nan], "LRA": [0.6, np.nan, 1.0, 0.8, np.nan],
        }
    )  # fmt: skip
    (row,) = judge_means(frame).to_dict("records")
    assert (row["n"], row["ok"], row["refused"], row["unparsed"], row["scored"]) == (5, 2, 1, 2, 2)
    assert (row["G"], row["no_dialogue"]) == (3, 1)
    assert (row["LRA"], row["labels_scored"]) == (pytest.approx(0.8), 3)
