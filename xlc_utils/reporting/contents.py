"""What is in the report, in the order of the notebooks: the tables and figures that the run has made."""

from __future__ import annotations

from pathlib import Path

from xlc_utils.registry.files import read_yaml
from xlc_utils.reporting.report import Section


def sections(run) -> list[Section]:
    """The sections that xlc_utils/reporting/contents.yaml lists, without the items this run has not made."""
    listed = read_yaml(Path(__file__).with_name("contents.yaml"))
    return [
        Section(
            entry["title"],
            entry["text"],
            tables=[name for name in entry.get("tables", []) if _table(run, name).exists()],
            figures=[(_figure(run, n), alt) for n, alt in entry.get("figures", {}).items() if _figure(run, n).exists()],
        )
        for entry in listed["sections"]
    ]


def _table(run, name: str) -> Path:
    return run.folder / "tables" / f"{name}.csv"


def _figure(run, name: str) -> Path:
    return run.folder / "figures" / f"{name}.png"
