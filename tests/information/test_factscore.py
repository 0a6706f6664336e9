"""information/factscore.py against FActScore's own code (make_factscore_decisions.py), and that `corrected` has none of
its traps."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from xlc_utils.chat.base import Reply, typed_text
from xlc_utils.evaluation.rules import Rules
from xlc_utils.information import factscore
from xlc_utils.information.claims import Claims, ModelClaims
from xlc_utils.information.scores import evaluate_answers, with_abstentions
from xlc_utils.information.verdicts import ModelVerifier
from xlc_utils.registry.outcomes import Outcome


def cases() -> list[dict]:
    with Path(__file__).with_name("factscore_decisions.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


class Says:
    """A chat model that gives its replies in turn."""

    name = "says"

    def __init__(self, *replies: str):
        self.replies = list(replies)

    def complete(self, chats, sampling):
        texts = [self.replies.pop(0) for _ in chats]
        return [Reply(text, typed_text(text, "stop")[0]) for text in texts]


def claims_of(reply: str, reading: str) -> Claims:
    return ModelClaims(Says(reply), "{text}", reading=reading).extract(["A text."])[0]


def verdict_of(reply: str, reading: str):
    return ModelVerifier(Says(reply), "{reference} {claim}", reading=reading).verdicts(["A claim."], ["A text."])[0]


def test_fifty_cases_were_decided_by_factscore():
    assert len(cases()) == 50
    assert {c["facts"] for c in cases()} >= {"null", "IndexError"} and {c["gamma"] for c in cases()} == {"0", "3", "10"}
    assert sum(len(json.loads(c["supported"])) for c in cases() if c["supported"].startswith("[")) > 60


@pytest.mark.parametrize("case", cases(), ids=lambda c: c["case"])
def test_as_published_decides_as_factscore_does(case: dict):
    """The whole path: facts, abstention, verdicts, penalised score."""
    answers = pd.DataFrame(
        {
            "prompt_id": "p",
            "language": ["en", "es"],
            "english": ["The context.", case["generation"]],
            "outcome": "ok",
        }
    )
    answers = with_abstentions(answers, case["abstain"])
    rules = Rules(excluded=("error", "refused", "no_claims"))
    extractor = ModelClaims(Says(*["- The context."], case["facts_reply"]), "{text}", reading="as_published")
    replies = json.loads(case["verdict_replies"]) * 20

    class InTurn:
        """The answer's claims get the case's replies; the English claim gets True."""

        name = "in turn"

        def verdicts(self, claims, references, about):
            rows = [i for i, a in enumerate(about) if a.endswith("precision")]
            own = ModelVerifier(Says(*replies[: len(rows)]), "{claim}", reading="as_published")
            mine = own.verdicts([claims[i] for i in rows], [references[i] for i in rows])
            other = ModelVerifier(Says("True"), "{claim}", reading="as_published").verdicts(["x"], ["y"])[0]
            return [mine[rows.index(i)] if i in rows else other for i in range(len(claims))]

    claims, verdicts, scores = evaluate_answers(answers, extractor, InTurn(), rules, gamma=int(case["gamma"]))
    own = claims[claims["language"] == "es"]
    decided = verdicts[verdicts["direction"] == "precision"]
    [row] = scores.to_dict("records")
    if case["facts"] == "IndexError":
        assert list(own["outcome"]) == ["unparsed"] and row["reason"] == "no verdict"
    elif case["facts"] == "null":
        assert set(own["outcome"]) <= {"empty"} and decided.empty
        assert row["reason"] in ("excluded outcome", "no claims: left out")
    else:
        assert list(own["claim"]) == json.loads(case["facts"])
        assert list(decided["supported"]) == json.loads(case["supported"])
        assert row["precision"] == pytest.approx(float(case["score"]))


# ---- the traps -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("reply", ["असत्य", "Falsch", "", "Falso", "Faux", "偽", "خطأ", "Salah", "Неверно", "…"])
def test_only_as_published_takes_what_it_cannot_read_for_support(reply: str):
    assert verdict_of(reply, "as_published").supported
    found = verdict_of(reply, "corrected")
    assert not found.supported and found.outcome in (Outcome.UNPARSED, Outcome.EMPTY) and np.isnan(found.score)


def test_an_empty_item_stops_factscore_and_not_us():
    with pytest.raises(IndexError):
        factscore.facts("- A.\n- \n- B.")
    assert claims_of("- A.\n- \n- B.", "as_published").outcome is Outcome.UNPARSED
    assert claims_of("- A.\n- \n- B.", "corrected") == Claims(("A.", "B."), Outcome.OK)


def test_a_claim_that_holds_a_dash_is_cut_by_factscore_and_not_by_us():
    reply = "- Paris - the capital - is large.\n- A well- known city."
    assert claims_of(reply, "as_published").claims == ("Paris", "the capital", "is large.", "A well", "known city.")
    assert claims_of(reply, "corrected").claims == ("Paris - the capital - is large.", "A well- known city.")


def test_sentences_that_factscore_does_not_ask_about():
    asked = []

    class Model(Says):
        def complete(self, chats, sampling):
            asked.extend(chat.messages[0][1] for chat in chats)
            return [Reply("- A.", Outcome.OK) for _ in chats]

    text = "Here are some facts. Sure, I can help. Water boils. Please ask again."
    ModelClaims(Model(), "{text}", "sentence", "as_published").extract([text])
    assert asked == ["Water boils."]
    asked.clear()
    ModelClaims(Model(), "{text}", "sentence").extract([text])
    assert len(asked) == 4


def test_the_length_penalty_by_hand():
    penalty = factscore.length_penalty(np.array([1, 5, 10, 11, 40]), 10)
    assert penalty == pytest.approx([np.exp(-9), np.exp(-1), 1, 1, 1])
    assert (factscore.length_penalty(np.array([1, 0, np.nan]), 0) == 1).all()


def test_abstentions_are_found_only_where_asked_for():
    answers = pd.DataFrame(
        {"english": ["I'm sorry, no.", "Provide.", "Please provide more.", ""], "outcome": ["ok", "ok", "ok", "error"]}
    )
    assert list(with_abstentions(answers, "none")["outcome"]) == ["ok", "ok", "ok", "error"]
    assert list(with_abstentions(answers, "generic")["outcome"]) == ["refused", "ok", "refused", "error"]
