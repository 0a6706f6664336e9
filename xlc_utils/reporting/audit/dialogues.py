"""What the audit needs from the text and the parameters of paper B's released dialogues, measured once and kept.

    python -m xlc_utils.reporting.audit.dialogues FOLDER

FOLDER holds the released files; `xlc_utils.judges.released.fetch` downloads them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from xlc_utils.judges.dialogues import read_options
from xlc_utils.judges.released import (
    PARAMETERS,
    WITH_DRAWS,
    Dialogue,
    draws,
    read_annotated,
    read_dialogues,
    verify,
)
from xlc_utils.registry.problems import Problem

FILE = Path(__file__).parent / "dialogue_numbers.csv"
USAGE = "usage: python -m xlc_utils.reporting.audit.dialogues FOLDER   (FOLDER holds the released files)"

#: A generator of which the release has all 120 draws in fi, hu and en, in the same order.
FULL_LIST = "Llama3-70B"
FOLDS = 10


@lru_cache
def numbers() -> pd.Series:
    """The kept numbers by quantity, language and category ("" where it is of no category)."""
    table = pd.read_csv(FILE, keep_default_na=False)
    return table.set_index(["quantity", "language", "category"])["value"]


def measure(folder: str | Path | None = None) -> pd.DataFrame:
    """Everything in `FILE`, from the dialogues.

    A label is predicted from tf-idf weights of the words of a dialogue's messages by a linear support vector machine,
    in ten folds; dialogues of one draw of parameters are in the same fold, so that none is predicted from another
    generator's dialogue of the same draw.

    Args:
        folder: that of the release; None for judge-stability in the one XLC_DATA names.

    Returns:
        quantity, language, category, value (shares rounded to 4 decimals).
    """
    dialogues, annotated = read_dialogues(folder), read_annotated(folder)
    drawn = pd.Series(draws(dialogues), dtype="Int64")
    rows = list(_counts(dialogues, annotated))
    for language in WITH_DRAWS:
        chosen = [i for i, dialogue in enumerate(dialogues) if dialogue.language == language]
        rows += _recovery([dialogues[i] for i in chosen], drawn.iloc[chosen].to_numpy(int), language)
    rows += _drawn_options(dialogues)
    return pd.DataFrame(rows, columns=["quantity", "language", "category", "value"])


def _counts(dialogues: Sequence[Dialogue], annotated: Sequence[Dialogue]) -> Iterator[tuple[str, str, str, float]]:
    yield "dialogues with placeholders", "et", "", sum(d.has_placeholders for d in dialogues if d.language == "et")
    yield "annotated dialogues", "et", "", len(annotated)
    yield "generators of annotated dialogues", "et", "", len({d.model for d in annotated})
    for language in WITH_DRAWS:
        known = {_parameters(d) for d in dialogues if d.language == language}
        yield "annotated dialogues among the draws", language, "", sum(_parameters(d) in known for d in annotated)


def _drawn_options(dialogues: Sequence[Dialogue]) -> Iterator[tuple[str, str, str, float]]:
    """In how many of the 120 draws each option of Table 5 is; the same in the three languages that have draws."""
    full = [d for d in dialogues if d.model == FULL_LIST and d.language == WITH_DRAWS[0]]
    for name, options in read_options().labels.items():
        for option in options:
            yield f"draws by {name}", "", option, sum(d.parameters[name] == option for d in full)


def _parameters(dialogue: Dialogue) -> tuple:
    return tuple(dialogue.parameters[name] for name in PARAMETERS)


def _recovery(dialogues: Sequence[Dialogue], drawn: np.ndarray, language: str) -> Iterator[tuple[str, str, str, float]]:
    """Accuracies of one language's dialogues, each label's truth joined by dialogue or taken by position in a list."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.model_selection import GroupKFold, cross_val_predict
    from sklearn.svm import LinearSVC

    texts = [" ".join(turn.text for turn in dialogue.turns) for dialogue in dialogues]
    words = TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform(texts)
    full = [dialogue for dialogue in dialogues if dialogue.model == FULL_LIST]
    for name in PARAMETERS:
        truth = np.array([dialogue.parameters[name] for dialogue in dialogues])
        at_position = np.array([full[dialogue.index].parameters[name] for dialogue in dialogues])
        said = cross_val_predict(LinearSVC(random_state=0), words, truth, cv=GroupKFold(FOLDS), groups=drawn)
        yield "labels", language, name, len(set(truth))
        yield "share of the commonest label", language, name, _share(truth == pd.Series(truth).mode()[0])
        yield "words joined", language, name, _share(said == truth)
        yield "words by position", language, name, _share(said == at_position)
        yield "all right by position", language, name, _share(truth == at_position)


def _share(right: np.ndarray) -> float:
    return round(float(right.mean()), 4)


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(USAGE, file=sys.stderr)
        return 2
    try:
        verify(arguments[0])
        measure(arguments[0]).to_csv(FILE, index=False, lineterminator="\n")
    except Problem as problem:
        print(problem, file=sys.stderr)
        return 2
    print(FILE)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
