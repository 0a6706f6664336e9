"""Does a judge see a flaw that is there? Pairs of dialogues, one sound, one with one planted flaw.

The pairs are params/known_answers/judge_probe/<language>.yaml: the same scenarios, flaws and turns in every language.
The judge scores each dialogue by itself, as it scores any other; the dialogues of a pair are compared afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from pydantic import Field, model_validator

from xlc_utils.judges.dialogues import turns_to_json
from xlc_utils.judges.released import SENDERS, Turn
from xlc_utils.judges.rubric import KEY, SCALES
from xlc_utils.registry.files import StrictModel, parse, read_yaml, shown, wrong
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem
from xlc_utils.statistics.intervals import wilson_interval

FLAWS = ("name_change", "other_question", "order", "grammar", "wrong_language")

#: What stands for the language or the flaw in a row over all of them.
ALL = "all"

_FOLDER = Path("params") / "known_answers" / "judge_probe"


class FlawedTurn(StrictModel):
    """A turn of the flawed dialogue that differs from the sound one's.

    Attributes:
        turn: which one, counted from 1.
        text: what stands there instead.
        language: code of the language that the text is in, where that is the flaw.
    """

    turn: int
    text: str
    language: str | None = None


class Pair(StrictModel):
    """A sound dialogue, whose sides take turns, and what is different in the flawed one.

    Attributes:
        lowers: the scores of `SCALES` that the flaw should lower.
        agent, customer: their names.
        opens: who writes the first turn.
    """

    flaw: Literal[FLAWS]
    lowers: Annotated[tuple[Literal[tuple(SCALES)], ...], Field(strict=False)]
    agent: str
    customer: str
    opens: Literal[SENDERS]
    sound: Annotated[tuple[str, ...], Field(strict=False)]
    flawed: Annotated[tuple[FlawedTurn, ...], Field(strict=False)]

    @model_validator(mode="after")
    def _has_the_flaw_it_names(self) -> Pair:
        if not (self.lowers and self.flawed):
            raise wrong("`lowers` or `flawed` is empty", "name a score and a turn")
        if len(set(self.changed)) < len(self.changed) or len(set(self.lowers)) < len(self.lowers):
            raise wrong("`lowers` or `flawed` names something twice", "name it once")
        for new in self.flawed:
            if not 1 <= new.turn <= len(self.sound):
                raise wrong(f"there is no turn {new.turn} in `sound`", f"name one of 1 to {len(self.sound)}")
            if new.text == self.sound[new.turn - 1]:
                raise wrong(f"turn {new.turn} is the same in both dialogues", "change its text, or take it out")
            if (new.language is not None) != (self.flaw == "wrong_language"):
                raise wrong(f"`language` of turn {new.turn} does not fit `flaw`", "give it with `wrong_language` only")
        before = [self.sound[n - 1] for n in self.changed]
        if self.flaw == "order" and sorted(before) != sorted(new.text for new in self.flawed):
            raise wrong("the turns do not only change places", "give the flawed dialogue the texts of the sound one")
        return self

    @property
    def changed(self) -> tuple[int, ...]:
        """The turns that differ, counted from 1."""
        return tuple(new.turn for new in self.flawed)

    @property
    def plan(self) -> tuple:
        """What must be the same in every language."""
        return self.flaw, self.lowers, self.opens, len(self.sound), self.changed

    def turns(self, version: str) -> list[Turn]:
        """The dialogue, ``version`` "sound" or "flawed"."""
        texts = dict(enumerate(self.sound, 1))
        if version == "flawed":
            texts |= {new.turn: new.text for new in self.flawed}
        first = SENDERS.index(self.opens)
        senders = [SENDERS[(first + i) % 2] for i in range(len(texts))]
        return [Turn(sender, getattr(self, sender), text) for sender, text in zip(senders, texts.values(), strict=True)]


class ProbeFile(StrictModel):
    language: str
    pairs: dict[str, Pair]


def probe_languages(root: Path) -> list[str]:
    """Codes of the languages that the probe is written in."""
    return sorted(path.stem for path in (root / _FOLDER).glob("*.yaml"))


def read_pairs(root: Path, language: str) -> dict[str, Pair]:
    """The pairs of one language by id.

    Raises:
        Problem: the file is missing or broken, is of another language, or its pairs are not those of English.
    """
    path = root / _FOLDER / f"{language}.yaml"
    found = parse(ProbeFile, read_yaml(path), shown(path))
    if found.language != language:
        remedy = f"write `{language}`, as in the file's name"
        raise Problem(f"{shown(path)}: key `language`", f"is `{found.language}`", remedy)
    if language != "en":
        _check_against_english(found.pairs, read_pairs(root, "en"), shown(path))
    return found.pairs


def _check_against_english(pairs: Mapping[str, Pair], english: Mapping[str, Pair], where: str) -> None:
    """Other pairs would make a judge look better or worse in one language than in another."""
    for name in sorted(english.keys() ^ pairs.keys()):
        missing = "this file" if name in english else "English"
        raise Problem(f"{where}: key `pairs`", f"{missing} has no pair `{name}`", "give both files the same pairs")
    for name, pair in pairs.items():
        if pair.plan != english[name].plan:
            what = "flaw, lowers, opens, number of turns or changed turns are not those of English"
            raise Problem(f"{where}: key `pairs.{name}`", what, "make them the same")


def probe_dialogues(root: Path, languages: Sequence[str]) -> pd.DataFrame:
    """Both dialogues of every pair, to be given to `rubric.judge_dialogues`.

    Returns:
        Two rows a pair and language: `rubric.NEEDED` (generator is "probe"), and pair (its id), version (sound or
        flawed), flaw, changed (the turns that differ) and lowers (scores), the last two joined by spaces.

    Raises:
        Problem: see `read_pairs`.
    """
    return pd.DataFrame(
        [
            {
                "dialogue_id": f"{name}-{version}", "language": language, "generator": "probe",
                "turns": turns_to_json(pair.turns(version)), "outcome": str(Outcome.OK),
                "pair": name, "version": version, "flaw": pair.flaw, "changed": " ".join(map(str, pair.changed)),
                "lowers": " ".join(pair.lowers),
            }
            for language in languages
            for name, pair in read_pairs(root, language).items()
            for version in ("sound", "flawed")
        ]
    )  # fmt: skip


RESULT = ["judge", "language", "flaw", "won", "tied", "n", "share", "low", "high", "scenarios", "unread"]


def probe_result(scores: pd.DataFrame, probe: pd.DataFrame) -> pd.DataFrame:
    """How often each judge scores the sound dialogue of a pair higher than the flawed one.

    Compared are the scores that the flaw should lower; of two (G and F), their mean as shares of their scales. A tie
    counts half, so that a judge who gives every dialogue the same has .5.

    The interval is Wilson's for as many trials as there are scenarios. A scenario's ties, and over languages its mean,
    are shares between 0 and 1, which vary less than wins and losses of the same mean; so the interval is wider than it
    need be where there are ties, and over languages unless a scenario goes the same way in all of them. (Percentiles
    of draws over 12 scenarios or fewer are too narrow, and a point where all are won.)

    Args:
        scores: of one or more judges, as `rubric.judge_dialogues` gives them.
        probe: the dialogues that were scored, as `probe_dialogues` gives them.

    Returns:
        One row a judge, language and flaw, and rows with "all" for language, flaw or both: won (pairs, without ties),
        tied, n (pairs with both scores), share ((won + tied / 2) / n, NaN where n is 0), low, high (95%), scenarios
        (that the n pairs are of: the same ones stand in every language), unread (the other pairs: a reply had no
        scores).

    Raises:
        Problem: a scored dialogue is none of the probe's.
    """
    items = scores.merge(probe[[*KEY, "pair", "version", "flaw", "lowers"]], on=KEY, how="left", validate="many_to_one")
    if items["pair"].isna().any():
        unknown = items.loc[items["pair"].isna(), "dialogue_id"].iloc[0]
        raise Problem("scores of the judge probe", f"{unknown} is none of its dialogues", "judge probe_dialogues(…)")
    items["score"] = [np.mean([row[s] / SCALES[s] for s in row["lowers"].split()]) for row in items.to_dict("records")]
    pairs = items.pivot(index=["judge", "language", "flaw", "pair"], columns="version", values="score")
    pairs = pairs.reindex(columns=["sound", "flawed"]).reset_index()
    pairs["read"] = pairs[["sound", "flawed"]].notna().all(axis=1)
    pairs["won"], pairs["tied"] = pairs["sound"] > pairs["flawed"], pairs["sound"] == pairs["flawed"]
    over = [{}, {"flaw": ALL}, {"language": ALL}, {"language": ALL, "flaw": ALL}]
    pairs["scenario"] = pairs["pair"].where(pairs["read"])
    groups = pd.concat([pairs.assign(**names) for names in over]).groupby(["judge", "language", "flaw"])
    counts = {"won": ("won", "sum"), "tied": ("tied", "sum"), "n": ("read", "sum"), "pairs": ("read", "size")}
    table = groups.agg(**counts, scenarios=("scenario", "nunique")).reset_index()
    share = (table["won"] + table["tied"] / 2) / table["n"].where(table["n"] > 0)
    interval = wilson_interval(share * table["scenarios"], table["scenarios"])
    table = table.assign(share=share, low=interval.low, high=interval.high, unread=table["pairs"] - table["n"])
    order = {"judge": list(scores["judge"]), "language": [*probe["language"], ALL], "flaw": [*FLAWS, ALL]}
    table = table.sort_values(list(order), key=lambda column: column.map(order[column.name].index))
    return table[RESULT].reset_index(drop=True)


def failed(result: pd.DataFrame, bound: float = 0.5) -> dict[str, list[str]]:
    """The languages of the probe in which each judge fails: its interval over all flaws is not above ``bound``, where
    pairs that could not be read count as lost.

    Each language is a gate of its own, since a judge that is good in three languages and tosses coins in the fourth is
    what the probe is there to find. Of 12 pairs without ties 10 must be won (Wilson: [.55, .95]; of 9, [.47, .91]). A
    judge that tosses coins passes in a language in 2% of cases; one that is right in 9 of 10 pairs passes in 89%, and
    in all of four languages in 62% if they are independent: the probe is short, and errs on the side of a mark.

    Args:
        result: what `probe_result` gives.
    """
    whole = result[(result["flaw"] == ALL) & (result["language"] != ALL)]
    low = wilson_interval(whole["won"] + whole["tied"] / 2, whole["n"] + whole["unread"]).low
    missed = whole[low <= bound].groupby("judge")["language"].agg(list)
    return {judge: missed.get(judge, []) for judge in dict.fromkeys(whole["judge"])}


def marks(result: pd.DataFrame) -> dict[str, str]:
    """How every table, figure and page calls the judges that fail, with the languages; the others keep their names."""
    found = failed(result).items()
    return {judge: f"{judge} (failed the probe in {', '.join(codes)})" for judge, codes in found if codes}
