"""chat/replay.py: answers that exist already, from the files people have."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xlc_utils.chat.base import Chat, Sampling
from xlc_utils.chat.replay import ReplayModel, read_answers
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem

HEAD = "language,prompt_id,text\n"


def saved(folder: Path, content: str | bytes, name: str = "answers.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


ROWS = [
    ("es", "astronomy-01", 'El Sol, dicen, es una "estrella".'),
    ("ja", "astronomy-01", "太陽は星です。\n\nもう一行。"),
    ("ar", "astronomy-02", "القمر"),
]


def as_csv(rows) -> str:
    out = io.StringIO()
    csv.writer(out).writerows([("language", "prompt_id", "text"), *rows])
    return out.getvalue()


def as_jsonl(rows, **how) -> str:
    return "".join(json.dumps({"language": a, "prompt_id": b, "text": c}, **how) + "\n" for a, b, c in rows)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", as_csv(ROWS)),
        ("a.csv", "\ufeff" + as_csv(ROWS)),  # as spreadsheets save it
        ("a.jsonl", as_jsonl(ROWS)),
        ("a.ndjson", "\ufeff" + as_jsonl(ROWS, ensure_ascii=False).replace("\n", "\r\n") + "\n\n"),
    ],
)
def test_answers_are_read_from_csv_and_jsonl(tmp_path: Path, name: str, content: str):
    assert read_answers(saved(tmp_path, content, name)) == {(a, b): c for a, b, c in ROWS}


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff"), min_size=1)


@settings(deadline=None)
@given(texts=st.lists(TEXT, min_size=1, max_size=4), escaped=st.booleans())
def test_any_text_comes_through_both_formats(tmp_path_factory, texts, escaped):
    folder = tmp_path_factory.mktemp("answers", numbered=True)
    rows = [("es", f"p-{i}", text) for i, text in enumerate(texts)]
    expected = {(a, b): c for a, b, c in rows}
    assert read_answers(saved(folder, as_jsonl(rows, ensure_ascii=escaped), "a.jsonl")) == expected
    assert read_answers(saved(folder, as_csv(rows))) == expected


def test_line_separators_inside_a_text_do_not_end_a_line_of_jsonl(tmp_path: Path):
    rows = [("es", "p-1", "uno\u2028dos\x85tres"), ("es", "p-2", "x")]
    assert (
        read_answers(saved(tmp_path, as_jsonl(rows, ensure_ascii=False), "a.jsonl"))["es", "p-1"]
        == "uno\u2028dos\x85tres"
    )


def test_columns_may_come_in_any_order_and_with_others(tmp_path: Path):
    path = saved(tmp_path, "model,text,prompt_id,language\nx,Hola, p-1 , es \n")
    assert read_answers(path) == {("es", "p-1"): "Hola"}


def test_the_old_code_of_hebrew_is_stored_as_the_new_one(tmp_path: Path):
    assert read_answers(saved(tmp_path, HEAD + "iw,p-1,שלום\n")) == {("he", "p-1"): "שלום"}
    with pytest.raises(Problem, match="answers he p-1 a second time"):
        read_answers(saved(tmp_path, HEAD + "iw,p-1,שלום\nhe,p-1,שלום\n"))


def test_a_long_answer_is_read_whole(tmp_path: Path):
    text = "palabra " * 40_000
    assert read_answers(saved(tmp_path, as_csv([("es", "p-1", text)])))["es", "p-1"] == text


def test_half_a_character_is_replaced(tmp_path: Path):
    path = saved(tmp_path, '{"language": "es", "prompt_id": "p", "text": "a \\ud83d b"}', "a.jsonl")
    assert read_answers(path) == {("es", "p"): "a \ufffd b"}


BAD = {
    "UTF-16": ("a.csv", as_csv(ROWS).encode("utf-16"), "UTF-16.*save it again with the encoding UTF-8"),
    "UTF-16 without mark": ("a.csv", as_csv(ROWS).encode("utf-16-le"), "UTF-16"),
    "Latin-1": ("a.csv", (HEAD + "es,p-1,ñ\n").encode("latin-1"), "line 2: the byte 0xF1 is not UTF-8"),
    "empty": ("a.csv", "", "line 1: has no column language, prompt_id, text"),
    "a head alone": ("a.csv", HEAD, "holds no answers"),
    "an empty jsonl": ("a.jsonl", "\n", "holds no answers"),
    "a missing column": ("a.csv", "language,text\nes,Hola\n", "line 1: has no column prompt_id"),
    "semicolons": ("a.csv", "language;prompt_id;text\nes;p;Hola\n", "has no column"),
    "a short row": ("a.csv", HEAD + "es,p-1,Hola\nes,p-2\n", "line 3: has no text under text"),
    "a comma without quotes": (
        "a.csv",
        HEAD + "es,p-1,Hola, amigo\n",
        "line 2: has more fields than there are columns",
    ),
    "a quote that never ends": ("a.csv", HEAD + 'es,p-1,"Hola\nes,p-2,Adiós\n', "line 2: is not CSV"),
    "a quote in the middle": ("a.csv", HEAD + 'es,p-1,"Hola" dijo\n', "line 2: is not CSV.*write the quote twice"),
    "twice": ("a.csv", HEAD + "es,p-1,a\nfr,p-1,b\nes,p-1,c\n", "line 4: answers es p-1 a second time"),
    "broken JSON": ("a.jsonl", '{"language": "es"\n', "line 1: is not JSON"),
    "a JSON list": ("a.jsonl", '["es", "p-1", "Hola"]\n', "line 1: is not a JSON object"),
    "one JSON document": ("a.jsonl", '[\n{"language": "es"}]\n', "line 1: is not JSON"),
    "null": ("a.jsonl", '{"language": "es", "prompt_id": "p", "text": null}', "line 1: has no text under text"),
    "a number": ("a.jsonl", '{"language": "es", "prompt_id": 1, "text": "x"}', "has no text under prompt_id"),
}


@pytest.mark.parametrize(("name", "content", "said"), BAD.values(), ids=BAD)
def test_a_bad_file_is_told_in_one_sentence(tmp_path: Path, name: str, content: str | bytes, said: str):
    with pytest.raises(Problem, match=said) as told:
        read_answers(saved(tmp_path, content, name))
    assert name in str(told.value)


def test_a_missing_file_is_told_with_the_nearest_name(tmp_path: Path):
    saved(tmp_path, HEAD, "answers.csv")
    with pytest.raises(Problem, match=r"there is no such file; perhaps answers\.csv is meant"):
        read_answers(tmp_path / "anwsers.csv")


def reply(text: str | None):
    model = ReplayModel("mine", {} if text is None else {("es", "p-1"): text})
    return model.complete([Chat.user("¿?", language="es", prompt_id="p-1")], Sampling())[0]


@pytest.mark.parametrize(
    ("text", "outcome", "shown"),
    [
        (" El Sol. \n", Outcome.OK, "El Sol."),
        ("", Outcome.EMPTY, ""),
        (" \n", Outcome.EMPTY, ""),
        ("No answer", Outcome.REFUSED, "No answer"),
        (" No answer. ", Outcome.REFUSED, " No answer. "),
        ("No answer is known for certain.", Outcome.OK, "No answer is known for certain."),
        (None, Outcome.ERROR, ""),
    ],
)
def test_a_stored_answer_has_an_outcome(text, outcome, shown):
    found = reply(text)
    assert (found.outcome, found.text, found.recorded) == (outcome, shown, True)
    assert bool(found.detail) is (outcome is not Outcome.OK)


def test_an_answer_that_is_not_there_is_named():
    assert reply(None).detail == "no stored answer for es p-1"
