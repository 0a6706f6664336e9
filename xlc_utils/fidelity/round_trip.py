"""How much of a text survives translation, measured without human judges."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.prompts import Facts, KnownAnswer


def round_trips(texts: dict[str, str], languages: Sequence[str], translate) -> pd.DataFrame:
    """Each English text to each language and back (paper A §4.1, "Translation impact on the evaluator").

    Args:
        texts: English answers by prompt id.
        languages: where to and back from.
        translate: (texts, source, target) -> (translations, sentence rows with a column outcome).

    Returns:
        prompt_id, language, original, foreign, back, outcome (``error`` when a call for a sentence failed, so that a
        part is missing; ``degenerate`` when more than half of the sentences of either way are not ok), sentences,
        bad_sentences.
    """
    rows = []
    for language in languages:
        originals = list(texts.values())
        foreign, out = translate(originals, "en", language)
        back, home = translate(foreign, language, "en")
        for i, prompt_id in enumerate(texts):
            parts = [way[way["document"] == i] for way in (out, home)]
            bad = [int((p["outcome"] != Outcome.OK).sum()) for p in parts]
            rows.append(
                {
                    "prompt_id": prompt_id,
                    "language": language,
                    "original": originals[i],
                    "foreign": foreign[i],
                    "back": back[i],
                    "outcome": str(_trip_outcome(parts, bad)),
                    "sentences": sum(len(p) for p in parts),
                    "bad_sentences": sum(bad),
                }
            )
    columns = ["prompt_id", "language", "original", "foreign", "back", "outcome", "sentences", "bad_sentences"]
    return pd.DataFrame(rows, columns=columns)


def _trip_outcome(parts: list[pd.DataFrame], bad: list[int]) -> Outcome:
    if any((part["outcome"] == Outcome.ERROR).any() for part in parts):
        return Outcome.ERROR
    degenerate = any(2 * b > len(part) for b, part in zip(bad, parts, strict=True))
    return Outcome.DEGENERATE if degenerate else Outcome.OK


def chrf(hypothesis: str, reference: str) -> float:
    """chrF of one text, 0–100 (sacreBLEU's chrF2, character 6-grams)."""
    from sacrebleu.metrics import CHRF

    return CHRF().sentence_score(hypothesis, [reference]).score


def chrf_signature() -> str:
    """What a chrF number must be cited with."""
    from sacrebleu.metrics import CHRF

    metric = CHRF()
    metric.corpus_score(["a"], [["a"]])
    return str(metric.get_signature())


def fact_survival(
    known: dict[str, dict[str, KnownAnswer]], facts: dict[str, Facts], sentences: pd.DataFrame, verifier
) -> pd.DataFrame:
    """Whether the translation of each known sentence still says what the sentence is known to say.

    Args:
        known: answers by language and prompt id.
        facts: by prompt id.
        sentences: translated sentences of ``known-answers``: prompt_id, language, source, text, outcome.
        verifier: decides whether the translation supports the fact as worded in English.

    Returns:
        prompt_id, language, states, fact, translation, survives (bool), chrf against the English wording, outcome.
    """
    rows = []
    key = ["prompt_id", "language", "source"]
    by_source = sentences.drop_duplicates(key).set_index(key)
    for language, answers in known.items():
        if language == "en":
            continue
        for prompt_id, answer in answers.items():
            for sentence in answer.sentences:
                at = (prompt_id, language, sentence.text)
                if at not in by_source.index:
                    continue
                found = by_source.loc[at]
                fact = facts[prompt_id].text(sentence.states)
                rows.append(
                    (
                        prompt_id,
                        language,
                        sentence.states,
                        fact,
                        found["text"],
                        chrf(found["text"], fact),
                        found["outcome"],
                    )
                )
    columns = ["prompt_id", "language", "states", "fact", "translation", "chrf", "outcome"]
    table = pd.DataFrame(rows, columns=columns)
    verdicts = verifier.verdicts(list(table["fact"]), [t or " " for t in table["translation"]])
    return table.assign(survives=np.array([v.supported for v in verdicts], bool))


def as_answers(trips: pd.DataFrame) -> pd.DataFrame:
    """Round trips as responses, so that notebook 04's evaluator can compare what came back with the original."""
    originals = trips.drop_duplicates("prompt_id")
    english = originals[["prompt_id"]].assign(language="en", english=originals["original"], outcome="ok")
    # A degenerate trip is a finding about the translator, and is scored for what it is; a failed one is none.
    outcome = trips["outcome"].replace({str(Outcome.DEGENERATE): str(Outcome.OK)})
    back = trips[["prompt_id", "language"]].assign(outcome=outcome, english=trips["back"])
    return pd.concat([english, back], ignore_index=True)


def mean_chrf(trips: pd.DataFrame, language: str) -> float:
    """Mean chrF of what came back from one language; NaN if nothing came back whole."""
    own = trips[(trips["language"] == language) & (trips["outcome"] != Outcome.ERROR)]
    scores = [chrf(b, o) for b, o in zip(own["back"], own["original"], strict=True)]
    return float(np.mean(scores)) if scores else float("nan")
