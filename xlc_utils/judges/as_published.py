"""The lexical metrics as the authors' released code computes them, quirks included (paper B, appendix A).

Where it parts from the uniform pipeline of `xlc_utils.judges.lexical`:

- Estonian is not lemmatised, although appendix A says so. Its tokens are cut at white space and kept if they
  are letters only, so every word that touches a punctuation mark is dropped. Finnish and Hungarian are cut at
  every mark and lemmatised.
- Self-BLEU of agents and of clients takes one turn as one text in Estonian, and all turns of a dialogue joined
  in Finnish and Hungarian. More and shorter texts to be alike with give other values.
- The speaker's name stands before each turn of the whole dialogue and counts as words.
- Parts in round or square brackets are cut out, except from the whole Estonian dialogue.
- English has no pipeline at all.

Two parts cannot be had from a package and are replaced: Stanza's lemmas for Finnish and Hungarian by
simplemma's, and the 5,128 Estonian stop words by this repository's short list, applied to word and lemma. The
Finnish and Hungarian stop words are those of stopwords-iso, as in the authors' code, without the few dozen they
added. Their removal of chat fillers ("aha", "ok") is left out. What remains gives the ranges of MATTR and
self-BLEU that section 3.1 quotes to within .04.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

import numpy as np
import pandas as pd

from xlc_utils.judges.lexical import GRANULARITIES, lemmatiser, mattr, self_bleu_scores, stop_words, ttr
from xlc_utils.judges.released import Dialogue
from xlc_utils.registry.problems import Problem

LANGUAGES = ("et", "fi", "hu")

_BRACKETS = re.compile(r"\[.*?\]|\(.*?\)")


def metrics(dialogues: Sequence[Dialogue]) -> pd.DataFrame:
    """The lexical metrics of each generator in each language, as means over its dialogues or texts.

    Args:
        dialogues: those in other languages and those of fewer than two turns are left out, as the authors do.

    Returns:
        One row a language and model: n (dialogues), ttr, mattr, self_bleu_whole, self_bleu_agent,
        self_bleu_client; rounded to 6 decimals.
    """
    kept = [dialogue for dialogue in dialogues if dialogue.language in LANGUAGES and len(dialogue.turns) >= 2]
    kept.sort(key=lambda dialogue: (LANGUAGES.index(dialogue.language), dialogue.model, dialogue.index))
    groups = groupby(kept, key=lambda dialogue: (dialogue.language, dialogue.model))
    return pd.DataFrame(
        {"language": language, "model": model} | _group_metrics(list(group)) for (language, model), group in groups
    ).round(6)


def _group_metrics(dialogues: list[Dialogue]) -> dict[str, float]:
    texts = {
        granularity: [text for dialogue in dialogues for text in _texts(dialogue, granularity)]
        for granularity in GRANULARITIES
    }
    return {
        "n": len(dialogues),
        "ttr": np.nanmean([ttr(text) for text in texts["whole"]]),
        "mattr": np.nanmean([mattr(text) for text in texts["whole"]]),
    } | {f"self_bleu_{granularity}": np.nanmean(self_bleu_scores(texts[granularity])) for granularity in texts}


def _texts(dialogue: Dialogue, granularity: str) -> list[list[str]]:
    """The tokenised texts one dialogue gives: one, or as many as the side has turns in Estonian."""
    turns = [turn for turn in dialogue.turns if turn.sender in GRANULARITIES[granularity] and turn.text.strip()]
    if granularity == "whole":
        whole = " ".join(f"{turn.name}: {turn.text}" for turn in turns)
        return [_estonian(whole) if dialogue.language == "et" else _lemmas(whole, dialogue.language)]
    if dialogue.language == "et":
        return [_estonian(_BRACKETS.sub("", turn.text)) for turn in turns]
    return [_lemmas(" ".join(turn.text for turn in turns), dialogue.language)]


def _estonian(text: str) -> list[str]:
    """Pieces between white space that are letters only, lower-cased, as they are; no function words."""
    stop = stop_words("et")
    found = [piece.lower() for piece in text.split() if piece.isalpha() and len(piece) > 1]
    lemmas = lemmatiser("et")(found)
    return [word for word, lemma in zip(found, lemmas, strict=True) if word not in stop and lemma not in stop]


def _lemmas(text: str, language: str) -> list[str]:
    """Lemmas of two or more characters that are not stop words, digits included."""
    stop = _stop_words_iso(language)
    found = re.findall(r"\w+", _BRACKETS.sub("", text).lower())
    return [lemma for lemma in lemmatiser(language)(found) if len(lemma) > 1 and lemma not in stop]


def _stop_words_iso(language: str) -> set[str]:
    try:
        from stopwordsiso import stopwords
    except ImportError:
        raise Problem(
            "metrics as published",
            "the package stopwordsiso is not installed",
            "install it with: pip install stopwordsiso",
        ) from None
    return stopwords(language)
