"""A scenario file as plain data, with the place of each value, and checked against the models.

The core schema of YAML 1.2: ``true``, ``null``, whole numbers and floats are what they are, all
else is text, also ``yes``, ``on`` and ``12:30``. Of YAML's other features there are anchors and
aliases, but no tags and no merge keys; a key that comes twice is a mistake.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from fencepost.protocol.lookup import did_you_mean
from fencepost.scenario.value_syntax import parse_reference
from fencepost.verbs.models import problem


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in a file; both count from 1, as editors do."""

    line: int
    column: int


class ScenarioFileError(Exception):
    """A scenario file is wrong. The text is one line: what is wrong, and what may be there."""

    def __init__(self, file: str, place: Place, text: str) -> None:
        super().__init__(f"{file}:{place.line}:{place.column}: {text}")
        self.file = file
        self.place = place
        self.text = text


def list_allowed(given: str, allowed: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the nearest name, and all that are allowed."""
    names = sorted(allowed)
    hint = did_you_mean(given, names)
    return f"{hint} There are {', '.join(names)}" if hint else f"; there are {', '.join(names)}"


Data: TypeAlias = bool | int | float | str | list["Data"] | dict[str, "Data"] | None
KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys and indices from the outermost value to the innermost."""

_KNOWN_TAGS: Final = "tag:yaml.org,2002:"
_INT: Final = re.compile(r"[-+]?[0-9]+|0x[0-9a-fA-F]+|0o[0-7]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: Final[Mapping[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


class Document:
    """A file's content and where each part of it stands.

    :param file: Its name, for messages.
    """

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self._values: dict[KeyPath, Place] = {}
        self._keys: dict[KeyPath, Place] = {}
        self._texts: dict[KeyPath, str] = {}
        self.data = self._plain(self._compose(text), (), ())

    def place(self, path: Sequence[str | int]) -> Place:
        """Where a value stands, or the innermost one around it that is there."""
        for end in range(len(path), -1, -1):
            found = self._values.get(tuple(path[:end]))
            if found is not None:
                return found
        return Place(1, 1)

    def key_place(self, path: Sequence[str | int]) -> Place:
        """Where the key of a value stands, or the value where it has none."""
        return self._keys.get(tuple(path)) or self.place(path)

    def text(self, path: Sequence[str | int]) -> str | None:
        """How a number or a truth is written; None for anything else."""
        return self._texts.get(tuple(path))

    def error_at(self, path: Sequence[str | int], text: str) -> ScenarioFileError:
        """A mistake in a value."""
        return ScenarioFileError(self.file, self.place(path), text)

    def error_at_key(self, path: Sequence[str | int], text: str) -> ScenarioFileError:
        """A mistake in a key."""
        return ScenarioFileError(self.file, self.key_place(path), text)

    # -- reading --------------------------------------------------------------------------------

    def _compose(self, text: str) -> Node:
        try:
            found = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = Place(1, 1) if mark is None else Place(mark.line + 1, mark.column + 1)
            why = error.problem or error.context or "it is no YAML"
            raise ScenarioFileError(self.file, place, why) from None
        except yaml.YAMLError as error:
            raise ScenarioFileError(self.file, Place(1, 1), " ".join(str(error).split())) from None
        if found is None:
            raise ScenarioFileError(self.file, Place(1, 1), "the file is empty")
        return found

    def _plain(self, node: Node, path: KeyPath, around: tuple[Node, ...]) -> Data:
        place = _place(node)
        self._values[path] = place
        if node in around:
            raise ScenarioFileError(self.file, place, "an alias of what it is part of")
        inside = (*around, node)
        match node:
            case MappingNode():
                return self._mapping(node, path, inside)
            case SequenceNode():
                return [
                    self._plain(each, (*path, at), inside) for at, each in enumerate(node.value)
                ]
            case ScalarNode():
                return self._scalar(node, path)
            case _:
                raise AssertionError(node)

    def _mapping(self, node: MappingNode, path: KeyPath, inside: tuple[Node, ...]) -> Data:
        found: dict[str, Data] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                raise ScenarioFileError(self.file, _place(key), "a key is to be text")
            name = str(key.value)
            if name in found:
                raise ScenarioFileError(self.file, _place(key), f"{name} is there twice")
            if name == "<<":
                raise ScenarioFileError(self.file, _place(key), "there are no merge keys")
            self._keys[*path, name] = _place(key)
            found[name] = self._plain(value, (*path, name), inside)
        return found

    def _scalar(self, node: ScalarNode, path: KeyPath) -> Data:
        text = str(node.value)
        if not node.tag.startswith(_KNOWN_TAGS):
            raise ScenarioFileError(
                self.file, _place(node), f"there are no tags such as {node.tag}"
            )
        value = text if node.style is not None else _resolved(text)  # quoted text, or a block
        if isinstance(value, int | float):
            self._texts[path] = text
        return value


def _resolved(text: str) -> Data:
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text) if text.lstrip("+-").isdigit() else int(text, 0)
    return float(text) if _FLOAT.fullmatch(text) else text


def _place(node: Node) -> Place:
    mark = node.start_mark
    return Place(mark.line + 1, mark.column + 1)


M = TypeVar("M", bound=BaseModel)
_TO_BE_TEXT: Final = "string_type"
_LEFT_OUT: Final = "missing"


def require_mapping(document: Document, data: Data, path: KeyPath, what: str) -> dict[str, Data]:
    """A value that is to be a mapping.

    :param what: It, for the message.
    :raises ScenarioFileError: When it is none.
    """
    if not isinstance(data, dict):
        raise document.error_at(path, f"{what} is to be a mapping")
    return data


def check_keys(
    document: Document, data: Mapping[str, Data], path: KeyPath, allowed: Iterable[str]
) -> None:
    """:raises ScenarioFileError: At the first key that is not among those allowed."""
    names = list(allowed)
    for name in data:
        if name not in names:
            raise document.error_at_key(
                (*path, name), f"there is no {name!r}{list_allowed(name, names)}"
            )


def validate(
    document: Document, model: type[M], data: dict[str, Data], path: KeyPath
) -> tuple[M | None, dict[str, Data]]:
    """What a file says as a model, and as data with all that is to be text as text.

    The model is None where references stand for some of it: then all the rest is checked.

    :raises ScenarioFileError: At the first thing that is wrong.
    """
    check_keys(document, data, path, field_names(model))
    errors = _errors(model, data)
    texts = [
        place
        for place in _paths_to_be_text(errors, data)
        if document.text((*path, *place)) is not None
    ]
    if texts:
        data = _with_texts(data, texts, lambda place: document.text((*path, *place)) or "")
        errors = _errors(model, data)
    serious = [each for each in errors if not _is_reference(data, each["loc"])]
    if serious:
        raise _mistake(document, serious[0], data, path)
    return (None if errors else model.model_validate(data)), data


def field_names(model: type[BaseModel]) -> list[str]:
    """As a file has them."""
    return [field.alias or name for name, field in model.model_fields.items()]


def _errors(model: type[BaseModel], data: dict[str, Data]) -> list[ErrorDetails]:
    try:
        model.model_validate(data)
    except ValidationError as error:
        return error.errors()
    return []


def _mistake(
    document: Document, error: ErrorDetails, data: dict[str, Data], path: KeyPath
) -> ScenarioFileError:
    left_out = error["type"] == _LEFT_OUT
    place = _in_data(data, error["loc"][:-1] if left_out else error["loc"])
    if left_out:
        name = ".".join(str(part) for part in error["loc"])
        return document.error_at_key((*path, *place), f"{name} is left out")
    return document.error_at((*path, *place), problem(place, error))


def _in_data(data: Data, loc: Sequence[str | int]) -> KeyPath:
    """The part of an error's place that is in the data: some parts only name types."""
    found: list[str | int] = []
    value = data
    for part in loc:
        if isinstance(value, dict) and part in value:
            value = value[str(part)]
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            continue
        found.append(part)
    return tuple(found)


def _value(data: Data, place: KeyPath) -> Data:
    value = data
    for part in place:
        value = value[part]  # type: ignore[index]  # as `_in_data` found it
    return value


def _is_reference(data: Data, loc: Sequence[str | int]) -> bool:
    place = _in_data(data, loc)
    return any(parse_reference(_value(data, place[:end])) for end in range(len(place) + 1))


def _paths_to_be_text(errors: list[ErrorDetails], data: Data) -> list[KeyPath]:
    return [_in_data(data, each["loc"]) for each in errors if each["type"] == _TO_BE_TEXT]


def _with_texts(
    data: dict[str, Data], places: Sequence[KeyPath], text: Callable[[KeyPath], str]
) -> dict[str, Data]:
    def changed(value: Data, path: KeyPath) -> Data:
        if path in places:
            return text(path)
        if isinstance(value, dict):
            return {key: changed(each, (*path, key)) for key, each in value.items()}
        if isinstance(value, list):
            return [changed(each, (*path, at)) for at, each in enumerate(value)]
        return value

    return {key: changed(each, (key,)) for key, each in data.items()}
