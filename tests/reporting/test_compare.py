"""Ours stands beside the right printed number, and the overview says of every item whether and where it is."""

from __future__ import annotations

import pandas as pd
import pytest

from xlc_utils.reporting import published
from xlc_utils.reporting.compare import beside_printed, outputs_overview

PRINTED = pd.DataFrame({"model": ["b", "b", "a"], "group": ["Latin", "Indic", "Latin"], "value": [0.59, 0.11, 0.4]})


def test_beside_printed():
    ours = pd.DataFrame({"model": ["a", "b", "c"], "group": ["Latin", "Latin", "Oth1"], "value": [0.5, 0.52, 0.3]})
    beside = beside_printed(ours, PRINTED, on=["model", "group"])
    assert list(beside.columns) == ["model", "group", "ours", "printed", "difference"]
    assert beside[["model", "group"]].values.tolist() == [["b", "Latin"], ["b", "Indic"], ["a", "Latin"], ["c", "Oth1"]]
    assert beside["ours"].fillna(-1).tolist() == [0.52, -1, 0.5, 0.3]
    assert beside["printed"].fillna(-1).tolist() == [0.59, 0.11, 0.4, -1]
    assert beside["difference"].fillna(-1).tolist() == [-0.07, -1, 0.1, -1]  # decimals, not 0.09999999999999998


def test_beside_printed_by_one_key_and_another_column():
    printed = published.load("paper_a_self_consistency").rename(columns={"value": "f"})
    ours = pd.DataFrame({"language": ["es"], "f": [0.9]})
    beside = beside_printed(ours, printed, on=["language"], value="f").set_index("language")
    assert len(beside) == 10
    assert beside.loc["es"].tolist() == [0.9, 0.94, -0.04]
    assert beside["ours"].notna().sum() == 1


@pytest.mark.parametrize("side", ["ours", "printed"])
def test_two_rows_for_a_key(side):
    twice = pd.concat([PRINTED, PRINTED.tail(1)])
    sides = {"ours": PRINTED, "printed": PRINTED, side: twice}
    with pytest.raises(ValueError, match=f"{side}: several rows for {{'model': 'a'"):
        beside_printed(**sides, on=["model", "group"])


# --- the overview


def test_overview_of_an_empty_run(run):
    overview = outputs_overview(run)
    outputs = published.load("outputs")
    assert overview[["paper", "item", "title"]].equals(outputs[["paper", "item", "title"]])
    assert not overview["made"].any() and set(overview["where"]) == {""}
    assert overview["remark"].str.len().min() > 5
    never = outputs["computable_at_demo_scale"] == "no"
    assert overview.loc[never, "remark"].equals(outputs.loc[never, "why"])
    fig4 = overview[(overview["paper"] == "A") & (overview["item"] == "Figure 4")].iloc[0]
    assert fig4["remark"].startswith("not made in this run, see notebook 05: ")


def test_overview_finds_tables_and_figures(run):
    for name in ("a_table_1", "a_table_11_12_groups", "b_figure_2_automatic", "a_table_4_x", "atable_3", "a_tables_3"):
        for path in (f"tables/{name}.html", f"tables/{name}.csv"):
            (run.folder / path).parent.mkdir(exist_ok=True)
            (run.folder / path).touch()
    (run.folder / "figures").mkdir()
    (run.folder / "figures" / "b_figure_2.png").touch()
    overview = outputs_overview(run)
    made = overview.query("made").set_index(["paper", "item"])["where"].to_dict()
    assert made == {
        ("A", "Table 1"): "tables/a_table_1.html",
        ("A", "Table 4"): "tables/a_table_4_x.html",
        ("A", "Table 11"): "tables/a_table_11_12_groups.html",
        ("A", "Table 12"): "tables/a_table_11_12_groups.html",
        ("B", "Figure 2"): "tables/b_figure_2_automatic.html\nfigures/b_figure_2.png",
    }
    why = published.load("outputs")["why"]
    assert overview.loc[overview["made"], "remark"].equals(why[overview["made"]])
