"""Asks FActScore itself: its own code, with a stub for the language model, on 50 cases; writes factscore_decisions.csv.

    python -m venv factscore && . factscore/bin/activate
    pip install --no-deps factscore==0.2.0 && pip install numpy tqdm
    python tests/information/make_factscore_decisions.py

The wheel of factscore 0.2.0 on PyPI has the SHA-256 018d8b9fb6b34a466176ef340ddb4f25fc74df45e877758ddf658be0ad688abb.
It pins torch 1 and openai 0.27; nothing of them is used here, so modules of their names that hold nothing stand in.
"""

from __future__ import annotations

import csv
import json
import sys
import tempfile
import types
from importlib.metadata import version
from pathlib import Path
from unittest import mock

VERSION = "0.2.0"
COLUMNS = ["case", "gamma", "abstain", "generation", "facts_reply", "verdict_replies", "facts", "supported", "score"]

FACTS = [
    "- The Sun is a star.\n- It is hot.",
    "- The Sun is a star\n- It is hot",
    "Here are the facts:\n- The Sun is a star.\n- It is hot.\n- It is far.",
    "- The Sun is a star.",
    "The Sun is a star.",
    "",
    "- A well- known star is the Sun.\n- It is hot.",
    "- A.\n- \n- B.",
    "- Paris - the capital - is large.",
    "-The Sun is a star.\n- It is hot.",
    "1. The Sun is a star.\n2. It is hot.",
    "\n\n- The Sun is a star.\n\n- It is hot.\n\n",
    "- सूर्य एक तारा है।\n- यह गर्म है।",
    "- " + "\n- ".join(f"Fact number {i} holds." for i in range(12)),
]
VERDICTS = [
    "True", "False", "true.", "FALSE!", "True, not False.", "False, not true.", "असत्य", "Falsch", "", "Wahr",
    "I cannot tell.", "Unknown", "There is no information on it.", "It is not stated.", "The statement is correct.",
    "Untrue", "Supported", "Yes", "No", "正しい", "真", "صحيح", "True or False?", "notable", "Not.", "cannot!",
    "It can't be known.", "falsetrue", "truefalse", "Output: True", "The answer is falsely given as true.", "None",
    "NOT true", "false false true", "uninformation", "1", "{}", "?", "True.\nFalse.", "Vrai",
]  # fmt: skip
GENERATIONS = [
    "The Sun is a star. It is hot.",
    "I'm sorry, I cannot say.",
    "Could you provide more detail?",
    "Sorry, no.",
    "i'm sorry to hear it. The Sun is a star.",
]


def cases() -> list[dict]:
    """Every facts reply, verdict and generation at least once, in 50 cases."""
    made = []
    for i in range(50):
        made.append(
            {
                "case": i + 1,
                "gamma": (0, 10, 3)[i % 3],
                "abstain": ("none", "generic")[i % 2],
                "generation": GENERATIONS[(i // 2) % len(GENERATIONS)] if i % 4 < 2 else GENERATIONS[0],
                "facts_reply": FACTS[i % len(FACTS)],
                "verdict_replies": [VERDICTS[(3 * i + k) % len(VERDICTS)] for k in range(3)],
            }
        )
    return made


def stand_ins() -> None:
    for name in ("openai", "torch", "transformers", "spacy", "nltk", "nltk.tokenize", "rank_bm25", "pysqlite3"):
        module = types.ModuleType(name)
        module.__getattr__ = lambda attribute: mock.MagicMock()
        sys.modules[name] = module


def decided(case: dict) -> dict:
    from factscore.atomic_facts import text_to_sentences
    from factscore.factscorer import FactScorer

    scorer = FactScorer(cache_dir=tempfile.mkdtemp(), abstain_detection_type=case["abstain"])
    replies = iter(case["verdict_replies"] * 20)
    scorer.lm = mock.Mock(cache_dict={}, generate=lambda prompt: (next(replies), None))
    scorer.retrieval["given"] = mock.Mock(get_passages=lambda *_, **__: [{"title": "t", "text": "The context."}])

    def facts_of(generation, cost_estimate=None):
        return 0 if cost_estimate else ([(generation, text_to_sentences(case["facts_reply"]))], None)

    scorer.af_generator = mock.Mock(run=facts_of)
    try:
        out = scorer.get_score(["t"], [case["generation"]], gamma=case["gamma"], knowledge_source="given")
    except IndexError:
        return {"facts": "IndexError", "supported": "", "score": ""}
    (decisions,) = out["decisions"]
    if decisions is None:
        return {"facts": "null", "supported": "null", "score": ""}
    return {
        "facts": json.dumps([d["atom"] for d in decisions], ensure_ascii=False),
        "supported": json.dumps([bool(d["is_supported"]) for d in decisions]),
        "score": repr(float(out["score"])),
    }


def main() -> None:
    if version("factscore") != VERSION:
        raise SystemExit(f"this asks factscore {VERSION}, not {version('factscore')}")
    stand_ins()
    path = Path(__file__).with_name("factscore_decisions.csv")
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for case in cases():
            replies = json.dumps(case["verdict_replies"], ensure_ascii=False)
            writer.writerow({**case, "verdict_replies": replies, **decided(case)})


if __name__ == "__main__":
    main()
