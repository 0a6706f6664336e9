"""What a run may cost. Calls stop when it is spent, and go on where they stopped once there is more."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from xlc_utils.chat.base import Chat, Reply, Sampling
from xlc_utils.registry.problems import Problem

BYTES_A_TOKEN = 3  # of UTF-8, a cautious guess: English has four, scripts of three bytes a letter about three


@dataclass
class Budget:
    """Counts tokens and dollars of all calls that the run's record holds, and the time.

    Attributes:
        tokens, dollars: limits, None for none. What is in flight when one is reached still comes, so a run may spend a
            little more.
        minutes, deadline: the limit as a person set it, and the time.time() it ends at. What is in flight then has
            another minute; batches stay at their endpoint, where the next run finds them.
        prices: US dollars per million tokens (in, out) of the models that have a price.
    """

    tokens: int | None = None
    dollars: float | None = None
    minutes: float | None = None
    deadline: float | None = None
    prices: dict[str, tuple[float, float]] = field(default_factory=dict)
    spent_tokens: int = 0
    spent_dollars: float = 0.0
    _used: dict[str, np.ndarray] = field(init=False, default_factory=dict)  # calls, tokens in, tokens out of each model

    def spend(self, model: str, prompt_tokens: int, completion_tokens: int, calls: int = 1) -> None:
        """Enters what calls of ``model`` used."""
        used = self._used.setdefault(model, np.zeros(3))
        used += (calls, prompt_tokens, completion_tokens)
        self.spent_tokens += prompt_tokens + completion_tokens
        self.spent_dollars += self._dollars(model, prompt_tokens, completion_tokens)

    def _dollars(self, model: str, prompt_tokens: float, completion_tokens: float) -> float:
        price_in, price_out = self.prices.get(model, (0.0, 0.0))
        return (prompt_tokens * price_in + completion_tokens * price_out) / 1e6

    def spend_on(self, model: str, reply: Reply) -> None:
        self.spend(model, reply.prompt_tokens, reply.completion_tokens)

    def allows(self, model: str, in_flight: int, chat: Chat, sampling: Sampling) -> bool:
        """Whether another call may be sent, if those in flight use what calls of the model have used on average, or
        what ``chat``, which is like them, could use at most as long as there is no average."""
        if model in self._used:
            calls, *expected = self._used[model]
            expected = [in_flight * tokens / calls for tokens in expected]
        else:
            size = len("".join(text for _, text in chat.messages).encode()) + len((chat.completion or "").encode())
            expected = [in_flight * size / BYTES_A_TOKEN, in_flight * sampling.max_tokens]
        return not self._reached(
            self.spent_tokens + sum(expected), self.spent_dollars + self._dollars(model, *expected)
        )

    def time_is_up(self) -> bool:
        """Whether its minutes are over."""
        return self.deadline is not None and time.time() >= self.deadline

    def check(self) -> None:
        """
        Raises:
            Problem: a limit is reached.
        """
        if key := self._reached(self.spent_tokens, self.spent_dollars):
            what = {
                "budget_tokens": f"{self.spent_tokens:,} of {self.tokens or 0:,} tokens are used",
                "budget_dollars": f"{self.spent_dollars:,.2f} of {self.dollars or 0:,.2f} dollars are used",
                "budget_minutes": f"its {self.minutes} minutes are over",
            }[key]
            raise Problem(f"key `{key}`", what, "raise it and run again; what was answered is kept")

    def _reached(self, tokens: float, dollars: float) -> str:
        """The key of a limit that is reached; empty if there is some left of all."""
        if self.tokens is not None and tokens >= self.tokens:
            return "budget_tokens"
        if self.dollars is not None and dollars >= self.dollars:
            return "budget_dollars"
        return "budget_minutes" if self.time_is_up() else ""
