"""What the two papers print, number by number: the only printed numbers in this repository.

Everything here is a transcription, nothing is computed. The versions transcribed are

- paper A, *Found in Translation*: arXiv 2505.21999, the LaTeX source;
- paper B, *Cross-Lingual Stability of LLM Judges*: arXiv 2602.02287v1, the HTML text, in which tables 1, 2,
  8, 9, 10, 11 and 12 have a caption and no cells.

Every row says where its number stands: `paper` (A or B), `where` ("Table 4", "§5.2", "Appendix C.1",
"Abstract"; sections, tables and figures numbered as LaTeX numbers the source) and `quantity`. Columns shared
by several files:

- `printed`: the characters on the page ("≥.70", "1–3 per pair"), which say more than the number does;
- `relation`, `low`, `high`: a printed bound, range or approximation; "=" has low equal to high, "about" may
  have both ends, "<" has no low and ">=" has no high;
- `shade`: the number in the cell colour of paper A's Table 4, which ought to be a hundred times the value;
  both are kept because they disagree in ten cells;
- `numbers` (claims): the numbers inside the quotation in its order, and `cells` the cells of Table 4, written
  dimension/model/group, that the text says they are;
- several entries in one cell (`languages`, `language_pairs`, `notebook`, …) are separated by semicolons.

Sizes inside model names, numbers inside prompts and example dialogues, and numbers of the bibliography are
left out. `not_transcribed` lists what is missing and why; `outputs` lists all tables and figures of both
papers in the order of their appearance (`kind`: "table", "figure", or "example" for an item that shows text
or a screen instead of results).
"""

from __future__ import annotations

from importlib.resources import files

import pandas as pd

from xlc_utils.registry.problems import Problem

# Columns that must stay text although a column of them may look like numbers.
_TEXT = {"printed": str, "numbers": str, "notebook": str}


def names() -> list[str]:
    """The names that `load` knows, in alphabetical order."""
    found = (file.name for file in files(__name__).iterdir())
    return sorted(name.removesuffix(".csv") for name in found if name.endswith(".csv"))


def load(name: str) -> pd.DataFrame:
    """One of the transcribed files, one number, claim or item a row; empty cells are missing values.

    Args:
        name: the file's name without `.csv`, for example "paper_a_averaged_scores".

    Raises:
        Problem: there is no such file.
    """
    if name not in names():
        known = ", ".join(names())
        raise Problem("xlc_utils.reporting.published", f"there is no file {name!r}", f"use one of {known}")
    with files(__name__).joinpath(f"{name}.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, dtype=_TEXT, keep_default_na=False, na_values=[""])
