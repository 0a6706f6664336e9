"""How good an evaluator is, on answers of which it is known what they state.

Topics are halved: on the development half (the first question of each category) verifiers are fitted, thresholds set
and the best verifier chosen; all that is reported about them is from the other half.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from xlc_utils.evaluation.evaluators import Evaluator
from xlc_utils.registry.outcomes import Outcome, with_outcomes
from xlc_utils.registry.prompts import Facts, KnownAnswer
from xlc_utils.statistics.intervals import bootstrap_weights, f_score


def is_development(prompt_id: str) -> bool:
    """Whether a question with known answers may be used for fitting: the first one of each category."""
    return prompt_id.endswith("-01")


def known_pairs(
    known: dict[str, dict[str, KnownAnswer]],
    facts: dict[str, Facts],
    translations: pd.DataFrame,
    sentences: pd.DataFrame,
) -> pd.DataFrame:
    """Claims of known truth, translated and not.

    Args:
        known: the answers by language and prompt id, English included.
        facts: by prompt id.
        translations: responses of ``known-answers``: prompt_id, language, english.
        sentences: their sentences: prompt_id, language, source, text (the translation).

    Returns:
        prompt_id, language, direction (precision | recall), text (translated | untranslated), states, claim,
        reference, supported. "untranslated" puts the facts' English wording in place of the translation, so that what
        is left of the error there is the evaluator's own.
    """
    english = translations[translations["language"] == "en"].set_index("prompt_id")["english"]
    whole = translations.set_index(["prompt_id", "language"])["english"]
    at_sentence = ["prompt_id", "language", "source"]
    # A sentence whose call failed has an empty text, which claims nothing.
    in_english = sentences[sentences["text"] != ""].drop_duplicates(at_sentence).set_index(at_sentence)["text"]
    rows = []
    for language in sorted(set(known) - {"en"}):
        for prompt_id, answer in known[language].items():
            if prompt_id not in english.index or (prompt_id, language) not in whole.index:
                continue
            stated, fact = set(answer.states), facts[prompt_id]
            plain = " ".join(fact.text(s) for s in answer.states)
            for s in answer.sentences:
                at = (prompt_id, language, s.text)
                base = {
                    "prompt_id": prompt_id,
                    "language": language,
                    "direction": "precision",
                    "states": s.states,
                    "reference": english[prompt_id],
                    "supported": s.states in fact.facts,
                }
                if at in in_english.index:
                    rows.append({**base, "text": "translated", "claim": in_english[at]})
                rows.append({**base, "text": "untranslated", "claim": fact.text(s.states)})
            for s in known["en"][prompt_id].sentences:
                base = {
                    "prompt_id": prompt_id,
                    "language": language,
                    "direction": "recall",
                    "states": s.states,
                    "claim": s.text,
                    "supported": s.states in stated,
                }
                rows.append({**base, "text": "translated", "reference": whole[prompt_id, language]})
                rows.append({**base, "text": "untranslated", "reference": plain})
    columns = ["prompt_id", "language", "direction", "text", "states", "claim", "reference", "supported"]
    return pd.DataFrame(rows, columns=columns)


def without_claim(pairs: pd.DataFrame) -> tuple[int, int]:
    """How many known sentences of translated answers have no translated claim, and how many sentences those have.

    A sentence is not found where the splitter cut the answer otherwise, and claims nothing where its call failed.

    Args:
        pairs: rows of `known_pairs`.
    """
    translated = pairs.loc[pairs["text"] == "translated", ["prompt_id", "language"]].drop_duplicates()
    sentences = pairs[pairs["direction"] == "precision"].merge(translated)
    known, found = ((sentences["text"] == text).sum() for text in ("untranslated", "translated"))
    return int(known - found), int(known)


def auc(scores: np.ndarray, supported: np.ndarray) -> float:
    """Area under the ROC curve; NaN when only one class is there."""
    from sklearn.metrics import roc_auc_score

    known = ~np.isnan(scores)
    if len(set(np.asarray(supported)[known])) < 2:
        return float("nan")
    return float(roc_auc_score(np.asarray(supported)[known], scores[known]))


def auc_interval(pairs: pd.DataFrame, samples: int, seed: int) -> tuple[float, float]:
    """95% percentile interval of the AUC, resampling questions, since the claims of one question hang together.

    Of fewer than two questions with scores nothing is known about the spread: both bounds are NaN.
    """
    scored = pairs.dropna(subset=["score"])
    levels, level = np.unique(scored["score"].to_numpy(float), return_inverse=True)
    questions, question = np.unique(scored["prompt_id"].to_numpy(), return_inverse=True)
    if len(questions) < 2:
        return float("nan"), float("nan")
    yes, no = np.zeros((2, len(questions), len(levels)))
    supported = scored["supported"].to_numpy(bool)
    for counts, part in ((yes, supported), (no, ~supported)):
        np.add.at(counts, (question[part], level[part]), 1)
    # By pair of questions: how often a supported claim of the one is above an unsupported one of the other.
    above = yes @ (no.cumsum(axis=1) - no / 2).T
    drawn = bootstrap_weights(len(questions), samples, seed)
    of_pairs = (drawn @ yes.sum(axis=1)) * (drawn @ no.sum(axis=1))
    draws = ((drawn @ above) * drawn).sum(axis=1)[of_pairs > 0] / of_pairs[of_pairs > 0]
    low, high = np.percentile(draws, [2.5, 97.5]) if len(draws) else (np.nan, np.nan)
    return float(low), float(high)


def answer_errors(pairs: pd.DataFrame) -> pd.DataFrame:
    """Measured against true precision, recall and F of each known answer.

    Args:
        pairs: rows of `known_pairs` with a column ``verdict``, missing where there is none: those claims are left out
            of what is measured, as `scores.prompt_scores` leaves them out.

    Returns:
        prompt_id, language, text, and for precision, recall and f: true_*, measured_*, error_* (measured - true), of
        which the last two are missing where no claim has a verdict.
    """
    keys = ["prompt_id", "language", "text"]
    values = pairs.astype({"supported": float, "verdict": float})
    means = values.groupby([*keys, "direction"])[["supported", "verdict"]].mean().unstack("direction")
    out = pd.DataFrame(index=means.index)
    for kind, column in (("true", "supported"), ("measured", "verdict")):
        for direction in ("precision", "recall"):
            out[f"{kind}_{direction}"] = means[column][direction]
        out[f"{kind}_f"] = f_score(out[f"{kind}_precision"], out[f"{kind}_recall"])
    for name in ("precision", "recall", "f"):
        out[f"error_{name}"] = out[f"measured_{name}"] - out[f"true_{name}"]
    return out.reset_index()


def error_shares(errors: pd.DataFrame) -> pd.DataFrame:
    """How much of the error of F is the evaluator's own, and how much comes with the translation.

    The evaluator's own is its error on the untranslated wording of the same facts; the rest is the translation's. The
    shares are of mean absolute errors. Where translated answers have the smaller error, the translation happens to hide
    some, and there are no shares.

    Args:
        errors: rows of `answer_errors`; only answers that are there both translated and untranslated are compared.

    Returns:
        One row a language and one for all: language, answers, error_untranslated, error_translated (mean absolute
        error of F), evaluation, translation (shares of error_translated; missing where that is 0 or the smaller).
    """
    wide = errors.pivot(index=["prompt_id", "language"], columns="text", values="error_f").abs()
    wide = wide.reindex(columns=["untranslated", "translated"]).dropna().reset_index()
    parts = [*wide.groupby("language", sort=True), *([("all", wide)] if len(wide) else [])]
    rows = []
    for language, part in parts:
        own, total = part["untranslated"].mean(), part["translated"].mean()
        share = own / total if 0 < total >= own else np.nan
        row = {"language": language, "answers": len(part), "error_untranslated": own, "error_translated": total}
        rows.append({**row, "evaluation": share, "translation": 1 - share})
    columns = ["language", "answers", "error_untranslated", "error_translated", "evaluation", "translation"]
    return pd.DataFrame(rows, columns=columns)


def against_truth(answers: pd.DataFrame, evaluators: Sequence[Evaluator]) -> pd.DataFrame:
    """How well each evaluator ranks known answers by what they truly share with the English one.

    Args:
        answers: rows of `known_texts`.
        evaluators: of any kind; of one with precision and recall F is taken.

    Returns:
        One row an evaluator and text (translated | untranslated): evaluator, text, answers (scored), spearman (its
        score with true F), mean (its score), true_f (mean). A score that is no F may rank well and yet be far from it.
    """
    from scipy.stats import spearmanr

    rows = []
    for evaluator in evaluators:
        found = evaluator.compare(list(answers["answer"]), list(answers["english"]))
        score = f_score(*found.T) if found.shape[1] == 2 else found[:, 0]
        for text, part in answers.assign(score=score).dropna(subset=["score"]).groupby("text", sort=True):
            varies = part["score"].nunique() > 1 and part["true_f"].nunique() > 1
            rank = spearmanr(part["score"], part["true_f"]).statistic if varies else np.nan
            means = {"spearman": rank, "mean": part["score"].mean(), "true_f": part["true_f"].mean()}
            rows.append({"evaluator": evaluator.name, "text": text, "answers": len(part), **means})
    return pd.DataFrame(rows, columns=["evaluator", "text", "answers", "spearman", "mean", "true_f"])


def known_texts(pairs: pd.DataFrame) -> pd.DataFrame:
    """Whole known answers and their true F, of `known_pairs`: prompt_id, language, text, answer, english, true_f."""
    keys = ["prompt_id", "language", "text"]
    by = pairs.groupby([*keys, "direction"])
    true, reference = by["supported"].mean().unstack(), by["reference"].first().unstack()
    # Recall verifies against the answer, precision against the English one.
    out = pd.DataFrame({"answer": reference["recall"], "english": reference["precision"]})
    return out.assign(true_f=f_score(true["precision"], true["recall"])).dropna().reset_index()


NOTE = (
    "translated: claims and references as the run's translators gave them; untranslated: the same facts in their "
    "English wording. 95% intervals over questions; a single one has none. mae: mean absolute error of precision, "
    "recall and F of an answer. claims by outcome of their verdict; scored: those with a verdict, the others count "
    "nowhere."
)


def answer_keys(pairs: pd.DataFrame) -> list[str]:
    """Which answer, text and direction each claim belongs to, for verifiers that take an answer's claims at once."""
    return pairs[["prompt_id", "language", "text", "direction"]].agg(" ".join, axis=1).tolist() if len(pairs) else []


def units_table(pairs: pd.DataFrame, by_unit: dict) -> pd.DataFrame:
    """One call a claim against one call an answer, on claims of known truth.

    Args:
        pairs: rows of `known_pairs`.
        by_unit: the same model as verifier by claim and by answer: {"claim": …, "answer": …}.

    Returns:
        One row a unit: unit, claims, unparsed (any verdict that is not ok), auc, accuracy (a verdict that is not ok is
        wrong), and agreement and kappa (Cohen's) of the two where both have a verdict.
    """
    from xlc_utils.statistics.agreement import cohen

    found = {unit: judged(pairs, verifier) for unit, verifier in by_unit.items()}
    ok = {unit: f["verdict"].notna().to_numpy() for unit, f in found.items()}
    both = np.logical_and.reduce(list(ok.values()))
    verdicts = np.column_stack([f["verdict"].to_numpy(float) for f in found.values()])[both]
    shared = {
        "agreement": (verdicts[:, 0] == verdicts[:, 1]).mean() if len(verdicts) else np.nan,
        "kappa": cohen(verdicts).value if len(verdicts) else np.nan,
    }
    rows = []
    for unit, f in found.items():
        truth = f["supported"].to_numpy(bool)
        own = {"claims": len(f), "unparsed": int((~ok[unit]).sum()), "auc": auc(f["score"].to_numpy(), truth)}
        right = f["verdict"].to_numpy() == truth  # never of a missing one
        rows.append({"unit": unit, **own, "accuracy": right.mean(), **shared})
    return pd.DataFrame(rows)


def judged(pairs: pd.DataFrame, verifier) -> pd.DataFrame:
    """``pairs`` with columns score, verdict (1 or 0; both missing where there is none) and the verdict's outcome."""
    found = verifier.verdicts(list(pairs["claim"]), list(pairs["reference"]), answer_keys(pairs))
    verdicts = [float(v.supported) if v.outcome is Outcome.OK else np.nan for v in found]
    return pairs.assign(
        score=np.array([v.score for v in found], float),
        verdict=np.array(verdicts, float),
        outcome=[str(v.outcome) for v in found],
    )


def ruler_table(held_out: pd.DataFrame, verifiers: dict, samples: int, seed: int) -> pd.DataFrame:
    """Each verifier measured on claims that neither it nor its threshold has seen.

    Args:
        held_out: rows of `known_pairs` that are not of the development half.
        verifiers: by name.
        samples, seed: of the bootstrap over questions.

    Returns:
        One row a verifier and text (translated | untranslated): verifier, text, auc, auc_low, auc_high, mae_precision,
        mae_recall, mae_f, bias_f; then claims, the outcomes of their verdicts that occur, which sum to it, and scored:
        the claims with a verdict, which all measures are of.
    """
    rows, items = [], []
    for name, verifier in verifiers.items():
        found = judged(held_out, verifier).assign(verifier=name)
        items.append(found.assign(scored=found["verdict"].notna()))
        for text, part in found.groupby("text", sort=True):
            low, high = auc_interval(part, samples, seed)
            errors = answer_errors(part)
            mae = {f"mae_{n}": errors[f"error_{n}"].abs().mean() for n in ("precision", "recall", "f")}
            rows.append(
                {
                    "verifier": name,
                    "text": text,
                    "auc": auc(part["score"].to_numpy(), part["supported"].to_numpy(bool)),
                    "auc_low": low,
                    "auc_high": high,
                    **mae,
                    "bias_f": errors["error_f"].mean(),
                }
            )
    counted = with_outcomes(pd.DataFrame(rows), pd.concat(items), on=["verifier", "text"])
    return counted.rename(columns={"n": "claims"})
