"""Answers that exist already, of a system that is not run: a CSV or JSONL file with language, prompt id and text."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

from xlc_utils.chat.base import Chat, Reply, Sampling, typed_text, whole_characters
from xlc_utils.registry.files import read_text, shown
from xlc_utils.registry.languages import canonical
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem

COLUMNS = ("language", "prompt_id", "text")
# What paper A stores where Gemini's API answered with a RECITATION error (its appendix "Experimental Details").
NO_ANSWER = "No answer"


class ReplayModel:
    """A `ChatModel` that looks its answers up.

    Args:
        name: how tables call the system.
        answers: the text for each (language, prompt id).
    """

    def __init__(self, name: str, answers: dict[tuple[str, str], str]):
        self.name, self._answers = name, answers

    def complete(self, chats: Sequence[Chat], sampling: Sampling) -> list[Reply]:
        return [self._reply(chat) for chat in chats]

    def _reply(self, chat: Chat) -> Reply:
        text = self._answers.get((chat.language, chat.prompt_id))
        if text is None:
            detail = f"no stored answer for {chat.language} {chat.prompt_id}"
            return Reply("", Outcome.ERROR, detail=detail, recorded=True)
        if text.strip().rstrip(".") == NO_ANSWER:
            return Reply(text, Outcome.REFUSED, detail="stored as a refusal", recorded=True)
        outcome, detail = typed_text(text, "stop")
        return Reply(text.strip(), outcome, finish_reason="stop", detail=detail, recorded=True)


def read_answers(path: Path) -> dict[tuple[str, str], str]:
    """Reads a file of answers.

    Raises:
        Problem: the file is missing, not UTF-8, lacks a column, has a row that is broken or lacks a field, or answers
            a prompt twice.
    """
    text, name = read_text(path), shown(path)
    rows = _jsonl(name, text) if path.suffix in (".jsonl", ".ndjson") else _csv(name, text)
    answers: dict[tuple[str, str], str] = {}
    for line, row in rows:
        missing = [c for c in COLUMNS if not isinstance(row.get(c), str)]
        if missing:
            raise Problem(
                f"{name}: line {line}", f"has no text under {', '.join(missing)}", f"give each row {', '.join(COLUMNS)}"
            )
        key = (canonical(row["language"].strip()), row["prompt_id"].strip())
        if key in answers:
            raise Problem(f"{name}: line {line}", f"answers {key[0]} {key[1]} a second time", "keep one row of the two")
        answers[key] = whole_characters(row["text"])
    if not answers:
        raise Problem(name, "holds no answers", f"give it rows with {', '.join(COLUMNS)}")
    return answers


def _csv(name: str, text: str):
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))  # an answer may be longer than the default allows
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        missing = [c for c in COLUMNS if c not in (reader.fieldnames or ())]
        if missing:
            raise Problem(
                f"{name}: line 1", f"has no column {', '.join(missing)}", f"name the columns {', '.join(COLUMNS)}"
            )
        for row in reader:
            if None in row:
                raise Problem(
                    f"{name}: line {reader.line_num}",
                    "has more fields than there are columns",
                    "put a text that holds a comma in double quotes",
                )
            yield reader.line_num, row
    except csv.Error as error:
        raise Problem(
            f"{name}: line {reader.line_num + 1}",
            f"is not CSV ({error})",
            'put a text that holds a quote in double quotes, and write the quote twice ("")',
        ) from error


def _jsonl(name: str, text: str):
    for number, line in enumerate(text.split("\n"), 1):  # not splitlines: JSON may hold U+2028 and its like as they are
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise Problem(f"{name}: line {number}", f"is not JSON ({error})", "write one JSON object a line") from error
        if not isinstance(row, dict):
            raise Problem(f"{name}: line {number}", "is not a JSON object", "write one JSON object a line")
        yield number, row
