"""Sentences of a text, as evaluators compare them: English unless said otherwise."""

from __future__ import annotations

from functools import cache

from xlc_utils.text.documents import pieces
from xlc_utils.text.sentences import splitter


@cache
def sentences_of(reference: str, language: str = "en") -> tuple[str, ...]:
    return tuple(p.text for p in pieces(reference, splitter(language)) if p.translate) or (reference,)
