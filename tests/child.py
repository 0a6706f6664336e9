"""Throw-away notebooks of a line or two, and the `xlc` command as a child process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import nbformat
import psutil

REPOSITORY = Path(__file__).resolve().parents[1]
SECONDS_LIMIT = 120  # generous: a loaded machine starts Python slowly


def write_notebook(root: Path, name: str, *cells: str, parameters: str = 'run_name = "test"\nseed = 0') -> Path:
    """notebooks/<name>.ipynb: the `parameters` cell, `run`, the cells, `run.finish()`."""
    opening = f'import xlc_utils\nrun = xlc_utils.open_run(globals(), "{name}")'
    sources = [parameters, opening, *cells, "run.finish()"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    notebook.cells[0].metadata["tags"] = ["parameters"]
    path = root / "notebooks" / f"{name}.ipynb"
    path.parent.mkdir(exist_ok=True)
    nbformat.write(notebook, path)
    return path


def xlc(root: Path, *arguments: str, cwd: Path | None = None, **environment: str) -> subprocess.Popen:
    """Starts the command on the project in `root`."""
    return command(root, "xlc_utils.cli", *arguments, cwd=cwd, **environment)


def command(root: Path, module: str, *arguments: str, cwd: Path | None = None, **environment: str) -> subprocess.Popen:
    """Starts a module of Python on the project in `root`."""
    paths = os.pathsep.join(filter(None, (str(REPOSITORY), os.environ.get("PYTHONPATH"))))
    env = {**os.environ, "PYTHONPATH": paths, "XLC_ROOT": str(root), **environment}
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-m", module, *arguments], cwd=cwd or root, env=env, text=True, **streams)


def ended(process: subprocess.Popen, seconds: float = SECONDS_LIMIT) -> tuple[int, str, str]:
    """Exit code, output and messages."""
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        process.kill()  # nothing if it has ended; else nobody else would
    return process.returncode, out, err


def wait_for(what: Callable[[], bool], seconds: float = SECONDS_LIMIT) -> bool:
    """Whether ``what()`` came true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.05)
    return False


def is_running(pid: int) -> bool:
    """Whether the process exists and is no zombie that nobody has waited for."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
