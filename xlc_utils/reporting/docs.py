"""Tables in docs/*.md, filled from committed results: `make docs`.

A block of a page names its table, and may choose columns and rows:

    <!-- table results/demo/tables/evaluator_ruler.csv | verifier, text, auc | text == 'translated' -->
    … made by `make docs` …
    <!-- end -->
"""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from xlc_utils.registry.files import project_root, shown
from xlc_utils.registry.problems import Problem
from xlc_utils.reporting.tables import MISSING

_BLOCK = re.compile(r"(<!-- table (?P<what>[^>]+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(root: Path, page: Path) -> str:
    """The page's text with every block as the results have it.

    Raises:
        Problem: a block names a table, a column or a condition that there is not, or has no end.
    """
    text = page.read_text(encoding="utf-8")
    if len(_BLOCK.findall(text)) != text.count("<!-- table "):
        raise Problem(shown(page), "a block of a table has no end", "write <!-- end --> after it")
    return _BLOCK.sub(lambda block: block[1] + _table(root, page, block["what"]) + block[3], text)


def _table(root: Path, page: Path, what: str) -> str:
    name, *choice = (part.strip() for part in what.split("|"))
    try:
        frame = pd.read_csv(root / name)
        if len(choice) > 1:
            frame = frame.query(choice[1])
        if choice and choice[0]:
            frame = frame[[column.strip() for column in choice[0].split(",")]]
    except (OSError, KeyError, ValueError, pd.errors.UndefinedVariableError) as error:
        said = str(error).strip("'\"")
        raise Problem(
            f"{shown(page)}: table {what}", said, "name a committed table, its columns, a condition"
        ) from error
    rows = [list(frame.columns), ["---:" if pd.api.types.is_numeric_dtype(d) else "---" for d in frame.dtypes]]
    rows += [[_cell(value) for value in row] for row in frame.itertuples(index=False)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cell(value: object) -> str:
    if pd.isna(value):
        return MISSING
    text = f"{value:.2f}" if isinstance(value, float) else str(value)
    return text.replace("|", "\\|").replace("\n", " ")


def pages(root: Path) -> list[Path]:
    return sorted((root / "docs").glob("*.md"))


def main() -> None:
    """Fills all pages."""
    root = project_root()
    for page in pages(root):
        text = filled(root, page)
        changed = text != page.read_text(encoding="utf-8")
        if changed:
            page.write_text(text, encoding="utf-8", newline="\n")
        print(f"docs/{page.name}: {'filled' if changed else 'nothing has changed'}")


if __name__ == "__main__":
    main()
