"""Example pages: one question in English and two languages, chosen by score and not by hand."""

from __future__ import annotations

import pandas as pd


def chosen(run) -> pd.DataFrame:
    """The question of one system with the widest spread of F over languages: English, its best and its worst language.

    The system is the first that is no toy, or the first at all.

    Returns:
        model, prompt_id, language, f (missing for English), outcome, prompt, text, english, and of what the evaluator
        found: missing (claims of the English answer that this one does not support) and added (its claims that the
        English one does not support), one a line; three rows.
    """
    name = next((m for m in run.model_names if not run.is_toy(m)), run.model_names[0])
    scores = run.read("information", name).dropna(subset=["f"])
    spread = scores.groupby("prompt_id")["f"].agg(lambda f: f.max() - f.min())
    prompt_id = spread.idxmax()
    own = scores[scores["prompt_id"] == prompt_id].sort_values(["f", "language"])
    languages = ["en", own["language"].iloc[-1], own["language"].iloc[0]]
    answers = run.read("translations", name).query("prompt_id == @prompt_id and dimension == 'information'")
    rows = answers.set_index("language").loc[languages].reset_index()
    rows["f"] = rows["language"].map(own.set_index("language")["f"])
    verdicts = run.read("verdicts", name)
    marked = differing(verdicts[verdicts["prompt_id"] == prompt_id])
    for column in ("missing", "added"):
        rows[column] = ["\n".join(marked.get((language, column), ())) for language in languages]
    columns = ["model", "prompt_id", "language", "f", "outcome", "prompt", "text", "english", "missing", "added"]
    return rows.assign(model=name)[columns]


def differing(verdicts: pd.DataFrame) -> dict[tuple[str, str], list[str]]:
    """Claims that one text makes and the other does not support, by (language, "missing" or "added"), in their order.

    Args:
        verdicts: rows of notebook 04 for one prompt; those that are not ok say nothing.
    """
    found: dict[tuple[str, str], list[str]] = {}
    unsupported = verdicts[(verdicts["outcome"] == "ok") & ~verdicts["supported"].astype(bool)]
    for row in unsupported.sort_values("claim_no", kind="stable").itertuples():
        column = "missing" if row.direction == "recall" else "added"
        found.setdefault((row.language, column), []).append(row.claim)
    return found
