"""Every OpenAI-compatible endpoint: hosted APIs, `vllm serve`, Ollama, the embedded llama.cpp server."""

from __future__ import annotations

import json
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from xlc_utils.chat.base import Chat, Reply, Sampling, typed_text, whole_characters
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem

# The client owns the retries: 408, 409, 429 and 5xx and dropped connections, with back-off, honouring Retry-After.
MAX_RETRIES = 5


class OpenAIBackend:
    """Asks one model of one endpoint, several requests at a time.

    Args:
        name: the model's key in models.yaml, for messages.
        identity: see `Backend`.
        model_id: the id that the endpoint knows.
        base_urls: one address, or several equal servers that share the work.
        api_key_env: the environment variable that holds the key; None where the endpoint wants none.
        concurrency: requests in flight for each address.
        timeout: seconds for one request.
        reasoning_effort: for requests whose sampling names none.
        extra_body: fields beyond the OpenAI schema, sent with each request.

    Raises:
        Problem: the API key is not set or cannot be one; see also `ask`.
    """

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
        self._key = self._key_of_environment() if api_key_env else "none"
        self._clients = [_client(url, self._key, timeout) for url in base_urls] * concurrency
        # Whoever is idle takes the next chat; after Ctrl-C some may still be busy with an earlier list of chats.
        self._idle: queue.SimpleQueue = queue.SimpleQueue()
        for client in self._clients:
            self._idle.put(client)

    def _key_of_environment(self) -> str:
        key = os.environ.get(self._key_env, "").strip()
        if key and key.isascii() and key.isprintable():
            return key
        raise Problem(
            f"params/models.yaml: model `{self.name}`",
            f"the environment variable {self._key_env} that holds its API key "
            + ("holds characters that no key has" if key else "is not set"),
            f"set it (export {self._key_env}=…) and run again",
        )

    def ask(self, chats: Sequence[Chat], sampling: Sampling, on_reply: Callable[[int, Reply], None]) -> None:
        """See `Backend`. ``on_reply`` is called in other threads, one call at a time.

        Raises:
            Problem: the endpoint cannot be reached, or refuses the key or the model's id.
        """
        one_at_a_time = threading.Lock()

        def answer(index: int, chat: Chat) -> None:
            client = self._idle.get()
            try:
                reply = self._one(client, chat, sampling)
            finally:
                self._idle.put(client)
            with one_at_a_time:
                on_reply(index, reply)

        pool = ThreadPoolExecutor(len(self._clients))
        try:
            for done in as_completed([pool.submit(answer, i, chat) for i, chat in enumerate(chats)]):
                done.result()
        finally:
            # After an error or Ctrl-C what waits is dropped; what is in flight is paid for, so it is still handed over.
            pool.shutdown(wait=False, cancel_futures=True)

    def _one(self, client, chat: Chat, sampling: Sampling) -> Reply:
        import openai

        start = time.perf_counter()
        try:
            body = self._send(client, chat, sampling)
        except (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError) as error:
            raise self._refused_by_endpoint(client, error) from None
        except openai.APITimeoutError as error:
            return Reply("", Outcome.ERROR, seconds=time.perf_counter() - start, detail=f"no reply in time ({error})")
        except openai.APIConnectionError as error:
            raise Problem(
                f"model `{self.name}` at {client.base_url}",
                f"the endpoint cannot be reached ({self._without_key(str(error.__cause__ or error))})",
                "start the server or correct `endpoint` in params/models.yaml and run again; what was answered is kept",
            ) from None
        except openai.APIStatusError as error:
            detail = self._without_key(f"HTTP {error.status_code}: {error.message}")[:500]
            return Reply("", Outcome.ERROR, seconds=time.perf_counter() - start, detail=detail)
        reply = _reply(body, time.perf_counter() - start)
        return replace(reply, detail=self._without_key(reply.detail))

    def _without_key(self, text: str) -> str:
        """Some servers name the key in what they answer; it must not enter a record or a notebook."""
        return text.replace(self._key, "…") if self._key_env else text

    def _send(self, client, chat: Chat, sampling: Sampling) -> bytes:
        """The body of the response, unread: the client would make objects of whatever it is."""
        common = {
            "model": self._id,
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": sampling.seed + sampling.sample,
        }
        extra = dict(self._extra)
        if sampling.stop:
            common["stop"] = list(sampling.stop)
        if sampling.grammar:
            extra["grammar"] = sampling.grammar
        if chat.completion is not None:
            if sampling.logprobs:
                common["logprobs"] = sampling.logprobs
            return client.completions.with_raw_response.create(
                prompt=chat.completion, extra_body=extra, **common
            ).http_response.content
        if sampling.logprobs:
            common |= {"logprobs": True, "top_logprobs": sampling.logprobs}
        if sampling.json_schema:
            schema = {"name": "reply", "strict": True, "schema": json.loads(sampling.json_schema)}
            common["response_format"] = {"type": "json_schema", "json_schema": schema}
        effort = sampling.reasoning_effort or self._effort
        if effort:
            # Reasoning models take neither a temperature nor max_tokens, which would count their thoughts.
            for key in ("temperature", "top_p", "max_tokens", "seed"):
                common.pop(key)
            common |= {"reasoning_effort": effort, "max_completion_tokens": sampling.max_tokens}
        messages = [{"role": role, "content": content} for role, content in chat.messages]
        return client.chat.completions.with_raw_response.create(
            messages=messages, extra_body=extra, **common
        ).http_response.content

    def _refused_by_endpoint(self, client, error) -> Problem:
        remedy = {
            401: f"check the key in {self._key_env or 'api_key_env of params/models.yaml'}",
            403: f"check what the key in {self._key_env or 'api_key_env'} may use",
            404: f"check the id `{self._id}` and `endpoint` in params/models.yaml",
        }[error.status_code]
        return Problem(
            f"model `{self.name}` at {client.base_url}",
            f"the endpoint answers HTTP {error.status_code} ({self._without_key(str(error.message))[:200]})",
            f"{remedy}, and run again; what was answered is kept",
        )


def _client(url: str, key: str, timeout: float):
    from openai import DefaultHttpxClient, OpenAI

    # A proxy set for the internet does not know this machine's own servers.
    local = urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1")
    http = DefaultHttpxClient(trust_env=False) if local else None
    return OpenAI(base_url=url, api_key=key, max_retries=MAX_RETRIES, timeout=timeout, http_client=http)


def _reply(body: bytes, seconds: float) -> Reply:
    """The reply in a response's body, or an error that shows how the body begins."""
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
            prompt_tokens=usage.get("prompt_tokens") or 0,
            completion_tokens=usage.get("completion_tokens") or 0,
            seconds=seconds,
            detail=detail,
            logprobs=_logprobs((choice.get("logprobs") or {}).get("content") or ()),
        )
    except (ValueError, TypeError, LookupError, AttributeError):
        start = body[:200].decode("utf-8", "replace")
        return Reply("", Outcome.ERROR, seconds=seconds, detail=f"no completion in the endpoint's reply: {start!r}")


def _logprobs(tokens) -> tuple:
    return tuple(
        (
            whole_characters(t["token"]),
            t["logprob"],
            tuple((whole_characters(a["token"]), a["logprob"]) for a in t.get("top_logprobs") or ()),
        )
        for t in tokens
    )
