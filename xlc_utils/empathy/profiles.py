"""Empathy profiles and their consistency across languages (paper A §3.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd

from xlc_utils.empathy.ceiling import ErrorRates, ceiling
from xlc_utils.evaluation.rules import Rules, english_outcomes
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.prompts import MECHANISMS


@dataclass(frozen=True)
class Reading:
    """What a classifier says of n replies.

    Attributes:
        profiles: e(r) in {0, 1}³ (paper A §3.2), (n, 3) in the order ER, IP, EX; NaN where the outcome is not ok.
        probabilities: P(mechanism present), (n, 3); NaN where the classifier gives none.
        outcomes: how the reading itself ended, n of them; anything but ok only where the classifier is a model that
            may not answer as asked.
    """

    profiles: np.ndarray
    probabilities: np.ndarray
    outcomes: tuple[Outcome, ...]

    @classmethod
    def of(cls, profiles: np.ndarray, probabilities: np.ndarray) -> Reading:
        """Of a classifier that always answers."""
        return cls(np.asarray(profiles, float), probabilities, (Outcome.OK,) * len(profiles))


class Classifier(Protocol):
    """f_ER, f_IP and f_EX of a reply to a post (paper A §3.2); most read the reply alone."""

    name: str

    def read(self, posts: Sequence[str], replies: Sequence[str]) -> Reading:
        """Both English, and as many of one as of the other."""
        ...


class MultilingualClassifier(Classifier, Protocol):
    """One that reads the reply alone, in any language that its encoder knows."""

    def read(self, posts: Sequence[str], replies: Sequence[str], language: str = "en") -> Reading: ...


def profiles_table(
    replies: pd.DataFrame, classifier: Classifier, posts: Mapping[str, str], rules: Rules | None = None
) -> pd.DataFrame:
    """The profile of each reply whose text is scored; the others have none.

    Args:
        replies: prompt_id, language, english, outcome of one model.
        classifier: reads the replies.
        posts: the English text of every prompt by id.
        rules: for replies that are not ok.

    Returns:
        prompt_id, language, outcome (the reply's), reading (how the reading ended; empty where the reply was not read),
        ER, IP, EX (0 or 1, else missing), p_ER, p_IP, p_EX.
    """
    out = replies[["prompt_id", "language", "outcome"]].reset_index(drop=True).assign(reading="")
    with_text = np.flatnonzero((rules or Rules()).reads(out["outcome"]))
    values = np.full((len(out), 6), np.nan)
    if len(with_text):
        asked = [posts[i] for i in out["prompt_id"].iloc[with_text]]
        reading = classifier.read(asked, list(replies["english"].iloc[with_text]))
        values[with_text] = np.hstack([reading.profiles, reading.probabilities])
        out.loc[with_text, "reading"] = [str(outcome) for outcome in reading.outcomes]
    for i, name in enumerate([*MECHANISMS, *(f"p_{m}" for m in MECHANISMS)]):
        out[name] = values[:, i]
    return out


def consistency_table(profiles: pd.DataFrame, rules: Rules | None = None) -> pd.DataFrame:
    """E_Emp for each prompt and language of one model: 1 if the profile equals the English one, else 0.

    A reply that was not read is left out or scores 0, as the rules say of its outcome. One that the classifier failed
    to read is left out, as an answer without a verdict is in notebook 04: the failure is the evaluator's. Without an
    English profile there is nothing to compare with, and the prompt is left out.

    Args:
        profiles: rows of `profiles_table`.
        rules: for replies that are not ok, the same as there.

    Returns:
        prompt_id, language, outcome, consistent (1, 0 or missing), same_ER, same_IP, same_EX, reason (see
        `Rules.reasons`; "no reading" and "no English reading" where the classifier failed on the one or the other).
    """
    english = profiles[profiles["language"] == "en"].set_index("prompt_id")[list(MECHANISMS)]
    out = profiles[profiles["language"] != "en"].reset_index(drop=True)
    reason = (rules or Rules()).reasons(out["outcome"], english_outcomes(profiles, out["prompt_id"]))
    reference = english.reindex(out["prompt_id"]).to_numpy(float)
    own = out[list(MECHANISMS)].to_numpy(float)
    reason[(reason == "") & np.isnan(own).any(axis=1)] = "no reading"
    reason[np.isin(reason, ["", "no reading"]) & np.isnan(reference).any(axis=1)] = "no English reading"
    same = (own == reference).astype(float)  # a missing profile equals none
    same[~np.isin(reason, ["", "scored 0"])] = np.nan
    columns = {f"same_{m}": same[:, i] for i, m in enumerate(MECHANISMS)}
    consistent = np.where(np.isnan(same).any(1), np.nan, same.all(1))
    return out[["prompt_id", "language", "outcome"]].assign(consistent=consistent, **columns, reason=reason)


def agreement_by_mechanism(profiles: pd.DataFrame, rates: ErrorRates | None = None) -> pd.DataFrame:
    """Agreement of translated with English profiles, one mechanism at a time and of the three at once, corrected for
    chance, and beside what two independent readings of the same replies would reach.

    Args:
        profiles: rows of `profiles_table` of several models with a column ``model``.
        rates: of the classifier; without them there is no ceiling.

    Returns:
        model, mechanism (ER, IP, EX, profile), n (pairs of replies that both have a profile), agreement, ceiling (see
        `xlc_utils.empathy.ceiling`; prevalences from the English replies of the pairs), kappa (Cohen; missing where
        one side never varies), kappa_ceiling, english_rate, other_rate (share with the mechanism).
    """
    rows = []
    for model, own in profiles.groupby("model", sort=False):
        english = own[own["language"] == "en"].set_index("prompt_id")[list(MECHANISMS)]
        other = own[own["language"] != "en"]
        ours, theirs = english.reindex(other["prompt_id"]).to_numpy(float), other[list(MECHANISMS)].to_numpy(float)
        both = ~np.isnan(ours).any(1) & ~np.isnan(theirs).any(1)
        ours, theirs = ours[both], theirs[both]
        most = ceiling(ours, rates) if rates else None
        shared = {"model": model, "n": len(ours)}
        for i, mechanism in enumerate(MECHANISMS):
            expected = {"ceiling": most.by_mechanism[i], "kappa_ceiling": most.kappa[i]} if most else {}
            shown = {"english_rate": _mean(ours[:, i]), "other_rate": _mean(theirs[:, i])}
            pairs = np.column_stack([ours[:, i], theirs[:, i]])
            rows.append({**shared, "mechanism": mechanism, **_agreement(pairs), **expected, **shown})
        whole = np.column_stack([ours @ [4, 2, 1], theirs @ [4, 2, 1]])  # each profile a number of its own
        expected = {"ceiling": most.profile} if most else {}
        rows.append({**shared, "mechanism": "profile", **_agreement(whole), **expected})
    columns = [
        "model",
        "mechanism",
        "n",
        "agreement",
        "ceiling",
        "kappa",
        "kappa_ceiling",
        "english_rate",
        "other_rate",
    ]
    return pd.DataFrame(rows, columns=columns)


def _agreement(pairs: np.ndarray) -> dict[str, float]:
    from xlc_utils.statistics.agreement import cohen

    # Where one side never varies chance explains all agreement there can be, and kappa is 0 whatever the other does.
    varies = len(pairs) > 0 and (pairs != pairs[0]).any(axis=0).all()
    return {"agreement": _mean(pairs[:, 0] == pairs[:, 1]), "kappa": cohen(pairs).value if varies else np.nan}


def _mean(values: np.ndarray) -> float:
    return float(np.mean(values)) if len(values) else np.nan


def direct_table(
    replies: pd.DataFrame,
    classifier: MultilingualClassifier,
    rules: Rules | None = None,
    known: Mapping[str, Mapping] | None = None,
) -> pd.DataFrame:
    """Consistency when the untranslated reply is read by a multilingual classifier, beside translate-then-evaluate with
    the same classifier.

    Args:
        replies: prompt_id, language, text, english, outcome of one model.
        classifier: reads the replies in every language.
        rules: for replies that are not ok; only those whose text is scored are read.
        known: `KnownReply` by language and prompt id, of a system whose replies are known.

    Returns:
        language, n (replies that are read, whose English one is read too), translated, direct (consistency with the
        English profile), same_reading (share of replies that are given the same profile both ways), and with ``known``
        true (consistency of the profiles that were written).
    """
    scorable = replies[(rules or Rules()).reads(replies["outcome"])]
    english = scorable[scorable["language"] == "en"]
    reference = dict(zip(english["prompt_id"], _profiles(classifier, english["english"], "en"), strict=True))
    rows = []
    for language, own in scorable[scorable["language"] != "en"].groupby("language", sort=False):
        own = own[own["prompt_id"].isin(reference)]
        if own.empty:
            continue
        wanted = np.array([reference[i] for i in own["prompt_id"]])
        translated, direct = _profiles(classifier, own["english"], "en"), _profiles(classifier, own["text"], language)
        row = {
            "language": language,
            "n": len(own),
            "translated": (translated == wanted).all(1).mean(),
            "direct": (direct == wanted).all(1).mean(),
            "same_reading": (translated == direct).all(1).mean(),
        }
        if known is not None:
            row["true"] = np.mean([known[language][i].bits == known["en"][i].bits for i in own["prompt_id"]])
        rows.append(row)
    columns = ["language", "n", "translated", "direct", "same_reading", *(["true"] if known is not None else [])]
    return pd.DataFrame(rows, columns=columns)


def _profiles(classifier: MultilingualClassifier, texts: pd.Series, language: str) -> np.ndarray:
    return classifier.read([""] * len(texts), list(texts), language).profiles


def against_truth(profiles: pd.DataFrame, known: dict[str, dict]) -> pd.DataFrame:
    """The classifier's profiles of the written replies beside those that were written.

    Args:
        profiles: rows of `profiles_table` of the model ``known-answers``.
        known: `KnownReply` by language and prompt id, English included.

    Returns:
        language, n, accuracy_ER, accuracy_IP, accuracy_EX, consistency_measured, consistency_true.
    """
    rows = []
    english = profiles[profiles["language"] == "en"].set_index("prompt_id")[list(MECHANISMS)]
    for language, own in profiles.groupby("language", sort=False):
        own = own[own["prompt_id"].isin(list(known.get(language, {}))) & own["ER"].notna()]
        if own.empty:
            continue
        truth = np.array([known[language][i].bits for i in own["prompt_id"]])
        seen = own[list(MECHANISMS)].to_numpy(int)
        reference = np.array([known["en"][i].bits for i in own["prompt_id"]])
        measured = (seen == english.loc[own["prompt_id"]].to_numpy()).all(1)
        accuracy = {f"accuracy_{m}": (seen[:, i] == truth[:, i]).mean() for i, m in enumerate(MECHANISMS)}
        rows.append(
            {
                "language": language,
                "n": len(own),
                **accuracy,
                "consistency_measured": measured.mean(),
                "consistency_true": (truth == reference).all(1).mean(),
            }
        )
    return pd.DataFrame(rows)
