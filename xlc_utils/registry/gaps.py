"""What a language lacks that the complete ones have.

A language is complete when it can take part in all that the demo and the ruler do: it has the prompts that known
answers exist for, known answers and replies, known sentences, examples for a base model, a detector, and its places in
NLLB-200 and Glottolog. A language file that is not complete says so (`incomplete: true`) and names its `gaps` in the
words used here. Native review is kept apart (`xlc_utils.registry.reviews`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from xlc_utils.registry import prompts
from xlc_utils.registry.languages import Language


@dataclass(frozen=True)
class Gap:
    """``part`` is what stands in `gaps`; ``what`` says it in words, ``remedy`` what to do."""

    part: str
    what: str
    remedy: str


#: What can be lacking.
PARTS = (
    "Glottolog",
    "NLLB",
    "detector",
    "information prompts",
    "empathy prompts",
    "shots",
    "known answers",
    "known replies",
    "known sentences",
)


def gaps(root: Path, language: Language) -> list[Gap]:
    """What the language lacks, in the order of PARTS.

    Raises:
        Problem: a file of its texts is broken.
    """
    return [*of_the_file(language), *_of_the_texts(root, language.code)]


def of_the_file(language: Language) -> Iterator[Gap]:
    if None in (language.glottocode, language.glottolog_family, language.glottolog_branch):
        what = "`glottocode`, `glottolog_family` or `glottolog_branch` is not filled in"
        yield Gap("Glottolog", what, "look the language up at glottolog.org")
    if language.nllb is None:
        what = "NLLB-200 does not translate it in this script"
        yield Gap("NLLB", what, "use another translator: a model shown `shots`, or one of your own in models.yaml")
    if language.off_target.langid is None:
        what = "py3langid has no label for it, so answers in a wrong language are not noticed"
        yield Gap("detector", what, "read a sample of the answers")


def _of_the_texts(root: Path, code: str) -> Iterator[Gap]:
    posts, asked = prompts.prompts(root, "empathy", "en"), prompts.facts(root)
    for part, folder, found, wanted in (
        ("information prompts", "prompts/information", prompts.written(root, "information", code), asked),
        ("empathy prompts", "prompts/empathy", prompts.written(root, "empathy", code), posts),
    ):
        yield from _lacking(part, folder, code, found, wanted)
    path = f"params/prompts/shots/{code}.yaml"
    if not (root / path).exists():
        yield Gap("shots", f"{path} is missing", "write it, as its neighbours are: a base model needs examples")
    elif code != "en" and not prompts.has_translation_shots(root, code):
        yield Gap("shots", f"{path} has no `translation` examples", "add some: few-shot translators need them")
    for part, folder, found, wanted in (
        ("known answers", "known_answers/information", prompts.known_answers(root, code), asked),
        ("known replies", "known_answers/empathy", prompts.known_replies(root, code), posts),
    ):
        yield from _lacking(part, folder, code, found, wanted)
    path = f"params/known_answers/sentences/{code}.yaml"
    if not (root / path).exists():
        yield Gap("known sentences", f"{path} is missing", "write it, as its neighbours are: they measure the splitter")


def _lacking(part: str, folder: str, code: str, found: Iterable[str], wanted: Iterable[str]) -> Iterator[Gap]:
    lacking = [name for name in wanted if name not in found]
    if lacking:
        total, named = len(list(wanted)), ", ".join(lacking[:3]) + (", …" if len(lacking) > 3 else "")
        what = f"{len(lacking)} of {total} are not written: {named}"
        yield Gap(part, what, f"write them in params/{folder}/{code}.yaml")
