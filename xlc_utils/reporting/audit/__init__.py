"""The audit: what both papers print, beside what can be recomputed here, and a verdict.

Every entry is recomputed when it is asked for, from what is in this repository: the transcribed numbers
(`xlc_utils.reporting.published`), numbers measured on paper B's released dialogues (`xlc_utils/judges/data`,
`dialogue_numbers.csv` here), the registries of languages and models, and `xlc_utils.statistics`. No model and no
download is needed. `xlc audit --write` makes KNOWN_DIFFERENCES.md of it.
"""

from __future__ import annotations

import pandas as pd

from xlc_utils.registry.files import suggestion
from xlc_utils.registry.problems import Problem

# Importing them declares the entries, in the order of the file.
from xlc_utils.reporting.audit import paper_a, paper_b_dialogues, paper_b_ranks, paper_b_recovery  # noqa: F401
from xlc_utils.reporting.audit.entries import STATEMENTS, VERDICTS, Entry

__all__ = ["VERDICTS", "Entry", "audit_table", "described", "entries", "entry", "markdown", "rendered"]

FILE = "KNOWN_DIFFERENCES.md"
PAPERS = {
    "A": "Paper A, *Found in Translation* (arXiv 2505.21999)",
    "B": "Paper B, *Cross-Lingual Stability of LLM Judges* (arXiv 2602.02287v1)",
}


def entries() -> list[Entry]:
    """Every entry, recomputed, in a few seconds."""
    return [declared.entry() for declared in STATEMENTS.values()]


def entry(name: str) -> Entry:
    """One entry, recomputed.

    Raises:
        Problem: there is none of that name.
    """
    if name not in STATEMENTS:
        raise Problem(f"audit entry `{name}`", "there is none of that name", suggestion(name, STATEMENTS))
    return STATEMENTS[name].entry()


def audit_table() -> pd.DataFrame:
    """The audit as a table.

    Returns:
        One row an entry: entry, paper, where, printed, recomputed, verdict, inference, command.
    """
    return pd.DataFrame(
        {
            "entry": found.name,
            "paper": found.paper,
            "where": found.where,
            "printed": found.printed,
            "recomputed": found.finding.recomputed,
            "verdict": found.finding.verdict,
            "inference": found.finding.inference,
            "command": found.command,
        }
        for found in entries()
    )


def described(found: Entry) -> str:
    """One entry with all its numbers, as `xlc audit NAME` prints it."""
    lines = [
        f"{found.name}: {_verdict(found)}",
        f"Printed (paper {found.paper}, {found.where}): {found.printed}",
        f"Recomputed: {found.finding.recomputed}",
        *(f"  {name} = {_number(value)}" for name, value in found.finding.numbers.items()),
    ]
    return "\n".join(lines)


def rendered(table: pd.DataFrame) -> str:
    """`audit_table` as lines of text: entry, place, verdict, and how often each verdict was given."""
    shown = table.assign(verdict=table["verdict"] + table["inference"].map({True: " (inference)", False: ""}))
    counts = table["verdict"].value_counts().reindex(VERDICTS, fill_value=0)
    entry, where = (shown[column].str.ljust(shown[column].str.len().max()) for column in ("entry", "where"))
    lines = (entry + "  " + where + "  " + shown["verdict"]).tolist()
    summary = ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
    return "\n".join([*lines, "", f"{len(table)} statements: {summary}. `xlc audit ENTRY` shows one with its numbers."])


def _number(value: float) -> str:
    return str(bool(value)) if isinstance(value, bool) or type(value).__name__ == "bool" else f"{value:.6g}"


def _verdict(found: Entry) -> str:
    return f"{found.finding.verdict}{' (inference)' if found.finding.inference else ''}"


def markdown() -> str:
    """The text of KNOWN_DIFFERENCES.md."""
    found = entries()
    parts = [_preface(found)]
    for paper, title in PAPERS.items():
        own = [e for e in found if e.paper == paper]
        parts.append(f"## {title}\n\n{_overview(own)}")
        parts += [_section(e) for e in own]
    return "\n\n".join(parts) + "\n"


def _preface(found: list[Entry]) -> str:
    counts = pd.Series([e.finding.verdict for e in found]).value_counts()
    verdicts = "\n".join(f"- **{name}** ({counts.get(name, 0)}): {says}" for name, says in VERDICTS.items())
    inferred = sum(e.finding.inference for e in found)
    return f"""# Known differences

What the two papers print, held against what this repository can recompute: {len(found)} statements, each with the
place, a quotation, what was recomputed, a verdict, and the command that shows the numbers. This file is written by
`xlc audit --write`, which computes every number in it from what is committed here.

A verdict is about one statement as it is worded, not about a paper. It says:

{verdicts}

A printed value stands for everything that rounds to it. Entries marked *inference* ({inferred}) rest on something that
is neither printed nor released; they say what follows if it is so. “Released” is what paper B's authors published:
dialogues, human labels, code. The text of the dialogues is not in this repository; the numbers measured on it are, in
`xlc_utils/judges/data` and `xlc_utils/reporting/audit/dialogue_numbers.csv`, and so are the programs that measure them
again in a folder of the release (`python -m xlc_utils.reporting.audit.dialogues FOLDER`). Numbers shown are rounded;
`xlc audit ENTRY` prints them in full."""


def _overview(own: list[Entry]) -> str:
    rows = [f"| [{e.name}](#{e.name}) | {e.where} | {_verdict(e)} |" for e in own]
    return "\n".join(["| entry | where | verdict |", "|---|---|---|", *rows])


def _section(found: Entry) -> str:
    printed = f"`{found.printed}`" if "\\" in found.printed else f"“{found.printed}”"
    return (
        f"### {found.name}\n\n"
        f"{found.where}: {printed}\n\n"
        f"**{found.finding.verdict.capitalize()}**{' (inference)' if found.finding.inference else ''}. "
        f"{found.finding.recomputed}\n\n"
        f"`{found.command}`"
    )
