"""`xlc language check`: everything about a language that can be checked, a line each: OK, missing or wrong."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import langcodes
import regex

from xlc_utils.chat.offtarget import MIN_LETTERS
from xlc_utils.registry import languages, models, prompts, reviews, scripts
from xlc_utils.registry.gaps import PARTS, gaps, of_the_file
from xlc_utils.registry.languages import Language, primary
from xlc_utils.registry.problems import Problem
from xlc_utils.running.new_language import known_to_simplemma, nllb_codes, standard
from xlc_utils.running.params import translates
from xlc_utils.text import accuracy
from xlc_utils.text.sentences import mended
from xlc_utils.text.splitters import SPLITTERS

#: Share of a language's own texts that its detector has to know.
DETECTED = 0.9
#: Share of its known texts that its splitter has to take apart exactly.
SPLIT = 0.5
_CLOSING = "”’»\"')）」』›*_"
_MARKS = regex.compile(r"[\p{Sentence_Terminal}--[.…]]", regex.V1)
_MODULES = {
    "nllb": "transformers", "nllb_ctranslate2": "ctranslate2", "firefox": "fxtranslate",
    "firefox_releases": "fxtranslate",
}  # fmt: skip


@dataclass(frozen=True)
class Line:
    """One check. What is missing may be added some day; what is wrong makes results wrong."""

    state: Literal["OK", "missing", "wrong"]
    part: str
    what: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.state:8} {self.part}: {self.what}" + (f"; {self.remedy}" if self.remedy else "")


def checks(root: Path, code: str) -> Iterator[Line]:
    """All checks of one language, in the order in which a person would mend them.

    Raises:
        Problem: the language has no file, or one of its files cannot be read.
    """
    language = languages.read(root, code)
    yield _code(language)
    yield _script(language)
    yield _nllb(language)
    yield from _gaps(root, language)
    yield _splitter(root, language)
    yield _punctuation(root, language)
    yield _review(root, language)
    yield _glyphs(language)
    yield from _translators(root, language)
    yield from _paper_b(root, language)
    yield _detector(root, language)


def table(root: Path) -> list[tuple[str, str, list[Line]]]:
    """(code, English name, checks) of every registered language."""
    return [(code, language.name, list(checks(root, code))) for code, language in languages.load(root).items()]


def summary(rows: list[tuple[str, str, list[Line]]]) -> str:
    """A line a language: how many checks are OK, and which are not."""
    lines = [f"{'':8} {'language':12} {'OK':>3} {'missing':>8} {'wrong':>6}"]
    for code, name, found in rows:
        n = Counter(line.state for line in found)
        wrong = ", ".join(line.part for line in found if line.state == "wrong")
        lines.append(f"{code:8} {name:12} {n['OK']:3} {n['missing']:8} {n['wrong']:6}  {wrong}".rstrip())
    often = Counter(line.part for *_, found in rows for line in found if line.state == "missing")
    lines += ["", "Missing, by how many languages lack it:", *(f"{n:4} {part}" for part, n in often.most_common())]
    return "\n".join(lines)


# ---- the code and the script ---------------------------------------------------------------------------------------
def _code(language: Language) -> Line:
    try:
        key = standard(language.code)
    except Problem as problem:
        return Line("wrong", "code", problem.what, problem.remedy)
    if key != language.code:
        return Line("wrong", "code", f"BCP 47 writes {language.code!r} as {key!r}", f"rename the file to {key}.yaml")
    iso = langcodes.get(key).to_alpha3()
    if iso != language.iso639_3:
        return Line("wrong", "code", f"{key} is {iso} in ISO 639-3, not {language.iso639_3}", f"write iso639_3: {iso}")
    return Line("OK", "code", f"{key} is BCP 47, {iso} is ISO 639-3")


def _script(language: Language) -> Line:
    tag, name = langcodes.get(language.code), langcodes.Language.make(script=language.script).script_name()
    if language.script != (likely := str(tag.maximize().script)):
        remedy = f"write script: {likely}, or name the script in the code as in sr-Latn"
        return Line("wrong", "script", f"of {language.code} it is {likely} and not {language.script}", remedy)
    if language.direction != (way := scripts.direction(language.script)):
        return Line("wrong", "script", f"{name} is written {way}", f"write direction: {way}")
    own = regex.compile(rf"\p{{Scx={scripts.in_unicode(language.script)}}}|\p{{Scx=Hani}}")
    if strange := [c for c in language.autonym if c.isalpha() and not own.match(c)]:
        what = f"the autonym {language.autonym} is not written in it ({strange[0]})"
        return Line("wrong", "script", what, "write the language's name in its own script")
    if language.digits is not None and language.digits not in scripts.digits(language.script):
        remedy = " or ".join(["null", *scripts.digits(language.script)])
        return Line("wrong", "script", f"{language.digits} are not its ten digits in order", f"write digits: {remedy}")
    return Line("OK", "script", f"{language.script} ({name}) is ISO 15924, written {language.direction}")


def _nllb(language: Language) -> Line:
    known = nllb_codes(language.code)
    if language.nllb is None:
        gap = next(gap for gap in of_the_file(language) if gap.part == "NLLB")
        return Line("missing", gap.part, gap.what, gap.remedy)
    if language.nllb not in known:
        what = f"{language.nllb} is another language"
        return Line("wrong", "NLLB", what, f"write {' or '.join(known)}" if known else "write nllb: null")
    script = {"Kore": "Hang"}.get(language.script, language.script)
    if language.nllb[4:] != script:
        return Line("wrong", "NLLB", f"{language.nllb} is not in the script {script}", "write the one that is, or null")
    return Line("OK", "NLLB", f"{language.nllb} is among its 202 codes")


# ---- what there is of it -------------------------------------------------------------------------------------------
def _gaps(root: Path, language: Language) -> Iterator[Line]:
    """A line for each part that the complete languages have, and one for whether the file says what is lacking."""
    lacking = {gap.part: gap for gap in gaps(root, language)}
    for part in (part for part in PARTS if part not in ("NLLB", "detector")):
        gap = lacking.get(part)
        yield Line("missing", part, gap.what, gap.remedy) if gap else Line("OK", part, "complete")
    named = "[" + ", ".join(lacking) + "]"
    if list(language.gaps) == list(lacking):
        yield Line("OK", "gaps", f"incomplete, and says so: {named}" if lacking else "none, and none named")
    else:
        remedy = f"write incomplete: true and gaps: {named}" if lacking else "take `incomplete` and `gaps` out"
        yield Line("wrong", "gaps", f"the file names [{', '.join(language.gaps)}]", remedy)


def _review(root: Path, language: Language) -> Line:
    part, todo = "native review", reviews.unreviewed(root, language.code)
    if not reviews.text_files(root, language.code):
        return Line("missing", part, "there are no texts to review", "write them first")
    if changed := [f"{name} {state}" for name, state in todo.items() if state.startswith("changed")]:
        return Line("wrong", part, changed[0], f"have it read again, then `xlc language review {language.code}`")
    if todo:
        return Line(
            "missing", part, f"{len(todo)} files are not reviewed", f"`xlc language review {language.code} --by ROLE`"
        )
    last = max(reviews.reviews(root, language.code), key=lambda review: review.when)
    return Line("OK", part, f"by {last.by} on {last.when}, nothing changed since")


# ---- texts ---------------------------------------------------------------------------------------------------------
def texts(root: Path, code: str) -> dict[str, str]:
    """Prompts, known answers and known sentences of a language, by where they stand."""
    found = {f"{d} prompt {i}": t for d in prompts.DIMENSIONS for i, t in prompts.written(root, d, code).items()}
    found |= {f"known answer {i}": t for (_, i), t in prompts.known_texts(root, [code]).items()}
    if accuracy.has_known(root, code):
        known = accuracy.known(root, code)
        found |= {f"sentences {i}": t for i, t in {**known.choosing, **known.held_out}.items()}
    return found


def _splitter(root: Path, language: Language) -> Line:
    """The splitter of the policy `best` on the language's known sentences."""
    name = language.splitter.best
    if not accuracy.has_known(root, language.code):
        return Line("missing", "splitter", f"there are no known sentences to try {name} on", "write some")
    known = accuracy.known(root, language.code)
    try:
        found = accuracy.measured(known, mended(SPLITTERS[name](primary(language.code)), language))
    except Problem as problem:  # a package of the extra `split` that is not installed
        return Line("missing", "splitter", problem.what, problem.remedy)
    what = f"{name} leaves {found['exact']} of {found['texts']} known texts as a reader would cut them"
    if found["exact"] < SPLIT * found["texts"]:
        return Line(
            "wrong", "splitter", what, "add its abbreviations, try another, or translate its answers by the line"
        )
    return Line("OK", "splitter", what)


def _punctuation(root: Path, language: Language) -> Line:
    """Marks of another script, which a keyboard or a translator leaves: ? in Arabic, a full stop in Hindi."""
    part = "punctuation"
    asked = {where: text for where, text in texts(root, language.code).items() if " prompt " in where}
    if not asked:
        return Line("missing", part, "there are no prompts to look at", "write them")
    comma = scripts.COMMAS.get(language.script)
    for where, text in asked.items():
        strange = [mark for mark in _MARKS.findall(text) if mark not in language.terminators]
        if language.terminators and (last := text.rstrip(_CLOSING)[-1:]) not in language.terminators + "…":
            strange.append(last)
        if comma and regex.search(r",(?!\p{Nd})", text):
            strange.append(",")
        if strange:
            remedy = f"end its sentences in {' '.join(language.terminators)}"
            remedy += f", write its comma {comma}" if comma else ""
            return Line("wrong", part, f"{where} has {strange[0]!r}", remedy)
    return Line("OK", part, f"{len(asked)} prompts end in {' '.join(language.terminators) or 'no mark'}")


# ---- the detector --------------------------------------------------------------------------------------------------
@cache
def _label(text: str) -> str | None:
    """py3langid's label; None for what is too short to tell, as in a run."""
    import py3langid

    return py3langid.classify(text)[0] if sum(c.isalpha() for c in text) >= MIN_LETTERS else None


def _labels(root: Path, code: str) -> Counter[str]:
    return Counter(filter(None, map(_label, texts(root, code).values())))


def _detector(root: Path, language: Language) -> Line:
    """Whether it knows the language's own texts, and takes no other registered language's for them."""
    part, own = "detector", _labels(root, language.code)
    label, accepted = language.off_target.langid, {language.off_target.langid, *language.off_target.near}
    seen = ", ".join(f"{name} {n}" for name, n in own.most_common(4)) or "none"
    if label is None:
        what = f"py3langid has no label for it; it calls its texts: {seen}"
        return Line("missing", part, what, "read a sample of the answers")
    if not own:
        return Line("missing", part, f"there are no texts to try {label!r} on", "write prompts")
    others = [x for x in languages.load(root).values() if x.code != language.code and not _told_by_script(x, language)]
    for other in others:
        if other.off_target.langid in accepted:
            what = f"it cannot be told from {other.name}: both are {other.off_target.langid!r} to py3langid"
            return Line("wrong", part, what, "do not run the two together, or read a sample of the answers")
    share = sum(n for name, n in own.items() if name in accepted) / own.total()
    if share < DETECTED:
        what = f"it knows {share:.0%} of {own.total()} texts as {label!r}; labels: {seen}"
        return Line("wrong", part, what, "add the neighbours that readers would accept to off_target.near")
    taken = {other.code: n for other in others if (n := sum(_labels(root, other.code)[name] for name in accepted))}
    if taken:
        what = "it takes for it texts in " + ", ".join(f"{other} ({n})" for other, n in taken.items())
        return Line("wrong", part, what, "take the label out of off_target.near")
    return Line("OK", part, f"it knows {share:.0%} of {own.total()} texts, and none of another language's as {label!r}")


def _told_by_script(one: Language, other: Language) -> bool:
    """Whether two keys of one label are told apart by their scripts, as Serbian in Latin and in Cyrillic."""
    same = one.off_target.langid == other.off_target.langid
    return same and scripts.in_unicode(one.script) != scripts.in_unicode(other.script)


# ---- translators ---------------------------------------------------------------------------------------------------
def _translators(root: Path, language: Language) -> Iterator[Line]:
    if language.code == "en":
        return
    entries = models.load(root).translators
    for part, source, target in (
        ("translator into English", language.code, "en"),
        ("translator from English", "en", language.code),
    ):
        able = [name for name, entry in entries.items() if translates(entry, root, source, target)]
        here = [name for name in able if _installed(entries[name].backend)]
        if here:
            yield Line("OK", part, ", ".join(here))
        elif able:
            remedy = 'run `python -m pip install -e ".[translate]"`'
            yield Line("missing", part, f"none is installed of {', '.join(able)}", remedy)
        else:
            remedy = "write `translation` examples in its shots file, or add one"
            yield Line("missing", part, "none of models.yaml knows it", remedy)


def _installed(backend: str) -> bool:
    return backend not in _MODULES or importlib.util.find_spec(_MODULES[backend]) is not None


# ---- figures and pages ---------------------------------------------------------------------------------------------
def _glyphs(language: Language) -> Line:
    """Figures name languages in English, in a font that comes with matplotlib; pages need the language's own."""
    part = "glyphs"
    of_figures = _characters(_dejavu(), 0)
    if lacking := [c for c in f"{language.name} ({language.code})" if ord(c) not in of_figures]:
        return Line(
            "wrong", part, f"DejaVu Sans, the font of the figures, lacks {lacking[0]!r}", "write the name without"
        )
    place = _families().get(language.font)
    if place is None:
        what = f"figures have all they need; {language.font}, for the pages, is not installed here"
        return Line("missing", part, what, "install the fonts of the Noto project, or trust the browser's")
    wanted = [c for c in language.autonym + (language.digits or "") if not c.isascii()]
    if lacking := [c for c in wanted if ord(c) not in _characters(*place)]:
        return Line("wrong", part, f"{language.font} lacks {lacking[0]!r}", "name a font that has the script")
    return Line("OK", part, f"DejaVu Sans has its name, {language.font} its script")


def _dejavu() -> str:
    from matplotlib import font_manager

    return font_manager.findfont("DejaVu Sans", fallback_to_default=False)


@cache
def _families() -> dict[str, tuple[str, int]]:
    """File and number in it of each installed font family."""
    from fontTools.ttLib import TTCollection, TTFont, TTLibError
    from matplotlib import font_manager

    found: dict[str, tuple[str, int]] = {}
    for path in sorted(font_manager.findSystemFonts()):
        try:
            fonts = TTCollection(path, lazy=True).fonts if path.endswith(".ttc") else [TTFont(path, lazy=True)]
        except TTLibError:  # a broken font of this machine is none
            continue
        for number, font in enumerate(fonts):
            found.setdefault(font["name"].getBestFamilyName() or "", (path, number))
    return found


@cache
def _characters(path: str, number: int) -> frozenset[int]:
    from fontTools.ttLib import TTFont

    return frozenset(TTFont(path, fontNumber=number, lazy=True).getBestCmap())


# ---- paper B -------------------------------------------------------------------------------------------------------
def _paper_b(root: Path, language: Language) -> Iterable[Line]:
    """What its lexical diversity needs. Only a run with the language in `dialogue_languages` asks for it."""
    stop = f"params/stopwords/{language.code}.txt"
    if (root / stop).is_file():
        yield Line("OK", "stop words", stop)
    else:
        what = "only a run with it in `dialogue_languages` needs them"
        yield Line("missing", "stop words", what, f"write {stop} as its neighbours are")
    if known_to_simplemma(language.code):
        yield Line("OK", "lemmatiser", "simplemma knows it")
    else:
        what = "simplemma does not know it, so its words stay as they are"
        yield Line("missing", "lemmatiser", what, "compare its lexical diversity with no other language's")
