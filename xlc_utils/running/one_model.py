"""One model of a run alone: what a job on another machine does, to be joined by way of its record of calls."""

from __future__ import annotations

from pathlib import Path

from xlc_utils.registry.files import suggestion
from xlc_utils.registry.problems import Problem
from xlc_utils.running.params import Params, is_answers_file

# Steps that take several models, or none of them: they are left to the joint run.
_JOINT = {
    "round_trip_prompts": 0,
    "measured_verifiers": (),
    "judges": (),
    "judged_dialogues": 0,
    "meta_prompts": (),
    "ablation_judges": (),
    "calibration_dialogues": 0,
    "empathy_evaluators": (),
}


def of_one_model(params: Params, name: str) -> Params:
    """The parameters of a run of its own, <run>.<name>, that asks one of the run's models, or lets one of its dialogue
    generators write, exactly as the run would. Its calls, vectors and translations are the run's too once the run has
    taken in its record (`Record.merge`), and need not be made again.

    Args:
        params: of the run.
        name: an entry of ``models``, or of ``dialogue_generators``; of a file of answers also its stem.

    Raises:
        Problem: the run has no such model.
    """
    systems = {Path(entry).stem if is_answers_file(entry) else entry: entry for entry in params.models}
    systems |= {entry: entry for entry in params.models}
    if name not in systems and name not in params.dialogue_generators:
        known = [*systems, *params.dialogue_generators]
        raise Problem("command line: --model", f"the run has no model `{name}`", suggestion(name, known))
    model = systems.get(name, "known-answers")  # a generator that answers nothing itself: these cost no call
    own = Path(model).stem if is_answers_file(model) else model
    only = {
        "run_name": f"{params.run_name}.{own if name in systems else name}",
        # With the known answers where the run has them: the verifier is chosen on them.
        "models": tuple(m for m in params.models if m in (model, "known-answers")) or (model,),
        "round_trip_model": own,
        "dialogue_generators": tuple(g for g in params.dialogue_generators if g == name),
    }
    if name not in systems:
        only |= {"languages": params.languages[:1], "information_prompts": 1, "empathy_prompts": 1}
    return params.model_copy(update=_JOINT | only)
