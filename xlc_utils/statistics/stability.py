"""Do two languages rank the same models alike? Tau-b, rho and inversions, and how sure they are.

Rankings are arrays with one score a model; item-level scores are (n_models, n_items) with NaN where a model
has no score. Where a coefficient is undefined it is NaN and comes with the reason.

Model means are compared with a tolerance of 1e-12 of the largest absolute score: means that differ only by
the rounding of a sum are tied, in whatever order the items came. Draws still follow the order of items, so
sort items by id (and models by name) before calling.

Sources: paper B §3.4 and Appendix E (the published statistics); Kendall (1945) for tau-b; Efron & Tibshirani
(1993) for the bootstrap; Phipson & Smyth (2010) for p = (k + 1) / (n + 1); of the intervals, see `settled`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.stats import rankdata

from xlc_utils.statistics.intervals import (
    Interval,
    bca_bounds,
    bootstrap_indices,
    bootstrap_weights,
    percentile_bounds,
    weighted_means,
)
from xlc_utils.statistics.settled import SettledPairs, rho_bounds, settled_pairs, tau_bounds

TOO_FEW = "fewer than two models have a score in both languages"
ALL_TIED = "all models are tied in one of the languages"
OUT_OF_REACH = "no tau of so few models is significant at this level"

# The level whose attainable size a label-swap test states.
ALPHA = 0.05
# Rounding of sums relative to the largest score, and of correlations.
ROUNDING = 1e-12
# 2^13 label swaps (the first model's label may stay) of 91 pairs: a few MB.
MOST_ENUMERATED = 14


@dataclass(frozen=True)
class Correlation:
    """A rank correlation of `n` models, −1 to 1; NaN with a reason where it is undefined."""

    value: float
    n: int
    reason: str = ""


@dataclass(frozen=True)
class Inversions:
    """Pairs of models: in opposite order (`inverted`), tied in either ranking (`tied`), and all (`pairs`)."""

    inverted: int
    tied: int
    pairs: int


@dataclass(frozen=True)
class SwapTest:
    """P-values of a label-swap test: how often exchanged labels agree as little as the true ones, or less.

    One p for each statistic: low tau, low rho, many inversions. NaN where the statistic is undefined. A
    labelling whose tau is undefined counts as agreeing less. `attainable` is the size that the test of
    inversions really has at .05: the share of labellings with p ≤ .05, below .05 since inversions come in
    steps.
    """

    tau: float
    rho: float
    inversions: float
    attainable: float


@dataclass(frozen=True)
class RankStability:
    """How alike two languages rank the models, from item-level scores.

    `tau_interval` and `rho_interval` are the confidence intervals, (low, high): what the pairs of models whose order
    is `settled` leave open. `tau_draws` and `rho_draws` say how far the bootstrap draws spread, (low, high), and do
    not keep the level of a confidence interval where models nearly tie; they leave out the share `undefined` of
    draws, in which all models tie in a language. All four are NaN where the coefficient is. `scores` counts the item
    scores used in the first and in the second language.
    """

    tau: Correlation
    rho: Correlation
    inversions: Inversions
    settled: SettledPairs
    tau_interval: tuple[float, float]
    rho_interval: tuple[float, float]
    tau_draws: tuple[float, float]
    rho_draws: tuple[float, float]
    undefined: float
    swap_models: SwapTest | None
    swap_items: SwapTest
    scores: tuple[int, int]


@dataclass(frozen=True)
class DetectableTau:
    """The smallest |tau| significant at a level, and its two-sided p; NaN with a reason if none is."""

    tau: float
    p: float
    reason: str = ""


def kendall(first: np.ndarray, second: np.ndarray) -> Correlation:
    """Kendall's tau-b of two rankings (n,); models with NaN in either are left out."""
    first, second = _shared(first, second)
    return _correlation(_correlations(first, second, tolerance=0.0)[0], len(first))


def spearman(first: np.ndarray, second: np.ndarray) -> Correlation:
    """Spearman's rho of two rankings (n,), ties at mean rank; models with NaN in either are left out."""
    first, second = _shared(first, second)
    return _correlation(_correlations(first, second, tolerance=0.0)[1], len(first))


def spearman_interval(
    first: np.ndarray, second: np.ndarray, *, seed: int, samples: int = 2000, level: float = 0.95
) -> Interval:
    """Spearman's rho of two scores of the same items (n_items,), with a percentile interval over items.

    Items with NaN in either are left out. A resample in which either score is all tied has no rho and is not counted.
    The interval is NaN with fewer than three items.
    """
    first, second = _shared(first, second)
    n = len(first)
    if n < 3:
        return Interval(*np.full(3, np.nan), np.array(n))
    chosen = bootstrap_indices(n, samples, seed)
    low, high = percentile_bounds(rho_of_rows(first[chosen], second[chosen])[:, None], level)
    return Interval(rho_of_rows(first, second), low[0], high[0], np.array(n))


def inversions(first: np.ndarray, second: np.ndarray) -> Inversions:
    """Pairs of models put in opposite order by two rankings (n,), and tied pairs, which are no inversions."""
    first, second = _shared(first, second)
    return _counted(first, second, tolerance=0.0)


def rank_stability(
    first: np.ndarray,
    second: np.ndarray,
    *,
    paired: bool,
    seed: int,
    samples: int = 2000,
    permutations: int = 5000,
    level: float = 0.95,
    method: str = "percentile",
) -> RankStability:
    """Compare the rankings of models by their mean scores in two languages.

    Models without a score in either language are left out. Paired, an item counts for a model only where it
    has a score in both languages.

    Intervals: between the lowest and the highest coefficient that the models' settled order leaves possible
    (`xlc_utils.statistics.settled`). They hold the truth at least as often as `level` says, and more often where more
    than one order is left (benchmarks/statistics_simulation.py).

    Bootstrap (the intervals of paper B): items are resampled. Paired, the same draws serve both languages and all
    models; otherwise every model's items in every language are drawn on their own. The draws are noisier than the
    data and lie too near 0 where models are within noise of one another: there their percentiles hold the truth in
    43 to 86% of data sets instead of 95%.

    Label swap (`swap_items`): were the language label arbitrary, how often would the rankings agree as
    little as they do? Within each model the labels are exchanged item by item (paired) or dealt anew over
    its items of both languages. `swap_models` does the same with the models' means, see `swap_means`; None
    for more than 14 models, and with few models hardly ever able to reach .05 (`attainable`). Of models equal
    in the mean of both languages neither test can see even a full reversal: swapped labels reverse them too.

    Args:
        first, second: (n_models, n_items), scores in one language each, NaN where missing; the same models
            in the same order and, if paired, the same items. Unpaired, the numbers of items may differ.
        paired: whether column i of both holds the same item.
        seed: of all draws; equal seeds and numbers of scores give equal draws.
        samples: bootstrap resamples.
        permutations: Monte Carlo label swaps, p = (k + 1) / (permutations + 1).
        level: share of the intervals and of the draws.
        method: "percentile" or "bca", of the draws. Tau moves in steps, for which the acceleration of BCa is only
            rough.

    Source: paper B Appendix E, whose swap is that of the means.
    """
    if method not in ("percentile", "bca"):
        raise ValueError(f"method is 'percentile' or 'bca', not {method!r}")
    first, second = _scores(first, second, paired)
    tolerance = ROUNDING * np.nanmax(np.abs(np.concatenate([first, second], axis=1)), initial=0.0)
    means = _means(first), _means(second)
    seen = _correlations(*means, tolerance)
    draws = _correlations(*_bootstrap_means(first, second, paired, samples, seed), tolerance)
    if method == "percentile":
        low, high = percentile_bounds(draws, level)
    else:
        low, high = bca_bounds(seen, draws, _jackknife(first, second, paired, tolerance), level)
    n = len(first)
    settled = settled_pairs(first, second, paired=paired, level=level, tolerance=tolerance)
    defined = not np.isnan(seen[0])
    swapped = _swapped_means(first, second, paired, permutations, seed)
    return RankStability(
        tau=_correlation(seen[0], n),
        rho=_correlation(seen[1], n),
        inversions=_counted(*means, tolerance),
        settled=settled,
        tau_interval=tau_bounds(settled) if defined else (np.nan, np.nan),
        rho_interval=rho_bounds(settled, float(seen[1])) if defined else (np.nan, np.nan),
        tau_draws=(float(low[0]), float(high[0])),
        rho_draws=(float(low[1]), float(high[1])),
        undefined=float(np.isnan(draws[:, 0]).mean()),
        swap_models=swap_means(*means, tolerance=tolerance) if n <= MOST_ENUMERATED else None,
        swap_items=_swap_test(means, swapped, tolerance, drawn=True),
        scores=(int((~np.isnan(first)).sum()), int((~np.isnan(second)).sum())),
    )


def swap_means(first: np.ndarray, second: np.ndarray, *, tolerance: float = 0.0) -> SwapTest:
    """Exact label-swap test of two rankings: all 2^n ways of exchanging each model's two scores.

    Exchanging every model changes no statistic, so with six models no p is below 2/64. Under this null a
    model's score is as likely to have come from either language: a shift of all scores in one language
    breaks it too, without an inversion, and makes the test cautious. Subtract each language's mean first
    where a shift is of no interest.

    Args:
        first, second: (n_models,), at most 14; models with NaN in either are left out.
        tolerance: scores no further apart than this are tied.

    Source: paper B Appendix E ("randomly reassigning language labels at the per-model level").
    """
    first, second = _shared(first, second)
    n = len(first)
    if n > MOST_ENUMERATED:
        raise ValueError(f"{n} models have too many labellings to enumerate; at most {MOST_ENUMERATED}")
    # The last model keeps its labels: the other half of the labellings repeats the same statistics.
    swap = (np.arange(2 ** max(n - 1, 0))[:, None] >> np.arange(n)) & 1 == 1
    swapped = np.where(swap, second, first), np.where(swap, first, second)
    return _swap_test((first, second), swapped, tolerance, drawn=False)


def smallest_detectable_tau(n_models: int, alpha: float = 0.05) -> DetectableTau:
    """The smallest |tau| that differs from 0 at level alpha, two-sided, with this many models and no ties.

    From the exact distribution of inversions among all n! equally likely orders.

    Source: Kendall (1938), Biometrika 30, 81–93.
    """
    chances = np.ones(1)
    for n in range(2, n_models + 1):
        chances = np.convolve(chances, np.full(n, 1 / n))
    two_sided = 2 * np.cumsum(chances)
    significant = int((two_sided <= alpha * (1 + ROUNDING)).sum())
    if not significant:
        return DetectableTau(np.nan, np.nan, OUT_OF_REACH)
    most_inversions, pairs = significant - 1, len(chances) - 1
    return DetectableTau(1 - 2 * most_inversions / pairs, float(two_sided[most_inversions]))


def _shared(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The entries both rankings have."""
    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(f"rankings are two arrays (n,), not {first.shape} and {second.shape}")
    both = ~np.isnan(first) & ~np.isnan(second)
    return first[both], second[both]


def _scores(first: np.ndarray, second: np.ndarray, paired: bool) -> tuple[np.ndarray, np.ndarray]:
    """The scores that count: of models with scores in both languages and, if paired, of items with both."""
    first, second = np.array(first, dtype=float), np.array(second, dtype=float)
    if first.ndim != 2 or second.ndim != 2 or len(first) != len(second):
        raise ValueError(f"scores are two arrays (n_models, n_items), not {first.shape} and {second.shape}")
    if paired:
        if first.shape != second.shape:
            raise ValueError(f"paired scores have the same items, not {first.shape[1]} and {second.shape[1]}")
        incomplete = np.isnan(first) | np.isnan(second)
        first[incomplete], second[incomplete] = np.nan, np.nan
    scored = ~np.isnan(first).all(axis=1) & ~np.isnan(second).all(axis=1)
    return first[scored], second[scored]


def _correlation(value: np.ndarray, n: int) -> Correlation:
    reason = TOO_FEW if n < 2 else ALL_TIED if np.isnan(value) else ""
    return Correlation(float(value), n, reason)


def _counted(first: np.ndarray, second: np.ndarray, tolerance: float) -> Inversions:
    inverted, tied = _inversions(first, second, tolerance)
    return Inversions(int(inverted), int(tied), len(first) * (len(first) - 1) // 2)


def _levels(scores: np.ndarray, tolerance: float) -> np.ndarray:
    """Scores (…, n) as whole numbers in the same order, equal where neighbours are within the tolerance.

    A row with a NaN becomes NaN.
    """
    order = np.argsort(scores, axis=-1, kind="stable")
    ascending = np.take_along_axis(scores, order, axis=-1)
    steps = np.diff(ascending, axis=-1, prepend=ascending[..., :1]) > tolerance
    levels = np.empty(scores.shape)
    np.put_along_axis(levels, order, np.cumsum(steps, axis=-1).astype(float), axis=-1)
    levels[np.isnan(scores).any(axis=-1)] = np.nan
    return levels


def _correlations(first: np.ndarray, second: np.ndarray, tolerance: float) -> np.ndarray:
    """Tau and rho of two rankings, or of each row of many: (…, n), (…, n) -> (…, 2)."""
    first, second = _levels(first, tolerance), _levels(second, tolerance)
    return np.stack([_tau_b(first, second), rho_of_rows(first, second)], axis=-1)


def _signs(levels: np.ndarray) -> np.ndarray:
    """Order of every pair of models, −1, 0 or 1: (…, n) -> (…, n (n − 1) / 2)."""
    one, other = np.triu_indices(levels.shape[-1], 1)
    return np.sign(levels[..., one] - levels[..., other])


def _tau_b(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Tau-b of levels (…, n) and (…, n): (…); NaN where either is all tied."""
    return _normed_product(_signs(first), _signs(second))


def rho_of_rows(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Spearman's rho of (…, n) and (…, n), row by row: (…); NaN where a row is all tied or has a NaN."""
    middle = (first.shape[-1] + 1) / 2
    return _normed_product(rankdata(first, axis=-1) - middle, rankdata(second, axis=-1) - middle)


def _normed_product(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    norm = np.sqrt((first**2).sum(axis=-1) * (second**2).sum(axis=-1))
    return (first * second).sum(axis=-1) / np.where(norm > 0, norm, np.nan)


def _inversions(first: np.ndarray, second: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """Inverted and tied pairs of two rankings, or of each row of many: (…, n), (…, n) -> two arrays (…)."""
    agreement = _signs(_levels(first, tolerance)) * _signs(_levels(second, tolerance))
    return (agreement < 0).sum(axis=-1), (agreement == 0).sum(axis=-1)


def _means(scores: np.ndarray) -> np.ndarray:
    """Mean score of each model, (n_models, n_items) -> (n_models,)."""
    return weighted_means(scores, np.ones((1, scores.shape[1])))[0]


def _bootstrap_means(
    first: np.ndarray, second: np.ndarray, paired: bool, samples: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Means of resampled items in each language, two arrays (samples, n_models)."""
    if paired:
        weights = bootstrap_weights(first.shape[1], samples, seed)
        return weighted_means(first, weights), weighted_means(second, weights)
    languages = []
    for language, scores in enumerate((first, second)):
        means = np.empty((samples, len(scores)))
        # Seeds count from 1: a seed sequence is padded with zeros, so (seed, 0) would be (seed,) again.
        for model, row in enumerate(scores):
            present = row[~np.isnan(row)]
            items = bootstrap_indices(len(present), samples, (seed, 1 + language, 1 + model))
            means[:, model] = present[items].mean(axis=1)
        languages.append(means)
    return languages[0], languages[1]


def _jackknife(first: np.ndarray, second: np.ndarray, paired: bool, tolerance: float) -> np.ndarray:
    """The correlations without each item in turn, (n, 2), in the form that `bca_bounds` takes.

    Unpaired, every model in every language is a sample of its own: each sample's values are centred at 0
    and scaled by (n − 1) / n, so that samples of unequal size add up, as in scipy.stats.bootstrap.
    """
    if paired:
        weights = 1 - np.eye(first.shape[1])
        return _correlations(weighted_means(first, weights), weighted_means(second, weights), tolerance)
    parts = []
    means = [_means(first), _means(second)]
    for language, scores in enumerate((first, second)):
        for model, row in enumerate(scores):
            present = row[~np.isnan(row)]
            n = len(present)
            without = [np.tile(mean, (n, 1)) for mean in means]
            without[language][:, model] = (present.sum() - present) / max(n - 1, 1)
            values = _correlations(*without, tolerance)
            parts.append((values - values.mean(axis=0)) * (n - 1) / n)
    return np.concatenate(parts)


def _swapped_means(
    first: np.ndarray, second: np.ndarray, paired: bool, permutations: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Means of each language after labels were exchanged, two arrays (permutations, n_models)."""
    swapped = np.empty((2, permutations, len(first)))
    for model, (one, other) in enumerate(zip(first, second, strict=True)):
        one, other = one[~np.isnan(one)], other[~np.isnan(other)]
        pool = np.concatenate([one, other])
        labels = _labels(len(one), len(other), paired, permutations, (seed, 3, 1 + model))
        dealt = np.einsum("pi,i->p", labels.astype(float), pool)
        swapped[0, :, model] = dealt / len(one)
        swapped[1, :, model] = (pool.sum() - dealt) / len(other)
    return swapped[0], swapped[1]


# Dealing takes longer than all else, and the pairs and metrics of a grid are compared with the same deals.
@lru_cache(maxsize=16)
def _labels(n_first: int, n_second: int, paired: bool, permutations: int, seed: tuple[int, ...]) -> np.ndarray:
    """Which scores of a model, pooled (first, then second language), a labelling gives to the first.

    Returns booleans (permutations, n_first + n_second).
    """
    generator = np.random.default_rng(seed)
    if paired:
        stays = generator.random((permutations, n_first), dtype=np.float32) < 0.5
        return np.concatenate([stays, ~stays], axis=1)
    labels = np.repeat([[True, False]], [n_first, n_second], axis=1)
    return generator.permuted(np.broadcast_to(labels, (permutations, n_first + n_second)), axis=1)


def _agreement(first: np.ndarray, second: np.ndarray, tolerance: float) -> np.ndarray:
    """Tau, rho and minus the inversions, all higher for closer rankings: (…, n), (…, n) -> (…, 3)."""
    inverted = _inversions(first, second, tolerance)[0]
    return np.concatenate([_correlations(first, second, tolerance), -inverted[..., None]], axis=-1)


def _swap_test(
    means: tuple[np.ndarray, np.ndarray],
    swapped: tuple[np.ndarray, np.ndarray],
    tolerance: float,
    drawn: bool,
) -> SwapTest:
    """Compare the agreement of means (n_models,) with that of swapped means (labellings, n_models).

    Args:
        drawn: whether the labellings were drawn, so that the true one is added to them, or all enumerated.
    """
    labellings, n_models = swapped[0].shape
    seen, under_null = _agreement(*means, tolerance), _agreement(*swapped, tolerance)
    low = (~(under_null > seen + ROUNDING)).sum(axis=0)
    p = (low + drawn) / (labellings + drawn)
    p[np.isnan(seen) | (n_models < 2)] = np.nan
    agreement = under_null[:, -1]
    p_of_each = (np.searchsorted(np.sort(agreement), agreement, side="right") + drawn) / (labellings + drawn)
    return SwapTest(*p.tolist(), attainable=float((p_of_each <= ALPHA).mean()))
