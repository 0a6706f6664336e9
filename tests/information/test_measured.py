"""information/measured.py: verifiers that are measured on a part of the known answers, and score nothing."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
import pytest

from xlc_utils.chat.base import Reply
from xlc_utils.information import measured
from xlc_utils.information.evaluator import calibrated
from xlc_utils.information.ruler import is_development, known_pairs, one_a_question
from xlc_utils.information.verdicts import Lexical
from xlc_utils.registry import prompts
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.running.params import Params


class Yes:
    """Says True of every claim, and lists nothing."""

    name = "yes"

    def __init__(self):
        self.asked: list[str] = []

    def complete(self, chats, sampling):
        assert bool(sampling.logprobs), "the entry says that it gives them"
        self.asked += [chat.messages[0][1] for chat in chats]
        return [Reply("True", Outcome.OK) for _ in chats]


@pytest.fixture(scope="module")
def pairs(root) -> pd.DataFrame:
    codes = ("en", "es", "hi", "ja")
    known = {c: prompts.known_answers(root, c) for c in codes}
    texts = [{"prompt_id": i, "language": c, "english": a.text()} for c in codes for i, a in known[c].items()]
    none = pd.DataFrame(columns=["prompt_id", "language", "source", "text"])
    found = known_pairs(known, prompts.facts(root), pd.DataFrame(texts).assign(outcome="ok"), none)
    return found[found["text"] == "untranslated"].reset_index(drop=True)


def run_of(root, model: Yes, **params) -> SimpleNamespace:
    models = {"yes": SimpleNamespace(gives_logprobs=True, toy=True)}
    return SimpleNamespace(
        root=root,
        params=Params(bootstrap_samples=20, **params),
        models=SimpleNamespace(models=models),
        chat=lambda name: model,
        toy=False,
        is_toy=lambda name: name == "yes",
    )


def test_further_verifiers_stand_beside_the_runs_own_on_the_same_held_out_claims(root, pairs: pd.DataFrame):
    model = Yes()
    run = run_of(root, model, measured_verifiers=("yes",))
    own = {"lexical": calibrated(Lexical(), pairs[pairs["prompt_id"].map(is_development)])}
    found = measured.further(run, pairs, own).set_index("verifier")
    some = one_a_question(pairs)
    some = some[~some["prompt_id"].map(is_development)]
    assert found.loc["yes", "claims"] == found.loc["lexical", "claims"] == len(some) < len(pairs) / 5
    assert found.loc["yes", "auc"] == 0.5 < found.loc["lexical", "auc"]
    assert len(model.asked) == len(some.drop_duplicates(["claim", "reference"])), "of the other half nothing is asked"
    assert measured.further(run_of(root, model), pairs, own).empty


def test_both_units_of_a_model_are_measured_on_one_answer_a_question(root, pairs: pd.DataFrame):
    held_out = pairs[~pairs["prompt_id"].map(is_development)]
    found = measured.units(run_of(root, Yes(), measured_verifiers=("yes", "lexical")), held_out).set_index("unit")
    some = one_a_question(held_out)
    assert set(found["verifier"]) == {"yes"} and set(found["claims"]) == {len(some)}
    assert found.loc["claim", "accuracy"] == pytest.approx(some["supported"].mean())
    assert found.loc["answer", "unparsed"] == len(some), "True is no list"
    everywhere = measured.units(run_of(root, Yes(), claim_verifiers=("yes",)), held_out)
    assert set(everywhere["claims"]) == {len(held_out)} and measured.units(run_of(root, Yes()), held_out).empty


@pytest.mark.parametrize(("names", "toy"), [((), False), (("lexical",), False), (("lexical", "yes"), True)])
def test_a_toy_that_is_measured_is_told(root, names: tuple, toy: bool):
    assert measured.is_toy(run_of(root, Yes(), measured_verifiers=names)) is toy
