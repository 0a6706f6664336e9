"""Paper B's label recovery, its comparison of judges and its check of the meta-prompt."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd

from xlc_utils.judges.dialogues import read_options
from xlc_utils.judges.released import PARAMETERS, WITH_DRAWS
from xlc_utils.judges.rubric import SCALES
from xlc_utils.registry import models
from xlc_utils.registry.files import project_root
from xlc_utils.reporting import published
from xlc_utils.reporting.audit import dialogues
from xlc_utils.reporting.audit.entries import (
    AS_PUBLISHED,
    CANNOT_BE_CHECKED,
    DOES_NOT_HOLD,
    HOLDS,
    Finding,
    joined,
    statement,
)
from xlc_utils.reporting.audit.paper_b_dialogues import design, metrics
from xlc_utils.statistics.intervals import wilson_interval

SEED = 0
SIMULATED = 1000


@lru_cache
def ablation() -> pd.DataFrame:
    return published.load("paper_b_judge_ablation")


@lru_cache
def accuracies() -> pd.DataFrame:
    """The printed accuracies of label recovery in Finnish: low and high by parameter."""
    rows = ablation()[ablation()["quantity"].str.startswith("accuracy")]
    return rows.set_index(rows["category"].str.replace(" ", "_"))[["low", "high"]]


# --- label recovery


@statement("b-label-recovery", claim="B09")
def label_recovery() -> Finding:
    same = position_share("fi")
    found = perfect_by_position("fi")
    needed = {name: _accuracy_behind(name, same) for name in ("problem", "channel")}
    words = {name: dialogues.numbers()[:, "fi", name] for name in ("problem", "channel")}
    mean = found.mean()
    text = ", ".join(f"{name.replace('_', ' ')} {mean[name]:.2f} (printed {_printed(name)})" for name in PARAMETERS)
    return Finding(
        CANNOT_BE_CHECKED,
        "The released evaluator (src/label_recovery/evaluator.py) takes a dialogue's truth from its position in one "
        "list, for every generator. The lists lack different dialogues: against a list of all 120 draws only "
        f"{same:.0%} of the Finnish dialogues stand at the position of their own draw. A judge that is always right "
        f"would then score, in {SIMULATED:,} simulated draws from the parameter sets: {text}. The printed values "
        f"would need a judge that is right in {needed['problem'][0]:.0%}–{needed['problem'][1]:.0%} (problem) and "
        f"{needed['channel'][0]:.0%}–{needed['channel'][1]:.0%} (channel). A classifier of words, measured on the "
        f"dialogues, is right in {words['problem']['words joined']:.0%} and {words['channel']['words joined']:.0%} of "
        f"them, and by position in {words['problem']['words by position']:.0%} and "
        f"{words['channel']['words by position']:.0%}, near the printed values. So the printed difficulty is probably "
        "that of the alignment. The program that compares judges joins truth in another way (b-label-definition), "
        "and which one made the printed numbers is not said. Needed: the judge's labels.",
        {
            "same position": same,
            **{f"perfect {name}": mean[name] for name in PARAMETERS},
            **{f"{name} {end}": value for name, ends in needed.items() for end, value in zip(("low", "high"), ends,
                                                                                            strict=True)},
            **{f"words {name}": words[name]["words joined"] for name in words},
            **{f"words {name} by position": words[name]["words by position"] for name in words},
        },
        inference=True,
    )  # fmt: skip


def _printed(name: str) -> str:
    low, high = accuracies().loc[name]
    return f"{low:.2f}" if low == high else f"{low:.2f}–{high:.2f}"


def position_share(language: str) -> float:
    """Share of a language's dialogues whose draw stands at their position in a list of all draws."""
    own, at_position = _draws_and_positions(language)
    return float((own == at_position).mean())


def _draws_and_positions(language: str) -> tuple[np.ndarray, np.ndarray]:
    """The draw of each dialogue of a language, and the draw at its position in the list of `FULL_LIST`."""
    rows = metrics()[metrics()["language"] == language]
    full = rows[rows["model"] == dialogues.FULL_LIST].set_index("dialogue")["draw"]
    return rows["draw"].to_numpy(int), full[rows["dialogue"]].to_numpy(int)


@lru_cache
def perfect_by_position(language: str) -> pd.DataFrame:
    """Accuracy of a judge that is always right, truth taken by position, in simulated draws of the parameters.

    Returns:
        (SIMULATED, parameters).
    """
    generator = np.random.default_rng(SEED)
    own, at_position = _draws_and_positions(language)
    found = {}
    for name, options in read_options().labels.items():
        labels = generator.integers(len(options), size=(SIMULATED, own.max() + 1), dtype=np.int16)
        found[name] = (labels[:, own] == labels[:, at_position]).mean(axis=1)
    return pd.DataFrame(found)


def _accuracy_behind(name: str, same: float) -> tuple[float, float]:
    """The accuracies that, with a share `same` of truths its own and the others drawn anew, give the printed ends."""
    by_chance = (1 - same) / len(read_options().labels[name])
    low, high = ((end - by_chance) / same for end in accuracies().loc[name])
    return low, high


@statement(
    "b-label-capability",
    where="Figure 3",
    printed="This pattern suggests that complex parameter recovery may exceed current model capabilities regardless of "
    "target language",
)
def label_capability() -> Finding:
    words = {(language, name): dialogues.numbers()["words joined", language, name]
             for language in WITH_DRAWS for name in ("problem", "industry")}  # fmt: skip
    least = min(words[language, "problem"] for language in WITH_DRAWS)
    text = "; ".join(f"{name} " + ", ".join(f"{words[c, name]:.2f} ({c})" for c in WITH_DRAWS)
                     for name in ("problem", "industry"))  # fmt: skip
    return Finding(
        DOES_NOT_HOLD if least > 0.5 else HOLDS,
        "A linear classifier of words recovers, of 20 problems and of 44 industries (ten folds, no draw in two of "
        f"them, truth joined by dialogue): {text}. So the problem can be recovered; of the industry this says nothing.",
        {f"{name} {language}": value for (language, name), value in words.items()},
    )


@statement("b-agent-experience", claim="B51")
def agent_experience() -> Finding:
    n = 6 * int(design("conversations judged a model and language"))
    low, high = accuracies().loc["agent_experience"]
    interval = wilson_interval(np.array([low, high]) * n, n)
    commonest = dialogues.numbers()["share of the commonest label", "fi", "agent_type"]
    contains = interval.low[0] <= 0.5 <= interval.high[0] and interval.low[1] <= 0.5 <= interval.high[1]
    return Finding(
        DOES_NOT_HOLD if contains else HOLDS,
        f"Agent experience has two values and a printed accuracy of {low:.2f}–{high:.2f}: with {n} dialogues the 95% "
        f"intervals, [{interval.low[0]:.2f}, {interval.high[0]:.2f}] and [{interval.low[1]:.2f}, "
        f"{interval.high[1]:.2f}], contain the .50 of guessing. Agent type is printed as "
        f"{accuracies().loc['agent_type', 'low']:.2f}; always saying “human” is right in {commonest:.3f} of the "
        "released Finnish dialogues.",
        {"n": n, "low": interval.low[0], "high": interval.high[1], "always human": commonest},
    )


@statement("b-label-chance", claim="B51")
def label_chance() -> Finding:
    chance = pd.Series({name: 1 / len(options) for name, options in read_options().labels.items()})
    beyond = accuracies().sub(chance, axis=0).div(1 - chance, axis=0).loc[list(PARAMETERS)]
    best, least = (name.replace("_", " ") for name in (beyond["high"].idxmax(), beyond["low"].idxmin()))
    as_printed = _two_values_are_above(accuracies().loc[beyond.index], chance)
    beyond_guessing = _two_values_are_above(beyond, chance)
    text = joined([f"{name.replace('_', ' ')} {' to '.join(dict.fromkeys(f'{end:.2f}' for end in ends))}"
                   for name, *ends in beyond.itertuples()])  # fmt: skip
    return Finding(
        HOLDS if beyond_guessing else AS_PUBLISHED if as_printed else DOES_NOT_HOLD,
        f"The printed accuracies of channel, agent type and agent experience {'are' if as_printed else 'are not'} all "
        "above those of industry and problem. They have two values each, drawn with equal probability (Table 5), so "
        f"guessing is right in half of the dialogues; it is right in {chance['problem']:.0%} of them for the problem "
        f"and in {chance['industry']:.0%} for the industry. What the accuracies have beyond guessing, as a "
        f"share of what there is beyond it: {text}. By that measure {best} is recovered best and {least} least.",
        {f"{name} {end}": beyond.loc[name, end] for name in PARAMETERS for end in ("low", "high")},
    )


def _two_values_are_above(table: pd.DataFrame, chance: pd.Series) -> bool:
    """Whether the parameters of two values have more than all others: low and high by parameter."""
    return bool(table["low"][chance == 0.5].min() > table["high"][chance < 0.5].max())


@statement("b-channel-easiest", claim="B47")
def channel_easiest() -> Finding:
    channel, kind = accuracies().loc["channel"], accuracies().loc["agent_type"]
    return Finding(
        DOES_NOT_HOLD if kind["low"] >= channel["high"] else HOLDS,
        f"Of the printed values agent type ({kind['low']:.2f}) is not below channel ({channel['low']:.2f}–"
        f"{channel['high']:.2f}). The order of the other three is as stated.",
        {"channel high": channel["high"], "agent type": kind["low"]},
    )


@statement(
    "b-label-definition",
    where="§2.3",
    printed="Label Recovery Accuracy (LRA), which assesses instruction-following and semantic consistency by "
    "attempting to recover generation parameters from dialogue content",
)
def label_definition() -> Finding:
    return Finding(
        CANNOT_BE_CHECKED,
        f"How {len(PARAMETERS)} accuracies become the one score that is ranked is not printed. The released programs "
        "differ: the evaluator averages five; the rank analysis counts a dialogue if industry and problem are both "
        "right and looks for them under names (predicted_industry, predicted_problem) that the released classifier "
        "does not write; the comparison of judges looks for the parameters outside `_metadata`, where the released "
        "files have them. Needed: the definition, or the judge's labels.",
        {"parameters": len(PARAMETERS)},
    )


# --- the comparison of judges


@statement("b-ablation-count", claim="B10")
def ablation_count() -> Finding:
    judges = ablation().query("quantity == 'number of judges compared'").set_index("where")["high"]
    return Finding(
        HOLDS if judges.nunique() == 1 else DOES_NOT_HOLD,
        f"§3.6 and Appendix G compare {judges['Appendix G']:.0f} judges and name them.",
        {"§2.3": judges["§2.3"], "§3.6": judges["§3.6"], "Appendix G": judges["Appendix G"]},
    )


@statement("b-ablation-scope", claim="B48")
def ablation_scope() -> Finding:
    shown = sorted(set(accuracies().index))
    # What is printed by category is what was compared; the others are of all categories together.
    compared = ablation().query("category != 'all'")["quantity"].nunique()
    metrics = len(SCALES) + 1
    return Finding(
        HOLDS if compared == metrics else DOES_NOT_HOLD,
        f"Appendix G compares the judges in label recovery alone; its numbers are of {len(shown)} parameters. Grammar, "
        "readability, coherence and fluency were judged by one judge.",
        {"parameters": len(shown), "metrics compared": compared, "metrics": metrics},
    )


@statement(
    "b-ablation-instability",
    where="§3.6",
    printed="This suggests the instability is systematic rather than judge-specific.",
)
def ablation_instability() -> Finding:
    return Finding(
        CANNOT_BE_CHECKED,
        "The instability is a change of rank between languages; the judges were compared in one language, Finnish, and "
        "not in coherence. Needed: scores of more than one judge in two languages.",
        {"languages": 1},
    )


@statement("b-ablation-judges", claim="B32")
def ablation_judges() -> Finding:
    judges = [name for name, model in models.load(project_root()).models.items() if "B-judge" in model.paper]
    gpt5 = [name for name in judges if name.startswith("gpt-5")]
    others = [name for name in judges if name not in gpt5]
    return Finding(
        DOES_NOT_HOLD if others else HOLDS,
        f"Appendix G compares {len(judges)} judges: {len(gpt5)} variants of GPT-5 and {joined(others)}, whose weights "
        "are open.",
        {"judges": len(judges), "GPT-5": len(gpt5), "others": len(others)},
    )


@statement("b-ablation-difference", claim="B46")
def ablation_difference() -> Finding:
    bound = float(ablation().query("quantity == 'difference between judges'")["high"].unique().item())
    least = (accuracies()["high"] - accuracies()["low"] - 0.01).clip(lower=0).round(6)
    beyond = least[least >= bound]
    ranges = joined([f"{_printed(name)} ({name.replace('_', ' ')})" for name in beyond.index])
    return Finding(
        DOES_NOT_HOLD if len(beyond) else HOLDS,
        f"The same paragraph prints {ranges} as ranges "
        f"over the judges. Ends rounded to whole per cent are at least {least.max():.2f} apart there, which is not "
        f"below {bound:.2f}.",
        {"bound": bound, "categories": len(beyond), "least": least.max()},
    )


@statement("b-ablation-correlation", claim="B49")
def ablation_correlation() -> Finding:
    printed = float(ablation().query("quantity.str.startswith('mean Spearman')")["high"].item())
    generators = int(design("generator models judged"))
    tiers = {"industry": 1, "problem": 1, "the three of two values": len(PARAMETERS) - 2}
    expected = tiers_alone([generators * n for n in tiers.values()])
    return Finding(
        CANNOT_BE_CHECKED,
        f"The {generators * len(PARAMETERS)} pairs of model and category differ first of all by category: industry is "
        "recovered least, then problem, then the three parameters with two values (b-channel-easiest). Two judges "
        "that agree in nothing but these three steps, if every model's accuracy is on the step of its category, have a "
        f"correlation of {expected:.2f} on average; {printed:.2f} is printed. So it does not show that judges agree "
        "about models. Needed: the accuracies by judge, model and category.",
        {"printed": printed, "three steps alone": expected},
        inference=True,
    )


def tiers_alone(sizes: list[int]) -> float:
    """Mean Spearman's rho of two rankings that have the same tiers of these sizes and any order within them."""
    n = sum(sizes)
    return 1 - sum(size**3 - size for size in sizes) / (n**3 - n)


# --- the meta-prompt


@statement("b-meta-prompt", claim="B45")
def meta_prompt() -> Finding:
    bound = float(published.load("paper_b_judge_scores").query("where == 'Appendix F'")["high"].item())
    return Finding(
        CANNOT_BE_CHECKED,
        "The cells of Table 12 are not transcribed here, and the scores of neither prompt are released. "
        f"§2.3 calls the same quantity (< {bound:.2f}) a difference. Needed: the judge (a paid model) and the Estonian "
        "dialogues, XLC_DATA.",
        {"bound": bound},
    )
