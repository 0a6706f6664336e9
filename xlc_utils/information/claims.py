"""F(r): the claims that a text makes (paper A, the equation of FActScore in §3.1)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from xlc_utils.chat.base import Chat, ChatModel, Reply, Sampling, whole_characters
from xlc_utils.information import factscore
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.text.documents import pieces
from xlc_utils.text.english import sentences_of
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
    topic = {}  # of a line: what a bold lead-in says its first sentence is about
    for part, following in zip_longest(parts, parts[1:]):
        end = part.text + following.text if following else part.text  # the colon may stand outside bold
        if not part.translate or part.line in headings:
            continue
        if end.rstrip("*_ \r\n").endswith(":"):
            topic = {part.line: part.text.rstrip(": ") + ": "}
        else:
            yield topic.pop(part.line, "") + part.text


class ModelClaims:
    """An LLM lists the atomic claims of a text.

    Args:
        model: any chat model.
        instruction: the task with ``{text}`` in it (params/prompts/instructions/extract_claims.txt).
        unit: "answer", one call a text, or "sentence", one call for each distinct sentence of it (FActScore).
        reading: "corrected", or "as_published": a reply is read as FActScore reads it (`factscore.facts`).
        seed: of the run.
    """

    def __init__(
        self, model: ChatModel, instruction: str, unit: str = "answer", reading: str = "corrected", seed: int = 0
    ):
        self.name, self._model, self._instruction = model.name, model, instruction
        self._by_sentence, self._published = unit == "sentence", reading == "as_published"
        schema = None if self._published else SCHEMA
        self._sampling = Sampling(max_tokens=512 if self._by_sentence else 2048, seed=seed, json_schema=schema)

    def extract(self, texts: Sequence[str]) -> list[Claims]:
        """The same text is asked about once. A text of which one sentence's reply cannot be read has no claims."""
        parts = {text: self._asked(text) for text in texts}
        asked = list(dict.fromkeys(part for found in parts.values() for part in found))
        chats = [Chat.user(self._instruction.replace("{text}", part)) for part in asked]
        read = _as_published if self._published else _parsed
        by_part = {
            part: read(reply) for part, reply in zip(asked, self._model.complete(chats, self._sampling), strict=True)
        }
        return [_joined([by_part[part] for part in parts[text]]) for text in texts]

    def _asked(self, text: str) -> list[str]:
        if not self._by_sentence:
            return [text] if text.strip() else []
        sentences = list(sentences_of(text)) if text.strip() else []
        if self._published:
            return [s for i, s in enumerate(sentences) if not factscore.states_nothing(s, first=i == 0)]
        return sentences


def _joined(found: list[Claims]) -> Claims:
    failed = [c for c in found if c.outcome not in (Outcome.OK, Outcome.EMPTY)]
    if failed:
        return Claims((), failed[0].outcome, failed[0].detail)
    claims = tuple(dict.fromkeys(claim for c in found for claim in c.claims))
    return Claims(claims, Outcome.OK if claims else Outcome.EMPTY)


def _parsed(reply: Reply) -> Claims:
    """A JSON object with a list of claims, whatever stands around it, or a reply that is a list with a mark a line."""
    if reply.outcome is Outcome.EMPTY:  # the extractor said nothing; the text may state much
        return Claims((), Outcome.UNPARSED, reply.detail)
    if reply.outcome is not Outcome.OK:
        return Claims((), reply.outcome, reply.detail)
    found = json_object(reply.text, "claims")
    claims = found["claims"] if found else _listed(reply.text)
    if not isinstance(claims, list) or not all(isinstance(c, str) for c in claims):
        return Claims((), Outcome.UNPARSED, f"no list of claims in the reply: {reply.text[:80]!r}")
    claims = [" ".join(whole_characters(c).split()) for c in claims if c.strip()]
    if not all(any(character.isalnum() for character in c) for c in claims):  # "…" of an echoed instruction
        return Claims((), Outcome.UNPARSED, f"a claim without words in the reply: {reply.text[:80]!r}")
    return Claims(tuple(dict.fromkeys(claims)), Outcome.OK if claims else Outcome.EMPTY)


_MARK = re.compile(r"\s*(?:[-*•–]|\d+[.)])(?:\s+|$)")


def _listed(text: str) -> list[str] | None:
    """The items of a reply in which every line has a mark, but for a first line that ends in a colon."""
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and lines[0].rstrip().endswith(":"):
        lines = lines[1:]
    marks = [_MARK.match(line) for line in lines]
    if not lines or not all(marks):
        return None
    items = [line[mark.end() :] for line, mark in zip(lines, marks, strict=True)]
    return items if any(items) else None


def _as_published(reply: Reply) -> Claims:
    if reply.outcome not in (Outcome.OK, Outcome.TRUNCATED, Outcome.EMPTY):
        return Claims((), reply.outcome, reply.detail)
    try:
        found = factscore.facts(reply.text)
    except IndexError:
        return Claims((), Outcome.UNPARSED, f"FActScore stops at an empty item: {reply.text[:80]!r}")
    return Claims(tuple(found), Outcome.OK if found else Outcome.EMPTY)


def json_object(text: str, key: str) -> dict | None:
    """The JSON object with this key in a reply, whatever stands before and after it.

    None if there is none, or if there are several that differ: an echoed instruction holds one too. A key that is
    twice in an object makes it none.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_each_key_once)
    found, start = [], text.find("{")
    while start >= 0:
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):  # a model that loops may open hundreds of brackets
            end = start + 1
        else:
            if key in value and value not in found:
                found.append(value)
        start = text.find("{", end)
    return found[0] if len(found) == 1 else None


def _each_key_once(pairs: list[tuple]) -> dict:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a key is there twice")
    return value
