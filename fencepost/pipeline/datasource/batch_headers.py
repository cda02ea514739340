"""The batches of a segment by their headers: where they are, what they say, whether they are sound.

To find them is a walk from one to the next. All else is done for all batches of a window at once.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from fencepost.pipeline.datasource.schemas import Problem
from fencepost.pipeline.datasource.segments import Blob, Bytes, Window
from fencepost.protocol.byte_utils import crc32c
from fencepost.protocol.compression import Codec
from fencepost.protocol.records import CODEC_MASK, HEADER_SIZE, LOG_OVERHEAD, MAGIC

Integers: TypeAlias = npt.NDArray[np.int64]
Headers: TypeAlias = npt.NDArray[np.void]
"""One `HEADER` a batch."""
Findings: TypeAlias = dict[int, tuple[Problem, str]]
"""What is wrong with some batches, by their number in a window."""

HEADER: Final = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("count", ">i4"),
    ]
)
_LENGTH_AND_MAGIC: Final = struct.Struct(">i4xb")
_LENGTH_AT: Final = 8
_MAGIC_AT: Final = 16
_CHECKSUMMED_AT: Final = 21
_LARGEST_OFFSET: Final = np.iinfo(np.int64).max - 1
"""The log end behind it is the largest number that Kafka can say."""
MAX_OFFSET_SPAN: Final = 2**31
"""Offsets of a segment are less than so far apart: its indexes could not say them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    """The whole batches at the beginning of a window.

    :ivar at: Where each begins in the window.
    :ivar sizes: Bytes of each.
    :ivar headers: What each says.
    :ivar end: Behind the last one, in the window.
    :ivar wanted: Bytes of the one that begins at `end` and goes on behind the window; 0 where
        none does.
    """

    at: Integers
    sizes: Integers
    headers: Headers
    end: int
    bytes_needed: int

    def __len__(self) -> int:
        return len(self.at)

    def field(self, name: str) -> Integers:
        """A field of each header."""
        return column(self.headers, name)

    @property
    def last_offsets(self) -> Integers:
        """The last offset of each (inclusive)."""
        return self.field("base_offset") + self.field("last_offset_delta")


def column(headers: Headers, name: str) -> Integers:
    """A field of each header, as numbers that are quick to count with."""
    found: Integers = headers[name].astype(np.int64)
    return found


def whole_batches(log: bytes) -> list[int] | None:
    """Where each batch of a small segment begins; None where some of it is no whole batch."""
    unpack, found, at, end = _LENGTH_AND_MAGIC.unpack_from, [], 0, len(log)
    while at + HEADER_SIZE <= end:
        length, magic = unpack(log, at + _LENGTH_AT)
        if length < HEADER_SIZE - LOG_OVERHEAD or magic != MAGIC:
            return None
        found.append(at)
        at += length + LOG_OVERHEAD
    return found if at == end else None


def walk_batches(window: Window) -> Batches:
    """The whole batches from the beginning of a window, up to what is none."""
    view, end, left = window.view, window.length, window.size - window.position
    unpack, found, at, wanted = _LENGTH_AND_MAGIC.unpack_from, [], 0, 0
    while at + HEADER_SIZE <= end:
        length, magic = unpack(view, at + _LENGTH_AT)
        size = length + LOG_OVERHEAD
        if size < HEADER_SIZE or magic != MAGIC or size > left - at:
            break
        if at + size > end:
            wanted = size
            break
        found.append(at)
        at += size
    if at + HEADER_SIZE > end and not window.is_last:
        wanted = HEADER_SIZE
    positions = np.array(found, np.int64)
    return Batches(
        at=positions,
        sizes=np.diff(positions, append=at),
        headers=headers_at(window.data, positions),
        end=at,
        bytes_needed=wanted,
    )


def concat_windows(parts: Sequence[tuple[int, Batches, Findings]]) -> tuple[Batches, Findings]:
    """The batches of windows that follow one another, and what is wrong with them.

    :param parts: With the position of each window; theirs are positions in the blob then.
    """
    findings: Findings = {}
    before = 0
    for _, batches, found in parts:
        findings |= {before + number: what for number, what in found.items()}
        before += len(batches)
    last_position, last, _ = parts[-1]
    whole = Batches(
        at=np.concatenate([position + batches.at for position, batches, _ in parts]),
        sizes=np.concatenate([batches.sizes for _, batches, _ in parts]),
        headers=np.concatenate([batches.headers for _, batches, _ in parts]),
        end=last_position + last.end,
        bytes_needed=last.bytes_needed,
    )
    return whole, findings


def headers_at(data: Bytes, positions: Integers) -> Headers:
    """The headers at positions; `data` goes on behind the last one."""
    rows = sliding_window_view(data, HEADER_SIZE)[positions]
    return np.ascontiguousarray(rows).view(HEADER).reshape(-1)


def check_batches(window: Window, batches: Batches) -> Findings:
    """What is wrong with batches, their records apart: the checksum, or else the header."""
    found: Findings = {}
    view, stated = window.view, batches.headers["crc"].tolist()
    spans = zip(batches.at.tolist(), batches.sizes.tolist(), strict=True)
    for number, (at, size) in enumerate(spans):
        if crc32c(view[at + _CHECKSUMMED_AT : at + size]) != stated[number]:
            found[number] = (Problem.CRC, "the checksum of the batch is not that of its bytes")
    for wrong, what in _contradictions(batches):
        for number in np.flatnonzero(wrong).tolist():
            found.setdefault(number, (Problem.STRUCTURE, what))
    return found


def _contradictions(batches: Batches) -> list[tuple[npt.NDArray[np.bool_], str]]:
    count, delta = batches.field("count"), batches.field("last_offset_delta")
    base = batches.field("base_offset")
    beyond = (base > _LARGEST_OFFSET - delta) & (delta >= 0)
    empty = (count == 0) & (batches.sizes > HEADER_SIZE)
    return [
        (base < 0, "the base offset is negative"),
        (beyond, "no log has offsets as large as the last one"),
        (delta < 0, "the last offset lies before the base offset"),
        ((count < 0) | (count > delta + 1), "the header counts more records than it has offsets"),
        (
            (batches.field("attributes") & CODEC_MASK) > max(Codec),
            "the codec is none that there is",
        ),
        (empty, "the header counts no records, and bytes follow it"),
    ]


def find_next_batch(blob: Blob, position: int, *, least: int) -> int | None:
    """Where the next whole and undamaged batch begins behind what is none.

    :param position: From where on to look.
    :param least: Its base offset is this or larger.
    :returns: None where there is no more.
    :raises OSError: When the blob can't be read.
    """
    window = Window(blob)
    while position + HEADER_SIZE <= window.size:
        window.move(position)
        reach = max(window.length - HEADER_SIZE + 1, 0)
        marks = window.data[_MAGIC_AT : _MAGIC_AT + reach] == MAGIC
        for at in _plausible(window, np.flatnonzero(marks), least):
            if _has_valid_crc(blob, position + at, window.size):
                return position + at
        if not reach:
            break
        position += reach
    return None


def _plausible(window: Window, positions: npt.NDArray[np.intp], least: int) -> list[int]:
    """Those positions where what follows may be a header."""
    at = positions.astype(np.int64)
    headers = headers_at(window.data, at)
    offset, delta, count = (
        column(headers, name) for name in ("base_offset", "last_offset_delta", "count")
    )
    left = window.size - window.position - at
    size = column(headers, "length") + LOG_OVERHEAD
    fits = (size >= HEADER_SIZE) & (size <= left)
    counts = (delta >= 0) & (count >= 0) & (count <= delta + 1)
    right: list[int] = at[
        fits & counts & (offset >= least) & (offset < least + MAX_OFFSET_SPAN)
    ].tolist()
    return right


def _has_valid_crc(blob: Blob, position: int, end: int) -> bool:
    """Whether the batch at a position has the checksum that it states."""
    head = bytearray(HEADER_SIZE)
    blob.read_into(memoryview(head), position)
    header: Any = np.frombuffer(head, HEADER)[0]
    size = int(header["length"]) + LOG_OVERHEAD
    if position + size > end:
        return False
    rest = bytearray(size - _CHECKSUMMED_AT)
    blob.read_into(memoryview(rest), position + _CHECKSUMMED_AT)
    return crc32c(rest) == int(header["crc"])
