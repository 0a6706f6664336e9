"""registry/gaps.py: a registered language is complete, or says what it lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from xlc_utils.registry import languages
from xlc_utils.registry.gaps import PARTS, gaps

CODES = list(languages.files(Path(__file__).resolve().parents[2]))
COMPLETE = ["ar", "en", "es", "fr", "hi", "id", "it", "ja", "pt", "ro", "ru"]


def parts(root: Path, code: str) -> list[str]:
    return [gap.part for gap in gaps(root, languages.read(root, code))]


@pytest.mark.parametrize("code", CODES)
def test_a_registered_language_is_complete_or_marked_with_its_gaps(root: Path, code: str):
    language = languages.read(root, code)
    assert list(language.gaps) == parts(root, code), f"xlc language check {code}"
    assert language.incomplete == bool(language.gaps)


def test_which_are_complete(root: Path):
    assert [code for code in CODES if not parts(root, code)] == COMPLETE


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize(
    ("file", "old", "new", "part"),
    [
        ("languages/pt.yaml", "port1283", "null", "Glottolog"),
        ("languages/pt.yaml", "Romance", "null", "Glottolog"),
        ("languages/pt.yaml", "por_Latn", "null", "NLLB"),
        ("languages/pt.yaml", 'langid: "pt"', "langid: null", "detector"),
        ("prompts/information/pt.yaml", "  nutrition-02:", "  nutrition-03:", "information prompts"),
        ("prompts/empathy/pt.yaml", "  post-12:", "  # post-12:", "empathy prompts"),
        ("prompts/shots/pt.yaml", "\ntranslation:\n", "\n#\n", None),
        ("known_answers/information/pt.yaml", "  macroeconomics-02:", "  other:", "known answers"),
        ("known_answers/empathy/pt.yaml", "  post-12:", "  post-13:", "known replies"),
    ],
)
def test_each_gap_is_seen(project: Path, file: str, old: str, new: str, part: str | None):
    assert parts(project, "pt") == []
    path = project / "params" / file
    if part is None:  # the examples of translations are the file's last part
        path.write_text(path.read_text(encoding="utf-8").partition(old)[0] + "\n", encoding="utf-8")
        part = "shots"
    else:
        change(path, old, new)
    assert parts(project, "pt") == [part] and part in PARTS


def test_a_language_of_which_nothing_is_written(project: Path):
    for path in (project / "params").glob("*/*/pt.yaml"):
        path.unlink()
    found = {gap.part: gap for gap in gaps(project, languages.read(project, "pt"))}
    assert list(found) == [
        "information prompts",
        "empathy prompts",
        "shots",
        "known answers",
        "known replies",
        "known sentences",
    ]
    assert found["information prompts"].what == (
        "16 of 16 are not written: astronomy-01, astronomy-02, college-biology-01, …"
    )
    assert found["empathy prompts"].remedy == "write them in params/prompts/empathy/pt.yaml"
