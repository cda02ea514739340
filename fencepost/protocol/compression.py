"""The four codecs of Kafka's record batches, with limits of what they may unpack to.

A batch's codec is bits 0-2 of its attributes. Batches are passed on as the client sent them; these
functions run only where records must be read, or where ``compression.type`` of a topic is another
codec than the producer's.

`compress` writes forms that every client reads: snappy in the xerial framing that Kafka's own
producer writes, lz4 in frames of independent blocks (Kafka's Java reader refuses dependent ones).
`decompress` reads all forms that clients send: raw snappy too, any lz4 frame, several gzip members.
Its work grows with the bytes that come in and go out: gzip is given its input in chunks, since what
a member leaves of it is copied, and gzip members and snappy blocks, each of which costs a call, are
limited in number.

cramjam is imported when a batch is first unpacked or packed: most servers pass on all as it is.
"""

import struct
import zlib
from collections.abc import Callable
from enum import IntEnum
from typing import Final

from fencepost.protocol.byte_utils import Buffer

MAX_DECOMPRESSED_BYTES: Final = 104_857_600
"""Default limit: as much as one request may hold (``socket.request.max.bytes``)."""
MAX_MEMBERS: Final = 10_000
"""Gzip members, or snappy blocks, of one batch; Kafka's clients write one member, and a block for
each 32 KiB."""


class Codec(IntEnum):
    """Compression codecs by their number in a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class CompressionError(ValueError):
    """The bytes are not what their codec says."""


class TooLargeUnpacked(CompressionError):
    """More bytes, members or blocks would come out than allowed."""


CODECS_BY_NAME: Final[dict[str, Codec]] = {
    "none": Codec.NONE,
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}
"""Codecs by the names that ``compression.type`` uses (``producer`` is not a codec)."""

_FIRST_GUESS: Final = 1 << 16
_FULL: Final = "failed to write whole buffer"

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK: Final = 32 * 1024
_INT32: Final = struct.Struct(">i")

# Magic, then FLG (version 1, independent blocks, no checksums), BD (64 KiB blocks), and the
# header checksum of those two bytes, which never changes.
_LZ4_HEADER: Final = bytes.fromhex("04224d18604082")
_LZ4_BLOCK: Final = 64 * 1024
_LZ4_STORED: Final = 0x8000_0000
_LZ4_DEFAULT_LEVEL: Final = 9
_LZ4_FAST: Final = 1
_UINT32_LE: Final = struct.Struct("<I")

_GZIP_WBITS: Final = 16 + zlib.MAX_WBITS
_GZIP_CHUNK: Final = 16 * 1024


def decompress(codec: int, data: Buffer, *, limit: int = MAX_DECOMPRESSED_BYTES) -> Buffer:
    """The plain bytes of what `codec` packed.

    :param codec: The codec's number, as in the attributes of a batch.
    :param limit: How many bytes may come out at most.
    :raises CompressionError: When the codec is unknown, or the bytes are broken or cut short.
    :raises TooLargeUnpacked: When more than `limit` bytes would come out, or there are more than
        `MAX_MEMBERS` gzip members or snappy blocks.
    """
    if codec == Codec.NONE:
        return data
    unpack = _DECOMPRESSORS.get(codec)
    if unpack is None:
        raise CompressionError(f"unknown compression codec {codec}")
    return unpack(data, limit)


def compress(codec: int, data: Buffer, *, level: int | None = None) -> Buffer:
    """`data` packed as Kafka's own producer would frame it.

    :param level: The codec's own level (``compression.gzip.level``, ``compression.lz4.level``,
        ``compression.zstd.level``); None is the codec's default, and snappy has none.
    :raises CompressionError: When the codec is unknown.
    """
    match codec:
        case Codec.NONE:
            return data
        case Codec.GZIP:
            return _gzip(data, level)
        case Codec.SNAPPY:
            return _xerial(data)
        case Codec.LZ4:
            return _lz4_frame(data, level)
        case Codec.ZSTD:
            return _zstd(data, level)
        case _:
            raise CompressionError(f"unknown compression codec {codec}")


def _too_big(limit: int) -> TooLargeUnpacked:
    return TooLargeUnpacked(f"more bytes after decompression than the {limit} that are allowed")


def _too_many() -> TooLargeUnpacked:
    return TooLargeUnpacked(f"more than {MAX_MEMBERS} compressed members")


def _gunzip(data: Buffer, limit: int) -> Buffer:
    out: list[bytes] = []
    view = memoryview(data)
    members = size = at = 0
    while at < len(view):
        members += 1
        if members > MAX_MEMBERS:
            raise _too_many()
        member = zlib.decompressobj(wbits=_GZIP_WBITS)
        while not member.eof:
            chunk = view[at : at + _GZIP_CHUNK]
            if not chunk:
                raise CompressionError("gzip data is cut short")
            try:
                # One byte more than allowed tells "exactly full" from "too much".
                piece = member.decompress(chunk, limit - size + 1)
            except zlib.error as error:
                raise CompressionError(str(error)) from error
            size += len(piece)
            if size > limit:
                raise _too_big(limit)
            out.append(piece)
            at += len(chunk) - len(member.unused_data)
    if not members:
        raise CompressionError("gzip data is empty")
    return out[0] if len(out) == 1 else b"".join(out)


def _gzip(data: Buffer, level: int | None) -> bytes:
    packer = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, _GZIP_WBITS)
    return packer.compress(data) + packer.flush()


def _unsnappy(data: Buffer, limit: int) -> Buffer:
    if bytes(data[:8]) != _XERIAL_MAGIC:
        return _unsnappy_raw(data, limit)
    blocks: list[Buffer] = []
    size, position = 0, len(_XERIAL_HEADER)
    view = memoryview(data)
    while position < len(view):
        if position + 4 > len(view):
            raise CompressionError("snappy block header is cut short")
        (length,) = _INT32.unpack_from(view, position)
        position += 4
        if length < 0 or position + length > len(view):
            raise CompressionError("snappy block is cut short")
        if len(blocks) == MAX_MEMBERS:
            raise _too_many()
        block = _unsnappy_raw(view[position : position + length], limit - size)
        size += len(block)
        blocks.append(block)
        position += length
    return blocks[0] if len(blocks) == 1 else b"".join(blocks)


def _unsnappy_raw(data: Buffer, limit: int) -> bytes:
    import cramjam

    try:
        # The length stands at the front, so the cap is checked before anything is allocated.
        if cramjam.snappy.decompress_raw_len(data) > limit:
            raise _too_big(limit)
        return bytes(cramjam.snappy.decompress_raw(data))
    except cramjam.DecompressionError as error:
        raise CompressionError(str(error)) from error


def _zstd(data: Buffer, level: int | None) -> bytes:
    import cramjam

    return bytes(cramjam.zstd.compress(data, level=3 if level is None else level))


def _xerial(data: Buffer) -> bytes:
    import cramjam

    out = [_XERIAL_HEADER]
    view = memoryview(data)
    for start in range(0, len(view), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK]))
        out += (_INT32.pack(len(block)), block)
    return b"".join(out)


def _lz4_frame(data: Buffer, level: int | None) -> bytes:
    import cramjam

    # Kafka's broker takes the fast compressor at its default level, and the slow one elsewhere.
    if level is None or level == _LZ4_DEFAULT_LEVEL:
        level = _LZ4_FAST
    out = [_LZ4_HEADER]
    view = memoryview(data)
    for start in range(0, len(view), _LZ4_BLOCK):
        # cramjam's frames have dependent blocks and checksums. One block depends on nothing: it
        # is taken out of a frame of its own.
        frame = bytes(cramjam.lz4.compress(view[start : start + _LZ4_BLOCK], level=level))
        (size,) = _UINT32_LE.unpack_from(frame, len(_LZ4_HEADER))
        block_start = len(_LZ4_HEADER) + 4
        out.append(frame[len(_LZ4_HEADER) : block_start + (size & ~_LZ4_STORED)])
    out.append(_UINT32_LE.pack(0))
    return b"".join(out)


def _bounded(
    decompress_into: Callable[[Buffer, bytearray], int], data: Buffer, limit: int
) -> Buffer:
    """Unpack into buffers of growing size, so that what comes out never passes `limit`."""
    import cramjam

    size = min(limit, max(_FIRST_GUESS, 4 * len(data)))
    while True:
        out = bytearray(size)
        try:
            return memoryview(out)[: decompress_into(data, out)]
        except cramjam.DecompressionError as error:
            if _FULL not in str(error):
                raise CompressionError(str(error)) from error
        if size >= limit:
            raise _too_big(limit)
        size = min(limit, 4 * size)


def _unlz4(data: Buffer, limit: int) -> Buffer:
    import cramjam

    return _bounded(cramjam.lz4.decompress_into, data, limit)


def _unzstd(data: Buffer, limit: int) -> Buffer:
    import cramjam

    return _bounded(cramjam.zstd.decompress_into, data, limit)


_DECOMPRESSORS: Final[dict[int, Callable[[Buffer, int], Buffer]]] = {
    Codec.GZIP: _gunzip,
    Codec.SNAPPY: _unsnappy,
    Codec.LZ4: _unlz4,
    Codec.ZSTD: _unzstd,
}
