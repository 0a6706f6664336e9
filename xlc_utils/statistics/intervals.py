"""Bootstrap intervals over items: which prompts happened to be asked, and how much that matters.

Scores are arrays whose last axis is the item (a prompt, a dialogue) and whose leading axes are cells
(model × language, say). NaN marks an item that has no score in a cell. Every resample draws the same items
for all cells, so differences and averages of cells that share their prompts keep their dependence.

Results depend on the order of items only through the draws: sort items by id before calling, so that the
same data in another row order give the same bytes.

Sources: Efron & Tibshirani (1993), An Introduction to the Bootstrap, ch. 13 (percentile), 14 (BCa), 16
(tests); Wilson (1927); Phipson & Smyth (2010) for p = (k + 1) / (n + 1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

# Cells resampled at a time: 2,000 draws of 256 cells are 4 MB.
BLOCK = 256


@dataclass(frozen=True)
class Interval:
    """An estimate with its interval; all four arrays have the shape of the cells.

    `n` is the number of items with a score. Bounds are NaN where n < 2: one item says nothing about the
    spread.
    """

    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray
    n: np.ndarray


@dataclass(frozen=True)
class Difference(Interval):
    """A difference of two cells over the items both have, with the two-sided bootstrap p of no difference."""

    p: np.ndarray


def bootstrap_indices(n: int, samples: int, seed: int | tuple[int, ...]) -> np.ndarray:
    """Items drawn with replacement, (samples, n) integers below n; all are drawn at once from `seed`."""
    return np.random.default_rng(seed).integers(0, n, size=(samples, n), dtype=np.int32)


def bootstrap_weights(n: int, samples: int, seed: int | tuple[int, ...]) -> np.ndarray:
    """How often each item is drawn in each resample of `bootstrap_indices`: (samples, n), rows sum to n."""
    indices = bootstrap_indices(n, samples, seed)
    flat = (indices + n * np.arange(samples)[:, None]).ravel()
    return np.bincount(flat, minlength=samples * n).reshape(samples, n).astype(float)


def weighted_means(scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Mean of each cell under each row of item weights, over the items that have a score.

    Args:
        scores: (…, n_items), NaN where an item has none.
        weights: (n_weights, n_items), such as `bootstrap_weights`.

    Returns:
        (n_weights, …) in the unit of the scores; NaN where no item with a score has weight.
    """
    cells = scores.reshape(-1, scores.shape[-1])
    present = ~np.isnan(cells)
    sums = weights @ np.where(present, cells, 0.0).T
    totals = weights.sum(axis=1, keepdims=True) if present.all() else weights @ present.T.astype(float)
    with np.errstate(invalid="ignore"):
        means = sums / np.where(totals > 0, totals, np.nan)
    return means.reshape(len(weights), *scores.shape[:-1])


def f_score(precision: np.ndarray, recall: np.ndarray) -> np.ndarray:
    """Harmonic mean of precision and recall, 0 where both are 0, NaN where either is NaN (paper A §3.1)."""
    total = np.asarray(precision + recall, dtype=float)
    return 2 * precision * recall / np.where(total == 0, 1.0, total)


def percentile_bounds(draws: np.ndarray, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """Percentile interval of each cell from its defined draws, (samples, …) -> two arrays (…).

    Source: Efron & Tibshirani (1993) §13.3.
    """
    tails = (1 - level) / 2, (1 + level) / 2
    low, high = (_quantiles(draws, np.full(draws.shape[1:], tail)) for tail in tails)
    return low, high


def bca_bounds(
    estimate: np.ndarray, draws: np.ndarray, jackknife: np.ndarray, level: float = 0.95
) -> tuple[np.ndarray, np.ndarray]:
    """Bias-corrected and accelerated interval of each cell.

    Args:
        estimate: (…).
        draws: (samples, …), bootstrap values of the estimate; undefined ones (NaN) are left out.
        jackknife: (n, …), the estimate without each item in turn; NaN where that is undefined.
        level: share of the interval.

    Returns:
        low, high: (…); NaN where all draws lie on one side of the estimate, so that the correction is
            infinite.

    Source: Efron & Tibshirani (1993) §14.3, draws equal to the estimate counted half.
    """
    defined = np.maximum((~np.isnan(draws)).sum(axis=0), 1)
    below = ((draws < estimate).sum(axis=0) + (draws <= estimate).sum(axis=0)) / (2 * defined)
    acceleration = _acceleration(jackknife)
    bias = ndtri(below)
    bounds = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        z = bias + ndtri(tail)
        with np.errstate(invalid="ignore"):
            bounds.append(_quantiles(draws, ndtr(bias + z / (1 - acceleration * z))))
    return bounds[0], bounds[1]


def mean_interval(
    scores: np.ndarray, *, seed: int, samples: int = 2000, level: float = 0.95, method: str = "percentile"
) -> Interval:
    """Mean over items of each cell, with its interval.

    Args:
        scores: (…, n_items), NaN for missing items.
        seed: of the draws; the same seed and n_items give the same draws in every function of this module.
        samples: number of resamples.
        level: share of the interval.
        method: "percentile" or "bca".

    Returns:
        Interval of arrays (…), in the unit of the scores.
    """
    return _interval(weighted_means, (scores,), seed, samples, level, method)


def f_interval(
    precision: np.ndarray,
    recall: np.ndarray,
    *,
    seed: int,
    samples: int = 2000,
    level: float = 0.95,
    method: str = "percentile",
) -> Interval:
    """F of each cell, the harmonic mean of mean precision and mean recall, with its interval.

    F is of the means over items and not the mean of the items' F (paper A §3.1).

    Args:
        precision, recall: (…, n_items), shares in 0–1; each may miss other items.
        seed, samples, level, method: as for `mean_interval`.

    Returns:
        Interval of arrays (…); n counts items with either score.
    """
    return _interval(f_of_means, (precision, recall), seed, samples, level, method)


def f_of_means(precision: np.ndarray, recall: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """F of each cell under each row of item weights.

    Args:
        precision, recall: (…, n_items).
        weights: (n_weights, n_items).

    Returns:
        (n_weights, …).
    """
    return f_score(weighted_means(precision, weights), weighted_means(recall, weights))


def paired_difference(
    first: np.ndarray, second: np.ndarray, *, seed: int, samples: int = 2000, level: float = 0.95
) -> Difference:
    """Mean of first − second over the items both have, percentile interval and two-sided bootstrap p.

    The null distribution is the draws moved to a mean difference of zero; p = (k + 1) / (samples + 1),
    where k draws are at least as far from zero as the difference seen. NaN where fewer than two items are
    shared.

    Args:
        first, second: (…, n_items), the same items in the same order; leading axes broadcast.
        seed, samples, level: as for `mean_interval`.

    Source: Efron & Tibshirani (1993) §16.4; Phipson & Smyth (2010).
    """
    differences = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    cells = differences.reshape(-1, differences.shape[-1])
    interval = mean_interval(cells, seed=seed, samples=samples, level=level)
    weights = bootstrap_weights(cells.shape[1], samples, seed)
    p = np.full(len(cells), np.nan)
    for block in _blocks(len(cells)):
        seen = interval.estimate[block]
        deviation = np.abs(weighted_means(cells[block], weights) - seen)
        # A hair's breadth below |seen|: a draw that equals it but for rounding counts as extreme.
        p[block] = ((deviation >= np.abs(seen) * (1 - 1e-12)).sum(axis=0) + 1) / (samples + 1)
    p[interval.n < 2] = np.nan
    shape = differences.shape[:-1]
    parts = interval.estimate, interval.low, interval.high, interval.n, p
    return Difference(*(part.reshape(shape) for part in parts))


def wilson_interval(successes: np.ndarray, n: np.ndarray, level: float = 0.95) -> Interval:
    """Share successes / n with Wilson's score interval, elementwise; NaN where n is 0.

    Source: Wilson (1927), J. Am. Stat. Assoc. 22, 209–212.
    """
    successes, n = np.broadcast_arrays(np.asarray(successes, dtype=float), np.asarray(n, dtype=float))
    z = ndtri((1 + level) / 2)
    trials = np.where(n > 0, n, np.nan)
    share = successes / trials
    centre = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
    half = z / (1 + z**2 / trials) * np.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    return Interval(share, np.maximum(centre - half, 0), np.minimum(centre + half, 1), n.astype(int))


def _interval(
    statistic: Callable[..., np.ndarray],
    scores: tuple[np.ndarray, ...],
    seed: int,
    samples: int,
    level: float,
    method: str,
) -> Interval:
    """Interval of `statistic(*scores, weights) -> (n_weights, cells)`, each of the scores (…, n_items)."""
    if method not in ("percentile", "bca"):
        raise ValueError(f"method is 'percentile' or 'bca', not {method!r}")
    shape, n_items = scores[0].shape[:-1], scores[0].shape[-1]
    cells = [np.asarray(part, dtype=float).reshape(-1, n_items) for part in scores]
    weights = bootstrap_weights(n_items, samples, seed)
    n = np.any([~np.isnan(part) for part in cells], axis=0).sum(axis=1)
    estimate, low, high = np.full((3, len(n)), np.nan)
    for block in _blocks(len(n)):
        parts = [part[block] for part in cells]
        estimate[block] = statistic(*parts, np.ones((1, n_items)))[0]
        draws = statistic(*parts, weights)
        if method == "percentile":
            low[block], high[block] = percentile_bounds(draws, level)
        else:
            jackknife = statistic(*parts, 1 - np.eye(n_items))
            low[block], high[block] = bca_bounds(estimate[block], draws, jackknife, level)
    low[n < 2], high[n < 2] = np.nan, np.nan
    return Interval(*(part.reshape(shape) for part in (estimate, low, high, n)))


def _blocks(n_cells: int) -> list[slice]:
    return [slice(start, start + BLOCK) for start in range(0, n_cells, BLOCK)]


def _acceleration(jackknife: np.ndarray) -> np.ndarray:
    """Acceleration from leave-one-out values (n, …); 0 where leaving an item out changes nothing."""
    counts = np.maximum((~np.isnan(jackknife)).sum(axis=0), 1)
    deviations = np.nansum(jackknife, axis=0) / counts - jackknife
    spread = np.nansum(deviations**2, axis=0) ** 1.5
    return np.nansum(deviations**3, axis=0) / np.where(spread > 0, 6 * spread, 1.0)


def _quantiles(draws: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Quantile of each cell's defined draws at the cell's own probability: (samples, …), (…) -> (…)."""
    columns = draws.reshape(len(draws), -1)
    wanted = probabilities.ravel()
    values = np.full(columns.shape[1], np.nan)
    usable = ~np.isnan(columns).all(axis=0) & ~np.isnan(wanted)
    if usable.any() and (wanted[usable] == wanted[usable][0]).all():
        values[usable] = np.nanquantile(columns[:, usable], wanted[usable][0], axis=0)
    else:
        for cell in np.flatnonzero(usable):
            values[cell] = np.nanquantile(columns[:, cell], wanted[cell])
    return values.reshape(probabilities.shape)
