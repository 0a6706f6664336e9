"""Measured metrics, the committed numbers, their means and the arrays for the rank statistics."""

from __future__ import annotations

import importlib.util
import statistics

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau
from short_dialogues import TEXTS, dialogue

from xlc_utils.judges import as_published, rebuild
from xlc_utils.judges.automatic import (
    DATA,
    LANGUAGE_PAIRS,
    METRICS,
    lemmatiser_means,
    measure,
    model_means,
    models,
    paired,
    read_as_published,
    read_lemmatiser_means,
    read_metrics,
    score_matrices,
)
from xlc_utils.judges.lexical import dialogue_tokens, lemmatiser, mattr, self_bleu_scores, ttr
from xlc_utils.judges.released import draws, read_dialogues
from xlc_utils.registry.problems import Problem


@pytest.fixture(scope="module")
def metrics():
    return read_metrics()


def test_measure_fills_the_row_of_each_dialogue():
    dialogues = [
        dialogue("en", TEXTS["en"], 0),
        dialogue("fi", TEXTS["fi"], 0),
        dialogue("en", TEXTS["en"][:2], 1),
        dialogue("en", TEXTS["en"][:1], 2),
        dialogue("en", TEXTS["en"] * 2, 3),
    ]
    found = measure(dialogues)
    assert found["language"].tolist() == ["en", "fi", "en", "en", "en"]
    assert found["n_turns"].tolist() == [4, 4, 2, 1, 8]
    english = [dialogue_tokens(dialogues[i], lemmatiser("en"), "agent") for i in (0, 2, 4)]
    rows = found.iloc[[0, 2, 4]]
    assert rows["n_tokens_agent"].tolist() == [len(text) for text in english]
    np.testing.assert_allclose(rows["ttr_agent"], [ttr(text) for text in english], atol=5e-7)
    np.testing.assert_allclose(rows["mattr_agent"], [mattr(text) for text in english], atol=5e-7)
    np.testing.assert_allclose(rows["self_bleu_agent"], self_bleu_scores(english), atol=5e-7)
    assert np.isnan(found["self_bleu_whole"][1])  # alone in its language
    assert found.loc[3, list(METRICS.values())].isna().all()  # a single message


def test_measure_tells_the_language_of_the_turns():
    found = measure([dialogue("hu", [*TEXTS["hu"][:2], *TEXTS["en"][:2]])])
    assert found.loc[0, ["share_right_language", "share_english"]].tolist() == [0.5, 0.5]


def test_a_draw_is_known_by_its_parameters_and_its_turn():
    hi = ["Hello!", "Hello!"]
    dialogues = [
        dialogue("fi", hi, 0, "short", problem="review"),
        dialogue("fi", hi, 1, "short", problem="complaint"),
        dialogue("en", hi, 0, "full", problem="review"),
        dialogue("en", hi, 1, "full", problem="get_invoice"),
        dialogue("en", hi, 2, "full", problem="complaint"),
        dialogue("en", hi, 3, "full", problem="review"),
        dialogue("et", hi, 0, "full", problem="General inquiry"),
    ]
    assert draws(dialogues) == [0, 2, 0, 1, 2, 3, None]


def test_committed_numbers_are_numbers_only():
    text_columns = {
        "dialogue_metrics.csv": ["language", "model"],
        "as_published_metrics.csv": ["language", "model"],
        "human_ratings.csv": ["annotator", "dialogue", "question"],
        "lemmatiser_means.csv": ["language", "lemmatiser", "model"],
        "dialogue_similarity.csv": ["language", "model"],
        "cross_language_similarity.csv": ["first", "second", "model"],
    }
    for name, allowed in text_columns.items():
        table = pd.read_csv(DATA / name)
        assert table.select_dtypes(exclude="number").columns.tolist() == allowed
        assert not any(table[column].str.contains(r"\s").any() for column in allowed)


def test_committed_counts_are_those_of_the_release(metrics):
    assert metrics.groupby("language").size().to_dict() == {"et": 697, "fi": 692, "hu": 684, "en": 692}
    means = model_means(metrics).set_index(["language", "model"])
    assert len(means) == 24
    own = metrics[(metrics["language"] == "fi") & (metrics["model"] == "Mixtral-8x7B") & (metrics["n_turns"] >= 2)]
    row = means.loc[("fi", "Mixtral-8x7B")]
    for name, column in (("TTR", "ttr_whole"), ("MATTR", "mattr_whole"), ("similarity", "similarity")):
        assert row[f"{name}_sd"] == pytest.approx(statistics.stdev(own[column].dropna())), "Table 2's ± over dialogues"
    # Dialogues with at least two turns, as counted from the release by other code.
    assert means["n_dialogues"].loc["et"].to_dict() == {
        "Claude-Sonnet-4": 117,
        "Command-R": 111,
        "Llama3-70B": 119,
        "Llama3-8B": 115,
        "Mixtral-8x7B": 111,
        "gpt-4.1-mini": 120,
    }
    assert means["n_dialogues"].loc["hu"].to_dict() == {
        "Claude-Sonnet-4": 120,
        "Command-R": 106,
        "Llama3-70B": 120,
        "Llama3-8B": 114,
        "Mixtral-8x7B": 99,
        "gpt-4.1-mini": 101,
    }
    assert (means["share_under_window"].loc[["et", "fi", "hu"], "Mixtral-8x7B"] == 1).all()


def test_seventy_percent_of_one_generators_hungarian_is_largely_english(metrics):
    largely = metrics["share_english"] >= 0.5
    counts = largely.groupby([metrics["language"], metrics["model"]]).agg(["sum", "size"])
    assert counts.loc[("hu", "Command-R")].tolist() == [79, 113]
    others = counts.drop([("hu", "Command-R")]).drop("en")
    assert (others["sum"] / others["size"]).max() < 0.08


def test_means_are_near_those_of_another_implementation(metrics):
    # From an independent computation with simplemma and another stop list; only the list differs.
    other = {
        ("en", "Claude-Sonnet-4"): (0.5639, 0.7485, 0.3126),
        ("en", "Llama3-70B"): (0.5979, 0.683, 0.5076),
        ("et", "Command-R"): (0.6651, 0.6964, 0.099),
        ("et", "Mixtral-8x7B"): (0.7286, 0.7286, 0.1287),
        ("fi", "gpt-4.1-mini"): (0.7026, 0.7296, 0.1633),
        ("hu", "Command-R"): (0.6129, 0.7215, 0.3221),
        ("hu", "Llama3-8B"): (0.4807, 0.5131, 0.2641),
    }
    means = model_means(metrics).set_index(["language", "model"])[["TTR", "MATTR", "self-BLEU"]]
    for key, expected in other.items():
        np.testing.assert_allclose(means.loc[key], expected, atol=0.06)


def test_as_published_gives_the_papers_ranges():
    """Section 3.1: MATTR and full self-BLEU of the lowest and the highest model, per language."""
    printed = {
        ("et", "mattr"): (0.48, 0.80),
        ("fi", "mattr"): (0.45, 0.70),
        ("hu", "mattr"): (0.49, 0.76),
        ("et", "self_bleu_whole"): (0.05, 0.14),
        ("fi", "self_bleu_whole"): (0.11, 0.30),
        ("hu", "self_bleu_whole"): (0.22, 0.35),
    }
    found = read_as_published().groupby("language")
    for (language, column), (lowest, highest) in printed.items():
        assert found[column].min()[language] == pytest.approx(lowest, abs=0.02)
        assert found[column].max()[language] == pytest.approx(highest, abs=0.04)


def test_as_published_units():
    """Estonian: turns for each side, no lemmas, nothing that touches punctuation; Finnish: dialogues, lemmas."""
    pytest.importorskip("stopwordsiso")
    turns = ["Tellimused kohale jõudsid. Pakid laost", "Pakk kadus", "Tellimused kohale"]
    estonian = dialogue("et", turns)
    assert as_published._texts(estonian, "agent") == [
        ["tellimused", "kohale", "pakid", "laost"],
        ["tellimused", "kohale"],
    ]
    assert as_published._texts(estonian, "whole") == [
        ["tellimused", "kohale", "pakid", "laost", "pakk", "kadus", "tellimused", "kohale"],
    ]
    finnish = dialogue("fi", ["Tilaukset (viisi) lähtivät.", "Paketti katosi", "Tilaukset."])
    assert as_published._texts(finnish, "agent") == [["tilaus", "lähteä", "tilaus"]]
    assert as_published._texts(finnish, "whole")[0][0] == "klaus"


def test_score_matrices_pair_draws(metrics):
    matrices = score_matrices(metrics, "TTR")
    assert list(matrices) == ["et", "fi", "hu", "en"]
    assert {matrix.shape for matrix in matrices.values()} == {(6, 120)}
    names = models(metrics)
    for _, row in metrics[metrics["language"] == "hu"].sample(50, random_state=0).iterrows():
        value = matrices["hu"][names.index(row["model"]), row["draw"]]
        np.testing.assert_equal(value, row["ttr_whole"])
    means = model_means(metrics).set_index(["language", "model"])
    for language, matrix in matrices.items():
        np.testing.assert_allclose(np.nanmean(matrix, axis=1), means.loc[language].loc[names, "TTR"])


def test_pairs_of_languages_are_in_paper_order_and_paired_without_estonian(metrics):
    assert ["–".join(pair) for pair in LANGUAGE_PAIRS] == ["et–en", "et–fi", "et–hu", "fi–en", "fi–hu", "hu–en"]
    assert [paired(metrics, *pair) for pair in LANGUAGE_PAIRS] == [False, False, False, True, True, True]


def test_surface_metrics_do_not_rank_models_alike_everywhere(metrics):
    """Paper B, contribution 1: tau at least .76 for surface metrics."""
    means = model_means(metrics).set_index("language")
    taus = {
        (metric, *pair): kendalltau(*(means.loc[language, metric] for language in pair)).statistic
        for metric in METRICS
        for pair in LANGUAGE_PAIRS
    }
    assert taus["self-BLEU, agent", "fi", "en"] == pytest.approx(13 / 15)
    assert taus["self-BLEU, agent", "et", "hu"] == pytest.approx(-1 / 15)
    assert taus["TTR", "hu", "en"] == pytest.approx(7 / 15)
    assert sum(tau < 0.76 for tau in taus.values()) > 20


def test_unknown_metric(metrics):
    with pytest.raises(Problem, match="use one of TTR"):
        score_matrices(metrics, "BLEURT")


def test_a_missing_or_foreign_table(tmp_path):
    with pytest.raises(Problem, match="it cannot be read"):
        read_metrics(tmp_path / "none.csv")
    (tmp_path / "other.csv").write_text("language,model\nen,x\n", encoding="utf-8")
    with pytest.raises(Problem, match="has no column `dialogue`"):
        read_metrics(tmp_path / "other.csv")
    (tmp_path / "other.csv").write_text("language,model\nen,x\n", encoding="utf-16")
    with pytest.raises(Problem, match="it is not a table"):
        read_metrics(tmp_path / "other.csv")


def test_the_dialogues_give_the_committed_numbers(release, tmp_path):
    pytest.importorskip("stopwordsiso")
    names = ("dialogue_metrics.csv", "as_published_metrics.csv", "human_ratings.csv")
    for path in rebuild.rebuild(release, tmp_path, names):
        assert path.read_bytes() == (DATA / path.name).read_bytes(), path.name


def test_every_generator_has_the_same_draws_in_the_same_order(release):
    dialogues = [item for item in read_dialogues(release) if item.language != "et"]
    drawn = {}
    for item, number in zip(dialogues, draws(dialogues), strict=True):
        drawn.setdefault((item.language, item.model), []).append(number)
    assert len(drawn) == 18
    assert max(map(len, drawn.values())) == 120
    assert all(numbers == sorted(set(numbers)) and numbers[-1] < 120 for numbers in drawn.values())


def test_the_dialogues_give_the_committed_means_by_lemmatiser(release):
    """Without EstNLTK and Voikko; with them, where they are installed."""
    names = {language: [n for n in tried if installed(n)] for language, tried in rebuild.COMPARED.items()}
    key = ["language", "lemmatiser", "model"]
    found = lemmatiser_means(read_dialogues(release), names).set_index(key)
    committed = read_lemmatiser_means().set_index(key)
    pd.testing.assert_frame_equal(found, committed.loc[found.index])
    assert len(found) >= 2 * 4 * 6


def installed(name):
    packages = {"vabamorf": "estnltk", "voikko": "libvoikko", "stanza": "stanza"}
    return name not in packages or importlib.util.find_spec(packages[name]) is not None
