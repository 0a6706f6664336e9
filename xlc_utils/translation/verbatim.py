"""Code inside a sentence: it goes through translation as a short name and comes back as it was."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from xlc_utils.translation.bold import translate_with_bold
from xlc_utils.translation.translators import Translation, Translator

_CODE = re.compile(r"(?<!`)(`+)(?!`)(?:.+?)(?<!`)\1(?!`)", re.DOTALL)


def masked(sentence: str) -> tuple[str, dict[str, str]]:
    """A sentence with X1, X2, … in place of its code, and what each name stands for; names it has itself are left out.

    Translators copy such names nearly always, and code hardly ever.
    """
    names: dict[str, str] = {}
    free = (name for number in count(1) if (name := f"X{number}") not in sentence)

    def hide(code: re.Match) -> str:
        name = next(free)
        names[name] = code[0]
        return name

    return _CODE.sub(hide, sentence), names


def restored(text: str, names: dict[str, str]) -> str | None:
    """A translation with its code back in place; None if a name is not there exactly once."""
    if not names:
        return text
    pattern = re.compile(rf"(?:{'|'.join(names)})(?!\d)")
    if sorted(pattern.findall(text)) != sorted(names):
        return None
    return pattern.sub(lambda name: names[name[0]], text)


def translate_around_code(
    translator: Translator, sentences: Sequence[str], source: str, target: str
) -> list[Translation]:
    """Sentences translated with the code in them untouched.

    A sentence whose translation lost a name, or has it twice, is translated again as it stands, and its detail says so.
    """
    hidden = [masked(sentence) for sentence in sentences]
    found = translate_with_bold(translator, [text for text, _ in hidden], source, target)
    lost = []
    for i, (_, names) in enumerate(hidden):
        back = restored(found[i].text, names)
        if back is None:
            lost.append(i)
        else:
            found[i] = replace(found[i], text=back)
    again = translate_with_bold(translator, [sentences[i] for i in lost], source, target) if lost else []
    for i, translation in zip(lost, again, strict=True):
        rejected = (*found[i].rejected, found[i].text, *translation.rejected)
        detail = "; ".join(filter(None, [translation.detail, "its code went through the translator"]))
        found[i] = replace(translation, rejected=rejected, detail=detail)
    return found
