"""One way to call a model: chats in, typed replies out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from xlc_utils.registry.outcomes import Outcome


@dataclass(frozen=True)
class Chat:
    """One request. A base model has no chat template: it gets the single ``completion`` text instead of messages.

    ``language`` and ``prompt_id`` say what is asked; a replayed system finds its stored answer by them, and no
    other backend looks at them. ``private``: it holds text that may not be passed on, so the record keeps the reply and
    not the request. ``json_schema``: of this reply, where a batch has not one for all (`Sampling`). ``forced``: what
    the model has to continue ``completion`` with, where its probability is all that is wanted; only embedded models can
    be held to it. ``shared``: how many characters of the last message further chats begin with too; a server may keep
    its state after them. It changes no reply and is in no key.
    """

    messages: tuple[tuple[str, str], ...] = ()
    completion: str | None = None
    language: str | None = None
    prompt_id: str | None = None
    private: bool = False
    json_schema: str | None = None
    forced: str | None = None
    shared: int = 0

    @classmethod
    def user(cls, text: str, system: str | None = None, **who: Any) -> Chat:
        head = (("system", system),) if system else ()
        return cls(messages=(*head, ("user", text)), **who)


@dataclass(frozen=True)
class Sampling:
    """How to decode. ``json_schema`` constrains the reply where the backend can; ``logprobs`` asks for the top
    alternatives of each token."""

    max_tokens: int = 1024
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    json_schema: str | None = None
    grammar: str | None = None
    logprobs: int | None = None
    reasoning_effort: str | None = None
    sample: int = 0  # which of several samples of the same request this is


@dataclass(frozen=True)
class Reply:
    """What came back. ``text`` is the completion alone; a reply that is not ``ok`` is never read as an answer."""

    text: str
    outcome: Outcome
    finish_reason: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0  # of the last attempt
    attempts: int = 1  # requests that were sent for it
    detail: str = ""  # why it failed or was refused, in the provider's words
    logprobs: tuple[tuple[str, float, tuple[tuple[str, float], ...]], ...] = field(default=())
    recorded: bool = False  # served from the record, not asked now


class Backend(Protocol):
    """Where a model runs."""

    #: what identifies the weights behind the name: goes into the key of each recorded call
    identity: dict[str, Any]
    #: what an engine says of itself, for the manifest; empty where it is not known
    settings: dict[str, Any]

    def ask(self, chats: Iterable[Chat], sampling: Sampling) -> Iterator[list[tuple[int, Reply]]]:
        """Yields (position of the chat, its reply) in the order they come, each time all that are there by now; now
        and then an empty list. A chat is taken from ``chats`` when it can be sent and not before: where these end
        early, what is in flight still comes."""
        ...

    def waiting(self) -> str:
        """What is being waited for, in a few words; empty when nothing is out of the ordinary."""
        ...


class ChatModel(Protocol):
    """The interface that every step uses."""

    name: str

    def complete(self, chats: Sequence[Chat], sampling: Sampling) -> list[Reply]:
        """Replies in the order of the chats; never raises for a single failed call, whose outcome says so."""
        ...


def call_key(identity: dict[str, Any], chat: Chat, sampling: Sampling) -> str:
    """SHA-256 of all that determines a reply: the model's identity, what is asked, how it is decoded."""
    asked = {"messages": chat.messages, "completion": chat.completion}
    asked |= {name: own for name in ("json_schema", "forced") if (own := getattr(chat, name)) is not None}
    what = {"model": identity, "chat": asked, "sampling": vars(sampling)}
    return hashlib.sha256(json.dumps(what, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def whole_characters(text: str) -> str:
    """``text`` with a replacement character for each lone half of a surrogate pair: JSON allows it, no file does."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def typed_text(text: str, finish_reason: str) -> tuple[Outcome, str]:
    """The outcome that a completion's text and finish reason imply, with the detail of it."""
    # Gemini's OpenAI endpoint says which filter it was: "content_filter: RECITATION".
    if finish_reason.lower().startswith(("content_filter", "recitation", "safety")):
        return Outcome.REFUSED, f"finish reason {finish_reason}"
    if not text.strip():
        return Outcome.EMPTY, "the model returned nothing"
    if finish_reason == "length":
        return Outcome.TRUNCATED, "stopped by max_tokens"
    return Outcome.OK, ""
