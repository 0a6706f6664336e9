"""How far to trust the translation of each language, from what can be measured without human judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from xlc_utils.chat.offtarget import LanguageDetector
from xlc_utils.evaluation.baselines import chrf
from xlc_utils.registry.languages import Language
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.statistics.intervals import mean_interval, wilson_interval

#: Columns of measured values: ``n`` counts what the value is over, the bounds are those of its 95% interval.
MEASURED = ["language", "measure", "value", "low", "high", "n"]
TRUST, CAUTION, DO_NOT_USE = "trust", "caution", "do not use"


@dataclass(frozen=True)
class Measure:
    """One thing that is measured of a language.

    Attributes:
        name: as in `MEASURED`.
        key: of its two thresholds, the parameters fidelity_trust_<key> and fidelity_use_<key>; None: it is shown and
            decides nothing, as another one contains it.
        shown: in the reason for a verdict.
        more_is_better: whether a high value is a good one.
    """

    name: str
    key: str | None
    shown: str
    more_is_better: bool


MEASURES = (
    Measure("facts", "facts", "known facts that survive", True),
    Measure("chrf", "chrf", "chrF of the round trip", True),
    Measure("degenerate", "bad", "degenerate sentences", False),
    Measure("length", None, "sentences of impossible length", False),
    Measure("off_target", "bad", "texts in another language", False),
)


def round_trip_chrf(trips: pd.DataFrame, seed: int, samples: int) -> pd.DataFrame:
    """chrF, 0–100, of the English text that came back against the one that left; intervals over texts.

    Args:
        trips: see `xlc_utils.fidelity.round_trip.round_trips`; those that failed are left out.
        seed, samples: of the bootstrap.

    Returns:
        `MEASURED`; a single text has no interval.
    """
    whole = trips[trips["outcome"] != Outcome.ERROR].sort_values("prompt_id")
    rows = []
    for language, own in whole.groupby("language", sort=True):
        scores = np.array([chrf(back, original) for back, original in zip(own["back"], own["original"], strict=True)])
        found = mean_interval(scores, seed=seed, samples=samples)
        rows.append((language, "chrf", float(found.estimate), float(found.low), float(found.high), len(scores)))
    return pd.DataFrame(rows, columns=MEASURED)


def share_of_facts(survival: pd.DataFrame) -> pd.DataFrame:
    """Share of known facts that their translation still states, of those of which it can be told.

    Args:
        survival: see `xlc_utils.fidelity.round_trip.fact_survival`.
    """
    told = survival.dropna(subset=["survives"])
    return _shares("facts", told["language"], told["survives"])


def shares_of_sentences(sentences: pd.DataFrame) -> pd.DataFrame:
    """Share of translated sentences flagged as no translation, and of those flagged for their length alone.

    Args:
        sentences: language, outcome, detail; those whose call failed are left out.
    """
    done = sentences[~sentences["outcome"].isin([Outcome.ERROR, Outcome.REFUSED])]
    bad = done["outcome"] == Outcome.DEGENERATE
    length = bad & done["detail"].fillna("").str.startswith("length ratio")
    return pd.concat(
        [_shares("degenerate", done["language"], bad), _shares("length", done["language"], length)], ignore_index=True
    )


def share_off_target(translations: pd.DataFrame, trips: pd.DataFrame, languages: dict[str, Language]) -> pd.DataFrame:
    """Share of whole texts not written in the language they were translated into, of those long enough to tell.

    Args:
        translations: language and english, answers translated into English (translator not empty).
        trips: language and foreign, English texts translated into the language.
        languages: the registry.
    """
    detector = LanguageDetector(languages)
    done = translations[(translations["translator"] != "") & (translations["outcome"] != Outcome.ERROR)]
    out = trips[trips["outcome"] != Outcome.ERROR]
    texts = [(row.language, row.english, "en") for row in done.itertuples()]
    texts += [(row.language, row.foreign, row.language) for row in out.itertuples()]
    rows = [(language, expected, detector.language(text, expected)) for language, text, expected in texts]
    table = pd.DataFrame(rows, columns=["language", "expected", "found"]).dropna(subset=["found"])
    return _shares("off_target", table["language"], table["found"] != table["expected"])


def _shares(name: str, languages: pd.Series, flags: pd.Series) -> pd.DataFrame:
    counts = pd.DataFrame({"language": languages, "flag": flags.astype(bool)}).groupby("language")["flag"]
    n, k = counts.size(), counts.sum()
    found = wilson_interval(k.to_numpy(float), n.to_numpy(float))
    columns = {"value": found.estimate, "low": found.low, "high": found.high, "n": n.to_numpy()}
    return pd.DataFrame({"language": list(n.index), "measure": name, **columns})[MEASURED]


def verdicts(measured: pd.DataFrame, languages: Sequence[str], thresholds: Mapping[str, float]) -> pd.DataFrame:
    """One plain verdict a language.

    *Do not use*: a measured value is on the wrong side of its ``use`` threshold, or nothing was measured. *Trust*: the
    whole 95% interval of every measure is on the right side of its ``trust`` threshold, so that trust takes enough
    data. Everything between is *caution*.

    Args:
        measured: rows of `MEASURED`.
        languages: in the order wanted.
        thresholds: fidelity_trust_<key> and fidelity_use_<key> of each `Measure.key`.

    Returns:
        language, verdict, because (the measures that stand in the way of a better one; empty for trust).
    """
    rows = []
    for language in languages:
        own = measured[measured["language"] == language].set_index("measure")
        reasons = {CAUTION: [], DO_NOT_USE: []}
        for measure in (m for m in MEASURES if m.key):
            if measure.name not in own.index:
                reasons[CAUTION].append(f"{measure.shown}: not measured")
                continue
            at = own.loc[measure.name]
            sign = 1 if measure.more_is_better else -1
            use, trust = (sign * thresholds[f"fidelity_{kind}_{measure.key}"] for kind in ("use", "trust"))
            value, bound = sign * at["value"], sign * at["low" if measure.more_is_better else "high"]
            if value < use:
                reasons[DO_NOT_USE].append(measure.shown)
            elif value < trust:
                reasons[CAUTION].append(measure.shown)
            elif not bound >= trust:  # NaN, where there is no interval, is not
                reasons[CAUTION].append(f"{measure.shown}: too few to tell")
        if own.empty:
            reasons[DO_NOT_USE].append("nothing was measured")
        verdict = next((v for v in (DO_NOT_USE, CAUTION) if reasons[v]), TRUST)
        rows.append((language, verdict, "; ".join(reasons.get(verdict, []))))
    return pd.DataFrame(rows, columns=["language", "verdict", "because"])
