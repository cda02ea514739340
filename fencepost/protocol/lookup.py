"""APIs, errors and configs by the name that a person wrote, and the nearest name to an unknown one.

Case, ``_``, ``-``, ``.`` and spaces make no difference: ``ListOffsets`` is ``list-offsets``.

Every start imports this module. ``difflib`` takes milliseconds to import, and so it is imported
only where a name is unknown.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from fencepost.protocol.apis import APIS, BY_KEY, Api
from fencepost.protocol.errors import ErrorCode

MAX_LISTED: Final = 12
"""Names that `suggestion` lists."""
_LONGEST: Final = 100
"""Characters of a name that is compared with others."""
_CUTOFF: Final = 0.6
_LOWEST_CODE: Final = -(1 << 15)
_HIGHEST_CODE: Final = (1 << 15) - 1
_SEPARATORS: Final = str.maketrans("", "", "_-. ")


class UnknownName(ValueError):
    """No API or error has this name or number. The text is for the control API.

    :ivar hint: A clause with the nearest name, empty where none is near; for other texts.
    """

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(f"{text}{hint}")
        self.hint = hint


# -- the nearest name ---------------------------------------------------------------------------


def nearest(name: str, known: Iterable[str], *, cutoff: float = _CUTOFF) -> str | None:
    """The known name that is most similar, None where no name is similar enough.

    :param cutoff: The least similarity, from 0 to 1.
    """
    if len(name) > _LONGEST:  # the time rises with the square of the length
        return None
    letters = _letters(name)
    # A ratio is at most twice the shorter length over both: this spares most comparisons.
    size = len(letters)
    by_letters = {
        each_letters: each
        for each in known
        if 2 * min(size, len(each_letters := _known_letters(each)))
        >= cutoff * (size + len(each_letters))
    }
    if not by_letters:
        return None
    from difflib import get_close_matches

    near = get_close_matches(letters, by_letters, n=1, cutoff=cutoff)
    return by_letters[near[0]] if near else None


def did_you_mean(name: str, known: Iterable[str], *, cutoff: float = _CUTOFF) -> str:
    """A clause with the nearest name, empty where none is near."""
    near = nearest(name, known, cutoff=cutoff)
    return f"; did you mean {near}?" if near else ""


def suggestion(name: str, known: Sequence[str]) -> str:
    """The end of a message about an unknown name: the known names and the nearest of them."""
    if not known:
        return ""
    hint = did_you_mean(name, known)
    more = len(known) - MAX_LISTED
    listed = ", ".join(known[:MAX_LISTED])
    if more <= 0:
        return f", only {listed}{hint}"
    return hint or f", only {listed} and {more} more"


def config_name_hint(
    name: str, known: Iterable[str], synonyms: Mapping[str, str], kind: str
) -> str:
    """A clause with the config that was probably meant, empty where no name is near.

    :param synonyms: Leads from the names of the other kind of resource to this ``kind``'s.
    """
    if name in synonyms:
        return f"; the {kind} config is {synonyms[name]}"
    return did_you_mean(name, known, cutoff=0.7)


# -- APIs and errors ----------------------------------------------------------------------------


def find_api(text: str) -> Api:
    """An API by its name in any spelling, or by its key.

    :raises UnknownName: When no such API is served.
    """
    if text.isascii() and text.isdigit() and int(text) in BY_KEY:
        return BY_KEY[int(text)]
    api = _APIS.get(_letters(text))
    if api is None:
        raise UnknownName(f"api: no API {text!r} is served", did_you_mean(text, api_names()))
    return api


def find_error(text: str) -> int:
    """The code of an error by its name in any spelling, or by the code itself.

    :raises UnknownName: When Kafka has no error of that name, or the code is no 16-bit integer.
    """
    try:
        code = int(text)
    except ValueError:
        return _find_error_by_name(text)
    if not _LOWEST_CODE <= code <= _HIGHEST_CODE:
        allowed = f"codes go from {_LOWEST_CODE} to {_HIGHEST_CODE}"
        raise UnknownName(f"error: {text}: {allowed}")
    return code


def _find_error_by_name(text: str) -> int:
    error = _ERRORS.get(_letters(text))
    if error is None:
        hint = did_you_mean(text, ErrorCode.__members__)
        raise UnknownName(f"error: Kafka has no {text!r}", hint)
    return error


def api_names() -> list[str]:
    """Kafka's names of all APIs that are served."""
    return [api.title for api in APIS]


def error_names() -> list[str]:
    """Kafka's names of all errors, without NONE."""
    return [code.name for code in ErrorCode if code]


def parse_api_ceiling(text: str) -> tuple[str, int]:
    """Read ``API=VERSION``: the API's name and the highest version of it to serve.

    :raises ValueError: With what is wrong, as the end of a sentence about the text.
    """
    name, equals, version = text.partition("=")
    if not name or not equals:
        raise ValueError("is not API=VERSION, such as fetch=8")
    try:
        api = find_api(name)
    except UnknownName as error:
        raise ValueError(f"names no API that is served{_ceiling_hint(name)}") from error
    low, high = api.min_version, api.max_version
    if not (version.isascii() and version.isdigit()) or not low <= int(version) <= high:
        raise ValueError(f"is not a version of {api.title} from {low} to {high}")
    return api.name, int(version)


def _ceiling_hint(name: str) -> str:
    """As the option is mostly written: APIs by their names in snake_case."""
    if name.isascii() and name.isdigit():
        return "; fetch is 1, metadata is 3"
    return did_you_mean(name, [api.name for api in APIS])


@lru_cache(maxsize=4096)
def _known_letters(name: str) -> str:
    return _letters(name)


def _letters(name: str) -> str:
    return name.translate(_SEPARATORS).casefold()


_APIS: Final = {_letters(api.name): api for api in APIS}
_ERRORS: Final = {_letters(code.name): code for code in ErrorCode}
