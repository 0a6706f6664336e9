"""Every call is recorded before its reply is used, and a recorded call is never asked again.

One SQLite file a run, in write-ahead mode: several processes of one machine may share it, a kill leaves whole rows
only, and a reader never sees half a reply. Who is about to ask a call claims it first, so that two do not ask the same.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from xlc_utils.chat.base import Backend, Chat, Reply, Sampling, call_key
from xlc_utils.chat.budget import Budget
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem

SCHEMA = """
create table if not exists calls (
    key text primary key, model text not null, outcome text not null, request text not null, reply text not null,
    prompt_tokens integer not null, completion_tokens integer not null, seconds real not null,
    attempts integer not null, at real not null
) without rowid;
create table if not exists vectors (key text primary key, vector blob not null) without rowid;
create table if not exists translations (key text primary key, translation text not null) without rowid;
create table if not exists claims (key text primary key, owner text not null) without rowid;
create table if not exists notes (
    kind text not null, name text not null, content text not null, primary key (kind, name, content)
) without rowid;
create index if not exists calls_by_model on calls (model, outcome);
"""
# Only these are answers; anything else is asked again when the run is.
KEPT = (Outcome.OK, Outcome.TRUNCATED, Outcome.REFUSED, Outcome.EMPTY)
CLAIMED_AT_ONCE = 16
CLOCK_SECONDS = 10  # by which a clock may be set while a run goes on
SECONDS_BETWEEN_LOOKS = 0.5  # at what another process is asking
# How long what is in flight may still arrive, which is paid for: after Ctrl-C, and after the minutes of a budget.
GRACE_SECONDS, GRACE_SECONDS_OF_TIME = 10, 60


@dataclass(frozen=True)
class Call:
    """One row of the record: what was asked of whom, and what came back.

    Attributes:
        key: see `call_key`.
        model: its name in models.yaml.
        identity: of its weights; see `Backend`.
        at: when the reply came, seconds since 1970.
    """

    key: str
    model: str
    identity: dict
    chat: Chat
    sampling: Sampling
    reply: Reply
    at: float

    @property
    def request(self) -> str:
        """JSON of what determines the reply, but for the text of a private chat."""
        chat = replace(self.chat, messages=(), completion=None, forced=None) if self.chat.private else self.chat
        asked = {"model_identity": self.identity, "chat": vars(chat), "sampling": vars(self.sampling)}
        return json.dumps(asked, ensure_ascii=False)


class Record:
    """The calls of one run.

    Args:
        path: the SQLite file; made, with its folder, when missing.

    Attributes:
        repaired: a sentence about an unfinished write that was dropped; empty if there was none.

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
            self._db.executescript(SCHEMA)
            self.repaired = self._dropped()
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

    def _dropped(self) -> str:
        """Whether the write-ahead log ended in the middle of a write, as after a power cut or a kill. SQLite leaves
        such an end out; moving the rest into the file makes room for new writes there."""
        self._db.execute("begin immediate")  # nobody writes while the log is looked at
        try:
            written = _pages_in_log(self.path.with_name(self.path.name + "-wal"))
        finally:
            self._db.execute("rollback")
        try:
            _, whole, _ = self._db.execute("pragma wal_checkpoint(passive)").fetchone()
        except sqlite3.OperationalError:  # a full disk can still be read; who writes next is told
            return ""
        if written <= whole:
            return ""
        return f"{self.path.name}: a write that was cut short was dropped; what it held is asked again"

    def get(self, keys: Sequence[str], again: Iterable[str] = ()) -> dict[str, Reply]:
        """The kept replies among ``keys``, but for the outcomes ``again``."""
        rows = self._found("key, outcome, reply from calls", keys)
        kept = set(KEPT) - set(again)
        return {key: self._loaded(key, reply) for key, outcome, reply in rows if outcome in kept}

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

    def claim(self, keys: Sequence[str], owner: str, again: Iterable[str] = ()) -> list[str]:
        """Those of ``keys`` that are neither answered nor claimed by somebody else; they are ``owner``'s now.

        Args:
            keys: at most some hundreds.
            owner: see `new_owner`. The claims of a process that is no more do not count.
            again: outcomes that are no answer to the owner.
        """
        marks, kept = ",".join("?" * len(keys)), sorted(set(KEPT) - set(again))
        answered = f"select key from calls where key in ({marks}) and outcome in ({','.join('?' * len(kept))})"
        with self._transaction(durable=False) as db:
            for (other,) in db.execute("select distinct owner from claims where owner != ?", (owner,)).fetchall():
                if not _lives(other):
                    db.execute("delete from claims where owner = ?", (other,))
            done = {key for (key,) in db.execute(answered, (*keys, *kept))}
            db.executemany("insert or ignore into claims values (?,?)", [(k, owner) for k in keys if k not in done])
            own = f"select key from claims where key in ({marks}) and owner = ?"
            mine = {key for (key,) in db.execute(own, (*keys, owner))}
        return [key for key in keys if key in mine]

    def release(self, owner: str) -> None:
        """Gives up all that ``owner`` claims."""
        with self._transaction(durable=False) as db:
            db.execute("delete from claims where owner = ?", (owner,))

    def put(self, calls: Sequence[Call], again: Iterable[str] = ()) -> bool:
        """Writes replies durably, all or none, and ends their claims. A kept reply that is there already stays, but for
        the outcomes ``again``; returns whether that was so with any. Where a reply takes the place of another, the row
        counts the tokens, seconds and attempts of both, which were paid for."""
        kept = sorted(set(KEPT) - set(again))
        rows = [_row(call) for call in calls]
        with self._transaction() as db:
            before = db.total_changes
            db.executemany(
                "insert into calls values (?,?,?,?,?,?,?,?,?,?) on conflict (key) do update set"
                " outcome=excluded.outcome, request=excluded.request, reply=excluded.reply,"
                " prompt_tokens=prompt_tokens+excluded.prompt_tokens,"
                " completion_tokens=completion_tokens+excluded.completion_tokens,"
                " seconds=seconds+excluded.seconds, attempts=attempts+excluded.attempts, at=excluded.at"
                f" where outcome not in ({','.join('?' * len(kept))})",
                [(*row, *kept) for row in rows],
            )
            written = db.total_changes - before
            db.executemany("delete from claims where key = ?", [(call.key,) for call in calls])
        return written < len(rows)

    @contextlib.contextmanager
    def _transaction(self, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """One transaction, rolled back after an error.

        Args:
            durable: it is on the disk when this ends. Otherwise other processes see it, which a kill does not undo,
                but a power cut may.
        """
        try:
            with self._lock:
                try:
                    self._db.execute(f"pragma synchronous={'full' if durable else 'normal'}")
                    self._db.execute("begin immediate")
                    yield self._db
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
        with self._transaction() as db:
            db.executemany("insert or ignore into vectors values (?,?)", rows)

    def get_translations(self, keys: Sequence[str]) -> dict[str, dict]:
        """The recorded translations among ``keys``; see `xlc_utils.translation.recorded`."""
        found = self._found("key, translation from translations", keys)
        return {key: json.loads(translation) for key, translation in found}

    def put_translations(self, translations: dict[str, dict]) -> None:
        rows = [(key, json.dumps(content, ensure_ascii=False)) for key, content in translations.items()]
        with self._transaction() as db:
            db.executemany("insert or ignore into translations values (?,?)", rows)

    def merge(self, other: Path) -> tuple[int, int]:
        """Enters what another run's record holds: answered calls, vectors, translations and notes. What is here
        stays, but an answer replaces an error.

        Args:
            other: the SQLite file.

        Returns:
            How many calls are new here, and how many are answered there.

        Raises:
            Problem: there is no such file, or it is no record.
        """
        if not other.is_file():
            raise Problem(str(other), "there is no such record", "correct its name")
        Record(other).close()  # says what is wrong with it, and drops a write that was cut short
        marks = ",".join("?" * len(KEPT))
        answers = f"from other.calls where outcome in ({marks})"
        try:
            self._rows("attach database ? as other", (str(other),))
            with self._transaction() as db:
                total = db.execute(f"select count(*) {answers}", KEPT).fetchone()[0]
                new = f"{answers} and key not in (select key from main.calls where outcome in ({marks}))"
                count = db.execute(f"insert or replace into main.calls select * {new}", (*KEPT, *KEPT)).rowcount
                for table in ("vectors", "translations", "notes"):
                    db.execute(f"insert or ignore into main.{table} select * from other.{table}")
        finally:
            with contextlib.suppress(sqlite3.OperationalError):  # it was not attached
                self._db.execute("detach database other")
        return count, total

    def note(self, kind: str, name: str, content: Any) -> None:
        """Keeps something about calls that is none itself, such as the settings of an engine.

        Args:
            kind: of notes.
            name: whom or what it is about; a name may have several notes.
            content: anything that JSON can say.
        """
        row = (kind, name, json.dumps(content, sort_keys=True, ensure_ascii=False))
        with self._transaction() as db:
            db.execute("insert or ignore into notes values (?,?,?)", row)

    def notes(self, kind: str) -> dict[str, list[Any]]:
        """The notes of a kind, by name."""
        found: dict[str, list[Any]] = {}
        for name, content in self._rows("select name, content from notes where kind = ? order by 1, 2", (kind,)):
            found.setdefault(name, []).append(json.loads(content))
        return found

    def forget(self, kind: str, name: str) -> None:
        """Drops the notes of a name."""
        with self._transaction() as db:
            db.execute("delete from notes where kind = ? and name = ?", (kind, name))

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

    def rows(self) -> Iterator[tuple[str, str, str, str, float]]:
        """Key, model, request, reply (both JSON) and time of every call, by key."""
        last, block = "", [()]
        while block:  # in blocks: nothing of the size of the run is held
            query = "select key, model, request, reply, at from calls where key > ? order by key limit 500"
            block = self._rows(query, (last,))
            yield from block
            last = block[-1][0] if block else ""

    def count(self) -> int:
        """How many calls are recorded."""
        return self._rows("select count(*) from calls")[0][0]

    def close(self) -> None:
        self._db.close()


def _row(call: Call) -> tuple:
    reply = call.reply
    text = json.dumps({**vars(reply), "recorded": False}, ensure_ascii=False)
    numbers = (reply.prompt_tokens, reply.completion_tokens, reply.seconds, reply.attempts, call.at)
    return (call.key, call.model, str(reply.outcome), call.request, text, *numbers)


def _pages_in_log(path: Path) -> int:
    """Pages of a write-ahead log that its last generation wrote, in whole or in part (SQLite's file format, 4)."""
    if not path.exists() or path.stat().st_size < 32:
        return 0
    with path.open("rb") as log:
        head = log.read(32)
        size, pages = int.from_bytes(head[8:12], "big") + 24, 0
        while (frame := log.read(24)) and frame[8:16].ljust(8) == head[16:24]:
            pages += 1
            log.seek(32 + pages * size)
    return pages


# Those of this process who claim calls: what one of the past could not give up, on a full disk, is nobody's.
_owners: set[str] = set()


def new_owner() -> str:
    """A name for who claims calls: this process, told from a later one of the same number, and a mark of its own."""
    owner = f"{os.getpid()} {psutil.Process().create_time()} {uuid.uuid4().hex}"
    _owners.add(owner)
    return owner


def _lives(owner: str) -> bool:
    pid, started, _ = owner.split()
    if int(pid) == os.getpid():
        return owner in _owners
    try:
        # When a process was started is told by the clock, which is set now and then.
        return abs(psutil.Process(int(pid)).create_time() - float(started)) < CLOCK_SECONDS
    except psutil.NoSuchProcess:
        return False


class RecordedModel:
    """A `ChatModel`: a backend behind the record.

    Args:
        name: the model's key in models.yaml.
        identity: of its weights; see `Backend`.
        backend: makes who is asked what the record does not hold; called only when needed, since starting a model
            takes seconds.
        record: the run's record.
        progress: called with (done, total, what is being waited for) as replies come.
        again: kept outcomes that are asked again all the same.
        budget: of the run; none by default.
    """

    def __init__(
        self,
        name: str,
        identity: dict,
        backend: Callable[[], Backend],
        record: Record,
        progress: Callable[[int, int, str], None] | None = None,
        again: Iterable[str] = (),
        budget: Budget | None = None,
    ):
        self.name, self.identity, self._make, self._record = name, identity, backend, record
        self._backend: Backend | None = None
        self.progress = progress or (lambda done, total, waiting: None)
        self.again, self.budget = frozenset(again), budget or Budget()

    def complete(self, chats: Sequence[Chat], sampling: Sampling) -> list[Reply]:
        """See `ChatModel`. After Ctrl-C nothing more is sent, and what is in flight may still arrive.

        Raises:
            Problem: the model cannot be asked, the record not be written, or the budget is spent.
        """
        keys = [call_key(self.identity, chat, sampling) for chat in chats]
        replies = self._record.get(list(dict.fromkeys(keys)), self.again)
        wanted = {key: chat for key, chat in zip(keys, chats, strict=True) if key not in replies}
        if wanted:
            replies |= self._asked(wanted, sampling)
        return [replies[key] for key in keys]

    def _asked(self, wanted: dict[str, Chat], sampling: Sampling) -> dict[str, Reply]:
        """Asks in a thread of its own: Ctrl-C comes to the main thread, so it never falls between a reply and its
        record."""
        asking = _Asking(self, wanted, sampling)
        with ThreadPoolExecutor(1) as thread:
            replies = thread.submit(asking.run)
            try:
                return replies.result()
            except KeyboardInterrupt:
                asking.stop()
                raise

    def backend(self) -> Backend:
        """Who is asked, started by the first call; what it says of itself is noted for the manifest."""
        if self._backend is None:
            self._backend = self._make()
            if self._backend.settings:
                self._record.note("engine", self.name, self._backend.settings)
        return self._backend


class _Asking:
    """The calls of one `RecordedModel.complete` that the record does not hold."""

    def __init__(self, model: RecordedModel, wanted: dict[str, Chat], sampling: Sampling):
        self._model, self._record, self._sampling = model, model._record, sampling
        self._left, self._total = dict(wanted), len(wanted)
        self._replies: dict[str, Reply] = {}
        self._owner = new_owner()
        self._give_up_at: float | None = None

    def stop(self, seconds: float = GRACE_SECONDS) -> None:
        """Nothing more is sent, and nothing is waited for much longer."""
        self._give_up_at = time.monotonic() + seconds

    def run(self) -> dict[str, Reply]:
        """Asks until each has a reply, its own or that of another process, or until it is stopped."""
        budget, again = self._model.budget, self._model.again
        try:
            while self._left and self._give_up_at is None:
                before = len(self._replies)
                self._ask()
                budget.check()
                # What is left, another process has answered meanwhile, or is asking.
                for key, reply in self._record.get(list(self._left), again).items():
                    self._done(key, replace(reply, recorded=False))
                if self._left and len(self._replies) == before:
                    waiting = f"{len(self._left)} are asked by another process"
                    self._model.progress(len(self._replies), self._total, waiting)
                    time.sleep(SECONDS_BETWEEN_LOOKS)
        finally:
            self.stop(0)
            _owners.discard(self._owner)
            self._record.release(self._owner)
        return self._replies

    def _done(self, key: str, reply: Reply) -> None:
        del self._left[key]
        self._replies[key] = reply

    def _ask(self) -> None:
        """Asks what nobody else has claimed."""
        backend, sent = self._model.backend(), []
        chats = dict(self._left)
        keys = list(chats)
        parts = [keys[start : start + CLAIMED_AT_ONCE] for start in range(0, len(keys), CLAIMED_AT_ONCE)]

        def claim(part: list[str]) -> list[str]:
            return self._record.claim(part, self._owner, self._model.again)

        def claimed() -> Iterator[Chat]:
            coming = ahead.submit(claim, parts[0])
            for following in (*parts[1:], []):
                mine = coming.result()
                if self._give_up_at is not None:
                    return
                if following:
                    coming = ahead.submit(claim, following)
                for key in mine:
                    in_flight = len(sent) - (len(keys) - len(self._left))
                    allowed = self._model.budget.allows(self._model.name, in_flight, chats[key], self._sampling)
                    if not allowed or self._give_up_at is not None:
                        return
                    sent.append(key)
                    yield chats.pop(key)

        # Claims come one part ahead, from a thread of their own: whoever sends need not wait while replies are written.
        # It ends before this does, so that nothing is claimed after `run` has given all up.
        with ThreadPoolExecutor(1) as ahead, contextlib.closing(backend.ask(claimed(), self._sampling)) as batches:
            for batch in batches:
                self._keep([(sent[index], reply) for index, reply in batch])
                waiting = backend.waiting()
                if batch or waiting:
                    self._model.progress(len(self._replies), self._total, waiting)
                if self._give_up_at is None and self._model.budget.time_is_up():
                    self.stop(GRACE_SECONDS_OF_TIME)
                if self._give_up_at is not None and time.monotonic() > self._give_up_at:
                    return

    def _keep(self, came: list[tuple[str, Reply]]) -> None:
        """Records replies, then enters them as they are in the record from now on."""
        if not came:
            return
        model, now = self._model, time.time()
        calls = [
            Call(key, model.name, model.identity, self._left[key], self._sampling, reply, now) for key, reply in came
        ]
        others_stayed = self._record.put(calls, model.again)
        kept = self._record.get([key for key, _ in came]) if others_stayed else {}
        for key, reply in came:
            model.budget.spend_on(model.name, reply)
            self._done(key, replace(kept.get(key, reply), recorded=False))
