"""NLLB-200 through transformers: the dense models, and the mixture of experts that paper A translates with."""

from __future__ import annotations

import hashlib
import importlib
import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from xlc_utils.registry.hub import Weights
from xlc_utils.registry.languages import Language
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem
from xlc_utils.translation import degeneration
from xlc_utils.translation.translators import MAX_RESAMPLES, RESAMPLE, Translation

log = logging.getLogger(__name__)

# Without protobuf the tokenizer's own error names another package.
_TOKENIZER_PACKAGES = ("torch", "transformers", "sentencepiece", "google.protobuf")
INSTALL = 'run `python -m pip install -e ".[translate]"`'
# In a batch a shorter sentence is counted as this many tokens: what the decoder keeps of a sentence, scores of 256,206
# tokens among it, does not shrink with the source.
SHORTEST = 32
# Distinct sentences tokenised and decoded together: enough that batches are of about one length, so few that what is
# kept of them beside their texts does not grow with their number.
WINDOW = 4096
# Of several decodings of a sentence the first of the best outcome is kept.
BEST_FIRST = (Outcome.OK, Outcome.TRUNCATED, Outcome.DEGENERATE)


class NllbTranslator:
    """An NLLB-200 model, decoded greedily as in paper A (appendix "Translation Related").

    It is loaded by the first translation. Equal sentences are decoded once, the longest first.

    Args:
        name: its key in models.yaml.
        weights: of the Hugging Face hub, or a folder with config, tokenizer and weights.
        languages: the registry; their `nllb` codes are the language tokens.
        max_tokens: most tokens of one translation, the target's language token and the end of sentence among them.
        batch_tokens: most source tokens of one batch, padding among them.
        dtype: of the weights, such as "bfloat16"; "auto": as stored, which is float32 in Meta's own checkpoints.
        device_map: as accelerate reads it; "auto" spreads a model over all devices. None: the accelerator where there
            is one, else the CPU.
        seed: of the samples that replace degenerate translations.
        progress: called with (done, total) after each greedy batch; what is counted is distinct sentences.
    """

    #: what has to be importable; accelerate places the model on devices
    packages = (*_TOKENIZER_PACKAGES, "accelerate")
    #: what to do when it does not fit into memory
    smaller = "use a smaller NLLB model, `dtype` bfloat16 or `device_map` auto"

    def __init__(
        self,
        name: str,
        weights: Weights,
        languages: dict[str, Language],
        max_tokens: int = 128,
        batch_tokens: int = 4096,
        dtype: str = "auto",
        device_map: str | None = None,
        seed: int = 0,
        progress: Callable[[int, int], None] | None = None,
    ):
        self.name, self._model_id, self._weights, self._languages = name, weights.id, weights, languages
        self._max_tokens, self._batch_tokens, self._seed, self._progress = max_tokens, batch_tokens, seed, progress
        self._dtype, self._device_map = dtype, device_map
        self._tokenizer: Any = None
        self._model: Any = None
        self._vocabulary = 0  # how many tokens the model knows

    def can(self, source: str, target: str) -> bool:
        known = [code in self._languages and self._languages[code].nllb is not None for code in (source, target)]
        return source != target and all(known)

    def translate(self, sentences: Sequence[str], source: str, target: str) -> list[Translation]:
        """Translations in the order given.

        What is degenerate is sampled again, MAX_RESAMPLES times at most; each sample depends on the sentence, the
        direction and the seed, not on the batch it falls into.

        Raises:
            Problem: a package is missing, the model cannot be had, lacks one of the languages, or is too large.
        """
        if not sentences:
            return []
        if self._model is None:
            self._load()
        # By characters first, so that windows of the longest come first; by tokens within a window.
        distinct = sorted(dict.fromkeys(sentences), key=lambda sentence: -len(sentence))
        found: dict[str, Translation] = {}
        for start in range(0, len(distinct), WINDOW):
            window = distinct[start : start + WINDOW]
            told = partial(self._tell, start, len(distinct))
            found |= zip(window, self._translated(window, source, target, told), strict=True)
        return [found[s] for s in sentences]

    def _tell(self, before: int, total: int, done: int) -> None:
        if self._progress:
            self._progress(before + done, total)

    def _translated(
        self, distinct: list[str], source: str, target: str, told: Callable[[int], None]
    ) -> list[Translation]:
        tokens = self._tokenised(distinct, source)
        forced = self._language_token(target)
        decoded = self._decoded(tokens, forced, told=told)
        found = [self._judged(s, d, source, target) for s, d in zip(distinct, decoded, strict=True)]
        for attempt in range(1, 1 + MAX_RESAMPLES):
            bad = [i for i, translation in enumerate(found) if translation.outcome is Outcome.DEGENERATE]
            seeds = [_seed(self._seed, attempt, source, target, distinct[i]) for i in bad]
            for i, sample in zip(bad, self._decoded([tokens[i] for i in bad], forced, seeds), strict=True):
                new = self._judged(distinct[i], sample, source, target)
                found[i] = found[i].or_else(new, worse=_rank(new) >= _rank(found[i]))
        return found

    def _judged(self, sentence: str, decoded: list[int], source: str, target: str) -> Translation:
        text = self._tokenizer.decode(decoded, skip_special_tokens=True, clean_up_tokenization_spaces=False).strip()
        if wrong := degeneration.problem(sentence, text, source, target):
            return Translation(text, Outcome.DEGENERATE, self.name, detail=wrong)
        if decoded[-1:] != [self._tokenizer.eos_token_id]:
            return Translation(text, Outcome.TRUNCATED, self.name, detail=f"no end within {self._max_tokens} tokens")
        return Translation(text, Outcome.OK, self.name)

    def _language_token(self, code: str) -> int:
        # The tokenizer raises nothing for a code it does not know, but gives the unknown token.
        token = self._languages[code].nllb
        number = self._tokenizer.convert_tokens_to_ids(token)
        if number in (None, self._tokenizer.unk_token_id) or number >= self._vocabulary:
            raise self._problem(
                f"{self._model_id} has no language token {token}",
                "use a model of the NLLB-200 family with its own tokenizer files",
            )
        return number

    def _tokenised(self, sentences: list[str], source: str) -> list[list[int]]:
        """Token numbers: the source's language token, the sentence, the end of sentence."""
        first = self._language_token(source)
        self._tokenizer.src_lang = self._languages[source].nllb
        # An answer may contain `</s>`, as HTML does: it is text, not the end of the sentence.
        tokens = self._tokenizer(sentences, split_special_tokens=True)["input_ids"]
        if any(t[0] != first or t[-1] != self._tokenizer.eos_token_id for t in tokens):
            raise self._problem(
                f"the tokenizer of {self._model_id} does not put the language first",
                "set `legacy_behaviour` to false in its tokenizer_config.json",
            )
        return tokens

    def _decoded(
        self,
        tokens: list[list[int]],
        forced: int,
        seeds: list[int] | None = None,
        told: Callable[[int], None] = lambda done: None,
    ) -> list[list[int]]:
        """The tokens after the language token, the end of sentence included where it came; greedy without ``seeds``.

        Longest first, so that sentences of a batch are about as long and a batch that does not fit shows at once.
        ``told`` gets the number of sentences done after each batch.
        """
        import torch

        rows = sorted(range(len(tokens)), key=lambda i: -len(tokens[i]))
        found: dict[int, list[int]] = {}
        while len(found) < len(rows):
            width = max(SHORTEST, len(tokens[rows[len(found)]]))
            batch = rows[len(found) : len(found) + max(1, self._batch_tokens // width)]
            try:
                found |= zip(
                    batch,
                    self._generated([tokens[i] for i in batch], forced, seeds and [seeds[i] for i in batch]),
                    strict=True,
                )
            except (torch.OutOfMemoryError, MemoryError) as error:
                if len(batch) == 1:
                    raise self._problem(
                        "not even one sentence fits into memory beside the model",
                        self.smaller,
                    ) from error
                self._batch_tokens = width * (len(batch) // 2)
                log.warning(
                    "translator %s: out of memory with %d sentences at once; batches of %d tokens from now on",
                    self.name,
                    len(batch),
                    self._batch_tokens,
                )
                continue
            told(len(found))
        return [found[i] for i in range(len(tokens))]

    def _generated(self, tokens: list[list[int]], forced: int, seeds: list[int] | None) -> list[list[int]]:
        import torch

        width, end = max(map(len, tokens)), self._tokenizer.eos_token_id
        inputs = torch.tensor([t + [self._tokenizer.pad_token_id] * (width - len(t)) for t in tokens])
        mask = torch.tensor([[1] * len(t) + [0] * (width - len(t)) for t in tokens])
        generated = self._model.generate(
            input_ids=inputs.to(self._model.device),
            attention_mask=mask.to(self._model.device),
            forced_bos_token_id=forced,
            max_new_tokens=self._max_tokens,
            logits_processor=[SeededSampling(seeds)] if seeds else None,
        ).tolist()
        # Each row: start of decoding (which is the end-of-sentence token), language, translation, end, padding.
        after = [row[2:] for row in generated]
        return [row[: row.index(end) + 1] if end in row else row for row in after]

    def _load(self) -> None:
        try:
            for package in self.packages:
                importlib.import_module(package)
        except ModuleNotFoundError as error:
            raise self._problem(f"{error.name} is not installed", INSTALL) from error
        from transformers import AutoConfig, AutoTokenizer

        try:
            config = AutoConfig.from_pretrained(self._model_id, **self._weights.where)
            tokenizer = AutoTokenizer.from_pretrained(self._model_id, **self._weights.where)
            model = self._model_of(config, tokenizer)
        except Problem:
            raise
        except Exception as error:  # the hub, the network, the files: each has errors of its own
            raise self._not_loaded(error) from error
        self._tokenizer, self._model, self._vocabulary = tokenizer, model, config.vocab_size

    def _model_of(self, config, tokenizer) -> Any:
        """What `_generated` decodes with."""
        import torch
        from transformers import AutoModelForSeq2SeqLM, GenerationConfig

        device_map = self._device_map
        if device_map is None and torch.accelerator.is_available():
            device_map = torch.accelerator.current_accelerator().type
        if config.model_type == "nllb-moe":
            _mend_experts()
        placed = {"dtype": self._dtype, "device_map": device_map}
        model = AutoModelForSeq2SeqLM.from_pretrained(
            self._model_id,
            config=config,
            use_safetensors=self._weights.use_safetensors,
            **placed,
            **self._weights.where,
        )
        # Nothing of the checkpoint's own preferences, a beam or a length, may enter.
        model.generation_config = GenerationConfig(
            do_sample=False,
            num_beams=1,
            decoder_start_token_id=config.decoder_start_token_id,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
        return model.eval()

    def _not_loaded(self, error: Exception) -> Problem:
        why = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        if Path(self._model_id).is_dir():
            return self._problem(
                f"{self._model_id} holds no NLLB model that can be loaded ({why})",
                "it needs config.json, the tokenizer's files and the weights as safetensors",
            )
        return self._problem(
            f"{self._model_id} could not be fetched ({why})",
            "check the name, the network and that the revision has safetensors weights (if it has others only: "
            "`safetensors_only: false`), or fetch the model elsewhere and write its folder as `id`",
        )

    def _problem(self, what: str, remedy: str) -> Problem:
        return Problem(f"translator `{self.name}`", what, remedy)


def _rank(translation: Translation) -> int:
    return BEST_FIRST.index(translation.outcome)


def _seed(*parts: object) -> int:
    return int.from_bytes(hashlib.sha256("\0".join(map(str, parts)).encode()).digest()[:7])


class SeededSampling:
    """Makes greedy decoding sample, each row with its own random numbers.

    The token of highest log-probability plus Gumbel noise is a draw from the distribution; here from that of paper
    A's resampling, tempered and cut to the nucleus.
    """

    def __init__(self, seeds: list[int]):
        from transformers import TemperatureLogitsWarper, TopPLogitsWarper

        self._seeds, self._generators = seeds, None
        self._warpers = [TemperatureLogitsWarper(RESAMPLE["temperature"]), TopPLogitsWarper(RESAMPLE["top_p"])]

    def __call__(self, input_ids, scores):
        import torch

        if self._generators is None:
            self._generators = [torch.Generator(scores.device).manual_seed(s) for s in self._seeds]
        for warper in self._warpers:
            scores = warper(input_ids, scores)
        # The negative logarithm of an exponential variate is a Gumbel variate.
        rows = zip(scores, self._generators, strict=True)
        return scores - torch.stack([torch.empty_like(row).exponential_(generator=g).log() for row, g in rows])


def _mend_experts() -> None:
    """Lets each token of the mixture reach its own experts, where the installed transformers does not.

    transformers 5.0.0 and 5.24.0 read the mask of first experts as expert numbers, so that only the experts 0 and 1 of
    each layer are ever asked; 4.51.3 is right.
    """
    import torch
    from transformers import NllbMoeConfig
    from transformers.models.nllb_moe.modeling_nllb_moe import NllbMoeSparseMLP

    with torch.random.fork_rng(devices=[]), torch.no_grad():
        layer = NllbMoeSparseMLP(NllbMoeConfig(d_model=8, num_experts=4), ffn_dim=8).eval()
        states = torch.randn(1, 16, 8)
        right = torch.allclose(layer(states), _sum_of_experts(layer, states), atol=1e-5)
    if not right:
        NllbMoeSparseMLP.forward = _sum_of_experts
        log.info("the experts of nllb-moe are routed here: this version of transformers misroutes them")


def _sum_of_experts(layer, hidden_states, padding_mask=None):
    """The outputs of a token's two experts, weighted by their gates (NLLB Team 2022, section 6.2).

    In training some of these outputs are masked; the factor makes up for that.

    Args:
        layer: an NllbMoeSparseMLP, not in training.
        hidden_states: batch × length × width.
        padding_mask: passed on to the router.
    """
    flat = hidden_states.reshape(-1, hidden_states.shape[-1])
    gates = layer.router(flat, padding_mask)[1]  # tokens × experts, zero but for the token's two
    out = flat.new_zeros(flat.shape)
    for expert in gates.any(dim=0).nonzero().flatten().tolist():
        rows = gates[:, expert].nonzero().flatten()
        out[rows] += (layer.experts[f"expert_{expert}"](flat[rows]) * gates[rows, expert, None]).to(out.dtype)
    return (out * (1 - layer.experts.moe_token_dropout)).reshape(hidden_states.shape)
