"""Sheets that human judges fill in: drawn from a run, written as pages and spreadsheets, read back, and summed up.

Paper A, section 5.1 and appendix "Details about Human Study": native speakers rate snippets of one to four sentences
on a 5-point scale, ten a sheet, at most four sheets each. Paper B, appendix C.1: whole dialogues, two questions.
A judge never sees which model wrote a text.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from xlc_utils.fidelity.rating_scales import DIALOGUE, FIDELITY, SCALES, Scale
from xlc_utils.registry.files import Names, StrictModel, parse, read_text, shown
from xlc_utils.registry.problems import Problem
from xlc_utils.statistics.agreement import krippendorff
from xlc_utils.statistics.intervals import mean_interval

if TYPE_CHECKING:
    from xlc_utils.running.run import Run

ITEMS_A_SHEET = 10
SENTENCES_A_SNIPPET = (1, 4)
SHEETS_AN_ANNOTATOR = 4

#: Of a sample of sheets, the key that says what the judges are not told.
SHEETS = ["sheet", "item", "model", "language", "prompt_id", "source", "translation"]
#: Of ratings read back, one row an answer; ``file`` is where it was read.
RATINGS = [
    "annotator", "scale", "language", "sheet", "item", "question", "rating", "comment", "source", "translation", "file",
]  # fmt: skip

_FORMAT = "xlc-ratings-1"
_ITEM = ["language", "sheet", "item"]
# In these languages the next sentence follows without a space after one of these.
_SPACELESS, _WITHOUT_SPACE = ("ja", "zh"), ("。", "！", "？", "」", "』", "）", "”", "…")
# What makes a spreadsheet take a text for a formula.
_FORMULA = ("=", "+", "-", "@")


# ---- drawing ---------------------------------------------------------------------------------------------------------
def sample_snippets(sentences: pd.DataFrame, sheets: int, seed: int) -> pd.DataFrame:
    """Draws snippets of one to four consecutive sentences of one language, as many of one model as of another.

    Args:
        sentences: model, language, prompt_id, line, source, text of one language, in document order.
        sheets: how many sheets of ten.
        seed: of the draw.

    Returns:
        `SHEETS`; fewer rows when there are not enough answers, each of which gives one snippet.
    """
    rng = np.random.default_rng(seed)
    answers = {m: [a for _, a in g.groupby("prompt_id", sort=True)] for m, g in sentences.groupby("model", sort=True)}
    return _numbered([_snippet(a, rng) for a in _spread(answers, sheets * ITEMS_A_SHEET, rng)], rng)


def sample_dialogues(dialogues: pd.DataFrame, sheets: int, seed: int) -> pd.DataFrame:
    """Draws whole dialogues of one language, as many of one generator as of another.

    Args:
        dialogues: dialogue_id, language, generator and turns, a JSON list of {"sender", "name", "text"}; those without
            turns are left out.
        sheets: how many sheets of ten.
        seed: of the draw.

    Returns:
        `SHEETS`: ``model`` is the generator, ``prompt_id`` the dialogue's id, ``translation`` empty.
    """
    rng = np.random.default_rng(seed)
    written = dialogues[dialogues["turns"].map(json.loads).map(len) > 0]
    by_model = {m: g.sort_values("dialogue_id").to_dict("records") for m, g in written.groupby("generator", sort=True)}
    return _numbered([_conversation(d) for d in _spread(by_model, sheets * ITEMS_A_SHEET, rng)], rng)


def _spread(of_models: dict[str, list], wanted: int, rng: np.random.Generator) -> Iterator:
    """Draws without replacement, one of each model in turn, until there are as many as wanted or none is left."""
    left = {model: list(things) for model, things in of_models.items()}
    drawn = 0
    while any(left.values()):
        for things in filter(None, left.values()):
            if drawn == wanted:
                return
            yield things.pop(int(rng.integers(len(things))))
            drawn += 1


def _snippet(answer: pd.DataFrame, rng: np.random.Generator) -> dict:
    length = int(rng.integers(SENTENCES_A_SNIPPET[0], SENTENCES_A_SNIPPET[1] + 1))
    start = int(rng.integers(max(1, len(answer) - length + 1)))
    part = answer.iloc[start : start + length]
    spaceless = part["language"].iloc[0].partition("-")[0] in _SPACELESS
    texts = {
        "source": _joined(part["source"], part["line"], spaceless),
        "translation": _joined(part["text"], part["line"]),
    }
    return part.iloc[0][["model", "language", "prompt_id"]].to_dict() | texts


def _joined(sentences: Iterable[str], lines: Iterable[int], spaceless: bool = False) -> str:
    """Sentences as they stood: on lines of their own, or one after the other."""
    text, before = "", None
    for sentence, line in zip(sentences, lines, strict=True):
        between = "\n" if line != before else "" if spaceless and text.endswith(_WITHOUT_SPACE) else " "
        text += (between if text else "") + sentence.strip()
        before = line
    return text


def _conversation(dialogue: dict) -> dict:
    turns = json.loads(dialogue["turns"])
    names = [f" ({turn['name']})" if turn["name"] else "" for turn in turns]
    lines = [f"{t['sender'].upper()}{name}: {t['text']}" for t, name in zip(turns, names, strict=True)]
    of = {"model": dialogue["generator"], "language": dialogue["language"], "prompt_id": dialogue["dialogue_id"]}
    return of | {"source": "\n\n".join(lines), "translation": ""}


def _numbered(rows: list[dict], rng: np.random.Generator) -> pd.DataFrame:
    """Cut into sheets, which thus have all models alike, and shuffled in each, so that no order gives a model away."""
    sheets = [rows[start : start + ITEMS_A_SHEET] for start in range(0, len(rows), ITEMS_A_SHEET)]
    numbered = [
        {"sheet": number, "item": place, **sheet[i]}
        for number, sheet in enumerate(sheets, 1)
        for place, i in enumerate(rng.permutation(len(sheet)), 1)
    ]
    return pd.DataFrame(numbered, columns=SHEETS)


def assign(sheets: pd.DataFrame, annotators: Sequence[str], raters: int = 1) -> pd.DataFrame:
    """Who rates which sheet of one language: loads differ by at most one sheet, pairs of judges by as little as can be.

    Args:
        sheets: see `SHEETS`.
        annotators: names, all different.
        raters: how many rate each sheet. Agreement needs two; paper A has one, paper B three.

    Returns:
        annotator, language, sheet, by sheet.

    Raises:
        Problem: too few annotators for at most four sheets each, or for ``raters`` different ones a sheet.
    """
    wanted = sheets[["language", "sheet"]].drop_duplicates().sort_values(["language", "sheet"]).to_dict("records")
    needed = max(raters, -(-len(wanted) * raters // SHEETS_AN_ANNOTATOR))
    if len(set(annotators)) < needed:
        what = f"{len(wanted)} sheets, each rated by {raters}, are too many for {len(set(annotators))} annotators"
        remedy = f"find {needed}, since one rates at most {SHEETS_AN_ANNOTATOR} sheets, or draw fewer sheets"
        raise Problem("assignment of rating sheets", what, remedy)
    rated = {name: set() for name in annotators}
    rows = []
    for number, sheet in enumerate(wanted):
        chosen: list[str] = []
        for _ in range(raters):
            free = [name for name in rated if name not in chosen]
            chosen.append(min(free, key=lambda n: (len(rated[n]), sum(len(rated[n] & rated[c]) for c in chosen))))
        for name in chosen:
            rated[name].add(number)
            rows.append({"annotator": name, **sheet})
    return pd.DataFrame(rows, columns=["annotator", "language", "sheet"])


def given_out(sheets: pd.DataFrame, raters: int) -> pd.DataFrame:
    """`assign` for each language, to as few annotators (A1, A2, …) as may rate all of it; those of two languages are
    different people."""
    made = []
    for _, own in sheets.groupby("language", sort=False):
        needed = max(raters, -(-own["sheet"].nunique() * raters // SHEETS_AN_ANNOTATOR))
        made.append(assign(own, [f"A{number}" for number in range(1, needed + 1)], raters))
    return pd.concat(made, ignore_index=True) if made else assign(sheets, [], 0)


def dialogue_sheets(run: Run, dialogues: pd.DataFrame, sheets: int) -> pd.DataFrame:
    """Draws sheets of each language's dialogues and writes their pages; see `sample_dialogues` and `write_pages`."""
    by_language = dialogues.groupby("language", sort=False)
    drawn = [sample_dialogues(own, sheets, run.params.seed) for _, own in by_language]
    made = pd.concat(drawn, ignore_index=True) if drawn else pd.DataFrame(columns=SHEETS)
    for language in made["language"].unique():
        write_pages(run, language, made, DIALOGUE)
    return made


# ---- writing ---------------------------------------------------------------------------------------------------------
def write_pages(run: Run, language: str, sheets: pd.DataFrame, scale: Scale = FIDELITY) -> list[Path]:
    """Writes each sheet as a page for a browser and as a spreadsheet, and the key to all of them.

    <run>/rating_sheets/<scale>/<language>-<sheet>.html and .csv go to the judges; <language>_key.csv, which names the
    models, does not. What judges have entered in a page is kept by their browser as long as its texts stay the same.

    Args:
        run: the run.
        language: code of the language of the sheets.
        sheets: see `SHEETS`; other languages are ignored.
        scale: what is asked.

    Returns:
        The pages.
    """
    own = sheets[sheets["language"] == language]
    folder = run.folder / "rating_sheets" / scale.name
    pages = []
    for number, items in own.groupby("sheet", sort=True):
        page = folder / f"{language}-{number}.html"
        _write(run, page, _page(run, language, int(number), items, scale).encode())
        # Excel takes a CSV for UTF-8 only if it begins with a byte order mark.
        _write(run, page.with_suffix(".csv"), _spreadsheet(items, scale).encode("utf-8-sig"))
        pages.append(page)
    run.write_csv(f"rating_sheets/{scale.name}/{language}_key", own[SHEETS])
    return pages


def _write(run: Run, path: Path, content: bytes) -> None:
    run.atomically(path, lambda partial: partial.write_bytes(content))
    run.wrote(path)


def _page(run: Run, language: str, number: int, items: pd.DataFrame, scale: Scale) -> str:
    known = run.languages[language]
    texts = ["item", "source", "translation"] if scale.translated else ["item", "source"]
    sheet = {
        "format": _FORMAT,
        "scale": scale.name,
        "language": language,
        "sheet": number,
        "questions": [question.name for question in scale.questions],
        "items": items.sort_values("item")[texts].to_dict("records"),
    }
    sheet["fingerprint"] = hashlib.sha256(json.dumps(sheet, sort_keys=True).encode()).hexdigest()[:16]
    fonts = list(dict.fromkeys([known.font, "Noto Sans"]))
    return _template().render(sheet=sheet, language=known, fonts=fonts, scale=scale.worded(known.name))


@cache
def _template():
    environment = Environment(
        loader=PackageLoader("xlc_utils.fidelity", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    return environment.get_template("rating_page.html.j2")


def _spreadsheet(items: pd.DataFrame, scale: Scale) -> str:
    texts = ["source", "translation"] if scale.translated else ["source"]
    table = items.sort_values("item")[["language", "sheet", "item", *texts]]
    guarded = table[texts].map(lambda text: f"'{text}" if text.startswith(_FORMULA) else text)
    empty = {name: "" for name in ["annotator", *(question.name for question in scale.questions), "comment"]}
    return table.assign(**guarded, **empty).to_csv(index=False, lineterminator="\r\n")


# ---- reading back ----------------------------------------------------------------------------------------------------
class _FilledItem(StrictModel):
    item: int
    source: str
    translation: str = ""
    ratings: dict[str, int]
    comment: str


class _FilledSheet(StrictModel):
    """What a rating page lets one download."""

    format: Literal["xlc-ratings-1"]
    scale: str
    language: str
    sheet: int
    fingerprint: str
    questions: Names
    annotator: str
    items: list[_FilledItem]


def read_ratings(path: Path) -> pd.DataFrame:
    """One filled-in sheet: what a page has exported (JSON), or a spreadsheet (CSV with commas, semicolons or tabs).

    In a spreadsheet the annotator is named once or in every row; the file's name stands for one who is not named.

    Returns:
        `RATINGS`, an answer that was not given as NaN; see `completeness`.

    Raises:
        Problem: it is neither, a column is missing, a rating is not on the scale, or an item is there twice.
    """
    table = _from_json(path) if path.suffix.lower() == ".json" else _from_csv(path)
    twice = table[table.duplicated([*_ITEM, "question"])]
    if len(twice):
        raise Problem(shown(path), f"item {twice['item'].iloc[0]} is in it twice", "keep one of the two")
    return table.assign(file=shown(path))[RATINGS]


def _from_json(path: Path) -> pd.DataFrame:
    try:
        data = json.loads(read_text(path))
    except ValueError as error:
        raise Problem(shown(path), f"it is not JSON ({error})", "download the ratings from the page again") from None
    sheet = parse(_FilledSheet, data, shown(path))
    scale = _scale(sheet.scale, path)
    rows = [
        {
            **item.model_dump(exclude={"ratings"}),
            "question": question.name,
            "rating": _checked(item.ratings.get(question.name), question.values, f"{shown(path)}: item {item.item}"),
        }
        for item in sheet.items
        for question in scale.questions
    ]
    table = pd.DataFrame(rows, columns=["item", "source", "translation", "comment", "question", "rating"])
    who = {"annotator": sheet.annotator.strip() or path.stem, "language": sheet.language, "sheet": sheet.sheet}
    return table.astype({"rating": float}).assign(scale=scale.name, **who)


def _scale(name: str, path: Path) -> Scale:
    if name not in SCALES:
        raise Problem(f"{shown(path)}: key `scale`", f"there is no scale {name!r}", f"use one of {', '.join(SCALES)}")
    return SCALES[name]


def _from_csv(path: Path) -> pd.DataFrame:
    table = _table(path)
    scale = DIALOGUE if DIALOGUE.questions[0].name in table else FIDELITY
    needed = ["language", "sheet", "item", "source", *(["translation"] if scale.translated else [])]
    missing = [c for c in [*needed, *(question.name for question in scale.questions)] if c not in table]
    if missing:
        raise Problem(shown(path), f"has no column {', '.join(missing)}", "fill in the sheet as notebook 03 wrote it")
    names = {name for name in table.get("annotator", ()) if name}
    if len(names) > 1:
        raise Problem(shown(path), f"has several annotators ({', '.join(sorted(names))})", "use a file for each")
    rows = []
    for number, row in enumerate(table.to_dict("records"), 2):  # as spreadsheets count: row 1 is the heading
        where = f"{shown(path)}: row {number}"
        place = {name: _whole(row[name], name, where) for name in ("sheet", "item")}
        texts = {name: row.get(name, "") for name in ("language", "source", "translation", "comment")}
        for question in scale.questions:
            rating = _checked(_digits(row[question.name]), question.values, where, question.name)
            rows.append({**place, **texts, "question": question.name, "rating": rating})
    table = pd.DataFrame(rows, columns=[*_ITEM, "source", "translation", "comment", "question", "rating"])
    annotator = names.pop() if names else path.stem
    return table.astype({"rating": float}).assign(annotator=annotator, scale=scale.name)


def _table(path: Path) -> pd.DataFrame:
    """The cells as text, without space around them; rows of empty cells, which spreadsheets add, are left out."""
    text = read_text(path)
    heading = text.partition("\n")[0]
    try:
        table = pd.read_csv(io.StringIO(text), sep=max(",;\t", key=heading.count), dtype=str, keep_default_na=False)
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        what = f"it is no CSV table ({str(error).splitlines()[0]})"
        raise Problem(shown(path), what, "save the sheet as CSV, encoding UTF-8") from None
    table = table.rename(columns=str.strip).map(str.strip)
    return table[(table != "").any(axis=1)]


def _digits(text: str) -> int | str | None:
    """A whole number in the digits of any script; None for an empty cell, the text itself for anything else."""
    return None if not text else int(text) if text.isdecimal() else text


def _whole(text: str, name: str, where: str) -> int:
    number = _digits(text)
    if not isinstance(number, int):
        raise Problem(where, f"the {name} is {text!r}", "leave the sheet's own numbers as they are")
    return number


def _checked(rating: object, allowed: tuple[int, ...], where: str, name: str = "rating") -> float:
    if rating is None:
        return np.nan
    if rating not in allowed:
        remedy = f"write a whole number from {allowed[0]} to {allowed[-1]}"
        raise Problem(where, f"the {name} is {rating!r}", remedy)
    return float(rating)


def returned_ratings(folder: Path, sheets: pd.DataFrame, scale: Scale = FIDELITY) -> pd.DataFrame:
    """All filled-in sheets in a folder, with what the judges were not told.

    Args:
        folder: where they were put, .json and .csv; it may be missing.
        sheets: the sheets as they were drawn (`SHEETS`).
        scale: sheets of another scale are left alone.

    Returns:
        `RATINGS`, model, prompt_id.

    Raises:
        Problem: a file is bad (`read_ratings`), has an item that was not drawn or whose text is another one, or holds a
            sheet that another file of the same annotator holds too.
    """
    paths = sorted(p for p in folder.glob("*") if p.suffix.lower() in (".json", ".csv"))
    files = [table for table in map(read_ratings, paths) if (table["scale"] == scale.name).all()]
    if not files:
        return pd.DataFrame(columns=[*RATINGS, "model", "prompt_id"]).astype({"rating": float})
    key = sheets.set_index(_ITEM)
    for table in files:
        _check_items(table, key)
    _check_once(files)
    ratings = pd.concat(files, ignore_index=True)
    return ratings.merge(sheets[[*_ITEM, "model", "prompt_id"]], on=_ITEM, how="left")


def _check_items(table: pd.DataFrame, key: pd.DataFrame) -> None:
    for row in table.itertuples():
        where, place = row.file, (row.language, row.sheet, row.item)
        called = f"item {row.item} of sheet {row.language}-{row.sheet}"
        if place not in key.index:
            raise Problem(where, f"{called} is not among this run's sheets", "move the file to the run it belongs to")
        drawn = key.loc[place]
        if (_words(row.source), _words(row.translation)) != (_words(drawn["source"]), _words(drawn["translation"])):
            what, remedy = f"{called} has another text in this run", "move the file to the run it belongs to"
            raise Problem(where, what, remedy)


def _words(text: str) -> list[str]:
    """What spreadsheets leave of a text: white space may differ, and the apostrophe that guards a formula."""
    return text.lstrip("'").split()


def _check_once(files: list[pd.DataFrame]) -> None:
    seen: dict[tuple, str] = {}
    for table in files:
        name = table["file"].iloc[0]
        for sheet in table[["annotator", "language", "sheet"]].drop_duplicates().itertuples(index=False, name=None):
            if sheet in seen:
                what = f"{sheet[0]} has rated sheet {sheet[1]}-{sheet[2]} in {seen[sheet]} too"
                raise Problem(name, what, "keep one of the two, or correct the annotator's name")
            seen[sheet] = name


# ---- summing up ------------------------------------------------------------------------------------------------------
def completeness(ratings: pd.DataFrame, sheets: pd.DataFrame, assigned: pd.DataFrame | None = None) -> pd.DataFrame:
    """What has come back of what.

    Args:
        ratings: see `RATINGS`, of one scale.
        sheets: see `SHEETS`.
        assigned: see `assign`; without it, a sheet that nobody has returned stands there without an annotator.

    Returns:
        One row a sheet and annotator: language, sheet, annotator, n_items, n_rated (items with all questions answered),
        missing (the others, such as "2, 5") and status: complete, incomplete or not returned.
    """
    columns = ["language", "sheet", "annotator"]
    drawn = sheets.groupby(["language", "sheet"])["item"].apply(sorted)
    answered = ratings.groupby([*columns, "item"])["rating"].agg(lambda given: given.notna().all())
    known = set(ratings[columns].itertuples(index=False, name=None))
    expected = known | (set(assigned[columns].itertuples(index=False, name=None)) if assigned is not None else set())
    expected |= {(*sheet, "") for sheet in set(drawn.index) - {row[:2] for row in expected}}
    rows = []
    for row in sorted(expected):
        items = drawn[row[:2]]
        missing = [item for item in items if not answered.get((*row, item), False)]
        status = "complete" if not missing else "incomplete" if row in known else "not returned"
        rows.append((*row, len(items), len(items) - len(missing), ", ".join(map(str, missing)), status))
    return pd.DataFrame(rows, columns=[*columns, "n_items", "n_rated", "missing", "status"])


def fidelity_table(ratings: pd.DataFrame, seed: int, samples: int) -> pd.DataFrame:
    """Mean fidelity of each language and how far its judges agree (paper A, Table 3).

    Args:
        ratings: see `RATINGS`; other scales than `FIDELITY` are ignored.
        seed, samples: of the bootstrap over items.

    Returns:
        language; mean of the items' mean ratings, 1–5, with its 95% interval (low, high); Krippendorff's alpha for
        ordinal ratings, and why_no_alpha where there is none; n_items, n_shared (items with two ratings or more, on
        which alpha rests), n_ratings, n_annotators.
    """
    given = ratings[ratings["scale"] == FIDELITY.name].dropna(subset=["rating"])
    rows = [{"language": c, **_summary(own, seed, samples)} for c, own in given.groupby("language", sort=True)]
    numbers = ["n_items", "n_shared", "n_ratings", "n_annotators"]
    return pd.DataFrame(rows, columns=["language", "mean", "low", "high", "alpha", *numbers, "why_no_alpha"])


def _summary(ratings: pd.DataFrame, seed: int, samples: int) -> dict:
    matrix = ratings.pivot(index=["sheet", "item"], columns="annotator", values="rating")
    matrix = matrix.sort_index().sort_index(axis=1).to_numpy(float)
    mean = mean_interval(np.nanmean(matrix, axis=1), seed=seed, samples=samples)
    alpha = krippendorff(matrix, "ordinal")
    return {
        "mean": float(mean.estimate),
        "low": float(mean.low),
        "high": float(mean.high),
        "alpha": alpha.value,
        "n_items": len(matrix),
        "n_shared": alpha.n_items,
        "n_ratings": len(ratings),
        "n_annotators": matrix.shape[1],
        "why_no_alpha": alpha.reason,
    }


def dialogue_labels(ratings: pd.DataFrame) -> pd.DataFrame:
    """Ratings of dialogues as `xlc_utils.judges.human` takes them: language, annotator, dialogue (generator and id,
    since generators share the draws that ids name), question, value.

    Args:
        ratings: see `returned_ratings`; other scales than `DIALOGUE` are ignored.
    """
    given = ratings[ratings["scale"] == DIALOGUE.name].dropna(subset=["rating"])
    named = given.rename(columns={"rating": "value"}).assign(dialogue=given["model"] + "/" + given["prompt_id"])
    columns = ["language", "annotator", "dialogue", "question", "value"]
    return named[columns].astype({"value": int}).reset_index(drop=True)
