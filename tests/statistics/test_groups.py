from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from xlc_utils.statistics.groups import macro_average, macro_interval
from xlc_utils.statistics.intervals import bootstrap_weights, mean_interval, weighted_means

MEMBERSHIP = np.array([[1, 1, 0, 0], [0, 1, 1, 1], [0, 0, 0, 0]], dtype=bool)


def test_group_means_equal_pandas():
    values = np.random.default_rng(1).random((5, 4))
    found = macro_average(values, MEMBERSHIP)
    frame = pd.DataFrame(values)
    assert found[:, 0] == pytest.approx(frame[[0, 1]].mean(axis=1).to_numpy(), abs=1e-12)
    assert found[:, 1] == pytest.approx(frame[[1, 2, 3]].mean(axis=1).to_numpy(), abs=1e-12)
    assert np.isnan(found[:, 2]).all()


def test_a_missing_language_is_ignored_only_when_asked():
    values = np.array([0.2, np.nan, 0.4, 0.8])
    assert macro_average(values, MEMBERSHIP).tolist() == pytest.approx([np.nan] * 3, nan_ok=True)
    ignoring = macro_average(values, MEMBERSHIP, ignore_missing=True)
    assert ignoring.tolist() == pytest.approx([0.2, 0.6, np.nan], nan_ok=True)


def test_each_language_counts_once_however_many_items_it_has():
    scores = np.array([[1.0, 1.0, 1.0, 1.0], [0.0, np.nan, np.nan, np.nan]])
    means = mean_interval(scores, seed=1).estimate
    assert macro_average(means, np.array([[True, True]])).tolist() == [0.5]


def test_interval_keeps_the_dependence_of_shared_items():
    base = np.random.default_rng(2).normal(size=60)
    scores = np.stack([base, -base, base, base])
    draws = weighted_means(scores, bootstrap_weights(60, 500, 3))
    opposed, same = np.array([[1, 1, 0, 0]], bool), np.array([[1, 0, 1, 1]], bool)
    means = scores.mean(axis=1)
    # Opposite languages cancel in every draw; equal ones move together, as one language does.
    assert macro_interval(means, draws, opposed).high == pytest.approx(0, abs=1e-12)
    single = mean_interval(base, seed=3, samples=500)
    assert macro_interval(means, draws, same).high == pytest.approx(float(single.high), abs=1e-12)


def test_interval_counts_the_languages_averaged():
    values = np.array([[0.2, np.nan, 0.4, 0.8]])
    draws = np.repeat(values[None], 10, axis=0)
    found = macro_interval(values, draws, MEMBERSHIP, ignore_missing=True)
    assert found.n.tolist() == [[1, 2, 0]]
    assert found.low[0].tolist() == pytest.approx([0.2, 0.6, np.nan], nan_ok=True)
    assert found.high[0].tolist() == pytest.approx([0.2, 0.6, np.nan], nan_ok=True)


def test_membership_of_another_length_is_refused():
    with pytest.raises(ValueError, match="membership"):
        macro_average(np.zeros(3), MEMBERSHIP)
