from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from xlc_utils.statistics.holm import holm


@settings(max_examples=10)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_equals_statsmodels(p):
    assert holm(np.array(p)).tolist() == pytest.approx(multipletests(p, method="holm")[1].tolist(), abs=1e-9)


def test_holm_leaves_undefined_tests_out_of_the_family():
    found = holm(np.array([[0.01, np.nan], [0.04, 0.03]]))
    assert found.tolist() == [
        [pytest.approx(0.03), pytest.approx(np.nan, nan_ok=True)],
        [pytest.approx(0.06), pytest.approx(0.06)],
    ]
