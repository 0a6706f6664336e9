"""docs/new_language.md: its commands are executed as written, and print what stands below them.

They take minutes, with a run of the seven notebooks among them: they are executed where XLC_WALKTHROUGH is set, as
.ci/run does.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "new_language.md"
# A block of commands, and the block of what they print if one follows at once.
_BLOCK = re.compile(r"^```sh\n(?P<commands>.*?)^```\n(?:\n```text\n(?P<printed>.*?)^```\n)?", re.DOTALL | re.MULTILINE)
BLOCKS = [(found["commands"], found["printed"] or "") for found in _BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]
LEFT_OUT = "…"


def lacking(printed: str, output: str) -> str | None:
    """The first line of the page that the output does not have at its place; None if all are there.

    Lines stand where the page has them: next to each other, unless `…` stands between them.
    """
    lines, place, anywhere = output.splitlines(), 0, False
    for wanted in printed.splitlines():
        if wanted == LEFT_OUT:
            anywhere = True
            continue
        places = range(place, len(lines) if anywhere else min(place + 1, len(lines)))
        found = next((i for i in places if lines[i].rstrip() == wanted.rstrip()), None)
        if found is None:
            return wanted
        place, anywhere = found + 1, False
    return None if anywhere or place == len(lines) else f"(nothing more, but there is: {lines[place]})"


@pytest.fixture(scope="module")
def copy(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("walkthrough")
    for name in ("params", "notebooks", "docs"):
        shutil.copytree(root / name, folder / name)
    return folder


def test_the_page_has_its_parts():
    commands = "".join(block for block, _ in BLOCKS)
    for command in (
        "language new sw",
        "language check sw",
        "run params/smoke.yaml",
        "language review",
        "language new kmb",
    ):
        assert f"xlc {command}" in commands
    assert sum(bool(printed) for _, printed in BLOCKS) > len(BLOCKS) / 2
    text = PAGE.read_text(encoding="utf-8")
    assert text.count("```text") == sum(bool(printed) for _, printed in BLOCKS), "each stands below its commands"


@pytest.mark.skipif("XLC_WALKTHROUGH" not in os.environ, reason="takes minutes: XLC_WALKTHROUGH asks for it")
def test_every_command_prints_what_the_page_says(copy: Path, root: Path):
    """In order and in one copy of the project, as a reader would do it."""
    bin_folder = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([bin_folder, os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")]),
        "PYTHONIOENCODING": "utf-8",
    }
    environment.pop("XLC_ROOT", None)
    for commands, printed in BLOCKS:
        done = subprocess.run(
            ["bash", "-eu", "-c", commands],
            cwd=copy, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=500,
        )  # fmt: skip
        assert done.returncode == 0, f"{commands}\n{done.stdout}"
        if printed:
            assert lacking(printed, done.stdout) is None, f"{commands}\n{done.stdout}"


@pytest.mark.parametrize(
    ("printed", "output", "expected"),
    [
        ("a\nb\n", "a\nb\n", None),
        ("a\n", "a\nb\n", "(nothing more, but there is: b)"),
        ("a\n…\nc\n", "a\nb\nc\n", None),
        ("a\nc\n", "a\nb\nc\n", "c"),
        ("a\n…\n", "a\nb\n", None),
        ("a\n…\nd\n", "a\nb\nc\n", "d"),
        ("c\n…\na\n", "a\nb\nc\n", "c"),
    ],
)
def test_lacking(printed: str, output: str, expected: str | None):
    assert lacking(printed, output) == expected
