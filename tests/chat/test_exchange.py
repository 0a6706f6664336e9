"""chat/exchange.py: recorded calls out of a run and into another."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from xlc_utils.chat import exchange
from xlc_utils.chat.base import Chat, Reply, Sampling, call_key
from xlc_utils.chat.record import Call, Record, RecordedModel
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem

IDENTITY = {"backend": "openai", "id": "m", "revision": "1"}
SAMPLING = Sampling(stop=("\n",), logprobs=1, sample=2)
LOGPROBS = (("Ja", -0.25, (("Ja", -0.25), ("Nein", -1.5))),)


def call(text: str, outcome: Outcome = Outcome.OK, **more) -> Call:
    chat = Chat.user(text, system="Kurz.", language="de")
    reply = Reply(text.upper(), outcome, "stop", 3, 4, 0.5, **more)
    return Call(call_key(IDENTITY, chat, SAMPLING), "m", IDENTITY, chat, SAMPLING, reply, 1.5)


@pytest.fixture
def record(tmp_path: Path) -> Record:
    record = Record(tmp_path / "mine" / "calls.sqlite")
    record.put([call("ä\u2028b", logprobs=LOGPROBS, attempts=3), call("nein", Outcome.REFUSED, detail="no")])
    record.put([call("kaputt", Outcome.ERROR, detail="HTTP 500")])
    return record


def test_what_is_exported_and_imported_is_what_was_recorded_and_is_not_asked(record: Record, tmp_path: Path):
    file = tmp_path / "calls.jsonl"
    assert exchange.export(record, file) == 3
    other = Record(tmp_path / "other" / "calls.sqlite")
    assert exchange.import_(other, file) == (3, 3)
    assert list(other.rows()) == list(record.rows())
    assert other.summary() == record.summary()
    assert exchange.import_(other, file) == (0, 3)

    def start():
        raise AssertionError("the model was started")

    model = RecordedModel("m", IDENTITY, start, other)
    [reply] = model.complete([call("ä\u2028b").chat], SAMPLING)
    assert (reply.text, reply.logprobs, reply.attempts, reply.recorded) == ("Ä\u2028B", LOGPROBS, 3, True)


def test_an_imported_error_is_asked_again_and_an_own_answer_stays(record: Record, tmp_path: Path):
    file = tmp_path / "calls.jsonl"
    exchange.export(record, file)
    text = file.read_text(encoding="utf-8").replace('"NEIN"', '"ja"').replace('"KAPUTT"', '"x"')
    file.write_text(text, encoding="utf-8")
    exchange.import_(record, file)
    assert record.get([call("nein").key])[call("nein").key].text == "NEIN"
    assert len(record.get([call("kaputt").key])) == 0


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda row: row | {"chat": row["chat"] | {"messages": [["user", "other"]]}}, "not the one that its key"),
        (lambda row: row | {"key": "0"}, "not the one that its key"),
        (lambda row: {k: v for k, v in row.items() if k != "reply"}, "is no recorded call"),
        (lambda row: row | {"reply": row["reply"] | {"outcome": "good"}}, "is no recorded call"),
        (lambda row: [row], "is no recorded call"),
    ],
)
def test_a_line_that_is_no_call_is_named(record: Record, tmp_path: Path, change, what: str):
    file = tmp_path / "calls.jsonl"
    exchange.export(record, file)
    lines = file.read_text(encoding="utf-8").split("\n")
    lines[1] = json.dumps(change(json.loads(lines[1])))
    file.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(Problem, match=f"calls.jsonl: line 2: .*{what}.*export it again"):
        exchange.import_(Record(tmp_path / "other.sqlite"), file)


def test_a_file_that_is_not_there_or_cannot_be_written(record: Record, tmp_path: Path):
    with pytest.raises(Problem, match=r"none.jsonl: it cannot be read"):
        exchange.import_(record, tmp_path / "none.jsonl")
    with pytest.raises(Problem, match=r"it cannot be written"):
        exchange.export(record, tmp_path)


def test_a_full_disk_is_one_sentence(record: Record):
    record.put([call(f"{i}" * 500) for i in range(50)])
    with pytest.raises(Problem, match=r"/dev/full: it cannot be written \(No space left"):
        exchange.export(record, Path("/dev/full"))


def test_the_list_and_the_reasons_of_failures(record: Record):
    record.put([call(f"q{i}", Outcome.ERROR, detail="HTTP 503: busy") for i in range(2)])
    lines = exchange.calls_text(record).splitlines()
    assert [line.split()[:4] for line in lines[1:]] == [
        ["m", "error", "3", "3"],
        ["m", "ok", "1", "3"],
        ["m", "refused", "1", "1"],
    ]
    assert exchange.errors_text(record).splitlines() == ["        2  m: HTTP 503: busy", "        1  m: HTTP 500"]
    assert exchange.errors_text(Record(record.path.parent / "new.sqlite")) == "No call has failed."


# ---- records ---------------------------------------------------------------------------------------------------------
def test_a_record_is_taken_in_whole_and_errors_are_left(record: Record, tmp_path: Path):
    record.put_vectors({"v": np.ones(4, np.float32)})
    joint = Record(tmp_path / "joint" / "calls.sqlite")
    joint.put([call("kaputt", Outcome.ERROR, detail="HTTP 429"), call("eigenes")])
    assert exchange.import_(joint, record.path) == (2, 2)
    assert {row["outcome"]: row["calls"] for row in joint.summary()} == {"ok": 2, "refused": 1, "error": 1}
    assert joint.get([call("ä\u2028b", logprobs=LOGPROBS).key])[call("ä\u2028b").key].logprobs == LOGPROBS
    assert joint.errors() == [("m", "HTTP 429")] and list(joint.get_vectors(["v"])["v"]) == [1, 1, 1, 1]
    assert exchange.import_(joint, record.path) == (0, 2), "again, as after a kill"


def test_an_answer_replaces_an_error_and_no_answer_of_its_own(record: Record, tmp_path: Path):
    other = Record(tmp_path / "other" / "calls.sqlite")
    other.put([call("kaputt"), replace(call("nein"), at=9.0)])
    assert record.merge(other.path) == (1, 2)
    assert record.get([call("kaputt").key])[call("kaputt").key].text == "KAPUTT"
    assert record.get([call("nein").key])[call("nein").key].outcome is Outcome.REFUSED


def test_what_is_no_record_is_told_and_changes_nothing(record: Record, tmp_path: Path):
    before, broken = list(record.rows()), tmp_path / "broken.sqlite"
    broken.write_text("no record at all, but longer than a hundred bytes " * 4)
    with pytest.raises(Problem, match="cannot be used"):
        record.merge(broken)
    with pytest.raises(Problem, match="there is no such record"):
        record.merge(tmp_path / "none.sqlite")
    assert list(record.rows()) == before and not (tmp_path / "none.sqlite").exists()
