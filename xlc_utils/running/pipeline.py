"""The seven notebooks, executed in order by papermill."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from xlc_utils.chat.record import Record
from xlc_utils.registry.files import shown, temporary_folder
from xlc_utils.registry.problems import Problem
from xlc_utils.running.imports import reached
from xlc_utils.running.params import LIMITS, Params, is_answers_file
from xlc_utils.running.run import STARTED, atomically, file_sha256

SHARED = ("models.yaml", "empathy_examples.yaml", "bi_encoders.yaml")  # of params/, beside the files of runs
SECONDS_TO_START = 300  # a kernel on a busy machine imports slowly


@dataclass(frozen=True)
class Notebook:
    """One of the seven: its file and the parameters that its `parameters` cell names, with their values there."""

    path: Path
    defaults: dict[str, object]

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def number(self) -> str:
        return self.name[:2]


def notebooks(root: Path) -> list[Notebook]:
    """The numbered notebooks in order.

    Raises:
        Problem: there are none, one is no notebook, or one has no cell tagged `parameters` of plain literals.
    """
    found = [Notebook(path, _parameters(path)) for path in sorted((root / "notebooks").glob("0[1-7]_*.ipynb"))]
    if not found:
        raise Problem(str(root / "notebooks"), "there are no notebooks here", "bring them back from the repository")
    return found


def _parameters(path: Path) -> dict[str, object]:
    import ast

    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        source = next("".join(c["source"]) for c in cells if "parameters" in c["metadata"].get("tags", ()))
        statements = ast.parse(source).body
        return {s.targets[0].id: ast.literal_eval(s.value) for s in statements}
    except StopIteration:
        raise Problem(shown(path), "no cell is tagged `parameters`", "tag the cell that sets them") from None
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise Problem(shown(path), f"it is no notebook ({error})", "bring it back from the repository") from error
    except (SyntaxError, ValueError, AttributeError) as error:
        raise Problem(shown(path), "its parameters cell is not `name = literal` lines", "write it so") from error


def selected(all_notebooks: list[Notebook], only: Iterable[str] = (), start: str | None = None) -> list[Notebook]:
    """The notebooks that `--only 04,05` or `--from 03` name.

    Raises:
        Problem: there is no notebook of that number.
    """
    numbers = [n.number for n in all_notebooks]
    for wanted in [*only, *([start] if start else [])]:
        if wanted not in numbers:
            raise Problem("command line", f"there is no notebook {wanted}", f"use one of {', '.join(numbers)}")
    chosen = [n for n in all_notebooks if not only or n.number in only]
    return [n for n in chosen if not start or n.number >= start]


def run_pipeline(root: Path, params: Params, chosen: list[Notebook], force: bool = False) -> list[str]:
    """Executes notebooks; those whose parameters, code and files have not changed since they last ended are skipped.

    Args:
        root: the project folder.
        params: checked parameters.
        chosen: which notebooks, in order.
        force: execute also what has not changed.

    Returns:
        The names of the notebooks that were executed.

    Raises:
        Problem: a cell failed; names notebook and cell.
    """
    from tqdm import tqdm

    folder = root / "results" / params.run_name
    os.environ[STARTED] = str(time.time())
    executed = []
    bar = tqdm(chosen, unit="notebook", bar_format="{desc} {n_fmt}/{total_fmt} |{bar}| {elapsed}", disable=None)
    for notebook in bar:
        bar.set_description(notebook.name)
        state = fingerprint(root, notebook, params)
        if not force and unchanged(folder, notebook, state):
            tqdm.write(f"{notebook.name}: nothing has changed, skipped")
            continue
        start = time.monotonic()
        _execute(root, folder, notebook, params)
        _remember(folder, notebook, state)
        executed.append(notebook.name)
        tqdm.write(f"{notebook.name}: done in {time.monotonic() - start:.0f} s")
    return executed


def _execute(root: Path, folder: Path, notebook: Notebook, params: Params) -> None:
    import papermill

    out = _executed(folder, notebook)
    values = params.model_dump(mode="json")
    given = {*notebook.defaults, *(name for name in LIMITS if values[name])}
    logging.getLogger("papermill").setLevel(logging.ERROR)  # no cell names the limits, which it would warn of
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    with _told(notebook, out), temporary_folder() as sockets:
        out.parent.mkdir(parents=True, exist_ok=True)
        papermill.execute_notebook(
            str(notebook.path),
            str(out),
            parameters={k: values[k] for k in values if k in given},
            kernel_name="python3",
            language="python",
            progress_bar=False,
            stdout_file=_Said(),
            cwd=str(root),
            start_timeout=SECONDS_TO_START,
            timeout_func=_seconds_left(params.notebook_minutes),
            kernel_manager_class=_kernel_manager(sockets),
        )


def _seconds_left(minutes: float | None) -> Callable[[object], int | None]:
    """What nbclient asks before each cell: how long it may take. The clock starts with the first."""
    ends: list[float] = []

    def left(cell: object) -> int | None:
        if minutes is None:
            return None
        ends.append(time.monotonic() + 60 * minutes)
        return max(1, round(ends[0] - time.monotonic()))

    return left


@contextlib.contextmanager
def _told(notebook: Notebook, out: Path) -> Iterator[None]:
    """Turns what can stop a notebook into a `Problem`."""
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    again = f"run again, which goes on from here; the executed notebook is {shown(out)}"
    try:
        yield
    except PapermillExecutionError as error:
        what = str(error.evalue) if error.ename == "Problem" else f"{error.ename}: {error.evalue}"
        cell = f"{notebook.name}, cell {error.exec_count}"
        raise Problem(cell, what.rstrip("."), f"mend that and {again}") from error
    except CellTimeoutError as error:
        what = "it has taken longer than `notebook_minutes` and was stopped"
        raise Problem(notebook.name, what, f"raise it and {again}") from error
    except DeadKernelError as error:
        why = "its kernel ended before the notebook did, as when memory runs out"
        raise Problem(notebook.name, why, f"free some memory and {again}") from error
    except OSError as error:
        what = f"it cannot be written ({error.strerror or error})"
        raise Problem(shown(out), what, f"free some space or make the folder writable, and {again}") from error


class _Said:
    """What cells print, shown as it comes: how far long work has got."""

    def write(self, text: str) -> None:
        from tqdm import tqdm

        for line in text.splitlines():
            tqdm.write(f"  {line}")

    def flush(self) -> None:
        sys.stdout.flush()


def _kernel_manager(sockets: str):
    """Kernels of this very Python, whatever the user's kernel specifications call `python3`; they talk over files in
    the folder ``sockets`` instead of open ports where the system can, and end when this process does."""
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager
    from traitlets import Unicode

    quiet = "--log-level=CRITICAL"  # else every kernel reports as an error that it was told to end
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", quiet]
    spec = KernelSpec(argv=command, display_name="Python 3", language="python")

    class OwnKernelManager(AsyncKernelManager):
        kernel_spec = spec
        if os.name == "posix":
            transport = Unicode("ipc")
            ip = Unicode(os.path.join(sockets, "kernel"))

    return OwnKernelManager


def _executed(folder: Path, notebook: Notebook) -> Path:
    return folder / "notebooks" / notebook.path.name


# ---- what has changed -----------------------------------------------------------------------------------------------
def code_hash(root: Path, notebook: Notebook, codes: Iterable[str]) -> str:
    """Hash of what a notebook's results depend on besides parameters and inputs: the modules that its imports reach,
    the data beside them, and the plain files, but for the prompts and known answers of languages not in the run.

    Args:
        root: the project folder.
        notebook: whose imports are followed.
        codes: the run's languages.
    """
    files = {p.relative_to(_PACKAGE.parent): p for p in reached(_sources(notebook), _PACKAGE)}
    params, known = root / "params", {p.stem for p in (root / "params" / "languages").glob("*.yaml")}
    shared = [params / name for name in SHARED]  # and no other run's file
    plain = [*shared, *params.glob("*/**/*")]
    foreign, by_language = known - set(codes), ("information", "empathy", "shots")
    files |= {p.relative_to(root): p for p in plain if p.parent.name not in by_language or p.stem not in foreign}
    lines = [f"{name.as_posix()} {file_sha256(path)}" for name, path in sorted(files.items()) if path.is_file()]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


_PACKAGE = Path(__file__).resolve().parents[1]


def _sources(notebook: Notebook) -> list[str]:
    cells = json.loads(notebook.path.read_text(encoding="utf-8"))["cells"]
    return ["".join(c["source"]) for c in cells if c.get("cell_type", "code") == "code"]


def fingerprint(root: Path, notebook: Notebook, params: Params) -> str:
    """Hash of the notebook's cells, its parameters, the files of answers they name, the sheets that people have sent
    back where it takes them in, and the code."""
    values = {k: v for k, v in params.model_dump(mode="json").items() if k in notebook.defaults}
    if params.ask_again:
        values["ask_again"] = params.ask_again
    answers = [file_sha256(root / name) for name in values.get("models", ()) if is_answers_file(name)]
    if "raters" in notebook.defaults:
        returned = sorted((root / "results" / params.run_name / "ratings").glob("*"))
        answers += [file_sha256(path) for path in returned if path.is_file()]
    codes = ("en", *params.languages, *params.round_trip_languages, *params.dialogue_languages)
    code = code_hash(root, notebook, codes)
    return hashlib.sha256(json.dumps([_sources(notebook), values, answers, code], sort_keys=True).encode()).hexdigest()


def unchanged(folder: Path, notebook: Notebook, state: str) -> bool:
    """Whether the notebook ended with this fingerprint, was not executed by hand since, all that it read and wrote is
    still as it was, and no call failed: those that did are worth another attempt."""
    stage = folder / "stages" / f"{notebook.name}.json"
    try:
        ended = json.loads(stage.read_text(encoding="utf-8"))
        files, counts = {**ended["read"], **ended["written"]}, list(ended["outcomes"].values())
        if _state_file(folder, notebook).read_text(encoding="utf-8") != _state(state, stage):
            return False
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return False
    if any(n.get("error") for n in counts) and Record(folder / "calls.sqlite").errors(limit=1):
        return False
    return _executed(folder, notebook).is_file() and all(_is(folder / f, sha) for f, sha in files.items())


def _is(path: Path, sha: str) -> bool:
    return path.is_file() and file_sha256(path) == sha


def _state_file(folder: Path, notebook: Notebook) -> Path:
    return folder / "stages" / f"{notebook.name}.state"


def _state(state: str, stage: Path) -> str:
    """The fingerprint, and which ending of the notebook it belongs to."""
    return f"{state} {file_sha256(stage)}"


def _remember(folder: Path, notebook: Notebook, state: str) -> None:
    stage = folder / "stages" / f"{notebook.name}.json"
    if not stage.is_file():
        raise Problem(shown(notebook.path), "it ended without `run.finish()`", "end it with that cell")
    text = _state(state, stage)
    atomically(_state_file(folder, notebook), lambda partial: partial.write_text(text, encoding="utf-8"))
