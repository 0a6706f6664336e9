"""Recorded calls as JSON lines: to look at, to keep, and to give to a colleague who would else ask the same."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from xlc_utils.chat.base import Chat, Reply, Sampling, call_key
from xlc_utils.chat.record import Call, Record
from xlc_utils.registry.files import shown
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem

AT_ONCE = 500


def calls_text(record: Record) -> str:
    """How many calls of each model ended how, with tokens, attempts and seconds a call."""
    rows = record.summary()
    if not rows:
        return "No call is recorded."
    width = max(len(row["model"]) for row in rows)
    names = ("outcome", "calls", "attempts", "tokens in", "tokens out", "s a call")
    lines = [f"{'model':{width}} " + " ".join(f"{n:>{w}}" for n, w in zip(names, (11, 9, 9, 12, 12, 9), strict=True))]
    lines += [
        f"{r['model']:{width}} {r['outcome']:>11} {r['calls']:>9,} {r['attempts']:>9,} {r['prompt_tokens']:>12,}"
        f" {r['completion_tokens']:>12,} {r['seconds'] / r['calls']:>9.2f}"
        for r in rows
    ]
    return "\n".join(lines)


def errors_text(record: Record) -> str:
    """Why calls failed, each reason with how often, the most frequent first."""
    reasons = Counter(record.errors(limit=-1))
    lines = [f"{n:>9,}  {model}: {detail}" for (model, detail), n in reasons.most_common()]
    return "\n".join(lines) or "No call has failed."


def export(record: Record, path: Path) -> int:
    """Writes every recorded call as one JSON object a line, and returns how many.

    Raises:
        Problem: the file cannot be written.
    """
    try:
        with path.open("w", encoding="utf-8", newline="\n") as file:
            count = 0
            for key, model, request, reply, at in record.rows():
                count += 1
                line = {"key": key, "model": model, **json.loads(request), "reply": json.loads(reply), "at": at}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
    except OSError as error:
        what = f"it cannot be written ({error.strerror})"
        raise Problem(str(path), what, "free some space, or name another file") from error
    return count


def import_(record: Record, path: Path) -> tuple[int, int]:
    """Enters calls that `export` wrote, or all that another run's record (calls.sqlite) holds; what is recorded already
    stays.

    Returns:
        How many calls are new, and how many the file holds.

    Raises:
        Problem: a line is no call, or its key is not that of its request: it was changed by hand. Whole blocks of
            lines before it may have been entered.
    """
    if path.suffix == ".sqlite":
        return record.merge(path)
    total, before = 0, record.count()
    block: list[Call] = []
    for call in _calls(path):
        total += 1
        block.append(call)
        if len(block) == AT_ONCE:
            record.put(block)
            block = []
    record.put(block)
    return record.count() - before, total


def _calls(path: Path) -> Iterator[Call]:
    remedy = "export it again, or take the line out"
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                where = f"{shown(path)}: line {number}"
                try:
                    call = _call(json.loads(line))
                except (ValueError, TypeError, LookupError, AttributeError) as error:
                    raise Problem(where, f"is no recorded call ({error})", remedy) from error
                # The text of a private chat was not kept: nothing to hold its key against.
                if not call.chat.private and call_key(call.identity, call.chat, call.sampling) != call.key:
                    raise Problem(where, "its request is not the one that its key stands for", remedy)
                yield call
    except OSError as error:
        raise Problem(shown(path), f"it cannot be read ({error.strerror})", "correct its name") from error
    except UnicodeDecodeError as error:
        raise Problem(shown(path), "it is not UTF-8", "export it again") from error


def _call(row: dict) -> Call:
    chat, sampling, reply = dict(row["chat"]), dict(row["sampling"]), dict(row["reply"])
    chat["messages"] = tuple((role, text) for role, text in chat["messages"])
    sampling["stop"] = tuple(sampling["stop"])
    reply["logprobs"] = tuple((t, p, tuple((a, b) for a, b in top)) for t, p, top in reply["logprobs"])
    return Call(
        str(row["key"]),
        str(row["model"]),
        dict(row["model_identity"]),
        Chat(**chat),
        Sampling(**sampling),
        Reply(**{**reply, "outcome": Outcome(reply["outcome"])}),
        float(row["at"]),
    )
