"""Translations by models of this machine, recorded like calls: a run that goes on does not make them again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from importlib import metadata
from pathlib import Path

from xlc_utils.chat.record import Record
from xlc_utils.registry.models import Registry
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.translation.translators import FirstAble, Translation, Translator


class RecordedTranslator:
    """A run's translators behind its record. A few-shot translator is left alone: its model's calls are recorded.

    Args:
        translator: the run's translators.
        registry: models and translators.
        root: the project folder.
        record: of the run. Texts that may not be kept must not be given to this.
        seed: of the run.
    """

    name = "recorded"

    def __init__(self, translator: FirstAble, registry: Registry, root: Path, record: Record, seed: int):
        self._translator, self._registry, self._root = translator, registry, root
        self._record, self._seed = record, seed

    def can(self, source: str, target: str) -> bool:
        return self._translator.can(source, target)

    def chosen(self, source: str, target: str) -> Translator:
        return self._translator.chosen(source, target)

    def translate(self, sentences: Sequence[str], source: str, target: str) -> list[Translation]:
        """What is not recorded is translated in one go and then recorded: a kill loses at most that much."""
        translator = self.chosen(source, target)
        if self._registry.translators[translator.name].backend == "few_shot":
            return translator.translate(sentences, source, target)
        identity = self._identity(translator.name, source, target)
        keys = {s: hashlib.sha256(f"{identity}\n{s}".encode()).hexdigest() for s in sentences}
        found = self._record.get_translations(list(keys.values()))
        new = [s for s in keys if keys[s] not in found]
        if new:
            made = {keys[s]: asdict(t) for s, t in zip(new, translator.translate(new, source, target), strict=True)}
            self._record.put_translations(made)
            found |= made
        return [_read(found[keys[s]]) for s in sentences]

    def _identity(self, name: str, source: str, target: str) -> str:
        """All that determines a translation besides its sentence: the model, the direction, and how it is judged, since
        what is found degenerate is sampled again."""
        entry = self._registry.translators[name]
        version = metadata.version(entry.package) if entry.package else None
        ways = [self._root / "params" / "languages" / f"{code}.yaml" for code in (source, target)]
        files = [_sha256(path) for path in ways if path.is_file()]
        what = [name, entry.model_dump(mode="json", exclude={"note", "licence", "toy"}), version, source, target]
        return json.dumps([*what, self._seed, files, self._code], sort_keys=True)

    @cached_property
    def _code(self) -> str:
        folder = Path(__file__).parent
        files = [p for p in sorted(folder.rglob("*")) if p.is_file() and p.suffix != ".pyc"]
        return hashlib.sha256("".join(map(_sha256, files)).encode()).hexdigest()


def _read(row: dict) -> Translation:
    return Translation(**{**row, "outcome": Outcome(row["outcome"]), "rejected": tuple(row["rejected"])})


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
