"""Whole answers into English: taken apart, translated sentence by sentence, put together in their old shape."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

import pandas as pd

from xlc_utils.registry.outcomes import WITH_TEXT, Outcome
from xlc_utils.text.documents import joined, pieces
from xlc_utils.text.sentences import splitter
from xlc_utils.translation.translators import Translator
from xlc_utils.translation.verbatim import translate_around_code

_SENTENCE_COLUMNS = ["document", "line", "source", "text", "outcome", "translator", "attempts", "detail", "rejected"]


def translate_texts(
    texts: Sequence[str], source: str, target: str, translator: Translator, policy: str = "best"
) -> tuple[list[str], pd.DataFrame]:
    """Translates documents of one language.

    Args:
        texts: the documents.
        source, target: language keys.
        translator: of sentences.
        policy: how sentences are found, one of `xlc_utils.text.sentences.POLICIES`.

    Returns:
        The translations in order, and one row a sentence: document (its index), line, source, text, outcome,
        translator, attempts, detail, rejected (JSON list: what was decoded beside the text). The same sentence is
        translated once.
    """
    documents = [pieces(text, splitter(source, policy)) for text in texts]
    places = [(d, i) for d, parts in enumerate(documents) for i, p in enumerate(parts) if p.translate]
    distinct = list(dict.fromkeys(documents[d][i].text for d, i in places))
    done = dict(
        zip(distinct, translate_around_code(translator, distinct, source, target) if distinct else [], strict=True)
    )
    rows = []
    for d, i in places:
        piece = documents[d][i]
        found = done[piece.text]
        more = {"attempts": found.attempts, "rejected": json.dumps(found.rejected, ensure_ascii=False)}
        rows.append({"document": d, "line": piece.line, "source": piece.text, **asdict(found), **more})
    new = [joined(parts, {i: done[p.text].text for i, p in enumerate(parts) if p.translate}) for parts in documents]
    return new, pd.DataFrame(rows, columns=_SENTENCE_COLUMNS).astype({"outcome": str})


def translate_responses(
    responses: pd.DataFrame, translator: Translator, policy: str = "best"
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Paper A §2: r̂_ℓ(x) = T(r_ℓ(x)) for each response of one model.

    A response in English, asked for or not, is its own translation. A response is ``degenerate`` when more than half
    of its sentences are (or were refused): then what it says is the translator's doing. It is an ``error`` when a call
    for one of its sentences failed: a part of it is missing, and the next run asks again. One without a text keeps its
    outcome.

    Args:
        responses: columns prompt_id, dimension, language, text, outcome, detected (the language written in).
        translator, policy: see `translate_texts`.

    Returns:
        ``responses`` with columns english, sentences, degenerate_sentences, translator and the new outcome; and the
        rows of `translate_texts` with language and prompt_id instead of document.
    """
    out = responses.assign(english=responses["text"], sentences=0, degenerate_sentences=0, translator="")
    tables = []
    foreign = out["outcome"].isin(WITH_TEXT) & (out["language"] != "en") & (out["detected"] != "en")
    for language, group in out[foreign].groupby("language", sort=True):
        texts, rows = translate_texts(list(group["text"]), language, "en", translator, policy)
        counts = pd.crosstab(rows["document"], rows["outcome"]).reindex(index=range(len(group)), fill_value=0)
        counts = counts.reindex(columns=[str(o) for o in Outcome], fill_value=0).set_index(group.index)
        out.loc[group.index, "english"] = texts
        out.loc[group.index, "sentences"] = counts.sum(axis=1)
        out.loc[group.index, "degenerate_sentences"] = counts["degenerate"] + counts["refused"]
        out.loc[group.index, "translator"] = rows["translator"].iloc[0] if len(rows) else ""
        out.loc[counts.index[counts["error"] > 0], "outcome"] = str(Outcome.ERROR)
        ids = group["prompt_id"].to_numpy()[rows["document"].to_numpy(int)]
        tables.append(rows.assign(language=language, prompt_id=ids).drop(columns="document"))
    failed = (2 * out["degenerate_sentences"] > out["sentences"]) & out["outcome"].isin([Outcome.OK, Outcome.TRUNCATED])
    out.loc[failed, "outcome"] = str(Outcome.DEGENERATE)
    if not tables:
        return out, pd.DataFrame(columns=[*_SENTENCE_COLUMNS[1:], "language", "prompt_id"])
    return out, pd.concat(tables, ignore_index=True)
