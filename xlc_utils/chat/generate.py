"""Notebook 01: the same question in every language, to every system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from xlc_utils.chat.base import Chat, ChatModel, Sampling
from xlc_utils.chat.offtarget import LanguageDetector
from xlc_utils.registry import prompts
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.prompts import Shots


@dataclass(frozen=True)
class Question:
    """One prompt x_ℓ: what it is about (dimension, id), the language it is asked in, its text, and whether that is
    private (see `Chat`)."""

    dimension: str
    prompt_id: str
    language: str
    text: str
    private: bool = False


# A base model continues a text; these stand for "question" and "answer" in it. They are the same in every language:
# the two examples before them, not the labels, tell the model which language to write.
_LABELS = {"information": ("Q", "A"), "empathy": ("Post", "Reply")}
_STOPS = tuple(f"\n{ask}:" for ask, _ in _LABELS.values())  # where a base model goes on to the next example


def chat_for(question: Question, kind: str, shots: Shots | None) -> Chat:
    """The request for one question: the bare prompt for a chat model, as in paper A; two in-language examples before
    it for a base model."""
    who = {"language": question.language, "prompt_id": question.prompt_id, "private": question.private}
    if kind != "completion":
        return Chat.user(question.text, **who)
    ask, answer = _LABELS[question.dimension]
    examples = getattr(shots, question.dimension)
    shown = "".join(f"{ask}: {s.prompt}\n{answer}: {s.answer}\n\n" for s in examples)
    return Chat(completion=f"{shown}{ask}: {question.text}\n{answer}:", **who)


def generate(
    model: ChatModel,
    questions: Sequence[Question],
    kind: str,
    shots: dict[str, Shots],
    sampling: Sampling,
    detector: LanguageDetector,
) -> pd.DataFrame:
    """Asks all questions of one model.

    Returns:
        One row a question: dimension, prompt_id, language, prompt (nothing where it is private), text, outcome, detail,
        detected (language of the text), characters, completion_tokens, finish_reason.
    """
    replies = model.complete([chat_for(q, kind, shots.get(q.language)) for q in questions], sampling)
    rows = []
    for question, reply in zip(questions, replies, strict=True):
        detected = detector.language(reply.text, question.language)
        off = reply.outcome in (Outcome.OK, Outcome.TRUNCATED) and detected not in (None, question.language)
        rows.append(
            {
                "dimension": question.dimension,
                "prompt_id": question.prompt_id,
                "language": question.language,
                "prompt": "" if question.private else question.text,
                "text": reply.text,
                "outcome": str(Outcome.OFF_TARGET if off else reply.outcome),
                "detail": f"written in {detected}" if off else reply.detail,
                "detected": detected or "",
                "characters": len(reply.text),
                "completion_tokens": reply.completion_tokens,
                "finish_reason": reply.finish_reason,
            }
        )
    return pd.DataFrame(rows)


def prompt_table(run) -> pd.DataFrame:
    """Every prompt of the run in every language: written where params/prompts has it, else translated from English.

    Returns:
        dimension, prompt_id, language, text, source (written | translated), outcome (of the translation: that of its
        first sentence that is not ok), private; the order is that in which prompts are asked. See `kept`.
    """
    rows = []
    for dimension in prompts.DIMENSIONS:
        asked = run.prompts(dimension)
        for language in ("en", *run.params.languages):
            texts = asked.written(language)
            lacking = [i for i in asked.ids if i not in texts]
            outcomes = {}
            if lacking:
                # Prompts may be private: no record keeps their sentences.
                made, sentences = run.translate([asked.english[i] for i in lacking], "en", language, recorded=False)
                texts = {**texts, **dict(zip(lacking, made, strict=True))}
                bad = sentences[sentences["outcome"] != "ok"].groupby("document")["outcome"].first()
                outcomes = {lacking[document]: outcome for document, outcome in bad.items()}
            rows += [
                {
                    "dimension": dimension,
                    "prompt_id": i,
                    "language": language,
                    "text": texts[i],
                    "source": "translated" if i in lacking else "written",
                    "outcome": outcomes.get(i, "ok"),
                    "private": asked.private,
                }
                for i in asked.ids
            ]
    return pd.DataFrame(rows)


def kept(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of `prompt_table` as they may be written and shown: without the text of private prompts."""
    return table.assign(text=table["text"].where(~table["private"], ""))


def questions_for(run, name: str, table: pd.DataFrame) -> list[Question]:
    """The questions one model is asked: all, or for an embedded model the first ``generated_prompts`` a dimension; a
    replayed known answer is there only for the prompts that have one. A prompt that could not be translated is not
    asked."""
    entry = run.models.models.get(name)
    if entry is not None and entry.backend == "embedded" and run.params.generated_prompts is not None:
        count = run.params.generated_prompts
        first = {d: list(dict.fromkeys(g["prompt_id"]))[:count] for d, g in table.groupby("dimension")}
        table = table[[p in first[d] for d, p in zip(table["dimension"], table["prompt_id"], strict=True)]]
    if entry is not None and entry.answers == "known":
        known = prompts.known_texts(run.root, ["en", *run.params.languages])
        table = table[[k in known for k in zip(table["language"], table["prompt_id"], strict=True)]]
    asked = table[~table["outcome"].isin([Outcome.ERROR, Outcome.REFUSED])]
    return [Question(r.dimension, r.prompt_id, r.language, r.text, r.private) for r in asked.itertuples()]


def generate_answers(run, model: str, table: pd.DataFrame) -> pd.DataFrame:
    """Asks one of the run's models all its questions; see `generate`.

    Args:
        run: the notebook's run.
        model: an entry of ``models``.
        table: rows of `prompt_table`.
    """
    entry = run.models.models.get(model)
    kind = entry.kind if entry else "chat"
    questions = questions_for(run, model, table)
    sampling = Sampling(
        max_tokens=run.params.generation_max_tokens,
        temperature=entry.temperature if entry else 0.0,
        seed=run.params.seed,
        stop=_STOPS if kind == "completion" else (),
        reasoning_effort=entry.reasoning_effort if entry else None,
    )
    shots = {q.language: prompts.shots(run.root, q.language) for q in questions} if kind == "completion" else {}
    frame = generate(run.chat(model), questions, kind, shots, sampling, LanguageDetector(run.languages))
    return frame.assign(model=Path(model).stem if entry is None else model)
