"""How well the three classifiers do on labelled replies."""

from __future__ import annotations

import numpy as np

#: For each mechanism. F1 is the macro average over present and absent; sensitivity and specificity are the shares of
#: responses with and without the mechanism that are seen as such.
MEASURES = ("F1", "accuracy", "sensitivity", "specificity")


def cells(truth: np.ndarray, guess: np.ndarray) -> np.ndarray:
    """Which of true positive, false positive, false negative and true negative each answer is: (n, 3) -> (n, 3, 4)."""
    truth, guess = truth.astype(bool), guess.astype(bool)
    return np.stack([truth & guess, ~truth & guess, truth & ~guess, ~truth & ~guess], axis=-1).astype(float)


def measures(counts: np.ndarray) -> dict[str, np.ndarray]:
    """`MEASURES` in per cent from counts of `cells`, (…, 4) -> (…) each; a share of nothing counts 0, as in
    scikit-learn."""
    tp, fp, fn, tn = np.moveaxis(counts, -1, 0)

    def share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
        return 100 * part / np.where(whole > 0, whole, 1.0)

    return {
        "F1": (share(2 * tp, 2 * tp + fp + fn) + share(2 * tn, 2 * tn + fp + fn)) / 2,
        "accuracy": share(tp + tn, tp + fp + fn + tn),
        "sensitivity": share(tp, tp + fn),
        "specificity": share(tn, tn + fp),
    }
