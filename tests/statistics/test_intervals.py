from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from xlc_utils.statistics.intervals import (
    BLOCK,
    bca_bounds,
    bootstrap_indices,
    bootstrap_weights,
    f_interval,
    f_score,
    mean_interval,
    paired_difference,
    percentile_bounds,
    weighted_means,
    wilson_interval,
)

RATINGS = np.random.default_rng(7).choice(5, size=(3, 40), p=[0.05, 0.05, 0.1, 0.3, 0.5]).astype(float)


@given(n=st.integers(1, 30), samples=st.integers(1, 20), seed=st.integers(0, 2**32))
def test_weights_count_the_indices(n, samples, seed):
    indices, weights = bootstrap_indices(n, samples, seed), bootstrap_weights(n, samples, seed)
    assert indices.shape == weights.shape == (samples, n)
    assert [np.bincount(row, minlength=n).tolist() for row in indices] == weights.tolist()


@given(
    scores=arrays.arrays(float, (3, 6), elements=st.one_of(st.just(np.nan), st.floats(-10, 10))),
    seed=st.integers(0, 1000),
)
def test_weighted_means_are_means_of_the_drawn_items_with_a_score(scores, seed):
    drawn = bootstrap_indices(6, 5, seed)
    found = weighted_means(scores, bootstrap_weights(6, 5, seed))
    for sample, items in enumerate(drawn):
        for cell, row in enumerate(scores):
            present = row[items][~np.isnan(row[items])]
            expected = present.mean() if len(present) else np.nan
            assert found[sample, cell] == pytest.approx(expected, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("method", ["percentile", "BCa"])
@pytest.mark.parametrize("statistic", [np.mean, np.std])
def test_bounds_equal_scipy_for_the_same_draws(method, statistic):
    sample = RATINGS[0]
    reference = stats.bootstrap((sample,), statistic, n_resamples=999, method=method, rng=3)
    draws = reference.bootstrap_distribution
    if method == "percentile":
        bounds = percentile_bounds(draws)
    else:
        jackknife = np.array([statistic(np.delete(sample, item)) for item in range(len(sample))])
        bounds = bca_bounds(statistic(sample), draws, jackknife)
    assert [float(bound) for bound in bounds] == pytest.approx(list(reference.confidence_interval), abs=1e-12)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_mean_interval_agrees_with_scipy_within_monte_carlo_error(method):
    scores = np.random.default_rng(8).gamma(1.5, size=(3, 40))
    found = mean_interval(scores, seed=1, samples=20_000, method=method)
    scipy_method = {"percentile": "percentile", "bca": "BCa"}[method]
    for cell, row in enumerate(scores):
        reference = stats.bootstrap((row,), np.mean, n_resamples=20_000, method=scipy_method, rng=2)
        error = 0.1 * reference.standard_error
        assert found.estimate[cell] == pytest.approx(row.mean(), abs=1e-12)
        assert found.low[cell] == pytest.approx(reference.confidence_interval.low, abs=error)
        assert found.high[cell] == pytest.approx(reference.confidence_interval.high, abs=error)


def test_bca_of_f_agrees_with_scipy_within_monte_carlo_error():
    precision, recall = np.random.default_rng(5).beta(4, 2, (2, 30)) ** [[1], [3]]

    def f_of_samples(precision, recall, axis=-1):
        return f_score(precision.mean(axis=axis), recall.mean(axis=axis))

    found = f_interval(precision, recall, seed=1, samples=20_000, method="bca")
    reference = stats.bootstrap((precision, recall), f_of_samples, paired=True, n_resamples=20_000, method="BCa", rng=2)
    assert found.estimate == pytest.approx(f_of_samples(precision, recall), abs=1e-12)
    assert [found.low, found.high] == pytest.approx(
        list(reference.confidence_interval), abs=0.1 * reference.standard_error
    )


def test_f_is_of_the_means_and_not_the_mean_of_f():
    precision, recall = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    assert f_interval(precision, recall, seed=1).estimate == pytest.approx(0.5)


def test_f_of_nothing_is_zero_and_of_missing_is_missing():
    assert f_score(np.array([0.0, np.nan, 0.5]), np.array([0.0, 1.0, 1.0])).tolist() == pytest.approx(
        [0.0, np.nan, 2 / 3], nan_ok=True
    )


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_missing_items_are_left_out_of_estimate_and_n(method):
    scores = np.array([[1.0, np.nan, 3.0, 4.0], [np.nan] * 4, [np.nan, 2.0, np.nan, np.nan]])
    found = mean_interval(scores, seed=1, method=method)
    assert found.n.tolist() == [3, 0, 1]
    assert found.estimate.tolist() == pytest.approx([8 / 3, np.nan, 2.0], nan_ok=True)
    assert np.isnan(found.low).tolist() == np.isnan(found.high).tolist() == [False, True, True]
    assert 1 <= found.low[0] <= found.estimate[0] <= found.high[0] <= 4


def test_an_undefined_jackknife_value_does_not_move_bca():
    jackknife = np.array([1.0, 2.0, 4.0, np.nan])
    draws = np.random.default_rng(1).normal(2.3, 1, 999)
    with_gap, without = (bca_bounds(np.array(2.3), draws, part) for part in (jackknife, jackknife[:3]))
    assert [float(bound) for bound in with_gap] == [float(bound) for bound in without]


def test_equal_scores_give_an_interval_without_width():
    for method in ("percentile", "bca"):
        found = mean_interval(np.full(10, 3.0), seed=1, method=method)
        assert (found.low, found.estimate, found.high) == (3.0, 3.0, 3.0)


def test_bca_is_undefined_where_all_draws_lie_on_one_side():
    low, high = bca_bounds(np.array(5.0), np.arange(4.0), np.array([1.0, 2.0]))
    assert np.isnan(low) and np.isnan(high)


def test_leading_axes_and_blocks_do_not_change_a_cell():
    cells = np.random.default_rng(3).normal(size=(2, BLOCK, 12))
    cells[0, 0, 3] = np.nan
    whole = mean_interval(cells, seed=9, samples=50)
    assert whole.low.shape == (2, BLOCK)
    for place in ((0, 0), (0, BLOCK - 1), (1, 0), (1, 7)):
        alone = mean_interval(cells[place], seed=9, samples=50)
        assert alone.low == pytest.approx(whole.low[place], abs=1e-12)
        assert alone.high == pytest.approx(whole.high[place], abs=1e-12)


def test_the_seed_decides_the_bytes():
    once, again, other = (mean_interval(RATINGS, seed=seed).low.tobytes() for seed in (1, 1, 2))
    assert once == again != other


def test_unknown_method_is_refused():
    with pytest.raises(ValueError, match="percentile"):
        mean_interval(RATINGS, seed=1, method="normal")


def test_paired_difference_uses_shared_items_and_shared_draws():
    first = np.array([[1.0, 2.0, np.nan, 4.0, 6.0]])
    second = np.array([[0.0, np.nan, 1.0, 3.0, 5.0]])
    found = paired_difference(first, second, seed=1)
    # Every shared item differs by exactly 1, so that no draw of shared items can differ from 1.
    assert (found.n[0], found.estimate[0], found.low[0], found.high[0]) == (3, 1.0, 1.0, 1.0)
    assert found.p[0] == pytest.approx(1 / 2001)


def test_paired_p_counts_shifted_draws():
    first, second = RATINGS[0], RATINGS[1]
    found = paired_difference(first, second, seed=4, samples=500)
    differences = (first - second)[bootstrap_indices(40, 500, 4)].mean(axis=1)
    seen = (first - second).mean()
    extreme = (np.abs(differences - seen) >= abs(seen) - 1e-12).sum()
    assert found.p == pytest.approx((extreme + 1) / 501)
    assert paired_difference(first, first, seed=4).p == 1.0


def test_paired_p_is_near_the_t_test_on_many_items():
    generator = np.random.default_rng(11)
    first = generator.normal(size=400)
    second = first + generator.normal(0.09, 1, 400)
    found = paired_difference(first, second, seed=1, samples=20_000)
    assert found.p == pytest.approx(stats.ttest_rel(first, second).pvalue, abs=0.02)


@given(n=st.integers(1, 200), share=st.floats(0, 1))
def test_wilson_equals_statsmodels_and_scipy(n, share):
    successes = round(share * n)
    found = wilson_interval(np.array(successes), np.array(n))
    bounds = proportion_confint(successes, n, method="wilson")
    assert [found.low, found.high] == pytest.approx(bounds, abs=1e-9)
    reference = stats.binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert [found.low, found.high] == pytest.approx([reference.low, reference.high], abs=1e-12)


def test_wilson_of_nothing_is_undefined():
    found = wilson_interval(np.array([0, 3]), np.array([0, 4]))
    assert np.isnan(found.low[0]) and found.n.tolist() == [0, 4]


def test_intervals_cover_and_true_nulls_stand():
    generator = np.random.default_rng(20)
    ratings = generator.choice(5, size=(2000, 115), p=[0.02, 0.03, 0.1, 0.35, 0.5])
    found = mean_interval(ratings.astype(float), seed=1, samples=1000)
    assert 0.93 <= ((found.low <= 3.28) & (found.high >= 3.28)).mean() <= 0.97
    first, second = generator.normal(size=(2, 2000, 115))
    assert 0.04 <= (paired_difference(first, second, seed=1, samples=1000).p <= 0.05).mean() <= 0.065
