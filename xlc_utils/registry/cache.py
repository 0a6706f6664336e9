"""Where things are kept that can be made or fetched again: $XDG_CACHE_HOME/xlc, or ~/.cache/xlc."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from xlc_utils.registry.problems import Problem


def cache_folder(*parts: str) -> Path:
    """A folder of the user's cache; it need not exist."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base.joinpath("xlc", *parts)


def made_once(target: Path, make: Callable[[Path], object]) -> Path:
    """``target``, a folder, made by ``make`` if it is not there: a reader sees all of it or nothing.

    Two processes may do this at once: one's folder stands, the other's is thrown away.

    Args:
        target: the folder.
        make: called with the path of a folder to make, which does not exist.

    Raises:
        Problem: the disk is full or cannot be written.
    """
    if target.is_dir():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as temporary:
            made = Path(temporary) / target.name
            make(made)
            try:
                made.replace(target)
            except OSError:
                if not target.is_dir():  # else another process was faster
                    raise
    except OSError as error:
        if error.errno is None:  # what `make` reads from elsewhere raises these too: not of the disk
            raise
        raise Problem(
            str(target),
            f"it cannot be written ({error.strerror or error})",
            "free some space, or set XDG_CACHE_HOME to a folder that can be written",
        ) from error
    return target
