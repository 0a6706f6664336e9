"""Lemmatisers that are not everywhere installed: what they give, and what is said without them."""

from __future__ import annotations

import sys
import types

import pytest

from xlc_utils.judges.lexical import lemmatiser
from xlc_utils.registry.problems import Problem


def test_vabamorf_knows_estonian_forms():
    pytest.importorskip("estnltk")
    assert lemmatiser("et", "vabamorf")(["tellisin", "poest", "märkasin", "xqzt"])[:3] == ["tellima", "pood", "märkama"]


def test_voikko_knows_finnish_forms_and_leaves_other_words():
    pytest.importorskip("libvoikko")
    try:
        lemmas = lemmatiser("fi", "voikko")
    except Problem as problem:
        pytest.skip(str(problem))
    assert lemmas(["tilasin", "viikolla", "verkkokaupan", "xqzt"]) == ["tilata", "viikko", "verkkokauppa", "xqzt"]


@pytest.mark.parametrize(("name", "language"), [("vabamorf", "fi"), ("voikko", "et")])
def test_a_lemmatiser_of_one_language_says_so(name, language):
    with pytest.raises(Problem, match=f"it knows .. only, not '{language}'"):
        lemmatiser(language, name)


@pytest.mark.parametrize(
    ("name", "language", "module", "command"),
    [
        ("vabamorf", "et", "estnltk", "pip install estnltk"),
        ("voikko", "fi", "libvoikko", "apt-get install libvoikko1 voikko-fi"),
        ("stanza", "hu", "stanza", "pip install stanza"),
    ],
)
def test_what_is_not_installed_is_named_with_the_command(monkeypatch, name, language, module, command):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(Problem, match=command):
        lemmatiser(language, name)


def stanza_that(pipeline):
    library = types.ModuleType("stanza")
    library.Pipeline = pipeline
    return library


def test_stanza_gets_the_words_as_they_are_and_gives_one_lemma_each(monkeypatch):
    """A stand-in with Stanza's shape: tokens with one or more words, a lemma possibly missing."""
    asked = {}

    def pipeline(language, **how):
        asked.update(how, language=language)

        def annotate(sentences):
            word = types.SimpleNamespace
            forms = {"ettei": [word(lemma="että"), word(lemma="ei")], "kissat": [word(lemma="Kissa")]}
            tokens = [word(words=forms.get(form, [word(lemma=None)])) for form in sentences[0]]
            return word(sentences=[word(tokens=tokens)])

        return annotate

    monkeypatch.setitem(sys.modules, "stanza", stanza_that(pipeline))
    lemmas = lemmatiser("fi", "stanza")
    assert asked["language"] == "fi" and asked["tokenize_pretokenized"] is True
    assert lemmas(["ettei", "kissat", "xqzt"]) == ["että", "kissa", "xqzt"] and lemmas([]) == []


def test_stanza_without_its_models_says_how_to_get_them(monkeypatch):
    def pipeline(language, **how):
        raise FileNotFoundError("no resources.json")

    monkeypatch.setitem(sys.modules, "stanza", stanza_that(pipeline))
    with pytest.raises(Problem, match=r"no resources.json.*stanza.download"):
        lemmatiser("hu", "stanza")
