"""Sentences of an English text, as evaluators compare them."""

from __future__ import annotations

from functools import cache

from xlc_utils.text.documents import pieces
from xlc_utils.text.sentences import splitter


@cache
def sentences_of(reference: str) -> tuple[str, ...]:
    return tuple(p.text for p in pieces(reference, splitter("en")) if p.translate) or (reference,)
