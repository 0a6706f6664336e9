"""A language model as the classifier of the three mechanisms: paper A's comparison with GPT-4o (appendix C.1, Table 7).

One call a reply and mechanism, nine labelled pairs before the question. Paper A does not say which nine: here three of
each of EPITOME's levels (no, weak, strong), drawn from train by the split's seed, the answers being the binary labels.

The requests hold posts of EPITOME, so they are private: the record keeps their replies, not their text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from xlc_utils.chat.base import Chat, ChatModel, Reply, Sampling
from xlc_utils.empathy import epitome
from xlc_utils.empathy.profiles import Reading
from xlc_utils.registry import prompts
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem
from xlc_utils.registry.prompts import MECHANISMS

SHOTS_A_LEVEL = 3
_PLACE = re.compile(r"\{(\w+)\}")
_ANSWER = re.compile(r"[\W_]*(?:answer\s*[*_]*[:：])?[\W_]*(yes|no)(?![^\W_])", re.IGNORECASE)


def shots(train: pd.DataFrame, mechanism: str, seed: int) -> pd.DataFrame:
    """Nine pairs of train, three a level, in an order that the seed and the ids alone decide.

    Raises:
        Problem: a level has fewer than three pairs.
    """
    order = [hashlib.sha256(f"shots {seed} {mechanism}\n{s}\n{r}".encode()).digest() for s, r in _ids(train)]
    shuffled = train.assign(order=order).sort_values("order").drop_duplicates(["sp_id", "rp_id"])
    chosen = shuffled.groupby(f"{mechanism}_level").head(SHOTS_A_LEVEL)
    if len(chosen) < SHOTS_A_LEVEL * len(epitome.LEVELS):
        what = f"train has fewer than {SHOTS_A_LEVEL} pairs of a level of {mechanism}"
        raise Problem("EPITOME's pairs", what, "use the whole release")
    return chosen.drop(columns="order")


def _ids(pairs: pd.DataFrame):
    return zip(pairs["sp_id"], pairs["rp_id"], strict=True)


class NineShot:
    """f_ER, f_IP and f_EX by a language model.

    Args:
        model: any chat model.
        root: the project folder: its instruction and its definitions of the mechanisms are used.
        train: pairs to draw the nine from.
        seed: of the draw and the run.
        reasoning_effort: as models.yaml has it.
    """

    def __init__(
        self, model: ChatModel, root: Path, train: pd.DataFrame, seed: int, reasoning_effort: str | None = None
    ):
        self.name, self._model = model.name, model
        self._instruction = prompts.instruction(root, "empathy_nine_shot")
        self._described = prompts.mechanisms(root)
        self._shots = {mechanism: shots(train, mechanism, seed) for mechanism in MECHANISMS}
        # A model that reasons needs room for it before the one word.
        tokens = 16 if reasoning_effort is None else 2048
        self._sampling = Sampling(max_tokens=tokens, seed=seed, reasoning_effort=reasoning_effort)

    def read(self, posts: Sequence[str], replies: Sequence[str]) -> Reading:
        """A profile where all three answers could be read; else the outcome of the first that could not."""
        labels, outcomes = [], []
        for mechanism in MECHANISMS:
            chats = [self.chat(mechanism, p, r) for p, r in zip(posts, replies, strict=True)]
            answers = [answer_of(reply) for reply in self._model.complete(chats, self._sampling)]
            labels.append([label for label, _ in answers])
            outcomes.append([outcome for _, outcome in answers])
        ended = tuple(
            next((o for o in three if o is not Outcome.OK), Outcome.OK) for three in zip(*outcomes, strict=True)
        )
        profiles = np.array(labels, float).T.reshape(-1, len(MECHANISMS))
        profiles[[o is not Outcome.OK for o in ended]] = np.nan
        return Reading(profiles, np.full(profiles.shape, np.nan), ended)

    def chat(self, mechanism: str, post: str, reply: str) -> Chat:
        """The request for one reply and mechanism."""
        own, described = self._shots[mechanism], self._described[mechanism]
        shown = (
            f"Post: {p}\nResponse: {r}\nAnswer: {'yes' if label else 'no'}\n\n"
            for p, r, label in zip(own["seeker"], own["response"], own[mechanism], strict=True)
        )
        given = {
            "mechanism": described.name,
            "definition": described.definition,
            "examples": "".join(shown),
            "post": post,
            "response": reply,
        }
        # All at once: a post may hold the text "{response}" itself.
        return Chat.user(_PLACE.sub(lambda place: given.get(place[1], place[0]), self._instruction), private=True)


def answer_of(reply: Reply) -> tuple[float, Outcome]:
    """Yes or no at the start of a reply as 1 or 0, with at most "Answer:" and punctuation before it."""
    if reply.outcome not in (Outcome.OK, Outcome.TRUNCATED):
        return np.nan, reply.outcome
    match = _ANSWER.match(reply.text)
    if not match or {"yes", "no"} <= set(re.findall(r"\b(?:yes|no)\b", reply.text.lower())):
        return np.nan, Outcome.UNPARSED
    return float(match[1].lower() == "yes"), Outcome.OK
