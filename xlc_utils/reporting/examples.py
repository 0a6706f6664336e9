"""Example pages: one question in English and two languages, chosen by score and not by hand."""

from __future__ import annotations

import pandas as pd


def chosen(run) -> pd.DataFrame:
    """The question of one system with the widest spread of F over languages: English, its best and its worst language.

    The system is the first that is no toy, or the first at all.

    Returns:
        model, prompt_id, language, f (missing for English), outcome, prompt, text, english; three rows.
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
    return rows.assign(model=name)[["model", "prompt_id", "language", "f", "outcome", "prompt", "text", "english"]]
