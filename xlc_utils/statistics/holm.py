"""Holm's correction for many tests.

Source: Holm (1979), Scand. J. Stat. 6, 65–70.
"""

from __future__ import annotations

import numpy as np


def holm(p: np.ndarray) -> np.ndarray:
    """Step-down adjusted p-values, in the shape of `p`; NaN stays NaN and does not count as a test."""
    p = np.asarray(p, dtype=float)
    adjusted = np.full(p.size, np.nan)
    order = np.argsort(p, axis=None, kind="stable")[: int((~np.isnan(p)).sum())]
    steps = p.ravel()[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return adjusted.reshape(p.shape)
