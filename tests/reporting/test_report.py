"""The report holds all it shows, opens without a network, and can be read by ear."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from html.parser import HTMLParser

import pandas as pd
import pytest

from xlc_utils.registry.problems import Problem
from xlc_utils.reporting.report import Section, write_report
from xlc_utils.reporting.tables import TOY, save_table

VOID = {"meta", "img", "br"}
FRAME = pd.DataFrame({"model": ["gpt-4o", "gemma-3-270m"], "text": ["<script>x</script>", "النجوم"], "F": [0.5, None]})


class Tree(HTMLParser):
    """Elements in order with their attributes and text; fails where an end has no beginning."""

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict, list[str]]] = []
        self._open: list[tuple[str, dict, list[str]]] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs), f"an attribute twice in {tag}"
        self.elements.append((tag, dict(attrs), []))
        if tag not in VOID:
            self._open.append(self.elements[-1])

    def handle_endtag(self, tag):
        assert self._open.pop()[0] == tag

    def handle_data(self, data):
        for _, _, texts in self._open:
            texts.append(data)

    def all(self, *tags: str) -> list[tuple[str, dict, str]]:
        return [(tag, attributes, "".join(texts)) for tag, attributes, texts in self.elements if tag in tags]


def png(width: int, height: int) -> bytes:
    """A grey picture, made by hand."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\x80" * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def stage(notebook: str, finished: str, outcomes: dict) -> dict:
    return {"notebook": notebook, "finished": finished, "outcomes": outcomes}


@pytest.fixture
def started(run):
    """A run whose first two notebooks have finished, and this one before."""
    stages = [
        stage("01_generate", "2026-05-04T10:11:12+00:00", {
            "responses/known-answers": {"ok": 160, "n": 160},
            "responses/gemma-3-270m": {"ok": 20, "degenerate": 15, "off_target": 5, "n": 40},
            "responses/mine": {"ok": 3, "n": 3},
        }),
        stage("02_translate", "2026-05-04T10:13:59+00:00", {"translations/known-answers": {"ok": 160, "n": 160}}),
        stage("07_figures", "2031-01-01T00:00:00+00:00", {}),
    ]  # fmt: skip
    manifest = {"git_commit": "0123abcd" * 5, "python": "3.11.9", "models": {"gpt-4o": {}}, "notebooks": stages}
    (run.folder / "manifest.json").write_text(json.dumps(manifest))
    return run


@pytest.fixture
def sections(run):
    picture = run.folder / "heatmap.png"
    picture.write_bytes(png(300, 150))
    return [
        Section("Information & more", "One <b>paragraph</b>.\n\nAnother,\nof two.", [("F of models.", FRAME, "")]),
        Section("Empathy", "", [], [(picture, 'A "heatmap" of two models')]),
    ]


def test_structure(started, sections):
    tree = Tree(write_report(started, sections).read_text(encoding="utf-8"))
    assert tree.all("html")[0][1] == {"lang": "en", "dir": "ltr"}
    assert [(tag, text) for tag, _, text in tree.all("h1", "h2", "h3")] == [
        ("h1", "Results of the run “here”"), ("h2", "What was run"), ("h2", "Information & more"), ("h2", "Empathy"),
    ]  # fmt: skip
    ids = [attributes["id"] for _, attributes, _ in tree.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for _, attributes, _ in tree.all("a")]
    assert links == ["#content", "#section-1", "#section-2", "#section-3"] and {link[1:] for link in links} <= set(ids)
    paragraphs = [text for _, _, text in tree.all("p")]
    assert "One <b>paragraph</b>." in paragraphs and "Another, of two." in paragraphs
    assert len([text for _, _, text in tree.all("title") if text]) == 1


def test_nothing_is_fetched(started, sections):
    text = write_report(started, sections).read_text(encoding="utf-8")
    tree = Tree(text)
    sources = [attributes[key] for _, attributes, _ in tree.elements for key in ("src", "href") if key in attributes]
    assert all(source.startswith(("data:image/png;base64,", "#")) for source in sources)
    assert not {"script", "link", "iframe", "object"} & {tag for tag, _, _ in tree.elements}
    style = tree.all("style")[0][2]
    assert "url(" not in style and "@import" not in style and "@font-face" not in style
    policy = next(a["content"] for _, a, _ in tree.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "@media print" in style


def test_picture(started, sections):
    tree = Tree(write_report(started, sections).read_text(encoding="utf-8"))
    [(_, picture, _)] = tree.all("img")
    assert picture["alt"] == 'A "heatmap" of two models'
    assert base64.b64decode(picture["src"].partition(",")[2]) == png(300, 150)
    assert (picture["width"], picture["height"]) == ("192", "96")  # two inches by one


def test_tables_can_be_read_by_ear(started, sections):
    tree = Tree(write_report(started, sections).read_text(encoding="utf-8"))
    headers = tree.all("th")
    assert headers and all(attributes["scope"] in ("col", "row") for _, attributes, _ in headers)
    assert all(attributes["dir"] == "auto" for _, attributes, _ in tree.all("th", "td"))
    assert [attributes["aria-label"] for _, attributes, _ in tree.all("table")][-1] == "F of models."
    assert "<script>x</script>" in [text for _, _, text in tree.all("td")]


def rows(tree: Tree, position: int) -> list[list[str]]:
    """The cells of the table at that position."""
    found: list[list[list[str]]] = []
    for tag, _, texts in tree.elements:
        if tag == "table":
            found.append([])
        elif tag == "tr":
            found[-1].append([])
        elif tag in ("th", "td"):
            found[-1][-1].append("".join(texts))
    return found[position]


def test_what_was_run(started, sections):
    tree = Tree(write_report(started, sections).read_text(encoding="utf-8"))
    models = started.models.models
    assert rows(tree, 0) == [
        ["model", "licence", "version", "toy"],
        ["gemma-3-270m", "Gemma Terms of Use", f"sha256 {models['gemma-3-270m'].sha256[:12]}…", "yes"],
        ["gpt-4o", models["gpt-4o"].licence, models["gpt-4o"].revision or "not pinned", "no"],
        ["known-answers", models["known-answers"].licence, "stored answers", "yes"],
        ["mine", "answers from a file", "stored answers", "no"],
    ]
    assert rows(tree, 1) == [
        ["table", "model", "n", "ok", "degenerate", "off_target"],
        ["responses", "known-answers", "160", "160", "0", "0"],
        ["responses", "gemma-3-270m", "40", "20", "15", "5"],
        ["responses", "mine", "3", "3", "0", "0"],
        ["translations", "known-answers", "160", "160", "0", "0"],
    ]
    assert [text for _, attributes, text in tree.all("strong")] == [TOY, TOY]  # the outcomes and the scores
    assert "Computed 2026-05-04, 10:13 UTC · commit 0123abcd0123 · Python 3.11.9" in [t for _, _, t in tree.all("p")]


def test_again_is_the_same_and_in_the_manifest(started, sections):
    path = write_report(started, sections)
    first = path.read_bytes()
    assert write_report(started, sections).read_bytes() == first and first.endswith(b"\n")
    assert list(started._written) == ["report.html"]


def test_a_saved_table_brings_its_caption_note_and_mark(started):
    frame = pd.DataFrame({"language": ["es"], "length": [1.5]})
    shown = save_table(started, "lengths", frame, "Lengths.", "A note.", toy=True)
    text = write_report(started, [Section("s", "", ["lengths"])]).read_text(encoding="utf-8")
    assert shown._repr_html_().strip() in text
    tree = Tree(text)
    assert rows(tree, 2) == [["language", "length"], ["es", "1.50"]]
    assert tree.all("figcaption")[2][2] == f"Lengths. {TOY}"
    with pytest.raises(Problem, match="this table is missing"):
        write_report(started, [Section("s", "", ["widths"])])


def test_bad_input(started, run, sections):
    missing = Section("s", "", [], [(run.folder / "none.png", "x")])
    with pytest.raises(Problem, match=r"none\.png: this figure is missing"):
        write_report(run, [missing])
    (run.folder / "none.png").write_bytes(b"GIF89a")
    with pytest.raises(Problem, match="it is no PNG picture"):
        write_report(run, [missing])
    (run.folder / "manifest.json").write_text('{"notebooks": [')
    with pytest.raises(Problem, match="it is not JSON"):
        write_report(run, sections)
    (run.folder / "manifest.json").unlink()
    with pytest.raises(Problem, match="run the notebooks before this one"):
        write_report(run, sections)
