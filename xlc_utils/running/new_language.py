"""`xlc language new`: a language file filled from what libraries know, with the questions that a person answers."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import langcodes

from xlc_utils.registry import languages, scripts
from xlc_utils.registry.files import nearest, parse, shown
from xlc_utils.registry.gaps import Gap, gaps
from xlc_utils.registry.languages import NLLB_CODES, SCRIPTS, Language, canonical, primary
from xlc_utils.registry.problems import Problem

_TEMPLATE = """\
# The keys are explained in xlc_utils/registry/languages.py. Filled from Unicode's CLDR, ISO 639 and the lists of
# NLLB-200 and py3langid; lines that end in a question are for a person to decide.
code: {code}
name: {name}
autonym: {autonym}{ask_autonym}
nllb: {nllb}{ask_nllb}
iso639_3: {iso639_3}
glottocode: null  # glottolog.org?
script: {script}{ask_script}
direction: {direction}
terminators: {terminators}  # do its writers end sentences with these?
digits: {digits}{ask_digits}
paper_a: {{script_group: null, family: null}}  # stays so: the groups are those of paper A's 30 languages
glottolog_family: null  # the top-level family on glottolog.org?
glottolog_branch: null  # and the branch of it that is commonly named?
splitter:
  paper: null
  best: sentencex  # does `xlc language check` find the known sentences whole? If not, try stops
  ordinals: false  # does a full stop make an ordinal of a number, as in German "3. Oktober"?
  abbreviations: []  # which are common that end in a full stop? In small letters, without the last one
off_target: {{langid: {langid}, near: []}}  # which labels of py3langid are accepted beside its own?
lemmatiser: {lemmatiser}
stopwords: null  # for paper B's lexical diversity: params/stopwords/{code_plain}.txt?
font: {font}
incomplete: true
gaps: [{gaps}]
"""


def standard(code: str) -> str:
    """The key under which a language is stored, of a code as a person may write it.

    Raises:
        Problem: a part of it is not in its standard; with the nearest that is.
    """
    where = f"language code `{code}`"
    try:
        tag = langcodes.Language.get(code)
    except langcodes.LanguageTagError:
        raise Problem(where, "it is no language tag of BCP 47", _named(code)) from None
    if not tag.language or not langcodes.Language.make(language=tag.language).is_valid():
        raise Problem(where, f"`{tag.language}` is no language of ISO 639, which BCP 47 takes them from", _named(code))
    if tag.script and not langcodes.Language.make(script=tag.script).is_valid():
        near = nearest(tag.script, SCRIPTS)
        remedy = f"perhaps `{near}` is meant" if near else "write one of four letters, such as Latn"
        raise Problem(where, f"`{tag.script}` is no script of ISO 15924", remedy)
    if not tag.is_valid():
        what = f"`{code.partition('-')[2]}` is no region of ISO 3166 nor another subtag of BCP 47"
        raise Problem(where, what, f"write `{primary(canonical(code))}`, or such as `pt-BR`")
    return canonical(langcodes.standardize_tag(code))


def _named(code: str) -> str:
    """The remedy for what is no code: the language of that name or of the code most like it."""
    codes = {langcodes.standardize_tag(c[:3], macro=True) for c in NLLB_CODES}
    names = {langcodes.get(c).display_name(): c for c in codes}
    near = nearest(code, names) or nearest(code, codes)
    if near is None:
        return "write a code of ISO 639, of two letters where there is one, such as `sw`"
    found = names.get(near, near)
    return f"perhaps `{found}` ({langcodes.get(found).display_name()}) is meant"


def create(root: Path, code: str) -> tuple[Path, list[Gap]]:
    """Writes params/languages/<code>.yaml.

    Returns:
        The file, and what the language lacks.

    Raises:
        Problem: the code is in no standard; the language has a file already; its script is none of NLLB's.
    """
    code = standard(code)
    known = languages.files(root)
    if code in known:
        raise Problem(shown(known[code]), "the language has this file already", f"run `xlc language check {code}`")
    path = root / "params" / "languages" / f"{code}.yaml"
    text, language = _filled(root, code, shown(path))
    with path.open("x", encoding="utf-8", newline="\n") as file:
        file.write(text)
    return path, gaps(root, language)


def _filled(root: Path, code: str, where: str) -> tuple[str, Language]:
    """The text of the file, and what it reads as."""
    import yaml

    values = _values(code, where)
    draft = parse(Language, yaml.safe_load(_TEMPLATE.format(**values, gaps="all")), where)
    text = _TEMPLATE.format(**values, gaps=", ".join(gap.part for gap in gaps(root, draft)))
    return text, parse(Language, yaml.safe_load(text), where)


def _values(code: str, where: str) -> dict[str, str]:
    tag = langcodes.get(code)
    script = str(tag.maximize().script)
    if script not in SCRIPTS:
        raise Problem(where, f"its script {script} is none of NLLB's", f"write `{primary(code)}-Latn`, say")
    name, autonym = tag.display_name(), tag.autonym()
    nllb, ask_nllb = _nllb(code, script)
    digits = scripts.digits(script)
    others = ", ".join(digits[1:])
    return {
        "code": _quoted(code),
        "code_plain": code,
        "name": _quoted(name),
        "autonym": _quoted(autonym),
        "ask_autonym": "  # is this its own name for itself?" if autonym == name else "",
        "nllb": nllb,
        "ask_nllb": ask_nllb,
        "iso639_3": tag.to_alpha3(),
        "script": script,
        "ask_script": "" if tag.script else "  # the likely one; another is written as in sr-Latn",
        "direction": scripts.direction(script),
        "terminators": _quoted(scripts.terminators(script)),
        "digits": _quoted(digits[0]) if digits else "null",
        "ask_digits": f"  # or {others}?" if others else "",
        "langid": _label(code),
        "lemmatiser": "simplemma" if known_to_simplemma(code) else "null",
        "font": scripts.font(script),
    }


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # what JSON quotes, YAML reads


def _nllb(code: str, script: str) -> tuple[str, str]:
    """NLLB's code for a language in a script, or null; and the question it leaves."""
    script = {"Kore": "Hang"}.get(script, script)
    found = nllb_codes(code)
    fitting = [c for c in found if c[4:] == script]
    if fitting:
        return fitting[0], f"  # or {', '.join(fitting[1:])}?" if fitting[1:] else ""
    return (
        "null",
        f"  # NLLB has it as {', '.join(found)}: another script" if found else "  # not among NLLB's languages",
    )


def nllb_codes(code: str) -> list[str]:
    """NLLB's codes of a language in any script: its own first, then those of languages that a macrolanguage covers."""
    wanted = primary(code)
    own, is_macro = langcodes.get(wanted).to_alpha3(), langcodes.standardize_tag(wanted, macro=True) == wanted

    def rank(nllb: str) -> int | None:
        simplest = langcodes.standardize_tag(nllb[:3])
        if simplest == code:  # also Dari: prs is fa-AF
            return 0
        if own == nllb[:3] or simplest == wanted:
            return 1
        return 2 if is_macro and langcodes.standardize_tag(nllb[:3], macro=True) == wanted else None

    ranks = {nllb: rank(nllb) for nllb in sorted(NLLB_CODES)}
    return sorted((nllb for nllb in ranks if ranks[nllb] is not None), key=ranks.__getitem__)


def _label(code: str) -> str:
    """py3langid's label of a language, or null. It calls Norwegian Bokmål `no`."""
    label = {"nb": "no"}.get(primary(code), primary(code))
    return _quoted(label) if label in labels() else "null"


@cache
def labels() -> frozenset[str]:
    """The labels of py3langid."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return frozenset(map(str, LanguageIdentifier.from_model_file(MODEL_FILE).nb_classes))


def known_to_simplemma(code: str) -> bool:
    """Whether simplemma has the words of a language."""
    from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES

    return primary(code) in SUPPORTED_LANGUAGES


def told(found: Iterable[Gap]) -> str:
    """What is lacking, a line each with its remedy."""
    return "\n".join(f"missing  {gap.part}: {gap.what}; {gap.remedy}" for gap in found)
