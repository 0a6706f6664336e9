"""A chat model whose replies a test decides."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from xlc_utils.chat.base import Chat, Reply, Sampling
from xlc_utils.judges.dialogues import turns_to_json
from xlc_utils.judges.released import Turn
from xlc_utils.registry.outcomes import Outcome


class StubModel:
    """Replies with ``say(chat)``: a text, or a whole `Reply`. Keeps what it was asked."""

    def __init__(self, say: Callable[[Chat], str | Reply], name: str = "stub"):
        self.name, self._say = name, say
        self.asked: list[Chat] = []
        self.sampling: Sampling | None = None

    def complete(self, chats: Sequence[Chat], sampling: Sampling) -> list[Reply]:
        self.asked += chats
        self.sampling = sampling
        said = [self._say(chat) for chat in chats]
        return [text if isinstance(text, Reply) else Reply(text, Outcome.OK, "stop") for text in said]


def as_json(turns: Sequence[tuple[str, str, str]]) -> str:
    """The reply a generator should give: turns of (sender, name, text)."""
    return json.dumps({"messages": [dict(zip(("sender", "name", "text"), turn, strict=True)) for turn in turns]})


def turns_of(texts: Sequence[str], agents: Sequence[str] = ("Robin Falk",)) -> str:
    """The column ``turns`` of a dialogue that the agent begins."""
    senders = ("agent", "customer")
    return turns_to_json([Turn(senders[i % 2], (agents[0], "Anna")[i % 2], text) for i, text in enumerate(texts)])
