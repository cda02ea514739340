"""``a0..a9``: many texts in one."""

import re
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

T = TypeVar("T")

MAX_TEXTS: Final = 100_000
_RANGE: Final = re.compile(r"(?P<stem>.*?)(?P<first>[0-9]+)\.\.(?P<again>.*?)(?P<last>[0-9]+)")


def spread(given: Iterable[T]) -> Iterator[T | str]:
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


def gathered(texts: Iterable[object]) -> list[object]:
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
