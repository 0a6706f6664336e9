"""Sentence splitters by name: each tells where it would cut a line of running text of a language."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from itertools import accumulate

import regex

from xlc_utils.registry.problems import Problem

#: Given one line of text, the positions behind its sentences, ascending; white space may count to either side.
Cuts = Callable[[str], list[int]]

_SPACE = regex.compile(r"\s")
# sentencex does not cut before a digit or a Latin letter: 「…です。1909年…」. What closes a sentence stays with it.
_IDEOGRAPHIC_STOP = regex.compile(r"。(?![。」』）)”’*_\s])")
_STOP = regex.compile(r"(?:[.!?…؟۔।॥]+[”’»\"')\]}]*(?=\s)|[。！？｡]+[」』）”’]*)")
# A sentencizer cuts at tokens that are full stops. Where a language's own tokenizer needs one more package (ja:
# sudachipy, th: pythainlp) or is not there (pa), another one that makes tokens of full stops stands in.
_SPACY_STANDS_IN = {"ja": "zh", "pa": "xx", "th": "xx"}
_SPACY_TOKENIZER = {
    "ko": {"@tokenizers": "spacy.Tokenizer.v1"},  # its own needs mecab
    "vi": {"use_pyvi": False},
}
_TRAINED = {"en": "core_web_sm", "zh": "core_web_sm"}  # paper A: for all others core_news_sm
_PARSER_ONLY = ["tagger", "morphologizer", "attribute_ruler", "lemmatizer", "ner"]


def sentencex(language: str) -> Cuts:
    from sentencex import segment

    def cuts(text: str) -> list[int]:
        # With other white space than a blank, such as French puts before "!", sentencex may panic (1.0.32: "A\xa0.").
        found = set(accumulate(len(part) for part in segment(language, _SPACE.sub(" ", text))))
        return sorted(found | {m.end() for m in _IDEOGRAPHIC_STOP.finditer(text)})

    return cuts


def stops(language: str) -> Cuts:
    """At every full stop, question and exclamation mark; what follows an abbreviation is left to the caller."""
    return lambda text: [m.end() for m in _STOP.finditer(text)]


def spacy(language: str) -> Cuts:
    """The trained pipeline that paper A names, if it is installed; else the sentencizer."""
    name = trained_pipeline(language)
    if name is None:
        return spacy_sentencizer(language)
    pipeline = _imported("spacy").load(name, exclude=_PARSER_ONLY)
    return lambda text: [sentence.end_char for sentence in pipeline(text).sents]


def trained_pipeline(language: str) -> str | None:
    """Name of the installed spaCy pipeline of a language, None if there is none. It comes by `spacy download`."""
    name = f"{language}_{_TRAINED.get(language, 'core_news_sm')}"
    return name if _imported("spacy").util.is_package(name) else None


def spacy_sentencizer(language: str) -> Cuts:
    """A blank spaCy pipeline with the rule-based sentencizer."""
    config = {"nlp": {"tokenizer": _SPACY_TOKENIZER[language]}} if language in _SPACY_TOKENIZER else {}
    pipeline = _imported("spacy").blank(_SPACY_STANDS_IN.get(language, language), config=config)
    pipeline.add_pipe("sentencizer")
    return lambda text: [sentence.end_char for sentence in pipeline(text).sents]


def indicnlp(language: str) -> Cuts:
    split = _imported("indicnlp.tokenize.sentence_tokenize").sentence_split
    return lambda text: _ends(text, split(text, language))


def underthesea(language: str) -> Cuts:
    split = _imported("underthesea").sent_tokenize
    return lambda text: _ends(text, split(text))


def yasbd(language: str) -> Cuts:
    segment = _imported("yasbd").BoundaryDetector(lang=language).segment
    return lambda text: _ends(text, [str(sentence) for sentence in segment(text)])


SPLITTERS: dict[str, Callable[[str], Cuts]] = {
    "sentencex": sentencex,
    "stops": stops,
    "spacy": spacy,
    "spacy-sentencizer": spacy_sentencizer,
    "indicnlp": indicnlp,
    "underthesea": underthesea,
    # urduhack (paper A's for Urdu) needs an old keras and no longer imports; the sentencizer knows Urdu full stops.
    "urduhack": spacy_sentencizer,
    "yasbd": yasbd,
}


def _imported(module: str):
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise Problem(
            "key `sentence_splitter`",
            f"the package of `{error.name}` is not installed",
            'run `python -m pip install -e ".[split]"`, or write `best`',
        ) from error


def _ends(text: str, sentences: list[str]) -> list[int]:
    """Where sentences end in a text of which their splitter has changed white space at most."""
    visible = [i for i, c in enumerate(text) if not c.isspace()]
    lengths = accumulate(sum(not c.isspace() for c in sentence) for sentence in sentences)
    return [visible[n - 1] + 1 for n in lengths if 0 < n <= len(visible)]
