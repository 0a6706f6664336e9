"""running/language_check.py: each fault that a language may have is found, and told with its remedy."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from xlc_utils.chat.offtarget import LanguageDetector
from xlc_utils.registry import languages, reviews
from xlc_utils.running import language_check
from xlc_utils.running.language_check import checks, summary, table
from xlc_utils.running.new_language import create


def line(project: Path, code: str, part: str):
    return next(line for line in checks(project, code) if line.part == part)


def change(project: Path, file: str, old: str, new: str) -> None:
    path = project / "params" / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.mark.slow
def test_nothing_is_wrong_with_the_registered_languages(root: Path):
    rows = table(root)
    assert [code for code, *_ in rows] == list(languages.files(root))
    machine = {"glyphs"}  # fonts that are not installed are missing, which is no fault of the language
    wrong = [(code, str(line)) for code, _, found in rows for line in found if line.state == "wrong"]
    # Thai marks no sentences, and none of the splitters knows where they end.
    assert [(code, text.split(":")[0]) for code, text in wrong] == [("th", "wrong    splitter")]
    for code, _, found in rows:
        language = languages.read(root, code)
        lacking = {line.part for line in found if line.state == "missing"} - machine
        assert set(language.gaps) <= lacking
    text = summary(rows)
    assert f"{len(rows):4} native review" in text or "native review" not in text
    assert all(any(row.startswith(f"{code:8} ") for row in text.splitlines()) for code, *_ in rows)


@pytest.mark.parametrize(
    ("file", "old", "new", "part", "expected"),
    [
        (
            "languages/hi.yaml",
            "iso639_3: hin",
            "iso639_3: hun",
            "code",
            "hi is hin in ISO 639-3, not hun; write",
        ),
        (
            "languages/hi.yaml",
            "script: Deva",
            "script: Beng",
            "script",
            "of hi it is Deva and not Beng; write",
        ),
        (
            "languages/hi.yaml",
            "direction: ltr",
            "direction: rtl",
            "script",
            "Devanagari is written ltr; write d",
        ),
        ("languages/hi.yaml", "हिन्दी", "Hindi", "script", "the autonym Hindi is not written in it (H)"),
        ("languages/hi.yaml", "०१२", "১১২", "script", "are not its ten digits in order; write digits: null or ०१२३४५"),
        ("languages/hi.yaml", "hin_Deva", "mar_Deva", "NLLB", "mar_Deva is another language; write hin_Deva"),
        (
            "languages/ar.yaml",
            'langid: "ar"',
            'langid: "fa"',
            "detector",
            "it cannot be told from Persian: both",
        ),
        ("languages/pt.yaml", 'langid: "pt", near: ["gl"]', 'langid: "sw", near: []', "detector", "it knows 0% of"),
        ("languages/pt.yaml", '["gl"]', '["gl", "ro"]', "detector", "it cannot be told from Romanian: both are 'ro'"),
        ("languages/hi.yaml", "font: Noto Sans Devanagari", "font: DejaVu Sans", "glyphs", "DejaVu Sans lacks 'ह'"),
        ("languages/hi.yaml", "name: Hindi", "name: हिन्दी", "glyphs", "the font of the figures, lacks 'ह'"),
        ("languages/el.yaml", "best: sentencex", "best: stops", "splitter", None),
        ("prompts/information/ar.yaml", "؟", "?", "punctuation", "information prompt astronomy-01 has '?'; end its"),
        ("prompts/empathy/ar.yaml", "،", ",", "punctuation", "write its comma ،"),
        ("prompts/empathy/hi.yaml", "।", ".", "punctuation", None),
        ("prompts/empathy/hi.yaml", '।"', '."', "punctuation", "has '.'; end its sentences in । ? !"),
        ("prompts/information/ja.yaml", "？", "?", "punctuation", "has '?'"),
        ("prompts/information/fr.yaml", "?", "؟", "punctuation", "has '؟'"),
        (
            "languages/pt.yaml",
            "font:",
            "incomplete: true\ngaps: [shots]\nfont:",
            "gaps",
            "the file names [shots]",
        ),
        ("languages/de.yaml", "empathy prompts, ", "", "gaps", "gaps: [information prompts, empathy prompts, shots"),
    ],
)
def test_each_fault(project: Path, file: str, old: str, new: str, part: str, expected: str | None):
    code = Path(file).stem
    assert line(project, code, part).state != "wrong"
    change(project, file, old, new)
    found = line(project, code, part)
    if expected is None:  # a full stop inside a post may be an abbreviation's; another splitter may do as well
        assert found.state == "OK"
    else:
        assert found.state == "wrong" and expected in str(found)


def test_review_in_its_four_states(project: Path):
    assert str(line(project, "th", "native review")).startswith("missing  native review: ")
    found = line(project, "pt", "native review")
    assert found.state == "missing" and found.what.endswith("files are not reviewed")
    reviews.record(project, "pt", "native speaker", "2026-11-01")
    assert line(project, "pt", "native review").what == "by native speaker on 2026-11-01, nothing changed since"
    change(project, "prompts/shots/pt.yaml", "piano", "Piano")
    found = line(project, "pt", "native review")
    assert found.state == "wrong"
    assert found.what == "params/prompts/shots/pt.yaml changed since it was reviewed on 2026-11-01"


def test_a_language_that_neither_detector_nor_lemmatiser_knows(project: Path):
    create(project, "kmb")
    states = {line.part: line.state for line in checks(project, "kmb")}
    assert states["code"] == states["script"] == states["NLLB"] == states["gaps"] == "OK"
    assert states["detector"] == states["lemmatiser"] == states["stop words"] == "missing"
    assert "wrong" not in states.values()
    assert line(project, "kmb", "detector").what == "py3langid has no label for it; it calls its texts: none"


def test_two_keys_of_one_label_cannot_be_told_apart(project: Path):
    create(project, "pt-BR")
    for folder in ("prompts/information", "prompts/empathy"):
        text = (project / "params" / folder / "pt.yaml").read_text(encoding="utf-8")
        path = project / "params" / folder / "pt-BR.yaml"
        path.write_text(text.replace('language: "pt"', 'language: "pt-BR"'), encoding="utf-8")
    found = line(project, "pt-BR", "detector")
    assert found.state == "wrong" and found.what == "it cannot be told from Portuguese: both are 'pt' to py3langid"


def test_a_font_that_is_not_installed_is_missing(project: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(language_check, "_families", dict)
    found = line(project, "hi", "glyphs")
    assert found.state == "missing" and "Noto Sans Devanagari" in found.what


def test_a_translator_that_is_not_installed_is_missing(project: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(language_check, "_installed", lambda backend: False)
    found = line(project, "hi", "translator into English")
    assert found.state == "missing" and found.what.startswith("none is installed of nllb-moe-54b")
    change(project, "languages/hi.yaml", "hin_Deva", "null")
    monkeypatch.setattr(language_check, "_installed", lambda backend: True)
    found = line(project, "hi", "translator from English")
    assert found.state == "OK" and "nllb" not in found.what and "gemma-3-270m-few-shot" in found.what


def test_english_needs_no_translator(root: Path):
    parts = Counter(line.part for line in checks(root, "en"))
    assert parts.most_common(1)[0][1] == 1 and not any("translator" in part for part in parts)


SERBIAN = {
    "sr-Latn": "Zašto Mesec menja oblik i kada dolazi do pomračenja Sunca?",
    "sr-Cyrl": "Зашто Месец мења облик и када долази до помрачења Сунца?",
}


def test_one_language_in_two_scripts_is_told_by_the_script(project: Path):
    for code, text in SERBIAN.items():
        create(project, code)
        path = project / "params" / "prompts" / "information" / f"{code}.yaml"
        path.write_text(f'language: "{code}"\nprompts:\n  astronomy-02: "{text}"\n', encoding="utf-8")
    detector = LanguageDetector(languages.load(project))
    for code, text in SERBIAN.items():
        assert [detector.language(text, expected) for expected in SERBIAN] == [code, code]
        assert line(project, code, "detector").state == "OK", str(line(project, code, "detector"))
        assert ("NLLB" in languages.read(project, code).gaps) == (code == "sr-Latn")
