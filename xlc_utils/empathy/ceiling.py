"""How consistent two readings of the same reply would be: the ceiling of empathy consistency.

A classifier errs. Let a reply be said twice, in two languages, with one and the same profile t, and be read twice,
independently. Where t shows mechanism m, both readings agree on m with probability

    a_m(1) = se_m² + (1 − se_m)²,    and where it does not,    a_m(0) = sp_m² + (1 − sp_m)²,

with sensitivity se_m and specificity sp_m. Over replies of which a share P(t) has the profile t, the expected agreement
on m is Σ_t P(t) a_m(t_m), and of whole profiles, if the errors on the three mechanisms are independent given t,

    ceiling = Σ_t P(t) Π_m a_m(t_m).

P(t) is not observed; what is observed, Q, is its image under the errors: Q = (C_ER ⊗ C_IP ⊗ C_EX) P, with
C_m = [[sp_m, 1 − se_m], [1 − sp_m, se_m]]. Solved for P (Rogan & Gladen 1978, here for three tests at once); shares
that come out below 0, as they may in small samples, are set to 0.

A consistency above the ceiling is possible: errors on an answer and on its faithful translation are not independent,
since both readings see nearly the same words.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import product

import numpy as np

#: The eight profiles in the order of `shares`: ER varies slowest.
PROFILES = np.array(list(product((0, 1), repeat=3)))


@dataclass(frozen=True)
class ErrorRates:
    """Of a classifier, (3,) each in the order ER, IP, EX: the shares (0 to 1) of replies with and without a mechanism
    that are read so."""

    sensitivity: np.ndarray
    specificity: np.ndarray

    @property
    def agreement(self) -> np.ndarray:
        """a_m(t_m): (3, 2), absent and present."""
        return np.column_stack([s**2 + (1 - s) ** 2 for s in (self.specificity, self.sensitivity)])

    @property
    def confusion(self) -> np.ndarray:
        """C_ER ⊗ C_IP ⊗ C_EX: (8 observed, 8 true)."""
        rates = zip(self.sensitivity, self.specificity, strict=True)
        return reduce(np.kron, [np.array([[sp, 1 - se], [1 - sp, se]]) for se, sp in rates])


@dataclass(frozen=True)
class Ceiling:
    """Expected agreement of two independent readings of the same replies.

    Attributes:
        by_mechanism: (3,) shares.
        kappa: (3,) what Cohen's kappa would be then; NaN where every reading is the same.
        profile: share of equal profiles.
    """

    by_mechanism: np.ndarray
    kappa: np.ndarray
    profile: float


def shares(profiles: np.ndarray) -> np.ndarray:
    """Share of each of `PROFILES` among n observed ones, (n, 3) of 0 and 1 -> (8,)."""
    codes = profiles.astype(int) @ [4, 2, 1]
    return np.bincount(codes, minlength=8) / len(profiles)


def true_shares(observed: np.ndarray, rates: ErrorRates) -> np.ndarray:
    """P(t) from the observed shares Q, both (8,); NaN if the classifier is not better than guessing on each
    mechanism."""
    if (rates.sensitivity + rates.specificity <= 1).any():
        return np.full(8, np.nan)
    found = np.maximum(np.linalg.solve(rates.confusion, observed), 0)
    return found / found.sum()


def ceiling(profiles: np.ndarray, rates: ErrorRates) -> Ceiling:
    """
    Args:
        profiles: as read, (n, 3) of 0 and 1.
        rates: of the classifier that read them.
    """
    if not len(profiles):
        return Ceiling(np.full(3, np.nan), np.full(3, np.nan), np.nan)
    truth = true_shares(shares(profiles), rates)
    each = np.column_stack([own[PROFILES[:, m]] for m, own in enumerate(rates.agreement)])
    agreement = truth @ each
    said = truth @ np.where(PROFILES, rates.sensitivity, 1 - rates.specificity)
    by_chance = said**2 + (1 - said) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        kappa = np.where(by_chance < 1, (agreement - by_chance) / (1 - by_chance), np.nan)
    return Ceiling(agreement, kappa, float(truth @ each.prod(axis=1)))
