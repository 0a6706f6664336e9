"""Label recovery: labels read, compared, and joined with their truth by id."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from short_dialogues import TEXTS
from stub_model import StubModel, turns_of

from xlc_utils.chat.base import Reply
from xlc_utils.judges.dialogues import draw_parameters, draws_table, read_options
from xlc_utils.judges.label_recovery import INSTRUCTION, label_accuracy, normalised, recover_labels, recovered
from xlc_utils.judges.released import PARAMETERS
from xlc_utils.registry import prompts
from xlc_utils.registry.files import project_root
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem

DRAWS = draws_table(draw_parameters(60, 11))
TRUTH = DRAWS.set_index("dialogue_id")[list(PARAMETERS)].to_dict("index")
INSTRUCTION_TEXT = prompts.instruction(project_root(), INSTRUCTION)


def said(dialogue_id, **changes):
    """The reply of a judge that knows the draw; a change to None takes the key out."""
    labels = TRUTH[dialogue_id] | {"explanation": "Seen."} | changes
    return json.dumps({key: value for key, value in labels.items() if value is not None})


def dialogues(draws=DRAWS, generator="some-model", language="fi"):
    who = {"language": language, "generator": generator, "turns": turns_of(TEXTS["en"]), "outcome": "ok"}
    return draws[["dialogue_id"]].assign(**who)


def labelled(say, frame=None):
    frame = dialogues() if frame is None else frame
    return recover_labels(StubModel(say, name="a-judge"), frame, INSTRUCTION_TEXT)


def perfect(chat):
    return said(chat.prompt_id)


# ---- labels -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("label", "form"),
    [
        ("track_refund", "track refund"),
        ("Track Refund", "track refund"),
        (" TRACK-REFUND.", "track refund"),
        ("`track_refund`", "track refund"),
        ("e-commerce", "e commerce"),
        ("\uff43hat", "chat"),
        ("Track\n refund", "track refund"),
        ("", ""),
        ("_ -", ""),
    ],
)
def test_labels_are_compared_in_one_form(label, form):
    assert normalised(label) == form == normalised(form)


def test_no_two_options_of_a_category_are_the_same_label():
    for options in read_options().labels.values():
        assert len({normalised(option) for option in options}) == len(options)


@pytest.mark.parametrize("write", [str.upper, str.title, lambda s: s.replace("_", " "), lambda s: f" {s}. "])
def test_a_label_in_another_spelling_is_the_option(write):
    def say(chat):
        return said(chat.prompt_id, **{name: write(label) for name, label in TRUTH[chat.prompt_id].items()})

    table = labelled(say)
    assert table[list(PARAMETERS)].equals(DRAWS[list(PARAMETERS)]) and set(table["detail"]) == {""}
    assert (recovered(table, DRAWS)["LRA"] == 1).all()


def test_a_label_that_is_no_option_is_kept_named_and_wrong():
    table = labelled(lambda chat: said(chat.prompt_id, industry="shoe shops", channel="phone"))
    assert set(table["outcome"]) == {"ok"} and set(table["detail"]) == {"no option: industry, channel"}
    assert set(table["industry"]) == {"shoe shops"}
    assert recovered(table, DRAWS)[list(PARAMETERS)].mean().to_list() == [0, 1, 0, 1, 1]


FIRST = DRAWS["dialogue_id"][0]
REFUSED = {
    "no industry": (said(FIRST, industry=None), "no key industry"),
    "no agent_type": (said(FIRST, agent_type=None), "no key agent_type"),
    "no explanation": (said(FIRST, explanation=None), "no key explanation"),
    "a number": (said(FIRST, problem=3), "problem is no label: 3"),
    "true": (said(FIRST, problem=True), "problem is no label: True"),
    "a list": (said(FIRST, channel=["email", "chat"]), "channel is no label: a list"),
    "an object": (said(FIRST, channel={"email": 1}), "channel is no label: a dict"),
    "empty": (said(FIRST, channel=""), "channel is no label"),
    "punctuation": (said(FIRST, channel="…"), "channel is no label"),
    "null": (said(FIRST, channel="X").replace('"X"', "null"), "channel is no label: None"),
    "one more": (said(FIRST, language="fi"), "an unknown key: 'language'"),
    "twice": (said(FIRST)[:-1] + ', "channel": "email"}', "the key 'channel' is given twice"),
    "other names": (said(FIRST).replace("agent_type", "agent type"), "no key agent_type"),
    "prose before": (f"My answer: {said(FIRST)}", "text before the JSON object"),
    "prose after": (f"{said(FIRST)} Or perhaps email.", "text after the JSON object"),
    "lines": ("industry: gaming\nproblem: review", "no JSON object"),
    "cut": (said(FIRST)[:40], "no JSON object"),
    "too deep": ('{"industry": ' + "[" * 20000, "no JSON object"),
}


@pytest.mark.parametrize(("reply", "says"), REFUSED.values(), ids=REFUSED)
def test_a_malformed_reply_is_unparsed_and_says_why(reply, says):
    row = labelled(lambda chat: reply, dialogues(DRAWS[:1])).iloc[0]
    assert row["outcome"] == "unparsed" and says in row["detail"]
    assert (row[list(PARAMETERS)] == "").all()


# ---- asked ------------------------------------------------------------------------------------------------------
def test_the_judge_is_shown_every_option_and_none_of_the_truth():
    model = StubModel(perfect)
    recover_labels(model, dialogues().merge(DRAWS), INSTRUCTION_TEXT)
    texts = {chat.messages[0][1] for chat in model.asked}
    assert len(model.asked) == 60 and len(texts) == 1  # the same dialogue under any parameters is the same request
    (text,) = texts
    for options in read_options().labels.values():
        assert all(option in text for option in options)
    assert "{industries}" not in text and "{problems}" not in text and TEXTS["en"][0] in text


def test_the_schema_allows_the_options_only():
    model = StubModel(perfect)
    recover_labels(model, dialogues(), INSTRUCTION_TEXT)
    properties = json.loads(model.sampling.json_schema)["properties"]
    assert {name: tuple(properties[name]["enum"]) for name in PARAMETERS} == read_options().labels


def test_an_instruction_without_the_options_is_refused():
    with pytest.raises(Problem, match=r"\{industries\}"):
        recover_labels(StubModel(perfect), dialogues(), "Label this: {conversation}")


# ---- truth by id ------------------------------------------------------------------------------------------------
def accuracy_by_position(labels):
    """What comes of taking the n-th draw for the truth of the n-th dialogue."""
    truth = DRAWS.iloc[: len(labels)].reset_index(drop=True)
    return (labels[list(PARAMETERS)].reset_index(drop=True) == truth[list(PARAMETERS)]).mean()


def test_a_perfect_judge_is_perfect_in_any_order_by_id_and_near_chance_by_position():
    frame = dialogues().sample(frac=1, random_state=3)
    labels = labelled(perfect, frame)
    by_id = label_accuracy(recovered(labels, DRAWS.sample(frac=1, random_state=4)))
    assert (by_id["accuracy"] == 1).all() and (by_id["n"] == 60).all()
    by_position = accuracy_by_position(labels)
    assert by_position["industry"] < 0.1 and by_position["problem"] < 0.2
    assert (by_position[["channel", "agent_experience", "agent_type"]] < 0.75).all()


def test_one_dialogue_missing_at_the_front_shifts_every_truth_by_position_and_none_by_id():
    labels = labelled(perfect, dialogues(DRAWS[1:]))
    assert (recovered(labels, DRAWS)["LRA"] == 1).all()
    assert accuracy_by_position(labels)["industry"] < 0.1


def test_generators_that_lack_different_dialogues_are_scored_with_their_own():
    frame = pd.concat(
        [
            dialogues(DRAWS[5:], "one"),
            dialogues(DRAWS[:40], "another"),
            dialogues(DRAWS[::2], "one", "et"),
        ]
    )
    table = label_accuracy(recovered(labelled(perfect, frame), DRAWS))
    assert (table["accuracy"] == 1).all()
    n = table.drop_duplicates(["generator", "language"]).set_index(["generator", "language"])["n"].to_dict()
    assert n == {("another", "fi"): 40, ("one", "et"): 30, ("one", "fi"): 55}


def test_the_table_of_dialogues_is_truth_as_well_though_it_repeats_each_draw():
    both = pd.concat([DRAWS.assign(language="et"), DRAWS.assign(language="fi")])
    assert (recovered(labelled(perfect), both)["LRA"] == 1).all()


def test_an_unreadable_reply_is_neither_right_nor_wrong():
    bad = set(DRAWS["dialogue_id"][:4])
    say = {True: lambda chat: Reply("", Outcome.ERROR), False: perfect}
    items = recovered(labelled(lambda chat: say[chat.prompt_id in bad](chat)), DRAWS)
    assert items.loc[:3, [*PARAMETERS, "LRA"]].isna().all(axis=None) and (items.loc[4:, "LRA"] == 1).all()
    assert list(items["outcome"][:5]) == ["error"] * 4 + ["ok"]
    table = label_accuracy(items)
    assert (table["n"] == 56).all() and (table["unread"] == 4).all() and (table["accuracy"] == 1).all()


def test_where_no_reply_is_readable_there_is_no_accuracy():
    table = label_accuracy(recovered(labelled(lambda chat: "no"), DRAWS))
    assert (table["n"] == 0).all() and (table["recovered"] == 0).all() and table["accuracy"].isna().all()


def test_accuracy_and_interval_are_those_of_the_counts():
    wrong = {"email": "chat", "chat": "email"}
    truth = DRAWS.set_index("dialogue_id")["channel"]
    misread = set(DRAWS["dialogue_id"][:17])

    def say(chat):
        right = truth[chat.prompt_id]
        return said(chat.prompt_id, channel=wrong[right] if chat.prompt_id in misread else right)

    items = recovered(labelled(say), DRAWS)
    table = label_accuracy(items)
    assert list(table["category"]) == list(PARAMETERS)
    channel = table.set_index("category").loc["channel"]
    assert (channel["recovered"], channel["n"], channel["judge"]) == (43, 60, "a-judge")
    expected = binomtest(43, 60).proportion_ci(method="wilson")
    assert np.allclose([channel["accuracy"], channel["low"], channel["high"]], [43 / 60, *expected], atol=1e-12)
    assert np.isclose(items["LRA"].mean(), table["accuracy"].mean())


def test_a_dialogue_of_unknown_doubtful_or_placeholder_truth_is_refused():
    labels = labelled(perfect)
    with pytest.raises(Problem, match=f"{FIRST}: its parameters are not known"):
        recovered(labels, DRAWS[1:])
    with pytest.raises(Problem, match=f"{FIRST}: it has two sets"):
        recovered(labels, pd.concat([DRAWS, DRAWS[:1].assign(channel="email"), DRAWS[:1].assign(channel="chat")]))
    with pytest.raises(Problem, match="its industry 'Customer Service' is no option"):
        recovered(labels, DRAWS.assign(industry="Customer Service"))
    with pytest.raises(Problem, match="its agent_type 'UNK' is no option"):
        recovered(labels, DRAWS.assign(agent_type="UNK"))


def test_no_labels_make_empty_tables():
    items = recovered(labelled(perfect, dialogues(DRAWS[:0])), DRAWS)
    assert len(items) == 0 and len(label_accuracy(items)) == 0
