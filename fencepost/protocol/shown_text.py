"""Escapes text from clients for output: nothing in it acts on a terminal or forges a line.

Client ids, group ids, selectors of faults and messages of errors are whatever a client has sent.
Printed as they are, an escape sequence (ESC, or CSI and OSC of C1) would rewrite the screen, the
title or the clipboard, a line break would make a row that no answer has, and a character that
changes the direction of text would show another word than there is. All of these are characters
that Python does not call printable: they are shown as Python escapes them.

JSON escapes most of them itself, and the rest may be escaped without changing what it says.

The user and the password of a URL are not for any message.
"""

import re
from typing import Final

_UNPRINTABLE: Final = re.compile(r"[^\S ]|[^\w\s!-/:-@\[-`{-~]")
"""Candidates, by what `re` knows of classes; `str.isprintable` decides about each."""
_URL: Final = re.compile(r"://(\S*@\S*)")
_AUTHORITY_END: Final = re.compile(r"[/?#]")
_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.\-]*)(:[0-9]*)?")


def escaped(text: str) -> str:
    r"""The same text in one line, each unprintable character as ``\x1b``, ``\n`` or ``\u202e``."""
    return text if text.isprintable() else _UNPRINTABLE.sub(_escape, text)


def escaped_lines(text: str) -> str:
    """As `escaped`, for a text whose line breaks are ours."""
    return "\n".join(map(escaped, text.split("\n")))


def escaped_json(text: str) -> str:
    r"""JSON that says the same, with ``\u009b`` where JSON allows the character itself.

    Line breaks and tabs stay: in JSON they are only between its tokens.
    """
    return text if text.isprintable() else _UNPRINTABLE.sub(_escape_in_json, text)


def without_user_info(url: str) -> str:
    """A URL without its ``user:password@``.

    Of one that is so wrong that no host can be read from it, what follows its last ``@`` is left.
    """
    scheme, separator, rest = url.partition("://")
    return f"{scheme}{separator}{_without_user(rest)}" if separator else _without_user(url)


def without_user_infos(text: str) -> str:
    """A message without the ``user:password@`` of the URLs in it."""
    return _URL.sub(lambda found: f"://{_without_user(found[1])}", text)


def _without_user(rest: str) -> str:
    """What follows the ``://`` of a URL, without its user."""
    if "@" not in rest:
        return rest
    authority = _AUTHORITY_END.split(rest, maxsplit=1)[0]
    host, path = authority.rpartition("@")[2], rest[len(authority) :]
    if "@" not in path or _HOST.fullmatch(host):
        return host + path
    return rest.rpartition("@")[2]


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")


def _escape_in_json(found: re.Match[str]) -> str:
    character = found[0]
    if character in "\t\r\n" or character.isprintable():
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
