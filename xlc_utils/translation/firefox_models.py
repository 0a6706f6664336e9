"""The models of Firefox Translations: fetched once, checked, and kept in the user's cache or a folder of one's own.

They come from one commit of github.com/mozilla/firefox-translations-models, which stores them with Git LFS: at that
commit each file's pointer says its size and SHA-256. The SHA-256 of each unpacked model, from models/by-hash.json of
the same commit, is in firefox_models.csv, so that no other weights than these are ever read.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import re
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from xlc_utils.registry.cache import cache_folder, made_once
from xlc_utils.registry.downloads import download
from xlc_utils.registry.problems import Problem

COMMIT = "0285b9a4a4e7e1d77630f232593d49c8e5d698f0"
_REPOSITORY = "mozilla/firefox-translations-models"
POINTERS = f"https://raw.githubusercontent.com/{_REPOSITORY}/{COMMIT}"
FILES = f"https://media.githubusercontent.com/media/{_REPOSITORY}/{COMMIT}"


@dataclass(frozen=True)
class Pinned:
    """The model of one direction: its folder in the repository, and the SHA-256 of its weights."""

    source: str
    target: str
    architecture: str
    model_sha256: str

    @property
    def pair(self) -> str:
        return self.source + self.target


@cache
def pinned() -> dict[tuple[str, str], Pinned]:
    """By (source, target)."""
    with (Path(__file__).parent / "firefox_models.csv").open(encoding="utf-8", newline="") as file:
        return {(row["source"], row["target"]): Pinned(**row) for row in csv.DictReader(file)}


def model_folder(model: Pinned, folder: Path | None = None, pointers: str = POINTERS, files: str = FILES) -> Path:
    """The folder with the unpacked files of a model, which are fetched if it is not there.

    Args:
        model: which.
        folder: where models are kept, each in a folder named after its pair; None: the user's cache. Fill it on a
            machine with a network, and it serves one without.
        pointers, files: where the repository's pointers and the files themselves are looked up.

    Raises:
        Problem: the network fails, what arrives is not what was pinned, or the weights in the folder are others.
    """
    target = (folder or cache_folder("firefox", COMMIT[:12])) / model.pair
    made_once(target, lambda made: _fetch(model, made, pointers, files))
    for path in sorted(target.glob("model.*.bin")):
        if hashlib.sha256(path.read_bytes()).hexdigest() == model.model_sha256:
            return target
    raise Problem(str(target), "it does not hold the pinned weights", "delete it; it is fetched again")


def _fetch(model: Pinned, made: Path, pointers: str, files: str) -> None:
    made.mkdir()
    pair, here = model.pair, f"models/{model.architecture}/{model.pair}"
    for names in (
        ((f"model.{pair}.intgemm.alphas.bin",),),
        ((f"lex.50.50.{pair}.s2t.bin",),),
        # Most pairs share a vocabulary, some of them under the name of the other direction.
        (
            (f"vocab.{pair}.spm",),
            (f"srcvocab.{pair}.spm", f"trgvocab.{pair}.spm"),
            (f"vocab.{model.target}{model.source}.spm",),
        ),
    ):
        for together in names:
            contents = [_unpacked(f"{here}/{name}.gz", pointers, files) for name in together]
            if None not in contents:
                break
        else:
            raise Problem(f"{pointers}/{here}", f"it has no {names[0][0]}.gz", "report it: the pinned commit has it")
        for name, content in zip(together, contents, strict=True):
            (made / name).write_bytes(content)


def _unpacked(path: str, pointers: str, files: str) -> bytes | None:
    """A file of the repository, checked against its pointer; None if there is none of that name."""
    pointer = download(f"{pointers}/{path}", missing_ok=True)
    if pointer is None:
        return None
    found = re.search(rb"^oid sha256:([0-9a-f]{64})\nsize (\d+)$", pointer, re.MULTILINE)
    if not found:
        raise Problem(f"{pointers}/{path}", "it is no Git LFS pointer", "try again later, or name a folder of models")
    sha256, size = found[1].decode(), int(found[2])
    content = download(f"{files}/{path}")
    if len(content) != size or hashlib.sha256(content).hexdigest() != sha256:
        what = f"what arrives is not the {size:,} bytes with the SHA-256 {sha256[:12]}… that were announced"
        raise Problem(f"{files}/{path}", what, "try again, or name a folder of models")
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise Problem(f"{files}/{path}", f"it cannot be unpacked ({error})", "report it") from error
