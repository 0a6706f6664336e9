"""How well degenerate translations are told from translations, on cases of which it is known.

`python -m xlc_utils.translation.known_degeneration` makes data/lengths.csv and data/degeneration.csv.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import pandas as pd

from xlc_utils.registry import languages
from xlc_utils.registry.files import StrictModel, parse, project_root, read_yaml, shown
from xlc_utils.text import accuracy
from xlc_utils.translation import degeneration

COMMITTED = Path(__file__).parent / "data" / "degeneration.csv"
_PARALLEL = ("answer", "advice", "pauses")  # known texts that say the same in all languages


class Case(StrictModel):
    """A translation, and what is wrong with it, None if nothing is."""

    source_language: str
    target_language: str
    source: str
    text: str
    wrong: Literal["loop", "copy", "script", "language", "empty", "length"] | None


class Cases(StrictModel):
    cases: list[Case]


def cases(root: Path) -> list[Case]:
    path = root / "params" / "known_answers" / "degeneration.yaml"
    return parse(Cases, read_yaml(path), shown(path)).cases


def measured(root: Path) -> pd.DataFrame:
    """Precision and recall of `degeneration.problem`: one row a kind of fault, and one of all.

    Columns: wrong, cases, found (of them), recall; false_alarms and precision of all.
    """
    rows = pd.DataFrame([case.model_dump() for case in cases(root)])
    rows["wrong"] = rows["wrong"].fillna("nothing")
    rows["found"] = [
        degeneration.problem(c.source, c.text, c.source_language, c.target_language) is not None for c in cases(root)
    ]
    by_kind = rows.groupby("wrong")["found"].agg(["size", "sum"]).reset_index()
    by_kind.columns = ["wrong", "cases", "found"]
    bad = by_kind[by_kind["wrong"] != "nothing"]
    total = {"wrong": "anything", "cases": bad["cases"].sum(), "found": bad["found"].sum()}
    table = pd.concat([bad, pd.DataFrame([total])], ignore_index=True)
    table["recall"] = (table["found"] / table["cases"]).round(3)
    false = int(by_kind.loc[by_kind["wrong"] == "nothing", "found"].sum())
    table["good_cases"], table["false_alarms"] = int((rows["wrong"] == "nothing").sum()), false
    table["precision"] = (table["found"] / (table["found"] + false)).round(3)
    return table


def lengths(root: Path) -> pd.DataFrame:
    """Characters that each language takes for one of English, over known texts that say the same."""

    def total(code: str) -> int:
        known = accuracy.known(root, code)
        texts = {**known.choosing, **known.held_out}
        return sum(len(re.sub(r"[\[\]*]", "", texts[name])) for name in _PARALLEL)

    english = total("en")
    rows = [(code, round(total(code) / english, 2)) for code in languages.load(root)]
    return pd.DataFrame(rows, columns=["language", "characters"])


if __name__ == "__main__":
    lengths(project_root()).to_csv(degeneration.LENGTHS, index=False, lineterminator="\n")
    degeneration.characters.cache_clear()
    made = measured(project_root())
    made.to_csv(COMMITTED, index=False, lineterminator="\n")
    print(made.to_string())
