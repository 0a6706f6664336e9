"""Which of a language's texts a native speaker has read: params/reviews/<code>.yaml.

A review is of files as they were, told by their SHA-256, so a text that is changed is no longer reviewed. A role stands
for the person; no name is needed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import Field

from xlc_utils.registry.files import StrictModel, parse, read_yaml, shown
from xlc_utils.registry.problems import Problem

# Where texts in a language lie, one file a language in each; English originals that all share are not among them.
_FOLDERS = ("prompts", "known_answers")
_HEAD = "# Who has read which texts of this language. `xlc language review` writes it; the hashes are SHA-256.\n"

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Review(StrictModel):
    """One reading.

    Attributes:
        by: a role, such as "native speaker, teacher".
        when: the day, YYYY-MM-DD.
        files: SHA-256 of each file at that time, by its path from the project's folder.
    """

    by: Annotated[str, Field(min_length=1)]
    when: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    files: dict[str, Sha256] = Field(min_length=1)


class ReviewFile(StrictModel):
    language: str
    reviews: list[Review]


def text_files(root: Path, code: str) -> list[str]:
    """The files there are with texts in a language, as paths from the project's folder."""
    found = [p for folder in _FOLDERS for p in (root / "params" / folder).glob(f"*/{code}.yaml")]
    found += (root / "params" / "stopwords").glob(f"{code}.txt")
    return sorted(p.relative_to(root).as_posix() for p in found)


def reviews(root: Path, code: str) -> list[Review]:
    """All reviews of a language's texts, none if it has no file.

    Raises:
        Problem: the file is broken, of another language, or names a file that is no text of the language.
    """
    path = _path(root, code)
    if not path.exists():
        return []
    found = parse(ReviewFile, read_yaml(path), shown(path))
    if found.language != code:
        raise Problem(f"{shown(path)}: key `language`", f"is `{found.language}`", f"write `{code}`")
    known = text_files(root, code)
    for name in (name for review in found.reviews for name in review.files):
        if name not in known:
            raise Problem(f"{shown(path)}: `{name}`", f"it is no file of texts in `{code}`", "correct or remove it")
    return found.reviews


def unreviewed(root: Path, code: str) -> dict[str, str]:
    """The files of texts that nobody has reviewed as they are: "not reviewed", or "changed since …", by path."""
    read = reviews(root, code)
    states = {}
    for name in text_files(root, code):
        of_file = {review.files[name]: review.when for review in read if name in review.files}
        if _sha256(root / name) not in of_file:
            states[name] = f"changed since it was reviewed on {max(of_file.values())}" if of_file else "not reviewed"
    return states


def reviewed_by_native(root: Path, code: str) -> bool:
    """Whether a native speaker has read all the texts there are in a language, as they are."""
    return bool(text_files(root, code)) and not unreviewed(root, code)


def note(root: Path, codes: Iterable[str]) -> str:
    """The sentence under a table that marks languages without native review; empty if all have it."""
    without = [code for code in codes if not reviewed_by_native(root, code)]
    return f"Without native review of their texts: {', '.join(without)}." if without else ""


def record(root: Path, code: str, by: str, when: str) -> list[str]:
    """Adds a review of all texts of a language as they are now.

    Returns:
        The files.

    Raises:
        Problem: there are no texts, or what is written is not a review.
    """
    import yaml

    names = text_files(root, code)
    if not names:
        raise Problem(f"language `{code}`", "there are no texts in it to review", "write its prompts first")
    new = {"by": by, "when": when, "files": {name: _sha256(root / name) for name in names}}
    parse(Review, new, "xlc language review")
    kept = [review.model_dump() for review in reviews(root, code)]
    path = _path(root, code)
    path.parent.mkdir(exist_ok=True)
    data = yaml.safe_dump({"reviews": [*kept, new]}, sort_keys=False, allow_unicode=True)
    path.write_text(f'{_HEAD}language: "{code}"\n{data}', encoding="utf-8", newline="\n")
    return names


def _path(root: Path, code: str) -> Path:
    return root / "params" / "reviews" / f"{code}.yaml"


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
