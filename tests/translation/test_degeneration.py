"""translation/degeneration.py: loops are found, repetitions that people write are not."""

from __future__ import annotations

import time

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xlc_utils.registry import languages
from xlc_utils.translation import degeneration, known_degeneration
from xlc_utils.translation.degeneration import in_wrong_script, length_band, loop, problem


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


def test_known_cases_are_told_as_well_as_the_committed_table_says(root):
    cases = known_degeneration.cases(root)
    codes = {c.source_language for c in cases} | {c.target_language for c in cases}
    assert len(cases) >= 120 and len(codes - {"en"}) >= 15
    committed = pd.read_csv(known_degeneration.COMMITTED)
    pd.testing.assert_frame_equal(known_degeneration.measured(root), committed, check_dtype=False)
    of_all = committed.set_index("wrong").loc["anything"]
    assert of_all["precision"] == 1 and of_all["recall"] >= 0.9


def test_legitimate_repetition_raises_no_alarm(root):
    good = [c for c in known_degeneration.cases(root) if c.wrong is None]
    alarms = [c for c in good if problem(c.source, c.text, c.source_language, c.target_language)]
    assert len(good) >= 60 and not alarms


def test_the_usual_lengths_are_those_of_the_known_sentences(root):
    committed = pd.read_csv(degeneration.LENGTHS)
    pd.testing.assert_frame_equal(known_degeneration.lengths(root), committed)
    assert set(committed["language"]) == set(languages.load(root))


def test_a_band_mirrors_the_opposite_direction():
    low, high = length_band("ja", "en")
    back_low, back_high = length_band("en", "ja")
    assert low * back_high == pytest.approx(1) and high * back_low == pytest.approx(1)
    assert low > length_band("de", "en")[0], "Japanese packs more into a character"


@pytest.mark.parametrize(
    ("text", "language", "wrong"),
    [
        ("Water boils at a hundred degrees.", "en", False),
        ("Вода кипит при ста градусах.", "en", True),
        ("Water boils at a hundred degrees.", "hi", True),
        ("NASA ने GPS को बनाया।", "hi", False),
        ("水は百度で沸騰します。", "ja", False),
        ("물은 백 도에서 끓어 수증기가 된다.", "ja", True),
        ("Вода", "en", False),  # too short to tell from a name
    ],
)
def test_a_wrong_script_is_told(text: str, language: str, wrong: bool):
    assert in_wrong_script(text, language) is wrong


def test_a_text_that_says_all_twice_is_degenerate():
    said = "The lake gave them water and fish."
    assert problem("Der See gab ihnen Wasser und Fisch.", f"{said} {said}", "de") == "says everything twice"
    assert problem("Ja, das ist so. Ja, das ist so.", "Yes, that is so. Yes, that is so.", "de") is None
