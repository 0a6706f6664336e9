"""Paper B's tables: rank stability over a grid of metrics and language pairs, and what is printed beside ours."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

from xlc_utils.judges import automatic, human
from xlc_utils.judges.released import LANGUAGES
from xlc_utils.judges.rubric import NOT_JUDGED
from xlc_utils.registry.outcomes import Outcome, with_outcomes
from xlc_utils.statistics.holm import holm
from xlc_utils.statistics.stability import RankStability, kendall, rank_stability

NOTE = (
    "tau: Kendall's tau-b; low, high: its 95% interval, what the `settled` of all pairs of models leave open (order "
    "the same or opposite in both languages by t tests, Holm), wide where models nearly tie; draws_low, draws_high: "
    "95% of the bootstrap draws over dialogues (prompts), the paper's interval, which holds the truth less often where "
    "models nearly tie (43 to 86% in simulation, benchmarks/statistics_simulation.csv); inversions of all pairs; "
    "p_models: language labels swapped within models, exact; p_items: swapped dialogue by dialogue, Monte Carlo, "
    "(k+1)/(n+1); p_items_holm over the table; rho_low, rho_high: what the settled pairs leave of Spearman's rho; "
    "n_first, n_second: the scores used in the first and the second language, over all models."
)


# What `stability_row` gives.
COLUMNS = [
    "tau", "low", "high", "settled", "draws_low", "draws_high", "rho", "rho_low", "rho_high", "inversions", "tied",
    "pairs", "p_models", "p_items", "models", "n_first", "n_second", "reason",
]  # fmt: skip


def stability_row(
    first: np.ndarray, second: np.ndarray, paired: bool, samples: int, permutations: int, seed: int
) -> dict:
    """One row of paper B's Table 11 for two arrays (models, items)."""
    found = rank_stability(first, second, paired=paired, seed=seed, samples=samples, permutations=permutations)
    return {
        "tau": found.tau.value,
        "low": found.tau_interval[0],
        "high": found.tau_interval[1],
        "settled": found.settled.concordant + found.settled.discordant,
        "draws_low": found.tau_draws[0],
        "draws_high": found.tau_draws[1],
        "rho": found.rho.value,
        "rho_low": found.rho_interval[0],
        "rho_high": found.rho_interval[1],
        "inversions": found.inversions.inverted,
        "tied": found.inversions.tied,
        "pairs": found.inversions.pairs,
        "p_models": found.swap_models.inversions if found.swap_models else np.nan,
        "p_items": found.swap_items.inversions,
        "models": found.tau.n,
        "n_first": found.scores[0],
        "n_second": found.scores[1],
        "reason": _reason(found),
    }


def _with_holm(rows: list[dict], names: list[str]) -> pd.DataFrame:
    """The rows, which may be none, with p_items_holm over all of them; ``names``: the columns before `COLUMNS`."""
    table = pd.DataFrame(rows, columns=[*names, *COLUMNS])
    return table.assign(p_items_holm=holm(table["p_items"].to_numpy(float)))


def _reason(found: RankStability) -> str:
    return found.tau.reason or found.rho.reason


def stability_grid(metrics: pd.DataFrame, samples: int, permutations: int, seed: int) -> pd.DataFrame:
    """Rank stability of each automatic metric for each pair of languages.

    Args:
        metrics: as `automatic.read_metrics` or `automatic.measure_generated` gives them.

    Returns:
        metric, pair and the columns of `stability_row`, with p_items_holm; no rows of a single language.
    """
    rows = []
    found = set(metrics["language"])
    pairs = automatic.LANGUAGE_PAIRS if found == set(LANGUAGES) else list(combinations(sorted(found), 2))
    for metric in automatic.SURFACE:
        matrices = automatic.score_matrices(metrics, metric)
        for a, b in pairs:
            paired = automatic.paired(metrics, a, b)
            row = stability_row(matrices[a], matrices[b], paired, samples, permutations, seed)
            rows.append({"metric": metric, "pair": f"{a}–{b}", **row})
    return _with_holm(rows, ["metric", "pair"])


def for_plot(table: pd.DataFrame) -> pd.DataFrame:
    """`stability_grid` or `judge_stability` as `figures.stability_plot` takes it.

    Of several judges every dimension is a metric of each judge. The figure's p is Holm's, since it shows many at once.
    """
    points = table.rename(columns={"low": "lo", "high": "hi"}).assign(p=table["p_items_holm"])
    if "judge" in points and points["judge"].nunique() > 1:
        points["metric"] = points["metric"] + ", " + points["judge"]
    return points


#: This repository's evaluators: their item-level tables are called as they are, with the score of a prompt in a column.
EVALUATORS = {"information": "f", "empathy": "consistent"}


def own_evaluators(run, samples: int, permutations: int) -> pd.DataFrame:
    """The same statistics for this repository's evaluators: do their scores rank a run's systems alike?

    Known answers are no system and are left out. Every prompt was asked in every language, so languages are paired.

    Args:
        run: the notebook's run.

    Returns:
        dimension, pair and the columns of `stability_row`, with p_items_holm, one row an evaluator and pair of the
        run's languages; no rows without a system.
    """
    systems = [m for m in run.model_names if m != "known-answers"]
    rows = []
    for dimension, column in EVALUATORS.items() if systems else ():
        scores = pd.concat([run.read(dimension, m).assign(model=m) for m in systems], ignore_index=True)
        for a, b in combinations(run.params.languages, 2):
            first, second = (_matrix(scores[scores["language"] == c], systems, column) for c in (a, b))
            row = stability_row(first, second, True, samples, permutations, run.params.seed)
            rows.append({"dimension": dimension, "pair": f"{a}–{b}", **row})
    return _with_holm(rows, ["dimension", "pair"])


def _matrix(scores: pd.DataFrame, systems: list[str], column: str) -> np.ndarray:
    wide = scores.pivot(index="model", columns="prompt_id", values=column)
    return wide.reindex(index=systems, columns=sorted(wide.columns)).to_numpy(float)


def ranges_beside_printed(means: pd.DataFrame, as_published: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    """Ranges of the automatic metrics as printed, beside the same ranges over our means.

    Args:
        means: `automatic.model_means`, one uniform pipeline.
        as_published: `automatic.read_as_published`, the paper's pipeline re-run.
        printed: published paper_b_automatic_ranges.

    Returns:
        where, metric, languages, models, printed, as_published, corrected (texts "low–high").
    """
    columns = {
        "MATTR": ("MATTR", "mattr"),
        "TTR": ("TTR", "ttr"),
        "self-BLEU, whole dialogue": ("self-BLEU", "self_bleu_whole"),
        "self-BLEU, agent turns": ("self-BLEU, agent", "self_bleu_agent"),
    }
    short = {"Llama-3.1-8B": "Llama3-8B"}  # the released data names the generators differently
    rows = []
    for item in printed[printed["metric"].isin(columns)].itertuples():
        languages = item.languages.split(";")
        picked = [None if item.models == "all" else short.get(item.models, item.models)]
        ours = [
            _range(frame, languages, picked[0], column)
            for frame, column in zip((means, as_published), columns[item.metric], strict=True)
        ]
        rows.append(
            {
                "where": item.where,
                "metric": item.metric,
                "languages": item.languages,
                "models": item.models,
                "printed": f"{item.low:.2f}–{item.high:.2f}",
                "as_published": ours[1],
                "corrected": ours[0],
            }
        )
    return pd.DataFrame(rows)


def _range(frame: pd.DataFrame, languages: list[str], model: str | None, column: str) -> str:
    rows = frame[frame["language"].isin(languages)]
    values = rows.loc[rows["model"] == model, column] if model else rows[column]
    return f"{values.min():.2f}–{values.max():.2f}"


def lemmatiser_effect(means: pd.DataFrame) -> pd.DataFrame:
    """How far the ranking of models hangs on the lemmatiser: each against simplemma, in each language.

    Args:
        means: `automatic.read_lemmatiser_means`.

    Returns:
        language, lemmatiser; for ttr, mattr and self_bleu: largest change of a model's mean, tau-b of the two rankings.
    """
    columns = ["ttr", "mattr", "self_bleu"]
    rows = []
    for language, own in means.groupby("language", sort=False):
        by_name = {name: group.set_index("model")[columns] for name, group in own.groupby("lemmatiser", sort=False)}
        for name in by_name.keys() - {"simplemma"}:
            first, second = by_name["simplemma"], by_name[name].reindex(by_name["simplemma"].index)
            changes = {f"{c}_change": (second[c] - first[c]).abs().max() for c in columns}
            taus = {f"{c}_tau": kendall(first[c].to_numpy(), second[c].to_numpy()).value for c in columns}
            rows.append({"language": language, "lemmatiser": name, **changes, **taus})
    return pd.DataFrame(rows).sort_values(["language", "lemmatiser"], ignore_index=True)


def kappa_beside_printed(ratings: pd.DataFrame, printed: pd.DataFrame, samples: int, seed: int) -> pd.DataFrame:
    """Fleiss' kappa of the three annotators that give the printed values, and Krippendorff's alpha.

    Returns:
        question, printed, as_published (the authors' formula), corrected (each dialogue's own number of ratings), low,
        high, alpha (Krippendorff, interval), alpha_low, alpha_high, n_dialogues.
    """
    intervals = human.kappa_intervals(ratings, seed=seed, samples=samples).set_index(["question", "coefficient"])
    kappas = printed[printed["statistic"] == "kappa"].drop_duplicates("dimension").set_index("dimension")["value"]
    rows = []
    for question in human.QUESTIONS:
        fleiss, alpha = (intervals.loc[(question, c)] for c in ("fleiss", "krippendorff_interval"))
        rows.append(
            {
                "question": question,
                "printed": kappas[question],
                "as_published": human.fleiss_as_published(human.rating_matrix(ratings, question)),
                "corrected": fleiss["value"],
                "low": fleiss["low"],
                "high": fleiss["high"],
                "alpha": alpha["value"],
                "alpha_low": alpha["low"],
                "alpha_high": alpha["high"],
                "n_dialogues": int(fleiss["n_dialogues"]),
            }
        )
    return pd.DataFrame(rows)


def printed_stability(stable: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    """Each printed statement about rank stability, and for the surface metrics what the released dialogues give.

    Only the sentence about surface metrics ("τ ≥ 0.76", §1) can be held against the automatic metrics: all others are
    about judge scores, which were not released.

    Returns:
        where, metric, language_pairs, printed, ours (smallest tau and how many of how many reach the bound).
    """
    finno_ugric = stable[stable["pair"].isin(["et–fi", "et–hu", "fi–hu"])]
    ours = []
    for item in printed.itertuples():
        if item.metric == "surface metrics" and item.statistic == "tau":
            reach, smallest = int((finno_ugric["tau"] >= item.low).sum()), finno_ugric["tau"].min()
            ours.append(f"{reach} of {len(finno_ugric)} metric-pair cells reach it; smallest tau {smallest:.2f}")
        else:
            ours.append("")
    table = printed[["where", "metric", "language_pairs", "statistic", "printed"]].assign(ours=ours)
    return table.replace({"ours": {"": np.nan}})


JUDGED = {"G": "grammar", "R": "readability", "C": "coherence", "F": "fluency", "LRA": "label recovery"}


def judge_means(scores: pd.DataFrame) -> pd.DataFrame:
    """Paper B's Tables 1 and 8: mean of each score by judge, language and generator, and how the replies ended.

    Args:
        scores: rows of `rubric.judge_dialogues`, with a column LRA where labels were recovered.

    Returns:
        judge, language, generator; means; n (dialogues), the outcomes that occur, which sum to n, scored (the means of
        G, R, C and F are over these); no_dialogue (of n, not judged: the generator gave no turns, and the outcome is
        the dialogue's); labels_scored (the mean of LRA is over these), where labels were recovered.
    """
    keys = ["judge", "language", "generator"]
    items = scores.assign(
        scored=scores["outcome"] == Outcome.OK, no_dialogue=scores["detail"].str.startswith(NOT_JUDGED)
    )
    groups = items.groupby(keys, sort=False)
    counts = {"no_dialogue": ("no_dialogue", "sum")} | ({"labels_scored": ("LRA", "count")} if "LRA" in items else {})
    means = groups[[c for c in JUDGED if c in items]].mean().reset_index()
    return with_outcomes(means, items, on=keys).merge(groups.agg(**counts).reset_index(), on=keys)


def judge_stability(scores: pd.DataFrame, samples: int, permutations: int, seed: int) -> pd.DataFrame:
    """Paper B's Table 11: rank stability of each judged dimension, judge and pair of languages.

    Dialogues of one draw of parameters are the same item in every language, so languages are paired. A single language
    gives no rows.
    """
    rows = []
    for judge, own in scores.groupby("judge", sort=False):
        languages = list(dict.fromkeys(own["language"]))
        for metric, name in JUDGED.items():
            if metric not in own:
                continue
            arrays = {c: _generators_by_draw(own, c, metric) for c in languages}
            rows += [
                {
                    "judge": judge,
                    "metric": name,
                    "pair": f"{a}–{b}",
                    **stability_row(arrays[a], arrays[b], True, samples, permutations, seed),
                }
                for a, b in combinations(languages, 2)
            ]
    return _with_holm(rows, ["judge", "metric", "pair"])


def _generators_by_draw(scores: pd.DataFrame, language: str, metric: str) -> np.ndarray:
    generators, draws = sorted(scores["generator"].unique()), sorted(scores["dialogue_id"].unique())
    own = scores[scores["language"] == language]
    wide = own.pivot(index="generator", columns="dialogue_id", values=metric)
    return wide.reindex(index=generators, columns=draws).to_numpy(float)
