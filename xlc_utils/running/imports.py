"""Which files of the package a piece of code can come to run, read off its import statements."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path


def reached(sources: Iterable[str], package: Path) -> set[Path]:
    """The package's modules that imports reach, also those inside functions, and the data in their folders.

    Args:
        sources: code that imports from the package; a line that IPython alone understands is left out.
        package: the folder of the package.
    """
    waiting = [name for source in sources for name in _imported(_parsed(source), "")]
    modules: dict[str, Path] = {}
    while waiting:
        name = waiting.pop()
        # Importing a.b.c runs a/__init__ and a/b/__init__ too.
        for module in (name.rsplit(".", depth)[0] for depth in range(name.count(".") + 1)):
            path = _file(module, package)
            if path and module not in modules:
                modules[module] = path
                waiting += _imports_of(path, module if path.name == "__init__.py" else module.rpartition(".")[0])
    folders = {path.parent for path in modules.values()} - {package}
    data = {
        p for folder in folders for p in folder.rglob("*") if p.is_file() and p.suffix not in (".py", ".pyc", ".md")
    }
    return {*modules.values(), *data}


def _parsed(source: str) -> ast.Module:
    return ast.parse("\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in source.splitlines()))


@cache
def _imports_of(path: Path, package: str) -> tuple[str, ...]:
    return tuple(_imported(ast.parse(path.read_text(encoding="utf-8")), package))


def _imported(tree: ast.Module, package: str) -> Iterator[str]:
    """Full names of what import statements name; `from a import b` gives a and a.b, of which one may be no module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.rsplit(".", node.level - 1)[0] + "." if node.level else ""
            module = (base + (node.module or "")).rstrip(".")
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def _file(module: str, package: Path) -> Path | None:
    top, _, rest = module.partition(".")
    if top != package.name:
        return None
    base = package.joinpath(*rest.split(".")) if rest else package
    return next((p for p in (base / "__init__.py", base.with_suffix(".py")) if p.is_file()), None)
