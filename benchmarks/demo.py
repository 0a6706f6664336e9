"""How long the demo takes: `python benchmarks/demo.py` (about six minutes; wants two idle cores).

Runs the demo in an empty copy of the project, then again with nothing changed, and times `import xlc_utils`. Goals: at
most 300 s, 20 s and 0.3 s; and no model call in the second run.
"""

from __future__ import annotations

import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("notebooks", "params")


def seconds(*command: str, cwd: Path) -> float:
    start = time.perf_counter()
    subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def calls(folder: Path) -> int:
    with sqlite3.connect(folder / "results" / "demo" / "calls.sqlite") as db:
        return db.execute("select count(*) from calls").fetchone()[0]


def main() -> None:
    xlc = Path(sys.executable).with_name("xlc")
    with tempfile.TemporaryDirectory() as temporary:
        project = Path(temporary)
        for name in COPIED:
            shutil.copytree(ROOT / name, project / name)
        (project / "results").mkdir()
        first = seconds(str(xlc), "run", "params/demo.yaml", cwd=project)
        asked = calls(project)
        second = seconds(str(xlc), "run", "params/demo.yaml", cwd=project)
        again = calls(project) - asked
    imports = statistics.median(seconds(sys.executable, "-c", "import xlc_utils", cwd=ROOT) for _ in range(5))
    print(f"first run   {first:6.1f} s  ({asked} model calls; goal 300 s)")
    print(f"second run  {second:6.1f} s  ({again} model calls; goal 20 s and none)")
    print(f"import      {imports:6.2f} s  (interpreter start included; goal 0.3 s)")


if __name__ == "__main__":
    main()
