"""Words, lemmas, TTR, MATTR and self-BLEU, against NLTK and plain definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from short_dialogues import TEXTS, dialogue

from xlc_utils.judges.lexical import (
    dialogue_tokens,
    lemmatiser,
    mattr,
    self_bleu_scores,
    stop_words,
    tokens,
    ttr,
    words,
)
from xlc_utils.registry.problems import Problem

# Few words and short texts, so that n-grams are shared, repeated and missing in every combination.
TEXTS_OF_FEW_WORDS = st.lists(st.lists(st.sampled_from("abcd"), max_size=9), max_size=7)


def nltk_self_bleu(texts):
    """NLTK called text by text, as the authors do: texts without tokens are left out first."""
    scores = np.full(len(texts), np.nan)
    filled = [i for i, text in enumerate(texts) if text]
    for i in filled if len(filled) > 1 else ():
        others = [texts[j] for j in filled if j != i]
        scores[i] = sentence_bleu(others, texts[i], smoothing_function=SmoothingFunction().method4)
    return scores


@given(TEXTS_OF_FEW_WORDS)
@settings(max_examples=300, deadline=None)
def test_self_bleu_equals_nltk_on_few_words(texts):
    np.testing.assert_allclose(self_bleu_scores(texts), nltk_self_bleu(texts), rtol=0, atol=1e-12)


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("granularity", ["whole", "agent", "client"])
def test_self_bleu_equals_nltk_on_dialogues(language, granularity):
    turns = TEXTS[language]
    dialogues = [
        dialogue(language, turns),
        dialogue(language, turns[::-1]),
        dialogue(language, turns[:3]),
        dialogue(language, turns * 2),
        dialogue(language, [turns[0], turns[3]]),
    ]
    texts = [dialogue_tokens(item, lemmatiser(language), granularity) for item in dialogues]
    scores = self_bleu_scores(texts)
    np.testing.assert_allclose(scores, nltk_self_bleu(texts), rtol=0, atol=1e-12)
    assert scores.max() > 0.3


def test_self_bleu_equals_nltk_on_long_texts():
    random = np.random.default_rng(0)
    texts = [[f"w{rank}" for rank in random.zipf(1.5, size=random.integers(1, 400))] for _ in range(20)]
    np.testing.assert_allclose(self_bleu_scores(texts), nltk_self_bleu(texts), rtol=0, atol=1e-12)


@given(TEXTS_OF_FEW_WORDS, st.randoms())
def test_self_bleu_belongs_to_the_text_not_to_its_place(texts, random):
    order = list(range(len(texts)))
    random.shuffle(order)
    np.testing.assert_allclose(self_bleu_scores([texts[i] for i in order]), self_bleu_scores(texts)[order])


def test_self_bleu_of_a_copy_is_1_and_of_a_stranger_0():
    copied = ["a", "b", "c", "d", "e"]
    np.testing.assert_allclose(self_bleu_scores([copied, copied, ["x", "y"]]), [1, 1, 0])


def test_self_bleu_needs_two_texts_with_tokens():
    assert np.isnan(self_bleu_scores([["a", "b"], [], []])).all()
    assert len(self_bleu_scores([])) == 0


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=60), st.integers(1, 30))
def test_mattr_is_the_mean_ttr_of_all_windows(found, window):
    if len(found) < window:
        expected = len(set(found)) / len(found)
    else:
        starts = range(len(found) - window + 1)
        expected = np.mean([len(set(found[start : start + window])) / window for start in starts])
    assert mattr(found, window) == pytest.approx(expected, abs=1e-12)


def test_mattr_of_fewer_than_100_tokens_is_ttr():
    found = ["a", "b"] * 45
    assert mattr(found) == ttr(found) == 2 / 90
    assert mattr(found + ["a", "b"] * 30) == 2 / 100
    assert ttr(found + ["a", "b"] * 30) == 2 / 150


def test_ttr_and_mattr_of_nothing_are_undefined():
    assert np.isnan(ttr([])) and np.isnan(mattr([]))


def test_words_are_runs_of_letters():
    assert words("Tere, Ülle! E-posti (2024) pakk–kott; don’t “Stop”…") == [
        "tere",
        "ülle",
        "e-posti",
        "pakk",
        "kott",
        "don't",
        "stop",
    ]
    assert words("o\u0308o\u0308") == ["öö"]  # combining marks are composed first
    assert words("Привет, мир 5") == ["привет", "мир"]


@pytest.mark.parametrize(
    ("language", "forms", "lemma"),
    [
        ("et", ["tellimuse", "tellimused", "tellimust"], "tellimus"),
        ("fi", ["tilauksen", "tilaukset", "tilausta"], "tilaus"),
        ("hu", ["rendelések", "rendelést", "rendelésem"], "rendelés"),
        ("en", ["orders", "order"], "order"),
    ],
)
def test_lemmatiser_joins_the_forms_of_a_word(language, forms, lemma):
    assert set(lemmatiser(language)(forms)) == {lemma}
    assert lemmatiser(language, "none")(forms) == forms


def test_lemmatiser_says_what_it_does_not_know():
    with pytest.raises(Problem, match="does not know the language 'xx'"):
        lemmatiser("xx")
    with pytest.raises(Problem, match="use one of simplemma"):
        lemmatiser("et", "magic")


def test_tokens_are_content_lemmas():
    assert tokens("I have checked the orders, and they aren't here.", "en", lemmatiser("en")) == ["check", "order"]
    assert tokens("Vaatasin teie tellimusi ja pakki.", "et", lemmatiser("et")) == ["vaatama", "tellimus", "pakk"]
    assert tokens("Olemme tarkistaneet tilauksen.", "fi", lemmatiser("fi")) == ["tarkistaa", "tilaus"]


def test_stop_word_lists_are_of_one_size_and_lower_case():
    for language in ("et", "fi", "hu", "en"):
        found = stop_words(language)
        assert 130 <= len(found) <= 180
        assert all(words(word) == [word] for word in found)


def test_stop_words_of_an_unknown_language():
    with pytest.raises(Problem, match=r"stopwords/xx\.txt"):
        stop_words("xx")


def test_dialogue_tokens_take_one_side_and_no_names():
    found = dialogue("en", ["Good morning", "The parcel", "Our warehouse"])
    lemmatise = lemmatiser("en", "none")
    assert dialogue_tokens(found, lemmatise) == ["good", "morning", "parcel", "warehouse"]
    assert dialogue_tokens(found, lemmatise, "agent") == ["good", "morning", "warehouse"]
    assert dialogue_tokens(found, lemmatise, "client") == ["parcel"]
