"""Reading the plain files a person may edit: YAML in, a checked model out, or one clear sentence."""

from __future__ import annotations

import difflib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar

import psutil
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from xlc_utils.registry.problems import Problem

#: A YAML list of texts, kept as a tuple so that a frozen model cannot be changed through it.
Names = Annotated[tuple[str, ...], Field(strict=False)]

_Model = TypeVar("_Model", bound=BaseModel)

# Pydantic's names for "a value of another type was expected", and Python's types, as a person calls them.
_EXPECTED = {
    "string_type": "text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "dict_type": "a mapping of keys",
    "model_type": "a mapping of keys",
    "list_type": "a list",
    "tuple_type": "a list",
}
_SEEN_AS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a mapping of keys",
    type(None): "nothing",
}


class StrictModel(BaseModel):
    """Base of every model read from a file: no unknown keys, no silent conversions, frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, data: Any) -> Any:
        """Runs before pydantic's own check, because that one cannot say which key was probably meant."""
        for key in data if isinstance(data, dict) else ():
            if key not in cls.model_fields:
                raise wrong(f"there is no key `{key}`", suggestion(str(key), cls.model_fields))
        return data


def wrong(what: str, remedy: str) -> PydanticCustomError:
    """The error a validator of a `StrictModel` raises; `parse` makes a `Problem` with these words of it."""
    return PydanticCustomError("wrong", "{what}", {"what": what, "remedy": remedy})


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word most like `word` (case ignored), or None when none is alike."""
    by_folded = {name.casefold(): name for name in known}
    found = difflib.get_close_matches(word.casefold(), by_folded, n=1)
    return by_folded[found[0]] if found else None


def suggestion(word: str, known: Iterable[str]) -> str:
    """The remedy for a name that is not known: the nearest one if one is alike, else all of them."""
    known = list(known)
    near = nearest(word, known)
    return f"perhaps `{near}` is meant" if near else "use one of " + ", ".join(f"`{name}`" for name in known)


def shown(path: Path) -> str:
    """`path` as a message names it: relative to the project's root folder when it lies inside one."""
    path = path.absolute()
    root = next((folder for folder in path.parents if _is_root(folder)), None)
    return (path.relative_to(root) if root else path).as_posix()


def project_root() -> Path:
    """The folder that holds `params/`.

    It is the folder named by the environment variable XLC_ROOT if that is set; else the nearest of the
    current folder and its parents that has `params/languages`; else the folder the package lies in, if
    that has it.

    Raises:
        Problem: XLC_ROOT names a folder without `params/languages`, or no such folder is found.
    """
    if named := os.environ.get("XLC_ROOT"):
        if _is_root(Path(named)):
            return Path(named).resolve()
        raise Problem(
            "environment variable XLC_ROOT",
            f"{named!r} has no folder params/languages",
            "set it to the folder that holds params/, or unset it",
        )
    here = Path.cwd()
    for folder in (here, *here.parents, Path(__file__).resolve().parents[2]):
        if _is_root(folder):
            return folder
    raise Problem(
        str(here),
        "neither this folder nor one above it holds params/languages",
        "change into the project's folder, or set the environment variable XLC_ROOT to it",
    )


def _is_root(folder: Path) -> bool:
    return (folder / "params" / "languages").is_dir()


def temporary_folder() -> tempfile.TemporaryDirectory:
    """A folder that goes with its object or its process. A process that is killed cannot remove its own: the next one
    to make a folder does."""
    for left in Path(tempfile.gettempdir()).glob("xlc-*-*"):
        pid = left.name.split("-")[1]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(left, ignore_errors=True)  # not another user's
    return tempfile.TemporaryDirectory(prefix=f"xlc-{os.getpid()}-", ignore_cleanup_errors=True)


def read_yaml(path: Path) -> object:
    """The content of a YAML file that holds one document.

    Stricter than YAML 1.1 where that loses what a person meant: a key given twice or not text, a bare
    yes, no, on or off, and aliases are refused.

    Raises:
        Problem: the file is missing or unreadable, empty, not UTF-8, not YAML, or uses one of the above;
            with the line where there is one.
    """
    text = read_text(path)
    try:
        loader = _PlainLoader(text)
        node = loader.get_single_node()
        if node is None:
            raise Problem(shown(path), "the file is empty", "fill it in, or remove it")
        _check_node(node, path, ())
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise Problem(
            f"{shown(path)}: line {line}",
            f"this is not YAML as used here ({error.problem})",
            "look at the indentation, quotes, colons and brackets on it and above it",
        ) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise Problem(
            f"{shown(path)}: line {line}", f"YAML does not allow the character U+{error.character:04X}", "delete it"
        ) from None
    except ValueError as error:  # a bare value that has the form of a date but is none: 2024-13-01
        raise Problem(
            shown(path), f"a value has the form of a date but is none ({error})", "put it in quotes"
        ) from None
    except RecursionError:
        raise Problem(shown(path), "lists or mappings are nested too deeply", "write it flatter") from None


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, with or without a byte order mark.

    Raises:
        Problem: the file is missing or unreadable, or not UTF-8.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        near = nearest(path.name, [other.name for other in path.parent.glob(f"*{path.suffix}")])
        remedy = f"perhaps {near} is meant" if near else "create it, or correct its name"
        raise Problem(shown(path), "there is no such file", remedy) from None
    except OSError as error:
        raise Problem(shown(path), f"it cannot be read ({error.strerror})", "make it a readable file") from None
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in raw:
        raise Problem(shown(path), "the file is saved as UTF-16", "save it again with the encoding UTF-8")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, byte = error.object.count(b"\n", 0, error.start) + 1, error.object[error.start]
        raise Problem(
            f"{shown(path)}: line {line}",
            f"the byte 0x{byte:02X} is not UTF-8",
            "save the file again with the encoding UTF-8",
        ) from None


class _PlainLoader(yaml.SafeLoader):
    """SafeLoader without aliases: a value stands where it is used, so nobody has to look for it elsewhere."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark
            raise yaml.composer.ComposerError(None, None, "an alias; write the value out", mark)
        return super().compose_node(parent, index)


def _check_node(node: yaml.Node, path: Path, keys: tuple[str, ...]) -> None:
    """Refuse, anywhere in `node`, a bad key and a word that YAML 1.1 takes for true or false.

    The latter is what turns the language code `no` into False.
    """
    if node.tag == "tag:yaml.org,2002:bool" and node.value.lower() not in ("true", "false"):
        raise Problem(
            _at(path, node, keys),
            f"YAML takes the bare word {node.value} for true or false",
            f'write "{node.value}" in quotes if the word is meant, else true or false',
        )
    if isinstance(node, yaml.MappingNode):
        _check_keys(node, path, keys)
    for child, child_keys in _children(node, keys):
        _check_node(child, path, child_keys)


def _check_keys(node: yaml.MappingNode, path: Path, keys: tuple[str, ...]) -> None:
    """Refuse a key that is not text (`1`, `no`) or that is given twice: YAML would keep the last only."""
    first_lines: dict[str, int] = {}
    for key, _ in node.value:
        name = str(key.value)
        if key.tag != "tag:yaml.org,2002:str":
            raise Problem(_at(path, key, (*keys, name)), "YAML does not take this key for text", "write it in quotes")
        if name in first_lines:
            raise Problem(
                _at(path, key, (*keys, name)), f"the key is in line {first_lines[name]} already", "keep one of the two"
            )
        first_lines[name] = key.start_mark.line + 1


def _children(node: yaml.Node, keys: tuple[str, ...]) -> Iterator[tuple[yaml.Node, tuple[str, ...]]]:
    """Each value directly inside `node`, with the keys that lead to it; items of a list count from 1."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield value, (*keys, str(key.value))
    elif isinstance(node, yaml.SequenceNode):
        for position, item in enumerate(node.value, start=1):
            yield item, (*keys, str(position))


def _at(path: Path, node: yaml.Node, keys: tuple[str, ...]) -> str:
    key = f": key `{'.'.join(keys)}`" if keys else ""
    return f"{shown(path)}: line {node.start_mark.line + 1}{key}"


def parse(model_cls: type[_Model], data: object, where: str) -> _Model:
    """`data` as a `model_cls`.

    Args:
        model_cls: a subclass of `StrictModel`.
        data: what `read_yaml` gave, or a part of it.
        where: the file, as `shown` names it; the key is added to it.

    Raises:
        Problem: the first thing that is wrong: an unknown or missing key, or a value of the wrong type or
            not allowed.
    """
    try:
        return model_cls.model_validate(data)
    except ValidationError as error:
        details = error.errors(include_url=False)[0]
        keys = ".".join(str(part + 1) if isinstance(part, int) else str(part) for part in details["loc"])
        raise Problem(f"{where}: key `{keys}`" if keys else where, *_sentence(details)) from None


def _sentence(details: ErrorDetails) -> tuple[str, str]:
    """(what is wrong, what to do) for one of pydantic's errors."""
    kind, value, context = details["type"], details["input"], details.get("ctx", {})
    if kind == "wrong":
        return context["what"], context["remedy"]
    if kind == "missing":
        return "it is missing", "add it"
    if kind == "literal_error":
        return f"{_short(value)} is not allowed here", f"use {context['expected']}"
    if kind in _EXPECTED:
        seen = _SEEN_AS.get(type(value), f"a {type(value).__name__}")
        quotes = " in quotes" if kind == "string_type" and not isinstance(value, dict | list | None) else ""
        return f"{_short(value)} is {seen}", f"write {_EXPECTED[kind]}{quotes}"
    return f"{_short(value)} is not right", details["msg"][0].lower() + details["msg"][1:]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
