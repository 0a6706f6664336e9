"""FActScore's own decisions (Min et al. 2023; package factscore 0.2.0, atomic_facts.py, factscorer.py,
abstain_detection.py), quirks included, for `verdict_reading: as_published`.

Reproduced: how a list of facts and a verdict are read from a reply, the length penalty, the generic detection of
abstentions. Not reproduced: its demonstrations, which are not in the package, and the repairs by named entities that it
makes for biographies. Where its local model gives it the logits of True and False it compares those; here the text of
the reply decides, as there with an API, and probabilities are scores only.

Paper A says that it follows FActScore and not with which gamma, whether abstentions and answers without facts were left
out, which topic its prompt named, or how a reply with neither True nor False was read.
"""

from __future__ import annotations

import string

import numpy as np

_DOUBT = ("not", "cannot", "unknown", "information")


def facts(reply: str) -> list[str]:
    """The facts of a reply: what follows each "- ", so that a fact which holds "- " is cut in two.

    Raises:
        IndexError: an item is empty, as in FActScore.
    """
    found = [part.strip() for part in reply.split("- ")[1:]]
    for fact in found:
        fact[-1]  # FActScore looks at the last character of each
    if found and not found[-1].endswith("."):
        found[-1] += "."
    return found


def states_nothing(sentence: str, first: bool) -> bool:
    """Sentences that are not asked about."""
    starts = ("Sure", "Please", "This sentence does not contain any facts", *(("Here are",) if first else ()))
    return sentence.startswith(starts)


def supported(reply: str) -> bool:
    """The last of "true" and "false" wins; a reply with neither supports the claim unless it has a word of doubt."""
    answer = reply.lower()
    true, false = "true" in answer, "false" in answer
    if true and false:
        return answer.index("true") > answer.index("false")
    if true or false:
        return true
    words = answer.translate(str.maketrans("", "", string.punctuation)).split()
    return not any(word in words for word in _DOUBT)


def length_penalty(n: np.ndarray, gamma: float) -> np.ndarray:
    """What a score over n facts is multiplied by: 1 above gamma facts, else exp(1 - gamma / n); 1 for gamma 0."""
    n = np.asarray(n, float)
    return np.where((n > gamma) | (gamma == 0), 1.0, np.exp(1 - gamma / np.where(n > 0, n, np.nan)))


def abstains(text: str) -> bool:
    """Its generic detection of an answer that answers nothing."""
    return text.startswith("I'm sorry") or "provide more" in text
