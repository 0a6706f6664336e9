"""chat/vllm_engine.py with a stand-in for vLLM that keeps what it is given; test_vllm_real.py has the engine itself."""

from __future__ import annotations

import importlib.util
import json
import sys
from types import ModuleType, SimpleNamespace

import pytest

from xlc_utils.chat.backends import identity, make_backend
from xlc_utils.chat.base import Chat, Sampling, call_key
from xlc_utils.chat.record import Record, RecordedModel
from xlc_utils.chat.vllm_engine import VllmBackend, request_seed
from xlc_utils.registry import models
from xlc_utils.registry.hub import Weights
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem
from xlc_utils.running.run import write_manifest

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ENTRY = {
    "backend": "vllm",
    "kind": "chat",
    "id": "org/model",
    "revision": COMMIT,
    "licence": "none",
    "toy": True,
    "prices": None,
    "trained_on": {"languages": None, "source": "none"},
    "paper": [],
}


def output(request: str, text: str, finish: str = "stop"):
    found = {7: SimpleNamespace(decoded_token="a", logprob=-0.1), 8: SimpleNamespace(decoded_token="b", logprob=-2.0)}
    choice = SimpleNamespace(text=text, finish_reason=finish, token_ids=[7], logprobs=[found])
    return SimpleNamespace(request_id=request, finished=True, outputs=[choice], prompt_token_ids=[1, 2, 3])


class Engine:
    """Ends the queue's last request at each step; ``script`` has texts and finish reasons by prompt."""

    def __init__(self):
        self.queue, self.script, self.aborted, self.taken = [], {}, [], 0
        scheduler = SimpleNamespace(max_num_seqs=256, max_num_batched_tokens=8192)
        self.vllm_config = SimpleNamespace(
            model_config=SimpleNamespace(dtype="torch.bfloat16", max_model_len=4096, seed=0),
            scheduler_config=scheduler,
            cache_config=SimpleNamespace(enable_prefix_caching=True),
            parallel_config=SimpleNamespace(tensor_parallel_size=2, pipeline_parallel_size=1),
        )

    def step(self):
        request, prompt = self.queue.pop()
        return [output(request, *self.script.get(prompt, ("Fine.",)))]

    def abort_request(self, requests):
        self.aborted += requests


class LLM:
    made: list[LLM]

    def __init__(self, **arguments):
        if arguments["model"] == "org/broken":
            raise RuntimeError("no kernel image is available")
        self.arguments, self.llm_engine, self.asked = arguments, Engine(), []
        type(self).made.append(self)

    def _add(self, way, prompt, parameters):
        if "too long" in prompt:
            raise sys.modules["vllm.exceptions"].VLLMValidationError("The prompt is longer than max_model_len")
        self.asked.append((way, prompt, parameters))
        self.llm_engine.queue.append((str(len(self.asked)), prompt))
        return [f"{len(self.asked)}-8d1f"]  # outputs go without the end

    def enqueue(self, prompts, parameters, use_tqdm):
        [prompt] = prompts
        return self._add("completion", prompt, parameters)

    def enqueue_chat(self, messages, parameters, use_tqdm):
        [[*_, last]] = messages
        return self._add("chat", last["content"], parameters)


@pytest.fixture
def vllm(monkeypatch):
    LLM.made = []
    module, parameters, errors = map(ModuleType, ("vllm", "vllm.sampling_params", "vllm.exceptions"))
    errors.VLLMValidationError = type("VLLMValidationError", (Exception,), {})
    monkeypatch.setitem(sys.modules, "vllm.exceptions", errors)
    module.LLM, module.__version__, module.SamplingParams = LLM, "9.9", SimpleNamespace
    parameters.StructuredOutputsParams = SimpleNamespace
    monkeypatch.setitem(sys.modules, "vllm", module)
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", parameters)
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: name == "vllm" or find(name, *more))


def made(**changes) -> VllmBackend:
    return make_backend("tiny", models.Model.model_validate(ENTRY | changes))


def asked(backend: VllmBackend, chats, **sampling):
    replies = dict(pair for batch in backend.ask(chats, Sampling(**sampling)) for pair in batch)
    return [replies[i] for i in range(len(chats))]


def test_the_entry_becomes_the_engines_arguments(vllm):
    made(tensor_parallel_size=4, pipeline_parallel_size=2, dtype="bfloat16", max_model_len=4096)
    [llm] = LLM.made
    assert llm.arguments == {
        "model": "org/model",
        "revision": COMMIT,
        "tokenizer_revision": COMMIT,
        "code_revision": COMMIT,
        "load_format": "safetensors",
        "trust_remote_code": False,
        "enable_prefix_caching": True,
        "seed": 0,
        "tensor_parallel_size": 4,
        "pipeline_parallel_size": 2,
        "dtype": "bfloat16",
        "max_model_len": 4096,
    }
    made(safetensors_only=False, trust_remote_code=True)
    assert (LLM.made[1].arguments["load_format"], LLM.made[1].arguments["trust_remote_code"]) == ("auto", True)


def test_each_request_has_its_own_seed_and_the_batch_does_not_matter(vllm):
    chats = [Chat.user("a"), Chat.user("b"), Chat(completion="a")]
    backend = made()
    for sample in (0, 1):
        asked(backend, chats, temperature=1.0, sample=sample)
    asked(backend, chats[1:2], temperature=1.0)
    seeds = [parameters.seed for *_, parameters in LLM.made[0].asked]
    assert len(set(seeds[:6])) == 6 and seeds[6] == seeds[1]
    assert request_seed(chats[0], Sampling(seed=1)) != request_seed(chats[0], Sampling(sample=1))
    assert [way for way, *_ in LLM.made[0].asked[:3]] == ["chat", "chat", "completion"]


def test_how_a_request_is_decoded(vllm):
    schema = {"type": "object"}
    asked(made(), [Chat.user("a")], max_tokens=5, top_p=0.9, stop=("\n",), logprobs=2, json_schema=json.dumps(schema))
    asked(made(), [Chat.user("a")], grammar="root ::= [0-9]")
    asked(made(), [Chat.user("a", json_schema='{"type": "array"}')], json_schema=json.dumps(schema))
    sent = LLM.made[0].asked[0][2]
    assert (sent.max_tokens, sent.temperature, sent.top_p, sent.stop, sent.logprobs) == (5, 0.0, 0.9, ["\n"], 2)
    assert sent.structured_outputs.json == schema
    assert LLM.made[1].asked[0][2].structured_outputs.grammar == "root ::= [0-9]"
    assert LLM.made[2].asked[0][2].structured_outputs.json == {"type": "array"}, "of this chat"


def test_every_ending_is_an_outcome(vllm):
    backend = made()
    script = {"cut": ("half", "length"), "silent": (" ",), "gone": ("x", "abort")}
    LLM.made[0].llm_engine.script = script
    chats = [Chat.user(text) for text in ("well", "cut", "silent", "gone", "too long")]
    replies = asked(backend, chats)
    outcomes = [Outcome.OK, Outcome.TRUNCATED, Outcome.EMPTY, Outcome.ERROR, Outcome.ERROR]
    assert [reply.outcome for reply in replies] == outcomes
    assert replies[3].detail == "vLLM ended it with finish reason abort"
    assert replies[4].detail == "The prompt is longer than max_model_len"
    assert (replies[0].text, replies[0].prompt_tokens, replies[0].completion_tokens) == ("Fine.", 3, 1)
    assert replies[0].logprobs == (("a", -0.1, (("a", -0.1), ("b", -2.0))),)


def test_what_is_given_up_leaves_the_engine(vllm):
    backend = made()
    batches = backend.ask([Chat.user("a"), Chat.user("b")], Sampling())
    assert next(batches) == [] and [index for index, _ in next(batches)] == [1]
    assert backend.waiting() == "2 of 2 in vLLM's queue"
    batches.close()
    assert LLM.made[0].llm_engine.aborted == ["1"] and backend.waiting() == ""


def test_the_manifest_names_the_engine(vllm, project):
    with (project / "params" / "models.yaml").open(encoding="utf-8") as file:
        text = file.read()
    entry = json.dumps(ENTRY)
    (project / "params" / "models.yaml").write_text(text.replace("\nmodels:\n", f"\nmodels:\n  tiny: {entry}\n"))
    model = models.load(project).model("tiny")
    folder = project / "results" / "x"
    record = Record(folder / "calls.sqlite")
    recorded = RecordedModel("tiny", identity(model), lambda: make_backend("tiny", model), record)
    assert [reply.text for reply in recorded.complete([Chat.user("a")], Sampling())] == ["Fine."]
    write_manifest(folder, project, record)
    [engine] = json.loads((folder / "manifest.json").read_text())["models"]["tiny"]["engines"]
    assert engine == {
        "engine": "vllm",
        "version": "9.9",
        "dtype": "bfloat16",
        "max_model_len": 4096,
        "max_num_seqs": 256,
        "max_num_batched_tokens": 8192,
        "enable_prefix_caching": True,
        "tensor_parallel_size": 2,
        "pipeline_parallel_size": 1,
        "seed": 0,
    }


def test_what_divides_the_weights_is_not_in_the_key_and_what_changes_them_is(tmp_path):
    def key(**changes):
        return call_key(identity(models.Model.model_validate(ENTRY | changes)), Chat.user("a"), Sampling())

    assert key() == key(tensor_parallel_size=2)
    folder = {"id": str(tmp_path), "revision": None}
    keys = [key(), key(dtype="float16"), key(max_model_len=9), key(**folder)]
    (tmp_path / "model.safetensors").write_bytes(b"x")
    assert len({*keys, key(**folder)}) == 5


def test_without_vllm_the_install_line(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        Problem, match=r'^model `tiny`: vllm is not installed; run `python -m pip install -e ".\[vllm\]"`'
    ):
        VllmBackend("tiny", {}, Weights("org/model", COMMIT))


def test_a_model_that_does_not_load_is_one_sentence(vllm):
    with pytest.raises(Problem, match=r"^params/models.yaml: model `tiny`: vLLM cannot load org/broken \(no kernel"):
        made(id="org/broken")


def test_local_files_only_asks_the_cache_and_nobody_else(vllm, tmp_path, monkeypatch):
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(Problem, match=rf"org/model at {COMMIT} is not in the hub's cache.*hf download org/model"):
        made(local_files_only=True)
    assert made(local_files_only=True, id=str(tmp_path), revision=None)
    assert LLM.made[0].arguments["model"] == str(tmp_path) and "revision" not in LLM.made[0].arguments
