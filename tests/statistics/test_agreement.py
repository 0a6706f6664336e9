from __future__ import annotations

from functools import partial
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from krippendorff import alpha
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

from xlc_utils.statistics.agreement import (
    CONSTANT,
    DISJOINT,
    TOO_FEW,
    _counts,
    _fleiss_unequal,
    agreement_interval,
    cohen,
    fleiss,
    full_agreement,
    krippendorff,
)

NOTHING = np.nan
NOMINAL = partial(krippendorff, level_of_measurement="nominal")
# Krippendorff (2011), example C: four observers, twelve units, missing values; alpha is printed by level.
KRIPPENDORFF_2011 = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NOTHING, NOTHING, NOTHING],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NOTHING, 3],
        [NOTHING, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NOTHING],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NOTHING],
    ]
).T
SHAPES = st.tuples(st.integers(2, 12), st.integers(2, 5))
COMPLETE = arrays.arrays(float, SHAPES, elements=st.integers(0, 3).map(float))


@given(COMPLETE)
def test_fleiss_equals_statsmodels_by_either_path(ratings):
    if len(np.unique(ratings)) == 1:
        assert (fleiss(ratings).reason, np.isnan(fleiss(ratings).value)) == (CONSTANT, True)
        return
    expected = fleiss_kappa(aggregate_raters(ratings.astype(int))[0])
    assert fleiss(ratings).value == pytest.approx(expected, abs=1e-9)
    assert _fleiss_unequal(_counts(ratings)[1]) == pytest.approx(expected, abs=1e-9)


def test_fleiss_with_unequal_numbers_of_ratings_by_hand():
    ratings = np.array([[1, 1, 1], [1, 0, NOTHING], [0, 0, 1], [1, NOTHING, NOTHING]])
    # Agreement by item 1, 0, 1/3; five of eight ratings are 1 and three 0.
    observed, by_chance = 4 / 9, (5 / 8) ** 2 + (3 / 8) ** 2
    found = fleiss(ratings)
    assert found.value == pytest.approx((observed - by_chance) / (1 - by_chance))
    assert (found.n_items, found.n_ratings) == (3, 8)


@pytest.mark.parametrize("weights", [None, "linear", "quadratic"])
@given(first=st.lists(st.integers(0, 3), min_size=3, max_size=15), seed=st.integers(0, 99))
def test_cohen_equals_scikit_learn(weights, first, seed):
    second = np.random.default_rng(seed).integers(0, 4, len(first))
    ratings = np.array([first, second], dtype=float).T
    if (ratings == ratings[0, 0]).all():
        assert cohen(ratings, weights).reason == CONSTANT
        return
    expected = cohen_kappa_score(first, second, labels=[0, 1, 2, 3], weights=weights)
    assert cohen(ratings, weights).value == pytest.approx(expected, abs=1e-9)


def test_cohen_of_more_raters_is_the_mean_over_pairs_on_shared_items():
    ratings = np.random.default_rng(1).integers(0, 3, (30, 3)).astype(float)
    ratings[:5, 0], ratings[20:, 2] = NOTHING, NOTHING
    pairs = []
    for one, other in combinations(ratings.T, 2):
        both = ~np.isnan(one) & ~np.isnan(other)
        pairs.append(cohen_kappa_score(one[both].astype(int), other[both].astype(int)))
    found = cohen(ratings)
    assert found.value == pytest.approx(np.mean(pairs), abs=1e-9)
    assert (found.n_items, found.n_ratings) == (30, 75)


def test_weighted_kappa_counts_unused_values_as_steps():
    ratings = np.array([[0, 3], [3, 1], [1, 1], [3, 3], [0, 1.0], [0, 0]])
    by_value = cohen_kappa_score(*ratings.T.astype(int), labels=[0, 1, 2, 3], weights="linear")
    by_position = cohen_kappa_score(*ratings.T.astype(int), weights="linear")
    assert cohen(ratings, "linear").value == pytest.approx(by_value, abs=1e-9)
    assert by_value != pytest.approx(by_position, abs=1e-3)


@pytest.mark.parametrize(("level", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_equals_the_printed_example(level, printed):
    found = krippendorff(KRIPPENDORFF_2011, level)
    assert found.value == pytest.approx(printed, abs=5e-4)
    assert found.value == pytest.approx(alpha(KRIPPENDORFF_2011.T, level_of_measurement=level), abs=1e-12)
    assert (found.n_items, found.n_ratings) == (11, 40)


def test_full_agreement():
    ratings = np.array([[1, 1, 1], [1, 1, 0], [0, 1, NOTHING], [2, NOTHING, NOTHING]])
    assert full_agreement(ratings).value == pytest.approx(1 / 3)
    assert full_agreement(ratings).n_items == 3


@pytest.mark.parametrize(
    "coefficient",
    [full_agreement, cohen, fleiss, NOMINAL],
)
def test_nothing_to_compare_is_said(coefficient):
    found = coefficient(np.array([[1, NOTHING], [NOTHING, 2]]))
    assert (np.isnan(found.value), found.n_items, found.reason) == (True, 0, TOO_FEW)
    assert np.isnan(agreement_interval(coefficient, np.full((3, 2), NOTHING), seed=1, samples=5).low)


def test_undefined_kappas_say_why():
    assert krippendorff(np.ones((4, 2)), "interval").reason == CONSTANT
    disjoint = np.array([[1, 2, NOTHING], [NOTHING, 2, 1], [1, 1, NOTHING]])
    assert cohen(disjoint).reason == DISJOINT
    one_pair_constant = np.array([[1, 1, 2], [1, 1, 1], [1, 1, 2.0]])
    assert cohen(one_pair_constant).reason == CONSTANT
    assert fleiss(one_pair_constant).reason == ""


def test_shape_is_checked():
    with pytest.raises(ValueError, match="n_items"):
        fleiss(np.ones(4))


def test_order_of_items_and_raters_changes_no_coefficient():
    moved = KRIPPENDORFF_2011[::-1, [2, 0, 3, 1]]
    for coefficient in (fleiss, cohen, NOMINAL):
        assert coefficient(moved).value == pytest.approx(coefficient(KRIPPENDORFF_2011).value, abs=1e-12)


def test_interval_matches_a_bootstrap_by_hand_and_covers():
    generator = np.random.default_rng(3)
    look, truth = generator.random((80, 3)) < 0.6, generator.random((80, 1)) < 0.7
    ratings = np.where(look, truth, generator.random((80, 3)) < 0.7).astype(float)
    found = agreement_interval(fleiss, ratings, seed=1, samples=300)
    draws = []
    for _ in range(3000):
        resample = ratings[generator.integers(0, 80, 80)]
        draws.append(fleiss_kappa(np.stack([(resample == value).sum(axis=1) for value in (0, 1)], axis=1)))
    low, high = np.quantile(draws, [0.025, 0.975])
    assert [found.low, found.high] == pytest.approx([low, high], abs=0.04)
    assert found.low < found.value == fleiss(ratings).value < found.high
    assert found.low < 0.36 < found.high
    assert found == agreement_interval(fleiss, ratings, seed=1, samples=300)


def test_resamples_without_a_value_are_counted():
    ratings = np.array([[1, 1], [1, 1], [0, 1.0]])
    found = agreement_interval(fleiss, ratings, seed=1, samples=200)
    # A third of a chance each time to miss the one item that differs: (2/3)^3 = 8/27.
    assert found.undefined == pytest.approx(8 / 27, abs=0.1)
