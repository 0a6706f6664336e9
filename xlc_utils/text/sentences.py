"""Sentences of one line of running text.

NLLB gets worse with length (paper A, appendix "Translation Related"), so answers are translated sentence by sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import accumulate, pairwise

_SPACE = re.compile(r"\s")
# sentencex does not cut before a digit or a Latin letter: 「…です。1909年…」. What closes a sentence stays with it.
_IDEOGRAPHIC_STOP = re.compile(r"(?<=。)(?![。」』）)”’*_\s])")


def splitter(language: str) -> Callable[[str], list[str]]:
    """A function that cuts running text of this language into sentences which join to the text again."""
    from sentencex import segment

    def split(text: str) -> list[str]:
        # With other white space than a blank, such as French puts before "!", sentencex may panic (1.0.32: "A\xa0.").
        ends = accumulate((len(part) for part in segment(language, _SPACE.sub(" ", text))), initial=0)
        parts = (text[start:end] for start, end in pairwise(ends))
        return [sentence for part in parts for sentence in _IDEOGRAPHIC_STOP.split(part) if sentence]

    return split
