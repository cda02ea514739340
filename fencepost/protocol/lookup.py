"""APIs, errors and configs by the name that a person wrote, and the nearest one where none has it.

Every start imports this module: ``difflib``, which takes milliseconds to import, is imported where
a name is unknown.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from fencepost.protocol.apis import APIS, BY_KEY, Api
from fencepost.protocol.errors import ErrorCode


class UnknownName(ValueError):
    """No API or error has the name or number that was given; the text names the nearest."""


def config_name_hint(
    name: str, known: Iterable[str], synonyms: Mapping[str, str], kind: str
) -> str:
    """A clause that names what was probably meant, empty where nothing is near.

    ``synonyms`` leads from the names of the other kind of resource to this ``kind``'s.
    """
    if name in synonyms:
        return f"; the {kind} config is {synonyms[name]}"
    # difflib takes milliseconds to import, and few ever mistype a name.
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1, cutoff=0.7)
    return f"; did you mean {near[0]}?" if near else ""


def parse_api_ceiling(text: str) -> tuple[str, int]:
    """The API's name, and the highest version of it that is to be served.

    An API may be named in any spelling (``ListOffsets``, ``list_offsets``, ``list-offsets``) or by
    its key.

    :raises ValueError: With what is wrong, as the end of a sentence about the text.
    """
    name, equals, version = text.partition("=")
    if not name or not equals:
        raise ValueError("is not API=VERSION, such as fetch=8")
    api = _find_served_api(name)
    low, high = api.min_version, api.max_version
    if not (version.isascii() and version.isdigit()) or not low <= int(version) <= high:
        raise ValueError(f"is not a version of {api.title} from {low} to {high}")
    return api.name, int(version)


def _find_served_api(name: str) -> Api:
    if name.isascii() and name.isdigit():
        found = BY_KEY.get(int(name))
        if found is None:
            raise ValueError("names no API that is served; fetch is 1, metadata is 3")
        return found
    by_letters = {_api_letters(api.name): api for api in APIS}
    letters = _api_letters(name)
    if letters in by_letters:
        return by_letters[letters]
    # difflib takes milliseconds to import, and few ever mistype a name.
    from difflib import get_close_matches

    near = get_close_matches(letters, by_letters, n=1, cutoff=0.6)
    hint = f"; did you mean {by_letters[near[0]].name}?" if near else ""
    raise ValueError(f"names no API that is served{hint}")


def _api_letters(name: str) -> str:
    return "".join(character for character in name.lower() if character not in "_- ")


_APIS: Final = {api.title.casefold(): api for api in APIS}
_ERRORS: Final = {code.name.replace("_", "").casefold(): code for code in ErrorCode}
_LOWEST_CODE: Final = -(1 << 15)
_HIGHEST_CODE: Final = (1 << 15) - 1


def find_api(asked: str) -> Api:
    """An API by its key or by its name, however that is written.

    :raises UnknownName: When there is none; its text names the nearest.
    """
    if asked.isascii() and asked.isdigit() and int(asked) in BY_KEY:
        return BY_KEY[int(asked)]
    plain = asked.replace("_", "").casefold()
    if plain in _APIS:
        return _APIS[plain]
    from difflib import get_close_matches

    near = get_close_matches(plain, _APIS, n=1)
    hint = f"; did you mean {_APIS[near[0]].title}?" if near else ""
    raise UnknownName(f"api: no API {asked!r} is served{hint}")


def find_error(asked: str) -> int:
    """The code of an error by its name, however that is written, or by the code itself.

    :raises UnknownName: When Kafka has no error of that name (its text names the nearest), or no
        room for such a code.
    """
    try:
        code = int(asked)
    except ValueError:
        return _find_error_by_name(asked)
    if not _LOWEST_CODE <= code <= _HIGHEST_CODE:
        allowed = f"codes go from {_LOWEST_CODE} to {_HIGHEST_CODE}"
        raise UnknownName(f"error: {asked}: {allowed}")
    return code


def _find_error_by_name(asked: str) -> int:
    plain = asked.replace("_", "").casefold()
    if plain in _ERRORS:
        return _ERRORS[plain]
    from difflib import get_close_matches

    near = get_close_matches(plain, _ERRORS, n=1)
    hint = f"; did you mean {_ERRORS[near[0]].name}?" if near else ""
    raise UnknownName(f"error: Kafka has no {asked!r}{hint}")
