"""A mistake in a scenario file, and where it is.

YAML as plain data that knows where it stands.

The core schema of YAML 1.2: ``true``, ``null``, whole numbers and floats are what they are, all
else is text, also ``yes``, ``on`` and ``12:30``. Of YAML's other features there are anchors and
aliases, but no tags and no merge keys; a key that comes twice is a mistake.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from fencepost.protocol.lookup import did_you_mean


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
