"""Meta-prompts, other judges and people: against scipy and plain definitions, on made-up scores."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from short_dialogues import TEXTS, dialogue
from stub_model import StubModel

from xlc_utils.judges import ablation, calibration, human, meta_prompts, rubric
from xlc_utils.judges.released import PARAMETERS, read_annotated
from xlc_utils.reporting import published

RNG = np.random.default_rng(7)


def scores(values, judge="j", generator="g"):
    """Rows of `rubric.judge_dialogues` with these scores G in every column."""
    n = len(values)
    ids = [f"d{i:03}" for i in range(n)]
    columns = {"judge": judge, "generator": generator, "language": "et", "dialogue_id": ids}
    return pd.DataFrame(columns | {name: np.asarray(values, float) for name in rubric.SCALES})


def test_a_meta_prompts_difference_is_over_the_dialogues_scored_both_ways():
    english, other = scores([4, 3, 2, np.nan, 1]), scores([4, 4, 4, 4, np.nan])
    found = meta_prompts.meta_prompt_differences(english, other.sample(frac=1, random_state=0), 200, 0)
    assert list(found["score"]) == list(rubric.SCALES)
    row = found.iloc[0]
    assert (row["n"], row["unread"], row["english"], row["other"], row["difference"]) == (3, 2, 3, 4, 1)
    assert row["low"] <= row["difference"] <= row["high"]


@pytest.fixture(scope="module")
def recovered():
    """Three judges over two generators and 40 dialogues; the third guesses."""
    ease = np.linspace(0.1, 0.9, len(PARAMETERS))
    rows = []
    for generator, more in (("a", 0.0), ("b", 0.1)):
        for dialogue_id in range(40):
            luck = RNG.random(len(PARAMETERS))
            for judge in ("one", "two", "guess"):
                chance = ease + more if judge != "guess" else np.full(len(PARAMETERS), 0.5)
                seen = luck if judge == "one" else 0.8 * luck + 0.2 * RNG.random(len(PARAMETERS))
                right = (seen < chance).astype(float)
                rows.append({"judge": judge, "generator": generator, "dialogue_id": f"d{dialogue_id:02}"}
                            | dict(zip(PARAMETERS, right, strict=True)))  # fmt: skip
    return pd.DataFrame(rows).sample(frac=1, random_state=1)


def test_judges_agreement_is_scipys_spearman_over_generators_and_categories(recovered):
    table = ablation.agreement_of_judges(recovered, 300, 0).set_index(["first", "second"])
    accuracy = recovered.groupby(["judge", "generator"])[list(PARAMETERS)].mean()
    rhos = []
    for a, b in combinations(dict.fromkeys(recovered["judge"]), 2):
        expected = spearmanr(accuracy.loc[a].to_numpy().ravel(), accuracy.loc[b].to_numpy().ravel()).statistic
        row = table.loc[(a, b)]
        assert row["rho"] == pytest.approx(expected, abs=1e-12) and row["draws_low"] <= row["rho"] <= row["draws_high"]
        rhos.append(expected)
    assert table.loc[("all", "all"), "rho"] == pytest.approx(np.mean(rhos), abs=1e-12)


def test_accuracy_by_judge_stands_beside_the_printed_range(recovered):
    table = ablation.accuracy_by_judge(recovered, published.load("paper_b_judge_ablation"))
    assert len(table) == 3 * len(PARAMETERS)
    row = table[(table["judge"] == "one") & (table["category"] == "channel")].iloc[0]
    own = recovered[recovered["judge"] == "one"]["channel"]
    assert (
        row["accuracy"] == pytest.approx(own.mean()) and row["n"] == 80 and row["low"] < row["accuracy"] < row["high"]
    )
    assert (table["printed"] != "").all()


def test_people_are_held_against_one_another_and_a_judge_against_all():
    ratings = human.read_ratings()
    fluency = ratings[ratings["question"] == "fluency"].pivot(index="dialogue", columns="annotator", values="value")
    fluency = fluency[list(human.KEY_ANNOTATORS)]
    ids = list(fluency.index)
    judge = scores(fluency.mean(axis=1).round()).assign(dialogue_id=ids)
    judge.loc[0, "F"] = np.nan
    table = calibration.judge_against_people(judge, ratings, 200, 0).set_index(["question", "rater"])
    row = table.loc[("fluency", "j")]
    expected = spearmanr(judge["F"][1:], fluency.mean(axis=1)[1:]).statistic
    assert row["rho"] == pytest.approx(expected, abs=1e-12) and (row["unread"], row["n"]) == (1, len(ids) - 1)
    one = human.KEY_ANNOTATORS[0]
    others = fluency.drop(columns=one).mean(axis=1)
    both = fluency[one].notna() & others.notna()
    expected = spearmanr(fluency[one][both], others[both]).statistic
    assert table.loc[("fluency", one), "rho"] == pytest.approx(expected, abs=1e-12)
    assert table.loc[("fluency", one), "n"] == both.sum()


def test_the_rated_dialogues_are_judged_under_the_ids_that_people_used(release):
    ratings = human.read_ratings()
    frame = calibration.annotated_frame(read_annotated(release), ratings, 5)
    assert len(frame) == 5 and set(frame["dialogue_id"]) <= set(ratings["dialogue"])
    reply = '{"G": 4, "R": 3, "C": 2, "F": 1, "explanation": "so"}'
    found = rubric.judge_dialogues(StubModel(lambda chat: reply), frame, "Judge: {conversation}")
    assert (found["outcome"] == "ok").all() and (found["C"] == 2).all()


def test_dialogues_that_nobody_rated_are_left_out():
    ratings = pd.DataFrame(
        [("Annotator1", "seen", "coherence", 1)], columns=["annotator", "dialogue", "question", "value"]
    )
    both = [replace(dialogue("et", TEXTS["et"]), dialogue_id=name) for name in ("seen", "unseen")]
    assert list(calibration.annotated_frame(both, ratings, 9)["dialogue_id"]) == ["seen"]
