"""CPU time of paper A's whole aggregation: `python benchmarks/aggregation.py`.

12 models × 30 languages × 150 prompts, F with 2,000 bootstrap samples: the table by language, the averaged table with
its groups, and the differences between all pairs of models, from rows as notebook 04 has them: at most 5 CPU seconds.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd

from xlc_utils.registry import languages, models
from xlc_utils.registry.files import project_root
from xlc_utils.reporting import consistency
from xlc_utils.running.params import load

CPU_SECONDS, SAMPLES = 5.0, 2000


def main() -> None:
    root = project_root()
    paper, known, registry = load(root / "params" / "paper.yaml"), languages.load(root), models.load(root)
    index = pd.MultiIndex.from_product(
        [paper.models, paper.languages, [f"p-{i:03}" for i in range(150)]], names=["model", "language", "prompt_id"]
    )
    shares = np.random.default_rng(0).random((len(index), 2))
    rows = pd.DataFrame(shares, index=index, columns=["precision", "recall"]).reset_index()
    start = time.process_time()
    scores = consistency.Scores.of(rows, ["precision", "recall"], paper.models, paper.languages)
    found = [
        consistency.by_language(scores, SAMPLES, 0),
        consistency.averaged(scores, known, registry, SAMPLES, 0),
        consistency.differences(scores, SAMPLES, 0),
    ]
    seconds = time.process_time() - start
    print(f"{[len(f) for f in found]} rows in {seconds:.2f} CPU s; limit {CPU_SECONDS:.0f}")
    raise SystemExit(seconds > CPU_SECONDS)


if __name__ == "__main__":
    main()
