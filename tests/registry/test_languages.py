from __future__ import annotations

import shutil
import unicodedata
from pathlib import Path

import langcodes
import pycountry
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from xlc_utils.registry import languages
from xlc_utils.registry.languages import Language, canonical, load
from xlc_utils.registry.problems import Problem

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = load(ROOT)
_CODES = "ar bn cs de el en es et fa fi fr gu he hi hu id it ja kn ko ml nl pa pl pt ro ru ta te th tr ur vi zh"
CODES = _CODES.split()

# The two tables of language groups in paper A's appendix, letter by letter; its `iw` is `he` here.
SCRIPT_GROUPS = {
    "Latin": "cs,de,es,fr,id,it,nl,pl,pt,ro,tr,vi",
    "Indic": "bn,gu,hi,kn,ml,pa,ta,te",
    "PArb": "ar,fa,ur",
    "Oth1": "el,iw,ja,ko,ru,th,zh",
}
FAMILIES = {
    "Rom": "de,es,fr,it,nl,pt,ro",
    "Slav": "cs,pl,ru",
    "IA": "bn,fa,gu,hi,pa,ur",
    "Drav": "kn,ml,ta,te",
    "Oth2": "ar,el,id,iw,ja,ko,th,tr,vi,zh",
}

LABELS = set(map(str, LanguageIdentifier.from_model_file(MODEL_FILE).nb_classes))

each = pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES.keys())


def test_the_34_languages():
    assert list(LANGUAGES) == CODES


@pytest.mark.parametrize(
    ("key", "printed", "sizes"),
    [("script_group", SCRIPT_GROUPS, [12, 8, 3, 7]), ("family", FAMILIES, [7, 3, 6, 4, 10])],
)
def test_groups_are_those_paper_a_prints(key: str, printed: dict[str, str], sizes: list[int]):
    ours = {name: {c for c, lang in LANGUAGES.items() if getattr(lang.paper_a, key) == name} for name in printed}
    assert ours == {name: {canonical(code) for code in codes.split(",")} for name, codes in printed.items()}
    assert [len(codes) for codes in ours.values()] == sizes
    assert {c for c, lang in LANGUAGES.items() if getattr(lang.paper_a, key) is None} == {"en", "et", "fi", "hu"}


@each
def test_codes_are_those_of_the_standards(language: Language):
    assert langcodes.get(language.code).to_alpha3() == language.iso639_3
    assert pycountry.languages.get(alpha_2=language.code).alpha_3 == language.iso639_3
    assert pycountry.scripts.get(alpha_4=language.script) is not None
    assert langcodes.get(language.code).maximize().script == language.script


@each
def test_names_are_those_of_cldr_or_iso(language: Language):
    english = {langcodes.get(language.code).display_name(), pycountry.languages.get(alpha_2=language.code).name}
    common = {"pa": "Punjabi", "el": "Greek"}  # ISO says Panjabi and Modern Greek (1453-)
    assert language.name in english | {common.get(language.code)}
    assert language.autonym.casefold() == langcodes.get(language.code).autonym().casefold()


@each
def test_nllb_code_is_of_this_language_and_script(language: Language):
    assert language.nllb in languages.NLLB_CODES
    assert langcodes.standardize_tag(language.nllb[:3], macro=True) == language.code
    expected = {"Kore": "Hang"}.get(language.script, language.script)
    assert language.nllb[4:] == expected


@each
def test_autonym_is_written_in_the_script_and_direction(language: Language):
    letters = [char for char in language.autonym if char.isalpha()]
    assert language.direction == ("rtl" if unicodedata.bidirectional(letters[0]) in ("R", "AL") else "ltr")
    in_unicode = {"Hans": "CJK", "Jpan": "CJK", "Kore": "HANGUL", "Beng": "BENGALI", "Guru": "GURMUKHI"}
    word = in_unicode.get(language.script) or pycountry.scripts.get(alpha_4=language.script).name.split()[0].upper()
    assert all(unicodedata.name(char).startswith(word) for char in letters)


@each
def test_terminators_and_digits_are_those_of_the_script(language: Language):
    of_script = {"Hans": "Hani", "Jpan": "Hani"}.get(language.script, language.script)
    for mark in language.terminators:
        assert mark in ".?!;" or regex.match(rf"[\p{{Scx={of_script}}}？！]", mark), mark
    assert "?" not in language.terminators or of_script not in ("Arab", "Grek", "Hani")
    if language.digits is not None:
        assert [unicodedata.decimal(digit) for digit in language.digits] == list(range(10))
        assert all(regex.match(rf"\p{{Scx={of_script}}}", digit) for digit in language.digits)


@each
def test_off_target_labels_are_labels_of_py3langid(language: Language):
    assert {language.off_target.langid, *language.off_target.near} <= LABELS
    assert language.off_target.langid not in language.off_target.near


@each
def test_files_are_nfc_and_name_files_that_exist(language: Language):
    text = (ROOT / "params" / "languages" / f"{language.code}.yaml").read_text(encoding="utf-8")
    assert unicodedata.is_normalized("NFC", text)
    assert language.stopwords is None or (ROOT / language.stopwords).is_file()


def test_each_code_belongs_to_one_language():
    for key in ("nllb", "iso639_3", "glottocode", "name", "autonym"):
        assert len({getattr(language, key) for language in LANGUAGES.values()}) == 34


def test_paper_splitters_are_those_of_its_appendix():
    printed = {
        "spacy": "en de es fr it nl pt ru zh ja ko el ro pl id",
        "indicnlp": "bn gu hi kn ml pa ta te",
        "urduhack": "ur",
        "underthesea": "vi",
        "spacy-sentencizer": "ar cs fa he th tr",  # all its other languages
        None: "et fi hu",  # not in paper A
    }
    expected = {code: name for name, codes in printed.items() for code in codes.split()}
    assert {code: language.splitter.paper for code, language in LANGUAGES.items()} == expected


@pytest.mark.torch
def test_nllb_codes_are_those_of_its_tokenizer():
    nllb = pytest.importorskip("transformers.models.nllb.tokenization_nllb")
    assert set(nllb.FAIRSEQ_LANGUAGE_CODES) == languages.NLLB_CODES


def test_old_codes():
    assert [canonical(code) for code in ("iw", "in", "no", "ji", "he", "hi")] == ["he", "id", "nb", "yi", "he", "hi"]


def test_parts_of_a_code_are_kept_in_the_case_of_bcp_47():
    given = "zh-hant ZH-HANT pt-br sr-latn sr-Cyrl iw-il no-NO HI es-419 de-1996 zh-hant-tw"
    kept = "zh-Hant zh-Hant pt-BR sr-Latn sr-Cyrl he-IL nb-NO hi es-419 de-1996 zh-Hant-TW"
    assert [canonical(code) for code in given.split()] == kept.split()
    assert all(langcodes.standardize_tag(code) in (code, code.replace("nb", "no")) for code in kept.split())


@given(st.sampled_from([*CODES, "iw", "in", "no", "ji", "zh-hant", "pt-BR", "SR-LATN", "ca-valencia"]))
def test_canonical_codes_stay(code: str):
    assert canonical(canonical(code)) == canonical(code)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with Hebrew and Hindi."""
    folder = tmp_path / "params" / "languages"
    folder.mkdir(parents=True)
    for code in ("he", "hi"):
        shutil.copy(ROOT / "params" / "languages" / f"{code}.yaml", folder)
    monkeypatch.setenv("XLC_ROOT", str(tmp_path))
    return tmp_path


def change(project: Path, code: str, old: str, new: str) -> None:
    path = project / "params" / "languages" / f"{code}.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def sentence(project: Path) -> str:
    with pytest.raises(Problem) as caught:
        load(project)
    return str(caught.value)


def test_get_takes_old_and_new_codes(project: Path):
    assert languages.get("iw") == languages.get("he") == LANGUAGES["he"]
    with pytest.raises(Problem, match=r"^language `hii`: it has no file in params/languages; perhaps `hi` is meant.$"):
        languages.get("hii")
    with pytest.raises(Problem, match="use one of `he`, `hi`"):
        languages.get("sw")


def test_a_file_under_the_old_code_is_stored_under_the_new(project: Path):
    folder = project / "params" / "languages"
    (folder / "he.yaml").rename(folder / "iw.yaml")
    change(project, "iw", 'code: "he"', 'code: "iw"')
    assert load(project) == {code: LANGUAGES[code] for code in ("he", "hi")}
    assert languages.get("he") == LANGUAGES["he"]


def test_two_files_of_one_language(project: Path):
    folder = project / "params" / "languages"
    shutil.copy(folder / "he.yaml", folder / "iw.yaml")
    assert sentence(project) in (
        "params/languages/iw.yaml: he.yaml is the same language; keep one of the two files.",
        "params/languages/he.yaml: iw.yaml is the same language; keep one of the two files.",
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "script: Deva",
            "script: Latn2",
            "key `script`: 'Latn2' is not an ISO 15924 code of a script of these languages; perhaps `Latn` is meant.",
        ),
        ("script: Deva", "scrpit: Deva", ": there is no key `scrpit`; perhaps `script` is meant."),
        ("script: Deva\n", "", "key `script`: it is missing; add it."),
        ("hin_Deva", "hin_Dev", "key `nllb`: 'hin_Dev' is not a language of NLLB-200; perhaps `hin_Deva` is meant."),
        (
            "hin_Deva",
            "xx",
            "key `nllb`: 'xx' is not a language of NLLB-200; write its FLORES-200 code, such as deu_Latn.",
        ),
        ("direction: ltr", "direction: left", "key `direction`: 'left' is not allowed here; use 'ltr' or 'rtl'."),
        (
            "family: IA",
            "family: Indic",
            "key `paper_a.family`: 'Indic' is not allowed here; use 'Rom', 'Slav', 'IA', 'Drav' or 'Oth2'.",
        ),
        (
            'code: "hi"',
            "code: no",
            "line 2: key `code`: YAML takes the bare word no for true or false; "
            'write "no" in quotes if the word is meant, else true or false.',
        ),
        ('code: "hi"', 'code: "hu"', "key `code`: 'hu' is not the file's name; write \"hi\", or rename the file."),
        (
            "near: []",
            "near: [no]",
            "line 23: key `off_target.near.1`: YAML takes the bare word no for true or false; "
            'write "no" in quotes if the word is meant, else true or false.',
        ),
        ("near: []", "near: mr", "key `off_target.near`: 'mr' is text; write a list."),
        ("best: ", "besst: ", "key `splitter`: there is no key `besst`; perhaps `best` is meant."),
        (
            "name: Hindi",
            "name: Hindi\nname: Hindi",
            "line 4: key `name`: the key is in line 3 already; keep one of the two.",
        ),
        ("font: ", "incomplete: 'true'\nfont: ", "key `incomplete`: 'true' is text; write true or false."),
        (
            "font: ",
            "incomplete: true\nfont: ",
            ": it is marked `incomplete` and names no `gaps`; name them (`xlc language check` lists them).",
        ),
        (
            "font: ",
            "gaps: [shots]\nfont: ",
            ": it names `gaps` and is not marked `incomplete`; add `incomplete: true`.",
        ),
        ("०१२३४५६७८९", "०१२", "key `digits`: '०१२' is not right; string should have at least 10 characters."),
        (
            "hind1269",
            "hind",
            "key `glottocode`: 'hind' is not right; string should match pattern '^[a-z0-9]{4}[0-9]{4}$'.",
        ),
    ],
)
def test_bad_files(project: Path, old: str, new: str, expected: str):
    change(project, "hi", old, new)
    assert sentence(project) == "params/languages/hi.yaml" + (expected if expected[0] == ":" else f": {expected}")


def test_a_file_of_another_ending(project: Path):
    folder = project / "params" / "languages"
    (folder / "hi.yaml").rename(folder / "hi.yml")
    assert sentence(project) == "params/languages/hi.yml: its name does not end in .yaml; rename it to hi.yaml."


def test_no_languages_at_all(tmp_path: Path):
    (tmp_path / "params" / "languages").mkdir(parents=True)
    assert sentence(tmp_path) == "params/languages: it holds no language; restore its files."
