"""information/verdicts.py: a claim is supported only where something says so."""

from __future__ import annotations

import json
import math

import jsonschema
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from xlc_utils.chat.base import Reply
from xlc_utils.information.verdicts import (
    Calibrated,
    Embedding,
    Fused,
    Lexical,
    Likelihood,
    ModelVerifier,
    Overlap,
    best_threshold,
    parse_verdict,
    parse_verdicts,
    published_verdict,
    schema,
)
from xlc_utils.registry import prompts
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem

REFERENCE = "The Sun is a star. It is 150 million kilometres from the Earth. It does not orbit the Moon."


# ---- True or False ---------------------------------------------------------------------------------------------------
CLEAR = [
    "True", "true", "TRUE.", " True\n", "**True**", "_True_", '"True"', "Answer: True", "**Answer:** True",
    "answer：True", "True, it is stated.", "True\n\nThe text says so.", "- True", "[True]",
]  # fmt: skip


@pytest.mark.parametrize("text", CLEAR)
def test_true_is_support(text: str):
    found = parse_verdict(Reply(text, Outcome.OK))
    assert (found.supported, found.outcome, found.score) == (True, Outcome.OK, 1.0)


@pytest.mark.parametrize(
    "text", ["False", "false.", "**False**", "Answer: False", "False — the text says nothing of it."]
)
def test_false_is_none(text: str):
    found = parse_verdict(Reply(text, Outcome.OK))
    assert (found.supported, found.outcome, found.score) == (False, Outcome.OK, 0.0)


UNCLEAR = [
    "", " ", "...", "?", "True or False", "True/False", "False or true?", "True? No.", "¿True?", "Not true",
    "It is true.", "I think it is True", "The claim is true", "Untrue", "Truely", "Truth", "trueish", "Trueです",
    "True False", "True. But False would do too.", "Claim: The Sun is a star. True", "{}", '{"answer": true}',
    "Yes", "No", "Supported", "1", "None", "Verdadero", "Falso", "Vrai", "Wahr", "Vero", "Истина",
    "正しい", "真", "सत्य", "صحيح", "Benar", "Adevărat",
]  # fmt: skip


@pytest.mark.parametrize("text", UNCLEAR)
def test_anything_else_is_never_support(text: str):
    found = parse_verdict(Reply(text, Outcome.OK))
    assert not found.supported and found.outcome is Outcome.UNPARSED and math.isnan(found.score)
    assert repr(text) in found.detail


@settings(deadline=None)
@given(st.text())
def test_support_takes_the_word_true(text: str):
    if parse_verdict(Reply(text, Outcome.OK)).supported:
        assert "true" in text.lower() and "false" not in text.lower()


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["L", "N"]), max_size=8), st.sampled_from(["True", "False"]))
def test_marks_before_the_word_change_nothing(marks: str, word: str):
    assert parse_verdict(Reply(marks + word, Outcome.OK)).supported is (word == "True")


@pytest.mark.parametrize("outcome", [o for o in Outcome if o not in (Outcome.OK, Outcome.TRUNCATED)])
def test_a_reply_that_is_no_answer_is_never_support(outcome: Outcome):
    found = parse_verdict(Reply("True", outcome, detail="why"))
    assert (found.supported, found.outcome, found.detail) == (False, outcome, "why")


def test_a_cut_explanation_is_no_harm():
    assert parse_verdict(Reply("True. The text says that", Outcome.TRUNCATED)).supported


class Says:
    """A chat model that answers with what ``says`` makes of the chat."""

    name = "says"

    def __init__(self, says):
        self.says, self.asked = says, []

    def complete(self, chats, sampling):
        self.asked += [(chat, sampling) for chat in chats]
        return [self.says(chat) for chat in chats]


def test_a_model_is_asked_about_each_claim_with_its_own_reference(root):
    model = Says(lambda chat: Reply("True" if "Claim: The Sun" in chat.messages[0][1] else "Falso", Outcome.OK))
    verifier = ModelVerifier(model, prompts.instruction(root, "verify_claim"), seed=4)
    found = verifier.verdicts(["The Sun is a star.", "Ice melts."], ["Text one, with {claim} in it.", "Text two."])
    assert verifier.name == "says" and [v.supported for v in found] == [True, False]
    assert [v.outcome for v in found] == [Outcome.OK, Outcome.UNPARSED]
    first, second = (chat.messages[0][1] for chat, _ in model.asked)
    assert "Text one, with {claim} in it." in first and "Text two." in second and "Claim: Ice melts." in second
    assert all(s.temperature == 0 and s.seed == 4 and s.max_tokens <= 16 for _, s in model.asked)
    assert verifier.verdicts([], []) == []


# ---- lists of verdicts -----------------------------------------------------------------------------------------------
def listed(*supported: bool) -> str:
    return json.dumps({"verdicts": [{"claim": n, "supported": s} for n, s in enumerate(supported, 1)]})


def test_a_list_of_verdicts_matches_its_claims():
    found = parse_verdicts(Reply(f"Sure:\n```json\n{listed(True, False)}\n```", Outcome.OK), 2)
    assert [(v.supported, v.score, v.outcome) for v in found] == [(True, 1, "ok"), (False, 0, "ok")]
    swapped = '{"verdicts": [{"claim": 2, "supported": true}, {"claim": 1, "supported": false}]}'
    assert [v.supported for v in parse_verdicts(Reply(swapped, Outcome.OK), 2)] == [False, True], "numbers decide"


@pytest.mark.parametrize(
    "text",
    [
        listed(True), listed(True, False, True), '{"verdicts": []}', '{"verdicts": true}', '{"verdicts": [true, true]}',
        '{"verdicts": [{"claim": 1, "supported": true}, {"claim": 1, "supported": true}]}',
        '{"verdicts": [{"claim": 0, "supported": true}, {"claim": 1, "supported": true}]}',
        '{"verdicts": [{"claim": "1", "supported": true}, {"claim": 2, "supported": true}]}',
        '{"verdicts": [{"claim": 1, "supported": "true"}, {"claim": 2, "supported": true}]}',
        '{"verdicts": [{"claim": true, "supported": true}, {"claim": 2, "supported": true}]}',
        '{"verdicts": [{"claim": 1, "supported": null}, {"claim": 2, "supported": true}]}',
        '{"verdicts": [{"claim": 1}, {"claim": 2, "supported": true}]}',
        listed(True, True) + listed(False, True), "True\nTrue", "All claims are supported.", "",
    ],
)  # fmt: skip
def test_a_list_that_does_not_match_says_nothing_of_any_claim(text: str):
    found = parse_verdicts(Reply(text, Outcome.OK), 2)
    assert [(v.supported, v.outcome) for v in found] == [(False, "unparsed")] * 2
    assert all(math.isnan(v.score) for v in found)


@pytest.mark.parametrize("outcome", [o for o in Outcome if o is not Outcome.OK])
def test_a_cut_or_refused_list_keeps_its_outcome(outcome: Outcome):
    found = parse_verdicts(Reply(listed(True, True), outcome, detail="why"), 2)
    assert [(v.supported, v.outcome, v.detail) for v in found] == [(False, outcome, "why")] * 2


def test_all_claims_of_an_answer_are_asked_at_once_and_references_follow_each_other(root):
    instruction = prompts.instruction(root, "verify_claims")
    model = Says(lambda chat: Reply(listed(*["A" in c for c in numbered(chat)]), Outcome.OK))

    def numbered(chat):
        part = chat.messages[0][1].split("Claims:\n")[1].split("\n\n")[0]
        return [line.split(". ", 1)[1] for line in part.splitlines()]

    claims, references = ["A1", "B1", "A2", "B2", "A3"], ["R", "S", "R", "S", "R"]
    verifier = ModelVerifier(model, instruction, unit="answer")
    found = verifier.verdicts(claims, references, ["x", "x", "x", "y", "y"])
    assert [v.supported for v in found] == [True, False, True, False, True]
    assert [numbered(chat) for chat, _ in model.asked] == [["A1", "A2"], ["A3"], ["B1"], ["B2"]]
    assert [chat.json_schema for chat, _ in model.asked] == [schema(2)] + [schema(1)] * 3
    for chat, _ in model.asked:
        assert chat.messages[0][1][: chat.shared].endswith("Claims:\n"), "what comes after differs"
    assert verifier.verdicts([], [], []) == []


def test_the_schema_holds_a_list_to_its_length():
    for n, text in ((1, listed(True)), (2, listed(True, False))):
        jsonschema.validate(json.loads(text), json.loads(schema(n)))
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(json.loads(text), json.loads(schema(3)))


# ---- the probability of True -----------------------------------------------------------------------------------------
def token(text: str, alternatives: dict[str, float]) -> tuple:
    """A token with the probabilities of what could have stood there."""
    return text, math.log(alternatives.get(text, 0.5)), tuple((a, math.log(p)) for a, p in alternatives.items())


def test_the_score_is_the_probability_of_true_against_false():
    true = token("True", {"True": 0.6, "False": 0.2, "The": 0.1})
    for read in (parse_verdict, published_verdict):
        found = read(Reply("True.", Outcome.OK, logprobs=(true, token(".", {"true": 0.9}))))
        assert found.supported and found.score == pytest.approx(0.75)
    spelled = token(" false", {" false": 0.3, "FALSE": 0.1, " true": 0.1})
    found = parse_verdict(Reply("**false**", Outcome.OK, logprobs=(token("**", {"true": 0.9}), spelled)))
    assert not found.supported and found.score == pytest.approx(0.2)


def test_without_the_token_that_decided_the_score_is_the_verdict():
    split, other = (token("Tr", {"True": 0.9}), token("ue", {})), (token("false", {"false": 0.9, "true": 0.1}),)
    for logprobs in ((), split, other, (("True", -1.0, ()),)):
        assert parse_verdict(Reply("True", Outcome.OK, logprobs=logprobs)).score == 1.0
    assert math.isnan(parse_verdict(Reply("Yes", Outcome.OK, logprobs=(token("true", {"true": 0.9}),))).score)


def test_each_verdict_of_a_list_has_the_probability_of_its_own_token():
    text = '{"verdicts": [{"claim": 2, "supported": true}, {"claim": 1, "supported": false}]}'
    yes, no = token(" true", {" true": 0.6, " false": 0.2}), token(" false", {" false": 0.9, " true": 0.1})
    filler = token('"claim"', {'"claim"': 1.0})
    found = parse_verdicts(Reply(text, Outcome.OK, logprobs=(filler, yes, filler, no)), 2)
    assert [v.supported for v in found] == [False, True] and [v.score for v in found] == pytest.approx([0.1, 0.75])
    said_more = parse_verdicts(Reply("true " + text, Outcome.OK, logprobs=(yes, filler, yes, filler, no)), 2)
    assert [v.score for v in said_more] == [0.0, 1.0], "which token belongs to which claim is not certain"


def test_log_probabilities_are_asked_for_where_the_model_has_them():
    for has in (True, False):
        model = Says(lambda chat: Reply("True", Outcome.OK))
        ModelVerifier(model, "{reference} {claim}", logprobs=has).verdicts(["a"], ["R"])
        assert bool(model.asked[0][1].logprobs) is has


def test_an_echoed_instruction_supports_nothing(root):
    echo = prompts.instruction(root, "verify_claims")
    for n in (1, 2):
        assert {v.outcome for v in parse_verdicts(Reply(echo, Outcome.OK), n)} == {Outcome.UNPARSED}
    assert parse_verdict(Reply(prompts.instruction(root, "verify_claim"), Outcome.OK)).outcome is Outcome.UNPARSED


def test_by_claim_the_same_call_is_made_once_and_references_follow_each_other():
    model = Says(lambda chat: Reply("True", Outcome.OK))
    found = ModelVerifier(model, "{reference}|{claim}").verdicts(["a", "b", "a", "a"], ["R", "S", "R", "S"])
    assert [chat.messages[0][1] for chat, _ in model.asked] == ["R|a", "S|b", "S|a"] and len(found) == 4


# ---- scores ----------------------------------------------------------------------------------------------------------
def lexical(claim: str, reference: str = REFERENCE) -> float:
    return float(Lexical().scores([claim], [reference])[0])


def test_lexical_overlap_by_hand():
    assert lexical("The Sun is a star.") == 1.0
    assert lexical("The Suns are stars.") == 1.0  # lemmas
    assert lexical("The Sun is a planet.") == 0.5  # sun, of sun and planet
    assert lexical("The Sun is not a star.") == 0.5  # negated, where the sentence is not
    assert lexical("It is 150 million kilometres from the Earth.") == 1.0
    assert lexical("It is 140 million kilometres from the Earth.") == pytest.approx(
        3 / 4 * 0.5
    )  # the number is missing
    assert lexical("It does not orbit the Moon.") == 1.0
    assert lexical("It orbits the Moon.") == 0.5
    assert lexical("It doesn’t orbit the Moon.") == 1.0
    assert lexical("Penguins swim.") == 0.0
    assert lexical("The Sun is a star.", "") == 0.0


@settings(deadline=None)
@given(st.text(), st.text())
def test_lexical_scores_are_shares(claim: str, reference: str):
    assert 0 <= lexical(claim, reference) <= 1


@pytest.mark.parametrize("claim", ["It is.", "…", "", "the of and"])
def test_a_claim_without_content_words_has_a_score(claim: str):
    assert 0 <= lexical(claim) <= 1


def test_overlap_sees_numbers_however_thousands_are_set():
    assert Overlap.of("It has 12,500 people.", "The town has 12500 people.").numbers_missing == 0
    assert Overlap.of("It has 12,500 people and 3 schools.", "The town has 12500 people.").numbers_missing == 0.5


class Letters:
    """An encoder that counts letters: texts with the same letters have the same direction."""

    def __init__(self):
        self.asked: list[str] = []

    def encode(self, texts):
        self.asked += texts
        counts = np.array([[t.lower().count(c) for c in "abcdefghijklmnopqrstuvwxyz"] for t in texts], float).reshape(
            -1, 26
        )
        return counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-9)


def test_embedding_takes_the_most_similar_sentence_and_encodes_each_text_once():
    encoder = Letters()
    scores = Embedding(encoder).scores(["star a is sun the", "zzz"] * 2, [REFERENCE] * 4)
    assert scores == pytest.approx([1, 0, 1, 0], abs=1e-6)
    assert len(encoder.asked) == len(set(encoder.asked)) == 2 + 3
    assert Embedding(encoder).scores([], []).shape == (0,)
    assert Embedding(encoder).scores(["a"], [""]).shape == (1,)


def test_fused_learns_what_the_parts_cannot_say_alone():
    rng = np.random.default_rng(0)
    words = [f"word{chr(97 + i)}" for i in range(20)]
    claims, references, supported = [], [], []
    for _ in range(60):
        chosen = list(rng.choice(words, 4, replace=False))
        truth = bool(rng.integers(2))
        claims.append(" ".join(["the", *chosen]) + f" {rng.integers(10, 99)}.")
        references.append(claims[-1] if truth else " ".join(["the", *rng.choice(words, 4, replace=False)]) + " 7.")
        supported.append(truth)
    fused = Fused(Letters())
    fused.fit(claims, references, np.array(supported))
    scores = fused.scores(claims, references)
    assert ((scores > 0.5) == np.array(supported)).mean() > 0.95 and scores.min() >= 0 and scores.max() <= 1


def test_likelihood_is_the_mean_log_probability_of_the_claim_after_the_reference():
    logprobs = ((" a", -1.0, ()), ("b", -3.0, ()))
    said = {"good": "A claim.", "failed": "", "free": "Something else."}
    model = Says(lambda chat: Reply(said[chat.completion.split()[0]], Outcome.OK, logprobs=logprobs))
    scores = Likelihood(model).scores(["A claim."] * 3, ["good reference", "failed", "free"])
    assert scores == pytest.approx([-2.0, np.nan, np.nan], nan_ok=True), (
        "a model that is not held to the claim has none"
    )
    chat, sampling = model.asked[0]
    assert chat.completion.startswith("good reference") and chat.messages == () and chat.forced == " A claim."
    assert sampling.logprobs and Likelihood(model).scores([], []).shape == (0,)


def test_likelihood_asks_by_reference_and_answers_in_order():
    model = Says(lambda chat: Reply(chat.forced.strip(), Outcome.OK, logprobs=(("x", -float(chat.completion[0]), ()),)))
    assert Likelihood(model).scores(["a", "b", "c"], ["1", "2", "1"]).tolist() == [-1.0, -2.0, -1.0]
    assert [chat.completion[0] for chat, _ in model.asked] == ["1", "1", "2"]


# ---- thresholds ------------------------------------------------------------------------------------------------------
def balanced(scores, supported, threshold) -> float:
    said = [s > threshold for s in scores]
    right = [a == b for a, b in zip(said, supported, strict=True)]
    positive = [r for r, s in zip(right, supported, strict=True) if s]
    negative = [r for r, s in zip(right, supported, strict=True) if not s]
    return (sum(positive) / len(positive) + sum(negative) / len(negative)) / 2


PAIRS = st.lists(st.tuples(st.integers(-20, 20).map(lambda i: i / 4), st.booleans()), min_size=2, max_size=25)


@settings(deadline=None)
@given(PAIRS)
def test_no_threshold_is_better_than_the_best(pairs):
    scores, supported = np.array([s for s, _ in pairs]), np.array([t for _, t in pairs])
    assume(supported.any() and not supported.all())
    found = best_threshold(scores, supported)
    candidates = [*(scores + 1e-3), *(scores - 1e-3), -100, 100]
    assert balanced(scores, supported, found) == pytest.approx(max(balanced(scores, supported, c) for c in candidates))


def test_the_threshold_is_the_middle_of_the_gap_and_nan_is_left_out():
    assert best_threshold(np.array([1.0, 2.0, np.nan, 6.0]), np.array([False, False, False, True])) == 4.0
    assert best_threshold(np.array([5.0, 5.0]), np.array([True, False])) < 5.0
    assert best_threshold(np.array([1e9, 2e9, 3e9]), np.array([True, False, False])) < 1e9


@pytest.mark.parametrize("scores", [[np.nan, np.nan], [1.0, np.nan]])
def test_without_scores_of_both_kinds_there_is_no_threshold(scores):
    with pytest.raises(Problem, match="has no threshold"):
        best_threshold(np.array(scores), np.array([True, False]))


class Given:
    """A scorer whose scores are the claims, read as numbers."""

    name = "given"

    def scores(self, claims, references):
        return np.array([float(c) for c in claims])


def test_a_calibrated_scorer_gives_verdicts():
    calibrated = Calibrated(Given(), ["1", "2", "3", "4"], [""] * 4, np.array([False, False, True, True]))
    assert (calibrated.name, calibrated.threshold) == ("given", 2.5)
    low, high, none = calibrated.verdicts(["2.5", "2.6", "nan"], [""] * 3)
    assert (low.supported, high.supported, high.score, high.outcome) == (False, True, 2.6, Outcome.OK)
    assert none.outcome is Outcome.ERROR and not none.supported
    assert type(high.supported) is bool
    assert calibrated.verdicts([], []) == []
