"""Pairs like EPITOME's, made here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from xlc_utils.empathy import epitome

CUES = {
    "ER": "I am so sorry to hear that.",
    "IP": "Losing her must feel unbearable.",
    "EX": "What happened after that?",
}
FILLERS = ("Walks helped my cousin.", "The library opens at nine.", "Tea is cheap.", "Many parks are free.")


def made_pairs(n_posts: int = 90, seed: int = 0) -> pd.DataFrame:
    """Pairs as `epitome.read` gives them: a response shows a mechanism when it has that mechanism's sentence."""
    rng = np.random.default_rng(seed)
    rows = []
    for post in range(n_posts):
        for reply in range(1 + (post % 3 == 0)):
            shown = {mechanism: int(rng.random() < 0.4) for mechanism in CUES}
            sentences = [*rng.permutation(FILLERS)[:2], *(CUES[m] for m in CUES if shown[m])]
            row = {
                "sp_id": f"s{post:03}",
                "rp_id": f"r{post:03}{reply}",
                "seeker": f"Post number {post}.",
                "response": " ".join(rng.permutation(sentences)),
            }
            for mechanism, value in shown.items():
                row |= {
                    mechanism: value,
                    f"{mechanism}_level": value * int(rng.integers(1, 3)),
                    f"{mechanism}_rationales": f"{CUES[mechanism]}|" if value else "",
                }
            rows.append(row)
    return pd.DataFrame(rows)


def write_release(pairs: pd.DataFrame, folder: Path) -> Path:
    """The three files of a release that `epitome.read` reads back as `pairs`."""
    for mechanism, name in epitome.LABELS.items():
        pd.DataFrame(
            {
                "sp_id": pairs["sp_id"],
                "rp_id": pairs["rp_id"],
                "seeker_post": pairs["seeker"],
                "response_post": pairs["response"],
                "level": pairs[f"{mechanism}_level"],
                "rationales": pairs[f"{mechanism}_rationales"],
            }
        ).to_csv(folder / name, index=False)
    return folder
