"""The ceiling of consistency: held against simulated readings, and against cases worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from xlc_utils.empathy.ceiling import PROFILES, ErrorRates, ceiling, shares, true_shares

RATES = ErrorRates(np.array([0.71, 0.85, 0.93]), np.array([0.9, 0.82, 0.97]))
PREVALENCE = np.array([0.1, 0.25, 0.05, 0.2, 0.15, 0.05, 0.15, 0.05])


def read(truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One reading of replies with these profiles, (n, 3)."""
    right = np.where(truth, RATES.sensitivity, RATES.specificity)
    return np.where(rng.random(truth.shape) < right, truth, 1 - truth)


def test_it_is_what_two_independent_readings_of_the_same_replies_reach():
    rng = np.random.default_rng(0)
    truth = PROFILES[rng.choice(8, 200_000, p=PREVALENCE)]
    one, other = read(truth, rng), read(truth, rng)
    found = ceiling(one, RATES)
    np.testing.assert_allclose(found.by_mechanism, (one == other).mean(0), atol=0.005)
    assert found.profile == pytest.approx((one == other).all(1).mean(), abs=0.005)
    kappas = [cohen_kappa_score(one[:, m], other[:, m]) for m in range(3)]
    np.testing.assert_allclose(found.kappa, kappas, atol=0.01)


def test_prevalences_are_found_behind_the_errors():
    rng = np.random.default_rng(1)
    truth = PROFILES[rng.choice(8, 200_000, p=PREVALENCE)]
    np.testing.assert_allclose(true_shares(shares(read(truth, rng)), RATES), PREVALENCE, atol=0.01)


@given(st.lists(st.floats(0.55, 1), min_size=6, max_size=6), st.lists(st.integers(0, 7), min_size=1, max_size=30))
def test_it_is_a_share_and_perfect_for_a_classifier_that_never_errs(rates, codes):
    profiles = PROFILES[codes]
    found = ceiling(profiles, ErrorRates(np.array(rates[:3]), np.array(rates[3:])))
    assert 0 < found.profile <= found.by_mechanism.min() + 1e-12 and found.by_mechanism.max() <= 1 + 1e-12
    assert ceiling(profiles, ErrorRates(np.ones(3), np.ones(3))).profile == pytest.approx(1)


def test_by_hand():
    rates = ErrorRates(np.array([0.9, 1, 1]), np.array([0.8, 1, 1]))
    all_absent = ceiling(np.array([[0, 0, 0]] * 8 + [[1, 0, 0]] * 2), rates)  # two in ten are false positives
    assert all_absent.by_mechanism == pytest.approx([0.8**2 + 0.2**2, 1, 1]) and all_absent.profile == pytest.approx(
        0.68
    )
    assert np.isnan(all_absent.kappa[1:]).all(), "nobody ever says IP or EX"


def test_a_classifier_that_guesses_has_no_ceiling():
    rates = ErrorRates(np.array([0.5, 0.9, 0.9]), np.array([0.5, 0.9, 0.9]))
    assert np.isnan(ceiling(PROFILES, rates).profile)
    assert np.isnan(ceiling(np.empty((0, 3)), RATES).profile)
