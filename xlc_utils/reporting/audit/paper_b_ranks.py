"""Paper B's statements about rank stability, held against what six rankings can give and what its metrics do give.

The judge's scores are not released. So statements about them are held against each other and against the
permutation tests; only those about automatic metrics are recomputed from scores.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations

import numpy as np
import pandas as pd

from xlc_utils.judges.automatic import METRICS, SURFACE, paired, score_matrices
from xlc_utils.reporting import published
from xlc_utils.reporting.audit import rankings
from xlc_utils.reporting.audit.entries import (
    AS_PUBLISHED,
    CANNOT_BE_CHECKED,
    DOES_NOT_HOLD,
    HOLDS,
    Finding,
    joined,
    statement,
)
from xlc_utils.reporting.audit.paper_b_dialogues import FINNO_UGRIC, as_published, design, metrics, uniform
from xlc_utils.statistics.stability import kendall, rank_stability, smallest_detectable_tau, swap_means

SEED = 0
SIMULATED = 4000

# A value printed to two decimals stands for anything this near.
_HALF_DIGIT = 0.005 + 1e-9


@lru_cache
def stability() -> pd.DataFrame:
    return published.load("paper_b_stability")


def printed(metric: str, pair: str, statistic: str, where: str) -> float:
    """A printed value of one metric and pair of languages ("et-hu")."""
    table = stability()
    chosen = table[(table["metric"] == metric) & (table["language_pairs"] == pair)
                   & (table["statistic"] == statistic) & (table["where"] == where)]  # fmt: skip
    return float(chosen["high"].item())


# --- the surface


@statement("b-surface-tau", claim="B04")
def surface_tau() -> Finding:
    bound = float(stability().query("metric == 'surface metrics'")["low"].item())
    numbers, texts = {"bound": bound}, []
    for pipeline, procedure, table, names in (
        ("as published", "the authors' procedure", as_published(), METRICS),
        ("uniform", "one procedure for all languages and similarity of embeddings", uniform(), SURFACE),
    ):
        taus = pd.Series({(metric, a, b): kendall(table.loc[a, metric], table.loc[b, metric]).value
                          for metric in names for a, b in combinations(FINNO_UGRIC, 2)})  # fmt: skip
        reach = int((taus >= bound).sum())
        numbers |= {f"{pipeline} reach": reach, f"{pipeline} least": taus.min(), f"{pipeline} cells": len(taus)}
        metric, a, b = taus.idxmin()
        texts.append(f"{reach} of {len(taus)} cells with {procedure} (least {taus.min():.2f}, {metric} {a}–{b})")
    below = int((_highest_taus() < bound).sum())
    numbers["uniform below"] = below
    full = {p: numbers[f"{p} reach"] == numbers[f"{p} cells"] for p in ("as published", "uniform")}
    verdict = HOLDS if full["uniform"] else AS_PUBLISHED
    return Finding(
        verdict if full["as published"] else DOES_NOT_HOLD,
        f"TTR, MATTR and self-BLEU (whole, agent, client) over three pairs of languages reach τ ≥ {bound:.2f} in "
        f"{' and '.join(texts)}. In {below} of the latter the 95% interval of τ lies below {bound:.2f} as a whole. "
        "Similarity is by multilingual-e5-small, not the paper's larger encoder.",
        numbers,
    )


def _highest_taus() -> np.ndarray:
    """Upper ends of the intervals of tau under one procedure: one a metric and pair of languages."""
    scores = {metric: score_matrices(metrics(), metric) for metric in SURFACE}
    found = [
        rank_stability(scores[metric][a], scores[metric][b], paired=paired(metrics(), a, b), seed=SEED, samples=1,
                       permutations=1)
        for metric in SURFACE for a, b in combinations(FINNO_UGRIC, 2)
    ]  # fmt: skip
    return np.array([stability.tau_interval[1] for stability in found])


@statement("b-surface-bounds", claim="B24")
def surface_bounds() -> Finding:
    bounds = stability()[(stability()["statistic"] == "tau") & stability()["relation"].str.endswith(">=")]
    most = int(stability().query("printed == '1–3 per pair'")["high"].item())
    taus, inverted = rankings.tau_b_with_ties()
    highest = float(taus[inverted == most].max())
    bound = float(bounds.loc[bounds["where"] == "§3.4", "low"].item())
    values = sorted(bounds["low"].unique())
    return Finding(
        DOES_NOT_HOLD if highest < bound else HOLDS,
        f"Two rankings of six models with {most} inversions have τ = {highest:.2f} at most, ties or not; with 2, "
        f"{rankings.tau_without_ties(2):.2f}; with 1, {rankings.tau_without_ties(1):.2f}. Lower bounds of τ for the "
        f"surface are printed four times and are four: {joined([f'{v:.2f}' for v in values])} (§1, Figure 2, §3.4 and "
        "§4, Appendix E); §1 means automatic metrics, the others judge scores.",
        {"most inversions": most, "highest tau": highest, "bounds": len(values)},
    )


@statement("b-with-confidence", claim="B30")
def with_confidence() -> Finding:
    detectable = smallest_detectable_tau(rankings.N_MODELS)
    p = {k: rankings.two_sided_p(k) for k in (1, 2, 3)}
    bounds = stability()[(stability()["where"] == "§4") & (stability()["relation"] == ">=")]
    bound = float(bounds["low"].item())
    return Finding(
        DOES_NOT_HOLD if detectable.tau > bound else HOLDS,
        f"With six models the smallest |τ| that differs from 0 at .05 (exact, two-sided, no ties) is "
        f"{detectable.tau:.3f}, one inversion (p = {p[1]:.3f}). Two inversions, τ = "
        f"{rankings.tau_without_ties(2):.2f}, have p = {p[2]:.3f}, three p = {p[3]:.3f}.",
        {"detectable": detectable.tau, "bound": bound, **{f"p of {k}": value for k, value in p.items()}},
    )


# --- coherence


@statement("b-tau-values", claim="B25")
def tau_values() -> Finding:
    values = {pair: printed("coherence", pair, "tau", "§3.4") for pair in ("et-hu", "fi-hu")}
    grid = np.array([rankings.tau_without_ties(k) for k in range(rankings.N_PAIRS + 1)])
    tied = np.unique(rankings.tau_b_with_ties()[0].round(9))
    near = {pair: grid[np.abs(grid - value).argmin()] for pair, value in values.items()}
    untied = [abs(near[pair] - value) <= _HALF_DIGIT for pair, value in values.items()]
    possible = {pair: bool((np.abs(tied - value) <= _HALF_DIGIT).any()) for pair, value in values.items()}
    return Finding(
        HOLDS if all(untied) else AS_PUBLISHED if all(possible.values()) else DOES_NOT_HOLD,
        "τ of two rankings of six models without ties is one of 16 values 2/15 apart, and the authors' code breaks all "
        f"ties. {values['et-hu']:.2f} and {values['fi-hu']:.2f} are not among them; the nearest are "
        f"{near['et-hu']:.3f} and {near['fi-hu']:.3f}. With ties τ-b can be {values['fi-hu']:.2f} (−2/12), but not "
        f"{values['et-hu']:.2f}: the smallest that is not 0 is {tied[tied > 0].min():.3f}, which would have to be cut "
        "off, not rounded (as .3217 was: b-kappa). Both may be means over bootstrap samples, which the authors' code "
        "also computes.",
        {"nearest et-hu": near["et-hu"], "nearest fi-hu": near["fi-hu"], "et-hu with ties": possible["et-hu"],
         "fi-hu with ties": possible["fi-hu"], "smallest": tied[tied > 0].min()},
        inference=True,
    )  # fmt: skip


@statement("b-coherence-negative", claim="B22")
def coherence_negative() -> Finding:
    pairs = {pair: printed("coherence", pair, "inversions", "Appendix E") for pair in ("et-fi", "et-hu")}
    tau = {pair: rankings.tau_without_ties(k) for pair, k in pairs.items()}
    negative = max(tau.values()) <= 0
    return Finding(
        HOLDS if negative else DOES_NOT_HOLD,
        f"Appendix E prints {pairs['et-fi']:.0f} inversions for et–fi and {pairs['et-hu']:.0f} for et–hu: τ = "
        f"{tau['et-fi']:.2f} and {tau['et-hu']:.2f}. For et–hu §3.4 prints τ = "
        f"{printed('coherence', 'et-hu', 'tau', '§3.4'):.2f} and p = {printed('coherence', 'et-hu', 'p', '§3.4'):.2f}, "
        f"Appendix E p = {printed('coherence', 'et-hu', 'p', 'Appendix E'):.2f}.",
        {**tau, "printed tau": printed("coherence", "et-hu", "tau", "§3.4")},
    )


@statement("b-coherence-fi-hu", claim="B42")
def coherence_fi_hu() -> Finding:
    tau = printed("coherence", "fi-hu", "tau", "§3.4")
    return Finding(
        DOES_NOT_HOLD if tau <= 0 else HOLDS,
        f"§3.4 prints τ = {tau:.2f} for fi–hu and counts it to the breakdown.",
        {"printed tau": tau},
    )


@statement("b-coherence-p", claim="B44")
def coherence_p() -> Finding:
    pairs = ("et-en", "et-fi", "et-hu")
    p = {pair: printed("coherence", pair, "p", "Appendix E") for pair in pairs}
    below = [pair for pair in pairs if p[pair] < design("significance level")]
    chance = rankings.at_least(5)
    low, mean, high = rankings.released_null().p[5]
    return Finding(
        _inverted_more_than_chance(pd.Series(p), pd.Series(dict.fromkeys(pairs, 5))),
        f"{len(below)} of the three is below the level of Figure 2 (p < .05) as printed; the others may round to .05 "
        f"from either side. For five inversions the released test gives p = {low:.3f} to {high:.3f}, {mean:.3f} on "
        "average over all pairs of rankings. Unrelated rankings have five or more inversions with probability "
        f"{chance:.2f}, so five are not more than chance in that sense (b-released-test).",
        {"below .05": len(below), "least p": low, "mean p": mean, "most p": high, "chance": chance},
    )


@statement("b-coherence-two-p", claim="B25")
def coherence_two_p() -> Finding:
    p = {where: printed("coherence", "et-hu", "p", where) for where in ("§3.4", "Appendix E")}
    below = max(p.values()) < design("significance level")
    return Finding(
        HOLDS if p["§3.4"] == p["Appendix E"] else DOES_NOT_HOLD,
        f"For the inversions of coherence between Estonian and Hungarian §3.4 prints p = {p['§3.4']:.2f}, Appendix E "
        f"p = {p['Appendix E']:.2f}. {'Both' if below else 'Not both'} are below the level of Figure 2.",
        p,
    )


def _inverted_more_than_chance(p: pd.Series, inversions: pd.Series) -> str:
    """The verdict on printed p-values of inversions: whether these are more than chance, and in whose sense.

    They hold if unrelated rankings rarely have so many, and as published if the released test can give each p.
    """
    if (inversions.map(rankings.at_least) < design("significance level")).all():
        return HOLDS
    lowest, _, highest = rankings.released_null().p[inversions].T
    return AS_PUBLISHED if p.between(lowest - _HALF_DIGIT, highest + _HALF_DIGIT).all() else DOES_NOT_HOLD


@statement("b-english-ceiling", claim="B19")
def english_ceiling() -> Finding:
    low, high = (float(published.load("paper_b_judge_scores").query("where == '§3.3'")[end].item())
                 for end in ("low", "high"))  # fmt: skip
    n = int(design("conversations judged a model and language"))
    means = round((high - low) * n) + 1
    tied = _fewest_tied_pairs(rankings.N_MODELS, means)
    simulated = ceiling_inversions(low, high, n)
    # As many inversions as Appendix E prints for et–en come about where nothing differs between the languages.
    by_noise = (simulated >= printed("coherence", "et-en", "inversions", "Appendix E")).mean()
    return Finding(
        DOES_NOT_HOLD if by_noise > design("significance level") else HOLDS,
        f"§3.4 says of the same scores that the ceiling prevents meaningful rankings. Means of {n} whole scores from "
        f"{low:.2f} to {high:.2f} can take {means} values, so at least {tied} of 15 pairs of models tie. If all true "
        "means were the same in both languages and spread evenly over that range, there would be "
        f"{simulated.mean():.1f} inversions on average and five or more in {(simulated >= 5).mean():.0%} of cases "
        "(simulation, ties broken by order).",
        {"means": means, "tied": tied, "inversions": simulated.mean(), "five or more": (simulated >= 5).mean()},
    )


def _fewest_tied_pairs(models: int, values: int) -> int:
    each, more = divmod(models, values)
    return more * (each + 1) * each // 2 + (values - more) * each * (each - 1) // 2


def ceiling_inversions(low: float, high: float, n: int) -> np.ndarray:
    """Inversions between two languages in which six models have the same true means near the top score, (SIMULATED,).

    Scores are the top score or one less, n in each language. Means that tie are ranked in the order of the models,
    which is the same in both languages and drawn anew in each simulation.
    """
    generator = np.random.default_rng(SEED)
    lost = np.tile(np.ceil(high) - np.linspace(low, high, rankings.N_MODELS), (SIMULATED, 1))
    lost = generator.permuted(lost, axis=1)
    points = generator.binomial(n, lost, size=(2, SIMULATED, rankings.N_MODELS))
    ranks = points.argsort(axis=-1, kind="stable").argsort(axis=-1, kind="stable")
    one, other = np.triu_indices(rankings.N_MODELS, 1)
    order = ranks[..., one] < ranks[..., other]
    return (order[0] != order[1]).sum(axis=-1)


# --- the tests


@statement("b-lra-inversions", claim="B43")
def lra_inversions() -> Finding:
    rows = stability().query("metric == 'label recovery' and statistic == 'inversions' and where == 'Appendix E'")
    counts = rows.set_index("language_pairs")["high"].astype(int)
    p = pd.Series({pair: printed("label recovery", pair, "p", "Appendix E") for pair in counts.index})
    taus, chances = counts.map(rankings.tau_without_ties), counts.map(rankings.at_least)
    text = joined([f"{pair.replace('-', '–')} τ = {taus[pair]:.2f}" for pair in counts.index])
    return Finding(
        _inverted_more_than_chance(p, counts),
        f"The counts stand for {text}. Unrelated rankings have as many inversions or more with probability "
        f"{chances.min():.2f} to {chances.max():.2f}, so none of the counts is more than chance in that sense; nor is "
        "any τ different from 0 (b-with-confidence). The printed p compare with the shuffles of b-released-test.",
        {**{pair: taus[pair] for pair in counts.index}, "least chance": chances.min(), "most chance": chances.max(),
         "above average": int((counts > rankings.N_PAIRS / 2).sum())},
    )  # fmt: skip


@statement("b-lra-figure", claim="B23")
def lra_figure() -> Finding:
    pairs = ("et-fi", "et-hu", "fi-hu")
    shown, listed = (pd.Series({pair: int(printed("label recovery", pair, "inversions", where)) for pair in pairs})
                     for where in ("Figure 2", "Appendix E"))  # fmt: skip
    p = pd.Series({pair: printed("label recovery", pair, "p", "Appendix E") for pair in pairs})
    agree = (shown == listed).all() and (p < design("significance level")).all()
    chances = shown.map(rankings.at_least)
    return Finding(
        _inverted_more_than_chance(p, shown) if agree else DOES_NOT_HOLD,
        f"The counts are those of Appendix E in {(shown == listed).sum()} of 3 pairs, whose p there are "
        f"{joined([f'{value:.2f}' for value in p])}. Unrelated rankings have {shown.min()} or more inversions with "
        f"probability {chances.max():.2f} and {shown.max()} or more with {chances.min():.2f}, so none of the counts is "
        "more than chance in that sense (b-lra-inversions).",
        {"agree": int((shown == listed).sum()), "least chance": chances.min(), "most chance": chances.max()},
    )


_TEST = (
    "To assess whether observed order flips exceed chance, we run a permutation test (randomly reassigning language "
    "labels at the per-model level)"
)


@statement("b-released-test", where="Appendix E", printed=_TEST)
def released_test() -> Finding:
    null = rankings.released_null()
    return Finding(
        DOES_NOT_HOLD if null.significant > design("significance level") else HOLDS,
        "The released test shuffles the labels over the twelve rows of both languages and compares the models left "
        f"with one row in each, {null.models_compared:.2f} of six on average. So its shuffles have few inversions: "
        f"{null.inversions[5]:.1f} where five are observed, {null.inversions[9]:.1f} where nine are, while chance, in "
        f"the sense of unrelated rankings of six models, gives {rankings.N_PAIRS / 2}. Of all pairs of rankings, "
        f"which is what unrelated ones are drawn from, it calls {null.significant:.0%} significant at .05.",
        {"models": null.models_compared, "five": null.inversions[5], "nine": null.inversions[9],
         "significant": null.significant},
    )  # fmt: skip


@statement("b-swap-smallest-p", where="Appendix E", printed=_TEST)
def swap_smallest_p() -> Finding:
    _, p = rankings.swap_of_means()
    smallest = 2 / 2**rankings.N_MODELS
    rows = stability()[(stability()["statistic"] == "p") & (stability()["relation"] == "=")]
    below = rows[rows["high"] + _HALF_DIGIT < smallest]
    return Finding(
        DOES_NOT_HOLD if len(below) else HOLDS,
        "Read as an exchange of each model's two means, the test has 64 labellings, and exchanging all models changes "
        f"nothing: no p is below 2/64 = {smallest:.3f}. {len(below)} of {len(rows)} printed p-values are "
        f"({joined(sorted({f'{p:.2f}' for p in below['high']}))}). So these are not of this test.",
        {"smallest": smallest, "smallest found": float(p.min()), "printed below": len(below), "printed": len(rows)},
    )


@statement("b-swap-power", where="Appendix E", printed=_TEST)
def swap_power() -> Finding:
    inverted, p = rankings.swap_of_means()
    significant = int((p <= 0.05).sum())
    reversal = float(p[inverted == rankings.N_PAIRS].item())
    nine = p[inverted == 9]
    return Finding(
        DOES_NOT_HOLD if reversal > design("significance level") else HOLDS,
        f"The same reading, ranks as scores, all {len(p)} orders of six models: {significant} "
        f"({significant / len(p):.1%}) have p ≤ .05; nine inversions reach it in {(nine <= 0.05).sum()} of "
        f"{len(nine)} orders, the full reversal never (p = {reversal:.3f}), since exchanged labels reverse it too. "
        "The test cannot find what it is run for.",
        {"orders": len(p), "significant": significant, "reversal": reversal, "nine": int((nine <= 0.05).sum()),
         "orders of nine": len(nine)},
    )  # fmt: skip


@statement(
    "b-ties",
    where="Appendix E",
    printed="We aggregate per-language per-model means and compute rank correlations for each language pair",
)
def ties() -> Finding:
    equal = np.full(rankings.N_MODELS, 2.99)
    ranks = (-equal).argsort(kind="stable").argsort()
    broken, kept = kendall(ranks, ranks), kendall(equal, equal)
    test = swap_means(equal, equal)
    return Finding(
        HOLDS if np.isclose(broken.value, kept.value, equal_nan=True) else AS_PUBLISHED,
        "The released code gives models with equal means different ranks, in the order of the table, which is the same "
        f"in every language. Six models with equal means in both languages then have τ = {broken.value:.0f} and no "
        f"inversion. Here τ-b is undefined ({kept.reason}), and so is the test.",
        {"ties broken": broken.value, "ties kept": kept.value, "p": test.tau},
    )


@statement("b-judge-scores", claim="B18")
def judge_scores() -> Finding:
    missing = published.load("not_transcribed").query("paper == 'B' and item.str.startswith('Table')")
    cells = [item for item in missing["item"] if item in ("Table 1", "Table 8", "Table 11", "Table 12")]
    return Finding(
        CANNOT_BE_CHECKED,
        f"The judge's scores are not released, and the cells of {joined(cells)} are not transcribed here. "
        "Needed: the scores by dialogue, or the judge (`judges` in params/paper.yaml, a paid model) and the dialogues.",
        {"tables without cells": len(cells)},
    )
