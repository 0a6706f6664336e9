"""Code inside a sentence, through translators that copy names, lose them, or double them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xlc_utils.registry.outcomes import Outcome
from xlc_utils.translation.answers import translate_texts
from xlc_utils.translation.translators import Translation
from xlc_utils.translation.verbatim import masked, restored, translate_around_code


class Says:
    """A translator that says what a function says; keeps what it was asked."""

    name = "says"

    def __init__(self, says: Callable[[str], str]):
        self._says, self.asked = says, []

    def can(self, source, target):
        return True

    def translate(self, sentences, source, target):
        self.asked += sentences
        return [Translation(self._says(s), Outcome.OK, self.name) for s in sentences]


@given(st.text(alphabet="aX12` é।", max_size=40))
def test_what_is_hidden_comes_back(sentence: str):
    text, names = masked(sentence)
    followed_by_digit = any(code + digit in sentence for code in names.values() for digit in "12")
    assert restored(text, names) == sentence or followed_by_digit
    assert all(code in sentence for code in names.values())


@pytest.mark.parametrize(
    ("sentence", "hidden"),
    [
        ("Usa `ls -l` y luego `wc`.", "Usa X1 y luego X2."),
        ("La forma X1 es `f(x)`.", "La forma X1 es X2."),
        ("चलाइए ``a`b`` अभी।", "चलाइए X1 अभी।"),
        ("Un ` solo.", "Un ` solo."),
    ],
)
def test_code_is_hidden_behind_a_name(sentence: str, hidden: str):
    assert masked(sentence)[0] == hidden


def test_code_stays_where_it_was_in_a_document():
    translator = Says(str.upper)
    new, rows = translate_texts(["- Usa `ls -l` y mira."], "es", "en", translator)
    assert new == ["- USA `ls -l` Y MIRA."] and translator.asked == ["Usa X1 y mira."]
    assert rows["source"].tolist() == ["Usa `ls -l` y mira."] and rows["detail"].tolist() == [""]


@pytest.mark.parametrize("spoilt", ["Use it and look.", "Use X1 and X1.", "Use X12."])
def test_a_lost_name_sends_the_sentence_as_it_is(spoilt: str):
    translator = Says(lambda s: spoilt if "X1" in s else "Use `ls` and look.")
    [found] = translate_around_code(translator, ["Usa `ls` y mira."], "es", "en")
    assert found.text == "Use `ls` and look." and found.detail == "its code went through the translator"
    assert found.rejected == (spoilt,) and found.attempts == 2
