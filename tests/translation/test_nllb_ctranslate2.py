"""NLLB through CTranslate2, on tiny random checkpoints: what transformers decodes, and what is kept where."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
ctranslate2 = pytest.importorskip("ctranslate2")
for package in ("sentencepiece", "google.protobuf", "accelerate"):
    pytest.importorskip(package)

from tiny_nllb import MAX_TOKENS, SENTENCES, save_checkpoints, save_tokenizer  # noqa: E402

from xlc_utils.registry.hub import Weights  # noqa: E402
from xlc_utils.registry.languages import load  # noqa: E402
from xlc_utils.registry.outcomes import Outcome  # noqa: E402
from xlc_utils.registry.problems import Problem  # noqa: E402
from xlc_utils.translation import degeneration, nllb  # noqa: E402
from xlc_utils.translation.nllb import NllbTranslator  # noqa: E402
from xlc_utils.translation.nllb_ctranslate2 import CTranslate2Translator  # noqa: E402
from xlc_utils.translation.translators import MAX_RESAMPLES  # noqa: E402

pytestmark = pytest.mark.torch
torch.set_num_threads(1)
LANGUAGES = load(Path(__file__).resolve().parents[2])


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    tokenizer_folder = tmp_path_factory.mktemp("tokenizer")
    save_tokenizer(tokenizer_folder)
    folders = {kind: tmp_path_factory.mktemp(kind) for kind in ("dense", "experts")}
    save_checkpoints(tokenizer_folder, folders)
    return folders


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def in_cache(cache, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))


@pytest.fixture
def nothing_degenerate(monkeypatch):
    monkeypatch.setattr(degeneration, "problem", lambda *_: None)


def converted(folder, quantization="float32", **options) -> CTranslate2Translator:
    more = {"max_tokens": MAX_TOKENS, "quantization": quantization} | options
    return CTranslate2Translator("tiny", Weights(str(folder), None), LANGUAGES, **more)


def plain(folder, **options) -> NllbTranslator:
    return NllbTranslator("tiny", Weights(str(folder), None), LANGUAGES, **{"max_tokens": MAX_TOKENS} | options)


@pytest.mark.parametrize(("source", "target"), [("es", "en"), ("en", "hi"), ("hi", "ja")])
def test_in_float32_it_says_what_transformers_says(checkpoints, nothing_degenerate, source, target):
    expected = plain(checkpoints["dense"]).translate(SENTENCES, source, target)
    assert converted(checkpoints["dense"]).translate(SENTENCES, source, target) == expected
    assert {t.outcome for t in expected} == {Outcome.OK, Outcome.TRUNCATED}


def test_order_batches_and_duplicates_change_nothing(checkpoints, nothing_degenerate, monkeypatch):
    subject = converted(checkpoints["dense"])
    expected = subject.translate(SENTENCES, "es", "en")
    batches = []
    original = subject._generated
    monkeypatch.setattr(subject, "_generated", lambda tokens, *a: batches.append(len(tokens)) or original(tokens, *a))
    monkeypatch.setattr(subject, "_batch_tokens", 2 * nllb.SHORTEST)
    assert subject.translate([*SENTENCES[::-1], *SENTENCES], "es", "en") == [*expected[::-1], *expected]
    assert sum(batches) == len(SENTENCES) and max(batches) == 2


def test_the_weights_are_kept_in_eight_bits(checkpoints, nothing_degenerate, cache):
    assert len(converted(checkpoints["dense"], "int8").translate(SENTENCES, "es", "en")) == len(SENTENCES)
    converted(checkpoints["dense"]).translate(SENTENCES, "es", "en")
    sizes = {p.name.split("-")[-2]: (p / "model.bin").stat().st_size for p in cache.glob("xlc/ctranslate2/*")}
    assert sizes["int8"] < 0.5 * sizes["float32"]


def test_samples_are_those_of_transformers(checkpoints, monkeypatch):
    """The first samples, where every greedy translation is degenerate."""

    def first_samples(subject) -> list[str]:
        seen = {}

        def problem(sentence, text, *languages):
            seen.setdefault(sentence, []).append(text)
            return "repeats" if len(seen[sentence]) == 1 else None

        monkeypatch.setattr(degeneration, "problem", problem)
        return [(t.text, t.outcome, t.attempts) for t in subject.translate(SENTENCES, "es", "en")]

    expected = first_samples(plain(checkpoints["dense"]))
    assert {attempts for _, _, attempts in expected} == {2}
    assert first_samples(converted(checkpoints["dense"])) == expected
    assert first_samples(converted(checkpoints["dense"], batch_tokens=nllb.SHORTEST)) == expected
    assert first_samples(converted(checkpoints["dense"], seed=1)) != expected


def test_what_stays_degenerate_keeps_its_greedy_text(checkpoints, monkeypatch):
    monkeypatch.setattr(degeneration, "problem", lambda *_: None)
    greedy = [t.text for t in converted(checkpoints["dense"]).translate(SENTENCES, "es", "en")]
    monkeypatch.setattr(degeneration, "problem", lambda *_: "repeats")
    found = converted(checkpoints["dense"]).translate(SENTENCES, "es", "en")
    assert [t.text for t in found] == greedy
    assert {(t.outcome, t.attempts) for t in found} == {(Outcome.DEGENERATE, 1 + MAX_RESAMPLES)}


# ---- converted once --------------------------------------------------------------------------------------------------
@pytest.fixture
def conversions(monkeypatch):
    seen = []
    original = CTranslate2Translator._convert
    monkeypatch.setattr(
        CTranslate2Translator, "_convert", lambda self, folder: seen.append(folder) or original(self, folder)
    )
    return seen


def copied(source: Path, target: Path) -> Path:
    target.mkdir()
    for file in source.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    return target


def test_a_model_is_converted_once_and_again_when_its_files_change(
    checkpoints, conversions, nothing_degenerate, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = copied(checkpoints["dense"], tmp_path / "model")
    first = converted(folder).translate(SENTENCES, "es", "en")
    assert converted(folder).translate(SENTENCES, "es", "en") == first and len(conversions) == 1
    converted(folder, "int8").translate(SENTENCES, "es", "en")
    assert len(conversions) == 2
    tokenizer_folder = tmp_path / "tokenizer"
    save_tokenizer(tokenizer_folder)
    save_checkpoints(tokenizer_folder, {"dense": folder}, seed=6)
    assert converted(folder).translate(SENTENCES, "es", "en") != first and len(conversions) == 3
    assert [p.name for p in (tmp_path / "cache" / "xlc" / "ctranslate2").glob(".*")] == []


def test_a_conversion_that_is_cut_short_leaves_nothing_behind(checkpoints, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def cut_short(self, folder):
        folder.mkdir()
        (folder / "model.bin").write_bytes(b"half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CTranslate2Translator, "_convert", cut_short)
        with pytest.raises(KeyboardInterrupt):
            converted(checkpoints["dense"]).translate(["Llueve."], "es", "en")
    assert list((tmp_path / "xlc" / "ctranslate2").iterdir()) == []
    assert converted(checkpoints["dense"]).translate(["Llueve."], "es", "en")[0].attempts >= 1


# ---- what is refused -------------------------------------------------------------------------------------------------
def test_the_mixture_of_experts_is_refused_with_the_reason(checkpoints):
    with pytest.raises(Problem, match=r"is a mixture of experts, which CTranslate2 cannot convert; use a dense model"):
        converted(checkpoints["experts"]).translate(["Llueve."], "es", "en")


@pytest.mark.parametrize("package", CTranslate2Translator.packages)
def test_a_missing_package_is_told_with_the_line_that_installs_it(checkpoints, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(Problem) as told:
        converted(checkpoints["dense"]).translate(["Llueve."], "es", "en")
    assert str(told.value) == (
        f'translator `tiny`: {package} is not installed; run `python -m pip install -e ".[translate]"`.'
    )


def test_pickled_weights_are_never_read(checkpoints, tmp_path):
    folder = copied(checkpoints["dense"], tmp_path / "model")
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")
    with pytest.raises(Problem, match=r"holds no NLLB model.*weights as safetensors"):
        converted(folder).translate(["Llueve."], "es", "en")


def test_batches_that_do_not_fit_are_halved(checkpoints, nothing_degenerate, monkeypatch):
    expected = converted(checkpoints["dense"]).translate(SENTENCES, "es", "en")
    tight = converted(checkpoints["dense"])
    original = tight._greedy

    def greedy(sources, first):
        if len(sources) > 2:
            raise RuntimeError("CUDA failed with error out of memory")
        return original(sources, first)

    monkeypatch.setattr(tight, "_greedy", greedy)
    assert tight.translate(SENTENCES, "es", "en") == expected
    monkeypatch.setattr(tight, "_greedy", lambda *_: (_ for _ in ()).throw(RuntimeError("something else")))
    with pytest.raises(RuntimeError, match="something else"):
        tight.translate(SENTENCES, "es", "en")


def test_a_full_disk_is_told(checkpoints, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def full(self, folder):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(CTranslate2Translator, "_convert", full)
    with pytest.raises(Problem, match=r"cannot be written \(No space left on device\); free some space"):
        converted(checkpoints["dense"]).translate(["Llueve."], "es", "en")


def test_an_entry_of_the_registry_makes_one(root: Path):
    from xlc_utils.registry import models
    from xlc_utils.translation.registry import translator_of

    def never(name):
        raise AssertionError(name)

    made = translator_of(
        root, ["nllb-distilled-600m-int8"], models.load(root), LANGUAGES, never, 0, lambda name: print
    ).chosen("hi", "en")
    assert isinstance(made, CTranslate2Translator) and made._quantization == "int8"
    revision = "f8d333a098d19b4fd9a8b18f94170487ad3f821d"
    assert made._weights.where == {"revision": revision, "local_files_only": False, "trust_remote_code": False}
    assert made._weights.use_safetensors is None  # the entry says so: this commit has its weights pickled
