"""translation/recorded.py: a sentence is translated once in a run, and again if what translates it has changed."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from xlc_utils.chat.record import Record
from xlc_utils.registry import models
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.translation.recorded import RecordedTranslator
from xlc_utils.translation.translators import FirstAble, Translation


@dataclass
class Counting:
    name: str = "nllb-200-distilled-600m"
    asked: list[str] = field(default_factory=list)

    def can(self, source: str, target: str) -> bool:
        return True

    def translate(self, sentences, source, target):
        self.asked += sentences
        return [self._one(s) for s in sentences]

    def _one(self, sentence: str) -> Translation:
        if "!" in sentence:
            return Translation(f"<{sentence}>", Outcome.DEGENERATE, self.name, "đ", ("first", "second"))
        return Translation(f"<{sentence}>", Outcome.OK, self.name)


@pytest.fixture
def made(project: Path):
    """Makes (translator, what it is asked) on the project's record."""

    def make(name: str = "", seed: int = 0) -> tuple[RecordedTranslator, list[str]]:
        registry = models.load(project)
        nllb = next(n for n, t in registry.translators.items() if t.backend == "nllb")
        behind = Counting(name or nllb)
        record = Record(project / "results" / "test" / "calls.sqlite")
        return RecordedTranslator(FirstAble([behind]), registry, project, record, seed), behind.asked

    return make


SENTENCES = ["Uno.", "¡Dos!", "Uno."]


def test_what_is_recorded_is_not_translated_again(made):
    first, asked = made()
    told = first.translate(SENTENCES, "es", "en")
    assert asked == ["Uno.", "¡Dos!"] and [t.text for t in told] == ["<Uno.>", "<¡Dos!>", "<Uno.>"]
    again, asked = made()
    assert again.translate([*SENTENCES, "Tres."], "es", "en")[:3] == told and asked == ["Tres."]
    assert told[1].outcome is Outcome.DEGENERATE and told[1].detail == "đ" and told[1].rejected == ("first", "second")


@pytest.mark.parametrize("change", ["seed", "direction", "translator", "entry", "language", "another language"])
def test_what_may_change_a_translation_makes_it_anew(made, project: Path, change: str):
    made()[0].translate(SENTENCES, "es", "en")
    name, direction, seed = "", ("es", "en"), 0
    if change == "seed":
        seed = 1
    elif change == "direction":
        direction = ("pt", "en")
    elif change == "translator":
        nllb = [n for n, t in models.load(project).translators.items() if t.backend.startswith("nllb")]
        name = nllb[1]
    elif change == "entry":
        path = project / "params" / "models.yaml"
        entries = models.load(project).translators.values()
        revision = next(entry.revision for entry in entries if entry.backend == "nllb")
        path.write_text(path.read_text(encoding="utf-8").replace(revision, "0" * 40), encoding="utf-8")
    else:
        code = "es" if change == "language" else "fr"
        path = project / "params" / "languages" / f"{code}.yaml"
        path.write_text(path.read_text(encoding="utf-8") + "# a remark\n", encoding="utf-8")
    translator, asked = made(name, seed)
    translator.translate(SENTENCES, *direction)
    assert bool(asked) is (change != "another language")


def test_calls_of_a_few_shot_translator_are_recorded_by_its_model(made, project: Path):
    translator, asked = made("gemma-3-270m-few-shot")
    translator.translate(SENTENCES, "es", "en")
    translator.translate(SENTENCES, "es", "en")
    assert asked == SENTENCES * 2


def test_a_merged_record_brings_its_translations(made, project: Path):
    made()[0].translate(SENTENCES, "es", "en")
    folder = project / "results" / "test"
    other = shutil.move(folder, folder.with_name("other")) / "calls.sqlite"
    record = Record(folder / "calls.sqlite")
    assert record.merge(other) == (0, 0)
    translator, asked = made()
    assert len(translator.translate(SENTENCES, "es", "en")) == 3 and asked == []
