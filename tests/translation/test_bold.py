"""Bold inside a sentence, through translators that keep the order of words, change it, or lose the words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xlc_utils.registry.outcomes import Outcome
from xlc_utils.translation.answers import translate_texts
from xlc_utils.translation.bold import marked, unmarked
from xlc_utils.translation.translators import Translation


class Knows:
    """A translator that knows these texts; keeps what it was asked."""

    name = "knows"

    def __init__(self, known: dict[str, str]):
        self._known, self.asked = known, []

    def can(self, source, target):
        return True

    def translate(self, sentences, source, target):
        self.asked += sentences
        return [Translation(self._known[s], Outcome.OK, self.name) for s in sentences]


@pytest.mark.parametrize(
    ("sentence", "known", "expected"),
    [
        (
            "Las **hojas verdes** captan la **luz**.",
            {"Las hojas verdes captan la luz.": "The green leaves catch the light.", "hojas verdes": "Green leaves."}
            | {"luz": "light"},
            "The **green leaves** catch the **light**.",
        ),
        (  # another order of words
            "पौधे **प्रकाश** से __भोजन__ बनाते हैं।",
            {"पौधे प्रकाश से भोजन बनाते हैं।": "Plants make food from light.", "प्रकाश": "Light", "भोजन": "Food"},
            "Plants make __food__ from **light**.",
        ),
        (  # twice the same words, once bold each
            "**水**は**水**です。",
            {"水は水です。": "Water is water.", "水": "water"},
            "**Water** is **water**.",
        ),
        (  # a part of a word is taken last
            "El **arte** parte de aquí.",
            {"El arte parte de aquí.": "Part of the art starts here.", "arte": "art"},
            "Part of the **art** starts here.",
        ),
        (
            "Nació en **1905** y vivió.",
            {"Nació en 1905 y vivió.": "He was born in 1905 and lived."},
            "He was born in **1905** and lived.",
        ),
        (
            "Usa **`ls -l`** y mira.",
            {"Usa X1 y mira.": "Use X1 and look.", "X1": "X1"},
            "Use **`ls -l`** and look.",
        ),
    ],
)
def test_bold_is_around_the_same_words(sentence: str, known: dict[str, str], expected: str):
    translator = Knows(known)
    new, rows = translate_texts([sentence], "es", "en", translator)
    assert new == [expected] and set(translator.asked) == set(known) and rows["detail"].tolist() == [""]


def test_lost_bold_is_said():
    known = {"La luz blanca llega.": "White light arrives.", "luz blanca": "bright lamp"}
    new, rows = translate_texts(["La **luz blanca** llega."], "es", "en", Knows(known))
    assert new == ["White light arrives."] and rows["detail"].tolist() == ["its bold is lost"]
    assert rows["source"].tolist() == ["La **luz blanca** llega."]


def test_into_a_language_without_spaces():
    assert marked("植物は光から食物を作ります。", [("**", "光。")]) == "植物は**光**から食物を作ります。"


@pytest.mark.parametrize(
    "text", ["2 ** 3", "a ** b ** c", "**", "** **", "un * solo", "snake_case_name", "my__own__name", "***"]
)
def test_what_is_not_bold_stays(text: str):
    assert unmarked(text) == (text, [])


_words = st.lists(st.text(alphabet="abcदऔ光", min_size=1, max_size=6), min_size=1, max_size=8, unique=True)


@given(words=_words, bold=st.sets(st.integers(0, 7)), mark=st.sampled_from(["**", "__"]))
def test_what_is_not_changed_is_bold_where_it_was(words: list[str], bold: set[int], mark: str):
    sentence = " ".join(f"{mark}{w}{mark}" if i in bold else w for i, w in enumerate(words))
    plain, phrases = unmarked(sentence)
    assert plain == " ".join(words) and phrases == [(mark, w) for i, w in enumerate(words) if i in bold]
    assert marked(plain, phrases) == sentence
