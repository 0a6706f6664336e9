"""Notebooks 01 to 03 with a tiny NLLB that the test builds, named in params like any other translator."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pandas as pd
import pytest

for package in ("torch", "transformers", "sentencepiece", "google.protobuf", "accelerate"):
    pytest.importorskip(package)

from tiny_nllb import save_checkpoints, save_tokenizer  # noqa: E402

from xlc_utils.running import params, pipeline  # noqa: E402

pytestmark = pytest.mark.torch

ENTRY = """
  tiny-nllb:
    backend: nllb
    id: "{folder}"
    revision: null
    licence: none
    languages: all
    toy: true
"""
CHANGES = {
    "run_name": "tiny",
    "models": ["known-answers"],
    "languages": ["es", "hi", "de"],  # nobody has written prompts in German
    "translators": ["tiny-nllb"],
    "round_trip_languages": ["hi"],
    "information_prompts": ["astronomy-02"],
    "empathy_prompts": 1,
    "claim_verifiers": ["lexical"],
}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    tokenizer, folder = tmp_path_factory.mktemp("tokenizer"), tmp_path_factory.mktemp("dense")
    save_tokenizer(tokenizer)
    save_checkpoints(tokenizer, {"dense": folder})
    return folder


def test_a_tiny_nllb_goes_through_the_notebooks(checkpoint, root, tmp_path, monkeypatch):
    for name in ("notebooks", "params"):
        shutil.copytree(root / name, tmp_path / name)
    with (tmp_path / "params" / "models.yaml").open("a", encoding="utf-8") as file:
        file.write(ENTRY.format(folder=checkpoint))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.chdir(tmp_path)
    chosen = params.load(tmp_path / "params" / "smoke.yaml", CHANGES)
    params.check(chosen, tmp_path, "params/smoke.yaml")
    notebooks = pipeline.selected(pipeline.notebooks(tmp_path), ["01", "02", "03"])
    assert len(pipeline.run_pipeline(tmp_path, chosen, notebooks)) == 3

    results = tmp_path / "results" / "tiny"
    prompts = pd.concat(map(pd.read_parquet, (results / "prompts").glob("*.parquet")))
    assert prompts.groupby("language")["source"].unique().map(list).to_dict() == {
        "de": ["translated"],
        "en": ["written"],
        "es": ["written"],
        "hi": ["written"],
    }
    sentences = pd.read_parquet(results / "sentences" / "known-answers.parquet")
    assert set(sentences["translator"]) == {"tiny-nllb"} and set(sentences["language"]) == {"es", "hi"}
    assert set(sentences["outcome"]) <= {"ok", "truncated", "degenerate"} and sentences["attempts"].max() == 3
    trips = pd.read_parquet(results / "round_trips" / "known-answers.parquet")
    assert set(trips["language"]) == {"hi"} and (trips["back"] != trips["original"]).all()
    verdicts = pd.read_csv(results / "tables" / "fidelity_verdicts.csv").set_index("language")["verdict"]
    assert verdicts.to_dict() == dict.fromkeys(["es", "hi", "de"], "do not use")  # random weights are no translator
