"""A language model as the classifier: what it is told, what is read of its answers, and what the record keeps."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest
from epitome_like import CUES, FILLERS, made_pairs

from xlc_utils.chat.base import Chat, Reply, Sampling
from xlc_utils.chat.record import Record, RecordedModel
from xlc_utils.empathy import epitome, evaluate
from xlc_utils.empathy.nine_shot import NineShot, answer_of, shots
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem
from xlc_utils.registry.prompts import MECHANISMS

PAIRS = made_pairs(120)


class Asked:
    """A chat model that answers with ``say(text of the request)``, and keeps the requests."""

    name = "asked"

    def __init__(self, say):
        self._say, self.chats = say, []

    def complete(self, chats, sampling):
        self.chats += chats
        said = [self._say(chat.messages[-1][1]) for chat in chats]
        return [text if isinstance(text, Reply) else Reply(text, Outcome.OK, "stop") for text in said]


def knows(text: str) -> str:
    """The right answer about a pair of `epitome_like`, from the request alone."""
    mechanism = next(
        m for m, name in (("ER", "an emotional"), ("IP", "an interpr"), ("EX", "an explor")) if name in text
    )
    return "Yes." if CUES[mechanism] in text.rsplit("\nResponse: ", 1)[1] else "no"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_nine_pairs_three_a_level_from_the_seed_alone(mechanism):
    own = shots(PAIRS, mechanism, 0)
    assert own[f"{mechanism}_level"].value_counts().to_dict() == {0: 3, 1: 3, 2: 3}
    shuffled = shots(PAIRS.sample(frac=1, random_state=1), mechanism, 0)
    assert list(shuffled["rp_id"]) == list(own["rp_id"]) and list(shots(PAIRS, mechanism, 1)["rp_id"]) != list(
        own["rp_id"]
    )
    with pytest.raises(Problem, match=f"fewer than 3 pairs of a level of {mechanism}"):
        shots(PAIRS[PAIRS[f"{mechanism}_level"] < 2], mechanism, 0)


def test_it_is_shown_nine_answers_and_asked_one(root):
    model = NineShot(Asked(knows), root, PAIRS, 0)
    post, reply = "A post with {response} in it.", "A reply with {examples} in it."
    text = model.chat("IP", post, reply).messages[-1][1]
    assert text.count("\nAnswer: yes\n") == 6 and text.count("\nAnswer: no\n") == 3
    assert f"Post: {post}\nResponse: {reply}\n" in text and text.rstrip().endswith("yes or no.")
    assert "{" not in text.replace(post, "").replace(reply, "")
    for _, pair in shots(PAIRS, "IP", 0).iterrows():
        assert f"Response: {pair['response']}\nAnswer: {'yes' if pair['IP'] else 'no'}" in text


def test_a_model_that_knows_is_right_and_was_asked_three_times_a_reply(root):
    asked = Asked(knows)
    test = PAIRS[epitome.split(PAIRS, 0) == "test"]
    reading = NineShot(asked, root, PAIRS, 0).read(list(test["seeker"]), list(test["response"]))
    assert (reading.profiles == test[list(MECHANISMS)].to_numpy()).all()
    assert set(reading.outcomes) == {Outcome.OK} and len(asked.chats) == 3 * len(test)
    assert np.isnan(reading.probabilities).all()
    assert NineShot(asked, root, PAIRS, 0).read([], []).profiles.shape == (0, 3)


@pytest.mark.parametrize(
    ("text", "label"),
    [("yes", 1), ("No.", 0), ("**Yes**", 1), ("Answer: no", 0), (" YES, it does", 1), ("\n- no", 0)],
)
def test_answers(text, label):
    assert answer_of(Reply(text, Outcome.OK)) == (label, Outcome.OK)


@pytest.mark.parametrize("text", ["", "maybe", "yes and no", "I would say yes", "nothing", "yesterday", "はい"])
def test_what_is_neither_is_unparsed(text):
    label, outcome = answer_of(Reply(text, Outcome.OK))
    assert np.isnan(label) and outcome is Outcome.UNPARSED


def test_one_answer_that_cannot_be_read_takes_the_profile(root):
    def say(text):
        if "an exploration" in text and text.rsplit("Post: ", 1)[1].startswith("refuse"):
            return Reply("", Outcome.REFUSED)
        return "?" if text.rsplit("Post: ", 1)[1].startswith("puzzle") else "yes"

    reading = NineShot(Asked(say), root, PAIRS, 0).read(["fine", "refuse", "puzzle"], ["a", "b", "c"])
    assert reading.outcomes == (Outcome.OK, Outcome.REFUSED, Outcome.UNPARSED)
    assert reading.profiles[0].tolist() == [1, 1, 1] and np.isnan(reading.profiles[1:]).all()


# ---- on the test part ------------------------------------------------------------------------------------------------
def test_it_is_evaluated_on_the_same_test_and_what_it_does_not_answer_is_wrong(root):
    def make(say):
        return lambda seed: NineShot(Asked(say), root, PAIRS[epitome.split(PAIRS, seed) == "train"], seed)

    right = evaluate.of_classifier(PAIRS, "model", make(knows), [0, 1], 50).set_index(["mechanism", "measure"])["value"]
    assert right[("mean", "F1")] == right[("profile", "accuracy")] == 100 and right[("profile", "without profile")] == 0
    silent = evaluate.of_classifier(PAIRS, "model", make(lambda text: "?"), [0, 1], 50)
    silent = silent.set_index(["mechanism", "measure"])["value"]
    assert silent[("mean", "accuracy")] == 0 and silent[("profile", "without profile")] == 100


def test_table_7_sets_ours_beside_the_printed_numbers(root):
    rows = evaluate.of_classifier(PAIRS, "model", lambda seed: NineShot(Asked(knows), root, PAIRS, seed), [0], 50)
    table = evaluate.nine_shot_table(evaluate.beside_printed(rows), ["model", "absent"])
    row = table.set_index(["mechanism", "measure"]).loc[("ER", "F1")]
    assert (row["printed bi-encoder"], row["printed GPT-4o"]) == (86.1, 66.8)
    assert row["model"] == "100.0 [100.0, 100.0]" and row["absent"] == "–"
    assert len(table) == 8 and len(evaluate.nine_shot_table(evaluate.beside_printed(rows), [])) == 8


# ---- care ------------------------------------------------------------------------------------------------------------
class Backend:
    settings: dict = {}  # noqa: RUF012

    def ask(self, chats, sampling):
        for i, _ in enumerate(chats):
            yield [(i, Reply("yes", Outcome.OK, "stop"))]

    def waiting(self):
        return ""


def test_the_record_keeps_the_answers_and_no_text_of_the_data(root, tmp_path):
    record = Record(tmp_path / "calls.sqlite")
    model = RecordedModel("m", {"id": "m"}, Backend, record)
    reading = NineShot(model, root, PAIRS, 0).read(list(PAIRS["seeker"][:4]), list(PAIRS["response"][:4]))
    assert (reading.profiles == 1).all()
    never = RecordedModel("m", {"id": "m"}, lambda: pytest.fail("asked again"), record)
    assert (
        NineShot(never, root, PAIRS, 0).read(list(PAIRS["seeker"][:4]), list(PAIRS["response"][:4])).profiles == 1
    ).all()
    record.close()
    with sqlite3.connect(tmp_path / "calls.sqlite") as db:
        kept = "\n".join(map(str, db.execute("select * from calls").fetchall()))
    assert kept.count('"private": true') == 12
    assert not any(text in kept for text in [*CUES.values(), *FILLERS, "Post number"])


def test_a_request_that_is_not_private_is_kept(tmp_path):
    record = Record(tmp_path / "calls.sqlite")
    RecordedModel("m", {}, Backend, record).complete([Chat.user("What is tea?")], Sampling())
    record.close()
    with sqlite3.connect(tmp_path / "calls.sqlite") as db:
        assert "What is tea?" in db.execute("select request from calls").fetchone()[0]
