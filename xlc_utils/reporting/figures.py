"""The papers' figures, readable in grey and by the colour-blind, with no font but DejaVu Sans.

Every function returns a `Figure` that pyplot knows nothing of, so nothing is left open. `toy` adds the sentence that
marks the results of toy models. Where nothing was measured a hatched field or an en dash stands, never an empty place.
"""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from xlc_utils.registry.outcomes import Outcome
from xlc_utils.reporting.tables import MISSING, TOY, cell

if TYPE_CHECKING:
    from xlc_utils.registry.languages import Language
    from xlc_utils.running.run import Run

DPI = 150
_SAVED = {"dpi": DPI, "bbox_inches": "tight", "pad_inches": 0.08}  # tight: a label that sticks out is not cut

_STYLE = [
    "default",
    {
        "font.family": "DejaVu Sans",
        "font.size": 9,
        "axes.titlesize": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "grid.color": "#d9d9d9",
        "hatch.linewidth": 0.6,
        "pdf.fonttype": 42,
        "svg.hashsalt": "xlc",
    },
]
_GREY = "#595959"
_NARROWEST = 5.8  # inches: room for a title

# Paper A's script groups in its order, in words; then the languages it does not have.
_GROUPS = {
    "Latin": "Latin", "Indic": "Indic", "PArb": "Perso-\nArabic", "Oth1": "Other\nscripts", None: "not in\npaper A",
}  # fmt: skip
_MOST_COLUMNS = 12  # more languages than this become the rows of a heatmap

# Okabe and Ito's colours without the yellow, which is too light for points; the markers tell them apart in grey.
_COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9"]
_MARKERS = ["o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "h", "d"]

# What went well recedes; each way of failing has a colour and a hatch of its own.
_OUTCOMES = {
    Outcome.OK: ("#c6dbef", ""),
    Outcome.REFUSED: ("#2171b5", ""),
    Outcome.EMPTY: ("#ffffff", "...."),
    Outcome.TRUNCATED: ("#E69F00", "////"),
    Outcome.DEGENERATE: ("#D55E00", "xxxx"),
    Outcome.OFF_TARGET: ("#009E73", "\\\\\\\\"),
    Outcome.UNPARSED: ("#CC79A7", "----"),
    Outcome.ERROR: ("#000000", ""),
}


@dataclass(frozen=True)
class Picture:
    """A saved figure, which a notebook shows when it is the last value of a cell."""

    png: Path
    pdf: Path

    def __repr__(self) -> str:  # without the folder, which differs between machines
        return f"{self.png.parent.name}/{self.png.name}"

    def _repr_png_(self) -> bytes:
        return self.png.read_bytes()


def _styled(draw: Callable) -> Callable:
    """Runs a function under this module's settings, whatever a notebook has set, and leaves those as they were."""

    @functools.wraps(draw)
    def drawn(*args, **kwargs):
        with style.context(_STYLE):
            return draw(*args, **kwargs)

    return drawn


@_styled
def save_figure(run: Run, name: str, figure: Figure) -> Picture:
    """Writes <run>/figures/<name>.pdf and .png (150 dpi), the same bytes for the same figure, and enters them in the
    manifest. For `name` see `tables.save_table`.

    Raises:
        Problem: the files cannot be written.
    """
    paths = {}
    for form, dated in (("png", ["Software"]), ("pdf", ["CreationDate", "Creator", "Producer"])):
        path = paths[form] = run.folder / "figures" / f"{name}.{form}"
        metadata = dict.fromkeys(dated)
        options = {**_SAVED, "format": form, "metadata": metadata}
        run.atomically(path, lambda partial, options=options: figure.savefig(partial, **options))
        run.wrote(path)
    return Picture(**paths)


# ---- paper A, figures 3 and 4 -------------------------------------------------------------------------------------
@_styled
def consistency_heatmap(
    frame: pd.DataFrame, languages: Mapping[str, Language], title: str, toy: bool = False
) -> Figure:
    """Consistency of every model in every language, the languages in paper A's script groups.

    Args:
        frame: columns model, language (code), value (0 to 1, NaN where there is none) and n (items); one row a cell.
            Models keep the order of their first rows. Cells without a row, or without a value, are hatched.
        languages: the registry.
        title: above the figure.
        toy: mark it as results of toy models.

    Raises:
        ValueError: a model has two rows for a language.
    """
    values = frame.pivot(index="model", columns="language", values="value").reindex(frame["model"].unique())
    codes = sorted(values.columns, key=lambda code: (_group_rank(languages[code]), code))
    values = values[codes]
    groups = [_GROUPS[languages[code].paper_a.script_group] for code in codes]
    upright = len(codes) > _MOST_COLUMNS
    figure, axes = _heatmap_axes(values, languages, upright)
    _draw_cells(axes, (values.T if upright else values).to_numpy(dtype=float))
    _draw_groups(axes, groups, upright)
    if values.isna().any(axis=None):
        hatched = Patch(facecolor="white", edgecolor=_GREY, hatch="////", linewidth=0.5, label="no value")
        _legend(figure, [hatched])
    return _titled(figure, title, toy, _n_of(frame))


def _group_rank(language: Language) -> int:
    return list(_GROUPS).index(language.paper_a.script_group)


def _n_of(frame: pd.DataFrame) -> str:
    """The number of items behind the cells that have a value."""
    n = frame.loc[frame["value"].notna(), "n"]
    if n.empty:
        return ""
    return f"n = {n.min()} items a cell." if n.min() == n.max() else f"n = {n.min()} to {n.max()} items a cell."


def _heatmap_axes(values: pd.DataFrame, languages: Mapping[str, Language], upright: bool) -> tuple[Figure, Axes]:
    models = list(values.index)
    if upright:
        size = (max(_NARROWEST, 2.6 + 0.6 * len(models)), 1.8 + 0.27 * len(values.columns))
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        axes.set_xticks(range(len(models)), models, rotation=40, ha="left", rotation_mode="anchor")
        axes.set_yticks(range(len(values.columns)), [_label(code, languages) for code in values.columns])
        axes.xaxis.tick_top()
    else:
        names = [_label(code, languages).replace(" ", "\n") for code in values.columns]
        width = max(0.62, 0.08 * max(len(line) for name in names for line in name.split("\n")))
        size = (max(_NARROWEST, 2.4 + width * len(names)), 1.9 + 0.42 * len(models))
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        axes.set_xticks(range(len(names)), names)
        axes.set_yticks(range(len(models)), models)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return figure, axes


def _draw_cells(axes: Axes, values: np.ndarray) -> None:
    rows, columns = values.shape
    colours = mpl.colormaps["Blues"]
    for row in range(rows):
        for column in range(columns):
            value, corner = values[row, column], (column - 0.5, row - 0.5)
            if np.isnan(value):
                hatched = {"facecolor": "white", "edgecolor": "#8c8c8c", "hatch": "////"}
                axes.add_patch(Rectangle(corner, 1, 1, linewidth=0, **hatched))
                continue
            colour = colours(float(np.clip(value, 0, 1)))
            axes.add_patch(Rectangle(corner, 1, 1, facecolor=colour, edgecolor="white", linewidth=0.5))
            axes.text(column, row, cell(value, np.nan, np.nan), ha="center", va="center", color=readable_on(colour))
    axes.set_xlim(-0.5, columns - 0.5)
    axes.set_ylim(rows - 0.5, -0.5)


def readable_on(colour: tuple[float, ...]) -> str:
    """Black or white, whichever contrasts more with a colour (red, green, blue, 0 to 1), at least 4.5 to 1 (WCAG 2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    luminance = float(np.dot(linear, [0.2126, 0.7152, 0.0722]))
    return "black" if (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) else "white"


def _draw_groups(axes: Axes, groups: list[str], upright: bool) -> None:
    """A thick white line between groups of languages, and their names at the far side of the languages' own."""
    starts = [i for i, group in enumerate(groups) if i == 0 or group != groups[i - 1]]
    for start, end in zip(starts, [*starts[1:], len(groups)], strict=True):
        middle, bar = (start + end - 1) / 2, [start - 0.42, end - 0.58]
        line = {"color": _GREY, "linewidth": 1.2, "clip_on": False, "solid_capstyle": "butt"}
        text = {"color": _GREY, "fontsize": 8, "linespacing": 1.0}
        if upright:
            axes.axhline(start - 0.5, color="white", linewidth=5)
            axes.plot([1.012, 1.012], bar, transform=axes.get_yaxis_transform(), **line)
            name = groups[start] if end - start == 1 else groups[start].replace("-\n", "-").replace("\n", " ")
            axes.text(1.025, middle, name, transform=axes.get_yaxis_transform(), ha="left", va="center", **text)
        else:
            axes.axvline(start - 0.5, color="white", linewidth=5)
            axes.plot(bar, [1.04, 1.04], transform=axes.get_xaxis_transform(), **line)
            name = groups[start] if end - start == 1 else groups[start].replace("-\n", "-").replace("\n", " ")
            axes.text(middle, 1.07, name, transform=axes.get_xaxis_transform(), ha="center", va="bottom", **text)


# ---- outcomes -----------------------------------------------------------------------------------------------------
@_styled
def outcome_bars(
    counts: pd.DataFrame, languages: Mapping[str, Language], title: str = "How the items ended.", toy: bool = False
) -> Figure:
    """How the items of each model and language ended, as shares of all.

    Args:
        counts: columns model, language, n and the outcomes, from `outcome_counts` by model and language.
        languages, title, toy: as for `consistency_heatmap`.
    """
    models, codes = list(counts["model"].unique()), list(counts["language"].unique())
    outcomes = [o for o in Outcome if counts[str(o)].any()]
    size = (2.5, 0.5 + 0.2 * len(codes))
    figure, panels = _panels(len(models), 3, size, margin=(1.6, 1.3), labels=("share of items (%)", ""))
    for axes, model in zip(panels, models, strict=True):
        _draw_shares(axes, counts[counts["model"] == model].set_index("language").reindex(codes), outcomes)
        axes.set_title(model, loc="left")
        axes.set_yticks(range(len(codes)), [_label(code, languages) for code in codes])
        axes.set_ylim(len(codes) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
    _legend(figure, [_outcome_patch(outcome) for outcome in outcomes])
    return _titled(figure, title, toy)


def _outcome_patch(outcome: Outcome) -> Patch:
    colour, hatch = _OUTCOMES[outcome]
    return Patch(facecolor=colour, hatch=hatch, edgecolor="black", linewidth=0.5, label=str(outcome).replace("_", " "))


def _draw_shares(axes: Axes, counts: pd.DataFrame, outcomes: list[Outcome]) -> None:
    """One bar a language from 0 to 100 per cent, its n at the end; `counts` has the languages as index."""
    n = counts["n"].fillna(0)
    left = np.zeros(len(counts))
    for outcome in outcomes:
        share = (100 * counts[str(outcome)] / n.where(n > 0)).fillna(0).to_numpy(dtype=float)
        colour, hatch = _OUTCOMES[outcome]
        look = {"color": colour, "hatch": hatch, "edgecolor": "black", "linewidth": 0.4}
        axes.barh(range(len(counts)), share, left=left, height=0.72, **look)
        left += share
    for row, number in enumerate(n):
        axes.text(103, row, f"{number:.0f}" if number else MISSING, va="center", fontsize=7.5, color=_GREY)
    axes.text(103, -0.75, "n", va="bottom", fontsize=7.5, color=_GREY)
    axes.set_xlim(0, 100)


# ---- paper B, figure 2 --------------------------------------------------------------------------------------------
@_styled
def stability_plot(
    frame: pd.DataFrame, title: str = "Agreement of two languages' rankings of the models.", toy: bool = False
) -> Figure:
    """Rank stability by metric and pair of languages: Kendall's tau, its 95% interval, and the inversions below it.

    Args:
        frame: columns metric, pair (such as "et–fi"), tau, lo, hi, inversions, p (of the permutation test, by Holm over
            the points); one row a point, NaN where undefined. An asterisk marks p < .05.
        title, toy: as for `consistency_heatmap`.
    """
    metrics, pairs = list(frame["metric"].unique()), list(frame["pair"].unique())
    a_row = _in_a_row(len(metrics), max(1, 30 // len(pairs)))
    rows = [metrics[start : start + a_row] for start in range(0, len(metrics), a_row)]
    width = max(_NARROWEST, 1.6 + max(0.3 * len(pairs), 0.9) * len(rows[0]))
    figure = Figure(figsize=(width, 0.9 + 2.7 * len(rows)), layout="constrained")
    for axes, of_row in zip(figure.subplots(len(rows), 1, squeeze=False).flat, rows, strict=True):
        _draw_stability(axes, frame, of_row, pairs)
        axes.set_xlim(-0.5, len(rows[0]) - 0.5)
    _legend(figure, [_mark(number, pair) for number, pair in enumerate(pairs)])
    note = "Lines: 95% intervals. Below: rank inversions, * where p < .05 in the permutation test (Holm)."
    return _titled(figure, title, toy, note)


def _draw_stability(axes: Axes, frame: pd.DataFrame, metrics: list[str], pairs: list[str]) -> None:
    for number, pair in enumerate(pairs):
        points = frame[frame["pair"] == pair].set_index("metric").reindex(metrics)
        for position, point in enumerate(points.itertuples()):
            x = position + _offset(number, len(pairs), 0.8)
            _draw_point(axes, (x, point.tau), (point.lo, point.hi), number, upright=True)
            axes.text(x, -1.28, _inversions(point), ha="center", va="center", fontsize=8)
            if np.isnan(point.tau):
                paper = {"facecolor": "white", "edgecolor": "none", "pad": 1}
                axes.text(x, 0, "undefined", rotation=90, ha="center", va="center", fontsize=7, color=_GREY, bbox=paper)
    for boundary in range(1, len(metrics)):
        axes.axvline(boundary - 0.5, color="#bfbfbf", linewidth=0.8)
    axes.axhline(0, color=_GREY, linewidth=0.8, zorder=0)
    axes.axhline(-1.12, color="#bfbfbf", linewidth=0.8)
    axes.set_ylim(-1.42, 1.08)
    axes.set_yticks([-1, -0.5, 0, 0.5, 1])
    axes.text(-0.01, -1.28, "inversions", transform=axes.get_yaxis_transform(), ha="right", va="center", fontsize=8)
    axes.grid(axis="y", linewidth=0.5)
    axes.set_xticks(range(len(metrics)), [textwrap.fill(metric, 16) for metric in metrics])
    axes.tick_params(length=0)
    axes.set_ylabel("Kendall's τ")


def _inversions(point: tuple) -> str:
    if pd.isna(point.inversions):
        return MISSING
    return f"{point.inversions:.0f}" + ("*" if point.p < 0.05 else "")


# ---- measured against known ---------------------------------------------------------------------------------------
@_styled
def calibration_plot(
    frame: pd.DataFrame, languages: Mapping[str, Language], title: str = "Measured beside true.", toy: bool = False
) -> Figure:
    """What an evaluator measured beside what is true, one panel a language; points on the diagonal are right.

    Args:
        frame: columns true, measured (0 to 1) and language (code); one row an item. Rows with a NaN are not drawn
            and not counted in n.
        languages, title, toy: as for `consistency_heatmap`.
    """
    codes = list(frame["language"].unique())
    figure, panels = _panels(len(codes), 4, (1.9, 2.05), margin=(0.7, 1.0), labels=("true", "measured"))
    for axes, code in zip(panels, codes, strict=True):
        items = frame[frame["language"] == code].dropna(subset=["true", "measured"])
        axes.plot([0, 1], [0, 1], color=_GREY, linewidth=0.8, zorder=1)
        axes.scatter(items["true"], items["measured"], s=18, color=_COLOURS[0], alpha=0.6, linewidth=0, zorder=2)
        error = (items["measured"] - items["true"]).abs().mean()
        axes.set_title(_label(code, languages), loc="left")
        told = f"n = {len(items)}\nmean error {cell(error, np.nan, np.nan)}"
        axes.text(0.97, 0.03, told, transform=axes.transAxes, ha="right", va="bottom", fontsize=7.5, color=_GREY)
        axes.set(xlim=(-0.05, 1.05), ylim=(-0.05, 1.05), box_aspect=1, xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    return _titled(figure, title, toy, "Mean error: mean absolute difference.")


# ---- estimates with intervals -------------------------------------------------------------------------------------
@_styled
def interval_plot(frame: pd.DataFrame, title: str, axis: str = "", toy: bool = False) -> Figure:
    """Estimates with their intervals, one a row, the numbers at the right.

    Args:
        frame: columns label, value, lo, hi in the order from the top; NaN where there is none.
        title, toy: as for `consistency_heatmap`.
        axis: what the values are, where the title does not say it.
    """
    figure = Figure(figsize=(7, 1.3 + 0.27 * len(frame)), layout="constrained")
    axes = figure.add_subplot()
    for row, point in enumerate(frame.itertuples()):
        _draw_point(axes, (row, point.value), (point.lo, point.hi), 0, upright=False)
        told = cell(point.value, point.lo, point.hi)
        axes.text(1.02, row, told, transform=axes.get_yaxis_transform(), va="center", fontsize=8)
    axes.set_yticks(range(len(frame)), frame["label"])
    axes.set_ylim(len(frame) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(linewidth=0.5)
    axes.set_xlabel(axis)
    return _titled(figure, title, toy)


# ---- paper B, figures 3 and 4 -------------------------------------------------------------------------------------
@_styled
def grouped_accuracy_plot(
    frame: pd.DataFrame, languages: Mapping[str, Language], title: str = "Accuracy by category.", toy: bool = False
) -> Figure:
    """Accuracy by category and model (or judge), one panel a language.

    Args:
        frame: columns category, model, language (code), accuracy (0 to 1, NaN where there is none); one row a point.
        languages, title, toy: as for `consistency_heatmap`.
    """
    categories, models, codes = (list(frame[name].unique()) for name in ("category", "model", "language"))
    height = 0.4 + len(categories) * max(0.32, 0.12 * len(models) + 0.1)
    figure, panels = _panels(len(codes), 4, (2.0, height), margin=(1.6, 1.2), labels=("accuracy", ""))
    for axes, code in zip(panels, codes, strict=True):
        accuracy = frame[frame["language"] == code].pivot(index="category", columns="model", values="accuracy")
        _draw_accuracy(axes, accuracy.reindex(index=categories, columns=models))
        axes.set_title(_label(code, languages), loc="left")
    _legend(figure, [_mark(number, model) for number, model in enumerate(models)])
    return _titled(figure, title, toy)


def _draw_accuracy(axes: Axes, accuracy: pd.DataFrame) -> None:
    """One band a category, in it one row a model; `accuracy` is categories × models."""
    for row, (_, of_models) in enumerate(accuracy.iterrows()):
        for number, value in enumerate(of_models):
            y = row + _offset(number, len(of_models), 0.8)
            _draw_point(axes, (y, value), (np.nan, np.nan), number, upright=False)
            if np.isnan(value):
                axes.text(0, y, MISSING, ha="center", va="center", color=_GREY, fontsize=8)
        if row:
            axes.axhline(row - 0.5, color="#bfbfbf", linewidth=0.8)
    axes.set(xlim=(-0.03, 1.03), ylim=(len(accuracy) - 0.5, -0.5), xticks=[0, 0.2, 0.4, 0.6, 0.8, 1])
    axes.set_yticks(range(len(accuracy)), [textwrap.fill(str(category), 18) for category in accuracy.index])
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", linewidth=0.5)


# ---- parts --------------------------------------------------------------------------------------------------------
def _label(code: str, languages: Mapping[str, Language]) -> str:
    return f"{languages[code].name} ({code})"


def _offset(number: int, of: int, span: float) -> float:
    """Where the number-th of several points that share a place stands, symmetric about 0."""
    return span * ((number + 0.5) / of - 0.5)


def _mark(number: int, label: str) -> Line2D:
    """The sign of the number-th series: colour and form together, and the form alone in grey."""
    return Line2D(
        [], [], color=_COLOURS[number % len(_COLOURS)], marker=_MARKERS[number % len(_MARKERS)],
        linestyle="none", markersize=5, label=label,
    )  # fmt: skip


def _draw_point(axes: Axes, at: tuple[float, float], bounds: tuple[float, float], number: int, upright: bool) -> None:
    """A point at (place, value) with its interval, values going up (`upright`) or to the right; NaN draws nothing."""
    place, value = at
    mark = _mark(number, "")
    interval = ([place, place], list(bounds)) if upright else (list(bounds), [place, place])
    axes.plot(*interval, color=mark.get_color(), linewidth=1.4)
    point = ([place], [value]) if upright else ([value], [place])
    axes.plot(*point, color=mark.get_color(), marker=mark.get_marker(), markersize=5, linestyle="none", clip_on=False)


def _panels(
    number: int, columns: int, size: tuple[float, float], margin: tuple[float, float], labels: tuple[str, str]
) -> tuple[Figure, list[Axes]]:
    """A figure of so many panels, in at most so many columns and equally full rows, with common axes.

    Labels (below, left) and ticks' numbers stand where no other panel does. `size` of a panel and `margin` beside all
    of them are (width, height) in inches.
    """
    columns = _in_a_row(number, columns)
    rows = -(-number // columns)
    width = max(_NARROWEST, margin[0] + size[0] * columns)
    figure = Figure(figsize=(width, margin[1] + size[1] * rows), layout="constrained")
    grid = figure.add_gridspec(rows, columns)
    panels: list[Axes] = []
    for place in range(number):
        first = panels[0] if panels else None
        axes = figure.add_subplot(grid[place // columns, place % columns], sharex=first, sharey=first)
        at_bottom, at_left = place + columns >= number, place % columns == 0
        axes.tick_params(labelbottom=at_bottom, labelleft=at_left)
        axes.set(xlabel=labels[0] if at_bottom else "", ylabel=labels[1] if at_left else "")
        panels.append(axes)
    return figure, panels


def _in_a_row(number: int, most: int) -> int:
    """How many of a number of things stand in a row of at most so many, if the rows are to be equally full."""
    rows = -(-number // most)
    return -(-number // max(rows, 1))


def _legend(figure: Figure, handles: list[Patch] | list[Line2D]) -> None:
    """A legend under the figure, in as few rows as its width allows, equally full."""
    widest = 0.45 + 0.085 * max(len(handle.get_label()) for handle in handles)
    columns = _in_a_row(len(handles), max(1, int(figure.get_figwidth() / widest)))
    figure.legend(handles=handles, loc="outside lower left", ncols=columns, frameon=False, fontsize=8)


def _titled(figure: Figure, title: str, toy: bool, note: str = "") -> Figure:
    """Adds the title, then how to read the figure, then the mark of toy models, wrapped to the figure's width."""
    letters = int(figure.get_figwidth() / 0.075)
    lines = [line for text in (title, note, TOY if toy else "") for line in textwrap.wrap(text, letters)]
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=9.5)
    return figure
