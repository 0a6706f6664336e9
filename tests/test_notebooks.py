"""The seven notebooks: how they are written, and that they run."""

from __future__ import annotations

import ast
import json
import re
import shutil
import signal
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pandas as pd
import papermill
import pytest
import yaml
from child import ended, wait_for, xlc

from xlc_utils.evaluation.rules import Rules
from xlc_utils.information import original, scores
from xlc_utils.information.claims import SentenceClaims
from xlc_utils.information.verdicts import Verdict
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.reporting import consistency, published
from xlc_utils.running.params import Params
from xlc_utils.running.run import file_sha256

NAMES = (
    "01_generate",
    "02_translate",
    "03_fidelity_check",
    "04_information",
    "05_empathy",
    "06_judge_stability",
    "07_figures",
)
MOST_LINES = 12


@pytest.fixture(params=NAMES)
def notebook(request: pytest.FixtureRequest, root: Path) -> nbformat.NotebookNode:
    found = nbformat.read(root / "notebooks" / f"{request.param}.ipynb", as_version=4)
    found.metadata["name"] = request.param
    return found


def code(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def prose(notebook: nbformat.NotebookNode) -> str:
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def parameters(notebook: nbformat.NotebookNode) -> dict[str, object]:
    tagged = [cell for cell in code(notebook) if "parameters" in cell.metadata.get("tags", ())]
    assert len(tagged) == 1, "not exactly one cell is tagged `parameters`"
    statements = ast.parse(tagged[0].source).body
    assert all(isinstance(s, ast.Assign) and len(s.targets) == 1 for s in statements), "more than `name = literal`"
    return {s.targets[0].id: ast.literal_eval(s.value) for s in statements}


# ---- how they are written --------------------------------------------------------------------------------------------
def test_there_are_seven(root: Path):
    assert sorted(path.stem for path in (root / "notebooks").glob("*.ipynb")) == list(NAMES)


def test_it_is_valid_and_stripped(notebook: nbformat.NotebookNode):
    nbformat.validate(notebook)
    for cell in code(notebook):
        assert cell.outputs == [] and cell.execution_count is None
        assert set(cell.metadata) <= {"tags"}, "metadata of an editor or an execution"
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)


def test_its_kernel_is_python3(notebook: nbformat.NotebookNode):
    assert notebook.metadata.kernelspec.name == "python3"
    assert set(notebook.metadata) == {"kernelspec", "language_info", "name"}
    assert notebook.metadata.language_info == {"name": "python"}, "the version of somebody's Python"


def test_its_parameters_are_the_demos(notebook: nbformat.NotebookNode, root: Path):
    given = parameters(notebook)
    demo = yaml.safe_load((root / "params" / "demo.yaml").read_text(encoding="utf-8"))
    assert given and set(given) <= set(Params.model_fields)
    assert given == {name: demo[name] for name in given}
    assert given["run_name"] == "demo"


def test_it_reads_the_parameters_it_names_and_no_others(notebook: nbformat.NotebookNode):
    """As far as its own cells show; what the package reads is tested by running it."""
    read = set(re.findall(r"\brun\.params\.(\w+)", "\n".join(cell.source for cell in code(notebook))))
    assert read <= set(parameters(notebook))


def test_its_cells_are_short(notebook: nbformat.NotebookNode):
    for cell in code(notebook):
        if "parameters" not in cell.metadata.get("tags", ()):
            assert len(cell.source.splitlines()) <= MOST_LINES, cell.source


def test_prose_and_code_take_turns(notebook: nbformat.NotebookNode):
    """No more than four cells of code in a row, and prose before the first."""
    kinds = "".join(cell.cell_type[0] for cell in notebook.cells)
    assert kinds.startswith("m") and "ccccc" not in kinds


def test_no_path_of_a_machine_is_in_it(notebook: nbformat.NotebookNode):
    absolute = r"""(["'`\s(=]|^)(/(home|work|tmp|Users|root|mnt|data|usr|var)\b|[A-Za-z]:\\|~/)"""
    assert [cell.source for cell in notebook.cells if re.search(absolute, cell.source)] == []


def test_it_has_the_parts_of_a_notebook(notebook: nbformat.NotebookNode):
    text, number = prose(notebook), notebook.metadata["name"][:2]
    assert re.match(rf"# {number} · \S", notebook.cells[0].source)
    for part in ("**Question.**", "**Papers.**", "**Time.**"):
        assert part in notebook.cells[0].source
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings[-3:] == ["Check", "Change this for your language", "Exercises"]
    exercises = text[text.index("## Exercises") :]
    kinds = re.findall(r"^(\d)\. \*\((\w+)\)\*", exercises, re.MULTILINE)
    assert kinds == [("1", "run"), ("2", "change"), ("3", "argue")]
    check = code(notebook)[-1].source.splitlines()
    assert check[-1] == "run.finish()" and any(line.startswith("assert ") for line in check)


def test_the_question_is_asked_in_few_sentences(notebook: nbformat.NotebookNode):
    question = re.search(r"\*\*Question\.\*\* (.+)", notebook.cells[0].source)[1]
    assert "?" in question and len(re.findall(r"[.?](?: |$)", question)) <= 3


def test_the_check_of_02_is_of_line_breaks(root: Path):
    """An answer whose last or only line came back empty, since its call failed, has kept its shape."""
    notebook = nbformat.read(root / "notebooks" / "02_translate.ipynb", as_version=4)
    check = code(notebook)[-1].source

    def checked(*pairs: tuple[str, str]) -> None:
        translations = pd.DataFrame(pairs, columns=["text", "english"]).assign(sentences=1)
        run = SimpleNamespace(finish=lambda: None)
        exec(check, {"translations": translations, "sentences": translations.assign(text=""), "run": run})

    checked(("Uno.", ""), ("- Uno.\n- Dos.", "- One.\n- "), ("Uno.\nDos.", "One.\n"))
    with pytest.raises(AssertionError, match="1 answers changed their shape"):
        checked(("Uno.\nDos.", "One. Two."))


def test_04_judges_an_answer_in_its_own_language_by_its_own_outcome(root: Path):
    """The translator failed on both answers, of which the second declines: as written, only that one scores 0."""
    notebook = nbformat.read(root / "notebooks" / "04_information.ipynb", as_version=4)
    [source] = [cell.source for cell in code(notebook) if "original.in_original" in cell.source]
    rows = [("p", "en", "A star."), ("p", "es", "Una estrella."), ("q", "en", "A sun."), ("q", "es", "I'm sorry.")]
    responses = pd.DataFrame(rows, columns=["prompt_id", "language", "text"])
    responses = responses.assign(dimension="information", outcome="ok")
    translations = responses.assign(english="", outcome="error")
    verifier = SimpleNamespace(name="same", verdicts=lambda claims, *_: [Verdict(1.0, True) for _ in claims])
    saved = []
    given = {
        "run": SimpleNamespace(
            model_names=["m"],
            params=Params(languages=("es",), abstain_detection="generic", bootstrap_samples=10),
            read=lambda table, name: {"responses": responses, "translations": translations}[table],
            toy=False,
        ),
        "answers": {"m": translations},
        "scores": scores.evaluate_answers(translations, SentenceClaims(), verifier)[2].assign(model="m"),
        "by_language": pd.DataFrame({"model": ["m"], "language": ["es"], "value": [float("nan")]}),
        "tables": SimpleNamespace(save_table=lambda run, name, frame, *_, **__: saved.append(frame)),
        "verifier": verifier,
        "rules": Rules(),
        "both_ways": True,
    }
    exec(
        source,
        {**vars(scores), "SentenceClaims": SentenceClaims, "original": original, "consistency": consistency, **given},
    )
    [frame] = saved
    assert frame["original"].tolist() == [pytest.approx(0.5)], "F 1 and F 0"
    assert frame[["n", "error", "scored", "scored_original"]].to_numpy().tolist() == [[2, 2, 0, 2]]


# ---- that they run ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Smoke:
    """A run of all seven notebooks in a copy of the project: its folder, what it said, and how long it took."""

    project: Path
    folder: Path
    code: int
    out: str
    err: str
    seconds: float

    @property
    def manifest(self) -> dict:
        return json.loads((self.folder / "manifest.json").read_text(encoding="utf-8"))


def copy_of(root: Path, folder: Path) -> Path:
    for name in ("params", "notebooks"):
        shutil.copytree(root / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def smoke(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Smoke:
    project = copy_of(root, tmp_path_factory.mktemp("smoke"))
    start = time.monotonic()
    code, out, err = ended(xlc(project, "run", "params/smoke.yaml"), seconds=900)
    return Smoke(project, project / "results" / "smoke", code, out, err, time.monotonic() - start)


def calls(folder: Path) -> dict[str, int]:
    """Attempts of each recorded call: a call that was asked twice has two."""
    with sqlite3.connect(folder / "calls.sqlite") as database:
        return dict(database.execute("select key, attempts from calls"))


@pytest.mark.models
def test_all_seven_run(smoke: Smoke):
    assert smoke.code == 0, smoke.err
    assert [name for name in NAMES if f"{name}: done in" in smoke.out] == list(NAMES)
    assert "open results/smoke/report.html" in smoke.out
    assert "Traceback" not in smoke.out + smoke.err
    for name in NAMES:
        done = nbformat.read(smoke.folder / "notebooks" / f"{name}.ipynb", as_version=4)
        assert all(cell.execution_count for cell in code(done))


@pytest.mark.models
def test_what_the_demo_can_compute_is_there(smoke: Smoke):
    overview = pd.read_csv(smoke.folder / "tables" / "every_table_and_figure.csv")
    listed = published.load("outputs")
    assert len(overview) == len(listed)
    possible = overview[listed["computable_at_demo_scale"].ne("no").to_numpy()]
    assert len(possible) > 15 and possible["made"].all()
    for where in possible["where"].str.split("\n").explode():
        path = smoke.folder / where
        twins = [path.with_suffix(s) for s in ((".csv", ".tex", ".html") if "tables/" in where else (".png", ".pdf"))]
        for twin in twins:
            assert twin.stat().st_size > 50, twin
    assert overview.loc[~overview["made"], "remark"].notna().all(), "an item that is not there has its reason"


@pytest.mark.models
def test_every_row_has_an_outcome_and_they_add_up(smoke: Smoke):
    counted = {name: n for stage in smoke.manifest["notebooks"] for name, n in stage["outcomes"].items()}
    parts = sorted(path for path in smoke.folder.glob("*/*.parquet"))
    assert {f"{path.parent.name}/{path.stem}" for path in parts} == set(counted)
    for path in parts:
        outcomes = pd.read_parquet(path)["outcome"]
        counts = counted[f"{path.parent.name}/{path.stem}"]
        assert set(outcomes) <= {str(o) for o in Outcome}
        assert counts == {**outcomes.value_counts().to_dict(), "n": len(outcomes)}
        assert sum(n for name, n in counts.items() if name != "n") == counts["n"]


@pytest.mark.models
def test_the_number_of_items_is_what_was_asked_for(smoke: Smoke):
    """2 languages beside English, 2 + 2 prompts; the embedded model is asked the first of each kind."""
    counted = {name: n["n"] for stage in smoke.manifest["notebooks"] for name, n in stage["outcomes"].items()}
    assert counted["prompts/all"] == 3 * 4
    assert counted["responses/known-answers"] == counted["translations/known-answers"] == 3 * 4
    assert counted["responses/smollm2-135m-instruct"] == 3 * 2
    assert counted["information/known-answers"] == 2 * 2 and counted["information/smollm2-135m-instruct"] == 2
    assert counted["profiles/known-answers"] == 3 * 2 and counted["empathy/known-answers"] == 2 * 2


@pytest.mark.models
def test_tables_of_scores_show_their_n_by_outcome(smoke: Smoke):
    names = ["information_by_language", "empathy_by_language", "a_table_4_information", "a_table_4_empathy"]
    names = dict.fromkeys([*names, "third_dimension", "information_original_language"], "n")
    for name, n in {**names, "evaluator_ruler": "claims", "evaluator_errors": "claims"}.items():
        table = pd.read_csv(smoke.folder / "tables" / f"{name}.csv")
        outcomes = [str(o) for o in Outcome if str(o) in table]
        assert outcomes and (table[outcomes].sum(axis=1) == table[n]).all(), name
        assert (table["scored"] <= table[n]).all() and table["scored"].sum(), name


@pytest.mark.models
def test_the_report_fetches_nothing(smoke: Smoke):
    page = (smoke.folder / "report.html").read_text(encoding="utf-8")
    assert len(page) > 50_000 and "data:image/png;base64," in page
    tag, address = r"<(?:script|link|img|iframe|source|object|embed)\b[^>]*", r"""["']?(?!data:|#)[^"'\s>]"""
    assert not re.search(rf"{tag}\b(?:src|href|data)\s*=\s*{address}", page, re.IGNORECASE)
    assert not re.search(r"""@import|url\(\s*["']?(?!data:)[a-z]""", page, re.IGNORECASE)
    assert "Toy models" in page


@pytest.mark.models
def test_the_manifest_is_whole(smoke: Smoke):
    manifest = smoke.manifest
    assert [stage["notebook"] for stage in manifest["notebooks"]] == list(NAMES)
    assert {"gemma-3-270m", "smollm2-135m-instruct", "known-answers"} <= set(manifest["models"])
    for entry in [*manifest["models"].values(), *manifest["translators"].values()]:
        assert entry["licence"]
    assert all(manifest["models"][m]["sha256"] for m in ("gemma-3-270m", "smollm2-135m-instruct"))
    assert "firefox-pten" in manifest["translators"]
    asked = {row["model"] for row in manifest["calls"]}
    assert asked == {"gemma-3-270m", "smollm2-135m-instruct"}
    assert all(row["prompt_tokens"] > 0 and row["seconds"] > 0 for row in manifest["calls"])
    written = {name: sha for stage in manifest["notebooks"] for name, sha in stage["written"].items()}
    for name, sha in written.items():
        assert file_sha256(smoke.folder / name) == sha
    own = {"calls.sqlite", "calls.sqlite-wal", "calls.sqlite-shm", "manifest.json"}
    others = {p.relative_to(smoke.folder).as_posix() for p in smoke.folder.rglob("*") if p.is_file()} - own
    assert {name for name in others - set(written) if not name.startswith(("stages/", "notebooks/"))} == set()


@pytest.mark.models
@pytest.mark.parametrize("name", NAMES)
def test_the_solutions_are_right(smoke: Smoke, name: str):
    """Executed on the smoke run, of which they only read."""
    source = smoke.project / "notebooks" / "solutions" / f"{name}.ipynb"
    given = yaml.safe_load((smoke.project / "params" / "smoke.yaml").read_text(encoding="utf-8"))
    own = parameters(nbformat.read(source, as_version=4))
    before = calls(smoke.folder)
    done = papermill.execute_notebook(
        source, None, {key: given[key] for key in own}, cwd=smoke.project, progress_bar=False, log_output=False
    )
    said = [o.text for cell in code(done) for o in cell.outputs if o.output_type == "stream" and o.name == "stdout"]
    assert said and all(text.strip().endswith(": right.") for text in said), said
    assert calls(smoke.folder) == before


@pytest.mark.models
def test_a_second_run_executes_nothing_and_asks_nobody(smoke: Smoke):
    before, manifest = calls(smoke.folder), (smoke.folder / "manifest.json").read_bytes()
    code, out, err = ended(xlc(smoke.project, "run", "params/smoke.yaml"))
    assert code == 0, err
    assert out.splitlines()[:7] == [f"{name}: nothing has changed, skipped" for name in NAMES]
    assert calls(smoke.folder) == before and (smoke.folder / "manifest.json").read_bytes() == manifest


@pytest.mark.models
def test_executed_again_it_makes_the_same_tables_and_asks_nobody(smoke: Smoke):
    """All calls are recorded, and everything else is seeded."""
    tables = {path: path.read_bytes() for path in smoke.folder.glob("tables/*.csv")}
    before = calls(smoke.folder)
    code, out, err = ended(xlc(smoke.project, "run", "params/smoke.yaml", "--only", "01,02,04", "--force"), seconds=600)
    assert code == 0 and out.count("done in") == 3, err
    assert calls(smoke.folder) == before
    assert {path: path.read_bytes() for path in smoke.folder.glob("tables/*.csv")} == tables


@pytest.fixture(scope="module")
def killed(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, int]]]:
    """A project in which 01 was killed (-9) after some of its calls, and what was recorded by then."""
    project = copy_of(root, tmp_path_factory.mktemp("killed"))
    folder = project / "results" / "smoke"
    runner = xlc(project, "run", "params/smoke.yaml", "--only", "01", *MORE_CALLS)

    def some() -> bool:
        return runner.poll() is not None or ((folder / "calls.sqlite").exists() and len(_rows(folder)) >= 3)

    assert wait_for(some) and runner.poll() is None, runner.communicate()
    runner.send_signal(signal.SIGKILL)
    runner.communicate()
    assert wait_for(lambda: _is_quiet(folder), seconds=60), "somebody still asks"
    yield project, calls(folder)


MORE_CALLS = ("--set", "generated_prompts=2", "--set", "generation_max_tokens=60")  # 12 calls


def _rows(folder: Path) -> list:
    try:
        return list(calls(folder))
    except sqlite3.OperationalError:  # the table is not there yet
        return []


def _is_quiet(folder: Path) -> bool:
    before = len(_rows(folder))
    time.sleep(3)
    return len(_rows(folder)) == before


@pytest.mark.models
@pytest.mark.slow
def test_after_a_kill_nothing_that_was_answered_is_asked_again(killed: tuple[Path, dict[str, int]]):
    project, recorded = killed
    assert 3 <= len(recorded) < 12, "killed too early or too late to tell anything"
    assert not (project / "results" / "smoke" / "stages" / "01_generate.json").exists()
    code, out, err = ended(xlc(project, "run", "params/smoke.yaml", "--only", "01", *MORE_CALLS))
    assert code == 0, err
    after = calls(project / "results" / "smoke")
    assert len(after) == 12 and set(after.values()) == {1}
    assert recorded.items() <= after.items()
    assert "01_generate: done in" in out
