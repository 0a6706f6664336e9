"""What a script brings to every language written in it, from Unicode's own data where that has it."""

from __future__ import annotations

import unicodedata
from functools import cache

import regex

# Names of ISO 15924 for mixtures of scripts, by a script of Unicode that is in them.
_IN_UNICODE = {"Hans": "Hani", "Hant": "Hani", "Jpan": "Hira", "Kore": "Hang"}
_FONTS = {
    "Latn": "Noto Sans", "Cyrl": "Noto Sans", "Grek": "Noto Sans", "Tibt": "Noto Serif Tibetan",
    "Hans": "Noto Sans CJK SC", "Hant": "Noto Sans CJK TC", "Jpan": "Noto Sans CJK JP", "Kore": "Noto Sans CJK KR",
}  # fmt: skip

# The marks that end sentences in most languages of a script. Unicode lists those that belong to a script, not those
# that its languages borrow, nor which of them their writers use.
_TERMINATORS = {
    "Arab": ".؟!", "Armn": "։՞՜", "Beng": "।?!", "Deva": "।?!", "Ethi": "።፧!", "Grek": ".;!", "Guru": "।?!",
    "Hans": "。？！", "Hant": "。？！", "Jpan": "。？！", "Khmr": "។?!", "Laoo": "", "Mymr": "။?!", "Orya": "।?!",
    "Thai": "", "Tibt": "།",
}  # fmt: skip
#: The comma of scripts that do not take the Latin one.
COMMAS = {"Arab": "،", "Hans": "，", "Hant": "，", "Jpan": "、", "Ethi": "፣"}


def in_unicode(script: str) -> str:
    """The script of Unicode that is looked for in texts of an ISO 15924 script."""
    return _IN_UNICODE.get(script, script)


@cache
def letters(script: str) -> str:
    """The letters of a script in Unicode's basic plane."""
    pattern = regex.compile(rf"\p{{Script={in_unicode(script)}}}")
    return "".join(c for c in map(chr, range(0x10000)) if c.isalpha() and pattern.match(c))


def share(text: str, script: str) -> float:
    """Share of a text's letters that belong to a script; 0 without letters."""
    own = regex.compile(rf"\p{{Scx={in_unicode(script)}}}")
    found = [bool(own.match(c)) for c in text if c.isalpha()]
    return sum(found) / len(found) if found else 0.0


def direction(script: str) -> str:
    """ltr or rtl, as Unicode has it for the script's letters."""
    return "rtl" if unicodedata.bidirectional(letters(script)[0]) in ("R", "AL") else "ltr"


@cache
def digits(script: str) -> tuple[str, ...]:
    """The sets of ten decimal digits from 0 that a script has of its own; of Arabic and Burmese there are several."""
    pattern = regex.compile(rf"\p{{Scx={in_unicode(script)}}}")
    zeros = [c for c in map(chr, range(0x80, 0x10000)) if unicodedata.decimal(c, None) == 0 and pattern.match(c)]
    return tuple("".join(chr(ord(zero) + i) for i in range(10)) for zero in zeros)


def terminators(script: str) -> str:
    """Marks that end sentences in most languages of the script."""
    return _TERMINATORS.get(script, ".?!")


def font(script: str) -> str:
    """The family of Noto fonts that shows a script."""
    return _FONTS.get(script) or f"Noto Sans {unicodedata.name(letters(script)[0]).split()[0].title()}"
