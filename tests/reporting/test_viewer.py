"""The page of a run's answers: what enters it, and how it behaves in a real browser."""

from __future__ import annotations

import base64
import gzip
import json
import re
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from headless_chromium import Chromium, Tab, installed

from xlc_utils import cli
from xlc_utils.judges import probe
from xlc_utils.registry import prompts
from xlc_utils.registry.problems import Problem
from xlc_utils.reporting import viewer
from xlc_utils.running.params import Params
from xlc_utils.running.run import Run

in_a_browser = pytest.mark.skipif(not installed(), reason="no Chromium: install the package chromium to test the page")
HOSTILE = 'Look: </script><script>document.title = "taken"</script><img src=x onerror="document.title = 1"> & <b>so</b>'
SECRET = "a post that may not be passed on"
ENGLISH = "The Moon reflects sunlight. One cycle takes 29.5 days. 🌒 It is round."
TEXTS = {
    "en": (ENGLISH, ENGLISH),
    "ar": ("القمر يعكس ضوء الشمس.", "The Moon reflects light. It is made of cheese."),
    "hi": ("चंद्रमा प्रकाश को परावर्तित करता है।", HOSTILE),
    "ja": (HOSTILE, "An answer in words that no claim repeats."),
}
CLAIMS = {
    "en": ["The Moon reflects sunlight.", "One cycle takes 29.5 days.", "It is round."],
    "ar": ["The Moon reflects light.", "It is made of cheese."],
    "hi": [HOSTILE],
    "ja": ["A claim of a model, reworded."],
}
OUTCOMES = {"en": "ok", "ar": "ok", "hi": "truncated", "ja": "off_target"}


def a_run(root: Path, folder: Path) -> Run:
    (folder / "params").symlink_to(root / "params")
    return Run(folder, Params(run_name="here"), set(), "07_figures")


def answer(dimension: str, prompt_id: str, language: str, prompt: str, **changes: object) -> dict:
    text, english = TEXTS[language]
    return {
        "dimension": dimension, "prompt_id": prompt_id, "language": language, "prompt": prompt, "text": text,
        "english": english, "outcome": OUTCOMES[language], "detail": "", "detected": "ru", "translator": "a translator",
    } | changes  # fmt: skip


def verdict(language: str, direction: str, number: int, supported: bool, outcome: str = "ok") -> dict:
    return {
        "prompt_id": "astronomy-02", "language": language, "direction": direction, "claim_no": number, "claim": "",
        "verifier": "lexical", "score": 0.5, "supported": supported, "outcome": outcome, "detail": "",
    }  # fmt: skip


def write_small(run: Run) -> None:
    """One model, a prompt of each kind in four languages, one judged dialogue, one prompt whose text is not ours."""
    asked = {d: {c: prompts.prompts(run.root, d, c) for c in TEXTS} for d in prompts.DIMENSIONS}
    rows = [
        answer(dimension, i, code, asked[dimension][code][i])
        for dimension, i in (("information", "astronomy-02"), ("empathy", "post-01"))
        for code in TEXTS
    ]
    rows += [answer("empathy", "epitome-001", c, SECRET) for c in ("en", "ar")]
    rows += [answer("information", "biology-01", c, SECRET) for c in ("en", "ar")]
    answers = pd.DataFrame(rows)
    run.write("responses", "one", answers.drop(columns=["english", "translator"]))
    run.write("translations", "one", answers)
    claims = [
        {"prompt_id": "astronomy-02", "language": code, "claim_no": i, "claim": claim, "outcome": "ok"}
        for code, own in CLAIMS.items()
        for i, claim in enumerate(own, 1)
    ]
    run.write("claims", "one", pd.DataFrame(claims[::-1]))
    verdicts = [
        verdict("ar", "recall", 3, False, "unparsed"), verdict("ar", "recall", 1, True),
        verdict("ar", "recall", 2, False), verdict("ar", "precision", 2, False), verdict("ar", "precision", 1, True),
        verdict("hi", "precision", 1, False), verdict("ja", "precision", 1, True),
    ]  # fmt: skip
    run.write("verdicts", "one", pd.DataFrame(verdicts))
    scores = [("ar", 0.5, 0.5, 0.5), ("hi", 0.25, 1.0, 0.4), ("ja", np.nan, np.nan, np.nan)]
    information = pd.DataFrame(scores, columns=["language", "precision", "recall", "f"])
    reasons = ["", "", "off_target: left out"]
    run.write("information", "one", information.assign(prompt_id="astronomy-02", outcome="ok", reason=reasons))
    profiles = [("en", 1.0, 0.0, 1.0), ("ar", 1.0, 1.0, 1.0), ("hi", np.nan, np.nan, np.nan)]
    frame = pd.DataFrame(profiles, columns=["language", "ER", "IP", "EX"])
    run.write("profiles", "one", frame.assign(prompt_id="post-01", outcome="ok"))
    same = pd.DataFrame([("ar", 1.0, 0.0, 1.0)], columns=["language", "same_ER", "same_IP", "same_EX"])
    run.write("empathy", "one", same.assign(prompt_id="post-01", consistent=0.0, reason="", outcome="ok"))
    turns = json.dumps(
        [{"sender": "agent", "name": "Mari", "text": "Tere!"}, {"sender": "customer", "name": "", "text": HOSTILE}]
    )
    dialogue = {"dialogue_id": "d-1", "generator": "gen", "turns": turns, "outcome": "ok", "detail": ""}
    run.write("dialogues", "gen", pd.DataFrame([{**dialogue, "language": c} for c in ("en", "et")]))
    said = {"dialogue_id": "d-1", "generator": "gen", "judge": "judge", "detail": ""}
    judged = [
        {**said, "language": "en", "G": 4.0, "R": 4.0, "C": 3.0, "F": 3.0, "explanation": HOSTILE, "outcome": "ok"},
        {**said, "language": "et", **dict.fromkeys("GRCF", np.nan), "explanation": "", "outcome": "unparsed"},
    ]
    run.write("judge_scores", "judge", pd.DataFrame(judged))
    run.write("judge_scores", "blind", pd.DataFrame(judged[:1]).assign(judge="blind"))
    pairs = probe.probe_dialogues(run.root, ["en"])
    for judge, sees in (("judge", 1.0), ("blind", 0.0)):
        better = sees * (pairs["version"] == "sound")
        scored = pairs[["dialogue_id", "language", "generator", "outcome"]].assign(judge=judge)
        run.write("judge_probe", judge, scored.assign(**{score: better for score in "GRCF"}))
    run.finish()


@pytest.fixture(scope="module")
def small(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = a_run(root, tmp_path_factory.mktemp("small"))
    write_small(run)
    return run


@pytest.fixture(scope="module")
def page(small: Run) -> Path:
    return viewer.write(small)


def packed(page: str) -> dict:
    text = re.search(r'id="packed">([^<]*)</script>', page)[1]
    return json.loads(gzip.decompress(base64.b64decode(text)))


# ---- what enters it --------------------------------------------------------------------------------------------------
def item(run: Run, kind: str, language: str, prompt: str | None = None) -> dict:
    (one,) = (
        i
        for i in viewer.collected(run)
        if (i["kind"], i["language"]) == (kind, language) and prompt in (None, i["prompt"])
    )
    return one


def test_verdicts_stand_in_the_order_of_the_claims(small):
    arabic = item(small, "information", "ar", "astronomy-02")
    assert arabic["claims"] == CLAIMS["ar"]
    assert arabic["verdicts"] == {"by": "lexical", "precision": [1, 0], "recall": [1, 0, None]}
    assert (arabic["score"], arabic["precision"], arabic["recall"]) == (0.5, 0.5, 0.5)


def test_what_is_missing_is_no_number(small):
    assert item(small, "information", "ja", "astronomy-02")["score"] is None
    assert item(small, "information", "ja", "astronomy-02")["reason"] == "off_target: left out"
    assert item(small, "empathy", "hi", "post-01")["profile"] == {"ER": None, "IP": None, "EX": None}
    assert item(small, "empathy", "ar", "post-01")["score"] == pytest.approx(2 / 3)
    assert item(small, "dialogues", "et")["score"] is None
    assert item(small, "dialogues", "en")["score"] == 1


def test_a_prompt_is_shown_only_if_it_is_ours(small, page):
    """EPITOME's posts have ids of their own; a text under one of our ids that is not ours stays away as well."""
    content = page.read_text(encoding="utf-8")
    data = packed(content)
    assert SECRET not in content + json.dumps(data)
    assert item(small, "empathy", "ar", "epitome-001")["asked"] == ""
    assert item(small, "information", "ar", "biology-01")["asked"] == ""
    own = prompts.prompts(small.root, "empathy", "ar")["post-01"]
    assert item(small, "empathy", "ar", "post-01")["asked"] == own


def test_a_run_that_has_only_asked_can_be_read(root, tmp_path):
    run = a_run(root, tmp_path)
    with pytest.raises(Problem, match="no answers to read yet"):
        viewer.collected(run)
    asked = pd.DataFrame([answer("information", "astronomy-02", c, "?", text=None) for c in TEXTS])
    run.write("responses", "one", asked.drop(columns=["english", "translator"]))
    run.finish()
    items = viewer.collected(run)
    assert [i["language"] for i in items] == list(TEXTS)
    assert {i["text"] for i in items} == {""} and not any("english" in i or "claims" in i for i in items)


def test_it_is_one_file_that_fetches_nothing(page):
    content = page.read_text(encoding="utf-8")
    assert "default-src 'none'" in content
    assert not re.search(r"""\b(src|href)\s*=\s*["'](?!#)|@import|url\(|https?://""", content)


def test_the_command_writes_it_and_says_where(small, monkeypatch, capsys):
    monkeypatch.setenv("XLC_ROOT", str(small.root))
    (small.folder / viewer.FILE).unlink(missing_ok=True)
    for name, code in (("here", 0), ("hree", 2)):
        monkeypatch.setattr("sys.argv", ["xlc", "view", name])
        with pytest.raises(SystemExit) as left:
            cli.main()
        assert (left.value.code or 0) == code
    out, err = capsys.readouterr()
    assert "results/here/viewer.html" in out and (small.folder / viewer.FILE).exists()
    assert "there is no run of this name" in err and "here" in err


def test_a_notebook_shows_some(small):
    shown = viewer.show(small, prompt_ids=["astronomy-02"], languages=["ar"]).data
    assert shown.count("<iframe") == 1 and "</script>" not in shown
    data = packed(unescape(shown))
    assert data["embedded"] and {i["language"] for i in data["items"]} == {"en", "ar"}
    assert {i["prompt"] for i in data["items"]} == {"astronomy-02"}


def test_a_notebook_does_not_carry_too_many(small, monkeypatch):
    with pytest.raises(Problem, match="would hold 0 answers"):
        viewer.show(small, models=["another"])
    monkeypatch.setattr(viewer, "MOST_IN_A_NOTEBOOK", 3)
    with pytest.raises(Problem, match="xlc view here"):
        viewer.show(small)


# ---- in a browser ----------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    chromium = Chromium(tmp_path_factory.mktemp("profile"))
    yield chromium
    chromium.close()


READY = "document.documentElement.dataset.ready === 'yes'"


def opened(browser: Chromium, page: Path, link: str = "") -> Tab:
    tab = browser.open(page)
    tab.until(READY)
    if link:
        tab.js(f"location.hash = {link!r}")
        tab.until(
            f"document.querySelector('#list').childElementCount && decodeURIComponent(location.hash) === {link!r}"
        )
    return tab


def texts(tab: Tab, selector: str) -> list[str]:
    return tab.js(f"[...document.querySelectorAll('{selector}')].map(e => e.textContent)")


@in_a_browser
def test_claims_are_marked_where_they_stand(browser, page):
    tab = opened(browser, page, "#kind=information&prompt=astronomy-02&languages=ar")
    assert tab.text("#status") == "1 answer, 1 to 1 shown (page 1 of 1)"
    assert texts(tab, "article mark.supported") == [
        "✓\xa0[supported:] The Moon reflects sunlight.",
        "✓\xa0[supported:] The Moon reflects light.",
    ]
    assert texts(tab, "article mark.missing") == ["−\xa0[missing:] One cycle takes 29.5 days."]
    assert texts(tab, "article mark.added") == ["+\xa0[added:] It is made of cheese."]
    assert texts(tab, "article mark.unknown") == ["?\xa0[no verdict:] It is round."]
    assert "🌒" in texts(tab, "article .text")[0]
    assert "F 0.50 · precision 0.50 · recall 0.50 · verdicts by lexical" in tab.text("article .head")


@in_a_browser
def test_a_claim_in_other_words_follows_the_text(browser, page):
    tab = opened(browser, page, "#kind=information&prompt=astronomy-02&languages=ja")
    assert texts(tab, "article li") == ["✓\xa0[supported:] A claim of a model, reworded."]


@in_a_browser
def test_no_text_becomes_part_of_the_page(browser, page):
    for link in ("#kind=information&languages=hi,ja", "#kind=dialogues&languages=en,et"):
        tab = opened(browser, page, link)
        assert any(HOSTILE in text for text in texts(tab, "article"))
        assert tab.js("document.title") == "Answers of the run “here”"
        assert tab.js("document.querySelectorAll('article b, article img, article script').length") == 0


@in_a_browser
def test_each_script_has_its_direction_and_font(browser, page):
    tab = opened(browser, page, "#kind=information&prompt=astronomy-02&languages=ar,hi,ja")
    shown = tab.js(
        "[...document.querySelectorAll('.original')].map(e => [e.lang, e.dir, getComputedStyle(e).fontFamily])"
    )
    assert [s[:2] for s in shown] == [["ar", "rtl"], ["hi", "ltr"], ["ru", "auto"]]  # the last is off target
    assert "Noto Sans Arabic" in shown[0][2] or "Noto Naskh Arabic" in shown[0][2]
    assert "Noto Sans Devanagari" in shown[1][2] and "Noto Sans CJK JP" in shown[2][2]


@in_a_browser
def test_profiles_and_judges_stand_below(browser, page):
    tab = opened(browser, page, "#kind=empathy&prompt=post-01&languages=ar")
    assert texts(tab, "tbody tr") == [
        "ER, emotional reactionsyesyesyes", "IP, interpretationsnoyesno", "EX, explorationsyesyesyes",
    ]  # fmt: skip
    tab = opened(browser, page, "#kind=dialogues&languages=en,et")
    assert texts(tab, "tbody tr") == [
        f"judge4433ok{HOSTILE}", f"blind (failed the probe in en)4433ok{HOSTILE}", "judge––––unparsed–",
    ]  # fmt: skip


@in_a_browser
def test_a_prompt_that_may_not_be_shown_is_named(browser, page):
    tab = opened(browser, page, "#kind=empathy&prompt=epitome-001&languages=ar")
    assert "epitome-001" in tab.text("article h2")
    assert tab.text("article .asked") == "The text of this prompt is not part of the page."


def choose(tab: Tab, control: str, value: str) -> None:
    tab.js(
        f"{{ const control = document.querySelector('#{control}'); control.value = '{value}';"
        " control.dispatchEvent(new Event('change', {bubbles: true})) }"
    )


@in_a_browser
def test_filters_and_a_link_to_what_they_show(browser, page):
    tab = opened(browser, page)
    choose(tab, "prompt", "astronomy-02")
    choose(tab, "order", "lowest")
    languages = lambda: [text.split()[0] for text in texts(tab, "article h2")]  # noqa: E731
    assert languages() == ["Hindi", "Arabic", "Japanese"]  # what has no score comes last
    choose(tab, "most", "0.45")
    assert languages() == ["Hindi"]
    choose(tab, "most", "")
    choose(tab, "outcome", "off_target")
    assert languages() == ["Japanese"]
    assert texts(tab, "#outcome option") == ["all", "ok (1)", "truncated (1)", "off_target (1)"]
    link = tab.js("location.hash")
    other = opened(browser, page, link)
    assert other.js("document.querySelector('#list').innerHTML") == tab.js("document.querySelector('#list').innerHTML")
    assert other.js("document.querySelector('#order').value") == "lowest"
    own = opened(browser, page, other.js("decodeURIComponent(document.querySelector('article .link').hash)"))
    assert own.text("#status").startswith("1 answer") and own.text("article h2").startswith("Japanese")


@in_a_browser
def test_a_link_to_what_is_not_there_says_so(browser, page):
    tab = opened(browser, page, "#kind=information&model=gone&languages=ar,xx")
    assert tab.text("#problem") == "The link names what is not on this page: model gone, language xx."
    assert tab.text("article h2").startswith("Arabic")


@in_a_browser
def test_with_the_keyboard_alone(browser, page):
    tab = opened(browser, page, "#kind=information")
    focus = "document.activeElement"
    seen = []
    for _ in range(9):
        tab.press("Tab")
        seen.append(tab.js(f"{focus}.id || {focus}.tagName"))
    assert seen == ["skip", "kind", "model", "prompt", "SUMMARY", "outcome", "most", "order", "BUTTON"]
    tab.js("document.querySelector('#languages summary').focus()")
    tab.press("Enter")
    tab.press("Tab")
    tab.press("Tab")
    assert tab.js(f"{focus}.value") == "en"
    tab.press(" ")
    assert "English" in texts(tab, "article h2")[0]
    tab.press("Escape")
    assert tab.js(f"{focus}.tagName") == "SUMMARY" and not tab.js("document.querySelector('#languages').open")
    tab.js("document.querySelector('#skip').focus()")
    tab.press("Enter")
    assert tab.js(f"{focus}.id") == "results" and "information" in tab.js("location.hash + '#kind=information'")
    tab.press("Tab")
    assert tab.js(f"{focus}.id") == "next"
    tab.press("Enter")
    assert "(page 2 of 2)" in tab.text("#status") and tab.js(f"{focus}.id") == "results"


@in_a_browser
def test_a_screen_reader_finds_names_for_everything(browser, page):
    tab = opened(browser, page, "#kind=dialogues&languages=en,et")
    nodes = tab.call("Accessibility.getFullAXTree")["nodes"]
    of = lambda role: [n["name"]["value"] for n in nodes if n.get("role", {}).get("value") == role]  # noqa: E731
    assert of("combobox") == ["Kind", "Model", "Prompt", "Outcome", "Order"]
    assert of("spinbutton") == ["Score at most"] and of("search") == ["Which answers"]
    assert of("main") == ["Answers"] and "Judges" in " ".join(of("table") + of("caption") + of("StaticText"))
    assert all(of("button")) and all(of("link")) and all(of("article"))
    assert [n for n in nodes if n.get("role", {}).get("value") == "status"]


@in_a_browser
def test_in_a_notebook_it_leaves_the_address_alone(browser, small, tmp_path):
    notebook = tmp_path / "notebook.html"
    shown = viewer.show(small, prompt_ids=["astronomy-02"]).data
    notebook.write_text(f"<!DOCTYPE html><meta charset=utf-8><body>{shown}</body>", encoding="utf-8")
    tab = browser.open(notebook)
    inner = "document.querySelector('iframe').contentDocument"
    tab.until(f"{inner}.documentElement.dataset.ready === 'yes'")
    tab.js(f"{inner}.querySelector('#skip').click()")
    tab.js(f"{{ const c = {inner}.querySelector('#order'); c.value = 'lowest'; c.dispatchEvent(new Event('change')) }}")
    assert tab.js(f"{inner}.querySelector('article h2').textContent").startswith("Hindi")
    assert tab.js(f"{inner}.querySelectorAll('article .link').length") == 0
    assert tab.js("location.hash") == "" and tab.js(f"{inner}.location.href") == "about:srcdoc"


# ---- ten thousand answers --------------------------------------------------------------------------------------------
def write_large(run: Run, models: int = 10, asked: int = 100, words: int = 150) -> None:
    """10 models, 100 prompts, 10 languages; an answer has 900 characters and 10 claims with two verdicts each."""
    rng = np.random.default_rng(0)
    letters = "abcdefghijklmnoprstuvwy"
    vocabulary = np.array(["".join(rng.choice(list(letters), n)) for n in rng.integers(2, 11, 4000)])
    codes = ["en", "ar", "de", "es", "fr", "hi", "ja", "ko", "ru", "zh"]
    answers, claims, verdicts = [], [], []
    for prompt_id in (f"p-{p}" for p in range(asked)):
        for code in codes:
            said = vocabulary[rng.zipf(1.3, words) % len(vocabulary)]
            claimed = [" ".join(said[i : i + 15]) + "." for i in range(0, words, 15)]
            text, who = " ".join(claimed), {"prompt_id": prompt_id, "language": code}
            of = answer("information", prompt_id, "en", "")
            answers.append({**of, **who, "text": text[::-1], "english": text})
            claims += [{**who, "claim_no": i, "claim": c, "outcome": "ok"} for i, c in enumerate(claimed, 1)]
            for direction in ("precision", "recall") if code != "en" else ():
                given = {**who, "direction": direction, "verifier": "v", "outcome": "ok"}
                verdicts += [{**given, "claim_no": i, "supported": i % 3 > 0} for i in range(1, 11)]
    frame, claims, verdicts = pd.DataFrame(answers), pd.DataFrame(claims), pd.DataFrame(verdicts)
    scores = frame[frame["language"] != "en"][["prompt_id", "language", "outcome"]]
    scores = scores.assign(precision=0.5, recall=0.5, f=rng.random(len(scores)), reason="")
    for model in (f"m{m}" for m in range(models)):  # too far apart in the page to be packed as one
        tables = {"responses": frame, "translations": frame, "claims": claims, "verdicts": verdicts}
        for table, content in {**tables, "information": scores}.items():
            run.write(table, model, content)
    run.finish()


@pytest.mark.slow
@in_a_browser
def test_ten_thousand_answers(browser, root, tmp_path):
    """Times are printed (pytest -s), not judged: they are the machine's."""
    run = a_run(root, tmp_path)
    write_large(run)
    start = time.monotonic()
    page = viewer.write(run)
    written, start = time.monotonic() - start, time.monotonic()
    tab = opened(browser, page)
    loaded, megabytes = time.monotonic() - start, page.stat().st_size / 1e6
    print(f"{megabytes:.1f} MB, written in {written:.1f} s, shown {loaded:.1f} s after it was opened")
    assert tab.text("#status") == "9000 answers, 1 to 5 shown (page 1 of 1800)"
    choose(tab, "order", "lowest")
    choose(tab, "model", "m7")
    assert tab.text("#status").startswith("900 answers") and len(texts(tab, "article")) == 5
    assert tab.js("document.querySelectorAll('*').length") < 2000, "more is drawn than is read"
    assert megabytes < 20
