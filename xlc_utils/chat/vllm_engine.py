"""vLLM inside this process: all of a stage's requests in the engine's queue at once, without a server.

Every request has a seed of its own. One seed for a whole batch would give equal prompts equal samples, and different
prompts the same random numbers. Replies are handed on as they come, so that a kill loses what is in the queue only.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import time
from collections.abc import Iterable, Iterator
from typing import Any

from xlc_utils.chat.base import Chat, Reply, Sampling, typed_text, whole_characters
from xlc_utils.registry.hub import Weights, snapshot
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem

INSTALL = 'run `python -m pip install -e ".[vllm]"` in an environment of its own'


class VllmBackend:
    """Asks a model that vLLM's offline engine has loaded.

    A chat goes through the model's own template. What comes out at temperature 0 is the same whatever else is in the
    queue but for rounding: the sums of a batch depend on its size.

    Args:
        name: the model's key in models.yaml, for messages.
        identity: see `Backend`.
        weights: which files, and what of them may be used.
        engine: arguments of vllm.LLM beyond them, such as tensor_parallel_size, pipeline_parallel_size, dtype,
            max_model_len.

    Attributes:
        settings: what the engine says of itself, for the manifest: version, dtype, sizes of batches, seed.

    Raises:
        Problem: vllm is not installed, or cannot load the model.
    """

    def __init__(self, name: str, identity: dict[str, Any], weights: Weights, **engine: Any):
        self.name, self.identity = name, identity
        if importlib.util.find_spec("vllm") is None:
            raise Problem(f"model `{name}`", "vllm is not installed", INSTALL)
        os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")  # it would report to its makers
        self._llm = self._started(weights, engine)
        self.settings = _settings(self._llm)
        self._left = self._total = 0

    def _started(self, weights: Weights, engine: dict[str, Any]):
        where = f"params/models.yaml: model `{self.name}`"
        arguments = {
            "model": snapshot(where, weights) if weights.local_files_only else weights.id,
            "load_format": "safetensors" if weights.safetensors_only else "auto",
            "trust_remote_code": weights.trust_remote_code,
            "enable_prefix_caching": True,
            "seed": 0,
            **engine,
        }
        if weights.revision and not weights.local_files_only:
            names = ("revision", "tokenizer_revision", "code_revision")
            arguments |= dict.fromkeys(names, weights.revision)
        try:
            import vllm

            return vllm.LLM(**arguments)
        except Exception as error:  # the hub, the accelerator, the files: each has errors of its own
            why = " ".join(str(error).split()).rstrip(".") or type(error).__name__
            raise Problem(
                where,
                f"vLLM cannot load {weights.id} ({why[:500]})",
                "check id, revision, dtype, max_model_len, the parallel sizes and the free memory of the accelerators",
            ) from error

    def ask(self, chats: Iterable[Chat], sampling: Sampling) -> Iterator[list[tuple[int, Reply]]]:
        """See `Backend`. All chats are taken at once; where the caller stops, what is in the queue is given up."""
        start, queued, turned_down = time.monotonic(), {}, []
        for index, chat in enumerate(chats):
            try:
                queued[self._queue(chat, sampling)] = index
            except _turned_down() as error:  # too long a prompt, a schema or grammar that cannot be read
                turned_down.append((index, Reply("", Outcome.ERROR, detail=" ".join(str(error).split())[:500])))
        self._total = len(queued)
        engine = self._llm.llm_engine
        try:
            yield turned_down
            while queued:
                self._left = len(queued)
                done = [output for output in engine.step() if output.finished]
                now = time.monotonic()
                # The queue is worked through as one: a call's seconds are its share of them.
                seconds, start = ((now - start) / len(done), now) if done else (0.0, start)
                yield [(queued.pop(output.request_id), read_output(output, seconds)) for output in done]
        finally:
            self._left = 0
            if queued:
                engine.abort_request(list(queued))

    def _queue(self, chat: Chat, sampling: Sampling) -> str:
        """Puts a request at the end of the queue; its id.

        Raises:
            ValueError, VLLMValidationError: the engine does not take it.
        """
        parameters = sampling_parameters(chat, sampling)
        if chat.completion is not None:
            [request] = self._llm.enqueue([chat.completion], parameters, use_tqdm=False)
        else:
            messages = [{"role": role, "content": content} for role, content in chat.messages]
            [request] = self._llm.enqueue_chat([messages], parameters, use_tqdm=False)
        return request.partition("-")[0]  # the engine's own name has a random end that outputs do not have

    def waiting(self) -> str:
        """See `Backend`."""
        return f"{self._left} of {self._total} in vLLM's queue" if self._left else ""


def _turned_down() -> tuple[type[Exception], ...]:
    """What the engine raises for a request that it does not take."""
    from vllm.exceptions import VLLMValidationError

    return ValueError, VLLMValidationError


def request_seed(chat: Chat, sampling: Sampling) -> int:
    """The seed of one request: it depends on what is asked, on the run's seed and on the sample, not on the batch."""
    what = json.dumps([sampling.seed, sampling.sample, chat.messages, chat.completion])
    return int.from_bytes(hashlib.sha256(what.encode()).digest()[:4])


def sampling_parameters(chat: Chat, sampling: Sampling):
    """How one request is decoded, as vLLM takes it."""
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    form = None
    if json_schema := chat.json_schema or sampling.json_schema:
        form = StructuredOutputsParams(json=json.loads(json_schema))
    elif sampling.grammar:
        form = StructuredOutputsParams(grammar=sampling.grammar)
    return SamplingParams(
        max_tokens=sampling.max_tokens,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        seed=request_seed(chat, sampling),
        stop=list(sampling.stop),
        logprobs=sampling.logprobs,
        structured_outputs=form,
    )


def read_output(output, seconds: float) -> Reply:
    """The reply in one of vLLM's outputs."""
    [choice] = output.outputs
    text, finish = whole_characters(choice.text), choice.finish_reason or ""
    outcome, detail = typed_text(text, finish)
    if finish not in ("stop", "length"):  # abort, error, or one that a later version adds
        outcome, detail = Outcome.ERROR, f"vLLM ended it with finish reason {finish or 'none'}"
    return Reply(
        text=text.strip(),
        outcome=outcome,
        finish_reason=finish,
        prompt_tokens=len(output.prompt_token_ids or ()),
        completion_tokens=len(choice.token_ids),
        seconds=seconds,
        detail=detail,
        logprobs=_logprobs(choice),
    )


def _logprobs(choice) -> tuple:
    return tuple(
        (
            whole_characters(found[token].decoded_token or ""),
            found[token].logprob,
            tuple((whole_characters(f.decoded_token or ""), f.logprob) for f in found.values()),
        )
        for token, found in zip(choice.token_ids, choice.logprobs or (), strict=False)
    )


def _settings(llm) -> dict[str, Any]:
    import vllm

    config = llm.llm_engine.vllm_config
    return {
        "engine": "vllm",
        "version": vllm.__version__,
        "dtype": str(config.model_config.dtype).removeprefix("torch."),
        "max_model_len": config.model_config.max_model_len,
        "max_num_seqs": config.scheduler_config.max_num_seqs,
        "max_num_batched_tokens": config.scheduler_config.max_num_batched_tokens,
        "enable_prefix_caching": config.cache_config.enable_prefix_caching,
        "tensor_parallel_size": config.parallel_config.tensor_parallel_size,
        "pipeline_parallel_size": config.parallel_config.pipeline_parallel_size,
        "seed": config.model_config.seed,
    }
