"""information/scores.py: a small study whose numbers are computed by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from xlc_utils.evaluation.rules import Rules
from xlc_utils.information.claims import Claims, SentenceClaims
from xlc_utils.information.scores import (
    claims_table,
    evaluate_answers,
    pairs_to_verify,
    prompt_scores,
    verdicts_table,
)
from xlc_utils.information.verdicts import Verdict
from xlc_utils.registry.outcomes import Outcome

# One letter is one fact. A text supports what it says; "z" cannot be judged.
ANSWERS = {
    ("p-1", "en"): ("A is. B is. C is. D is.", "ok"),
    ("p-1", "es"): ("A is. B is. X is.", "ok"),  # precision 2/3, recall 2/4
    ("p-1", "fr"): ("A is. B is. C is. D is.", "ok"),  # 1, 1
    ("p-1", "hi"): ("A is", "truncated"),  # 1, 1/4
    ("p-1", "ja"): ("X is. Y is.", "ok"),  # 0, 0
    ("p-2", "en"): ("A is. Z is.", "ok"),
    ("p-2", "es"): ("No answer", "refused"),  # 0
    ("p-2", "fr"): ("", "empty"),  # 0
    ("p-2", "hi"): ("", "error"),  # left out
    ("p-2", "ja"): ("B is.", "off_target"),  # 0
    ("p-3", "en"): ("", "refused"),  # nothing to compare with
    ("p-3", "es"): ("A is.", "ok"),
    ("p-3", "fr"): ("No answer", "refused"),
    ("p-4", "en"): ("A is.", "ok"),
    ("p-4", "es"): ("42", "ok"),  # states nothing: no precision
    ("p-4", "fr"): ("Z is.", "ok"),  # no verdict of its claim
    ("p-4", "hi"): ("A is. Z is.", "ok"),  # the claim that cannot be judged counts as neither: 1, 1
    ("p-4", "ja"): ("A is A is A is A is", "degenerate"),  # 0
}


class Reads:
    """A verifier that supports a claim if its letter is in the reference."""

    name = "reads"

    def __init__(self):
        self.asked: list[tuple[str, str]] = []

    def verdicts(self, claims, references, answers=None):
        self.asked = list(zip(claims, references, strict=True))
        return [self._one(c, r) for c, r in self.asked]

    def _one(self, claim: str, reference: str) -> Verdict:
        if claim.startswith("Z"):
            return Verdict(float("nan"), False, Outcome.UNPARSED, "unclear")
        supported = claim.rstrip(".") in reference
        return Verdict(float(supported), supported)


@pytest.fixture
def answers() -> pd.DataFrame:
    rows = [{"prompt_id": p, "language": lang, "english": t, "outcome": o} for (p, lang), (t, o) in ANSWERS.items()]
    return pd.DataFrame(rows)


@pytest.fixture
def claims(answers: pd.DataFrame) -> pd.DataFrame:
    return claims_table(answers, SentenceClaims())


@pytest.fixture
def verdicts(claims: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    return verdicts_table(pairs_to_verify(claims, answers), Reads())


def test_claims_are_taken_from_what_can_be_scored_and_numbered(claims: pd.DataFrame):
    rows = {(p, lang): list(g["claim"]) for (p, lang), g in claims.groupby(["prompt_id", "language"])}
    assert rows["p-1", "es"] == ["A is.", "B is.", "X is."] and rows["p-1", "hi"] == ["A is"]
    assert not {("p-2", "es"), ("p-2", "fr"), ("p-2", "hi"), ("p-2", "ja"), ("p-3", "en"), ("p-4", "ja")} & set(rows)
    nothing = claims[(claims["prompt_id"] == "p-4") & (claims["language"] == "es")]
    assert nothing[["claim_no", "claim", "outcome"]].to_numpy().tolist() == [[0, "", "empty"]]
    assert list(claims.query("prompt_id == 'p-1' and language == 'es'")["claim_no"]) == [1, 2, 3]
    assert set(claims["outcome"]) == {"ok", "empty"}


def test_each_direction_has_as_many_pairs_as_claims(claims: pd.DataFrame, answers: pd.DataFrame):
    pairs = pairs_to_verify(claims, answers)
    counts = pairs.groupby(["prompt_id", "language", "direction"]).size()
    expected = {
        ("p-1", "es", "precision"): 3, ("p-1", "es", "recall"): 4,
        ("p-1", "fr", "precision"): 4, ("p-1", "fr", "recall"): 4,
        ("p-1", "hi", "precision"): 1, ("p-1", "hi", "recall"): 4,
        ("p-1", "ja", "precision"): 2, ("p-1", "ja", "recall"): 4,
        # p-2: no other answer to verify against, p-3: no English one
        ("p-4", "es", "recall"): 1,
        ("p-4", "fr", "precision"): 1, ("p-4", "fr", "recall"): 1,
        ("p-4", "hi", "precision"): 2, ("p-4", "hi", "recall"): 1,
    }  # fmt: skip
    assert counts.to_dict() == expected


def test_claims_are_verified_against_the_other_text(claims: pd.DataFrame, answers: pd.DataFrame):
    pairs = pairs_to_verify(claims, answers)
    text = {key: t for key, (t, _) in ANSWERS.items()}
    for row in pairs.itertuples():
        own, other = (row.language, "en") if row.direction == "precision" else ("en", row.language)
        assert row.reference == text[row.prompt_id, other] and row.claim.rstrip(".") in text[row.prompt_id, own]
    references = list(pairs["reference"])
    changes = sum(a != b for a, b in pairwise(references))
    assert changes <= len(set(references)), "equal references follow each other"


def test_verdicts_keep_their_outcome(verdicts: pd.DataFrame):
    unclear = verdicts[verdicts["claim"].str.startswith("Z")]
    assert set(unclear["outcome"]) == {"unparsed"} and not unclear["supported"].any() and len(unclear) == 2
    assert set(verdicts["verifier"]) == {"reads"} and "reference" not in verdicts
    assert all(type(o) is str for o in verdicts["outcome"])


EXPECTED = {  # precision, recall, f, scored, reason
    ("p-1", "es"): (2 / 3, 1 / 2, 4 / 7, True, ""),
    ("p-1", "fr"): (1, 1, 1, True, ""),
    ("p-1", "hi"): (1, 1 / 4, 2 / 5, True, ""),
    ("p-1", "ja"): (0, 0, 0, True, ""),
    ("p-2", "es"): (0, 0, 0, True, "scored 0"),
    ("p-2", "fr"): (0, 0, 0, True, "scored 0"),
    ("p-2", "hi"): (np.nan, np.nan, np.nan, False, "excluded outcome"),
    ("p-2", "ja"): (0, 0, 0, True, "scored 0"),
    ("p-3", "es"): (np.nan, np.nan, np.nan, False, "no English answer"),
    ("p-3", "fr"): (np.nan, np.nan, np.nan, False, "no English answer"),
    ("p-4", "es"): (0, 0, 0, True, "no claims: scored 0"),
    ("p-4", "fr"): (np.nan, 0, np.nan, False, "no verdict"),
    ("p-4", "hi"): (1, 1, 1, True, ""),
    ("p-4", "ja"): (0, 0, 0, True, "scored 0"),
}


def test_scores_by_hand(claims, verdicts, answers):
    scores = prompt_scores(claims, verdicts, answers).set_index(["prompt_id", "language"])
    assert set(scores.index) == set(EXPECTED)
    for key, (precision, recall, f, scored, reason) in EXPECTED.items():
        row = scores.loc[key]
        assert [row["precision"], row["recall"], row["f"]] == pytest.approx([precision, recall, f], nan_ok=True), key
        assert (bool(row["scored"]), row["reason"], row["outcome"]) == (scored, reason, ANSWERS[key][1]), key
    assert scores.loc[("p-1", "es"), ["claims_precision", "claims_recall"]].tolist() == [3, 4]
    assert scores.loc[("p-4", "hi"), "claims_precision"] == 1  # verdicts used
    assert scores["scored"].mean() == pytest.approx(10 / 14)
    assert scores.loc[scores["scored"], "f"].mean() == pytest.approx((4 / 7 + 1 + 2 / 5 + 1) / 10)


def test_what_is_left_out_instead_of_scored_0_is_a_choice(claims, verdicts, answers):
    scores = prompt_scores(claims, verdicts, answers, Rules(excluded=("error", "refused", "off_target")))
    left_out = scores[scores["reason"] == "excluded outcome"]
    assert set(zip(left_out["prompt_id"], left_out["language"], strict=True)) == {
        ("p-2", "es"),
        ("p-2", "hi"),
        ("p-2", "ja"),
    }
    assert left_out["f"].isna().all()
    none = prompt_scores(claims, verdicts, answers, Rules(excluded=()))
    assert none.set_index(["prompt_id", "language"]).loc[("p-2", "hi"), "f"] == 0


def test_an_english_answer_that_was_never_asked_for_leaves_the_prompt_out(claims, verdicts, answers):
    without = answers[(answers["language"] != "en") | (answers["prompt_id"] != "p-1")]
    scores = prompt_scores(claims, verdicts, without)
    assert set(scores.loc[scores["prompt_id"] == "p-1", "reason"]) == {"no English answer"}
    assert scores.loc[scores["prompt_id"] == "p-1", "f"].isna().all()


def test_the_order_of_rows_and_their_index_change_nothing(claims, verdicts, answers):
    shuffled = answers.sample(frac=1, random_state=1).set_index(pd.Index(range(100, 100 + len(answers))))
    claims = claims_table(shuffled, SentenceClaims())
    again = prompt_scores(claims, verdicts_table(pairs_to_verify(claims, shuffled), Reads()), shuffled)
    claims = claims_table(answers, SentenceClaims())
    keys = ["prompt_id", "language"]
    first = prompt_scores(claims, verdicts, answers).sort_values(keys).reset_index(drop=True)
    pd.testing.assert_frame_equal(again.sort_values(keys).reset_index(drop=True), first)


@pytest.mark.parametrize("outcome", ["refused", "error"])
def test_a_model_that_never_answered_has_scores_all_the_same(outcome: str):
    rows = [{"prompt_id": "p-1", "language": c, "english": "", "outcome": outcome} for c in ("en", "es")]
    answers = pd.DataFrame(rows)
    claims = claims_table(answers, SentenceClaims())
    pairs = pairs_to_verify(claims, answers)
    assert len(claims) == 0 and len(pairs) == 0
    scores = prompt_scores(claims, verdicts_table(pairs, Reads()), answers)
    assert list(scores["reason"]) == ["no English answer"] and scores["f"].isna().all()


def test_english_alone_has_no_scores():
    answers = pd.DataFrame([{"prompt_id": "p-1", "language": "en", "english": "A is.", "outcome": "ok"}])
    claims = claims_table(answers, SentenceClaims())
    pairs = pairs_to_verify(claims, answers)
    assert len(pairs) == 0 and len(prompt_scores(claims, verdicts_table(pairs, Reads()), answers)) == 0


# ---- rules -----------------------------------------------------------------------------------------------------------
def test_each_outcome_can_be_scored_from_its_text_scored_0_or_left_out(claims, verdicts, answers):
    """One response of each kind: what the parameters make of it."""
    responses = {"truncated": ("p-1", "hi"), "off_target": ("p-2", "ja"), "refused": ("p-2", "es"),
                 "empty": ("p-2", "fr"), "error": ("p-2", "hi"), "degenerate": ("p-4", "ja")}  # fmt: skip
    for outcome, key in responses.items():
        for rules, scored in ((Rules((), (outcome,)), False), (Rules(("ok",), ()), True)):
            row = evaluate_answers(answers, SentenceClaims(), Reads(), _with_english(rules))[2]
            row = row.set_index(["prompt_id", "language"]).loc[key]
            assert bool(row["scored"]) is scored and row["reason"] == ("scored 0" if scored else "excluded outcome")
            assert row["f"] == 0 if scored else np.isnan(row["f"])
    read = evaluate_answers(answers, SentenceClaims(), Reads(), Rules(scored=("ok", "truncated", "off_target")))[2]
    read = read.set_index(["prompt_id", "language"])
    assert read.loc[("p-2", "ja"), ["precision", "recall", "reason"]].tolist() == [0, 0, ""], "its text was compared"
    assert read.loc[("p-1", "hi"), "recall"] == 1 / 4


def _with_english(rules: Rules) -> Rules:
    return Rules((*rules.scored, "ok"), rules.excluded)


def test_an_answer_that_states_nothing_has_its_rule(claims, verdicts, answers):
    out = prompt_scores(claims, verdicts, answers, Rules(excluded=("error", "no_claims")))
    row = out.set_index(["prompt_id", "language"]).loc[("p-4", "es")]
    assert row["reason"] == "no claims: left out" and np.isnan(row["f"]) and not row["scored"]


def test_an_english_answer_that_states_nothing_leaves_the_prompt_out():
    texts = {"en": "42", "es": "A is.", "fr": "42"}
    answers = pd.DataFrame(
        [{"prompt_id": "p-1", "language": c, "english": t, "outcome": "ok"} for c, t in texts.items()]
    )
    out = evaluate_answers(answers, SentenceClaims(), Reads())[2]
    assert set(out["reason"]) == {"no English claims"} and not out["scored"].any()


def test_claims_that_could_not_be_read_are_the_evaluators_failure_and_no_score():
    class Mute:
        def extract(self, texts):
            return [Claims((), Outcome.UNPARSED, "?") for _ in texts]

    answers = pd.DataFrame(
        [{"prompt_id": "p-1", "language": c, "english": "A is.", "outcome": "ok"} for c in ("en", "es")]
    )
    claims, _, out = evaluate_answers(answers, Mute(), Reads())
    assert set(claims["outcome"]) == {"unparsed"} and list(out["reason"]) == ["no verdict"] and out["f"].isna().all()
