"""The small text files of a log directory: checkpoints, and the ids of a partition and a broker.

A checkpoint is its version (0), the number of its entries, and an entry a line; every line ends.
``partition.metadata`` and ``.kafka_cleanshutdown`` have no end of line at their end.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from fencepost.protocol.byte_utils import Buffer, format_uuid, parse_uuid
from fencepost.storage.log.leader_epoch_cache import EpochEntry

_VERSION: Final = "0"
_PARTITION_METADATA: Final = re.compile(r"version: 0\s+topic_id: (?P<id>[a-zA-Z0-9_-]{22})\s*")
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_PROPERTY: Final = re.compile(r"(?P<name>(?:\\.|[^\\:= \t\f])+)[ \t\f]*[:=]?[ \t\f]*(?P<value>.*)")
_ESCAPED: Final = re.compile(r"\\(?:u(?P<code>[0-9a-fA-F]{4})|(?P<char>.))")
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPES: Final = {"\t": "t", "\n": "n", "\r": "r", "\f": "f"} | {c: c for c in "\\:=#!"}


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
