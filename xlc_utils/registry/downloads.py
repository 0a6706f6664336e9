"""Data that is not kept here: files of one pinned commit of a public repository, found or fetched, always checked."""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from xlc_utils.registry.problems import Problem

#: Name of a file here → its path in the repository and its SHA-256.
Files = Mapping[str, tuple[str, str]]


@dataclass(frozen=True)
class Release:
    """Where files come from, and what messages call it.

    Attributes:
        what: "released dialogues of paper B".
        folder: its folder inside the one XLC_DATA names.
        repository: owner/name on GitHub.
        commit: the commit whose files are read.
        fetched_by: the function a person calls to download them, with its module.
    """

    what: str
    folder: str
    repository: str
    commit: str
    fetched_by: str

    @property
    def home(self) -> str:
        """Base address under which the repository's paths are looked up."""
        return f"https://raw.githubusercontent.com/{self.repository}/{self.commit}"

    def data_folder(self, folder: str | Path | None = None) -> Path:
        """`folder`, else `self.folder` in the one XLC_DATA names.

        Raises:
            Problem: neither is given, or there is no such folder.
        """
        if folder is None and not os.environ.get("XLC_DATA"):
            raise Problem(
                self.what,
                "no folder is given and XLC_DATA is not set",
                f"name the folder, or download them with {self.fetched_by}(folder)",
            )
        path = Path(folder) if folder is not None else Path(os.environ["XLC_DATA"]) / self.folder
        if not path.is_dir():
            raise Problem(
                str(path),
                "there is no such folder",
                f"correct the name, or download the files with {self.fetched_by}(folder)",
            )
        return path

    def verify(self, folder: Path, files: Files) -> None:
        """Hold every file in `folder` against its pinned SHA-256.

        Raises:
            Problem: a file is missing or is not the pinned one.
        """
        for name, (_, sha256) in files.items():
            self._check(self.read_bytes(folder / name), sha256, str(folder / name))

    def fetch(self, folder: str | Path, files: Files, home: str) -> list[Path]:
        """Download the files into `folder`, side by side; those that are there and right are kept.

        A file takes its name only after its SHA-256 was checked, so an interrupted download leaves nothing wrong.

        Args:
            folder: made if need be.
            files: see `Files`.
            home: base address under which the repository's paths are looked up.

        Returns:
            The paths, in the order of `files`.

        Raises:
            Problem: the network fails, what arrives is not the pinned file, or the folder cannot be written to.
        """
        target = Path(folder)
        for name, (path, sha256) in files.items():
            if (target / name).is_file() and _sha256(self.read_bytes(target / name)) == sha256:
                continue
            content = download(f"{home}/{path}")
            self._check(content, sha256, f"{home}/{path}")
            _write(target / name, content)
        return [target / name for name in files]

    def read_bytes(self, path: Path) -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            raise Problem(
                str(path), f"it cannot be read ({error.strerror})", f"download it with {self.fetched_by}(folder)"
            ) from None

    def _check(self, content: bytes, expected: str, where: str) -> None:
        found = _sha256(content)
        if found != expected:
            raise Problem(
                where,
                f"its SHA-256 is {found[:12]}…, not the pinned {expected[:12]}…",
                f"use the file of commit {self.commit[:12]}",
            )


def download(address: str, missing_ok: bool = False) -> bytes | None:
    """What is at an address; None where there is nothing and that is ``missing_ok``.

    Raises:
        Problem: the network fails.
    """
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        if missing_ok and error.code == 404:
            return None
        raise _failed(address, error) from None
    except (OSError, http.client.HTTPException) as error:
        raise _failed(address, error) from None


def _failed(address: str, error: Exception) -> Problem:
    remedy = "try again, or put the files into the folder by hand"
    return Problem(address, f"it cannot be downloaded ({error})", remedy)


def _write(path: Path, content: bytes) -> None:
    partial = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        raise Problem(
            str(path), f"it cannot be written ({error.strerror})", "name a folder that can be written to and has room"
        ) from None


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
