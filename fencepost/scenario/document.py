"""A scenario file as plain data that knows the place of each value, and the syntax inside values.

The core schema of YAML 1.2: ``true``, ``null``, whole numbers and floats are read as such, all else
is text, also ``yes``, ``on`` and ``12:30``. Of YAML's other features there are anchors and
aliases, but no tags and no merge keys; a key that comes twice is a mistake.

Inside values, ``a0..a9`` stands for many texts, and ``$name.field.0`` for a part of the answer of
an earlier step.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

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


T = TypeVar("T")

MAX_TEXTS: Final = 100_000
_RANGE: Final = re.compile(r"(?P<stem>.*?)(?P<first>[0-9]+)\.\.(?P<again>.*?)(?P<last>[0-9]+)")


def expand_ranges(given: Iterable[T]) -> Iterator[T | str]:
    """The elements of a list, with each range in place of its text.

    ``a0..a9`` is a0 to a9, both inclusive; where both ends have as many digits, so have all.
    """
    for each in given:
        found = _RANGE.fullmatch(each) if isinstance(each, str) else None
        if found is None or found["stem"] != found["again"]:
            yield each
            continue
        first, last = int(found["first"]), int(found["last"])
        width = len(found["first"]) if len(found["first"]) == len(found["last"]) else 0
        for number in range(first, min(last, first + MAX_TEXTS) + 1):
            yield f"{found['stem']}{number:0{width}}"


def collapse_ranges(texts: Iterable[object]) -> list[object]:
    """The opposite, for a reader: runs of three and more as ranges."""
    made: list[object] = []
    run: list[tuple[str, int]] = []

    def flush() -> None:
        if len(run) > 2:
            made.append(f"{run[0][0]}{run[0][1]}..{run[-1][0]}{run[-1][1]}")
        else:
            made.extend(f"{stem}{number}" for stem, number in run)
        run.clear()

    for each in texts:
        split = _split(each)
        if split is None:
            flush()
            made.append(each)
            continue
        if run and (run[-1][0], run[-1][1] + 1) != split:
            flush()
        run.append(split)
    flush()
    return made


def _split(text: object) -> tuple[str, int] | None:
    if not isinstance(text, str):
        return None
    stem = text.rstrip("0123456789")
    digits = text[len(stem) :]
    if not digits or (digits[0] == "0" and digits != "0"):
        return None
    return stem, int(digits)


_REFERENCE: Final = re.compile(r"\$(?P<name>[A-Za-z_][\w-]*)(?P<fields>(\.[\w-]+)*)")


class UnresolvedReference(Exception):
    """A reference names nothing that is there. The text says what."""


def parse_reference(value: object) -> tuple[str, list[str]] | None:
    """The name and the fields of a reference; None for any other value."""
    found = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    return found["name"], found["fields"].split(".")[1:]


def find_references(data: object, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Where references stand in data, and the names in them."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from find_references(value, (*path, key))
    elif isinstance(data, list):
        for at, value in enumerate(data):
            yield from find_references(value, (*path, at))
    elif (found := parse_reference(data)) is not None:
        yield path, found[0]


def resolve(data: Data, answers: Mapping[str, Data]) -> Data:
    """Data with what its references refer to.

    :param answers: By the names of steps.
    :raises UnresolvedReference: When one has no such field.
    """
    if isinstance(data, dict):
        return {key: resolve(value, answers) for key, value in data.items()}
    if isinstance(data, list):
        return [resolve(each, answers) for each in data]
    found = parse_reference(data)
    if found is None:
        return data[1:] if isinstance(data, str) and data.startswith("$$") else data
    name, fields = found
    if name not in answers:
        raise UnresolvedReference(f"${name} has no answer yet")
    value = answers[name]
    for at, field in enumerate(fields):
        value = _part(value, field, f"${'.'.join([name, *fields[: at + 1]])}")
    return value


def _part(value: Data, field: str, text: str) -> Data:
    if isinstance(value, dict) and field in value:
        return value[field]
    if isinstance(value, list) and field.isdigit() and int(field) < len(value):
        return value[int(field)]
    if isinstance(value, dict):
        raise UnresolvedReference(f"there is no {text}; there are {', '.join(value)}")
    raise UnresolvedReference(f"there is no {text}")
