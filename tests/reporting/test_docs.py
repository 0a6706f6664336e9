"""The pages in docs: their tables are the committed results, and their links lead somewhere."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
import yaml

from xlc_utils.registry.problems import Problem
from xlc_utils.reporting import docs


def texts(root: Path) -> dict[str, str]:
    """Prose of every page and of the notebooks in docs."""
    found = {page.name: page.read_text(encoding="utf-8") for page in docs.pages(root)}
    for path in (root / "docs").glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        found[path.name] = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return found


def test_every_table_is_that_of_the_committed_results(root: Path):
    assert docs.pages(root)
    for page in docs.pages(root):
        assert docs.filled(root, page) == page.read_text(encoding="utf-8"), f"docs/{page.name}: run `make docs`"


def test_links_lead_somewhere(root: Path):
    known = set(re.findall(r"^### (\S+)", (root / "KNOWN_DIFFERENCES.md").read_text(encoding="utf-8"), re.MULTILINE))
    for name, text in texts(root).items():
        for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
            path, _, anchor = link.partition("#")
            assert (root / "docs" / path).exists(), f"docs/{name}: {link}"
            assert not (anchor and path.endswith("KNOWN_DIFFERENCES.md")) or anchor in known, f"docs/{name}: {link}"


def test_the_start_page_lists_every_notebook(root: Path):
    start = texts(root)["start.ipynb"]
    for notebook in (root / "notebooks").glob("*.ipynb"):
        assert f"../notebooks/{notebook.name}" in start


def test_a_block_takes_its_columns_and_rows(tmp_path: Path):
    (tmp_path / "t.csv").write_text("a,b,c\nx|y,0.126,\nz,3,1.5\n", encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- table t.csv | c, a | b < 1 -->\nold\n<!-- end -->\nafter\n", encoding="utf-8")
    rows = "| c | a |\n| ---: | --- |\n| – | x\\|y |\n"
    assert docs.filled(tmp_path, page) == f"before\n<!-- table t.csv | c, a | b < 1 -->\n{rows}<!-- end -->\nafter\n"


@pytest.mark.parametrize(
    "block",
    [
        "<!-- table gone.csv -->\n<!-- end -->",
        "<!-- table t.csv | gone -->\n<!-- end -->",
        "<!-- table t.csv | a | gone > 1 -->\n<!-- end -->",
        "<!-- table t.csv -->\n",
    ],
)
def test_a_block_that_cannot_be_filled_is_named(tmp_path: Path, block: str):
    (tmp_path / "t.csv").write_text("a\n1\n", encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text(block, encoding="utf-8")
    with pytest.raises(Problem, match=r"page\.md"):
        docs.filled(tmp_path, page)


def test_binder_installs_the_lock_of_the_laboratory(root: Path):
    post = root / "binder" / "postBuild"
    assert os.access(post, os.X_OK), "Binder runs it"
    assert "--no-deps --requirement requirements/lab.txt" in post.read_text(encoding="utf-8")
    python = (root / "binder" / "runtime.txt").read_text(encoding="utf-8").strip()
    assert python.removeprefix("python-") in ("3.11", "3.12", "3.13", "3.14")


def test_the_laboratory_opens_at_the_start_page(root: Path):
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    assert "--LabApp.default_url=/lab/tree/docs/start.ipynb" in makefile
    readme = (root / "README.md").read_text(encoding="utf-8")
    assert "urlpath=lab/tree/docs/start.ipynb" in readme and "docs/colab.ipynb" in readme


def test_a_course_is_seven_sessions_on_the_notebooks_there_are(root: Path):
    text = (root / "docs" / "teaching.md").read_text(encoding="utf-8")
    sessions = re.split(r"^## (?=\d · )", text, flags=re.MULTILINE)[1:]
    assert len(sessions) == 7
    for number, session in enumerate(sessions, 1):
        assert f"../notebooks/0{number}_" in session
        for part in ("**Goals.**", "**Reading.**", "**Notebook.**", "**Discussion.**", "**What students get wrong.**"):
            assert part in session, f"session {number} lacks {part}"
        assert "KNOWN_DIFFERENCES.md#" in session or "results/ruler/" in session or "audit" in session


def test_the_commands_of_the_course_are_good_params(root: Path):
    """Files and keys that its table of laptops names."""
    text = (root / "docs" / "teaching.md").read_text(encoding="utf-8")
    for file in set(re.findall(r"params/\w+\.yaml", text)):
        given = yaml.safe_load((root / file).read_text(encoding="utf-8"))
        assert set(re.findall(r"--set '?(\w+)=", text)) <= set(given)
