"""registry/reviews.py: native review is data about files as they were."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from xlc_utils.registry import languages, reviews
from xlc_utils.registry.problems import Problem

NAMES = [
    "params/known_answers/empathy/pt.yaml",
    "params/known_answers/information/pt.yaml",
    "params/prompts/empathy/pt.yaml",
    "params/prompts/information/pt.yaml",
    "params/prompts/shots/pt.yaml",
]


def names(project: Path) -> list[str]:
    return [name for name in reviews.text_files(project, "pt") if name in NAMES]


def test_reviews_of_this_repository_are_well_formed_and_of_registered_languages(root: Path):
    folder, known = root / "params" / "reviews", languages.files(root)
    for path in folder.glob("*"):
        assert path.stem in known and path.suffix == ".yaml"
        assert reviews.reviews(root, path.stem)


def test_nobody_has_reviewed_what_has_no_review(project: Path):
    assert names(project) == NAMES
    assert set(reviews.unreviewed(project, "pt").values()) == {"not reviewed"}
    assert not reviews.reviewed_by_native(project, "pt")
    assert reviews.note(project, ["pt", "es"]) == "Without native review of their texts: pt, es."


def test_a_review_holds_as_long_as_the_texts_are_as_they_were(project: Path):
    assert set(NAMES) <= set(reviews.record(project, "pt", "native speaker, teacher", "2026-11-01"))
    (read,) = reviews.reviews(project, "pt")
    assert (read.by, read.when) == ("native speaker, teacher", "2026-11-01")
    for name in NAMES:  # the hash that sha256sum prints
        assert read.files[name] == hashlib.sha256((project / name).read_bytes()).hexdigest()
    assert reviews.reviewed_by_native(project, "pt") and reviews.note(project, ["pt"]) == ""
    assert reviews.note(project, ["pt", "es"]).endswith("texts: es.")

    path = project / NAMES[3]
    before = path.read_text(encoding="utf-8")
    path.write_text(before.replace("Lua", "lua"), encoding="utf-8")
    assert reviews.unreviewed(project, "pt") == {NAMES[3]: "changed since it was reviewed on 2026-11-01"}
    assert not reviews.reviewed_by_native(project, "pt")
    reviews.record(project, "pt", "native speaker, translator", "2026-12-01")
    assert reviews.reviewed_by_native(project, "pt") and len(reviews.reviews(project, "pt")) == 2
    path.write_text(before, encoding="utf-8")  # what the first reader saw
    assert reviews.reviewed_by_native(project, "pt")


def test_function_words_are_texts_too(project: Path):
    assert "params/stopwords/et.txt" in reviews.record(project, "et", "native speaker", "2026-11-01")
    path = project / "params" / "stopwords" / "et.txt"
    path.write_text(path.read_text(encoding="utf-8") + "aga\n", encoding="utf-8")
    assert list(reviews.unreviewed(project, "et")) == ["params/stopwords/et.txt"]


def test_a_language_without_texts_is_not_reviewed(project: Path):
    assert reviews.text_files(project, "th") == [] or "sentences" in reviews.text_files(project, "th")[0]
    for name in reviews.text_files(project, "th"):
        (project / name).unlink()
    assert not reviews.reviewed_by_native(project, "th")
    with pytest.raises(Problem, match="language `th`: there are no texts in it to review; write its prompts first"):
        reviews.record(project, "th", "native speaker", "2026-11-01")


GOOD = f'language: "pt"\nreviews:\n- by: native speaker\n  when: "2026-11-01"\n  files:\n    {NAMES[3]}: "{"a" * 64}"\n'


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('language: "pt"', 'language: "es"', "key `language`: is `es`; write `pt`."),
        ("information/pt", "information/es", "it is no file of texts in `pt`; correct or remove it."),
        ("2026-11-01", "1.11.2026", "key `reviews.1.when`: '1.11.2026' is not right;"),
        ("aaaaaaaa", "a", f"key `reviews.1.files.{NAMES[3]}`: "),
        ("  when", "  whom", "there is no key `whom`; use one of `by`, `when`, `files`."),
    ],
)
def test_what_is_not_a_review(project: Path, old: str, new: str, expected: str):
    path = project / "params" / "reviews" / "pt.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(GOOD.replace(old, new), encoding="utf-8")
    with pytest.raises(Problem) as caught:
        reviews.unreviewed(project, "pt")
    assert str(caught.value).startswith("params/reviews/pt.yaml: ") and expected in str(caught.value)


def test_who_reviewed_has_to_be_told(project: Path):
    with pytest.raises(Problem, match="xlc language review: key `by`"):
        reviews.record(project, "pt", "", "2026-11-01")
    assert not (project / "params" / "reviews" / "pt.yaml").exists()
