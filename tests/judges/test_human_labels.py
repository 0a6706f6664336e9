"""Human ratings: who rated what, means by every definition, agreement as published and corrected."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

from xlc_utils.judges.human import (
    ANNOTATORS,
    KEY_ANNOTATORS,
    agreement_of_all_trios,
    agreement_table,
    corrected_fleiss,
    coverage,
    fleiss_as_published,
    kappa_intervals,
    label_means,
    label_means_of_all,
    rating_matrix,
    read_ratings,
    reference_labels,
)
from xlc_utils.registry.problems import Problem


@pytest.fixture(scope="module")
def ratings():
    return read_ratings()


def test_who_rated_what(ratings):
    n = coverage(ratings).pivot(index="question", columns="annotator", values="n")
    assert n.loc["coherence"].tolist() == n.loc["fluency"].tolist() == [119, 118, 118, 119, 34]
    each = (~np.isnan(rating_matrix(ratings, "fluency", ANNOTATORS))).sum(axis=1)
    assert np.bincount(each).tolist() == [0, 0, 1, 3, 83, 33]


def test_kappas_of_the_paper_and_without_the_slip(ratings):
    """Section 2.2 prints .385 and .321."""
    for question, published, corrected in (("coherence", 0.3854, 0.4170), ("fluency", 0.3217, 0.3400)):
        matrix = rating_matrix(ratings, question)
        assert matrix.shape == (120, 3)
        assert fleiss_as_published(matrix) == pytest.approx(published, abs=5e-5)
        assert corrected_fleiss(matrix) == pytest.approx(corrected, abs=5e-5)


def test_only_one_of_ten_trios_gives_the_kappas_of_the_paper(ratings):
    trios = agreement_of_all_trios(ratings)
    assert len(trios) == 20
    found = trios["fleiss_as_published"]
    near = trios[(found - 0.385).abs().lt(0.001) | (found - 0.321).abs().lt(0.001)]
    assert near["annotators"].tolist() == ["1+2+4", "1+2+4"]


def test_agreement_under_other_coefficients(ratings):
    """Values from an independent computation with other libraries, 4 decimals."""
    expected = {
        ("coherence", "1+2+4"): (119, 0.3854, 0.4170, 0.4154, 0.4154, 0.4122, 0.4122, 0.7479),
        ("fluency", "1+2+4"): (119, 0.3217, 0.3400, 0.3381, 0.4955, 0.3306, 0.4893, 0.4202),
        ("fluency", "1+2+3"): (120, -0.0132, -0.0004, 0.0013, 0.0131, 0.0923, 0.1873, 0.1167),
        ("coherence", "3+4+5"): (117, -0.3093, 0.0765, 0.0360, 0.0360, 0.0432, 0.0432, 0.7607),
    }
    table = agreement_of_all_trios(ratings).set_index(["question", "annotators"])
    for key, values in expected.items():
        np.testing.assert_allclose(table.loc[key].astype(float), values, atol=1e-4)


def test_kappa_of_all_five(ratings):
    table = agreement_table(ratings).set_index(["question", "annotators"])
    assert table.loc[("coherence", "1+2+3+4+5"), "fleiss"] == pytest.approx(0.2533, abs=5e-5)
    assert table.loc[("fluency", "1+2+3+4+5"), "fleiss"] == pytest.approx(0.1190, abs=5e-5)


def test_means_of_the_paper(ratings):
    """Appendix C.2 prints coherence .842 ± .367 and fluency 2.108 ± .696, each as a label of three annotators."""
    key = label_means(ratings).set_index(["question", "definition"])[["mean", "sd"]].round(3)
    assert key.loc[("fluency", "median")].tolist() == [2.108, 0.696]
    assert key.loc[("fluency", "majority, ties to the first")].tolist() == [2.108, 0.708]
    assert not (key.loc["coherence"] == [0.842, 0.367]).all(axis=1).any()
    everything = label_means_of_all(ratings)
    hits = everything[
        (everything["question"] == "coherence")
        & everything["mean"].round(3).eq(0.842)
        & everything["sd"].round(3).eq(0.367)
    ]
    assert set(hits["annotators"]) == {"1+2+4+5", "2+3+4+5"}


def test_rules_part_on_ties(ratings):
    tied = ratings.iloc[:0]
    for annotator, value in zip(ANNOTATORS[:4], (2, 0, 2, 0), strict=True):
        tied.loc[len(tied)] = [annotator, "d1", "fluency", value]
    expected = {
        "mean": 1,
        "median": 1,
        "majority, ties to the first": 2,
        "majority, ties to the lowest": 0,
        "majority, ties to the highest": 2,
        "majority, ties to their median": 1,
    }
    for rule, label in expected.items():
        assert reference_labels(tied, "fluency", rule, ANNOTATORS).tolist() == [label]
    assert reference_labels(tied, "fluency", "pooled ratings", ANNOTATORS).tolist() == [2, 0, 2, 0]


@given(st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=2, max_size=12))
def test_with_equal_numbers_of_ratings_published_and_corrected_are_fleiss_kappa(rows):
    matrix = np.array(rows, dtype=float)
    if len(np.unique(matrix)) == 1:
        return  # undefined
    oracle = fleiss_kappa(aggregate_raters(matrix)[0])
    assert fleiss_as_published(matrix) == pytest.approx(oracle)
    assert corrected_fleiss(matrix) == pytest.approx(oracle)


def test_kappa_intervals(ratings):
    """Intervals of an independent bootstrap: coherence .270–.561, fluency .242–.433."""
    table = kappa_intervals(ratings, seed=1, samples=1000)
    fleiss = table[table["coefficient"] == "fleiss"].set_index("question")
    np.testing.assert_allclose(fleiss.loc["coherence", ["low", "high"]].astype(float), [0.270, 0.561], atol=0.025)
    np.testing.assert_allclose(fleiss.loc["fluency", ["low", "high"]].astype(float), [0.242, 0.433], atol=0.025)
    assert set(table["n_dialogues"]) == {119}


def test_key_annotators_are_three_of_five():
    assert set(KEY_ANNOTATORS) < set(ANNOTATORS) and len(KEY_ANNOTATORS) == 3


def test_a_missing_or_foreign_table(tmp_path):
    with pytest.raises(Problem, match="it cannot be read"):
        read_ratings(tmp_path / "none.csv")
    (tmp_path / "other.csv").write_text("annotator,dialogue\nA1,d1\n", encoding="utf-8")
    with pytest.raises(Problem, match="has no column `question`"):
        read_ratings(tmp_path / "other.csv")
