"""A run in an empty folder, with the project's own registries."""

from __future__ import annotations

from pathlib import Path

import pytest

from xlc_utils.running.params import Params
from xlc_utils.running.run import Run


@pytest.fixture
def run(root: Path, tmp_path: Path) -> Run:
    (tmp_path / "params").symlink_to(root / "params")
    return Run(tmp_path, Params(run_name="here"), set(), "07_figures")
