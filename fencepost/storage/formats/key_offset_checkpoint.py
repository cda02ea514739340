"""The last offsets of a log's keys (``key-offset-checkpoint``), which is fencepost's own.

Version 1, big endian: version (i16), CRC-32C of all that follows (u32); the offset that the log was
looked at to (i64, exclusive), the leader epoch of the record before it (i32), the log start from
which on it was (i64); count (i32); the last offset of each key, rising (i64 each); the length of
each key (i32 each); the keys.
"""

import struct
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Final, Literal, NamedTuple, TypeAlias

from fencepost.protocol.byte_utils import Buffer, crc32c

_VERSION: Final = 1
_CHECKED: Final = struct.Struct(">hI")
_SCOPE: Final = struct.Struct(">qiq")
_COUNT: Final = struct.Struct(">i")
_SWAPPED: Final = sys.byteorder == "little"
_Type: TypeAlias = Literal["q", "i"]

HEAD_SIZE: Final = _CHECKED.size + _SCOPE.size
"""How many bytes `decode_scope` needs."""


class CorruptKeyOffsets(ValueError):
    """A file of another version, of another length than it says, or that fails its CRC."""


class KeyOffsetScope(NamedTuple):
    """Which part of which log was looked at.

    :ivar until: From the log start to here (exclusive).
    :ivar epoch: The leader epoch of the record before that.
    :ivar log_start: Records before this offset are not counted in.
    """

    until: int
    epoch: int
    log_start: int


def encode_key_offsets(scope: KeyOffsetScope, offsets: Mapping[bytes, int]) -> bytes:
    """The bytes of the file.

    :param offsets: Of each key, in the order of the offsets.
    """
    numbers = _packed("q", offsets.values()) + _packed("i", map(len, offsets))
    data = b"".join((_SCOPE.pack(*scope), _COUNT.pack(len(offsets)), numbers, *offsets))
    return _CHECKED.pack(_VERSION, crc32c(data)) + data


def decode_scope(data: Buffer) -> KeyOffsetScope:
    """What the first bytes of a file say, which may be wrong: their checksum needs all of it.

    :raises CorruptKeyOffsets: When they are too few, or of a version other than 1.
    """
    if len(data) < HEAD_SIZE:
        raise CorruptKeyOffsets(f"A checkpoint of keys of {len(data)} bytes")
    version, _ = _CHECKED.unpack_from(data)
    if version != _VERSION:
        raise CorruptKeyOffsets(f"A checkpoint of keys of version {version}, not {_VERSION}")
    return KeyOffsetScope(*_SCOPE.unpack_from(data, _CHECKED.size))


def decode_key_offsets(data: Buffer) -> tuple[KeyOffsetScope, dict[bytes, int]]:
    """What a file says, in its order.

    :raises CorruptKeyOffsets: When it is no checkpoint of version 1.
    """
    scope = decode_scope(data)
    content = bytes(data)
    _, checksum = _CHECKED.unpack_from(content)
    if crc32c(memoryview(content)[_CHECKED.size :]) != checksum:
        raise CorruptKeyOffsets("A checkpoint of keys fails its CRC")
    try:
        (count,) = _COUNT.unpack_from(content, HEAD_SIZE)
        at = HEAD_SIZE + _COUNT.size
        offsets, at = _numbers("q", content, at, count)
        lengths, at = _numbers("i", content, at, count)
    except (struct.error, ValueError) as error:
        raise CorruptKeyOffsets("A checkpoint of keys ends before its keys") from error
    bounds = list(accumulate(lengths, initial=at))
    if min(lengths, default=0) < 0 or bounds[-1] != len(content):
        raise CorruptKeyOffsets(f"{count} keys end at {bounds[-1]} of {len(content)} bytes")
    keys = (content[start:end] for start, end in pairwise(bounds))
    return scope, dict(zip(keys, offsets, strict=True))


def _packed(typecode: _Type, numbers: Iterable[int]) -> bytes:
    packed = array(typecode, numbers)
    if _SWAPPED:
        packed.byteswap()
    return packed.tobytes()


def _numbers(typecode: _Type, data: bytes, start: int, count: int) -> tuple[Sequence[int], int]:
    """So many numbers, and where they end.

    :raises ValueError: When they are not all there.
    """
    numbers = array(typecode)
    end = start + count * numbers.itemsize
    if not start <= end <= len(data):
        raise ValueError(f"{count} numbers in {len(data) - start} bytes")
    numbers.frombytes(data[start:end])
    if _SWAPPED:
        numbers.byteswap()
    return numbers, end
