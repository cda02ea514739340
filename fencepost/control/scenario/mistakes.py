"""A mistake in a scenario file, and where it is."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in a file; both count from 1, as editors do."""

    line: int
    column: int


class Mistake(Exception):
    """A scenario file is wrong. The text is one line: what is wrong, and what may be there."""

    def __init__(self, file: str, place: Place, text: str) -> None:
        super().__init__(f"{file}:{place.line}:{place.column}: {text}")
        self.file = file
        self.place = place
        self.text = text


def nearest(given: str, allowed: Iterable[str]) -> str:
    """What was meant, perhaps, and what may be there: the end of a sentence about a name."""
    names = sorted(allowed)
    near = get_close_matches(given, names, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"{hint} There are {', '.join(names)}" if hint else f"; there are {', '.join(names)}"
