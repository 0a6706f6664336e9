"""Agreement of raters on the same items: percent agreement, Cohen, Fleiss, Krippendorff, with bootstrap
intervals.

Every coefficient takes ratings (n_items, n_raters), numbers with NaN where a rater gave none, and uses the
items with at least two ratings; the result states how many. Kappa comes from statsmodels, alpha from
krippendorff.

Sort items by id and raters by name before calling, so that the same data in another row order give the same
bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from xlc_utils.statistics.intervals import bootstrap_indices, percentile_bounds

TOO_FEW = "no item has two ratings"
CONSTANT = "raters used one value only, so that agreement by chance is certain"
DISJOINT = "two raters share no item"


@dataclass(frozen=True)
class Agreement:
    """A coefficient; NaN with a reason where it is undefined.

    `n_items` and `n_ratings` are those it rests on: items with at least two ratings, and their ratings.
    """

    value: float
    n_items: int
    n_ratings: int
    reason: str = ""


@dataclass(frozen=True)
class AgreementInterval(Agreement):
    """A coefficient with its percentile interval over items, from the resamples that have a value.

    `undefined` is the share of resamples that have none.
    """

    low: float = np.nan
    high: float = np.nan
    undefined: float = 0.0


def full_agreement(ratings: np.ndarray) -> Agreement:
    """Share of items on which all who rated the item gave the same rating, in 0–1."""
    _, counts, usable = _counts(ratings)
    if not len(counts):
        return _result(np.nan, usable, TOO_FEW)
    return _result(float((counts.max(axis=1) == counts.sum(axis=1)).mean()), usable)


def cohen(ratings: np.ndarray, weights: str | None = None) -> Agreement:
    """Cohen's kappa of two raters; with more raters the mean over all pairs of them (Light 1971).

    Args:
        ratings: (n_items, n_raters). Each pair of raters is compared on the items both rated.
        weights: None, "linear" or "quadratic" in the difference of the rating values themselves, so that a
            value nobody used still counts as a step.

    Source: Cohen (1960, 1968); statsmodels.stats.inter_rater.cohens_kappa.
    """
    from statsmodels.stats.inter_rater import cohens_kappa

    values, counts, usable = _counts(ratings)
    if reason := _undefined(counts):
        return _result(np.nan, usable, reason)
    kappas = []
    for one, other in combinations(usable.T, 2):
        table = ((one[:, None] == values)[:, :, None] & (other[:, None] == values)[:, None, :]).sum(axis=0)
        if not table.any():
            return _result(np.nan, usable, DISJOINT)
        if table.max() == table.sum() and np.trace(table):
            return _result(np.nan, usable, CONSTANT)
        scores = None if weights is None else values
        kappas.append(cohens_kappa(table, weights=scores, wt=weights, return_results=False))
    return _result(float(np.mean(kappas)), usable)


def fleiss(ratings: np.ndarray) -> Agreement:
    """Fleiss' kappa.

    Where items have unequal numbers of ratings, which no maintained library takes, each item's agreement is
    over its own pairs and chance agreement over all ratings pooled; with equal numbers both are the same.

    Args:
        ratings: (n_items, n_raters).

    Source: Fleiss (1971); statsmodels.stats.inter_rater.fleiss_kappa.
    """
    from statsmodels.stats.inter_rater import fleiss_kappa

    _, counts, usable = _counts(ratings)
    if reason := _undefined(counts):
        return _result(np.nan, usable, reason)
    per_item = counts.sum(axis=1)
    kappa = fleiss_kappa(counts) if (per_item == per_item[0]).all() else _fleiss_unequal(counts)
    return _result(float(kappa), usable)


def krippendorff(ratings: np.ndarray, level_of_measurement: str) -> Agreement:
    """Krippendorff's alpha.

    Args:
        ratings: (n_items, n_raters).
        level_of_measurement: "nominal", "ordinal", "interval" or "ratio".

    Source: Krippendorff (2011), Computing Krippendorff's Alpha-Reliability; the `krippendorff` package.
    """
    from krippendorff import alpha

    values, counts, usable = _counts(ratings)
    if reason := _undefined(counts):
        return _result(np.nan, usable, reason)
    value = alpha(value_counts=counts, value_domain=values, level_of_measurement=level_of_measurement)
    return _result(float(value), usable)


def agreement_interval(
    coefficient: Callable[[np.ndarray], Agreement],
    ratings: np.ndarray,
    *,
    seed: int,
    samples: int = 2000,
    level: float = 0.95,
) -> AgreementInterval:
    """A coefficient of this module with its percentile interval over items.

    Items are resampled whole, with all their ratings; the raters are those at hand and not a sample.

    Args:
        coefficient: one of the functions above, with `functools.partial` for its further arguments.
        ratings: (n_items, n_raters).
        seed, samples, level: as for `intervals.mean_interval`.
    """
    found = coefficient(ratings)
    usable = _usable(ratings)
    if np.isnan(found.value) or len(usable) < 2:
        return AgreementInterval(**vars(found))
    resamples = bootstrap_indices(len(usable), samples, seed)
    draws = np.array([coefficient(usable[items]).value for items in resamples])
    low, high = (float(bound) for bound in percentile_bounds(draws, level))
    return AgreementInterval(**vars(found), low=low, high=high, undefined=float(np.isnan(draws).mean()))


def _usable(ratings: np.ndarray) -> np.ndarray:
    """The items with at least two ratings."""
    ratings = np.asarray(ratings, dtype=float)
    if ratings.ndim != 2:
        raise ValueError(f"ratings are (n_items, n_raters), not {ratings.shape}")
    return ratings[(~np.isnan(ratings)).sum(axis=1) >= 2]


def _counts(ratings: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values used (n_values,), how many raters gave each (n_items, n_values), and the usable ratings."""
    usable = _usable(ratings)
    values = np.unique(usable[~np.isnan(usable)])
    return values, (usable[:, :, None] == values).sum(axis=1), usable


def _undefined(counts: np.ndarray) -> str:
    if not len(counts):
        return TOO_FEW
    return CONSTANT if counts.shape[1] < 2 else ""


def _equal_pairs(counts: np.ndarray) -> np.ndarray:
    """Share of equal pairs among the ratings of each item: (n_items, n_values) -> (n_items,)."""
    per_item = counts.sum(axis=1)
    return ((counts**2).sum(axis=1) - per_item) / (per_item * (per_item - 1))


def _fleiss_unequal(counts: np.ndarray) -> float:
    by_chance = ((counts.sum(axis=0) / counts.sum()) ** 2).sum()
    return (_equal_pairs(counts).mean() - by_chance) / (1 - by_chance)


def _result(value: float, usable: np.ndarray, reason: str = "") -> Agreement:
    return Agreement(value, len(usable), int((~np.isnan(usable)).sum()), reason)
