"""Automatic metrics of paper B's dialogues: measured, kept as numbers, and laid out for the rank statistics.

The numbers measured on the released dialogues are kept in `data/`, so nothing here needs the dialogues but
`measure`. Unit: one dialogue; values are rounded to 6 decimals when they are measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from xlc_utils.judges import similarity
from xlc_utils.judges.dialogues import turns_from_json
from xlc_utils.judges.lexical import (
    GRANULARITIES,
    Lemmatiser,
    dialogue_tokens,
    lemmatiser,
    lemmatiser_of,
    mattr,
    self_bleu_scores,
    ttr,
)
from xlc_utils.judges.released import LANGUAGES, MODELS, PARAMETERS, Dialogue, draws
from xlc_utils.judges.similarity import Encode
from xlc_utils.registry.outcomes import Outcome
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

#: All metrics whose rank stability is shown. Similarity comes from another table, since it needs an encoder.
SURFACE = METRICS | {"similarity": "similarity"}

#: The metrics that paper B's table 2 prints with their standard deviation.
WITH_SD = ("TTR", "MATTR", "similarity")

#: Language pairs in the order of paper B, appendix E.
LANGUAGE_PAIRS = (("et", "en"), ("et", "fi"), ("et", "hu"), ("fi", "en"), ("fi", "hu"), ("hu", "en"))


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
    lemmatisers = {language: lemmatiser(language, lemmatiser_of(language)) for language in frame["language"].unique()}
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


def lemmatiser_means(dialogues: Sequence[Dialogue], names: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """What a choice of lemmatiser does to the metrics of whole dialogues.

    Args:
        dialogues: see `measure`.
        names: the lemmatisers to try in each language; other languages are left out.

    Returns:
        One row a language, lemmatiser and model: n_dialogues, ttr, mattr, self_bleu (means).
    """
    rows = []
    for language, tried in names.items():
        own = [dialogue for dialogue in dialogues if dialogue.language == language and len(dialogue.turns) > 1]
        frame = pd.DataFrame({"language": language, "model": [dialogue.model for dialogue in own]})
        for name in tried:
            _measure_granularity(frame, own, {language: lemmatiser(language, name)}, "whole")
            groups = frame.groupby("model")[["ttr_whole", "mattr_whole", "self_bleu_whole"]]
            means = groups.mean().rename(columns=lambda column: column.removesuffix("_whole"))
            means.insert(0, "n_dialogues", groups.size())
            rows.append(means.reset_index().assign(language=language, lemmatiser=name))
    columns = ["language", "lemmatiser", "model", "n_dialogues", "ttr", "mattr", "self_bleu"]
    return pd.concat(rows, ignore_index=True)[columns].round(6)


def _language_shares(dialogue: Dialogue) -> tuple[float, float]:
    """Share of turns that py3langid takes for the dialogue's language, and for English; NaN without turns."""
    import py3langid

    found = [py3langid.classify(turn.text)[0] for turn in dialogue.turns]
    return (found.count(dialogue.language) / len(found), found.count("en") / len(found)) if found else (np.nan, np.nan)


def read_metrics(
    path: str | Path = DATA / "dialogue_metrics.csv", similarities: str | Path = DATA / "dialogue_similarity.csv"
) -> pd.DataFrame:
    """What `measure` and `similarity.measure` found on the released dialogues, as kept in data/.

    Raises:
        Problem: a file is missing or unreadable, or lacks a column.
    """
    key = ["language", "model", "dialogue"]
    described = (*key, "draw", "n_turns", "share_right_language", "share_english")
    metrics = read_committed(path, (*described, "n_tokens_whole", *METRICS.values())).astype({"draw": "Int64"})
    return metrics.merge(read_committed(similarities, (*key, "similarity")), on=key, how="left", validate="1:1")


def read_as_published(path: str | Path = DATA / "as_published_metrics.csv") -> pd.DataFrame:
    """What `as_published.metrics` found on the released dialogues, as kept in data/as_published_metrics.csv.

    Raises:
        Problem: the file is missing or unreadable, or lacks a column.
    """
    return read_committed(path, ("language", "model", "n", "ttr", "mattr", *list(METRICS.values())[2:]))


def read_lemmatiser_means(path: str | Path = DATA / "lemmatiser_means.csv") -> pd.DataFrame:
    """What `lemmatiser_means` found on the released dialogues, as kept in data/lemmatiser_means.csv.

    Raises:
        Problem: the file is missing or unreadable, or lacks a column.
    """
    return read_committed(path, ("language", "lemmatiser", "model", "ttr", "mattr", "self_bleu"))


def read_cross_language_similarity(path: str | Path = DATA / "cross_language_similarity.csv") -> pd.DataFrame:
    """What `similarity.across_languages` found on the released dialogues, as kept in data/.

    Raises:
        Problem: the file is missing or unreadable, or lacks a column.
    """
    return read_committed(path, ("first", "second", "model", "pairs", "same_draw", "other_draw", "auc"))


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
        their names in `SURFACE`, with TTR_sd, MATTR_sd and similarity_sd (standard deviation over dialogues, n − 1 in
        the denominator), share_right_language (mean), mostly_english (share of dialogues at least half of whose turns
        are English).
    """
    rows = metrics[metrics["n_turns"] >= 2]
    values = pd.DataFrame(
        {
            "language": pd.Categorical(rows["language"], _ordered(rows["language"], LANGUAGES)),
            "model": rows["model"],
            "n_tokens": rows["n_tokens_whole"],
            "share_under_window": rows["n_tokens_whole"] < 100,
            **{name: rows[column] for name, column in SURFACE.items()},
            "share_right_language": rows["share_right_language"],
            "mostly_english": rows["share_english"] >= 0.5,
        }
    )
    groups = values.groupby(["language", "model"], observed=True)
    means = groups.mean().reset_index().astype({"language": str})
    means.insert(2, "n_dialogues", groups.size().to_numpy())
    for name in WITH_SD:
        means.insert(means.columns.get_loc(name) + 1, f"{name}_sd", groups[name].std().to_numpy())
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
        metric: key of `SURFACE`.

    Raises:
        Problem: the metric is not known.
    """
    if metric not in SURFACE:
        raise Problem("automatic metric", f"{metric!r} is not known", f"use one of {', '.join(SURFACE)}")
    names = models(metrics)
    columns = metrics["draw"].fillna(metrics["dialogue"]).astype(int)
    matrices = {}
    for language in _ordered(metrics["language"], LANGUAGES):
        rows = metrics["language"] == language
        matrix = np.full((len(names), columns.max() + 1), np.nan)
        matrix[metrics.loc[rows, "model"].map(names.index), columns[rows]] = metrics.loc[rows, SURFACE[metric]]
        matrices[language] = matrix
    return matrices


def models(metrics: pd.DataFrame) -> list[str]:
    """The models in `metrics`: paper B's first, by name."""
    return _ordered(metrics["model"], sorted(MODELS.values()))


def paired(metrics: pd.DataFrame, first: str, second: str) -> bool:
    """Whether the columns of two languages' matrices are the same draws of the generation parameters."""
    return bool(metrics.loc[metrics["language"].isin([first, second]), "draw"].notna().all())


def generated_dialogues(dialogues: pd.DataFrame) -> list[Dialogue]:
    """A run's own dialogues, as `measure` takes them; those without turns are left out.

    Args:
        dialogues: rows of `dialogues.generate_dialogues` of any number of generators.
    """
    kept = dialogues[dialogues["outcome"] == Outcome.OK]
    position = kept.groupby(["language", "generator"]).cumcount()
    return [
        Dialogue(
            row["language"],
            row["generator"],
            int(index),
            turns_from_json(row["turns"]),
            {name: row[name] for name in (*PARAMETERS, "n_messages", "n_agents")},
            row["dialogue_id"],
        )
        for index, row in zip(position, kept.to_dict("records"), strict=True)
    ]


def measure_generated(dialogues: pd.DataFrame, encode: Encode) -> pd.DataFrame:
    """All metrics of a run's own dialogues, similarity included, paired by the draw they were made from.

    Args:
        dialogues: as for `generated_dialogues`.
        encode: texts to unit vectors.

    Returns:
        as `read_metrics`.
    """
    own = generated_dialogues(dialogues)
    numbers = {name: number for number, name in enumerate(sorted(dialogues["dialogue_id"].unique()))}
    metrics = measure(own).assign(draw=pd.array([numbers[d.dialogue_id] for d in own], dtype="Int64"))
    return metrics.assign(similarity=similarity.measure(own, similarity.embed(own, encode))["similarity"])
