"""Do the intervals cover and the tests keep their level? A simulation with known truth, written as a table.

`python benchmarks/statistics_simulation.py [TABLE.csv]` takes about four minutes. Each row: how often 95%
intervals hold the truth, or how often a true null is rejected at .05, over simulated data sets of the papers'
size. A test of inversions moves in steps: its nominal value is the size attainable at .05, averaged over the
data sets. The intervals of tau and rho hold the truth more often than 95%: they fail only if the order of a pair of
models is found wrong, which happens in 5% of data sets at most ("any wrong order", where it is likeliest), and a wrong
order need not move the coefficient out. Beside them, the bootstrap draws of tau and rho, paper B's intervals, which
are none between models that nearly tie.
"""

from __future__ import annotations

import csv
import sys
from itertools import product
from pathlib import Path

import numpy as np
from scipy.special import ndtri

from xlc_utils.statistics.agreement import AgreementInterval, agreement_interval, fleiss
from xlc_utils.statistics.intervals import (
    Interval,
    f_interval,
    f_score,
    mean_interval,
    paired_difference,
    wilson_interval,
)
from xlc_utils.statistics.settled import settled_pairs, tau_bounds
from xlc_utils.statistics.stability import (
    SwapTest,
    kendall,
    rank_stability,
    rho_of_rows,
    spearman,
    spearman_interval,
    swap_means,
)

SEED = 20260202
COLUMNS = ["statistic", "setting", "quantity", "nominal", "observed", "standard_error", "data_sets"]
REJECTION = "rejection of a true null"
LIKERT = np.array([0.02, 0.03, 0.10, 0.35, 0.50])
MODELS, DIALOGUES, PROMPTS = 6, 115, 150


def covered(interval: Interval | AgreementInterval, truth: float | np.ndarray) -> np.ndarray:
    return (interval.low <= truth) & (truth <= interval.high)


def mean_of_ratings(generator: np.random.Generator, method: str, n: int) -> np.ndarray:
    """Ratings 0–4 with a ceiling; each of the cells is a data set."""
    ratings = generator.choice(5, size=(4000, n), p=LIKERT).astype(float)
    return covered(mean_interval(ratings, seed=SEED, method=method), LIKERT @ np.arange(5))


def f_of_shares(generator: np.random.Generator, method: str) -> np.ndarray:
    precision, recall = generator.beta(4, 2, (4000, PROMPTS)), generator.beta(2, 3, (4000, PROMPTS))
    interval = f_interval(precision, recall, seed=SEED, method=method)
    return covered(interval, float(f_score(np.array(4 / 6), np.array(2 / 5))))


def wilson(generator: np.random.Generator, n: int) -> np.ndarray:
    # Coverage of a share jumps with its truth, so the truth varies.
    share = generator.uniform(0.1, 0.95, 20000)
    return covered(wilson_interval(generator.binomial(n, share), np.full(20000, n)), share)


def no_difference(generator: np.random.Generator) -> np.ndarray:
    shared = generator.normal(size=(4000, PROMPTS))
    first, second = shared + generator.normal(size=(2, 4000, PROMPTS))
    return paired_difference(first, second, seed=SEED).p <= 0.05


def fleiss_ratings(generator: np.random.Generator, n: int) -> np.ndarray:
    """Three raters, 0 or 1, who look at the item with chance .6 and else guess: kappa is .36."""
    item = generator.random((n, 1)) < 0.7
    guess = generator.random((n, 3)) < 0.7
    return np.where(generator.random((n, 3)) < 0.6, item, guess).astype(float)


def fleiss_interval(generator: np.random.Generator) -> np.ndarray:
    data_sets = (fleiss_ratings(generator, DIALOGUES) for _ in range(500))
    intervals = (agreement_interval(fleiss, ratings, seed=SEED, samples=500) for ratings in data_sets)
    return np.array([covered(interval, 0.36) for interval in intervals])


def judge_and_people(generator: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """A judge's scores 0–3 and the mean of three people's, of n dialogues whose quality all see with noise."""
    quality = generator.normal(size=n)
    judge, *people = np.digitize(quality + generator.normal(size=(4, n)), [-2.0, -1.0, 0.5]).astype(float)
    return judge, np.mean(people, axis=0)


def rank_correlation(generator: np.random.Generator) -> np.ndarray:
    truth = float(rho_of_rows(*judge_and_people(generator, 10**6)))
    data_sets = (judge_and_people(generator, 100) for _ in range(1000))
    intervals = [spearman_interval(*data_set, seed=SEED, samples=1000) for data_set in data_sets]
    return np.array([covered(interval, truth) for interval in intervals])


def two_languages(generator: np.random.Generator, means: np.ndarray, paired: bool) -> np.ndarray:
    """Scores (2, n_models, n_items) with the same true means in both languages."""
    scores = means[:, None] + generator.normal(size=(2, len(means), DIALOGUES))
    return scores + (generator.normal(size=DIALOGUES) if paired else 0.0)


def same_ranking(generator: np.random.Generator, n_models: int, paired: bool) -> list[SwapTest]:
    """Label swap by item where both languages score alike; models lie close, so that noise inverts some."""
    means = np.linspace(0, 0.5, n_models)
    data_sets = (two_languages(generator, means, paired) for _ in range(1500))
    return [swap_items(*scores, paired) for scores in data_sets]


def reshuffled_ranking(generator: np.random.Generator, paired: bool) -> list[SwapTest]:
    """Label swap by item of six models 0.5 sd apart, of which three change places in the second language."""
    means = np.arange(MODELS) * 0.5
    shift = means[[2, 0, 1, 3, 4, 5]] - means
    data_sets = (two_languages(generator, means, paired) for _ in range(500))
    return [swap_items(first, second + shift[:, None], paired) for first, second in data_sets]


def swap_items(first: np.ndarray, second: np.ndarray, paired: bool) -> SwapTest:
    return rank_stability(first, second, paired=paired, seed=SEED, samples=1, permutations=999).swap_items


def exchangeable_means(generator: np.random.Generator) -> list[SwapTest]:
    """Exact swap of six models' means, which differ between the languages by noise alone."""
    data_sets = (np.linspace(0, 1, MODELS) + generator.normal(size=(2, MODELS)) for _ in range(4000))
    return [swap_means(first, second) for first, second in data_sets]


def rank_rows(generator: np.random.Generator, spacing: float, trade: bool, paired: bool) -> list[list[object]]:
    """Tau and rho of six models; the truth is that of the true means.

    Two adjacent models trade places between the languages, or none do.
    """
    means = np.arange(MODELS) * spacing
    other = means[[1, 0, *range(2, MODELS)]] if trade else means
    truth = {"tau": kendall(means, other).value, "rho": spearman(means, other).value}
    intervals, draws = {"tau": [], "rho": []}, {"tau": [], "rho": []}
    for _ in range(500):
        first, second = two_languages(generator, means, paired)
        second += (other - means)[:, None]
        found = rank_stability(first, second, paired=paired, seed=SEED, samples=1000, permutations=1)
        for name in truth:
            intervals[name].append(getattr(found, f"{name}_interval"))
            draws[name].append(getattr(found, f"{name}_draws"))
    order = "two trade places" if trade else "same order"
    setting = f"{MODELS} models {spacing} sd apart, {order}, {'paired' if paired else 'unpaired'}"
    rows = []
    for name, true in truth.items():
        rows.append(coverage_row(f"{name}, settled pairs", setting, held(intervals[name], true)))
        rows.append(row(f"{name}, bootstrap draws", setting, "95% of draws hold it", np.nan, held(draws[name], true)))
    widths = np.ptp(intervals["tau"], axis=1)
    return [*rows, row("tau, settled pairs", setting, "width", np.nan, widths)]


def held(bounds: list[tuple[float, float]], truth: float) -> np.ndarray:
    low, high = np.array(bounds).T
    # Bounds and truth are computed in different ways: equal ones differ by rounding.
    return (low <= truth + 1e-12) & (truth <= high + 1e-12)


def any_wrong_order(generator: np.random.Generator, ratings: bool, n: int, paired: bool) -> np.ndarray:
    """Six models whose true means tie in one language and are far apart in the other: whatever is found is wrong."""
    found = []
    for _ in range(2000):
        first = generator.normal(size=(MODELS, n)) + (generator.normal(size=n) if paired else 0.0)
        if ratings:
            # The ceiling of LIKERT, from scores whose spread is 1 (√2 where items are shared).
            cuts = ndtri(LIKERT.cumsum()[:-1]) * (np.sqrt(2) if paired else 1)
            first = np.digitize(first, cuts).astype(float)
        second = 9.0 * np.arange(MODELS)[:, None] + generator.normal(size=(MODELS, n))
        settled = settled_pairs(first, second, paired=paired)
        found.append(settled.concordant + settled.discordant > 0)
    return np.array(found)


def nearly_tied(generator: np.random.Generator, paired: bool) -> np.ndarray:
    """Tau of six models in the same order, which one language all but ties: where the interval fails most often."""
    means, hits = np.arange(MODELS) * 1e-6, []
    for _ in range(2000):
        first, second = two_languages(generator, means, paired)
        second += means[:, None] * 9e6
        low, high = tau_bounds(settled_pairs(first, second, paired=paired))
        hits.append(low <= 1 <= high)
    return np.array(hits)


def row(statistic: str, setting: str, quantity: str, nominal: float, values: np.ndarray) -> list[object]:
    error = values.std() / np.sqrt(len(values))
    expected = "" if np.isnan(nominal) else f"{nominal:.4f}"
    return [statistic, setting, quantity, expected, f"{values.mean():.4f}", f"{error:.4f}", len(values)]


def coverage_row(statistic: str, setting: str, hits: np.ndarray) -> list[object]:
    return row(statistic, setting, "coverage", 0.95, hits)


def rejection_row(statistic: str, setting: str, tests: list[SwapTest]) -> list[object]:
    attainable = float(np.mean([test.attainable for test in tests]))
    rejected = np.array([test.inversions <= 0.05 for test in tests])
    return row(statistic, setting, REJECTION, attainable, rejected)


def simulate() -> list[list[object]]:
    generator = np.random.default_rng(SEED)
    rows = []
    for method in ("percentile", "bca"):
        for n in (DIALOGUES, PROMPTS):
            hits = mean_of_ratings(generator, method, n)
            rows.append(coverage_row(f"mean, {method}", f"ratings 0-4, {n} items", hits))
        hits = f_of_shares(generator, method)
        rows.append(coverage_row(f"F of means, {method}", f"shares, {PROMPTS} items", hits))
    for n in (16, DIALOGUES):
        rows.append(coverage_row("share, Wilson", f"{n} items", wilson(generator, n)))
    hits = fleiss_interval(generator)
    rows.append(coverage_row("Fleiss' kappa, percentile", f"3 raters, {DIALOGUES} items", hits))
    rejected = no_difference(generator)
    rows.append(row("paired difference, bootstrap", f"{PROMPTS} items", REJECTION, 0.05, rejected))
    tests = exchangeable_means(generator)
    rows.append(rejection_row("label swap of means, exact", f"{MODELS} models", tests))
    for paired in (True, False):
        kind = "paired" if paired else "unpaired"
        for n_models in (MODELS, 2 * MODELS):
            tests = same_ranking(generator, n_models, paired)
            setting = f"{n_models} models, {DIALOGUES} items, {kind}"
            rows.append(rejection_row("label swap by item, inversions", setting, tests))
        rejected = np.array([test.inversions <= 0.05 for test in reshuffled_ranking(generator, paired)])
        setting = f"{MODELS} models 0.5 sd apart, 2 of 15 pairs inverted, {kind}"
        rows.append(row("label swap by item, inversions", setting, "power", np.nan, rejected))
        for ratings, n in product((False, True), (12, DIALOGUES)):
            setting = (
                f"{MODELS} models tied in one language, {'ratings 0-4' if ratings else 'normal'}, {n} items, {kind}"
            )
            hits = any_wrong_order(generator, ratings, n, paired)
            rows.append(row("settled pairs", setting, "any wrong order", 0.05, hits))
        setting = f"{MODELS} models in the same order, all but tied in one language, {kind}"
        rows.append(coverage_row("tau, settled pairs", setting, nearly_tied(generator, paired)))
        for trade, spacing in product((True, False), (0.1, 0.2, 0.5)):
            rows += rank_rows(generator, spacing, trade, paired)
    rows.append(coverage_row("Spearman's rho of items, percentile", "100 dialogues", rank_correlation(generator)))
    return rows


def main() -> None:
    table = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_suffix(".csv")
    rows = simulate()
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])
    for line in [COLUMNS, *rows]:
        print(" | ".join(str(part) for part in line))


if __name__ == "__main__":
    main()
