"""Figures show the numbers they are given, hide nothing, cut nothing, and are the same bytes every time."""

from __future__ import annotations

import io
import itertools
import os
import struct
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from xlc_utils.registry import languages
from xlc_utils.registry.outcomes import Outcome, outcome_counts
from xlc_utils.reporting import figures
from xlc_utils.reporting.tables import TOY

DEMO = ["es", "fr", "pt", "it", "ro", "ru", "id", "hi", "ar", "ja"]
TOYS = ["known-answers", "gemma-3-270m", "smollm2-135m-instruct"]
LONG = "A title that is long enough to be broken into several lines, because it says everything that there is to say."


@pytest.fixture(scope="session")
def registry(root):
    return languages.load(root)


def scores(models, codes, seed=0):
    drawn = np.random.default_rng(seed).random((len(models), len(codes)))
    rows = [(m, c, drawn[i, j], 16) for i, m in enumerate(models) for j, c in enumerate(codes)]
    return pd.DataFrame(rows, columns=["model", "language", "value", "n"])


def stability(metrics, pairs):
    frame = pd.DataFrame(itertools.product(metrics, pairs), columns=["metric", "pair"])
    i = frame.index
    return frame.assign(tau=0.08 * i, lo=0.08 * i - 0.3, hi=0.08 * i + 0.1, inversions=i, p=0.02 * i)


def counts(models, codes):
    items = [(m, c, str(o)) for m in models for c in codes for o in Outcome]
    model, code, outcome = zip(*items, strict=True)
    return outcome_counts(outcome, by={"model": model, "language": code})


def accuracy(models, codes):
    rows = itertools.product(["industry", "agent experience", "channel"], models, codes)
    return pd.DataFrame(rows, columns=["category", "model", "language"]).assign(accuracy=0.4)


def intervals():
    return pd.DataFrame({
        "label": ["lexical", "a verifier with a long name"],
        "value": [0.6, np.nan],
        "lo": [0.5, np.nan],
        "hi": [0.75, np.nan],
    })  # fmt: skip


def every_figure(registry: dict, toy: bool) -> dict[str, Figure]:
    codes = ["es", "ar", "hi", "ja", "id"] * 4
    known = pd.DataFrame({"true": np.linspace(0, 1, 20), "measured": 0.5, "language": codes})
    pairs = ["et–fi", "et–hu", "fi–hu", "en–et", "en–fi", "en–hu"]
    return {
        "heatmap": figures.consistency_heatmap(scores(TOYS, DEMO).iloc[1:], registry, LONG, toy),
        "upright": figures.consistency_heatmap(scores(TOYS, [c for c in registry if c != "en"]), registry, LONG, toy),
        "outcomes": figures.outcome_bars(counts(TOYS, ["en", *DEMO]), registry, LONG, toy),
        "stability": figures.stability_plot(stability(["TTR", "intra-model similarity"], pairs), LONG, toy),
        "calibration": figures.calibration_plot(known, registry, LONG, toy),
        "intervals": figures.interval_plot(intervals(), LONG, "AUC", toy),
        "accuracy": figures.grouped_accuracy_plot(accuracy(TOYS, ["en", "et", "fi", "hu"]), registry, LONG, toy),
    }


@pytest.fixture(scope="module")
def drawn(registry) -> dict[str, tuple[Figure, np.ndarray]]:
    """Every figure, marked as a toy's, with its picture as saved: (height, width, 4), 0 to 1."""
    pictures = {}
    for name, figure in every_figure(registry, toy=True).items():
        file = io.BytesIO()
        figure.savefig(file, format="png", **figures._SAVED)
        file.seek(0)
        pictures[name] = figure, mpl.image.imread(file, format="png")
        figure.draw_without_rendering()  # places the texts anew, at the figure's own resolution
    return pictures


NAMES = ["heatmap", "upright", "outcomes", "stability", "calibration", "intervals", "accuracy"]


def texts(figure: Figure) -> list[Text]:
    """The texts a reader sees."""
    found = [*figure.texts, *(text for legend in figure.legends for text in legend.get_texts())]
    for axes in figure.axes:
        found += [*axes.texts, *axes.get_xticklabels(), *axes.get_yticklabels(), axes.xaxis.label, axes.yaxis.label]
    return [text for text in found if text.get_visible() and text.get_text().strip()]


def said(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in figure.findobj(Text))


# --- all figures


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_cut(drawn, name):
    picture = drawn[name][1]
    edges = [picture[:3], picture[-3:], picture[:, :3], picture[:, -3:]]
    assert all((edge == 1).all() for edge in edges) and picture.min() < 0.2


@pytest.mark.parametrize("name", NAMES)
def test_no_text_covers_another(drawn, name):
    upright = [text for text in texts(drawn[name][0]) if text.get_rotation() % 90 == 0]
    boxes = [(text.get_text(), text.get_window_extent()) for text in upright]
    assert len(boxes) > 5
    for (one, first), (other, second) in itertools.combinations(boxes, 2):
        across = min(first.x1, second.x1) - max(first.x0, second.x0)
        down = min(first.y1, second.y1) - max(first.y0, second.y0)
        assert across < 1 or down < 2, f"{one!r} and {other!r}"


@pytest.mark.parametrize("name", NAMES)
def test_title_and_mark_of_toys(drawn, name):
    title = " ".join(drawn[name][0].get_suptitle().split())
    assert title.startswith(LONG) and title.endswith(TOY)


def test_no_mark_without_toys(registry):
    assert not any(TOY in " ".join(said(figure).split()) for figure in every_figure(registry, toy=False).values())


@pytest.mark.parametrize("name", NAMES)
def test_font_is_the_one_matplotlib_brings(drawn, name):
    assert {text.get_fontname() for text in texts(drawn[name][0])} == {"DejaVu Sans"}


def test_a_notebooks_settings_neither_matter_nor_change(registry):
    from matplotlib import pyplot as plt

    def picture():
        out = io.BytesIO()
        figures.interval_plot(intervals(), "T").savefig(out, format="png", metadata={"Software": None})
        return out.getvalue()

    expected = picture()
    with mpl.rc_context({"font.size": 20, "axes.facecolor": "black", "lines.linewidth": 9}):
        before = dict(mpl.rcParams)
        figures.interval_plot(intervals(), "T")
        assert dict(mpl.rcParams) == before
    assert picture() == expected
    assert plt.get_fignums() == []


# --- files


def test_save_figure(run, registry):
    figure = figures.interval_plot(intervals(), "T")
    picture = figures.save_figure(run, "auc", figure)
    png, pdf = picture.png.read_bytes(), picture.pdf.read_bytes()
    assert set(run._written) == {"figures/auc.png", "figures/auc.pdf"}
    assert picture._repr_png_() == png and repr(picture) == "figures/auc.png"
    width, _ = struct.unpack(">II", png[16:24])
    assert width == pytest.approx(150 * 7, rel=0.05)  # seven inches at 150 dpi
    assert b"tEXt" not in png  # no program, no date
    assert pdf.startswith(b"%PDF") and b"DejaVuSans" in pdf
    assert b"CreationDate" not in pdf and b"ModDate" not in pdf and b"Matplotlib" not in pdf


SCRIPT = """
import sys
from pathlib import Path
import pandas as pd
from xlc_utils.registry import languages
from xlc_utils.reporting import figures

class Run:
    folder = Path(sys.argv[2])
    def atomically(self, path, write):
        path.parent.mkdir(exist_ok=True)
        write(path)
    def wrote(self, path):
        pass

frame = pd.read_csv(sys.argv[1])
figures.save_figure(Run(), "f", figures.consistency_heatmap(frame, languages.load(Path.cwd()), "T"))
"""


def test_same_bytes_in_another_process(run, root, tmp_path, registry):
    frame = scores(TOYS[:1], DEMO[6:]).iloc[1:].round(2)  # with a hatched cell
    frame.to_csv(tmp_path / "frame.csv", index=False)
    picture = figures.save_figure(run, "f", figures.consistency_heatmap(frame, registry, "T"))
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "frame.csv"), str(tmp_path)]
    subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": "1"}, cwd=root, check=True)
    assert (tmp_path / "figures" / "f.png").read_bytes() == picture.png.read_bytes()
    assert (tmp_path / "figures" / "f.pdf").read_bytes() == picture.pdf.read_bytes()


# --- colours


def luminance(colour) -> float:
    """Relative luminance as WCAG 2.2 defines it."""
    channels = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in mpl.colors.to_rgb(colour)]
    return 0.2126 * channels[0] + 0.7152 * channels[1] + 0.0722 * channels[2]


def contrast(one, other) -> float:
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_computed_as_wcag_states():
    assert contrast("black", "white") == pytest.approx(21)
    assert contrast("#777777", "white") == pytest.approx(4.48, abs=0.005)  # a known value


@pytest.mark.parametrize("value", np.linspace(0, 1, 101))
def test_numbers_can_be_read_on_every_shade(value):
    colour = mpl.colormaps["Blues"](value)
    assert contrast(figures.readable_on(colour), colour) >= 4.5


def test_darker_is_more():
    shades = [luminance(mpl.colormaps["Blues"](value)) for value in np.linspace(0, 1, 50)]
    assert all(np.diff(shades) < 0)


def test_outcomes_differ_in_grey_too():
    assert set(figures._OUTCOMES) == set(Outcome)
    for (one, first), (other, second) in itertools.combinations(figures._OUTCOMES.values(), 2):
        assert first != second or contrast(one, other) > 3


def test_series_differ_by_form_and_by_both():
    marks = [figures._mark(number, "") for number in range(12)]
    assert len({mark.get_marker() for mark in marks}) == 12
    assert all(contrast(mark.get_color(), "white") > 2 for mark in marks)


# --- the heatmap


def annotations(figure: Figure) -> dict[tuple[int, int], str]:
    """Numbers in cells by (column, row)."""
    return {
        (int(x), int(y)): text.get_text()
        for text in figure.axes[0].texts
        for x, y in [text.get_position()]
        if text.get_transform() == figure.axes[0].transData
    }


def hatched(figure: Figure) -> set[tuple[int, int]]:
    cells = [p for p in figure.axes[0].patches if isinstance(p, Rectangle) and p.get_hatch()]
    return {(round(p.get_x() + 0.5), round(p.get_y() + 0.5)) for p in cells}


def test_heatmap_groups_and_cells(registry):
    frame = pd.DataFrame({
        "model": ["b", "b", "b", "a", "a", "a"],
        "language": ["ru", "es", "hi", "es", "et", "ar"],
        "value": [0.1, 0.2, np.nan, 0.456, 1.0, 0.0],
        "n": [16, 16, 16, 12, 16, 16],
    })  # fmt: skip
    figure = figures.consistency_heatmap(frame, registry, "T")
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["b", "a"]
    names = [label.get_text().split("\n")[0] for label in axes.get_xticklabels()]
    assert names == ["Spanish", "Hindi", "Arabic", "Russian", "Estonian"]  # Latin, Indic, Perso-Arabic, other, none
    assert annotations(figure) == {(0, 0): "0.20", (3, 0): "0.10", (0, 1): "0.46", (2, 1): "0.00", (4, 1): "1.00"}
    assert hatched(figure) == {(1, 0), (2, 0), (4, 0), (1, 1), (3, 1)}
    assert "no value" in said(figure) and "n = 12 to 16 items a cell." in said(figure)
    groups = ("Latin", "Indic", "Perso-\nArabic", "Other\nscripts", "not in\npaper A")
    assert all(name in said(figure) for name in groups)


def test_heatmap_of_many_languages_has_them_as_rows(registry):
    codes = [code for code, language in registry.items() if language.paper_a.script_group]
    figure = figures.consistency_heatmap(scores(["one", "two"], codes), registry, "T")
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["one", "two"]
    rows = [label.get_text() for label in axes.get_yticklabels()]
    assert len(rows) == 30 and rows[0] == "Czech (cs)" and rows[12] == "Bengali (bn)" and rows[20] == "Arabic (ar)"
    assert len(annotations(figure)) == 60 and not hatched(figure)
    assert "no value" not in said(figure) and "n = 16 items a cell." in said(figure)


def test_heatmap_refuses_two_values_for_a_cell(registry):
    frame = scores(["a"], ["es", "es"])
    with pytest.raises(ValueError, match="duplicate"):
        figures.consistency_heatmap(frame, registry, "T")


def test_heatmap_without_any_value(registry):
    figure = figures.consistency_heatmap(scores(["a"], ["es", "hi"]).assign(value=np.nan, n=0), registry, "T")
    assert hatched(figure) == {(0, 0), (1, 0)} and "items a cell" not in said(figure)


# --- the others


def test_outcome_bars_are_shares_that_fill_the_bar(registry):
    frame = pd.DataFrame({"model": ["a", "a"], "language": ["es", "hi"], "n": [8, 4], "ok": [6, 0], "refused": [2, 4]})
    frame = frame.assign(**{str(o): 0 for o in Outcome if str(o) not in frame})
    figure = figures.outcome_bars(frame, registry)
    bars = [(p.get_x(), p.get_width()) for p in figure.axes[0].patches]
    assert bars == [(0, 75), (0, 0), (75, 25), (0, 100)]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["ok", "refused"]  # only those that occurred
    assert [text.get_text() for text in figure.axes[0].texts] == ["8", "4", "n"]


def test_outcome_bars_of_a_language_without_items(registry):
    frame = counts(["a"], ["es", "hi"])
    frame = pd.concat([frame, counts(["b"], ["es"])])
    figure = figures.outcome_bars(frame, registry)
    assert [text.get_text() for text in figure.axes[1].texts] == ["8", "–", "n"]


def test_stability_plot(registry):
    frame = stability(["TTR"], ["et–fi", "et–hu"]).assign(tau=[0.5, np.nan], inversions=[9, 0], p=[0.049, 0.05])
    axes = figures.stability_plot(frame).axes[0]
    assert [text.get_text() for text in axes.texts] == ["9*", "0", "undefined", "inversions"]
    points = [line for line in axes.lines if line.get_marker() not in ("None", "")]
    assert [line.get_ydata()[0] for line in points][:1] == [0.5] and np.isnan(points[1].get_ydata()[0])


def test_many_metrics_go_on_in_another_row():
    frame = stability([f"metric {i}" for i in range(8)], [f"pair {i}" for i in range(6)])
    figure = figures.stability_plot(frame)
    shown = [[label.get_text() for label in axes.get_xticklabels()] for axes in figure.axes]
    assert shown == [[f"metric {i}" for i in range(4)], [f"metric {i}" for i in range(4, 8)]]


def test_calibration_plot(registry):
    frame = pd.DataFrame({
        "true": [0.0, 0.5, 1.0, 0.2],
        "measured": [0.1, 0.5, np.nan, 0.4],
        "language": ["es", "es", "es", "hi"],
    })  # fmt: skip
    spanish, hindi = figures.calibration_plot(frame, registry).axes
    assert spanish.get_title("left") == "Spanish (es)"
    assert spanish.collections[0].get_offsets().tolist() == [[0.0, 0.1], [0.5, 0.5]]
    assert spanish.texts[0].get_text() == "n = 2\nmean error 0.05"
    assert hindi.texts[0].get_text() == "n = 1\nmean error 0.20"


def test_interval_plot():
    axes = figures.interval_plot(intervals(), "T").axes[0]
    assert [text.get_text() for text in axes.texts] == ["0.60 [0.50, 0.75]", "–"]
    assert [list(line.get_xdata()) for line in axes.lines[:2]] == [[0.5, 0.75], [0.6]]
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first row on top


def test_grouped_accuracy_plot(registry):
    frame = accuracy(["m1", "m2"], ["en", "fi"])
    frame.loc[0, "accuracy"] = np.nan
    figure = figures.grouped_accuracy_plot(frame, registry)
    assert [axes.get_title("left") for axes in figure.axes] == ["English (en)", "Finnish (fi)"]
    assert [[text.get_text() for text in axes.texts] for axes in figure.axes] == [["–"], []]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["m1", "m2"]
