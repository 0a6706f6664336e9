"""Averages over groups of languages (paper A's script and family tables), each language counting once.

Arrays in, arrays out: the last axis of `values` is the language, `membership` says which belong to which
group.
"""

from __future__ import annotations

import numpy as np

from xlc_utils.statistics.intervals import Interval, percentile_bounds


def macro_average(values: np.ndarray, membership: np.ndarray, *, ignore_missing: bool = False) -> np.ndarray:
    """Unweighted mean over the languages of each group.

    Args:
        values: (…, n_languages), one score a language.
        membership: (n_groups, n_languages) booleans; groups may overlap.
        ignore_missing: average the languages that have a value, rather than give NaN for a group with a NaN.

    Returns:
        (…, n_groups) in the unit of the values; NaN for a group with nothing to average.
    """
    values, membership = _checked(values, membership)
    averages = np.full((*values.shape[:-1], len(membership)), np.nan)
    for group, members in enumerate(membership):
        inside = values[..., members]
        present = ~np.isnan(inside)
        count = present.sum(axis=-1)
        usable = (count > 0) if ignore_missing else (count > 0) & present.all(axis=-1)
        sums = np.where(present, inside, 0.0).sum(axis=-1)
        averages[..., group] = np.where(usable, sums / np.maximum(count, 1), np.nan)
    return averages


def macro_interval(
    values: np.ndarray,
    draws: np.ndarray,
    membership: np.ndarray,
    *,
    level: float = 0.95,
    ignore_missing: bool = False,
) -> Interval:
    """Group averages with percentile intervals, from draws in which all languages share the resampled items.

    The interval says how the average would move with other items; the languages are those at hand and not a
    sample.

    Args:
        values: (…, n_languages).
        draws: (samples, …, n_languages), from `weighted_means` or `f_of_means` with `bootstrap_weights`.
        membership, ignore_missing: as for `macro_average`.
        level: share of the interval.

    Returns:
        Interval of arrays (…, n_groups); n counts the languages averaged.
    """
    values, membership = _checked(values, membership)
    estimate = macro_average(values, membership, ignore_missing=ignore_missing)
    low, high = percentile_bounds(macro_average(draws, membership, ignore_missing=ignore_missing), level)
    n = (~np.isnan(values)).astype(int) @ membership.T.astype(int)
    return Interval(estimate, low, high, n)


def _checked(values: np.ndarray, membership: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, membership = np.asarray(values, dtype=float), np.asarray(membership, dtype=bool)
    if membership.ndim != 2 or membership.shape[1] != values.shape[-1]:
        raise ValueError(f"membership {membership.shape} is not (n_groups, {values.shape[-1]})")
    return values, membership
