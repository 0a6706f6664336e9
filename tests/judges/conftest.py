"""The released dialogues, for the tests that need them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from xlc_utils.judges.released import FILES


@pytest.fixture
def release() -> Path:
    """The folder of the released dialogues; the test is skipped where there is none."""
    data = os.environ.get("XLC_DATA")
    if not data:
        pytest.skip("XLC_DATA is not set: the released dialogues are not here")
    folder = Path(data) / "judge-stability"
    if not all((folder / name).is_file() for name in FILES):
        pytest.skip(f"the folder judge-stability in XLC_DATA lacks one of {', '.join(FILES)}")
    return folder
