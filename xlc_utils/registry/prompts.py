"""Every question asked and every known answer, read from params/prompts and params/known_answers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import Field

from xlc_utils.registry.files import StrictModel, parse, read_yaml, shown, suggestion
from xlc_utils.registry.languages import primary
from xlc_utils.registry.problems import Problem

Dimension = Literal["information", "empathy"]
DIMENSIONS: tuple[Dimension, ...] = ("information", "empathy")
MECHANISMS = ("ER", "IP", "EX")  # emotional reactions, interpretations, explorations (Sharma et al. 2020)


class PromptFile(StrictModel):
    language: str
    categories: dict[str, str] = Field(default_factory=dict)
    prompts: dict[str, str]


class Shot(StrictModel):
    prompt: str
    answer: str


class TranslationShot(StrictModel):
    source: str
    target: str


class Shots(StrictModel):
    """In-language examples for a base model, which continues text and follows no instruction."""

    language: str
    information: list[Shot]
    empathy: list[Shot]
    translation: list[TranslationShot] = Field(default_factory=list)


class Extra(StrictModel):
    text: str
    kind: Literal["added", "contradiction"]
    of: str | None = None


class Facts(StrictModel):
    """What the English answer states, and what other answers may state beyond it."""

    facts: dict[str, str]
    extras: dict[str, Extra]

    def text(self, name: str) -> str:
        return self.facts[name] if name in self.facts else self.extras[name].text


class Sentence(StrictModel):
    states: str
    text: str


class KnownAnswer(StrictModel):
    """An answer of which is known, sentence by sentence, which fact or extra it states."""

    layout: Literal["prose", "bullets", "numbered"]
    opening: str | None = None
    sentences: list[Sentence]

    @property
    def states(self) -> list[str]:
        return [s.states for s in self.sentences]

    def text(self, space: str = " ") -> str:
        """The answer as a reader sees it; ``space`` stands between sentences (nothing in Japanese)."""
        texts = [s.text for s in self.sentences]
        if self.layout == "prose":
            body = space.join(texts)
        elif self.layout == "bullets":
            body = "\n".join(f"- {t}" for t in texts)
        else:
            body = "\n".join(f"{i}. {t}" for i, t in enumerate(texts, 1))
        return f"{self.opening}\n\n{body}" if self.opening else body

    def truth(self, facts: Facts) -> tuple[float, float]:
        """True precision and recall against the English answer, which states all facts and nothing else."""
        stated = [s for s in self.states if s in facts.facts]
        return len(stated) / len(self.states), len(set(stated)) / len(facts.facts)


class KnownAnswerFile(StrictModel):
    language: str
    answers: dict[str, KnownAnswer]


class KnownReply(StrictModel):
    """A sentence for each mechanism, and which of them the reply of this language contains."""

    ER: str
    IP: str
    EX: str
    none: str
    profile: list[Literal["ER", "IP", "EX"]]

    def text(self, space: str = " ") -> str:
        parts = [getattr(self, name) for name in ("ER", "IP", "none", "EX") if name == "none" or name in self.profile]
        return space.join(parts)

    @property
    def bits(self) -> tuple[int, int, int]:
        """The profile e(r) of paper A §3.2, in the order ER, IP, EX."""
        return tuple(int(m in self.profile) for m in MECHANISMS)


class KnownReplyFile(StrictModel):
    language: str
    replies: dict[str, KnownReply]


class Example(StrictModel):
    reply: str
    labels: dict[str, int]


class Mechanism(StrictModel):
    """A mechanism of empathy as a model is told of it."""

    name: str
    definition: str


class ExampleFile(StrictModel):
    language: str
    source: str
    examples: list[Example]


def prompts(root: Path, dimension: Dimension, language: str) -> dict[str, str]:
    """Prompt texts of one language by id.

    Raises:
        Problem: the language has no file for this dimension, the file is broken, or it has an id that English lacks.
    """
    path = root / "params" / "prompts" / dimension / f"{language}.yaml"
    if not path.exists():
        raise Problem(
            f"params/prompts/{dimension}",
            f"there are no prompts in `{language}` ({language}.yaml is missing)",
            "write that file or take the language out of `languages`",
        )
    found = _language_file(PromptFile, path, language).prompts
    if language != "en":
        known = prompts(root, dimension, "en")
        for name in found:
            if name not in known:
                raise Problem(
                    f"{shown(path)}: key `{name}`", "English has no prompt of this id", suggestion(name, known)
                )
    return found


def written(root: Path, dimension: Dimension, language: str) -> dict[str, str]:
    """As `prompts`, but nothing for a language without a file."""
    exists = (root / "params" / "prompts" / dimension / f"{language}.yaml").exists()
    return prompts(root, dimension, language) if exists else {}


def selection(root: Path, dimension: Dimension, wanted: int | Sequence[str], where: str) -> list[str]:
    """Which prompts a run asks.

    Args:
        root: the project folder.
        dimension: information or empathy.
        wanted: ids, or how many: the first of every category, then the second of every category, and so on.
        where: the params file, for messages.

    Raises:
        Problem: an unknown id, or more than there are.
    """
    known = list(prompts(root, dimension, "en"))
    if not isinstance(wanted, int):
        for name in wanted:
            if name not in known:
                raise Problem(
                    f"{where}: key `{dimension}_prompts`", f"there is no prompt `{name}`", suggestion(name, known)
                )
        return list(wanted)
    if wanted > len(known):
        raise Problem(
            f"{where}: key `{dimension}_prompts`",
            f"{wanted} is more than the {len(known)} there are",
            f"write {len(known)} or less",
        )
    return sorted(known, key=lambda name: (int(name.rsplit("-", 1)[1]), known.index(name)))[:wanted]


def has_translation_shots(root: Path, language: str) -> bool:
    """Whether a few-shot translator has examples for this language."""
    path = root / "params" / "prompts" / "shots" / f"{language}.yaml"
    return path.exists() and bool(shots(root, language).translation)


def categories(root: Path) -> dict[str, str]:
    """Names of the eight categories of information prompts by the prefix of their ids."""
    return _language_file(PromptFile, root / "params/prompts/information/en.yaml", "en").categories


def shots(root: Path, language: str) -> Shots:
    return _language_file(Shots, root / "params" / "prompts" / "shots" / f"{language}.yaml", language)


def instruction(root: Path, name: str) -> str:
    """An instruction given to a model: params/prompts/instructions/<name>.txt, as text."""
    path = root / "params" / "prompts" / "instructions" / f"{name}.txt"
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Problem(
            shown(path), f"the instruction cannot be read ({error})", "bring it back from the repository"
        ) from error


def facts(root: Path) -> dict[str, Facts]:
    path = root / "params" / "known_answers" / "facts.yaml"
    data = read_yaml(path)
    if not isinstance(data, dict):
        raise Problem(shown(path), "is no mapping of prompt ids", "write one key a prompt")
    return {name: parse(Facts, value, f"{shown(path)}: {name}") for name, value in data.items()}


def known_answers(root: Path, language: str) -> dict[str, KnownAnswer]:
    path = root / "params" / "known_answers" / "information" / f"{language}.yaml"
    return _language_file(KnownAnswerFile, path, language).answers if path.exists() else {}


def known_replies(root: Path, language: str) -> dict[str, KnownReply]:
    path = root / "params" / "known_answers" / "empathy" / f"{language}.yaml"
    return _language_file(KnownReplyFile, path, language).replies if path.exists() else {}


def empathy_examples(root: Path) -> list[Example]:
    path = root / "params" / "empathy_examples.yaml"
    return parse(ExampleFile, read_yaml(path), shown(path)).examples


def mechanisms(root: Path) -> dict[str, Mechanism]:
    """What a model is told of each of `MECHANISMS`."""
    path = root / "params" / "prompts" / "empathy_mechanisms.yaml"
    data = read_yaml(path)
    if not isinstance(data, dict) or set(data) != set(MECHANISMS):
        raise Problem(shown(path), "it does not describe ER, IP and EX", "write one key for each of the three")
    return {name: parse(Mechanism, value, f"{shown(path)}: {name}") for name, value in data.items()}


def known_texts(root: Path, languages: list[str]) -> dict[tuple[str, str], str]:
    """What the replayed model `known-answers` says, by (language, prompt id)."""
    texts = {}
    for language in languages:
        space = "" if primary(language) in ("ja", "zh", "th") else " "
        texts |= {(language, i): a.text(space) for i, a in known_answers(root, language).items()}
        texts |= {(language, i): r.text(space) for i, r in known_replies(root, language).items()}
    return texts


def _language_file(model_cls, path: Path, language: str):
    """A file of one language, whose ``language`` must be the one in its name."""
    changed = path.stat().st_mtime_ns if path.exists() else 0
    return _parsed_once(model_cls, path, language, changed)


@lru_cache(maxsize=512)
def _parsed_once(model_cls, path: Path, language: str, changed: int):
    """YAML is slow to read, and the same file is asked for many times; ``changed`` is when it was written."""
    found = parse(model_cls, read_yaml(path), shown(path))
    if found.language != language:
        raise Problem(
            f"{shown(path)}: key `language`", f"is `{found.language}`", f"write `{language}`, as in the file's name"
        )
    return found
