"""fidelity/round_trip.py: English to a language and back, and what of known facts arrives."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from sacrebleu.metrics import CHRF

from xlc_utils.evaluation.baselines import chrf, chrf_signature
from xlc_utils.fidelity.automatic import share_of_facts
from xlc_utils.fidelity.round_trip import as_answers, fact_survival, mean_chrf, round_trips, survival_by_language
from xlc_utils.information.scores import prompt_scores
from xlc_utils.information.verdicts import Verdict
from xlc_utils.registry import prompts
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.translation.answers import translate_texts
from xlc_utils.translation.translators import Translation

TEXTS = {
    "tea-01": "Tea has caffeine. Its leaves are dried.",
    "tea-02": "- Green tea is steamed.\n- Black tea is oxidised.\n- White tea is young.",
}


class Stub:
    """Turns letters' case round, so that there and back is where one started; some sentences fare worse."""

    name = "stub"

    def __init__(self, **outcomes: Outcome):
        self.ways: list[tuple[str, str]] = []
        self._outcomes = {tuple(way.split("_")): outcome for way, outcome in outcomes.items()}
        self.fails_at: tuple[str, ...] = ()

    def can(self, source: str, target: str) -> bool:
        return True

    def translate(self, sentences, source: str, target: str) -> list[Translation]:
        self.ways.append((source, target))
        return [self._one(sentence, (source, target)) for sentence in sentences]

    def _one(self, sentence: str, way: tuple[str, str]) -> Translation:
        fails = way in self._outcomes and sentence.lower().startswith(self.fails_at)
        outcome = self._outcomes[way] if fails else Outcome.OK
        return Translation("" if outcome is Outcome.ERROR else sentence.swapcase(), outcome, self.name)


def trips_of(translator: Stub, languages=("es",)) -> pd.DataFrame:
    def through(texts, source, target):
        return translate_texts(texts, source, target, translator)

    return round_trips(TEXTS, languages, through)


def test_each_text_goes_to_each_language_and_back():
    translator = Stub()
    trips = trips_of(translator, ("es", "hi"))
    assert translator.ways == [("en", "es"), ("es", "en"), ("en", "hi"), ("hi", "en")]
    assert list(zip(trips["language"], trips["prompt_id"], strict=True)) == [
        ("es", "tea-01"),
        ("es", "tea-02"),
        ("hi", "tea-01"),
        ("hi", "tea-02"),
    ]
    assert (trips["back"] == trips["original"]).all() and (trips["foreign"] == trips["original"].str.swapcase()).all()
    assert (trips["outcome"] == "ok").all() and not trips["bad_sentences"].any()
    assert list(trips["sentences"]) == [4, 6, 4, 6], "the sentences of both ways"


@pytest.mark.parametrize(
    ("fails_at", "way", "outcomes"),
    [
        (("green",), "en_es", ["ok", "ok"]),  # one of three
        (("green", "black"), "en_es", ["ok", "degenerate"]),  # two of three
        (("green", "black"), "es_en", ["ok", "degenerate"]),
        (("tea has",), "en_es", ["ok", "ok"]),  # one of two is not more than half
        (("tea has", "its"), "es_en", ["degenerate", "ok"]),
    ],
)
def test_a_trip_is_degenerate_when_more_than_half_of_a_way_is(fails_at, way: str, outcomes: list[str]):
    translator = Stub(**{way: Outcome.DEGENERATE})
    translator.fails_at = fails_at
    trips = trips_of(translator)
    assert list(trips["outcome"]) == outcomes and trips["bad_sentences"].sum() == len(fails_at)


def test_a_trip_of_which_a_call_failed_is_an_error_and_is_not_scored():
    translator = Stub(es_en=Outcome.ERROR)
    translator.fails_at = ("its",)
    trips = trips_of(translator)
    assert list(trips["outcome"]) == ["error", "ok"]
    answers = as_answers(trips)
    nothing = pd.DataFrame(columns=["prompt_id", "language", "direction", "supported", "outcome"])
    scores = prompt_scores(nothing, nothing, answers).set_index("prompt_id")
    assert scores.loc["tea-01", "reason"] == "excluded outcome"
    assert mean_chrf(trips, "es") == pytest.approx(chrf(trips["back"][1], trips["original"][1]))
    assert pd.isna(mean_chrf(trips.iloc[:1], "es"))


def test_what_came_back_is_compared_with_what_was_sent():
    translator = Stub(en_es=Outcome.DEGENERATE)
    translator.fails_at = ("green", "black")
    answers = as_answers(trips_of(translator, ("es", "hi")))
    english = answers[answers["language"] == "en"].set_index("prompt_id")["english"]
    assert english.to_dict() == TEXTS
    assert list(answers["language"]) == ["en", "en", "es", "es", "hi", "hi"]
    assert (answers["outcome"] == "ok").all(), "a degenerate trip is scored for what it is"


def test_no_texts_give_an_empty_table_of_the_same_form():
    empty = round_trips({}, ["es"], lambda texts, source, target: translate_texts(texts, source, target, Stub()))
    assert empty.empty and list(empty.columns) == list(trips_of(Stub()).columns)
    assert as_answers(empty).empty


@pytest.mark.parametrize(
    ("hypothesis", "reference"),
    [("The cat sat on it.", "The cat sat on it."), ("A dog", "The cat sat"), ("", "The cat"), ("Катя", "Кот")],
)
def test_chrf_is_sacrebleus(hypothesis: str, reference: str):
    assert chrf(hypothesis, reference) == CHRF().corpus_score([hypothesis], [[reference]]).score


def test_chrf_comes_with_what_it_must_be_cited_with():
    assert {"nrefs:1", "case:mixed", "nc:6", "nw:0"} <= set(chrf_signature().split("|"))


def test_mean_chrf_is_of_one_language():
    trips = pd.DataFrame({
        "language": ["es", "es", "hi"], "outcome": ["ok", "degenerate", "ok"],
        "original": ["same", "one thing", "x"], "back": ["same", "another", "y"],
    })  # fmt: skip
    assert mean_chrf(trips, "es") == pytest.approx((100 + chrf("another", "one thing")) / 2)


class Containing:
    """Supports a fact that stands in the translation word for word; of some it says nothing that can be read."""

    name = "containing"

    def __init__(self, silent_on: str | None = None):
        self.silent_on, self.asked = silent_on, []

    def verdicts(self, claims, references):
        self.asked += references
        return [
            Verdict(float("nan"), False, Outcome.UNPARSED) if r == self.silent_on else Verdict(float(c in r), c in r)
            for c, r in zip(claims, references, strict=True)
        ]


PROMPT = "astronomy-02"


def translated(root: Path, texts: dict[int, tuple[str, str]]) -> tuple[dict, dict, pd.DataFrame]:
    """Known answers, facts, and translated sentences of one known answer: (text, outcome) by place, else the fact."""
    facts, known = prompts.facts(root), {code: prompts.known_answers(root, code) for code in ("en", "es")}
    rows = []
    for i, s in enumerate(known["es"][PROMPT].sentences):
        text, outcome = texts.get(i, (facts[PROMPT].text(s.states), "ok"))
        rows.append({"prompt_id": PROMPT, "language": "es", "source": s.text, "text": text, "outcome": outcome})
    return known, facts, pd.DataFrame(rows)


def test_facts_survive_where_the_translation_says_them(root: Path):
    known, facts, sentences = translated(root, {0: ("Something else.", "ok")})
    told = known["es"][PROMPT].sentences
    twice = sentences.iloc[[1]].assign(text="the same sentence of another line")
    survival = fact_survival(known, facts, pd.concat([sentences, twice]), Containing())
    assert list(survival["states"]) == [s.states for s in told], "facts and extras alike, in the answer's order"
    assert list(survival["survives"]) == [False] + [True] * (len(told) - 1)
    assert set(survival["missing"]) == {""} and set(survival["language"]) == {"es"}
    assert list(survival["chrf"][1:]) == [100.0] * (len(told) - 1) and survival["chrf"][0] < 100


def test_of_what_cannot_be_told_it_is_said_why_and_no_share_has_it(root: Path):
    texts = {0: ("", "degenerate"), 1: ("", "error"), 2: ("", "refused"), 3: ("Mumble.", "ok")}
    known, facts, sentences = translated(root, texts)
    verifier = Containing(silent_on="Mumble.")
    n = len(known["es"][PROMPT].sentences)
    survival = fact_survival(known, facts, sentences.drop(index=4), verifier)  # the splitter took the fifth for another
    assert list(survival["missing"]) == [
        "",
        "no_translation",
        "no_translation",
        "no_verdict",
        "not_found",
        *[""] * (n - 5),
    ]
    assert list(survival["survives"].isna()) == [False, True, True, True, True, *[False] * (n - 5)]
    assert not survival["survives"][0], "a degenerate translation has lost its fact"
    assert len(verifier.asked) == n - 3, "about a failed translation nobody is asked"
    [row] = survival_by_language(survival).to_dict("records")
    assert (row["known"], row["facts"], row["survive"]) == (n, n - 4, n - 5)
    assert (row["not_found"], row["no_translation"], row["no_verdict"]) == (1, 2, 1)
    assert row["share"] == pytest.approx((n - 5) / (n - 4)) and row["low"] < row["share"] < row["high"]
    [measured] = share_of_facts(survival).to_dict("records")
    assert (measured["n"], measured["value"]) == (n - 4, pytest.approx(row["share"]))


def test_where_nothing_was_translated_there_is_no_row(root: Path):
    known, facts, sentences = translated(root, {})
    some = fact_survival(known, facts, sentences, Containing())
    nothing = fact_survival(known, facts, sentences.iloc[:0], Containing())
    assert nothing.empty and list(nothing.columns) == list(some.columns)
    assert survival_by_language(nothing).empty
    assert list(survival_by_language(nothing).columns) == list(survival_by_language(some).columns)
    assert survival_by_language(pd.DataFrame(columns=["language", "survives", "chrf", "missing"])).empty
    alone = fact_survival(known, facts, sentences.assign(prompt_id="not-of-the-known"), Containing())
    assert alone.empty, "a prompt without a known answer"
