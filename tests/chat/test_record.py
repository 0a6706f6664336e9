"""chat/record.py: nothing that was answered is lost, and nothing is asked twice."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import psutil
import pytest
from fake_endpoint import Answer, FakeEndpoint, completion
from hypothesis import given, settings
from hypothesis import strategies as st

from xlc_utils.chat import record as record_module
from xlc_utils.chat.base import Chat, Reply, Sampling, call_key
from xlc_utils.chat.budget import Budget
from xlc_utils.chat.openai_api import OpenAIBackend
from xlc_utils.chat.record import KEPT, Call, Record, RecordedModel, new_owner
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem

IDENTITY = {"backend": "openai", "id": "m", "revision": "1"}
GREEDY = Sampling()


class Backend:
    """Answers each chat with its question in capitals, or with what ``script`` says for it, once an entry."""

    identity = IDENTITY
    settings: dict = {}  # noqa: RUF012

    def __init__(self, **script: list[Reply]):
        self.asked: list[str] = []
        self.script = script

    def ask(self, chats, sampling):
        for index, chat in enumerate(chats):
            question = chat.messages[-1][1]
            self.asked.append(question)
            yield [(index, self.script[question].pop(0) if self.script.get(question) else reply(question.upper()))]

    def waiting(self) -> str:
        return ""


def reply(text: str = "A", outcome: Outcome = Outcome.OK, **more) -> Reply:
    return Reply(
        text, outcome, **{"finish_reason": "stop", "prompt_tokens": 3, "completion_tokens": 5, "seconds": 0.1, **more}
    )


def chats(*questions: str) -> list[Chat]:
    return [Chat.user(q) for q in questions]


def put(record: Record, key: str, given: Reply, question: str = "q") -> None:
    record.put([Call(key, "m", IDENTITY, Chat.user(question), GREEDY, given, time.time())])


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(tmp_path / "run" / "calls.sqlite")


def model_of(record: Record, backend: Backend, **more) -> RecordedModel:
    return RecordedModel("m", IDENTITY, lambda: backend, record, **more)


# ---- keys ------------------------------------------------------------------------------------------------------------
CHANGED = {
    "max_tokens": 7,
    "temperature": 0.5,
    "top_p": 0.9,
    "seed": 1,
    "stop": ("\n",),
    "json_schema": "{}",
    "grammar": "root ::= x",
    "logprobs": 1,
    "reasoning_effort": "low",
    "sample": 1,
}


def test_every_field_of_sampling_is_in_the_key():
    assert set(CHANGED) == {f.name for f in fields(Sampling)}, "a new field needs an entry here"
    keys = {call_key(IDENTITY, Chat.user("q"), replace(GREEDY, **{name: value})) for name, value in CHANGED.items()}
    assert len(keys | {call_key(IDENTITY, Chat.user("q"), GREEDY)}) == len(CHANGED) + 1


def test_the_key_tells_requests_apart_and_knows_equal_ones():
    different = [
        (IDENTITY, Chat.user("q")),
        (IDENTITY, Chat.user("q ")),
        (IDENTITY, Chat.user("q", system="s")),
        (IDENTITY, Chat(messages=(("assistant", "q"),))),
        (IDENTITY, Chat(messages=(("user", "q"), ("user", "")))),
        (IDENTITY, Chat(completion="q")),
        (IDENTITY, Chat(completion="q", forced=" a")),
        (IDENTITY, Chat(completion="q", forced=" b")),
        (IDENTITY, Chat.user("q", json_schema="{}")),
        (IDENTITY, Chat()),
        ({**IDENTITY, "revision": "2"}, Chat.user("q")),
    ]
    assert len({call_key(identity, chat, GREEDY) for identity, chat in different}) == len(different)
    assert call_key(IDENTITY, Chat.user("q"), GREEDY) == call_key(
        dict(reversed(IDENTITY.items())), Chat.user("q"), Sampling()
    )
    who = Chat.user("q", language="es", prompt_id="astronomy-01", shared=1)
    assert call_key(IDENTITY, who, GREEDY) == call_key(IDENTITY, Chat.user("q"), GREEDY)


# ---- asked once ------------------------------------------------------------------------------------------------------
def test_a_recorded_call_is_not_asked_again(record: Record):
    backend = Backend()
    model = model_of(record, backend)
    first = model.complete(chats("a", "b", "a"), GREEDY)
    assert [r.text for r in first] == ["A", "B", "A"] and backend.asked == ["a", "b"]
    assert not any(r.recorded for r in first)

    other = model_of(Record(record.path), backend)  # as a rerun opens it
    again = other.complete(chats("b", "c", "a"), GREEDY)
    assert [r.text for r in again] == ["B", "C", "A"] and backend.asked == ["a", "b", "c"]
    assert [r.recorded for r in again] == [True, False, True]
    assert [replace(r, recorded=False) for r in (again[0], again[2])] == [first[1], first[0]]


def test_no_backend_is_made_for_what_is_recorded(record: Record):
    model_of(record, Backend()).complete(chats("a"), GREEDY)

    def start():
        raise AssertionError("the model was started")

    assert RecordedModel("m", IDENTITY, start, record).complete(chats("a"), GREEDY)[0].text == "A"
    assert RecordedModel("m", IDENTITY, start, record).complete([], GREEDY) == []


@pytest.mark.parametrize("outcome", Outcome)
def test_only_answers_are_kept(record: Record, outcome: Outcome):
    backend = Backend(a=[reply("first", outcome, detail="why")])
    model = model_of(record, backend)
    assert model.complete(chats("a"), GREEDY)[0].outcome is outcome
    again = model.complete(chats("a"), GREEDY)[0]
    if outcome in (Outcome.OK, Outcome.TRUNCATED, Outcome.REFUSED, Outcome.EMPTY):
        assert (again.outcome, again.text, again.detail, backend.asked) == (outcome, "first", "why", ["a"])
    else:
        assert (again.outcome, again.text, backend.asked) == (Outcome.OK, "A", ["a", "a"])


def test_attempts_tokens_and_errors_are_counted(record: Record):
    failed = reply("", Outcome.ERROR, detail="HTTP 500", prompt_tokens=0, completion_tokens=0, seconds=1.0)
    backend = Backend(a=[failed, failed], b=[failed])
    model = model_of(record, backend)
    model.complete(chats("a", "b"), GREEDY)
    assert record.errors() == [("m", "HTTP 500")] * 2
    model.complete(chats("a"), GREEDY)
    model.complete(chats("a"), GREEDY)
    by_outcome = {row["outcome"]: row for row in record.summary()}
    assert by_outcome["error"] | {"seconds": None} == {
        "model": "m",
        "outcome": "error",
        "calls": 1,
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "seconds": None,
        "attempts": 1,
    }
    assert by_outcome["ok"]["attempts"] == 3 and by_outcome["ok"]["completion_tokens"] == 5
    assert len(record.errors()) == 1


def test_a_kept_reply_is_never_written_over(record: Record):
    key = call_key(IDENTITY, Chat.user("q"), GREEDY)
    for text, outcome in (("first", Outcome.TRUNCATED), ("second", Outcome.OK), ("", Outcome.ERROR)):
        put(record, key, reply(text, outcome))
    assert record.get([key])[key].text == "first"
    assert len(record.get([key, "other"])) == 1


def test_a_reply_that_was_recorded_meanwhile_is_the_one_that_is_used(record: Record):
    """As when a colleague's answers are imported while the call is in flight."""

    class Slower(Backend):
        def ask(self, chats, sampling):
            chats = list(chats)
            put(Record(record.path), call_key(IDENTITY, chats[0], sampling), reply("theirs"))
            yield from super().ask(chats, sampling)

    said = model_of(record, Slower(q=[reply("ours")])).complete(chats("q", "r"), GREEDY)
    assert [r.text for r in said] == ["theirs", "R"]


def test_the_record_comes_before_the_use(record: Record):
    key = call_key(IDENTITY, Chat.user("q"), GREEDY)
    seen = []
    model_of(
        record,
        Backend(),
        progress=lambda done, total, _: seen.append((done, total, len(Record(record.path).get([key])))),
    ).complete(chats("q"), GREEDY)
    assert seen == [(1, 1, 1)]


@settings(max_examples=25, deadline=None)
@given(
    text=st.text(st.characters(exclude_categories=["Cs"])),
    detail=st.text(st.characters(exclude_categories=["Cs"])),
    seconds=st.floats(0, 1e6),
    logprobs=st.lists(
        st.tuples(st.text(max_size=3), st.floats(max_value=0, allow_nan=False, allow_infinity=False)), max_size=3
    ),
)
def test_a_reply_comes_back_as_it_was(text, detail, seconds, logprobs):
    given_reply = reply(
        text, detail=detail, seconds=seconds, logprobs=tuple((t, p, ((t, p), ("x", -1.0))) for t, p in logprobs)
    )
    with tempfile.TemporaryDirectory() as folder:
        record = Record(Path(folder) / "calls.sqlite")
        put(record, "k", given_reply, text)
        assert record.get(["k"]) == {"k": replace(given_reply, recorded=True)}
        record.close()


def test_a_hundred_thousand_keys_are_looked_up_fast(record: Record):
    rows = [
        (f"k{i}", "m", "ok", "{}", '{"text": "t", "outcome": "ok", "logprobs": []}', 1, 1, 0.1, 1, 0.0)
        for i in range(1000)
    ]
    with record._transaction() as db:
        db.executemany("insert into calls values (?,?,?,?,?,?,?,?,?,?)", rows)
    start = time.perf_counter()
    assert len(record.get([f"k{i}" for i in range(100_000)])) == 1000
    assert time.perf_counter() - start < 3


# ---- vectors ---------------------------------------------------------------------------------------------------------
def test_vectors_come_back_and_the_first_stays(record: Record):
    vectors = {f"v{i}": np.random.default_rng(i).normal(size=384).astype(np.float32) for i in range(1200)}
    record.put_vectors(vectors)
    record.put_vectors({"v0": np.zeros(384, np.float32)})
    found = Record(record.path).get_vectors([*vectors, "none"])
    assert found.keys() == vectors.keys()
    assert all(np.array_equal(found[k], v) and found[k].dtype == np.float32 for k, v in vectors.items())


# ---- kill, share -----------------------------------------------------------------------------------------------------
def forked(work, *args) -> multiprocessing.Process:
    """Runs ``work`` in a process of its own that has all modules loaded already."""
    process = multiprocessing.get_context("fork").Process(target=work, args=args)
    process.start()
    return process


def write_many(path: Path, prefix: str, count: int, committed=None) -> None:
    record = Record(path)
    for i in range(count):
        put(record, f"{prefix}{i}", reply(f"{prefix}{i} " * 400))
        if committed:
            committed.send(i)


def test_a_kill_in_the_middle_of_writing_loses_nothing_that_was_committed(tmp_path: Path):
    path = tmp_path / "calls.sqlite"
    written = 0
    for round_ in range(3):  # from the second on, with what the one before left behind
        here, there = multiprocessing.Pipe(duplex=False)
        process = forked(write_many, path, f"r{round_}-", 100_000, there)
        there.close()
        done = [here.recv() for _ in range(random.Random(round_).randrange(20, 60))]
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        with contextlib.suppress(EOFError):
            while True:
                done.append(here.recv())
        here.close()
        found = Record(path).get([f"r{round_}-{i}" for i in range(len(done) + 2)])
        assert set(found) >= {f"r{round_}-{i}" for i in done} and len(found) <= len(done) + 1
        assert all(r.text == f"{key} " * 400 for key, r in found.items())
        written += len(found)
    db = sqlite3.connect(path)
    assert db.execute("pragma integrity_check").fetchone() == ("ok",)
    assert db.execute("select count(*) from calls").fetchone() == (written,)
    db.close()


def test_a_commit_waits_for_the_disk(record: Record):
    """What a kill cannot show and a power cut would."""
    record.claim(["k"], new_owner())  # which does not wait
    said: list[str] = []
    record._db.set_trace_callback(said.append)
    put(record, "k", reply())
    assert said[:2] == ["pragma synchronous=full", "begin immediate"]
    assert record._rows("pragma journal_mode") == [("wal",)]


def test_processes_share_a_new_record(tmp_path: Path):
    path = tmp_path / "calls.sqlite"
    processes = [forked(write_many, path, prefix, 30) for prefix in "abc"]
    for process in processes:
        process.join(30)
        assert process.exitcode == 0
    assert len(Record(path).get([f"{p}{i}" for p in "abc" for i in range(30)])) == 90


def test_threads_share_one_record(record: Record):
    def work(name: str) -> None:
        model = RecordedModel("m", {"id": name}, Backend, record)
        for i in range(15):
            assert model.complete(chats(f"{name}{i}", f"{name}{i}x"), GREEDY)[0].text == f"{name}{i}".upper()
            record.put_vectors({f"{name}{i}": np.ones(4)})
            record.get_vectors([f"{name}{i}"])

    failures: list[BaseException] = []
    threads = [threading.Thread(target=lambda n=n: _caught(work, n, failures)) for n in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert record.summary()[0]["calls"] == 4 * 15 * 2


def _caught(work, name, failures) -> None:
    try:
        work(name)
    except BaseException as error:
        failures.append(error)


# ---- two processes on one run ----------------------------------------------------------------------------------------
def ask_all(path: Path, url: str, said) -> None:
    backend = OpenAIBackend("m", IDENTITY, "m", [url], concurrency=4)
    model = RecordedModel("m", IDENTITY, lambda: backend, Record(path))
    said.send([r.text for r in model.complete(chats(*map(str, range(120))), GREEDY)])


def echo(request: dict) -> Answer:
    answer = completion("re " + request["body"]["messages"][-1]["content"])
    answer.seconds = 0.01
    return answer


def test_two_processes_share_the_work_and_ask_nothing_twice(tmp_path: Path, endpoint: FakeEndpoint):
    endpoint.otherwise = echo
    path = tmp_path / "calls.sqlite"
    pipes = [multiprocessing.Pipe(duplex=False) for _ in range(2)]
    processes = [forked(ask_all, path, endpoint.url, there) for _, there in pipes]
    texts = [here.recv() for here, _ in pipes]
    for process in processes:
        process.join(30)
        assert process.exitcode == 0
    assert texts == [[f"re {i}" for i in range(120)]] * 2
    asked = [r["body"]["messages"][-1]["content"] for r in endpoint.requests]
    assert len(asked) == len(set(asked)) == 120
    assert Record(path)._rows("select count(*) from claims") == [(0,)]


def test_what_a_killed_process_had_claimed_is_asked_again(tmp_path: Path, endpoint: FakeEndpoint):
    path = tmp_path / "calls.sqlite"
    endpoint.otherwise = lambda request: replace(echo(request), seconds=30)
    here, there = multiprocessing.Pipe(duplex=False)
    process = forked(ask_all, path, endpoint.url, there)
    while len(endpoint.requests) < 4:
        assert process.is_alive()
        time.sleep(0.01)
    assert Record(path).claim([call_key(IDENTITY, chats("0")[0], GREEDY)], new_owner()) == [], "it is being asked"
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    endpoint.otherwise = echo
    ask_all(path, endpoint.url, there)
    assert here.recv() == [f"re {i}" for i in range(120)]
    assert len(endpoint.requests) == 120 + 4, "no more than what was in flight is asked again"


def test_a_failure_of_another_process_is_asked_by_this_one(record: Record):
    """It waits while the other asks, and takes the call over once it has failed."""
    key, other = call_key(IDENTITY, Chat.user("q"), GREEDY), new_owner()
    assert record.claim([key], other) == [key] and record.claim([key], new_owner()) == []
    waited = []

    def progress(done: int, total: int, waiting: str) -> None:
        waited.append(waiting)
        if waiting:
            put(Record(record.path), key, reply("", Outcome.ERROR, detail="HTTP 500"))

    said = model_of(record, Backend(), progress=progress).complete(chats("q"), GREEDY)
    assert [r.text for r in said] == ["Q"] and waited == ["1 are asked by another process", ""]


@pytest.mark.parametrize("released", [True, False])
def test_a_failure_keeps_nobody_from_asking(
    tmp_path: Path, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, released: bool
):
    """On a full disk a claim may be under way, and may not be given up: the same kernel goes on all the same."""
    record, claim = Record(tmp_path / "calls.sqlite"), Record.claim
    claiming = threading.Event()

    def slow(self, keys, *arguments):
        if len(endpoint.requests):
            claiming.set()
            time.sleep(0.3)
        return claim(self, keys, *arguments)

    def full(*arguments):
        assert claiming.wait(10)
        raise Problem("calls.sqlite", "the disk is full", "free some space")

    endpoint.otherwise = echo
    backend = OpenAIBackend("m", IDENTITY, "m", [endpoint.url], concurrency=4)
    model, asked = model_of(record, backend), chats(*map(str, range(120)))
    with monkeypatch.context() as patch, pytest.raises(Problem, match="disk is full"):
        patch.setattr(Record, "claim", slow)
        patch.setattr(record, "put", full)
        if not released:
            patch.setattr(record, "release", full)
        model.complete(asked, GREEDY)
    time.sleep(0.6)
    assert (record._rows("select count(*) from claims") == [(0,)]) is released
    assert [r.text for r in model.complete(asked, GREEDY)] == [f"re {i}" for i in range(120)]


def test_a_clock_that_is_set_takes_no_claim_away(record: Record, monkeypatch: pytest.MonkeyPatch):
    here, there = multiprocessing.Pipe(duplex=False)
    process = forked(lambda: (there.send(new_owner()), time.sleep(60)))
    owner = here.recv()
    assert record.claim(["k"], owner) == ["k"]
    created = psutil.Process.create_time
    monkeypatch.setattr(psutil.Process, "create_time", lambda self: created(self) + 2)
    assert record.claim(["k"], new_owner()) == []
    monkeypatch.setattr(psutil.Process, "create_time", lambda self: created(self) + 3600)
    assert record.claim(["k"], new_owner()) == ["k"], "another process of that number"
    process.kill()


# ---- what is asked again, and when it is enough ----------------------------------------------------------------------
def test_refusals_are_asked_again_if_told_so(record: Record):
    backend = Backend(a=[reply("no", Outcome.REFUSED), reply("no!", Outcome.REFUSED)])
    assert model_of(record, backend).complete(chats("a"), GREEDY)[0].text == "no"
    again = model_of(record, backend, again=["refused"])
    assert [again.complete(chats("a"), GREEDY)[0].text for _ in range(3)] == ["no!", "A", "A"]
    assert backend.asked == ["a"] * 3
    row = record.summary()[0]
    assert (row["attempts"], row["prompt_tokens"], row["completion_tokens"]) == (3, 9, 15), "all three were paid for"


@pytest.mark.parametrize(
    ("limits", "key"),
    [
        ({"tokens": 80}, "budget_tokens"),
        ({"dollars": 80e-6, "prices": {"m": (1.0, 1.0)}}, "budget_dollars"),
        ({"minutes": 1, "deadline": 0.0}, "budget_minutes"),
    ],
)
def test_a_spent_budget_stops_and_a_larger_one_goes_on(record: Record, limits: dict, key: str):
    questions, backend = [f"q{i}" for i in range(30)], Backend()
    with pytest.raises(Problem, match=f"key `{key}`: .*raise it and run again; what was answered is kept"):
        model_of(record, backend, budget=Budget(**limits)).complete(chats(*questions), GREEDY)
    assert len(backend.asked) == (0 if key == "budget_minutes" else 10), "8 tokens a call"
    assert len(model_of(record, backend).complete(chats(*questions), GREEDY)) == 30
    assert backend.asked == questions


class AllAtOnce(Backend):
    """Takes all chats before the first is answered, as batches and engines do; ``wait`` empty lists come first."""

    def __init__(self, wait: int = 0):
        super().__init__()
        self.wait = wait

    def ask(self, chats, sampling):
        taken = list(chats)
        for _ in range(self.wait):
            yield []
        yield from super().ask(taken, sampling)


def test_a_budget_bounds_a_stage_that_goes_at_once(record: Record):
    """Of the first calls nobody knows what they will use, so it is taken for as much as they may."""
    backend, questions = AllAtOnce(), [f"q{i}" for i in range(300)]
    limit = {"dollars": 1e-3, "prices": {"m": (1.0, 1.0)}}  # 8 tokens a call: enough for 125
    with pytest.raises(Problem, match="budget_dollars"):
        model_of(record, backend, budget=Budget(**limit)).complete(chats(*questions), Sampling(max_tokens=100))
    assert 120 <= len(backend.asked) <= 126
    assert record.count() == len(backend.asked)


def test_minutes_end_while_a_batch_is_waited_for(record: Record, monkeypatch):
    monkeypatch.setattr(record_module, "GRACE_SECONDS_OF_TIME", 0)
    backend = AllAtOnce(wait=10)
    budget = Budget(minutes=1, deadline=time.time() + 0.05)
    monkeypatch.setattr(backend, "waiting", lambda: time.sleep(0.02) or "a batch")
    with pytest.raises(Problem, match="budget_minutes"):
        model_of(record, backend, budget=budget).complete(chats("a", "b"), GREEDY)
    assert backend.asked == [] and model_of(record, backend).complete(chats("a", "b"), GREEDY)[1].text == "B"


# ---- a torn log ------------------------------------------------------------------------------------------------------
def torn(path: Path, cut: int) -> Path:
    """A copy of a record with its write-ahead log cut short, as a power cut leaves it."""
    copy = path.parent / f"cut{cut}" / path.name
    copy.parent.mkdir()
    for suffix in ("", "-wal"):
        copy.with_name(copy.name + suffix).write_bytes(path.with_name(path.name + suffix).read_bytes())
    log = copy.with_name(copy.name + "-wal")
    os.truncate(log, log.stat().st_size - cut)
    return copy


def test_a_write_that_was_cut_short_is_dropped_and_told(record: Record):
    for i in range(5):
        put(record, f"k{i}", reply("a" * 10_000))
    for cut in (1, 2000, 4096, 4097):
        copy = Record(torn(record.path, cut))
        assert "calls.sqlite: a write that was cut short was dropped; what it held is asked again" in copy.repaired
        assert len(copy.get([f"k{i}" for i in range(5)])) == 4
        put(copy, "k4", reply("again"))
        again = Record(copy.path)
        assert again.repaired == "" and len(again.get([f"k{i}" for i in range(5)])) == 5
        assert again._rows("pragma integrity_check") == [("ok",)]
    assert Record(torn(record.path, 0)).repaired == ""


# ---- bad files, full disks -------------------------------------------------------------------------------------------
def test_a_file_that_is_no_record_is_named(tmp_path: Path):
    path = tmp_path / "calls.sqlite"
    path.write_text("this is not a database, whatever its name says, and long enough to be looked at as one" * 20)
    with pytest.raises(Problem, match=r"calls\.sqlite: .*not a database.*move the file away"):
        Record(path)


def test_another_program_s_database_is_named(tmp_path: Path):
    path = tmp_path / "calls.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("create table calls (id integer)")
    db.close()
    with pytest.raises(Problem, match="move the file away"):
        Record(path)


def test_a_file_damaged_in_its_middle_is_told_when_it_is_read(tmp_path: Path):
    path = tmp_path / "calls.sqlite"
    record = Record(path)
    for i in range(200):
        put(record, f"k{i}", reply("a" * 300), "q" * 100)
    record.close()
    content = bytearray(path.read_bytes())
    content[4096 * 2 : -4096] = b"\xff" * (len(content) - 4096 * 3)
    path.write_bytes(content)
    damaged = Record(path)
    with pytest.raises(Problem, match="move the file away"):
        damaged.get([f"k{i}" for i in range(200)])


def test_a_reply_changed_by_hand_is_told(record: Record):
    put(record, "k", reply())
    for text in ('{"text": "t"', '{"text": "t"}', '{"text": "t", "outcome": "good", "logprobs": []}', "[]"):
        record._rows("update calls set reply=?", [text])
        with pytest.raises(Problem, match="changed by hand"):
            record.get(["k"])


def full(record: Record) -> None:
    pages = record._rows("pragma page_count")[0][0]
    record._rows(f"pragma max_page_count={pages + 3}")


def fill(record: Record) -> int:
    for i in range(1000):
        put(record, f"k{i}", reply("a" * 2000))
    return i


def test_a_full_disk_is_told_and_what_was_answered_stays(record: Record):
    full(record)
    with pytest.raises(Problem, match="free some space"):
        fill(record)
    with pytest.raises(Problem, match="free some space"):
        record.put_vectors({"v": np.zeros(10_000)})
    stored = record.summary()[0]["calls"]
    assert stored > 0
    record._rows("pragma max_page_count=1000000")  # space was freed
    put(record, "more", reply())
    assert Record(record.path).summary()[0]["calls"] == stored + 1


@pytest.fixture
def small_disk(tmp_path: Path):
    """A file system of 300 KB, where the test may mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_disk_that_is_really_full(small_disk: Path):
    record = Record(small_disk / "calls.sqlite")
    with pytest.raises(Problem, match="free some space"):
        fill(record)
    stored = record.summary()[0]["calls"]
    record.close()
    reopened = Record(small_disk / "calls.sqlite")
    assert len(reopened.get([f"k{i}" for i in range(stored)])) == stored > 0
    reopened.close()


def test_a_disk_full_from_the_start(small_disk: Path):
    (small_disk / "other").write_bytes(b"x" * (300 * 1024 - 8192))
    with pytest.raises(Problem, match="free some space"):
        fill(Record(small_disk / "run" / "calls.sqlite"))


def test_a_folder_that_cannot_be_made(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Problem, match=r"calls\.sqlite: .*make the folder and the file writable"):
        Record(tmp_path / "file" / "calls.sqlite")


def write_as_nobody(path: Path, said) -> None:
    """Tries to write, as a user that permissions apply to."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    try:
        put(Record(path), "k", reply())
    except Problem as problem:
        said.send(str(problem))
    said.close()


@pytest.mark.parametrize("exists", [False, True], ids=["no record yet", "a record is there"])
def test_a_folder_that_may_only_be_read(exists: bool):
    with tempfile.TemporaryDirectory() as name:  # not tmp_path, whose parents only their owner may enter
        folder = Path(name) / "run"
        folder.mkdir()
        if exists:
            Record(folder / "calls.sqlite").close()
            (folder / "calls.sqlite").chmod(0o444)
        folder.chmod(0o555)
        Path(name).chmod(0o755)
        here, there = multiprocessing.Pipe(duplex=False)
        process = forked(write_as_nobody, folder / "calls.sqlite", there)
        there.close()
        said = here.recv()
        process.join()
        folder.chmod(0o755)
    assert "make the folder and the file writable" in said


def test_kept_outcomes_are_the_answers():
    assert set(Outcome) - set(KEPT) == {Outcome.DEGENERATE, Outcome.OFF_TARGET, Outcome.UNPARSED, Outcome.ERROR}
