from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from xlc_utils.registry import files
from xlc_utils.registry.files import Names, StrictModel, nearest, parse, project_root, read_yaml, shown, wrong
from xlc_utils.registry.problems import Problem


class Inner(StrictModel):
    size: int
    tags: Names = ()


class Outer(StrictModel):
    name: str
    share: float = Field(default=0.5, ge=0, le=1)
    done: bool = False
    inner: Inner | None = None
    table: dict[str, Inner] = Field(default_factory=dict)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, apart from every other: XLC_ROOT unset, and the current folder inside."""
    (tmp_path / "params" / "languages").mkdir(parents=True)
    monkeypatch.delenv("XLC_ROOT", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sentence(path: Path) -> str:
    with pytest.raises(Problem) as caught:
        read_yaml(path)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "a: no",
            "params/x.yaml: line 1: key `a`: YAML takes the bare word no for true or false; "
            'write "no" in quotes if the word is meant, else true or false.',
        ),
        (
            "a:\n  b: [x, On]",
            "params/x.yaml: line 2: key `a.b.2`: YAML takes the bare word On for true or false; "
            'write "On" in quotes if the word is meant, else true or false.',
        ),
        (
            "a:\n  x: 1\n  y: 2\n  x: 3",
            "params/x.yaml: line 4: key `a.x`: the key is in line 2 already; keep one of the two.",
        ),
        ("no: x", "params/x.yaml: line 1: key `no`: YAML does not take this key for text; write it in quotes."),
        ("a: {7: x}", "params/x.yaml: line 1: key `a.7`: YAML does not take this key for text; write it in quotes."),
        ("", "params/x.yaml: the file is empty; fill it in, or remove it."),
        ("# a remark\n", "params/x.yaml: the file is empty; fill it in, or remove it."),
        (
            "a: 2024-13-01",
            "params/x.yaml: a value has the form of a date but is none (month must be in 1..12); put it in quotes.",
        ),
        ("a: b\nc: \x07", "params/x.yaml: line 2: YAML does not allow the character U+0007; delete it."),
        ("[" * 3000, "params/x.yaml: lists or mappings are nested too deeply; write it flatter."),
    ],
)
def test_what_yaml_would_take_silently_or_with_a_traceback(project: Path, text: str, expected: str):
    path = project / "params" / "x.yaml"
    path.write_text(text, encoding="utf-8")
    assert sentence(path) == expected


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: b\n\tc: d", 2),
        ("a: [1,\n2", 2),
        ("a: b: c", 1),
        ("a: b\n---\nc: d", 2),
        ("a: &x 1\nb: *x", 2),
        ("a: !!python/object:os.system 1", 1),
        ("a: 'b", 1),
    ],
)
def test_what_is_not_yaml_is_told_with_its_line(project: Path, text: str, line: int):
    path = project / "params" / "x.yaml"
    path.write_text(text, encoding="utf-8")
    assert sentence(path).startswith(f"params/x.yaml: line {line}: this is not YAML as used here (")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16(project: Path, encoding: str):
    path = project / "params" / "x.yaml"
    path.write_bytes("name: ü".encode(encoding))
    assert sentence(path) == "params/x.yaml: the file is saved as UTF-16; save it again with the encoding UTF-8."


def test_latin_1(project: Path):
    path = project / "params" / "x.yaml"
    path.write_bytes("a: b\nc: ü".encode("latin-1"))
    assert sentence(path) == (
        "params/x.yaml: line 2: the byte 0xFC is not UTF-8; save the file again with the encoding UTF-8."
    )


def test_utf_8_with_byte_order_mark_and_windows_line_ends(project: Path):
    path = project / "params" / "x.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: \xc3\xbc\r\nb: x\r\n")
    assert read_yaml(path) == {"a": "ü", "b": "x"}


def test_missing_file(project: Path):
    (project / "params" / "demo.yaml").write_text("a: b")
    assert sentence(project / "params" / "dmeo.yaml") == (
        "params/dmeo.yaml: there is no such file; perhaps demo.yaml is meant."
    )
    assert sentence(project / "nowhere" / "x.yaml") == (
        "nowhere/x.yaml: there is no such file; create it, or correct its name."
    )
    assert sentence(project / "params").startswith("params: it cannot be read (")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(content=st.dictionaries(st.text(), values, min_size=1, max_size=4), unicode=st.booleans())
def test_every_other_file_reads_as_in_pyyaml(tmp_path_factory: pytest.TempPathFactory, content: dict, unicode: bool):
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    text = yaml.safe_dump(content, allow_unicode=unicode)
    path.write_text(text, encoding="utf-8", newline="")
    assert read_yaml(path) == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"nmae": "x"}, "f.yaml: there is no key `nmae`; perhaps `name` is meant."),
        (
            {"name": "x", "zzz": 1},
            "f.yaml: there is no key `zzz`; use one of `name`, `share`, `done`, `inner`, `table`.",
        ),
        ({"name": "x", "inner": {"siez": 1}}, "f.yaml: key `inner`: there is no key `siez`; perhaps `size` is meant."),
        (
            {"name": "x", "table": {"t": {"size": 1, "tag": []}}},
            "f.yaml: key `table.t`: there is no key `tag`; perhaps `tags` is meant.",
        ),
        ({}, "f.yaml: key `name`: it is missing; add it."),
        ({"name": "x", "table": {"t": {}}}, "f.yaml: key `table.t.size`: it is missing; add it."),
        ({"name": False}, "f.yaml: key `name`: False is true or false; write text in quotes."),
        ({"name": None}, "f.yaml: key `name`: None is nothing; write text."),
        ({"name": "x", "done": "yes"}, "f.yaml: key `done`: 'yes' is text; write true or false."),
        ({"name": "x", "done": 1}, "f.yaml: key `done`: 1 is a whole number; write true or false."),
        ({"name": "x", "share": "0.5"}, "f.yaml: key `share`: '0.5' is text; write a number."),
        ({"name": "x", "share": 2}, "f.yaml: key `share`: 2 is not right; input should be less than or equal to 1."),
        ({"name": "x", "inner": {"size": 1.5}}, "f.yaml: key `inner.size`: 1.5 is a number; write a whole number."),
        (
            {"name": "x", "inner": {"size": True}},
            "f.yaml: key `inner.size`: True is true or false; write a whole number.",
        ),
        ({"name": "x", "inner": {"size": 1, "tags": "a"}}, "f.yaml: key `inner.tags`: 'a' is text; write a list."),
        (
            {"name": "x", "inner": {"size": 1, "tags": ["a", 7]}},
            "f.yaml: key `inner.tags.2`: 7 is a whole number; write text in quotes.",
        ),
        ({"name": "x", "table": []}, "f.yaml: key `table`: [] is a list; write a mapping of keys."),
        (["name"], "f.yaml: ['name'] is a list; write a mapping of keys."),
        ("name", "f.yaml: 'name' is text; write a mapping of keys."),
    ],
)
def test_what_a_model_refuses(data: object, expected: str):
    with pytest.raises(Problem) as caught:
        parse(Outer, data, "f.yaml")
    assert str(caught.value) == expected


def test_what_a_model_takes_is_kept_and_frozen():
    outer = parse(Outer, {"name": "x", "share": 1, "inner": {"size": 2, "tags": ["a", "b"]}}, "f.yaml")
    assert (outer.share, outer.inner.tags) == (1.0, ("a", "b"))
    with pytest.raises(ValueError, match="frozen"):
        outer.name = "y"


def test_a_validators_own_words_reach_the_person():
    from pydantic import field_validator

    class Even(StrictModel):
        number: int

        @field_validator("number")
        @classmethod
        def _even(cls, number: int) -> int:
            if number % 2:
                raise wrong(f"{number} is odd {{like this}}", "double it")
            return number

    with pytest.raises(Problem, match=r"^f.yaml: key `number`: 3 is odd \{like this\}; double it.$"):
        parse(Even, {"number": 3}, "f.yaml")


def test_nearest():
    assert nearest("scrpit", ["code", "script", "splitter"]) == "script"
    assert nearest("GPT-4O", ["gpt-4o-mini", "gpt-4o"]) == "gpt-4o"
    assert nearest("swahili", ["code", "script"]) is None
    assert nearest("x", []) is None


@given(word=st.text(), known=st.lists(st.text(min_size=1), max_size=5))
def test_nearest_is_known_and_finds_the_word_itself(word: str, known: list[str]):
    assert nearest(word, known) in [None, *known]
    for name in known:
        assert nearest(name, known).casefold() == name.casefold()


def test_root_is_the_nearest_folder_with_languages(project: Path, monkeypatch: pytest.MonkeyPatch):
    deep = project / "notebooks" / "drafts"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert project_root() == project


def test_root_named_by_the_environment_comes_first(project: Path, tmp_path_factory, monkeypatch: pytest.MonkeyPatch):
    other = tmp_path_factory.mktemp("other")
    (other / "params" / "languages").mkdir(parents=True)
    monkeypatch.setenv("XLC_ROOT", str(other))
    assert project_root() == other
    monkeypatch.setenv("XLC_ROOT", str(other / "params"))
    with pytest.raises(Problem, match=r"XLC_ROOT: .* has no folder params/languages; set it to the folder that holds"):
        project_root()


def test_root_falls_back_to_the_packages_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("XLC_ROOT", raising=False)
    monkeypatch.chdir(tmp_path)
    assert project_root() == Path(files.__file__).resolve().parents[2]
    monkeypatch.setattr(files, "__file__", str(tmp_path / "site-packages" / "xlc_utils" / "registry" / "files.py"))
    with pytest.raises(Problem, match="neither this folder nor one above it holds params/languages; change into"):
        project_root()


def test_shown(project: Path, tmp_path_factory: pytest.TempPathFactory):
    assert shown(Path("params/languages/hi.yaml")) == "params/languages/hi.yaml"
    outside = tmp_path_factory.mktemp("outside") / "x.yaml"
    assert shown(outside) == outside.as_posix()
