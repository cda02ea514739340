"""What the comparison by keys has found of a partition."""

from codecs import utf_8_decode
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

MAX_LISTED: Final = 1_000
"""Differences of a partition that are told one by one; all are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyDifference:
    """A key whose newest record one replica has, and another has not or has otherwise."""

    holder: int
    """The broker that has it."""
    other: int
    """The broker that has neither it nor a newer one of its key; or another value there."""
    offset: int
    """Of the record."""
    time_ms: int
    """Its timestamp."""
    key: str
    """Its key, as a person reads it; what follows the first bytes of it is left out."""
    is_there: bool
    """Whether the other has the record, with another value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyDifferences:
    """Those of a partition, or of some of its keys."""

    found: tuple[KeyDifference, ...] = ()
    """By offset."""
    more: int = 0
    """How many there are besides."""


def joined(parts: Iterable[KeyDifferences]) -> KeyDifferences:
    """Those of several parts of a partition."""
    known = tuple(parts)
    found = sorted((each for part in known for each in part.found), key=by_offset)
    more = sum(each.more for each in known) + len(found[MAX_LISTED:])
    return KeyDifferences(found=tuple(found[:MAX_LISTED]), more=more)


def named_key(size: int, *words: int) -> str:
    """A key as a person reads it: quoted text where it is some, and bytes in hex where not.

    :param size: Of the whole key, in bytes.
    :param words: How it begins, eight bytes in each, little-endian.
    """
    head = b"".join(each.to_bytes(8, "little", signed=True) for each in words)[:size]
    is_whole = len(head) == size
    more = "" if is_whole else f" (the first of {size} bytes)"
    try:
        # A character that goes on behind the head is no sign that the key is no text.
        text, _ = utf_8_decode(head, "strict", is_whole)
    except UnicodeDecodeError:
        return f"0x{head.hex()}{more}"
    return f"{text!r}{more}" if text.isprintable() else f"0x{head.hex()}{more}"


def by_offset(difference: KeyDifference) -> tuple[int, int, int]:
    """What differences are sorted by."""
    return difference.offset, difference.other, difference.holder
