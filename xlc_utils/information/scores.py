"""Precision, recall and F of information (paper A §3.1), with what could not be scored typed and counted."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd

from xlc_utils.registry.outcomes import Outcome

# A response with one of these outcomes has a text that can be scored.
SCORABLE = (Outcome.OK, Outcome.TRUNCATED)


def claims_table(answers: pd.DataFrame, extractor) -> pd.DataFrame:
    """The claims of each scorable answer.

    Args:
        answers: one row a response: prompt_id, language, english (its text in English), outcome.
        extractor: `claims.SentenceClaims` or `claims.ModelClaims`.

    Returns:
        One row a claim: prompt_id, language, claim_no, claim, outcome; an answer that yields none has one row with an
        empty claim and the reason as outcome.
    """
    scorable = answers[answers["outcome"].isin(SCORABLE)]
    rows = []
    for (_, answer), found in zip(scorable.iterrows(), extractor.extract(list(scorable["english"])), strict=True):
        who = {"prompt_id": answer["prompt_id"], "language": answer["language"]}
        if not found.claims:
            rows.append({**who, "claim_no": 0, "claim": "", "outcome": str(found.outcome)})
        rows += [{**who, "claim_no": i, "claim": c, "outcome": "ok"} for i, c in enumerate(found.claims, 1)]
    return pd.DataFrame(rows, columns=["prompt_id", "language", "claim_no", "claim", "outcome"])


def pairs_to_verify(claims: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Claim and reference of every verdict that is needed.

    Precision verifies the claims of r̂_ℓ(x) against r_en(x); recall those of r_en(x) against r̂_ℓ(x).

    Returns:
        prompt_id, language, direction, claim_no, claim, reference, sorted so that equal references follow each other.
    """
    texts = answers[answers["outcome"].isin(SCORABLE)].set_index(["prompt_id", "language"])["english"]
    made = claims[claims["outcome"] == "ok"]
    english, foreign = made[made["language"] == "en"], made[made["language"] != "en"]
    precision = foreign.assign(direction="precision", reference_language="en")
    languages = sorted(set(answers["language"]) - {"en"})
    recall = english.drop(columns="language").merge(pd.DataFrame({"language": languages}), how="cross")
    recall = recall.assign(direction="recall", reference_language=recall["language"])
    pairs = pd.concat([precision, recall], ignore_index=True)
    keys = pd.MultiIndex.from_frame(pairs[["prompt_id", "reference_language"]])
    pairs["reference"] = texts.reindex(keys).to_numpy()
    pairs = pairs[pairs["reference"].notna()]
    order = ["prompt_id", "reference_language", "direction", "language", "claim_no"]
    columns = ["prompt_id", "language", "direction", "claim_no", "claim", "reference"]
    return pairs.sort_values(order)[columns].reset_index(drop=True)


def verdicts_table(pairs: pd.DataFrame, verifier) -> pd.DataFrame:
    """``pairs`` with columns verifier, score, supported, outcome, detail."""
    verdicts = verifier.verdicts(list(pairs["claim"]), list(pairs["reference"]))
    return pairs.drop(columns="reference").assign(
        verifier=verifier.name,
        score=[v.score for v in verdicts],
        supported=[v.supported for v in verdicts],
        outcome=[str(v.outcome) for v in verdicts],
        detail=[v.detail for v in verdicts],
    )


def prompt_scores(
    verdicts: pd.DataFrame, answers: pd.DataFrame, excluded: Collection[str] = ("error",)
) -> pd.DataFrame:
    """Precision and recall of each prompt and language of one model.

    A response without a scorable text scores 0 unless its outcome is in ``excluded``; when the *English* answer is
    missing there is nothing to compare with, and the prompt is left out for every language. A verdict that is not ok
    counts as neither.

    Args:
        verdicts: rows of `verdicts_table`.
        answers: rows of the model's responses, English included: prompt_id, language, outcome.
        excluded: outcomes that are left out instead of scored 0.

    Returns:
        prompt_id, language, outcome (the response's), precision, recall, f, claims_precision, claims_recall (verdicts
        used), scored (bool), reason (why it is not scored, or "scored 0"; empty otherwise).
    """
    ok = verdicts[verdicts["outcome"] == "ok"]
    means = ok.groupby(["prompt_id", "language", "direction"])["supported"].agg(["mean", "size"]).unstack("direction")
    foreign = answers[answers["language"] != "en"][["prompt_id", "language", "outcome"]]
    english = answers[answers["language"] == "en"].set_index("prompt_id")["outcome"]
    keys = pd.MultiIndex.from_frame(foreign[["prompt_id", "language"]])
    out = foreign.reset_index(drop=True)
    for direction in ("precision", "recall"):
        for stat, name in (("mean", direction), ("size", f"claims_{direction}")):
            column = (stat, direction)
            out[name] = means[column].reindex(keys).to_numpy(float) if column in means else np.nan
    zero = ~out["outcome"].isin(SCORABLE)
    has_english = out["prompt_id"].map(english).isin(SCORABLE).to_numpy()
    left_out = out["outcome"].isin(list(excluded)) | ~has_english
    out.loc[zero, ["precision", "recall"]] = 0.0
    out.loc[left_out, ["precision", "recall"]] = np.nan
    out["scored"] = out["precision"].notna() & out["recall"].notna()
    why = {"no English answer": ~has_english, "excluded outcome": left_out, "scored 0": zero}
    out["reason"] = np.select([*why.values(), ~out["scored"]], [*why, "no verdict"], "")
    out["f"] = harmonic_mean(out["precision"], out["recall"])
    return out


def harmonic_mean(precision, recall):
    """2PR / (P + R), and 0 where both are 0."""
    precision, recall = np.asarray(precision, float), np.asarray(recall, float)
    total = precision + recall
    product = 2 * precision * recall
    return np.divide(product, total, out=np.where(np.isnan(total), np.nan, 0.0), where=total > 0)


def score_matrices(
    scores: pd.DataFrame, models: list[str], languages: list[str], prompt_ids: list[str], column: str
) -> np.ndarray:
    """One column of `prompt_scores` of several models, shape (models, languages, prompts), NaN where not scored."""
    wide = scores.pivot(index=["model", "language"], columns="prompt_id", values=column)
    index = pd.MultiIndex.from_product([models, languages])
    shape = (len(models), len(languages), len(prompt_ids))
    return wide.reindex(index=index, columns=prompt_ids).to_numpy(float).reshape(shape)


def evaluate_answers(answers: pd.DataFrame, extractor, verifier, excluded: Collection[str] = ("error",)):
    """Claims, verdicts and scores of one model's answers: the three item-level tables of notebook 04.

    Args:
        answers: prompt_id, language, english, outcome; English answers included.
        extractor, verifier: see `claims` and `verdicts`.
        excluded: see `prompt_scores`.
    """
    claims = claims_table(answers, extractor)
    verdicts = verdicts_table(pairs_to_verify(claims, answers), verifier)
    return claims, verdicts, prompt_scores(verdicts, answers, excluded)
