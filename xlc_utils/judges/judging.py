"""All judges of a run over all its dialogues: scores, recovered labels, and the probe of the judges themselves."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from xlc_utils.chat.base import Sampling
from xlc_utils.judges import calibration, human, label_recovery, meta_prompts, probe, rubric
from xlc_utils.judges.dialogues import first_draws
from xlc_utils.judges.released import read_annotated
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


def other_meta_prompts(run) -> dict[str, pd.DataFrame]:
    """Scores under each further meta-prompt, of the judged dialogues in its own language (paper B, Table 12).

    Returns:
        language of the meta-prompt -> `meta_prompts.meta_prompt_differences`; empty without judges.
    """
    found = {}
    dialogues = judged_dialogues(run) if run.params.judges else None
    for code in run.params.meta_prompts if run.params.judges else ():
        own = dialogues[dialogues["language"] == code]
        made = []
        for judge in run.params.judges:
            task = prompts.instruction(run.root, rubric.INSTRUCTIONS[code])
            made.append(rubric.judge_dialogues(run.chat(judge), own, task, _sampling(run, judge)))
            run.write(f"judge_scores_{code}", judge, made[-1])
        english = pd.concat([run.read("judge_scores", judge) for judge in run.params.judges], ignore_index=True)
        found[code] = meta_prompts.meta_prompt_differences(
            english, pd.concat(made, ignore_index=True), run.params.bootstrap_samples, run.params.seed
        )
    return found


def ablation_labels(run) -> pd.DataFrame:
    """Labels recovered in one language by the judges and the `ablation_judges` (paper B, appendix G).

    Returns:
        rows of `label_recovery.recovered`; empty without ablation judges.
    """
    if not run.params.ablation_judges:
        return pd.DataFrame(columns=["judge"])
    dialogues = judged_dialogues(run)
    own = dialogues[dialogues["language"] == run.params.ablation_language]
    task = prompts.instruction(run.root, label_recovery.INSTRUCTION)
    made = []
    for judge in dict.fromkeys((*run.params.judges, *run.params.ablation_judges)):
        labels = label_recovery.recover_labels(run.chat(judge), own, task, _sampling(run, judge))
        run.write("judge_labels_ablation", judge, labels)
        made.append(label_recovery.recovered(labels, own))
    return pd.concat(made, ignore_index=True)


def calibrate(run) -> pd.DataFrame:
    """Every judge over the dialogues that people rated; see `calibration.judge_against_people`.

    Returns:
        its table; without judges or with `calibration_dialogues` 0 the rows of the annotators alone.
    """
    ratings = human.read_ratings()
    made = [pd.DataFrame(columns=["judge", "dialogue_id", *rubric.SCALES])]
    if run.params.judges and run.params.calibration_dialogues:
        dialogues = calibration.annotated_frame(read_annotated(), ratings, run.params.calibration_dialogues)
        task = prompts.instruction(run.root, rubric.INSTRUCTIONS["en"])
        for judge in run.params.judges:
            made.append(rubric.judge_dialogues(run.chat(judge), dialogues, task, _sampling(run, judge)))
            run.write("judge_calibration", judge, made[-1])
    scores = pd.concat(made[1:] or made, ignore_index=True)
    return calibration.judge_against_people(scores, ratings, run.params.bootstrap_samples, run.params.seed)


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
    """Asks every judge, of the ablation too, for scores of the probe's dialogues, in every language that it is written
    in, and writes them.

    Returns:
        what `probe.probe_result` gives; empty without judges.
    """
    if not run.params.judges:
        return pd.DataFrame(columns=probe.RESULT)
    dialogues = probe.probe_dialogues(run.root, probe.probe_languages(run.root))
    task = prompts.instruction(run.root, rubric.INSTRUCTIONS["en"])
    made = []
    for judge in dict.fromkeys((*run.params.judges, *run.params.ablation_judges)):
        scores = rubric.judge_dialogues(run.chat(judge), dialogues, task, _sampling(run, judge))
        run.write("judge_probe", judge, scores)
        made.append(scores)
    return probe.probe_result(pd.concat(made, ignore_index=True), dialogues)


def _sampling(run, judge: str) -> Sampling:
    return replace(rubric.SAMPLING, seed=run.params.seed, reasoning_effort=run.models.model(judge).reasoning_effort)
