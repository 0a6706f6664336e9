"""text/documents.py: an answer taken apart and put together in its old shape."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xlc_utils.registry import languages
from xlc_utils.registry.files import project_root
from xlc_utils.text.documents import joined, pieces
from xlc_utils.text.sentences import splitter

LANGUAGES = tuple(languages.files(project_root()))
SPLIT = {language: splitter(language) for language in LANGUAGES}
LINE_BREAKS = ("\n", "\r\n", "\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")
MARKUP = (
    "**", "*", "__", "_", "# ", "### ", "- ", "* ", "1. ", "2) ", "3.5 ", "10.000 ", "۱. ", "१) ", "(1) ", "1、", "a) ",
    "> ", "|", "| a | b |", "|---|---|", "```", "```python", "~~~", "`x`", "http://a.example/b?c=d.e", ":", "：", "•",
    "・", "“", "»", "…", "」",
)  # fmt: skip
WORDS = (
    "El río", "Dr. ", "z.B. ", "S. 5", "El 3.5 %", "東京は", "नमस्ते", "مرحبا", "Привет", "สวัสดี", "안녕", "γειά", "שלום",
    "நீர்", "A", "é", "e\u0301", "²", "½", "ª", "😀", "\u200f", "\u200d", "\ufeff", "\0", "\u3000", "\xa0", "\t", " ",
    "   ", "42",
)  # fmt: skip
ENDS = (". ", ".", "。", "！", "? ", "؟ ", "।", "॥ ", "… ", ".\u00a0")
DOCUMENTS = st.lists(
    st.one_of(st.sampled_from([*LINE_BREAKS, *MARKUP, *WORDS, *ENDS]), st.text(max_size=6)), max_size=30
).map("".join)


@settings(max_examples=200, deadline=None)
@given(DOCUMENTS, st.sampled_from(LANGUAGES))
def test_joining_the_pieces_gives_the_document_back(document: str, language: str):
    parts = pieces(document, SPLIT[language])
    assert joined(parts, {}) == document
    assert joined(parts, {i: p.text for i, p in enumerate(parts)}).replace(" ", "") == document.replace(" ", "")
    assert all(p.text for p in parts)
    for part in parts:
        if part.translate:
            assert part.text == part.text.strip() and any(c.isalpha() for c in part.text)
            assert not set(part.text) & set("\r\n")
    assert [p.line for p in parts] == sorted(p.line for p in parts)


@settings(max_examples=200, deadline=None)
@given(DOCUMENTS, st.sampled_from(LANGUAGES))
def test_no_letter_stays_untranslated_outside_code_and_list_letters(document: str, language: str):
    document = document.replace("`", "").replace("~", "")
    for part in pieces(document, SPLIT[language]):
        letters = "".join(c for c in part.text if c.isalpha())
        assert part.translate or not letters or re.search(r"(?:^|\s)(?:\w\)|[a-h]\.)\s", part.text)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(WORDS + ENDS), max_size=12).map("".join), st.sampled_from(LANGUAGES))
def test_the_splitter_loses_and_doubles_nothing(text: str, language: str):
    assert "".join(SPLIT[language](text)) == text


@pytest.mark.parametrize("space", ["\xa0", "\u202f", "\u3000", "\t"])
def test_any_white_space_may_stand_before_a_full_stop(space: str):
    text = f"A. A{space}. B{space}! C."
    for language in LANGUAGES:
        assert "".join(SPLIT[language](text)) == text


def shape(document: str, language: str = "en") -> list[str]:
    """The texts to translate, and between them what is carried over, in angle brackets."""
    return [p.text if p.translate else f"<{p.text}>" for p in pieces(document, SPLIT[language])]


GOLDEN = {
    "prose": ("Uno dos. ¿Tres? Cuatro.", "es", ["Uno dos.", "< >", "¿Tres?", "< >", "Cuatro."]),
    "no space between sentences": ("文一です。文二です。", "ja", ["文一です。", "文二です。"]),
    "no space before a digit": ("前です。1909年です。pHです。", "ja", ["前です。", "1909年です。", "pHです。"]),
    "a stop in quotes": ("「前です。」後です。", "ja", ["「前です。」", "後です。"]),
    "danda": ("यह एक है। यह दो है।", "hi", ["यह एक है।", "< >", "यह दो है।"]),
    "Arabic question": ("هل هذا سؤال؟ هذا جواب.", "ar", ["هل هذا سؤال؟", "< >", "هذا جواب."]),
    "abbreviation": ("Dr. Ruiz left. He ran.", "en", ["Dr. Ruiz left.", "< >", "He ran."]),
    "bullets": ("- One.\n* Two.\n• Six.", "en", ["<- >", "One.", "<\n>", "<* >", "Two.", "<\n>", "<• >", "Six."]),
    "Japanese bullet": ("・東京です。", "ja", ["<・>", "東京です。"]),
    "numbers": ("1. One\n2) Two\n(3) Three", "en", ["<1. >", "One", "<\n>", "<2) >", "Two", "<\n>", "<(3) >", "Three"]),
    "Arabic numbers": ("١. واحد", "ar", ["<١. >", "واحد"]),
    "Devanagari numbers": ("२) दो", "hi", ["<२) >", "दो"]),
    "number without space": ("1.東京", "ja", ["<1.>", "東京"]),
    "number with ideographic comma": ("1、東京", "ja", ["<1、>", "東京"]),
    "letters": ("a) One\nb. Two\nв) три", "ru", ["<a) >", "One", "<\n>", "<b. >", "Two", "<\n>", "<в) >", "три"]),
    "nested": ("  - 1. One", "en", ["<  - 1. >", "One"]),
    "heading": ("## Title\nText.", "en", ["<## >", "Title", "<\n>", "Text."]),
    "quote": ("> Quoted.", "en", ["<> >", "Quoted."]),
    "a decimal is no marker": ("3.5 million people.", "en", ["3.5 million people."]),
    "nor a thousand": ("10.000 personas.", "es", ["10.000 personas."]),
    "nor a year": ("1994. It rained.", "en", ["<1994. >", "It rained."]),
    "nor an initial": ("J. Ruiz left.", "en", ["J. Ruiz left."]),
    "nor a minus": ("-5 degrees.", "en", ["-5 degrees."]),
    "bold": ("**Bold one.** Plain.", "en", ["<**>", "Bold one.", "<**>", "< >", "Plain."]),
    "bold and the end": ("He ran. **He hid.**", "en", ["He ran.", "< >", "<**>", "He hid.", "<**>"]),
    "italic of two": ("*He ran. He hid.* Plain.", "en", ["*He ran.", "< >", "He hid.*", "< >", "Plain."]),
    "a star that closes nothing": ("He ran. * He hid.", "en", ["He ran.", "< >", "* He hid."]),
    "bold heading": ("**Title:**\ntext", "en", ["<**>", "Title:", "<**>", "<\n>", "text"]),
    "bold lead-in": ("1. **Title:** Text. More.", "en", ["<1. **>", "Title:", "<** >", "Text.", "< >", "More."]),
    "colon behind it": ("**Title**: text", "en", ["<**>", "Title", "<**: >", "text"]),
    "full-width colon": ("**書く**：紙に。", "ja", ["<**>", "書く", "<**：>", "紙に。"]),
    "French colon": ("**Titre** : texte", "fr", ["<**>", "Titre", "<** : >", "texte"]),
    "two bold words before a colon": ("**A** or **B:** c", "en", ["**A** or **B:** c"]),
    "colon after bold": ("**Title**:", "en", ["<**>", "Title", "<**:>"]),
    "bold of two sentences": ("**One. Two.**", "en", ["<**>", "One.", "< >", "Two.", "<**>"]),
    "bold within": ("The **old** one.", "en", ["The **old** one."]),
    "two bold words": ("**A** and **B**", "en", ["**A** and **B**"]),
    "bold with space inside": ("** A. **", "en", ["<**>", "< >", "A.", "< >", "<**>"]),
    "table": (
        "| Name | Age |\n|---|---|\n| Ana | 7 |",
        "en",
        ["<| >", "Name", "< | >", "Age", "< |\n|---|---|\n| >", "Ana", "< | 7 |>"],
    ),
    "code": ("Run:\n```sh\nls -l | wc\n```\nDone.", "en", ["Run:", "<\n```sh\nls -l | wc\n```\n>", "Done."]),
    "code in one line": ("```ls```\nText.", "en", ["```ls```", "<\n>", "Text."]),
    "another fence inside": ("~~~\n```\nx\n~~~\nText.", "en", ["<~~~\n>", "<```\n>", "<x\n>", "<~~~\n>", "Text."]),
    "a longer fence": ("````\n```\nx\n````\nText.", "en", ["<````\n>", "<```\n>", "<x\n>", "<````\n>", "Text."]),
    "an open fence": ("```\nx\ny", "en", ["<```\n>", "<x\n>", "<y>"]),
    "lines without a letter": ("12\n---\n…\nA.", "en", ["<12\n>", "<---\n>", "<…\n>", "A."]),
    "line breaks": ("A.\r\nB.\rC.\u2028D.", "en", ["A.", "<\r\n>", "B.", "<\r>", "C.", "<\u2028>", "D."]),
    "nothing": ("", "en", []),
}  # fmt: skip


@pytest.mark.parametrize(("document", "language", "expected"), GOLDEN.values(), ids=GOLDEN)
def test_golden(document: str, language: str, expected: list[str]):
    assert merged(shape(document, language)) == merged(expected)


def merged(parts: list[str]) -> list[str]:
    """Neighbouring carried-over pieces as one: where they are cut is nobody's business."""
    out: list[str] = []
    for part in parts:
        if out and part.startswith("<") and out[-1].startswith("<"):
            out[-1] = out[-1][:-1] + part[1:]
        else:
            out.append(part)
    return out


def test_lines_are_counted_from_zero():
    parts = pieces("One.\n\nHe ran. He hid.", SPLIT["en"])
    assert [(p.text, p.line) for p in parts if p.translate] == [("One.", 0), ("He ran.", 2), ("He hid.", 2)]


def translated(document: str, language: str, translate) -> str:
    parts = pieces(document, SPLIT[language])
    return joined(parts, {i: translate(p.text) for i, p in enumerate(parts) if p.translate})


@pytest.mark.parametrize(
    ("document", "language", "expected"),
    [
        ("文一。文二。文三。", "ja", "T3 T3 T3"),
        ("这是一。这是二。", "zh", "T4 T4"),
        ("文一。\n文二。", "ja", "T3\nT3"),
        ("1. 文一。文二。\n2. 文三。", "ja", "1. T3 T3\n2. T3"),
        ("**文一。文二。**文三。", "ja", None),
        ("Uno.  Dos.", "es", "T4  T4"),
        ("- Uno.\n\n\t- Dos.", "es", "- T4\n\n\t- T4"),
        ("| Uno | Dos |", "es", "| T3 | T3 |"),
    ],
)
def test_translations_stand_where_the_sentences_stood(document: str, language: str, expected: str | None):
    done = translated(document, language, lambda text: f"T{len(text)}")
    if expected is not None:
        assert done == expected
    assert done.count("T") == sum(p.translate for p in pieces(document, SPLIT[language]))


@settings(max_examples=200, deadline=None)
@given(DOCUMENTS, st.sampled_from(LANGUAGES))
def test_no_sentence_is_lost_or_doubled_or_runs_into_the_one_before(document: str, language: str):
    parts = pieces(document, SPLIT[language])
    names = {i: f"⟦{i}⟧" for i, p in enumerate(parts) if p.translate}
    done = joined(parts, names)
    assert all(done.count(name) == 1 for name in names.values())
    assert "⟧⟦" not in done
    rest = done
    for name in names.values():
        rest = rest.replace(name, "", 1)
    carried = "".join(p.text for p in parts if not p.translate)
    assert rest.replace(" ", "") == carried.replace(" ", "")


def test_a_very_long_line_takes_no_time():
    for line in ("- " * 20_000, "1. " * 20_000, " " * 50_000 + "a", "**a" * 5_000, "|a" * 5_000, "* _" * 5_000 + "a"):
        assert joined(pieces(line, SPLIT["en"]), {}) == line
