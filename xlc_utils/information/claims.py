"""F(r): the claims that a text makes (paper A, the equation of FActScore in §3.1)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from xlc_utils.chat.base import Chat, ChatModel, Sampling, whole_characters
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.text.documents import pieces
from xlc_utils.text.sentences import splitter


@dataclass(frozen=True)
class Claims:
    """The claims of one text, in its order. No claims and an outcome that is not ok: the text could not be read."""

    claims: tuple[str, ...]
    outcome: Outcome
    detail: str = ""


SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"claims": {"type": "array", "items": {"type": "string"}}},
        "required": ["claims"],
        "additionalProperties": False,
    }
)


class SentenceClaims:
    """Each sentence is one claim: no model needed. Headings (#) and lead-ins (they end in a colon) state nothing."""

    name = "sentences"

    def extract(self, texts: Sequence[str]) -> list[Claims]:
        found = (tuple(dict.fromkeys(_statements(text))) for text in texts)
        return [Claims(claims, Outcome.OK if claims else Outcome.EMPTY) for claims in found]


def _statements(text: str) -> Iterator[str]:
    parts = pieces(text, splitter("en"))
    headings = {p.line for p in parts if not p.translate and p.text.lstrip().startswith("#")}
    for part, following in zip_longest(parts, parts[1:]):
        end = part.text + following.text if following else part.text  # the colon may stand outside bold
        if part.translate and part.line not in headings and not end.rstrip("*_ \r\n").endswith(":"):
            yield part.text


class ModelClaims:
    """An LLM lists the atomic claims of a text, one call a text, as JSON.

    Args:
        model: any chat model.
        instruction: the task with ``{text}`` in it (params/prompts/instructions/extract_claims.txt).
        max_tokens: for the list.
        seed: of the run.
    """

    def __init__(self, model: ChatModel, instruction: str, max_tokens: int = 2048, seed: int = 0):
        self.name, self._model, self._instruction = model.name, model, instruction
        self._sampling = Sampling(max_tokens=max_tokens, seed=seed, json_schema=SCHEMA)

    def extract(self, texts: Sequence[str]) -> list[Claims]:
        asked = [t for t in dict.fromkeys(texts) if t.strip()]
        chats = [Chat.user(self._instruction.replace("{text}", t)) for t in asked]
        by_text = dict(zip(asked, self._model.complete(chats, self._sampling), strict=True))
        return [_parsed(by_text[t]) if t.strip() else Claims((), Outcome.EMPTY) for t in texts]


def _parsed(reply) -> Claims:
    if reply.outcome is not Outcome.OK:
        return Claims((), reply.outcome, reply.detail)
    found = first_json_object(reply.text)
    claims = found.get("claims") if found else None
    if not isinstance(claims, list) or not all(isinstance(c, str) for c in claims):
        return Claims((), Outcome.UNPARSED, f"no list of claims in the reply: {reply.text[:80]!r}")
    claims = [whole_characters(c).strip() for c in claims if c.strip()]
    return Claims(tuple(dict.fromkeys(claims)), Outcome.OK if claims else Outcome.EMPTY)


def first_json_object(text: str) -> dict | None:
    """The first JSON object in a reply, whatever stands before and after it; None if there is none."""
    decoder = json.JSONDecoder()
    start = text.find("{")
    while start >= 0:
        try:
            found, _ = decoder.raw_decode(text, start)
        except (json.JSONDecodeError, RecursionError):  # a model that loops may open hundreds of brackets
            start = text.find("{", start + 1)
        else:
            return found
    return None
