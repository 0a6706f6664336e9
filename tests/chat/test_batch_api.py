"""chat/batch_api.py against an endpoint on loopback that keeps files and batches."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from fake_endpoint import Answer, FakeEndpoint, completion

from xlc_utils.chat import batch_api
from xlc_utils.chat.backends import identity, make_backend
from xlc_utils.chat.base import Chat, Sampling
from xlc_utils.chat.record import Record, RecordedModel
from xlc_utils.registry.models import Model
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem

KEY = "sk-secret-0123456789"
CHATS = [Chat.user(text) for text in ("one", "two", "three")]


class Batches:
    """Files and batches. A batch takes a poll to end; ``says`` makes the line of results of a request, None for none,
    given it and how often it was submitted; ``ends`` are the batches' last states, "completed" when used up."""

    def __init__(self, endpoint: FakeEndpoint):
        self.files, self.batches, self.submitted, self.ends = {}, [], {}, []
        self.says = lambda asked, n: response(completion(asked["body"]["messages"][-1]["content"].upper()).body)
        endpoint.otherwise = self.answer

    def answer(self, request) -> Answer:
        path, body = request["path"].partition("?")[0], request["body"]
        if path == "/v1/files":
            number = f"file-{len(self.files)}"
            self.files[number] = [json.loads(line) for line in re.findall(rb"^\{.*\}\r?$", body, re.M)]
            return Answer({"id": number, "object": "file", "purpose": "batch"})
        if path.endswith("/content"):
            return Answer("\n".join(self.files[path.split("/")[3]]).encode(), content_type="application/octet-stream")
        if path == "/v1/batches" and body is None:
            return Answer({"object": "list", "data": self.batches, "has_more": False})
        if path == "/v1/batches":
            number = f"batch-{len(self.batches)}"
            made = {**body, "id": number, "object": "batch", "created_at": 1, "status": "in_progress"}
            self.batches.append(made)
            return Answer(made)
        batch = self.batches[int(path.rpartition("-")[2])]
        if batch["status"] == "in_progress":
            self.end(batch)
        return Answer(batch)

    def end(self, batch) -> None:
        batch["status"] = self.ends.pop(0) if self.ends else "completed"
        good, bad = [], []
        for asked in self.files[batch["input_file_id"]]:
            number = self.submitted[asked["custom_id"]] = self.submitted.get(asked["custom_id"], 0) + 1
            if batch["status"] != "failed" and (line := self.says(asked, number)) is not None:
                ok = (line.get("response") or {}).get("status_code") == 200
                (good if ok else bad).append(json.dumps({"custom_id": asked["custom_id"], **line}))
        for name, lines in (("output_file_id", reversed(good)), ("error_file_id", bad)):
            batch[name] = f"file-{len(self.files)}"
            self.files[batch[name]] = list(lines)


def response(body, status: int = 200):
    return {"response": {"status_code": status, "body": body}, "error": None}


EXPIRED = {"response": None, "error": {"code": "batch_expired", "message": "This request expired."}}


@pytest.fixture
def batches(endpoint: FakeEndpoint, monkeypatch) -> Batches:
    monkeypatch.setattr(batch_api, "SECONDS_BETWEEN_POLLS", 0.01)
    monkeypatch.setenv("TOY_KEY", KEY)
    return Batches(endpoint)


def model_of(endpoint: FakeEndpoint, folder: Path) -> RecordedModel:
    entry = Model.model_validate(
        {
            "backend": "openai",
            "kind": "chat",
            "id": "toy-1",
            "revision": None,
            "licence": "none",
            "toy": True,
            "prices": None,
            "trained_on": {"languages": None, "source": "none"},
            "paper": [],
            "endpoint": endpoint.url,
            "api_key_env": "TOY_KEY",
            "batch": True,
        }
    )
    record = Record(folder / "calls.sqlite")
    return RecordedModel("toy", identity(entry), lambda: make_backend("toy", entry, record), record)


def paths(endpoint: FakeEndpoint) -> list[str]:
    return [request["path"].partition("?")[0] for request in endpoint.requests]


def test_requests_go_as_one_file_and_answers_are_joined_by_their_id(endpoint, batches, tmp_path):
    model = model_of(endpoint, tmp_path)
    replies = model.complete(CHATS, Sampling(max_tokens=5))
    assert [r.text for r in replies] == ["ONE", "TWO", "THREE"]  # the endpoint gives them in another order
    assert {r.outcome for r in replies} == {Outcome.OK} and {r.attempts for r in replies} == {1}
    [batch] = batches.batches
    sent = (batch["endpoint"], batch["completion_window"], batch["input_file_id"])
    assert sent == ("/v1/chat/completions", "24h", "file-0")
    first = batches.files["file-0"][0]
    assert (first["method"], first["url"]) == ("POST", "/v1/chat/completions")
    assert first["body"]["max_tokens"] == 5 and first["body"]["model"] == "toy-1"
    assert b'purpose"\r\n\r\nbatch' in endpoint.requests[0]["body"]
    before = len(endpoint.requests)
    assert [r.recorded for r in model.complete(CHATS, Sampling(max_tokens=5))] == [True] * 3
    assert len(endpoint.requests) == before and model._record.notes("batch") == {}


def test_what_expired_or_failed_is_submitted_again_and_nothing_else(endpoint, batches, tmp_path):
    overloaded = response({"error": {"message": "overloaded"}}, 503)
    first = {"one": EXPIRED, "two": overloaded, "three": None}
    answered = batches.says
    batches.says = lambda asked, n: first[asked["body"]["messages"][-1]["content"]] if n == 1 else answered(asked, n)
    batches.ends = ["expired"]
    chats = [*CHATS, Chat.user("four")]
    first["four"] = response(completion("FOUR").body)
    replies = model_of(endpoint, tmp_path).complete(chats, Sampling())
    assert [(r.text, r.attempts) for r in replies] == [("ONE", 2), ("TWO", 2), ("THREE", 2), ("FOUR", 1)]
    assert sorted(batches.submitted.values()) == [1, 2, 2, 2]


def test_in_the_end_it_is_an_error_and_a_bad_request_is_one_at_once(endpoint, batches, tmp_path):
    bad = response({"error": {"message": f"too long, {KEY}"}}, 400)
    batches.says = lambda asked, n: bad if asked["body"]["messages"][-1]["content"] == "one" else EXPIRED
    replies = model_of(endpoint, tmp_path).complete(CHATS, Sampling())
    assert [r.outcome for r in replies] == [Outcome.ERROR] * 3
    assert [r.attempts for r in replies] == [1, batch_api.MAX_SUBMISSIONS, batch_api.MAX_SUBMISSIONS]
    assert replies[0].detail == "HTTP 400: too long, …" and replies[1].detail == "This request expired."


class Killed(BaseException):
    """As a kill -9: nothing after it happens."""


@pytest.mark.parametrize("moment", ["uploaded", "submitted", "polled", "answered"])
def test_a_killed_run_goes_on_with_the_same_batch(endpoint, batches, tmp_path, monkeypatch, moment):
    def killed(*_, **__):
        raise Killed

    with monkeypatch.context() as kill:
        owner = {"uploaded": "_create", "submitted": "_ended", "polled": "_results", "answered": "_check"}[moment]
        if moment == "answered":
            kill.setattr(Record, "put", killed)
        else:
            kill.setattr(batch_api.BatchBackend, owner, killed)
        with pytest.raises(Killed):
            model_of(endpoint, tmp_path).complete(CHATS, Sampling())
    again = model_of(endpoint, tmp_path)
    assert [r.text for r in again.complete(CHATS, Sampling())] == ["ONE", "TWO", "THREE"]
    assert paths(endpoint).count("/v1/files") == 1 and len(batches.batches) == 1
    assert again._record.notes("batch") == {}


def test_a_submission_whose_answer_was_lost_is_not_made_twice(endpoint, batches, tmp_path):
    answer, lost = batches.answer, []

    def losing(request):
        came = answer(request)
        if request["path"] == "/v1/batches" and request["body"] and not lost:
            lost.append(1)
            return Answer(came.body, breaks="half")
        return came

    endpoint.otherwise = losing
    assert [r.text for r in model_of(endpoint, tmp_path).complete(CHATS, Sampling())] == ["ONE", "TWO", "THREE"]
    assert lost and len(batches.batches) == 1


@pytest.mark.parametrize(("end", "expected"), [("failed", "batch batch-0 is refused"), ("cancelled", "was cancelled")])
def test_a_refused_or_cancelled_batch_is_a_problem_and_what_it_answered_is_kept(
    endpoint, batches, tmp_path, end, expected
):
    batches.ends = [end]
    answered = batches.says
    batches.says = lambda asked, n: answered(asked, n) if n > 1 or "one" in str(asked["body"]) else None
    model = model_of(endpoint, tmp_path)
    with pytest.raises(Problem, match=rf"^model `toy` at {endpoint.url}: .*{expected}.*run again"):
        model.complete(CHATS, Sampling())
    assert model._record.count() == (1 if end == "cancelled" else 0)
    assert [r.text for r in model.complete(CHATS, Sampling())] == ["ONE", "TWO", "THREE"]


def test_many_requests_go_in_several_files(endpoint, batches, tmp_path, monkeypatch):
    monkeypatch.setattr(batch_api, "MOST_REQUESTS", 2)
    assert [r.text for r in model_of(endpoint, tmp_path).complete(CHATS, Sampling())] == ["ONE", "TWO", "THREE"]
    assert [len(batches.files[batch["input_file_id"]]) for batch in batches.batches] == [2, 1]


def test_who_waits_because_the_endpoint_says_so_can_be_stopped(endpoint, batches, tmp_path):
    endpoint.script = [Answer({}, status=429, headers={"Retry-After": "60"})]
    backend = model_of(endpoint, tmp_path).backend()
    asking = backend.ask(CHATS, Sampling())
    assert next(asking) == next(asking) == [] and len(endpoint.requests) == 1
    assert backend.waiting() == "the endpoint asks to wait 59 s"
    asking.close()


def test_a_wrong_key_is_told_at_once_and_503_is_asked_again(endpoint, batches, tmp_path):
    endpoint.script = [Answer({"error": {"message": f"bad key {KEY}"}}, status=401)]
    with pytest.raises(Problem, match=r"HTTP 401 .*check the key in TOY_KEY") as caught:
        model_of(endpoint, tmp_path).complete(CHATS, Sampling())
    assert KEY not in str(caught.value) and len(endpoint.requests) == 1
    endpoint.script = [Answer({}, status=503), Answer({}, status=429, headers={"Retry-After": "0"})]
    assert [r.text for r in model_of(endpoint, tmp_path).complete(CHATS, Sampling())] == ["ONE", "TWO", "THREE"]
