"""Ours beside printed, and which of the papers' tables and figures a run has made."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pandas as pd

from xlc_utils.reporting import published

if TYPE_CHECKING:
    from xlc_utils.running.run import Run

# The name of a file that stands for one or several of a paper's tables or figures, such as a_table_2_6_evaluator.
_NAME = re.compile(r"([ab])_(table|figure)((?:_[0-9]+)+)(?:_|$)")

# Far below the papers' two digits: only takes away what binary fractions add to a difference of decimals.
_DIGITS = 10


def beside_printed(ours: pd.DataFrame, printed: pd.DataFrame, on: list[str], value: str = "value") -> pd.DataFrame:
    """Our values beside the printed ones.

    Args:
        ours, printed: one row a key, with the columns `on` and `value`; others are ignored.
        on: the columns that say which numbers belong together.
        value: the column of the numbers.

    Returns:
        The columns `on`, ``ours``, ``printed`` and ``difference`` (ours − printed). All keys of both: those printed
        in the order of the page, then those only we have. What one side lacks is missing.

    Raises:
        ValueError: a key has two rows on a side.
    """
    sides = {}
    for side, frame in (("printed", printed), ("ours", ours)):
        if frame.duplicated(on).any():
            raise ValueError(f"{side}: several rows for {frame.loc[frame.duplicated(on), on].iloc[0].to_dict()}")
        sides[side] = frame.set_index(on)[value].astype(float)
    keys = sides["printed"].index.append(sides["ours"].index).drop_duplicates()
    both = pd.DataFrame({side: sides[side].reindex(keys) for side in ("ours", "printed")})
    both["difference"] = (both["ours"] - both["printed"]).round(_DIGITS)
    return both.rename_axis(on).reset_index()


def outputs_overview(run: Run) -> pd.DataFrame:
    """Every table and figure of both papers: whether this run has made it, where, and what to know about it.

    What the paper prints as a figure may be a table here; `tables.save_table` says how files are named.

    Returns:
        One row an item in the papers' order: paper, item, title, ``made``, ``where`` (the files inside the run
        folder, one a line) and ``remark`` (what is not computable at the demo's scale and why, or which notebook
        makes or shows it).
    """
    rows = []
    found = _files_by_item(run)
    for item in published.load("outputs").itertuples():
        files = found.get(f"{item.paper} {item.item}", [])
        rows.append((item.paper, item.item, item.title, bool(files), "\n".join(files), _remark(item, bool(files))))
    return pd.DataFrame(rows, columns=["paper", "item", "title", "made", "where", "remark"])


def _files_by_item(run: Run) -> dict[str, list[str]]:
    """The tables' pages, then the figures' pictures, of each item such as "A Table 4"."""
    found: dict[str, list[str]] = {}
    for path in (*sorted(run.folder.glob("tables/*.html")), *sorted(run.folder.glob("figures/*.png"))):
        if named := _NAME.match(path.stem):
            paper, kind, numbers = named.groups()
            for number in numbers.split("_")[1:]:
                item = f"{paper.upper()} {kind.capitalize()} {number}"
                found.setdefault(item, []).append(path.relative_to(run.folder).as_posix())
    return found


def _remark(item: tuple, made: bool) -> str:
    if made or item.computable_at_demo_scale == "no":
        return item.why
    notebook = " and ".join(item.notebook.split(";"))
    stands = "see notebook" if item.kind == "example" else "not made in this run, see notebook"
    return f"{stands} {notebook}: {item.why}"


def printed_averages(printed: pd.DataFrame) -> pd.DataFrame:
    """Whether the printed averages of paper A agree with its printed group means.

    Both are rounded to two digits, so Avg may differ from the weighted mean of the group means by up to 0.01.

    Returns:
        dimension, model, Avg, and for script and family the average implied by the group columns and whether the
        difference is within rounding.
    """
    sizes = {"Latin": 12, "Indic": 8, "PArab": 3, "Oth1": 7, "Rom": 7, "Slav": 3, "IA": 6, "Drav": 4, "Oth2": 10}
    wide = printed.pivot(index=["dimension", "model"], columns="group", values="value")
    out = wide[["Avg"]].copy()
    kinds = {"script": ("Latin", "Indic", "PArab", "Oth1"), "family": ("Rom", "Slav", "IA", "Drav", "Oth2")}
    for kind, names in kinds.items():
        weights = [sizes[n] for n in names]
        out[f"by_{kind}"] = (wide[list(names)] * weights).sum(axis=1) / sum(weights)
        out[f"{kind}_within"] = (out[f"by_{kind}"] - out["Avg"]).abs() <= 0.01 + 1e-9
    order = printed[["dimension", "model"]].drop_duplicates()
    return out.reindex(pd.MultiIndex.from_frame(order)).rename_axis(columns=None).reset_index()
