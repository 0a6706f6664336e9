"""How many known texts come out of a sentence splitter exactly as a reader would cut them.

The texts are in params/known_answers/sentences. Of each language one half is for choosing its splitter, the other for
measuring. `python -m xlc_utils.text.accuracy` makes data/accuracy.csv, for which it needs the extra `split`.
"""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import pandas as pd

from xlc_utils.registry import languages
from xlc_utils.registry.files import StrictModel, parse, project_root, read_yaml, shown
from xlc_utils.registry.languages import Language
from xlc_utils.registry.problems import Problem
from xlc_utils.text import splitters
from xlc_utils.text.documents import pieces
from xlc_utils.text.sentences import PAPER_DEFAULT, Split, mended, splitter

COMMITTED = Path(__file__).parent / "data" / "accuracy.csv"
COLUMNS = ["language", "splitter", "tool", "version", "choosing", "held_out", "exact", "texts"]
# What `best` may choose from; of equals the first. Those that need the extra `split` are measured beside them.
LIGHT = ("sentencex", "stops")
_PACKAGE = {
    "sentencex": "sentencex", "yasbd": "yasbd-lib", "indicnlp": "indic-nlp-library", "underthesea": "underthesea",
    "spacy-sentencizer": "spacy",
}  # fmt: skip
_SENTENCE = re.compile(r"\[([^\[\]]+)\]")


class KnownSentences(StrictModel):
    """One file of params/known_answers/sentences: texts by what is difficult in them, sentences in square brackets."""

    choosing: dict[str, str]
    held_out: dict[str, str]


def has_known(root: Path, language: str) -> bool:
    """Whether there are known sentences of a language: a new one may have none yet."""
    return _path(root, language).exists()


def known(root: Path, language: str) -> KnownSentences:
    """The known sentences of a language.

    Raises:
        Problem: there is no such file, or the brackets of a text do not pair.
    """
    path = _path(root, language)
    found = parse(KnownSentences, read_yaml(path), shown(path))
    for name, text in {**found.choosing, **found.held_out}.items():
        if not _SENTENCE.search(text) or re.search(r"[\[\]]", _SENTENCE.sub("", text)):
            raise Problem(f"{shown(path)}: key `{name}`", "its square brackets do not pair", "put each sentence in []")
    return found


def _path(root: Path, language: str) -> Path:
    return root / "params" / "known_answers" / "sentences" / f"{language}.yaml"


def is_exact(marked: str, split: Split) -> bool:
    """Whether a text is taken apart into just the sentences in its square brackets."""
    found = pieces(re.sub(r"[\[\]]", "", marked), split)
    return [p.text for p in found if p.translate] == _SENTENCE.findall(marked)


def measured(texts: KnownSentences, split: Split) -> dict[str, int]:
    """Texts that come out exactly: of the choosing half, the held-out half and all, and how many there are."""
    halves = {
        half: sum(is_exact(text, split) for text in getattr(texts, half).values()) for half in ("choosing", "held_out")
    }
    return {**halves, "exact": sum(halves.values()), "texts": len(texts.choosing) + len(texts.held_out)}


def best_policy(root: Path) -> pd.DataFrame:
    """The policy `best`, measured now: one row a language that has known sentences, the columns of COLUMNS."""
    with_texts = [x for x in languages.load(root).values() if has_known(root, x.code)]
    rows = [_row(root, x, "best", x.splitter.best, splitter(x.code)) for x in with_texts]
    return pd.DataFrame(rows, columns=COLUMNS)


def committed() -> pd.DataFrame:
    """The table as last made: `best`, `paper`, and each splitter there is for a language, mended as `best` is."""
    return pd.read_csv(COMMITTED)


def chosen(table: pd.DataFrame, language: str) -> str:
    """The splitter `best` should be: of the light ones, that with most exact texts of the choosing half."""
    rows = table[table["language"] == language].set_index("splitter")["choosing"]
    return max(LIGHT, key=lambda tool: rows[tool])  # the first of equals


def table(root: Path) -> pd.DataFrame:
    """All policies and splitters on all languages.

    Raises:
        Problem: a package of the extra `split` is not installed.
    """
    import yasbd

    known_languages = languages.load(root)
    heavy = {
        "yasbd": yasbd.get_supported_langs(),
        "indicnlp": [code for code, x in known_languages.items() if x.splitter.paper == "indicnlp"],
        "underthesea": ["vi"],
        "spacy-sentencizer": list(known_languages),
    }
    rows = []
    for x in known_languages.values():
        paper = x.splitter.paper or PAPER_DEFAULT
        if paper == "urduhack" or (paper == "spacy" and splitters.trained_pipeline(x.code) is None):
            paper = PAPER_DEFAULT
        rows.append(_row(root, x, "best", x.splitter.best, splitter(x.code)))
        rows.append(_row(root, x, "paper", paper, splitter(x.code, "paper")))
        for tool in (*LIGHT, *(tool for tool, codes in heavy.items() if x.code in codes)):
            rows.append(_row(root, x, tool, tool, mended(splitters.SPLITTERS[tool](x.code), x)))
    return pd.DataFrame(rows, columns=COLUMNS)


def _row(root: Path, language: Language, name: str, tool: str, split: Split) -> dict[str, object]:
    version = metadata.version(_PACKAGE[tool]) if tool in _PACKAGE else ""
    counts = measured(known(root, language.code), split)
    return {"language": language.code, "splitter": name, "tool": tool, "version": version, **counts}


if __name__ == "__main__":
    made = table(project_root())
    made.to_csv(COMMITTED, index=False, lineterminator="\n")
    print(made.groupby("splitter")[["choosing", "held_out", "exact", "texts"]].sum())
