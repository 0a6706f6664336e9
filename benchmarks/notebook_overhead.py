"""What a notebook costs beside the same code as a script: `python benchmarks/notebook_overhead.py [--rounds 3]`.

The notebooks of a run, its calls recorded beforehand, are executed in turn by `xlc run` and as plain scripts made of
the same cells with the same parameters, each in a process of its own. Shown are medians of CPU seconds, children
included, and the seconds over 1.1 times the script. The script shows nothing; the notebook renders its tables and
figures.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from xlc_utils.running.params import load
from xlc_utils.running.pipeline import Notebook, notebooks

ROOT = Path(__file__).resolve().parents[1]
HEAD = "import matplotlib\nmatplotlib.use('agg')\n"


def script(notebook: Notebook, params) -> str:
    """A notebook's code cells as one program, with a run's parameters in place of its own."""
    cells = json.loads(notebook.path.read_text(encoding="utf-8"))["cells"]
    values = params.model_dump(mode="json")
    given = "\n".join(f"{name} = {values[name]!r}" for name in notebook.defaults)
    code = [
        given if "parameters" in cell["metadata"].get("tags", ()) else "".join(cell["source"])
        for cell in cells
        if cell["cell_type"] == "code"
    ]
    return HEAD + "\n\n".join(code)


def cpu_seconds(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--params", type=Path, default=ROOT / "params" / "smoke.yaml")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # threads that wait spin, which would count as work
    params = load(arguments.params)
    run = [str(Path(sys.executable).with_name("xlc")), "run", str(arguments.params)]
    subprocess.run(run, cwd=ROOT, check=True)
    print(f"CPU s, medians of {arguments.rounds}")
    print(f"{'notebook':22} {'script':>8} {'notebook':>9} {'ratio':>6} {'over 1.1x':>10}")
    with tempfile.TemporaryDirectory() as folder:
        for notebook in notebooks(ROOT):
            program = Path(folder) / f"{notebook.name}.py"
            program.write_text(script(notebook, params), encoding="utf-8")
            as_script, as_notebook = [], []
            for _ in range(arguments.rounds):
                as_script.append(cpu_seconds([sys.executable, str(program)]))
                as_notebook.append(cpu_seconds([*run, "--only", notebook.number, "--force"]))
            a, b = statistics.median(as_script), statistics.median(as_notebook)
            print(f"{notebook.name:22} {a:8.1f} {b:9.1f} {b / a:6.2f} {b - 1.1 * a:10.1f}", flush=True)


if __name__ == "__main__":
    main()
