"""The rating page in a real browser, driven with keys, clicks and files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from headless_chromium import Chromium, Tab, installed

from xlc_utils.fidelity.rating_scales import DIALOGUE
from xlc_utils.fidelity.rating_sheets import (
    dialogue_labels,
    read_ratings,
    returned_ratings,
    sample_dialogues,
    sample_snippets,
    write_pages,
)

in_a_browser = pytest.mark.skipif(not installed(), reason="no Chromium: install the package chromium to test the page")
ON = "document.activeElement"
CHOSEN = "[...document.querySelectorAll('input:checked')].map(radio => `${radio.name}=${radio.value}`).join(' ')"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    chromium = Chromium(tmp_path_factory.mktemp("profile"))
    yield chromium
    chromium.close()


@pytest.fixture(scope="module")
def hindi(run, sentences) -> tuple[Path, pd.DataFrame]:
    sheets = sample_snippets(sentences("hi"), sheets=1, seed=1)
    return write_pages(run, "hi", sheets)[0], sheets


@pytest.fixture(scope="module")
def estonian(run) -> tuple[Path, pd.DataFrame]:
    """Two dialogues of a generator."""
    turns = [
        {"sender": "agent", "name": "Mari", "text": "Tere! Kuidas saan aidata?"},
        {"sender": "customer", "name": "", "text": "Tere! Tellisin ühe lambi, aga arvel on kaks."},
    ]
    one = {"language": "et", "generator": "one", "turns": json.dumps(turns)}
    dialogues = pd.DataFrame([{**one, "dialogue_id": "a"}, {**one, "dialogue_id": "b"}])
    sheets = sample_dialogues(dialogues, sheets=1, seed=1)
    return write_pages(run, "et", sheets, DIALOGUE)[0], sheets


def focus(tab: Tab, selector: str) -> None:
    tab.js(f"document.querySelector('{selector}').focus()")


def rate_all(tab: Tab) -> None:
    for item in range(1, 11):
        focus(tab, f"#item-{item}")
        digit = str(item % 5 + 1)
        tab.press(digit, f"Digit{digit}")


@in_a_browser
def test_rated_reloaded_downloaded_and_loaded_elsewhere(browser, hindi, tmp_path):
    page, sheets = hindi
    tab = browser.open(page)
    assert tab.text("#count") == "0 of 10"
    rate_all(tab)
    focus(tab, "#comment-3")
    tab.type("'द' <b>छूट गया</b> \"2 & 3\"")
    focus(tab, "#annotator")
    tab.type("रमा 7/b")
    tab.reload()
    assert tab.text("#count") == "10 of 10"
    file = tab.download_by("#download", tmp_path / "ratings")
    assert file.name == "fidelity_hi-1_रमा_7_b.json"
    assert tab.text("#message").endswith("All items are rated.")

    ratings = returned_ratings(tmp_path / "ratings", sheets)
    assert ratings["rating"].tolist() == [2, 3, 4, 5, 1, 2, 3, 4, 5, 1]
    assert ratings["item"].tolist() == list(range(1, 11))
    assert ratings["source"].tolist() == sheets["source"].tolist()
    assert ratings["model"].tolist() == sheets["model"].tolist()
    assert set(ratings["annotator"]) == {"रमा 7/b"}
    assert ratings["comment"][2] == "'द' <b>छूट गया</b> \"2 & 3\""

    other = browser.open(page)
    assert other.text("#count") == "0 of 10"
    other.give_file("#load", file)
    other.until("document.getElementById('message').textContent.startsWith('Loaded')")
    assert other.text("#count") == "10 of 10"
    other.reload()
    again = other.download_by("#download", tmp_path / "again")
    assert again.read_bytes() == file.read_bytes()


@in_a_browser
def test_ratings_outlive_the_browser(hindi, tmp_path):
    page, _ = hindi
    for expected in ("0 of 10", "1 of 10"):
        chromium = Chromium(tmp_path / "profile")
        try:
            tab = chromium.open(page, private=False)
            assert tab.text("#count") == expected
            tab.click("#item-2 label:has([value='4'])")
        finally:
            chromium.close()


@in_a_browser
def test_other_texts_start_empty(browser, run, sentences):
    first, second = (sample_snippets(sentences("pt"), sheets=1, seed=seed) for seed in (1, 2))
    tab = browser.open(write_pages(run, "pt", first)[0])
    rate_all(tab)
    write_pages(run, "pt", second)
    tab.reload()
    assert tab.text("#count") == "0 of 10"


@in_a_browser
def test_keyboard_alone(browser, hindi):
    tab = browser.open(hindi[0])
    focus(tab, "#annotator")
    tab.press("Tab")
    assert tab.js(f"{ON}.id") == "item-1"
    assert tab.js(f"getComputedStyle({ON}).outlineStyle") == "solid"
    tab.press("3", "Digit3")
    assert tab.text("#state-1") == "✓ rated"
    tab.press("Tab")  # into the item: the radio button that was chosen
    assert tab.js(f"{ON}.value") == "3"
    assert tab.js(f"getComputedStyle({ON}.closest('label')).outlineStyle") == "solid"
    tab.press("5", "Numpad5")
    assert tab.js(CHOSEN) == "rating-1=5"
    tab.press("Tab")
    assert tab.js(f"{ON}.id") == "comment-1"
    tab.press("2", "Digit2")  # here it is text
    assert tab.js(CHOSEN) == "rating-1=5"
    assert tab.js(f"{ON}.value") == "2"
    tab.press("Tab")
    assert tab.js(f"{ON}.id") == "item-2"
    tab.press("Tab", shift=True)
    assert tab.js(f"{ON}.id") == "comment-1"
    tab.click("#next")
    assert tab.js(f"{ON}.id") == "item-2"


@in_a_browser
@pytest.mark.parametrize(("key", "code"), [("४", "Digit4"), ("٤", "Digit4"), ("'", "Digit4"), ("4", "Digit7")])
def test_keys_of_other_layouts(browser, hindi, key, code):
    """Devanagari and Arabic digits, AZERTY without Shift, and a layout that has its 4 elsewhere."""
    tab = browser.open(hindi[0])
    focus(tab, "#item-6")
    tab.press(key, code)
    assert tab.js(CHOSEN) == "rating-6=4"


@in_a_browser
def test_no_key_of_another_meaning_rates(browser, hindi):
    tab = browser.open(hindi[0])
    focus(tab, "#item-1")
    for key, code in (("6", "Digit6"), ("0", "Digit0"), ("y", "KeyY"), ("Enter", "Enter")):
        tab.press(key, code)
    assert tab.js(CHOSEN) == ""


@in_a_browser
def test_dialogues_are_asked_two_questions(browser, estonian, tmp_path):
    page, sheets = estonian
    tab = browser.open(page)
    focus(tab, "#item-1")
    tab.press("н", "KeyY")  # a Cyrillic layout
    assert tab.text("#count") == "0 of 2"
    tab.press("2", "Digit2")
    assert tab.text("#count") == "1 of 2"
    focus(tab, "#item-2")
    tab.press("n", "KeyN")
    tab.press("0", "Digit0")
    focus(tab, "#annotator")
    tab.type("A1")
    tab.download_by("#download", tmp_path / "ratings")
    labels = dialogue_labels(returned_ratings(tmp_path / "ratings", sheets, DIALOGUE))
    first, second = sheets["prompt_id"]
    assert labels.to_numpy().tolist() == [
        ["et", "A1", f"one/{first}", "coherence", 1], ["et", "A1", f"one/{first}", "fluency", 2],
        ["et", "A1", f"one/{second}", "coherence", 0], ["et", "A1", f"one/{second}", "fluency", 0],
    ]  # fmt: skip


@in_a_browser
def test_an_unfinished_sheet_says_what_is_missing(browser, hindi, tmp_path):
    tab = browser.open(hindi[0])
    tab.click("#download")
    assert tab.text("#message") == "Write your name or number first."
    assert tab.js(f"{ON}.id") == "annotator"
    tab.type("A1")
    rate_all(tab)
    tab.js("document.querySelectorAll('#item-2 input, #item-9 input').forEach(radio => radio.checked = false)")
    file = tab.download_by("#download", tmp_path)
    assert tab.text("#message").endswith("Without a rating: 2, 9.")
    assert read_ratings(file)["rating"].isna().tolist() == [item in (2, 9) for item in range(1, 11)]


@in_a_browser
def test_files_of_something_else_are_refused(browser, hindi, estonian, tmp_path):
    tab = browser.open(estonian[0])
    tab.js("document.getElementById('annotator').value = 'A1'")
    of_another_sheet = tab.download_by("#download", tmp_path)
    (tmp_path / "list.json").write_text("[1]", encoding="utf-8")
    (tmp_path / "text.json").write_text("no JSON", encoding="utf-8")
    tab = browser.open(hindi[0])
    rate_all(tab)
    for file, told in (
        (of_another_sheet, "This file is of sheet et-1 with other texts, not of this one."),
        (tmp_path / "list.json", "This is no file of ratings."),
        (tmp_path / "text.json", "This is no file of ratings."),
    ):
        tab.js("document.getElementById('message').textContent = ''")
        tab.give_file("#load", file)
        tab.until("document.getElementById('message').textContent")
        assert tab.text("#message") == told
    assert tab.text("#count") == "10 of 10"


@in_a_browser
def test_nothing_is_replaced_or_deleted_unasked(browser, hindi, tmp_path):
    tab = browser.open(hindi[0])
    rate_all(tab)
    tab.js("document.getElementById('annotator').value = 'A1'")
    file = tab.download_by("#download", tmp_path)
    focus(tab, "#item-1")
    tab.press("5", "Digit5")
    tab.give_file("#load", file)
    assert tab.answer_dialog(accept=False) == "Replace the ratings on this page by those of the file?"
    assert tab.js(CHOSEN).startswith("rating-1=5")
    tab.give_file("#load", file)
    tab.answer_dialog(accept=True)
    tab.until(f"{CHOSEN}.startsWith('rating-1=2')")
    tab.js("setTimeout(() => document.getElementById('clear').click())")  # a click waits for the question's answer
    assert tab.answer_dialog(accept=True) == "Delete all ratings and comments on this page?"
    tab.until("document.getElementById('count').textContent === '0 of 10'")
    tab.reload()
    assert tab.text("#count") == "0 of 10"


@in_a_browser
def test_what_a_screen_reader_says(browser, hindi):
    tab = browser.open(hindi[0])
    tab.call("Accessibility.enable")
    nodes = [n for n in tab.call("Accessibility.getFullAXTree")["nodes"] if not n["ignored"]]

    def said(role: str) -> list[str]:
        return [n["name"]["value"] for n in nodes if n["role"]["value"] == role]

    assert said("radio")[:5] == ["1 · None", "2 · Little", "3 · Most", "4 · Nearly all", "5 · All"]
    assert len(said("radio")) == 50
    assert "Item 4: How much of the content does the translation keep?" in said("group")
    assert any(name.startswith("Item 4 of 10") for name in said("group"))
    assert {"Your name or number", "Comment on item 4"} <= set(said("textbox"))
    assert said("progressbar") == ["Items rated"]
    described = [n["description"]["value"] for n in nodes if n["role"]["value"] == "radio"]
    assert described[4] == "everything the original says, and nothing it does not say."


@in_a_browser
@pytest.mark.parametrize(("language", "direction"), [("hi", "ltr"), ("ar", "rtl"), ("ja", "ltr")])
def test_texts_have_their_language_direction_and_font(browser, run, sentences, language, direction):
    sheets = sample_snippets(sentences(language), sheets=1, seed=1)
    tab = browser.open(write_pages(run, language, sheets)[0])
    source = "document.querySelector('.source')"
    assert tab.js(f"{source}.lang") == language
    assert tab.js(f"getComputedStyle({source}).direction") == direction
    assert tab.js(f"getComputedStyle({source}).fontFamily").startswith(f'"{run.languages[language].font}"')
    assert tab.js(f"{source}.textContent") == sheets["source"][0]
    assert tab.js("document.querySelector('.translation').lang") == "en"
    assert tab.js("document.documentElement.scrollWidth <= innerWidth")


@in_a_browser
def test_it_asks_nothing_of_the_network_and_complains_of_nothing(browser, hindi):
    browser.events.clear()
    tab = browser.open(hindi[0])
    rate_all(tab)
    tab.reload()
    asked = [e["params"]["request"]["url"] for e in browser.events if e["method"] == "Network.requestWillBeSent"]
    assert {url.partition(":")[0] for url in asked} == {"file"}
    assert not [e for e in browser.events if e["method"] in ("Log.entryAdded", "Runtime.exceptionThrown")]


@in_a_browser
def test_on_a_phone_and_on_paper(browser, hindi):
    tab = browser.open(hindi[0], width=360, height=700)
    assert tab.js("document.documentElement.scrollWidth <= innerWidth")
    pages = len(re.findall(rb"/Type\s*/Page\b", tab.pdf()))
    assert 2 <= pages <= 5
    tab.call("Emulation.setEmulatedMedia", media="print")
    assert tab.js("getComputedStyle(document.querySelector('.bar')).display") == "none"


@in_a_browser
def test_texts_cannot_break_out_of_the_page(browser, run):
    hostile = "</script><img src=x onerror=\"document.title='broken'\"> {{ 7 * 7 }} ${1} \\u003c"
    row = {"sheet": 1, "item": 1, "model": "m", "language": "es", "prompt_id": "p", "source": hostile}
    tab = browser.open(write_pages(run, "es", pd.DataFrame([{**row, "translation": hostile}]))[0])
    assert tab.text(".source") == tab.text(".translation") == hostile
    assert tab.js("sheet.items[0].source") == hostile
    assert tab.js("document.title") == "Rating sheet es-1"


def test_a_page_is_one_file_that_names_no_model(run, hindi):
    page, sheets = hindi
    html = page.read_text(encoding="utf-8")
    assert not re.search(r"\b(src|href)=", html)
    assert "http" not in html.replace("http-equiv", "")
    handed_out = html + page.with_suffix(".csv").read_text(encoding="utf-8-sig")
    assert not set(sheets["prompt_id"]) & set(re.findall(r"[\w-]+", handed_out))
    assert "model" not in page.with_suffix(".csv").read_text(encoding="utf-8-sig").partition("\n")[0]
    key = run.read_csv("rating_sheets/fidelity/hi_key", "03")
    pd.testing.assert_frame_equal(key, sheets)
