"""The judge's scores: what is asked, what is accepted, and that every reply is typed and counted."""

from __future__ import annotations

import io
import json

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from short_dialogues import TEXTS
from stub_model import StubModel, turns_of

from xlc_utils.chat.base import Reply
from xlc_utils.judges.dialogues import Malformed
from xlc_utils.judges.rubric import INSTRUCTIONS, SCALES, conversation, judge_dialogues, read_scores
from xlc_utils.registry import prompts
from xlc_utils.registry.files import project_root
from xlc_utils.registry.outcomes import Outcome, outcome_counts
from xlc_utils.registry.problems import Problem

GOOD = {"G": 4, "R": 3, "C": 2, "F": 0, "explanation": "Clear, but stiff."}


def said(**changes):
    """A judge's reply; a change to None takes the key out."""
    return json.dumps({key: value for key, value in (GOOD | changes).items() if value is not None})


def dialogues(n=1, **changes):
    row = {"language": "en", "generator": "some-model", "turns": turns_of(TEXTS["en"]), "outcome": "ok"}
    return pd.DataFrame([{"dialogue_id": f"d{i}", **row} | changes for i in range(n)])


def judged(reply, frame=None):
    frame = dialogues() if frame is None else frame
    return judge_dialogues(StubModel(lambda chat: reply, name="a-judge"), frame, "Judge this: {conversation}")


# ---- accepted ---------------------------------------------------------------------------------------------------
ACCEPTED = {
    "as asked": said(),
    "with white space": f"\n  {json.dumps(GOOD, indent=2)}\n\n",
    "in another order": json.dumps(dict(reversed(GOOD.items()))),
    "in a code fence": f"```json\n{said()}\n```",
    "in a bare code fence": f"```\n{said()}\n```\n",
}


@pytest.mark.parametrize("reply", ACCEPTED.values(), ids=ACCEPTED)
def test_a_reply_of_the_form_asked_for_is_read(reply):
    row = judged(reply).iloc[0]
    assert row["outcome"] == "ok" and [row[name] for name in "GRCF"] == [4, 3, 2, 0]
    assert row["explanation"] == GOOD["explanation"]
    assert row["detail"] == ("in a code fence" if "```" in reply else "")


@given(
    st.fixed_dictionaries({name: st.integers(0, top) for name, top in SCALES.items()}),
    st.text(st.characters(exclude_categories=["Cs"])),
)
def test_every_score_on_its_scale_is_read_as_it_was_given(scores, explanation):
    assert read_scores(json.dumps(scores | {"explanation": explanation})) == scores | {"explanation": explanation}


# ---- refused ----------------------------------------------------------------------------------------------------
REFUSED = {
    "G above": (said(G=5), "G is off its scale of 0 to 4: 5"),
    "R above": (said(R=5), "R is off its scale"),
    "C on the wider scale": (said(C=4), "C is off its scale of 0 to 3: 4"),
    "F on the wider scale": (said(F=4), "F is off its scale"),
    "below": (said(G=-1), "G is off its scale"),
    "far above": (said(G=10**100), "G is off its scale"),
    "too long a number": (said().replace("4", "4" * 5000), "no JSON object"),
    "text": (said(G="3"), "G is no whole number: '3'"),
    "a word": (said(F="high"), "F is no whole number"),
    "half": (said(R=2.5), "R is no whole number: 2.5"),
    "a float": (said(R=3.0), "R is no whole number: 3.0"),
    "an exponent": (said().replace("4", "1e0"), "G is no whole number"),
    "true": (said(C=True), "C is no whole number: True"),
    "null": (said().replace("4", "null"), "G is no whole number: None"),
    "NaN": (said(G=float("nan")), "G is no whole number: nan"),
    "infinite": (said(G=float("inf")), "G is no whole number: inf"),
    "a list": (said(G=[4]), "G is no whole number: a list"),
    "an object": (said(G={"score": 4}), "G is no whole number: a dict"),
    "a fraction": (said().replace("4", "4/4"), "no JSON object"),
    "no G": (said(G=None), "no key G"),
    "no F": (said(F=None), "no key F"),
    "no explanation": (said(explanation=None), "no key explanation"),
    "an explanation that is a list": (said(explanation=["a"]), "the explanation is no text"),
    "lower case": (said().replace('"G"', '"g"'), "no key G"),
    "full names": (said().replace('"G"', '"Grammaticality"'), "no key G"),
    "one more": (said(total=9), "an unknown key: 'total'"),
    "G twice": (said()[:-1] + ', "G": 1}', "the key 'G' is given twice"),
    "nested": (json.dumps({"scores": GOOD}), "no key G"),
    "a list of one": (json.dumps([GOOD]), "text before"),
    "an empty object": ("{}", "no key G"),
    "a number": ("4", "no JSON object"),
    "prose alone": ("The grammar is very good, so 4.", "no JSON object"),
    "prose before": (f"Here are the scores: {said()}", "text before the JSON object"),
    "prose after": (f"{said()}\nOn second thoughts, G should be 2.", "text after the JSON object: 'On second"),
    "two objects": (said() + said(G=1), "text after the JSON object"),
    "prose around a fence": (f"Sure!\n```json\n{said()}\n```", "text before the JSON object"),
    "prose after a fence": (f"```json\n{said()}\n```\nDone.", "text before the JSON object"),
    "a fence that is not closed": (f"```json\n{said()}", "text before the JSON object"),
    "prose in a fence": (f"```\nScores: {said()}\n```", "text before the JSON object"),
    "thoughts": (f"<think>Hm.</think>{said()}", "text before the JSON object"),
    "cut": (said()[:-1], "no JSON object"),
    "single quotes": (str(GOOD), "no JSON object"),
    "a comma too many": (said()[:-1] + ",}", "no JSON object"),
    "a comment": ('{"G": 4, // good\n' + said()[8:], "no JSON object"),
    "not JSON": ("G: 4\nR: 3\nC: 2\nF: 0", "no JSON object"),
    "the instruction's own form": ('{"G": <0 to 4>, "R": <0 to 4>}', "no JSON object"),
    "too deep": ('{"G":' * 20000, "no JSON object"),
    "a raw line break": (said().replace("Clear, ", "Clear,\n"), "no JSON object"),
}


@pytest.mark.parametrize(("reply", "says"), REFUSED.values(), ids=REFUSED)
def test_any_other_reply_is_unparsed_and_says_why(reply, says):
    row = judged(reply).iloc[0]
    assert row["outcome"] == "unparsed" and row["explanation"] == ""
    assert says in row["detail"] and len(row["detail"]) < 200
    assert row[list(SCALES)].isna().all()


@pytest.mark.parametrize("outcome", [o for o in Outcome if o != Outcome.OK])
def test_a_reply_that_is_not_ok_is_never_read(outcome):
    row = judged(Reply(said(), outcome, detail="why")).iloc[0]
    assert (row["outcome"], row["detail"]) == (str(outcome), "why") and row[list(SCALES)].isna().all()


VALUES = st.none() | st.integers() | st.floats() | st.text()
NAMES = st.sampled_from([*SCALES, "explanation", "x"])
JSON = st.recursive(VALUES, lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner), max_leaves=8).map(json.dumps)


@given(st.text() | JSON)
@settings(max_examples=80, deadline=None)
def test_any_reply_is_read_on_the_scales_or_refused(text):
    try:
        scores = read_scores(text)
    except Malformed:
        return
    assert all(scores[name] in range(top + 1) for name, top in SCALES.items())


# ---- asked ------------------------------------------------------------------------------------------------------
def test_one_call_a_dialogue_that_says_who_writes_and_nothing_of_where_it_comes_from():
    model = StubModel(lambda chat: said())
    frame = dialogues(3).assign(industry="pet retail", problem="track_refund")
    judge_dialogues(model, frame, "Judge this:\n{conversation}")
    assert [chat.prompt_id for chat in model.asked] == ["d0", "d1", "d2"]
    ((role, text),) = model.asked[0].messages
    assert role == "user" and text.startswith(f"Judge this:\nRobin Falk (agent): {TEXTS['en'][0]}\nAnna (customer): ")
    assert not any(word in text for word in ("some-model", "pet retail", "track_refund", "d0"))


def test_a_turn_without_a_name_shows_the_sender():
    assert conversation('[{"sender": "agent", "name": "", "text": "Hello"}]') == "agent: Hello"


def test_braces_in_a_dialogue_are_no_placeholders():
    model = StubModel(lambda chat: said())
    judge_dialogues(model, dialogues(turns=turns_of(["{conversation} {industries}"])), "{conversation}")
    assert model.asked[0].messages[0][1] == "Robin Falk (agent): {conversation} {industries}"


@pytest.mark.parametrize("language", INSTRUCTIONS)
def test_each_meta_prompt_asks_for_every_score_on_its_scale(language):
    text = prompts.instruction(project_root(), INSTRUCTIONS[language])
    to = {"en": "to", "et": "kuni"}[language]
    assert text.count("{conversation}") == 1
    for name, top in SCALES.items():
        assert f'"{name}": <0 {to} {top}>' in text and f", 0 {to} {top}\n" in text
        scale = text.split(f"\n{name}, ")[1].split("\n\n")[0].splitlines()[1:]
        assert [line.split(":")[0] for line in scale] == [str(score) for score in range(top + 1)]


def test_the_schema_allows_what_is_read_and_no_more():
    model = StubModel(lambda chat: said())
    judge_dialogues(model, dialogues(), "{conversation}")
    schema = json.loads(model.sampling.json_schema)
    assert {name: max(schema["properties"][name]["enum"]) for name in SCALES} == SCALES
    assert schema["required"] == [*SCALES, "explanation"] and schema["additionalProperties"] is False


# ---- the table --------------------------------------------------------------------------------------------------
def test_a_dialogue_without_turns_is_not_sent_and_keeps_its_outcome():
    frame = pd.concat(
        [
            dialogues(),
            dialogues(dialogue_id="x", turns="[]", outcome="unparsed"),
            dialogues(dialogue_id="y", turns="[]", outcome="ok"),
            dialogues(dialogue_id="z", outcome="off_target"),
        ]
    )
    model = StubModel(lambda chat: said())
    table = judge_dialogues(model, frame, "{conversation}")
    assert [chat.prompt_id for chat in model.asked] == ["d0", "z"]
    assert list(table["outcome"]) == ["ok", "unparsed", "empty", "ok"]
    assert table["detail"].str.startswith("not judged").tolist() == [False, True, True, False]
    assert table["G"].notna().tolist() == [True, False, False, True]


def test_replies_go_to_the_dialogues_they_are_of_and_all_are_counted():
    sent = [said(G=1), "no", said(G=2), said(G=9), Reply("", Outcome.ERROR)]
    replies = {f"d{i}": reply for i, reply in enumerate(sent)}
    frame = dialogues(5).sample(frac=1, random_state=1)
    table = judge_dialogues(StubModel(lambda chat: replies[chat.prompt_id]), frame, "{conversation}")
    assert list(table["dialogue_id"]) == list(frame["dialogue_id"])
    by_id = table.set_index("dialogue_id")
    assert (by_id["G"]["d0"], by_id["G"]["d2"]) == (1, 2)
    counts = outcome_counts(table["outcome"]).iloc[0]
    assert (counts["n"], counts["ok"], counts["unparsed"], counts["error"]) == (5, 2, 2, 1)


def test_the_columns_are_these_and_can_be_stored():
    table = judged(said(explanation="half \ud83d a character"))
    assert list(table.columns) == [
        "dialogue_id", "language", "generator", "judge", "G", "R", "C", "F", "explanation", "outcome", "detail",
    ]  # fmt: skip
    assert table["judge"].item() == "a-judge"
    for frame in (table, judged(said(G="\ud83d")), judged("\ud83d {")):
        stored = io.BytesIO()
        frame.to_parquet(stored)
        assert pd.read_parquet(stored).equals(frame)


def test_no_dialogues_make_an_empty_table():
    assert len(judged(said(), dialogues(0).reindex(columns=dialogues().columns))) == 0


def test_dialogues_that_cannot_be_told_apart_or_lack_a_column_are_refused():
    with pytest.raises(Problem, match="d0 en some-model is there twice"):
        judged(said(), pd.concat([dialogues(), dialogues()]))
    with pytest.raises(Problem, match="no column `turns`"):
        judged(said(), dialogues().drop(columns="turns"))
