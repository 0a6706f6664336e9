"""What of a run is done, and how its items ended."""

from __future__ import annotations

from pathlib import Path

from xlc_utils.chat.record import Record
from xlc_utils.registry.files import suggestion
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem
from xlc_utils.running.pipeline import notebooks
from xlc_utils.running.run import read_stages


def status_text(root: Path, run_name: str) -> str:
    """Notebooks with date and seconds, outcome counts of each part file, calls by model.

    Raises:
        Problem: there is no such run.
    """
    record = record_of(root, run_name)
    folder = record.path.parent
    lines, counts = [], []
    ended = {stage["notebook"]: stage for stage in read_stages(folder)}
    for notebook in notebooks(root):
        stage = ended.get(notebook.name)
        done = f"done {stage['finished']}  {stage['seconds']:>8.1f} s" if stage else "not done"
        lines.append(f"{notebook.name:20} {done}")
        counts += stage["outcomes"].items() if stage else []
    names = [str(o) for o in Outcome]
    width = max([len(name) for name, _ in counts] + [5])
    lines += ["", f"{'table':{width}} {'n':>7}" + "".join(f"{o:>11}" for o in names)]
    lines += [f"{name:{width}} {c['n']:>7}" + "".join(f"{c.get(o, 0):>11}" for o in names) for name, c in counts]
    lines += ["", f"{'calls':{width}} {'n':>7} {'outcome':>11} {'tokens in':>11} {'tokens out':>11} {'attempts':>9}"]
    for row in record.summary():
        lines.append(
            f"{row['model']:{width}} {row['calls']:>7} {row['outcome']:>11} {row['prompt_tokens']:>11}"
            f" {row['completion_tokens']:>11} {row['attempts']:>9}"
        )
    return "\n".join(lines)


def record_of(root: Path, run_name: str) -> Record:
    """The record of a run that there is.

    Raises:
        Problem: there is no such run.
    """
    folder = root / "results" / run_name
    if not (folder / "calls.sqlite").exists():
        runs = [p.parent.name for p in (root / "results").glob("*/calls.sqlite")]
        raise Problem(
            f"results/{run_name}",
            "there is no run of this name on this machine",
            suggestion(run_name, runs) if runs else "start one with `xlc run`",
        )
    return Record(folder / "calls.sqlite")
