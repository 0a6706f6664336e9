"""translation/answers.py: whole answers, sentence by sentence, with the outcome that the sentences imply."""

from __future__ import annotations

import pandas as pd
import pytest

from xlc_utils.registry.outcomes import Outcome
from xlc_utils.translation.answers import translate_responses, translate_texts
from xlc_utils.translation.translators import Translation


class Marks:
    """Translates "text" as "[text]"; ``bad`` are sentences that go wrong, and how."""

    name = "marks"

    def __init__(self, **bad: Outcome):
        self.bad, self.asked = bad, []

    def can(self, source, target):
        return True

    def translate(self, sentences, source, target):
        self.asked.append((tuple(sentences), source, target))
        return [self._one(s) for s in sentences]

    def _one(self, sentence: str) -> Translation:
        outcome = self.bad.get(sentence.rstrip("."), Outcome.OK)
        text = "" if outcome in (Outcome.ERROR, Outcome.REFUSED) else f"[{sentence}]"
        return Translation(text, outcome, self.name, detail="" if outcome is Outcome.OK else "why")


def responses(*rows: tuple) -> pd.DataFrame:
    columns = ["prompt_id", "language", "text", "outcome", "detected"]
    return pd.DataFrame(rows, columns=columns).assign(dimension="information")


def test_documents_keep_their_shape_and_a_sentence_is_translated_once():
    translator = Marks()
    new, rows = translate_texts(["- Uno.\n- Dos uno.\n", "Uno. Dos uno.", "12", ""], "es", "en", translator)
    assert new == ["- [Uno.]\n- [Dos uno.]\n", "[Uno.] [Dos uno.]", "12", ""]
    assert translator.asked == [(("Uno.", "Dos uno."), "es", "en")]
    assert list(zip(rows["document"], rows["line"], rows["source"], rows["text"], strict=True)) == [
        (0, 0, "Uno.", "[Uno.]"),
        (0, 1, "Dos uno.", "[Dos uno.]"),
        (1, 0, "Uno.", "[Uno.]"),
        (1, 0, "Dos uno.", "[Dos uno.]"),
    ]
    assert set(rows["outcome"]) == {"ok"} and all(type(o) is str for o in rows["outcome"])
    assert set(rows["translator"]) == {"marks"} and set(rows["attempts"]) == {1}


@pytest.mark.parametrize("texts", [[], ["", "42 — 17"]])
def test_nothing_to_translate_asks_nothing(texts):
    translator = Marks()
    new, rows = translate_texts(texts, "es", "en", translator)
    assert new == texts and len(rows) == 0 and "outcome" in rows and not translator.asked


def test_english_passes_through_whoever_asked_for_what():
    table = responses(
        ("p-1", "en", "A star.", "ok", "en"),
        ("p-1", "es", "A star.", "off_target", "en"),  # asked in Spanish, answered in English
        ("p-1", "fr", "Une étoile.", "ok", "fr"),
        ("p-2", "en", "Une étoile.", "off_target", "fr"),
    )
    translator = Marks()
    out, sentences = translate_responses(table, translator)
    assert list(out["english"]) == ["A star.", "A star.", "[Une étoile.]", "Une étoile."]
    assert list(out["outcome"]) == list(table["outcome"])
    assert list(out["translator"]) == ["", "", "marks", ""] and list(out["sentences"]) == [0, 0, 1, 0]
    assert translator.asked == [(("Une étoile.",), "fr", "en")]
    assert list(sentences["language"]) == ["fr"] and list(sentences["prompt_id"]) == ["p-1"]


def test_what_holds_no_answer_is_not_translated_and_keeps_its_outcome():
    outcomes = ["refused", "empty", "error", "degenerate", "unparsed"]
    table = responses(*[(f"p-{i}", "es", "No answer", o, "") for i, o in enumerate(outcomes)])
    translator = Marks()
    out, sentences = translate_responses(table, translator)
    assert list(out["outcome"]) == outcomes and not translator.asked
    assert len(sentences) == 0 and {"language", "prompt_id", "source", "text", "outcome"} <= set(sentences)


def test_a_cut_or_off_target_answer_is_translated_and_keeps_its_outcome():
    table = responses(
        ("p-1", "es", "Una estrella y", "truncated", "es"), ("p-2", "es", "Une étoile.", "off_target", "fr")
    )
    out, _ = translate_responses(table, Marks())
    assert list(out["outcome"]) == ["truncated", "off_target"]
    assert list(out["english"]) == ["[Una estrella y]", "[Une étoile.]"]


BAD, LOST = Outcome.DEGENERATE, Outcome.REFUSED


@pytest.mark.parametrize(
    ("text", "bad", "was", "becomes", "counted"),
    [
        ("A uno. B dos.", {}, "ok", "ok", 0),
        ("A uno. B dos.", {"A uno": BAD}, "ok", "ok", 1),  # half is not more than half
        ("A uno. B dos. C tres.", {"A uno": BAD, "C tres": BAD}, "ok", "degenerate", 2),
        ("A uno. B dos. C tres.", {"A uno": BAD, "C tres": LOST}, "ok", "degenerate", 2),
        ("A uno. A uno. B dos.", {"A uno": BAD}, "ok", "degenerate", 2),  # each time it is said
        ("A uno.", {"A uno": BAD}, "truncated", "degenerate", 1),
        ("A uno.", {"A uno": BAD}, "off_target", "off_target", 1),
        ("A uno. B dos.", {"A uno": Outcome.TRUNCATED, "B dos": Outcome.TRUNCATED}, "ok", "ok", 0),
        ("A uno. B dos. C tres.", {"A uno": Outcome.ERROR}, "ok", "error", 0),
        ("A uno. B dos.", {"A uno": Outcome.ERROR, "B dos": BAD}, "ok", "error", 1),
        ("42", {}, "ok", "ok", 0),
    ],
)
def test_the_sentences_decide_about_the_answer(text, bad, was, becomes, counted):
    out, _ = translate_responses(responses(("p-1", "es", text, was, "es")), Marks(**bad))
    assert (out["outcome"][0], out["degenerate_sentences"][0]) == (becomes, counted)


def test_rows_of_many_languages_come_back_in_their_places():
    table = responses(
        ("p-2", "ru", "Два.", "ok", "ru"),
        ("p-1", "es", "Uno. Dos.", "ok", "es"),
        ("p-1", "en", "One.", "ok", "en"),
        ("p-1", "ru", "Один.", "ok", ""),
        ("p-3", "ru", "№ 3", "ok", "ru"),
        ("p-3", "ja", "12", "ok", ""),
        ("p-2", "es", "", "error", ""),
    ).set_index(pd.Index([10, 7, 3, 99, 5, 6, 8]))
    translator = Marks()
    out, sentences = translate_responses(table, translator)
    assert list(out.index) == list(table.index)
    assert list(out["english"]) == ["[Два.]", "[Uno.] [Dos.]", "One.", "[Один.]", "№ 3", "12", ""]
    assert list(out["sentences"]) == [1, 2, 0, 1, 0, 0, 0]
    assert translator.asked == [(("Uno.", "Dos."), "es", "en"), (("Два.", "Один."), "ru", "en")]
    assert list(zip(sentences["language"], sentences["prompt_id"], sentences["source"], strict=True)) == [
        ("es", "p-1", "Uno."),
        ("es", "p-1", "Dos."),
        ("ru", "p-2", "Два."),
        ("ru", "p-1", "Один."),
    ]
    assert list(table["outcome"]) == ["ok"] * 6 + ["error"], "the table given is not changed"
