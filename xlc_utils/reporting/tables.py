"""Tables as a person reads them: CSV for a program, LaTeX for a paper, a page for a browser, the same cells in each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from xlc_utils.registry.files import shown as shown_path
from xlc_utils.registry.problems import Problem

if TYPE_CHECKING:
    from xlc_utils.running.run import Run

TOY = "Toy models: these numbers show the path, not the quality of any system."
MISSING = "–"
_FIRST_TAG, _LAST_TAG = '<figure class="table"', "</figure>"  # of parts.html.j2
_NO_REASON = f"{MISSING}: could not be computed."

# A LaTeX table with more rows breaks across pages; a column with longer texts is set as paragraphs (characters).
_ROWS_OF_A_PAGE = 40
_LONG_TEXT = 40

# What LaTeX would take for a command, and signs that its usual fonts lack. `[` opens an option after a row's end.
_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "[": "{[}", "]": "{]}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", "–": "--", "—": "---", "…": r"\ldots{}", "−": "$-$", "×": r"$\times$",
    "±": r"$\pm$", "≥": r"$\geq$", "≤": r"$\leq$", "≈": r"$\approx$", "→": r"$\to$", "τ": r"$\tau$", "ρ": r"$\rho$",
    "κ": r"$\kappa$", "α": r"$\alpha$", "Δ": r"$\Delta$", "∞": r"$\infty$",
})  # fmt: skip


@dataclass(frozen=True)
class TableView:
    """A table as the pages show it.

    Attributes:
        caption, note: plain text; either may be empty.
        toy: the sentence that marks toy models, or nothing.
        columns: (heading, whether the cells are numbers), one a column.
        rows: the cells' texts.
    """

    caption: str
    toy: str
    note: str
    columns: list[tuple[str, bool]]
    rows: list[list[str]]

    @property
    def full_caption(self) -> str:
        return " ".join(filter(None, (self.caption, self.toy, self.note)))


class ShownTable(pd.DataFrame):
    """A frame that a notebook shows as its page does, with caption, mark and note; the values are untouched."""

    _metadata = ("fragment",)
    fragment = ""

    def _repr_html_(self) -> str:
        return self.fragment


def cell(value: float, lo: float, hi: float, digits: int = 2) -> str:
    """``0.62 [0.55, 0.70]``; without bounds ``0.62``; an en dash, whose reason belongs in the note, for no value."""
    if pd.isna(value):
        return MISSING
    number = f"{value:z.{digits}f}"
    return number if pd.isna(lo) or pd.isna(hi) else f"{number} [{lo:z.{digits}f}, {hi:z.{digits}f}]"


def save_table(run: Run, name: str, frame: pd.DataFrame, caption: str, note: str = "", toy: bool = False) -> ShownTable:
    """Writes <run>/tables/<name>.csv, .tex and .html and enters them in the manifest.

    The CSV has the values as they are. The other two show floats with two decimals (three if they are below 0.005)
    and an en dash for a missing value.

    Args:
        run: the run.
        name: of the files. One that stands for a table or figure of a paper begins with it: ``a_table_4``,
            ``a_table_2_6_evaluator`` (Tables 2 and 6), ``b_figure_2_automatic``; `compare.outputs_overview` finds it.
        frame: one row a row; a named index becomes the first columns.
        caption: what the numbers are, as a sentence.
        note: what a reader must know besides, the reason of missing values above all.
        toy: mark it as results of toy models; a table that names a toy of the registry is marked in any case.

    Returns:
        The values, to be shown.

    Raises:
        Problem: the files cannot be written.
    """
    frame = _plain(frame)
    view = table_view(run, frame, caption, note, toy)
    contents = {
        "csv": frame.to_csv(index=False, lineterminator="\n"),
        "tex": _latex_table(name, view),
        "html": render("table.html.j2", title=name, table=view),
    }
    for suffix, content in contents.items():
        path = run.folder / "tables" / f"{name}.{suffix}"
        run.atomically(path, lambda partial, content=content: partial.write_bytes(content.encode()))
        run.wrote(path)
    shown = ShownTable(frame)
    shown.fragment = fragment(view)
    return shown


def saved_fragment(run: Run, name: str) -> Markup:
    """The table inside the page that `save_table` wrote, with its caption, note and mark.

    Raises:
        Problem: there is no such table.
    """
    path = run.folder / "tables" / f"{name}.html"
    try:
        page = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise Problem(shown_path(path), "this table is missing", "run the notebook that makes it first") from None
    return Markup(page[page.index(_FIRST_TAG) : page.rindex(_LAST_TAG) + len(_LAST_TAG)])


def table_view(run: Run, frame: pd.DataFrame, caption: str, note: str = "", toy: bool = False) -> TableView:
    """A frame's cells as text, with the mark of toy models where `toy` says so or a toy's name stands in it."""
    frame = _plain(frame)
    columns = [(name, is_numeric_dtype(frame[name]) and not is_bool_dtype(frame[name])) for name in frame]
    rows = [list(row) for row in zip(*(_texts(frame[name]) for name in frame), strict=True)]
    if any(text == MISSING for row in rows for text in row) and MISSING not in note:
        note = f"{note} {_NO_REASON}".strip()
    named = {text for row in rows for text in row} | set(frame.columns)
    marked = toy or any(_is_toy(run, name) for name in named)
    return TableView(caption, TOY if marked else "", note, columns, rows)


def fragment(view: TableView) -> Markup:
    """The table as a part of a page."""
    return Markup(render("fragment.html.j2", table=view))


def render(template: str, **values: object) -> str:
    """A page from one of the templates beside this file; every value is escaped."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("xlc_utils.reporting", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with text headings and no index: a named index becomes columns, levels of a heading are joined."""
    frame = frame.reset_index() if any(name is not None for name in frame.index.names) else frame.reset_index(drop=True)
    headings = [" ".join(map(str, filter(None, name))) if isinstance(name, tuple) else str(name) for name in frame]
    return frame.set_axis(headings, axis=1)


def _is_toy(run: Run, name: str) -> bool:
    """Whether a model or a translator of that name is a toy."""
    translator = run.models.translators.get(name)
    return run.is_toy(name) or (translator is not None and translator.toy)


def _texts(column: pd.Series) -> list[str]:
    if _is_counts(column):
        return [MISSING if pd.isna(value) else f"{value:.0f}" for value in column]
    return [_text(value) for value in column]


def _is_counts(column: pd.Series) -> bool:
    """Whether floats are whole numbers that became floats beside a missing one. Only 0, 1 and −1 may be scores."""
    if not is_numeric_dtype(column) or is_bool_dtype(column):
        return False
    values = column.dropna().astype(float)
    return bool((values % 1 == 0).all() and (values.abs() > 1).any())


def _text(value: object) -> str:
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return MISSING
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return _decimal(value) if isinstance(value, float | np.floating) else str(value)


def _decimal(value: float) -> str:
    """Two decimals; three for what two would hide, such as a small p."""
    if value == 0 or abs(value) >= 0.005:
        return f"{value:z.2f}"
    if abs(value) >= 0.0005:
        return f"{value:.3f}"
    return "<0.001" if value > 0 else ">-0.001"


def _latex(text: str) -> str:
    return " ".join(text.split()).translate(_LATEX)


def _latex_table(name: str, view: TableView) -> str:
    """The table with booktabs rules; one longer than a page in longtable."""
    headings = [_latex(heading) for heading, _ in view.columns]
    frame = pd.DataFrame([[_latex(text) for text in row] for row in view.rows], columns=headings, dtype=object)
    long = len(frame) > _ROWS_OF_A_PAGE
    body = frame.style.hide(axis="index").to_latex(
        environment="longtable" if long else "table",
        position=None if long else "htbp",
        position_float=None if long else "centering",
        hrules=True,
        column_format=_latex_columns(view),
        caption=_latex(view.full_caption),
        label=f"tab:{name}",
    )
    packages = "booktabs, longtable" if long else "booktabs"
    other_scripts = "Scripts other than Latin: XeLaTeX or LuaLaTeX, and a font that has them."
    return f"% Packages: {packages}. {other_scripts}\n{body}"


def _latex_columns(view: TableView) -> str:
    """Numbers to the right; columns of long texts share the page's width as paragraphs."""
    longest = [max((len(row[i]) for row in view.rows), default=0) for i in range(len(view.columns))]
    paragraphs = sum(length > _LONG_TEXT for length in longest)
    return "".join(
        f"p{{{0.5 / paragraphs:.2f}\\linewidth}}" if length > _LONG_TEXT else "r" if number else "l"
        for length, (_, number) in zip(longest, view.columns, strict=True)
    )
