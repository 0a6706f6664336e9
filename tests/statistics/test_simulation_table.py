"""The committed simulation says what the documents say of it."""

from __future__ import annotations

import pandas as pd
import pytest

from xlc_utils.judges.stability_tables import NOTE


@pytest.fixture(scope="module")
def simulated(root) -> pd.DataFrame:
    return pd.read_csv(root / "benchmarks" / "statistics_simulation.csv")


def test_intervals_cover_and_tests_keep_their_level(simulated):
    assert simulated.loc[simulated["quantity"] == "coverage", "observed"].min() >= 0.93
    wrong = simulated[simulated["quantity"].isin(["any wrong order", "rejection of a true null"])]
    assert (wrong["observed"] <= wrong["nominal"] + 2 * wrong["standard_error"]).all()


def test_the_tables_say_how_often_the_draws_hold_tau(simulated):
    draws = simulated[simulated["statistic"] == "tau, bootstrap draws"]
    near = draws.loc[draws["setting"].str.contains("0.1 sd"), "observed"]
    assert f"{100 * near.min():.0f} to {100 * near.max():.0f}% in simulation" in NOTE
    assert draws.loc[~draws["setting"].str.contains("0.1 sd"), "observed"].min() >= 0.95
