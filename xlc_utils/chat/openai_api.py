"""Every OpenAI-compatible endpoint: hosted APIs, `vllm serve`, Ollama, the embedded llama.cpp server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import queue
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from xlc_utils.chat.base import Chat, Reply, Sampling, typed_text, whole_characters
from xlc_utils.chat.connection import Answer, Broken, Connection, close_all
from xlc_utils.chat.event_loop import event_loop
from xlc_utils.chat.pacing import Gate, backoff, retry_after
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem

# Retries have one owner, this module. A server that says "not now" (HTTP 429) is alive, so it is asked more often than
# one that fails (5xx, 408, 409, a reset, no reply in time, a reply of another form).
MAX_ATTEMPTS, MAX_REFUSALS = 6, 30
LONGEST_PAUSE = 600  # seconds; a Retry-After beyond them is told instead of waited for
GRACE_SECONDS = 10  # how long what is in flight may still arrive after an error: it is paid for
SLOW_SECONDS = 30  # a call that takes longer is shown
# So many requests turned down (HTTP 400) before any was answered, and it is not one text that is wrong.
TURNED_DOWN_ALIKE = 5


@dataclass
class AttemptFailed(Exception):
    """An attempt that may be repeated."""

    detail: str
    refused: bool = False
    unreachable: bool = False


class _Feed:
    """Chats with their positions, taken one by one by whoever is free, until there are no more or it is stopped."""

    def __init__(self, chats: Iterable[Chat]):
        self._chats, self.stopped = enumerate(chats), False

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> tuple[int, Chat]:
        if self.stopped:
            raise StopIteration
        return next(self._chats)


class _Server:
    """One address: its connection and how many requests it gets."""

    def __init__(self, url: str, key: str, most: int):
        self.url, self.connection, self.gate = url, Connection(url, key, most), Gate(most)


class OpenAIBackend:
    """Asks one model of one endpoint, several requests at a time.

    Args:
        name: the model's key in models.yaml, for messages.
        identity: see `Backend`.
        model_id: the id that the endpoint knows.
        base_urls: one address, or several equal servers that share the work.
        api_key_env: the environment variable that holds the key; None where the endpoint wants none.
        concurrency: requests in flight for each address, at most; an endpoint that answers HTTP 429 gets fewer.
        timeout: seconds for one request, from the connection to the last byte.
        reasoning_effort: for requests whose sampling names none.
        extra_body: fields beyond the OpenAI schema, sent with each request.

    Raises:
        Problem: the API key is not set or cannot be one; see also `ask`.
    """

    settings: ClassVar[dict[str, Any]] = {}

    def __init__(
        self,
        name: str,
        identity: dict[str, Any],
        model_id: str,
        base_urls: Sequence[str],
        api_key_env: str | None = None,
        concurrency: int = 8,
        timeout: float = 600,
        reasoning_effort: str | None = None,
        extra_body: dict[str, Any] | None = None,
    ):
        self.name, self.identity, self._id = name, identity, model_id
        self._key_env, self._effort, self._extra = api_key_env, reasoning_effort, extra_body or {}
        self._key = api_key(name, api_key_env) if api_key_env else "none"
        self._timeout, self._concurrency = timeout, concurrency
        self._servers = [_Server(url, self._key, concurrency) for url in base_urls]
        self._since: dict[int, float] = {}  # when each call that is not answered yet was first sent
        self._answered = self._turned_down = 0
        weakref.finalize(self, close_all, [server.connection for server in self._servers])

    def ask(self, chats: Iterable[Chat], sampling: Sampling) -> Iterator[list[tuple[int, Reply]]]:
        """See `Backend`. After an error nothing more is sent, and what is in flight may still arrive.

        Raises:
            Problem: the endpoint cannot be reached, refuses the key or the model's id, or asks for a long pause.
        """
        feed, replies = _Feed(chats), queue.SimpleQueue()
        asking = asyncio.run_coroutine_threadsafe(self._ask(feed, sampling, replies), event_loop())
        asking.add_done_callback(lambda _: replies.put(None))
        try:
            yield from _batches(replies)
            asking.result()
        finally:
            feed.stopped = True
            asking.cancel()

    def waiting(self) -> str:
        """See `Backend`."""
        now, since = time.monotonic(), list(self._since.values())
        said = []
        if slow := [now - s for s in since if now - s > SLOW_SECONDS]:
            said.append(f"{len(since)} in flight, the slowest for {max(slow):.0f} s")
        gates = [server.gate for server in self._servers]
        if (pause := max(gate.not_before for gate in gates) - now) > 1:
            said.append(f"the endpoint asks to wait {pause:.0f} s")
        if (limit := sum(int(gate.limit) for gate in gates)) < sum(gate.most for gate in gates):
            said.append(f"{limit} at a time since HTTP 429")
        return ", ".join(said)

    async def _ask(self, feed: _Feed, sampling: Sampling, replies: queue.SimpleQueue) -> None:
        work = (
            self._work(server, feed, sampling, replies) for server in self._servers for _ in range(server.gate.most)
        )
        workers = [asyncio.create_task(w) for w in work]
        try:
            ended, others = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
            feed.stopped = True
            if others:
                await asyncio.wait(others, timeout=GRACE_SECONDS)
            for worker in ended:
                worker.result()
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self, server: _Server, feed: _Feed, sampling: Sampling, replies: queue.SimpleQueue) -> None:
        for index, chat in feed:
            me = id(asyncio.current_task())
            self._since[me] = time.monotonic()
            try:
                replies.put((index, await self._one(server, chat, sampling, feed)))
            finally:
                del self._since[me]

    async def _one(self, server: _Server, chat: Chat, sampling: Sampling, feed: _Feed) -> Reply:
        """One call with all its attempts."""
        failures = refusals = 0
        while True:
            await server.gate.enter()
            start = time.monotonic()
            try:
                reply = await self._attempt(server, chat, sampling)
                return replace(reply, attempts=failures + refusals + 1, seconds=time.monotonic() - start)
            except AttemptFailed as failed:
                refusals, failures = refusals + failed.refused, failures + (not failed.refused)
                last = failures >= MAX_ATTEMPTS or refusals >= MAX_REFUSALS
                if last and failed.unreachable:
                    raise self._unreachable(server, failed.detail) from None
                if last or feed.stopped:
                    detail, seconds = failed.detail[:500], time.monotonic() - start
                    return Reply("", Outcome.ERROR, detail=detail, attempts=failures + refusals, seconds=seconds)
            finally:
                server.gate.leave()
            await asyncio.sleep(backoff(max(failures, refusals)))

    async def _attempt(self, server: _Server, chat: Chat, sampling: Sampling) -> Reply:
        """What one request brought.

        Raises:
            AttemptFailed: something that may pass.
            Problem: something that will not.
        """
        sent = time.monotonic()
        try:
            answer = await server.connection.post(*self.request(chat, sampling), self._timeout)
        except Broken as error:
            raise AttemptFailed(error.detail, unreachable=error.unreachable) from None
        if answer.status >= 300:
            return self._turned_away(server, answer, sent)
        try:
            reply = read_reply(answer.body)
        except ValueError as error:
            raise AttemptFailed(self._without_key(str(error))) from None
        self._answered += 1
        server.gate.answered()
        return replace(reply, detail=self._without_key(reply.detail))

    def _turned_away(self, server: _Server, answer: Answer, sent: float) -> Reply:
        """An answer that is no completion: another attempt, this call's end, or the run's."""
        status, (code, said) = answer.status, answer.error()
        message = self._without_key(f"HTTP {status}: {said}")[:500]
        if status < 400:
            raise Problem(
                f"model `{self.name}` at {server.url}",
                f"the endpoint answers HTTP {status} and names another address ({answer.headers.get('Location')})",
                "write that as its `endpoint` in params/models.yaml and run again; what was answered is kept",
            )
        if status in (401, 403, 404) or code == "insufficient_quota":
            raise self._hopeless(server, status, said)
        if status in (408, 409, 425, 429) or status >= 500:
            pause = retry_after(answer.headers)
            if pause is not None and pause > LONGEST_PAUSE:
                raise self._long_pause(server, pause, message)
            server.gate.pause(pause or 0)
            if status == 429:
                server.gate.shrink(sent)
            raise AttemptFailed(message, refused=status == 429)
        self._turned_down += 1
        if self._turned_down >= TURNED_DOWN_ALIKE and not self._answered:
            raise self._hopeless(server, status, said)
        return Reply("", Outcome.ERROR, detail=message)

    def request(self, chat: Chat, sampling: Sampling) -> tuple[str, dict[str, Any]]:
        """Path and body of a request."""
        body = {
            "model": self._id,
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": sampling.seed + sampling.sample,
            **self._extra,
        }
        if sampling.stop:
            body["stop"] = list(sampling.stop)
        if sampling.grammar:
            body["grammar"] = sampling.grammar
        if chat.completion is not None:
            if sampling.logprobs:
                body["logprobs"] = sampling.logprobs
            return "/completions", body | {"prompt": chat.completion}
        if sampling.logprobs:
            body |= {"logprobs": True, "top_logprobs": sampling.logprobs}
        if json_schema := chat.json_schema or sampling.json_schema:
            schema = {"name": "reply", "strict": True, "schema": json.loads(json_schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        effort = sampling.reasoning_effort or self._effort
        if effort:
            # Reasoning models take neither a temperature nor max_tokens, which would count their thoughts.
            for key in ("temperature", "top_p", "max_tokens", "seed"):
                body.pop(key)
            body |= {"reasoning_effort": effort, "max_completion_tokens": sampling.max_tokens}
        messages = [{"role": role, "content": content} for role, content in chat.messages]
        return "/chat/completions", body | {"messages": messages}

    def _without_key(self, text: str) -> str:
        """Some servers name the key in what they answer; it must not enter a record or a notebook."""
        return text.replace(self._key, "…") if self._key_env else text

    def _hopeless(self, server: _Server, status: int, said: str) -> Problem:
        key = self._key_env or "api_key_env of params/models.yaml"
        remedy = {
            401: f"check the key in {key}",
            403: f"check what the key in {key} may use",
            404: f"check the id `{self._id}` and `endpoint` in params/models.yaml",
            429: f"add credit to the account of the key in {key}",
        }.get(status, f"check what `{self._id}` takes: max tokens, temperature, schema, reasoning_effort")
        return Problem(
            f"model `{self.name}` at {server.url}",
            f"the endpoint answers HTTP {status} ({self._without_key(said)[:200]})",
            f"{remedy}, and run again; what was answered is kept",
        )

    def _long_pause(self, server: _Server, seconds: float, said: str) -> Problem:
        return Problem(
            f"model `{self.name}` at {server.url}",
            f"the endpoint asks to wait for {seconds / 60:.0f} minutes ({self._without_key(said)[:500]})",
            "run again then; what was answered is kept",
        )

    def _unreachable(self, server: _Server, why: str) -> Problem:
        return Problem(
            f"model `{self.name}` at {server.url}",
            f"the endpoint cannot be reached ({self._without_key(why)})",
            "start the server or correct `endpoint` in params/models.yaml and run again; what was answered is kept",
        )


def _batches(replies: queue.SimpleQueue) -> Iterator[list]:
    """All that has come, each time it is asked for, until None comes; an empty list after a second without any."""
    while True:
        batch = []
        with contextlib.suppress(queue.Empty):
            batch.append(replies.get(timeout=1))
            while True:
                batch.append(replies.get_nowait())
        ended = None in batch
        yield [reply for reply in batch if reply is not None]
        if ended:
            return


def api_key(name: str, variable: str) -> str:
    """The key that an environment variable holds.

    Raises:
        Problem: it is not set, or cannot be a key.
    """
    key = os.environ.get(variable, "").strip()
    if key and key.isascii() and key.isprintable():
        return key
    raise Problem(
        f"params/models.yaml: model `{name}`",
        f"the environment variable {variable} that holds its API key "
        + ("holds characters that no key has" if key else "is not set"),
        f"set it (export {variable}=…) and run again",
    )


def read_reply(body: bytes) -> Reply:
    """The reply in a response's body.

    Raises:
        ValueError: there is none; says how the body begins, which may hold what must be masked before it is cut.
    """
    try:
        data = json.loads(body)
        choice, usage = data["choices"][0], data.get("usage") or {}
        message = choice.get("message") or {}
        text = whole_characters((message.get("content") if message else choice.get("text")) or "")
        finish = (choice.get("finish_reason") or "").lower()
        outcome, detail = typed_text(text, finish)
        if message.get("refusal"):
            outcome, detail = Outcome.REFUSED, whole_characters(message["refusal"])
        return Reply(
            text=text.strip(),
            outcome=outcome,
            finish_reason=finish,
            prompt_tokens=int(usage.get("prompt_tokens") or 0),
            completion_tokens=int(usage.get("completion_tokens") or 0),
            detail=detail,
            logprobs=_logprobs((choice.get("logprobs") or {}).get("content") or ()),
        )
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
        start = body[:2000].decode("utf-8", "replace")
        raise ValueError(f"no completion in the endpoint's reply: {start!r}") from None


def _logprobs(tokens) -> tuple:
    return tuple(
        (
            whole_characters(t["token"]),
            t["logprob"],
            tuple((whole_characters(a["token"]), a["logprob"]) for a in t.get("top_logprobs") or ()),
        )
        for t in tokens
    )
