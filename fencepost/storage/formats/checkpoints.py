"""The small files of a log directory: checkpoints, the ids of a partition and a broker, snapshots
of a log's producers, and the last offsets of its keys.

A checkpoint is its version (0), the number of its entries, and an entry a line; every line ends.
``partition.metadata`` and ``.kafka_cleanshutdown`` have no end of line at their end.

A snapshot of the producers (``.snapshot``) is named by the offset that it was taken before. Version
1, big endian: version (i16), CRC-32C of all that follows (u32), count (i32), and for each
producer id (i64), epoch (i16), last sequence (i32), last offset (i64), offset delta (i32),
timestamp (i64), coordinator epoch (i32), start of its open transaction (i64, -1 without one). Of
the batches it thus keeps the last one only.

The last offsets of a log's keys (``key-offset-checkpoint``) are fencepost's own. Version 1, big
endian: version (i16), CRC-32C of all that follows (u32); the offset that the log was looked at to
(i64, exclusive), the leader epoch of the record before it (i32), the log start from which on it was
(i64); count (i32); the last offset of each key, rising (i64 each); the length of each key (i32
each); the keys.
"""

import json
import re
import struct
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Final, Literal, NamedTuple, TypeAlias
from uuid import UUID

from fencepost.protocol.byte_utils import Buffer, crc32c, format_uuid, parse_uuid
from fencepost.protocol.records import NO_SEQUENCE
from fencepost.storage.log.leader_epoch_cache import EpochEntry
from fencepost.storage.log.producer_state import BatchMetadata, ProducerStateEntry

_VERSION: Final = "0"
_PARTITION_METADATA: Final = re.compile(r"version: 0\s+topic_id: (?P<id>[a-zA-Z0-9_-]{22})\s*")
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_PROPERTY: Final = re.compile(r"(?P<name>(?:\\.|[^\\:= \t\f])+)[ \t\f]*[:=]?[ \t\f]*(?P<value>.*)")
_ESCAPED: Final = re.compile(r"\\(?:u(?P<code>[0-9a-fA-F]{4})|(?P<char>.))")
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPES: Final = {"\t": "t", "\n": "n", "\r": "r", "\f": "f"} | {c: c for c in "\\:=#!"}
_COUNT: Final = struct.Struct(">i")
_KEYS_VERSION: Final = 1
_CHECKED: Final = struct.Struct(">hI")
"""Version and checksum, which binary files begin with."""
_SCOPE: Final = struct.Struct(">qiq")
_SWAPPED: Final = sys.byteorder == "little"
_Type: TypeAlias = Literal["q", "i"]
HEAD_SIZE: Final = _CHECKED.size + _SCOPE.size
"""How many bytes `decode_scope` needs."""


class CorruptCheckpoint(ValueError):
    """A file that does not say what it should, or not in the form that it should."""


def encode_epochs(entries: Iterable[EpochEntry]) -> bytes:
    """``leader-epoch-checkpoint``: epoch and start offset (inclusive) a line, oldest first."""
    return _checkpoint([f"{epoch} {start}" for epoch, start in entries])


def decode_epochs(data: Buffer) -> tuple[EpochEntry, ...]:
    """The entries of a ``leader-epoch-checkpoint``.

    :raises CorruptCheckpoint: When it is none.
    """
    return tuple(
        EpochEntry(_number(epoch), _number(start)) for epoch, start in _entries(data, width=2)
    )


def encode_offsets(offsets: Mapping[tuple[str, int], int]) -> bytes:
    """A checkpoint of offsets: topic, partition and offset a line, in the order given.

    ``recovery-point-offset-checkpoint`` (exclusive end of what is durable),
    ``replication-offset-checkpoint`` (high watermarks), ``log-start-offset-checkpoint`` (only of
    the logs that do not start where their first segment does) and ``cleaner-offset-checkpoint``
    (the first offset that compaction has not seen) all are of this form.
    """
    return _checkpoint([f"{topic} {index} {offset}" for (topic, index), offset in offsets.items()])


def decode_offsets(data: Buffer) -> dict[tuple[str, int], int]:
    """Offsets by topic and partition.

    :raises CorruptCheckpoint: When it is no such checkpoint.
    """
    return {
        (topic, _number(partition)): _number(offset)
        for topic, partition, offset in _entries(data, width=3)
    }


def encode_partition_metadata(topic_id: UUID) -> bytes:
    """``partition.metadata``: the id of the topic."""
    return f"version: 0\ntopic_id: {format_uuid(topic_id)}".encode()


def decode_partition_metadata(data: Buffer) -> UUID:
    """The topic id in a ``partition.metadata``.

    :raises CorruptCheckpoint: When there is none.
    """
    match = _PARTITION_METADATA.fullmatch(_text(data))
    if match is None:
        raise CorruptCheckpoint("No partition.metadata of version 0")
    return parse_uuid(match["id"])


def encode_properties(properties: Mapping[str, str], comment: str = "") -> bytes:
    """``meta.properties``: a name and a value a line, in the order given.

    :param comment: One line, which stands where Kafka writes the date.
    """
    lines = [f"{_escape(name, ' ')}={_escape(value)}\n" for name, value in properties.items()]
    return f"#\n#{comment}\n{''.join(lines)}".encode("latin-1", "replace")


def decode_properties(data: Buffer) -> dict[str, str]:
    """What a ``meta.properties`` says: ``version``, ``cluster.id``, ``node.id``, ``directory.id``.

    They are read as Java reads properties, but for one that goes on in the next line.
    """
    lines = (line.lstrip(" \t\f") for line in _LINE_END.split(bytes(data).decode("latin-1")))
    found = (_PROPERTY.fullmatch(line) for line in lines if line[:1] not in {"", "#", "!"})
    return {_plain(match["name"]): _plain(match["value"]) for match in found if match}


def encode_clean_shutdown(broker_epoch: int) -> bytes:
    """``.kafka_cleanshutdown``: the epoch of the broker that stopped.

    That the file is there says that the logs need no recovery.
    """
    return f'{{"version":0,"brokerEpoch":{broker_epoch}}}'.encode()


def decode_clean_shutdown(data: Buffer) -> int:
    """The broker epoch in a ``.kafka_cleanshutdown``; -1 where it says none, as older ones do."""
    try:
        return int(json.loads(bytes(data))["brokerEpoch"])
    except (ValueError, KeyError, TypeError):
        return -1


def _checkpoint(entries: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in (_VERSION, str(len(entries)), *entries)).encode()


def _entries(data: Buffer, *, width: int) -> list[list[str]]:
    if not data:
        return []  # as Kafka takes it
    version, *rest = _lines(data)
    if version != _VERSION:
        raise CorruptCheckpoint(f"A checkpoint of version {version!r}")
    entries = [line.split() for line in rest[1:]]
    if not rest or _number(rest[0]) != len(entries):
        raise CorruptCheckpoint(f"{len(entries)} entries are not as many as the checkpoint says")
    for entry in entries:
        if len(entry) != width:
            raise CorruptCheckpoint(f"An entry of a checkpoint is {' '.join(entry)!r}")
    return entries


def _lines(data: Buffer) -> list[str]:
    lines = _text(data).split("\n")
    if lines.pop():
        raise CorruptCheckpoint("The last line of a checkpoint does not end")
    return lines


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise CorruptCheckpoint(f"{text!r} in a checkpoint is no number")
    return int(text)


def _text(data: Buffer) -> str:
    try:
        return bytes(data).decode()
    except UnicodeDecodeError as error:
        raise CorruptCheckpoint("A checkpoint is no text") from error


def _escape(text: str, spaces: str = "") -> str:
    escaped = "".join(_escape_char(char, spaces) for char in text)
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def _escape_char(char: str, spaces: str) -> str:
    if char in _ESCAPES or char in spaces:
        return f"\\{_ESCAPES.get(char, char)}"
    return char if " " <= char <= "~" else f"\\u{ord(char):04X}"


def _plain(text: str) -> str:
    return _ESCAPED.sub(_unescaped, text)


def _unescaped(match: re.Match[str]) -> str:
    if match["code"]:
        return chr(int(match["code"], 16))
    return _CONTROLS.get(match["char"], match["char"])


_SNAPSHOT_VERSION: Final = 1
_PRODUCER: Final = struct.Struct(">qhiqiqiq")
_NONE: Final = -1
_NO_BATCH: Final = BatchMetadata(NO_SEQUENCE, -1, 0, -1)


class CorruptSnapshot(ValueError):
    """A snapshot of another version, of another length than it says, or that fails its CRC."""


def encode_snapshot(producers: Iterable[ProducerStateEntry]) -> bytes:
    """The bytes of the file."""
    rows = [_encode(producer) for producer in producers]
    body = _COUNT.pack(len(rows)) + b"".join(rows)
    return _CHECKED.pack(_SNAPSHOT_VERSION, crc32c(body)) + body


def _encode(producer: ProducerStateEntry) -> bytes:
    batch = producer.batches[-1] if producer.batches else _NO_BATCH
    begun = producer.txn_first_offset
    return _PRODUCER.pack(
        producer.producer_id,
        producer.producer_epoch,
        batch.last_sequence,
        batch.last_offset,
        batch.offset_delta,
        producer.last_timestamp,
        producer.coordinator_epoch,
        _NONE if begun is None else begun,
    )


def decode_snapshot(data: Buffer) -> tuple[ProducerStateEntry, ...]:
    """The producers in a file's bytes, in its order; each has one batch at most.

    :raises CorruptSnapshot: When it is no snapshot of version 1.
    """
    try:
        version, checksum = _CHECKED.unpack_from(data)
        (count,) = _COUNT.unpack_from(data, _CHECKED.size)
    except struct.error as error:
        raise CorruptSnapshot(f"A producer snapshot of {len(data)} bytes") from error
    if version != _SNAPSHOT_VERSION:
        raise CorruptSnapshot(f"A producer snapshot of version {version}, not {_SNAPSHOT_VERSION}")
    body = memoryview(data)[_CHECKED.size :]
    if crc32c(body) != checksum:
        raise CorruptSnapshot("A producer snapshot fails its CRC")
    rows = body[_COUNT.size :]
    if len(rows) != count * _PRODUCER.size:
        raise CorruptSnapshot(f"{len(rows)} bytes are not {count} producers")
    return tuple(_decode(row) for row in _PRODUCER.iter_unpack(rows))


def _decode(row: tuple[int, ...]) -> ProducerStateEntry:
    producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, begun = row
    batch = BatchMetadata(sequence, offset, delta, timestamp)
    return ProducerStateEntry(
        producer_id=producer_id,
        producer_epoch=epoch,
        last_timestamp=timestamp,
        coordinator_epoch=coordinator_epoch,
        txn_first_offset=None if begun == _NONE else begun,
        batches=(batch,) if offset >= 0 else (),
    )


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
    return _CHECKED.pack(_KEYS_VERSION, crc32c(data)) + data


def decode_scope(data: Buffer) -> KeyOffsetScope:
    """What the first bytes of a file say, which may be wrong: their checksum needs all of it.

    :raises CorruptKeyOffsets: When they are too few, or of a version other than 1.
    """
    if len(data) < HEAD_SIZE:
        raise CorruptKeyOffsets(f"A checkpoint of keys of {len(data)} bytes")
    version, _ = _CHECKED.unpack_from(data)
    if version != _KEYS_VERSION:
        raise CorruptKeyOffsets(f"A checkpoint of keys of version {version}, not {_KEYS_VERSION}")
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
