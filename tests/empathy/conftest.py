"""A release like EPITOME's, and EPITOME itself for the tests that need it."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pytest
from epitome_like import made_pairs, write_release

from xlc_utils.empathy import epitome


@pytest.fixture
def release(tmp_path: Path) -> Path:
    folder = tmp_path / "epitome"
    folder.mkdir()
    return write_release(made_pairs(), folder)


@pytest.fixture(scope="session")
def real_pairs() -> pd.DataFrame:
    """EPITOME's pairs; the test is skipped where they are not."""
    data = os.environ.get("XLC_DATA")
    if not data:
        pytest.skip("XLC_DATA is not set: EPITOME is not here")
    folder = Path(data) / "epitome"
    if not all((folder / name).is_file() for name in epitome.FILES):
        pytest.skip(f"the folder epitome in XLC_DATA lacks one of {', '.join(epitome.FILES)}")
    epitome.verify(folder)
    return epitome.read(folder)
