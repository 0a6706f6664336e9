"""100,000 calls in one record: `python benchmarks/record.py` (half a minute).

Goals: memory does not grow with the calls, the record opens in 0.5 s, and asking all of them again sends nothing. Exits
with 1 where one is missed.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator
from itertools import count, islice
from pathlib import Path

import psutil

from xlc_utils.chat.base import Chat, Reply, Sampling
from xlc_utils.chat.record import Record, RecordedModel
from xlc_utils.registry.outcomes import Outcome

STEPS, CALLS_A_STEP, AT_ONCE = 100, 1000, 100
MOST_GROWTH, MOST_SECONDS = 20.0, 0.5  # MB from the tenth part to the whole; to open the record


class Instant:
    """A backend that answers at once, a batch at a time."""

    identity: dict = {}  # noqa: RUF012
    settings: dict = {}  # noqa: RUF012

    def __init__(self):
        self.asked = 0

    def ask(self, chats: Iterable[Chat], sampling: Sampling) -> Iterator[list[tuple[int, Reply]]]:
        positions = count()
        chats = iter(chats)
        while some := list(islice(chats, AT_ONCE)):
            self.asked += len(some)
            yield [(next(positions), Reply("answer " * 200, Outcome.OK, "stop", 30, 120, 0.1)) for _ in some]

    def waiting(self) -> str:
        return ""


def ask_all(record: Record, backend: Instant) -> list[float]:
    """Asks all calls step by step, and returns the memory after each, in MB."""
    model, memory = RecordedModel("m", {}, lambda: backend, record), []
    for step in range(STEPS):
        model.complete([Chat.user(f"{step} {i} " + "text " * 50) for i in range(CALLS_A_STEP)], Sampling())
        memory.append(psutil.Process().memory_info().rss / 1e6)
    return memory


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, backend = Path(folder) / "calls.sqlite", Instant()
        record, start = Record(path), time.perf_counter()
        memory = ask_all(record, backend)
        seconds, size = time.perf_counter() - start, path.stat().st_size / 1e6
        print(f"{backend.asked:,} calls recorded in {seconds:.1f} s, {size:.0f} MB")
        growth = memory[-1] - memory[STEPS // 10]
        print(f"memory after a tenth of them {memory[STEPS // 10]:.0f} MB, after all {memory[-1]:.0f} MB")
        record.close()
        start = time.perf_counter()
        record = Record(path)
        opened = time.perf_counter() - start
        print(f"opened in {opened:.3f} s (goal {MOST_SECONDS} s)")
        asked, start = backend.asked, time.perf_counter()
        ask_all(record, backend)
        again = backend.asked - asked
        print(f"asked again in {time.perf_counter() - start:.1f} s: {again} requests (goal none)")
    raise SystemExit(growth > MOST_GROWTH or opened > MOST_SECONDS or again > 0)


if __name__ == "__main__":
    main()
