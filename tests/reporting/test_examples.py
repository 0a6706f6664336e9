"""reporting/examples.py and texts.py: the example page marks what an answer lacks and adds."""

from __future__ import annotations

import pandas as pd
import pytest

from xlc_utils.registry import languages
from xlc_utils.reporting.examples import chosen, differing
from xlc_utils.reporting.texts import side_by_side

VERDICTS = pd.DataFrame(
    [
        ("p", "es", "recall", 2, "B is.", False, "ok"),
        ("p", "es", "recall", 1, "A is.", False, "ok"),
        ("p", "es", "recall", 3, "C is.", True, "ok"),
        ("p", "es", "precision", 1, "X is <so>.", False, "ok"),
        ("p", "es", "precision", 2, "Y is.", False, "unparsed"),
        ("p", "hi", "recall", 1, "A is.", False, "ok"),
    ],
    columns=["prompt_id", "language", "direction", "claim_no", "claim", "supported", "outcome"],
)


def test_missing_and_added_are_what_no_text_supports():
    assert differing(VERDICTS) == {
        ("es", "missing"): ["A is.", "B is."],
        ("es", "added"): ["X is <so>."],
        ("hi", "missing"): ["A is."],
    }


class Run:
    """Of notebook 04's tables what the example needs."""

    model_names = ("toy", "real")

    def is_toy(self, name):
        return name == "toy"

    def read(self, table, name):
        assert name == "real"
        scores = [("p", "es", 0.9), ("p", "hi", 0.1), ("q", "es", 0.5), ("q", "hi", 0.4), ("q", "fr", None)]
        texts = [(p, c, f"{p} {c}", "X is <so>. C is.") for p in "pq" for c in ("en", "es", "hi", "fr")]
        return {
            "information": pd.DataFrame(scores, columns=["prompt_id", "language", "f"]),
            "translations": pd.DataFrame(texts, columns=["prompt_id", "language", "text", "english"]).assign(
                dimension="information", prompt="?", outcome="ok"
            ),
            "verdicts": VERDICTS,
        }[table]


def test_the_widest_spread_is_shown_best_and_worst(root):
    found = chosen(Run())
    assert list(found["language"]) == ["en", "es", "hi"] and set(found["prompt_id"]) == {"p"}
    assert set(found["model"]) == {"real"} and found["f"].tolist()[1:] == [0.9, 0.1]
    assert list(found["missing"]) == ["", "A is.\nB is.", "A is."] and list(found["added"]) == ["", "X is <so>.", ""]
    page = side_by_side(found, ["text", "english", "missing", "added"], languages.load(root)).data
    assert page.count("<mark>X is &lt;so&gt;.</mark>") == 1 and page.count("A is.\nB is.") == 1


@pytest.mark.parametrize("added", ["", "Not in it."])
def test_a_claim_that_is_no_part_of_the_text_is_not_marked(root, added: str):
    row = pd.DataFrame([{"language": "es", "english": "A is.", "added": added}])
    assert "<mark>" not in side_by_side(row, ["english", "added"], languages.load(root)).data
