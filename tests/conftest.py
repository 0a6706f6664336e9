"""What tests of several rooms share: the project's folder, a copy of it, and an endpoint that says what it is told."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_endpoint import FakeEndpoint

# A shell that starts the tests in the background has SIGINT ignored, which every process under it inherits; the tests
# of Ctrl-C need it as it is in a terminal.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # before anything is made for the test
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("slow") and "XLC_MINUTES" not in os.environ:
        pytest.skip("takes long: XLC_MINUTES asks for it, as CI does")


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root folder."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture
def project(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder that a test may change: a copy of params/, found through XLC_ROOT."""
    folder = tmp_path / "project"
    shutil.copytree(root / "params", folder / "params")
    monkeypatch.setenv("XLC_ROOT", str(folder))
    return folder


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEndpoint]:
    """A `FakeEndpoint`; clients do not wait between their attempts."""
    from xlc_utils.chat import pacing

    monkeypatch.setattr(pacing, "FIRST_WAIT", 0.0)
    fake = FakeEndpoint()
    yield fake
    fake.stop()
