"""The transcriptions hold together, and contradict themselves only where the papers do."""

from __future__ import annotations

import pandas as pd
import pytest

from xlc_utils.registry.problems import Problem
from xlc_utils.reporting import published

SCRIPT = {"Latin": 12, "Indic": 8, "PArab": 3, "Oth1": 7}  # languages a group, paper A, Table 11
FAMILY = {"Rom": 7, "Slav": 3, "IA": 6, "Drav": 4, "Oth2": 10}  # paper A, Table 12
TRAINED_ON = {"aya": 21, "Llama": 7, "Qwen": 12, "gemini": 22}  # of the 30, as the makers say
PROPRIETARY = {"gemini-2.0-lite", "gemini-2.0", "gpt-4o-mini", "gpt-4o"}

ROWS = {
    "not_transcribed": 20,
    "outputs": 32,
    "paper_a_averaged_scores": 272,  # 24 rows of 12 groups, less In and Out of 4 models in 2 dimensions
    "paper_a_claims": 36,
    "paper_a_design": 60,
    "paper_a_empathy_evaluator": 18,  # 3 mechanisms, 2 measures, 3 tables
    "paper_a_empathy_splits": 9,
    "paper_a_human_fidelity": 10,
    "paper_a_self_consistency": 10,
    "paper_b_automatic_ranges": 15,
    "paper_b_claims": 51,
    "paper_b_design": 48,
    "paper_b_human": 16,
    "paper_b_judge_ablation": 12,
    "paper_b_judge_scores": 4,
    "paper_b_stability": 33,
}


@pytest.fixture(scope="module")
def hundredths() -> pd.DataFrame:
    """Table 4 of paper A as whole hundredths, so that sums are exact: (dimension, model) by group."""
    table = published.load("paper_a_averaged_scores")
    wide = table.pivot(index=["dimension", "model"], columns="group", values="value")
    return (wide * 100).round()


@pytest.fixture(scope="module")
def b_stability() -> pd.DataFrame:
    return published.load("paper_b_stability")


# --- files


def test_every_file_is_known():
    assert published.names() == sorted(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_rows(name):
    table = published.load(name)
    assert len(table) == ROWS[name]
    assert not table.duplicated().any()


def test_unknown_name_lists_the_known():
    with pytest.raises(Problem, match=r"no file 'table_4'.*paper_a_averaged_scores"):
        published.load("table_4")


@pytest.mark.parametrize("name", sorted(set(ROWS) - {"outputs", "not_transcribed"}))
def test_every_number_says_where_it_stands(name):
    table = published.load(name)
    assert table["paper"].eq(name[6].upper()).all()
    assert table["quantity"].notna().all()
    place = r"Abstract|Limitations|§\d(\.\d)?|Table \d+|Figure \d+|Appendix [A-G](\.\d)?"
    assert table["where"].str.fullmatch(place).all()


@pytest.mark.parametrize("paper", ["a", "b"])
def test_claims_are_short_quotations_that_hold_their_numbers(paper):
    claims = published.load(f"paper_{paper}_claims")
    assert claims["id"].is_unique
    assert claims["quote"].str.split().str.len().max() <= 25
    assert set(claims["kind"]) == {"numeric", "ranking", "design"}
    assert claims.loc[claims["kind"] == "numeric", "numbers"].notna().all()
    for claim in claims.dropna(subset="numbers").itertuples():
        if claim.numbers != "30":  # the abstract writes it out
            assert all(number in claim.quote for number in claim.numbers.split(";")), claim.id


@pytest.mark.parametrize("name", ["automatic_ranges", "judge_ablation", "judge_scores", "stability"])
def test_bounds_fit_their_relation(name):
    table = published.load(f"paper_b_{name}")
    bounded = table["low"].notna().astype(int) + 2 * table["high"].notna()
    expected = table["relation"].map({"=": 3, "about": 3, "range": 3, "<": 2, ">=": 1, "typically >=": 1})
    assert bounded.eq(expected).all()
    assert table.loc[bounded == 3, "low"].le(table.loc[bounded == 3, "high"]).all()
    exact = table["relation"] == "="
    assert table.loc[exact, "low"].eq(table.loc[exact, "high"]).all()


def test_outputs_are_all_tables_and_figures_in_order():
    outputs = published.load("outputs")
    for paper in "AB":
        items = outputs.loc[outputs["paper"] == paper, "item"]
        for word, count in [("Table", 12), ("Figure", 4)]:
            assert [item for item in items if word in item] == [f"{word} {n}" for n in range(1, count + 1)]
    assert outputs.notna().all(axis=None)
    assert set(outputs["kind"]) == {"table", "figure", "example"}
    assert set(outputs["computable_at_demo_scale"]) == {"yes", "partly", "no"}
    assert outputs["notebook"].str.fullmatch(r"0[1-7](;0[1-7])*").all()


def test_what_is_missing_gives_its_reason():
    missing = published.load("not_transcribed")
    assert missing.notna().all(axis=None)
    items = set(missing["paper"] + " " + missing["item"])
    assert {f"B Table {n}" for n in (1, 2, 8, 9, 10, 11, 12)} <= items
    assert {"A Figure 3", "A Figure 4", "B Figure 2", "B Figure 3", "B Figure 4"} <= items


# --- paper A: the averaged table agrees with itself


def test_averaged_table_has_its_shape(hundredths):
    assert hundredths.shape == (24, 12)
    blank = hundredths.index[hundredths["In"].isna()]
    assert {model for _, model in blank} == {"gemma-2-9b", "gemma-2-27b", "gpt-4o-mini", "gpt-4o"}
    assert hundredths["In"].isna().equals(hundredths["Out"].isna())
    kinds = published.load("paper_a_averaged_scores").groupby("group_kind")["group"].agg(set).to_dict()
    training = {"In", "Out"}
    assert kinds == {"average": {"Avg"}, "script": set(SCRIPT), "family": set(FAMILY), "training": training}


def weighted(row: pd.Series, weights: dict[str, int]) -> float:
    """Thirty times the mean over languages, in hundredths."""
    return sum(weight * row[group] for group, weight in weights.items())


def test_script_and_family_means_agree_with_the_average(hundredths):
    # A value printed as v was anything in [v - .005, v + .005], and so was a weighted mean of such values.
    # The three means of a row can be one number exactly if these intervals meet in pairs: no two means further
    # than .01 apart, which is 30 in thirtieths of a hundredth.
    for key, row in hundredths.iterrows():
        means = [30 * row["Avg"], weighted(row, SCRIPT), weighted(row, FAMILY)]
        assert max(means) - min(means) <= 30, key


def test_the_same_criterion_rejects_unweighted_means(hundredths):
    apart = [abs(row[list(SCRIPT)].mean() - row["Avg"]) > 1 for _, row in hundredths.iterrows()]
    assert sum(apart) >= 10


def test_training_groups_agree_with_the_average(hundredths):
    for (dimension, model), row in hundredths.dropna().iterrows():
        inside = next(n for maker, n in TRAINED_ON.items() if model.startswith(maker))
        total = weighted(row, {"In": inside, "Out": 30 - inside})
        assert abs(total - 30 * row["Avg"]) <= 30, (dimension, model)
        assert row["In"] > row["Out"]


def test_fidelity_average_of_the_text():
    assert round(published.load("paper_a_human_fidelity")["value"].mean(), 2) == 4.26


def test_the_two_tables_of_the_empathy_evaluator_agree():
    table = published.load("paper_a_empathy_evaluator").set_index(["mechanism", "measure"])
    first, second = (table.loc[table["where"] == place, "value"].sort_index() for place in ("Table 2", "Table 6"))
    pd.testing.assert_series_equal(first, second)


# --- paper A: where text and table part


def test_text_numbers_stand_in_the_cells_named_except_one(hundredths):
    claims = published.load("paper_a_claims").dropna(subset="cells")
    differing = []
    for claim in claims.itertuples():
        for number, cell in zip(claim.numbers.split(";"), claim.cells.split(";"), strict=True):
            dimension, model, group = cell.split("/")
            if round(float(number) * 100) != hundredths.loc[(dimension, model), group]:
                differing.append((cell, number))
    # The text names gpt-4o-mini as the best proprietary model; .68 is gpt-4o, gpt-4o-mini has .62.
    assert differing == [("information/gpt-4o-mini/Avg", "0.68")]
    best = hundredths.loc["information", "Avg"]
    assert (best.idxmax(), best.max(), best["gpt-4o-mini"]) == ("gpt-4o", 68, 62)


def test_shades_that_differ_from_their_value():
    table = published.load("paper_a_averaged_scores")
    differing = table[(table["value"] * 100).round() != table["shade"]]
    gemma = differing[differing["model"] == "gemma-2-9b"]
    assert gemma[["group", "value", "shade"]].to_numpy().tolist() == [["Drav", 0.39, 36]]
    gpt = differing[differing["model"] == "gpt-4o"]
    assert len(differing) == 10 and len(gpt) == 9
    assert set(gpt["dimension"]) == {"information"} and set(gpt["shade"]) == {60, 70}


def test_open_weight_models_below_proprietary_ones_holds_for_information_only(hundredths):
    for dimension, exceptions in [
        ("information", set()),
        ("empathy", {"aya-exp-8b", "aya-exp-32b", "gemma-2-27b", "Qwen-2.5-14B", "Qwen-2.5-72B"}),
    ]:
        average = hundredths.loc[dimension, "Avg"]
        worst = average[list(PROPRIETARY)].min()
        assert set(average[average >= worst].index) - PROPRIETARY == exceptions


def test_latin_is_not_the_best_script_for_aya_in_empathy(hundredths):
    ahead = hundredths[hundredths["Latin"] <= hundredths[["Indic", "PArab", "Oth1"]].max(axis=1)]
    assert set(ahead.index) == {("empathy", "aya-exp-8b"), ("empathy", "aya-exp-32b")}


def test_degradation_called_minor_exceeds_the_improvements_named_beside_it(hundredths):
    average = hundredths.loc["empathy", "Avg"]
    assert average["gemini-2.0"] - average["gemini-2.0-lite"] == -5
    assert average["gemma-2-27b"] - average["gemma-2-9b"] == 1
    assert average["Qwen-2.5-72B"] - average["Qwen-2.5-14B"] == 1


def test_two_open_weight_models_are_below_the_one_called_poor(hundredths):
    average = hundredths.loc["information", "Avg"].drop(list(PROPRIETARY))
    assert set(average[average < average["aya-exp-8b"]].index) == {"Llama-3.1-8B", "Qwen-2.5-14B"}


def test_learning_rate_chosen_for_explorations_was_not_among_those_tried():
    design = published.load("paper_a_design").groupby("quantity")["value"].agg(list)
    tried = design["learning rate tried"]
    assert design["learning rate chosen for ER and IP"][0] in tried
    assert design["learning rate chosen for EX"][0] not in tried


# --- paper B: where the text parts from itself


def test_agreement_called_fair_to_moderate_is_fair_by_the_papers_own_bands():
    bands = published.load("paper_b_design").set_index("quantity")["value"]
    human = published.load("paper_b_human")
    kappa = human.loc[human["statistic"] == "kappa", "value"]
    assert kappa.gt(bands["kappa above which agreement is called fair"]).all()
    assert kappa.le(bands["kappa above which agreement is called moderate"]).all()


def attainable(mean: float, n: int) -> bool:
    """Whether n whole-number ratings can have a mean that is printed so, to three decimals."""
    return any(abs(total / n - mean) <= 0.0005 + 1e-12 for total in (int(mean * n), int(mean * n) + 1))


def test_human_means_are_not_means_of_whole_ratings_of_100_dialogues():
    human = published.load("paper_b_human")
    means = set(human.loc[human["statistic"] == "mean", "value"])
    assert means == {0.842, 2.108}
    assert not any(attainable(mean, 100) for mean in means)
    assert [n for n in range(90, 131) if all(attainable(mean, n) for mean in means)] == [120]


def test_surface_metrics_have_four_lower_bounds(b_stability):
    bounds = b_stability[(b_stability["statistic"] == "tau") & b_stability["relation"].str.endswith(">=")]
    assert sorted(set(bounds["low"])) == [0.5, 0.62, 0.70, 0.76]
    # Without ties tau is 1 - 2 k / 15 for k inversions; the sentence that prints tau >= .70 allows three.
    most = b_stability.loc[b_stability["printed"] == "1–3 per pair", "high"].item()
    assert 1 - 2 * most / 15 == pytest.approx(0.6)


def test_coherence_of_estonian_and_hungarian_is_printed_in_two_ways(b_stability):
    pair = b_stability[(b_stability["metric"] == "coherence") & (b_stability["language_pairs"] == "et-hu")]
    value = pair.set_index(["where", "statistic"])["high"]
    assert value["§3.4", "tau"] == -0.06
    assert 1 - 2 * value["Appendix E", "inversions"] / 15 == pytest.approx(1 / 3)
    assert value["§3.4", "p"] == 0.02 and value["Appendix E", "p"] == 0.04


def test_coherence_of_finnish_and_hungarian_is_called_stable_at_negative_tau(b_stability):
    pair = b_stability[(b_stability["metric"] == "coherence") & (b_stability["language_pairs"] == "fi-hu")]
    assert pair["high"].tolist() == [-0.17]
    assert published.load("paper_b_claims")["quote"].str.contains("remaining stable for fi–hu").sum() == 1


def test_label_recovery_counts_of_the_caption_are_those_of_the_appendix(b_stability):
    counts = b_stability[b_stability["statistic"] == "inversions"].query("metric == 'label recovery'")
    by_place = {where: rows.set_index("language_pairs")["high"] for where, rows in counts.groupby("where")}
    assert by_place["Figure 2"].to_dict() == {"et-fi": 9, "et-hu": 6, "fi-hu": 7}
    assert by_place["Appendix E"][by_place["Figure 2"].index].equals(by_place["Figure 2"])


def test_p_of_five_hundredths_is_not_below_the_level(b_stability):
    level = published.load("paper_b_design").set_index("quantity")["value"]["significance level"]
    p = b_stability[(b_stability["statistic"] == "p") & (b_stability["metric"] == "coherence")]
    not_below = p.loc[p["high"] >= level, "language_pairs"]
    assert set(not_below) == {"et-en", "et-fi"}


def test_judges_are_three_or_six_and_differ_by_more_than_stated():
    ablation = published.load("paper_b_judge_ablation")
    judges = ablation[ablation["quantity"] == "number of judges compared"].set_index("where")["high"]
    assert judges.to_dict() == {"§2.3": 3, "§3.6": 6, "Appendix G": 6}
    bound = ablation.loc[ablation["quantity"] == "difference between judges", "high"].unique().item()
    accuracy = ablation[ablation["quantity"].str.startswith("accuracy")].set_index("category")
    # Ends rounded to whole per cent were at least .01 nearer to each other.
    least = (accuracy["high"] - accuracy["low"] - 0.01).round(6)
    assert set(least[least >= bound].index) == {"agent experience", "problem"}
