"""Notebooks 01 and 06 with generators and a judge behind an OpenAI-compatible endpoint, as with a paid model.

They are executed four times, which takes a minute.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

import numpy as np
import pandas as pd
import pytest
import yaml
from child import ended, xlc
from fake_endpoint import Answer, FakeEndpoint, completion

from xlc_utils.judges.dialogues import draw_parameters, read_options
from xlc_utils.judges.released import PARAMETERS

pytestmark = pytest.mark.slow

KEY = "sk-secret-of-the-judged-run"
DRAWS, LANGUAGES, GENERATORS = 3, ("en", "et", "fi"), ("careful", "careless")
DIALOGUES = DRAWS * len(LANGUAGES) * len(GENERATORS)
PROBED = 24 * 4  # dialogues with and without a planted flaw, in four languages
PROBE = 2 * PROBED  # by both judges
FURTHER = 2 * DRAWS * len(GENERATORS)  # scores under an Estonian meta-prompt, labels by a second judge
PARAMS = {
    "run_name": "judged",
    "models": ["known-answers"],
    "languages": ["pt"],
    "round_trip_prompts": 0,
    "dialogue_generators": list(GENERATORS),
    "dialogue_languages": list(LANGUAGES),
    "dialogues_per_language": DRAWS,
    "judges": ["judge"],
    "judged_dialogues": DRAWS,
    "meta_prompts": ["et"],
    "ablation_judges": ["second-judge"],
    "ablation_language": "fi",
}
# Which requests, of all in turn, the endpoint refuses.
REFUSED_WHILE_GENERATING, REFUSED_WHILE_JUDGING = 6, DIALOGUES + 12
TURNS = {
    "English": (
        "Hello! Thank you for writing to us. How can I help you today?",
        "I ordered a lamp last week and the parcel has still not arrived.",
    ),
    "Estonian": (
        "Tere! Aitäh, et meile kirjutasite. Kuidas saan teid täna aidata?",
        "Tellisin eelmisel nädalal lambi, aga pakk ei ole ikka veel kohale jõudnud.",
    ),
    "Finnish": (
        "Hei! Kiitos yhteydenotostanne. Kuinka voin auttaa teitä tänään?",
        "Tilasin viime viikolla lampun, mutta pakettia ei ole vieläkään näkynyt.",
    ),
}
# What the judge thinks of each generator, whose agents it knows by their names. To the probe it is blind.
SCORES = {"careful": {"G": 4, "R": 3, "C": 3, "F": 2}, "careless": {"G": 1, "R": 2, "C": 0, "F": 1}}

BLIND = {"G": 2, "R": 2, "C": 2, "F": 2}
MARKED, SECOND_MARKED = (f"{name} (failed the probe in en, et, fi, hu)" for name in ("judge", "second-judge"))


def answer(request: dict) -> Answer:
    """What the generators and the judge say."""
    body = request["body"]
    asked = body["messages"][-1]["content"]
    if "judge" not in body["model"]:
        language = next(name for name in TURNS if name in asked)
        return completion(dialogue(body["model"], TURNS[language], crc32(asked.encode())))
    fields = body["response_format"]["json_schema"]["schema"]["properties"]
    if "G" in fields:
        named = next((name for name in GENERATORS if f"{name.title()} Falk" in asked), None)
        scores = SCORES.get(named, BLIND)
        if asked.startswith("Sa hindad"):  # the Estonian meta-prompt makes this judge milder
            scores = scores | {"G": min(scores["G"] + 1, 4)}
        return completion(json.dumps(scores | {"explanation": "so"}))
    option = 0 if body["model"] == "judge" else -1
    return completion(json.dumps({name: fields[name]["enum"][option] for name in PARAMETERS} | {"explanation": "so"}))


def dialogue(generator: str, texts: tuple[str, str], number: int) -> str:
    agent = {"sender": "agent", "name": f"{generator.title()} Falk", "text": texts[0]}
    customer = {"sender": "customer", "name": "Anna", "text": f"{texts[1]} ({number})"}
    return json.dumps({"messages": [agent, customer]})


def entry(identifier: str, url: str) -> dict:
    return {
        "backend": "openai",
        "kind": "chat",
        "id": identifier,
        "revision": None,
        "licence": "none",
        "endpoint": url,
        "api_key_env": "FAKE_KEY",
        "concurrency": 1,
        "prices": None,
        "trained_on": {"languages": None, "source": "not stated"},
        "paper": [],
        "toy": False,
    }


@dataclass
class Judged:
    """A run that its endpoint stopped twice: the project, its results, what each attempt said, requests after each."""

    project: Path
    endpoint: FakeEndpoint
    attempts: list[tuple[int, str, str, int]] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.project / "results" / "judged"

    def attempt(self) -> None:
        params = str(self.project / "params" / "judged.yaml")
        said = ended(xlc(self.project, "run", params, "--only", "01,06", FAKE_KEY=KEY))
        self.attempts.append((*said, len(self.endpoint.requests)))

    def table(self, name: str) -> pd.DataFrame:
        return pd.read_csv(self.folder / "tables" / f"{name}.csv")


@pytest.fixture(scope="module")
def judged(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judged]:
    project, endpoint = tmp_path_factory.mktemp("judged"), FakeEndpoint()
    for name in ("params", "notebooks"):
        shutil.copytree(root / name, project / name)
    params, entries = (
        project / "params",
        {name: entry(name, endpoint.url) for name in (*GENERATORS, "judge", "second-judge")},
    )
    change(params / "models.yaml", params / "models.yaml", lambda registry: registry["models"].update(entries))
    change(params / "smoke.yaml", params / "judged.yaml", lambda values: values.update(PARAMS))
    refused = {REFUSED_WHILE_GENERATING, REFUSED_WHILE_JUDGING}
    no = Answer({"error": {"message": f"the key {KEY} may not use this"}}, status=403)
    endpoint.otherwise = lambda request: no if len(endpoint.requests) in refused else answer(request)
    run = Judged(project, endpoint)
    for _ in range(2):
        run.attempt()
    label(run, "et")  # the second attempt stopped at the judge, when the sheets were written
    for _ in range(2):
        run.attempt()
    yield run
    endpoint.stop()


def label(run: Judged, language: str) -> None:
    """Two people fill in the sheet of a language alike."""
    sheet = pd.read_csv(run.folder / "rating_sheets" / "dialogue" / f"{language}-1.csv", dtype=str)
    filled = sheet.assign(coherence=[str(i % 2) for i in range(len(sheet))], fluency="2")
    (run.folder / "ratings").mkdir()
    for name in ("A1", "A2"):
        filled.assign(annotator=name).to_csv(run.folder / "ratings" / f"{name}.csv", index=False)


def change(source: Path, target: Path, update: Callable[[dict], None]) -> None:
    content = yaml.safe_load(source.read_text(encoding="utf-8"))
    update(content)
    target.write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")


def test_an_endpoint_that_refuses_is_one_sentence_and_nothing_answered_is_asked_again(judged: Judged):
    codes = [code for code, *_ in judged.attempts]
    assert codes == [2, 2, 0, 0], judged.attempts[-1][2]
    for (_, _, err, _), notebook in zip(judged.attempts, ("01_generate", "06_judge_stability"), strict=False):
        said = err.splitlines()[-1]
        assert said.startswith(f"xlc: {notebook}, cell ") and "the endpoint answers HTTP 403" in said
        assert "check what the key in FAKE_KEY may use" in said and "Traceback" not in err
    first, second, third, fourth = (requests for *_, requests in judged.attempts)
    assert REFUSED_WHILE_GENERATING <= first < REFUSED_WHILE_JUDGING <= second < third
    assert third == 3 * DIALOGUES + PROBE + FURTHER + 2, (
        "a dialogue, two judgements of it, the probe, two further checks, and the two that were refused"
    )
    assert fourth == third and "06_judge_stability: nothing has changed, skipped" in judged.attempts[-1][1]
    bodies = [json.dumps(request["body"], sort_keys=True) for request in judged.endpoint.requests]
    assert len(set(bodies)) == 3 * DIALOGUES + PROBE + FURTHER, "the same request was sent twice after it was answered"


def test_the_key_is_sent_and_stays_out_of_every_file(judged: Judged):
    assert all(r["headers"]["authorization"] == f"Bearer {KEY}" for r in judged.endpoint.requests)
    files = [path for path in judged.project.rglob("*") if path.is_file()]
    assert len(files) > 50
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []
    assert all(KEY not in out + err for _, out, err, _ in judged.attempts)


def test_scores_are_those_of_the_judge(judged: Judged):
    others, english = judged.table("b_table_1_judge"), judged.table("b_table_8_judge_english")
    assert set(others["language"]) == {"et", "fi"} and set(english["language"]) == {"en"}
    for table in (others, english):
        languages = table["language"].nunique()
        assert sorted(table["generator"]) == sorted(GENERATORS * languages) and (table["judge"] == MARKED).all()
        for row in table.itertuples():
            assert {name: getattr(row, name) for name in "GRCF"} == SCORES[row.generator]
            assert row.n == row.ok == row.scored == row.labels_scored == DRAWS and row.no_dialogue == 0


def test_a_judge_that_is_blind_to_planted_flaws_is_marked(judged: Judged):
    probe = judged.table("judge_probe")
    overall = probe[(probe["language"] == "all") & (probe["flaw"] == "all")]
    assert overall["judge"].tolist() == [MARKED, SECOND_MARKED], "the judges of the ablation are probed too"
    assert (overall["n"] == PROBED / 2).all() and (overall["share"] == 0.5).all()
    assert (overall["tied"] == overall["n"]).all()


def test_no_table_calls_a_judge_that_failed_by_its_bare_name(judged: Judged):
    seen = {}
    for path in (judged.folder / "tables").glob("*.csv"):
        table = pd.read_csv(path, dtype=str)
        seen[path.stem] = {cell for cell in table.to_numpy().ravel() if str(cell).startswith(("judge", "second-judge"))}
    named = {name for name, cells in seen.items() if cells}
    assert named >= {"b_table_1_judge", "b_table_11_judge", "b_figure_4_judge_ablation", "b_judges_agreement"}
    assert set().union(*seen.values()) == {MARKED, SECOND_MARKED}


def test_labels_are_held_against_the_draws(judged: Judged):
    """The judge always names the first option of each parameter, so it is right as often as that was drawn."""
    draws, labels = draw_parameters(DRAWS, seed=0), read_options().labels
    share = {name: np.mean([getattr(draw, name) == labels[name][0] for draw in draws]) for name in PARAMETERS}
    table = judged.table("b_figure_3_label_recovery")
    assert len(table) == len(PARAMETERS) * len(GENERATORS) * len(LANGUAGES)
    for row in table.itertuples():
        assert row.accuracy == pytest.approx(share[row.category], abs=0.001) and row.n == DRAWS
    lra = judged.table("b_table_1_judge")["LRA"]
    assert lra.to_numpy() == pytest.approx(np.mean(list(share.values())), abs=0.001)
    for name in ("b_figure_3_label_recovery", "b_figure_2_judge"):
        for suffix in ("png", "pdf"):
            assert (judged.folder / "figures" / f"{name}.{suffix}").stat().st_size > 1000


def test_ranks_of_generators_that_are_scored_alike_everywhere_do_not_move(judged: Judged):
    table = judged.table("b_table_11_judge").set_index("metric")
    assert sorted(table["pair"].unique()) == ["en–et", "en–fi", "et–fi"]
    for name in ("grammar", "readability", "coherence", "fluency"):
        assert (table.loc[name, "tau"] == 1).all() and (table.loc[name, "inversions"] == 0).all()
    # Labels of both generators are recovered alike, so there is no rank.
    assert table.loc["label recovery", "tau"].isna().all() and table.loc["label recovery", "reason"].notna().all()


def test_a_judge_that_is_milder_in_another_language_is_seen(judged: Judged):
    table = judged.table("b_table_12_meta_prompts").set_index(["generator", "score"])
    assert (table["n"] == DRAWS).all() and (table["unread"] == 0).all()
    assert table.loc[("careless", "G"), "difference"] == 1 and table.loc[("careful", "G"), "difference"] == 0
    assert (table.drop(index=[("careless", "G")])["difference"] == 0).all()


def test_a_second_judge_recovers_other_labels(judged: Judged):
    draws, labels = draw_parameters(DRAWS, seed=0), read_options().labels
    table = judged.table("b_figure_4_judge_ablation").set_index(["category", "judge"])
    for name in PARAMETERS:
        for judge, option in ((MARKED, 0), (SECOND_MARKED, -1)):
            share = np.mean([getattr(draw, name) == labels[name][option] for draw in draws])
            row = table.loc[(name, judge)]
            assert row["accuracy"] == pytest.approx(share, abs=0.001) and row["n"] == DRAWS * len(GENERATORS)
    assert set(judged.table("b_judges_agreement")["first"]) == {MARKED, "all"}


def test_the_runs_own_dialogues_are_measured(judged: Judged):
    means = judged.table("b_table_2_generated")
    assert len(means) == len(GENERATORS) * len(LANGUAGES) and (means["n_dialogues"] == DRAWS).all()
    assert means["similarity"].between(0.5, 1).all() and (means["share_right_language"] == 1).all()
    assert set(judged.table("b_table_11_generated")["metric"]) >= {"TTR", "self-BLEU", "similarity"}


def test_people_label_the_runs_own_dialogues_and_their_labels_come_back(judged: Judged):
    folder = judged.folder / "rating_sheets" / "dialogue"
    assignment = pd.read_csv(folder / "assignment.csv")
    assert assignment.groupby("language")["annotator"].agg(list).to_dict() == {c: ["A1", "A2"] for c in LANGUAGES}
    status = pd.read_csv(folder / "completeness.csv").groupby("language")["status"].unique().map(list).to_dict()
    assert status == {"en": ["not returned"], "et": ["complete"], "fi": ["not returned"]}
    row = judged.table("b_human_agreement_generated").set_index("question").loc["coherence"]
    assert (row["language"], row["annotators"], row["fleiss"]) == ("et", "A1+A2", 1)
    assert row["n_dialogues"] == DRAWS * len(GENERATORS)


def test_every_dialogue_and_judgement_has_its_outcome(judged: Judged):
    manifest = json.loads((judged.folder / "manifest.json").read_text(encoding="utf-8"))
    counts = {name: n for stage in manifest["notebooks"] for name, n in stage["outcomes"].items()}
    each = DRAWS * len(LANGUAGES)
    assert {counts[f"dialogues/{g}"]["ok"] for g in GENERATORS} == {each}
    assert counts["judge_scores/judge"] == counts["judge_labels/judge"] == {"ok": 2 * each, "n": 2 * each}
    assert {name: manifest["models"][name]["id"] for name in (*GENERATORS, "judge")} == {
        name: name for name in (*GENERATORS, "judge")
    }


def test_a_run_without_a_system_of_its_own_has_no_ranks_to_show(judged: Judged):
    """`known-answers` are no system: the last table of notebook 06 is there, and empty."""
    assert judged.table("b_table_11_own_evaluators").empty
