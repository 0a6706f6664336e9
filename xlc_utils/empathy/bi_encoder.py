"""Paper A's empathy evaluator: a bi-encoder for each mechanism, trained on EPITOME (appendix C.1).

Learning rate and epochs are chosen by macro-F1 on the dev part, then the classifier is trained on train and dev, and
the test part is read once. Everything lies in one folder a training, so that a run that was stopped goes on:

    <mechanism>-<seed>-<hash of recipe and data>/grid.json           macro-F1 on dev of the settings tried so far
                                                 checkpoint-<setting>.safetensors   while it trains
                                                 model.safetensors        the classifier
                                                 metrics.json             its recipe, data hash, and test measures
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd

from xlc_utils.empathy import epitome
from xlc_utils.empathy.profiles import Reading
from xlc_utils.empathy.recipes import Recipe, Setting
from xlc_utils.registry.problems import Problem
from xlc_utils.registry.prompts import MECHANISMS

INSTALL = 'run `python -m pip install -e ".[train]"`'


class BiEncoder:
    """f_ER, f_IP and f_EX of a reply to a post, trained when they are first needed.

    Args:
        name: of the recipe; what tables call it.
        recipe: from params/bi_encoders.yaml.
        pairs: from `epitome.read`.
        seed: of the split and of the training.
        folder: for what is kept.
        progress: makes a callback (done, total) for a training of that label.
    """

    def __init__(
        self,
        name: str,
        recipe: Recipe,
        pairs: pd.DataFrame,
        seed: int,
        folder: Path,
        progress: Callable[[str], Callable[[int, int], None]],
    ):
        self.name, self._recipe, self._pairs, self._seed = name, recipe, pairs, seed
        self._parts = epitome.split(pairs, seed)
        self._folder, self._progress = folder, progress

    def read(self, posts: Sequence[str], replies: Sequence[str]) -> Reading:
        """
        Raises:
            Problem: torch or transformers is missing, or the encoder cannot be had.
        """
        columns = [self._of(m, list(posts), list(replies)) for m in MECHANISMS]
        probabilities = np.column_stack(columns)
        return Reading.of(probabilities > 0.5, probabilities)

    def _of(self, mechanism: str, posts: list[str], replies: list[str]) -> np.ndarray:
        """One network at a time: three pairs of large encoders would not fit."""
        network = _network()
        weights = self.fit(mechanism) / "model.safetensors"
        return network.probabilities(network.load(self._recipe, weights), self._recipe, posts, replies)

    def fit(self, mechanism: str) -> Path:
        """The folder of the trained classifier of one mechanism; trains what is not there yet."""
        rows = {part: self._pairs[self._parts == part] for part in epitome.PARTS}
        described = {"recipe": self._recipe.model_dump(mode="json"), "seed": self._seed, "mechanism": mechanism}
        described["data_sha256"] = data_sha256(self._pairs, mechanism)
        digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()
        folder = self._folder / f"{mechanism}-{self._seed}-{digest[:12]}"
        if (folder / "metrics.json").exists():
            return folder
        network, recipe = _network(), self._recipe
        if recipe.chosen:
            setting, tried = recipe.chosen[mechanism], []
        else:
            setting, tried = self._searched(rows, mechanism, folder)
        trained = self._trained(setting, pd.concat([rows["train"], rows["dev"]]), mechanism, folder)
        test = rows["test"]
        said = network.probabilities(trained, recipe, list(test["seeker"]), list(test["response"])) > 0.5
        network.save(trained, folder / "model.safetensors")
        for checkpoint in folder.glob("checkpoint-*"):
            checkpoint.unlink()
        measured = {"test": scores(test[mechanism], said), "n_test": len(said)}
        _write(folder / "metrics.json", {**described, "setting": setting.model_dump(), "grid": tried, **measured})
        return folder

    def _searched(self, rows: dict[str, pd.DataFrame], mechanism: str, folder: Path) -> tuple[Setting, list[dict]]:
        """The setting with the best macro-F1 on dev, the cheapest of equals, and all that were tried."""
        network, recipe, path = _network(), self._recipe, folder / "grid.json"
        tried = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
        dev = rows["dev"]
        for setting in recipe.grid[len(tried) :]:
            trained = self._trained(setting, rows["train"], mechanism, folder)
            said = network.probabilities(trained, recipe, list(dev["seeker"]), list(dev["response"])) > 0.5
            tried.append({**setting.model_dump(), "dev_F1": scores(dev[mechanism], said)["F1"]})
            _write(path, tried)
            self._checkpoint(setting, rows["train"], folder).unlink(missing_ok=True)
        best = max(range(len(tried)), key=lambda i: (tried[i]["dev_F1"], -i))
        return recipe.grid[best], tried

    def _trained(self, setting: Setting, pairs: pd.DataFrame, mechanism: str, folder: Path):
        label = f"{self.name} {mechanism} {setting.learning_rate:g} × {setting.epochs}"
        return _network().train(
            self._recipe,
            setting,
            list(pairs["seeker"]),
            list(pairs["response"]),
            pairs[mechanism].to_numpy(),
            self._seed,
            self._checkpoint(setting, pairs, folder),
            self._progress(label),
        )

    def _checkpoint(self, setting: Setting, pairs: pd.DataFrame, folder: Path) -> Path:
        """One a training: that of a setting on train is another than that on train and dev."""
        return folder / f"checkpoint-{setting.learning_rate:g}-{setting.epochs}-{len(pairs)}.safetensors"


def scores(truth: Sequence[int], said: Sequence[bool]) -> dict[str, float]:
    """Macro-F1 and accuracy in per cent."""
    from sklearn.metrics import accuracy_score, f1_score

    truth, said = np.asarray(truth, int), np.asarray(said, int)
    f1 = f1_score(truth, said, average="macro", labels=[0, 1], zero_division=0)
    return {"F1": 100 * float(f1), "accuracy": 100 * float(accuracy_score(truth, said))}


def data_sha256(pairs: pd.DataFrame, mechanism: str) -> str:
    """Of the pairs, their texts and the labels of one mechanism."""
    rows = pairs[["sp_id", "rp_id", "seeker", "response", mechanism]]
    return hashlib.sha256(rows.to_csv(index=False).encode()).hexdigest()


def _network() -> ModuleType:
    try:
        from xlc_utils.empathy import bi_encoder_network
    except ImportError as error:
        raise Problem("the bi-encoder", f"{error.name} is not installed", INSTALL) from error
    return bi_encoder_network


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.part")
    partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)
