"""Calls and prompt tokens of claims and verdicts: ours against FActScore run for each language on its own.

    xlc run params/demo.yaml --only 01,02
    python benchmarks/information_cost.py [--run demo] [--model smollm2-135m-instruct]

On the answers of a run. FActScore's way: for each language both answers are taken apart sentence by sentence, the
English one anew each time, and every claim is verified in a call of its own. Ours: `claim_unit: answer`, the English
claims reused, `verdict_unit: answer`. Both are given the same claims, the sentences, and instructions of this
repository without FActScore's eight demonstrations, which would make its prompts longer. Tokens are counted by
SmolLM2's tokenizer. Of the demo's known answers: 10.4 times fewer calls, 5.5 times fewer prompt tokens.

Fewer calls are worth nothing if the verdicts get worse. With ``--model`` a model of models.yaml verifies claims of
known truth both ways, claim by claim as FActScore would for each language, and an answer's claims at once as ours: one
known answer for each question of the held-out half, translated and not. Printed are both AUCs and their difference with
its 95% interval over questions; the difference has to be at most two points. With the toy that comes as a package it
takes four minutes on two cores, from the record of `make ruler` (``--run ruler``) seconds; it says nothing about a real
verifier.
"""

from __future__ import annotations

import argparse
import json
import urllib.request

import pandas as pd

from xlc_utils.chat.base import Reply
from xlc_utils.information.claims import ModelClaims, SentenceClaims
from xlc_utils.information.ruler import is_development, one_a_question, units_table
from xlc_utils.information.scores import claims_table, pairs_to_verify
from xlc_utils.information.verdicts import ModelVerifier
from xlc_utils.registry import prompts
from xlc_utils.registry.files import project_root
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.running.params import Params, load
from xlc_utils.running.run import Run

FEWER_CALLS, FEWER_TOKENS, AUC_POINTS = 10.0, 5.0, 0.02
TOKENIZER = "smollm2-135m-instruct"


class Counts:
    """A chat model that answers nothing and keeps what it is asked."""

    name = "counts"

    def __init__(self):
        self.asked: list[str] = []

    def complete(self, chats, sampling):
        self.asked += [chat.messages[0][1] for chat in chats]
        return [Reply("", Outcome.EMPTY) for _ in chats]


def factscore_way(root, answers: pd.DataFrame) -> Counts:
    """Each language on its own; nothing that another language has asked is reused."""
    model = Counts()
    for language in sorted(set(answers["language"]) - {"en"}):
        own = answers[answers["language"].isin(["en", language])]
        claims = claims_table(own, SentenceClaims())
        pairs = pairs_to_verify(claims, own)
        compared = own[own["prompt_id"].isin(pairs["prompt_id"])]
        ModelClaims(model, prompts.instruction(root, "extract_claims"), "sentence").extract(list(compared["english"]))
        verifier = ModelVerifier(model, prompts.instruction(root, "verify_claim"), "claim")
        verifier.verdicts(list(pairs["claim"]), list(pairs["reference"]))
    return model


def our_way(root, answers: pd.DataFrame) -> Counts:
    model = Counts()
    pairs = pairs_to_verify(claims_table(answers, SentenceClaims()), answers)
    compared = answers[answers["prompt_id"].isin(pairs["prompt_id"])]
    ModelClaims(model, prompts.instruction(root, "extract_claims"), "answer").extract(list(compared["english"]))
    verifier = ModelVerifier(model, prompts.instruction(root, "verify_claims"), "answer")
    about = (pairs["prompt_id"] + pairs["language"] + pairs["direction"]).tolist()
    verifier.verdicts(list(pairs["claim"]), list(pairs["reference"]), about)
    return model


def token_counter(run: Run):
    """Counts tokens at the embedded server's own endpoint."""
    from xlc_utils.chat.backends import identity
    from xlc_utils.chat.embedded import EmbeddedBackend, weights

    entry = run.models.models[TOKENIZER]
    backend = EmbeddedBackend(TOKENIZER, identity(entry), weights(TOKENIZER, entry.package, entry.sha256, entry.file))
    address = backend._servers[0].url.removesuffix("/v1") + "/tokenize"

    def count(text: str) -> int:
        request = urllib.request.Request(
            address, json.dumps({"content": text}).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as reply:
            return len(json.load(reply)["tokens"])

    count.backend = backend  # the server ends with it
    return count


def cost(run: Run, system: str) -> pd.DataFrame:
    answers = run.read("translations", system).query("dimension == 'information'")
    count = token_counter(run)
    rows = []
    for way, made in (("FActScore's", factscore_way), ("ours", our_way)):
        asked = made(run.root, answers).asked
        rows.append({"way": way, "calls": len(asked), "prompt_tokens": sum(count(text) for text in asked)})
    return pd.DataFrame(rows)


def verdicts(run: Run, name: str) -> pd.DataFrame:
    """One call a claim and one call an answer; see `xlc_utils.information.ruler.units_table`."""
    from xlc_utils.information.evaluator import model_verifier, pairs_of
    from xlc_utils.information.measured import UNITS

    pairs = pairs_of(run)
    some = one_a_question(pairs[~pairs["prompt_id"].map(is_development)])
    samples, seed = run.params.bootstrap_samples, run.params.seed
    return units_table(some, {unit: model_verifier(run, name, unit) for unit in UNITS}, samples, seed)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--run", default="demo")
    arguments.add_argument("--system", default="known-answers")
    arguments.add_argument("--model")
    given, root = arguments.parse_args(), project_root()
    params = load(root / "params" / f"{given.run}.yaml", {"verdict_reading": "corrected"})
    run = Run(root, params, set(Params.model_fields), "04_information")
    table = cost(run, given.system)
    print(table.to_string(index=False))
    ratios = table[["calls", "prompt_tokens"]].iloc[0] / table[["calls", "prompt_tokens"]].iloc[1]
    kept = ratios["calls"] >= FEWER_CALLS and ratios["prompt_tokens"] >= FEWER_TOKENS
    print(f"{ratios['calls']:.1f} times fewer calls, {ratios['prompt_tokens']:.1f} times fewer prompt tokens")
    print(f"goals {FEWER_CALLS:.0f} and {FEWER_TOKENS:.0f}: {'kept' if kept else 'MISSED'}")
    if given.model:
        units = verdicts(run, given.model)
        print(units.round(3).to_string(index=False))
        one = units.iloc[0]
        gap, low, high = one["auc_difference"], one["difference_low"], one["difference_high"]
        equal = abs(gap) <= AUC_POINTS
        toy = ", a toy: this says nothing about a real verifier" if run.is_toy(given.model) else ""
        print(f"AUC an answer at once minus claim by claim: {gap:+.3f} [{low:+.3f}, {high:+.3f}] ({given.model}{toy})")
        print(f"goal at most {AUC_POINTS}: {'kept' if equal else 'MISSED'}")
        kept &= bool(equal)
    raise SystemExit(not kept)


if __name__ == "__main__":
    main()
