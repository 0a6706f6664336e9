"""The bi-encoder on tiny random checkpoints that the tests build: it learns, chooses, goes on where it was stopped."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from epitome_like import made_pairs
from tiny_encoder import WIDTH, save

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("safetensors")

from safetensors.torch import load_file  # noqa: E402

from xlc_utils.empathy import bi_encoder, bi_encoder_network, epitome, recipes  # noqa: E402
from xlc_utils.empathy.bi_encoder import BiEncoder, data_sha256  # noqa: E402
from xlc_utils.empathy.recipes import Recipe, Setting  # noqa: E402
from xlc_utils.registry.problems import Problem  # noqa: E402
from xlc_utils.registry.prompts import MECHANISMS  # noqa: E402

pytestmark = pytest.mark.torch
torch.set_num_threads(1)

PAIRS = made_pairs(120)


@pytest.fixture(scope="module", params=["roberta", "modernbert"])
def recipe(request, tmp_path_factory) -> Recipe:
    texts = [*PAIRS["seeker"], *PAIRS["response"]]
    folder = save(request.param, tmp_path_factory.mktemp(request.param), texts)
    return Recipe(
        id=str(folder),
        revision=None,
        licence="none",
        learning_rates=[1e-5, 1e-2],
        epochs=[1, 2],
        chosen=None,
        batch_size=16,
        dropout=0.1,
        attention_heads=1,
        tune_seeker=False,
        max_length=64,
    )


def nothing(label):
    return lambda done, total: None


def chosen(recipe: Recipe, **setting) -> Recipe:
    return recipe.model_copy(update={"chosen": dict.fromkeys(MECHANISMS, Setting(**setting))})


def trained(recipe, folder, progress=lambda done, total: None, every=5, tune_seeker=False):
    recipe = recipe.model_copy(update={"tune_seeker": tune_seeker})
    own, setting = PAIRS.iloc[:70], Setting(learning_rate=1e-3, epochs=2)
    arguments = (list(own["seeker"]), list(own["response"]), own["EX"].to_numpy(), 3, folder / "checkpoint.safetensors")
    return bi_encoder_network.train(recipe, setting, *arguments, progress, every).state_dict()


class Killed(BaseException):
    pass


@pytest.mark.parametrize("at", [4, 5, 7])
def test_a_training_that_was_killed_ends_with_the_same_weights(recipe, tmp_path, at):
    """Ten steps, five an epoch, a checkpoint after the fifth: killed before it, on it, and in the second epoch."""

    def kill(done, total):
        assert total == 10
        if done == at:
            raise Killed

    whole = trained(recipe, tmp_path / "whole")
    with pytest.raises(Killed):
        trained(recipe, tmp_path / "killed", kill)
    seen = []
    resumed = trained(recipe, tmp_path / "killed", lambda done, total: seen.append(done))
    assert seen[0] == (6 if at >= 5 else 1) and seen[-1] == 10
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_the_seed_decides_and_the_post_s_encoder_is_tuned_only_where_it_should(recipe, tmp_path):
    frozen, again = trained(recipe, tmp_path / "a"), trained(recipe, tmp_path / "b")
    assert all(torch.equal(frozen[name], again[name]) for name in frozen)
    start = load_file(f"{recipe.id}/model.safetensors")
    tuned = trained(recipe, tmp_path / "c", tune_seeker=True)
    name = next(n for n in start if n.endswith("weight") and "pooler" not in n and "norm" not in n.lower())
    assert torch.equal(frozen[f"seeker.{name}"], start[name]) and not torch.equal(tuned[f"seeker.{name}"], start[name])
    assert not torch.equal(frozen[f"response.{name}"], start[name])


def test_the_reply_attends_to_the_post_and_padding_changes_nothing(recipe):
    torch.manual_seed(0)
    network = bi_encoder_network.Network(recipe)
    posts, replies = ["Post number 1.", "Post number 22."], ["Tea is cheap.", "What happened after that?"]
    alone = [
        bi_encoder_network.probabilities(network, recipe, [p], [r])[0] for p, r in zip(posts, replies, strict=True)
    ]
    longer = ["Post number 3. " * 4]
    together = bi_encoder_network.probabilities(network, recipe, [*posts, *longer], [*replies, replies[1] * 3])
    np.testing.assert_allclose(together[:2], alone, atol=1e-5)
    other = bi_encoder_network.probabilities(network, recipe, longer, replies[:1])
    assert abs(other[0] - alone[0]) > 1e-6, "another post, another probability"
    assert network.attention.embed_dim == WIDTH


def test_the_search_chooses_on_dev_and_the_test_is_read_once(recipe, tmp_path):
    classifier = BiEncoder("tiny", recipe, PAIRS, 0, tmp_path, nothing)
    folder = classifier.fit("EX")
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    assert [(t["learning_rate"], t["epochs"]) for t in metrics["grid"]] == [(1e-5, 1), (1e-2, 1), (1e-5, 2), (1e-2, 2)]
    best = max(t["dev_F1"] for t in metrics["grid"])
    first = next(t for t in metrics["grid"] if t["dev_F1"] == best)
    assert metrics["setting"] == {k: first[k] for k in ("learning_rate", "epochs")}
    assert metrics["data_sha256"] == data_sha256(PAIRS, "EX") and metrics["recipe"]["id"] == recipe.id
    assert metrics["n_test"] == (epitome.split(PAIRS, 0) == "test").sum() and set(metrics["test"]) == {"F1", "accuracy"}
    assert sorted(p.name for p in folder.iterdir()) == ["grid.json", "metrics.json", "model.safetensors"]
    texts = "".join(p.read_text(encoding="utf-8") for p in folder.glob("*.json"))
    assert not any(t in texts for t in [*PAIRS["response"], *PAIRS["seeker"], *PAIRS["sp_id"]])


def test_a_search_that_was_killed_goes_on_with_the_next_setting(recipe, tmp_path):
    labels = []

    def progress(label):
        labels.append(label)

        def told(done, total):
            if len(labels) == 3:
                raise Killed

        return told

    with pytest.raises(Killed):
        BiEncoder("tiny", recipe, PAIRS, 0, tmp_path, progress).fit("ER")
    whole = BiEncoder("tiny", recipe, PAIRS, 0, tmp_path / "whole", nothing).fit("ER")
    labels.clear()
    folder = BiEncoder("tiny", recipe, PAIRS, 0, tmp_path, lambda label: labels.append(label) or nothing(label)).fit(
        "ER"
    )
    assert labels[0].startswith("tiny ER 1e-05 × 2") and len(labels) == 3
    assert (folder / "metrics.json").read_text() == (whole / "metrics.json").read_text()
    assert (folder / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def test_it_learns_and_is_loaded_where_it_was_trained_before(recipe, tmp_path, monkeypatch):
    classifier = BiEncoder("tiny", chosen(recipe, learning_rate=1e-2, epochs=12), PAIRS, 0, tmp_path, nothing)
    test = PAIRS[epitome.split(PAIRS, 0) == "test"]
    reading = classifier.read(list(test["seeker"]), list(test["response"]))
    right = (reading.profiles == test[list(MECHANISMS)].to_numpy()).mean()
    assert right > 0.9, "each mechanism is one sentence"
    monkeypatch.setattr(bi_encoder_network, "train", lambda *_: pytest.fail("trained again"))
    again = classifier.read(list(test["seeker"]), list(test["response"]))
    np.testing.assert_array_equal(again.probabilities, reading.probabilities)


def test_other_data_are_another_training(recipe, tmp_path):
    one = chosen(recipe, learning_rate=1e-3, epochs=1)
    first = BiEncoder("tiny", one, PAIRS, 0, tmp_path, nothing).fit("IP")
    flipped = PAIRS.assign(IP=1 - PAIRS["IP"])
    assert BiEncoder("tiny", one, flipped, 0, tmp_path, nothing).fit("IP") != first
    assert BiEncoder("tiny", one, PAIRS, 1, tmp_path, nothing).fit("IP") != first


def test_an_encoder_that_cannot_be_had_is_a_problem(recipe, tmp_path):
    gone = recipe.model_copy(update={"id": str(tmp_path / "nowhere")})
    with pytest.raises(Problem, match=r"params/bi_encoders\.yaml: .*nowhere could not be fetched.*write its folder"):
        BiEncoder("tiny", gone, PAIRS, 0, tmp_path, nothing).fit("ER")


def test_the_named_encoders_are_those_of_the_paper(root):
    found = recipes.load(root)
    assert list(found) == ["RoBERTa-base", "RoBERTa-large", "ModernBERT-base", "ModernBERT-large"]


@pytest.mark.parametrize("package", ["torch", "transformers", "safetensors"])
def test_a_missing_package_is_told_with_the_line_that_installs_it(recipe, tmp_path, monkeypatch, package):
    monkeypatch.delitem(sys.modules, "xlc_utils.empathy.bi_encoder_network")
    monkeypatch.delattr("xlc_utils.empathy.bi_encoder_network")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(Problem) as told:
        bi_encoder.BiEncoder("tiny", recipe, PAIRS, 0, tmp_path, nothing).fit("ER")
    assert str(told.value) == f'the bi-encoder: {package} is not installed; run `python -m pip install -e ".[train]"`.'
