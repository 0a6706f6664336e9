"""How much of a text survives translation, measured without human judges."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from xlc_utils.evaluation.baselines import chrf
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.prompts import Facts, KnownAnswer
from xlc_utils.statistics.intervals import wilson_interval

#: Why it cannot be told whether a known fact survives: its sentence was cut otherwise, as when the splitter took it for
#: one with the next; the translator's call failed; the verifier gave no verdict.
MISSING = NOT_FOUND, NO_TRANSLATION, NO_VERDICT = "not_found", "no_translation", "no_verdict"


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
        One row a known sentence of the answers in ``sentences``: prompt_id, language, states, fact, translation, chrf
        against the English wording, outcome (of the translation), survives (missing where it cannot be told) and
        missing: why it cannot, one of MISSING, or "". A degenerate translation is one that lost the fact.
    """
    key = ["prompt_id", "language", "source"]
    found = sentences.drop_duplicates(key).set_index(key)
    rows = []
    for prompt_id, language in sentences[["prompt_id", "language"]].drop_duplicates().itertuples(index=False):
        answer = known.get(language, {}).get(prompt_id) if language != "en" else None
        for sentence in answer.sentences if answer else ():
            at, fact = (prompt_id, language, sentence.text), facts[prompt_id].text(sentence.states)
            row = {"prompt_id": prompt_id, "language": language, "states": sentence.states, "fact": fact}
            if at not in found.index:
                rows.append({**row, "missing": NOT_FOUND})
                continue
            text, outcome = found.loc[at, ["text", "outcome"]]
            failed = outcome in (Outcome.ERROR, Outcome.REFUSED)
            row |= {"translation": text, "outcome": outcome, "missing": NO_TRANSLATION if failed else ""}
            rows.append(row if failed else {**row, "chrf": chrf(text, fact)})
    columns = ["prompt_id", "language", "states", "fact", "translation", "chrf", "outcome", "missing"]
    table = pd.DataFrame(rows, columns=columns).astype({"chrf": float})
    asked = table[table["missing"] == ""]
    verdicts = verifier.verdicts(list(asked["fact"]), [t or " " for t in asked["translation"]])
    said = pd.Series([v.supported if v.outcome is Outcome.OK else None for v in verdicts], asked.index, "boolean")
    table.loc[asked.index[said.isna()], "missing"] = NO_VERDICT
    return table.assign(survives=said.reindex(table.index))


def survival_by_language(survival: pd.DataFrame) -> pd.DataFrame:
    """Shares of `fact_survival`, and of how many known facts it cannot be told.

    Returns:
        language, facts (of which it can be told), survive, chrf (mean), share and its 95% Wilson interval low, high;
        known (facts), and by the reasons in MISSING how many of them are not among ``facts``.
    """
    by = survival.groupby("language", sort=True)
    out = by.agg(facts=("survives", "count"), survive=("survives", "sum"), chrf=("chrf", "mean"))
    out = out.astype({"facts": int, "survive": int})
    share = wilson_interval(out["survive"].to_numpy(), out["facts"].to_numpy())
    out = out.assign(share=share.estimate, low=share.low, high=share.high, known=by.size())
    missing = {why: (survival["missing"] == why).groupby(survival["language"]).sum() for why in MISSING}
    return out.assign(**missing).reset_index()


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
