"""evaluation/: one interface for whatever two texts are compared by."""

from __future__ import annotations

import nbformat
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xlc_utils.empathy import profiles
from xlc_utils.empathy.classifiers import Reading
from xlc_utils.evaluation import baselines
from xlc_utils.evaluation.evaluators import Pairwise, Property, consistency_table
from xlc_utils.evaluation.rules import Rules
from xlc_utils.information.claims import SentenceClaims
from xlc_utils.information.evaluator import ClaimConsistency
from xlc_utils.information.verdicts import Verdict
from xlc_utils.registry.outcomes import Outcome

TEXTS = {
    ("p-1", "en"): ("one two three", "ok"),
    ("p-1", "es"): ("one two three", "ok"),
    ("p-1", "hi"): ("one", "truncated"),
    ("p-1", "ar"): ("", "refused"),
    ("p-1", "ja"): ("one two", "off_target"),
    ("p-1", "fr"): ("", "error"),
    ("p-2", "en"): ("", "refused"),
    ("p-2", "es"): ("one", "ok"),
    ("p-3", "es"): ("one", "ok"),
}


@pytest.fixture
def answers() -> pd.DataFrame:
    rows = [{"prompt_id": p, "language": c, "english": t, "outcome": o} for (p, c), (t, o) in TEXTS.items()]
    return pd.DataFrame(rows)


def scores(table: pd.DataFrame) -> dict:
    return {(r.prompt_id, r.language): (r.score, r.reason) for r in table.itertuples()}


def test_a_property_is_measured_once_a_text_and_compared(answers):
    measured = []

    def words(texts):
        measured.extend(texts)
        return [len(t.split()) for t in texts]

    table = consistency_table(answers, Property("words", words))
    assert scores(table) == {
        ("p-1", "es"): (1, ""),
        ("p-1", "hi"): (0, ""),
        ("p-1", "ar"): (0, "scored 0"),
        ("p-1", "ja"): (0, "scored 0"),
        ("p-1", "fr"): (pytest.approx(np.nan, nan_ok=True), "excluded outcome"),
        ("p-2", "es"): (pytest.approx(np.nan, nan_ok=True), "no English answer"),
        ("p-3", "es"): (pytest.approx(np.nan, nan_ok=True), "no English answer"),
    }
    assert sorted(measured) == ["one", "one two three"], "the English answer is measured once for all languages"


def test_a_pairwise_evaluator_sees_the_text_and_its_own_reference(answers):
    seen = []
    evaluator = Pairwise("seen", lambda text, reference: seen.append((text, reference)) or 0.25)
    table = consistency_table(answers, evaluator, Rules(scored=("ok", "off_target")))
    assert seen == [("one two three", "one two three"), ("one two", "one two three")]
    assert scores(table)["p-1", "hi"] == (0, "scored 0") and scores(table)["p-1", "ja"] == (0.25, "")


def test_what_an_evaluator_cannot_tell_is_no_score(answers):
    table = consistency_table(answers, Pairwise("mute", lambda text, reference: float("nan")))
    assert scores(table)["p-1", "es"][1] == "no score" and np.isnan(scores(table)["p-1", "es"][0])


def test_no_answers_give_an_empty_table(answers):
    table = consistency_table(answers[answers["language"] == "en"], Property("words", len))
    assert len(table) == 0 and list(table) == ["prompt_id", "language", "outcome", "score", "reason"]


def test_empathy_is_a_property_of_each_text(answers):
    """The same numbers as `profiles.consistency_table`, from any classifier."""

    class Letters:
        def profiles(self, texts):
            return np.array([[letter in t for letter in "eow"] for t in texts], int)

        def read(self, posts, replies):
            return Reading(self.profiles(replies), np.full((len(replies), 3), 0.5), [Outcome.OK] * len(replies))

    ours = consistency_table(answers, Property("empathy", Letters().profiles))
    posts = dict.fromkeys(answers["prompt_id"], "a post")
    own = profiles.consistency_table(profiles.profiles_table(answers, Letters(), posts))
    merged = ours.merge(own, on=["prompt_id", "language", "outcome"])
    assert len(merged) == len(ours)
    assert merged["score"].to_numpy() == pytest.approx(merged["consistent"].to_numpy(float), nan_ok=True)


def test_claims_stand_behind_the_same_interface():
    class Contains:
        name = "contains"

        def verdicts(self, claims, references, answers):
            return [Verdict(1.0, c in r) for c, r in zip(claims, references, strict=True)]

    evaluator = ClaimConsistency(SentenceClaims(), Contains())
    found = evaluator.compare(["Ice melts. Tea is hot.", "Tea is hot.", "42"], ["Ice melts.", "Ice melts.", "Tea."])
    assert found == pytest.approx(np.array([[0.5, 1], [0, 0], [0, 0]]))
    assert evaluator.parts == ("precision", "recall")


# ---- baselines -------------------------------------------------------------------------------------------------------
def test_baselines_are_what_their_libraries_say():
    import sacrebleu
    from rouge_score.rouge_scorer import RougeScorer

    text, reference = "The Sun is a bright star near us.", "The Sun is a star. It is near the Earth."
    found = {name: baselines.evaluator(name).compare([text], [reference])[0, 0] for name in baselines.BASELINES}
    assert found["chrf"] == pytest.approx(sacrebleu.sentence_chrf(text, [reference]).score / 100)
    assert found["bleu"] == pytest.approx(sacrebleu.sentence_bleu(text, [reference]).score / 100)
    rouge = RougeScorer(["rougeL"], use_stemmer=True).score(reference, text)["rougeL"]
    # By hand: the longest common subsequence is "the sun is a star near", 6 of 8 and of 10 words.
    assert found["rouge"] == pytest.approx(rouge.fmeasure) == pytest.approx(2 * (6 / 8) * (6 / 10) / (6 / 8 + 6 / 10))
    assert found["length"] == 8 / 10


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=30), st.text(max_size=30))
@pytest.mark.parametrize("name", baselines.BASELINES)
def test_baselines_are_shares_whatever_the_texts(name: str, text: str, reference: str):
    [[score]] = baselines.evaluator(name).compare([text], [reference])
    assert 0 <= score <= 1 + 1e-9


# ---- the notebook ----------------------------------------------------------------------------------------------------
def test_notebook_04_ends_by_adding_a_third_dimension_in_thirty_lines(root):
    cells = nbformat.read(root / "notebooks" / "04_information.ipynb", as_version=4).cells
    headings = [i for i, c in enumerate(cells) if c.cell_type == "markdown" and c.source.startswith("## ")]
    start = next(i for i in headings if cells[i].source.startswith("## A third dimension"))
    end = headings[headings.index(start) + 1]
    lines = [line for c in cells[start:end] if c.cell_type == "code" for line in c.source.splitlines() if line.strip()]
    assert 10 < len(lines) <= 30 and any("Property(" in line for line in lines)
    assert cells[end].source.startswith("## Check"), "the last thing before the check"
