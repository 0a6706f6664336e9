"""Empathy profiles and their consistency across languages (paper A §3.2)."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd

from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.prompts import MECHANISMS

SCORABLE = (Outcome.OK, Outcome.TRUNCATED)


def profiles_table(replies: pd.DataFrame, classifier) -> pd.DataFrame:
    """The profile of each reply that has a text; the others keep their outcome and have none.

    Args:
        replies: prompt_id, language, english, outcome of one model.
        classifier: has ``profiles`` and ``probabilities``.

    Returns:
        prompt_id, language, outcome, ER, IP, EX (0 or 1, missing without a text), p_ER, p_IP, p_EX.
    """
    out = replies[["prompt_id", "language", "outcome"]].reset_index(drop=True)
    with_text = out["outcome"].isin(SCORABLE).to_numpy()
    texts = list(replies["english"].to_numpy()[with_text])
    values = np.full((len(out), 6), np.nan)
    if texts:
        values[with_text] = np.hstack([classifier.profiles(texts), classifier.probabilities(texts)])
    for i, name in enumerate([*MECHANISMS, *(f"p_{m}" for m in MECHANISMS)]):
        out[name] = values[:, i]
    return out


def consistency_table(profiles: pd.DataFrame, excluded: Collection[str] = ("error",)) -> pd.DataFrame:
    """E_Emp for each prompt and language of one model: 1 if the profile equals the English one, else 0.

    A reply without a text scores 0 unless its outcome is in ``excluded``; without an English profile there is nothing
    to compare with, and the prompt is left out.

    Returns:
        prompt_id, language, outcome, consistent (1, 0 or missing), same_ER, same_IP, same_EX, reason.
    """
    english = profiles[profiles["language"] == "en"].set_index("prompt_id")[list(MECHANISMS)]
    out = profiles[profiles["language"] != "en"].reset_index(drop=True)
    reference = english.reindex(out["prompt_id"]).to_numpy(float)
    mine = out[list(MECHANISMS)].to_numpy(float)
    has_english, has_own = ~np.isnan(reference).any(1), ~np.isnan(mine).any(1)
    left_out = out["outcome"].isin(list(excluded)).to_numpy() | ~has_english
    same = np.where(has_own[:, None], mine == reference, False).astype(float)
    consistent = np.where(left_out, np.nan, same.all(1))
    reason = np.select([~has_english, left_out, ~has_own], ["no English reply", "excluded outcome", "scored 0"], "")
    columns = {f"same_{m}": np.where(left_out, np.nan, same[:, i]) for i, m in enumerate(MECHANISMS)}
    return out[["prompt_id", "language", "outcome"]].assign(consistent=consistent, **columns, reason=reason)


def agreement_by_mechanism(profiles: pd.DataFrame) -> pd.DataFrame:
    """Agreement of translated with English profiles, one mechanism at a time, and corrected for chance.

    Args:
        profiles: rows of `profiles_table` of several models with a column ``model``.

    Returns:
        model, mechanism, n (pairs of replies that both have a text), agreement, kappa (Cohen; missing where one side
        never varies), english_rate, other_rate (share with the mechanism).
    """
    from xlc_utils.statistics.agreement import cohen

    rows = []
    for model, own in profiles.groupby("model", sort=False):
        english = own[own["language"] == "en"].set_index("prompt_id")
        other = own[own["language"] != "en"]
        for mechanism in MECHANISMS:
            pairs = np.column_stack([english[mechanism].reindex(other["prompt_id"]), other[mechanism]]).astype(float)
            pairs = pairs[~np.isnan(pairs).any(1)]
            kappa = cohen(pairs).value if len(pairs) else np.nan
            rates = pairs.mean(0) if len(pairs) else (np.nan, np.nan)
            rows.append(
                {
                    "model": model,
                    "mechanism": mechanism,
                    "n": len(pairs),
                    "agreement": (pairs[:, 0] == pairs[:, 1]).mean() if len(pairs) else np.nan,
                    "kappa": kappa,
                    "english_rate": rates[0],
                    "other_rate": rates[1],
                }
            )
    return pd.DataFrame(rows)


def against_truth(profiles: pd.DataFrame, known: dict[str, dict]) -> pd.DataFrame:
    """The classifier's profiles of the written replies beside those that were written.

    Args:
        profiles: rows of `profiles_table` of the model ``known-answers``.
        known: `KnownReply` by language and prompt id, English included.

    Returns:
        language, n, accuracy_ER, accuracy_IP, accuracy_EX, consistency_measured, consistency_true.
    """
    rows = []
    english = profiles[profiles["language"] == "en"].set_index("prompt_id")[list(MECHANISMS)]
    for language, own in profiles.groupby("language", sort=False):
        own = own[own["prompt_id"].isin(list(known.get(language, {}))) & own["ER"].notna()]
        if own.empty:
            continue
        truth = np.array([known[language][i].bits for i in own["prompt_id"]])
        seen = own[list(MECHANISMS)].to_numpy(int)
        reference = np.array([known["en"][i].bits for i in own["prompt_id"]])
        measured = (seen == english.loc[own["prompt_id"]].to_numpy()).all(1)
        accuracy = {f"accuracy_{m}": (seen[:, i] == truth[:, i]).mean() for i, m in enumerate(MECHANISMS)}
        rows.append(
            {
                "language": language,
                "n": len(own),
                **accuracy,
                "consistency_measured": measured.mean(),
                "consistency_true": (truth == reference).all(1).mean(),
            }
        )
    return pd.DataFrame(rows)
