"""The token of a control API: its form, and where a server and its clients read it.

A control API that other machines can reach is used with a token alone. The server has it from an
option, from a file, or draws it; a client has it from an option or from the same variables.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

TOKEN: Final = "FENCEPOST_CONTROL_TOKEN"  # noqa: S105  # a name
TOKEN_FILE: Final = "FENCEPOST_CONTROL_TOKEN_FILE"  # noqa: S105  # likewise
MIN_CHARACTERS: Final = 8
MAX_CHARACTERS: Final = 512
FORM: Final = f"{MIN_CHARACTERS} to {MAX_CHARACTERS} letters, digits and characters of -._~+/="
"""The characters are those of a bearer token (RFC 6750, section 2.1), which a header can carry."""
_TOKEN: Final = re.compile(rf"[A-Za-z0-9\-._~+/=]{{{MIN_CHARACTERS},{MAX_CHARACTERS}}}")
_DRAWN_BYTES: Final = 16


class InvalidToken(Exception):
    """A token that no header could carry, or a file without one. The text never has the token."""


def checked(token: str) -> str:
    """The token itself.

    :raises InvalidToken: When it is not of the `FORM`.
    """
    if _TOKEN.fullmatch(token) is None:
        raise InvalidToken(f"the token is not {FORM}")
    return token


def read(path: Path) -> str:
    """The token in a file, which holds nothing else but white space around it.

    :raises InvalidToken: When the file can't be read, or has something else.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidToken(f"can't read {path}: {error.strerror or error}") from None
    try:
        return checked(content.decode("ascii", "replace").strip())
    except InvalidToken:
        raise InvalidToken(f"{path} has no token, which is {FORM}") from None


def drawn() -> str:
    """A random token: 32 hexadecimal digits."""
    return os.urandom(_DRAWN_BYTES).hex()


def from_environment(environment: Mapping[str, str]) -> str | None:
    """The token of ``FENCEPOST_CONTROL_TOKEN``, or of the file that the other variable names.

    :returns: None where neither is set, or both are empty.
    :raises InvalidToken: When it is of no use.
    """
    token, path = environment.get(TOKEN), environment.get(TOKEN_FILE)
    if token:
        return checked(token)
    return read(Path(path)) if path else None
