"""A table says the same in its three forms, and nothing in a cell can break a page or a paper."""

from __future__ import annotations

import errno
import io
import os
import re
import string
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from xlc_utils.registry.problems import Problem
from xlc_utils.reporting.tables import MISSING, TOY, cell, save_table, table_view

FRAME = pd.DataFrame({
    "language": ["es", "ar", "he"],
    "text": ["La luz & el agua", "النجوم 100%", "כוכב"],
    "score": [0.505, np.nan, 0.0004],
    "n": [16.0, np.nan, 3.0],
    "reviewed": [True, False, True],
})  # fmt: skip


class Page(HTMLParser):
    """Cells of a page's table by row, and what its elements carry."""

    def __init__(self, text: str):
        super().__init__()
        self.rows: list[list[str]] = []
        self.cells: list[tuple[str, dict]] = []
        self.tags: list[tuple[str, dict]] = []
        self._open = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self._open = True
            self.rows[-1].append("")
            self.cells.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self._open = False

    def handle_data(self, data):
        if self._open:
            self.rows[-1][-1] += data


def written(run, name: str, suffix: str) -> str:
    raw = (run.folder / "tables" / f"{name}.{suffix}").read_bytes()
    assert raw.endswith(b"\n") and b"\r" not in raw
    return raw.decode()


# --- cells


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((0.62, 0.55, 0.70), "0.62 [0.55, 0.70]"),
        ((0.62, np.nan, np.nan), "0.62"),
        ((np.nan, 0.5, 0.7), MISSING),
        ((None, None, None), MISSING),
        ((pd.NA, 0.1, 0.2), MISSING),
        ((-0.001, -0.2, 0.1), "0.00 [-0.20, 0.10]"),  # no minus zero
    ],
)
def test_cell(values, text):
    assert cell(*values) == text


def test_cell_digits():
    assert cell(12.345, 11, 13, digits=1) == "12.3 [11.0, 13.0]"


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        ([0.5, 0.005, 0.0049, 0.00049, 0.0, -0.0002], ["0.50", "0.01", "0.005", "<0.001", "0.00", ">-0.001"]),
        ([12.0, np.nan, 0.0], ["12", MISSING, "0"]),  # counts beside a missing one
        ([1.0, -1.0, 0.0], ["1.00", "-1.00", "0.00"]),  # scores that happen to be whole
        ([1, 2, 300], ["1", "2", "300"]),
        ([True, False, True], ["yes", "no", "yes"]),
        (["a", None, ""], ["a", MISSING, ""]),
        (pd.array([1, None], dtype="Int64"), ["1", MISSING]),
        (np.array([0.25, 1.5], dtype="float32"), ["0.25", "1.50"]),
    ],
)
def test_texts(run, column, texts):
    assert [row[0] for row in table_view(run, pd.DataFrame({"x": column}), "c").rows] == texts


# --- the three forms


def test_csv_has_the_values(run):
    save_table(run, "t", FRAME, "A caption.")
    pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(written(run, "t", "csv"))), FRAME)


def test_page(run):
    save_table(run, "t", FRAME, "Answers, in <b>scripts</b>.", note="–: no item had a score.")
    text = written(run, "t", "html")
    page = Page(text)
    assert page.rows[0] == list(FRAME.columns)
    assert page.rows[1:] == [
        ["es", "La luz & el agua", "0.51", "16", "yes"],
        ["ar", "النجوم 100%", MISSING, MISSING, "no"],
        ["he", "כוכב", "<0.001", "3", "yes"],
    ]
    assert all(attributes["dir"] == "auto" for _, attributes in page.cells)
    scopes = [attributes.get("scope") for tag, attributes in page.cells if tag == "th"]
    assert scopes == ["col"] * 5 + ["row"] * 3
    assert "Answers, in &lt;b&gt;scripts&lt;/b&gt;." in text
    assert text.count("no item had a score") == 1 and "could not be computed" not in text
    assert not re.search(r"(https?:)?//|src=|url\(|@import|<script|<link", text)


def test_missing_values_have_a_reason(run):
    assert table_view(run, FRAME, "c", "Some note.").note == "Some note. –: could not be computed."
    assert table_view(run, FRAME.dropna(), "c").note == ""
    assert table_view(run, pd.DataFrame({"x": [cell(np.nan, 0, 1)]}), "c").note == "–: could not be computed."


@pytest.mark.parametrize(
    ("frame", "toy", "marked"),
    [
        (pd.DataFrame({"model": ["gpt-4o"], "value": [0.5]}), False, False),
        (pd.DataFrame({"model": ["gpt-4o"], "value": [0.5]}), True, True),
        (pd.DataFrame({"model": ["gpt-4o", "gemma-3-270m"], "value": [0.5, 0.2]}), False, True),
        (pd.DataFrame({"language": ["es"], "gemma-3-270m": [0.2]}), False, True),
        (pd.DataFrame({"translator": ["gemma-3-270m-few-shot"], "chrF": [0.2]}), False, True),
    ],
)
def test_toys_are_marked_in_every_form(run, frame, toy, marked):
    shown = save_table(run, "t", frame, "Scores.", toy=toy)
    tex = re.sub(r"\s+", " ", written(run, "t", "tex"))
    for text in (tex, written(run, "t", "html"), shown._repr_html_()):
        assert (TOY in text) == marked


def test_a_notebook_shows_the_page_and_computes_with_the_values(run):
    shown = save_table(run, "t", FRAME, "A caption.", note="A note.")
    assert shown["score"].sum() == FRAME["score"].sum()
    assert Page(shown._repr_html_()).rows == Page(written(run, "t", "html")).rows
    assert "A caption." in shown._repr_html_() and "A note." in shown._repr_html_()
    assert shown.head(1)._repr_html_() != shown._repr_html_()  # of a part it shows the part


def test_pivoted_frames(run):
    frame = pd.DataFrame({"model": ["a", "a"], "group": ["Latin", "Indic"], "value": [0.5, 0.25]})
    shown = save_table(run, "t", frame.pivot(index="model", columns="group", values="value"), "c")
    assert written(run, "t", "csv") == "model,Indic,Latin\na,0.25,0.5\n"
    assert list(shown.columns) == ["model", "Indic", "Latin"]
    levels = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("n", ""), ("F", "es")]))
    save_table(run, "u", levels, "c")
    assert written(run, "u", "csv").startswith("n,F es\n")


def test_every_file_is_in_the_manifest(run):
    save_table(run, "t", FRAME, "c")
    assert set(run._written) == {"tables/t.csv", "tables/t.tex", "tables/t.html"}
    assert sorted(path.name for path in (run.folder / "tables").iterdir()) == ["t.csv", "t.html", "t.tex"]


def test_same_frame_same_bytes(run):
    save_table(run, "t", FRAME, "c")
    first = dict(run._written)
    save_table(run, "t", FRAME.copy(), "c")
    assert run._written == first


def test_a_full_disk(run, monkeypatch):
    def no_space(self, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", no_space)
    with pytest.raises(Problem, match="cannot be written"):
        save_table(run, "t", FRAME, "c")
    assert not list((run.folder / "tables").iterdir()) and not run._written


# --- LaTeX


def latex_problem(text: str) -> str | None:
    """What is wrong with a LaTeX table: escapes, braces, environments, or the number of its cells."""
    code = "\n".join(line for line in text.splitlines() if not line.startswith("% Packages:"))
    bare = re.sub(r"\\[&%$#_{}]", "", code)
    if re.search(r"[%#~^_|<>–—−τ]", bare):
        return "a character that LaTeX takes for a command, or its fonts lack"
    if bare.count("{") != bare.count("}"):
        return "braces"
    stack: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", bare):
        if kind == "begin":
            stack.append(name)
        elif not stack or stack.pop() != name:
            return "environments"
    columns = re.search(r"\\begin\{(?:tabular|longtable)\}\{((?:[lr]|p\{[\d.]+\\linewidth\})*)\}", bare)
    if stack or not columns:
        return "environments"
    n = len(re.findall(r"[lr](?!inewidth)|p\{", re.sub(r"p\{[^}]*\}", "p{", columns[1])))
    lines = [line for line in bare.splitlines() if line.endswith(r"\\")]
    rows = [line for line in lines if not re.match(r"\\(caption|multicolumn)", line)]
    if any(line.count("&") != n - 1 for line in rows):
        return "cells"
    if any(re.match(r"\s*\[", line) for line in rows):
        return "a row that begins with an option"
    return None


def test_latex_check_finds_mistakes():
    good = "\\begin{tabular}{lr}\na & 1 \\\\\n\\end{tabular}\n"
    assert latex_problem(good) is None
    for bad in ("a_b & 1", "a & 1 & 2", "50% & 1", "{a & 1", "[a] & 1", "a < b & 1", "τ & 1"):
        assert latex_problem(good.replace("a & 1", bad)), bad


def test_latex_uses_booktabs(run):
    save_table(run, "t", FRAME, "50% of A_1 & B.", toy=True)
    text = written(run, "t", "tex")
    assert latex_problem(text) is None
    assert all(rule in text for rule in (r"\toprule", r"\midrule", r"\bottomrule", r"\label{tab:t}"))
    assert r"\caption{50\% of A\_1 \& B. Toy models" in text
    assert r"es & La luz \& el agua & 0.51 & 16 & yes \\" in text
    assert r"ar & النجوم 100\% & -- & -- & no \\" in text


def test_a_long_latex_table_breaks_across_pages(run):
    save_table(run, "t", pd.DataFrame({"row": range(41), "x": 0.5}), "c")
    text = written(run, "t", "tex")
    assert "\\begin{longtable}" in text and latex_problem(text) is None


def test_an_empty_table(run):
    save_table(run, "t", pd.DataFrame({"a": [], "b": []}), "c")
    assert latex_problem(written(run, "t", "tex")) is None
    assert Page(written(run, "t", "html")).rows == [["a", "b"]]


texts = st.text(st.sampled_from(string.punctuation + "ab é–τ\n\t"), max_size=60)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cells=st.lists(st.tuples(texts, texts), max_size=4), caption=texts, heading=texts)
def test_nothing_in_a_cell_breaks_a_table(run, cells, caption, heading):
    frame = pd.DataFrame(cells, columns=[f"x{heading}", "y"], dtype=object)
    save_table(run, "t", frame, caption)
    assert latex_problem(written(run, "t", "tex")) is None
    assert Page(written(run, "t", "html")).rows == [[f"x{heading}", "y"], *(list(row) for row in cells)]
