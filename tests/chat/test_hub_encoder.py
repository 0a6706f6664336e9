"""chat/hub_encoder.py: the mean over word pieces of a tiny XLM-R, and a record that knows whose vectors it holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from xlc_utils.chat.record import Record
from xlc_utils.registry.models import HubEncoder
from xlc_utils.registry.problems import Problem

TEXTS = ["a lamp", "the lamp is broken and we send a new lamp", "thanks"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast, XLMRobertaConfig, XLMRobertaModel

    made = tmp_path_factory.mktemp("tiny-e5")
    words = Tokenizer(models.WordLevel(unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    words.train_from_iterator([*TEXTS, "query :"], trainers.WordLevelTrainer(special_tokens=special))
    words.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    names = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, **names)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
    XLMRobertaModel(XLMRobertaConfig(vocab_size=len(tokenizer), **sizes)).save_pretrained(made)
    tokenizer.save_pretrained(made)
    return made


def entry(folder: Path, prefix: str = "query: ") -> HubEncoder:
    return HubEncoder(id=str(folder), revision=None, prefix=prefix, licence="none")


@pytest.mark.torch
def test_vectors_are_means_over_the_prefixed_text_whatever_it_is_batched_with(folder: Path, tmp_path: Path):
    import torch
    from transformers import AutoModel, AutoTokenizer

    from xlc_utils.chat.hub_encoder import E5

    encoder = E5("tiny", entry(folder), Record(tmp_path / "calls.sqlite"))
    found = encoder.encode(TEXTS)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    for text, vector in zip(TEXTS, found, strict=True):
        ids = torch.tensor([tokenizer(f"query: {text}")["input_ids"]])  # one text, so that nothing is padded
        with torch.inference_mode():
            mean = model(ids).last_hidden_state[0].mean(dim=0).numpy()
        np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-5)
    assert encoder.encode([]).shape == (0, 16)


@pytest.mark.torch
def test_recorded_vectors_are_not_made_again_and_another_prefix_makes_others(folder: Path, tmp_path: Path, monkeypatch):
    from xlc_utils.chat.hub_encoder import E5

    record = Record(tmp_path / "calls.sqlite")
    first = E5("tiny", entry(folder), record).encode(TEXTS)
    other = E5("tiny", entry(folder, prefix="thanks "), record).encode(TEXTS)
    assert np.abs(first - other).max() > 1e-3
    again = E5("tiny", entry(folder), record)
    monkeypatch.setattr(again, "_embed", lambda texts: pytest.fail("embedded again"))
    np.testing.assert_array_equal(again.encode(TEXTS), first)


@pytest.mark.torch
def test_weights_that_cannot_be_had_are_told(tmp_path: Path):
    pytest.importorskip("transformers")
    from xlc_utils.chat.hub_encoder import E5

    with pytest.raises(Problem, match=r"encoder tiny: .* could not be fetched"):
        E5("tiny", entry(tmp_path / "nothing"), Record(tmp_path / "calls.sqlite")).encode(TEXTS)


def test_a_revision_that_moves_is_refused():
    with pytest.raises(ValueError, match="is no commit"):
        HubEncoder(id="intfloat/multilingual-e5-large-instruct", revision="main", prefix="", licence="MIT")


def test_without_torch_it_says_what_to_install(tmp_path: Path, monkeypatch):
    from xlc_utils.chat import hub_encoder

    monkeypatch.setattr(hub_encoder, "_PACKAGES", ("torch_that_nobody_has",))
    with pytest.raises(Problem, match="torch_that_nobody_has is not installed"):
        hub_encoder.E5("tiny", entry(tmp_path), Record(tmp_path / "calls.sqlite"))
