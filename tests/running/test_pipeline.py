"""running/pipeline.py: notebooks in order, only those that changed, and what happens when one stops."""

from __future__ import annotations

import json
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
import yaml
from child import ended, is_running, wait_for, write_notebook, xlc
from fake_endpoint import completion

from xlc_utils.chat.base import Chat, Reply, Sampling
from xlc_utils.chat.record import Call, Record
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem
from xlc_utils.running import pipeline
from xlc_utils.running.imports import reached
from xlc_utils.running.params import Params, check, load
from xlc_utils.running.pipeline import code_hash, fingerprint, notebooks, run_pipeline, selected

WRITE = 'import pandas as pd\nrun.write_csv("numbers", pd.DataFrame({"n": [run.params.seed]}))'
DOUBLE = 'numbers = run.read_csv("numbers", "01")\nrun.write_csv("doubled", 2 * numbers)'


@pytest.fixture
def three(project: Path, write_params) -> Path:
    """01 writes the seed, 02 doubles it, 03 does neither; returns the params file."""
    write_notebook(project, "01_first", WRITE)
    write_notebook(project, "02_second", DOUBLE, parameters='run_name = "test"')
    write_notebook(project, "03_third", parameters='run_name = "test"\nmodels = ["known-answers"]')
    return write_params()


def executed(root: Path, params_file: Path, only: tuple = (), start=None, force=False, **changes) -> str:
    """The numbers of the notebooks that were executed."""
    chosen = selected(notebooks(root), only, start)
    return " ".join(name[:2] for name in run_pipeline(root, load(params_file, changes), chosen, force))


# ---- which ones ------------------------------------------------------------------------------------------------------
def test_the_seven_are_found_in_order(root: Path):
    found = notebooks(root)
    assert [n.number for n in found] == ["01", "02", "03", "04", "05", "06", "07"]
    assert found[0].defaults["run_name"] == "demo"


def test_only_and_from(root: Path):
    def numbers(*arguments) -> str:
        return " ".join(n.number for n in selected(notebooks(root), *arguments))

    assert numbers() == "01 02 03 04 05 06 07"
    assert numbers(["05", "04"]) == "04 05"
    assert numbers([], "06") == "06 07"
    assert numbers(["02", "05"], "03") == "05"
    for wanted in (["8"], ["4"], ["04", "x"]):
        with pytest.raises(Problem, match=r"command line: there is no notebook \w; use one of 01, 02, 03, 04, 05, 06"):
            numbers(wanted)
    with pytest.raises(Problem, match="there is no notebook 09"):
        numbers([], "09")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("", "it is no notebook"),
        ("[]", "it is no notebook"),
        ('{"cells": [{"metadata": {}}]}', "no cell is tagged `parameters`"),
        ('{"cells": [{"metadata": {"tags": ["parameters"]}, "source": ["seed = 1 +"]}]}', "not `name = literal` lines"),
        ('{"cells": [{"metadata": {"tags": ["parameters"]}, "source": ["seed = f()"]}]}', "not `name = literal` lines"),
        ('{"cells": [{"metadata": {"tags": ["parameters"]}, "source": ["import os"]}]}', "not `name = literal` lines"),
    ],
)
def test_what_is_no_notebook_of_ours(project: Path, content: str, what: str):
    (project / "notebooks").mkdir()
    (project / "notebooks" / "01_broken.ipynb").write_text(content)
    with pytest.raises(Problem, match=f"notebooks/01_broken.ipynb: .*{what}"):
        notebooks(project)


def test_no_notebooks_at_all(project: Path):
    with pytest.raises(Problem, match="there are no notebooks here"):
        notebooks(project)


# ---- what has changed ------------------------------------------------------------------------------------------------
def test_what_has_not_changed_is_not_executed_again(in_process, project: Path, three: Path):
    assert executed(project, three) == "01 02 03"
    assert executed(project, three) == ""
    assert executed(project, three, force=True) == "01 02 03"
    assert executed(project, three, only=("02",), force=True) == "02"


def test_a_changed_parameter_executes_who_has_it_and_who_reads_what_it_changed(in_process, project: Path, three: Path):
    executed(project, three)
    assert executed(project, three, seed=5) == "01 02"  # 02 has no seed, but reads what 01 wrote
    assert (project / "results" / "test" / "doubled.csv").read_text() == "n\n10\n"
    assert executed(project, three, seed=5) == ""
    assert executed(project, three, seed=5, models=["known-answers", "gemma-3-270m"]) == "03"
    assert executed(project, three, seed=5, permutation_samples=99) == "03", "03 is back at its file's models"


def test_changed_cells_execute_their_notebook_and_its_readers(in_process, project: Path, three: Path):
    executed(project, three)
    write_notebook(project, "01_first", WRITE + "  # the same numbers")
    assert executed(project, three) == "01"
    write_notebook(project, "01_first", WRITE.replace("seed", "seed + 1"))
    assert executed(project, three) == "01 02"


@pytest.mark.parametrize("damage", ["delete", "edit", "state", "stage", "no stage", "executed notebook"])
def test_a_file_that_is_not_as_it_was_left_is_made_again(in_process, project: Path, three: Path, damage: str):
    executed(project, three)
    folder = project / "results" / "test"
    stage = folder / "stages" / "01_first.json"
    {
        "delete": (folder / "numbers.csv").unlink,
        "edit": lambda: (folder / "numbers.csv").write_text("n\n7\n"),
        "state": lambda: (folder / "stages" / "01_first.state").write_text("x"),
        "stage": lambda: stage.write_text("{}"),
        "no stage": stage.unlink,
        "executed notebook": (folder / "notebooks" / "01_first.ipynb").unlink,
    }[damage]()
    assert executed(project, three) == "01"
    assert (folder / "numbers.csv").read_text() == "n\n0\n"
    assert executed(project, three) == ""


def test_a_notebook_opened_by_hand_with_other_values_is_executed_again(in_process, project: Path, three: Path):
    """Otherwise a run would say that nothing has changed and show the results of other parameters."""
    executed(project, three)
    by_hand = {}
    for cell in nbformat.read(project / "notebooks" / "01_first.ipynb", as_version=4).cells:
        exec(cell.source.replace("seed = 0", "seed = 8"), by_hand)
    assert (project / "results" / "test" / "numbers.csv").read_text() == "n\n8\n"
    assert executed(project, three) == "01"
    assert (project / "results" / "test" / "numbers.csv").read_text() == "n\n0\n"


def test_other_answers_in_a_file_of_answers_are_a_change(in_process, project: Path, three: Path):
    rows = "language,prompt_id,text\nen,astronomy-02,"
    (project / "mine.csv").write_text(rows + "Old.\n")
    assert executed(project, three, models=["mine.csv"]) == "01 02 03"
    assert executed(project, three, models=["mine.csv"]) == ""
    (project / "mine.csv").write_text(rows + "New.\n")
    assert executed(project, three, models=["mine.csv"]) == "03"


def test_a_sheet_that_somebody_sends_back_is_a_change_for_who_takes_it_in(project: Path):
    write_notebook(project, "01_first", parameters='run_name = "test"\nraters = 2')
    write_notebook(project, "02_second", parameters='run_name = "test"')
    (notebook, other), params = notebooks(project), Params(run_name="test")
    before = [fingerprint(project, n, params) for n in (notebook, other)]
    folder = project / "results" / "test" / "ratings"
    folder.mkdir(parents=True)
    (folder / "A1.csv").write_text("a sheet")
    after = [fingerprint(project, n, params) for n in (notebook, other)]
    assert after[0] != before[0] and after[1] == before[1]


def test_the_plain_files_of_the_run_s_languages_are_part_of_what_may_change(project: Path, three: Path):
    [notebook] = [n for n in notebooks(project) if n.number == "03"]

    def code() -> str:
        return code_hash(project, notebook, ("en", "es"))

    before = code()
    assert before == code()
    (project / "params" / "another.yaml").write_text("run_name: another\n")
    assert code() == before, "another run's parameters are no part of this one"
    for name, matters in {
        "models.yaml": True,
        "empathy_examples.yaml": True,
        "bi_encoders.yaml": True,
        "languages/es.yaml": True,
        "languages/pt.yaml": True,  # the detector knows all languages
        "prompts/information/es.yaml": True,
        "prompts/information/pt.yaml": False,
        "known_answers/information/pt.yaml": False,
        "prompts/instructions/verify_claim.txt": True,
        "known_answers/facts.yaml": True,
    }.items():
        path = project / "params" / name
        content = path.read_bytes()
        path.write_bytes(content + b"\n")
        assert (code() != before) is matters, name
        path.write_bytes(content)
    assert code() == before
    runs = {path.name for path in (project / "params").glob("*.yaml") if "run_name:" in path.read_text()}
    assert {path.name for path in (project / "params").glob("*.yaml")} == runs | set(pipeline.SHARED)


def test_a_notebook_is_executed_again_when_code_it_reaches_has_changed(root: Path, tmp_path: Path):
    """A change to the figures is none to notebook 01; one to the statistics is one to 04, through what it imports."""
    package = tmp_path / "xlc_utils"
    shutil.copytree(root / "xlc_utils", package, ignore=shutil.ignore_patterns("__pycache__"))
    sources = {n.number: pipeline._sources(n) for n in notebooks(root)}
    files = {number: {p.relative_to(package).as_posix() for p in reached(s, package)} for number, s in sources.items()}
    assert all({"running/run.py", "chat/record.py", "registry/models.py"} <= found for found in files.values())
    assert "statistics/intervals.py" in files["04"] and "judges/data/human_ratings.csv" in files["06"]
    assert "reporting/audit/paper_a.py" in files["07"] and "reporting/audit/paper_a.py" not in files["01"]
    assert "empathy/two_core.py" in files["05"] and "empathy/two_core.py" not in files["04"]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import pkg.a", {"__init__.py", "a.py"}),
        ("from pkg import a", {"__init__.py", "a.py"}),
        (
            "%matplotlib inline\nfrom pkg.sub.b import f",
            {"__init__.py", "sub/__init__.py", "sub/b.py", "a.py", "sub/t.csv"},
        ),
        ("def f():\n    import pkg.a", {"__init__.py", "a.py"}),
        ("import json", set()),
    ],
)
def test_imports_are_followed_also_inside_functions_and_relative_ones(tmp_path: Path, source: str, found: set[str]):
    package = tmp_path / "pkg"
    (package / "sub").mkdir(parents=True)
    for name, text in {
        "__init__.py": "",
        "a.py": "x = 1",
        "c.py": "",
        "sub/__init__.py": "",
        "sub/b.py": "def f():\n    from ..a import x\n    from . import nothing",
        "sub/t.csv": "n",
    }.items():
        (package / name).write_text(text)
    assert {p.relative_to(package).as_posix() for p in reached([source], package)} == found


def test_limits_are_no_reason_to_execute_again(in_process, project: Path, three: Path):
    executed(project, three)
    assert executed(project, three, budget_tokens=5, budget_minutes=1, notebook_minutes=2) == ""
    assert executed(project, three, ask_again=["refused"]) == "01 02 03", "what was refused is worth another attempt"


def test_failed_calls_are_tried_again(in_process, project: Path, three: Path):
    """An endpoint that was down for a while must not leave its errors in the results for good."""
    write_notebook(
        project,
        "01_first",
        'import pandas as pd\nrun.write("responses", "gpt-4o", pd.DataFrame({"outcome": ["ok", "error"]}))',
    )
    first = {"only": ("01",)}
    executed(project, three, **first)
    assert executed(project, three, **first) == "", "no call has failed: the row says that a file lacks an answer"
    record = Record(project / "results" / "test" / "calls.sqlite")
    record.put([Call("k", "gpt-4o", {}, Chat.user("?"), Sampling(), Reply("", Outcome.ERROR, detail="HTTP 503"), 0.0)])
    assert executed(project, three, **first) == "01"
    record.put([Call("k", "gpt-4o", {}, Chat.user("?"), Sampling(), Reply("!", Outcome.OK), 0.0)])
    assert executed(project, three, **first) == ""


def test_a_notebook_without_its_last_cell_is_told(in_process, project: Path, write_params):
    path = write_notebook(project, "01_first")
    notebook = nbformat.read(path, as_version=4)
    del notebook.cells[-1]
    nbformat.write(notebook, path)
    with pytest.raises(Problem, match=r"notebooks/01_first.ipynb: it ended without `run.finish\(\)`"):
        executed(project, write_params())


# ---- in kernels ------------------------------------------------------------------------------------------------------
def test_a_failing_cell_is_named_and_the_next_run_goes_on_from_there(project: Path, three: Path, tmp_path: Path):
    """Started elsewhere, and with somebody else's `python3` kernel in the way, which must not be used."""
    theirs = tmp_path / "jupyter" / "kernels" / "python3" / "kernel.json"
    theirs.parent.mkdir(parents=True)
    theirs.write_text(json.dumps({"argv": ["/bin/false"], "display_name": "theirs", "language": "python"}))
    way = {"cwd": tmp_path, "JUPYTER_PATH": str(theirs.parents[2])}
    before = {p.name for p in project.iterdir()}
    write_notebook(project, "02_second", 'print("so far so good")', "numbers = {}\nnumbers['n']")
    code, out, err = ended(xlc(project, "run", str(three), "--only", "01,02", **way))
    assert code == 2, err
    assert err.strip() == (
        "xlc: 02_second, cell 5: KeyError: 'n'; mend that and run again, which goes on from here; the executed "
        "notebook is results/test/notebooks/02_second.ipynb."
    )
    assert "01_first: done in" in out and "  so far so good" in out and "Traceback" not in out + err
    cells = nbformat.read(project / "results" / "test" / "notebooks" / "02_second.ipynb", as_version=4).cells
    assert any(cell.get("execution_count") == 5 and "numbers['n']" in cell.source for cell in cells)

    write_notebook(project, "02_second", DOUBLE, parameters='run_name = "test"')
    code, out, err = ended(xlc(project, "run", str(three), "--only", "01,02", "--set", "seed=0", **way))
    assert code == 0, err
    assert "01_first: nothing has changed, skipped" in out and "02_second: done in" in out
    assert {p.name for p in project.iterdir()} == before | {"results"}, "a kernel has left something behind"
    assert [p.name for p in tmp_path.iterdir() if p.name not in ("project", "jupyter")] == []


def test_a_problem_and_a_dead_kernel_are_one_sentence_each(project: Path, write_params):
    write_notebook(project, "01_first", 'run.read("responses", "mine")')
    path = write_params()
    code, _, err = ended(xlc(project, "run", str(path)))
    assert code == 2 and err.startswith(
        "xlc: 01_first, cell 4: results/test/responses/mine.parquet: this part is missing; run notebook 01 again "
        "(recorded calls are not repeated); mend that and run again"
    )
    write_notebook(project, "01_first", "import os\nos._exit(9)")
    code, _, err = ended(xlc(project, "run", str(path)))
    assert code == 2 and "Traceback" not in err
    assert err.splitlines()[-1].startswith("xlc: 01_first: its kernel ended before the notebook did")


def test_a_run_folder_that_cannot_be_written_is_one_sentence(project: Path, write_params):
    write_notebook(project, "01_first")
    (project / "results").mkdir()
    (project / "results" / "test").write_text("a file where the run's folder should be")
    code, _, err = ended(xlc(project, "run", str(write_params())))
    assert code == 2 and "Traceback" not in err
    assert err.startswith("xlc: results/test/notebooks/01_first.ipynb: it cannot be written (")


@pytest.fixture
def sleeping(project: Path, write_params):
    """A run inside a cell that would last an hour: the runner, and its kernel's process id."""
    say_pid = 'from pathlib import Path\nPath("pid.part").write_text(str(os.getpid()))\nPath("pid.part").rename("pid")'
    write_notebook(project, "01_first", f"import os, time\n{say_pid}\ntime.sleep(3600)")
    runner = xlc(project, "run", str(write_params()))
    wait_for(lambda: (project / "pid").exists() or runner.poll() is not None)
    assert runner.poll() is None, runner.communicate()
    pid = int((project / "pid").read_text())
    assert is_running(pid)
    yield runner, pid
    runner.kill()
    runner.communicate()


def test_ctrl_c_ends_the_kernel_too(sleeping, project: Path):
    runner, kernel = sleeping
    runner.send_signal(signal.SIGINT)
    code, _, err = ended(runner)
    assert code == 130
    assert err.splitlines()[-1] == "xlc: interrupted; what was answered is kept, run the same command to go on."
    assert "Traceback" not in err
    assert wait_for(lambda: not is_running(kernel), seconds=10)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_run_leaves_no_kernel_behind(sleeping, how: signal.Signals):
    runner, kernel = sleeping
    runner.send_signal(how)
    assert wait_for(lambda: runner.poll() is not None, seconds=10)
    assert wait_for(lambda: not is_running(kernel), seconds=20), "the kernel lives on"


# ---- limits ----------------------------------------------------------------------------------------------------------
def test_a_notebook_that_takes_too_long_is_stopped_with_one_sentence(project: Path, write_params):
    pid = 'import os, pathlib\npathlib.Path("pid").write_text(str(os.getpid()))'
    write_notebook(project, "01_first", pid, "import time\ntime.sleep(3600)")
    code, _, err = ended(xlc(project, "run", str(write_params(notebook_minutes=0.05))))
    assert code == 2 and "Traceback (most" not in err
    assert err.splitlines()[-1].startswith(
        "xlc: 01_first: it has taken longer than `notebook_minutes` and was stopped; raise it and run again"
    )
    assert wait_for(lambda: not is_running(int((project / "pid").read_text())), seconds=20)


def test_a_budget_stops_a_run_and_more_of_it_lets_it_go_on(project: Path, write_params, endpoint):
    """Through all layers: the params file, papermill, the notebook, the record."""
    models = project / "params" / "models.yaml"
    models.write_text(models.read_text().replace("http://localhost:8000/v1", endpoint.url))
    ask = (
        "from xlc_utils.chat.base import Chat, Sampling\n"
        'chats = [Chat.user(f"q{i}") for i in range(40)]\n'
        'print(len(run.chat("aya-exp-8b").complete(chats, Sampling())), "answers")'
    )
    write_notebook(project, "01_first", ask)
    endpoint.otherwise = lambda request: replace(completion(), seconds=0.1)
    code, _, err = ended(xlc(project, "run", str(write_params(budget_tokens=18 * 10))))
    assert code == 2 and "Traceback" not in err
    assert "xlc: 01_first, cell 4: key `budget_tokens`: " in err and "of 180 tokens are used; raise it" in err
    asked = len(endpoint.requests)
    assert 10 <= asked <= 10 + 8, "at most what was in flight is asked beyond the budget"
    code, out, err = ended(xlc(project, "run", str(write_params(budget_tokens=18 * 1000))))
    assert code == 0 and "40 answers" in out, err
    assert len(endpoint.requests) == 40


def test_a_budget_in_dollars_needs_prices(project: Path, write_params):
    models = project / "params" / "models.yaml"
    entries = yaml.safe_load(models.read_text(encoding="utf-8"))
    params = load(write_params(models=["known-answers", "gpt-4o"], budget_dollars=2))
    check(params, project, "params/test.yaml", keys=False)
    entries["models"]["gpt-4o"]["prices"] = None
    models.write_text(yaml.safe_dump(entries, allow_unicode=True), encoding="utf-8")
    with pytest.raises(Problem, match=r"models.yaml: model `gpt-4o`: it has no price.*enter its `prices`"):
        check(params, project, "params/test.yaml", keys=False)
