"""How many requests an endpoint gets at a time, and when one that failed is sent again."""

from __future__ import annotations

import asyncio
import email.utils
import math
import random
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

# Seconds before the first repetition; doubled each time, at most LONGEST_WAIT.
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0


@dataclass(eq=False)
class Gate:
    """The requests that one endpoint has in hand: additive increase, multiplicative decrease, as TCP does it.

    A refused request (HTTP 429) halves how many may be in flight, once for all that were in flight together; each
    answered one raises it again by one a round, up to ``most``. Before the time that a Retry-After names nobody enters.
    """

    most: int
    limit: float = field(init=False)
    in_flight: int = 0
    not_before: float = 0.0  # time.monotonic()
    _shrunk: float = -math.inf
    _waiting: deque[asyncio.Future] = field(default_factory=deque)

    def __post_init__(self):
        self.limit = float(self.most)

    async def enter(self) -> None:
        """Waits for one's turn."""
        while True:
            if (wait := self.not_before - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            elif self.in_flight >= int(self.limit):
                self._waiting.append(turn := asyncio.get_running_loop().create_future())
                await turn
            else:
                self.in_flight += 1
                return

    def leave(self) -> None:
        self.in_flight -= 1
        self._wake()

    def _wake(self) -> None:
        free = int(self.limit) - self.in_flight
        while free > 0 and self._waiting:
            if not (turn := self._waiting.popleft()).done():
                turn.set_result(None)
                free -= 1

    def answered(self) -> None:
        self.limit = min(self.most, self.limit + 1 / self.limit)

    def shrink(self, sent: float) -> None:
        """Halves what may be in flight, after a request that was sent at ``sent`` (time.monotonic()) was refused."""
        if sent > self._shrunk:
            self.limit, self._shrunk = max(1.0, self.limit / 2), time.monotonic()

    def pause(self, seconds: float) -> None:
        """Lets nobody in for so long."""
        self.not_before = max(self.not_before, time.monotonic() + seconds)


def backoff(attempt: int) -> float:
    """Seconds before another attempt, drawn from the upper half of what has doubled with each: those who failed
    together do not come back together."""
    return min(LONGEST_WAIT, FIRST_WAIT * 2 ** (attempt - 1)) * random.uniform(0.5, 1)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that an answer's headers ask for: `retry-after-ms`, or `Retry-After` in seconds or as a date
    (RFC 9110, 10.2.3); None where they ask for nothing that can be read."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None
