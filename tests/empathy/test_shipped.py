"""The classifier kept as numbers says what the fitted one says."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from epitome_like import made_pairs
from test_two_core import Embedder

from xlc_utils.empathy import epitome, shipped
from xlc_utils.empathy.two_core import TwoCore
from xlc_utils.registry.problems import Problem
from xlc_utils.registry.prompts import MECHANISMS


def test_what_is_kept_reads_as_what_was_fitted(tmp_path):
    pairs = made_pairs(120)
    fitted = TwoCore(Embedder(), shipped.EVALUATOR).fit(pairs)
    shipped.save(fitted, len(pairs), tmp_path / "head.json")
    kept = shipped.EpitomeHead(Embedder(), tmp_path / "head.json")
    texts = list(pairs["response"])
    np.testing.assert_allclose(kept.probabilities(texts), fitted.probabilities(texts), atol=1e-3)
    reading = kept.read([""] * len(texts), texts)
    assert (reading.profiles == fitted.profiles(texts)).mean() > 0.999
    assert kept.probabilities([]).shape == (0, 3)


def test_the_one_that_is_shipped_is_of_the_pinned_data_and_holds_no_text():
    kept = json.loads(shipped.FILE.read_text(encoding="utf-8"))
    assert kept["data"] | {"pairs": 0} == {
        "repository": epitome.RELEASE.repository,
        "commit": epitome.COMMIT,
        "pairs": 0,
    }
    assert kept["split_seed"] == epitome.SPLIT and kept["evaluator"] == shipped.EVALUATOR
    assert np.array(kept["response"]["weights"]).shape == np.array(kept["sentence"]["weights"]).shape == (384, 3)
    words = set(re.findall(r"[A-Za-z]{2,}", json.dumps({k: v for k, v in kept.items() if k != "data"})))
    assert words <= {
        "evaluator", "nanoe", "sentences", "encoder", "split_seed", "split", "seed", "mechanisms", "response",
        "sentence", "calibration", "weights", "bias", "thresholds", *MECHANISMS,
    }  # fmt: skip
    assert kept["data"].keys() == {"repository", "commit", "pairs"}


def test_it_saw_no_pair_of_the_test(real_pairs):
    kept = json.loads(shipped.FILE.read_text(encoding="utf-8"))
    assert kept["data"]["pairs"] == (epitome.split(real_pairs, epitome.SPLIT) != "test").sum()


def test_a_file_that_was_changed_by_hand(tmp_path):
    (tmp_path / "head.json").write_text('{"response": 1}', encoding="utf-8")
    with pytest.raises(Problem, match=r"head\.json.*it cannot be read.*bring it back from the repository"):
        shipped.EpitomeHead(Embedder(), tmp_path / "head.json")
