"""translation/degeneration.py: loops are found, repetitions that people write are not."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xlc_utils.translation.degeneration import loop, problem


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("the the the the", "the"),
        ("It is a star. It is a star. It is a star. It is a star.", "It is a star."),
        ("A star " + "and a planet " * 4, "and a planet"),
        ("No no NO No", "No"),
        ("This is a sentence that is a good deal longer than a dozen words, and the model says it again. " * 4, None),
        ("私はそれが好きです。" * 4, "私はそれが好きです。"),
        ("これは星です。" + "とても" * 6, "とても"),
        ("星" * 30, "星"),
        ("它是一颗恒星，" * 5, None),
        ("สวัสดี" * 6, None),
        ("The answer is " + "ha" * 15, "ha"),
    ],
)
def test_a_loop_is_found(text: str, phrase: str | None):
    found = loop(text)
    assert found is not None and found in text
    if phrase is not None:
        assert found.casefold() == phrase.casefold()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "word",
        "Fly, fly, fly, little bird; over and over and over the hill, fly, fly, fly.",
        "We shall fight on the beaches, we shall fight on the landing grounds, we shall fight in the fields and in the "
        "streets, we shall fight in the hills.",
        "a very, very, very long way",
        "| --- | --- | --- | --- | --- |",
        "_ _ _ _ _ _ _ _",
        "______________________________",
        "Well ... ... ... ... who knows",
        "……………………………………………………………………",
        "------------------------------------------",
        "1. apples 2. pears 3. plums 4. cherries 5. figs",
        "- the cat\n- the dog\n- the bird\n- the fish\n- the horse",
        "bye bye bye",
        "すごいなあああああ！それはとてもきれいな星ですね。",
        "ハハハハハ、それは面白いですね。本当にそう思いますよ。",
        "https://example.org/a/b/c/d/e/f/g/h/i",
        "Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch",
    ],
)
def test_what_people_write_is_no_loop(text: str):
    assert loop(text) is None


WORDS = st.lists(st.text("abcdefgh", min_size=1, max_size=5), min_size=1, max_size=12)


@settings(deadline=None)
@given(before=WORDS, phrase=WORDS, after=WORDS, times=st.integers(4, 9))
def test_any_phrase_said_four_times_in_a_row_is_a_loop(before, phrase, after, times):
    assert loop(" ".join([*before, *phrase * times, *after])) is not None


@settings(deadline=None)
@given(st.lists(st.integers(0, 10**6), unique=True, max_size=40))
def test_words_that_never_recur_are_no_loop(words):
    assert loop(" ".join(f"w{w}" for w in words)) is None


def test_the_found_phrase_does_follow_itself_four_times():
    words = ("x y z " * 4 + "end").split()
    phrase = loop(" ".join(words)).split()
    runs = [words[i : i + 4 * len(phrase)] == phrase * 4 for i in range(len(words))]
    assert any(runs)


def test_a_long_text_takes_no_time():
    start = time.perf_counter()
    loop(" ".join(f"w{i}" for i in range(5000)))
    loop("".join(chr(0x4E00 + i) for i in range(5000)))
    assert time.perf_counter() - start < 3


@pytest.mark.parametrize(
    ("source", "translation", "language", "said"),
    [
        ("Das Wasser kocht bei hundert Grad.", "", "de", "empty"),
        ("Das Wasser kocht bei hundert Grad.", " \n", "de", "empty"),
        ("Das Wasser kocht bei hundert Grad.", "It boils and boils and boils and boils and boils.", "de", "repeats"),
        ("Das Wasser kocht bei hundert Grad.", "Water", "de", "length ratio 0.15"),
        ("Das Wasser kocht.", "Water boils, and " + " ".join(f"so {i}" for i in range(40)), "de", "length ratio"),
        ("Das Wasser kocht bei hundert Grad.", "das wasser kocht bei hundert grad. ", "de", "copy of the source"),
        ("水は百度で沸騰します。とても熱い。", "水は百度で沸騰します。とても熱い。", "ja", "copy of the source"),
        ("पानी सौ डिग्री पर उबलता है।", "पानी सौ डिग्री पर उबलता है।", "hi", "copy of the source"),
        ("Вода закипает.", "Вода закипает.", "ru", "copy of the source"),
        ("水は百度で沸騰します。とても熱い。", "W.", "ja", "length ratio"),
    ],
)
def test_what_cannot_be_a_translation_is_told(source: str, translation: str, language: str, said: str):
    assert problem(source, translation, language).startswith(said)


@pytest.mark.parametrize(
    ("source", "translation", "language"),
    [
        ("Das Wasser kocht bei hundert Grad.", "Water boils at a hundred degrees.", "de"),
        (
            "水は百度で沸騰する。これは有名な事実である。",
            "Water boils at a hundred degrees. This is a well-known fact.",
            "ja",
        ),
        ("물은 백 도에서 끓고 수증기가 된다.", "Water boils at a hundred degrees and turns into steam.", "ko"),
        ("Sí.", "Yes, it certainly is, without any doubt.", "es"),  # short sources say nothing about ratios
        ("Wolfgang Amadeus Mozart", "Wolfgang Amadeus Mozart", "de"),
        ("Édouard Manet", "Édouard Manet", "fr"),
        ("ja ja ja ja ja, sagte er zu uns", "yes yes yes yes yes, he said to us", "de"),
    ],
)
def test_a_translation_is_left_alone(source: str, translation: str, language: str):
    assert problem(source, translation, language) is None
