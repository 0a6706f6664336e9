"""Makes the numbers in `data/` from the released dialogues: python -m xlc_utils.judges.rebuild FOLDER"""

from __future__ import annotations

import sys
from pathlib import Path

from xlc_utils.judges import as_published
from xlc_utils.judges.automatic import DATA, measure
from xlc_utils.judges.released import read_dialogues, read_ratings, remarks, verify
from xlc_utils.registry.problems import Problem

USAGE = "usage: python -m xlc_utils.judges.rebuild FOLDER   (FOLDER holds the released files; see data/README.md)"


def rebuild(folder: str | Path, target: str | Path = DATA) -> list[Path]:
    """Verify the release in `folder`, compute every number and write the three tables into `target`.

    Returns:
        The paths written: dialogue_metrics.csv, as_published_metrics.csv, human_ratings.csv.

    Raises:
        Problem: a file of the release is missing, is not the pinned one, or is not as expected.
    """
    verify(folder)
    dialogues = read_dialogues(folder)
    for remark in remarks(dialogues):
        print(remark)
    tables = {
        "dialogue_metrics.csv": measure(dialogues),
        "as_published_metrics.csv": as_published.metrics(dialogues),
        "human_ratings.csv": read_ratings(folder),
    }
    for name, table in tables.items():
        table.to_csv(Path(target) / name, index=False, lineterminator="\n")
    return [Path(target) / name for name in tables]


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(USAGE, file=sys.stderr)
        return 2
    try:
        for path in rebuild(arguments[0]):
            print(path)
    except Problem as problem:
        print(problem, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
