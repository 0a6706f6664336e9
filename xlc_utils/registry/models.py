"""The models and translators: one entry each in params/models.yaml, whose head explains the keys."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from xlc_utils.registry import hub, languages
from xlc_utils.registry.files import Names, StrictModel, parse, read_yaml, shown, suggestion, wrong
from xlc_utils.registry.languages import canonical
from xlc_utils.registry.problems import Problem

_FILE = Path("params") / "models.yaml"
# What may be used of a model's files on a hub; see `hub.Weights`.
_HUB = ("local_files_only", "trust_remote_code", "safetensors_only")
# Arguments of vLLM's engine.
_ENGINE = ("tensor_parallel_size", "pipeline_parallel_size", "dtype", "max_model_len")


class Prices(StrictModel):
    """What a provider asks, in US dollars per million tokens."""

    input: Annotated[float, Field(ge=0)]
    output: Annotated[float, Field(ge=0)]
    as_of: str
    source: str


class TrainedOn(StrictModel):
    """The languages a model's makers state, as far as this project has them; None where they name none."""

    languages: Names | None
    source: str

    @field_validator("languages")
    @classmethod
    def _new_codes(cls, codes: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if codes is None else tuple(canonical(code) for code in codes)


class _FromHub(StrictModel):
    """An entry that may name weights on a hub; see `hub.Weights`."""

    licence: str
    note: str | None = None

    local_files_only: bool = False
    trust_remote_code: bool = False
    safetensors_only: bool = True

    @property
    def weights(self) -> hub.Weights:
        """Which files of the hub the entry names, for who loads them itself."""
        return hub.Weights(self.id, self.revision, **{key: getattr(self, key) for key in _HUB})

    def check_pinned(self) -> None:
        """
        Raises:
            ValueError: id and revision do not name one state of the weights.
        """
        if not (self.id and hub.is_pinned(self.id, self.revision)):
            raise wrong(
                f"`revision` {self.revision or 'null'} is no commit, so the weights behind {self.id} may change",
                "write the commit's 40 digits as the hub shows them, or the absolute path of a folder as `id`",
            )


class _Entry(_FromHub):
    """An entry whose other keys depend on its backend."""

    backend: str
    toy: bool

    of_backend: ClassVar[dict[str, tuple[str, ...]]]
    optional: ClassVar[tuple[str, ...]] = ()
    pinned: ClassVar[tuple[str, ...]]  # the backends that load weights from a hub themselves

    @model_validator(mode="after")
    def _keys_of_backend(self) -> Any:
        own = self.of_backend[self.backend]
        for key in own:
            if key not in self.model_fields_set and key not in self.optional:
                raise wrong(f"key `{key}` is missing", f"add it: the backend {self.backend} needs it")
        for key in (key for keys in self.of_backend.values() for key in keys):
            if key in self.model_fields_set and key not in own:
                raise wrong(
                    f"key `{key}` has no meaning for the backend {self.backend}", "remove it, or correct `backend`"
                )
        if self.backend in self.pinned:
            self.check_pinned()
        return self


class Model(_Entry):
    """A model that answers, or judges.

    Attributes:
        backend: openai (any server that speaks OpenAI's API), vllm (loaded by vLLM inside this process), embedded
            (weights inside a package), gguf (a file of weights), replay.
        kind: chat, or completion for a base model, which continues text and is prompted with examples.
        id: exact name at the endpoint, or on the hub; of vllm also the absolute path of a folder.
        revision: date or commit, None if not pinned; of vllm the whole commit.
        endpoint, api_key_env, reasoning_effort, batch, logprobs: of openai. `batch`: through the endpoint's Batch API.
            `logprobs`: it gives the log-probabilities of tokens; the other backends all do.
            `api_key_env` is the *name* of the environment variable that holds the key, None if the server wants none.
        tensor_parallel_size, pipeline_parallel_size, dtype, max_model_len: of vllm, all optional: over how many
            accelerators the weights are divided by layer and by stage, type of the weights, most tokens of prompt and
            reply.
        local_files_only, trust_remote_code, safetensors_only: of vllm, optional; see `xlc_utils.registry.hub.Weights`.
        package, file, sha256: of embedded. `file` is the path inside site-packages, None if the package joins parts.
        file, sha256: of gguf; the path is relative to the project, the checksum optional.
        answers: of replay.
        prices: None where not known, or where the hardware is one's own.
        paper: where the model is used.
        toy: too weak, or too well informed, for its results to say anything about a model.
    """

    of_backend: ClassVar = {
        "openai": ("endpoint", "api_key_env", "reasoning_effort", "batch", "logprobs"),
        "vllm": (*_ENGINE, *_HUB),
        "embedded": ("package", "file", "sha256"),
        "gguf": ("file", "sha256"),
        "replay": ("answers",),
    }
    optional = ("reasoning_effort", "batch", "logprobs", *_ENGINE, *_HUB)
    pinned = ("vllm",)

    backend: Literal["openai", "vllm", "embedded", "gguf", "replay"]
    kind: Literal["chat", "completion"]
    id: str
    revision: str | None
    prices: Prices | None
    trained_on: TrainedOn
    paper: Annotated[tuple[Literal["A", "B-generator", "B-judge", "demo"], ...], Field(strict=False)]
    endpoint: Annotated[str, Field(pattern=r"^https?://[^\s/@]+(/\S*)?$")] | None = None
    api_key_env: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")] | None = None
    reasoning_effort: Literal["minimal", "low", "medium", "high"] | None = None
    batch: bool = False
    logprobs: bool = False
    temperature: Annotated[float, Field(ge=0)] = 0.0
    concurrency: Annotated[int, Field(ge=1)] = 8
    tensor_parallel_size: Annotated[int, Field(ge=1)] = 1
    pipeline_parallel_size: Annotated[int, Field(ge=1)] = 1
    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    max_model_len: Annotated[int, Field(ge=1)] | None = None
    package: str | None = None
    file: str | None = None
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    answers: str | None = None

    @property
    def engine(self) -> dict[str, Any]:
        """What the entry sets of vLLM's engine."""
        return {key: getattr(self, key) for key in _ENGINE}

    @property
    def gives_logprobs(self) -> bool:
        """Whether it can be asked for the log-probabilities of its tokens."""
        return self.logprobs or self.backend in ("vllm", "embedded", "gguf")


class Translator(_Entry):
    """A translator between the languages and English.

    Attributes:
        backend: nllb (through transformers), nllb_ctranslate2 (dense models of the same family, converted), firefox (a
            pair of Firefox Translations inside a package), firefox_releases (all pairs that are pinned, fetched when
            needed), few_shot (a base model shown examples).
        id, revision: of both nllb, name and whole commit on the hub, or the absolute path of a folder and None.
        local_files_only, trust_remote_code, safetensors_only: of both nllb, optional; see
            `xlc_utils.registry.hub.Weights`.
        languages: of both nllb, "all": every language that has an `nllb` code.
        dtype, device_map: of nllb, as transformers reads them.
        quantization: of nllb_ctranslate2.
        package, folder, source, target: of firefox; the folder is inside site-packages.
        models_folder: of firefox_releases, instead of the user's cache; relative to the project.
        model: of few_shot, one of the models.
    """

    of_backend: ClassVar = {
        "nllb": ("id", "revision", "languages", *_HUB),
        "nllb_ctranslate2": ("id", "revision", "languages", "quantization", *_HUB),
        "firefox": ("package", "folder", "source", "target"),
        "firefox_releases": ("models_folder",),
        "few_shot": ("model",),
    }
    optional = ("models_folder", *_HUB)
    pinned = ("nllb", "nllb_ctranslate2")

    backend: Literal["nllb", "nllb_ctranslate2", "firefox", "firefox_releases", "few_shot"]
    id: str | None = None
    revision: str | None = None
    languages: Literal["all"] | None = None
    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    device_map: str | None = None
    quantization: Literal["int8", "float32"] | None = None
    package: str | None = None
    folder: str | None = None
    models_folder: str | None = None
    source: str | None = None
    target: str | None = None
    model: str | None = None


class HubEncoder(_FromHub):
    """An encoder of texts that transformers loads.

    Attributes:
        id, revision: name and whole commit on the hub, or the absolute path of a folder and None.
        prefix: what the model was trained to see before a text.
        licence: of the weights.
        note, local_files_only, trust_remote_code, safetensors_only: optional.
    """

    id: str
    revision: str | None
    prefix: str

    @model_validator(mode="after")
    def _pinned(self) -> HubEncoder:
        self.check_pinned()
        return self


class Registry(StrictModel):
    """Everything in params/models.yaml, by name."""

    models: dict[str, Model]
    translators: dict[str, Translator]
    encoders: dict[str, HubEncoder] = {}  # noqa: RUF012

    def model(self, name: str) -> Model:
        """The model of that name.

        Raises:
            Problem: there is none; with the nearest name.
        """
        if name not in self.models:
            raise Problem(f"model `{name}`", f"it is not in {_FILE.as_posix()}", suggestion(name, self.models))
        return self.models[name]

    def translator(self, name: str) -> Translator:
        """The translator of that name.

        Raises:
            Problem: there is none; with the nearest name.
        """
        if name not in self.translators:
            raise Problem(
                f"translator `{name}`", f"it is not in {_FILE.as_posix()}", suggestion(name, self.translators)
            )
        return self.translators[name]


def load(root: Path) -> Registry:
    """The registry of models and translators.

    Args:
        root: the folder that holds params/.

    Raises:
        Problem: naming the key that is wrong; also for a language or model it names that there is not.
    """
    where = shown(root / _FILE)
    registry = parse(Registry, read_yaml(root / _FILE), where)
    known = languages.files(root)
    for name, model in registry.models.items():
        for code in model.trained_on.languages or ():
            _must_be_known(f"{where}: key `models.{name}.trained_on.languages`", code, known, "language")
    for name, translator in registry.translators.items():
        for code in filter(None, (translator.source, translator.target)):
            _must_be_known(f"{where}: key `translators.{name}`", code, known, "language")
        if translator.model:
            _must_be_known(f"{where}: key `translators.{name}.model`", translator.model, registry.models, "model")
    return registry


def _must_be_known(where: str, name: str, known: Iterable[str], what: str) -> None:
    if name not in known:
        raise Problem(where, f"there is no {what} `{name}`", suggestion(name, known))


def in_training(model: Model, codes: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Languages that the model's makers state, and those they do not (In and Out of paper A's averaged scores).

    Args:
        model: the model.
        codes: language codes; leave English out, as paper A does.

    Returns:
        (in, out), each in the order given and under new codes; None where the makers name no languages.
    """
    stated = model.trained_on.languages
    if stated is None:
        return None
    codes = [canonical(code) for code in codes]
    return tuple(c for c in codes if c in stated), tuple(c for c in codes if c not in stated)
