"""A run's answers to read: one page that opens anywhere, or a part of it in a notebook.

Which claims of an answer the English one supports and which it lacks, profiles, and judges' scores stand beside the
texts. A prompt's text is shown only if it is one of params/prompts: others, such as EPITOME's posts, may not be passed
on, and stand there by their id.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections.abc import Collection
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from xlc_utils.judges import probe
from xlc_utils.judges.rubric import SCALES
from xlc_utils.registry import prompts
from xlc_utils.registry.files import shown
from xlc_utils.registry.problems import Problem
from xlc_utils.registry.prompts import DIMENSIONS, MECHANISMS
from xlc_utils.reporting.tables import render
from xlc_utils.running.run import read_stages

if TYPE_CHECKING:
    from xlc_utils.running.run import Run

FILE = "viewer.html"
DIALOGUES = "dialogues"  # the third kind of thing to read, beside the two dimensions
MOST_IN_A_NOTEBOOK = 500

_Key = tuple[str, str]  # prompt id, language


def write(run: Run) -> Path:
    """Writes <run>/viewer.html with all answers and dialogues of the run; its path.

    Raises:
        Problem: the run has no answers yet, a part is missing or damaged, or the disk is full.
    """
    page = _page(run, collected(run), embedded=False)
    path = run.folder / FILE
    run.atomically(path, lambda partial: partial.write_bytes(page.encode()))
    return path


def show(
    run: Run,
    prompt_ids: Collection[str] | None = None,
    models: Collection[str] | None = None,
    languages: Collection[str] | None = None,
    height: int = 720,
):
    """The viewer in a notebook, with some of the answers; None stands for all.

    Args:
        run: the notebook's run.
        prompt_ids: of the answers, or ids of dialogues.
        models: that answered, or that wrote the dialogues.
        languages: beside English, which is always there.
        height: in pixels.

    Raises:
        Problem: there are none, or more than a notebook should carry.
    """
    from IPython.display import HTML

    items = [
        item
        for item in collected(run)
        if (prompt_ids is None or item["prompt"] in prompt_ids)
        and (models is None or item["model"] in models)
        and (languages is None or item["language"] in {"en", *languages})
    ]
    if not 0 < len(items) <= MOST_IN_A_NOTEBOOK:
        what = f"it would hold {len(items)} answers, and a notebook can show 1 to {MOST_IN_A_NOTEBOOK}"
        remedy = f"name other prompts, models or languages, or read all of them by `xlc view {run.folder.name}`"
        raise Problem("viewer.show", what, remedy)
    page = escape(_page(run, items, embedded=True))
    frame = (
        f'<iframe srcdoc="{page}" title="Answers of the run" style="width:100%;height:{height}px;border:0"></iframe>'
    )
    return HTML(f"<div>{frame}</div>")


def _page(run: Run, items: list[dict], embedded: bool) -> str:
    """Compressed, since texts repeat in claims and prompts; as base64, since no text can end the script it is in."""
    known = run.languages
    used = {item["language"] for item in items}
    for code in sorted(used - set(known)):
        raise Problem(
            f"language `{code}`",
            "the run has answers in it, but no file describes it",
            f"write params/languages/{code}.yaml",
        )
    order = sorted(used, key=lambda code: (code != "en", known[code].name))
    data = {
        "run": run.folder.name,
        "embedded": embedded,
        "languages": {c: known[c].model_dump(include={"name", "autonym", "direction", "font"}) for c in order},
        "toys": sorted({item["model"] for item in items if run.is_toy(item["model"])}),
        "scales": SCALES,
        "items": items,
    }
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    packed = base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()
    return render("viewer.html.j2", title=f"Answers of the run “{run.folder.name}”", packed=packed)


# ---- what is shown ---------------------------------------------------------------------------------------------------
def collected(run: Run) -> list[dict]:
    """Every answer and dialogue of a run, as the page takes it; what a notebook has not computed is left out.

    Returns:
        One dict an answer: kind (a dimension or "dialogues"), model, prompt (its id), language, asked (the prompt's
        text, or nothing), text, english (where it is another text), translator, outcome, detail, detected, score (0 to
        1, see the page; None: not scored), reason; and where the run has them claims, verdicts (precision: of these
        claims, recall: of those of the English answer; 1, 0, or None for no verdict), precision, recall, profile,
        judges.

    Raises:
        Problem: the run has no answers yet; a part is missing or damaged.
    """
    parts: dict[str, list[str]] = {}
    for stage in read_stages(run.folder):
        for name in stage["outcomes"]:
            table, _, model = name.partition("/")
            parts.setdefault(table, []).append(model)
    items = [item for model in parts.get("responses", ()) for item in _answers(run, model, parts)]
    items += _dialogues(run, parts)
    if not items:
        raise Problem(shown(run.folder), "there are no answers to read yet", "run notebook 01 first")
    return items


def _answers(run: Run, model: str, parts: dict[str, list[str]]) -> list[dict]:
    translated = model in parts.get("translations", ())
    answers = run.read("translations" if translated else "responses", model)
    answers = answers.astype(object).where(answers.notna(), "")
    tables = ("claims", "verdicts", "information", "profiles", "empathy")
    has = {t: run.read(t, model) for t in tables if model in parts.get(t, ())}
    claims, verdicts = _claims(has.get("claims")), _verdicts(has.get("verdicts"))
    scores = {d: _by_key(has.get(t)) for d, t in (("information", "information"), ("empathy", "empathy"))}
    profiles = _by_key(has.get("profiles"))
    may_be_shown = _own_prompts(run, answers)
    items = []
    for row in answers.to_dict("records"):
        key, kind = (row["prompt_id"], row["language"]), row["dimension"]
        item = {
            "kind": kind,
            "model": model,
            "prompt": row["prompt_id"],
            "language": row["language"],
            "asked": row["prompt"] if (kind, row["prompt_id"]) in may_be_shown else "",
            "text": row["text"],
            "outcome": row["outcome"],
            "detail": row["detail"],
            "detected": row["detected"],
            "score": None,
        }
        if translated and row["language"] != "en":
            item |= {"english": row["english"], "translator": row["translator"]}
        score = scores.get(kind, {}).get(key)
        if kind == "information":
            item |= {"claims": claims.get(key), "verdicts": verdicts.get(key)}
            if score:
                item |= {"score": _number(score["f"]), "reason": score["reason"]}
                item |= {name: _number(score[name]) for name in ("precision", "recall")}
        elif key in profiles:
            item["profile"] = {m: _number(profiles[key][m]) for m in MECHANISMS}
            if score:
                same = [_number(score[f"same_{m}"]) for m in MECHANISMS]
                item |= {"score": None if None in same else sum(same) / len(same), "reason": score["reason"]}
        items.append({name: value for name, value in item.items() if value is not None or name == "score"})
    return items


def _own_prompts(run: Run, answers: pd.DataFrame) -> set[tuple[str, str]]:
    """(dimension, id) of the prompts that were asked in English as they stand in params/prompts."""
    english = answers[answers["language"] == "en"]
    asked = set(zip(english["dimension"], english["prompt_id"], english["prompt"], strict=True))
    own = {(d, i, text) for d in DIMENSIONS for i, text in prompts.prompts(run.root, d, "en").items()}
    return {(dimension, i) for dimension, i, _ in asked & own}


def _by_key(frame: pd.DataFrame | None) -> dict[_Key, dict]:
    if frame is None:
        return {}
    return dict(zip(zip(frame["prompt_id"], frame["language"], strict=True), frame.to_dict("records"), strict=True))


def _claims(frame: pd.DataFrame | None) -> dict[_Key, list[str]]:
    found: dict[_Key, list[str]] = {}
    if frame is not None:
        made = frame[frame["outcome"] == "ok"].sort_values("claim_no", kind="stable")
        for prompt_id, language, claim in zip(made["prompt_id"], made["language"], made["claim"], strict=True):
            found.setdefault((prompt_id, language), []).append(claim)
    return found


def _verdicts(frame: pd.DataFrame | None) -> dict[_Key, dict]:
    """Of each answer its two directions, in the order of the claims, and who gave the verdicts."""
    found: dict[_Key, dict] = {}
    if frame is not None:
        columns = ["prompt_id", "language", "direction", "supported", "outcome", "verifier"]
        rows = frame.sort_values("claim_no", kind="stable")[columns]
        for prompt_id, language, direction, supported, outcome, verifier in rows.itertuples(index=False):
            own = found.setdefault((prompt_id, language), {"by": verifier, "precision": [], "recall": []})
            own[direction].append(int(supported) if outcome == "ok" else None)
    return found


def _dialogues(run: Run, parts: dict[str, list[str]]) -> list[dict]:
    """Dialogues with what each judge says; their score is the mean share of the top of the judges' scales."""
    judged: dict[tuple, list[dict]] = {}
    marks = _marks(run, parts)
    for judge in parts.get("judge_scores", ()):
        for row in run.read("judge_scores", judge).to_dict("records"):
            scores = {name: _number(row[name]) for name in SCALES}
            said = {
                "judge": marks.get(judge, judge),
                **scores,
                "explanation": row["explanation"],
                "outcome": row["outcome"],
            }
            judged.setdefault((row["generator"], row["dialogue_id"], row["language"]), []).append(said)
    items = []
    for generator in parts.get("dialogues", ()):
        for row in run.read("dialogues", generator).to_dict("records"):
            judges = judged.get((generator, row["dialogue_id"], row["language"]), [])
            shares = [said[name] / top for said in judges for name, top in SCALES.items() if said[name] is not None]
            turns = [f"{t['sender']} ({t['name']})" if t["name"] else t["sender"] for t in json.loads(row["turns"])]
            texts = [t["text"] for t in json.loads(row["turns"])]
            items.append({
                "kind": DIALOGUES, "model": generator, "prompt": row["dialogue_id"], "language": row["language"],
                "asked": "", "text": "\n\n".join(f"{who}: {text}" for who, text in zip(turns, texts, strict=True)),
                "outcome": row["outcome"], "detail": row["detail"], "detected": row["language"],
                "score": sum(shares) / len(shares) if shares else None, "judges": judges,
            })  # fmt: skip
    return items


def _marks(run: Run, parts: dict[str, list[str]]) -> dict[str, str]:
    """See `probe.marks`; none where no judge was probed."""
    if not parts.get("judge_probe"):
        return {}
    scores = pd.concat([run.read("judge_probe", judge) for judge in parts["judge_probe"]], ignore_index=True)
    pairs = probe.probe_dialogues(run.root, probe.probe_languages(run.root))
    return probe.marks(probe.probe_result(scores, pairs))


def _number(value: object) -> float | None:
    """Rounded, since nobody reads more digits; None for what is missing."""
    return None if value is None or math.isnan(value) else round(float(value), 4)
