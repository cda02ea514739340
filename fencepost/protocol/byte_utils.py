"""Bytes: the type of buffers that are not copied, hashes, varints of records, ids as text."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from functools import cache, lru_cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Final, TypeAlias, cast
from uuid import UUID

Buffer: TypeAlias = bytes | bytearray | memoryview
"""Bytes that are passed on without a copy."""
_MAX_SHIFT: Final = 63
_KNOWN_IDS: Final = 1024
"""Ids of segments are read time and again, as often as the tier is looked at."""


class MalformedField(ValueError):
    """The bytes are no varint, or a length reaches beyond its record."""


# -- CRC-32C ------------------------------------------------------------------------------------


def crc32c(data: Buffer, value: int = 0) -> int:
    """The CRC-32C of ``data``.

    :param value: The checksum of the bytes before ``data``, which it continues.
    """
    return _crc32c_implementation()(data, value)


@cache
def _crc32c_implementation() -> Callable[[Buffer, int], int]:
    """The function of the package's extension module, without the package.

    The package has a command line, and so takes 20 ms and 2 MB more: by the first batch that a
    client sends, while all others wait.
    """
    package = find_spec("crc32c")
    if package is not None:
        spec = PathFinder.find_spec("_crc32c", package.submodule_search_locations)
        if spec is not None and spec.loader is not None:
            extension = module_from_spec(spec)
            spec.loader.exec_module(extension)
            return cast("Callable[[Buffer, int], int]", extension.crc32c)
    from crc32c import crc32c as implementation

    return implementation


# -- murmur2 ------------------------------------------------------------------------------------

_MURMUR_SEED: Final = 0x9747B28C
_MURMUR_FACTOR: Final = 0x5BD1E995
_UINT32: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The hash by which Kafka's default partitioner chooses a key's partition, unsigned.

    Kafka's ``Utils.murmur2``; the partition is its lower 31 bits modulo the number of partitions.
    """
    value = _MURMUR_SEED ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _MURMUR_FACTOR & _UINT32
        word = (word ^ word >> 24) * _MURMUR_FACTOR & _UINT32
        value = value * _MURMUR_FACTOR & _UINT32 ^ word
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * _MURMUR_FACTOR & _UINT32
    value = (value ^ value >> 13) * _MURMUR_FACTOR & _UINT32
    return value ^ value >> 15


# -- zig-zag varints, and fields with such a length ---------------------------------------------


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The zig-zag varint at `at`, and where it ends.

    :raises IndexError: When the data ends inside of it.
    :raises MalformedField: When it has more than ten bytes.
    """
    byte = data[at]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    raw = byte & 0x7F
    shift = 7
    while True:
        at += 1
        byte = data[at]
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), at + 1
        shift += 7
        if shift > _MAX_SHIFT:
            raise MalformedField("varint is too long")


def write_varint(out: bytearray, value: int) -> None:
    """Append `value`, of 64 bits, as a zig-zag varint."""
    raw = value << 1 ^ value >> 63
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)


def read_field(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    """The bytes at `at` with their length before them (negative: null), and where they end.

    :param end: Where the record ends (exclusive).
    :raises IndexError: When the data ends inside of the length.
    :raises MalformedField: When the field would reach beyond `end`.
    """
    size, at = read_varint(data, at)
    if size < 0:
        return None, at
    stop = at + size
    if stop > end:
        raise MalformedField("field reaches beyond its record")
    return data[at:stop], stop


def write_field(out: bytearray, field: bytes | None) -> None:
    """Append `field` with its length before it."""
    if field is None:
        out.append(1)
    else:
        write_varint(out, len(field))
        out += field


# -- Ids ----------------------------------------------------------------------------------------


def format_uuid(value: UUID) -> str:
    """An id as Kafka writes it: 22 characters of URL-safe base64."""
    return urlsafe_b64encode(value.bytes).decode().rstrip("=")


@lru_cache(_KNOWN_IDS)
def parse_uuid(text: str) -> UUID:
    """The id that `format_uuid` wrote: the same object where it was read before.

    :raises ValueError: When it is none.
    """
    return UUID(bytes=urlsafe_b64decode(text + "=="))
