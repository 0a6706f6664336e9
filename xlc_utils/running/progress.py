"""Progress of long work: a bar in a terminal or a notebook that is looked at, plain lines in a log."""

from __future__ import annotations

import sys
import time

SECONDS_BETWEEN_LINES = 10


class Progress:
    """Called with (done, total) and, where calls are slow or held back, with what they wait for. In a terminal it draws
    a bar; elsewhere it prints a line now and then.

    Args:
        title: what is going on.
        unit: what is counted.
    """

    def __init__(self, title: str, unit: str):
        self._title, self._unit, self._bar, self._last = title, unit, None, time.monotonic()

    def __call__(self, done: int, total: int, waiting: str = "") -> None:
        if sys.stderr.isatty():
            self._draw(done, total, waiting)
        elif done == total or time.monotonic() - self._last > SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            print(f"{self._title}: {done} of {total} {self._unit}" + (f" ({waiting})" if waiting else ""), flush=True)

    def _draw(self, done: int, total: int, waiting: str) -> None:
        from tqdm import tqdm

        if self._bar is None:
            self._bar = tqdm(total=total, desc=self._title, unit=f" {self._unit}")
        self._bar.set_postfix_str(waiting, refresh=False)
        self._bar.update(done - self._bar.n)
        if done == total:
            self._bar.close()
            self._bar = None
