"""The prompt of one language changes: that language is asked, translated and evaluated again, and no other one."""

from __future__ import annotations

import copy
import json
import shutil
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
import yaml
from fake_endpoint import Answer, FakeEndpoint, completion

from xlc_utils.registry import prompts
from xlc_utils.registry.problems import Problem
from xlc_utils.running.params import load
from xlc_utils.running.pipeline import notebooks, run_pipeline, selected
from xlc_utils.running.plan import plan_table

LANGUAGES = ("es", "pt")
PROMPTS = {"information_prompts": ["astronomy-02", "macroeconomics-01"], "empathy_prompts": 1}
ASKED = 3  # prompts in each language
CHANGED = "¿Por qué cambia la Luna de aspecto, y qué son los eclipses?"
TABLES = ("responses", "translations", "sentences", "claims", "verdicts", "information")
ANSWERS = {
    "en": "The Moon emits no light of its own. It reflects sunlight. Its phases follow from its position.",
    "es": "La Luna no emite luz propia. Refleja la luz del Sol. Sus fases dependen de su posición.",
    "pt": "A Lua não emite luz própria. Reflete a luz do Sol. As suas fases dependem da sua posição.",
}
TRANSLATION = (
    "The Moon shines by the light of the Sun, and what we see of it depends on where it stands, seen from here."
)


def answer(request: dict, language_of: dict[str, str]) -> Answer:
    """A system's answer, which ends with what was asked, or a translation of the right length; no two are the same."""
    messages = request["body"]["messages"]
    asked = messages[-1]["content"]
    if messages[0]["role"] == "system":
        return completion(f"{sum(asked.encode()) % 997}: {TRANSLATION}"[: max(len(asked), 20)])
    return completion(f"{ANSWERS[language_of[asked]]} {asked}")


@pytest.fixture
def asking(project: Path, root: Path, write_params, endpoint: FakeEndpoint, in_process) -> Path:
    """A run whose only system, and whose translator, is behind the endpoint; returns the params file."""
    shutil.copytree(root / "notebooks", project / "notebooks")
    path = project / "params" / "models.yaml"
    entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    system = copy.deepcopy(entries["models"]["aya-exp-8b"])  # YAML here has no aliases
    entries["models"]["fake"] = {**system, "endpoint": endpoint.url, "api_key_env": None, "concurrency": 1}
    entries["translators"]["fake-shots"] = {"backend": "few_shot", "model": "fake", "licence": "none", "toy": True}
    path.write_text(yaml.safe_dump(entries, allow_unicode=True), encoding="utf-8")
    language_of = {
        text: c for d in prompts.DIMENSIONS for c in ANSWERS for text in prompts.prompts(root, d, c).values()
    }
    endpoint.otherwise = partial(answer, language_of={**language_of, CHANGED: "es"})
    params = write_params(
        languages=list(LANGUAGES),
        models=["fake"],
        translators=["fake-shots"],
        round_trip_model="fake",
        round_trip_prompts=0,
        claim_verifiers=["lexical"],
        original_language_verifier=None,  # takes the key out
        **PROMPTS,
    )
    params.write_text(params.read_text(encoding="utf-8") + "original_language_verifier: null\n", encoding="utf-8")
    return params


def execute(project: Path, params_file: Path, *numbers: str) -> list[str]:
    return run_pipeline(project, load(params_file), selected(notebooks(project), numbers))


def parts(project: Path) -> dict[str, pd.DataFrame]:
    folder = project / "results" / "test"
    return {table: pd.read_parquet(folder / table / "fake.parquet") for table in TABLES}


@pytest.mark.slow
def test_changing_one_language_s_prompt_recomputes_that_language_only(asking: Path, project: Path, endpoint):
    assert len(execute(project, asking, "01", "02", "04")) == 3
    before, first = parts(project), len(endpoint.requests)
    assert execute(project, asking, "01", "02", "04") == [] and len(endpoint.requests) == first

    path = project / "params" / "prompts" / "information" / "es.yaml"
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    content["prompts"]["astronomy-02"] = CHANGED
    path.write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")
    executed = execute(project, asking, "01", "02", "04")
    after, asked = parts(project), [request["body"]["messages"] for request in endpoint.requests[first:]]

    assert [name[:2] for name in executed] == ["01", "02", "04"]
    assert [m[-1]["content"] for m in asked if m[0]["role"] == "user"] == [CHANGED], "one answer, to the new prompt"
    new = after["sentences"].query("language == 'es' and prompt_id == 'astronomy-02'")["source"]
    old = set(before["sentences"]["source"])
    translated = {m[-1]["content"] for m in asked if m[0]["role"] == "system"}
    assert translated == set(new) - old and translated, "only sentences of the new answer that no other one has"
    for table in TABLES:
        rows = [frame.query("language != 'es'").reset_index(drop=True) for frame in (before[table], after[table])]
        assert set(rows[0]["language"]) == (
            {"en", "pt"} if table in ("responses", "translations", "claims") else {"pt"}
        )
        pd.testing.assert_frame_equal(*rows)
        spanish = [
            frame.query("language == 'es' and prompt_id != 'astronomy-02'") for frame in (before[table], after[table])
        ]
        pd.testing.assert_frame_equal(*[frame.reset_index(drop=True) for frame in spanish])
    assert not after["responses"].equals(before["responses"])


def test_a_plan_before_during_and_after_a_run_that_was_stopped(asking: Path, project: Path, endpoint):
    def answers() -> pd.DataFrame:
        table = plan_table(project, load(asking))
        return table[table["notebook"] == "01_generate"].set_index("step")[["calls", "recorded"]]

    planned = answers()
    assert planned["calls"].to_dict() == {"answers (information)": 2 * ASKED, "answers (empathy)": ASKED}
    assert planned["recorded"].sum() == 0 and not (project / "results").exists()
    stops_at = 7
    willing = endpoint.otherwise
    endpoint.otherwise = lambda r: willing(r) if len(endpoint.requests) <= stops_at else Answer({}, status=403)
    with pytest.raises(Problem, match="the endpoint answers HTTP 403"):
        execute(project, asking, "01")
    partial = answers()
    assert partial["recorded"].sum() == stops_at and list(partial["recorded"]) == [2 * ASKED, stops_at - 2 * ASKED]
    assert partial["calls"].equals(planned["calls"])
    endpoint.otherwise = willing
    execute(project, asking, "01")
    whole = answers()
    assert (whole["recorded"] == whole["calls"]).all() and (whole["calls"] == planned["calls"]).all()
    outcomes = json.loads((project / "results" / "test" / "manifest.json").read_text(encoding="utf-8"))["calls"]
    assert {row["outcome"]: row["calls"] for row in outcomes} == {"ok": 3 * ASKED}, "the plan is what was asked"
