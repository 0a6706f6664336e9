"""workflow/Snakefile brings what `xlc run` brings, here and under Slurm. Minutes each, so both are asked for.

XLC_SNAKEMAKE names the command of a Snakemake (9, in an environment of its own, as README has it). XLC_SLURM=1 starts a
Slurm as well: root, and Debian's slurm-wlm and munge.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SNAKEMAKE = os.path.abspath(os.environ["XLC_SNAKEMAKE"]) if "XLC_SNAKEMAKE" in os.environ else ""
XLC = Path(sys.executable).with_name("xlc")
pytestmark = pytest.mark.skipif(not SNAKEMAKE, reason="XLC_SNAKEMAKE names no Snakemake")


def files(folder: Path) -> dict[str, bytes]:
    found = (path for kind in ("tables", "figures") for path in (folder / kind).rglob("*.*"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_tables_and_figures_are_those_of_one_machine(root: Path, tmp_path: Path):
    project = tmp_path / "project"
    for part in ("notebooks", "params", "xlc_utils", "workflow"):
        shutil.copytree(root / part, project / part)
    env = os.environ | {"XLC_ROOT": str(project), "PYTHONPATH": str(project)}

    def execute(*command: str) -> None:
        done = subprocess.run(command, cwd=project, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-4000:]

    execute(str(XLC), "run", "params/smoke.yaml")
    plain = (project / "results" / "smoke").rename(tmp_path / "plain")
    given = ("--config", "params=params/smoke.yaml", f"xlc={XLC}")
    execute(SNAKEMAKE, "--snakefile", "workflow/Snakefile", "--cores", "2", *given)
    expected = files(plain)
    assert len(expected) > 50 and files(project / "results" / "smoke") == expected
    assert not list((project / "results").glob("smoke.*/notebooks/07*")), "joint notebooks belong to the run itself"


@pytest.mark.skipif(not os.environ.get("XLC_SLURM"), reason="XLC_SLURM does not ask for a Slurm")
def test_under_slurm(root: Path):
    path = f"{Path(SNAKEMAKE).parent}{os.pathsep}{os.environ['PATH']}"
    env = os.environ | {"PATH": path, "XLC": str(XLC)}
    done = subprocess.run(["sh", "workflow/test_slurm.sh"], cwd=root, env=env, stdout=subprocess.PIPE, text=True)
    print(done.stdout)
    assert done.returncode == 0 and "figures: " in done.stdout
