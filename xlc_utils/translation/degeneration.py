"""Translations that are none: loops, copies of the source, and lengths that no translation has."""

from __future__ import annotations

import re

# How often a phrase has to follow itself to count as a loop. Lists and refrains repeat a word twice or three times;
# greedy decoding that loops does it for long, with a whole sentence too.
LOOP_REPEATS = 4
MAX_PHRASE = 40  # words, or characters where a script has no spaces
LONG_WORD = 20  # characters: a longer "word" is text without spaces, or a loop without them
LOOP_CHARACTERS = 12  # what a loop of characters has to fill: a drawn-out "ああああ" is none
# Characters of English per character of source; most scripts lie between a half and three, Chinese and Japanese
# characters carry more.
LENGTH_RATIO = (0.2, 5.0)
LENGTH_RATIO_DENSE = (0.4, 9.0)
DENSE = frozenset({"ja", "zh", "ko"})
MIN_LENGTH = 12  # shorter sources say nothing about ratios


def loop(text: str) -> str | None:
    """The phrase that ``text`` repeats at least four times in a row, or None.

    Words are compared, and the characters of a very long word, which is text without spaces.
    """
    words = text.split()
    found = _repeated(words, 1)
    if found:
        return " ".join(found)
    for word in words:
        if len(word) > LONG_WORD and (found := _repeated(list(word), LOOP_CHARACTERS)):
            return "".join(found)
    return None


def _repeated(units: list[str], least: int) -> list[str] | None:
    """The shortest phrase that fills at least ``least`` units by following itself."""
    folded = [u.casefold() for u in units]
    for size in range(1, min(MAX_PHRASE, len(units) // LOOP_REPEATS) + 1):
        run = 0
        for i in range(size, len(folded)):
            run = run + 1 if folded[i] == folded[i - size] else 0
            phrase = units[i - size + 1 : i + 1]
            if run >= max(size * LOOP_REPEATS, least) - size and _has_words(phrase):
                return phrase
    return None


def _has_words(phrase: list[str]) -> bool:
    return any(c.isalnum() for unit in phrase for c in unit)  # a row of dashes or dots is a line, not a loop


def problem(source: str, translation: str, source_language: str) -> str | None:
    """Why ``translation`` cannot be one of ``source``, or None.

    Args:
        source: one sentence.
        translation: its translation into a language of the Latin script.
        source_language: its key.
    """
    if not translation.strip():
        return "empty"
    if (phrase := loop(translation)) and not loop(source):
        return f"repeats “{phrase}”"
    if len(source) >= MIN_LENGTH:
        low, high = LENGTH_RATIO_DENSE if source_language in DENSE else LENGTH_RATIO
        ratio = len(translation) / len(source)
        if not low <= ratio <= high:
            return f"length ratio {ratio:.2f}"
        # A name or a title may stay as it is, unless not a letter of it is Latin.
        may_stay = len(source.split()) <= 3 and re.search(r"[a-z]", source, re.IGNORECASE)
        if translation.strip().casefold() == source.strip().casefold() and not may_stay:
            return "copy of the source"
    return None
