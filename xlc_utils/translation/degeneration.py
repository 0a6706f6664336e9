"""Translations that are none: loops, copies of the source, a wrong script, and lengths that no translation has."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from pathlib import Path

import pandas as pd
import regex

from xlc_utils.registry import languages

# How often a phrase has to follow itself to count as a loop. Lists and refrains repeat a word twice or three times;
# greedy decoding that loops does it for long, with a whole sentence too.
LOOP_REPEATS = 4
MAX_PHRASE = 40  # words, or characters where a script has no spaces
LONG_WORD = 20  # characters: a longer "word" is text without spaces, or a loop without them
LOOP_CHARACTERS = 12  # what a loop of characters has to fill: a drawn-out "ああああ" is none
DOUBLED = 5  # words from which a text that says all twice is a loop
# How many times longer or shorter than the languages' usual ratio of characters a translation may be.
LENGTH_FACTOR = 4.0
MIN_LENGTH = 12  # shorter sources say nothing about ratios
MIN_FOREIGN = 12  # letters of another script; fewer may be a name
LENGTHS = Path(__file__).parent / "data" / "lengths.csv"
# ISO 15924 codes that Unicode knows as several scripts, or by another name.
_SCRIPTS = {"Jpan": ("Han", "Hiragana", "Katakana"), "Kore": ("Hangul", "Han"), "Hans": ("Han",), "Hant": ("Han",)}


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
    # A row of dashes or dots is a line, not a loop; a vowel sign is a mark to Unicode, not a letter.
    return any(unicodedata.category(c)[0] in "LMN" for unit in phrase for c in unit)


def _doubled(text: str) -> bool:
    words = text.casefold().split()
    half = len(words) // 2
    return half >= DOUBLED and words[:half] == words[half:]


@cache
def _letters(language: str) -> regex.Pattern:
    script = languages.get(language).script
    return regex.compile("[" + "".join(rf"\p{{{name}}}" for name in _SCRIPTS.get(script, (script,))) + "]")


def in_wrong_script(text: str, language: str) -> bool:
    """Whether most letters of ``text`` are of another script than the language's."""
    letters = regex.findall(r"[\p{L}\p{M}]", text)
    own = len(_letters(language).findall("".join(letters)))
    return len(letters) - own >= max(MIN_FOREIGN, own)


@cache
def characters() -> dict[str, float]:
    """Characters a language takes for one of English, measured on known sentences (data/README.md)."""
    return pd.read_csv(LENGTHS, index_col="language")["characters"].to_dict()


def length_band(source_language: str, target_language: str) -> tuple[float, float]:
    """Least and most characters of a translation for one of its source. A language not measured counts as English."""
    usual = characters().get(target_language, 1.0) / characters().get(source_language, 1.0)
    return usual / LENGTH_FACTOR, usual * LENGTH_FACTOR


def problem(source: str, translation: str, source_language: str, target_language: str = "en") -> str | None:
    """Why ``translation`` cannot be one of ``source``, or None.

    Args:
        source: one sentence.
        translation: of it.
        source_language, target_language: their keys.
    """
    if not translation.strip():
        return "empty"
    if (phrase := loop(translation)) and not loop(source):
        return f"repeats “{phrase}”"
    if _doubled(translation) and not _doubled(source):
        return "says everything twice"
    if len(source) >= MIN_LENGTH:
        low, high = length_band(source_language, target_language)
        ratio = len(translation) / len(source)
        if not low <= ratio <= high:
            return f"length ratio {ratio:.2f}"
        # A name or a title may stay as it is, unless not a letter of it is Latin.
        may_stay = len(source.split()) <= 3 and re.search(r"[a-z]", source, re.IGNORECASE)
        if not may_stay and translation.strip().casefold() == source.strip().casefold():
            return "copy of the source"
        if not may_stay and in_wrong_script(translation, target_language):
            return "wrong script"
    return None
