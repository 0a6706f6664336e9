"""Lemmatisers of words that are already found: one that is the same for every language, and the papers' own.

Paper B, appendix A, names EstNLTK for Estonian and Stanza for Finnish and Hungarian (its released code does not
lemmatise Estonian). `simplemma` is the default because it treats all four languages alike and needs no download.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from xlc_utils.registry.languages import primary
from xlc_utils.registry.problems import Problem

#: A lemmatiser takes the lower-cased words of one text, in order, and returns as many lemmas.
Lemmatiser = Callable[[Sequence[str]], list[str]]


def none(language: str) -> Lemmatiser:
    """Words as they are, in any language."""
    return list


def simplemma(language: str) -> Lemmatiser:
    """Word lists and rules, pure Python, about 50 languages; weaker on Hungarian than on Estonian and Finnish."""
    known = primary(language)  # it has no dialects
    try:
        _simplemma("a", known)
    except ValueError:
        raise Problem("lemmatiser simplemma", f"it does not know the language {language!r}", "use none") from None
    return lambda words: [_simplemma(word, known) for word in words]


@functools.cache
def _simplemma(word: str, language: str) -> str:
    import simplemma  # loads a dictionary of a language at its first word

    return simplemma.lemmatize(word, lang=language).lower()


def vabamorf(language: str) -> Lemmatiser:
    """EstNLTK's Vabamorf, Estonian only (GPL-2.0); of several analyses that its tagger leaves, the first."""
    _only("vabamorf", language, "et")
    try:
        from estnltk.vabamorf.morf import Vabamorf
    except ImportError:
        raise _missing("vabamorf", "the package estnltk is", "python -m pip install estnltk") from None
    tagger = Vabamorf.instance()

    def lemmas(words: Sequence[str]) -> list[str]:
        found = tagger.analyze(list(words), disambiguate=True)
        return [
            (item["analysis"][0]["lemma"] or word).lower() if item["analysis"] else word
            for word, item in zip(words, found, strict=True)
        ]

    return lemmas


def voikko(language: str) -> Lemmatiser:
    """Voikko's morphology, Finnish only (GPL); the first reading of a word, the word itself if it has none."""
    _only("voikko", language, "fi")
    needed = "apt-get install libvoikko1 voikko-fi, and python -m pip install libvoikko"
    try:
        import libvoikko

        analyser = libvoikko.Voikko("fi")
    except (ImportError, OSError):  # the package, or the library it loads
        raise _missing("voikko", "libvoikko or its Finnish dictionary is", needed) from None
    except libvoikko.VoikkoException:
        raise _missing("voikko", "the Finnish dictionary is", needed) from None

    @functools.cache
    def lemma(word: str) -> str:
        readings = analyser.analyze(word)
        return readings[0].get("BASEFORM", word).lower() if readings else word

    return lambda words: [lemma(word) for word in words]


def stanza(language: str) -> Lemmatiser:
    """Stanza's tagger and lemmatiser in the language's default models, which it downloads at first use.

    A word that Stanza takes apart into several (Finnish contractions) gets the lemma of its first part.
    """
    try:
        import stanza as library
    except ImportError:
        raise _missing("stanza", "its package is", "python -m pip install stanza") from None
    try:
        pipeline = library.Pipeline(
            language, processors="tokenize,mwt,pos,lemma", tokenize_pretokenized=True, verbose=False
        )
    except Exception as error:  # its own, requests' and the file system's, by version
        remedy = f'run `python -c "import stanza; stanza.download({language!r})"` where there is a network'
        raise Problem("lemmatiser stanza", f"its models of {language!r} cannot be had ({error})", remedy) from error

    def lemmas(words: Sequence[str]) -> list[str]:
        if not words:
            return []
        (sentence,) = pipeline([list(words)]).sentences
        return [(token.words[0].lemma or word).lower() for word, token in zip(words, sentence.tokens, strict=True)]

    return lemmas


def _only(name: str, language: str, known: str) -> None:
    if language != known:
        raise Problem(f"lemmatiser {name}", f"it knows {known} only, not {language!r}", "use simplemma")


def _missing(name: str, what: str, command: str) -> Problem:
    return Problem(f"lemmatiser {name}", f"{what} not installed", f"run `{command}`")


LEMMATISERS: dict[str, Callable[[str], Lemmatiser]] = {
    "simplemma": simplemma,
    "vabamorf": vabamorf,
    "voikko": voikko,
    "stanza": stanza,
    "none": none,
}
