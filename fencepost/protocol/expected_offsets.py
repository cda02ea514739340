"""Expected offsets (KIP-27): their form in record headers, and in the text of a refusal.

A Produce answer has no field for offsets that do not match. The message of a record's error has
them, in one form that brokers write and clients read.
"""

import re
import struct
from typing import Final, NamedTuple

UNSPECIFIED: Final = -1
"""As a base offset, or in the header: nothing is expected."""
HEADER: Final = "expected-offset"
"""Name of the record header that states one where the base offset cannot."""

_INT64: Final = struct.Struct(">q")
_DECIMAL: Final = re.compile(rb"-1|[0-9]{1,19}")
_MAX_OFFSET: Final = 2**63 - 1
_TEXT: Final = re.compile(
    r"Expected offset (-?[0-9]+)(?:, last offset of the key ([0-9]+))?, upcoming offset ([0-9]+)"
)


class Mismatch(NamedTuple):
    """An expectation that is not met.

    :ivar upcoming: The offset that the record would have got.
    :ivar last_of_key: Offset of the last record with the same key, which is not below what was
        expected; None where the partition is what counts.
    """

    expected: int
    upcoming: int
    last_of_key: int | None = None

    def __str__(self) -> str:
        last = self.last_of_key
        of_key = "" if last is None else f", last offset of the key {last}"
        return f"Expected offset {self.expected}{of_key}, upcoming offset {self.upcoming}"


def parse_mismatch(text: str) -> Mismatch | None:
    """What a record's error says, None where it is about something else."""
    found = _TEXT.fullmatch(text)
    if found is None:
        return None
    expected, last, upcoming = found.groups()
    return Mismatch(int(expected), int(upcoming), None if last is None else int(last))


def read_header_value(value: bytes | None) -> int | None:
    """The offset that a header's value states: decimal text, or 8 bytes big-endian.

    Eight digits are text: as an integer they would be an offset beyond 3 * 10^18.

    :returns: None where it is neither.
    """
    if value is None:
        return None
    if _DECIMAL.fullmatch(value):
        number = int(value)
        return number if number <= _MAX_OFFSET else None
    if len(value) == _INT64.size:
        (stated,) = _INT64.unpack(value)
        return int(stated)
    return None
