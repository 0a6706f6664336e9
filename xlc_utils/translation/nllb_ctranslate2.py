"""Dense NLLB-200 models through CTranslate2, for machines without a large accelerator."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from pathlib import Path
from typing import Any, Literal

import numpy as np

from xlc_utils.registry.cache import cache_folder, made_once
from xlc_utils.translation.nllb import _TOKENIZER_PACKAGES, NllbTranslator, SeededSampling

log = logging.getLogger(__name__)


class CTranslate2Translator(NllbTranslator):
    """An NLLB-200 model converted to CTranslate2 by the first translation that needs it, and kept in the user's cache.

    Everything but the decoding itself is as in `NllbTranslator`: tokens, batches, outcomes, samples.

    Args:
        name, weights, languages, more: see `NllbTranslator`; dtype and device_map have no meaning here.
        quantization: of the weights, "int8" or "float32".
    """

    packages = ("ctranslate2", *_TOKENIZER_PACKAGES)
    smaller = "use a smaller NLLB model, or the quantization int8"

    def __init__(self, *args, quantization: Literal["int8", "float32"], **more):
        super().__init__(*args, **more)
        self._quantization = quantization

    def _model_of(self, config, tokenizer) -> Any:
        import ctranslate2

        if config.model_type == "nllb-moe":
            raise self._problem(
                f"{self._model_id} is a mixture of experts, which CTranslate2 cannot convert",
                "use a dense model of the NLLB-200 family, or the backend nllb for this one",
            )
        folder = made_once(self._cached(), self._convert)
        device = "cuda" if ctranslate2.get_cuda_device_count() else "cpu"
        return ctranslate2.Translator(
            str(folder),
            device=device,
            compute_type=self._quantization,
            intra_threads=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        )

    def _cached(self) -> Path:
        """The folder of the converted model: another model, commit or quantization has another."""
        from transformers.utils import cached_file

        folder = Path(self._model_id)
        if folder.is_dir():
            version = [(p.name, p.stat().st_size, p.stat().st_mtime_ns) for p in sorted(folder.iterdir())]
        else:
            version = Path(cached_file(self._model_id, "config.json", **self._weights.where)).parent.name  # the commit
        what = json.dumps([self._model_id, version, self._quantization])
        key = hashlib.sha256(what.encode()).hexdigest()[:16]
        return cache_folder("ctranslate2", f"{folder.name}-{self._quantization}-{key}")

    def _convert(self, folder: Path) -> None:
        from ctranslate2.converters import TransformersConverter

        class Converter(TransformersConverter):
            def load_model(self, model_class, model_name_or_path, **kwargs):
                return model_class.from_pretrained(model_name_or_path, **{**kwargs, **where})

            def load_tokenizer(self, tokenizer_class, model_name_or_path, **kwargs):
                return tokenizer_class.from_pretrained(model_name_or_path, **where)

        where = {**self._weights.where, "use_safetensors": self._weights.use_safetensors}
        log.info("translator %s: converting %s to CTranslate2, once", self.name, self._model_id)
        Converter(self._model_id, revision=self._weights.revision).convert(str(folder), quantization=self._quantization)

    def _generated(self, tokens: list[list[int]], forced: int, seeds: list[int] | None) -> list[list[int]]:
        sources = [self._tokenizer.convert_ids_to_tokens(t) for t in tokens]
        first = self._tokenizer.convert_ids_to_tokens(forced)
        try:
            found = self._sampled(sources, forced, seeds) if seeds else self._greedy(sources, first)
        except RuntimeError as error:  # CTranslate2 has no type of its own for it
            if "out of memory" in str(error).lower():
                raise MemoryError(str(error)) from error
            raise
        return [row[1:] for row in found]  # without the language

    def _greedy(self, sources: list[list[str]], first: str) -> list[list[int]]:
        results = self._model.translate_batch(
            sources,
            target_prefix=[[first]] * len(sources),
            beam_size=1,
            max_decoding_length=self._max_tokens,
            max_input_length=0,
            return_end_token=True,
        )
        return [self._tokenizer.convert_tokens_to_ids(r.hypotheses[0]) for r in results]

    def _sampled(self, sources: list[list[str]], forced: int, seeds: list[int]) -> list[list[int]]:
        """Token by token, each drawn here: CTranslate2's own samples depend on what was sampled before."""
        import torch

        draws = [SeededSampling([seed]) for seed in seeds]
        for draw in draws:  # transformers draws for the language too, so that both give the same samples
            draw(None, torch.zeros(1, self._vocabulary))
        rows, end = [[forced] for _ in sources], self._tokenizer.eos_token_id
        going = list(range(len(sources)))
        while going and len(rows[going[0]]) < self._max_tokens:
            results = self._model.translate_batch(
                [sources[i] for i in going],
                target_prefix=[self._tokenizer.convert_ids_to_tokens(rows[i]) for i in going],
                beam_size=1,
                max_decoding_length=len(rows[going[0]]) + 1,
                max_input_length=0,
                return_end_token=True,
                return_logits_vocab=True,
            )
            for i, result in zip(going, results, strict=True):
                logits = np.asarray(result.logits[0][-1], np.float32)[: self._vocabulary]
                rows[i].append(int(draws[i](None, torch.from_numpy(logits)[None]).argmax()))
            going = [i for i in going if rows[i][-1] != end]
        return rows
