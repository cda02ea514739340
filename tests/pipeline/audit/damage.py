"""What may happen to the files of a log: bytes flipped, cut, written twice."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fencepost.protocol.byte_utils import crc32c
from fencepost.protocol.records import BatchHeader, iter_headers

_EPOCH_AT = 12
_CRC_AT = 17
_CHECKSUMMED_AT = 21
_PRODUCER_EPOCH_AT = 51
_SEQUENCE_AT = 53


def batches(path: Path) -> list[tuple[int, BatchHeader]]:
    """Where each batch of a segment begins, and its header."""
    return list(iter_headers(path.read_bytes()))


def flip(path: Path, position: int) -> None:
    """Let one bit be another."""
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def overwrite(path: Path, position: int, data: bytes) -> None:
    """Put bytes in the place of others."""
    whole = bytearray(path.read_bytes())
    whole[position : position + len(data)] = data
    path.write_bytes(whole)


def flip_in(path: Path, number: int) -> int:
    """Flip a bit in the records of a batch; where it begins."""
    position, header = batches(path)[number]
    flip(path, position + header.size - 10)
    return position


def falsify(path: Path, number: int) -> BatchHeader:
    """Change a value in a batch, and make its checksum right again."""
    position, header = batches(path)[number]
    data = bytearray(path.read_bytes())
    # In "value N value N ...": a letter, so that the records still parse.
    at = data.index(b"value", position)
    data[at] ^= 1
    checksum = crc32c(bytes(data[position + _CHECKSUMMED_AT : position + header.size]))
    struct.pack_into(">I", data, position + _CRC_AT, checksum)
    path.write_bytes(data)
    return header


def give_epoch(path: Path, number: int, epoch: int) -> BatchHeader:
    """Say another leader epoch in a batch: its checksum does not cover that."""
    position, header = batches(path)[number]
    overwrite(path, position + _EPOCH_AT, struct.pack(">i", epoch))
    return header


def cut_last(path: Path) -> BatchHeader:
    """Cut the last batch of a segment off."""
    position, header = batches(path)[-1]
    with path.open("r+b") as file:
        file.truncate(position)
    return header


def tear(path: Path, size: int = 40) -> None:
    """Leave the beginning of one more batch at a segment's end."""
    position, header = batches(path)[-1]
    data = path.read_bytes()
    assert size < header.size
    path.write_bytes(data + data[position : position + size])


def write_twice(path: Path) -> BatchHeader:
    """Write a segment's last batch once more."""
    position, header = batches(path)[-1]
    data = path.read_bytes()
    path.write_bytes(data + data[position:])
    return header


def lose_segment(log: Path) -> None:
    """Delete the files of a segment."""
    for path in log.parent.glob(f"{log.stem}.*"):
        path.unlink()


def change_metadata(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Let the metadata of a segment in the tier say something else."""
    fields = json.loads(path.read_text())
    change(fields)
    path.write_text(json.dumps(fields))


def give_sequence(path: Path, number: int, sequence: int) -> BatchHeader:
    """Say another base sequence in a batch, and make its checksum right again."""
    return restate(path, number, _SEQUENCE_AT, struct.pack(">i", sequence))


def give_producer_epoch(path: Path, number: int, epoch: int) -> BatchHeader:
    """Say another producer epoch in a batch, and make its checksum right again."""
    return restate(path, number, _PRODUCER_EPOCH_AT, struct.pack(">h", epoch))


def restate(path: Path, number: int, at: int, data: bytes) -> BatchHeader:
    """Put bytes in the place of others behind a batch's checksum, and make it right again.

    :param at: Byte in the batch.
    """
    position, header = batches(path)[number]
    overwrite(path, position + at, data)
    whole = path.read_bytes()[position : position + header.size]
    overwrite(path, position + _CRC_AT, struct.pack(">I", crc32c(whole[_CHECKSUMMED_AT:])))
    return header
