"""vLLM itself on a tiny random model: what it decodes is what transformers decodes. Opt-in: it needs vLLM, in an
environment of its own (see README)."""

from __future__ import annotations

import json
import os

import pytest

pytest.importorskip("vllm")
import torch
import transformers
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

from xlc_utils.chat.base import Chat, Sampling
from xlc_utils.chat.vllm_engine import VllmBackend
from xlc_utils.registry.hub import Weights
from xlc_utils.registry.outcomes import Outcome

pytestmark = pytest.mark.vllm

ROLES = ["<|user|>", "<|assistant|>"]
TEMPLATE = (
    "{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
CHATS = [Chat.user(text) for text in ("Why?", "¿Por qué llueve?", "なぜ?", "क्यों?")]
LENGTH = 24


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A Qwen2 of two layers with random weights whose tokens are bytes."""
    path = tmp_path_factory.mktemp("tiny")
    names = ["<|end|>", *ROLES, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    bpe = Tokenizer(BPE(vocab={name: i for i, name in enumerate(names)}, merges=[]))
    bpe.pre_tokenizer, bpe.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    special = {"eos_token": names[0], "additional_special_tokens": ROLES}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=bpe, **special)
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(path)
    torch.manual_seed(0)
    config = transformers.Qwen2Config(
        vocab_size=len(names),
        hidden_size=128,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        eos_token_id=0,
        bos_token_id=None,
        initializer_range=0.5,
    )
    transformers.Qwen2ForCausalLM(config).save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def backend(folder):
    os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "1"}
    more = {"dtype": "float32", "max_model_len": 256, "max_num_seqs": 8, "enforce_eager": True}
    return VllmBackend("tiny", {}, Weights(str(folder), None), **more)


def asked(backend, chats, **sampling):
    replies = dict(pair for batch in backend.ask(chats, Sampling(**sampling)) for pair in batch)
    return [replies[i] for i in range(len(chats))]


def test_greedy_is_what_transformers_decodes(folder, backend):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.Qwen2ForCausalLM.from_pretrained(folder, dtype="float32").eval()
    replies = asked(backend, CHATS, max_tokens=LENGTH)
    for chat, reply in zip(CHATS, replies, strict=True):
        messages = [{"role": role, "content": content} for role, content in chat.messages]
        prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt")["input_ids"]
        out = model.generate(prompt, max_new_tokens=LENGTH, do_sample=False)[0, prompt.shape[1] :]
        # Of a character whose last bytes are not there yet, vLLM gives nothing and transformers a replacement.
        text = tokenizer.decode(out, skip_special_tokens=True)
        assert reply.text.rstrip("\ufffd") == text.strip().rstrip("\ufffd")
        assert reply.completion_tokens == len(out)
        assert reply.prompt_tokens == prompt.shape[1]
        assert reply.outcome is (Outcome.OK if 0 in out.tolist() else Outcome.TRUNCATED)
    assert len({reply.text for reply in replies}) == len(CHATS)


def test_samples_differ_and_come_again(backend):
    first, second = (asked(backend, CHATS, max_tokens=LENGTH, temperature=1.0, sample=n) for n in (0, 1))
    assert all(a.text != b.text for a, b in zip(first, second, strict=True))
    again = asked(backend, CHATS[2:3], max_tokens=LENGTH, temperature=1.0)
    assert again[0].text == first[2].text


def test_a_schema_holds_the_model_to_it(backend):
    """Even random weights."""
    schema = {
        "type": "object",
        "properties": {"fits": {"type": "boolean"}},
        "required": ["fits"],
        "additionalProperties": False,
    }
    for reply in asked(backend, CHATS, max_tokens=64, json_schema=json.dumps(schema), temperature=1.0):
        if reply.outcome is Outcome.OK:
            assert isinstance(json.loads(reply.text)["fits"], bool)
    assert Outcome.OK in {r.outcome for r in asked(backend, CHATS, max_tokens=200, json_schema=json.dumps(schema))}


def test_too_long_a_prompt_is_that_calls_error(backend):
    long, short = asked(backend, [Chat.user("x" * 400), Chat(completion="Q: why?\nA:")], max_tokens=4)
    assert long.outcome is Outcome.ERROR and "256" in long.detail
    assert short.outcome is not Outcome.ERROR and short.completion_tokens > 0


def test_the_engine_says_what_it_is(backend):
    import vllm

    assert backend.settings["version"] == vllm.__version__
    assert (backend.settings["dtype"], backend.settings["max_num_seqs"]) == ("float32", 8)
    assert backend.settings["enable_prefix_caching"] is True
