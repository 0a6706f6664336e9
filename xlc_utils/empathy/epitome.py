"""EPITOME's Reddit pairs (Sharma et al. 2020): found or fetched, read, split, counted (paper A, appendix "Training and
Choosing the Empathy Evaluator").

Home: the GitHub repository behavioral-data/Empathy-Mental-Health, which states no licence for the data. No text of it
is kept here, and no id: the ids are Reddit's and lead to what people in distress wrote.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from xlc_utils.registry.downloads import Release
from xlc_utils.registry.problems import Problem
from xlc_utils.registry.prompts import MECHANISMS
from xlc_utils.reporting import published
from xlc_utils.statistics.intervals import wilson_interval

#: The commit of the authors' repository whose files are read here.
COMMIT = "0e11f98901527550885dbf253bd2af92dbcec43b"
RELEASE = Release(
    "EPITOME's Reddit pairs",
    "epitome",
    "behavioral-data/Empathy-Mental-Health",
    COMMIT,
    "xlc_utils.empathy.epitome.fetch",
)
HOME = RELEASE.home

#: Each file of the release: its path in the authors' repository and its SHA-256.
FILES = {
    "emotional-reactions-reddit.csv": (
        "dataset/emotional-reactions-reddit.csv",
        "225b28ffdc257f8a997d557eb937e78b68235e6203c87c7e2203d00fef8545cc",
    ),
    "interpretations-reddit.csv": (
        "dataset/interpretations-reddit.csv",
        "2cedbe4252c919d22a6f46685afa16d3192a91e3306c2d4a386be12a30ad3f29",
    ),
    "explorations-reddit.csv": (
        "dataset/explorations-reddit.csv",
        "9efa1af8e0537c16894379598f2076cb380ae18aacd9a8d26ebd381f5b7f9645",
    ),
}
#: The file that holds the labels of each mechanism.
LABELS = dict(zip(MECHANISMS, FILES, strict=True))
# The three files hold the same pairs, but that of ER has lost spaces between sentences and some words of the texts.
_TEXTS = LABELS["IP"]

#: The seed of the split whose test part gives the evaluation prompts, and whose other parts train what classifies.
SPLIT = 0
#: 0 no, 1 weak, 2 strong communication of the mechanism; paper A merges 1 and 2.
LEVELS = (0, 1, 2)
#: Parts of the split and their shares of the seeker posts (Sharma et al. 2020; paper A).
PARTS = {"train": 0.75, "dev": 0.05, "test": 0.20}


def data_folder(folder: str | Path | None = None) -> Path:
    """The folder that holds the release: `folder`, else epitome in the one XLC_DATA names.

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


def read(folder: str | Path | None = None) -> pd.DataFrame:
    """The labelled pairs of a seeker's post and a response to it, in the order of the files.

    The release has 3,084 rows of 3,023 different pairs: 60 pairs were labelled more than once (see `duplicates`), and
    each labelling keeps its row, as in the paper.

    Returns:
        sp_id, rp_id, seeker, response (texts); and of each mechanism, here ER: ER (0 or 1: weak and strong merged),
        ER_level (see `LEVELS`), ER_rationales (the parts of the response that show it, each followed by "|", else "").

    Raises:
        Problem: a file is missing, is no table, lacks a column or a value, has an unknown level, or its rows are not
            the pairs of the other files in the same order.
    """
    path = data_folder(folder)
    tables = {mechanism: _table(path / name) for mechanism, name in LABELS.items()}
    texts = tables["IP"]
    pairs = texts[["sp_id", "rp_id"]].assign(seeker=texts["seeker_post"], response=texts["response_post"])
    for mechanism, table in tables.items():
        _check_same_pairs(table, texts, path / LABELS[mechanism])
        pairs[mechanism] = (table["level"] > 0).astype(int)
        pairs[f"{mechanism}_level"], pairs[f"{mechanism}_rationales"] = table["level"], table["rationales"]
    return pairs


def _table(path: Path) -> pd.DataFrame:
    filled = ["sp_id", "rp_id", "seeker_post", "response_post", "level"]
    try:
        table = pd.read_csv(io.BytesIO(RELEASE.read_bytes(path)), dtype=str, keep_default_na=False)
    except ValueError as error:  # also what pandas raises for a wrong encoding or number of fields
        raise Problem(str(path), f"it is not a table in UTF-8 ({error})", "download it again") from None
    for column in [*filled, "rationales"]:
        if column not in table:
            raise Problem(str(path), f"it has no column `{column}`", "download it again")
        if column in filled and (empty := table[column].str.strip() == "").any():
            raise Problem(_row(path, empty), f"its `{column}` is empty", "download the file again")
    if (unknown := ~table["level"].isin([str(level) for level in LEVELS])).any():
        raise Problem(
            _row(path, unknown),
            f"the level {table['level'][unknown].iloc[0]!r} is not one of 0, 1 and 2",
            "download the file again",
        )
    return table[[*filled, "rationales"]].astype({"level": int})


def _check_same_pairs(table: pd.DataFrame, other: pd.DataFrame, path: Path) -> None:
    if len(table) != len(other):
        raise Problem(str(path), f"it has {len(table)} rows and {_TEXTS} has {len(other)}", "download both again")
    if (differs := (table[["sp_id", "rp_id"]] != other[["sp_id", "rp_id"]]).any(axis=1)).any():
        raise Problem(_row(path, differs), f"it is another pair than in {_TEXTS}", "download both again")


def _row(path: Path, wrong: pd.Series) -> str:
    return f"{path}: row {int(wrong.to_numpy().argmax()) + 1} after the header"


def split(pairs: pd.DataFrame, seed: int) -> pd.Series:
    """Train, dev or test for each pair: 75, 5 and 20 per cent of the seeker posts, the same for all three mechanisms.

    All responses to one post fall into one part, so that no post of the test was seen in training. Which part a post
    gets depends on its id, the seed and the other ids alone: neither on the order of rows nor on a random generator
    that a library may change.

    Args:
        pairs: has `sp_id`.

    Returns:
        "train", "dev" or "test", aligned with `pairs`, named `split`.

    Source: paper A, appendix, "Data splits".
    """
    seekers = _shuffled(pairs["sp_id"].unique(), f"split {seed}")
    ends = np.round(np.cumsum(list(PARTS.values())) * len(seekers)).astype(int)
    position = {seeker: i for i, seeker in enumerate(seekers)}
    where = np.searchsorted(ends, pairs["sp_id"].map(position), side="right")
    return pd.Series(np.array(list(PARTS))[where], index=pairs.index, name="split")


def _shuffled(ids: Iterable[str], key: str) -> list[str]:
    return sorted(ids, key=lambda name: hashlib.sha256(f"{key}\n{name}".encode()).digest())


def save_split(pairs: pd.DataFrame, seed: int, path: Path) -> None:
    """Write the split by id: seed, sp_id, split, one row a seeker post, sorted by id.

    Keep the file out of any repository: its ids are Reddit's.
    """
    table = pairs[["sp_id"]].assign(seed=seed, split=split(pairs, seed)).drop_duplicates("sp_id").sort_values("sp_id")
    path.parent.mkdir(parents=True, exist_ok=True)
    table[["seed", "sp_id", "split"]].to_csv(path, index=False, lineterminator="\n")


def split_shares(pairs: pd.DataFrame, seeds: Sequence[int]) -> pd.DataFrame:
    """How many posts and pairs each part of each seed's split has, and how many pairs show the mechanism, per cent.

    Returns:
        seed, split, mechanism, n_seekers, n_pairs, share.
    """
    rows = []
    for seed in seeds:
        parts = split(pairs, seed)
        for part in PARTS:
            own = pairs[parts == part]
            rows += [
                {
                    "seed": seed,
                    "split": part,
                    "mechanism": mechanism,
                    "n_seekers": own["sp_id"].nunique(),
                    "n_pairs": len(own),
                    "share": 100 * own[mechanism].mean(),
                }
                for mechanism in MECHANISMS
            ]
    return pd.DataFrame(rows)


def split_table(shares: pd.DataFrame) -> pd.DataFrame:
    """The shares beside those paper A prints (Table 5), per cent.

    Args:
        shares: from `split_shares`.

    Returns:
        mechanism, split, ours (mean over seeds), lowest, highest (over seeds), printed; in the paper's order.
    """
    ours = shares.groupby(["mechanism", "split"])["share"].agg(ours="mean", lowest="min", highest="max").reset_index()
    printed = published.load("paper_a_empathy_splits").rename(columns={"value": "printed"})
    return printed[["mechanism", "split", "printed"]].merge(ours)[
        ["mechanism", "split", "ours", "lowest", "highest", "printed"]
    ]


def duplicates(pairs: pd.DataFrame) -> pd.DataFrame:
    """What pairs that were labelled more than once say about the labels, and so about every evaluator tested on them.

    If both labellings of a pair err independently and equally often, and agree on a share a of the pairs, each is
    right on (1 + √(2a − 1)) / 2 of them: the accuracy of an evaluator that never errs.

    Returns:
        mechanism, pairs (labelled more than once), levels_differ, labels_differ (of how many, three-way and binary),
        agreement, low, high (share with equal binary labels, per cent, Wilson 95%), ceiling, ceiling_low,
        ceiling_high (that accuracy, per cent; 50 where they agree no more often than by chance).
    """
    repeated = pairs[pairs.duplicated(["sp_id", "rp_id"], keep=False)].groupby(["sp_id", "rp_id"])
    rows = []
    for mechanism in MECHANISMS:
        differ = int((repeated[mechanism].nunique() > 1).sum())
        equal = wilson_interval(repeated.ngroups - differ, repeated.ngroups)
        shares = np.array([equal.estimate, equal.low, equal.high], dtype=float)
        ceilings = (1 + np.sqrt(np.maximum(2 * shares - 1, 0))) / 2
        rows.append(
            {
                "mechanism": mechanism,
                "pairs": repeated.ngroups,
                "levels_differ": int((repeated[f"{mechanism}_level"].nunique() > 1).sum()),
                "labels_differ": differ,
                **dict(zip(("agreement", "low", "high"), 100 * shares, strict=True)),
                **dict(zip(("ceiling", "ceiling_low", "ceiling_high"), 100 * ceilings, strict=True)),
            }
        )
    return pd.DataFrame(rows)


def evaluation_prompts(pairs: pd.DataFrame, parts: pd.Series, n: int = 100, seed: int = 0) -> pd.DataFrame:
    """Seeker posts of the test part to ask the models with, stratified over the labels.

    The appendix says that the 100 are "stratified across the two labels" and not how three mechanisms share one
    sample. Here a post's stratum is its profile, with a mechanism present where any of its responses shows it, and
    each of the eight strata has its share of the test's posts, by largest remainders.

    Args:
        pairs: from `read`.
        parts: from `split`.
        n: how many posts.

    Returns:
        sp_id, seeker, ER, IP, EX (the stratum), n rows sorted by id. To save it, keep the ids alone.

    Raises:
        Problem: the test has fewer than n posts.

    Source: paper A, appendix, "Choice of Evaluation Prompts".
    """
    test = pairs[parts == "test"]
    posts = test.groupby("sp_id").agg({"seeker": "first", **dict.fromkeys(MECHANISMS, "max")}).reset_index()
    if n > len(posts):
        raise Problem("evaluation prompts", f"{n} are asked for and the test has {len(posts)} posts", "ask for fewer")
    strata = {profile: list(own["sp_id"]) for profile, own in posts.groupby(list(MECHANISMS))}
    counts = _largest_remainders([len(own) for own in strata.values()], n)
    chosen = [
        seeker
        for own, count in zip(strata.values(), counts, strict=True)
        for seeker in _shuffled(own, f"evaluation {seed}")[:count]
    ]
    return posts[posts["sp_id"].isin(chosen)].reset_index(drop=True)


def _largest_remainders(sizes: Sequence[int], n: int) -> np.ndarray:
    """n places shared out in proportion to the sizes."""
    exact = np.array(sizes) * n / sum(sizes)
    counts = np.floor(exact).astype(int)
    largest = np.argsort(counts - exact, kind="stable")[: n - counts.sum()]
    counts[largest] += 1
    return counts
