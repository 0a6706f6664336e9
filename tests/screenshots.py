"""The pictures in docs/figures, from the run `demo`: `python tests/screenshots.py`, a part of `make docs`.

They show the demo's answers in three scripts (`xlc view demo` writes the page) and its rating sheets. Wants Chromium
and the run's own files, which `make demo` leaves beside the committed tables.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from headless_chromium import Chromium, installed

from xlc_utils.registry.files import project_root
from xlc_utils.registry.problems import Problem

LANGUAGES = ("hi", "ar", "ja")
RATED = "234"  # what is typed into the first items, so that a rated page is seen


def main() -> None:
    run, figures = project_root() / "results" / "demo", project_root() / "docs" / "figures"
    viewer = run / "viewer.html"
    if not installed():
        raise Problem(
            "docs/figures", "there is no Chromium to take its pictures", "install it, or leave them as they are"
        )
    if not viewer.is_file():
        raise Problem(str(viewer), "there is no such page", "make demo, then xlc view demo")
    with tempfile.TemporaryDirectory() as profile:
        browser = Chromium(Path(profile))
        try:
            for code in LANGUAGES:
                page = browser.open(
                    viewer, 1200, 900, fragment=f"#kind=information&prompt=astronomy-02&languages={code}"
                )
                page.until("document.querySelector('#list').childElementCount > 0")
                page.screenshot(figures / f"viewer_{code}.png")
                page = browser.open(run / "rating_sheets" / "fidelity" / f"{code}-1.html", 1200, 1150)
                for item, key in enumerate(RATED, 1):
                    page.js(f"document.getElementById('item-{item}').focus()")
                    page.press(key, f"Digit{key}")
                page.js("scrollTo(0, 0)")
                page.screenshot(figures / f"rating_page_{code}.png")
        finally:
            browser.close()


if __name__ == "__main__":
    try:
        main()
    except Problem as problem:
        sys.exit(str(problem))
