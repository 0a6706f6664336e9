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
        translations: responses of ``known-answers``: prompt_id, language, english, outcome. An answer whose outcome is
            error lacks a part, so it is no translation of what is known; see `failed_answers`.
        sentences: their sentences: prompt_id, language, source, text (the translation).

    Returns:
        prompt_id, language, direction (precision | recall), text (translated | untranslated), states, claim,
        reference, supported. "untranslated" puts the facts' English wording in place of the translation, so that what
        is left of the error there is the evaluator's own.
    """
    english = translations[translations["language"] == "en"].set_index("prompt_id")["english"]
    whole = translations.set_index(["prompt_id", "language"])["english"]
    failed = set(failed_answers(translations))
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
            translated = (prompt_id, language) not in failed
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
                if translated and at in in_english.index:
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
                if translated:
                    rows.append({**base, "text": "translated", "reference": whole[prompt_id, language]})
                rows.append({**base, "text": "untranslated", "reference": plain})
    columns = ["prompt_id", "language", "direction", "text", "states", "claim", "reference", "supported"]
    return pd.DataFrame(rows, columns=columns)


def failed_answers(translations: pd.DataFrame) -> list[tuple[str, str]]:
    """(prompt_id, language) of the known answers of which a translation call failed, so that a part is missing."""
    failed = translations[translations["outcome"] == Outcome.ERROR]
    return list(zip(failed["prompt_id"], failed["language"], strict=True))


def one_a_question(pairs: pd.DataFrame) -> pd.DataFrame:
    """One known answer a question, for verifiers that take long: the questions of each half take the languages in turn.

    Args:
        pairs: rows of `known_pairs`.

    Returns:
        Those of the rows that are about these answers, translated or not.
    """
    languages = sorted(pairs["language"].unique())
    chosen = set()
    for _, half in pairs.groupby(pairs["prompt_id"].map(is_development)):
        chosen |= {(p, languages[k % len(languages)]) for k, p in enumerate(sorted(half["prompt_id"].unique()))}
    keys = pd.MultiIndex.from_frame(pairs[["prompt_id", "language"]])
    return pairs[keys.isin(chosen)].reset_index(drop=True)


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
    draws = _auc_draws(scored, samples, seed)
    draws = draws[~np.isnan(draws)]
    low, high = np.percentile(draws, [2.5, 97.5]) if len(draws) else (np.nan, np.nan)
    return float(low), float(high)


def _auc_draws(pairs: pd.DataFrame, samples: int, seed: int) -> np.ndarray:
    """Shape (samples,): the AUC of each draw of questions, NaN where only one class is drawn; empty for one question.

    Every score is a number. Equal questions and seed give equal draws, so that two verifiers may be subtracted.
    """
    levels, level = np.unique(pairs["score"].to_numpy(float), return_inverse=True)
    questions, question = np.unique(pairs["prompt_id"].to_numpy(), return_inverse=True)
    if len(questions) < 2:
        return np.empty(0)
    yes, no = np.zeros((2, len(questions), len(levels)))
    supported = pairs["supported"].to_numpy(bool)
    for counts, part in ((yes, supported), (no, ~supported)):
        np.add.at(counts, (question[part], level[part]), 1)
    # By pair of questions: how often a supported claim of the one is above an unsupported one of the other.
    above = yes @ (no.cumsum(axis=1) - no / 2).T
    drawn = bootstrap_weights(len(questions), samples, seed)
    of_pairs = (drawn @ yes.sum(axis=1)) * (drawn @ no.sum(axis=1))
    return np.divide(((drawn @ above) * drawn).sum(axis=1), of_pairs, out=np.full(samples, np.nan), where=of_pairs > 0)


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
        One row an evaluator and text (translated | untranslated): evaluator, text, answers, scored (those with a
        score), and of these spearman (the score with true F), mean (of the score), true_f (mean). A score that is no F
        may rank well and yet be far from it.
    """
    from scipy.stats import spearmanr

    rows = []
    for evaluator in evaluators:
        found = evaluator.compare(list(answers["answer"]), list(answers["english"]))
        score = f_score(*found.T) if found.shape[1] == 2 else found[:, 0]
        for text, whole in answers.assign(score=score).groupby("text", sort=True):
            part = whole.dropna(subset=["score"])
            varies = part["score"].nunique() > 1 and part["true_f"].nunique() > 1
            rank = spearmanr(part["score"], part["true_f"]).statistic if varies else np.nan
            means = {"spearman": rank, "mean": part["score"].mean(), "true_f": part["true_f"].mean()}
            counts = {"answers": len(whole), "scored": len(part)}
            rows.append({"evaluator": evaluator.name, "text": text, **counts, **means})
    return pd.DataFrame(rows, columns=["evaluator", "text", "answers", "scored", "spearman", "mean", "true_f"])


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
    "recall and F of an answer. answers_failed: left out, a part of their translation is missing. claims by outcome of "
    "their verdict; scored: those with a verdict, the others count nowhere."
)


def answer_keys(pairs: pd.DataFrame) -> list[str]:
    """Which answer, text and direction each claim belongs to, for verifiers that take an answer's claims at once."""
    return pairs[["prompt_id", "language", "text", "direction"]].agg(" ".join, axis=1).tolist() if len(pairs) else []


def units_table(pairs: pd.DataFrame, by_unit: dict, samples: int, seed: int) -> pd.DataFrame:
    """One call a claim against one call an answer, on claims of known truth.

    Args:
        pairs: rows of `known_pairs`.
        by_unit: the same model as verifier by claim and by answer: {"claim": …, "answer": …}.
        samples, seed: of the bootstrap over questions.

    Returns:
        One row a unit: unit, auc, auc_low, auc_high, accuracy (a verdict that is not ok is wrong). Then of the two
        together, where both have a verdict: shared (claims), agreement, kappa (Cohen's), and auc_difference (the second
        unit's minus the first's), with difference_low and difference_high. Then claims, the outcomes of their verdicts
        that occur, which sum to it, and scored.
    """
    from xlc_utils.statistics.agreement import cohen

    found = {unit: judged(pairs, verifier) for unit, verifier in by_unit.items()}
    both = np.logical_and.reduce([f["verdict"].notna() for f in found.values()])
    verdicts = np.column_stack([f["verdict"].to_numpy(float) for f in found.values()])[both]
    shared = {
        "shared": len(verdicts),
        "agreement": (verdicts[:, 0] == verdicts[:, 1]).mean() if len(verdicts) else np.nan,
        "kappa": cohen(verdicts).value if len(verdicts) else np.nan,
        **_auc_difference(*(f[both] for f in found.values()), samples, seed),
    }
    rows = []
    for unit, f in found.items():
        truth = f["supported"].to_numpy(bool)
        low, high = auc_interval(f, samples, seed)
        own = {"unit": unit, "auc": auc(f["score"].to_numpy(), truth), "auc_low": low, "auc_high": high}
        right = f["verdict"].to_numpy() == truth  # never of a missing one
        rows.append({**own, "accuracy": right.mean(), **shared})
    items = items_of(found).rename(columns={"verifier": "unit"})
    return with_outcomes(pd.DataFrame(rows), items, on=["unit"]).rename(columns={"n": "claims"})


def _auc_difference(first: pd.DataFrame, second: pd.DataFrame, samples: int, seed: int) -> dict[str, float]:
    """AUC of the second minus that of the first, on the same claims, with its paired 95% interval over questions."""
    whole = [auc(f["score"].to_numpy(float), f["supported"].to_numpy(bool)) for f in (first, second)]
    draws = _auc_draws(second, samples, seed) - _auc_draws(first, samples, seed)
    draws = draws[~np.isnan(draws)]
    low, high = np.percentile(draws, [2.5, 97.5]) if len(draws) else (np.nan, np.nan)
    return {"auc_difference": whole[1] - whole[0], "difference_low": low, "difference_high": high}


def judged(pairs: pd.DataFrame, verifier) -> pd.DataFrame:
    """``pairs`` with columns score, verdict (1 or 0; both missing where there is none) and the verdict's outcome."""
    found = verifier.verdicts(list(pairs["claim"]), list(pairs["reference"]), answer_keys(pairs))
    verdicts = [float(v.supported) if v.outcome is Outcome.OK else np.nan for v in found]
    return pairs.assign(
        score=np.array([v.score for v in found], float),
        verdict=np.array(verdicts, float),
        outcome=[str(v.outcome) for v in found],
    )


def ruler_table(
    by_verifier: dict[str, pd.DataFrame], samples: int, seed: int, failed: Sequence[tuple[str, str]] = ()
) -> pd.DataFrame:
    """Each verifier measured on claims that neither it nor its threshold has seen.

    Args:
        by_verifier: by its name, rows of `judged` that are not of the development half.
        samples, seed: of the bootstrap over questions.
        failed: `failed_answers`.

    Returns:
        One row a verifier and text (translated | untranslated): verifier, text, auc, auc_low, auc_high, mae_precision,
        mae_recall, mae_f, bias_f; answers (known ones, those that are measured) and answers_failed (those whose
        translation lacks a part, left out); then claims, the outcomes of their verdicts that occur, which sum to it,
        and scored: the claims with a verdict, which all measures are of.
    """
    rows, items = [], items_of(by_verifier)
    questions = set(items["prompt_id"])
    lacking = sum(prompt_id in questions for prompt_id, _ in failed)
    for name, found in by_verifier.items():
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
                    "answers": len(errors),
                    "answers_failed": lacking if text == "translated" else 0,
                }
            )
    counted = with_outcomes(pd.DataFrame(rows), items, on=["verifier", "text"])
    return counted.rename(columns={"n": "claims"})


def items_of(by_verifier: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The rows of `judged` of several verifiers in one, with columns verifier and scored (it has a verdict)."""
    made = [frame.assign(verifier=name, scored=frame["verdict"].notna()) for name, frame in by_verifier.items()]
    return pd.concat(made, ignore_index=True)


def errors_table(by_verifier: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Mean error (measured − true) of precision, recall and F of each verifier in each language.

    Args:
        by_verifier: see `ruler_table`.

    Returns:
        One row a verifier, language and text: these, error_precision, error_recall, error_f; then claims, the outcomes
        of their verdicts that occur, which sum to it, and scored.
    """
    keys, items = ["verifier", "language", "text"], items_of(by_verifier)
    errors = pd.concat(answer_errors(frame).assign(verifier=name) for name, frame in by_verifier.items())
    means = errors.groupby(keys)[["error_precision", "error_recall", "error_f"]].mean().reset_index()
    return with_outcomes(means, items, on=keys).rename(columns={"n": "claims"})
