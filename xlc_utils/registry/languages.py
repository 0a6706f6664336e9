"""The languages: all that is known about each, one file a language in params/languages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from xlc_utils.registry.files import (
    Names,
    StrictModel,
    nearest,
    parse,
    project_root,
    read_yaml,
    shown,
    suggestion,
    wrong,
)
from xlc_utils.registry.problems import Problem

# ISO 639-1 codes of before 1989 that texts and tools still use, and `no`, which stands for Bokmål.
_OLD_CODES = {"iw": "he", "in": "id", "ji": "yi", "no": "nb"}

_NLLB_CODES = """
ace_Arab ace_Latn acm_Arab acq_Arab aeb_Arab afr_Latn ajp_Arab aka_Latn als_Latn amh_Ethi apc_Arab
arb_Arab ars_Arab ary_Arab arz_Arab asm_Beng ast_Latn awa_Deva ayr_Latn azb_Arab azj_Latn bak_Cyrl
bam_Latn ban_Latn bel_Cyrl bem_Latn ben_Beng bho_Deva bjn_Arab bjn_Latn bod_Tibt bos_Latn bug_Latn
bul_Cyrl cat_Latn ceb_Latn ces_Latn cjk_Latn ckb_Arab crh_Latn cym_Latn dan_Latn deu_Latn dik_Latn
dyu_Latn dzo_Tibt ell_Grek eng_Latn epo_Latn est_Latn eus_Latn ewe_Latn fao_Latn fij_Latn fin_Latn
fon_Latn fra_Latn fur_Latn fuv_Latn gaz_Latn gla_Latn gle_Latn glg_Latn grn_Latn guj_Gujr hat_Latn
hau_Latn heb_Hebr hin_Deva hne_Deva hrv_Latn hun_Latn hye_Armn ibo_Latn ilo_Latn ind_Latn isl_Latn
ita_Latn jav_Latn jpn_Jpan kab_Latn kac_Latn kam_Latn kan_Knda kas_Arab kas_Deva kat_Geor kaz_Cyrl
kbp_Latn kea_Latn khk_Cyrl khm_Khmr kik_Latn kin_Latn kir_Cyrl kmb_Latn kmr_Latn knc_Arab knc_Latn
kon_Latn kor_Hang lao_Laoo lij_Latn lim_Latn lin_Latn lit_Latn lmo_Latn ltg_Latn ltz_Latn lua_Latn
lug_Latn luo_Latn lus_Latn lvs_Latn mag_Deva mai_Deva mal_Mlym mar_Deva min_Latn mkd_Cyrl mlt_Latn
mni_Beng mos_Latn mri_Latn mya_Mymr nld_Latn nno_Latn nob_Latn npi_Deva nso_Latn nus_Latn nya_Latn
oci_Latn ory_Orya pag_Latn pan_Guru pap_Latn pbt_Arab pes_Arab plt_Latn pol_Latn por_Latn prs_Arab
quy_Latn ron_Latn run_Latn rus_Cyrl sag_Latn san_Deva sat_Beng scn_Latn shn_Mymr sin_Sinh slk_Latn
slv_Latn smo_Latn sna_Latn snd_Arab som_Latn sot_Latn spa_Latn srd_Latn srp_Cyrl ssw_Latn sun_Latn
swe_Latn swh_Latn szl_Latn tam_Taml taq_Latn taq_Tfng tat_Cyrl tel_Telu tgk_Cyrl tgl_Latn tha_Thai
tir_Ethi tpi_Latn tsn_Latn tso_Latn tuk_Latn tum_Latn tur_Latn twi_Latn tzm_Tfng uig_Arab ukr_Cyrl
umb_Latn urd_Arab uzn_Latn vec_Latn vie_Latn war_Latn wol_Latn xho_Latn ydd_Hebr yor_Latn yue_Hant
zho_Hans zho_Hant zsm_Latn zul_Latn
"""

#: The languages NLLB-200 translates, as its tokenizer names them (language of ISO 639-3, script of ISO 15924).
#: An unknown code raises nothing there: it silently becomes the unknown token.
NLLB_CODES = frozenset(_NLLB_CODES.split())

#: Scripts of those languages. Korean text is Kore (Hangul and Han) in ISO 15924; NLLB writes Hang.
SCRIPTS = frozenset(code[-4:] for code in NLLB_CODES) | {"Kore"}


class PaperA(StrictModel):
    """The groups paper A averages a language in (its appendix, the two tables of language groups).

    As printed: German and Dutch are under Rom (Romance), Persian under IA (Indo-Aryan). None: not in paper A.
    """

    script_group: Literal["Latin", "Indic", "PArb", "Oth1"] | None
    family: Literal["Rom", "Slav", "IA", "Drav", "Oth2"] | None


class Splitter(StrictModel):
    """How running text is cut into sentences; the names are those of `xlc_utils.text.splitters`.

    Attributes:
        paper: what paper A's appendix states, None for a language it does not have.
        best: the splitter that left most known paragraphs whole (`xlc_utils.text.accuracy`), sentencex on a tie.
        ordinals: whether a full stop makes an ordinal of a number, as in German "3. Oktober".
        abbreviations: in small letters, without the last full stop; words that may also end a sentence are left out.
    """

    paper: Literal["spacy", "spacy-sentencizer", "indicnlp", "underthesea", "urduhack"] | None
    best: Literal["sentencex", "stops", "yasbd", "indicnlp", "underthesea", "spacy-sentencizer"]
    ordinals: bool
    abbreviations: Names


class OffTarget(StrictModel):
    """How py3langid labels an answer in the language.

    `langid` is its label, None if it has none. `near` are labels accepted as well: varieties of the language, or
    neighbours it takes short texts in the language for.
    """

    langid: str | None
    near: Names


class Language(StrictModel):
    """One file of params/languages.

    Attributes:
        code: key of the language in every table: BCP 47, as the papers use it. Old codes are stored as the new one.
        name: its English name.
        autonym: its own name for itself.
        nllb: its code in NLLB-200 and FLORES-200, None if it is not among them.
        iso639_3: the ISO 639-3 code that corresponds to `code`; of a macrolanguage (ar, et, fa, zh), that.
        glottocode: Glottolog's code of the language; of a macrolanguage, the variety that NLLB means. None: not looked
            up yet, as may be for the two below.
        script: ISO 15924, the script an answer is expected in.
        direction: of the script.
        terminators: the marks that end a sentence in it beside "…"; empty for a script that uses none (Thai).
        digits: its own ten digits from 0, beside or instead of 0 to 9; None if its texts use no others.
        paper_a: its groups in paper A.
        glottolog_family: top-level family.
        glottolog_branch: the commonly named branch of it.
        splitter: of its sentences.
        off_target: what the check of the answer's language accepts.
        lemmatiser: used for lexical diversity (paper B, appendix A), or None.
        stopwords: file of its function words, or None.
        font: a font that shows it.
        incomplete: whether something is lacking that the complete languages have (see `xlc_utils.registry.gaps`).
        gaps: what.
    """

    code: Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$")]
    name: str
    autonym: str
    nllb: str | None
    iso639_3: Annotated[str, Field(pattern=r"^[a-z]{3}$")]
    glottocode: Annotated[str, Field(pattern=r"^[a-z0-9]{4}[0-9]{4}$")] | None
    script: str
    direction: Literal["ltr", "rtl"]
    terminators: str
    digits: Annotated[str, Field(min_length=10, max_length=10)] | None
    paper_a: PaperA
    glottolog_family: str | None
    glottolog_branch: str | None
    splitter: Splitter
    off_target: OffTarget
    lemmatiser: str | None
    stopwords: str | None
    font: str
    incomplete: bool = False
    gaps: Names = ()

    @field_validator("code")
    @classmethod
    def _new_code(cls, code: str) -> str:
        return canonical(code)

    @field_validator("nllb")
    @classmethod
    def _known_to_nllb(cls, code: str | None) -> str | None:
        if code is not None and code not in NLLB_CODES:
            near = nearest(code, NLLB_CODES)
            raise wrong(
                f"{code!r} is not a language of NLLB-200",
                f"perhaps `{near}` is meant" if near else "write its FLORES-200 code, such as deu_Latn",
            )
        return code

    @field_validator("script")
    @classmethod
    def _known_script(cls, script: str) -> str:
        if script not in SCRIPTS:
            raise wrong(
                f"{script!r} is not an ISO 15924 code of a script of these languages",
                suggestion(script, sorted(SCRIPTS)),
            )
        return script

    @model_validator(mode="after")
    def _incomplete_with_gaps(self) -> Language:
        if self.incomplete and not self.gaps:
            raise wrong("it is marked `incomplete` and names no `gaps`", "name them (`xlc language check` lists them)")
        if self.gaps and not self.incomplete:
            raise wrong("it names `gaps` and is not marked `incomplete`", "add `incomplete: true`")
        return self


def canonical(code: str) -> str:
    """The code a language is stored under: `he` for the old `iw`, likewise `id`, `yi` and `nb`; and the parts in the
    case that BCP 47 recommends: `zh-Hant`, `pt-BR`, `sr-Latn`. What is no such code comes back with its case changed.
    """
    first, *rest = code.split("-")
    cased = {2: str.upper, 4: str.title}  # a region, a script; variants are longer
    parts = [cased.get(len(part), str.lower)(part) for part in rest]
    return "-".join([_OLD_CODES.get(first.lower(), first.lower()), *parts])


def primary(code: str) -> str:
    """The language alone, without script and region: what libraries that know no dialects call it."""
    return code.partition("-")[0]


def files(root: Path) -> dict[str, Path]:
    """The language files by language code, in alphabetical order, unread.

    Raises:
        Problem: there are none; a file ends in .yml; a language has two files, under its old and its new code.
    """
    folder = root / "params" / "languages"
    found: dict[str, Path] = {}
    for path in sorted(folder.glob("*.y*ml"), key=lambda path: canonical(path.stem)):
        code = canonical(path.stem)
        if path.suffix != ".yaml":
            raise Problem(shown(path), "its name does not end in .yaml", f"rename it to {path.stem}.yaml")
        if code in found:
            raise Problem(shown(path), f"{found[code].name} is the same language", "keep one of the two files")
        found[code] = path
    if not found:
        raise Problem(shown(folder), "it holds no language", "restore its files")
    return found


def load(root: Path) -> dict[str, Language]:
    """All languages by code, in alphabetical order.

    Args:
        root: the folder that holds params/.

    Raises:
        Problem: naming the file and the key that is wrong.
    """
    return {code: _read(code, path) for code, path in files(root).items()}


def get(code: str) -> Language:
    """One language of the project (see `project_root`), by its new or old code.

    Raises:
        Problem: there is no such language, or its file is wrong.
    """
    return read(project_root(), code)


def read(root: Path, code: str) -> Language:
    """As `get`, of a project that is named: ``root`` is the folder that holds params/."""
    known = files(root)
    if canonical(code) not in known:
        raise Problem(f"language `{code}`", "it has no file in params/languages", suggestion(code, known))
    return _read(canonical(code), known[canonical(code)])


def _read(code: str, path: Path) -> Language:
    language = parse(Language, read_yaml(path), shown(path))
    if language.code != code:
        raise Problem(
            f"{shown(path)}: key `code`",
            f"{language.code!r} is not the file's name",
            f'write "{path.stem}", or rename the file',
        )
    return language
