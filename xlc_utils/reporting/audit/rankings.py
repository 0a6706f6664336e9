"""What six rankings can give at all: every order, and every permutation of paper B's tests, enumerated.

`released_null` is the permutation test of the analysis code that paper B's authors released
(src/ranking_inversions/analyzer.py). It shuffles the language labels over the rows of both languages and compares
the models that have one row in each; a row keeps the rank it had in its own language, so that ranks can tie, and a
tie counts as "not better". The doubled share of labellings with at least as many inversions is its p. The code draws
labellings; here all are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, permutations, product
from math import comb

import numpy as np

from xlc_utils.statistics.stability import swap_means

N_MODELS = 6
N_PAIRS = N_MODELS * (N_MODELS - 1) // 2

# The pairs of models, first index below second.
_FIRST, _SECOND = np.triu_indices(N_MODELS, 1)


@dataclass(frozen=True)
class ReleasedNull:
    """The released permutation test over all pairs of rankings of six models.

    Attributes:
        models_compared: mean over labellings of the models that have a row in each language.
        p: (N_PAIRS + 1, 3), lowest, mean and highest p for each number of inversions.
        inversions: (N_PAIRS + 1,) mean number of inversions after shuffling.
        significant: share of all pairs of rankings with p < .05.
    """

    models_compared: float
    p: np.ndarray
    inversions: np.ndarray
    significant: float


def tau_without_ties(inversions: float) -> float:
    """Kendall's tau of two rankings of six models without ties that have this many inversions."""
    return 1 - 2 * inversions / N_PAIRS


def at_least(inversions: int) -> float:
    """Chance that two unrelated rankings of six models have at least this many inversions."""
    chances = np.ones(1)
    for n in range(2, N_MODELS + 1):
        chances = np.convolve(chances, np.full(n, 1 / n))
    return float(chances[inversions:].sum())


def two_sided_p(inversions: int) -> float:
    """Exact two-sided p of tau for two rankings without ties that have this many inversions."""
    fewer = min(inversions, N_PAIRS - inversions)
    return min(1.0, 2 * (1 - at_least(fewer + 1)))


@lru_cache
def tau_b_with_ties() -> tuple[np.ndarray, np.ndarray]:
    """Every tau-b that two rankings of six models can have, ties allowed, with the inversions of the pair.

    Returns:
        tau-b and number of inversions, one of each for every pair of rankings, the first of which is sorted
        (renaming the models changes neither).
    """
    ranks = [r for r in product(range(N_MODELS), repeat=N_MODELS) if set(r) == set(range(max(r) + 1))]
    signs = np.array([np.sign(np.subtract(np.take(r, _FIRST), np.take(r, _SECOND))) for r in ranks])
    ascending = np.array([list(r) == sorted(r) for r in ranks])
    agreement = signs[ascending] @ signs.T
    untied = np.abs(signs).sum(axis=1)
    norm = np.sqrt(np.outer(untied[ascending], untied))
    defined = norm > 0
    inverted = (np.abs(signs[ascending]) @ np.abs(signs).T - agreement) // 2
    return agreement[defined] / norm[defined], inverted[defined]


@lru_cache
def swap_of_means() -> tuple[np.ndarray, np.ndarray]:
    """The exact swap of each model's two scores (`swap_means`), ranks as scores, for all 720 orders of six models.

    Returns:
        inversions and the p of the inversions, (720,) each, the first language's ranking being the identity.
    """
    first = np.arange(N_MODELS, dtype=float)
    orders = np.array(list(permutations(first)))
    inverted = (orders[:, _FIRST] > orders[:, _SECOND]).sum(axis=1)
    return inverted, np.array([swap_means(first, order).inversions for order in orders])


@lru_cache
def released_null() -> ReleasedNull:
    """See the head of this module. Over all 720 × 720 pairs of rankings and all labellings that compare any model."""
    unswapped, swapped, how_often = _inverted_pairs()
    labellings, weights, compared = _labellings()
    weights = weights / weights.sum()
    counts = np.concatenate([unswapped, swapped], axis=1).astype(np.float32) @ labellings
    seen = unswapped.sum(axis=1)
    p = np.minimum(1, 2 * (counts >= seen[:, None]) @ weights)
    shuffled = counts @ weights
    rows = [(seen == k) for k in range(N_PAIRS + 1)]
    return ReleasedNull(
        models_compared=float(compared @ weights),
        p=np.array([(p[r].min(), np.average(p[r], weights=how_often[r]), p[r].max()) for r in rows]),
        inversions=np.array([np.average(shuffled[r], weights=how_often[r]) for r in rows]),
        significant=float(how_often[p < 0.05].sum() / how_often.sum()),
    )


def _inverted_pairs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which pairs of models are inverted if both or neither of their labels are exchanged, and if one's are.

    Returns:
        two arrays (n, N_PAIRS), each different state of all pairs of rankings once, and how many it stands for.
    """
    orders = np.array(list(permutations(range(N_MODELS))), dtype=np.int8)
    # Two rankings and the same two the other way round have the same state.
    first, second = np.triu_indices(len(orders))
    one, other = orders[first], orders[second]
    unswapped = (one[:, _FIRST] < one[:, _SECOND]) != (other[:, _FIRST] < other[:, _SECOND])
    swapped = (other[:, _FIRST] < one[:, _SECOND]) != (one[:, _FIRST] < other[:, _SECOND])
    code = np.concatenate([unswapped, swapped], axis=1) @ (2.0 ** np.arange(2 * N_PAIRS))
    _, kept, state = np.unique(code, return_index=True, return_inverse=True)
    return unswapped[kept], swapped[kept], np.bincount(state, weights=np.where(first == second, 1, 2))


def _labellings() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ways of dealing six labels of each language over the twelve rows that leave a model to compare.

    Returns:
        which pairs are compared, unswapped and then swapped, (2 N_PAIRS, n); how many labellings each column stands
        for (exchanging all labels changes nothing; models with both rows in one language are dealt among
        themselves); and how many models it compares.
    """
    columns, weights, compared = [], [], []
    for size in (6, 4, 2):
        for models in combinations(range(N_MODELS), size):
            for exchanged in product((0, 1), repeat=size - 1):
                state = dict(zip(models, (0, *exchanged), strict=True))
                in_both = [i in state and j in state for i, j in zip(_FIRST, _SECOND, strict=True)]
                differ = [state.get(i) != state.get(j) for i, j in zip(_FIRST, _SECOND, strict=True)]
                columns.append(np.concatenate([np.greater(in_both, differ), np.logical_and(in_both, differ)]))
                weights.append(2 * comb(N_MODELS - size, (N_MODELS - size) // 2))
                compared.append(size)
    return np.array(columns, dtype=np.float32).T, np.array(weights, dtype=np.float32), np.array(compared, dtype=float)
