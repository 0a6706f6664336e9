"""A judge against people: how well its scores follow theirs, beside how well theirs follow one another's.

Paper B, section 3.3, compares means only. The people are the native speakers who rated 120 Estonian dialogues of one
generator (`xlc_utils.judges.human`); a judge reads the same dialogues.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from xlc_utils.judges import human
from xlc_utils.judges.dialogues import turns_to_json
from xlc_utils.judges.released import Dialogue
from xlc_utils.judges.rubric import SCALES
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.statistics.stability import spearman_interval

#: Which score of the judge answers which question put to people.
SCORES = {"coherence": "C", "fluency": "F"}


def annotated_frame(dialogues: list[Dialogue], ratings: pd.DataFrame, n: int) -> pd.DataFrame:
    """The first n rated dialogues, by id, as `rubric.judge_dialogues` takes them.

    Args:
        dialogues: `released.read_annotated`.
        ratings: `human.read_ratings`; dialogues that nobody rated are left out.
        n: how many.
    """
    rated = set(ratings["dialogue"])
    chosen = sorted((d for d in dialogues if d.dialogue_id in rated), key=lambda d: d.dialogue_id)[:n]
    rows = [(d.dialogue_id, d.language, d.model, turns_to_json(d.turns), str(Outcome.OK)) for d in chosen]
    return pd.DataFrame(rows, columns=["dialogue_id", "language", "generator", "turns", "outcome"])


def judge_against_people(scores: pd.DataFrame, ratings: pd.DataFrame, samples: int, seed: int) -> pd.DataFrame:
    """Spearman correlation of each judge with the mean rating of people, and of each annotator with the others' mean.

    A judge need not agree with people better than people agree: read its row against theirs.

    Args:
        scores: rows of `rubric.judge_dialogues` of the annotated dialogues.
        ratings: `human.read_ratings`.
        samples, seed: of the bootstrap over dialogues.

    Returns:
        question, rater (a judge or an annotator), n (dialogues), rho, low, high (95% percentile interval), mean, of
        (top of the rater's scale), people (the others' mean), people_of, unread (dialogues without a score).
    """
    rows = []
    for question, score in SCORES.items():
        people = ratings[ratings["question"] == question].pivot(index="dialogue", columns="annotator", values="value")
        people = people.reindex(columns=human.KEY_ANNOTATORS)
        top = 1 if question == "coherence" else 3
        for judge, own in scores.groupby("judge", sort=False):
            given = own.set_index("dialogue_id")[score].reindex(people.index)
            asked = int(own["dialogue_id"].isin(people.index).sum())
            rows.append(_row(question, judge, given, people.mean(axis=1), (SCALES[score], top), asked, samples, seed))
        for annotator in human.KEY_ANNOTATORS:
            others = people.drop(columns=annotator).mean(axis=1)
            asked = int(people[annotator].notna().sum())
            rows.append(_row(question, annotator, people[annotator], others, (top, top), asked, samples, seed))
    return pd.DataFrame(rows)


def _row(
    question: str,
    rater: str,
    given: pd.Series,
    others: pd.Series,
    tops: tuple[int, int],
    asked: int,
    samples: int,
    seed: int,
) -> dict:
    found = spearman_interval(given.to_numpy(float), others.to_numpy(float), seed=seed, samples=samples)
    shared = given.notna() & others.notna()
    return {
        "question": question,
        "rater": rater,
        "n": int(found.n),
        "rho": float(found.estimate),
        "low": float(found.low),
        "high": float(found.high),
        "mean": float(given[shared].mean()) if shared.any() else np.nan,
        "of": tops[0],
        "people": float(others[shared].mean()) if shared.any() else np.nan,
        "people_of": tops[1],
        "unread": asked - int(given.notna().sum()),
    }
