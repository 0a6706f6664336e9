"""The network of the bi-encoder and its training. Imports torch: reach it through `bi_encoder`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import AutoModel, AutoTokenizer

from xlc_utils.empathy.recipes import Recipe, Setting
from xlc_utils.registry.problems import Problem

# A step's work that a kill may cost, against the seconds that writing a large model takes.
CHECKPOINT_STEPS = 100
CLIPPED_NORM = 1.0  # as in Sharma et al.'s code


class Network(nn.Module):
    """Two encoders, the reply attending to the post, and a binary head over the reply's first token.

    As Sharma et al. (2020, §5): the states of the reply plus attention over the states of the post, then dense, ReLU
    and output. What their code has besides, a second head that finds the rationales, paper A does not mention; it is
    left out. Their attention also looks at the padding of the post; here it does not.
    """

    def __init__(self, recipe: Recipe):
        super().__init__()
        self.seeker, self.response = _encoder(recipe), _encoder(recipe)
        width = self.response.config.hidden_size
        self.attention = nn.MultiheadAttention(width, recipe.attention_heads, dropout=recipe.dropout, batch_first=True)
        self.dropout = nn.Dropout(recipe.dropout)
        self.head = nn.Sequential(
            nn.Dropout(recipe.dropout),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Dropout(recipe.dropout),
            nn.Linear(width, 1),
        )
        self.seeker.requires_grad_(recipe.tune_seeker)

    def forward(self, posts: dict[str, torch.Tensor], replies: dict[str, torch.Tensor]) -> torch.Tensor:
        """Logits of the mechanism being shown, (batch,)."""
        post = self.seeker(**posts).last_hidden_state
        reply = self.response(**replies).last_hidden_state
        padding = posts["attention_mask"] == 0
        attended, _ = self.attention(reply, post, post, key_padding_mask=padding, need_weights=False)
        return self.head((reply + self.dropout(attended))[:, 0]).squeeze(-1)


def _encoder(recipe: Recipe) -> nn.Module:
    model = _fetched(AutoModel, recipe, dtype=torch.float32)
    if hasattr(model, "pooler"):
        model.pooler = None  # RoBERTa's, which nothing here reads
    return model


def tokenizer_of(recipe: Recipe):
    return _fetched(AutoTokenizer, recipe)


def _fetched(kind, recipe: Recipe, **options):
    try:
        return kind.from_pretrained(recipe.id, revision=recipe.revision or "main", **options)
    except (OSError, ValueError) as error:
        what = f"{recipe.id} could not be fetched ({(str(error).splitlines() or ['?'])[0]})"
        remedy = "run it where the hub can be reached, or fetch the model elsewhere and write its folder as `id`"
        raise Problem("params/bi_encoders.yaml", what, remedy) from error


def device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def train(
    recipe: Recipe,
    setting: Setting,
    posts: Sequence[str],
    replies: Sequence[str],
    labels: np.ndarray,
    seed: int,
    checkpoint: Path,
    progress: Callable[[int, int], None],
    every: int = CHECKPOINT_STEPS,
) -> Network:
    """Train one binary classifier; continues from ``checkpoint`` where it was stopped.

    AdamW, the learning rate falling linearly to 0, gradients clipped, bfloat16 on a GPU. The order of the batches and
    the dropout of a step depend on the seed and the step alone, so that a training that was killed and continued ends
    with the weights of one that was not (on a CPU to the bit; kernels of a GPU may add in another order).

    Args:
        posts, replies, labels: n of each; labels 0 or 1.
        checkpoint: a file for the state so far. It is left in place; remove it when the result is kept.
        progress: called with (done, total) after each step.
        every: steps between checkpoints.
    """
    where, tokenizer = device(), tokenizer_of(recipe)
    torch.manual_seed(seed)
    network = Network(recipe).to(where)
    tuned = [p for p in network.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(tuned, lr=setting.learning_rate)
    a_epoch = -(-len(labels) // recipe.batch_size)
    total = a_epoch * setting.epochs
    targets = torch.tensor(np.asarray(labels), dtype=torch.float32)
    network.train()
    if not recipe.tune_seeker:
        network.seeker.eval()
    for step in range(_resumed(checkpoint, network, optimizer), total):
        epoch, batch = divmod(step, a_epoch)
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed * 1009 + epoch))
        rows = order[batch * recipe.batch_size : (batch + 1) * recipe.batch_size]
        torch.manual_seed(seed * 1_000_003 + step)
        for group in optimizer.param_groups:
            group["lr"] = setting.learning_rate * (1 - step / total)
        with torch.autocast(where.type, torch.bfloat16, enabled=where.type == "cuda"):
            logits = network(*_inputs(tokenizer, recipe, posts, replies, rows.tolist(), where))
        loss = nn.functional.binary_cross_entropy_with_logits(logits.float(), targets[rows].to(where))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(tuned, CLIPPED_NORM)
        optimizer.step()
        if (step + 1) % every == 0:
            _keep(checkpoint, network, optimizer, step + 1)
        progress(step + 1, total)
    return network


def probabilities(network: Network, recipe: Recipe, posts: Sequence[str], replies: Sequence[str]) -> np.ndarray:
    """P(mechanism shown) of n replies, (n,)."""
    tokenizer, where, found = tokenizer_of(recipe), next(network.parameters()).device, []
    network.eval()
    with torch.inference_mode(), torch.autocast(where.type, torch.bfloat16, enabled=where.type == "cuda"):
        for start in range(0, len(replies), recipe.batch_size):
            rows = range(start, min(start + recipe.batch_size, len(replies)))
            logits = network(*_inputs(tokenizer, recipe, posts, replies, rows, where))
            found.append(torch.sigmoid(logits.float()).cpu().numpy())
    return np.concatenate(found) if found else np.empty(0)


def save(network: Network, path: Path) -> None:
    """Weights as safetensors, whole or not at all."""
    _write({name: value.contiguous() for name, value in network.state_dict().items()}, path, {})


def load(recipe: Recipe, path: Path) -> Network:
    network = Network(recipe)
    network.load_state_dict(load_file(path))
    return network.to(device())


def _inputs(tokenizer, recipe: Recipe, posts, replies, rows, where):
    """Token ids and masks of the posts and of the replies in these rows."""
    options = {"truncation": True, "max_length": recipe.max_length, "padding": True, "return_tensors": "pt"}
    both = [tokenizer([texts[i] for i in rows], return_token_type_ids=False, **options) for texts in (posts, replies)]
    return [{name: value.to(where) for name, value in tokens.items()} for tokens in both]


def _keep(path: Path, network: Network, optimizer, step: int) -> None:
    tensors = {f"network.{name}": value.contiguous() for name, value in network.state_dict().items()}
    for i, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{i}.{name}": value.contiguous() for name, value in state.items()}
    _write(tensors, path, {"step": str(step)})


def _write(tensors: dict[str, torch.Tensor], path: Path, about: dict[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.part")
    try:
        save_file(tensors, partial, metadata=about)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise Problem(str(path), f"it cannot be written ({error})", "free some space and run again") from error


def _resumed(path: Path, network: Network, optimizer) -> int:
    """The step at which to go on; 0 without a checkpoint."""
    if not path.exists():
        return 0
    with safe_open(path, "pt") as file:
        step = int(json.loads(file.metadata()["step"]))
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    network.load_state_dict({n.removeprefix("network."): t for n, t in tensors.items() if n.startswith("network.")})
    state: dict[int, dict] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            _, i, part = name.split(".", 2)
            state.setdefault(int(i), {})[part] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    return step
