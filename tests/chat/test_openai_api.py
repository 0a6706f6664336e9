"""chat/openai_api.py against an endpoint on loopback: every ending is a typed outcome or one sentence."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
from dataclasses import replace

import pytest
from fake_endpoint import Answer, FakeEndpoint, completion

from xlc_utils.chat import openai_api
from xlc_utils.chat.backends import identity, make_backend
from xlc_utils.chat.base import Chat, Reply, Sampling
from xlc_utils.chat.openai_api import OpenAIBackend
from xlc_utils.chat.record import Record, RecordedModel
from xlc_utils.registry import models
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem

KEY = "sk-secret-0123456789"
QUESTION = Chat.user("Why?", system="Be brief.")


def backend_of(endpoint: FakeEndpoint, **more) -> OpenAIBackend:
    return OpenAIBackend("toy", {"id": "toy-1"}, "toy-1", [endpoint.url], **{"concurrency": 1, **more})


def asked(backend: OpenAIBackend, *chats: Chat, sampling: Sampling = Sampling()) -> list[Reply]:  # noqa: B008
    replies = {index: reply for batch in backend.ask(chats, sampling) for index, reply in batch}
    return [replies[i] for i in range(len(chats))]


def one(endpoint: FakeEndpoint, *answers: Answer, chat: Chat = QUESTION, **sampling) -> Reply:
    endpoint.script = list(answers)
    return asked(backend_of(endpoint), chat, sampling=Sampling(**sampling))[0]


# ---- what is sent ----------------------------------------------------------------------------------------------------
def test_a_chat_is_sent_as_asked_and_its_answer_comes_back(endpoint: FakeEndpoint):
    reply = one(endpoint, completion("  Because. "), max_tokens=5, temperature=0.3, top_p=0.8, seed=4, stop=("\n",))
    assert (reply.text, reply.outcome, reply.finish_reason) == ("Because.", Outcome.OK, "stop")
    assert (reply.prompt_tokens, reply.completion_tokens, reply.recorded) == (11, 7, False)
    [request] = endpoint.requests
    assert request["path"] == "/v1/chat/completions"
    assert request["body"] == {
        "model": "toy-1",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}],
        "max_tokens": 5,
        "temperature": 0.3,
        "top_p": 0.8,
        "seed": 4,
        "stop": ["\n"],
    }


def test_a_base_model_gets_its_text_as_it_is(endpoint: FakeEndpoint):
    body = {"choices": [{"text": " 4", "finish_reason": "stop"}], "usage": None}
    chat = Chat(completion="Q: 2+2?\nA:")
    reply = one(endpoint, Answer(body), chat=chat, grammar="root ::= [0-9]", logprobs=1)
    assert (reply.text, reply.outcome, reply.prompt_tokens) == ("4", Outcome.OK, 0)
    [request] = endpoint.requests
    assert request["path"] == "/v1/completions"
    sent = request["body"]
    assert (sent["prompt"], sent["grammar"], sent["logprobs"]) == ("Q: 2+2?\nA:", "root ::= [0-9]", 1)
    assert "messages" not in sent


def test_a_schema_and_logprobs_are_forwarded(endpoint: FakeEndpoint):
    answer = completion('{"a": 1}')
    answer.body["choices"][0]["logprobs"] = {
        "content": [{"token": "{", "logprob": -0.5, "top_logprobs": [{"token": "[", "logprob": -1.5}]}]
    }
    reply = one(endpoint, answer, json_schema='{"type": "object"}', logprobs=2)
    assert reply.logprobs == (("{", -0.5, (("[", -1.5),)),)
    sent = endpoint.requests[0]["body"]
    assert (sent["logprobs"], sent["top_logprobs"]) == (True, 2)
    assert sent["response_format"]["type"] == "json_schema"
    assert sent["response_format"]["json_schema"]["schema"] == {"type": "object"}


def test_a_reply_may_have_a_schema_of_its_own(endpoint: FakeEndpoint):
    own = Chat.user("q", json_schema='{"type": "array"}')
    for chat, expected in ((own, "array"), (QUESTION, "object")):
        one(endpoint, completion("[]"), chat=chat, json_schema='{"type": "object"}')
        assert endpoint.requests[-1]["body"]["response_format"]["json_schema"]["schema"] == {"type": expected}


def test_a_reasoning_model_gets_neither_temperature_nor_max_tokens(endpoint: FakeEndpoint):
    one(endpoint, completion(), reasoning_effort="low", max_tokens=9, temperature=0.5)
    asked(backend_of(endpoint, reasoning_effort="high"), QUESTION)
    first, second = (r["body"] for r in endpoint.requests)
    assert not {"temperature", "top_p", "max_tokens", "seed"} & set(first)
    assert (first["reasoning_effort"], first["max_completion_tokens"]) == ("low", 9)
    assert second["reasoning_effort"] == "high"


def test_the_samples_of_one_request_have_seeds_of_their_own(endpoint: FakeEndpoint):
    for sample in range(3):
        one(endpoint, completion(), seed=10, sample=sample)
    assert len({r["body"]["seed"] for r in endpoint.requests}) == 3


def test_extra_fields_are_sent_with_each_request(endpoint: FakeEndpoint):
    asked(backend_of(endpoint, extra_body={"cache_prompt": False}), QUESTION)
    assert endpoint.requests[0]["body"]["cache_prompt"] is False


def test_an_entry_of_models_yaml_becomes_a_backend(endpoint: FakeEndpoint, root, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    entry = models.load(root).model("gpt-5.1-high").model_copy(update={"endpoint": endpoint.url})
    asked(make_backend("gpt-5.1-high", entry), QUESTION)
    [request] = endpoint.requests
    assert request["headers"]["authorization"] == f"Bearer {KEY}"
    assert request["body"]["model"] == entry.id and request["body"]["reasoning_effort"] == "high"
    assert identity(entry)["reasoning_effort"] == "high" and KEY not in str(identity(entry))


# ---- what comes back -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("answer", "outcome", "text"),
    [
        (completion("half a sen", "length"), Outcome.TRUNCATED, "half a sen"),
        (completion("", "stop"), Outcome.EMPTY, ""),
        (completion(" \n ", "stop"), Outcome.EMPTY, ""),
        (completion(None, "stop"), Outcome.EMPTY, ""),
        (completion("", "length"), Outcome.EMPTY, ""),
        (completion("So far", "content_filter"), Outcome.REFUSED, "So far"),
        (completion(None, "content_filter: RECITATION"), Outcome.REFUSED, ""),
        (completion(None, "SAFETY"), Outcome.REFUSED, ""),
        (completion(None, "stop", refusal="I cannot help with that."), Outcome.REFUSED, ""),
        (completion("Odd.", None), Outcome.OK, "Odd."),
        (completion("A \ud83d half", "stop"), Outcome.OK, "A \ufffd half"),
        (completion("\ud83d\ude00", "stop"), Outcome.OK, "😀"),
    ],
)
def test_an_answer_has_an_outcome(endpoint: FakeEndpoint, answer: Answer, outcome: Outcome, text: str):
    reply = one(endpoint, answer)
    assert (reply.outcome, reply.text) == (outcome, text)
    assert bool(reply.detail) is (outcome is not Outcome.OK)
    assert len(endpoint.requests) == 1


def test_a_refusal_says_why_in_the_providers_words(endpoint: FakeEndpoint):
    assert one(endpoint, completion(None, refusal="I cannot help.")).detail == "I cannot help."
    assert "recitation" in one(endpoint, completion(None, "content_filter: RECITATION")).detail


NONSENSE = {
    "no JSON": Answer(b"<html>Bad gateway</html>", content_type="text/html"),
    "no JSON, said to be": Answer(b'{"choices": [', content_type="application/json"),
    "JSON, not said to be": Answer(b"upstream timed out", content_type="text/plain"),
    "nothing": Answer(b""),
    "bytes that are no text": Answer(b"\xff\xfe\x00", content_type="application/octet-stream"),
    "a list": Answer([1, 2]),
    "null": Answer(),
    "no choices": Answer({"id": "x", "usage": {}}),
    "an error with status 200": Answer({"error": {"message": "overloaded"}}),
    "empty choices": Answer({"choices": []}),
    "choices that are null": Answer({"choices": None}),
    "a choice that is text": Answer({"choices": ["Fine."]}),
    "content that is a list": completion([{"type": "text", "text": "Fine."}]),
    "content that is a number": completion(7),
    "usage that is text": Answer({"choices": [{"message": {"content": "Fine."}}], "usage": "none"}),
    "tokens that are a word": Answer(completion().body | {"usage": {"prompt_tokens": "few"}}),
    "brackets without end": Answer(b"[" * 100_000),
}


@pytest.mark.parametrize("answer", NONSENSE.values(), ids=NONSENSE)
def test_a_reply_of_another_form_is_an_error_with_its_beginning(endpoint: FakeEndpoint, answer: Answer):
    endpoint.otherwise = lambda request: answer
    reply = one(endpoint)
    assert (reply.outcome, reply.text, reply.attempts) == (Outcome.ERROR, "", openai_api.MAX_ATTEMPTS)
    assert len(endpoint.requests) == openai_api.MAX_ATTEMPTS
    assert "no completion in the endpoint's reply" in reply.detail
    if b"timed out" in (answer.body if isinstance(answer.body, bytes) else b""):
        assert "upstream timed out" in reply.detail


def test_json_is_read_whatever_type_it_is_said_to_have(endpoint: FakeEndpoint):
    answer = Answer(json.dumps(completion("Fine.").body).encode(), content_type="text/plain")
    assert one(endpoint, answer).text == "Fine."


def test_tokens_said_as_text_are_counted(endpoint: FakeEndpoint):
    answer = completion("Fine.")
    answer.body["usage"] = {"prompt_tokens": "11", "completion_tokens": 7.0}
    reply = one(endpoint, answer)
    assert (reply.prompt_tokens, reply.completion_tokens) == (11, 7)


# ---- what goes wrong -------------------------------------------------------------------------------------------------
def failure(status: int, message: str = "no luck") -> Answer:
    return Answer({"error": {"message": message, "type": "x"}}, status=status)


@pytest.mark.parametrize("status", [301, 307])
def test_another_address_is_named_and_not_followed(endpoint: FakeEndpoint, status: int):
    moved = Answer(b"", status=status, headers={"Location": "https://elsewhere.example/v1"})
    with pytest.raises(Problem, match=f"HTTP {status} and names another address .https://elsewhere.*write that as"):
        one(endpoint, moved)
    assert len(endpoint.requests) == 1


def test_a_proxy_of_the_environment_is_used_and_a_netrc_is_not(endpoint: FakeEndpoint, tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("machine llm.example login me password mine\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("http_proxy", endpoint.url.removesuffix("/v1"))
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("TOY_KEY", KEY)
    backend = OpenAIBackend("toy", {}, "toy-1", ["http://llm.example/v1"], api_key_env="TOY_KEY")
    assert asked(backend, QUESTION)[0].text == "Fine."
    [request] = endpoint.requests
    assert request["path"] == "http://llm.example/v1/chat/completions"
    assert request["headers"]["authorization"] == f"Bearer {KEY}"


def test_a_forked_process_connects_by_itself(endpoint: FakeEndpoint):
    backend = backend_of(endpoint)
    assert asked(backend, QUESTION)[0].text == "Fine."
    if (child := os.fork()) == 0:
        with contextlib.suppress(BaseException):
            os._exit(0 if asked(backend, QUESTION)[0].text == "Fine." else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert asked(backend, QUESTION)[0].text == "Fine." and len(endpoint.requests) == 3


@pytest.mark.parametrize(
    ("status", "remedy"),
    [(401, "check the key in TOY_KEY"), (403, "may use"), (404, "check the id `toy-1` and `endpoint`")],
)
def test_a_call_that_can_never_succeed_stops_the_run_with_one_sentence(
    endpoint: FakeEndpoint, monkeypatch, status, remedy
):
    monkeypatch.setenv("TOY_KEY", KEY)
    endpoint.script = [failure(status)]
    with pytest.raises(Problem, match=f"model `toy` at {endpoint.url}.*HTTP {status}.*no luck.*{remedy}.*run again"):
        asked(backend_of(endpoint, api_key_env="TOY_KEY"), QUESTION)
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_request_that_is_turned_down_is_an_error_outcome(endpoint: FakeEndpoint, status: int):
    reply = one(endpoint, failure(status, "too long " * 200))
    assert reply.outcome is Outcome.ERROR and reply.detail.startswith(f"HTTP {status}: ")
    assert "too long" in reply.detail and len(reply.detail) <= 500
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503])
def test_a_passing_failure_is_tried_again(endpoint: FakeEndpoint, status: int):
    assert one(endpoint, failure(status), failure(status), completion("At last.")).text == "At last."
    assert len(endpoint.requests) == 3


def test_a_failure_that_does_not_pass_is_an_error_outcome(endpoint: FakeEndpoint, monkeypatch):
    monkeypatch.setattr(openai_api, "MAX_ATTEMPTS", 3)
    reply = one(endpoint, *[failure(503, "busy")] * 9)
    assert reply.outcome is Outcome.ERROR and "HTTP 503" in reply.detail and "busy" in reply.detail
    assert len(endpoint.requests) == 3


def test_retry_after_is_honoured(endpoint: FakeEndpoint):
    limited = failure(429)
    limited.headers = {"Retry-After": "0.2"}
    start = time.perf_counter()
    assert one(endpoint, limited, completion()).outcome is Outcome.OK
    assert 0.2 <= time.perf_counter() - start < 0.5


def test_no_reply_in_time_is_an_error_outcome(endpoint: FakeEndpoint, monkeypatch):
    monkeypatch.setattr(openai_api, "MAX_ATTEMPTS", 2)
    slow = completion()
    slow.seconds = 30
    endpoint.script = [slow, slow]
    [reply] = asked(backend_of(endpoint, timeout=0.1), QUESTION)
    assert reply.outcome is Outcome.ERROR and "no reply in time" in reply.detail
    assert len(endpoint.requests) == 2


def test_an_endpoint_that_is_not_there_stops_the_run_with_one_sentence(endpoint: FakeEndpoint):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}/v1"
    with pytest.raises(Problem, match=r"model `toy` at http://127.*cannot be reached .*start the server or correct"):
        asked(OpenAIBackend("toy", {}, "toy-1", [url]), QUESTION)


def test_a_server_on_this_machine_is_not_asked_through_a_proxy(endpoint: FakeEndpoint, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert one(endpoint, completion("Here.")).text == "Here."


# ---- the key ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("value", "said"), [(None, "is not set"), ("", "is not set"), (" \n", "is not set"), ("sk-ключ", "no key has")]
)
def test_a_key_that_is_missing_or_cannot_be_one_is_told_before_any_call(endpoint, monkeypatch, value, said):
    monkeypatch.delenv("TOY_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("TOY_KEY", value)
    with pytest.raises(Problem, match=f"TOY_KEY .*{said}.*export TOY_KEY") as told:
        backend_of(endpoint, api_key_env="TOY_KEY")
    assert "ключ" not in str(told.value)


def test_the_line_break_after_a_key_is_not_sent(endpoint: FakeEndpoint, monkeypatch):
    monkeypatch.setenv("TOY_KEY", KEY + "\n")
    asked(backend_of(endpoint, api_key_env="TOY_KEY"), QUESTION)
    assert endpoint.requests[0]["headers"]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 500])
def test_the_key_is_in_no_message_and_no_record(endpoint: FakeEndpoint, monkeypatch, tmp_path, status: int):
    monkeypatch.setenv("TOY_KEY", KEY)
    monkeypatch.setattr(openai_api, "MAX_ATTEMPTS", 1)
    endpoint.otherwise = lambda request: failure(status, f"bad header {request['headers']['authorization']}")
    record = Record(tmp_path / "calls.sqlite")
    model = RecordedModel("toy", {}, lambda: backend_of(endpoint, api_key_env="TOY_KEY"), record)
    try:
        said = model.complete([QUESTION], Sampling())[0].detail
    except Problem as problem:
        said = str(problem)
    assert "bad header Bearer …" in said and KEY not in said
    endpoint.otherwise = lambda request: Answer(f"{'.' * 190}you are {KEY}".encode())  # where a beginning is cut off
    model.complete([QUESTION], Sampling())
    record.close()
    files = list(tmp_path.glob("calls.sqlite*"))
    assert files and not any(KEY.encode() in path.read_bytes() for path in files)


# ---- many at once ----------------------------------------------------------------------------------------------------
def numbered(count: int) -> list[Chat]:
    return [Chat.user(str(i)) for i in range(count)]


def echo(request: dict) -> Answer:
    return completion("re " + request["body"]["messages"][-1]["content"])


def test_replies_belong_to_their_chats_whatever_order_they_come_in(endpoint: FakeEndpoint):
    def uneven(request):
        answer = echo(request)
        answer.seconds = 0.05 if int(request["body"]["messages"][-1]["content"]) % 3 == 0 else 0
        return answer

    endpoint.otherwise = uneven
    replies = asked(backend_of(endpoint, concurrency=6), *numbered(30))
    assert [r.text for r in replies] == [f"re {i}" for i in range(30)]


def test_replies_that_came_meanwhile_are_handed_over_together(endpoint: FakeEndpoint):
    batches = []
    for batch in backend_of(endpoint, concurrency=6).ask(numbered(18), Sampling()):
        batches.append(len(batch))
        time.sleep(0.2)
    assert sum(batches) == 18 and max(batches) > 1


def test_no_more_requests_are_in_flight_than_allowed(endpoint: FakeEndpoint):
    def slow(request):
        answer = echo(request)
        answer.seconds = 0.1
        return answer

    endpoint.otherwise = slow
    start = time.perf_counter()
    asked(backend_of(endpoint, concurrency=4), *numbered(12))
    assert 0.3 <= time.perf_counter() - start < 0.9


def test_the_idle_one_of_two_servers_takes_the_next_chat(endpoint: FakeEndpoint):
    other = FakeEndpoint()
    slow = completion()
    slow.seconds = 1.0
    endpoint.otherwise = lambda request: slow
    asked(OpenAIBackend("toy", {}, "toy-1", [endpoint.url, other.url], concurrency=1), *numbered(8))
    other.stop()
    assert len(endpoint.requests) == 1 and len(other.requests) == 7


def counted(path) -> int:
    return sum(row["calls"] for row in Record(path).summary())


def test_ctrl_c_keeps_what_was_answered_and_drops_what_waits(endpoint: FakeEndpoint, tmp_path):
    endpoint.otherwise = lambda request: replace(echo(request), seconds=0.05)
    record = Record(tmp_path / "calls.sqlite")

    def interrupt(done: int, total: int, waiting: str) -> None:
        if done >= 5:
            raise KeyboardInterrupt

    backend = backend_of(endpoint, concurrency=2)
    with pytest.raises(KeyboardInterrupt):
        RecordedModel("toy", {}, lambda: backend, record, interrupt).complete(numbered(40), Sampling())
    asked_before = len(endpoint.requests)
    assert 5 <= counted(record.path) <= asked_before < 40

    replies = RecordedModel("toy", {}, lambda: backend, record).complete(numbered(40), Sampling())
    assert [r.text for r in replies] == [f"re {i}" for i in range(40)]
    assert len(endpoint.requests) <= 40 + 4  # at most what was in flight, or had just come, is asked twice


def test_a_real_interrupt_lets_what_is_in_flight_arrive(endpoint: FakeEndpoint, tmp_path):
    def slow(request):
        os.kill(os.getpid(), signal.SIGINT) if request["body"]["messages"][-1]["content"] == "4" else None
        answer = echo(request)
        answer.seconds = 0.1
        return answer

    endpoint.otherwise = slow
    record = Record(tmp_path / "calls.sqlite")
    backend = backend_of(endpoint, concurrency=3)
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        RecordedModel("toy", {}, lambda: backend, record).complete(numbered(100), Sampling())
    assert time.perf_counter() - start < 2
    until = time.monotonic() + 5
    while counted(record.path) < len(endpoint.requests) and time.monotonic() < until:
        time.sleep(0.02)
    assert counted(record.path) == len(endpoint.requests) < 12


def test_a_sentence_in_the_middle_keeps_what_was_answered(endpoint: FakeEndpoint, tmp_path):
    endpoint.otherwise = lambda request: failure(401) if len(endpoint.requests) > 20 else echo(request)
    record = Record(tmp_path / "calls.sqlite")
    with pytest.raises(Problem, match="HTTP 401"):
        RecordedModel("toy", {}, lambda: backend_of(endpoint, concurrency=4), record).complete(
            numbered(100), Sampling()
        )
    until = time.monotonic() + 5
    while counted(record.path) < 20 and time.monotonic() < until:
        time.sleep(0.02)
    assert counted(record.path) == 20
    assert len(endpoint.requests) < 30
