"""text/accuracy.py: the committed figures are those of the code and of the known texts."""

from __future__ import annotations

import importlib.util
import re
from importlib import metadata
from pathlib import Path

import pandas as pd
import pytest

from xlc_utils.registry import languages
from xlc_utils.registry.problems import Problem
from xlc_utils.text import accuracy
from xlc_utils.text.documents import joined, pieces
from xlc_utils.text.sentences import splitter


@pytest.fixture(scope="module")
def committed() -> pd.DataFrame:
    return accuracy.committed()


def test_the_committed_figures_of_best_are_those_of_now(root: Path, committed: pd.DataFrame):
    made_with = set(committed.loc[committed["tool"] == "sentencex", "version"])
    if made_with != {metadata.version("sentencex")}:
        pytest.skip("another version of sentencex is installed than the figures were made with")
    then = committed[committed["splitter"] == "best"].drop(columns="version").reset_index(drop=True)
    pd.testing.assert_frame_equal(accuracy.best_policy(root).drop(columns="version"), then)


@pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("spacy", "indicnlp", "yasbd", "underthesea"))), reason="split"
)
def test_the_whole_table_is_that_of_now(root: Path, committed: pd.DataFrame):
    now = accuracy.table(root)
    pd.testing.assert_frame_equal(now.fillna(""), committed.fillna(""))


def test_best_takes_nine_texts_of_ten_apart_exactly(committed: pd.DataFrame):
    best = committed[committed["splitter"] == "best"]
    assert len(best) == 34 and (best["texts"] >= 8).all()
    assert best["exact"].sum() >= 0.9 * best["texts"].sum()
    held_out = best["texts"].sum() / 2
    assert best["held_out"].sum() >= 0.9 * held_out, "on the half that nothing was chosen on"
    below = set(best.loc[best["exact"] < 0.7 * best["texts"], "language"])
    assert below == {"th"}, "Thai writes no full stops"
    paper = committed[committed["splitter"] == "paper"]
    assert paper["exact"].sum() < best["exact"].sum()


def test_each_languages_splitter_is_the_one_that_did_best_on_the_choosing_half(root: Path, committed: pd.DataFrame):
    for code, language in languages.load(root).items():
        assert language.splitter.best == accuracy.chosen(committed, code), code


def test_halves_are_equal_and_all_languages_have_the_same_kinds_of_text(root: Path):
    for code in languages.load(root):
        known = accuracy.known(root, code)
        assert len(known.choosing) == len(known.held_out) == 5
        assert {*known.choosing, *known.held_out} == {
            "abbreviations", "numbers", "quotes", "pauses", "initials", "lists", "bold", "table", "answer", "advice",
        }  # fmt: skip


def test_known_texts_are_in_the_languages_script(root: Path):
    import regex

    names = {"Hans": "Han", "Jpan": "Han}\\p{Hiragana}\\p{Katakana", "Hang": "Hangul", "Kore": "Hangul"}
    for code, language in languages.load(root).items():
        known = accuracy.known(root, code)
        text = "".join([*known.choosing.values(), *known.held_out.values()])
        script = names.get(language.script, language.script)
        own = regex.findall(rf"[\p{{{script}}}]", text)
        letters = regex.findall(r"[\p{L}\p{M}]", text)
        assert len(own) > 0.9 * len(letters), code


def test_what_is_outside_the_sentences_is_carried_over(root: Path):
    for code in languages.load(root):
        known = accuracy.known(root, code)
        for marked in [*known.choosing.values(), *known.held_out.values()]:
            if not accuracy.is_exact(marked, splitter(code)):
                continue
            parts = pieces(re.sub(r"[\[\]]", "", marked), splitter(code))
            done = joined(parts, {i: "X" for i, p in enumerate(parts) if p.translate})
            expected = re.sub(r"\[[^\[\]]+\]", "X", marked)
            # Where Japanese has no space between two sentences, their translations get one.
            assert re.sub("X (?=X)", "X", done) == re.sub("X (?=X)", "X", expected)


@pytest.mark.parametrize("text", ["No sentence.", "[One.] [Two.", "[One.]] [Two.]", "[[One.] Two.]"])
def test_brackets_that_do_not_pair_are_told(tmp_path: Path, text: str):
    folder = tmp_path / "params" / "known_answers" / "sentences"
    folder.mkdir(parents=True)
    (tmp_path / "params" / "languages").mkdir()
    body = f"choosing:\n  bold: '{text}'\nheld_out: {{}}\n"
    (folder / "de.yaml").write_text(body, encoding="utf-8")
    with pytest.raises(Problem, match=r"sentences/de\.yaml: key `bold`: its square brackets do not pair"):
        accuracy.known(tmp_path, "de")


def test_of_equals_the_first_light_splitter_is_chosen():
    rows = [
        {"language": "xx", "splitter": tool, "choosing": n}
        for tool, n in (("stops", 4), ("sentencex", 4), ("yasbd", 5))
    ]
    assert accuracy.chosen(pd.DataFrame(rows), "xx") == "sentencex"


def test_a_new_language_without_known_sentences_is_left_out(project: Path, root: Path):
    (project / "params" / "known_answers" / "sentences" / "th.yaml").unlink()
    found = accuracy.best_policy(project)
    assert "th" not in set(found["language"]) and len(found) == len(accuracy.best_policy(root)) - 1
