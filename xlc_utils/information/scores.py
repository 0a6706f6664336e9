"""Precision, recall and F of information (paper A §3.1), with what could not be scored typed and counted."""

from __future__ import annotations

import numpy as np
import pandas as pd

from xlc_utils.evaluation.rules import NO_CLAIMS, Rules, english_outcomes
from xlc_utils.information import factscore
from xlc_utils.registry.outcomes import WITH_TEXT, Outcome
from xlc_utils.statistics.intervals import f_score

RULES = Rules()
# Reasons for which a response scores 0 instead of being left out.
ZERO = ("scored 0", "no claims: scored 0")


def claims_table(answers: pd.DataFrame, extractor, rules: Rules = RULES) -> pd.DataFrame:
    """The claims of each answer whose text is scored.

    Args:
        answers: one row a response: prompt_id, language, english (its text in English), outcome.
        extractor: `claims.SentenceClaims` or `claims.ModelClaims`.
        rules: which outcomes have a text that is scored.

    Returns:
        One row a claim: prompt_id, language, claim_no, claim, outcome; an answer that yields none has one row with an
        empty claim and the reason as outcome.
    """
    scorable = answers[rules.reads(answers["outcome"])]
    rows = []
    for (_, answer), found in zip(scorable.iterrows(), extractor.extract(list(scorable["english"])), strict=True):
        who = {"prompt_id": answer["prompt_id"], "language": answer["language"]}
        if not found.claims:
            rows.append({**who, "claim_no": 0, "claim": "", "outcome": str(found.outcome)})
        rows += [{**who, "claim_no": i, "claim": c, "outcome": "ok"} for i, c in enumerate(found.claims, 1)]
    return pd.DataFrame(rows, columns=["prompt_id", "language", "claim_no", "claim", "outcome"])


def pairs_to_verify(claims: pd.DataFrame, answers: pd.DataFrame, rules: Rules = RULES) -> pd.DataFrame:
    """Claim and reference of every verdict that is needed.

    Precision verifies the claims of r̂_ℓ(x) against r_en(x); recall those of r_en(x) against r̂_ℓ(x).

    Returns:
        prompt_id, language, direction, claim_no, claim, reference, sorted so that equal references follow each other.
    """
    texts = answers[rules.reads(answers["outcome"])].set_index(["prompt_id", "language"])["english"]
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
    about = (pairs["prompt_id"] + " " + pairs["language"] + " " + pairs["direction"]).tolist()
    verdicts = verifier.verdicts(list(pairs["claim"]), list(pairs["reference"]), about)
    return pairs.drop(columns="reference").assign(
        verifier=verifier.name,
        score=[v.score for v in verdicts],
        supported=[v.supported for v in verdicts],
        outcome=[str(v.outcome) for v in verdicts],
        detail=[v.detail for v in verdicts],
    )


def with_abstentions(answers: pd.DataFrame, detection: str) -> pd.DataFrame:
    """``answers`` with the outcome ``refused`` where FActScore's detection ("generic", or "none") says so."""
    if detection == "none":
        return answers
    abstains = answers["english"].map(factscore.abstains) & answers["outcome"].isin(WITH_TEXT)
    return answers.assign(outcome=answers["outcome"].mask(abstains, str(Outcome.REFUSED)))


def prompt_scores(
    claims: pd.DataFrame, verdicts: pd.DataFrame, answers: pd.DataFrame, rules: Rules = RULES, gamma: float = 0
) -> pd.DataFrame:
    """Precision and recall of each prompt and language of one model.

    An answer that states nothing (its claims are ``empty``) scores 0, or is left out when ``no_claims`` is excluded.
    When the *English* answer is missing or states nothing there is nothing to compare with, and the prompt is left out
    for every language. A verdict that is not ok counts as neither.

    Args:
        claims: rows of `claims_table`.
        verdicts: rows of `verdicts_table`.
        answers: rows of the model's responses, English included: prompt_id, language, outcome.
        rules: for responses that are not ok, and for those without claims.
        gamma: of FActScore's length penalty on precision and on recall, each by its own claims; 0 for none.

    Returns:
        prompt_id, language, outcome (the response's), precision, recall, f, claims_precision, claims_recall (verdicts
        used), scored (bool), reason (why it is not scored from its text; empty otherwise).
    """
    ok = verdicts[verdicts["outcome"] == "ok"]
    means = ok.groupby(["prompt_id", "language", "direction"])["supported"].agg(["mean", "size"]).unstack("direction")
    out = answers[answers["language"] != "en"][["prompt_id", "language", "outcome"]].reset_index(drop=True)
    keys = pd.MultiIndex.from_frame(out[["prompt_id", "language"]])
    for direction in ("precision", "recall"):
        for stat, name in (("mean", direction), ("size", f"claims_{direction}")):
            column = (stat, direction)
            out[name] = means[column].reindex(keys).to_numpy(float) if column in means else np.nan
        out[direction] *= factscore.length_penalty(out[f"claims_{direction}"], gamma)
    out["reason"] = _reasons(out, claims, answers, rules)
    zero = out["reason"].isin(ZERO)
    out.loc[zero, ["precision", "recall"]] = 0.0
    out.loc[~zero & (out["reason"] != ""), ["precision", "recall"]] = np.nan
    out["scored"] = out["precision"].notna() & out["recall"].notna()
    out.loc[~out["scored"] & (out["reason"] == ""), "reason"] = "no verdict"
    out["f"] = f_score(out["precision"].to_numpy(), out["recall"].to_numpy())
    return out


def _reasons(out: pd.DataFrame, claims: pd.DataFrame, answers: pd.DataFrame, rules: Rules) -> np.ndarray:
    reason = rules.reasons(out["outcome"], english_outcomes(answers, out["prompt_id"]))
    nothing = claims[claims["outcome"] == Outcome.EMPTY].set_index(["prompt_id", "language"]).index
    states_nothing = pd.MultiIndex.from_frame(out[["prompt_id", "language"]]).isin(nothing)
    english_states_nothing = pd.MultiIndex.from_product([out["prompt_id"], ["en"]]).isin(nothing)
    read = reason == ""
    reason[read & states_nothing] = "no claims: left out" if NO_CLAIMS in rules.excluded else "no claims: scored 0"
    reason[read & english_states_nothing] = "no English claims"
    return reason


def evaluate_answers(answers: pd.DataFrame, extractor, verifier, rules: Rules = RULES, gamma: float = 0):
    """Claims, verdicts and scores of one model's answers: the three item-level tables of notebook 04.

    Args:
        answers: prompt_id, language, english, outcome; English answers included.
        extractor, verifier: see `claims` and `verdicts`.
        rules, gamma: see `prompt_scores`.
    """
    claims = claims_table(answers, extractor, rules)
    verdicts = verdicts_table(pairs_to_verify(claims, answers, rules), verifier)
    return claims, verdicts, prompt_scores(claims, verdicts, answers, rules, gamma)
