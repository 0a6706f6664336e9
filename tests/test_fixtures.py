"""tests/conftest.py: the copy of the project is the project for the code under test."""

from __future__ import annotations

from pathlib import Path

from xlc_utils.registry import languages
from xlc_utils.registry.files import project_root


def test_a_test_may_change_its_project(root: Path, project: Path):
    assert project_root() == project.resolve() != root
    before = (root / "params" / "languages" / "es.yaml").read_bytes()
    path = project / "params" / "languages" / "es.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("name: Spanish", "name: Castilian"), encoding="utf-8")
    assert languages.get("es").name == "Castilian"
    assert (root / "params" / "languages" / "es.yaml").read_bytes() == before
