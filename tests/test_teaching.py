"""The checks of the exercises, and how the solutions are written; test_notebooks executes them."""

from __future__ import annotations

from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest

from xlc_utils.registry.problems import Problem
from xlc_utils.running.params import Params
from xlc_utils.running.run import Run
from xlc_utils.teaching import EXERCISES, check

LANGUAGES = ["en", "es", "ja"]


@pytest.fixture(scope="module")
def run(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of which every answer can be worked out in the head."""
    folder = tmp_path_factory.mktemp("course")
    (folder / "params").symlink_to(root / "params")
    run = Run(folder, Params(run_name="course", models=["known-answers", "two.csv"]), {"models"}, "07_figures")
    for model, factor in (("known-answers", 1), ("two", 10)):
        rows = [
            {"prompt_id": i, "language": c, "text": f"{model} {i} {c}", "characters": factor * n, "outcome": "ok"}
            for i in ("post-01", "post-02")
            for c, n in zip(LANGUAGES, (30, 20, 10), strict=True)
        ]
        run.write("responses", model, pd.DataFrame(rows))
        outcomes = {"es": ["ok", "ok"], "ja": ["ok", "degenerate"]}
        rows = [{"language": c, "outcome": o} for c, own in outcomes.items() for o in own]
        run.write("sentences", model, pd.DataFrame(rows))
        f = {"known-answers": [0.8, 0.6, np.nan], "two": [0.9, 0.0, 0.0]}[model]
        information = pd.DataFrame({"f": f, "outcome": ["ok", "ok" if factor == 1 else "off_target", "ok"]})
        run.write("information", model, information.assign(prompt_id="a", language="es"))
        same = {"same_ER": [1.0, 1.0, np.nan], "same_IP": [1.0, factor == 1, np.nan], "same_EX": [0.0, 0.0, np.nan]}
        run.write("empathy", model, pd.DataFrame(same).astype(float).assign(outcome="ok"))
    (run.folder / "tables").mkdir()
    survival = pd.DataFrame({"chrf": [30.0, 40.0, 70.0], "share": [0.1, 0.5, 0.4]})
    survival.to_csv(run.folder / "tables" / "fact_survival.csv", index=False)
    cells = pd.DataFrame({"model": ["m", "m"], "language": ["es", "ja"], "value": [0.5, 0.25], "low": [0.4, 0.0]})
    run.write_csv("information_by_language", cells.assign(high=[0.6, 0.9]))
    run.write_csv("empathy_by_language", cells.assign(value=[0.25, 0.5], high=1.0))
    return run


def posts(run: Run, *codes: str, prompt: str = "post-02") -> pd.DataFrame:
    return pd.DataFrame([(c, f"two {prompt} {c}") for c in codes], columns=["language", "text"])


DIFFERENCE = pd.DataFrame({"es": [0.25], "ja": [-0.25]}, index=pd.Index(["m"], name="model")).rename_axis(
    columns="language"
)
RIGHT = {
    "01-1": "ja",
    "02-1": "ja",
    "03-2": 0.5,
    "04-1": "two",
    "05-2": {"known-answers": 1.0, "two": 0.5},
    "06-1": (0.00975, 0.000975),
    "07-1": "ja",
    "07-2": DIFFERENCE,
}
WRONG = {
    "01-1": "es",
    "02-1": "es",
    "03-2": 0.52,
    "04-1": "known-answers",
    "05-2": {"known-answers": 1.0},
    "06-1": (0.00975, 0.00975),
    "07-1": "es",
    "07-2": -DIFFERENCE,
}


@pytest.mark.parametrize("exercise", RIGHT)
def test_the_right_answer_is_right(run, exercise):
    assert check(run, exercise, RIGHT[exercise])
    assert repr(check(run, exercise, RIGHT[exercise])) == f"{exercise}: right."


@pytest.mark.parametrize("exercise", WRONG)
def test_a_wrong_one_is_told_so_and_not_what_is_right(run, exercise):
    found = check(run, exercise, WRONG[exercise])
    assert not found and found.said == f"{exercise}: not yet. {EXERCISES[exercise].hint}"


def test_replies_to_the_second_post(run):
    assert check(run, "01-2", posts(run, "en", "ja", "es"))
    for wrong in (posts(run, "ja", "en"), posts(run, "en"), posts(run, "en", "ja", prompt="post-01")):
        assert not check(run, "01-2", wrong)
    assert not check(run, "01-2", posts(run, "en", "ja", "ja"))


def test_mattr_of_long_dialogues(run):
    """Numbers that are committed: no run decides them."""
    right = EXERCISES["06-2"].right
    assert sum(right(run, x / 100) for x in range(-100, 101)) <= 1 + 1  # one number, to the tolerance
    assert not check(run, "06-2", 1.0)


@pytest.mark.parametrize("exercise", [e for e in EXERCISES if e != "04-2"])  # which needs a whole run
@pytest.mark.parametrize("strange", [None, object(), [1, 2, 3]])
def test_what_cannot_be_compared_is_told_the_form(run, exercise, strange):
    found = check(run, exercise, strange)
    assert not found and (EXERCISES[exercise].form in found.said or EXERCISES[exercise].hint in found.said)


def test_an_unknown_exercise_is_named(run):
    with pytest.raises(Problem, match="04-3"):
        check(run, "04-3", 1)


# ---- the solutions ---------------------------------------------------------------------------------------------------
@pytest.fixture(params=[f"0{n}" for n in range(1, 8)])
def pair(request: pytest.FixtureRequest, root: Path) -> tuple[str, nbformat.NotebookNode, nbformat.NotebookNode]:
    """A number, its notebook and the notebook of its solutions."""
    (notebook,) = (root / "notebooks").glob(f"{request.param}_*.ipynb")
    solutions = root / "notebooks" / "solutions" / notebook.name
    return request.param, nbformat.read(notebook, as_version=4), nbformat.read(solutions, as_version=4)


def test_every_check_is_offered_and_solved(pair):
    number, notebook, solutions = pair
    known = [e for e in EXERCISES if e.startswith(number)]
    exercises = notebook.cells[-1].source
    assert known and all(f'check(run, "{e}"' in exercises for e in known)
    solved = "\n".join(cell.source for cell in solutions.cells if cell.cell_type == "code")
    assert all(f'print(check(run, "{e}"' in solved for e in known)
    assert exercises.count("check(run,") == solved.count("check(run,") == len(known)


def test_solutions_are_stripped_short_and_take_the_notebooks_parameters(pair):
    _, notebook, solutions = pair
    nbformat.validate(solutions)
    tagged = [
        next(c for c in nb.cells if "parameters" in c.metadata.get("tags", ())).source for nb in (solutions, notebook)
    ]
    assert set(tagged[0].splitlines()) <= set(tagged[1].splitlines())
    for cell in solutions.cells:
        if cell.cell_type == "code":
            assert cell.outputs == [] and cell.execution_count is None and len(cell.source.splitlines()) <= 12
    assert solutions.cells[-1].source.startswith("## To argue")
