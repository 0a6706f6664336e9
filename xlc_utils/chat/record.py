"""Every call is recorded before its reply is used, and a recorded call is never asked again.

One SQLite file a run, in write-ahead mode: several processes may share it, a kill leaves whole rows only, and a
reader never sees half a reply.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from xlc_utils.chat.base import Backend, Chat, Reply, Sampling, call_key
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem

SCHEMA = """
create table if not exists calls (
    key text primary key, model text not null, outcome text not null, request text not null, reply text not null,
    prompt_tokens integer not null, completion_tokens integer not null, seconds real not null,
    attempts integer not null, at real not null
) without rowid;
create table if not exists vectors (key text primary key, vector blob not null) without rowid;
create index if not exists calls_by_model on calls (model, outcome);
"""
# Only these are answers; anything else is asked again when the run is.
KEPT = (Outcome.OK, Outcome.TRUNCATED, Outcome.REFUSED, Outcome.EMPTY)


class Record:
    """The calls of one run.

    Args:
        path: the SQLite file; made, with its folder, when missing.

    Raises:
        Problem: the file is no record, the disk is full, or the folder cannot be written.
    """

    def __init__(self, path: Path):
        self.path = path
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=60, check_same_thread=False, isolation_level=None)
            self._db.execute("pragma journal_mode=wal")
            self._db.execute("pragma synchronous=full")
            self._db.executescript(SCHEMA)
        except (sqlite3.DatabaseError, OSError) as error:
            raise self._problem(error) from error

    def _problem(self, error: Exception) -> Problem:
        said = str(error)
        if any(word in said for word in ("full", "No space", "I/O")):
            remedy = "free some space on its disk and run again; what was answered so far is kept"
        elif isinstance(error, OSError) or "readonly" in said or "unable to open" in said:
            remedy = "make the folder and the file writable and run again"
        elif "locked" in said:
            remedy = "wait until the other program that writes it is done, and run again"
        else:
            remedy = "move the file away (its calls are lost) or bring it back from a copy, and run again"
        return Problem(str(self.path), f"the record of calls cannot be used ({said})", remedy)

    def get(self, keys: Sequence[str]) -> dict[str, Reply]:
        """The kept replies among ``keys``."""
        rows = self._found("key, outcome, reply from calls", keys)
        return {key: self._loaded(key, reply) for key, outcome, reply in rows if outcome in KEPT}

    def _found(self, what: str, keys: Sequence[str]) -> Iterator[tuple]:
        for start in range(0, len(keys), 500):  # SQLite takes a limited number of values in one statement
            part = keys[start : start + 500]
            yield from self._rows(f"select {what} where key in ({','.join('?' * len(part))})", part)

    def _rows(self, statement: str, values: Sequence = ()) -> list[tuple]:
        try:
            with self._lock:
                return self._db.execute(statement, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._problem(error) from error

    def _loaded(self, key: str, text: str) -> Reply:
        try:
            data = json.loads(text)
            logprobs = tuple((t, p, tuple((a, b) for a, b in top)) for t, p, top in data.pop("logprobs"))
            return Reply(**{**data, "outcome": Outcome(data["outcome"]), "logprobs": logprobs, "recorded": True})
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise Problem(
                f"{self.path}: call {key[:12]}…",
                "its reply was changed by hand and cannot be read",
                "delete that row, or move the file away (its calls are lost), and run again",
            ) from error

    def put(self, key: str, model: str, chat: Chat, sampling: Sampling, reply: Reply) -> None:
        """Writes one reply durably; a kept reply that is there already stays."""
        request = json.dumps({"chat": asdict(chat), "sampling": asdict(sampling)}, ensure_ascii=False)
        row = (key, model, str(reply.outcome), request, json.dumps(asdict(reply), ensure_ascii=False))
        numbers = (reply.prompt_tokens, reply.completion_tokens, reply.seconds, 1, time.time())
        self._write(
            "insert into calls values (?,?,?,?,?,?,?,?,?,?) on conflict (key) do update set outcome=excluded.outcome,"
            " reply=excluded.reply, prompt_tokens=excluded.prompt_tokens, attempts=attempts+1, at=excluded.at,"
            " completion_tokens=excluded.completion_tokens, seconds=excluded.seconds"
            f" where outcome not in ({','.join('?' * len(KEPT))})",
            [(*row, *numbers, *KEPT)],
        )

    def _write(self, statement: str, rows: list[tuple]) -> None:
        """All rows in one transaction, on the disk when this returns."""
        try:
            with self._lock:
                try:
                    self._db.execute("begin immediate")
                    self._db.executemany(statement, rows)
                    self._db.execute("commit")
                finally:
                    if self._db.in_transaction:  # not after every error: a full disk has rolled it back already
                        self._db.execute("rollback")
        except sqlite3.DatabaseError as error:
            raise self._problem(error) from error

    def get_vectors(self, keys: Sequence[str]) -> dict[str, np.ndarray]:
        """The recorded embeddings among ``keys``."""
        return {key: np.frombuffer(vector, np.float32) for key, vector in self._found("key, vector from vectors", keys)}

    def put_vectors(self, vectors: dict[str, np.ndarray]) -> None:
        rows = [(key, np.asarray(vector, np.float32).tobytes()) for key, vector in vectors.items()]
        self._write("insert or ignore into vectors values (?,?)", rows)

    def known(self, keys: Sequence[str]) -> int:
        """How many of ``keys`` need not be asked."""
        return len(self.get(keys))

    def summary(self) -> list[dict]:
        """Calls, tokens and seconds by model and outcome."""
        rows = self._rows(
            "select model, outcome, count(*), sum(prompt_tokens), sum(completion_tokens), sum(seconds), sum(attempts)"
            " from calls group by model, outcome order by model, outcome"
        )
        names = ("model", "outcome", "calls", "prompt_tokens", "completion_tokens", "seconds", "attempts")
        return [dict(zip(names, row, strict=True)) for row in rows]

    def errors(self, limit: int = 20) -> list[tuple[str, str]]:
        """Model and reason of the last failed calls."""
        last = "select model, key, reply from calls where outcome='error' order by at desc limit ?"
        return [(model, self._loaded(key, reply).detail) for model, key, reply in self._rows(last, (limit,))]

    def close(self) -> None:
        self._db.close()


class RecordedModel:
    """A `ChatModel`: a backend behind the record.

    Args:
        name: the model's key in models.yaml.
        identity: of its weights; see `Backend`.
        backend: makes who is asked what the record does not hold; called only when needed, since starting a model
            takes seconds.
        record: the run's record.
        progress: called with (done, total) after each reply.
    """

    def __init__(self, name: str, identity: dict, backend: Callable[[], Backend], record: Record, progress=None):
        self.name, self.identity, self._make, self._record = name, identity, backend, record
        self._backend: Backend | None = None
        self._progress = progress or (lambda done, total: None)

    def complete(self, chats: Sequence[Chat], sampling: Sampling) -> list[Reply]:
        keys = [call_key(self.identity, chat, sampling) for chat in chats]
        replies = self._record.get(list(dict.fromkeys(keys)))
        wanted = {key: chat for key, chat in zip(keys, chats, strict=True) if key not in replies}
        if wanted:
            replies.update(self._asked(wanted, sampling))
        return [replies[key] for key in keys]

    def _asked(self, wanted: dict[str, Chat], sampling: Sampling) -> dict[str, Reply]:
        if self._backend is None:
            self._backend = self._make()
        keys, replies = list(wanted), {}

        def on_reply(index: int, reply: Reply) -> None:
            key = keys[index]
            self._record.put(key, self.name, wanted[key], sampling, reply)
            replies[key] = reply
            self._progress(len(replies), len(keys))

        self._backend.ask(list(wanted.values()), sampling, on_reply)
        # Where another process was quicker, its reply is the recorded one and the rerun will see it: use it now too.
        kept = {key: replace(reply, recorded=False) for key, reply in self._record.get(keys).items()}
        return replies | kept
