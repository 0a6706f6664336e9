"""The evaluator of a run: its extractor, its verifiers, and which of them is best on answers of known truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from xlc_utils.information import LIKELIHOOD_MODEL
from xlc_utils.information.claims import ModelClaims, SentenceClaims
from xlc_utils.information.ruler import auc, failed_answers, is_development, judged, known_pairs
from xlc_utils.information.scores import evaluate_answers
from xlc_utils.information.verdicts import Calibrated, Embedding, Fused, Lexical, Likelihood, ModelVerifier
from xlc_utils.registry import prompts
from xlc_utils.registry.outcomes import Outcome


def extractor_of(run):
    """What `claim_extractor` names: sentences, or a model that lists claims."""
    name = run.params.claim_extractor
    if name == "sentences":
        return SentenceClaims()
    reading = run.params.verdict_reading
    file = "extract_claims_as_published" if reading == "as_published" else "extract_claims"
    instruction = prompts.instruction(run.root, file)
    return ModelClaims(run.chat(name), instruction, run.params.claim_unit, reading, run.params.seed)


def pairs_of(run) -> pd.DataFrame:
    """Claims of known truth: all of them untranslated, and translated those that the run asked `known-answers` for."""
    languages = ["en", *run.params.languages]
    known = {c: prompts.known_answers(run.root, c) for c in languages}
    facts = prompts.facts(run.root)
    ok = str(Outcome.OK)
    texts = [
        {"prompt_id": i, "language": c, "english": a.text(), "outcome": ok}
        for c in languages
        for i, a in known[c].items()
    ]
    no_sentences = pd.DataFrame(columns=["prompt_id", "language", "source", "text"])
    pairs = known_pairs(known, facts, pd.DataFrame(texts), no_sentences).query("text == 'untranslated'")
    if "known-answers" in run.model_names:
        asked = run.read("translations", "known-answers").query("dimension == 'information'")
        measured = known_pairs(known, facts, asked, run.read("sentences", "known-answers"))
        pairs = pd.concat([measured[measured["text"] == "translated"], pairs])
    return pairs.reset_index(drop=True)


def failed_of(run) -> list[tuple[str, str]]:
    """`ruler.failed_answers` of the run; those are in `pairs_of` untranslated only."""
    if "known-answers" not in run.model_names:
        return []
    return failed_answers(run.read("translations", "known-answers").query("dimension == 'information'"))


@dataclass(frozen=True)
class ClaimConsistency:
    """Claims of each text verified against the other, behind the interface of every evaluator (paper A §3.1)."""

    extractor: object
    verifier: object
    name: str = "claims"
    parts: tuple[str, ...] = ("precision", "recall")

    def compare(self, texts: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """See `xlc_utils.evaluation.evaluators.Evaluator`."""
        ids = [str(i) for i in range(len(texts))]
        sides = [
            pd.DataFrame({"prompt_id": ids, "language": code, "english": list(side), "outcome": str(Outcome.OK)})
            for code, side in (("en", references), ("other", texts))
        ]
        scores = evaluate_answers(pd.concat(sides, ignore_index=True), self.extractor, self.verifier)[2]
        return scores.set_index("prompt_id").loc[ids, list(self.parts)].to_numpy(float)


@dataclass(frozen=True)
class Evaluator:
    """The verifiers of a run, fitted on the development half, and the best one by its AUC there.

    ``auc`` has one row a verifier: verifier, auc (development half, see `unseen_scores`), threshold, chosen.
    """

    verifiers: dict[str, object]
    auc: pd.DataFrame
    chosen: str

    @property
    def best(self):
        return self.verifiers[self.chosen]


def evaluator_of(run, pairs: pd.DataFrame) -> Evaluator:
    """Makes and compares what `claim_verifiers` names.

    Args:
        run: the notebook's run.
        pairs: rows of `pairs_of`; only their development half is looked at.
    """
    development = pairs[pairs["prompt_id"].map(is_development)].reset_index(drop=True)
    verifiers, rows = {}, []
    for name in run.params.claim_verifiers:
        verifiers[name] = verifier = verifier_of(run, name, development)
        scores = unseen_scores(verifier, lambda part, name=name: verifier_of(run, name, part), development)
        threshold = getattr(verifier, "threshold", np.nan)
        rows.append({"verifier": name, "auc": _mean_auc(development, scores), "threshold": threshold})
    table = pd.DataFrame(rows)
    chosen = table.sort_values("auc", ascending=False, kind="stable")["verifier"].iloc[0]
    return Evaluator(verifiers, table.assign(chosen=table["verifier"] == chosen), chosen)


def unseen_scores(verifier, make, development: pd.DataFrame) -> np.ndarray:
    """A verifier's scores on the development half, those of a fitted one each from a fit without its question.

    Args:
        verifier: fitted on all of ``development``.
        make: makes the same verifier from some of the rows.
        development: rows of `pairs_of` with the index 0, 1, ….
    """
    if not getattr(verifier, "fitted", False):
        return _scores(verifier, development)
    scores = np.empty(len(development))
    for prompt_id, part in development.groupby("prompt_id"):
        scores[part.index] = _scores(make(development[development["prompt_id"] != prompt_id]), part)
    return scores


def _mean_auc(development: pd.DataFrame, scores: np.ndarray) -> float:
    """Mean AUC over translated and untranslated pairs, each kind apart; pooled, the gap between them would count."""
    parts = development.assign(score=scores).groupby("text")
    return float(np.nanmean([auc(p["score"].to_numpy(), p["supported"].to_numpy(bool)) for _, p in parts]))


def _scores(verifier, pairs: pd.DataFrame) -> np.ndarray:
    """Asked as the run asks: with `verdict_unit` answer, all claims about one answer together and no others."""
    return judged(pairs, verifier)["score"].to_numpy()


def model_verifier(run, name: str, unit: str) -> ModelVerifier:
    """A chat model as verifier, asked claim by claim or answer by answer."""
    reading = run.params.verdict_reading
    by_claim = "verify_claim_as_published" if reading == "as_published" else "verify_claim"
    instruction = prompts.instruction(run.root, "verify_claims" if unit == "answer" else by_claim)
    logprobs = run.models.models[name].gives_logprobs
    return ModelVerifier(run.chat(name), instruction, unit, reading, run.params.seed, logprobs)


def verifier_of(run, name: str, development: pd.DataFrame):
    """The verifier of that name; one that gives scores is fitted on, and has its threshold from, ``development``."""
    if name in run.models.models:
        return model_verifier(run, name, run.params.verdict_unit)
    scorer = {
        "lexical": Lexical,
        "embedding": lambda: Embedding(run.encoder()),
        "fused": lambda: Fused(run.encoder()),
        "likelihood": lambda: Likelihood(run.chat(LIKELIHOOD_MODEL)),
    }[name]()
    return calibrated(scorer, development)


def calibrated(scorer, development: pd.DataFrame) -> Calibrated:
    """A scorer fitted, and its threshold set, on the development half of the known answers."""
    supported = development["supported"].to_numpy(bool)
    # There are many more untranslated pairs than a small run translates; both kinds count alike.
    weights = 1 / development.groupby("text")["text"].transform("size").to_numpy(float)
    weights *= len(weights) / weights.sum()
    return Calibrated(scorer, list(development["claim"]), list(development["reference"]), supported, weights)
