"""Sentences of one line of running text.

NLLB gets worse with length (paper A, appendix "Translation Related"), so answers are translated sentence by sentence.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import cache
from itertools import accumulate, pairwise

import regex

from xlc_utils.registry import languages
from xlc_utils.text.splitters import SPLITTERS, Cuts

Split = Callable[[str], list[str]]

#: `paper`: the splitters of paper A's appendix "Sentence Tokenizers Used", as they are. `best`: the one that did best
#: on known texts (see `xlc_utils.text.accuracy`), with its cuts mended by the rules below.
POLICIES = ("best", "paper")
# Paper A, same place: "for all the other languages" spaCy's sentencizer.
PAPER_DEFAULT = "spacy-sentencizer"

_CLUSTER = regex.compile(r"\X")
_CASED_SCRIPTS = frozenset({"Latn", "Cyrl", "Grek"})
_EMOJI = r"(?:\p{Extended_Pictographic}[\uFE0F\u200D\U0001F3FB-\U0001F3FF]*)++"
_EMOJI_AFTER_STOP = regex.compile(rf"[.!?…。！？।؟۔][”’»\"')」』）]*\s*{_EMOJI}")
# A quotation begins after a pause, which a splitter may take to go on: It's not weakness… “It's courage,” she said.
_QUOTE_AFTER_DOTS = regex.compile(r"(?:\.\.\.|…)(?=\s+[«“„”\"‘'‹]\p{Lu})")
_OPENING = regex.compile(r"(?<=\s)[«“”„\"‘'‹(]+$")
# What a splitter leaves at the head of the next sentence: white space, closing quotes and brackets, full stops, emoji.
_LEFT_OVER = regex.compile(
    rf"(?:\s++|[”’»›“‘\"')\]}}]++(?=\s|$)|[」』）】》〉]++|[.!?…。！？।؟۔]++(?=\s|$)|{_EMOJI})*+"
)
_LAST_WORD = regex.compile(r"[^\s(«“\"„\p{Han}\p{Hiragana}\p{Katakana}]+(?=[.۔]\s*$)")
_INITIAL = regex.compile(
    r"(?:^|[\s.۔(«“-]|(?<!\p{L})\")(?:\p{Lu}|[\p{Arab}\p{Hebr}--\P{L}])\p{M}*[.۔][\s-]*$", regex.V1
)
# A capital that is no initial, after words that are alike in many languages: vitamin C, hepatitis B, plan B. After any
# other word it is one: the physicist A. Einstein.
_NO_INITIAL = regex.compile(
    r"(?<!\p{L})(?:[vw]itam[ií]\p{M}?n|в[иі]там[иі]н|βιταμ[ιί]\p{M}?ν|h?[eé]\p{M}?pat[iy]t|гепатит|ηπατ[ιί]\p{M}?τ|plan|план)"
    r"[\p{Ll}\p{M}]*\s+\p{Lu}\p{M}*\.\s*$",
    regex.IGNORECASE,
)
_ORDINAL = regex.compile(r"(?<![\p{Nd},]|\p{L}\.\s?)\p{Nd}{1,2}\.\s*$")  # not of "No. 7. He"
_DECIMAL = regex.compile(r"\p{Nd}[.,．٫]$")
_DATE = regex.compile(r"\p{Nd}\.\s*$")
_GOES_ON = regex.compile(r"[,;:،؛、，；：)]")
_GOES_ON_IN_LOWER_CASE = regex.compile(r"(?:[–—-]\s*)?\p{Ll}(?!\p{Lu})")  # iPhone and pH may begin a sentence
_DOTS = regex.compile(r"(?:\.\.|…)[.…]*\s*$")
_QUOTATIVE = regex.compile(r"(?:と|って|라고|이라고|라며|하고|అని|என்று|ಎಂದು)")
_CLOSED_QUOTE = regex.compile(r"[»”“\"」』›’]\s*$")
_QUOTED_QUESTION = regex.compile(r"\s*[«“”„\"「『‹][^«»“”„\"「」『』‹›]*[?!؟？！][»”“\"」』›]\s*")


@cache
def splitter(language: str, policy: str = "best") -> Split:
    """A function that cuts one line of running text into sentences which join to the line again.

    Args:
        language: its key.
        policy: one of POLICIES.

    Raises:
        Problem: the language has no file, or its splitter is not installed.
    """
    entry, known = languages.get(language), languages.primary(language)  # splitters know no dialects
    if policy == "paper":
        cuts = SPLITTERS[entry.splitter.paper or PAPER_DEFAULT](known)
        return _composed(lambda text: [text[a:b] for a, b in pairwise(sorted({0, *cuts(text), len(text)}))])
    return _composed(mended(SPLITTERS[entry.splitter.best](known), entry))


def _composed(split: Split) -> Split:
    """Cuts any text where ``split`` cuts it in its composed form (NFC), in which abbreviations are known."""

    def cut(text: str) -> list[str]:
        composed = unicodedata.normalize("NFC", text)
        if composed == text:
            return split(text)
        # A cluster of letter and marks is one in either form; its place in the composed form tells that in the text.
        ends = accumulate(map(len, _CLUSTER.findall(composed)))
        place = dict(zip(ends, accumulate(map(len, _CLUSTER.findall(text))), strict=True))
        places = sorted({0, len(text), *(place[end] for end in accumulate(map(len, split(composed))) if end in place)})
        return [text[a:b] for a, b in pairwise(places)]

    return cut


def mended(cuts: Cuts, language: languages.Language) -> Split:
    """Sentences by a splitter's cuts, less those where a sentence goes on, each with what closes it."""

    def split(text: str) -> list[str]:
        more = (m.end() for rule in (_EMOJI_AFTER_STOP, _QUOTE_AFTER_DOTS) for m in rule.finditer(text))
        ends = [0]
        for place in sorted({*cuts(text), *more}):
            opening = _OPENING.search(text, 0, place) if not text[place : place + 1].isspace() else None
            end = _LEFT_OVER.match(text, opening.start() if opening else place).end()
            if ends[-1] < end < len(text) and not _goes_on(text[ends[-1] : end], text[end:], language):
                ends.append(end)
        return [text[a:b] for a, b in pairwise([*ends, len(text)]) if a < b]

    return split


def _goes_on(before: str, after: str, language: languages.Language) -> bool:
    """Whether one sentence reaches over this place."""
    number = after[0].isdecimal()
    if before[-1] == "." and after[0].isalpha():
        return True
    if (number and _DECIMAL.search(before)) or _GOES_ON.match(after):
        return True
    cased = language.script in _CASED_SCRIPTS
    if _INITIAL.search(before) and not (cased and _NO_INITIAL.search(before)):
        return True
    word = _LAST_WORD.search(before)
    if word and word[0].casefold() in language.splitter.abbreviations:
        return True
    if language.splitter.ordinals and (_ORDINAL.search(before) or (number and _DATE.search(before))):
        return True
    if cased:
        return bool(_GOES_ON_IN_LOWER_CASE.match(after))
    # Without capitals nothing tells a pause from an end: “Really?” she asked... and left.
    if _CLOSED_QUOTE.search(before) and _QUOTATIVE.match(after):
        return True
    return bool(_DOTS.search(before) or _QUOTED_QUESTION.fullmatch(before))
