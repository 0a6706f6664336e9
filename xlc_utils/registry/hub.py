"""Weights of a model hub: which commit of them, and what of it may be used."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xlc_utils.registry.problems import Problem

_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class Weights:
    """A model's files, on the Hugging Face hub or in a folder.

    Attributes:
        id: name on the hub, or the absolute path of a folder.
        revision: the commit on the hub; None for a folder.
        local_files_only: nothing is fetched; what is not in the hub's cache is missing.
        trust_remote_code: code that comes with the weights may run.
        safetensors_only: pickled weights, which may run code when they are read, are not opened.
    """

    id: str
    revision: str | None
    local_files_only: bool = False
    trust_remote_code: bool = False
    safetensors_only: bool = True

    @property
    def where(self) -> dict[str, Any]:
        """Which files, as transformers' `from_pretrained` takes it."""
        only = {"local_files_only": self.local_files_only, "trust_remote_code": self.trust_remote_code}
        return {"revision": self.revision or "main", **only}  # of a folder it is not looked at

    @property
    def use_safetensors(self) -> bool | None:
        """As transformers takes it; None: whichever there is."""
        return True if self.safetensors_only else None


def is_folder(model_id: str) -> bool:
    """Whether a model's id is a path; any other is a name on the hub."""
    return Path(model_id).is_absolute()


def is_pinned(model_id: str, revision: str | None) -> bool:
    """Whether id and revision name one state of the weights: a whole commit, or a folder."""
    return is_folder(model_id) or bool(revision and _COMMIT.fullmatch(revision))


def folder_version(model_id: str) -> list[list]:
    """Name, size and time of a folder's files: other files under the same path are another model."""
    folder = Path(model_id)
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    return [[f.name, f.stat().st_size, f.stat().st_mtime_ns] for f in files]


def snapshot(where: str, weights: Weights) -> str:
    """The folder that holds the weights on this machine; nothing is fetched.

    Raises:
        Problem: they are not there.
    """
    if is_folder(weights.id):
        return weights.id
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return snapshot_download(weights.id, revision=weights.revision, local_files_only=True)
    except LocalEntryNotFoundError as error:
        raise Problem(
            where,
            f"{weights.id} at {weights.revision} is not in the hub's cache, and `local_files_only` is true",
            f"run `hf download {weights.id} --revision {weights.revision}` where the network is, or take the key out",
        ) from error
