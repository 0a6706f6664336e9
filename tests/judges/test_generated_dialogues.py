"""Draws of parameters, requests, and what is made of a generator's replies."""

from __future__ import annotations

import functools
import json
import time
from collections import Counter

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from short_dialogues import TEXTS
from stub_model import StubModel, as_json

from xlc_utils.chat.base import Reply
from xlc_utils.chat.offtarget import LanguageDetector
from xlc_utils.judges import dialogues
from xlc_utils.judges.dialogues import (
    COLUMNS,
    DialogueOptions,
    Malformed,
    chats,
    draw_parameters,
    draws_table,
    filled,
    first_draws,
    generate_dialogues,
    is_sequential,
    parse_turns,
    read_options,
    turns_from_json,
    turns_to_json,
)
from xlc_utils.judges.released import PARAMETERS, Turn
from xlc_utils.registry import languages
from xlc_utils.registry.files import parse, project_root
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem


# ---- draws ------------------------------------------------------------------------------------------------------
@functools.cache
def many_draws():
    return draw_parameters(4000, 7)


def test_the_sets_have_the_sizes_of_table_5():
    options = read_options()
    sizes = {name: len(labels) for name, labels in options.labels.items()}
    assert sizes == {"industry": 49, "problem": 20, "channel": 2, "agent_experience": 2, "agent_type": 2}
    assert options.message_counts == (4, 8, 12, 16) and options.message_weights == (0.4, 0.3, 0.2, 0.1)
    assert all(len(set(labels)) == len(labels) for labels in options.labels.values())


def test_the_same_seed_gives_the_same_draws_and_fewer_are_the_first_of_more():
    assert draw_parameters(30, 7) == draw_parameters(30, 7) == list(many_draws()[:30])


def test_another_seed_gives_other_draws_under_other_ids():
    ours, others = draws_table(draw_parameters(50, 7)), draws_table(draw_parameters(50, 8))
    assert not set(ours["dialogue_id"]) & set(others["dialogue_id"])
    assert (ours["industry"] == others["industry"]).mean() < 0.3


def test_a_known_draw_stays_what_it_is():
    """Recorded calls and committed tables hang on it."""
    first, second = draw_parameters(2, 0)
    assert (first.dialogue_id, first.industry, first.problem) == ("seed0-00000", "automotive retail", "change_order")
    assert second.agent_emails == ("robin.falk@alvorin.example", "mika.rand@alvorin.example")


def test_message_counts_have_the_weights_of_table_5():
    counts = Counter(draw.n_messages for draw in many_draws())
    expected = [1600, 1200, 800, 400]
    assert chisquare([counts[n] for n in (4, 8, 12, 16)], expected).pvalue > 0.001
    assert chisquare([counts[n] for n in (4, 8, 12, 16)], [1000] * 4).pvalue < 1e-9  # this sample could tell


@pytest.mark.parametrize("name", [*PARAMETERS, "n_agents"])
def test_everything_else_is_drawn_with_equal_probability(name):
    counts = draws_table(many_draws())[name].value_counts()
    options = read_options().labels.get(name, (1, 2))
    assert set(counts.index) == set(options)
    assert chisquare(counts).pvalue > 0.001


def test_parameters_are_drawn_independently():
    table = draws_table(many_draws())
    shares = table.groupby(["channel", "agent_type", "agent_experience", "n_agents"]).size()
    assert len(shares) == 16 and chisquare(shares).pvalue > 0.001


def test_agents_are_different_people_as_many_as_asked():
    for draw in many_draws()[:500]:
        assert len(set(draw.agent_emails)) == draw.n_agents


GOOD_OPTIONS = {
    "company": "X", "industries": ["a"], "problems": {"b": "B."}, "channels": {"c": "C."},
    "agent_experiences": {"d": "D."}, "agent_types": {"e": "E."}, "message_counts": [4, 8],
    "message_weights": [0.5, 0.5], "numbers_of_agents": [1], "agent_emails": ["f@x.example"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"industries": []}, "`industries` is empty"),
        ({"message_weights": [1.0]}, "differ in length"),
        ({"message_weights": [0.5, 0.6]}, "no probabilities"),
        ({"message_weights": [-0.5, 1.5]}, "no probabilities"),
        ({"numbers_of_agents": [2]}, "does not fit"),
        ({"numbers_of_agents": [0, 1]}, "does not fit"),
        ({"problems": ["b"]}, "problems"),
        ({"channel": {}}, "channel"),
    ],
)
def test_options_that_cannot_be_drawn_from_are_refused(change, says):
    assert parse(DialogueOptions, GOOD_OPTIONS, "dialogues.yaml")
    with pytest.raises(Problem, match=says):
        parse(DialogueOptions, GOOD_OPTIONS | change, "dialogues.yaml")


# ---- requests ---------------------------------------------------------------------------------------------------
def test_requests_differ_between_languages_in_the_language_only():
    draws = draw_parameters(20, 3)
    texts = {code: [chat.messages[1][1] for chat in chats(draws, code)] for code in ("en", "et", "fi", "hu")}
    for code, name in (("et", "Estonian"), ("fi", "Finnish"), ("hu", "Hungarian")):
        assert [text.replace(name, "English") for text in texts[code]] == texts["en"]
        assert all(name in text for text in texts[code])


def test_a_request_says_everything_that_was_drawn_and_leaves_no_placeholder():
    options, draws = read_options(), draw_parameters(40, 5)
    for draw, chat in zip(draws, chats(draws, "fi"), strict=True):
        system, user = (text for _, text in chat.messages)
        assert (chat.language, chat.prompt_id) == ("fi", draw.dialogue_id)
        for said in (
            draw.industry,
            options.problems[draw.problem],
            options.channels[draw.channel],
            *draw.agent_emails,
            options.agent_experiences[draw.agent_experience],
            options.agent_types[draw.agent_type],
            f"exactly {draw.n_messages} messages",
            f"{draw.n_agents} support agent",
            options.company,
        ):
            assert said in user
        assert "{" not in user and "never alternate" in system


def test_braces_in_a_value_are_left_alone_and_a_missing_place_is_told():
    assert filled("{a} {b} {c}", {"a": "{b}", "b": "1"}) == "{b} 1 {c}"
    with pytest.raises(Problem, match=r"it has no \{conversation\}"):
        filled("Judge this.", {"conversation": "Hello"})


# ---- parsing ----------------------------------------------------------------------------------------------------
TURNS = [("agent", "Robin Falk", "Hello Anna!"), ("customer", "Anna", "Where is my parcel?")]
PARSED = tuple(Turn(*turn) for turn in TURNS)
WITHOUT_NAMES = tuple(Turn(sender, "", text) for sender, _, text in TURNS)


@pytest.mark.parametrize(
    "text",
    [
        as_json(TURNS),
        f"```json\n{as_json(TURNS)}\n```",
        f"Here is the conversation:\n{as_json(TURNS)}\nI hope this helps!",
        f"{{not json}} {as_json(TURNS)}",
        json.dumps(json.loads(as_json(TURNS))["messages"]),
        json.dumps({"subject": "Parcel", **json.loads(as_json(TURNS))}),
        as_json([("Agent", "Robin Falk", " Hello Anna!\n"), ("KLIENT", " Anna", "Where is my parcel?")]),
        "Agent (Robin Falk): Hello Anna!\nCustomer (Anna): Where is my parcel?",
        "**Agent Robin Falk:** Hello Anna!\n\n**Customer Anna:** Where is my parcel?",
        "1. AGENT – Robin Falk: Hello Anna!\n2. CUSTOMER – Anna: Where is my parcel?",
        "Robin Falk (agent): Hello Anna!\nAnna (customer): Where is my parcel?",
        "Robin Falk (asiakaspalvelija): Hello Anna!\nAnna (asiakas): Where is my parcel?",
    ],
)
def test_turns_are_read_from_json_or_lines(text):
    assert parse_turns(text) == PARSED


@pytest.mark.parametrize(
    ("agent", "customer"),
    [
        ("AGENT", "CUSTOMER"), ("Support agent", "Client"), ("AGENT", "KLIENT"), ("Klienditugi", "Klient"),
        ("Agentti", "Asiakas"), ("ASIAKASPALVELIJA", "ASIAKAS"), ("ÜGYNÖK", "ÜGYFÉL"), ("Ügyfélszolgálat", "Vásárló"),
    ],
)  # fmt: skip
def test_lines_may_begin_with_the_words_of_the_four_languages(agent, customer):
    assert parse_turns(f"{agent}: Hello Anna!\n{customer}: Where is my parcel?") == WITHOUT_NAMES


def test_a_message_of_several_lines_stays_whole_and_what_comes_before_the_first_is_dropped():
    message = "Dear Anna,\n\nthe order number: 4711.\nCustomer service: open daily."
    text = f"Subject: parcel\n\nAGENT: {message}\n\nCUSTOMER: Thanks"
    assert [turn.text for turn in parse_turns(text)] == [message, "Thanks"]


def test_a_line_break_in_a_json_text_and_half_a_character_do_no_harm():
    text = '{"messages": [{"sender": "agent", "name": null, "text": "Hello,\nAnna \\ud83d"}]}'
    assert parse_turns(text) == (Turn("agent", "", "Hello,\nAnna \ufffd"),)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("I am sorry, I cannot do that.", "neither JSON"),
        ("{}", "neither JSON"),
        ("[]", "neither JSON"),
        ("[1, 2]", "neither JSON"),
        ('{"messages": "none"}', "neither JSON"),
        (as_json(TURNS)[:-10], "neither JSON"),
        ("agent says: Hello\ncustomer writes: Hi", "neither JSON"),
        ("Customer service: Hello Anna!", "neither JSON"),
        ("cl\u0131ent: Hello", "neither JSON"),
        ('{"messages": [1]}', "message 1 is no object"),
        (as_json([TURNS[0], ("manager", "Kim", "Hello")]), "message 2 has no known sender: 'manager'"),
        ('{"messages": [{"text": "Hello"}]}', "message 1 has no known sender: None"),
        ('{"messages": [{"sender": {"is": "agent"}, "text": "Hello"}]}', "no known sender: a dict"),
        ('{"messages": [{"sender": "agent", "name": "Kim"}]}', "message 1 has no text"),
        (as_json([TURNS[0], ("customer", "Anna", "  ")]), "message 2 has no text"),
        ('{"messages": [{"sender": "agent", "name": "Kim", "text": 3}]}', "message 1 has a name or a text"),
        ('{"messages": [{"sender": "agent", "name": ["Kim"], "text": "Hello"}]}', "message 1 has a name or a text"),
        ("AGENT:\nCUSTOMER: Hi", "message 1 has no text"),
        ("{" * 5000, "neither JSON"),
        ('{"messages":' * 3000, "neither JSON"),
        ("*" * 20000, "neither JSON"),
    ],
)
def test_what_is_no_dialogue_is_refused(text, says):
    with pytest.raises(Malformed, match=says):
        parse_turns(text)


@pytest.mark.parametrize("unit", ["*", "[", '{"a":', "1. ", "agent ", "a(agent", "\n>", '["sender"'])
def test_no_reply_takes_long_to_refuse(unit):
    begun = time.process_time()
    with pytest.raises(Malformed):
        parse_turns(unit * (20000 // len(unit)))
    assert time.process_time() - begun < 2


PIECES = st.sampled_from([*'{}[]":,', "agent:", "messages", "sender", "\n", "x", "ſ"])


@given(st.one_of(st.text(), st.lists(PIECES).map("".join)))
@settings(max_examples=150, deadline=None)
def test_any_reply_is_read_or_refused(text):
    try:
        turns = parse_turns(text)
    except Malformed:
        return
    assert all(turn.sender in ("agent", "customer") and turn.text for turn in turns)


A_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).map(str.strip).filter(bool)


@given(st.lists(st.builds(Turn, st.sampled_from(["agent", "customer"]), A_TEXT, A_TEXT), min_size=1))
@settings(max_examples=60, deadline=None)
def test_what_is_written_as_asked_is_read_as_it_was_written(turns):
    reply = as_json([(turn.sender, turn.name, turn.text) for turn in turns])
    assert list(parse_turns(reply)) == turns == list(turns_from_json(turns_to_json(turns)))


# ---- checks -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("agents", "sequential"),
    [("", True), ("a", True), ("aab", True), ("aabb", True), ("aba", False), ("abab", False), ("abca", False)],
)
def test_agents_take_over_and_do_not_come_back(agents, sequential):
    assert is_sequential(list(agents)) is sequential


@given(st.lists(st.sampled_from("abc"), max_size=7))
def test_order_of_agents_is_that_of_sorted_first_appearances(agents):
    first = {name: agents.index(name) for name in agents}
    assert is_sequential(agents) == (sorted(agents, key=first.__getitem__) == agents)


@pytest.fixture(scope="module")
def detector():
    return LanguageDetector(languages.load(project_root()))


def generated(reply, detector, language="en"):
    """The row of one dialogue of 4 messages."""
    draw = next(draw for draw in many_draws() if draw.n_messages == 4)
    (row,) = generate_dialogues(StubModel(lambda chat: reply), [draw], language, detector).to_dict("records")
    return row


def of_texts(texts, agents=("Robin Falk",)):
    """A reply in which agent and customer take turns, and so do the agents."""
    named = [("agent", agents[i // 2 % len(agents)]) if i % 2 == 0 else ("customer", "Anna") for i in range(len(texts))]
    return as_json([(*who, text) for who, text in zip(named, texts, strict=True)])


@pytest.mark.parametrize("language", ["en", "et", "fi", "hu"])
def test_a_dialogue_as_asked_passes_every_check(detector, language):
    row = generated(of_texts(TEXTS[language]), detector, language)
    assert row["outcome"] == "ok" and row["n_turns"] == 4 and row["share_right_language"] == 1
    assert row["count_as_asked"] and row["agents_sequential"] and row["n_agents_found"] == 1
    assert [turn.text for turn in turns_from_json(row["turns"])] == TEXTS[language]


def test_another_number_of_turns_is_seen_and_the_dialogue_kept(detector):
    row = generated(of_texts(TEXTS["en"][:3]), detector)
    assert (row["outcome"], row["n_turns"], row["n_messages"], row["count_as_asked"]) == ("ok", 3, 4, False)


def test_agents_that_interleave_are_seen(detector):
    texts = TEXTS["en"] + TEXTS["en"][:2]
    agents = ("Robin Falk", "Kim Lind")
    assert not generated(of_texts(texts, agents), detector)["agents_sequential"]
    assert generated(of_texts(texts[:4], agents), detector)["agents_sequential"]


def test_an_address_and_a_name_are_the_same_agent(detector):
    row = generated(of_texts(TEXTS["en"], ("robin.falk@alvorin.example", "Robin  FALK")), detector)
    assert row["n_agents_found"] == 1 and row["agents_sequential"]


def test_a_dialogue_mostly_in_another_language_is_off_target_and_says_which(detector):
    row = generated(of_texts([*TEXTS["en"][:3], TEXTS["hu"][3]]), detector, "hu")
    assert row["outcome"] == "off_target" and "not in hu, mostly in en" in row["detail"]
    assert row["n_turns"] == 4 and row["share_right_language"] == 0.25


def test_half_of_the_turns_in_another_language_is_not_mostly(detector):
    row = generated(of_texts([*TEXTS["en"][:2], *TEXTS["hu"][1:3]]), detector, "hu")
    assert (row["outcome"], row["share_right_language"]) == ("ok", 0.5)


def test_turns_too_short_to_tell_decide_nothing(detector):
    row = generated(of_texts(["Hi!", "Hi!", "Ok.", "Bye!"]), detector, "hu")
    assert row["outcome"] == "ok" and row["share_right_language"] != row["share_right_language"]


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (Reply("", Outcome.REFUSED, detail="content filter"), "refused"),
        (Reply("", Outcome.EMPTY, detail="nothing"), "empty"),
        (Reply(as_json(TURNS), Outcome.TRUNCATED, detail="stopped by max_tokens"), "truncated"),
        (Reply("", Outcome.ERROR, detail="HTTP 500"), "error"),
        ("Sorry, no.", "unparsed"),
        ('{"messages": []}', "empty"),
    ],
)
def test_a_reply_without_a_whole_dialogue_is_typed_and_has_no_turns(detector, reply, outcome):
    row = generated(reply, detector)
    assert (row["outcome"], row["turns"], row["n_turns"]) == (outcome, "[]", 0) and row["detail"]
    assert not row["count_as_asked"] and not row["agents_sequential"]


def test_the_table_holds_the_draws_in_order_and_the_record_of_the_request(detector):
    draws = draw_parameters(5, 2)
    model = StubModel(lambda chat: of_texts(TEXTS["et"]), name="a-model")
    table = generate_dialogues(model, draws, "et", detector)
    assert list(table.columns) == COLUMNS and set(table["generator"]) == {"a-model"}
    assert table[draws_table(draws).columns].equals(draws_table(draws))
    assert json.loads(model.sampling.json_schema)["required"] == ["messages"]
    assert model.sampling.temperature == dialogues.SAMPLING.temperature


def test_no_draws_make_an_empty_table(detector):
    table = generate_dialogues(StubModel(lambda chat: ""), [], "et", detector)
    assert len(table) == 0 and list(table.columns) == COLUMNS


def test_the_first_draws_are_the_same_of_every_language(detector):
    draws = draw_parameters(6, 2)
    model = StubModel(lambda chat: of_texts(TEXTS["en"]))
    parts = [generate_dialogues(model, draws[start:][::-1], code, detector) for start, code in ((0, "en"), (1, "et"))]
    chosen = first_draws(pd.concat(parts), 3)
    ids = {code: set(part["dialogue_id"]) for code, part in chosen.groupby("language")}
    assert ids == {"en": {d.dialogue_id for d in draws[:3]}, "et": {d.dialogue_id for d in draws[1:3]}}
