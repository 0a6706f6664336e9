"""information/original.py: known answers evaluated as they were written, beside their translations."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from xlc_utils.information.claims import SentenceClaims
from xlc_utils.information.original import (
    beside_translated,
    by_language,
    in_original,
    original_pairs,
    original_pairs_of,
)
from xlc_utils.information.scores import evaluate_answers
from xlc_utils.information.verdicts import Verdict
from xlc_utils.registry import prompts
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.translation.answers import translate_responses
from xlc_utils.translation.translators import Translation


def test_the_pairs_are_the_known_answers_and_their_truth(root):
    known = {c: prompts.known_answers(root, c) for c in ("en", "hi", "ja")}
    facts = prompts.facts(root)
    pairs = original_pairs(known, facts)
    assert set(pairs["text"]) == {"original"} and len(pairs) > 400
    means = pairs.groupby(["language", "prompt_id", "direction"])["supported"].mean()
    for language in ("hi", "ja"):
        for prompt_id, answer in known[language].items():
            precision, recall = answer.truth(facts[prompt_id])
            assert means[language, prompt_id, "precision"] == pytest.approx(precision)
            assert means[language, prompt_id, "recall"] == pytest.approx(recall)
    [row] = pairs.query("language == 'hi' and prompt_id == 'nutrition-01' and direction == 'precision'")[
        :1
    ].itertuples()
    assert (
        "\u0900" <= row.claim[0] <= "\u097f" and row.reference.isascii() is known["en"]["nutrition-01"].text().isascii()
    )


def judged(text: str, language: str, direction: str, supported, verdicts, prompt_id: str = "p") -> pd.DataFrame:
    rows = {"prompt_id": prompt_id, "language": language, "text": text, "direction": direction}
    scores = np.array(verdicts, float)
    return pd.DataFrame({**rows, "supported": supported, "verdict": verdicts, "score": scores})


def test_both_ways_beside_the_truth_by_hand():
    translated = pd.concat([
        judged("translated", "hi", "precision", [True, False], [False, False]),
        judged("translated", "hi", "recall", [True, False], [True, False]),
        judged("translated", "ja", "precision", [True], [True]),  # the original lacks it
        judged("translated", "ja", "recall", [True], [True]),
    ])  # fmt: skip
    original = pd.concat([
        judged("original", "hi", "precision", [True, False], [True, False]),
        judged("original", "hi", "recall", [True, False], [True, True]),
    ])  # fmt: skip
    found = beside_translated(translated, original).set_index("language")
    assert list(found.index) == ["hi", "all"] and list(found["answers"]) == [1, 1]
    row = found.loc["hi"]
    assert row["auc_translated"] == row["auc_original"] == 0.75
    assert (row["mae_f_translated"], row["bias_f_translated"]) == (0.5, -0.5)  # F 0, true F 0.5
    assert row["bias_f_original"] == pytest.approx(2 * 0.5 / 1.5 - 0.5) == row["mae_f_original"]
    pd.testing.assert_series_equal(found.loc["all"], row, check_names=False)
    assert beside_translated(translated, original.iloc[:0]).empty


def test_an_answer_without_a_verdict_stands_on_neither_side():
    def both(text: str, verdicts) -> pd.DataFrame:
        parts = [judged(text, c, d, [True, False], verdicts[c]) for c in ("hi", "ja") for d in ("precision", "recall")]
        return pd.concat(parts)

    told = {"hi": [1.0, 0.0], "ja": [1.0, 0.0]}
    found = beside_translated(both("translated", {**told, "ja": [np.nan] * 2}), both("original", told))
    assert list(found["language"]) == ["hi", "all"] and list(found["answers"]) == [1, 1]


def test_the_answer_itself_stands_where_the_translation_would():
    answers = pd.DataFrame({"language": ["en", "hi"], "text": ["A.", "क।"]})
    assert list(in_original(answers)["english"]) == ["A.", "क।"]


def test_a_translators_failure_is_not_the_answers():
    """Translated it is an error and left out; as it was written it is an answer like any other."""

    class Fails:
        name = "fails"

        def translate(self, sentences, source, target):
            return [Translation("", Outcome.ERROR, self.name) for _ in sentences]

    class Same:
        name = "same"

        def verdicts(self, claims, references, answers=None):
            return [Verdict(1.0, True) for _ in claims]

    responses = pd.DataFrame(
        [("p", "en", "A star.", "ok", "en"), ("p", "es", "Una estrella.", "ok", "es"), ("q", "en", "No.", "ok", "en"),
         ("q", "es", "", "refused", "")],
        columns=["prompt_id", "language", "text", "outcome", "detected"],
    )  # fmt: skip
    translated, _ = translate_responses(responses, Fails())
    scores = {
        name: evaluate_answers(answers, SentenceClaims(), Same())[2].set_index("prompt_id")["f"]
        for name, answers in {"translated": translated, "original": in_original(responses)}.items()
    }
    assert np.isnan(scores["translated"]["p"]) and scores["original"]["p"] == 1
    assert scores["original"]["q"] == 0, "a refusal is the answer's own"


def test_by_language_pairs_the_same_cells():
    one = pd.DataFrame({"model": ["m", "m"], "language": ["hi", "ja"], "value": [0.2, 0.4]})
    two = pd.DataFrame({"model": ["m", "m"], "language": ["ja", "hi"], "value": [0.5, 0.1]})
    scores = pd.DataFrame({"model": "m", "language": ["hi", "hi", "ja"], "outcome": ["ok", "error", "ok"]})
    scores, own = scores.assign(scored=[True, False, True]), scores.assign(scored=True)
    found = by_language(one, two, scores, own).set_index("language")
    assert found["difference"].to_dict() == {"hi": pytest.approx(-0.1), "ja": pytest.approx(0.1)}
    counts = found[["n", "ok", "error", "scored", "scored_original"]]
    assert counts.loc["hi"].tolist() == [2, 1, 1, 1, 2] and counts.loc["ja"].tolist() == [1, 1, 0, 1, 1]


@pytest.mark.parametrize(("asked", "questions"), [(["astronomy-02", "macroeconomics-01"], 2), (["astronomy-02"], 16)])
def test_without_a_question_to_set_the_threshold_on_all_known_answers_are_taken(root, asked, questions: int):
    translations = pd.DataFrame({"prompt_id": asked, "dimension": "information"})
    run = SimpleNamespace(
        root=root,
        params=SimpleNamespace(languages=("es",)),
        model_names=["known-answers"],
        read=lambda table, name: translations,
    )
    assert original_pairs_of(run)["prompt_id"].nunique() == questions
