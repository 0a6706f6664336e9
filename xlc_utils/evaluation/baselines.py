"""Cheap evaluators that need no model, by their reference implementations: what a costly one has to beat.

chrF and BLEU from sacreBLEU (Post 2018), ROUGE-L from rouge-score (Lin 2004). ``length`` is no judgement of content at
all: whoever is not better than it measures how long the answers are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from xlc_utils.evaluation.evaluators import Evaluator, Pairwise, Property


def evaluator(name: str) -> Evaluator:
    """One of `BASELINES` by its name."""
    return BASELINES[name]()


@cache
def _chrf():
    from sacrebleu.metrics import CHRF

    return CHRF()


@cache
def _bleu():
    from sacrebleu.metrics import BLEU

    return BLEU(effective_order=True)  # without it a short text scores 0, as sacreBLEU warns


@cache
def _rouge():
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"], use_stemmer=True)


def chrf(text: str, reference: str) -> float:
    """chrF of one text, 0–100 (sacreBLEU's chrF2, character 6-grams)."""
    return _chrf().sentence_score(text, [reference]).score


def chrf_signature() -> str:
    """What a chrF number must be cited with."""
    chrf("a", "a")  # sacreBLEU knows how many references there are only after a score
    return str(_chrf().get_signature())


def bleu(text: str, reference: str) -> float:
    return _bleu().sentence_score(text, [reference]).score / 100


def rouge(text: str, reference: str) -> float:
    """F of the longest common subsequence of words."""
    return _rouge().score(reference, text)["rougeL"].fmeasure


def words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def ratio(a: int, b: int) -> float:
    """The smaller through the larger; 1 where both are 0."""
    return min(a, b) / max(a, b, 1) if a or b else 1.0


#: What `evaluators` in the params may name.
BASELINES: dict[str, Callable[[], Evaluator]] = {
    "chrf": lambda: Pairwise("chrf", lambda text, reference: chrf(text, reference) / 100),
    "bleu": lambda: Pairwise("bleu", bleu),
    "rouge": lambda: Pairwise("rouge", rouge),
    "length": lambda: Property("length", words, ratio),
}
