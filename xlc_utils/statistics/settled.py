"""Intervals of tau and rho that keep their level even where models tie: count the pairs whose order is settled.

Tau and rho of true means are step functions of them. Where true means (nearly) tie they jump, and no resampling of
the coefficient covers its truth at every truth. The order of two models, though, can be tested: `settled_pairs` finds
the pairs of models that both languages put in the same order and those that they put in opposite orders, with a
chance of at most 1 − level that any of these findings is wrong. Whatever order the other pairs are in, the
coefficient then lies within `tau_bounds` and `rho_bounds`. These hold the truth at least as often as `level` says,
are as wide as [−1, 1] where nothing is settled, and shrink to a point where everything is.

The idea, confidence sets of ranks from simultaneous tests of all differences, is that of Mogstad, Romano, Shaikh &
Wilhelm (2024), Rev. Econ. Stud. 91, 476–518. They resample the largest of all studentised differences; t tests with
Holm's correction settle as many pairs, need no draws, and keep the level with a dozen items too, where resampling with
standard errors that stay fixed does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from xlc_utils.statistics.holm import holm


@dataclass(frozen=True)
class SettledPairs:
    """Pairs of `models` models whose order is settled in both languages: the same, or opposite."""

    concordant: int
    discordant: int
    models: int

    @property
    def pairs(self) -> int:
        """All pairs, settled or not."""
        return self.models * (self.models - 1) // 2

    @property
    def complete(self) -> bool:
        """Whether no pair is left open."""
        return self.concordant + self.discordant == self.pairs


def settled_pairs(
    first: np.ndarray, second: np.ndarray, *, paired: bool, level: float = 0.95, tolerance: float = 0.0
) -> SettledPairs:
    """The pairs of models whose order is settled in both languages, by t tests of the differences of their means.

    A pair is settled if both languages' tests agree that its models differ: its p is the larger of the two. Holm's
    correction over all pairs then bounds the chance of any wrong finding by 1 − level, under any dependence between
    models and languages, where a wrong finding is about a pair truly tied in a language. That the sign of a true
    difference is not mistaken more often is proved for independent tests (Shaffer 1980, Ann. Stat. 8, 1342–1347), and
    simulated for ours (benchmarks/statistics_simulation.py).

    Paired, two models' items are the same and the test is of their differences; with missing scores, of the
    difference of their means with the covariance over the items they share. Unpaired, every model's items are its
    own. The degrees of freedom are those of the model with fewer scores, at most what Welch's would be. No p is below
    2^(1 − n), the least of a sign test of n items: without it, two models without spread would be settled by two items.

    Args:
        first, second: (n_models, n_items), scores in one language each, NaN where missing; every model has a score.
        paired: whether an item is the same for all models.
        level: 1 minus the chance of any wrong finding.
        tolerance: means no further apart than this are tied and never settled.
    """
    one, other = np.triu_indices(len(first), 1)
    tests = [_tested(scores, one, other, paired, tolerance) for scores in (first, second)]
    (first_sign, first_p), (second_sign, second_p) = tests
    settled = holm(np.maximum(first_p, second_p)) <= 1 - level
    same = first_sign == second_sign
    return SettledPairs(int((settled & same).sum()), int((settled & ~same).sum()), len(first))


def tau_bounds(settled: SettledPairs) -> tuple[float, float]:
    """The lowest and the highest tau-b of two rankings in which the settled pairs are as found.

    All other pairs discordant give (2 concordant − pairs) / pairs; all concordant, (pairs − 2 discordant) / pairs.
    Ties stay within: with P concordant, Q discordant pairs and a root r of tau-b's denominator, tau-b = (P − Q) / r
    and P + Q ≤ r ≤ pairs. If it is positive it is at most (P − Q) / (P + Q) ≤ 1 − 2 Q / pairs; if negative, at most
    (P − Q) / pairs, which is no more either. NaN for fewer than two models.
    """
    pairs = settled.pairs
    if not pairs:
        return np.nan, np.nan
    return (2 * settled.concordant - pairs) / pairs, (pairs - 2 * settled.discordant) / pairs


def rho_bounds(settled: SettledPairs, rho: float) -> tuple[float, float]:
    """Bounds of Spearman's rho of two rankings in which the settled pairs are as found.

    Of n models with tau t, rho is at most (3 n t + n − 2) / (2 (n + 1)) (Daniels 1950, J. R. Stat. Soc. B 12,
    171–181) and at most 1 − (1 − t) ((n − 1) (1 − t) + 4) / (2 (n + 1)) (Durbin & Stuart 1951, same journal 13,
    303–309). Both rise with t, so that they are taken at the highest t; reversing a ranking gives the lower bounds.
    They are theorems about rankings without ties; of rankings with ties they hold in all of two to six models (tests).

    Args:
        rho: that of the means seen, which is the truth where every pair is settled.
    """
    if settled.complete:
        return rho, rho
    low, high = tau_bounds(settled)
    return -_highest_rho(-low, settled.models), _highest_rho(high, settled.models)


def _highest_rho(tau: float, n: int) -> float:
    apart = 1 - tau
    return min((3 * n * tau + n - 2) / (2 * (n + 1)), 1 - apart * ((n - 1) * apart + 4) / (2 * (n + 1)))


def _tested(
    scores: np.ndarray, one: np.ndarray, other: np.ndarray, paired: bool, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Sign of the difference of two models' means, `one` − `other`, and its two-sided p: two arrays (n_pairs,)."""
    present = ~np.isnan(scores)
    n = present.sum(axis=1)
    means = np.where(present, scores, 0.0).sum(axis=1) / n
    # The square of a row's norm is the square of its mean's standard error.
    freedom = np.maximum(n - 1, 1)
    parts = np.where(present, scores - means[:, None], 0.0) / np.sqrt(n * freedom)[:, None]
    if paired:
        errors = np.linalg.norm(parts[one] - parts[other], axis=1)
    else:
        errors = np.sqrt((parts[one] ** 2).sum(axis=1) + (parts[other] ** 2).sum(axis=1))
    differences = means[one] - means[other]
    fewer = np.minimum(n[one], n[other])
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * stdtr(np.maximum(fewer - 1, 1), -np.abs(differences) / errors)
    # Tied without spread, 0 / 0, is tied.
    p = np.where(np.abs(differences) <= tolerance, 1.0, np.maximum(p, 2.0 ** (1 - fewer)))
    return np.sign(differences), p
