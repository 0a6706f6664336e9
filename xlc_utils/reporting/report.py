"""One page for the whole run that opens anywhere: pictures, tables and style are inside, nothing is fetched."""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from markupsafe import Markup

from xlc_utils.registry.files import shown
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem
from xlc_utils.reporting.figures import DPI
from xlc_utils.reporting.tables import fragment, render, saved_fragment, table_view

if TYPE_CHECKING:
    from xlc_utils.registry.models import Model
    from xlc_utils.running.run import Run

_CSS_PIXELS_PER_INCH = 96
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Section:
    """A part of the report.

    Attributes:
        title: its heading.
        text: plain text; an empty line ends a paragraph.
        tables: the name of a table that `save_table` has written, which brings its caption, note and mark of toys;
            or (caption, frame, note), shown in the same way, marked if it names a toy.
        figures: (PNG file, what it shows in words) each; the words are what a screen reader says.
    """

    title: str
    text: str
    tables: Sequence[str | tuple[str, pd.DataFrame, str]] = ()
    figures: Sequence[tuple[Path, str]] = ()


@dataclass(frozen=True)
class _Picture:
    data: str
    width: int
    height: int
    alt: str


@dataclass(frozen=True)
class _Filled:
    """A section as the template takes it."""

    title: str
    paragraphs: list[str]
    pictures: list[_Picture]
    tables: list[Markup]


def write_report(run: Run, sections: list[Section]) -> Path:
    """Writes <run>/report.html: what was run, the outcomes, then the sections.

    The date is that of the last notebook before this one, so writing the report again changes nothing in it.

    Args:
        run: the run, whose manifest other notebooks have written.
        sections: in the order of the page.

    Returns:
        The page's path.

    Raises:
        Problem: no notebook has run before, the manifest is damaged, a figure is missing, or the disk is full.
    """
    manifest = _manifest(run)
    stages = [stage for stage in manifest["notebooks"] if stage["notebook"] != run.notebook]
    if not stages:
        raise Problem(shown(run.folder), "there is nothing to report", "run the notebooks before this one first")
    page = render(
        "report.html.j2",
        title=f"Results of the run “{run.folder.name}”",
        facts=_facts(manifest, stages),
        sections=[_what_was_run(run, manifest, stages), *(_filled(run, section) for section in sections)],
    )
    path = run.folder / "report.html"
    run.atomically(path, lambda partial: partial.write_bytes(page.encode()))
    run.wrote(path)
    return path


def _manifest(run: Run) -> dict:
    path = run.folder / "manifest.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Problem(shown(path), "this file is missing", "run the notebooks before this one first") from None
    except ValueError as error:
        raise Problem(
            shown(path), f"it is not JSON ({error})", "delete it and run the notebook before this one again"
        ) from None


def _facts(manifest: dict, stages: list[dict]) -> list[str]:
    date = max(stage["finished"] for stage in stages)
    commit = (manifest["git_commit"] or "unknown")[:12]
    return [f"Computed {date[:10]}, {date[11:16]} UTC · commit {commit} · Python {manifest['python']}"]


def _what_was_run(run: Run, manifest: dict, stages: list[dict]) -> _Filled:
    systems = table_view(run, _models(run, manifest, stages), "Systems of this run and their licences.")
    note = "n is the number of items and the sum of the outcomes. No outcome is silently a score."
    outcomes = table_view(run, _outcomes(stages), "How the items of each step ended.", note)
    systems = replace(systems, toy="")  # it has a column that says so, and no numbers
    text = "An item is one answer, sentence or judgement. Only those that ended “ok” are complete."
    return _Filled("What was run", [text], [], [fragment(systems), fragment(outcomes)])


def _models(run: Run, manifest: dict, stages: list[dict]) -> pd.DataFrame:
    """Every system that answered or was called: one of the registry, or a file of answers."""
    answered = (key.partition("/") for stage in stages for key in stage["outcomes"])
    names = {model for table, _, model in answered if table == "responses"} | set(manifest["models"])
    rows = []
    for name in sorted(names):
        entry = run.models.models.get(name)
        licence = entry.licence if entry else "answers from a file"
        rows.append({"model": name, "licence": licence, "version": _version(entry), "toy": run.is_toy(name)})
    return pd.DataFrame(rows, columns=["model", "licence", "version", "toy"])


def _version(entry: Model | None) -> str:
    if entry is None or entry.backend == "replay":
        return "stored answers"
    return entry.revision or (f"sha256 {entry.sha256[:12]}…" if entry.sha256 else "not pinned")


def _outcomes(stages: list[dict]) -> pd.DataFrame:
    """Counts by table and model; outcomes that never occurred are left out."""
    rows = []
    for stage in stages:
        for key, counts in stage["outcomes"].items():
            table, _, model = key.partition("/")
            rows.append({"table": table, "model": model, "n": 0, **dict.fromkeys(map(str, Outcome), 0), **counts})
    frame = pd.DataFrame(rows, columns=["table", "model", "n", *map(str, Outcome)])
    return frame.drop(columns=[str(o) for o in Outcome if o != Outcome.OK and not frame[str(o)].any()])


def _filled(run: Run, section: Section) -> _Filled:
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", section.text) if part.strip()]
    pictures = [_picture(path, alt) for path, alt in section.figures]
    return _Filled(section.title, paragraphs, pictures, [_table(run, table) for table in section.tables])


def _table(run: Run, table: str | tuple[str, pd.DataFrame, str]) -> Markup:
    if isinstance(table, str):
        return saved_fragment(run, table)
    caption, frame, note = table
    return fragment(table_view(run, frame, caption, note))


def _picture(path: Path, alt: str) -> _Picture:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise Problem(shown(path), "this figure is missing", "run the notebook that draws it first") from None
    if not content.startswith(_PNG_SIGNATURE) or len(content) < 24:
        raise Problem(shown(path), "it is no PNG picture", "run the notebook that draws it again")
    width, height = struct.unpack(">II", content[16:24])
    scale = _CSS_PIXELS_PER_INCH / DPI
    return _Picture(base64.b64encode(content).decode(), round(width * scale), round(height * scale), alt)
