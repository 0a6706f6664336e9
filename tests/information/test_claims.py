"""information/claims.py: the claims of a text, however a model wraps its list."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xlc_utils.chat.base import Reply
from xlc_utils.information.claims import SCHEMA, Claims, ModelClaims, SentenceClaims, json_object
from xlc_utils.registry import prompts
from xlc_utils.registry.outcomes import Outcome

LIST = '{"claims": ["The Sun is a star.", "Stars shine."]}'
CLAIMS = ("The Sun is a star.", "Stars shine.")


class Says:
    """A chat model that gives the same reply to everything."""

    name = "says"

    def __init__(self, reply: Reply | str):
        self.reply, self.asked = Reply(reply, Outcome.OK) if isinstance(reply, str) else reply, []

    def complete(self, chats, sampling):
        self.asked += [(chat, sampling) for chat in chats]
        return [self.reply for _ in chats]


def extracted(reply: Reply | str) -> Claims:
    return ModelClaims(Says(reply), "List the claims of: {text}").extract(["The Sun is a star."])[0]


PARSED = {
    "alone": (LIST, CLAIMS),
    "in prose": (f"Sure! Here they are:\n\n{LIST}\n\nAnything else?", CLAIMS),
    "in a fence": (f"```json\n{LIST}\n```", CLAIMS),
    "spread out": (json.dumps(json.loads(LIST), indent=4), CLAIMS),
    "after braces that are no JSON": (f"The set {{a, b}} has two members. {LIST}", CLAIMS),
    "after a broken one": (f'{{"claims": [ {LIST}', CLAIMS),
    "braces in strings": (
        '{"claims": ["A set is {a, b}.", "The sign } closes."]}',
        ("A set is {a, b}.", "The sign } closes."),
    ),
    "quotes in strings": ('{"claims": ["He said \\"no\\"."]}', ('He said "no".',)),
    "another key first": ('{"text": "x", "claims": ["A."]}', ("A.",)),
    "space around": ('{"claims": ["  A. ", "", " "]}', ("A.",)),
    "said twice": ('{"claims": ["A.", "B.", "A."]}', ("A.", "B.")),
    "half a character": ('{"claims": ["A \\ud83d."]}', ("A \ufffd.",)),
    "another script": ('{"claims": ["太陽は星です。"]}', ("太陽は星です。",)),
}


@pytest.mark.parametrize(("reply", "claims"), PARSED.values(), ids=PARSED)
def test_a_list_of_claims_is_found(reply: str, claims: tuple[str, ...]):
    assert extracted(reply) == Claims(claims, Outcome.OK)


@pytest.mark.parametrize("reply", ['{"claims": []}', '{"claims": ["", "  "]}', '```\n{"claims": []}\n```'])
def test_an_empty_list_is_empty(reply: str):
    assert extracted(reply) == Claims((), Outcome.EMPTY)


@pytest.mark.parametrize(
    "reply",
    [
        "The text states nothing.",
        '["A.", "B."]',
        "null",
        "{}",
        '{"claims": null}',
        '{"claims": "A."}',
        '{"claims": {"1": "A."}}',
        '{"claims": ["A.", 2]}',
        '{"claims": ["A.", null]}',
        '{"claims": [["A."]]}',
        '{"claims": [{"claim": "A."}]}',
        '{"Claims": ["A."]}',
        '{"claims": ["A."',
        "{'claims': ['A.']}",
        '{"claims": ' + "[" * 50_000,
        '{"a":' * 5_000,
        "{" * 5_000,
    ],
)
def test_anything_else_is_unparsed_and_shown(reply: str):
    found = extracted(reply)
    assert (found.claims, found.outcome) == ((), Outcome.UNPARSED)
    assert repr(reply[:80]) in found.detail


@pytest.mark.parametrize("outcome", [o for o in Outcome if o not in (Outcome.OK, Outcome.EMPTY)])
def test_a_reply_that_is_no_answer_keeps_its_outcome(outcome: Outcome):
    assert extracted(Reply(LIST, outcome, detail="why")) == Claims((), outcome, "why")


def test_an_extractor_that_says_nothing_has_not_found_the_text_empty():
    assert extracted(Reply("", Outcome.EMPTY, detail="why")) == Claims((), Outcome.UNPARSED, "why")


@settings(max_examples=40, deadline=None)
@given(
    before=st.text(st.characters(exclude_characters="{", exclude_categories=["Cs"])),
    found=st.dictionaries(
        st.text(max_size=4), st.recursive(st.text() | st.integers() | st.none(), st.lists), max_size=3
    ),
    after=st.text(st.characters(exclude_characters="{")),
)
def test_the_object_is_found_whatever_stands_around_it(before, found, after):
    found = {**found, "key": 1}
    assert json_object(before + json.dumps(found) + after, "key") == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"k": 1} {"k": 1}', {"k": 1}),  # said twice
        ('{"k": 1} {"k": 2}', None),  # which of them?
        ('{"other": 1} {"k": 2}', {"k": 2}),
        ('{"k": 1, "k": 2}', None),
        ('{"k": {"k": 1}}', {"k": {"k": 1}}),
        ("[1]", None),
    ],
)
def test_several_objects_that_differ_are_none(text: str, found):
    assert json_object(text, "k") == found


@pytest.mark.parametrize(
    ("reply", "claims"),
    [
        ("- The Sun is a star.\n- Stars shine.", CLAIMS),
        ("* The Sun is a star.\n* Stars shine.", CLAIMS),
        ("1. The Sun is a star.\n2) Stars shine.", CLAIMS),
        ("Here they are:\n\n- The Sun is a star.\n\n- Stars shine.\n", CLAIMS),
        ("- The Sun is a star.\n-\n- Stars shine.", CLAIMS),
    ],
)
def test_a_list_with_marks_is_read_where_there_is_no_json(reply: str, claims: tuple[str, ...]):
    assert extracted(reply) == Claims(claims, Outcome.OK)


@pytest.mark.parametrize("reply", ["I cannot do it.\n- Ask again.", "- A.\nAnd B.", "-A.", "2.5 is a number."])
def test_a_reply_of_which_some_lines_are_no_items_is_unparsed(reply: str):
    assert extracted(reply).outcome is Outcome.UNPARSED


def test_an_echoed_instruction_states_nothing(root):
    text = prompts.instruction(root, "extract_claims")
    assert extracted(text).outcome is Outcome.UNPARSED
    assert extracted('{"claims": ["…", "…"]}').outcome is Outcome.UNPARSED


# ---- by sentence -----------------------------------------------------------------------------------------------------
def test_by_sentence_each_distinct_sentence_is_asked_about_once():
    class ByLetter(Says):
        def complete(self, chats, sampling):
            self.asked += chats
            texts = [chat.messages[0][1] for chat in chats]
            return [Reply("nonsense" if "Bad" in t else json.dumps({"claims": [t, "x"]}), Outcome.OK) for t in texts]

    model = ByLetter("")
    found = ModelClaims(model, "{text}", unit="sentence").extract(["A one. B two.", "B two.", "Bad one. A one.", " "])
    assert [c.messages[0][1] for c in model.asked] == ["A one.", "B two.", "Bad one."]
    assert found[0] == Claims(("A one.", "x", "B two."), Outcome.OK) and found[1].claims == ("B two.", "x")
    assert (found[2].claims, found[2].outcome, found[3].outcome) == ((), "unparsed", "empty")


def test_each_text_is_asked_about_once_and_an_empty_one_never():
    model = Says(LIST)
    found = ModelClaims(model, "Claims of <{text}>, not {other}", seed=3).extract(
        ["a {text}", "", "b", "a {text}", " \n"]
    )
    assert [chat.messages for chat, _ in model.asked] == [
        (("user", "Claims of <a {text}>, not {other}"),),
        (("user", "Claims of <b>, not {other}"),),
    ]
    assert [c.outcome for c in found] == ["ok", "empty", "ok", "ok", "empty"]
    sampling = model.asked[0][1]
    assert (sampling.max_tokens, sampling.seed, sampling.json_schema, sampling.temperature) == (2048, 3, SCHEMA, 0.0)


def test_the_schema_and_the_instruction_ask_for_the_same_form(root):
    assert json.loads(SCHEMA)["required"] == ["claims"]
    text = prompts.instruction(root, "extract_claims")
    assert text.count("{text}") == 1 and '{"claims": [' in text


# ---- sentences -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("Water boils. Ice melts.", ["Water boils.", "Ice melts."]),
        ("**Facts:**\n\n- Water boils.\n- Ice melts.", ["Water boils.", "Ice melts."]),
        ("**Facts**:\n1. Water boils.", ["Water boils."]),
        ("# About water\nWater boils.", ["Water boils."]),
        ("Water has three forms:\n- It freezes.", ["It freezes."]),
        ("Water boils. It has three forms:\n- It freezes.", ["Water boils.", "It freezes."]),
        ("**Boiling**: water boils.", ["Boiling: water boils."]),
        ("**Boiling:** It boils. It steams.", ["Boiling: It boils.", "It steams."]),
        ("The ratio is 2:1.", ["The ratio is 2:1."]),
        ("| Water | boils |\n|---|---|", ["Water", "boils"]),
        ("Water boils. Water boils.", ["Water boils."]),
        ("```\ncode here\n```", []),
        ("42\n---", []),
        ("", []),
    ],
)
def test_sentences_are_claims_and_headings_are_none(text: str, claims: list[str]):
    [found] = SentenceClaims().extract([text])
    assert list(found.claims) == claims
    assert found.outcome == (Outcome.OK if claims else Outcome.EMPTY)


def test_the_sentences_of_the_known_english_answers_are_its_claims(root):
    """All but those of one answer, where a splitter takes "vitamin C." for an initial."""
    for prompt_id, answer in prompts.known_answers(root, "en").items():
        [found] = SentenceClaims().extract([answer.text()])
        if prompt_id != "nutrition-01":
            assert list(found.claims) == [s.text for s in answer.sentences], prompt_id
