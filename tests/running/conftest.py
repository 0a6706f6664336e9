"""Params files for the tests of the room `running`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

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
