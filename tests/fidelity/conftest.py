"""A run in an empty folder, and translated sentences as notebook 02 writes them, made of the known answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from xlc_utils.registry import prompts
from xlc_utils.running.params import Params
from xlc_utils.running.run import Run


@pytest.fixture(scope="module")
def run(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("project")
    (folder / "params").symlink_to(root / "params")
    return Run(folder, Params(run_name="here"), set(), "03_fidelity_check")


@pytest.fixture(scope="session")
def sentences(root: Path) -> Callable[[str], pd.DataFrame]:
    """The sentences of a language with the facts they state as translation, as if of the models "one" and "two"."""
    facts = prompts.facts(root)

    @cache
    def of(language: str) -> pd.DataFrame:
        rows = [
            {"model": model, "language": language, "prompt_id": prompt_id, "line": 0 if answer.layout == "prose" else i,
             "source": sentence.text, "text": facts[prompt_id].text(sentence.states)}
            for model in ("one", "two")
            for prompt_id, answer in prompts.known_answers(root, language).items()
            for i, sentence in enumerate(answer.sentences)
        ]  # fmt: skip
        return pd.DataFrame(rows)

    return of
