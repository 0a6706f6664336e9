"""fidelity/automatic.py: what is measured of a language's translation, and the verdict that follows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import CHRF
from statsmodels.stats.proportion import proportion_confint

from xlc_utils.fidelity import automatic
from xlc_utils.fidelity.automatic import CAUTION, DO_NOT_USE, MEASURED, TRUST, verdicts
from xlc_utils.registry import languages
from xlc_utils.running.params import Params

THRESHOLDS = {key: value for key, value in Params().model_dump().items() if key.startswith("fidelity_")}
GOOD = {"facts": (0.97, 0.92, 0.99), "chrf": (75, 70, 80), "degenerate": (0.01, 0.0, 0.03), "off_target": (0, 0, 0.04)}


def measured_of(language="pt", **changed) -> pd.DataFrame:
    values = {**GOOD, **changed}
    rows = [(language, name, *value, 100) for name, value in values.items() if value is not None]
    return pd.DataFrame(rows, columns=MEASURED)


def verdict_of(**changed) -> tuple[str, str]:
    [row] = verdicts(measured_of(**changed), ["pt"], THRESHOLDS).itertuples(index=False)
    return row.verdict, row.because


# ---- the verdict -----------------------------------------------------------------------------------------------------
def test_what_is_good_throughout_is_trusted():
    assert verdict_of() == (TRUST, "")


@pytest.mark.parametrize(
    ("changed", "verdict", "because"),
    [
        ({"facts": (0.97, 0.89, 0.99)}, CAUTION, "known facts that survive: too few to tell"),  # reaches below 0.9
        ({"facts": (0.89, 0.85, 0.92)}, CAUTION, "known facts that survive"),
        ({"facts": (0.97, 0.90, 0.99)}, TRUST, ""),
        ({"facts": (0.70, 0.60, 0.80)}, CAUTION, "known facts that survive"),
        ({"facts": (0.69, 0.60, 0.80)}, DO_NOT_USE, "known facts that survive"),
        ({"facts": None}, CAUTION, "known facts that survive: not measured"),
        ({"chrf": (75, np.nan, np.nan)}, CAUTION, "chrF of the round trip: too few to tell"),
        ({"chrf": (39.9, np.nan, np.nan)}, DO_NOT_USE, "chrF of the round trip"),
        ({"degenerate": (0.01, 0.0, 0.06)}, CAUTION, "degenerate sentences: too few to tell"),
        ({"degenerate": (0.21, 0.1, 0.3)}, DO_NOT_USE, "degenerate sentences"),
        ({"off_target": (0.21, 0.1, 0.3)}, DO_NOT_USE, "texts in another language"),
        ({"length": (0.5, 0.4, 0.6)}, TRUST, ""),  # contained in degenerate
        (
            {"facts": (0.5, 0.4, 0.6), "chrf": (30, 20, 40), "degenerate": (0.1, 0.05, 0.15)},
            DO_NOT_USE,
            "known facts that survive; chrF of the round trip",
        ),
    ],
)
def test_each_measure_can_stand_in_the_way(changed, verdict, because):
    assert verdict_of(**changed) == (verdict, because)


def test_a_language_of_which_nothing_is_known_is_not_used():
    found = verdicts(measured_of(), ["pt", "hi"], THRESHOLDS)
    assert list(found["language"]) == ["pt", "hi"]
    assert found["verdict"][1] == DO_NOT_USE and found["because"][1].endswith("nothing was measured")


RANK = {DO_NOT_USE: 0, CAUTION: 1, TRUST: 2}
share = st.floats(0, 1)


@given(facts=share, better=share, chrf=st.floats(0, 100), bad=share)
def test_a_better_value_never_makes_a_worse_verdict(facts, better, chrf, bad):
    def rank(facts: float) -> int:
        values = {"facts": (facts,) * 3, "chrf": (chrf,) * 3, "degenerate": (bad,) * 3}
        return RANK[verdict_of(**values)[0]]

    low, high = sorted((facts, better))
    assert rank(low) <= rank(high)


# ---- what is measured ------------------------------------------------------------------------------------------------
def test_chrf_of_a_language_is_the_mean_over_its_texts():
    texts = [("tea-01", "Tea has caffeine.", "Tea has coffee."), ("tea-02", "Leaves are dried.", "Leaves are dried.")]
    rows = [(i, "es", original, "té", back, "ok") for i, original, back in texts]
    rows += [("tea-03", "es", "x", "x", "", "error"), ("tea-01", "hi", "Tea.", "चाय", "Tea.", "degenerate")]
    trips = pd.DataFrame(rows, columns=["prompt_id", "language", "original", "foreign", "back", "outcome"])
    found = automatic.round_trip_chrf(trips, seed=1, samples=500).set_index("language")
    expected = np.mean([CHRF().sentence_score(back, [original]).score for _, original, back in texts])
    assert found["value"]["es"] == pytest.approx(expected) and found["n"]["es"] == 2
    assert found["low"]["es"] < expected < found["high"]["es"] <= 100
    assert found["value"]["hi"] == pytest.approx(100) and np.isnan(found["low"]["hi"]) and found["n"]["hi"] == 1


def test_shares_have_wilson_intervals():
    survival = pd.DataFrame({"language": ["es"] * 10 + ["hi"] * 4, "survives": [True] * 9 + [False] * 3 + [True] * 2})
    found = automatic.share_of_facts(survival).set_index("language")
    for language, (k, n) in {"es": (9, 10), "hi": (2, 4)}.items():
        low, high = proportion_confint(k, n, method="wilson")
        row = found.loc[language]
        assert (row["value"], row["n"]) == (k / n, n)
        assert (row["low"], row["high"]) == (pytest.approx(low), pytest.approx(high))


def test_flagged_sentences_and_those_flagged_for_their_length():
    rows = [
        ("es", "ok", ""),
        ("es", "truncated", "no end within 128 tokens"),
        ("es", "degenerate", "length ratio 7.50"),
        ("es", "degenerate", "repeats “la”"),
        ("es", "error", "HTTP 500"),
        ("hi", "degenerate", "length ratio 0.10"),
    ]
    found = automatic.shares_of_sentences(pd.DataFrame(rows, columns=["language", "outcome", "detail"]))
    values = found.set_index(["measure", "language"])["value"].to_dict()
    assert values == {
        ("degenerate", "es"): 0.5,
        ("degenerate", "hi"): 1,
        ("length", "es"): 0.25,
        ("length", "hi"): 1,
    }
    assert set(found["n"]) == {4, 1}


def test_texts_in_another_language_are_found_on_either_way(root):
    english = "The sun rises in the east and sets in the west."
    spanish = "El sol sale por el este y se pone por el oeste."
    french = "Le soleil se lève à l'est et se couche à l'ouest."
    translations = pd.DataFrame(
        [("es", english, "fx", "ok"), ("es", spanish, "fx", "ok"), ("es", "Ok.", "fx", "ok"), ("es", french, "", "ok")],
        columns=["language", "english", "translator", "outcome"],
    )
    trips = pd.DataFrame(
        [("es", spanish, "ok"), ("es", french, "ok"), ("es", "", "error"), ("fr", french, "ok")],
        columns=["language", "foreign", "outcome"],
    )
    found = automatic.share_off_target(translations, trips, languages.load(root)).set_index("language")
    assert (found["value"]["es"], found["n"]["es"]) == (0.5, 4)  # one of two into English, one of two into Spanish
    assert (found["value"]["fr"], found["n"]["fr"]) == (0, 1)


def test_nothing_to_measure_is_an_empty_table():
    survival = pd.DataFrame({"language": [], "survives": []})
    assert automatic.share_of_facts(survival).empty
    trips = pd.DataFrame(columns=["prompt_id", "language", "original", "foreign", "back", "outcome"])
    assert automatic.round_trip_chrf(trips, 0, 10).empty
