"""What a run will cost, said before it does anything."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from xlc_utils.chat.record import KEPT, Record
from xlc_utils.registry import models, prompts
from xlc_utils.registry.models import Model
from xlc_utils.running.asked import Prompts, prompts_of
from xlc_utils.running.params import Params, is_answers_file, translator_for

# Guesses where only a run can know, stated with the plan. Tokens are counted as characters / 4 for English and
# characters / 2.5 for other languages, which tokenizers cut finer.
ANSWER_TOKENS = {"information": 450, "empathy": 130}
SENTENCES_AN_ANSWER = {"information": 18, "empathy": 6}
CLAIMS_AN_ANSWER = 25
TOKENS_A_CLAIM = 20
EXTRACT_TOKENS, VERIFY_TOKENS = 150, 120  # the instruction around a text, and around a reference and a claim
TOKENS_A_LISTED_VERDICT = 12
TOKENS_A_DIALOGUE = 700
EPITOME_TEST, NINE_SHOT_TOKENS = 620, 1500  # pairs of a split's test part; tokens of ten pairs and the question
PROBE_DIALOGUES, PROBE_LANGUAGES = 24, ("en", "et", "fi", "hu")  # params/known_answers/judge_probe
JUDGE_PROMPT_TOKENS, JUDGE_REPLY_TOKENS = 900, 400  # the reply of a reasoning model counts its thoughts


@dataclass
class Step:
    """One row of the plan. ``dollars`` is None where models.yaml has no price (your own machine, or not known)."""

    notebook: str
    step: str
    model: str
    calls: int = 0
    recorded: int = 0
    sentences: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    dollars: float | None = None


def plan_table(root: Path, params: Params) -> pd.DataFrame:
    """One row a step and model, in the order of the notebooks. Nothing is asked and nothing is written."""
    registry = models.load(root)
    recorded = _recorded(root / "results" / params.run_name)
    steps = [*_generation(root, params, registry), *_translation(root, params, registry)]
    steps += [*_round_trips(root, params, registry), *_information(root, params, registry)]
    steps += [*_empathy(root, params, registry), *_judging(params, registry)]
    for step in steps:
        step.recorded = min(step.calls, recorded.get(step.model, 0))
        recorded[step.model] = recorded.get(step.model, 0) - step.recorded
    return pd.DataFrame([asdict(s) for s in steps if s.calls or s.sentences])


def _recorded(folder: Path) -> dict[str, int]:
    """Calls answered so far by model. Which step they were for is not known; the first ones are taken to be done."""
    if not (folder / "calls.sqlite").exists():
        return {}
    counts: dict[str, int] = {}
    for row in Record(folder / "calls.sqlite").summary():
        if row["outcome"] in KEPT:
            counts[row["model"]] = counts.get(row["model"], 0) + row["calls"]
    return counts


def _prompts(root: Path, params: Params, dimension: prompts.Dimension) -> Prompts:
    return prompts_of(root, params, dimension, "parameters", read=False)


def _prompt_count(root: Path, params: Params, dimension: str, entry: Model | None) -> int:
    n = len(_prompts(root, params, dimension).ids)
    if entry is not None and entry.backend == "embedded" and params.generated_prompts is not None:
        n = min(n, params.generated_prompts)
    return n


def _prompt_tokens(root: Path, params: Params, dimension: str, n: int) -> int:
    asked = _prompts(root, params, dimension)
    characters = sum(len(asked.english[i]) for i in asked.ids[:n])
    return round(characters / 4 + len(params.languages) * characters / 2.5)


def _asked(params: Params, registry) -> list[tuple[str, Model]]:
    """The models that are called; replayed ones are not."""
    named = [(m, registry.models[m]) for m in params.models if not is_answers_file(m)]
    return [(name, entry) for name, entry in named if entry.backend != "replay"]


def _priced(step: Step, entry: Model) -> Step:
    if entry.prices:
        step.dollars = (step.prompt_tokens * entry.prices.input + step.completion_tokens * entry.prices.output) / 1e6
    return step


def _generation(root: Path, params: Params, registry):
    asked = 1 + len(params.languages)
    for name, entry in _asked(params, registry):
        for dimension in prompts.DIMENSIONS:
            n = _prompt_count(root, params, dimension, entry)
            answer = min(ANSWER_TOKENS[dimension], params.generation_max_tokens)
            tokens = _prompt_tokens(root, params, dimension, n)
            yield _priced(
                Step(
                    "01_generate",
                    f"answers ({dimension})",
                    name,
                    calls=n * asked,
                    prompt_tokens=tokens,
                    completion_tokens=n * asked * answer,
                ),
                entry,
            )
    dialogues = params.dialogues_per_language * len(params.dialogue_languages)
    for name in params.dialogue_generators:
        yield _priced(
            Step(
                "01_generate",
                "dialogues",
                name,
                calls=dialogues,
                prompt_tokens=dialogues * JUDGE_PROMPT_TOKENS,
                completion_tokens=dialogues * TOKENS_A_DIALOGUE,
            ),
            registry.models[name],
        )
    asked = [_prompts(root, params, d) for d in prompts.DIMENSIONS]
    lacking = sum(len(set(own.ids) - set(own.written(code))) for own in asked for code in params.languages)
    if lacking:
        able = [t for t in (translator_for(params, root, registry, "en", c) for c in params.languages) if t]
        yield Step("01_generate", "prompts into the languages", able[0], sentences=2 * lacking)


def _translation(root: Path, params: Params, registry):
    """Sentences by translator; a few-shot translator's sentences are calls of its model."""
    answers = {d: 0 for d in prompts.DIMENSIONS}
    for name in params.models:
        entry = None if is_answers_file(name) else registry.models[name]
        for dimension in prompts.DIMENSIONS:
            answers[dimension] += _prompt_count(root, params, dimension, entry)
    at_most = max(1, params.generation_max_tokens // 20)
    a_language = sum(n * min(SENTENCES_AN_ANSWER[d], at_most) for d, n in answers.items())
    ways = [(code, "en") for code in params.languages]
    yield from _sentences("02_translate", "answers into English", root, params, registry, a_language, ways)


def _round_trips(root: Path, params: Params, registry):
    sentences = params.round_trip_prompts * SENTENCES_AN_ANSWER["information"]
    ways = [way for code in params.round_trip_languages for way in (("en", code), (code, "en"))]
    if sentences:
        yield from _sentences("03_fidelity_check", "round trips", root, params, registry, sentences, ways)


def _sentences(notebook: str, step: str, root: Path, params: Params, registry, sentences: int, ways):
    counts: dict[str, int] = {}
    for source, target in ways:
        name = translator_for(params, root, registry, source, target)
        counts[name] = counts.get(name, 0) + sentences
    for name, n in counts.items():
        few_shot = registry.translators[name].backend == "few_shot"
        tokens = {"calls": n, "prompt_tokens": 150 * n, "completion_tokens": 25 * n} if few_shot else {}
        yield Step(notebook, step, registry.translators[name].model or name, sentences=n, **tokens)


@dataclass(frozen=True)
class Load:
    """Calls and tokens of one step of the claims under one setting."""

    calls: int
    prompt_tokens: int
    completion_tokens: int


def _extraction(answers: int, unit: str) -> Load:
    """Claims of so many answers, one call an answer or a sentence."""
    calls = answers * (SENTENCES_AN_ANSWER["information"] if unit == "sentence" else 1)
    prompt_tokens = calls * EXTRACT_TOKENS + answers * ANSWER_TOKENS["information"]
    return Load(calls, prompt_tokens, answers * CLAIMS_AN_ANSWER * TOKENS_A_CLAIM)


def _verification(answers: int, unit: str, claims_an_answer: float = CLAIMS_AN_ANSWER) -> Load:
    """The claims of so many answers, each against one other text, one call a claim or an answer."""
    claims = round(answers * claims_an_answer)
    calls = claims if unit == "claim" else answers
    prompt_tokens = calls * (VERIFY_TOKENS + ANSWER_TOKENS["information"]) + claims * TOKENS_A_CLAIM
    return Load(calls, prompt_tokens, claims * (2 if unit == "claim" else TOKENS_A_LISTED_VERDICT))


def _asked_for(root: Path, params: Params) -> int:
    """Information answers of all systems in one language."""
    ids = prompts.selection(root, "information", params.information_prompts, "parameters")
    return len(params.models) * len(ids)


def _information(root: Path, params: Params, registry):
    a_language, others = _asked_for(root, params), len(params.languages)
    steps = [
        ("claims", [params.claim_extractor], _extraction(a_language * (1 + others), params.claim_unit)),
        ("verdicts", params.claim_verifiers, _verification(2 * a_language * others, params.verdict_unit)),
    ]
    steps += [(_MEASURED, *each) for each in _measuring(root, params)]
    for step, names, load in steps:
        for name in names:
            if name in registry.models:
                yield _priced(Step("04_information", step, name, **asdict(load)), registry.models[name])


_MEASURED = "verdicts on known answers"


def _measuring(root: Path, params: Params):
    """What measures the verifiers: all known answers in the run's unit, the held-out half in the other one too; of
    `measured_verifiers` one held-out answer a question, in both."""
    english = prompts.known_answers(root, "en")
    known = [own for own in (prompts.known_answers(root, code) for code in params.languages) if own]
    texts = 2 if "known-answers" in params.models else 1  # also translated
    answers = 2 * texts * sum(map(len, known))
    claims = [len(a.sentences) + len(english[i].sentences) for own in known for i, a in own.items()]
    mean = sum(claims) / 2 / len(claims) if claims else 0
    other = "answer" if params.verdict_unit == "claim" else "claim"
    yield params.claim_verifiers, _verification(answers, params.verdict_unit, mean)
    yield params.claim_verifiers, _verification(answers // 2, other, mean)
    for unit in (params.verdict_unit, other):
        yield params.measured_verifiers, _verification(len(english) * texts if known else 0, unit, mean)


def information_settings(root: Path, params: Params) -> pd.DataFrame:
    """Calls and tokens of extraction and verification under each setting, for one extractor and one verifier.

    Returns:
        step, setting, calls, prompt_tokens, completion_tokens; the first row of ``claims`` is FActScore run for each
        language on its own, which takes the English answer apart anew each time.
    """
    a_language, others = _asked_for(root, params), len(params.languages)
    once, anew = a_language * (1 + others), 2 * a_language * others
    loads = {
        ("claims", "sentence, English anew for each language"): _extraction(anew, "sentence"),
        ("claims", "claim_unit: sentence"): _extraction(once, "sentence"),
        ("claims", "claim_unit: answer"): _extraction(once, "answer"),
        ("verdicts", "verdict_unit: claim"): _verification(anew, "claim"),
        ("verdicts", "verdict_unit: answer"): _verification(anew, "answer"),
    }
    return pd.DataFrame([{"step": k, "setting": s, **asdict(load)} for (k, s), load in loads.items()])


def _empathy(root: Path, params: Params, registry):
    """Three calls a reply where a model classifies it after nine examples; and a test of it on EPITOME."""
    entries = [None if is_answers_file(name) else registry.models[name] for name in params.models]
    replies = sum(_prompt_count(root, params, "empathy", e) for e in entries) * (1 + len(params.languages))
    tests = EPITOME_TEST * params.empathy_evaluation_seeds
    steps = [("profiles", params.empathy_classifier, replies)]
    steps += [("nine shots on EPITOME", name, tests) for name in params.empathy_evaluators]
    for step, name, n in steps:
        if name in registry.models:
            tokens = {"prompt_tokens": 3 * n * NINE_SHOT_TOKENS, "completion_tokens": 3 * n * 2}
            yield _priced(Step("05_empathy", step, name, calls=3 * n, **tokens), registry.models[name])


def _judging(params: Params, registry):
    """The probe's pairs, then two calls a dialogue: the four scores, and label recovery (paper B, appendix D).

    Further meta-prompts ask again for the scores in one language, the ablation for the labels in one, and calibration
    for the scores of the dialogues that people rated.
    """
    in_a_language = params.judged_dialogues * len(params.dialogue_generators)
    dialogues = in_a_language * len(params.dialogue_languages)
    for name in dict.fromkeys((*params.judges, *params.ablation_judges)):
        yield _judged("probe", name, PROBE_DIALOGUES * len(PROBE_LANGUAGES), TOKENS_A_DIALOGUE // 3, registry)
    for name in params.judges:
        yield _judged("scores and labels", name, 2 * dialogues, TOKENS_A_DIALOGUE, registry)
        yield _judged("other meta-prompts", name, len(params.meta_prompts) * in_a_language, TOKENS_A_DIALOGUE, registry)
        yield _judged("calibration", name, params.calibration_dialogues, TOKENS_A_DIALOGUE, registry)
    for name in params.ablation_judges:
        if name not in params.judges:  # those have recovered the same labels already
            yield _judged("ablation", name, in_a_language, TOKENS_A_DIALOGUE, registry)


def _judged(step: str, name: str, calls: int, tokens_a_dialogue: int, registry) -> Step:
    tokens = {
        "prompt_tokens": calls * (JUDGE_PROMPT_TOKENS + tokens_a_dialogue),
        "completion_tokens": calls * JUDGE_REPLY_TOKENS,
    }
    return _priced(Step("06_judge_stability", step, name, calls=calls, **tokens), registry.models[name])


def render(table: pd.DataFrame) -> str:
    """The plan as text, with totals and what was guessed."""
    if table.empty:
        return "This run calls no model and translates nothing."
    shown = table.assign(dollars=["" if pd.isna(d) else f"{d:,.2f}" for d in table["dollars"]])
    numbers = ["calls", "recorded", "sentences", "prompt_tokens", "completion_tokens"]
    total = {
        "notebook": "in all",
        "step": "",
        "model": "",
        **{c: table[c].sum() for c in numbers},
        "dollars": f"{table['dollars'].sum():,.2f}" if table["dollars"].notna().any() else "",
    }
    shown = pd.concat([shown, pd.DataFrame([total])], ignore_index=True)
    for column in numbers:
        shown[column] = [f"{int(v):,}" if v else "" for v in shown[column]]
    return (
        shown.to_string(index=False)
        + f"\n\nGuessed: {ANSWER_TOKENS['information']} tokens and {CLAIMS_AN_ANSWER} claims an information answer, "
        f"{ANSWER_TOKENS['empathy']} tokens an empathy reply, {SENTENCES_AN_ANSWER['information']} and "
        f"{SENTENCES_AN_ANSWER['empathy']} sentences, {TOKENS_A_DIALOGUE} tokens a dialogue; no dollars where "
        "models.yaml has no price."
    )


def render_settings(table: pd.DataFrame) -> str:
    """`information_settings` as text."""
    shown = table.copy()
    for column in ("calls", "prompt_tokens", "completion_tokens"):
        shown[column] = [f"{int(v):,}" for v in table[column]]
    return "Claims and verdicts by a model, under each setting:\n" + shown.to_string(index=False)
