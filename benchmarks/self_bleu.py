"""Self-BLEU of one generator's dialogues against NLTK called text by text: `python benchmarks/self_bleu.py`.

120 dialogues at three granularities, as paper B's Table 2 needs them for each generator and language. Both sides get
the same tokens and are timed in the same process, in turn; the ratio is of medians. With XLC_DATA the texts are the
released dialogues of one generator, else random ones of the same lengths. The scores must agree to 1e-9.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

from xlc_utils.judges.lexical import GRANULARITIES, dialogue_tokens, lemmatiser, self_bleu_scores
from xlc_utils.judges.released import read_dialogues

DIALOGUES, ROUNDS, GOAL = 120, 3, 20.0
Texts = list[list[str]]


def released() -> list[Texts]:
    """The tokens of one generator that has all 120 dialogues, one list a granularity."""
    own = [dialogue for dialogue in read_dialogues(languages=["fi"]) if dialogue.model == "Llama3-70B"]
    lemmas = lemmatiser("fi")
    return [[dialogue_tokens(dialogue, lemmas, name) for dialogue in islice(own, DIALOGUES)] for name in GRANULARITIES]


def random() -> list[Texts]:
    """Words drawn with Zipf's frequencies, about as long as the released dialogues and their sides."""
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(3000)]
    chance = 1 / np.arange(1, len(words) + 1)
    chance /= chance.sum()
    lengths = (170, 110, 60)
    return [[list(rng.choice(words, rng.poisson(n) + 5, p=chance)) for _ in range(DIALOGUES)] for n in lengths]


def nltk(texts: Texts) -> np.ndarray:
    smoothing = SmoothingFunction().method4
    return np.array(
        [
            sentence_bleu(texts[:i] + texts[i + 1 :], text, smoothing_function=smoothing) if text else np.nan
            for i, text in enumerate(texts)
        ]
    )


def seconds(task: Callable[[Texts], np.ndarray], sides: Sequence[Texts]) -> tuple[float, list[np.ndarray]]:
    start = time.process_time()
    scores = [task(texts) for texts in sides]
    return time.process_time() - start, scores


def equal(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> bool:
    return all(np.allclose(a, b, rtol=0, atol=1e-9, equal_nan=True) for a, b in zip(first, second, strict=True))


def main() -> None:
    real = bool(os.environ.get("XLC_DATA"))
    sides = released() if real else random()
    ours, theirs = [], []
    for _ in range(ROUNDS):
        taken, own = seconds(self_bleu_scores, sides)
        ours.append(taken)
        taken, expected = seconds(nltk, sides)
        theirs.append(taken)
        if not equal(own, expected):
            raise SystemExit("the scores differ from NLTK's by more than 1e-9")
    here, there = statistics.median(ours), statistics.median(theirs)
    print(f"{'released' if real else 'random'} texts, 3 x {DIALOGUES}, medians of {ROUNDS}, CPU seconds:")
    print(f"NLTK {there:.2f}   here {here:.3f}   ratio {there / here:.0f} (goal {GOAL:.0f})")
    raise SystemExit(there / here < GOAL)


if __name__ == "__main__":
    main()
