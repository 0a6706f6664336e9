"""chat/offtarget.py and chat/generate.py: which language an answer is in, and what a model is asked."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from xlc_utils.chat.base import Chat, Reply, Sampling
from xlc_utils.chat.generate import Question, chat_for, generate, prompt_table, questions_for
from xlc_utils.chat.offtarget import MIN_LETTERS, LanguageDetector
from xlc_utils.registry import languages, models, prompts
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.running.asked import prompts_of
from xlc_utils.translation.answers import translate_texts
from xlc_utils.translation.translators import Translation

SENTENCES = {
    "en": "The old bridge over the river was closed for repairs last week.",
    "es": "El viejo puente sobre el río estuvo cerrado por reparaciones la semana pasada.",
    "pl": "Stary most nad rzeką był w zeszłym tygodniu zamknięty z powodu naprawy.",
    "ru": "Старый мост через реку на прошлой неделе был закрыт на ремонт.",
    "el": "Η παλιά γέφυρα πάνω από το ποτάμι έκλεισε για επισκευές την περασμένη εβδομάδα.",
    "he": "הגשר הישן מעל הנהר נסגר לתיקונים בשבוע שעבר.",
    "ar": "أُغلق الجسر القديم فوق النهر في الأسبوع الماضي لأعمال الصيانة.",
    "fa": "پل قدیمی روی رودخانه هفتهٔ گذشته برای تعمیر بسته بود.",
    "hi": "नदी पर बना पुराना पुल पिछले सप्ताह मरम्मत के लिए बंद था।",
    "bn": "নদীর উপরের পুরোনো সেতুটি গত সপ্তাহে মেরামতের জন্য বন্ধ ছিল।",
    "ta": "ஆற்றின் மேல் உள்ள பழைய பாலம் கடந்த வாரம் பழுதுபார்ப்பதற்காக மூடப்பட்டது.",
    "te": "నదిపై ఉన్న పాత వంతెన గత వారం మరమ్మతుల కోసం మూసివేయబడింది.",
    "ml": "പുഴയ്ക്കു മുകളിലുള്ള പഴയ പാലം കഴിഞ്ഞ ആഴ്ച അറ്റകുറ്റപ്പണികൾക്കായി അടച്ചിരുന്നു.",
    "gu": "નદી પરનો જૂનો પુલ ગયા અઠવાડિયે સમારકામ માટે બંધ હતો.",
    "th": "สะพานเก่าข้ามแม่น้ำถูกปิดเพื่อซ่อมแซมเมื่อสัปดาห์ที่แล้ว",
    "ja": "川に架かる古い橋は、先週、修理のために通行止めになりました。",
    "ko": "강 위의 오래된 다리는 지난주에 수리를 위해 폐쇄되었습니다.",
    "zh": "河上的那座旧桥上周因为维修而关闭了，行人只好绕道而行。",
}


@pytest.fixture(scope="module")
def detector(root: Path) -> LanguageDetector:
    return LanguageDetector(languages.load(root))


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_is_found_to_be_in_its_language(detector: LanguageDetector, language: str):
    assert detector.language(SENTENCES[language], language) == language
    other = "en" if language != "en" else "ru"
    assert detector.language(SENTENCES[language], other) == language


@pytest.mark.parametrize("text", ["", "42.", "Sí.", "नमस्ते", "12 345 678 — 90 %, 3.14159265358979323846"])
def test_a_short_text_tells_nothing(detector: LanguageDetector, text: str):
    assert detector.language(text, "es") is None


def test_twenty_letters_are_enough_and_digits_are_none(detector: LanguageDetector):
    assert detector.language("a" * (MIN_LETTERS - 1) + " 123", "es") is None
    assert detector.language("a" * MIN_LETTERS, "es") is not None


MALAY = "Jambatan lama yang merentasi sungai itu ditutup minggu lalu kerana kerja-kerja pembaikan."


def test_a_near_variety_counts_as_the_language_asked_for(detector: LanguageDetector, root: Path):
    without = {code: entry for code, entry in languages.load(root).items()}
    off = without["id"].off_target.model_copy(update={"near": ()})
    without["id"] = without["id"].model_copy(update={"off_target": off})
    assert "ms" in languages.load(root)["id"].off_target.near
    assert LanguageDetector(without).language(MALAY, "id") == "ms", "the text must be one that is taken for Malay"
    assert detector.language(MALAY, "id") == "id"
    assert detector.language(MALAY, "en") == "ms"  # a code that the registry does not hold, as py3langid calls it


def test_a_language_that_has_no_detector_is_not_judged(root: Path):
    entries = dict(languages.load(root))
    off = entries["es"].off_target.model_copy(update={"langid": None})
    entries["es"] = entries["es"].model_copy(update={"off_target": off})
    assert LanguageDetector(entries).language(SENTENCES["ru"], "es") is None


# ---- what is asked ---------------------------------------------------------------------------------------------------
ASKED = Question("information", "astronomy-01", "hi", "तारे कैसे बनते हैं?")


def test_a_chat_model_gets_the_bare_prompt_as_in_paper_a(root: Path):
    chat = chat_for(ASKED, "chat", prompts.shots(root, "hi"))
    assert chat == Chat(messages=(("user", ASKED.text),), language="hi", prompt_id="astronomy-01")


@pytest.mark.parametrize(("dimension", "ask", "answer"), [("information", "Q", "A"), ("empathy", "Post", "Reply")])
def test_a_base_model_gets_two_examples_in_the_language(root: Path, dimension: str, ask: str, answer: str):
    shots = prompts.shots(root, "hi")
    question = Question(dimension, "x-01", "hi", ASKED.text)
    chat = chat_for(question, "completion", shots)
    first, second = getattr(shots, dimension)
    assert chat.messages == ()
    assert chat.completion == (
        f"{ask}: {first.prompt}\n{answer}: {first.answer}\n\n{ask}: {second.prompt}\n{answer}: {second.answer}\n\n"
        f"{ask}: {ASKED.text}\n{answer}:"
    )


class Says:
    """A model that answers with the texts it is given, in turn."""

    name = "says"

    def __init__(self, *replies: Reply):
        self.replies, self.asked = list(replies), []

    def complete(self, chats, sampling):
        self.asked += chats
        return [self.replies[i] for i, _ in enumerate(chats)]


def test_each_answer_has_its_language_and_its_outcome(detector: LanguageDetector):
    replies = [
        Reply(SENTENCES["hi"], Outcome.OK, "stop", completion_tokens=9),
        Reply(SENTENCES["en"], Outcome.OK, "stop"),
        Reply(SENTENCES["en"], Outcome.TRUNCATED, "length", detail="stopped by max_tokens"),
        Reply(SENTENCES["hi"], Outcome.TRUNCATED, "length", detail="stopped by max_tokens"),
        Reply("", Outcome.EMPTY, "stop", detail="the model returned nothing"),
        Reply(SENTENCES["en"], Outcome.REFUSED, detail="content_filter"),
        Reply("", Outcome.ERROR, detail="HTTP 500"),
        Reply("हाँ।", Outcome.OK, "stop"),
    ]
    questions = [Question("information", f"p-{i}", "hi", f"प्रश्न {i}") for i in range(len(replies))]
    model = Says(*replies)
    table = generate(model, questions, "chat", {}, Sampling(), detector)
    assert list(table["outcome"]) == ["ok", "off_target", "off_target", "truncated", "empty", "refused", "error", "ok"]
    assert list(table["detected"]) == ["hi", "en", "en", "hi", "", "en", "", ""]
    assert table["detail"][1] == "written in en" and table["detail"][6] == "HTTP 500"
    assert list(table["prompt_id"]) == [f"p-{i}" for i in range(len(replies))]
    assert list(table["prompt"]) == [q.text for q in questions]
    assert (table["characters"] == table["text"].str.len()).all() and table["completion_tokens"][0] == 9
    assert [c.messages[0][1] for c in model.asked] == [q.text for q in questions]
    assert all(type(o) is str for o in table["outcome"])


# ---- a run's prompts and questions -----------------------------------------------------------------------------------
class Run:
    """As much of a run as prompts and questions are made from."""

    def __init__(self, root: Path, translate=None, **params):
        given = {
            "languages": ("es", "th"),
            "information_prompts": 3,
            "empathy_prompts": 1,
            "generated_prompts": None,
            "empathy_prompt_source": "written",
            **params,
        }
        self.root, self.params = root, SimpleNamespace(**given)
        self.models, self.translated, self._translate = models.load(root), 0, translate

    def prompts(self, dimension):
        return prompts_of(self.root, self.params, dimension, "parameters")

    def translate(self, texts, source, target, recorded=True):
        assert not recorded, "prompts may be private"
        self.translated += 1
        translator = SimpleNamespace(translate=lambda sentences, *_: [self._translate(s) for s in sentences])
        return translate_texts(texts, source, target, translator)


def test_a_prompt_that_is_not_written_is_translated_and_says_how_that_went(root: Path):
    asked = prompts.selection(root, "information", 3, "")
    english = prompts.prompts(root, "information", "en")

    def translate(sentence: str) -> Translation:
        outcome = {english[asked[0]]: Outcome.DEGENERATE, english[asked[1]]: Outcome.ERROR}.get(sentence, Outcome.OK)
        return Translation("" if outcome is Outcome.ERROR else f"T: {sentence}", outcome, "t")

    run = Run(root, translate)
    table = prompt_table(run)
    assert len(table) == 3 * (3 + 1) and run.translated == 2, "one call a dimension, for Thai"
    thai = table[(table["language"] == "th") & (table["dimension"] == "information")]
    assert list(thai["prompt_id"]) == asked and set(thai["source"]) == {"translated"}
    assert list(thai["outcome"]) == ["degenerate", "error", "ok"]
    assert list(thai["text"]) == [f"T: {english[asked[0]]}", "", f"T: {english[asked[2]]}"]
    written = table[table["language"] != "th"]
    assert set(written["source"]) == {"written"} and set(written["outcome"]) == {"ok"}
    assert (written["text"] != "").all()

    questions = questions_for(run, "gemma-3-270m", table)
    assert ("th", asked[1]) not in {(q.language, q.prompt_id) for q in questions} and len(questions) == len(table) - 1


def test_a_run_whose_prompts_are_all_written_translates_nothing(root: Path):
    run = Run(root, languages=("es", "hi"))
    assert set(prompt_table(run)["source"]) == {"written"} and run.translated == 0


def test_embedded_models_get_the_first_prompts_and_known_answers_those_that_exist(root: Path):
    same = lambda sentence: Translation(sentence, Outcome.OK, "t")  # noqa: E731
    run = Run(root, same, languages=("es",), information_prompts=20, empathy_prompts=3, generated_prompts=2)
    table = prompt_table(run)
    embedded = questions_for(run, "gemma-3-270m", table)
    first = prompts.selection(root, "information", 20, "")[:2]
    assert [q.prompt_id for q in embedded if q.dimension == "information" and q.language == "es"] == first
    assert len(embedded) == 2 * (2 + 2)
    replayed = questions_for(run, "known-answers", table)
    assert len([q for q in replayed if q.dimension == "information"]) == 2 * 16
    assert len(questions_for(run, "answers.csv", table)) == len(table)
