"""The judge: grammaticality, readability, coherence and fluency of a dialogue (paper B, section 2.3 and appendix D).

One call a dialogue, zero-shot. The meta-prompt is English or Estonian (paper B, section 3.5, tables 9 and 12); the
Estonian one has not been reviewed by a native speaker.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from xlc_utils.chat.base import Chat, ChatModel, Reply, Sampling, whole_characters
from xlc_utils.judges.dialogues import Malformed, brief, filled, turns_from_json
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem

#: The scores and the top of each scale, which begins at 0 (paper B, table 9).
SCALES = {"G": 4, "R": 4, "C": 3, "F": 3}

#: The file in params/prompts/instructions of each language that the judge can be instructed in.
INSTRUCTIONS = {"en": "judge_scores", "et": "judge_scores_et"}

#: Room for the thoughts of a reasoning model as well.
SAMPLING = Sampling(max_tokens=4096)

#: What a judge must be given of each dialogue, and what tells the dialogues apart.
NEEDED = ("dialogue_id", "language", "generator", "turns", "outcome")
KEY = ["dialogue_id", "language", "generator"]

#: The detail of a dialogue that the judge is not given.
NOT_JUDGED = "not judged: the dialogue has no turns"


def object_schema(properties: Mapping[str, dict]) -> str:
    """A JSON schema that asks for exactly these properties and an explanation."""
    properties = {**properties, "explanation": {"type": "string"}}
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return json.dumps(schema)


SCHEMA = object_schema({name: {"type": "integer", "enum": list(range(top + 1))} for name, top in SCALES.items()})


def judge_dialogues(
    model: ChatModel, dialogues: pd.DataFrame, instruction: str, sampling: Sampling = SAMPLING
) -> pd.DataFrame:
    """Scores of every dialogue by one judge.

    A dialogue without turns is not judged and keeps its outcome; any other is, also one in the wrong language.

    Args:
        model: the judge.
        dialogues: rows with `NEEDED`, such as `generate_dialogues` gives.
        instruction: the meta-prompt with ``{conversation}``; see `INSTRUCTIONS`.
        sampling: its ``json_schema`` is set here.

    Returns:
        One row a dialogue, in their order: dialogue_id, language, generator, judge, G, R, C, F (floats; NaN unless the
        outcome is ok), explanation, outcome, detail. ``unparsed``: see `read_scores`.

    Raises:
        Problem: a column is missing, or two rows are the same dialogue.
    """
    nothing = dict.fromkeys(SCALES, float("nan"))
    return ask_judge(model, dialogues, instruction, replace(sampling, json_schema=SCHEMA), read_scores, nothing)


def read_scores(text: str) -> dict[str, float | str]:
    """G, R, C, F and the explanation in a reply that has exactly the form asked for.

    Raises:
        Malformed: see `strict_object`; or a score is no whole number (2.5, 3.0, "3", true) or not on its scale.
    """
    found = strict_object(text, [*SCALES, "explanation"])
    for name, top in SCALES.items():
        score = found[name]
        if type(score) is not int:  # bool is an int to Python
            raise Malformed(f"{name} is no whole number: {brief(score)}")
        if not 0 <= score <= top:
            raise Malformed(f"{name} is off its scale of 0 to {top}: {str(score)[:20]}")
    return {name: float(found[name]) for name in SCALES} | {"explanation": found["explanation"]}


def strict_object(text: str, keys: Sequence[str]) -> dict:
    """The JSON object that is the whole of a reply.

    A code fence around it is only its wrapping, which some chat models never leave out (`ask_judge` notes it as the
    detail). Anything else beside it is refused: it might say something else.

    Raises:
        Malformed: there is other text, or no JSON object; a key is missing, unknown or given twice; the explanation is
            no text.
    """
    body = _without_fence(text)
    if not body.startswith("{"):
        raise Malformed(f"{'text before the JSON object' if '{' in body else 'no JSON object'}: {text[:80]!r}")
    try:
        found, end = json.JSONDecoder(object_pairs_hook=_once_each).raw_decode(body)
    except Malformed:
        raise
    except (ValueError, RecursionError) as error:
        raise Malformed(f"no JSON object ({str(error)[:60]}): {text[:80]!r}") from None
    if body[end:].strip():
        raise Malformed(f"text after the JSON object: {body[end:].strip()[:80]!r}")
    missing, unknown = [k for k in keys if k not in found], [k for k in found if k not in keys]
    if missing or unknown:
        raise Malformed(f"no key {missing[0]}" if missing else f"an unknown key: {unknown[0][:40]!r}")
    if not isinstance(found["explanation"], str):
        raise Malformed("the explanation is no text")
    return found | {"explanation": whole_characters(found["explanation"])}


def _without_fence(text: str) -> str:
    fenced = re.fullmatch(r"```(?:json)?\s*(.*?)\s*```", text.strip(), re.DOTALL | re.IGNORECASE)
    return fenced[1] if fenced else text.strip()


def _once_each(pairs: list[tuple[str, object]]) -> dict:
    """An object's content; JSON would silently keep the last of two values for a key."""
    names = [name for name, _ in pairs]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise Malformed(f"the key {twice[0][:40]!r} is given twice")
    return dict(pairs)


def ask_judge(
    model: ChatModel,
    dialogues: pd.DataFrame,
    instruction: str,
    sampling: Sampling,
    read: Callable[[str], dict],
    nothing: Mapping[str, object],
) -> pd.DataFrame:
    """One call for every dialogue that has turns.

    Args:
        model, dialogues, instruction: see `judge_dialogues`.
        sampling: with the ``json_schema`` of the reply.
        read: the values in a reply's text, ``explanation`` among them and ``detail`` if there is something to say of
            it; raises `Malformed`.
        nothing: the values of a dialogue that has none.

    Returns:
        dialogue_id, language, generator, judge, the names in ``nothing``, explanation, outcome, detail.
    """
    _check_dialogues(dialogues)
    records = dialogues.to_dict("records")
    conversations = [conversation(row["turns"]) for row in records]
    asked = [
        Chat.user(filled(instruction, {"conversation": text}), language=row["language"], prompt_id=row["dialogue_id"])
        for row, text in zip(records, conversations, strict=True)
        if text
    ]
    replies = iter(model.complete(asked, sampling))
    rows = []
    for row, text in zip(records, conversations, strict=True):
        values = _judgement(next(replies), read) if text else _not_judged(row)
        rows.append({k: row[k] for k in KEY} | {"judge": model.name, **nothing, "explanation": ""} | values)
    return pd.DataFrame(rows, columns=[*KEY, "judge", *nothing, "explanation", "outcome", "detail"])


def _check_dialogues(dialogues: pd.DataFrame) -> None:
    missing = [name for name in NEEDED if name not in dialogues]
    if missing:
        raise Problem("dialogues to judge", f"there is no column `{missing[0]}`", f"give each row {', '.join(NEEDED)}")
    twice = dialogues[dialogues.duplicated(KEY)]
    if len(twice):
        which = " ".join(map(str, twice[KEY].iloc[0]))
        raise Problem("dialogues to judge", f"{which} is there twice", "keep one of the two")


def conversation(turns: str) -> str:
    """A dialogue as the judge sees it, with who writes as in the authors' code: "Robin Falk (agent): …".

    Args:
        turns: JSON as `turns_to_json` writes it.
    """
    said = ((f"{t.name} ({t.sender})" if t.name else t.sender, t.text) for t in turns_from_json(turns))
    return "\n".join(f"{who}: {text}" for who, text in said)


def _judgement(reply: Reply, read: Callable[[str], dict]) -> dict:
    if reply.outcome is not Outcome.OK:
        return {"outcome": str(reply.outcome), "detail": reply.detail}
    try:
        values = read(reply.text)
    except Malformed as error:
        return {"outcome": str(Outcome.UNPARSED), "detail": str(error)}
    remarks = [values.get("detail"), "in a code fence" if reply.text.lstrip().startswith("```") else ""]
    return values | {"outcome": str(Outcome.OK), "detail": "; ".join(filter(None, remarks))}


def _not_judged(row: Mapping[str, object]) -> dict:
    outcome = Outcome.EMPTY if row["outcome"] == Outcome.OK else row["outcome"]
    return {"outcome": str(outcome), "detail": NOT_JUDGED}
