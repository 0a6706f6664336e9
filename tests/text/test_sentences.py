"""text/sentences.py: both policies, over all languages."""

from __future__ import annotations

import importlib.util
import re
import sys
import unicodedata

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from xlc_utils.registry import languages
from xlc_utils.registry.files import project_root
from xlc_utils.registry.problems import Problem
from xlc_utils.text import accuracy, splitters
from xlc_utils.text.documents import joined, pieces
from xlc_utils.text.sentences import splitter

REGISTRY = languages.load(project_root())
SPLIT_EXTRA = ("spacy", "indicnlp", "underthesea")
HAS_EXTRA = all(importlib.util.find_spec(module) for module in SPLIT_EXTRA)
needs_extra = pytest.mark.skipif(not HAS_EXTRA, reason="needs the extra `split`")
POLICIES = ["best", pytest.param("paper", marks=needs_extra)]
ZEROS = [chr(c) for c in range(sys.maxunicode + 1) if unicodedata.decimal(chr(c), -1) == 0]


def known_texts(code: str) -> list[str]:
    found = accuracy.known(project_root(), code)
    return [re.sub(r"[\[\]]", "", text) for text in [*found.choosing.values(), *found.held_out.values()]]


KNOWN = {code: known_texts(code) for code in REGISTRY}
# Known texts cut up at spaces and mixed, so that abbreviations, marks and scripts meet as nobody foresaw.
WORDS = st.sampled_from(sorted({word for texts in KNOWN.values() for text in texts for word in text.split(" ")}))
MIXED = st.lists(st.one_of(WORDS, st.text(max_size=5)), max_size=12).map(" ".join)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=300, deadline=None)
@given(text=MIXED, code=st.sampled_from(sorted(REGISTRY)))
def test_the_sentences_join_to_the_line(policy: str, text: str, code: str):
    found = splitter(code, policy)(text)
    assert "".join(found) == text
    assert all(found)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=200, deadline=None)
@given(lines=st.lists(MIXED, max_size=4), code=st.sampled_from(sorted(REGISTRY)))
def test_each_line_is_cut_by_itself(policy: str, lines: list[str], code: str):
    """No sentence reaches over a line break, none is lost and none appears twice."""
    lines = [" ".join(line.replace("`", "").replace("~", "").splitlines()) for line in lines]
    split = splitter(code, policy)

    def sentences(text: str) -> list[str]:
        return [p.text for p in pieces(text, split) if p.translate]

    whole = pieces("\n".join(lines), split)
    assert [p.text for p in whole if p.translate] == [s for line in lines for s in sentences(line)]
    assert joined(whole, {}) == "\n".join(lines)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("code", sorted(REGISTRY))
def test_composed_and_decomposed_text_is_cut_alike(policy: str, code: str):
    split = splitter(code, policy)
    for text in KNOWN[code]:
        for line in text.splitlines():
            nfc, nfd = (unicodedata.normalize(form, line) for form in ("NFC", "NFD"))
            assert "".join(split(nfd)) == nfd
            assert [unicodedata.normalize("NFC", s) for s in split(nfd)] == split(nfc)


@settings(max_examples=200, deadline=None)
@given(text=MIXED, code=st.sampled_from(sorted(REGISTRY)))
def test_any_form_of_a_text_joins_again(text: str, code: str):
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        formed = unicodedata.normalize(form, text)
        assert "".join(splitter(code)(formed)) == formed


@pytest.mark.parametrize("code", sorted(REGISTRY))
def test_digits_of_every_script_stay_together(code: str):
    """A decimal is not cut, in the digits of any script, and a number before a list item is carried over."""
    word = regex.search(r"[\p{L}\p{M}]{3,}", KNOWN[code][-1])[0]
    for zero in ZEROS:
        three, five = chr(ord(zero) + 3), chr(ord(zero) + 5)
        text = f"{three}. {word} {three}.{five} {word}"
        parts = pieces(text, splitter(code))
        assert [p.text for p in parts if p.translate] == [f"{word} {three}.{five} {word}"], zero
        assert [p.text for p in parts if not p.translate] == [f"{three}. "], zero


def test_white_space_of_any_kind_may_stand_before_a_full_stop():
    for space in ("\xa0", "\u202f", "\u3000", "\t"):
        text = f"A. A{space}. B{space}! C."
        for code in REGISTRY:
            assert "".join(splitter(code)(text)) == text


@pytest.mark.parametrize(
    ("code", "text", "sentences"),
    [
        ("en", "iPhones sell. eBay sells iPhones.", ["iPhones sell. ", "eBay sells iPhones."]),
        ("en", "“Is it?” asked Tom. It is.", ["“Is it?” asked Tom. ", "It is."]),
        ("en", "Done! ✅ Next.", ["Done! ✅ ", "Next."]),
        ("de", "Am 3. Oktober war er da. Dann nicht.", ["Am 3. Oktober war er da. ", "Dann nicht."]),
        ("de", "Er wohnt in Nr. 7. Sie nicht.", ["Er wohnt in Nr. 7. ", "Sie nicht."]),
        ("ja", "「勇気だよ。」と母は言った。本当だ。", ["「勇気だよ。」と母は言った。", "本当だ。"]),
        ("ja", "「行く。」彼は去った。", ["「行く。」", "彼は去った。"]),
        ("hi", "प्रो. शर्मा आए। वे पढ़ाते हैं।", ["प्रो. शर्मा आए। ", "वे पढ़ाते हैं।"]),
        ("gu", "તે સારું છે. હા.", ["તે સારું છે. ", "હા."]),
        (
            "pt",
            "Ajuda a produzir vitamina C. A cozedura destrói parte.",
            ["Ajuda a produzir vitamina C. ", "A cozedura destrói parte."],
        ),
        (
            "en",
            "It helps against hepatitis B. The vaccine is safe.",
            ["It helps against hepatitis B. ", "The vaccine is safe."],
        ),
        ("en", "There is no plan B. Then we waited.", ["There is no plan B. ", "Then we waited."]),
        ("en", "There is a plan B. and more.", ["There is a plan B. and more."]),
        ("fr", "Il faut l'hépatite B. Elle dure.", ["Il faut l'hépatite B. ", "Elle dure."]),
        ("en", "J. K. Rowling wrote. George W. Bush read.", ["J. K. Rowling wrote. ", "George W. Bush read."]),
        ("en", "In the case of S. Lem it was so. He wrote.", ["In the case of S. Lem it was so. ", "He wrote."]),
        (
            "en",
            "The British writer J. R. R. Tolkien (or A. Camus) did. So be it.",
            ["The British writer J. R. R. Tolkien (or A. Camus) did. ", "So be it."],
        ),
        ("pl", "Czytał ją także B. Prus. On pisał.", ["Czytał ją także B. Prus. ", "On pisał."]),
        ("en", "The physicist A. Einstein came. He spoke.", ["The physicist A. Einstein came. ", "He spoke."]),
        ("ru", "Так писал поэт А. Пушкин в письме. Да.", ["Так писал поэт А. Пушкин в письме. ", "Да."]),
        ("ru", "В ней много витамина C. Её едят.", ["В ней много витамина C. ", "Её едят."]),
        ("ur", "وہ گئے۔ ”رکو“ اس نے کہا۔", ["وہ گئے۔ ", "”رکو“ اس نے کہا۔"]),
    ],
)
def test_where_the_rules_mend(code: str, text: str, sentences: list[str]):
    assert splitter(code)(text) == sentences


@pytest.mark.skipif(HAS_EXTRA, reason="the extra `split` is installed")
def test_without_its_packages_the_papers_policy_says_what_to_install():
    with pytest.raises(Problem, match=r'`spacy` is not installed; run `python -m pip install -e "\.\[split\]"`'):
        splitter("de", "paper")


@needs_extra
@pytest.mark.parametrize("code", sorted(REGISTRY))
def test_the_papers_splitters_cut_plain_sentences(code: str):
    """Two sentences without anything difficult; but for Thai, which has no full stops."""
    first, second = {
        "ja": ("雨が降る。", "風が吹く。"), "zh": ("下雨了。", "刮风了。"), "hi": ("बारिश हुई। ", "हवा चली।"),
        "bn": ("বৃষ্টি হলো। ", "বাতাস বইল।"), "pa": ("ਮੀਂਹ ਪਿਆ। ", "ਹਵਾ ਚੱਲੀ।"), "ur": ("بارش ہوئی۔ ", "ہوا چلی۔"),
        "gu": ("વરસાદ પડ્યો અને થોભ્યો. ", "પવન વાયો અને થોભ્યો."), "th": ("ฝนตก! ", "ลมพัด!"),
    }.get(code, ("It rained outside! ", "Wind blew."))  # fmt: skip
    found = splitter(code, "paper")(first + second)
    assert [s.strip() for s in found] == [first.strip(), second.strip()]


@needs_extra
def test_a_trained_pipeline_is_used_where_it_is_installed(monkeypatch):
    import spacy

    trained = spacy.blank("de")
    trained.add_pipe("sentencizer", config={"punct_chars": ["|"]})
    monkeypatch.setattr(spacy.util, "is_package", lambda name: name == "de_core_news_sm")
    monkeypatch.setattr(spacy, "load", lambda name, exclude: {"de_core_news_sm": trained}[name])
    text = "Eins. Zwei | Drei."
    assert [text[:cut] for cut in splitters.spacy("de")(text)] == ["Eins. Zwei |", text]
    assert [text[:cut] for cut in splitters.spacy("fr")(text)] == ["Eins.", text]
