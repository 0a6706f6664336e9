"""Lexical diversity and repetition of dialogues (paper B, section 2.3 and appendix A).

One uniform pipeline for every language, so that a difference between two languages is not one between two
pipelines: words are lower-cased runs of letters, lemmatised with simplemma, function words dropped; the unit
is the dialogue. What the authors' released code does instead is in `xlc_utils.judges.as_published`.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

import numpy as np

from xlc_utils.judges.lemmatisers import LEMMATISERS, Lemmatiser
from xlc_utils.judges.released import Dialogue
from xlc_utils.registry.files import project_root, shown
from xlc_utils.registry.problems import Problem

#: MATTR's window in tokens (paper B, appendix A).
WINDOW = 100
#: The longest n-gram of self-BLEU (paper B, appendix A).
MAX_ORDER = 4
# NLTK's SmoothingFunction.method4 divides by this K.
_METHOD4_K = 5

#: Whose turns make the text.
GRANULARITIES = {"whole": ("agent", "customer"), "agent": ("agent",), "client": ("customer",)}

# Letters with combining marks (NFC composes what it can), joined by single hyphens or apostrophes.
_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")


def words(text: str) -> list[str]:
    """The lower-cased words of `text`: runs of letters, joined by single hyphens or apostrophes. No numbers."""
    return _WORD.findall(unicodedata.normalize("NFC", text).lower().replace("’", "'"))


def lemmatiser(language: str, name: str = "simplemma") -> Lemmatiser:
    """A lemmatiser for `language`; which ones there are is said in `xlc_utils.judges.lemmatisers`.

    Raises:
        Problem: there is no lemmatiser of that name, it does not know the language, or it is not installed.
    """
    if name not in LEMMATISERS:
        raise Problem(f"lemmatiser {name}", "there is no such lemmatiser", f"use one of {', '.join(LEMMATISERS)}")
    return LEMMATISERS[name](language)


def lemmatiser_of(language: str) -> str:
    """The lemmatiser of the uniform pipeline: simplemma, or "none" for a language that simplemma does not know."""
    try:
        lemmatiser(language)
    except Problem:
        return "none"
    return "simplemma"


@functools.cache
def stop_words(language: str) -> frozenset[str]:
    """The function words of `language`, from params/stopwords/<language>.txt (written for this repository).

    Raises:
        Problem: there is no such file.
    """
    path = project_root() / "params" / "stopwords" / f"{language}.txt"
    if not path.is_file():
        raise Problem(shown(path), "there is no such file", "write one in the form of its neighbours")
    lines = path.read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


def tokens(text: str, language: str, lemmatise: Lemmatiser) -> list[str]:
    """The lemmas of `text` in order, without function words (a word or its lemma on the list) and single letters.

    Args:
        text: running text.
        language: chooses the list of function words.
        lemmatise: see `lemmatiser`.
    """
    stop = stop_words(language)
    found = words(text)
    return [
        lemma
        for word, lemma in zip(found, lemmatise(found), strict=True)
        if len(lemma) > 1 and word not in stop and lemma not in stop
    ]


def dialogue_tokens(dialogue: Dialogue, lemmatise: Lemmatiser, granularity: str = "whole") -> list[str]:
    """The tokens of one dialogue: all its turns, or one side's, joined in order. Names of speakers are left out.

    Args:
        dialogue: one dialogue.
        lemmatise: see `lemmatiser`.
        granularity: key of `GRANULARITIES`.
    """
    senders = GRANULARITIES[granularity]
    text = "\n".join(turn.text for turn in dialogue.turns if turn.sender in senders)
    return tokens(text, dialogue.language, lemmatise)


def ttr(tokens: Sequence[str]) -> float:
    """Type–token ratio in (0, 1]: different tokens over all tokens; NaN without tokens. Falls with length."""
    return len(set(tokens)) / len(tokens) if tokens else np.nan


def mattr(tokens: Sequence[str], window: int = WINDOW) -> float:
    """Moving-average type–token ratio in (0, 1]: mean TTR over all windows of `window` consecutive tokens.

    With fewer tokens than `window` there is no window and the value is the TTR of all of them, which is not
    comparable with that of longer texts: TTR falls with length. NaN without tokens. Paper B, appendix A.
    """
    if len(tokens) <= window:
        return ttr(tokens)
    inside = Counter(tokens[:window])
    types = [len(inside)]
    for leaving, entering in zip(tokens, tokens[window:], strict=False):
        inside[entering] += 1
        inside[leaving] -= 1
        if not inside[leaving]:
            del inside[leaving]
        types.append(len(inside))
    return float(np.mean(types)) / window


def self_bleu_scores(texts: Sequence[Sequence[str]]) -> np.ndarray:
    """BLEU of each text against all the others as its references: how much of it is said elsewhere too.

    4-grams with equal weights, smoothed by NLTK's method 4; equal to `nltk.translate.bleu_score.sentence_bleu`
    called text by text, to 1e-9. Self-BLEU (Zhu et al. 2018; paper B, appendix A) is the mean of the scores.
    A score belongs to the whole set: it changes when another text is added or taken away.

    Args:
        texts: tokenised texts.

    Returns:
        One score in [0, 1] a text; NaN for texts without tokens, which are nobody's reference either, and for
        all if fewer than two texts have tokens.
    """
    scores = np.full(len(texts), np.nan)
    filled = [position for position, text in enumerate(texts) if len(text)]
    if len(filled) >= 2:
        scores[filled] = _scores([texts[position] for position in filled])
    return scores


def _scores(texts: list[Sequence[str]]) -> np.ndarray:
    lengths = np.array([len(text) for text in texts])
    matched = np.empty((len(texts), MAX_ORDER))
    total = np.maximum(lengths[:, None] - np.arange(MAX_ORDER), 1)  # NLTK's denominators are never 0
    for order, (owner, gram) in enumerate(_ngrams(texts, lengths)):
        matched[:, order] = _matched(owner, gram, len(texts))
    precision = _smoothed(matched, lengths) / total
    log_precision = np.log(precision, out=np.zeros_like(precision), where=precision > 0)
    brevity = np.exp(np.minimum(1 - _closest_other_length(lengths) / lengths, 0))
    return np.where(matched[:, 0] > 0, brevity * np.exp(log_precision.sum(axis=1) / MAX_ORDER), 0.0)


def _ngrams(texts: list[Sequence[str]], lengths: np.ndarray):
    """For each order 1 … 4: (index of the text, id of the n-gram) for all n-grams of all texts."""
    owner = np.repeat(np.arange(len(texts)), lengths)
    ids: dict[str, int] = {}
    words = np.array([ids.setdefault(token, len(ids)) for text in texts for token in text])
    gram = words
    yield owner, gram
    for order in range(1, MAX_ORDER):
        # An n-gram is an (n-1)-gram and the word that follows it; those over the border of two texts are dropped.
        gram = gram[:-1] * len(ids) + words[order:]
        _, gram = np.unique(gram, return_inverse=True)
        inside = owner[: len(gram)] == owner[order:]
        yield owner[: len(gram)][inside], gram[inside]


def _matched(owner: np.ndarray, gram: np.ndarray, n_texts: int) -> np.ndarray:
    """BLEU's clipped matches of each text: its n-grams, each counted at most as often as in one other text."""
    if not len(gram):
        return np.zeros(n_texts)
    pairs, count = np.unique(gram * n_texts + owner, return_counts=True)
    gram, owner = np.divmod(pairs, n_texts)
    # The most any other text has is the n-gram's largest count; for the text that has that, the second largest.
    by_count = np.lexsort((-count, gram))
    first = np.flatnonzero(np.diff(gram[by_count], prepend=-1))
    n_owners = np.diff(first, append=len(gram))
    largest = count[by_count[first]]
    second = np.where(n_owners > 1, count[by_count[np.minimum(first + 1, len(gram) - 1)]], 0)
    elsewhere = np.repeat(largest, n_owners)  # pairs are sorted by n-gram, as `first` is
    elsewhere[by_count[first]] = second
    return np.bincount(owner, np.minimum(count, elsewhere), n_texts)


def _smoothed(matched: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Method 4 of NLTK: the k-th order without a match gets ln(length) / (5 · 2^k) matches; length 1 gets none."""
    empty = matched == 0
    k = np.cumsum(empty, axis=1)
    return np.where(empty, np.log(lengths)[:, None] / (_METHOD4_K * 2.0**k), matched)


def _closest_other_length(lengths: np.ndarray) -> np.ndarray:
    """For each text the length of another text that is closest to its own, the shorter one of two as close."""
    distance = np.abs(lengths[:, None] - lengths[None, :]).astype(float)
    np.fill_diagonal(distance, np.inf)
    ordered = np.argsort(lengths, kind="stable")
    return lengths[ordered[np.argmin(distance[:, ordered], axis=1)]]
