"""Speed and memory of the statistics at the papers' scale: `python benchmarks/statistics_speed.py`.

Rank stability of five metrics × six language pairs × six models × 115 dialogues, with 2,000 bootstrap
samples and 5,000 permutations: at most 5 CPU seconds and 300 MB, paired or not. Intervals of 12 models × 30
languages × 150 prompts with 2,000 samples: at most 5 CPU seconds.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from itertools import combinations

import numpy as np

from xlc_utils.statistics.intervals import f_interval, mean_interval
from xlc_utils.statistics.stability import rank_stability

CPU_SECONDS, MEGABYTES = 5.0, 300.0
METRICS, LANGUAGES, MODELS, DIALOGUES = 5, 4, 6, 115


def stability_grid(paired: bool) -> None:
    scores = np.random.default_rng(1).normal(size=(METRICS, LANGUAGES, MODELS, DIALOGUES))
    for metric in scores:
        for first, second in combinations(metric, 2):
            rank_stability(first, second, paired=paired, seed=1)


def interval_grid(method: str) -> None:
    precision, recall = np.random.default_rng(2).random((2, 12, 30, 150))
    mean_interval(precision, seed=1, method=method)
    f_interval(precision, recall, seed=1, method=method)


def cpu_seconds(task: Callable[..., None], *arguments: object) -> float:
    start = time.process_time()
    task(*arguments)
    return time.process_time() - start


def main() -> None:
    tasks = [
        ("rank stability, paired", stability_grid, True),
        ("rank stability, unpaired", stability_grid, False),
        ("mean and F intervals, percentile", interval_grid, "percentile"),
        ("mean and F intervals, BCa", interval_grid, "bca"),
    ]
    within = True
    for name, task, argument in tasks:
        seconds = cpu_seconds(task, argument)
        # The peak of the whole process so far, in MB: Linux counts kilobytes.
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        within &= seconds <= CPU_SECONDS and peak <= MEGABYTES
        print(f"{name:34} {seconds:6.2f} CPU s {peak:6.0f} MB")
    print(f"limits {CPU_SECONDS:.0f} CPU s and {MEGABYTES:.0f} MB: {'kept' if within else 'EXCEEDED'}")
    raise SystemExit(not within)


if __name__ == "__main__":
    main()
