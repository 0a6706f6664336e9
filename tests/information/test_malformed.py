"""Over 300 malformed replies: none crashes, none is silently a score, each ends as malformed_replies.py says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from malformed_replies import BAD, cases

from xlc_utils.chat.base import Reply, typed_text
from xlc_utils.information.claims import ModelClaims
from xlc_utils.information.scores import evaluate_answers
from xlc_utils.information.verdicts import ModelVerifier
from xlc_utils.registry.outcomes import Outcome, outcome_counts

CASES = cases()


class Says:
    name = "says"

    def __init__(self, text: str):
        self.text = text

    def complete(self, chats, sampling):
        """As every backend does it: an empty completion is typed `empty`."""
        outcome, detail = typed_text(self.text, "stop")
        return [Reply(self.text.strip(), outcome, detail=detail) for _ in chats]


def read(reader: str, text: str) -> tuple[list[Outcome], object]:
    """The outcomes, and what was read where they are ok."""
    if reader == "claims":
        [found] = ModelClaims(Says(text), "{text}").extract(["A text."])
        ok = found.outcome in (Outcome.OK, Outcome.EMPTY)
        assert ok or found.claims == ()
        return [found.outcome], found.claims if ok else None
    unit, claims = ("claim", ["A is."]) if reader == "verdict" else ("answer", ["A is.", "B is."])
    found = ModelVerifier(Says(text), "{reference}{claim}{claims}", unit).verdicts(claims, ["R"] * len(claims))
    for verdict in found:
        assert (verdict.outcome is Outcome.OK) == (not np.isnan(verdict.score)), "a score means a verdict"
        assert verdict.outcome is Outcome.OK or not verdict.supported
    said = tuple(v.supported for v in found)
    return [v.outcome for v in found], (said[0] if reader == "verdict" else said)


def test_there_are_enough_and_no_two_alike():
    assert len(CASES) >= 300 and len({(reader, reply) for _, reader, reply, _ in CASES}) == len(CASES)
    kinds = {kind for kind, *_ in CASES}
    assert len(kinds) > 30
    assert {"code fence", "prose before", "prose after", "braces in strings", "two verdicts", "native digits", "null",
            "yes or no in ten languages", "trailing comma", "BOM", "lone surrogate", "right-to-left mark",
            "one too short", "prompt echoed", "injected"} <= kinds  # fmt: skip


@pytest.mark.parametrize(("kind", "reader", "reply", "expected"), CASES, ids=lambda x: None)
def test_each_ends_as_expected(kind: str, reader: str, reply: str, expected: object):
    outcomes, said = read(reader, reply)
    if expected == BAD:
        nothing = Outcome.EMPTY if reader != "claims" and not reply.strip() else Outcome.UNPARSED
        assert set(outcomes) == {nothing}, (kind, said)
    else:
        assert set(outcomes) <= {Outcome.OK, Outcome.EMPTY} and said == expected, kind


def test_the_summary_is_the_committed_one():
    """malformed_summary.csv: how each kind ended; what was read, was empty and was unparsed add up to n."""
    rows = Counter()
    for kind, reader, reply, _ in CASES:
        outcome = read(reader, reply)[0][0]
        rows[reader, kind, "read" if outcome is Outcome.OK else str(outcome)] += 1
    found = pd.Series(rows).unstack(fill_value=0).reindex(columns=["read", "empty", "unparsed"], fill_value=0)
    found = found.rename_axis(["reader", "kind"]).assign(n=found.sum(axis=1))
    assert found["n"].sum() == len(CASES)
    path = Path(__file__).with_name("malformed_summary.csv")
    assert path.read_text(encoding="utf-8") == found.to_csv(lineterminator="\n")


@pytest.mark.parametrize("reply", [c[2] for c in CASES if c[1] == "claims" and c[3] == BAD][::6])
def test_a_reply_that_cannot_be_read_never_scores_a_prompt(reply: str):
    """From extractor to score: an answer whose claims are lost is left out and counted, neither 0 nor 1."""
    answers = pd.DataFrame({"prompt_id": "p", "language": ["en", "es"], "english": ["X.", "Y."], "outcome": "ok"})
    claims, verdicts, scores = evaluate_answers(
        answers, ModelClaims(Says(reply), "{text}"), ModelVerifier(Says("True"), "{claim}")
    )
    assert list(scores["reason"]) == ["no verdict"] and scores["f"].isna().all() and verdicts.empty
    counted = outcome_counts(claims["outcome"])
    assert counted[[str(o) for o in Outcome]].to_numpy().sum() == counted["n"].sum() == 2
