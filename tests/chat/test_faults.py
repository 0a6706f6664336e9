"""A server that refuses, stalls and lies, with a seed: every call ends, in bounds, and the counts are right."""

from __future__ import annotations

import random
import resource
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from fake_endpoint import Answer, FakeEndpoint, completion

from xlc_utils.chat import openai_api, pacing
from xlc_utils.chat.base import Chat, Sampling
from xlc_utils.chat.openai_api import MAX_ATTEMPTS, MAX_REFUSALS, OpenAIBackend
from xlc_utils.chat.pacing import Gate, backoff, retry_after
from xlc_utils.chat.record import Record, RecordedModel
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem

CALLS, TIMEOUT = 100, 0.3


def chats(count: int) -> list[Chat]:
    return [Chat.user(str(i)) for i in range(count)]


def question(request: dict) -> str:
    return request["body"]["messages"][-1]["content"]


class Faults:
    """Answers with what a seeded draw says: 30% 429, 10% 500, 5% no reply in time, 10% of the rest."""

    def __init__(self, seed: int):
        self.random, self.lock, self.drawn = random.Random(seed), threading.Lock(), Counter()
        self.not_before = 0.0
        self.too_early = 0

    def __call__(self, request: dict) -> Answer:
        good = replace(completion("re " + question(request)), seconds=0.01)
        kinds = {
            "429": (0.30, Answer({"error": {"message": "slow down"}}, 429, headers={"Retry-After": "0.02"})),
            "500": (0.10, Answer({"error": {"message": "oops"}}, 500)),
            "late": (0.05, replace(good, seconds=4 * TIMEOUT)),
            "reset": (0.02, replace(good, breaks="reset")),
            "half": (0.02, replace(good, breaks="half")),
            "drip": (0.02, replace(good, breaks="drip")),
            "html": (0.02, Answer(b"<html>Bad gateway</html>", content_type="text/html")),
            "shape": (0.02, Answer({"choices": [{"message": {"content": ["re"]}}]})),
        }
        with self.lock:
            [kind] = self.random.choices([*kinds, "good"], [*(share for share, _ in kinds.values()), 0.45])
            self.drawn[kind] += 1
        return kinds[kind][1] if kind in kinds else good


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_hostile_endpoint_is_survived(endpoint: FakeEndpoint, tmp_path: Path, seed: int, monkeypatch):
    monkeypatch.setattr(pacing, "FIRST_WAIT", 0.005)
    endpoint.otherwise = faults = Faults(seed)
    record = Record(tmp_path / "calls.sqlite")
    backend = OpenAIBackend("m", {}, "m", [endpoint.url], concurrency=32, timeout=TIMEOUT)
    model = RecordedModel("m", {}, lambda: backend, record)
    replies = model.complete(chats(CALLS), Sampling())
    assert min(faults.drawn[k] for k in ("429", "500", "late", "reset", "half", "drip", "html", "shape")) > 0

    outcomes = Counter(r.outcome for r in replies)
    assert set(outcomes) <= {Outcome.OK, Outcome.ERROR} and outcomes[Outcome.OK] > 0.95 * CALLS
    assert all(r.text == f"re {i}" for i, r in enumerate(replies) if r.outcome is Outcome.OK)
    assert all(r.detail for r in replies if r.outcome is Outcome.ERROR)
    per_call = Counter(map(question, endpoint.requests))
    assert set(per_call) == {str(i) for i in range(CALLS)} and max(per_call.values()) <= MAX_ATTEMPTS + MAX_REFUSALS
    # A reset connection may take a request with it that the server never read, so attempts can be more than requests.
    recorded = {row["outcome"]: row for row in record.summary()}
    assert {name: row["calls"] for name, row in recorded.items()} == {str(k): n for k, n in outcomes.items()}
    assert sum(r.attempts for r in replies) == sum(row["attempts"] for row in recorded.values())
    assert sum(faults.drawn.values()) <= sum(r.attempts for r in replies)
    answered = faults.drawn["good"]
    assert recorded["ok"]["completion_tokens"] == 7 * outcomes[Outcome.OK] and outcomes[Outcome.OK] <= answered

    endpoint.otherwise = lambda request: completion("re " + question(request))
    before = len(endpoint.requests)
    again = model.complete(chats(CALLS), Sampling())
    assert [r.text for r in again] == [f"re {i}" for i in range(CALLS)]
    assert len(endpoint.requests) - before == outcomes[Outcome.ERROR], "only failures are asked again"


def test_nothing_is_sent_before_retry_after(endpoint: FakeEndpoint):
    """Not by the refused call, nor by any other of the endpoint."""
    times: list[tuple[float, bool]] = []
    lock = threading.Lock()

    def answer(request: dict) -> Answer:
        with lock:
            refuse = len(times) in (10, 40)
            times.append((time.monotonic(), refuse))
        limited = Answer({"error": {"message": "slow down"}}, 429, headers={"Retry-After": "0.6"})
        return limited if refuse else replace(completion(), seconds=0.02)

    endpoint.otherwise = answer
    backend = OpenAIBackend("m", {}, "m", [endpoint.url], concurrency=4)
    assert sum(len(batch) for batch in backend.ask(chats(80), Sampling())) == 80
    for refused_at in (t for t, refused in times if refused):
        assert any(t > refused_at for t, _ in times)
        in_flight = [t for t, _ in times if refused_at < t < refused_at + 0.6]
        assert len(in_flight) < 4, "those that were on their way already"


def test_a_refusal_halves_what_is_in_flight_once_and_answers_bring_it_back():
    gate = Gate(32)
    sent = time.monotonic()
    for _ in range(32):
        gate.shrink(sent)
    assert gate.limit == 16, "all were in flight together"
    gate.shrink(time.monotonic() + 0.01)
    assert gate.limit == 8
    for _ in range(8 + 9):
        gate.answered()
    assert 9.5 < gate.limit <= 10, "one more each round"
    for _ in range(10_000):
        gate.answered()
    assert gate.limit == 32
    for i in range(10):
        gate.shrink(time.monotonic() + 1 + i)
    assert gate.limit == 1


def test_the_concurrency_shrinks_at_the_endpoint(endpoint: FakeEndpoint):
    times: list[float] = []  # each is in flight for a tenth of a second; the endpoint takes them one by one
    together: list[int] = []

    def answer(request: dict) -> Answer:
        now = time.monotonic()
        times.append(now)
        together.append(sum(t > now - 0.1 for t in times))
        if together[-1] > 4:
            return Answer({"error": {"message": "too many"}}, 429, seconds=0.1)
        return replace(completion(), seconds=0.1)

    endpoint.otherwise = answer
    backend = OpenAIBackend("m", {}, "m", [endpoint.url], concurrency=16)
    replies = [reply for batch in backend.ask(chats(60), Sampling()) for _, reply in batch]
    assert {r.outcome for r in replies} == {Outcome.OK}
    half = len(together) // 2
    assert max(together[:20]) > 4, "it starts with more than the endpoint takes"
    assert sum(together[half:]) / half < 8, "it comes near what the endpoint takes"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5", "retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({}, None),
    ],
)
def test_retry_after_is_read(headers: dict, seconds: float | None):
    assert retry_after(headers) == seconds


def test_backing_off_doubles_to_a_limit_and_no_two_wait_alike(monkeypatch):
    for attempt, (low, high) in {1: (0.25, 0.5), 3: (1, 2), 20: (15, 30)}.items():
        waits = [backoff(attempt) for _ in range(200)]
        assert low <= min(waits) and max(waits) <= high and len(set(waits)) > 190


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer({"error": {"message": "no", "code": "insufficient_quota"}}, 429), "HTTP 429 .*add credit"),
        (Answer({"error": {"message": "no"}}, 429, headers={"Retry-After": "7200"}), "wait for 120 minutes.*run again"),
        (Answer({"error": {"message": "no `seed`"}}, 400), "HTTP 400 .*no `seed`.*check what `m` takes"),
    ],
)
def test_what_will_not_pass_stops_at_once(endpoint: FakeEndpoint, answer: Answer, said: str):
    endpoint.otherwise = lambda request: answer
    backend = OpenAIBackend("m", {}, "m", [endpoint.url], concurrency=2)
    with pytest.raises(Problem, match=said):
        list(backend.ask(chats(50), Sampling()))
    assert len(endpoint.requests) <= openai_api.TURNED_DOWN_ALIKE + 2


def test_slow_calls_are_shown(endpoint: FakeEndpoint, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(openai_api, "SLOW_SECONDS", 0.5)
    endpoint.otherwise = lambda request: replace(completion(), seconds=2.5 if question(request) == "3" else 0)
    backend, said = OpenAIBackend("m", {}, "m", [endpoint.url], concurrency=2), []
    model = RecordedModel("m", {}, lambda: backend, Record(tmp_path / "c.sqlite"), lambda *shown: said.append(shown))
    model.complete(chats(8), Sampling())
    assert any(done == 7 and "1 in flight, the slowest for" in waiting for done, _, waiting in said)


def test_a_disk_that_fills_up_stops_the_run_and_loses_nothing(endpoint: FakeEndpoint, tmp_path: Path):
    """RLIMIT_FSIZE stands in for the end of the disk; Python ignores its signal, so that writes fail."""
    endpoint.otherwise = lambda request: completion("long " * 2000)
    path = tmp_path / "calls.sqlite"
    backend = OpenAIBackend("m", {}, "m", [endpoint.url], concurrency=8)
    Record(path).close()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, before[1]))
    try:
        with pytest.raises(Problem, match=r"calls.sqlite: .*free some space on its disk and run again; what was answ"):
            RecordedModel("m", {}, lambda: backend, Record(path)).complete(chats(200), Sampling())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    record = Record(path)
    kept, sent = record.count(), len(endpoint.requests)
    assert 10 < kept < 200
    assert len(RecordedModel("m", {}, lambda: backend, record).complete(chats(200), Sampling())) == 200
    assert len(endpoint.requests) - sent == 200 - kept
