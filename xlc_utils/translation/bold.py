"""Bold inside a sentence: translators are given the plain sentence, and the marks come back around the same words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from xlc_utils.translation.translators import Translation, Translator

# Underscores inside a word are part of it: my__own__name.
_BOLD = re.compile(
    r"(?P<mark>\*\*|(?<!\w)__)(?=\S)(?P<phrase>(?:(?!(?P=mark)).)+)(?<=\S)(?P=mark)(?:(?<=\*)|(?!\w))", re.DOTALL
)
_STOPS = " .。．｡।۔…"  # a phrase translated by itself may be given a full stop


def unmarked(sentence: str) -> tuple[str, list[tuple[str, str]]]:
    """A sentence without the marks of its bold, and what was bold: (mark, phrase) in order."""
    bold = [(found["mark"], found["phrase"]) for found in _BOLD.finditer(sentence)]
    return _BOLD.sub(r"\g<phrase>", sentence), bold


def marked(text: str, bold: Sequence[tuple[str, str]]) -> str | None:
    """A translation with its bold marked, wherever in the sentence the words went; None if a phrase is not there.

    Args:
        text: the translation of the sentence.
        bold: (mark, translation of the phrase by itself), in the order of the original.
    """
    places: list[tuple[int, int, str]] = []
    for mark, phrase in bold:
        words = re.escape(phrase.strip(_STOPS))
        # A whole word first; between the words of Japanese there is nothing that would show one.
        found = [f for p in (rf"(?<!\w){words}(?!\w)", words) for f in re.finditer(p, text, re.IGNORECASE)]
        free = (f.span() for f in found if f[0] and all(f.end() <= a or b <= f.start() for a, b, _ in places))
        if (place := next(free, None)) is None:
            return None
        places.append((*place, mark))
    for start, end, mark in sorted(places, reverse=True):
        text = f"{text[:start]}{mark}{text[start:end]}{mark}{text[end:]}"
    return text


def translate_with_bold(
    translator: Translator, sentences: Sequence[str], source: str, target: str
) -> list[Translation]:
    """Sentences translated with what is bold in them bold again.

    Each bold phrase is also translated by itself, to know its words. Where they are not in the sentence's translation
    its bold is lost, and its detail says so.
    """
    plain = [unmarked(sentence) for sentence in sentences]
    phrases = list(dict.fromkeys(p for _, bold in plain for _, p in bold if any(map(str.isalpha, p))))
    found = translator.translate([text for text, _ in plain] + phrases, source, target)
    words = {phrase: translation.text for phrase, translation in zip(phrases, found[len(plain) :], strict=True)}
    done = []
    for (_, bold), translation in zip(plain, found[: len(plain)], strict=True):
        again = marked(translation.text, [(mark, words.get(phrase, phrase)) for mark, phrase in bold])
        if again is None:
            detail = "; ".join(filter(None, [translation.detail, "its bold is lost"]))
            done.append(replace(translation, detail=detail))
        else:
            done.append(replace(translation, text=again))
    return done
