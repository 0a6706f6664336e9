"""Which prompts a run asks, and where their text comes from: params/prompts, or EPITOME's posts, which are not kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from xlc_utils.registry import prompts
from xlc_utils.registry.problems import Problem
from xlc_utils.registry.prompts import Dimension

#: Mean length of the hundred posts, for a plan made without them.
POST_CHARACTERS = 185


@dataclass(frozen=True)
class Prompts:
    """The prompts of one dimension.

    Attributes:
        ids: in the order they are asked in.
        english: texts by id, those that are not asked among them.
        written: the texts that a language has, by id; the others are translated from English.
        private: their text may not be passed on: it goes to models and into no file of the run.
    """

    ids: list[str]
    english: dict[str, str]
    written: Callable[[str], dict[str, str]]
    private: bool = False


def prompts_of(root: Path, params, dimension: Dimension, where: str, read: bool = True) -> Prompts:
    """What `information_prompts` or `empathy_prompts` asks for.

    Args:
        root: the project folder.
        params: of the run.
        dimension: information or empathy.
        where: the params file, for messages.
        read: False to leave EPITOME alone: texts of its mean length stand for the posts.

    Raises:
        Problem: an unknown id, more prompts than there are, or EPITOME is not at hand.
    """
    wanted = getattr(params, f"{dimension}_prompts")
    if dimension == "empathy" and params.empathy_prompt_source == "epitome":
        if not isinstance(wanted, int):
            what = "EPITOME's posts cannot be named"
            raise Problem(f"{where}: key `empathy_prompts`", what, "write how many are to be drawn (paper A: 100)")
        texts = _posts(wanted) if read else [" " * POST_CHARACTERS] * wanted
        english = {f"epitome-{i:03}": text for i, text in enumerate(texts, 1)}
        return Prompts(list(english), english, lambda language: english if language == "en" else {}, private=True)
    ids = prompts.selection(root, dimension, wanted, where)
    return Prompts(ids, prompts.prompts(root, dimension, "en"), lambda code: prompts.written(root, dimension, code))


def _posts(n: int) -> list[str]:
    """Seeker posts of the test part of the split that the shipped classifier did not learn from (paper A, "Choice of
    Evaluation Prompts"); the same ones whenever n is."""
    from xlc_utils.empathy import epitome

    epitome.verify()
    pairs = epitome.read()
    return list(epitome.evaluation_prompts(pairs, epitome.split(pairs, epitome.SPLIT), n)["seeker"])
