"""reporting/consistency.py: consistency by language and paper A's averaged table, beside numbers worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from xlc_utils.registry import languages, models
from xlc_utils.reporting import published
from xlc_utils.reporting.consistency import (
    FAMILIES,
    SCRIPTS,
    Scores,
    averaged,
    by_language,
    differences,
    memberships,
    rule_effects,
    wide,
)
from xlc_utils.running.params import load

SAMPLES, SEED = 200, 0


@pytest.fixture(scope="module")
def known(root: Path) -> dict[str, languages.Language]:
    return languages.load(root)


@pytest.fixture(scope="module")
def registry(root: Path) -> models.Registry:
    return models.load(root)


def frame(rows: list[tuple]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["model", "language", "prompt_id", "precision", "recall"])


# Two prompts in Spanish and German (Latin script; Rom as printed) and Hindi (Indic, IA).
ROWS = [
    ("aya-exp-8b", "es", "p1", 1.0, 0.5), ("aya-exp-8b", "es", "p2", 0.5, 0.5),
    ("aya-exp-8b", "de", "p1", 0.4, 0.4), ("aya-exp-8b", "de", "p2", 0.4, 0.4),
    ("aya-exp-8b", "hi", "p1", 0.0, 0.0), ("aya-exp-8b", "hi", "p2", 0.2, 0.6),
    ("Llama-3.1-8B", "es", "p1", 0.8, 0.8), ("Llama-3.1-8B", "es", "p2", 0.8, 0.8),
    ("Llama-3.1-8B", "de", "p1", np.nan, np.nan), ("Llama-3.1-8B", "de", "p2", np.nan, np.nan),
    ("Llama-3.1-8B", "hi", "p1", 0.5, 0.5), ("Llama-3.1-8B", "hi", "p2", np.nan, np.nan),
]  # fmt: skip
# F of the mean precision and the mean recall: es 2·.75·.5/1.25, hi 2·.1·.3/.4.
AYA = {"es": 0.6, "de": 0.4, "hi": 0.15}
LLAMA = {"es": 0.8, "hi": 0.5}


@pytest.fixture(scope="module")
def scores() -> Scores:
    names = ["aya-exp-8b", "Llama-3.1-8B"]
    return Scores.of(frame(ROWS), ["precision", "recall"], names, ["es", "de", "hi"])


def test_consistency_is_f_of_the_means_not_the_mean_of_f(scores: Scores):
    table = by_language(scores, SAMPLES, SEED).set_index(["model", "language"])
    for language, value in AYA.items():
        assert table.loc[("aya-exp-8b", language), "value"] == pytest.approx(value)
    for language, value in LLAMA.items():
        assert table.loc[("Llama-3.1-8B", language), "value"] == pytest.approx(value)
    assert np.isnan(table.loc[("Llama-3.1-8B", "de"), "value"])
    assert list(table["n"]) == [2, 2, 2, 2, 0, 1]
    inside = table.dropna()
    assert (inside["low"] <= inside["value"]).all() and (inside["value"] <= inside["high"]).all()
    assert np.isnan(table.loc[("Llama-3.1-8B", "hi"), "low"]), "one prompt says nothing of the spread"


def test_the_averaged_table_by_hand(scores: Scores, known, registry):
    table = averaged(scores, known, registry, SAMPLES, SEED).set_index(["model", "group"])
    average = (0.6 + 0.4 + 0.15) / 3
    aya = {"Avg": average, "Latin": 0.5, "Indic": 0.15, "Rom": 0.5, "IA": 0.15, "In": average}
    llama = {"Avg": 0.65, "Latin": 0.8, "Indic": 0.5, "Rom": 0.8, "IA": 0.5, "In": 0.65}
    for model, expected, n in (("aya-exp-8b", aya, 3), ("Llama-3.1-8B", llama, 2)):
        own = table.loc[model]
        assert own["value"].to_dict() == pytest.approx(expected), "a group with no language at hand has no row"
        assert own.loc["Avg", "n_languages"] == n
    assert list(table.loc[[("aya-exp-8b", "Rom"), ("Llama-3.1-8B", "Rom")], "n_languages"]) == [2, 1]
    assert set(table["group_kind"]) == {"average", "script", "family", "training"}


def test_every_resample_draws_the_same_prompts_for_all_languages(known, registry):
    """Two languages that complement each other prompt by prompt average to a constant, and its interval is a point."""
    rows = [("m", language, f"p{i}", (i + n) % 2, 0) for n, language in enumerate(("es", "hi")) for i in range(8)]
    one = Scores.of(frame(rows), ["precision"], ["m"], ["es", "hi"])
    average = averaged(one, known, registry, SAMPLES, SEED).set_index("group").loc["Avg"]
    assert (average["value"], average["low"], average["high"]) == pytest.approx((0.5, 0.5, 0.5))


def test_rows_in_another_order_give_the_same_bytes(known, registry):
    names = ["aya-exp-8b", "Llama-3.1-8B"]
    tables = []
    for rows in (ROWS, ROWS[::-1]):
        scores = Scores.of(frame(rows), ["precision", "recall"], names, ["es", "de", "hi"])
        parts = (by_language(scores, 50, 1), averaged(scores, known, registry, 50, 1), differences(scores, 50, 1))
        tables.append([part.to_csv(index=False) for part in parts])
    assert tables[0] == tables[1]


# ---- who is in which group -------------------------------------------------------------------------------------------
def counts(model: str, codes, known, registry) -> dict[str, int]:
    return {name: sum(members) for _, name, members in memberships(model, codes, known, registry)}


def test_the_groups_of_the_papers_thirty_languages(root: Path, known, registry):
    codes = load(root / "params" / "paper.yaml").languages
    found = counts("aya-exp-8b", codes, known, registry)
    assert found == {
        "Avg": 30, "Latin": 12, "Indic": 8, "PArab": 3, "Oth1": 7, "Rom": 7, "Slav": 3, "IA": 6, "Drav": 4, "Oth2": 10,
        "In": 21, "Out": 9,
    }  # fmt: skip
    assert {m: counts(m, codes, known, registry)["In"] for m in ("Llama-3.1-8B", "Qwen-2.5-14B")} == {
        "Llama-3.1-8B": 7,
        "Qwen-2.5-14B": 12,
    }
    none = counts("gpt-4o", codes, known, registry)
    assert none["In"] == none["Out"] == 0, "its makers name no languages"
    assert counts("a file of answers", codes, known, registry)["In"] == 0


def test_a_language_is_in_one_script_and_one_family(root: Path, known, registry):
    codes = load(root / "params" / "paper.yaml").languages
    found = {name: members for _, name, members in memberships("aya-exp-8b", codes, known, registry)}
    for names in (SCRIPTS, FAMILIES, ("In", "Out")):
        assert (np.sum([found[name] for name in names], axis=0) == 1).all()


def test_the_groups_are_those_the_paper_prints(root: Path, known, registry):
    """With these sizes the group columns of the printed table average to its Avg column, within rounding."""
    codes = load(root / "params" / "paper.yaml").languages
    sizes = counts("aya-exp-8b", codes, known, registry)
    rows = published.load("paper_a_averaged_scores")
    printed = rows.pivot(index=["dimension", "model"], columns="group", values="value")
    for names in (SCRIPTS, FAMILIES):
        implied = sum(sizes[name] * printed[name] for name in names) / 30
        assert (implied - printed["Avg"]).abs().max() <= 0.01 + 1e-9
    assert set(printed.columns) == {"Avg", *SCRIPTS, *FAMILIES, "In", "Out"}


# ---- differences -----------------------------------------------------------------------------------------------------
def test_a_difference_is_over_the_languages_and_prompts_both_have(scores: Scores):
    (row,) = differences(scores, SAMPLES, SEED).to_dict("records")
    assert (row["model"], row["other"]) == ("aya-exp-8b", "Llama-3.1-8B")
    assert row["difference"] == pytest.approx((0.6 - 0.8 + 0.0 - 0.5) / 2), "in Hindi one has the first prompt alone"
    assert 0 < row["p"] <= 1 and row["p_holm"] == row["p"]


def test_a_clear_difference_is_found_and_none_is_not(known):
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.05, (2, 40))
    rows = [("low", "es", f"p{i:02}", 0.3 + noise[0, i], 0) for i in range(40)]
    rows += [("high", "es", f"p{i:02}", 0.6 + noise[1, i], 0) for i in range(40)]
    rows += [("same", "es", f"p{i:02}", 0.3 + noise[0, i], 0) for i in range(40)]
    scores = Scores.of(frame(rows), ["precision"], ["low", "high", "same"], ["es"])
    table = differences(scores, 999, 0).set_index(["model", "other"])
    clear, none = table.loc[("low", "high")], table.loc[("low", "same")]
    assert clear["p"] == pytest.approx(1 / 1000) and clear["low"] < -0.27 and clear["high"] > -0.33
    assert clear["high"] < 0 and clear["p_holm"] == pytest.approx(3 / 1000)
    assert none["difference"] == 0 and none["p"] == 1


def test_one_shared_prompt_has_no_interval():
    rows = [("a", "es", "p1", 0.5, 0), ("a", "es", "p2", 0.7, 0), ("b", "es", "p1", 0.1, 0), ("b", "es", "p3", 0.2, 0)]
    (row,) = differences(Scores.of(frame(rows), ["precision"], ["a", "b"], ["es"]), 50, 0).to_dict("records")
    assert row["difference"] == pytest.approx(0.4)
    assert all(np.isnan(row[name]) for name in ("low", "high", "p", "p_holm"))


def test_models_without_a_language_in_common_have_no_difference():
    rows = [("a", "es", "p1", 0.5, 0.5), ("b", "hi", "p1", 0.5, 0.5)]
    scores = Scores.of(frame(rows), ["precision", "recall"], ["a", "b"], ["es", "hi"])
    table = differences(scores, 50, 0)
    assert table.empty and list(table.columns) == ["model", "other", "difference", "low", "high", "p", "p_holm"]


# ---- as the paper prints it ------------------------------------------------------------------------------------------
def test_the_wide_table_has_the_papers_columns_in_its_order(scores: Scores, known, registry):
    table = wide(averaged(scores, known, registry, SAMPLES, SEED))
    assert list(table.columns) == ["model", "Avg", *SCRIPTS, *FAMILIES, "In", "Out"]
    assert list(table["model"]) == ["aya-exp-8b", "Llama-3.1-8B"]
    assert table["Latin"][0].startswith("0.50 [") and table["Drav"][0] == "–" and table["Out"][0] == "–"


@pytest.mark.parametrize("codes", [[], ["es", "hi"]])
def test_nothing_scored_is_an_empty_table_of_the_same_form(scores: Scores, known, registry, codes: list[str]):
    """No round trip was asked for, or every call failed: the notebook goes on and the tables are empty."""
    nothing = Scores.of(frame([]), ["precision", "recall"], ["aya-exp-8b", "gpt-4o"], codes)
    assert not nothing.n.any()
    by = by_language(nothing, SAMPLES, SEED)
    assert len(by) == 2 * len(codes) and by["value"].isna().all()
    table = averaged(nothing, known, registry, SAMPLES, SEED)
    assert table.empty and list(table.columns) == list(averaged(scores, known, registry, SAMPLES, SEED).columns)
    assert wide(table).empty and list(wide(table).columns) == ["model", "Avg", *SCRIPTS, *FAMILIES, "In", "Out"]
    assert differences(nothing, SAMPLES, SEED).empty


# ---- what the rules do -----------------------------------------------------------------------------------------------
def test_the_rules_move_a_cell_as_far_as_by_hand(known, registry):
    rows = [
        ("m", "es", "p-1", "ok", "", 1.0),
        ("m", "es", "p-2", "refused", "scored 0", 0.0),
        ("m", "hi", "p-1", "error", "excluded outcome", np.nan),
        ("m", "hi", "p-2", "truncated", "", 0.5),
        ("m", "hi", "p-3", "ok", "no English answer", np.nan),
    ]
    scores = pd.DataFrame(rows, columns=["model", "language", "prompt_id", "outcome", "reason", "score"])
    found = rule_effects(scores, ["score"], ["m"], known, registry, ["es", "hi"]).set_index("group")
    columns = ["responses", "concerned", "value", "if_scored_0", "if_left_out"]
    assert found.loc["Latin", columns].tolist() == [2, 1, 0.5, 0.5, 1.0]
    assert found.loc["Indic", columns].tolist()[:4] == [2, 2, 0.5, 0.0] and np.isnan(found.loc["Indic", "if_left_out"])
    assert found.loc["Avg", columns].tolist() == [4, 3, 0.5, 0.25, 1.0]
    assert "PArab" not in found.index, "no language of it is at hand"
