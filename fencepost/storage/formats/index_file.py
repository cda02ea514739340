"""What the files of both indexes have in common."""

from collections.abc import Sequence
from itertools import islice
from operator import lt
from typing import Final

from fencepost.protocol.buffers import Buffer

MAX_RELATIVE: Final = 2**31 - 1
"""The largest relative offset, and the largest position, that an entry can say."""


class CorruptIndex(ValueError):
    """An index that is none: a part of an entry, or entries that do not rise."""


def unpadded(data: Buffer, entry_size: int) -> bytes:
    """The entries without the zeros behind them.

    Kafka allots an index beforehand, and a kill leaves it so.

    :raises CorruptIndex: When the last entry is not whole.
    """
    if len(data) % entry_size:
        raise CorruptIndex(f"{len(data)} bytes are no entries of {entry_size} bytes")
    content = bytes(data)
    used = len(content.rstrip(b"\0"))
    return content[: -(-used // entry_size) * entry_size]


def check_rising(numbers: Sequence[int], least: int) -> None:
    """See that entries rise, each above the one before it.

    :param least: What the first may be.
    :raises CorruptIndex: When they do not.
    """
    first_is_right = not numbers or numbers[0] >= least
    if not first_is_right or not all(map(lt, numbers, islice(numbers, 1, None))):
        raise CorruptIndex("The entries of an index do not rise")
