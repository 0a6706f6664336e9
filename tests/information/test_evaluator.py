"""information/evaluator.py: the verifier is chosen by what it does when it is asked as the run asks."""

from __future__ import annotations

import json
from collections import Counter

import pandas as pd
import pytest

from xlc_utils.chat.base import Reply
from xlc_utils.information.evaluator import unseen_scores
from xlc_utils.information.ruler import answer_keys, known_pairs
from xlc_utils.information.verdicts import ModelVerifier
from xlc_utils.registry import prompts
from xlc_utils.registry.outcomes import Outcome


class Lists:
    """Says of every claim in the list it is shown that it is supported, and keeps what it was shown."""

    name = "lists"

    def __init__(self):
        self.shown: list[list[str]] = []

    def complete(self, chats, sampling):
        self.shown += [chat.messages[-1][1].splitlines() for chat in chats]
        said = ([{"claim": n, "supported": True} for n in range(1, len(own) + 1)] for own in self.shown[-len(chats) :])
        return [Reply(json.dumps({"verdicts": verdicts}), Outcome.OK) for verdicts in said]


@pytest.fixture
def development(root) -> pd.DataFrame:
    """Both languages' claims about one question, so that their precision claims share the English answer."""
    codes = ("en", "es", "hi")
    known = {c: {"astronomy-01": prompts.known_answers(root, c)["astronomy-01"]} for c in codes}
    texts = [{"prompt_id": "astronomy-01", "language": c, "english": known[c]["astronomy-01"].text()} for c in codes]
    none = pd.DataFrame(columns=["prompt_id", "language", "source", "text"])
    pairs = known_pairs(known, prompts.facts(root), pd.DataFrame(texts).assign(outcome="ok"), none)
    return pairs[pairs["text"] == "untranslated"].reset_index(drop=True)


def test_by_answer_a_verifier_is_chosen_by_lists_of_one_answer_each(development: pd.DataFrame):
    model = Lists()
    scores = unseen_scores(ModelVerifier(model, "{claims}", "answer"), None, development)
    assert scores.tolist() == [1.0] * len(development)
    answers = Counter(answer_keys(development))
    assert len(answers) == 4, "precision and recall of two languages"
    assert sorted(len(claims) for claims in model.shown) == sorted(answers.values())
