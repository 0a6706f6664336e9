"""Paper A, *Found in Translation*, held against its own tables and what is publicly documented.

A printed value v stands for anything in [v − .005, v + .005]. Means of printed values therefore agree with a printed
mean if they differ by no more than .01.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pandas as pd
from scipy.optimize import linprog
from scipy.stats import chi2_contingency

from xlc_utils.registry import languages, models
from xlc_utils.registry.files import project_root
from xlc_utils.reporting import published
from xlc_utils.reporting.audit.entries import (
    AS_PUBLISHED,
    CANNOT_BE_CHECKED,
    DOES_NOT_HOLD,
    HOLDS,
    Finding,
    joined,
    statement,
)
from xlc_utils.reporting.compare import printed_averages
from xlc_utils.statistics.intervals import wilson_interval
from xlc_utils.statistics.stability import inversions, spearman

DIMENSIONS = ("information", "empathy")
SCRIPTS = ("Latin", "Indic", "PArab", "Oth1")
FAMILIES = ("Rom", "Slav", "IA", "Drav", "Oth2")
PROPRIETARY = ("gemini-2.0-lite", "gemini-2.0", "gpt-4o-mini", "gpt-4o")
#: The smaller and the larger model of each maker.
SIZES = {
    "aya-exp-8b": "aya-exp-32b",
    "gemma-2-9b": "gemma-2-27b",
    "Llama-3.1-8B": "Llama-3.3-70B",
    "Qwen-2.5-14B": "Qwen-2.5-72B",
    "gemini-2.0-lite": "gemini-2.0",
    "gpt-4o-mini": "gpt-4o",
}
HALF_DIGIT = 0.005
WITHIN = 0.01 + 1e-9
# Far below two printed digits: takes away what binary fractions add to differences of decimals.
SLACK = 1e-9


@lru_cache
def cells() -> pd.DataFrame:
    """The printed averaged scores: (dimension, model) by group."""
    table = published.load("paper_a_averaged_scores")
    return table.pivot(index=["dimension", "model"], columns="group", values="value")


def averages(dimension: str) -> pd.Series:
    return cells().loc[dimension, "Avg"]


def is_proprietary(table: pd.DataFrame | pd.Series) -> np.ndarray:
    return table.index.get_level_values("model").isin(PROPRIETARY)


def design(quantity: str) -> float:
    """A number of the printed design that has this name once or with one value."""
    table = published.load("paper_a_design")
    return float(table.loc[table["quantity"] == quantity, "value"].unique().item())


# --- the averaged table and itself


@statement(
    "a-group-means",
    where="Table 4",
    printed="Averaged consistency scores for information (top) and empathy (bottom) consistency.",
)
def group_means() -> Finding:
    table = printed_averages(published.load("paper_a_averaged_scores"))
    script, family = int(table["script_within"].sum()), int(table["family_within"].sum())
    largest = max((table[f"by_{kind}"] - table["Avg"]).abs().max() for kind in ("script", "family"))
    unweighted = int(((cells()[list(SCRIPTS)].mean(axis=1) - cells()["Avg"]).abs() > WITHIN).sum())
    return Finding(
        HOLDS if script == family == len(table) else DOES_NOT_HOLD,
        f"Weighted by their numbers of languages, the script means agree with Avg in {script} of {len(table)} rows and "
        f"the family means in {family}; the largest difference is {largest:.3f}. Unweighted script means would differ "
        f"by more than .01 in {unweighted} rows, so the check can fail.",
        {"rows": len(table), "script": script, "family": family, "largest": largest, "unweighted": unweighted},
    )


@statement("a-thirty-languages", claim="A01")
def thirty_languages() -> Finding:
    grouped = [language.paper_a for language in _paper_languages().values()]
    scripts, families = sum(g.script_group is not None for g in grouped), sum(g.family is not None for g in grouped)
    return Finding(
        HOLDS if scripts == families == design("languages other than English") else DOES_NOT_HOLD,
        f"The printed groups hold {scripts} languages by script (Table 11) and {families} by family (Table 12), each "
        "language once.",
        {"by script": scripts, "by family": families},
    )


@lru_cache
def _paper_languages() -> dict[str, languages.Language]:
    """The languages of paper A by code."""
    return {code: found for code, found in languages.load(project_root()).items() if found.paper_a.family}


@statement(
    "a-in-out",
    where="Table 4",
    printed="For each model, we also group languages by if they were explicitly included in the training data or not.",
)
def in_out() -> Finding:
    rows = cells().dropna(subset=["In", "Out"])
    stated = np.array([len(_stated(model)) for _, model in rows.index])
    implied = (stated * rows["In"] + (len(_paper_languages()) - stated) * rows["Out"]) / len(_paper_languages())
    difference = (implied - rows["Avg"]).abs()
    agree = int((difference <= WITHIN).sum())
    counts = dict(zip((model for _, model in rows.index), stated.tolist(), strict=True))
    return Finding(
        HOLDS if agree == len(rows) else DOES_NOT_HOLD,
        f"With the languages that the makers state ({counts['aya-exp-8b']} of 30 for Aya, {counts['Llama-3.1-8B']} for "
        f"Llama, {counts['Qwen-2.5-14B']} for Qwen, {counts['gemini-2.0']} for Gemini), In and Out average to Avg in "
        f"{agree} of {len(rows)} rows; the largest difference is {difference.max():.3f}. For Gemma 2 and GPT-4o, whose "
        "makers name no languages, the columns are empty.",
        {"rows": len(rows), "agree": agree, "largest": difference.max(), **counts},
    )


def _stated(model: str) -> tuple[str, ...]:
    """Languages of paper A that the maker of a model says it was trained on."""
    return models.in_training(models.load(project_root()).model(model), _paper_languages())[0]


@statement("a-in-above-out", claim="A23")
def in_above_out() -> Finding:
    rows = cells().dropna(subset=["In", "Out"])
    above = int((rows["In"] > rows["Out"]).sum())
    return Finding(
        HOLDS if above == len(rows) else DOES_NOT_HOLD,
        f"In is above Out in {above} of the {len(rows)} rows that have both (8 of the 12 models).",
        {"rows": len(rows), "above": above},
    )


@statement("a-training-gap", claim="A24")
def training_gap() -> Finding:
    gap = (cells()["In"] - cells()["Out"]).dropna().round(2)
    makers = gap.groupby([gap.index.get_level_values(0), gap.index.get_level_values(1).str.split("-").str[0]])
    mean = makers.mean().unstack(0)
    holds = (mean.idxmax() == "aya").all() and (mean.idxmin() == "gemini").all()
    return Finding(
        HOLDS if holds else DOES_NOT_HOLD,
        "In − Out, mean of the two models of a maker: "
        + "; ".join(
            f"{d}: " + ", ".join(f"{m} {mean.loc[m, d]:.3f}" for m in ("aya", "Llama", "Qwen", "gemini"))
            for d in DIMENSIONS
        )
        + ". Aya's is the largest and Gemini's the smallest in both.",
        {f"{m} {d}": mean.loc[m, d] for m in mean.index for d in DIMENSIONS},
    )


@statement("a-shade-gpt4o", where="Table 4", printed=r"\cellcolor{lightgray!70}0.68")
def shade_gpt4o() -> Finding:
    return _shades("gpt-4o", "information")


@statement("a-shade-gemma", where="Table 4", printed=r"\cellcolor{lightgray!36}0.39")
def shade_gemma() -> Finding:
    return _shades("gemma-2-9b", "information")


def _shades(model: str, dimension: str) -> Finding:
    """Which of value and shade, where they differ in a row, agrees with the other cells of the row."""
    table = published.load("paper_a_averaged_scores")
    differing = table[(table["value"] * 100).round() != table["shade"]]
    own = differing[(differing["model"] == model) & (differing["dimension"] == dimension)]
    as_shaded = table.assign(value=table["value"].where(~table.index.isin(own.index), table["shade"] / 100))
    agrees = {name: _row_agrees(values, dimension, model) for name, values in (("value", table), ("shade", as_shaded))}
    decided = agrees["value"] and not agrees["shade"]
    return Finding(
        HOLDS if decided else CANNOT_BE_CHECKED,
        f"In the source each cell is shaded by a hundred times its value; {len(differing)} of {len(table)} cells "
        f"differ from that, {len(own)} of them in the row {model}, {dimension} ({joined(list(own['group']))}). With "
        f"the printed values the row's group means {_do(agrees['value'])} agree with its Avg; with the shades they "
        f"{_do(agrees['shade'])}. "
        + ("So the printed values stand." if decided else "Which of the two is meant cannot be told from the table."),
        {
            "cells": len(table),
            "differing": len(differing),
            "in the row": len(own),
            "value agrees": agrees["value"],
            "shade agrees": agrees["shade"],
        },
    )


def _row_agrees(table: pd.DataFrame, dimension: str, model: str) -> bool:
    row = printed_averages(table).set_index(["dimension", "model"]).loc[(dimension, model)]
    return bool(row["script_within"] and row["family_within"])


def _do(yes: bool) -> str:
    return "do" if yes else "do not"


# --- what the text says of it


@statement("a-best-proprietary", claim="A12")
def best_proprietary() -> Finding:
    average = averages("information")
    closed = average[list(PROPRIETARY)].sort_values(ascending=False)
    named, best = closed["gpt-4o-mini"], closed.index[0]
    return Finding(
        HOLDS if best == "gpt-4o-mini" else DOES_NOT_HOLD,
        f"In Table 4 the best proprietary model is {best} with {closed.iloc[0]:.2f}; gpt-4o-mini has {named:.2f}, the "
        f"lowest of the four. The number of the text is that of {best}; gemma-2-27b's {average['gemma-2-27b']:.2f} is "
        "as printed. No test of significance is printed.",
        {"best": closed.iloc[0], "named": named, "rank of named": int((closed > named).sum()) + 1},
    )


@statement("a-best-empathy", claim="A13")
def best_empathy() -> Finding:
    average = averages("empathy")
    closed, open_ = average[is_proprietary(average)], average[~is_proprietary(average)]
    holds = (closed.idxmax(), open_.idxmax()) == ("gpt-4o", "aya-exp-32b")
    return Finding(
        HOLDS if holds else DOES_NOT_HOLD,
        f"Table 4: {closed.idxmax()} {closed.max():.2f}, {open_.idxmax()} {open_.max():.2f}.",
        {"proprietary": closed.max(), "open-weight": open_.max()},
    )


@statement("a-gap-empathy", claim="A14")
def gap_empathy() -> Finding:
    gaps = {d: _best_gap(averages(d)) for d in DIMENSIONS}
    return Finding(
        HOLDS if gaps["empathy"] > gaps["information"] else DOES_NOT_HOLD,
        f"Best proprietary minus best open-weight model: information {gaps['information']:.2f}, empathy "
        f"{gaps['empathy']:.2f} (Table 4).",
        gaps,
    )


def _best_gap(average: pd.Series) -> float:
    closed = is_proprietary(average)
    return round(average[closed].max() - average[~closed].max(), 2)


@statement("a-open-below-proprietary-information", claim="A11")
def open_below_proprietary_information() -> Finding:
    return _open_below_proprietary("information")


@statement("a-open-below-proprietary-empathy", claim="A11")
def open_below_proprietary_empathy() -> Finding:
    return _open_below_proprietary("empathy")


def _open_below_proprietary(dimension: str) -> Finding:
    average = averages(dimension)
    open_, worst = average[~is_proprietary(average)], average[is_proprietary(average)].min()
    below, not_below = int((open_ < worst).sum()), open_[open_ >= worst]
    rest = f"; {joined(list(not_below.index))} are not" if len(not_below) else ""
    return Finding(
        HOLDS if below >= len(open_) - 1 else DOES_NOT_HOLD,
        f"{dimension.capitalize()}: {below} of the {len(open_)} open-weight models are below the lowest proprietary "
        f"model ({worst:.2f}){rest}.",
        {"open-weight": len(open_), "below all proprietary": below, "lowest proprietary": worst},
    )


@statement("a-open-gap-by-script", claim="A29")
def open_gap_by_script() -> Finding:
    closed = is_proprietary(cells())
    means = {kind: cells()[mask].groupby("dimension").mean() for kind, mask in (("closed", closed), ("open", ~closed))}
    gap = means["closed"] - means["open"]
    holds = (gap["Indic"] > gap["Latin"]).all() and (gap["Drav"] > gap["Rom"]).all() and (gap["Avg"] > 0).all()
    text = "; ".join(f"{d}: " + ", ".join(f"{g} {gap.loc[d, g]:.2f}" for g in ("Latin", "Indic", "Rom", "Drav"))
                     for d in DIMENSIONS)  # fmt: skip
    return Finding(
        HOLDS if holds else DOES_NOT_HOLD,
        f"Mean of the four proprietary minus mean of the eight open-weight models: {text}.",
        {f"{d} {g}": gap.loc[d, g] for d in DIMENSIONS for g in ("Latin", "Indic", "Rom", "Drav")},
    )


@statement("a-gpt4o-above-mini", claim="A15")
def gpt4o_above_mini() -> Finding:
    gains = {d: round(averages(d)["gpt-4o"] - averages(d)["gpt-4o-mini"], 2) for d in DIMENSIONS}
    return Finding(
        HOLDS if min(gains.values()) > 0 else DOES_NOT_HOLD,
        f"gpt-4o minus gpt-4o-mini: information +{gains['information']:.2f}, empathy +{gains['empathy']:.2f} (Table "
        "4).",
        gains,
    )


@statement("a-latin-information", claim="A16")
def latin_information() -> Finding:
    return _latin("information")


@statement("a-latin-empathy", claim="A16")
def latin_empathy() -> Finding:
    return _latin("empathy")


def _latin(dimension: str) -> Finding:
    rows = cells().loc[dimension]
    others = rows[["Indic", "PArab", "Oth1"]]
    ahead, above_indic = rows["Latin"] > others.max(axis=1), int((rows["Latin"] > rows["Indic"]).sum())
    exceptions = [f"{m} (Latin {rows.loc[m, 'Latin']:.2f}, {others.loc[m].idxmax()} {others.loc[m].max():.2f})"
                  for m in rows.index[~ahead]]  # fmt: skip
    return Finding(
        HOLDS if ahead.all() else DOES_NOT_HOLD,
        f"{dimension.capitalize()}: Latin is the highest of the four script groups for {ahead.sum()} of {len(rows)} "
        f"models{'; not for ' + joined(exceptions) if exceptions else ''}. It is above Indic for {above_indic}.",
        {"models": len(rows), "Latin highest": int(ahead.sum()), "Latin above Indic": above_indic},
    )


@statement("a-dravidian", claim="A18")
def dravidian() -> Finding:
    families = {d: cells().loc[d, list(FAMILIES)] for d in DIMENSIONS}
    lowest = {d: int((families[d]["Drav"] <= families[d].min(axis=1)).sum()) for d in DIMENSIONS}
    return Finding(
        HOLDS if lowest["information"] == 12 else DOES_NOT_HOLD,
        f"Dravidian is the lowest of the five families for {lowest['information']} of 12 models in information, of "
        f"which the sentence's example is one, and for {lowest['empathy']} of 12 in empathy.",
        lowest,
    )


@statement("a-dravidian-empathy", claim="A20")
def dravidian_empathy() -> Finding:
    drop = {d: (cells().loc[d, "Rom"] - cells().loc[d, "Drav"]).round(2) for d in DIMENSIONS}
    smaller = int((drop["empathy"] < drop["information"]).sum())
    positive = int((drop["empathy"] > 0).sum())
    return Finding(
        HOLDS if positive == 12 and drop["empathy"].mean() < drop["information"].mean() else DOES_NOT_HOLD,
        f"From Rom to Drav empathy falls for {positive} of 12 models, by {drop['empathy'].mean():.2f} on average; "
        f"information falls by {drop['information'].mean():.2f}. The fall is smaller in empathy for {smaller} of 12.",
        {"positive": positive, "smaller": smaller, **{d: drop[d].mean() for d in DIMENSIONS}},
    )


@statement("a-indo-aryan", claim="A21")
def indo_aryan() -> Finding:
    drop = (cells()["Rom"] - cells()["IA"]).round(2)
    falls = int((drop > 0).sum())
    return Finding(
        HOLDS if falls == len(drop) else DOES_NOT_HOLD,
        f"IA is below Rom in {falls} of {len(drop)} rows, by {drop.min():.2f} to {drop.max():.2f}. No test of "
        "significance is printed; which languages IA holds is the matter of a-persian-urdu.",
        {"rows": len(drop), "below": falls, "least": drop.min(), "most": drop.max()},
    )


@statement("a-quoted-cells", claim="A22")
def quoted_cells() -> Finding:
    agree, differ = 0, []
    for claim in published.load("paper_a_claims").dropna(subset="cells").itertuples():
        for number, cell in zip(claim.numbers.split(";"), claim.cells.split(";"), strict=True):
            dimension, model, group = cell.split("/")
            same = abs(float(number) - cells().loc[(dimension, model), group]) < SLACK
            agree, differ = agree + same, differ + [cell] * (not same)
    own = [c for c in differ if c.split("/")[1] == "Llama-3.1-8B"]
    return Finding(
        HOLDS if not own else DOES_NOT_HOLD,
        f"The four numbers are those of Table 4. Of all {agree + len(differ)} numbers that §5.2 quotes from the table, "
        f"{agree} agree with the cell they are said to be; the other one is in a-best-proprietary.",
        {"quoted": agree + len(differ), "agree": agree},
    )


@statement("a-scaling", claim="A25")
def scaling() -> Finding:
    gains = _gains()
    up = int((gains > 0).sum().sum())
    return Finding(
        HOLDS if gains.size / 2 < up < gains.size else DOES_NOT_HOLD,
        f"The larger model of a maker has the higher Avg in {up} of {gains.size} comparisons (six makers, two "
        "dimensions); the exceptions are gemini-2.0 in both.",
        {"comparisons": gains.size, "larger is higher": up},
    )


def _gains() -> pd.DataFrame:
    """Avg of the larger minus that of the smaller model, makers by dimensions."""
    return pd.DataFrame(
        {d: [round(averages(d)[large] - averages(d)[small], 2) for small, large in SIZES.items()] for d in DIMENSIONS},
        index=list(SIZES.values()),
    )


@statement("a-gemini-minor", claim="A26")
def gemini_minor() -> Finding:
    gains = _gains()
    named = ["gemma-2-27b", "Qwen-2.5-72B", "gemini-2.0"]
    signs = (gains.loc[named[:2]] > 0).all(axis=None) and (gains.loc["gemini-2.0"] < 0).all()
    text = "; ".join(f"{d}: " + ", ".join(f"{m} {gains.loc[m, d]:+.2f}" for m in named) for d in DIMENSIONS)
    return Finding(
        HOLDS if signs else DOES_NOT_HOLD,
        f"Change of Avg from the smaller to the larger model: {text}. The directions are as stated. In empathy the "
        "decrease is larger than each of the two increases it is set beside.",
        {f"{m} {d}": gains.loc[m, d] for m in named for d in DIMENSIONS},
    )


@statement("a-no-intervals", claim="A26")
def no_intervals() -> Finding:
    posts, n_languages, share = int(design("seeker posts of the empathy evaluation")), len(_paper_languages()), 0.65
    one = np.sqrt(share * (1 - share) / posts)
    least = one / np.sqrt(n_languages)
    small = sorted(_gains()["empathy"].abs())[:4]
    return Finding(
        CANNOT_BE_CHECKED,
        f"No interval is printed. Empathy consistency of a language is a share of {posts} posts; at {share:.2f} its "
        f"standard error is {one:.3f}, and that of an average over {n_languages} languages which share the posts lies "
        f"between {least:.3f} (languages independent) and {one:.3f} (languages alike). Four of the six changes of Avg "
        f"from the smaller to the larger model are {small[0]:.2f} to {small[-1]:.2f}. Needed: the scores by post.",
        {"one language": one, "average at least": least, "four smallest changes up to": small[-1]},
        inference=True,
    )


@statement("a-aya-poor", claim="A27")
def aya_poor() -> Finding:
    average = averages("information")
    open_ = average[~is_proprietary(average)]
    higher, lower = open_ > open_["aya-exp-8b"], open_ < open_["aya-exp-8b"]
    return Finding(
        HOLDS if higher.sum() > lower.sum() else DOES_NOT_HOLD,
        f"aya-exp-8b has {open_['aya-exp-8b']:.2f}; of the seven other open-weight models {higher.sum()} have more and "
        f"{lower.sum()} less ({joined([f'{m} {open_[m]:.2f}' for m in open_.index[lower]])}).",
        {"higher": int(higher.sum()), "lower": int(lower.sum())},
    )


@statement("a-aya-empathy", claim="A28")
def aya_empathy() -> Finding:
    average = averages("empathy")
    below = [m for m in PROPRIETARY if average[m] < average["aya-exp-8b"]]
    return Finding(
        HOLDS if "gemini-2.0" in below else DOES_NOT_HOLD,
        f"aya-exp-8b {average['aya-exp-8b']:.2f}, gemini-2.0 {average['gemini-2.0']:.2f} (Table 4); it is above "
        f"{len(below)} of the four proprietary models and level with gemini-2.0-lite.",
        {"aya-exp-8b": average["aya-exp-8b"], "gemini-2.0": average["gemini-2.0"], "below": len(below)},
    )


@statement(
    "a-dimensions",
    where="§5.2",
    printed="a highly consistent model along a certain dimension does not guarantee high consistency across all "
    "dimensions",
)
def dimensions() -> Finding:
    information, empathy = averages("information"), averages("empathy")
    rho = spearman(information.to_numpy(), empathy[information.index].to_numpy())
    found = inversions(information.to_numpy(), empathy[information.index].to_numpy())
    return Finding(
        HOLDS if found.inverted else DOES_NOT_HOLD,
        f"The Avg of the twelve models in the two dimensions have a rank correlation of {rho.value:.2f}; "
        f"{found.inverted} of {found.pairs} pairs of models are in opposite order ({found.tied} tie). gemini-2.0 is "
        f"number {_place(information, 'gemini-2.0')} in information and {_place(empathy, 'gemini-2.0')} in empathy, "
        f"aya-exp-32b {_place(information, 'aya-exp-32b')} and {_place(empathy, 'aya-exp-32b')}.",
        {"rho": rho.value, "inverted": found.inverted, "pairs": found.pairs},
    )


def _place(average: pd.Series, model: str) -> int:
    """The best of those that tie counts."""
    return int((average > average[model]).sum()) + 1


# --- the groups of languages


@statement(
    "a-family-names",
    where="Table 12",
    printed="Rom: Romance; Slav:Slavic, IA:Indo-Aryan, Drav:Dravidian, Oth2:Other language families",
)
def family_names() -> Finding:
    named = {"Rom": "Romance", "Slav": "Slavic", "IA": "Indo-Aryan", "Drav": "Dravidian"}
    found = {code: lang for code, lang in _paper_languages().items() if lang.paper_a.family in named}
    other = [c for c, lang in found.items()
             if named[lang.paper_a.family] not in (lang.glottolog_family, lang.glottolog_branch)]  # fmt: skip
    text = joined([f"{found[c].name} ({found[c].glottolog_branch}) under {found[c].paper_a.family}" for c in other])
    return Finding(
        HOLDS if not other else DOES_NOT_HOLD,
        f"Of the {len(found)} languages in the four named groups, {len(found) - len(other)} belong there by "
        f"Glottolog's classification (params/languages) and {len(other)} do not: {text}.",
        {"languages": len(found), "elsewhere": len(other)},
    )


@statement("a-persian-urdu", where="Table 12", printed="IA bn,fa,gu,hi,pa,ur")
def persian_urdu() -> Finding:
    rows = len(cells())
    moved = {"printed": (), "fa": ("fa",), "ur": ("ur",), "both": ("fa", "ur")}
    ranges = {name: score_ranges("ar", codes) for name, codes in moved.items()}
    possible = {name: int(found["low"].notna().sum()) for name, found in ranges.items()}
    highest = cells()[[*SCRIPTS, *FAMILIES]].max(axis=1)
    beyond = {name: int((found["low"] > highest).sum()) for name, found in ranges.items()}
    strictest = ranges["printed"]["low"].idxmax()
    low = ranges["printed"].loc[strictest, "low"]
    return Finding(
        CANNOT_BE_CHECKED,
        "The table fixes sums over groups, so for each row a linear program gives the least and the most that Arabic "
        f"can have scored, all scores in 0–1. With the printed groups every row is possible ({possible['printed']} of "
        f"{rows}), but in {beyond['printed']} rows Arabic must have scored more than the row's highest group mean, up "
        f"to at least {low:.3f} ({strictest[1]}, {strictest[0]}, highest mean {highest[strictest]:.2f}). With either "
        f"Persian or Urdu filed under Oth2 instead, every row is possible ({possible['fa']} and {possible['ur']}) and "
        f"none demands that ({beyond['fa']} and {beyond['ur']}); with both moved, {possible['both']} rows are "
        "possible. So one of the two was probably averaged elsewhere than printed. Needed: the scores by language, "
        "which are printed as pictures (Figures 3 and 4).",
        {
            **{f"possible, {name}": n for name, n in possible.items()},
            **{f"beyond, {name}": n for name, n in beyond.items()},
            "strictest bound": low,
        },
        inference=True,
    )


@lru_cache
def score_ranges(code: str, moved: tuple[str, ...]) -> pd.DataFrame:
    """The least and the most a language can have scored in each row of the averaged table.

    Args:
        code: of the language.
        moved: languages filed under Oth2 instead of where they are printed.

    Returns:
        (dimension, model) by low, high; NaN where no scores in 0–1 give the row.
    """
    codes = list(_paper_languages())
    names, shares = _memberships(codes, moved)
    constraints = np.vstack([shares, -shares])
    objective = np.array([float(c == code) for c in codes])
    found = {}
    for row, values in cells()[names].iterrows():
        bounds = np.concatenate([values + HALF_DIGIT, HALF_DIGIT - values]) + SLACK
        low, high = (linprog(sign * objective, A_ub=constraints, b_ub=bounds, bounds=(0, 1)) for sign in (1, -1))
        found[row] = (low.fun, -high.fun) if low.status == 0 else (np.nan, np.nan)
    return pd.DataFrame.from_dict(found, orient="index", columns=["low", "high"]).set_index(cells().index)


def _memberships(codes: Sequence[str], moved: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """The groups, Avg included, and each language's share in them: (n_groups, n_languages), rows sum to 1."""
    script = {"PArb": "PArab"}  # Table 11 writes PArb where Table 4 writes PArab
    known = _paper_languages()
    groups = [
        ("Avg", script.get(known[c].paper_a.script_group, known[c].paper_a.script_group),
         "Oth2" if c in moved else known[c].paper_a.family)
        for c in codes
    ]  # fmt: skip
    names = ["Avg", *SCRIPTS, *FAMILIES]
    inside = np.array([[name in of for of in groups] for name in names], dtype=float)
    return names, inside / inside.sum(axis=1, keepdims=True)


# --- translation and evaluators


@statement("a-fidelity", claim="A10")
def fidelity() -> Finding:
    ratings = published.load("paper_a_human_fidelity")["value"]
    holds = round(ratings.mean(), 2) == float(_claim_numbers("A10")[0])
    return Finding(
        HOLDS if holds else DOES_NOT_HOLD,
        f"The mean of the ten values of Table 3 is {ratings.mean():.3f}; they range from {ratings.min():.2f} to "
        f"{ratings.max():.2f} on a scale of 1 to 5.",
        {"mean": ratings.mean(), "least": ratings.min(), "most": ratings.max()},
    )


@statement(
    "a-study-size",
    where="Appendix E.3",
    printed="we recruit 10 annotators through prolific and ask each of them to label ten examples each (a total of "
    "100 examples per language)",
)
def study_size() -> Finding:
    examples = design("annotators a language") * design("examples an annotator")
    minutes = [design(f"{which} expected duration of a HIT") for which in ("shortest", "longest")]
    pay = [design("pay an hour") * duration / 60 for duration in minutes]
    agree = examples == design("examples a language") and pay[0] <= design("pay a HIT, roughly") <= pay[1] + SLACK
    return Finding(
        HOLDS if agree else DOES_NOT_HOLD,
        f"Ten times ten is {examples:.0f}. The pay agrees as well: at {design('pay an hour'):.0f}$ an hour "
        f"{minutes[0]:.0f} to {minutes[1]:.0f} minutes are {pay[0]:.2f}$ to {pay[1]:.2f}$, and roughly "
        f"{design('pay a HIT, roughly'):.2f}$ is printed. By these numbers each example has one rating, so how far "
        "raters agree cannot be computed.",
        {"examples": examples, "least pay": pay[0], "most pay": pay[1]},
    )


def _claim_numbers(claim: str) -> list[str]:
    claims = published.load("paper_a_claims").set_index("id")
    return claims.loc[claim, "numbers"].split(";")


@statement("a-self-consistency", claim="A09")
def self_consistency() -> Finding:
    values = published.load("paper_a_self_consistency")["value"]
    return Finding(
        CANNOT_BE_CHECKED,
        f"The ten values of Table 1 range from {values.min():.2f} to {values.max():.2f}, mean {values.mean():.3f}. "
        "What the evaluator gives for an English text beside itself, without a translation between, is not printed; "
        "so what is missing to 1 cannot be divided between the two translations and the evaluator.",
        {"least": values.min(), "most": values.max(), "mean": values.mean()},
    )


@statement(
    "a-f1-kind",
    where="Table 2",
    printed="Performance (in %) of the evaluator for detecting the three empathy mechanisms.",
)
def f1_kind() -> Finding:
    only_macro, numbers = _kinds_of_f1("Table 2")
    return Finding(
        AS_PUBLISHED if only_macro else DOES_NOT_HOLD,
        "The table does not say which F1 it prints. Accuracy and the share of positives in the test split (Table 5) "
        f"bound each kind. F1 of the positive class could be at most {numbers['positive ER high']:.1f} for ER and "
        f"{numbers['positive EX high']:.1f} for EX, and weighted F1 at least {numbers['weighted EX low']:.1f} for EX, "
        "which excludes both; macro-F1 can have all three printed values. So they agree read as macro-F1.",
        numbers,
        inference=True,
    )


@statement(
    "a-f1-kind-gpt4o",
    where="Table 7",
    printed="Performance (in %) comnparison between GPT-4o and the best-performing bi-encoder model.",
)
def f1_kind_gpt4o() -> Finding:
    only_macro, numbers = _kinds_of_f1("Table 7")
    return Finding(
        AS_PUBLISHED if only_macro else DOES_NOT_HOLD,
        "Bounded in the same way (a-f1-kind), F1 of the positive class could be at most "
        f"{numbers['positive EX high']:.1f} for EX and weighted F1 at least {numbers['weighted EX low']:.1f}, where "
        f"{100 * _evaluator('Table 7').loc['EX', 'F1']:.1f} is printed; macro-F1 can have all three printed values, "
        f"that of ER at its upper end ({numbers['macro ER high']:.1f}). So the two tables agree read as macro-F1.",
        numbers,
        inference=True,
    )


def _kinds_of_f1(where: str) -> tuple[bool, dict[str, float]]:
    """Whether macro is the only kind of F1 that can have a table's values, and the ends of every kind, per cent."""
    fits = dict.fromkeys(("positive", "macro", "weighted"), 0)
    numbers = {}
    for mechanism, (accuracy, f1, share) in _evaluator(where).iterrows():
        for kind, (low, high) in f1_ranges(accuracy, share).items():
            numbers[f"{kind} {mechanism} low"], numbers[f"{kind} {mechanism} high"] = 100 * low, 100 * high
            fits[kind] += low - 0.0005 <= f1 <= high + 0.0005
    only_macro = fits["macro"] == 3 and max(fits["positive"], fits["weighted"]) < 3
    return only_macro, {**numbers, **{f"{kind} fits": int(n) for kind, n in fits.items()}}


def _evaluator(where: str = "Table 2") -> pd.DataFrame:
    """Accuracy, F1 and share of positives of the test split by mechanism, as shares."""
    table = published.load("paper_a_empathy_evaluator")
    scores = table[table["where"] == where].pivot(index="mechanism", columns="measure", values="value")
    splits = published.load("paper_a_empathy_splits").pivot(index="mechanism", columns="split", values="value")
    return pd.DataFrame({"accuracy": scores["accuracy"], "F1": scores["F1"], "share": splits["test"]}) / 100


def f1_ranges(accuracy: float, share: float) -> dict[str, tuple[float, float]]:
    """Lowest and highest F1 that a binary classifier can have, by kind: of the positive class, macro, weighted.

    Args:
        accuracy: share of right answers, rounded to 0.001.
        share: of positives, rounded to 0.001.
    """
    wrong, positives = 1 - accuracy + np.array([-0.0005, 0.0005])[:, None], share + np.array([-0.0005, 0.0005])
    wrong, positives = (a.ravel()[:, None] for a in np.broadcast_arrays(wrong, positives))
    least, most = np.maximum(0, wrong - (1 - positives)), np.minimum(wrong, positives)
    missed = least + (most - least) * np.linspace(0, 1, 1001)
    hits, rejections = positives - missed, 1 - positives - (wrong - missed)
    positive, negative = (2 * right / (2 * right + wrong) for right in (hits, rejections))
    kinds = {
        "positive": positive,
        "macro": (positive + negative) / 2,
        "weighted": positives * positive + (1 - positives) * negative,
    }
    return {kind: (float(values.min()), float(values.max())) for kind, values in kinds.items()}


@statement(
    "a-evaluator-tables",
    where="Appendix C.1",
    printed="The performance of the final evaluator is mentioned in Table 6.",
)
def evaluator_tables() -> Finding:
    main, appendix = (_evaluator(where)[["accuracy", "F1"]] for where in ("Table 2", "Table 6"))
    agree = int(((main - appendix).abs() < SLACK).sum().sum())
    return Finding(
        HOLDS if agree == main.size else DOES_NOT_HOLD,
        f"{agree} of the {main.size} values of Table 6 are those of Table 2.",
        {"values": main.size, "agree": agree},
    )


@statement("a-gpt4o-evaluator", claim="A35")
def gpt4o_evaluator() -> Finding:
    table = published.load("paper_a_empathy_evaluator")
    table = table.set_index(["where", "measure", "mechanism"])["value"].sort_index()
    ours, theirs = table["Table 6", "accuracy"], table["Table 7", "accuracy"]
    n = round(design("size of the Reddit part of EPITOME") * design("share of the data for testing") / 100)
    low = wilson_interval(ours.to_numpy() / 100 * n, n).low
    high = wilson_interval(theirs[ours.index].to_numpy() / 100 * n, n).high
    apart, majority = int((low > high).sum()), 100 * (1 - _evaluator().loc["EX", "share"])
    f1 = table["Table 6", "F1"] - table["Table 7", "F1"]
    return Finding(
        HOLDS if apart == len(ours) else DOES_NOT_HOLD,
        "The bi-encoder's cells of Table 7 are empty; with those of Table 6 its F1 is higher by "
        f"{joined([f'{f1[m]:.1f} ({m})' for m in f1.index])} points. With a test split of about {n} examples (a fifth "
        f"of about 3,000) the 95% intervals of the accuracies are apart for {apart} of 3 mechanisms. GPT-4o's "
        f"accuracy for EX ({theirs['EX']:.1f}) is below the share of negatives in the test split ({majority:.1f}).",
        {"n": n, "apart": apart, "EX accuracy": theirs["EX"], "EX negatives": majority, **f1.to_dict()},
    )


@statement("a-splits", claim="A33")
def splits() -> Finding:
    parts = {"train": "training", "dev": "development", "test": "testing"}
    sizes = {split: design("size of the Reddit part of EPITOME") * design(f"share of the data for {name}") / 100
             for split, name in parts.items()}  # fmt: skip
    shares = published.load("paper_a_empathy_splits").pivot(index="mechanism", columns="split", values="value") / 100
    p = {}
    for mechanism, row in shares.iterrows():
        positive = np.array([row[split] * sizes[split] for split in parts])
        counts = np.array([positive, np.array(list(sizes.values())) - positive])
        p[mechanism] = float(chi2_contingency(counts, correction=False).pvalue)
    return Finding(
        HOLDS if min(p.values()) > 0.05 else DOES_NOT_HOLD,
        "Chi-square tests of equal shares in the three splits, with about 3,000 examples split 75-5-20: "
        + joined([f"p = {p[m]:.2f} ({m})" for m in p])
        + ".",
        p,
    )


@statement(
    "a-split-sizes",
    where="Appendix C.1",
    printed="we generated our own train-dev-test split using the ratios (75-5-20)",
)
def split_sizes() -> Finding:
    shares = published.load("paper_a_empathy_splits").query("split == 'dev'")["value"].tolist()
    part = design("share of the data for development") / 100
    total = design("size of the Reddit part of EPITOME")
    looked_at = range(round(0.9 * part * total), round(1.1 * part * total) + 1)
    sizes = [n for n in looked_at if all(_is_share_of(value, n) for value in shares)]
    implied = joined([f"{n / part:,.0f}" for n in sizes])
    return Finding(
        HOLDS if sizes else DOES_NOT_HOLD,
        f"The three shares of the development split (Table 5: {joined([f'{value:.1f}' for value in shares])} per cent) "
        f"are all shares of whole examples for {joined([str(n) for n in sizes]) or 'none'} and for no other number "
        f"from {looked_at[0]} to {looked_at[-1]}. That is {100 * part:.0f}% of {implied}, where about {total:,.0f} is "
        "printed for the Reddit part of EPITOME.",
        {"possible": len(sizes), "size": sizes[0] if sizes else 0},
    )


def _is_share_of(per_cent: float, n: int) -> bool:
    """Whether a whole number of n examples is a share printed so, to 0.1 per cent."""
    return abs(100 * round(per_cent * n / 100) / n - per_cent) <= 0.05 + SLACK


@statement("a-learning-rate", claim="A34")
def learning_rate() -> Finding:
    table = published.load("paper_a_design")
    tried = set(table.loc[table["quantity"] == "learning rate tried", "value"])
    chosen = design("learning rate chosen for EX")
    return Finding(
        HOLDS if chosen in tried else DOES_NOT_HOLD,
        f"The rates tried are {joined([f'{rate:g}' for rate in sorted(tried)])} (same paragraph); {chosen:g} is not "
        f"among them, {design('learning rate chosen for ER and IP'):g}, chosen for ER and IP, is.",
        {"tried": len(tried), "chosen": chosen, "among them": chosen in tried},
    )


@statement("a-verifier", claim="A08")
def verifier() -> Finding:
    named = [m for m in averages("information").index if m.startswith("Qwen") and "14B" in m]
    return Finding(
        CANNOT_BE_CHECKED,
        "No exact name is printed. Qwen2 was released in sizes 0.5B, 1.5B, 7B, 57B (14B of them active) and 72B, "
        "Qwen2.5 also in 14B; either may be meant. If it is the latter, the evaluator is one of the twelve models "
        f"evaluated ({named[0]}). params/paper.yaml takes it to be. Needed: the name.",
        {"evaluated models it may be": len(named)},
        inference=True,
    )


@statement("a-factscore-models", claim="A07")
def factscore_models() -> Finding:
    return Finding(
        DOES_NOT_HOLD,
        "The code released with FActScore (github.com/shmsw25/FActScore, factscore/factscorer.py and openai_lm.py) "
        "extracts claims with InstructGPT (text-davinci-003) and verifies them with ChatGPT (gpt-3.5-turbo) or an "
        "instruction-tuned LLaMA 7B; GPT-4 is in neither. Read there, not recomputed here.",
    )


@statement(
    "a-indonesian-splitter",
    where="Appendix E.4",
    printed="For English and Chinese, we use the core_web_sm tokenizers, and for all others we used the core_news_sm "
    "tokenizers.",
)
def indonesian_splitter() -> Finding:
    listed = [lang.name for lang in _paper_languages().values() if lang.splitter.paper == "spacy"]
    return Finding(
        CANNOT_BE_CHECKED,
        f"The list before the sentence has English and {len(listed)} other languages, Indonesian among them. spaCy "
        "itself publishes no trained pipeline for Indonesian; one with that name exists from a third party. Needed: "
        "package names and versions.",
        {"listed": len(listed), "Indonesian listed": "Indonesian" in listed},
        inference=True,
    )


@statement("a-concise", claim="A36")
def concise() -> Finding:
    english = design("words of the English response, counted in the printed text")
    others = {name: design(f"words of the translated {name} response, counted in the printed text") / english
              for name in ("Indonesian", "Korean")}  # fmt: skip
    return Finding(
        HOLDS if max(others.values()) < 1 else DOES_NOT_HOLD,
        f"Of the three printed responses the English one has {english:.0f} words; translated into English, the "
        f"Indonesian one has {others['Indonesian']:.0%} and the Korean one {others['Korean']:.0%} of that. It is one "
        f"prompt of {design('information-seeking prompts'):.0f}.",
        {"English": english, **others},
    )


@statement(
    "a-recitation",
    where="Appendix A",
    printed="We found there to be no workaround and therefore use a default string of “No answer” in those cases.",
)
def recitation() -> Finding:
    affected = [m for m in averages("information").index if m.startswith("gemini")]
    return Finding(
        CANNOT_BE_CHECKED,
        f"How many responses of the {len(affected)} Gemini models were replaced is not printed, nor what precision and "
        "recall are when a response states no claim (a share of none). Needed: the number of such responses by "
        "language.",
        {"models": len(affected)},
    )
