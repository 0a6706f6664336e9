"""What a run may cost. Calls stop when it is spent, and go on where they stopped once there is more."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from xlc_utils.chat.base import Reply
from xlc_utils.registry.problems import Problem


@dataclass
class Budget:
    """Counts tokens and dollars of all calls that the run's record holds, and the time.

    Attributes:
        tokens, dollars: limits, None for none. What is in flight when one is reached still comes, so a run may spend a
            little more.
        minutes, deadline: the limit as a person set it, and the time.time() it ends at.
        prices: US dollars per million tokens (in, out) of the models that have a price.
    """

    tokens: int | None = None
    dollars: float | None = None
    minutes: float | None = None
    deadline: float | None = None
    prices: dict[str, tuple[float, float]] = field(default_factory=dict)
    calls: int = 0
    spent_tokens: int = 0
    spent_dollars: float = 0.0

    def spend(self, model: str, prompt_tokens: int, completion_tokens: int, calls: int = 1) -> None:
        """Enters what calls of ``model`` used."""
        self.calls += calls
        self.spent_tokens += prompt_tokens + completion_tokens
        price_in, price_out = self.prices.get(model, (0.0, 0.0))
        self.spent_dollars += (prompt_tokens * price_in + completion_tokens * price_out) / 1e6

    def spend_on(self, model: str, reply: Reply) -> None:
        self.spend(model, reply.prompt_tokens, reply.completion_tokens)

    def allows(self, in_flight: int) -> bool:
        """Whether another call may be sent, if those in flight use what calls have used on average."""
        expected = 1 + in_flight / self.calls if self.calls else 1
        return not self._reached(self.spent_tokens * expected, self.spent_dollars * expected)

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
        return "budget_minutes" if self.deadline is not None and time.time() >= self.deadline else ""
