"""running/plan.py: what a run will cost, said before it does anything."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from xlc_utils.chat.base import Chat, Reply, Sampling, call_key
from xlc_utils.chat.record import Call, Record
from xlc_utils.registry import models, prompts
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.running.params import load
from xlc_utils.running.plan import information_settings, plan_table, render, render_settings


@pytest.fixture(scope="module")
def paper(root: Path) -> pd.DataFrame:
    return plan_table(root, load(root / "params" / "paper.yaml"))


def calls(table: pd.DataFrame, step: str) -> pd.Series:
    return table[table["step"] == step].set_index("model")["calls"]


def test_the_papers_answers_and_verdicts(paper: pd.DataFrame):
    answers = calls(paper, "answers (information)")
    assert len(answers) == 12 and (answers == 31 * 150).all()
    assert (calls(paper, "answers (empathy)") == 31 * 100).all()
    assert calls(paper, "claims").to_dict() == {"Qwen-2.5-14B": 12 * 31 * 150}
    # 25 claims an answer, verified in both directions, for 30 languages beside English.
    assert calls(paper, "verdicts").to_dict() == {"Qwen-2.5-14B": 2 * 12 * 30 * 150 * 25}
    assert calls(paper, "dialogues").to_dict().keys() == {
        "gpt-4.1-mini",
        "Llama-3.3-70B",
        "Mixtral-8x7B",
        "Command-R",
        "Llama-3.1-8B",
        "Claude-Sonnet-4",
    }
    assert calls(paper, "scores and labels").to_dict() == {"gpt-5-mini": 2 * 100 * 6 * 4}


def test_the_papers_translation(paper: pd.DataFrame):
    sentences = paper.set_index(["step", "model"])["sentences"]
    answers = 12 * 30 * (150 * 18 + 100 * 6)
    assert sentences["answers into English", "nllb-moe-54b"] == answers
    assert sentences["round trips", "nllb-moe-54b"] == 10 * 2 * 150 * 18
    # 20 of the 30 languages have no prompts written; the 10 others have 16 of 150.
    assert sentences["prompts into the languages", "nllb-moe-54b"] == 2 * (20 * 150 + 10 * (150 - 16) + 30 * 100)


def test_dollars_only_where_models_yaml_has_a_price(root: Path, paper: pd.DataFrame):
    registry = models.load(root)
    for row in paper.itertuples():
        prices = registry.models[row.model].prices if row.model in registry.models else None
        assert pd.isna(row.dollars) == (prices is None), row
        if prices:
            expected = (row.prompt_tokens * prices.input + row.completion_tokens * prices.output) / 1e6
            assert row.dollars == pytest.approx(expected)


def test_a_longer_limit_costs_more_until_answers_end_by_themselves(root: Path):
    path = root / "params" / "paper.yaml"
    short, whole, longer = (
        plan_table(root, load(path, {"generation_max_tokens": n}))["completion_tokens"].sum() for n in (100, 450, 4096)
    )
    assert short < whole == longer


def test_the_plan_as_text_names_what_was_guessed(paper: pd.DataFrame):
    text = render(paper)
    assert "2,700,000" in text and "in all" in text and "Guessed: 450 tokens and 25 claims" in text
    lines = text.splitlines()
    assert len(lines) == len(paper) + 4
    total = float(next(line for line in lines if line.strip().startswith("in all")).split()[-1])
    assert total == pytest.approx(paper["dollars"].sum(), abs=0.005)


def test_a_run_that_asks_nobody(root: Path):
    nothing = {"models": ["known-answers"], "round_trip_prompts": 0, "information_prompts": 0, "empathy_prompts": 0}
    table = plan_table(root, load(root / "params" / "smoke.yaml", nothing))
    assert table.empty
    assert render(table) == "This run calls no model and translates nothing."


def put(record: Record, model: str, n: int, outcome: Outcome = Outcome.OK) -> None:
    for i in range(n):
        chat, sampling = Chat.user(f"{model} {outcome} {i}"), Sampling()
        key = call_key({"model": model}, chat, sampling)
        record.put([Call(key, model, {"model": model}, chat, sampling, Reply("so", outcome), 0.0)])


def test_what_is_recorded_is_counted_once_over_the_steps_of_a_model(project: Path):
    params = load(project / "params" / "smoke.yaml")
    before = plan_table(project, params)
    assert not before["recorded"].any() and not (project / "results").exists()
    record = Record(project / "results" / "smoke" / "calls.sqlite")
    put(record, "smollm2-135m-instruct", 4)  # 3 of information, 3 of empathy
    put(record, "smollm2-135m-instruct", 2, Outcome.ERROR)  # asked again
    put(record, "gemma-3-270m", 1, Outcome.REFUSED)
    put(record, "somebody-else", 5)
    after = plan_table(project, params)
    pd.testing.assert_frame_equal(after.drop(columns="recorded"), before.drop(columns="recorded"))
    own = after[after["model"] == "smollm2-135m-instruct"]
    assert list(own["calls"]) == [3, 3] and list(own["recorded"]) == [3, 1]
    assert after[after["model"] == "gemma-3-270m"]["recorded"].sum() == 1
    assert after["recorded"].sum() == 5


def test_no_more_is_recorded_than_will_be_asked(project: Path):
    put(Record(project / "results" / "smoke" / "calls.sqlite"), "smollm2-135m-instruct", 50)
    own = plan_table(project, load(project / "params" / "smoke.yaml")).query("model == 'smollm2-135m-instruct'")
    assert list(own["recorded"]) == list(own["calls"])


def test_an_answers_file_is_planned_as_translation_alone(project: Path):
    (project / "mine.csv").write_text("language,prompt_id,text\nen,astronomy-02,So.\n", encoding="utf-8")
    changes = {"models": ["mine.csv"], "round_trip_model": "mine"}
    table = plan_table(project, load(project / "params" / "smoke.yaml", changes))
    assert set(table["notebook"]) == {"02_translate", "03_fidelity_check"}


def test_each_direction_of_a_round_trip_is_done_by_who_knows_it(project: Path):
    translators = ["firefox-pten", "gemma-3-270m-few-shot"]
    changes = {"translators": translators, "round_trip_languages": ["pt"], "round_trip_prompts": 2}
    params = load(project / "params" / "smoke.yaml", changes)
    trips = plan_table(project, params).query("step == 'round trips'").set_index("model")
    assert trips["sentences"].to_dict() == {"gemma-3-270m": 36, "firefox-pten": 36}
    assert trips["calls"].to_dict() == {"gemma-3-270m": 36, "firefox-pten": 0}


def test_the_probe_is_planned_as_large_as_it_is(root: Path, paper: pd.DataFrame):
    from xlc_utils.judges import probe

    judges = ["gpt-5-mini", "gpt-5.1", "gpt-5.1-high", "Qwen3-32B", "Llama-4-Maverick", "gpt-oss-120b"]
    pairs = len(probe.probe_dialogues(root, probe.probe_languages(root)))
    assert calls(paper, "probe").to_dict() == dict.fromkeys(judges, pairs), "those of the ablation too"


def test_verdicts_on_known_answers_are_planned_about_as_many_as_there_are(root: Path):
    from xlc_utils.information.original import original_pairs

    codes = ("en", "es", "hi")
    known = {code: prompts.known_answers(root, code) for code in codes}
    pairs = len(original_pairs(known, prompts.facts(root)))
    toy = "smollm2-135m-instruct"
    given = {"languages": ["es", "hi"], "models": ["known-answers"], "round_trip_languages": []}
    asked = plan_table(root, load(root / "params" / "demo.yaml", {**given, "claim_verifiers": [toy]}))
    by_claim, by_answer = asked[asked["step"] == "verdicts on known answers"]["calls"]
    assert by_claim == pytest.approx(2 * pairs, abs=2), "translated and not"
    assert by_answer == 2 * 2 * 16, "two directions of the held-out half of two languages, translated and not"
    some = plan_table(root, load(root / "params" / "demo.yaml", {**given, "measured_verifiers": [toy]}))
    by_claim, by_answer = some[some["step"] == "verdicts on known answers"]["calls"]
    assert by_answer == 2 * 2 * 8 and by_claim == pytest.approx(2 * pairs / 2 / 2, rel=0.1), "one of two languages"


def test_claims_and_verdicts_under_each_setting(root: Path, paper: pd.DataFrame):
    path = root / "params" / "paper.yaml"
    settings = information_settings(root, load(path)).set_index("setting")
    answers = 12 * 150
    assert settings["calls"].to_dict() == {
        "sentence, English anew for each language": answers * 2 * 30 * 18,
        "claim_unit: sentence": answers * 31 * 18,
        "claim_unit: answer": answers * 31,
        "verdict_unit: claim": answers * 2 * 30 * 25,
        "verdict_unit: answer": answers * 2 * 30,
    }
    assert settings.loc["verdict_unit: claim", "prompt_tokens"] == answers * 60 * 25 * (120 + 450 + 20)
    assert settings.loc["verdict_unit: answer", "prompt_tokens"] == answers * 60 * (120 + 450 + 25 * 20)
    assert "2,700,000" in render_settings(settings.reset_index())
    for claim_unit, verdict_unit in (("answer", "claim"), ("sentence", "answer")):
        chosen = plan_table(root, load(path, {"claim_unit": claim_unit, "verdict_unit": verdict_unit}))
        for step, unit in (("claims", f"claim_unit: {claim_unit}"), ("verdicts", f"verdict_unit: {verdict_unit}")):
            [row] = chosen[chosen["step"] == step].to_dict("records")
            assert {k: row[k] for k in settings} == settings.loc[unit].drop("step").to_dict() | {"step": step}
