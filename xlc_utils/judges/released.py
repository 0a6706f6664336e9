"""Paper B's released dialogues and human labels: found or fetched, verified, read, checked.

Home: the GitHub repository isaac-chung/cross-lingual-stability-judges, Apache-2.0. No text of it is kept here.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from xlc_utils.registry.downloads import Release
from xlc_utils.registry.problems import Problem

#: The commit of the authors' repository whose files are read here.
COMMIT = "ea3bfc524184953aeded99d35d92c660a9b17a80"
RELEASE = Release(
    "released dialogues of paper B",
    "judge-stability",
    "isaac-chung/cross-lingual-stability-judges",
    COMMIT,
    "xlc_utils.judges.released.fetch",
)
HOME = RELEASE.home

#: The four languages in paper B's order.
LANGUAGES = ("et", "fi", "hu", "en")

#: Generator ids as they stand in the data, and the short names used in tables. The ids are of Llama 3, where
#: the paper (section 2.4) says 3.1 and 3.3.
MODELS = {
    "anthropic.claude-sonnet-4-20250514-v1:0": "Claude-Sonnet-4",
    "cohere.command-r-v1:0": "Command-R",
    "gpt-4.1-mini": "gpt-4.1-mini",
    "meta.llama3-70b-instruct-v1:0": "Llama3-70B",
    "meta.llama3-8b-instruct-v1:0": "Llama3-8B",
    "mistral.mixtral-8x7b-instruct-v0:1": "Mixtral-8x7B",
}

#: Each file of the release: its path in the authors' repository and its SHA-256.
FILES = {
    "combined_en.json": (
        "paper_data/combined_en.json",
        "e7f87ba7b2b35e258fa0e3fe16d4a8ed5e1fa3e206456c71420237f1a0044b0d",
    ),
    "combined_et.json": (
        "paper_data/combined_et.json",
        "f5e661f6ae0927a2ccfc6621e70582d9d92bac30c34c77575174b0be1b6c4efc",
    ),
    "combined_fi.json": (
        "paper_data/combined_fi.json",
        "658c032fa33ffd74f8b30688fb992cfb0f9b7fcda1e6df572d6f2a5ce70feaee",
    ),
    "combined_hu.json": (
        "paper_data/combined_hu.json",
        "f8e8cbfb73ba325439f6efce0702cc713fc3970a4ff535cf4e88a8aa37210df1",
    ),
    "combined_et_with_annotations.json": (
        "human_annotated_data_et/combined_et_with_annotations.json",
        "fd364f513c3675b388998ed718dde694076edb1d87c7d0264c9559e95cea17d4",
    ),
    "calibration_query_result_anonymized.csv": (
        "human_annotated_data_et/calibration_query_result_anonymized.csv",
        "b545754cbd8155bb32283b82d5966428bf406ff272b8c3c1cb79487850959255",
    ),
    "manual_query_result_anonymized.csv": (
        "human_annotated_data_et/manual_query_result_anonymized.csv",
        "dfbfe36ec62fc0581b852baa3686b5c02825cc346d3efd60822ec56040dd85cd",
    ),
}

#: The two tables of ratings, in the order in which they win where both hold the same rating.
RATING_FILES = {
    "calibration_query_result_anonymized.csv": "calibration_reviewer_name",
    "manual_query_result_anonymized.csv": "reviewer_name",
}
#: What the annotators were asked (paper B, table 6), the scale's maximum, and the paper's name for it.
QUESTIONS = {
    "Does the content make sense?": ("coherence", 1),
    "Is this fluent, human-written Estonian?": ("fluency", 3),
}

#: The languages whose dialogues record what they were generated with: the same draws in all three.
WITH_DRAWS = ("fi", "hu", "en")

SENDERS = ("agent", "customer")
PARAMETERS = ("industry", "problem", "channel", "agent_experience", "agent_type")
# What stands where a parameter was not recorded; the whole Estonian file has the first two.
_PLACEHOLDERS = {"industry": "Customer Service", "problem": "General inquiry"}
_UNKNOWN = "UNK"


@dataclass(frozen=True)
class Turn:
    """One message: `sender` is "agent" or "customer", `name` the person's or bot's as written."""

    sender: str
    name: str
    text: str


@dataclass(frozen=True)
class Dialogue:
    """One generated customer-support dialogue.

    Attributes:
        language: key of `LANGUAGES`.
        model: short name of the generator (a value of `MODELS`; an id not in it stands as it is).
        index: position among the model's dialogues in the language's file, from 0.
        turns: its messages in order; the release has one dialogue without any.
        parameters: what it was generated with, as recorded: `PARAMETERS`, n_messages, n_agents. For Estonian
            these are placeholders (see `remarks`).
        dialogue_id: the id the human labels use, or None outside the annotated file.
    """

    language: str
    model: str
    index: int
    turns: tuple[Turn, ...]
    parameters: Mapping[str, object]
    dialogue_id: str | None = None

    @property
    def has_placeholders(self) -> bool:
        """Whether a parameter is a placeholder and so says nothing of how the dialogue was generated."""
        return any(self.parameters.get(name) in (_UNKNOWN, _PLACEHOLDERS.get(name, _UNKNOWN)) for name in PARAMETERS)


def data_folder(folder: str | Path | None = None) -> Path:
    """The folder that holds the release: `folder`, else judge-stability in the one XLC_DATA names.

    Raises:
        Problem: neither is given, or there is no such folder.
    """
    return RELEASE.data_folder(folder)


def verify(folder: str | Path | None = None) -> None:
    """Hold every file of the release in `folder` against its pinned SHA-256.

    Raises:
        Problem: a file is missing or is not the pinned one.
    """
    RELEASE.verify(data_folder(folder), FILES)


def fetch(folder: str | Path, home: str = HOME) -> list[Path]:
    """Download the release at the pinned commit into `folder`, as `Release.fetch` does."""
    return RELEASE.fetch(folder, FILES, home)


def read_dialogues(folder: str | Path | None = None, languages: Sequence[str] = LANGUAGES) -> list[Dialogue]:
    """The dialogues of `combined_<language>.json`, by language, generator and position in the file.

    Args:
        folder: see `data_folder`.
        languages: which files to read.

    Raises:
        Problem: a file is missing or not as `parse_dialogues` expects it.
    """
    path = data_folder(folder)
    return [dialogue for language in languages for dialogue in _read_file(path / f"combined_{language}.json", language)]


#: The further dialogues that the authors put on a hub: those of one generator, a split a language, one row a message.
HUB_DATASET = "isaacchung/controlled-generated-convos-gpt-4.1-mini"
_HUB_COLUMNS = ("conversation_id", "message_id", "from_name", "from_type", "message", "language", *PARAMETERS)


def fetch_hub(folder: str | Path, revision: str) -> list[Path]:
    """Download the hub's Parquet files into `folder`; `read_hub` reads them.

    Args:
        folder: where they go.
        revision: a commit of the data set, all 40 digits, so that the same files come every time.

    Raises:
        Problem: the revision is no commit; huggingface_hub is not installed; the hub or the commit cannot be reached.
    """
    where = f"hub data set {HUB_DATASET}"
    if not re.fullmatch(r"[0-9a-f]{40}", revision):
        raise Problem(where, f"the revision {revision!r} is no commit", "give the 40 digits of one, from its page")
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        command = "python -m pip install huggingface_hub"
        raise Problem(where, "the package huggingface_hub is not installed", f"run `{command}`") from None
    try:
        snapshot_download(
            HUB_DATASET, repo_type="dataset", revision=revision, local_dir=folder, allow_patterns="*.parquet"
        )
    except (OSError, ValueError) as error:  # its own errors are of these kinds
        raise Problem(where, f"it cannot be downloaded ({error})", "check the network and the revision") from error
    return sorted(Path(folder).rglob("*.parquet"))


def read_hub(folder: str | Path, languages: Sequence[str] = LANGUAGES) -> list[Dialogue]:
    """The dialogues in the Parquet files of the hub's data set: rows of messages, put together by conversation.

    Raises:
        Problem: there is no Parquet file; a file is not readable or lacks a column; a dialogue is not as
            `parse_dialogues` expects it, or does not have each of its messages once.
    """
    paths = sorted(Path(folder).rglob("*.parquet"))
    if not paths:
        remedy = "run `python -m xlc_utils.judges.rebuild --hub FOLDER REVISION`"
        raise Problem(str(folder), "it holds no Parquet file", remedy)
    messages = pd.concat([_read_hub_file(path) for path in paths], ignore_index=True)  # a dialogue may lie in two files
    dialogues = []
    for language in languages:
        own = messages[messages["language"] == language].groupby("conversation_id", sort=False)
        dialogues += [_hub_dialogue(str(name), group, index) for index, (name, group) in enumerate(own)]
    return dialogues


def _read_hub_file(path: Path) -> pd.DataFrame:
    try:
        table = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise Problem(str(path), f"it is not readable as Parquet ({error})", "download it again") from None
    for column in _HUB_COLUMNS:
        if column not in table:
            raise Problem(str(path), f"it has no column `{column}`", "download it again")
    return table


def _hub_dialogue(identifier: str, messages: pd.DataFrame, index: int) -> Dialogue:
    where = f"dialogue {identifier} of {HUB_DATASET}"
    messages = messages.sort_values("message_id")
    if messages["message_id"].tolist() != list(range(len(messages))):
        raise Problem(where, "its messages are not numbered 0, 1, 2, …", "download the files again")
    first = messages.iloc[0].to_dict()
    item = {
        "conversation_id": identifier,
        "messages": messages[["from_name", "from_type", "message"]].to_dict("records"),
        "_metadata": {name: first.get(name) for name in ("language", *PARAMETERS, "n_messages", "n_agents")},
    }
    model = first.get("model") or first.get("file_model") or "gpt-4.1-mini"  # the data set is of this one
    return _dialogue(item, first["language"], model, index, where)


def read_annotated(folder: str | Path | None = None) -> list[Dialogue]:
    """The 120 Estonian dialogues of one generator that people rated, with their `dialogue_id`.

    They are the gpt-4.1-mini dialogues of `combined_et.json` in another order and with other names put in for
    people's; only 27 have the same messages word for word.
    """
    return _read_file(data_folder(folder) / "combined_et_with_annotations.json", "et")


def _read_file(path: Path, language: str) -> list[Dialogue]:
    try:
        content = json.loads(RELEASE.read_bytes(path).decode("utf-8"))
    except ValueError as error:
        raise Problem(str(path), f"it is not JSON in UTF-8 ({error})", "download it again") from None
    return parse_dialogues(content, language, str(path))


def parse_dialogues(content: object, language: str, where: str) -> list[Dialogue]:
    """Dialogues out of the JSON of one file: generator id → list of dialogues.

    Args:
        content: the decoded JSON.
        language: what every dialogue must say it is in.
        where: the file's name, for messages.

    Raises:
        Problem: the file has another shape; or a dialogue has no `_metadata`, lacks a parameter, says another
            language, or has no list of messages; or a turn has no text or no known sender.
    """
    if not isinstance(content, dict) or not all(isinstance(part, list) for part in content.values()):
        raise Problem(
            where,
            "it is not a mapping of generator ids to lists of dialogues",
            "compare it with the released combined_en.json",
        )
    return [
        _dialogue(item, language, model, index, f"{where}: {model}, dialogue {index}")
        for model, items in content.items()
        for index, item in enumerate(items)
    ]


def _dialogue(item: object, language: str, model: str, index: int, where: str) -> Dialogue:
    if not isinstance(item, dict):
        raise Problem(where, "it is not a mapping", "compare it with the released combined_en.json")
    metadata = item.get("_metadata")
    if not isinstance(metadata, dict):
        raise Problem(where, "it has no `_metadata`", "add the parameters it was generated with, or leave it out")
    missing = [name for name in ("language", *PARAMETERS) if name not in metadata]
    if missing:
        raise Problem(where, f"its `_metadata` has no `{missing[0]}`", "add it, or leave the dialogue out")
    if metadata["language"] != language:
        raise Problem(
            where,
            f"its `_metadata` says language {metadata['language']!r} in a file of {language!r}",
            "move it into the file of its language",
        )
    messages = item.get("messages")
    if not isinstance(messages, list):
        raise Problem(where, "it has no list `messages`", "add its turns, or leave it out")
    return Dialogue(
        language,
        MODELS.get(model, model),
        index,
        tuple(_turn(message, f"{where}, turn {position}") for position, message in enumerate(messages, start=1)),
        {name: metadata.get(name) for name in (*PARAMETERS, "n_messages", "n_agents")},
        item.get("conversation_id"),
    )


def _turn(message: object, where: str) -> Turn:
    if not isinstance(message, dict) or not isinstance(message.get("message"), str):
        raise Problem(where, "it has no text in `message`", "add the text, or leave the dialogue out")
    if "from_type" not in message:
        raise Problem(where, "it has no sender in `from_type`", f"say one of {', '.join(SENDERS)}")
    if message["from_type"] not in SENDERS:
        raise Problem(where, f"its sender {message['from_type']!r} is not known", f"say one of {', '.join(SENDERS)}")
    return Turn(message["from_type"], str(message.get("from_name", "")), message["message"])


def draws(dialogues: Sequence[Dialogue]) -> list[int | None]:
    """Which draw of the generation parameters each dialogue came from, numbered from 0; None where unknown.

    In the released Finnish, Hungarian and English files every generator has the same 120 draws in the same
    order, less those it failed on. One set of parameters was drawn twice; both are in every list, so the first
    one there is the first draw. Draws are numbered in the order of the longest list.
    """
    drawn: dict[tuple[str, str], list[tuple]] = {}
    keys = []
    for dialogue in dialogues:
        same_model = drawn.setdefault((dialogue.language, dialogue.model), [])
        parameters = tuple(dialogue.parameters[name] for name in PARAMETERS)
        key = (*parameters, sum(earlier[:-1] == parameters for earlier in same_model))
        keys.append(None if dialogue.has_placeholders else key)
        same_model.append(key)
    known = set(keys)
    in_order = (key for same_model in sorted(drawn.values(), key=len, reverse=True) for key in same_model)
    number = {key: position for position, key in enumerate(dict.fromkeys(key for key in in_order if key in known))}
    return [None if key is None else number[key] for key in keys]


def remarks(dialogues: Sequence[Dialogue]) -> list[str]:
    """What a reader of `dialogues` must know though it stops nothing: one sentence a finding and language.

    Found are parameters that are placeholders, and dialogues of fewer than two messages.
    """
    return list(_remarks(dialogues))


def _remarks(dialogues: Sequence[Dialogue]) -> Iterator[str]:
    total = Counter(dialogue.language for dialogue in dialogues)
    placeholders = Counter(dialogue.language for dialogue in dialogues if dialogue.has_placeholders)
    short = Counter(dialogue.language for dialogue in dialogues if len(dialogue.turns) < 2)
    for language, n in total.items():
        if placeholders[language]:
            yield (
                f"{language}: {placeholders[language]} of {n} dialogues have placeholders where the parameters "
                "they were generated with should be."
            )
        if short[language]:
            yield f"{language}: {short[language]} of {n} dialogues have fewer than two messages."


def read_ratings(folder: str | Path | None = None) -> pd.DataFrame:
    """The human ratings, one row a rating: annotator, dialogue (id), question (coherence|fluency), value (int).

    The two released tables overlap; a rating in both is taken once, from the calibration table (they agree
    wherever both have a value). Rows without a value (4 different ratings, all Annotator2) are dropped.
    Sorted by question, dialogue and annotator.

    Raises:
        Problem: a table is missing or lacks a column, or has an unknown question or a value off its scale.
    """
    path = data_folder(folder)
    ratings = pd.concat([_read_rating_file(path / name, column) for name, column in RATING_FILES.items()])
    key = ["question", "dialogue", "annotator"]
    ratings = ratings.dropna(subset="value").drop_duplicates(key).sort_values(key, ignore_index=True)
    return ratings.astype({"value": int})[["annotator", "dialogue", "question", "value"]]


def _read_rating_file(path: Path, annotator_column: str) -> pd.DataFrame:
    try:
        table = pd.read_csv(io.BytesIO(RELEASE.read_bytes(path)))
    except ValueError as error:  # also what pandas raises for a wrong encoding or number of fields
        raise Problem(str(path), f"it is not a table in UTF-8 ({error})", "download it again") from None
    columns = {
        annotator_column: "annotator",
        "conversation_external_id": "dialogue",
        "rating_category_name": "asked",
        "rating_value": "value",
    }
    for column in columns:
        if column not in table:
            raise Problem(str(path), f"it has no column `{column}`", "download it again")
    table = table.rename(columns=columns)[list(columns.values())]
    for line, (asked, value) in enumerate(zip(table["asked"], table["value"], strict=True), start=2):
        _check_rating(asked, value, f"{path}: line {line}")
    table["question"] = [QUESTIONS[asked][0] for asked in table["asked"]]
    return table


def _check_rating(asked: object, value: float, where: str) -> None:
    if asked not in QUESTIONS:
        raise Problem(where, f"the question {asked!r} is not known", "download the table again")
    maximum = QUESTIONS[asked][1]
    if not pd.isna(value) and value not in range(maximum + 1):
        raise Problem(where, f"the rating {value} is not on the scale 0–{maximum}", "download the table again")
