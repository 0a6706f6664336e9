"""From scores a prompt to paper A's tables: consistency by language, and averaged by script, family and training data.

Both dimensions come this way. Information passes precision and recall and is scored by F of their means; a dimension
with one score a prompt (empathy, or any other) passes that score alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from xlc_utils.registry.languages import Language
from xlc_utils.registry.models import Registry, in_training
from xlc_utils.statistics import groups, intervals

SCRIPTS = ("Latin", "Indic", "PArab", "Oth1")  # as the columns of paper A's averaged table are headed
FAMILIES = ("Rom", "Slav", "IA", "Drav", "Oth2")
TRAINING = ("In", "Out")


@dataclass(frozen=True)
class Scores:
    """Scores of one dimension.

    Attributes:
        models, languages, prompt_ids: what the axes stand for.
        parts: (precision, recall) or (score,), arrays (models, languages, prompts), NaN where not scored.
    """

    models: tuple[str, ...]
    languages: tuple[str, ...]
    prompt_ids: tuple[str, ...]
    parts: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, frame: pd.DataFrame, columns: Sequence[str], models: Sequence[str], languages: Sequence[str]) -> Scores:
        """From rows model, language, prompt_id and the score columns; prompts are sorted by id, so that the same rows
        in another order give the same draws. Without any rows there is one prompt "" that nobody has a score for."""
        ids = sorted(frame["prompt_id"].unique()) or [""]
        index = pd.MultiIndex.from_product([models, languages])
        shape = (len(models), len(languages), len(ids))
        parts = tuple(
            frame.pivot(index=["model", "language"], columns="prompt_id", values=c)
            .reindex(index=index, columns=ids)
            .to_numpy(float)
            .reshape(shape)
            for c in columns
        )
        return cls(tuple(models), tuple(languages), tuple(ids), parts)

    def values(self, weights: np.ndarray) -> np.ndarray:
        """(n_weights, models, languages): paper A's consistency C(ℓ) under each row of prompt weights."""
        if len(self.parts) == 2:
            return intervals.f_of_means(*self.parts, weights)
        return intervals.weighted_means(self.parts[0], weights)

    @property
    def n(self) -> np.ndarray:
        """Prompts scored, (models, languages)."""
        return (~np.isnan(self.parts[0])).sum(-1)


def by_language(scores: Scores, samples: int, seed: int) -> pd.DataFrame:
    """Consistency of each model and language with its 95% interval over prompts (paper A, the two heatmaps).

    Returns:
        model, language, value, low, high, n (prompts scored).
    """
    make = intervals.f_interval if len(scores.parts) == 2 else intervals.mean_interval
    found = make(*scores.parts, seed=seed, samples=samples)
    index = pd.MultiIndex.from_product([scores.models, scores.languages], names=["model", "language"])
    columns = {"value": found.estimate, "low": found.low, "high": found.high, "n": scores.n}
    return pd.DataFrame({k: v.ravel() for k, v in columns.items()}, index=index).reset_index()


def averaged(
    scores: Scores, languages: dict[str, Language], registry: Registry, samples: int, seed: int
) -> pd.DataFrame:
    """Paper A's averaged table: means over the languages of each group, each with a 95% interval over prompts.

    Every resample draws the same prompts for all languages and models. Languages without a score are left out of
    their group's mean and ``n_languages`` says how many are in it.

    Returns:
        model, group_kind (average | script | family | training), group, value, low, high, n_languages; a group with no
        language at hand has no row.
    """
    ones = np.ones((1, len(scores.prompt_ids)))
    draws = scores.values(intervals.bootstrap_weights(len(scores.prompt_ids), samples, seed))
    values, rows = scores.values(ones)[0], []
    for m, model in enumerate(scores.models):
        kinds, names, members = zip(*memberships(model, scores.languages, languages, registry), strict=True)
        found = groups.macro_interval(values[m], draws[:, m], np.array(members), ignore_missing=True)
        # One prompt says nothing about how the average would move with other prompts.
        several = (~np.isnan(scores.parts[0][m])).any(0).sum() > 1
        low, high = (found.low, found.high) if several else np.full((2, len(names)), np.nan)
        for i, (kind, name) in enumerate(zip(kinds, names, strict=True)):
            if found.n[i]:
                rows.append(
                    {
                        "model": model,
                        "group_kind": kind,
                        "group": name,
                        "value": found.estimate[i],
                        "low": low[i],
                        "high": high[i],
                        "n_languages": int(found.n[i]),
                    }
                )
    return pd.DataFrame(rows, columns=["model", "group_kind", "group", "value", "low", "high", "n_languages"])


def memberships(model: str, codes: Sequence[str], languages: dict[str, Language], registry: Registry):
    """(kind, group, which of ``codes`` are in it) of every column of paper A's averaged table."""
    yield "average", "Avg", [True] * len(codes)
    for name in SCRIPTS:
        key = "PArb" if name == "PArab" else name  # the appendix spells the group so
        yield "script", name, [languages[c].paper_a.script_group == key for c in codes]
    for name in FAMILIES:
        yield "family", name, [languages[c].paper_a.family == name for c in codes]
    stated = in_training(registry.models[model], codes) if model in registry.models else None
    for name, part in zip(TRAINING, stated or ((), ()), strict=True):
        yield "training", name, [c in part for c in codes]


def rule_effects(
    scores: pd.DataFrame,
    columns: Sequence[str],
    models: Sequence[str],
    languages: dict[str, Language],
    registry: Registry,
    codes: Sequence[str],
) -> pd.DataFrame:
    """How many responses of each cell of the averaged table are not scored from a text that is ok, and what the cell
    would be if all of them scored 0, or were all left out. A prompt without an English answer counts in neither.

    Args:
        scores: model, language, prompt_id, outcome, reason and the score columns.
        columns: ("precision", "recall") or ("score",).
        models, codes: systems and languages in order.
        languages, registry: for the groups.

    Returns:
        model, group_kind, group, responses, concerned, value, if_scored_0, if_left_out.
    """
    counted = ~scores["reason"].str.startswith("no English")
    concerned = counted & ((scores["outcome"] != "ok") | (scores["reason"] != ""))
    variants = {"value": scores, "if_scored_0": scores.copy(), "if_left_out": scores.copy()}
    variants["if_scored_0"].loc[concerned, list(columns)] = 0.0
    variants["if_left_out"].loc[concerned, list(columns)] = np.nan
    made = {name: Scores.of(frame, columns, models, codes) for name, frame in variants.items()}
    values = {name: s.values(np.ones((1, len(s.prompt_ids))))[0] for name, s in made.items()}
    counts = {
        name: pd.crosstab(scores.loc[rows, "model"], scores.loc[rows, "language"]).reindex(
            index=models, columns=codes, fill_value=0
        )
        for name, rows in (("responses", counted), ("concerned", concerned))
    }
    rows = []
    for m, model in enumerate(models):
        kinds, names, members = zip(*memberships(model, codes, languages, registry), strict=True)
        inside = np.array(members)
        means = {name: groups.macro_average(v[m], inside, ignore_missing=True) for name, v in values.items()}
        sums = {name: inside.astype(int) @ table.loc[model].to_numpy(int) for name, table in counts.items()}
        for i, (kind, name) in enumerate(zip(kinds, names, strict=True)):
            if inside[i].any():
                who = {"model": model, "group_kind": kind, "group": name}
                rows.append({**who, **{k: int(n[i]) for k, n in sums.items()}, **{k: v[i] for k, v in means.items()}})
    return pd.DataFrame(rows)


def differences(scores: Scores, samples: int, seed: int) -> pd.DataFrame:
    """Which differences between models in average consistency hold, over the prompts and languages both have.

    Returns:
        model, other, difference, low, high, p (two-sided, prompts resampled for both alike), p_holm; where they share
        fewer than two prompts only the difference is known.
    """
    from itertools import combinations

    from xlc_utils.statistics.holm import holm

    weights, rows = intervals.bootstrap_weights(len(scores.prompt_ids), samples, seed), []
    for a, b in combinations(range(len(scores.models)), 2):
        both = _shared(scores, a, b)
        there = both.n[0] > 0
        if not there.any():
            continue
        first, second = both.values(np.ones((1, len(scores.prompt_ids))))[0][:, there]
        seen = float((first - second).mean())
        draws = both.values(weights)[:, :, there]
        # A draw in which some language has no scored prompt says nothing about the difference.
        drawn = (draws[:, 0] - draws[:, 1]).mean(axis=1)
        drawn = drawn[~np.isnan(drawn)]
        low = high = p = np.nan
        if (~np.isnan(both.parts[0][0])).any(0).sum() > 1 and len(drawn):
            low, high = np.percentile(drawn, [2.5, 97.5])
            # A hair's breadth below |seen|: a draw that equals it but for rounding counts as extreme.
            p = (np.sum(np.abs(drawn - seen) >= abs(seen) * (1 - 1e-12)) + 1) / (len(drawn) + 1)
        rows.append((scores.models[a], scores.models[b], seen, low, high, p))
    frame = pd.DataFrame(rows, columns=["model", "other", "difference", "low", "high", "p"])
    return frame.assign(p_holm=holm(frame["p"].to_numpy(float)) if len(frame) else [])


def _shared(scores: Scores, a: int, b: int) -> Scores:
    """Two models alone, with the prompts of each language that both have a score for."""
    pairs = [part[[a, b]] for part in scores.parts]
    missing = np.any([np.isnan(pair).any(axis=0) for pair in pairs], axis=0)
    parts = tuple(np.where(missing, np.nan, pair) for pair in pairs)
    return Scores((scores.models[a], scores.models[b]), scores.languages, scores.prompt_ids, parts)


def wide(table: pd.DataFrame) -> pd.DataFrame:
    """`averaged` as the paper prints it, one row a model, "value [low, high]" in each cell."""
    from xlc_utils.reporting.tables import cell

    order = ["Avg", *SCRIPTS, *FAMILIES, *TRAINING]
    texts = [cell(*row) for row in table[["value", "low", "high"]].itertuples(index=False)]
    out = table.assign(text=texts).pivot(index="model", columns="group", values="text")
    out = out.reindex(index=list(dict.fromkeys(table["model"])), columns=order).astype(object).fillna("–")
    return out.reset_index().rename_axis(columns=None)
