from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import asdict
from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from xlc_utils.statistics.intervals import _acceleration, bca_bounds
from xlc_utils.statistics.stability import (
    ALL_TIED,
    OUT_OF_REACH,
    TOO_FEW,
    Inversions,
    _jackknife,
    inversions,
    kendall,
    rank_stability,
    smallest_detectable_tau,
    spearman,
    swap_means,
)

FEW_VALUES = st.one_of(st.integers(0, 3).map(float), st.sampled_from([0.1, 0.2, 0.3]), st.floats(-5, 5))
RANKINGS = st.integers(2, 25).flatmap(
    lambda n: st.tuples(*[st.lists(FEW_VALUES, min_size=n, max_size=n).map(np.array)] * 2)
)


@given(RANKINGS)
def test_tau_and_rho_equal_scipy(rankings):
    first, second = rankings
    if min(len(set(first)), len(set(second))) == 1:
        assert kendall(first, second).reason == spearman(first, second).reason == ALL_TIED
        assert np.isnan(kendall(first, second).value) and np.isnan(spearman(first, second).value)
        return
    assert kendall(first, second).value == pytest.approx(stats.kendalltau(first, second).statistic, abs=1e-12)
    assert spearman(first, second).value == pytest.approx(stats.spearmanr(first, second).statistic, abs=1e-12)
    assert kendall(first, second).reason == spearman(first, second).reason == ""


@given(RANKINGS)
def test_inversions_ties_and_the_rest_add_up(rankings):
    first, second = rankings
    found = inversions(first, second)
    kept = inversions(first, -second).inverted
    assert found.inverted + found.tied + kept == found.pairs == len(first) * (len(first) - 1) // 2
    tied = sum(first[i] == first[j] or second[i] == second[j] for i, j in combinations(range(len(first)), 2))
    assert found.tied == tied


def test_models_missing_in_a_language_are_left_out():
    first, second = np.array([1.0, 2.0, np.nan, 4.0]), np.array([2.0, 1.0, 9.0, 3.0])
    assert kendall(first, second).n == 3
    assert kendall(first, second).value == pytest.approx(1 / 3)
    assert inversions(first, second) == Inversions(inverted=1, tied=0, pairs=3)
    alone = kendall(np.array([1.0, np.nan]), np.array([1.0, 2.0]))
    assert (np.isnan(alone.value), alone.n, alone.reason) == (True, 1, TOO_FEW)
    assert spearman(np.array([]), np.array([])).reason == TOO_FEW


def test_six_equal_models_have_no_tau():
    scores = np.full((6, 20), 3.0)
    found = rank_stability(scores, scores, paired=True, seed=1, samples=50, permutations=50)
    assert (found.tau.reason, found.undefined, found.inversions.tied) == (ALL_TIED, 1.0, 15)
    assert np.isnan([found.tau_interval, found.rho_interval, found.tau_draws, found.rho_draws]).all()
    assert np.isnan(found.swap_items.tau) and found.swap_items.inversions == 1.0


def test_means_that_differ_by_rounding_are_tied():
    row = np.random.default_rng(1).random(50)
    shuffled = [np.random.default_rng(seed).permutation(row) for seed in range(5)]
    scores = np.array([*shuffled, row + 1])
    assert len({float(np.add.accumulate(part)[-1]) for part in shuffled}) > 1
    found = rank_stability(scores, scores[::-1], paired=False, seed=1, samples=10, permutations=10)
    assert found.inversions == inversions(np.array([0, 0, 0, 0, 0, 1.0]), np.array([1.0, 0, 0, 0, 0, 0]))


def test_exact_swap_equals_brute_force():
    first, second = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 2.0]), np.array([2.0, 7.0, 1.0, 8.0, 2.5, 3.0])
    found = swap_means(first, second)
    taus, rhos, counts = [], [], []
    for swap in product([False, True], repeat=6):
        one, other = np.where(swap, second, first), np.where(swap, first, second)
        taus.append(stats.kendalltau(one, other).statistic)
        rhos.append(stats.spearmanr(one, other).statistic)
        counts.append(inversions(one, other).inverted)
    assert found.tau == np.mean([tau <= taus[0] + 1e-12 for tau in taus])
    assert found.rho == np.mean([rho <= rhos[0] + 1e-12 for rho in rhos])
    assert found.inversions == np.mean([count >= counts[0] for count in counts])
    attained = [np.mean([other >= count for other in counts]) for count in counts]
    assert found.attainable == np.mean([p <= 0.05 for p in attained])


@given(RANKINGS.filter(lambda pair: len(pair[0]) <= 8))
def test_exact_p_is_a_share_of_labellings_that_holds_the_true_one(rankings):
    found, n = swap_means(*rankings), len(rankings[0])
    labellings = 2 ** (n - 1)
    assert 1 <= round(found.inversions * labellings, 9) <= labellings
    assert found.attainable <= 0.05
    assert found.inversions == swap_means(rankings[1], rankings[0]).inversions


def test_too_many_models_are_not_enumerated():
    with pytest.raises(ValueError, match="15 models"):
        swap_means(np.arange(15.0), np.arange(15.0))
    scores = np.random.default_rng(1).normal(size=(15, 8))
    assert rank_stability(scores, scores, paired=True, seed=1, samples=9, permutations=9).swap_models is None


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("seed", [0, 3, 8])
def test_monte_carlo_swap_converges_to_all_labellings(paired, seed):
    first, second = np.random.default_rng(seed).integers(0, 4, (2, 3, 3)).astype(float)
    # Unpaired, models have unequal numbers of scores: 2 + 3, 3 + 2 and 1 + 3.
    gaps = np.zeros((2, 3, 3), dtype=bool)
    gaps[0, 0, 0] = gaps[1, 1, 2] = gaps[0, 2, :2] = True
    first[gaps[0]], second[gaps[1]] = np.nan, np.nan
    complete = ~gaps.any(axis=0)
    deals = []
    for model in range(3):
        if paired:
            pairs = np.stack([first[model], second[model]], axis=1)[complete[model]]
            swaps = [np.array(swap)[:, None] for swap in product([False, True], repeat=len(pairs))]
            deals.append([tuple(np.where(swap, pairs[:, ::-1], pairs).mean(axis=0)) for swap in swaps])
        else:
            pool = np.concatenate([first[model], second[model]])
            pool = pool[~np.isnan(pool)]
            size = int((~gaps[0, model]).sum())
            parts = combinations(range(len(pool)), size)
            deals.append([(pool[list(part)].mean(), np.delete(pool, part).mean()) for part in parts])
    counts = [inversions(*np.array(deal).T).inverted for deal in product(*deals)]
    # The first deal of every model is the true one.
    seen = counts[0]
    exact = np.mean([count >= seen for count in counts])
    found = rank_stability(first, second, paired=paired, seed=1, samples=1, permutations=20_000)
    assert found.swap_items.inversions == pytest.approx(exact, abs=0.015)


def test_one_is_added_to_a_monte_carlo_p():
    first, second = np.tile([[0.0], [1.0]], 2000), np.tile([[2.5], [1.8]], 2000)
    found = rank_stability(first, second, paired=True, seed=1, samples=1, permutations=199)
    # Swapped means lie near 1.25 and 1.4 in both languages, some five standard deviations from an inversion.
    assert (found.tau.value, found.inversions.inverted) == (-1.0, 1)
    assert found.swap_items.inversions == found.swap_items.tau == found.swap_items.rho == 1 / 200


def test_level_of_the_item_swap_is_the_attainable_one():
    generator = np.random.default_rng(4)
    means = np.linspace(0, 0.5, 6)[:, None]
    tests = [
        rank_stability(
            *(means + generator.normal(size=(2, 6, 40))), paired=True, seed=1, samples=1, permutations=199
        ).swap_items
        for _ in range(200)
    ]
    attainable = np.mean([test.attainable for test in tests])
    assert np.mean([test.inversions <= 0.05 for test in tests]) == pytest.approx(attainable, abs=0.03)
    assert 0.005 < attainable <= 0.05


def test_bootstrap_of_well_separated_models_never_inverts_them():
    means = np.arange(6.0)[:, None]
    scores = means + np.random.default_rng(1).normal(0, 0.1, (2, 6, 30))
    for paired, method in product([True, False], ["percentile", "bca"]):
        found = rank_stability(*scores, paired=paired, seed=1, samples=200, permutations=1, method=method)
        assert found.tau_interval == found.rho_interval == found.tau_draws == found.rho_draws == (1.0, 1.0)


def test_paired_draws_keep_what_languages_share():
    shared = np.random.default_rng(1).normal(size=(4, 25))
    paired, unpaired = (
        rank_stability(shared, shared + 1, paired=paired, seed=1, permutations=1) for paired in (True, False)
    )
    # The second language is the first one shifted: in every paired draw the rankings are the same.
    assert paired.tau_draws == (1.0, 1.0)
    assert unpaired.tau_draws[0] < 1


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("seed", [1, 2])
def test_bca_of_rho_equals_scipy_for_the_same_draws(paired, seed):
    generator = np.random.default_rng(seed)
    first, second = generator.gamma(1, size=(2, 6, 12)) + np.linspace(0, 0.5, 6)[:, None]
    if not paired:
        # Samples of unequal size.
        first[0, :8], second[1, :6], first[2, :4] = np.nan, np.nan, np.nan

    def rho(*samples):
        means = [np.mean(sample) for sample in samples]
        return spearman(np.array(means[:6]), np.array(means[6:])).value

    samples = [row[~np.isnan(row)] for row in (*first, *second)]
    reference = stats.bootstrap(samples, rho, paired=paired, vectorized=False, n_resamples=500, method="BCa", rng=3)
    jackknife = _jackknife(first, second, paired, 0.0)[:, 1:]
    draws = reference.bootstrap_distribution[:, None]
    low, high = bca_bounds(np.array([rho(*samples)]), draws, jackknife)
    assert [low[0], high[0]] == pytest.approx(list(reference.confidence_interval), abs=1e-9)


def test_acceleration_over_samples_of_unequal_size():
    generator = np.random.default_rng(3)
    first, second = generator.gamma(1, size=(2, 6, 12)) + np.linspace(0, 0.3, 6)[:, None]
    first[0, :8], second[1, :6], first[2, :4] = np.nan, np.nan, np.nan
    samples = [row[~np.isnan(row)] for row in (*first, *second)]
    cubes = squares = 0.0
    for place, sample in enumerate(samples):
        means = np.array([[part.mean() for part in samples]] * len(sample))
        means[:, place] = [np.delete(sample, item).mean() for item in range(len(sample))]
        without = np.array([stats.spearmanr(row[:6], row[6:]).statistic for row in means])
        influence = (len(sample) - 1) * (without.mean() - without)
        cubes += (influence**3).sum() / len(sample) ** 3
        squares += (influence**2).sum() / len(sample) ** 2
    expected = cubes / squares**1.5 / 6
    assert abs(expected) > 0.001
    assert _acceleration(_jackknife(first, second, False, 0.0))[1] == pytest.approx(expected, abs=1e-12)


def test_missing_scores_are_dropped_by_item_or_by_pair():
    first, second = np.random.default_rng(6).normal(size=(2, 4, 10))
    first[0, :3], second[1, 5], second[3] = np.nan, np.nan, np.nan
    unpaired = rank_stability(first, second, paired=False, seed=1, samples=20, permutations=20)
    assert (unpaired.tau.n, unpaired.scores) == (3, (27, 29))
    means = np.nanmean(first[:3], axis=1), np.nanmean(second[:3], axis=1)
    assert unpaired.tau.value == pytest.approx(stats.kendalltau(*means).statistic, abs=1e-12)
    paired = rank_stability(first, second, paired=True, seed=1, samples=20, permutations=20)
    assert paired.scores == (26, 26)


def test_languages_without_a_common_model_have_no_stability():
    first = np.array([[1.0, 2.0], [np.nan, np.nan]])
    found = rank_stability(first, first[::-1], paired=True, seed=1, samples=5, permutations=5)
    assert (found.tau.reason, found.scores) == (TOO_FEW, (0, 0))
    assert np.isnan([*found.tau_interval, found.swap_items.inversions, found.swap_models.tau]).all()


@pytest.mark.parametrize(
    ("first", "second", "paired"),
    [
        (np.zeros((3, 4)), np.zeros((2, 4)), False),
        (np.zeros((3, 4)), np.zeros((3, 5)), True),
        (np.zeros(3), np.zeros(3), True),
    ],
)
def test_arrays_that_do_not_match_are_refused(first, second, paired):
    with pytest.raises(ValueError, match="scores"):
        rank_stability(first, second, paired=paired, seed=1)


def test_results_are_the_same_bytes_in_any_process():
    script = (
        "import numpy as np; from xlc_utils.statistics.stability import rank_stability as r;"
        "a, b = np.random.default_rng(1).normal(size=(2, 6, 115));"
        "print([r(a, b, paired=p, seed=1, method='bca') for p in (True, False)])"
    )
    elsewhere = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONHASHSEED": "7", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    first, second = np.random.default_rng(1).normal(size=(2, 6, 115))
    here = [rank_stability(first, second, paired=paired, seed=1, method="bca") for paired in (True, False)]
    assert elsewhere == f"{here}\n"


def test_row_order_of_models_changes_no_point_value_or_exact_p():
    first, second = np.random.default_rng(8).integers(0, 5, (2, 6, 30)).astype(float)
    order = [3, 1, 5, 0, 2, 4]
    found = rank_stability(first, second, paired=True, seed=1, samples=200, permutations=20)
    moved = rank_stability(first[order], second[order], paired=True, seed=1, samples=200, permutations=20)
    assert (found.tau, found.rho, found.inversions) == (moved.tau, moved.rho, moved.inversions)
    assert asdict(found.swap_models) == asdict(moved.swap_models)
    assert (found.tau_interval, found.rho_interval) == (moved.tau_interval, moved.rho_interval)
    assert (found.tau_draws, found.rho_draws) == (moved.tau_draws, moved.rho_draws)


@pytest.mark.parametrize(("n", "alpha"), [(5, 0.05), (6, 0.05), (6, 0.01), (7, 0.05), (8, 0.001)])
def test_smallest_tau_is_scipys_first_significant_one(n, alpha):
    orders = [np.arange(n)]
    while not np.array_equal(orders[-1], np.arange(n)[::-1]):
        swap = next(i for i in range(n - 1) if orders[-1][i] < orders[-1][i + 1])
        nearer = orders[-1].copy()
        nearer[[swap, swap + 1]] = nearer[[swap + 1, swap]]
        orders.append(nearer)
    tests = [stats.kendalltau(np.arange(n), order, method="exact") for order in orders]
    significant = [test for test in tests if test.statistic > 0 and test.pvalue <= alpha]
    found = smallest_detectable_tau(n, alpha)
    assert found.tau == pytest.approx(min(test.statistic for test in significant), abs=1e-12)
    assert found.p == pytest.approx(max(test.pvalue for test in significant), abs=1e-12)


def test_null_distribution_behind_the_smallest_tau_by_enumeration():
    taus = [kendall(np.arange(6.0), np.array(order, float)).value for order in permutations(range(6))]
    found = smallest_detectable_tau(6)
    assert found.tau == pytest.approx(13 / 15)
    assert found.p == pytest.approx(np.mean([abs(tau) >= found.tau - 1e-12 for tau in taus]))
    assert np.mean([abs(tau) >= 11 / 15 - 1e-12 for tau in taus]) > 0.05


def test_four_models_can_show_nothing():
    found = smallest_detectable_tau(4)
    assert np.isnan(found.tau) and found.reason == OUT_OF_REACH
