"""What a test calls by name: APIs and errors, by Kafka's names, however written, or by number."""

from difflib import get_close_matches
from typing import Final

from fencepost.broker.refusals import ControllerError
from fencepost.protocol.apis import APIS, BY_KEY, Api
from fencepost.protocol.errors import ErrorCode

_APIS: Final = {api.title.casefold(): api for api in APIS}
_ERRORS: Final = {code.name.replace("_", "").casefold(): code for code in ErrorCode}
_LOWEST_CODE: Final = -(1 << 15)
_HIGHEST_CODE: Final = (1 << 15) - 1


def find_api(asked: str) -> Api:
    """An API by its key or by its name, however that is written.

    :raises ControllerError: INVALID_REQUEST when there is none.
    """
    if asked.isascii() and asked.isdigit() and int(asked) in BY_KEY:
        return BY_KEY[int(asked)]
    plain = asked.replace("_", "").casefold()
    if plain in _APIS:
        return _APIS[plain]
    near = get_close_matches(plain, _APIS, n=1)
    hint = f"; did you mean {_APIS[near[0]].title}?" if near else ""
    raise ControllerError(ErrorCode.INVALID_REQUEST, f"api: no API {asked!r} is served{hint}")


def find_error(asked: str) -> int:
    """The code of an error by its name, however that is written, or by the code itself.

    :raises ControllerError: INVALID_REQUEST when Kafka has no error of that name, or no room for
        such a code.
    """
    try:
        code = int(asked)
    except ValueError:
        return _find_error_by_name(asked)
    if not _LOWEST_CODE <= code <= _HIGHEST_CODE:
        allowed = f"codes go from {_LOWEST_CODE} to {_HIGHEST_CODE}"
        raise ControllerError(ErrorCode.INVALID_REQUEST, f"error: {asked}: {allowed}")
    return code


def _find_error_by_name(asked: str) -> int:
    plain = asked.replace("_", "").casefold()
    if plain in _ERRORS:
        return _ERRORS[plain]
    near = get_close_matches(plain, _ERRORS, n=1)
    hint = f"; did you mean {_ERRORS[near[0]].name}?" if near else ""
    raise ControllerError(ErrorCode.INVALID_REQUEST, f"error: Kafka has no {asked!r}{hint}")
