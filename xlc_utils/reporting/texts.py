"""Texts side by side, each in its own script and direction, for a notebook or a page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import pandas as pd

from xlc_utils.registry.languages import Language

_STYLE = "border:1px solid #999;padding:.4em;vertical-align:top;text-align:{side};white-space:pre-wrap;max-width:34em"


def side_by_side(rows: pd.DataFrame, columns: Sequence[str], languages: dict[str, Language]):
    """An HTML table of texts; a column that holds text of the row's language gets its direction and language tag.

    Args:
        rows: with a column ``language`` (a key) and ``columns``.
        columns: what to show; ``text`` and ``prompt`` are in the row's language, everything else is English. Where
            ``rows`` has ``missing`` and ``added`` (claims, one a line), what is added is marked in ``english``.
        languages: the registry.

    Returns:
        An object that a notebook shows; its ``data`` is the HTML.
    """
    from IPython.display import HTML

    head = "".join(f'<th scope="col" style="text-align:left">{escape(c)}</th>' for c in columns)
    body = "".join("<tr>" + "".join(_cell(row, c, languages) for c in columns) + "</tr>" for _, row in rows.iterrows())
    return HTML(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")


def _cell(row: pd.Series, column: str, languages: dict[str, Language]) -> str:
    code = row["language"] if column in ("text", "prompt", "source", "foreign") else "en"
    language = languages[code]
    side = "right" if language.direction == "rtl" else "left"
    style, text = _STYLE.format(side=side), escape(str(row[column]))
    if column == "english":
        text = _marked(text, str(row.get("added", "")))
    return f'<td lang="{code}" dir="{language.direction}" style="{style}">{text}</td>'


def _marked(text: str, claims: str) -> str:
    """``text``, escaped, with the claims marked that stand in it word for word."""
    for claim in filter(None, claims.split("\n")):
        text = text.replace(escape(claim), f"<mark>{escape(claim)}</mark>")
    return text
