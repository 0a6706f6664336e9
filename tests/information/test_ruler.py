"""information/ruler.py: claims whose truth is known, and what an evaluator makes of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from xlc_utils.evaluation.evaluators import Pairwise
from xlc_utils.information.ruler import (
    against_truth,
    answer_errors,
    auc,
    auc_interval,
    error_shares,
    errors_table,
    failed_answers,
    is_development,
    judged,
    known_pairs,
    known_texts,
    one_a_question,
    ruler_table,
    units_table,
    without_claim,
)
from xlc_utils.information.verdicts import Verdict
from xlc_utils.registry import languages, prompts
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.statistics.intervals import bootstrap_indices
from xlc_utils.translation.answers import translate_responses
from xlc_utils.translation.translators import Translation


class Tags:
    """Translates a sentence as "T: sentence"."""

    name = "tags"

    def can(self, source, target):
        return True

    def translate(self, sentences, source, target):
        return [Translation(f"T: {s}", Outcome.OK, self.name) for s in sentences]


@pytest.fixture(scope="module")
def known(root) -> dict:
    found = {code: prompts.known_answers(root, code) for code in languages.load(root)}
    return {code: answers for code, answers in found.items() if answers}


@pytest.fixture(scope="module")
def facts(root) -> dict:
    return prompts.facts(root)


@pytest.fixture(scope="module")
def pairs(root, known, facts) -> pd.DataFrame:
    texts = prompts.known_texts(root, list(known))
    rows = [
        {"prompt_id": i, "language": c, "text": t, "outcome": "ok", "detected": c}
        for (c, i), t in texts.items()
        if i in facts
    ]
    translations, sentences = translate_responses(pd.DataFrame(rows), Tags())
    return known_pairs(known, facts, translations, sentences)


def test_the_truth_of_the_pairs_is_that_of_the_answers(pairs: pd.DataFrame, known: dict, facts: dict):
    means = pairs.groupby(["language", "prompt_id", "text", "direction"])["supported"].mean()
    checked = 0
    for language in sorted(set(known) - {"en"}):
        for prompt_id, answer in known[language].items():
            precision, recall = answer.truth(facts[prompt_id])
            at = (language, prompt_id, "untranslated")
            assert means[(*at, "precision")] == pytest.approx(precision)
            assert means[(*at, "recall")] == pytest.approx(recall)
            assert means[language, prompt_id, "translated", "recall"] == pytest.approx(recall)
            checked += 1
    assert checked == 16 * (len(known) - 1)


def test_nearly_every_known_sentence_is_found_among_the_translated(pairs: pd.DataFrame):
    counts = pairs[pairs["direction"] == "precision"].groupby(["text", "language"]).size().unstack("text")
    assert (counts["translated"] >= 0.95 * counts["untranslated"]).all()
    translated = pairs[(pairs["direction"] == "precision") & (pairs["text"] == "translated")]
    assert translated["claim"].str.startswith("T: ").all()


def test_claims_and_references_are_those_of_their_direction(pairs: pd.DataFrame, known: dict, facts: dict):
    for row in pairs.sample(200, random_state=0).itertuples():
        fact, english = facts[row.prompt_id], known["en"][row.prompt_id].text()
        if row.direction == "precision":
            assert row.reference == english
            assert row.text == "translated" or row.claim == fact.text(row.states)
        else:
            assert row.claim in english
            assert row.reference.startswith("T: ") or "T: " in row.reference or row.text == "untranslated"
        assert row.supported == (
            row.states in fact.facts
            if row.direction == "precision"
            else row.states in known[row.language][row.prompt_id].states
        )


def test_development_is_the_first_question_of_each_category(facts: dict, pairs: pd.DataFrame):
    halves = pd.Series({i: is_development(i) for i in facts})
    assert halves.sum() == 8 == (~halves).sum()
    for half in (True, False):
        part = pairs[pairs["prompt_id"].map(is_development) == half]
        assert set(part["supported"]) == {True, False}


def test_a_language_or_prompt_that_was_not_run_has_no_pairs(known: dict, facts: dict):
    some = pd.DataFrame(
        [("astronomy-01", "en", "x"), ("astronomy-01", "es", "y"), ("astronomy-02", "es", "z")],
        columns=["prompt_id", "language", "english"],
    ).assign(outcome="ok")
    none = pd.DataFrame(columns=["prompt_id", "language", "source", "text"])
    found = known_pairs({c: known[c] for c in ("en", "es", "hi") if c in known}, facts, some, none)
    assert set(zip(found["prompt_id"], found["language"], strict=True)) <= {("astronomy-01", "es")}


# ---- AUC -------------------------------------------------------------------------------------------------------------
ITEMS = st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=30)


@settings(max_examples=40, deadline=None)
@given(ITEMS)
def test_the_auc_is_the_share_of_pairs_in_the_right_order(items):
    scores, supported = np.array([s for s, _ in items], float), np.array([t for _, t in items])
    if supported.all() or not supported.any():
        assert np.isnan(auc(scores, supported))
        return
    order = [(a > b) + 0.5 * (a == b) for a in scores[supported] for b in scores[~supported]]
    assert auc(scores, supported) == pytest.approx(np.mean(order))
    assert auc(scores, supported) == pytest.approx(roc_auc_score(supported, scores))
    assert auc(-scores, supported) == pytest.approx(1 - auc(scores, supported))
    with_nan = np.append(scores, np.nan)
    assert auc(with_nan, np.append(supported, True)) == pytest.approx(auc(scores, supported))


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 6))
def test_the_interval_holds_the_auc_of_questions_that_are_all_alike(seed: int, questions: int):
    one = pd.DataFrame({"score": [0.1, 0.4, 0.35, 0.8], "supported": [False, False, True, True]})
    pairs = pd.concat([one.assign(prompt_id=f"p-{i}") for i in range(questions)])
    assert auc_interval(pairs, 20, seed) == pytest.approx((0.75, 0.75))


def test_of_one_question_there_is_no_interval():
    one = pd.DataFrame({"score": [0.1, 0.8], "supported": [False, True], "prompt_id": "p"})
    unscored = pd.DataFrame({"score": [np.nan, np.nan], "supported": [False, True], "prompt_id": "q"})
    for pairs in (one, pd.concat([one, unscored]), one.iloc[:0]):
        assert np.isnan(auc_interval(pairs, 20, 0)).all()
    one_class = pd.concat([one.assign(prompt_id=i, supported=True) for i in "pq"])
    assert np.isnan(auc_interval(one_class, 20, 0)).all()


@settings(max_examples=15, deadline=None)
@given(st.lists(ITEMS, min_size=2, max_size=5), st.integers(0, 2**31))
def test_the_interval_is_that_of_the_aucs_of_the_draws(questions: list, seed: int):
    frames = [pd.DataFrame(items, columns=["score", "supported"]) for items in questions]
    draws = []
    for drawn in bootstrap_indices(len(frames), 30, seed):
        part = pd.concat([frames[i] for i in drawn])
        draws.append(auc(part["score"].to_numpy(float), part["supported"].to_numpy(bool)))
    pairs = pd.concat([frame.assign(prompt_id=f"p-{i}") for i, frame in enumerate(frames)])
    expected = np.nanpercentile(draws, [2.5, 97.5]) if not np.isnan(draws).all() else [np.nan, np.nan]
    assert auc_interval(pairs, 30, seed) == pytest.approx(tuple(expected), nan_ok=True)


def test_the_interval_comes_from_whole_questions():
    good = pd.DataFrame({"score": [0.0, 1.0], "supported": [False, True], "prompt_id": "good"})
    bad = pd.DataFrame({"score": [1.0, 0.0], "supported": [False, True], "prompt_id": "bad"})
    low, high = auc_interval(pd.concat([good, bad]), 200, 0)
    assert (low, high) == (0.0, 1.0)
    assert auc_interval(pd.concat([good, bad]), 200, 0) == (low, high)


# ---- errors ----------------------------------------------------------------------------------------------------------
def test_errors_of_an_answer_by_hand():
    def rows(direction, supported, verdicts):
        return [
            {
                "prompt_id": "p",
                "language": "es",
                "text": "translated",
                "direction": direction,
                "supported": s,
                "verdict": v,
            }
            for s, v in zip(supported, verdicts, strict=True)
        ]

    pairs = pd.DataFrame(
        [
            *rows("precision", [True, True, False, False], [True, False, False, False]),
            *rows("recall", [True, False], [True, True]),
        ]
    )
    [row] = answer_errors(pairs).to_dict("records")
    assert (row["true_precision"], row["measured_precision"], row["error_precision"]) == (0.5, 0.25, -0.25)
    assert (row["true_recall"], row["measured_recall"], row["error_recall"]) == (0.5, 1.0, 0.5)
    assert (row["true_f"], row["measured_f"]) == (0.5, 0.4) and row["error_f"] == pytest.approx(-0.1)


class Said:
    """Gives the verdicts it is told; None is an unparsed one."""

    name = "said"

    def __init__(self, *said):
        self.said = said

    def verdicts(self, claims, references, answers=None):
        return [Verdict(np.nan, False, Outcome.UNPARSED) if s is None else Verdict(float(s), s) for s in self.said]


def claims_of(direction: str, supported: list[bool], language: str = "es") -> pd.DataFrame:
    rows = {"prompt_id": "p", "language": language, "text": "translated", "direction": direction}
    return pd.DataFrame({**rows, "claim": "c", "reference": "r", "supported": supported})


def test_a_claim_without_a_verdict_is_left_out_as_in_the_scores():
    """As `prompt_scores`, which takes precision and recall over the verdicts that are ok."""
    pairs = pd.concat([claims_of("precision", [True, True, False]), claims_of("recall", [True, True])])
    found = judged(pairs, Said(True, None, False, None, True))
    assert found["verdict"].tolist() == pytest.approx([1, np.nan, 0, np.nan, 1], nan_ok=True)
    assert found["outcome"].tolist() == ["ok", "unparsed", "ok", "unparsed", "ok"]
    [row] = answer_errors(found).to_dict("records")
    assert (row["measured_precision"], row["measured_recall"]) == (0.5, 1.0)
    assert (row["true_precision"], row["true_recall"]) == (pytest.approx(2 / 3), 1.0)


def test_an_answer_without_a_verdict_has_no_error_and_the_ruler_counts_its_claims():
    told = pd.concat([claims_of("precision", [True, False]), claims_of("recall", [True, True])])
    untold = pd.concat([claims_of("precision", [True], "hi"), claims_of("recall", [True], "hi")])
    pairs = pd.concat([told, untold], ignore_index=True)
    verifier = Said(True, False, True, False, None, None)
    errors = answer_errors(judged(pairs, verifier)).set_index("language")["error_f"]
    assert np.isnan(errors["hi"]) and errors["es"] == pytest.approx(1 / 2 - 2 / 3)
    [row] = ruler_table({"said": judged(pairs, verifier)}, 20, 0).to_dict("records")
    assert (row["claims"], row["ok"], row["unparsed"], row["scored"]) == (6, 4, 2, 4)
    assert row["mae_f"] == pytest.approx(abs(errors["es"])) and row["bias_f"] == pytest.approx(errors["es"])
    assert np.isnan(row["auc_low"]) and np.isnan(row["auc_high"]), "all claims are of one question"
    by_language = errors_table({"said": judged(pairs, verifier)}).set_index("language")
    assert by_language["error_f"].to_dict() == pytest.approx(errors.to_dict(), nan_ok=True)
    assert by_language[["claims", "ok", "unparsed", "scored"]].to_numpy().tolist() == [[4, 4, 0, 4], [2, 0, 2, 0]]


def test_known_sentences_without_a_translated_claim_are_counted(root, known, facts):
    answer = known["es"]["astronomy-02"]
    first, second, *others = [s.text for s in answer.sentences]
    rows = [(first, "T."), (second, ""), *((text, "T.") for text in others[1:])]  # one failed, one is not there
    sentences = pd.DataFrame(rows, columns=["source", "text"]).assign(prompt_id="astronomy-02", language="es")
    whole = {"prompt_id": "astronomy-02", "language": ["en", "es"], "english": ["x", "y"], "outcome": "ok"}
    whole = pd.DataFrame(whole)
    found = known_pairs({c: known[c] for c in ("en", "es")}, facts, whole, sentences)
    precision = found[(found["direction"] == "precision") & (found["text"] == "translated")]
    assert set(precision["claim"]) == {"T."}, "an empty text claims nothing"
    assert without_claim(found) == (2, len(answer.sentences))
    untranslated_only = found.query("language == 'es' and text == 'untranslated'").assign(language="fr")
    assert without_claim(pd.concat([found, untranslated_only])) == (2, len(answer.sentences)), "not one that was asked"


def test_an_answer_of_which_a_part_is_missing_is_left_out_whole_and_counted(known, facts):
    codes, prompt_id = ("en", "es", "hi"), "astronomy-02"
    some = {c: {prompt_id: known[c][prompt_id]} for c in codes}
    rows = [(c, some[c][prompt_id].text(), "error" if c == "hi" else "ok") for c in codes]
    whole = pd.DataFrame(rows, columns=["language", "english", "outcome"]).assign(prompt_id=prompt_id)
    sentences = [(c, s.text, "T.") for c in codes for s in some[c][prompt_id].sentences]  # one of them failed in Hindi
    sentences = pd.DataFrame(sentences, columns=["language", "source", "text"]).assign(prompt_id=prompt_id)
    found = known_pairs(some, facts, whole, sentences)
    assert set(found.query("text == 'translated'")["language"]) == {"es"}
    assert set(found.query("text == 'untranslated'")["language"]) == {"es", "hi"}
    assert failed_answers(whole) == [(prompt_id, "hi")]
    yes = judged(found, Said(*[True] * len(found)))
    table = ruler_table({"said": yes}, 20, 0, [*failed_answers(whole), ("astronomy-01", "es")])
    counted = table.set_index("text")[["answers", "answers_failed"]]
    assert counted.loc["translated"].tolist() == [1, 1] and counted.loc["untranslated"].tolist() == [2, 0]


def test_one_answer_a_question_goes_through_the_languages(pairs: pd.DataFrame):
    some = one_a_question(pairs)
    answers = some[["prompt_id", "language"]].drop_duplicates()
    assert len(answers) == answers["prompt_id"].nunique() == 16
    for _, half in answers.groupby(answers["prompt_id"].map(is_development)):
        assert half["language"].nunique() == min(8, pairs["language"].nunique())
    whole = pairs.merge(answers)
    assert len(some) == len(whole) and set(some["text"]) == {"translated", "untranslated"}


def test_an_evaluator_that_is_always_right_has_no_error(pairs: pd.DataFrame):
    errors = answer_errors(pairs.assign(verdict=pairs["supported"]))
    assert (errors.filter(like="error_").abs().to_numpy() == 0).all() and len(errors) > 100


# ---- whole answers ---------------------------------------------------------------------------------------------------
def test_whole_answers_have_the_truth_of_their_claims(root, pairs: pd.DataFrame, known: dict, facts: dict):
    texts = known_texts(pairs).set_index(["prompt_id", "language", "text"])
    for language, prompt_id in (("es", "astronomy-01"), ("ja", "nutrition-02")):
        precision, recall = known[language][prompt_id].truth(facts[prompt_id])
        for text in ("translated", "untranslated"):
            row = texts.loc[prompt_id, language, text]
            assert row["english"] == known["en"][prompt_id].text()
            if text == "untranslated":
                assert row["true_f"] == pytest.approx(2 * precision * recall / (precision + recall))
                assert row["answer"].startswith(facts[prompt_id].text(known[language][prompt_id].states[0]))


def test_evaluators_are_ranked_by_what_is_true():
    answers = pd.DataFrame(
        {
            "text": ["translated"] * 4,
            "answer": ["a", "aa", "aaa", "?"],
            "english": ["aaaa"] * 4,
            "true_f": [0.1, 0.5, 0.9, 0.0],
        }
    )

    def share(text, reference):
        return np.nan if text == "?" else len(text) / len(reference)

    right, wrong = Pairwise("right", share), Pairwise("wrong", lambda t, r: 1 - share(t, r))
    constant = Pairwise("constant", lambda t, r: 0.5)
    found = against_truth(answers, [right, wrong, constant]).set_index("evaluator")
    assert found.loc["right", "spearman"] == 1 and found.loc["wrong", "spearman"] == -1
    assert np.isnan(found.loc["constant", "spearman"]) and found.loc["right", ["answers", "scored"]].tolist() == [4, 3]
    assert found.loc["right", "mean"] == pytest.approx(0.5) == found.loc["right", "true_f"]


# ---- units -----------------------------------------------------------------------------------------------------------
def test_agreement_of_the_two_units_by_hand():
    truth = [True, True, False, False]
    pairs = pd.DataFrame({"prompt_id": "p", "language": "es", "text": "t", "direction": "recall", "supported": truth})
    pairs = pairs.assign(claim="c", reference="r")
    units = {"claim": Said(True, True, False, True), "answer": Said(True, False, False, None)}
    found = units_table(pairs, units, 20, 0)
    by = found.set_index("unit")
    assert by["unparsed"].to_dict() == {"claim": 0, "answer": 1} and set(by["claims"]) == {4}
    assert (by["ok"] + by["unparsed"] == by["claims"]).all() and (by["scored"] == by["ok"]).all()
    assert by["accuracy"].to_dict() == {"claim": 0.75, "answer": 0.5}
    assert by["auc"].to_dict() == {"claim": 0.75, "answer": 0.75}
    # Of three claims with both verdicts two agree; expected by chance (2 1 + 1 2) / 9.
    assert by["agreement"].unique() == pytest.approx([2 / 3])
    assert by["kappa"].unique() == pytest.approx([(2 / 3 - 4 / 9) / (1 - 4 / 9)])
    assert by["shared"].unique() == [3] and by["auc_difference"].unique() == pytest.approx([0.75 - 1.0])
    assert by[["auc_low", "difference_low"]].isna().all(axis=None), "all claims are of one question"


@settings(max_examples=10, deadline=None)
@given(st.lists(st.lists(st.tuples(st.booleans(), *[st.sampled_from([True, False, None])] * 2), min_size=2, max_size=9),
                min_size=2, max_size=4), st.integers(0, 2**31))  # fmt: skip
def test_the_difference_of_the_units_is_that_of_the_aucs_of_shared_draws(questions: list, seed: int):
    rows = [(f"p-{i}", *claim) for i, claims in enumerate(questions) for claim in claims]
    pairs = pd.DataFrame(rows, columns=["prompt_id", "supported", "claim", "answer"])
    units = {unit: Said(*pairs[unit].astype(object)) for unit in ("claim", "answer")}
    pairs = pairs.assign(language="es", text="t", direction="recall", reference="r")
    found = units_table(pairs, units, 25, seed).iloc[0]
    both = pairs.dropna(subset=["claim", "answer"])
    by_question = [part for _, part in both.groupby("prompt_id")]
    draws = []
    for drawn in bootstrap_indices(len(by_question), 25, seed) if len(by_question) > 1 else []:
        part = pd.concat([by_question[i] for i in drawn])
        one, other = (auc(part[u].to_numpy(float), part["supported"].to_numpy(bool)) for u in ("claim", "answer"))
        draws.append(other - one)
    known = [d for d in draws if not np.isnan(d)]
    expected = np.percentile(known, [2.5, 97.5]) if known else [np.nan, np.nan]
    assert [found["difference_low"], found["difference_high"]] == pytest.approx(list(expected), nan_ok=True)
    assert found["shared"] == len(both)


def test_the_shares_of_error_by_hand():
    rows = [("p", "es", "untranslated", 0.1), ("p", "es", "translated", -0.4), ("q", "es", "untranslated", -0.1),
            ("q", "es", "translated", 0.0), ("p", "hi", "untranslated", 0.3), ("p", "hi", "translated", 0.2),
            ("p", "ja", "untranslated", 0.9)]  # fmt: skip
    errors = pd.DataFrame(rows, columns=["prompt_id", "language", "text", "error_f"])
    found = error_shares(errors).set_index("language")
    assert list(found.index) == ["es", "hi", "all"] and list(found["answers"]) == [2, 1, 3]
    assert found.loc["es", ["evaluation", "translation"]].tolist() == pytest.approx([0.5, 0.5])
    assert found.loc["hi", ["evaluation", "translation"]].isna().all(), "the translation hides errors"
    assert found.loc["all", "evaluation"] == pytest.approx(0.5 / 0.6)
    assert error_shares(errors[errors["text"] == "untranslated"]).empty
