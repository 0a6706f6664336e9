"""Evaluating in the original language: the alternative to paper A's translate-then-evaluate, and its measure.

A multilingual verifier compares claims of one language with a text of another, so nothing is translated. Claims are the
sentences of the answer; the rules that cut English cut the other scripts of the known answers as well.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from xlc_utils.information.evaluator import calibrated, model_verifier
from xlc_utils.information.ruler import answer_errors, auc, is_development
from xlc_utils.information.verdicts import Embedding
from xlc_utils.registry import prompts
from xlc_utils.registry.outcomes import with_outcomes
from xlc_utils.registry.prompts import Facts, KnownAnswer


def original_pairs(known: dict[str, dict[str, KnownAnswer]], facts: dict[str, Facts]) -> pd.DataFrame:
    """Claims of known truth as they were written.

    Args:
        known: the answers by language and prompt id, English included.
        facts: by prompt id.

    Returns:
        The columns of `ruler.known_pairs`, with text "original": claims in the answer's language against the English
        answer (precision), English claims against the answer in its language (recall).
    """
    rows = []
    for language in sorted(set(known) - {"en"}):
        for prompt_id, answer in known[language].items():
            english, whole = known["en"][prompt_id], answer.text()
            base = {"prompt_id": prompt_id, "language": language, "text": "original"}
            precision = {**base, "direction": "precision", "reference": english.text()}
            recall = {**base, "direction": "recall", "reference": whole}
            for s in answer.sentences:
                supported = s.states in facts[prompt_id].facts
                rows.append({**precision, "states": s.states, "claim": s.text, "supported": supported})
            for s in english.sentences:
                supported = s.states in answer.states
                rows.append({**recall, "states": s.states, "claim": s.text, "supported": supported})
    columns = ["prompt_id", "language", "direction", "text", "states", "claim", "reference", "supported"]
    return pd.DataFrame(rows, columns=columns)


def original_pairs_of(run) -> pd.DataFrame:
    """`original_pairs` of the known answers that this run asks for; of all, where none of them is there to set a
    threshold on."""
    known = {c: prompts.known_answers(run.root, c) for c in ["en", *run.params.languages]}
    pairs = original_pairs(known, prompts.facts(run.root))
    if "known-answers" not in run.model_names:
        return pairs
    asked = run.read("translations", "known-answers").query("dimension == 'information'")["prompt_id"]
    own = pairs[pairs["prompt_id"].isin(asked)].reset_index(drop=True)
    return own if own["prompt_id"].map(is_development).any() else pairs


def original_verifier(run, pairs: pd.DataFrame):
    """What `original_language_verifier` names, with its threshold from the development half of ``pairs``."""
    name = run.params.original_language_verifier
    if name in run.models.models:
        return model_verifier(run, name, run.params.verdict_unit)
    return calibrated(Embedding(run.encoder()), pairs[pairs["prompt_id"].map(is_development)])


def beside_translated(translated: pd.DataFrame, original: pd.DataFrame) -> pd.DataFrame:
    """Both ways of evaluating the same known answers, beside the truth.

    Args:
        translated, original: rows of `ruler.judged` (with score and verdict); answers of which only one
            has an F are left out.

    Returns:
        One row a language and one for all: language, answers, and for each way the AUC of its verdicts, the mean
        absolute error of F and its bias (measured − true).
    """
    keys = ["prompt_id", "language"]
    shared = translated[keys].drop_duplicates().merge(original[keys].drop_duplicates())
    if shared.empty:
        return pd.DataFrame(columns=["language", "answers"])
    ways = {"translated": translated.merge(shared), "original": original.merge(shared)}
    errors = {way: answer_errors(part)[[*keys, "error_f"]] for way, part in ways.items()}
    both = errors["translated"].merge(errors["original"], on=keys, suffixes=("_translated", "_original")).dropna()
    rows = []
    for language in [*sorted(both["language"].unique()), *(["all"] if len(both) else [])]:
        own = both[(both["language"] == language) | (language == "all")]
        row = {"language": language, "answers": len(own)}
        for way, part in ways.items():
            claims, error = part.merge(own[keys]), own[f"error_f_{way}"]
            row[f"auc_{way}"] = auc(claims["score"].to_numpy(float), claims["supported"].to_numpy(bool))
            row[f"mae_f_{way}"], row[f"bias_f_{way}"] = error.abs().mean(), error.mean()
        rows.append(row)
    return pd.DataFrame(rows, columns=None if rows else ["language", "answers"])


def in_original(responses: pd.DataFrame) -> pd.DataFrame:
    """Responses with the answer itself where its translation would be read.

    Args:
        responses: rows of ``responses``, not of ``translations``: the outcomes of those are the translator's too.
    """
    return responses.assign(english=responses["text"])


NOTE = (
    "n: responses by outcome, of the translations, which the translator may have changed. scored: those that count; "
    "scored_original: those that count where nothing is translated."
)


def by_language(
    translated: pd.DataFrame, original: pd.DataFrame, scores: pd.DataFrame, original_scores: pd.DataFrame
) -> pd.DataFrame:
    """Consistency of each model and language both ways.

    Args:
        translated, original: rows of `reporting.consistency.by_language`.
        scores, original_scores: rows of `scores.prompt_scores` with a column model, which these are of.

    Returns:
        model, language, translated, original, difference (original − translated), then n, the outcomes of the
        translations, which sum to it, scored and scored_original.
    """
    keys = ["model", "language"]
    both = translated[[*keys, "value"]].merge(original[[*keys, "value"]], on=keys, suffixes=("_t", "_o"))
    both = both.rename(columns={"value_t": "translated", "value_o": "original"})
    both = both.assign(difference=np.subtract(both["original"], both["translated"]))
    count = original_scores.groupby(keys)["scored"].sum().rename("scored_original").reset_index()
    return with_outcomes(both, scores, on=keys).merge(count, on=keys)
