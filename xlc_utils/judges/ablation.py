"""Do other judges recover the same labels? (Paper B, section 3.6, appendix G, Figure 4.)"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

from xlc_utils.judges.released import PARAMETERS
from xlc_utils.statistics.intervals import bootstrap_weights, percentile_bounds, weighted_means, wilson_interval
from xlc_utils.statistics.stability import rho_of_rows

#: How the printed table names what `PARAMETERS` calls otherwise.
_PRINTED = {"agent_type": "agent type", "agent_experience": "agent experience"}


def accuracy_by_judge(items: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of each judge in each category over all generators, beside the printed range over six judges.

    Args:
        items: rows of `label_recovery.recovered` of one language.
        printed: published paper_b_judge_ablation.

    Returns:
        category, judge, recovered, n, accuracy, low, high (Wilson's 95% interval), printed.
    """
    ranges = printed[printed["category"] != "all"].set_index("category")["printed"]
    rows = []
    for category in PARAMETERS:
        for judge, own in items.groupby("judge", sort=False):
            right = own[category].dropna()
            found = wilson_interval(right.sum(), len(right))
            rows.append(
                {
                    "category": category,
                    "judge": judge,
                    "recovered": int(right.sum()),
                    "n": len(right),
                    "accuracy": float(found.estimate),
                    "low": float(found.low),
                    "high": float(found.high),
                    "printed": ranges.get(_PRINTED.get(category, category), ""),
                }
            )
    return pd.DataFrame(rows)


def agreement_of_judges(items: pd.DataFrame, samples: int, seed: int) -> pd.DataFrame:
    """Spearman correlation of two judges over the pairs of generator and category, and the mean over all judges.

    The paper prints the mean, .66. Most of it is that some categories are easier than others for every judge: `within`
    is the mean of the correlations inside each category, over generators only.

    The correlation is one of ranks of accuracies, and steps where these tie. So the range of the bootstrap draws says
    how far another sample of dialogues can move it and is no confidence interval: draws are noisier than the data, and
    of judges that are truly alike none reaches 1.

    Args:
        items: rows of `label_recovery.recovered` of one language.
        samples, seed: of the bootstrap over dialogues, the same for all judges and generators.

    Returns:
        first, second (judges; "all", "all" for the mean), rho, draws_low, draws_high (95% of the draws), within.
    """
    judges, accuracies = _accuracies(items, samples, seed)  # (1 + samples, judges, generators, categories)
    rows = []
    pairs = list(combinations(range(len(judges)), 2))
    over = np.stack([rho_of_rows(_flat(accuracies[:, a]), _flat(accuracies[:, b])) for a, b in pairs], axis=1)
    inside = np.stack(
        [
            np.nanmean(rho_of_rows(accuracies[0, a].T, accuracies[0, b].T)) if accuracies.shape[2] > 1 else np.nan
            for a, b in pairs
        ]
    )
    for number, (a, b) in enumerate(pairs):
        rows.append((judges[a], judges[b], *_with_bounds(over[:, number]), inside[number]))
    rows.append(("all", "all", *_with_bounds(over.mean(axis=1)), inside.mean()))
    return pd.DataFrame(rows, columns=["first", "second", "rho", "draws_low", "draws_high", "within"])


def _accuracies(items: pd.DataFrame, samples: int, seed: int) -> tuple[list[str], np.ndarray]:
    """The judges, and accuracies as seen (first) and in each resample of dialogues."""
    judges, generators = list(dict.fromkeys(items["judge"])), sorted(items["generator"].unique())
    dialogues = sorted(items["dialogue_id"].unique())
    right = np.full((len(judges), len(generators), len(PARAMETERS), len(dialogues)), np.nan)
    places = [items[name].map(values.index) for name, values in (("judge", judges), ("generator", generators))]
    right[places[0], places[1], :, items["dialogue_id"].map(dialogues.index)] = items[list(PARAMETERS)].to_numpy(float)
    weights = np.vstack([np.ones(len(dialogues)), bootstrap_weights(len(dialogues), samples, seed)])
    return judges, weighted_means(right, weights)


def _flat(accuracies: np.ndarray) -> np.ndarray:
    return accuracies.reshape(len(accuracies), -1)


def _with_bounds(values: np.ndarray) -> tuple[float, float, float]:
    low, high = percentile_bounds(values[1:, None])
    return float(values[0]), float(low[0]), float(high[0])
