"""An answer's shape: what of a line is text to translate, and what around it comes back as it was."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

# What begins a line without being part of its sentence: headings, quotes, bullets, numbers in the digits of any script.
# A number is one only before a space or a letter: "3.5 million" begins a sentence.
_LEAD = re.compile(
    r"^(?:\s*(?:#{1,6}\s+|>\s*|[-*+–—]\s+|[•‣▪●○■・]\s*"
    r"|[(（]?\d{1,3}(?:[)、）]\s*|[.．](?:\s+|(?=[^\W\d_]|\*\*)))|[^\W\d_]\)\s+|[a-h]\.\s+))*\s*"
)
# Bold or italic around a whole piece: **Title:**, kept outside the translated text.
_WRAPPED = re.compile(r"^(\*\*|__|\*|_)(?P<inner>(?:(?!\1).)+)\1(?P<tail>\s*[:：]?)$", re.DOTALL)
# A bold phrase that opens a line and ends in a colon, **Title:** text or **Title**: text, is a piece of its own.
_LEAD_IN = re.compile(
    r"(?P<phrase>(?P<mark>\*\*|__)(?:(?!(?P=mark)).)+(?:[:：]\s*(?P=mark)|(?P=mark)\s*[:：]))(?=\s|\w)"
)
_CLOSING = re.compile(r"(\*\*|__|\*|_)(?:\s+|$)")
_FENCE = re.compile(r"^\s*(?:(```+)[^`]*|(~~~+).*)$")  # ```code``` in one line opens nothing


@dataclass(frozen=True)
class Piece:
    """A stretch of a document. ``translate`` pieces are single sentences; the others are carried over.

    ``line`` counts the lines of the document from 0.
    """

    text: str
    translate: bool
    line: int


def pieces(document: str, split: Callable[[str], list[str]]) -> list[Piece]:
    """A document taken apart so that joining the texts gives it back exactly.

    Args:
        document: an answer, in any language.
        split: cuts one line of running text into sentences that join to the line again.

    Returns:
        Pieces in order. Line breaks, headings, list markers, table bars, code and lines without a letter are carried
        over; so is the white space between sentences.
    """
    found, opened_by = [], ""
    for number, line in enumerate(document.splitlines(keepends=True)):
        body = line.rstrip("\r\n")
        fence = _FENCE.match(body)
        if opened_by or fence or not _has_letter(body):
            found.append(Piece(line, False, number))
        else:
            found += _line(body, number, split)
            found.append(Piece(line[len(body) :], False, number))
        if fence and not opened_by:
            opened_by = fence[1] or fence[2]
        elif fence and body.strip().startswith(opened_by) and not body.strip().strip(opened_by[0]):
            opened_by = ""
    return [p for p in found if p.text]


def _line(body: str, number: int, split: Callable[[str], list[str]]) -> list[Piece]:
    if body.lstrip().startswith("|"):
        cells = [[Piece("|", False, number)] if c == "|" else _run(c, number, split) for c in re.split(r"(\|)", body)]
        return [piece for cell in cells for piece in cell]
    lead = _LEAD.match(body).group()
    found, rest = [Piece(lead, False, number)], body[len(lead) :]
    if lead_in := _LEAD_IN.match(rest):
        found += _run(lead_in["phrase"], number, split)
        rest = rest[lead_in.end() :]
    return [*found, *_run(rest, number, split)]


def _run(text: str, number: int, split: Callable[[str], list[str]]) -> list[Piece]:
    """Running text: sentences, with emphasis around them and white space between them carried over."""
    if wrapped := _unwrapped(text):
        before, inner, after = wrapped
        return [Piece(before, False, number), *_run(inner, number, split), Piece(after, False, number)]
    found = []
    for sentence in _sentences(text, split):
        before, core, after = _unwrapped(sentence) or _stripped(sentence)
        parts = [(before, False), (core, _has_letter(core)), (after, False)]
        found += [Piece(t, translate, number) for t, translate in parts]
    return found


def _sentences(text: str, split: Callable[[str], list[str]]) -> list[str]:
    """Sentences, each with the marks that close its emphasis: splitters cut between the full stop and them."""
    found: list[str] = []
    for sentence in split(text):
        closing = _CLOSING.match(sentence)
        if closing and "".join(found).count(closing[1]) % 2:
            found[-1] += closing[0]
            sentence = sentence[closing.end() :]
        found.append(sentence)
    return found


def _has_letter(text: str) -> bool:
    return any(c.isalpha() for c in text)


def _stripped(text: str) -> tuple[str, str, str]:
    """White space before, the text, white space after."""
    core = text.strip()
    start = text.index(core) if core else len(text)
    return text[:start], core, text[start + len(core) :]


def _unwrapped(text: str) -> tuple[str, str, str] | None:
    """What is emphasised as a whole: opening marks, the text within, closing marks; None if nothing is."""
    before, core, after = _stripped(text)
    found = _WRAPPED.match(core)
    if not found:
        return None
    mark = found[1]
    inside_before, inner, inside_after = _stripped(found["inner"])
    return before + mark + inside_before, inner, inside_after + mark + found["tail"] + after


def joined(parts: list[Piece], translations: dict[int, str]) -> str:
    """The document with some pieces replaced.

    Args:
        parts: what `pieces` returned.
        translations: new text by the index of its piece. Where the original had no space between two sentences, as in
            Japanese, the translation gets one.
    """
    out = ""
    for index, piece in enumerate(parts):
        new = translations.get(index, piece.text)
        follows = index > 0 and index in translations and out and not out[-1].isspace()
        if follows and _previous_translated(parts, translations, index):
            out += " "
        out += new
    return out


def _previous_translated(parts: list[Piece], translations: dict[int, str], index: int) -> bool:
    """Whether the piece before stands in the same line and was translated too."""
    return index - 1 in translations and parts[index - 1].line == parts[index].line
