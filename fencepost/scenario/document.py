"""A scenario file as plain data that knows the place of each value, and the syntax inside values.

The core schema of YAML 1.2: ``true``, ``null``, whole numbers and floats are read as such, all else
is text, also ``yes``, ``on`` and ``12:30``. Of YAML's other features there are anchors and
aliases, but no tags and no merge keys; a key that comes twice is a mistake. What a file may hold is
bounded, with what its aliases stand for: a few lines of them can name a thousand million values.

Inside values, ``a0..a9`` stands for many texts, and ``$name.field.0`` for a part of the answer of
an earlier step.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Final, TypeAlias, TypeVar

import yaml
from msgspec import Struct
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from fencepost.protocol.lookup import did_you_mean


class Place(Struct, frozen=True):
    """Where something stands in a file; both count from 1, as editors do."""

    line: int
    column: int


MAX_MESSAGE: Final = 1000
"""How many characters of what is wrong are shown."""


class ScenarioFileError(Exception):
    """A scenario file is wrong. The text is one line: what is wrong, and what may be there."""

    def __init__(self, file: str, place: Place, text: str) -> None:
        text = text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}..."
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

MAX_DEPTH: Final = 64
"""How deep values may be nested."""
MAX_VALUES: Final = 100_000
"""How many values a file may hold, each as often as aliases repeat it."""
MAX_CHARACTERS: Final = 16 << 20
"""How many characters all of its texts may have, likewise."""
MAX_DIGITS: Final = 40
"""Of a number; Kafka's have 19 at most."""
_KNOWN_TAGS: Final = "tag:yaml.org,2002:"
_INT: Final = re.compile(r"[-+]?[0-9]+|0x[0-9a-fA-F]+|0o[0-7]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: Final[Mapping[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


class _TooDeep(yaml.MarkedYAMLError):
    """Values are nested too deeply. PyYAML would recurse until Python stops it."""


class _Loader(yaml.SafeLoader):
    """PyYAML's loader, bounded in depth."""

    _depth = 0

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            event = self.peek_event()  # type: ignore[no-untyped-call]  # PyYAML's own
            problem = f"values are nested more than {MAX_DEPTH} deep"
            raise _TooDeep(problem=problem, problem_mark=event.start_mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


class Document:
    """A file's content and where each part of it stands.

    :param file: Its name, for messages.
    """

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self._values: dict[KeyPath, Place] = {}
        self._keys: dict[KeyPath, Place] = {}
        self._texts: dict[KeyPath, str] = {}
        self._values_left = MAX_VALUES
        self._characters_left = MAX_CHARACTERS
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
            found = yaml.compose(text, Loader=_Loader)
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
        self._values_left -= 1
        if self._values_left < 0:
            why = f"the file has more than {MAX_VALUES} values, counting what aliases repeat"
            raise ScenarioFileError(self.file, place, why)
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
            name = self._text(key)
            if name in found:
                raise ScenarioFileError(self.file, _place(key), f"{name} is there twice")
            if name == "<<":
                raise ScenarioFileError(self.file, _place(key), "there are no merge keys")
            self._keys[*path, name] = _place(key)
            found[name] = self._plain(value, (*path, name), inside)
        return found

    def _scalar(self, node: ScalarNode, path: KeyPath) -> Data:
        text = self._text(node)
        if not node.tag.startswith(_KNOWN_TAGS):
            raise ScenarioFileError(
                self.file, _place(node), f"there are no tags such as {node.tag}"
            )
        value = text if node.style is not None else _resolved(text)  # quoted text, or a block
        if value is None and text not in _WORDS:
            raise ScenarioFileError(self.file, _place(node), _NO_NUMBER)
        if isinstance(value, int | float):
            self._texts[path] = text
        return value

    def _text(self, node: ScalarNode) -> str:
        text = str(node.value)
        self._characters_left -= len(text)
        if self._characters_left < 0:
            why = f"its texts have more than {MAX_CHARACTERS} characters, counting aliases"
            raise ScenarioFileError(self.file, _place(node), why)
        if not _is_encodable(text):
            raise ScenarioFileError(self.file, _place(node), "half of a surrogate pair is no text")
        return text


_NO_NUMBER: Final = f"a number has {MAX_DIGITS} digits at most, and is not infinite"


def _resolved(text: str) -> Data:
    """The value of a plain scalar; None, too, for a number that is too large."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        if len(text) > MAX_DIGITS:
            return None
        return int(text) if text.lstrip("+-").isdigit() else int(text, 0)
    if _FLOAT.fullmatch(text):
        value = float(text)
        return value if isfinite(value) else None
    return text


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _place(node: Node) -> Place:
    mark = node.start_mark
    return Place(mark.line + 1, mark.column + 1)


T = TypeVar("T")

MAX_TEXTS: Final = 100_000
"""How many texts the ranges of a list stand for at most."""
MAX_RANGE: Final = 1000
"""Characters of a range; the pattern takes their square in time."""
_MAX_RANGE_DIGITS: Final = 18
_END: Final = f"[0-9]{{1,{_MAX_RANGE_DIGITS}}}"
_RANGE: Final = re.compile(
    rf"(?P<stem>.*?)(?P<first>{_END})\.\.(?P<again>.*?)(?P<last>{_END})",
)


class RangeTooLong(ValueError):
    """Ranges stand for too many texts."""


def expand_ranges(given: Iterable[T]) -> Iterator[T | str]:
    """The elements of a list, with each range in place of its text.

    ``a0..a9`` is a0 to a9, both inclusive; where both ends have as many digits, so have all.

    :raises RangeTooLong: When they are more than `MAX_TEXTS` with all ranges before.
    """
    left = MAX_TEXTS
    for each in given:
        may_be_range = isinstance(each, str) and len(each) <= MAX_RANGE
        found = _RANGE.fullmatch(str(each)) if may_be_range else None
        if found is None or found["stem"] != found["again"]:
            yield each
            continue
        first, last = int(found["first"]), int(found["last"])
        width = len(found["first"]) if len(found["first"]) == len(found["last"]) else 0
        left -= max(last - first + 1, 0)
        if left < 0:
            raise RangeTooLong(f"ranges stand for {MAX_TEXTS} texts at most, up to {each}")
        for number in range(first, last + 1):
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
    if not 0 < len(digits) <= _MAX_RANGE_DIGITS or (digits[0] == "0" and digits != "0"):
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


def list_index(text: str) -> int | None:
    """The index of a list's element that a text names; None where it names none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < MAX_DIGITS else None


def _part(value: Data, field: str, text: str) -> Data:
    if isinstance(value, dict) and field in value:
        return value[field]
    if isinstance(value, list) and (index := list_index(field)) is not None and index < len(value):
        return value[index]
    if isinstance(value, dict):
        raise UnresolvedReference(f"there is no {text}; there are {', '.join(value)}")
    raise UnresolvedReference(f"there is no {text}")
