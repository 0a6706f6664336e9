"""Does the language of the judge's instruction move its scores? (Paper B, section 3.5, appendix F, Table 12.)"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from xlc_utils.judges.rubric import SCALES
from xlc_utils.statistics.intervals import paired_difference


def meta_prompt_differences(english: pd.DataFrame, other: pd.DataFrame, samples: int, seed: int) -> pd.DataFrame:
    """Scores under another meta-prompt less those under the English one, over the dialogues that have both.

    Args:
        english, other: rows of `rubric.judge_dialogues` of the same dialogues under either instruction.
        samples, seed: of the bootstrap over dialogues.

    Returns:
        judge, generator, score (G, R, C or F), english and other (means over the shared dialogues), difference, low,
        high (95% percentile interval), n (dialogues scored both ways), unread (those not scored one way or the other).
    """
    key = ["judge", "generator", "language", "dialogue_id"]
    both = english.merge(other, on=key, suffixes=("_english", "_other"), validate="1:1")
    rows = []
    for (judge, generator), own in both.groupby(["judge", "generator"], sort=False):
        for score in SCALES:
            first, second = own[f"{score}_other"].to_numpy(float), own[f"{score}_english"].to_numpy(float)
            found = paired_difference(first, second, seed=seed, samples=samples)
            rows.append(
                {
                    "judge": judge,
                    "generator": generator,
                    "score": score,
                    "english": _shared_mean(second, first),
                    "other": _shared_mean(first, second),
                    "difference": float(found.estimate),
                    "low": float(found.low),
                    "high": float(found.high),
                    "n": int(found.n),
                    "unread": len(own) - int(found.n),
                }
            )
    return pd.DataFrame(rows, columns=COLUMNS)


COLUMNS: Sequence[str] = (
    "judge", "generator", "score", "english", "other", "difference", "low", "high", "n", "unread"
)  # fmt: skip


def _shared_mean(scores: np.ndarray, others: np.ndarray) -> float:
    shared = scores[~np.isnan(scores) & ~np.isnan(others)]
    return float(shared.mean()) if len(shared) else np.nan
