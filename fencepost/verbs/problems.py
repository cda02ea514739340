"""What is wrong with data that was to be a model: every problem, with its place, as one line."""

from collections.abc import Iterable, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

Place: TypeAlias = tuple[str | int, ...]
"""The path of a value: names of fields and indexes, the outermost first."""
ProblemKind: TypeAlias = Literal["left_out", "not_text", "not_object", "wrong"]
"""What a caller may mend: a field that is left out, a number that stands for text, a whole that is
no object."""
LEFT_OUT: Final = "field required"


class Problem(Struct, frozen=True, kw_only=True):
    """One value that is not as it should be."""

    place: Place = ()
    text: str
    """What is wrong, in words of JSON, beginning with a small letter."""
    kind: ProblemKind = "wrong"
    given: object = None
    """The value; where a field is left out, what it is left out of."""

    @property
    def line(self) -> str:
        """It with its place: ``assignments[0][1]: input should be a valid integer``."""
        return text_at(self.place, self.text)


class InvalidModel(ValueError):
    """Data that is none of a model. Its text names each problem once."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__("; ".join(dict.fromkeys(each.line for each in self.problems)))


def text_at(place: Sequence[str | int], text: str) -> str:
    """A text about the value at a place."""
    name = dotted_path(place)
    return f"{name}: {text}" if name else text


def dotted_path(place: Sequence[str | int]) -> str:
    """A path of fields as text: ``assignments[0][1]``."""
    name = ""
    for part in place:
        name += f"[{part}]" if isinstance(part, int) else f".{part}"
    return name.removeprefix(".")
