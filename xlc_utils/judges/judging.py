"""All judges of a run over all its dialogues: scores, recovered labels, and the probe of the judges themselves."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from xlc_utils.chat.base import Sampling
from xlc_utils.judges import label_recovery, probe, rubric
from xlc_utils.judges.dialogues import first_draws
from xlc_utils.registry import prompts


def judge_all(run) -> pd.DataFrame:
    """Asks every judge for scores and labels, writes both item-level tables, and returns them joined.

    Returns:
        rows of `rubric.judge_dialogues` with a column LRA (mean of the five recovered labels), empty without judges.
    """
    if not (run.params.judges and run.params.dialogue_generators):
        return pd.DataFrame(columns=["judge", "language", "generator", "dialogue_id"])
    dialogues = judged_dialogues(run)
    made = []
    for judge in run.params.judges:
        sampling = _sampling(run, judge)
        model, task = run.chat(judge), prompts.instruction(run.root, rubric.INSTRUCTIONS["en"])
        scores = rubric.judge_dialogues(model, dialogues, task, sampling)
        run.write("judge_scores", judge, scores)
        task = prompts.instruction(run.root, label_recovery.INSTRUCTION)
        labels = label_recovery.recover_labels(model, dialogues, task, sampling)
        run.write("judge_labels", judge, labels)
        keys = ["dialogue_id", "language", "generator", "judge"]
        made.append(scores.merge(label_recovery.recovered(labels, dialogues)[[*keys, "LRA"]], on=keys))
    return pd.concat(made, ignore_index=True)


def judged_dialogues(run) -> pd.DataFrame:
    """The dialogues that are judged: the first `judged_dialogues` draws, the same for every generator and language."""
    n = run.params.judged_dialogues
    frames = [first_draws(run.read("dialogues", g), n) for g in run.params.dialogue_generators]
    return pd.concat(frames, ignore_index=True)


def accuracy_by_category(run) -> pd.DataFrame:
    """Label recovery by judge, generator, language and category, with Wilson intervals (paper B, Figures 3 and 4)."""
    dialogues = judged_dialogues(run)
    parts = [label_recovery.recovered(run.read("judge_labels", j), dialogues) for j in run.params.judges]
    return label_recovery.label_accuracy(pd.concat(parts, ignore_index=True))


def probe_all(run) -> pd.DataFrame:
    """Asks every judge for scores of the probe's dialogues, in every language that it is written in, and writes them.

    Returns:
        what `probe.probe_result` gives; empty without judges.
    """
    if not run.params.judges:
        return pd.DataFrame(columns=probe.RESULT)
    dialogues = probe.probe_dialogues(run.root, probe.probe_languages(run.root))
    task = prompts.instruction(run.root, rubric.INSTRUCTIONS["en"])
    made = []
    for judge in run.params.judges:
        scores = rubric.judge_dialogues(run.chat(judge), dialogues, task, _sampling(run, judge))
        run.write("judge_probe", judge, scores)
        made.append(scores)
    return probe.probe_result(pd.concat(made, ignore_index=True), dialogues)


def _sampling(run, judge: str) -> Sampling:
    return replace(rubric.SAMPLING, seed=run.params.seed, reasoning_effort=run.models.model(judge).reasoning_effort)
