"""Params files for the tests of the room `running`, and notebooks executed without kernels."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
import yaml

from xlc_utils.running import pipeline

Write = Callable[..., Path]


@pytest.fixture
def write_params(project: Path) -> Write:
    """Writes params/test.yaml in the project's copy: smoke.yaml with some keys changed; None takes a key out."""

    def write(**changes: object) -> Path:
        values = yaml.safe_load((project / "params" / "smoke.yaml").read_text(encoding="utf-8"))
        values |= {"run_name": "test", **changes}
        path = project / "params" / "test.yaml"
        kept = {key: value for key, value in values.items() if value is not None}
        path.write_text(yaml.safe_dump(kept, allow_unicode=True), encoding="utf-8")
        return path

    return write


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells are executed here instead of in a kernel: for what is decided before and after."""

    def execute(root: Path, folder: Path, notebook: pipeline.Notebook, params) -> None:
        out = folder / "notebooks" / notebook.path.name
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(notebook.path, out)
        values, namespace = params.model_dump(mode="json"), {}
        for cell in nbformat.read(notebook.path, as_version=4).cells:
            if cell.cell_type == "code":
                exec(cell.source, namespace)
            if "parameters" in cell.metadata.get("tags", ()):
                namespace |= {name: values[name] for name in notebook.defaults}

    monkeypatch.setattr(pipeline, "_execute", execute)
