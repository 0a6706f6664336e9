"""running/new_language.py: a language file from what libraries hold; pycountry is the oracle from outside."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pycountry
import pytest

from xlc_utils.judges.lexical import lemmatiser
from xlc_utils.registry import languages, scripts
from xlc_utils.registry.problems import Problem
from xlc_utils.running.new_language import create, known_to_simplemma, labels, nllb_codes, standard
from xlc_utils.text.sentences import splitter

KEPT = ("nllb", "iso639_3", "direction", "script", "font")


@pytest.fixture
def small(project: Path) -> Path:
    """A project with English alone registered; texts of the other languages are still there."""
    for path in (project / "params" / "languages").glob("*.yaml"):
        if path.stem != "en":
            path.unlink()
    return project


def test_swahili(project: Path):
    path, lacking = create(project, "sw")
    assert path == project / "params" / "languages" / "sw.yaml"
    language = languages.read(project, "sw")
    assert (language.name, language.autonym, language.nllb) == ("Swahili", "Kiswahili", "swh_Latn")
    assert (language.script, language.direction, language.digits) == ("Latn", "ltr", None)
    assert (language.off_target.langid, language.lemmatiser, language.font) == ("sw", "simplemma", "Noto Sans")
    assert language.incomplete and list(language.gaps) == [gap.part for gap in lacking]
    assert language.gaps == (
        "Glottolog", "information prompts", "empathy prompts", "shots", "known answers", "known replies",
        "known sentences",
    )  # fmt: skip
    text = path.read_text(encoding="utf-8")
    assert text.count("?\n") == 7, "the questions that a person has to answer"


@pytest.mark.parametrize("code", ["ar", "he", "hi", "ja", "ko", "pa", "ru", "th", "ur", "zh"])
def test_what_is_filled_in_is_what_the_registered_files_say(small: Path, root: Path, code: str):
    ours = languages.read(root, code)
    create(small, code)
    made = languages.read(small, code)
    differing = {"ur": {"font"}}  # Nastaliq is a choice
    for key in set(KEPT) - differing.get(code, set()):
        assert getattr(made, key) == getattr(ours, key), key
    assert made.autonym == ours.autonym and made.off_target.langid == ours.off_target.langid
    assert made.digits in (ours.digits, scripts.digits(ours.script)[0] if ours.digits else None)
    assert made.paper_a.script_group is None


@pytest.mark.parametrize(
    ("given", "key", "nllb", "label", "script"),
    [
        ("zh-hant", "zh-Hant", "zho_Hant", "zh", "Hant"),
        ("pt-br", "pt-BR", "por_Latn", "pt", "Latn"),
        ("sr-latn", "sr-Latn", None, "sr", "Latn"),  # NLLB has Cyrillic alone
        ("sr-CYRL", "sr-Cyrl", "srp_Cyrl", "sr", "Cyrl"),
        ("no", "nb", "nob_Latn", "no", "Latn"),
        ("deu", "de", "deu_Latn", "de", "Latn"),
        ("kmb", "kmb", "kmb_Latn", None, "Latn"),
    ],
)
def test_dialects_scripts_and_old_codes(small: Path, given: str, key: str, nllb, label, script: str):
    path, _ = create(small, given)
    assert path.name == f"{key}.yaml"
    made = languages.load(small)[key]
    assert (made.code, made.nllb, made.off_target.langid, made.script) == (key, nllb, label, script)
    assert languages.read(small, given.lower()).code == key if given not in ("deu",) else True
    assert ("NLLB" in made.gaps) == (nllb is None) and ("detector" in made.gaps) == (label is None)
    assert f'code: "{key}"' in path.read_text(encoding="utf-8")


def test_a_file_is_never_overwritten(project: Path):
    path = project / "params" / "languages" / "hi.yaml"
    before = path.read_bytes()
    with pytest.raises(Problem, match=r"^params/languages/hi.yaml: the language has this file already; run `xlc lang"):
        create(project, "hi")
    with pytest.raises(Problem, match=r"^params/languages/he.yaml: the language has this file already"):
        create(project, "iw")
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("Swahili", "it is no language tag of BCP 47; perhaps `sw` (Swahili) is meant."),
        ("xx", "`xx` is no language of ISO 639, which BCP 47 takes them from; write a code of ISO 639, of two letters"),
        ("sr-Latm", "`Latm` is no script of ISO 15924; perhaps `Latn` is meant."),
        ("sr-Qqqq", "`Qqqq` is no script of ISO 15924; write one of four letters, such as Latn."),
        ("pt-JJ", "`JJ` is no region of ISO 3166 nor another subtag of BCP 47; write `pt`, or such as `pt-BR`."),
        ("", "it is no language tag of BCP 47; write a code of ISO 639"),
    ],
)
def test_an_unknown_code_names_the_standard_and_the_nearest(project: Path, code: str, expected: str):
    with pytest.raises(Problem) as caught:
        create(project, code)
    assert str(caught.value).startswith(f"language code `{code}`: {expected}")


def test_every_language_of_nllb_has_its_own_code():
    for code in sorted(languages.NLLB_CODES):
        key = standard(code[:3])
        assert code in nllb_codes(key), key
        known = pycountry.languages.get(alpha_3=code[:3])
        assert (known is not None or code == "ajp_Arab") and pycountry.scripts.get(alpha_4=code[4:]) is not None


def test_dari_is_persian_in_afghanistan_and_arabic_is_the_standard_one():
    assert standard("prs") == "fa-AF" and nllb_codes("fa-AF")[0] == "prs_Arab"
    assert nllb_codes("fa")[0] == "pes_Arab" and nllb_codes("ar")[0] == "arb_Arab" and nllb_codes("zh")[0] == "zho_Hans"
    assert nllb_codes("sw") == ["swh_Latn"] and nllb_codes("tlh") == []


@pytest.mark.parametrize("script", sorted(languages.SCRIPTS))
def test_scripts(script: str):
    letter = scripts.letters(script)[0]
    assert (scripts.direction(script) == "rtl") == (script in ("Arab", "Hebr"))
    for ten in scripts.digits(script):
        assert [unicodedata.decimal(digit) for digit in ten] == list(range(10))
    assert scripts.font(script).startswith("Noto ") and letter.isalpha()
    assert len(set(scripts.terminators(script))) == len(scripts.terminators(script))


def test_lists_of_libraries():
    assert {"sw", "de", "zh"} <= labels() and not {"kmb", "dyu", "tum"} & labels()
    assert known_to_simplemma("sw") and known_to_simplemma("pt-BR") and not known_to_simplemma("kmb")


def test_libraries_are_asked_for_the_language_of_a_dialect(small: Path):
    for code in ("zh-Hant", "pt-BR"):
        create(small, code)
    splitter.cache_clear()
    assert splitter("zh-Hant")("月亮為什麼會變？因為它繞著地球轉。") == ["月亮為什麼會變？", "因為它繞著地球轉。"]
    assert splitter("pt-BR")("Choveu muito. Fiquei em casa.") == ["Choveu muito. ", "Fiquei em casa."]
    splitter.cache_clear()
    assert lemmatiser("pt-BR")(["casas"]) == lemmatiser("pt")(["casas"]) == ["casa"]
