from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from xlc_utils.statistics.settled import SettledPairs, rho_bounds, settled_pairs, tau_bounds
from xlc_utils.statistics.stability import kendall, rank_stability, spearman

MODELS = 6
NOTHING = SettledPairs(concordant=0, discordant=0, models=MODELS)


def two_languages(
    seed: int, means: np.ndarray, items: int, other: np.ndarray | None = None, paired: bool = True
) -> np.ndarray:
    """Scores (2, n_models, n_items) of standard deviation 1; paired, an item's scores share half of their variance."""
    generator = np.random.default_rng(seed)
    both = np.stack([means, means if other is None else other])[..., None]
    noise = generator.normal(size=(2, len(means), items))
    return both + ((noise + generator.normal(size=items)) / np.sqrt(2) if paired else noise)


def pair_by_pair(first: np.ndarray, second: np.ndarray, paired: bool) -> SettledPairs:
    """`settled_pairs` of scores without spreadless models, from scipy's t tests and statsmodels' Holm."""
    p, agree = [], []
    for one, other in combinations(range(len(first)), 2):
        tests = []
        for scores in (first, second):
            a, b = (scores[model][~np.isnan(scores[model])] for model in (one, other))
            if paired:
                tests.append(stats.ttest_rel(a, b)[:2])
            else:
                t = stats.ttest_ind(a, b, equal_var=False).statistic
                tests.append((t, 2 * stats.t.sf(abs(t), min(len(a), len(b)) - 1)))
        p.append(max(p for _, p in tests))
        agree.append(tests[0][0] * tests[1][0] > 0)
    settled, agree = multipletests(p, method="holm", alpha=0.05)[0], np.array(agree)
    return SettledPairs(int((settled & agree).sum()), int((settled & ~agree).sum()), len(first))


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_pairs_equal_t_tests_of_scipy_one_by_one(paired, seed):
    means = np.arange(MODELS) * 0.25
    first, second = two_languages(seed, means, 60, means[[2, 0, 1, 3, 4, 5]], paired)
    if not paired:
        first[0, :25], first[3, 40:], second[1, 5:17] = np.nan, np.nan, np.nan
    found = settled_pairs(first, second, paired=paired)
    assert found == pair_by_pair(first, second, paired)
    assert 0 < found.concordant + found.discordant < found.pairs


def weak_orders(n: int) -> np.ndarray:
    """All rankings of n models, ties allowed."""
    return np.array([r for r in product(range(n), repeat=n) if set(r) == set(range(max(r) + 1))], dtype=float)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_bounds_hold_tau_and_rho_of_every_two_rankings_with_those_pairs(n):
    """Enumerated: every ranking with ties, against every sorted one (renaming models changes nothing)."""
    rankings = weak_orders(n)
    one, other = np.triu_indices(n, 1)
    signs = np.sign(rankings[:, one] - rankings[:, other])
    ranks = stats.rankdata(rankings, axis=1) - (n + 1) / 2
    untied = signs.any(axis=1)
    for fixed in np.flatnonzero(untied & (np.diff(rankings, axis=1) >= 0).all(axis=1)):
        products = signs[untied] * signs[fixed]
        norms = np.sqrt((signs[untied] ** 2).sum(axis=1) * (signs[fixed] ** 2).sum())
        tau = products.sum(axis=1) / norms
        rho = ranks[untied] @ ranks[fixed] / np.linalg.norm(ranks[untied], axis=1) / np.linalg.norm(ranks[fixed])
        counts = np.stack([(products > 0).sum(axis=1), (products < 0).sum(axis=1)], axis=1)
        for concordant, discordant in np.unique(counts, axis=0):
            settled = SettledPairs(int(concordant), int(discordant), n)
            here = (counts == [concordant, discordant]).all(axis=1)
            low, high = tau_bounds(settled)
            assert low - 1e-12 <= tau[here].min() and tau[here].max() <= high + 1e-12
            if not settled.complete:
                low, high = rho_bounds(settled, np.nan)
                assert low - 1e-12 <= rho[here].min() and rho[here].max() <= high + 1e-12


def test_bounds_where_nothing_and_where_everything_is_settled():
    assert tau_bounds(NOTHING) == rho_bounds(NOTHING, 0.3) == (-1.0, 1.0)
    known = SettledPairs(concordant=12, discordant=3, models=MODELS)
    assert tau_bounds(known) == (0.6, 0.6)
    assert rho_bounds(known, 0.7) == (0.7, 0.7)
    assert np.isnan([*tau_bounds(SettledPairs(0, 0, 1)), *rho_bounds(SettledPairs(0, 0, 1), np.nan)]).all()


FEW_VALUES = st.one_of(st.integers(0, 2).map(float), st.just(np.nan))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 7), st.integers(2, 40), st.booleans(), st.sampled_from([0.0, 0.3, 2.0]))
def test_intervals_hold_what_is_seen_and_never_mind_names_units_or_order(seed, models, items, paired, spread):
    generator = np.random.default_rng(seed)
    scores = two_languages(seed, spread * np.arange(models), items, spread * generator.permutation(models)).round(1)
    scores[:, :, 1:][generator.random((2, models, items - 1)) < 0.1] = np.nan
    first, second = scores
    found = rank_stability(first, second, paired=paired, seed=1, samples=3, permutations=3)
    for value, (low, high) in ((found.tau.value, found.tau_interval), (found.rho.value, found.rho_interval)):
        assert np.isnan([value, low, high]).all() or -1 <= low <= value + 1e-12 <= high + 2e-12 <= 1 + 2e-12

    def bounds(first, second):
        moved = rank_stability(first, second, paired=paired, seed=9, samples=3, permutations=3)
        return moved.settled, moved.tau_interval

    if np.isnan(found.tau.value):
        return
    same = (found.settled, found.tau_interval)
    renamed, shuffled = generator.permutation(models), generator.permutation(items)
    assert bounds(first[renamed], second[renamed]) == same
    assert bounds(first[:, shuffled], second[:, shuffled]) == same
    assert bounds(second, first) == same
    assert bounds(2 * first + 5, second / 4) == same
    low, high = found.tau_interval
    assert bounds(first, -second)[1] == (-high, -low)


def test_intervals_shrink_with_items_to_the_point():
    means, other = np.arange(MODELS) * 0.3, np.arange(MODELS)[[1, 0, 2, 3, 4, 5]] * 0.3
    widths = []
    for items in (10, 40, 160, 640, 2560):
        found = rank_stability(*two_languages(1, means, items, other), paired=True, seed=1, samples=3, permutations=3)
        widths.append(np.ptp(found.tau_interval))
    assert widths == sorted(widths, reverse=True) and widths[0] > 1.5
    assert found.tau_interval == (kendall(means, other).value,) * 2
    assert found.rho_interval == (spearman(means, other).value,) * 2


@pytest.mark.parametrize("paired", [True, False])
def test_few_items_without_spread_settle_nothing(paired):
    def constant(items):
        return settled_pairs(*[np.arange(MODELS, dtype=float)[:, None] * np.ones(items)] * 2, paired=paired)

    assert constant(1) == constant(2) == constant(8) == NOTHING
    assert constant(12) == SettledPairs(15, 0, MODELS)


def test_rounding_settles_nothing():
    row = np.random.default_rng(1).random(50)
    scores = np.array([row, row + 1e-16, row * (1 + 1e-15)])
    assert settled_pairs(scores, scores, paired=True, tolerance=1e-12) == SettledPairs(0, 0, 3)


@pytest.mark.parametrize("paired", [True, False])
def test_a_missing_score_is_no_score(paired):
    first, second = two_languages(3, np.arange(MODELS) * 0.3, 50)
    shorter = settled_pairs(first[:, 10:], second[:, 10:], paired=paired)
    first[:, :10], second[:, :10] = np.nan, np.nan
    assert settled_pairs(first, second, paired=paired) == shorter


def test_models_that_share_no_item_are_tested_as_two_samples():
    first, second = two_languages(2, np.arange(MODELS) * 0.4, 240)
    turn = np.arange(240) % MODELS != np.arange(MODELS)[:, None]
    first[turn], second[turn] = np.nan, np.nan
    found = settled_pairs(first, second, paired=True)
    assert found == settled_pairs(first, second, paired=False) == pair_by_pair(first, second, paired=False)
    assert found.concordant > 0


def test_coverage_where_the_draws_percentiles_fail():
    """Models a tenth of their scores' spread apart, in the same order: tau is 1, and the draws rarely reach it."""
    means = np.arange(MODELS) * 0.1
    held = np.zeros(2)
    for seed in range(100):
        found = rank_stability(*two_languages(seed, means, 60), paired=True, seed=1, samples=200, permutations=1)
        held += [high == 1.0 for _, high in (found.tau_interval, found.tau_draws)]
    assert held[0] >= 95 and held[1] < 60


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("items", [12, 60])
def test_wrong_findings_are_rare_where_they_are_likeliest(paired, items):
    """One language's models all but tie, the other's lie far apart: every pair hangs on the first language alone."""
    means = np.arange(MODELS) * 1e-6
    wrong = 0
    for seed in range(400):
        first, second = two_languages(seed, means, items, means * 1e7, paired)
        wrong += settled_pairs(first, second, paired=paired).discordant > 0
    # Half of 5%, as only one direction is wrong; and not never, or the test would see nothing.
    assert 1 <= wrong <= 20
