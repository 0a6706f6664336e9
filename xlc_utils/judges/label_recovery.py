"""Label recovery: can the judge tell from a dialogue what it was generated with?

Paper B, section 2.3 and appendices D and G. Five parameters are recovered (`PARAMETERS`). The truth is that of the draw
with the same ``dialogue_id``: a dialogue's position in a list says nothing, since lists of different generators lack
different dialogues.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from xlc_utils.chat.base import ChatModel, Sampling, whole_characters
from xlc_utils.judges.dialogues import Malformed, brief, filled, read_options
from xlc_utils.judges.released import PARAMETERS
from xlc_utils.judges.rubric import KEY, SAMPLING, ask_judge, object_schema, strict_object
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem
from xlc_utils.statistics.intervals import wilson_interval

#: The file of the meta-prompt in params/prompts/instructions.
INSTRUCTION = "judge_labels"

Labels = Mapping[str, Sequence[str]]


def normalised(label: str) -> str:
    """How labels are compared: compatibility forms unified (NFKC), case folded, and each run of characters other than
    letters and digits one space. "Track Refund", "track_refund" and " track-refund." are the same label; "refund" and
    "tracking a refund" are not."""
    return re.sub(r"[\W_]+", " ", unicodedata.normalize("NFKC", label).casefold()).strip()


def recover_labels(
    model: ChatModel, dialogues: pd.DataFrame, instruction: str, sampling: Sampling = SAMPLING
) -> pd.DataFrame:
    """The five labels that one judge reads out of every dialogue.

    Args:
        model: the judge.
        dialogues: rows with `rubric.NEEDED`; their parameters, if there, are not looked at.
        instruction: the meta-prompt (`INSTRUCTION`) with ``{industries}``, ``{problems}`` and ``{conversation}``.
        sampling: its ``json_schema`` is set here.

    Returns:
        One row a dialogue, in their order: dialogue_id, language, generator, judge, industry, problem, channel,
        agent_experience, agent_type (as params/prompts/dialogues.yaml spells them; a label that is no option stands as
        the judge wrote it, and ``detail`` names its category; "" unless the outcome is ok), explanation, outcome,
        detail. ``unparsed``: see `read_labels`.
    """
    labels = read_options().labels
    shown = {"industries": ", ".join(labels["industry"]), "problems": ", ".join(labels["problem"])}
    schema = object_schema({name: {"type": "string", "enum": list(options)} for name, options in labels.items()})
    return ask_judge(
        model,
        dialogues,
        filled(instruction, shown),
        replace(sampling, json_schema=schema),
        functools.partial(read_labels, labels=labels),
        dict.fromkeys(PARAMETERS, ""),
    )


def read_labels(text: str, labels: Labels) -> dict[str, str]:
    """The labels and the explanation in a reply that has exactly the form asked for.

    Args:
        text: of the reply.
        labels: the options of each category.

    Raises:
        Malformed: see `rubric.strict_object`; or a label is no text.
    """
    found = strict_object(text, [*PARAMETERS, "explanation"])
    for name in PARAMETERS:
        if not isinstance(found[name], str) or not normalised(found[name]):
            raise Malformed(f"{name} is no label: {brief(found[name])}")
    said = {name: _option(found[name], labels[name]) for name in PARAMETERS}
    no_option = [name for name in PARAMETERS if said[name] not in labels[name]]
    detail = f"no option: {', '.join(no_option)}" if no_option else ""
    return said | {"explanation": found["explanation"], "detail": detail}


def _option(label: str, options: Sequence[str]) -> str:
    """The option that is ``label`` once both are normalised; else the label itself."""
    by_form = {normalised(option): option for option in options}
    return by_form.get(normalised(label), whole_characters(label).strip())


def recovered(labels: pd.DataFrame, truth: pd.DataFrame) -> pd.DataFrame:
    """Which labels were recovered, dialogue by dialogue.

    Args:
        labels: rows of `recover_labels`, in any order.
        truth: dialogue_id and `PARAMETERS`: rows of `draws_table` or of `generate_dialogues`, in any order, of these
            dialogues and others.

    Returns:
        One row a row of ``labels``, in their order: dialogue_id, language, generator, judge, 1.0 or 0.0 for each of
        `PARAMETERS`, LRA (their mean: label recovery accuracy), outcome. NaN unless the outcome is ok.

    Raises:
        Problem: a dialogue has no truth, or two different ones, or one that is no option, such as a placeholder.
    """
    labels = labels.reset_index(drop=True)
    true = labels[["dialogue_id"]].merge(_truth_by_id(labels, truth), "left", "dialogue_id", validate="many_to_one")
    same = {name: labels[name].map(normalised) == true[name].map(normalised) for name in PARAMETERS}
    right = pd.DataFrame(same).astype(float).where(labels["outcome"] == Outcome.OK)
    return labels[[*KEY, "judge"]].join(right).assign(LRA=right.mean(axis=1), outcome=labels["outcome"])


def _truth_by_id(labels: pd.DataFrame, truth: pd.DataFrame) -> pd.DataFrame:
    """One row for each dialogue_id among ``labels``."""
    found = truth.loc[truth["dialogue_id"].isin(labels["dialogue_id"]), ["dialogue_id", *PARAMETERS]].drop_duplicates()
    unknown = labels.loc[~labels["dialogue_id"].isin(found["dialogue_id"]), "dialogue_id"]
    if len(unknown):
        raise Problem(f"dialogue {unknown.iloc[0]}", "its parameters are not known", "give the draws it was made from")
    twice = found.loc[found["dialogue_id"].duplicated(), "dialogue_id"]
    if len(twice):
        raise Problem(f"dialogue {twice.iloc[0]}", "it has two sets of parameters", "give those of one seed")
    for name, options in read_options().labels.items():
        known = {normalised(option) for option in options}
        strange = found[[normalised(str(value)) not in known for value in found[name]]]
        if len(strange):
            raise Problem(
                f"dialogue {strange['dialogue_id'].iloc[0]}", f"its {name} {strange[name].iloc[0]!r} is no option",
                "leave out dialogues whose parameters are placeholders",
            )  # fmt: skip
    return found


def label_accuracy(items: pd.DataFrame) -> pd.DataFrame:
    """Accuracy by category, with Wilson's 95% interval over dialogues.

    Args:
        items: rows of `recovered`.

    Returns:
        judge, generator, language, category, recovered, n (dialogues with a readable reply), accuracy (recovered / n,
        NaN where n is 0), low, high, unread (the other dialogues). `wilson_interval(recovered, n)` gives the interval.
    """
    long = items.melt(["judge", "generator", "language"], list(PARAMETERS), "category", "right")
    long["category"] = pd.Categorical(long["category"], PARAMETERS)
    groups = long.groupby(["judge", "generator", "language", "category"], observed=True)["right"]
    table = groups.agg(recovered="sum", n="count", asked="size").reset_index()
    interval = wilson_interval(table["recovered"], table["n"])
    return table.assign(
        category=table["category"].astype(str),
        recovered=table["recovered"].astype(int),
        accuracy=interval.estimate,
        low=interval.low,
        high=interval.high,
        unread=table["asked"] - table["n"],
    ).drop(columns="asked")
