"""What is wrong with what was given, in one line: the same words wherever it was given."""

from collections.abc import Mapping, Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails


def problems(error: ValidationError) -> str:
    """All that is wrong, each once."""
    return "; ".join(dict.fromkeys(problem(each["loc"], each) for each in error.errors()))


def problem(place: Sequence[str | int], error: ErrorDetails | Mapping[str, object]) -> str:
    """One thing that is wrong.

    :param place: Where, from the outermost field to the innermost.
    """
    text = str(error["msg"]).removeprefix("Value error, ")
    for python, json in (("tuple", "array"), ("Tuple", "Array")):
        text = text.replace(python, json)
    name = dotted(place)
    return f"{name}: {text[:1].lower()}{text[1:]}" if name else text


def dotted(place: Sequence[str | int]) -> str:
    """A place as one writes it: ``assignments[0][1]``."""
    name = ""
    for part in place:
        name += f"[{part}]" if isinstance(part, int) else f".{part}"
    return name.removeprefix(".")
