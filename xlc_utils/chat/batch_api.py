"""OpenAI's Batch API: requests as a file, answers within a day for half the price.

A batch outlives the process that submitted it. Its file is noted in the run's record before it is submitted and until
its answers are recorded there, so that whoever runs again waits for the same batch and pays for it once.
"""

from __future__ import annotations

import asyncio
import json
import time
import weakref
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from xlc_utils.chat.base import Chat, Reply, Sampling, call_key
from xlc_utils.chat.connection import CONNECT_SECONDS, close_all, takes_proxy
from xlc_utils.chat.event_loop import event_loop
from xlc_utils.chat.openai_api import LONGEST_PAUSE, MAX_ATTEMPTS, OpenAIBackend, read_reply
from xlc_utils.chat.pacing import backoff, retry_after
from xlc_utils.chat.record import Record
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem

MOST_REQUESTS, MOST_BYTES = 50_000, 190_000_000  # of one file; the API takes 200 MB
MAX_SUBMISSIONS = 3  # of one request; then what expired or failed is that call's error
SECONDS_BETWEEN_POLLS = 30.0
ENDED = ("completed", "failed", "expired", "cancelled")

#: What takes its time yields empty lists meanwhile, as `Backend.ask` does: whoever asks may stop then.
T = TypeVar("T")
Waiting = Generator[list, None, T]


class BatchBackend(OpenAIBackend):
    """Asks one model in batches; see `OpenAIBackend` for what is sent and for the arguments.

    Args:
        record: of the run; its notes of the kind ``batch`` are the batches under way, by the id of their file.
    """

    def __init__(self, *args: Any, record: Record, **more: Any):
        super().__init__(*args, **more)
        self._record = record
        self._client = self._opened()
        weakref.finalize(self, close_all, [self._client])
        self._batches: dict[str, Any] = {}  # those under way as the endpoint showed them last, by their file
        self._not_before = 0.0  # time.monotonic() that the endpoint asks to wait for

    def ask(self, chats: Iterable[Chat], sampling: Sampling) -> Iterator[list[tuple[int, Reply]]]:
        """See `Backend`. All chats are taken at once. Where the caller stops, batches stay at the endpoint.

        Raises:
            Problem: the endpoint refuses a batch, or it was cancelled; see also `OpenAIBackend.ask`.
        """
        left = {call_key(self.identity, chat, sampling): (i, chat) for i, chat in enumerate(chats)}
        submissions: Counter[str] = Counter()
        self._batches = {}
        under_way = yield from self._resumed(left)
        while left:
            on_their_way = {key for keys in under_way.values() for key in keys}
            new = {key: chat for key, (_, chat) in left.items() if key not in on_their_way}
            submissions.update(new.keys())
            under_way |= yield from self._submitted(new, sampling)
            file = yield from self._ended(list(under_way))
            answered, failed = yield from self._results(file, under_way.pop(file))
            last = {key: why for key, why in failed.items() if submissions[key] >= MAX_SUBMISSIONS}
            answered |= {key: Reply("", Outcome.ERROR, detail=why) for key, why in last.items()}
            yield [
                (left.pop(key)[0], replace(reply, attempts=max(1, submissions[key])))
                for key, reply in answered.items()
                if key in left
            ]
            self._record.forget("batch", file)  # what was yielded is recorded by now
            self._check(self._batches.pop(file))

    def _opened(self):
        from openai import AsyncOpenAI, DefaultAioHttpClient, Timeout

        url = self._servers[0].url
        http = DefaultAioHttpClient(trust_env=takes_proxy(url))
        seconds = Timeout(self._timeout, connect=CONNECT_SECONDS)
        return AsyncOpenAI(base_url=url, api_key=self._key, max_retries=0, timeout=seconds, http_client=http)

    def waiting(self) -> str:
        """See `Backend`."""
        shown = list(self._batches.values())
        said = [f"{b.id} {b.status}, {_done(b)} answered" for b in shown if b.status not in ENDED]
        if (pause := self._not_before - time.monotonic()) > 1:
            said.append(f"the endpoint asks to wait {pause:.0f} s")
        return ", ".join(said)

    # ---- submitting --------------------------------------------------------------------------------------------------
    def _resumed(self, wanted: Iterable[str]) -> Waiting[dict[str, list[str]]]:
        """The keys of batches of an earlier run that hold some of those wanted, by file."""
        found, wanted = {}, set(wanted)
        for file, parts in self._record.notes("batch").items():
            note = {name: value for part in parts for name, value in part.items()}
            if note["model"] == self.name and not wanted.isdisjoint(note["keys"]):
                batch = yield from self._call(lambda client, attempt, file=file: _batch_of(client, file))
                self._batches[file] = batch or (yield from self._create(file, note["path"]))
                found[file] = note["keys"]
        return found

    def _submitted(self, chats: dict[str, Chat], sampling: Sampling) -> Waiting[dict[str, list[str]]]:
        """Submits requests; their keys by file."""
        found = {}
        for path, lines in self._files(chats, sampling):
            content = {"file": ("batch.jsonl", b"".join(lines.values())), "purpose": "batch"}
            made = yield from self._call(lambda client, attempt, content=content: client.files.create(**content))
            note = {"model": self.name, "path": path, "keys": list(lines)}
            self._record.note("batch", made.id, note)  # before it is submitted: a kill right after must not lose it
            self._batches[made.id] = yield from self._create(made.id, path)
            found[made.id] = note["keys"]
        return found

    def _files(self, chats: dict[str, Chat], sampling: Sampling) -> Iterator[tuple[str, dict[str, bytes]]]:
        """Path of the requests and their lines by key, as many as one file takes."""
        lines: dict[str, bytes] = {}
        path, size = "", 0
        for key, chat in chats.items():
            own, body = self.request(chat, sampling)
            asked = {"custom_id": key, "method": "POST", "url": f"/v1{own}", "body": body}
            line = json.dumps(asked, ensure_ascii=False).encode() + b"\n"
            # A batch is of one path, and a model's chats are of one kind: hardly ever more than these two limits.
            if lines and (own != path or len(lines) == MOST_REQUESTS or size + len(line) > MOST_BYTES):
                yield path, lines
                lines, size = {}, 0
            path, size = own, size + len(line)
            lines[key] = line
        if lines:
            yield path, lines

    def _create(self, file: str, path: str) -> Waiting[Any]:
        async def create(client, attempt: int):
            # Of an attempt that broke off nobody knows whether it arrived.
            known = await _batch_of(client, file) if attempt > 1 else None
            submitted = {"input_file_id": file, "endpoint": f"/v1{path}", "completion_window": "24h"}
            return known or await client.batches.create(**submitted)

        return (yield from self._call(create))

    # ---- waiting and reading -----------------------------------------------------------------------------------------
    def _ended(self, files: list[str]) -> Waiting[str]:
        """Waits for one of the batches to end; its file."""
        while True:
            for file in files:
                number = self._batches[file].id
                batch = yield from self._call(lambda client, attempt, n=number: client.batches.retrieve(n))
                self._batches[file] = batch
                if batch.status in ENDED:
                    return file
            yield from _pause(SECONDS_BETWEEN_POLLS)

    def _results(self, file: str, keys: list[str]) -> Waiting[tuple[dict[str, Reply], dict[str, str]]]:
        """The replies of an ended batch by key, and why there is none yet of the others."""
        batch, answered = self._batches[file], {}
        failed = dict.fromkeys(keys, f"the batch ended ({batch.status}) without an answer to it")
        for number in filter(None, (batch.output_file_id, batch.error_file_id)):
            content = yield from self._call(lambda client, attempt, n=number: client.files.content(n))
            for line in content.content.splitlines():
                key, reply, why = self._read(line)
                if key in failed and reply is not None:
                    answered[key] = reply
                elif key in failed:
                    failed[key] = why
        return answered, {key: why for key, why in failed.items() if key not in answered}

    def _read(self, line: bytes) -> tuple[str, Reply | None, str]:
        """Key and reply of one line of results; no reply but the reason where another attempt may bring one."""
        try:
            result = json.loads(line)
            key, response = result["custom_id"], result.get("response") or {}
            status, body = response.get("status_code"), response.get("body") or {}
            said = (result.get("error") or body.get("error") or {}).get("message") or "no reason is given"
        except (ValueError, TypeError, LookupError, AttributeError):
            return "", None, ""
        if status == 200:
            try:
                reply = read_reply(json.dumps(body).encode())
                return key, replace(reply, detail=self._without_key(reply.detail)), ""
            except ValueError as error:
                return key, None, self._without_key(str(error))[:500]
        why = self._without_key(f"HTTP {status}: {said}" if status else said)[:500]
        passes = status is None or status in (408, 409, 425, 429) or status >= 500
        return key, None if passes else Reply("", Outcome.ERROR, detail=why), why

    def _check(self, batch) -> None:
        if batch.status not in ("failed", "cancelled"):
            return
        said = "; ".join(e.message or e.code or "" for e in (batch.errors and batch.errors.data) or ())
        what = f"batch {batch.id} was cancelled" if batch.status == "cancelled" else f"batch {batch.id} is refused"
        raise Problem(
            f"model `{self.name}` at {self._servers[0].url}",
            f"{what} ({self._without_key(said)[:300]})" if said else what,
            "see to it and run again, which submits what is not answered; or take `batch` out of its entry",
        )

    def _call(self, make: Callable[[Any, int], Awaitable[Any]]) -> Waiting[Any]:
        """The result of a request about batches or files, repeated while that may help.

        Args:
            make: makes it of the client and the number of the attempt.
        """
        import openai

        server, attempt = self._servers[0], 0
        while True:
            attempt += 1
            try:
                return asyncio.run_coroutine_threadsafe(_awaited(make, self._client, attempt), event_loop()).result()
            except openai.APIConnectionError as error:
                if attempt == MAX_ATTEMPTS:
                    raise self._unreachable(server, str(error.__cause__ or error)) from None
                pause = 0.0
            except openai.APIStatusError as error:
                may_pass = error.status_code in (408, 409, 425, 429) or error.status_code >= 500
                if not may_pass or error.code == "insufficient_quota" or attempt == MAX_ATTEMPTS:
                    raise self._hopeless(server, error.status_code, error.message) from None
                pause = retry_after(error.response.headers) or 0.0
                if pause > LONGEST_PAUSE:
                    raise self._long_pause(server, pause, error.message) from None
            self._not_before = time.monotonic() + pause
            yield from _pause(max(pause, backoff(attempt)))


def _pause(seconds: float) -> Iterator[list]:
    """Yields nothing, about once a second, until the time is over."""
    until = time.monotonic() + seconds
    while (wait := until - time.monotonic()) > 0:
        yield []
        time.sleep(min(1.0, wait))


async def _awaited(make, client, attempt: int) -> Any:
    return await make(client, attempt)


async def _batch_of(client, file: str):
    """The batch that was submitted with a file; None if there is none."""
    async for batch in client.batches.list(limit=100):
        if batch.input_file_id == file:
            return batch
    return None


def _done(batch) -> str:
    counts = batch.request_counts
    return f"{counts.completed + counts.failed} of {counts.total}" if counts else "nothing"
