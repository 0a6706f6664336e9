"""Automatic metrics of paper B's dialogues: measured, kept as numbers, and laid out for the rank statistics.

The numbers measured on the released dialogues are kept in `data/`, so nothing here needs the dialogues but
`measure`. Unit: one dialogue; values are rounded to 6 decimals when they are measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from xlc_utils.judges.lexical import (
    GRANULARITIES,
    Lemmatiser,
    dialogue_tokens,
    lemmatiser,
    mattr,
    self_bleu_scores,
    ttr,
)
from xlc_utils.judges.released import LANGUAGES, MODELS, PARAMETERS, Dialogue
from xlc_utils.registry.problems import Problem

DATA = Path(__file__).parent / "data"

#: Paper B's automatic metrics and their columns. TTR and MATTR: higher is more diverse; self-BLEU: lower is.
METRICS = {
    "TTR": "ttr_whole",
    "MATTR": "mattr_whole",
    "self-BLEU": "self_bleu_whole",
    "self-BLEU, agent": "self_bleu_agent",
    "self-BLEU, client": "self_bleu_client",
}

#: Language pairs in the order of paper B, appendix E.
LANGUAGE_PAIRS = (("et", "en"), ("et", "fi"), ("et", "hu"), ("fi", "en"), ("fi", "hu"), ("hu", "en"))

#: The languages whose dialogues record what they were generated with: the same draws in all three.
WITH_DRAWS = ("fi", "hu", "en")


def measure(dialogues: Sequence[Dialogue]) -> pd.DataFrame:
    """All metrics of every dialogue.

    Columns: language, model, dialogue (position among the model's in that language), draw (see `draws`; empty
    for Estonian), n_turns, share_right_language and share_english (of its turns, by py3langid over all the
    languages it knows), and for each of whole, agent, client: n_tokens, ttr, mattr, self_bleu.
    Dialogues of fewer than two turns keep their row but have no metrics and are nobody's reference in self-BLEU,
    as in the authors' code. A side without tokens has none either.

    Args:
        dialogues: any number of languages and models; self-BLEU compares within a language and model.

    Returns:
        One row a dialogue, in the order given.
    """
    frame = pd.DataFrame(
        {
            "language": [dialogue.language for dialogue in dialogues],
            "model": [dialogue.model for dialogue in dialogues],
            "dialogue": [dialogue.index for dialogue in dialogues],
            "draw": pd.array(draws(dialogues), dtype="Int64"),
            "n_turns": [len(dialogue.turns) for dialogue in dialogues],
        }
    )
    frame[["share_right_language", "share_english"]] = [_language_shares(dialogue) for dialogue in dialogues]
    lemmatisers = {language: lemmatiser(language) for language in frame["language"].unique()}
    for granularity in GRANULARITIES:
        _measure_granularity(frame, dialogues, lemmatisers, granularity)
    return frame.round(6)


def _measure_granularity(
    frame: pd.DataFrame, dialogues: Sequence[Dialogue], lemmatisers: dict[str, Lemmatiser], granularity: str
) -> None:
    """Add the four columns of one granularity to `frame`."""
    texts = pd.Series(
        [
            dialogue_tokens(dialogue, lemmatisers[dialogue.language], granularity) if len(dialogue.turns) > 1 else []
            for dialogue in dialogues
        ],
        index=frame.index,
        dtype=object,
    )
    frame[f"n_tokens_{granularity}"] = texts.map(len)
    frame[f"ttr_{granularity}"] = texts.map(ttr)
    frame[f"mattr_{granularity}"] = texts.map(mattr)
    for rows in frame.groupby(["language", "model"]).groups.values():
        frame.loc[rows, f"self_bleu_{granularity}"] = self_bleu_scores(list(texts[rows]))


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


def _language_shares(dialogue: Dialogue) -> tuple[float, float]:
    """Share of turns that py3langid takes for the dialogue's language, and for English; NaN without turns."""
    import py3langid

    found = [py3langid.classify(turn.text)[0] for turn in dialogue.turns]
    return (found.count(dialogue.language) / len(found), found.count("en") / len(found)) if found else (np.nan, np.nan)


def read_metrics(path: str | Path = DATA / "dialogue_metrics.csv") -> pd.DataFrame:
    """What `measure` found on the released dialogues, as kept in data/dialogue_metrics.csv.

    Raises:
        Problem: the file is missing or unreadable, or lacks a column.
    """
    described = ("language", "model", "dialogue", "draw", "n_turns", "share_right_language", "share_english")
    return read_committed(path, (*described, "n_tokens_whole", *METRICS.values())).astype({"draw": "Int64"})


def read_as_published(path: str | Path = DATA / "as_published_metrics.csv") -> pd.DataFrame:
    """What `as_published.metrics` found on the released dialogues, as kept in data/as_published_metrics.csv.

    Raises:
        Problem: the file is missing or unreadable, or lacks a column.
    """
    return read_committed(path, ("language", "model", "n", "ttr", "mattr", *list(METRICS.values())[2:]))


def read_committed(path: str | Path, columns: Sequence[str]) -> pd.DataFrame:
    """A table of numbers from `data/` (or one of its form) that must have `columns`.

    Raises:
        Problem: the file is missing or unreadable, or lacks a column.
    """
    remedy = "make it with: python -m xlc_utils.judges.rebuild FOLDER"
    try:
        table = pd.read_csv(path, index_col=False)
    except OSError as error:
        raise Problem(str(path), f"it cannot be read ({error.strerror})", remedy) from None
    except ValueError as error:  # also what pandas raises for a wrong encoding or number of fields
        raise Problem(str(path), f"it is not a table in UTF-8 ({error})", remedy) from None
    for column in columns:
        if column not in table:
            raise Problem(str(path), f"it has no column `{column}`", remedy)
    return table


def model_means(metrics: pd.DataFrame) -> pd.DataFrame:
    """Mean of each metric per language and model: what paper B's table 2 shows and its rankings rest on.

    Args:
        metrics: as `measure` or `read_metrics` give it.

    Returns:
        One row a language (paper order) and model: n_dialogues (those with at least two turns), n_tokens (mean),
        share_under_window (share of dialogues whose MATTR is a TTR, having fewer than 100 tokens), the metrics by
        their names in `METRICS`, share_right_language (mean), mostly_english (share of dialogues at least half of
        whose turns are English).
    """
    rows = metrics[metrics["n_turns"] >= 2]
    values = pd.DataFrame(
        {
            "language": pd.Categorical(rows["language"], _ordered(rows["language"], LANGUAGES)),
            "model": rows["model"],
            "n_tokens": rows["n_tokens_whole"],
            "share_under_window": rows["n_tokens_whole"] < 100,
            **{name: rows[column] for name, column in METRICS.items()},
            "share_right_language": rows["share_right_language"],
            "mostly_english": rows["share_english"] >= 0.5,
        }
    )
    groups = values.groupby(["language", "model"], observed=True)
    means = groups.mean().reset_index().astype({"language": str})
    means.insert(2, "n_dialogues", groups.size().to_numpy())
    return means


def _ordered(found: pd.Series, known: Sequence[str]) -> list[str]:
    """The values found, the known ones first and in their order."""
    values = set(found)
    return [value for value in known if value in values] + sorted(values - set(known))


def score_matrices(metrics: pd.DataFrame, metric: str) -> dict[str, np.ndarray]:
    """One metric as `xlc_utils.statistics.stability.rank_stability` takes it: language → (n_models, n_items).

    Rows are the models in the order of `models(metrics)`. Where draws are known, column j is draw j, in every
    language, so that two such languages are paired; elsewhere column j is the model's j-th dialogue and means
    nothing across models or languages (see `paired`). NaN where a model has no dialogue, or no value for it.

    Args:
        metrics: as `measure` or `read_metrics` give it.
        metric: key of `METRICS`.

    Raises:
        Problem: the metric is not known.
    """
    if metric not in METRICS:
        raise Problem("automatic metric", f"{metric!r} is not known", f"use one of {', '.join(METRICS)}")
    names = models(metrics)
    columns = metrics["draw"].fillna(metrics["dialogue"]).astype(int)
    matrices = {}
    for language in _ordered(metrics["language"], LANGUAGES):
        rows = metrics["language"] == language
        matrix = np.full((len(names), columns.max() + 1), np.nan)
        matrix[metrics.loc[rows, "model"].map(names.index), columns[rows]] = metrics.loc[rows, METRICS[metric]]
        matrices[language] = matrix
    return matrices


def models(metrics: pd.DataFrame) -> list[str]:
    """The models in `metrics`: paper B's first, by name."""
    return _ordered(metrics["model"], sorted(MODELS.values()))


def paired(first: str, second: str) -> bool:
    """Whether the columns of two languages' matrices are the same draws of the generation parameters."""
    return first in WITH_DRAWS and second in WITH_DRAWS
