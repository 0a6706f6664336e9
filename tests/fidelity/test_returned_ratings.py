"""Drawing sheets, giving them out, reading them back, and what they say."""

from __future__ import annotations

import io
import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bootstrap

from xlc_utils.fidelity.rating_scales import DIALOGUE, FIDELITY, SCALES
from xlc_utils.fidelity.rating_sheets import (
    RATINGS,
    SHEETS,
    SHEETS_AN_ANNOTATOR,
    assign,
    completeness,
    dialogue_labels,
    fidelity_table,
    given_out,
    read_ratings,
    returned_ratings,
    sample_dialogues,
    sample_snippets,
    write_pages,
)
from xlc_utils.registry.problems import Problem

# Krippendorff (2011), example C, four observers and twelve units; it prints 0.815 for alpha, ordinal.
KRIPPENDORFF_2011 = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]


def some_sheets(n: int, items: int = 2, language: str = "es") -> pd.DataFrame:
    rows = [
        {"sheet": sheet, "item": item, "model": "m", "language": language, "prompt_id": f"p{sheet}-{item}",
         "source": f"Texto {sheet}, {item}.", "translation": f"Text {sheet}, {item}."}
        for sheet in range(1, n + 1) for item in range(1, items + 1)
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=SHEETS)


def some_ratings(by_annotator: dict[str, list[float | None]], language: str = "es", sheet: int = 1) -> pd.DataFrame:
    rows = [
        {"annotator": name, "scale": "fidelity", "language": language, "sheet": sheet, "item": item,
         "question": "rating", "rating": rating, "comment": "", "source": "", "translation": "", "file": ""}
        for name, given_ratings in by_annotator.items() for item, rating in enumerate(given_ratings, 1)
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=RATINGS).astype({"rating": float})


@pytest.fixture
def sheet(run) -> tuple[Path, pd.DataFrame]:
    """The spreadsheet of a sheet of three, one text of which looks like a formula."""
    sheets = some_sheets(1, items=3)
    sheets.loc[1, ["source", "translation"]] = ['-5 °C;\n"frío"', '-5 °C,\n"cold"']
    return write_pages(run, "es", sheets)[0].with_suffix(".csv"), sheets


# ---- drawing ---------------------------------------------------------------------------------------------------------
def test_snippets_are_consecutive_sentences_of_one_answer(sentences):
    everything = sentences("es")
    answers = everything.groupby(["model", "prompt_id"])
    for row in sample_snippets(everything, sheets=3, seed=4).itertuples():
        answer = answers.get_group((row.model, row.prompt_id))
        for column, text in (("source", row.source), ("text", row.translation)):
            places = [text.find(sentence) for sentence in answer[column]]
            found = [number for number, place in enumerate(places) if place >= 0]
            assert 1 <= len(found) <= 4
            assert found == list(range(found[0], found[-1] + 1))
            assert all(places[one] < places[two] for one, two in pairwise(found))
            assert sum(len(answer[column].iloc[number]) for number in found) + len(found) - 1 == len(text)


def test_every_length_from_one_to_four_is_drawn(sentences):
    everything = sentences("es")
    lengths = Counter(
        sum(sentence in row.source for sentence in set(everything["source"]))
        for seed in range(5)
        for row in sample_snippets(everything, sheets=3, seed=seed).itertuples()
    )
    assert set(lengths) == {1, 2, 3, 4}


def test_models_are_alike_on_every_sheet_and_no_answer_comes_twice(sentences):
    sheets = sample_snippets(sentences("es"), sheets=3, seed=0)
    assert sheets.groupby("sheet").size().tolist() == [10, 10, 10]
    assert sheets.groupby(["sheet", "model"]).size().tolist() == [5] * 6
    assert not sheets.duplicated(["model", "prompt_id"]).any()
    orders = ["".join(g.sort_values("item")["model"].str[0]) for _, g in sheets.groupby("sheet")]
    assert len(set(orders)) == 3  # the place does not give the model away


def test_the_draw_depends_on_the_seed_alone(sentences):
    everything = sentences("ar")
    first = sample_snippets(everything, sheets=2, seed=0)
    by_model_reversed = pd.concat([g for _, g in reversed(list(everything.groupby("model")))])
    pd.testing.assert_frame_equal(sample_snippets(by_model_reversed, sheets=2, seed=0), first)
    assert not sample_snippets(everything, sheets=2, seed=1).equals(first)


def test_too_few_answers_give_fewer_items(sentences):
    everything = sentences("es")
    assert len(sample_snippets(everything[everything["prompt_id"].str.startswith("astronomy")], sheets=1, seed=0)) == 4
    assert sample_snippets(everything.head(0), sheets=1, seed=0).columns.tolist() == SHEETS


@pytest.mark.parametrize(
    ("language", "lines", "texts", "joined"),
    [
        ("ja", [0, 0], ["一つ目です。", "二つ目です。"], "一つ目です。二つ目です。"),
        ("zh-Hant", [0, 0], ["他说：“好。”", "他走了……"], "他说：“好。”他走了……"),
        ("es", [0, 0], ["Uno.", "Dos."], "Uno. Dos."),
        ("es", [0, 0], ["Dijo “sí.”", "Y se fue… Dos."], "Dijo “sí.” Y se fue… Dos."),
        ("es", [0, 1], ["Uno.", "Dos."], "Uno.\nDos."),
    ],
)
def test_sentences_stand_as_they_stood(language, lines, texts, joined):
    rows = {"model": "m", "language": language, "prompt_id": "p", "line": lines, "source": texts, "text": texts}
    drawn = {sample_snippets(pd.DataFrame(rows), sheets=1, seed=seed)["source"][0] for seed in range(20)}
    assert joined in drawn <= {joined, *texts}


@pytest.mark.parametrize("language", ["ja", "es"])
def test_an_english_translation_has_a_space_between_its_sentences(language):
    english = ["He said “yes.”", "Then he left…", "It rained."]
    rows = {"model": "m", "language": language, "prompt_id": "p", "line": [0] * 3, "source": ["…"] * 3, "text": english}
    drawn = {sample_snippets(pd.DataFrame(rows), sheets=1, seed=seed)["translation"][0] for seed in range(20)}
    assert "He said “yes.” Then he left… It rained." in drawn


def test_dialogues_without_turns_are_not_asked_about():
    turns = '[{"sender": "agent", "name": "Mari", "text": "Tere!"}, {"sender": "customer", "name": "", "text": "Hei."}]'
    rows = [("a", "one", turns), ("b", "one", "[]"), ("c", "two", turns)]
    dialogues = pd.DataFrame(rows, columns=["dialogue_id", "generator", "turns"]).assign(language="et")
    sheets = sample_dialogues(dialogues, sheets=1, seed=0).sort_values("prompt_id")
    assert sheets["prompt_id"].tolist() == ["a", "c"]
    assert sheets["model"].tolist() == ["one", "two"]
    assert sheets["source"].iloc[0] == "AGENT (Mari): Tere!\n\nCUSTOMER: Hei."


# ---- giving out ------------------------------------------------------------------------------------------------------
@given(st.integers(1, 30), st.integers(1, 12), st.integers(1, 4))
def test_nobody_gets_more_than_four_sheets_or_one_twice(sheets, annotators, raters):
    names = [f"A{number}" for number in range(annotators)]
    if annotators < raters or sheets * raters > 4 * annotators:
        with pytest.raises(Problem, match="annotators"):
            assign(some_sheets(sheets), names, raters)
        return
    given_out = assign(some_sheets(sheets), names, raters)
    assert not given_out.duplicated().any()
    assert given_out.groupby("sheet").size().tolist() == [raters] * sheets
    loads = given_out.groupby("annotator").size().reindex(names, fill_value=0)
    assert loads.max() <= 4
    assert loads.max() - loads.min() <= 1


def test_as_few_people_as_may_rate_it_and_others_in_each_language():
    sheets = pd.concat([some_sheets(5), some_sheets(1).assign(language="fi")])
    given = given_out(sheets, raters=2)
    assert given.groupby("language")["annotator"].agg(lambda names: sorted(set(names))).to_dict() == {
        "es": ["A1", "A2", "A3"], "fi": ["A1", "A2"],
    }  # fmt: skip
    assert (given.groupby(["language", "sheet"]).size() == 2).all()
    assert (given.groupby(["language", "annotator"]).size() <= SHEETS_AN_ANNOTATOR).all()
    assert given_out(sheets.head(0), raters=2).empty


def test_pairs_of_judges_change():
    """Six sheets, four judges, two a sheet: each of the six pairs once."""
    pairs = assign(some_sheets(6), ["a", "b", "c", "d"], raters=2).groupby("sheet")["annotator"].apply(frozenset)
    assert len(set(pairs)) == 6


def test_too_few_annotators_are_told_how_many():
    with pytest.raises(Problem, match=r"10 sheets, each rated by 1, are too many for 2 annotators; find 3,"):
        assign(some_sheets(10), ["a", "b"])


def test_a_key_means_one_answer():
    for scale in SCALES.values():
        keys = [choice.key for question in scale.questions for choice in question.choices]
        assert len(keys) == len(set(keys))
        worded = scale.worded("Hindi")
        assert "{" not in worded.task + "".join(q.text + "".join(c.sense for c in q.choices) for q in worded.questions)
    assert FIDELITY.questions[0].values == (1, 2, 3, 4, 5)
    assert [question.values for question in DIALOGUE.questions] == [(0, 1), (0, 1, 2, 3)]


# ---- reading back ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_spreadsheet_saved_by_any_program(sheet, tmp_path, separator):
    path, sheets = sheet
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    assert table["source"][1].startswith("'-5 °C")
    table["rating"], table["comment"], table.loc[0, "annotator"] = [" 5", "४", ""], ["", "मोटा", ""], "रमा"
    text = io.StringIO()
    table.to_csv(text, sep=separator, index=False, lineterminator="\r\n")
    empty_row = separator * (len(table.columns) - 1) + "\r\n"
    (tmp_path / "any name.CSV").write_text(text.getvalue() + empty_row, encoding="utf-8")
    ratings = returned_ratings(tmp_path, sheets)
    assert ratings["rating"].fillna(-1).tolist() == [5, 4, -1]
    assert ratings["comment"].tolist() == ["", "मोटा", ""]
    assert set(ratings["annotator"]) == {"रमा"}
    assert ratings["prompt_id"].tolist() == ["p1-1", "p1-2", "p1-3"]


def test_an_annotator_without_a_name_is_called_like_the_file(sheet):
    assert set(read_ratings(sheet[0])["annotator"]) == {"es-1"}


def test_a_spreadsheet_of_dialogues(run, tmp_path):
    turns = '[{"sender": "agent", "name": "", "text": "Tere!"}]'
    dialogue = {"dialogue_id": ["a"], "generator": "g", "turns": turns, "language": "et"}
    sheets = sample_dialogues(pd.DataFrame(dialogue), sheets=1, seed=0)
    page = write_pages(run, "et", sheets, DIALOGUE)[0]
    table = pd.read_csv(page.with_suffix(".csv"), dtype=str).assign(coherence="1", fluency="0", annotator="A1")
    assert "translation" not in table
    table.to_csv(tmp_path / "et.csv", index=False)
    labels = dialogue_labels(returned_ratings(tmp_path, sheets, DIALOGUE))
    assert labels.to_numpy().tolist() == [["et", "A1", "g/a", "coherence", 1], ["et", "A1", "g/a", "fluency", 0]]
    assert returned_ratings(tmp_path, sheets, FIDELITY).empty


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda t: t.assign(rating="6"), "row 2: the rating is 6; write a whole number from 1 to 5"),
        (lambda t: t.assign(rating=["3", "4.5", ""]), "row 3: the rating is '4.5'"),
        (lambda t: t.assign(rating=["3", "4", "good"]), "row 4: the rating is 'good'"),
        (lambda t: t.drop(columns=["rating", "item"]), "has no column item, rating"),
        (lambda t: t.assign(item=["1", "two", "3"]), "row 3: the item is 'two'"),
        (lambda t: t.assign(item="2"), "item 2 is in it twice"),
        (lambda t: t.assign(annotator=["a", "b", ""]), r"has several annotators \(a, b\)"),
    ],
)
def test_bad_spreadsheets(sheet, tmp_path, change, told):
    path = tmp_path / "bad.csv"
    change(pd.read_csv(sheet[0], dtype=str, keep_default_na=False)).to_csv(path, index=False)
    with pytest.raises(Problem, match=f"bad.csv.*{told}"):
        read_ratings(path)


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2,3\n", b"\xff\xfea\x00,\x00", b'a,b\n"1,2\n'])
def test_what_is_no_spreadsheet(tmp_path, content):
    (tmp_path / "bad.csv").write_bytes(content)
    with pytest.raises(Problem, match=r"bad\.csv"):
        read_ratings(tmp_path / "bad.csv")


def export(**changes) -> dict:
    """What the page of `some_sheets(1)` downloads; the page itself is tested in a browser."""
    items = [
        {"item": i, "source": f"Texto 1, {i}.", "translation": f"Text 1, {i}.", "ratings": {"rating": 4}, "comment": ""}
        for i in (1, 2)
    ]
    whole = {"format": "xlc-ratings-1", "scale": "fidelity", "language": "es", "sheet": 1, "fingerprint": "0",
             "questions": ["rating"], "annotator": "A1", "items": items}  # fmt: skip
    return whole | changes


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "it is not JSON"),
        ("[]", "is a list; write a mapping of keys"),
        (json.dumps(export(format="other")), "key `format`: 'other' is not allowed here"),
        (json.dumps(export(scale="beauty")), "there is no scale 'beauty'"),
        (json.dumps(export(items=[export()["items"][0]] * 2)), "item 1 is in it twice"),
        (json.dumps(export(items=[export()["items"][0] | {"ratings": {"rating": 0}}])), "item 1: the rating is 0"),
        (json.dumps(export(items=[export()["items"][0] | {"ratings": {"rating": "5"}}])), "'5' is text"),
        (json.dumps(export(items=[{"item": 1}])), "it is missing; add it"),
    ],
)
def test_bad_exports(tmp_path, content, told):
    (tmp_path / "bad.json").write_text(content, encoding="utf-8")
    with pytest.raises(Problem, match=f"bad.json.*{told}"):
        read_ratings(tmp_path / "bad.json")


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ([export(sheet=2)], "item 1 of sheet es-2 is not among this run's sheets"),
        ([export(language="fr")], "item 1 of sheet fr-1 is not among"),
        ([export(items=[export()["items"][0] | {"item": 9}])], "item 9 of sheet es-1 is not among"),
        ([export(items=[export()["items"][0] | {"translation": "Other."}])], "item 1 of sheet es-1 has another text"),
        ([export(), export()], "1.json: A1 has rated sheet es-1 in .*0.json too; keep one of the two"),
    ],
)
def test_files_that_do_not_belong_here(tmp_path, files, told):
    for number, content in enumerate(files):
        (tmp_path / f"{number}.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(Problem, match=told):
        returned_ratings(tmp_path, some_sheets(1))


def test_nothing_has_come_back(tmp_path):
    ratings = returned_ratings(tmp_path / "none", some_sheets(2))
    assert ratings.empty
    assert fidelity_table(ratings, 0, 100).columns[0] == "language"
    assert completeness(ratings, some_sheets(2))["status"].tolist() == ["not returned"] * 2


def test_completeness():
    sheets, none = some_sheets(3), np.nan
    ratings = pd.concat([some_ratings({"b": [5, 4], "a": [none, 4]}), some_ratings({"a": [none]}, sheet=2)])
    assert completeness(ratings, sheets).to_numpy().tolist() == [
        ["es", 1, "a", 2, 1, "1", "incomplete"],
        ["es", 1, "b", 2, 2, "", "complete"],
        ["es", 2, "a", 2, 0, "1, 2", "incomplete"],
        ["es", 3, "", 2, 0, "1, 2", "not returned"],
    ]
    assigned = assign(sheets, ["a", "b", "c"], raters=3)
    left = completeness(ratings, sheets, assigned).query("status != 'complete'")
    assert left.groupby("annotator")["sheet"].agg(list).to_dict() == {"a": [1, 2, 3], "b": [2, 3], "c": [1, 2, 3]}


def test_an_item_of_dialogues_is_complete_with_both_answers():
    one = some_ratings({"a": [1, 0]}).assign(scale="dialogue", question="coherence")
    other = some_ratings({"a": [3, np.nan]}).assign(scale="dialogue", question="fluency")
    assert completeness(pd.concat([one, other]), some_sheets(1))["missing"].tolist() == ["2"]


# ---- summing up ------------------------------------------------------------------------------------------------------
def test_alpha_is_the_one_krippendorff_prints():
    ratings = some_ratings({f"A{number}": row for number, row in enumerate(KRIPPENDORFF_2011)})
    found = fidelity_table(ratings.sample(frac=1, random_state=0), seed=0, samples=200).iloc[0]
    assert found["alpha"] == pytest.approx(0.815, abs=5e-4)
    assert found[["n_items", "n_shared", "n_ratings", "n_annotators"]].tolist() == [12, 11, 41, 4]
    assert found["why_no_alpha"] == ""


def test_an_item_counts_once_however_many_rate_it():
    found = fidelity_table(some_ratings({"a": [5, 1], "b": [5, None], "c": [4, None]}), seed=0, samples=200).iloc[0]
    assert found["mean"] == pytest.approx(((5 + 5 + 4) / 3 + 1) / 2)


def test_the_interval_is_that_of_scipy():
    items = np.random.default_rng(0).integers(1, 6, 100).astype(float)
    found = fidelity_table(some_ratings({"a": list(items)}), seed=0, samples=10_000).iloc[0]
    theirs = bootstrap((items,), np.mean, n_resamples=10_000, method="percentile", rng=1).confidence_interval
    assert found["mean"] == items.mean()
    assert found["low"] == pytest.approx(theirs.low, abs=0.03)
    assert found["high"] == pytest.approx(theirs.high, abs=0.03)
    assert np.isnan(found["alpha"])
    assert found["why_no_alpha"] == "no item has two ratings"


def test_a_row_for_each_language_and_none_of_other_scales():
    of_dialogues = some_ratings({"a": [0]}, "et").assign(scale="dialogue", question="fluency")
    ratings = pd.concat([some_ratings({"a": [4]}, "hi"), some_ratings({"b": [2, None]}, "ar"), of_dialogues])
    found = fidelity_table(ratings, seed=0, samples=100)
    assert found[["language", "mean", "n_items"]].to_numpy().tolist() == [["ar", 2.0, 1], ["hi", 4.0, 1]]
