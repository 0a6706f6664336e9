"""The NLLB translator on tiny random checkpoints, dense and mixture of experts, that the tests build themselves."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("sentencepiece")
pytest.importorskip("google.protobuf")
pytest.importorskip("accelerate")

from tiny_nllb import END, MAX_TOKENS, PAD, SENTENCES, SIZES, save_checkpoints, save_tokenizer  # noqa: E402

from xlc_utils.registry.hub import Weights  # noqa: E402
from xlc_utils.registry.languages import load  # noqa: E402
from xlc_utils.registry.outcomes import Outcome  # noqa: E402
from xlc_utils.registry.problems import Problem  # noqa: E402
from xlc_utils.translation import degeneration, nllb  # noqa: E402
from xlc_utils.translation.nllb import NllbTranslator  # noqa: E402
from xlc_utils.translation.translators import MAX_RESAMPLES  # noqa: E402

pytestmark = pytest.mark.torch
# The models are so small that a second thread only waits for the first.
torch.set_num_threads(1)

LANGUAGES = load(Path(__file__).resolve().parents[2])


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """One folder a kind."""
    tokenizer_folder = tmp_path_factory.mktemp("tokenizer")
    save_tokenizer(tokenizer_folder)
    folders = {kind: tmp_path_factory.mktemp(kind) for kind in ("dense", "experts")}
    save_checkpoints(tokenizer_folder, folders)
    return folders


@pytest.fixture(params=["dense", "experts"])
def folder(request, checkpoints):
    return checkpoints[request.param]


@pytest.fixture
def nothing_degenerate(monkeypatch):
    """A random model's output is hardly ever a translation; where that is not the point, it counts as one."""
    monkeypatch.setattr(degeneration, "problem", lambda *_: None)


@pytest.fixture
def calls(monkeypatch):
    """Every batch given to the model: its input, its mask, what was generated."""
    seen = []
    for model in (transformers.M2M100ForConditionalGeneration, transformers.NllbMoeForConditionalGeneration):

        def generate(self, *args, original=model.generate, **kwargs):
            out = original(self, *args, **kwargs)
            seen.append((kwargs["input_ids"], kwargs["attention_mask"], out))
            return out

        monkeypatch.setattr(model, "generate", generate)
    return seen


def translator(folder, **options) -> NllbTranslator:
    return NllbTranslator("tiny", Weights(str(folder), None), LANGUAGES, **{"max_tokens": MAX_TOKENS} | options)


def without_padding(row) -> tuple[int, ...]:
    """Up to the end of sentence; the first token of a decoding is one too."""
    row = row.tolist()
    return tuple(row[: row.index(END, 1) + 1] if END in row[1:] else row)


def one_at_a_time(folder, source, target) -> dict[tuple[int, ...], tuple[int, ...]]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, src_lang=source)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    found = {}
    for sentence in SENTENCES:
        inputs = tokenizer(sentence, return_tensors="pt")
        out = model.generate(
            **inputs,
            forced_bos_token_id=tokenizer.convert_tokens_to_ids(target),
            max_new_tokens=MAX_TOKENS,
            num_beams=1,
            do_sample=False,
        )
        found[tuple(inputs["input_ids"][0].tolist())] = without_padding(out[0])
    return found


def test_the_tokens_are_those_of_plain_greedy_decoding_one_sentence_at_a_time(folder, nothing_degenerate, calls):
    translator(folder).translate(SENTENCES, "es", "en")
    found = {
        without_padding(tokens[mask.bool()]): without_padding(out)
        for inputs, masks, outs in calls
        for tokens, mask, out in zip(inputs, masks, outs, strict=True)
    }
    assert any((masks == 0).any() for _, masks, _ in calls)  # sentences were padded
    assert len({*found.values()}) == len(SENTENCES)
    # Only now, with the experts mended; that they are right is test_each_token_reaches_its_own_experts.
    assert found == one_at_a_time(folder, "spa_Latn", "eng_Latn")


def test_translations_come_in_the_order_given_whatever_the_batches(folder, nothing_degenerate):
    together = translator(folder).translate(SENTENCES, "es", "en")
    alone = translator(folder)
    assert [t.text for t in together] == [alone.translate([s], "es", "en")[0].text for s in SENTENCES]
    assert len({t.text for t in together}) > len(SENTENCES) // 2
    assert {(t.translator, t.attempts) for t in together} == {("tiny", 1)}
    assert translator(folder).translate([], "es", "en") == []


def test_batches_are_longest_first_and_bounded(checkpoints, nothing_degenerate, calls, monkeypatch):
    monkeypatch.setattr(nllb, "SHORTEST", 16)
    limit = 60
    translator(checkpoints["dense"], batch_tokens=limit).translate(SENTENCES, "es", "en")
    widths = [inputs.shape[1] for inputs, _, _ in calls]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > nllb.SHORTEST > widths[-1]
    assert all(inputs.shape[0] * max(inputs.shape[1], nllb.SHORTEST) <= limit for inputs, _, _ in calls)
    assert sum(inputs.shape[0] for inputs, _, _ in calls) == len(SENTENCES)


def test_equal_sentences_are_decoded_once(checkpoints, nothing_degenerate, calls):
    found = translator(checkpoints["dense"]).translate([*SENTENCES, *SENTENCES[::-1]] * 3, "es", "en")
    assert sum(inputs.shape[0] for inputs, _, _ in calls) == len(SENTENCES)
    assert found[: len(SENTENCES)] == found[len(SENTENCES) : 2 * len(SENTENCES)][::-1]


def test_the_language_tokens_are_where_nllb_expects_them(folder, nothing_degenerate, calls):
    subject = translator(folder)
    known = transformers.AutoTokenizer.from_pretrained(folder).get_vocab()
    for source, target in (("es", "en"), ("en", "hi"), ("hi", "ja")):
        calls.clear()
        subject.translate(["Llueve."], source, target)
        inputs, _, out = calls[0]
        assert inputs[0, 0] == known[LANGUAGES[source].nllb]
        assert out[0, 0] == END
        assert out[0, 1] == known[LANGUAGES[target].nllb]


def test_an_end_of_sentence_written_in_the_text_is_text(checkpoints, nothing_degenerate, calls):
    translator(checkpoints["dense"]).translate(["Se <s>quemó</s> en 1871, eng_Latn y <pad>."], "es", "en")
    tokens = calls[0][0][0].tolist()
    english = transformers.AutoTokenizer.from_pretrained(checkpoints["dense"]).get_vocab()["eng_Latn"]
    assert tokens.count(END) == 1
    assert tokens[-1] == END
    assert not {0, PAD, english} & {*tokens}


def test_what_does_not_end_is_truncated(folder, nothing_degenerate, calls):
    subject = translator(folder)
    found = subject.translate(SENTENCES, "es", "en")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ended = {
        tokenizer.decode(without_padding(row), skip_special_tokens=True).strip(): END in row[1:].tolist()
        for _, _, out in calls
        for row in out
    }
    for translation in found:
        assert translation.outcome == (Outcome.OK if ended[translation.text] else Outcome.TRUNCATED)
        assert translation.detail == ("" if ended[translation.text] else f"no end within {MAX_TOKENS} tokens")
    assert {t.outcome for t in found} == {Outcome.OK, Outcome.TRUNCATED}
    assert max(out.shape[1] for _, _, out in calls) == 1 + MAX_TOKENS


def test_generation_preferences_of_the_checkpoint_do_not_enter(checkpoints, nothing_degenerate, tmp_path, caplog):
    folder = tmp_path / "with preferences"
    folder.mkdir()
    for file in checkpoints["dense"].iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    preferences = json.loads((folder / "generation_config.json").read_text())
    (folder / "generation_config.json").write_text(
        json.dumps(preferences | {"num_beams": 4, "max_length": 7, "no_repeat_ngram_size": 1})
    )
    plain = translator(checkpoints["dense"]).translate(SENTENCES, "es", "en")
    assert translator(folder).translate(SENTENCES, "es", "en") == plain


def test_a_language_the_tokenizer_does_not_know_is_a_problem(checkpoints):
    languages = LANGUAGES | {"xx": LANGUAGES["es"].model_copy(update={"nllb": "xxx_Latn"})}
    subject = NllbTranslator("tiny", Weights(str(checkpoints["dense"]), None), languages)
    for source, target in (("xx", "en"), ("en", "xx")):
        with pytest.raises(Problem, match="no language token xxx_Latn"):
            subject.translate(["Llueve."], source, target)


def test_a_language_token_without_a_row_in_the_model_is_a_problem(checkpoints, tmp_path):
    for file in checkpoints["dense"].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    tokenizer.add_tokens(["xxx_Latn"], special_tokens=True)
    tokenizer.save_pretrained(tmp_path)
    languages = LANGUAGES | {"xx": LANGUAGES["es"].model_copy(update={"nllb": "xxx_Latn"})}
    with pytest.raises(Problem, match="no language token xxx_Latn"):
        NllbTranslator("tiny", Weights(str(tmp_path), None), languages).translate(["Llueve."], "en", "xx")


def test_a_tokenizer_that_puts_the_language_last_is_a_problem(checkpoints, tmp_path):
    for file in checkpoints["dense"].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config | {"legacy_behaviour": True}))
    with pytest.raises(Problem, match="legacy_behaviour"):
        translator(tmp_path).translate(SENTENCES, "es", "en")


def test_it_can_between_any_two_languages_of_the_registry(checkpoints):
    subject = translator(checkpoints["dense"])
    assert subject.can("es", "en")
    assert subject.can("en", "th")
    assert not subject.can("en", "en")
    assert not subject.can("xx", "en")


@pytest.fixture
def small_memory(monkeypatch):
    """Memory for so many sentences at once."""
    room = {"rows": 2, "tried": []}
    original = transformers.M2M100ForConditionalGeneration.generate

    def generate(self, *args, **kwargs):
        rows = kwargs["input_ids"].shape[0]
        room["tried"].append(rows)
        if rows > room["rows"]:
            raise torch.OutOfMemoryError("out of memory")
        return original(self, *args, **kwargs)

    monkeypatch.setattr(transformers.M2M100ForConditionalGeneration, "generate", generate)
    return room


def test_batches_are_halved_until_they_fit_and_stay_small(checkpoints, nothing_degenerate, small_memory, caplog):
    roomy, tight = translator(checkpoints["dense"]), translator(checkpoints["dense"])
    small_memory["rows"] = 100
    expected = roomy.translate(SENTENCES, "es", "en")
    small_memory["rows"] = 2
    small_memory["tried"].clear()
    with caplog.at_level(logging.WARNING, logger=nllb.log.name):
        assert tight.translate(SENTENCES, "es", "en") == expected
    assert small_memory["tried"][:3] == [8, 4, 2]
    assert max(small_memory["tried"][2:]) == 2
    assert [r.getMessage().split(";")[0] for r in caplog.records if r.name == nllb.log.name] == [
        f"translator tiny: out of memory with {rows} sentences at once" for rows in (8, 4)
    ]
    small_memory["tried"].clear()
    tight.translate(SENTENCES, "en", "es")
    assert max(small_memory["tried"]) == 2


def test_a_model_that_leaves_no_room_for_one_sentence_is_a_problem(checkpoints, small_memory):
    small_memory["rows"] = 0
    with pytest.raises(Problem, match=r"not even one sentence fits into memory.*bfloat16"):
        translator(checkpoints["dense"]).translate(SENTENCES, "es", "en")


def test_progress_counts_distinct_sentences(checkpoints, nothing_degenerate):
    told = []
    subject = translator(checkpoints["dense"], batch_tokens=3 * nllb.SHORTEST, progress=lambda *a: told.append(a))
    subject.translate(SENTENCES * 2, "es", "en")
    assert len(told) > 2
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert {total for _, total in told} == {len(SENTENCES)}
    assert told[-1] == (len(SENTENCES), len(SENTENCES))


def greedy_texts(folder, monkeypatch) -> list[str]:
    with monkeypatch.context() as patch:
        patch.setattr(degeneration, "problem", lambda *_: None)
        return [t.text for t in translator(folder).translate(SENTENCES, "es", "en")]


def test_degenerate_translations_are_sampled_again(folder, monkeypatch):
    greedy = greedy_texts(folder, monkeypatch)
    bad = set(sorted(greedy, key=len)[-2:])
    monkeypatch.setattr(degeneration, "problem", lambda _, text, *languages: "repeats" if text in bad else None)
    found = translator(folder).translate(SENTENCES, "es", "en")
    assert [t.attempts > 1 for t in found] == [text in bad for text in greedy]
    for translation, text in zip(found, greedy, strict=True):
        assert translation.attempts <= 1 + MAX_RESAMPLES
        assert (translation.text == text) == (text not in bad)
        assert translation.outcome in (Outcome.OK, Outcome.TRUNCATED)


def test_what_stays_degenerate_says_so_and_keeps_its_greedy_text(folder, monkeypatch):
    greedy = greedy_texts(folder, monkeypatch)
    judged = []
    monkeypatch.setattr(degeneration, "problem", lambda *what: judged.append(what) or "repeats")
    found = translator(folder).translate(SENTENCES, "es", "en")
    assert [t.text for t in found] == greedy
    assert {(t.outcome, t.attempts, t.detail) for t in found} == {(Outcome.DEGENERATE, 1 + MAX_RESAMPLES, "repeats")}
    assert len(judged) == len(SENTENCES) * (1 + MAX_RESAMPLES)
    assert {what[2:] for what in judged} == {("es", "en")}
    assert len({text for _, text, *_ in judged}) > len(SENTENCES) * MAX_RESAMPLES / 2  # samples differ


def sampled(folder, monkeypatch, sentences=SENTENCES, **options) -> list[str]:
    """The first samples, where every greedy translation is degenerate."""
    seen = {}

    def problem(sentence, text, *languages):
        seen.setdefault(sentence, []).append(text)
        return "repeats" if len(seen[sentence]) == 1 else None

    monkeypatch.setattr(degeneration, "problem", problem)
    return [t.text for t in translator(folder, **options).translate(sentences, "es", "en")]


def test_samples_depend_on_the_sentence_and_the_seed_alone(folder, monkeypatch):
    first = sampled(folder, monkeypatch)
    torch.rand(7)
    assert sampled(folder, monkeypatch) == first
    assert sampled(folder, monkeypatch, batch_tokens=nllb.SHORTEST) == first
    assert sampled(folder, monkeypatch, SENTENCES[::-3]) == first[::-3]
    assert sampled(folder, monkeypatch, seed=1) != first


def test_samples_follow_the_tempered_nucleus():
    logits = np.log([0.35, 0.25, 0.2, 0.15, 0.05])
    tempered = np.exp(logits / 0.7) / np.exp(logits / 0.7).sum()
    kept = np.cumsum(tempered) - tempered < 0.95  # descending: a token is kept until those before it make up 0.95
    assert kept.tolist() == [True, True, True, True, False]
    expected = np.where(kept, tempered, 0) / tempered[kept].sum()
    n = 20_000
    draw = nllb.SeededSampling(list(range(n)))
    scores = draw(None, torch.tensor(logits, dtype=torch.float32).repeat(n, 1))
    found = np.bincount(scores.argmax(dim=1).numpy(), minlength=5) / n
    np.testing.assert_allclose(found, expected, atol=4 * np.sqrt(0.25 / n))
    assert found[4] == 0


def test_each_token_reaches_its_own_experts(checkpoints):
    translator(checkpoints["experts"]).translate(["Llueve."], "es", "en")
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(checkpoints["experts"]).eval()
    weights = {name: value.detach().numpy().astype(float) for name, value in model.state_dict().items()}
    states = torch.randn(3, 20, SIZES["d_model"], generator=torch.Generator().manual_seed(1))
    for part in ("encoder", "decoder"):
        with torch.no_grad():
            found = getattr(model.model, part).layers[1].ffn(states).numpy()
        here = f"model.{part}.layers.1.ffn."
        reached = set()
        for token, result in zip(states.numpy().reshape(60, -1), found.reshape(60, -1), strict=True):
            logits = weights[here + "router.classifier.weight"] @ token
            two = np.argsort(logits)[-2:]
            gates = np.exp(logits[two]) / np.exp(logits[two]).sum()
            expected = 0
            for gate, expert in zip(gates, two, strict=True):
                of = f"{here}experts.expert_{expert}."
                hidden = np.maximum(weights[of + "fc1.weight"] @ token + weights[of + "fc1.bias"], 0)
                expected += gate * (weights[of + "fc2.weight"] @ hidden + weights[of + "fc2.bias"])
            np.testing.assert_allclose(result, 0.8 * expected, atol=1e-4)  # 0.2 of the outputs were masked in training
            reached |= {*two}
        assert len(reached) > 2


def test_dtype_and_device_map_reach_the_model(folder, nothing_degenerate, monkeypatch):
    seen = []
    model = type(transformers.AutoModelForSeq2SeqLM.from_pretrained(folder))
    original = model.generate
    monkeypatch.setattr(model, "generate", lambda self, **kw: seen.append(self.dtype) or original(self, **kw))
    for dtype in ("auto", "bfloat16"):
        found = translator(folder, dtype=dtype, device_map="auto").translate(SENTENCES, "es", "en")
        assert len(found) == len(SENTENCES)
    assert seen == [torch.float32, torch.bfloat16]


@pytest.mark.parametrize("package", NllbTranslator.packages)
def test_a_missing_package_is_told_with_the_line_that_installs_it(checkpoints, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(Problem) as told:
        translator(checkpoints["dense"]).translate(["Llueve."], "es", "en")
    assert str(told.value) == (
        f'translator `tiny`: {package} is not installed; run `python -m pip install -e ".[translate]"`.'
    )


def test_a_folder_without_a_model_is_a_problem(checkpoints, tmp_path):
    with pytest.raises(Problem, match=r"holds no NLLB model.*config\.json"):
        translator(tmp_path).translate(["Llueve."], "es", "en")
    for file in checkpoints["dense"].iterdir():
        if file.suffix != ".safetensors":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    torch.save({}, tmp_path / "pytorch_model.bin")  # pickled weights are never read
    with pytest.raises(Problem, match=r"holds no NLLB model.*weights as safetensors"):
        translator(tmp_path).translate(["Llueve."], "es", "en")


def test_pickled_weights_are_read_where_the_entry_says_so(checkpoints, tmp_path):
    for file in checkpoints["dense"].iterdir():
        if file.suffix != ".safetensors":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    whole = transformers.M2M100ForConditionalGeneration.from_pretrained(checkpoints["dense"])
    torch.save(whole.state_dict(), tmp_path / "pytorch_model.bin")
    weights = Weights(str(tmp_path), None, safetensors_only=False)
    pickled = NllbTranslator("tiny", weights, LANGUAGES, max_tokens=MAX_TOKENS)
    assert pickled.translate(SENTENCES, "es", "en") == translator(checkpoints["dense"]).translate(SENTENCES, "es", "en")


def test_a_model_that_cannot_be_fetched_is_a_problem(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    subject = NllbTranslator("tiny", Weights("nobody/no-such-nllb", "0" * 40, local_files_only=True), LANGUAGES)
    with pytest.raises(Problem, match=r"nobody/no-such-nllb could not be fetched.*or fetch the model elsewhere"):
        subject.translate(["Llueve."], "es", "en")
