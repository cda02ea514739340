"""What a real Kafka's metadata log says of the configs of topics.

``__cluster_metadata-0`` holds what the controller of a Kafka knows: the newest snapshot
(``.checkpoint``), and the log of what came after. Both are record batches, whose values are a frame
(version 1), the record's type and version (all unsigned varints), and its fields. Only configs are
read here, type 4; everything else is known from the partitions' directories.
"""

from collections.abc import Iterator
from pathlib import PurePath
from typing import Final

from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import CorruptBatch, iter_headers
from fencepost.storage.files.file_system import FileSystem

METADATA_LOG: Final = "__cluster_metadata"
"""A real controller keeps it beside the logs of topics, as if it were one."""
_DIRECTORY: Final = f"{METADATA_LOG}-0"
_CONFIG_RECORD: Final = 4
_TOPIC: Final = 2
"""The type of resource that a topic is."""


def topic_configs(fs: FileSystem, log_dir: PurePath) -> dict[str, dict[str, str]]:
    """The dynamic configs of every topic that has some, by topic.

    Where the metadata can't be read, what could be before; nothing without any.

    :raises OSError: When a file can't be read.
    """
    directory = log_dir / _DIRECTORY
    configs: dict[str, dict[str, str]] = {}
    if not fs.exists(directory):
        return configs
    names = fs.names(directory)
    snapshots = [name for name in names if name.endswith(".checkpoint")]
    for name in (*snapshots[-1:], *(name for name in names if name.endswith(".log"))):
        for value in _values(fs.read(directory / name)):
            _apply(value, configs)
    return configs


def _values(data: bytes) -> Iterator[bytes]:
    """The values of all records, as far as they are whole."""
    try:
        for position, header in iter_headers(data):
            if not header.is_control:
                yield from (
                    bytes(record.value)
                    for record in iter_records(data, position)
                    if record.value is not None
                )
    except CorruptBatch:  # the end of a log that was not closed
        return


def _apply(value: bytes, configs: dict[str, dict[str, str]]) -> None:
    fields = _Fields(value)
    _frame, kind, _version = fields.uvarint(), fields.uvarint(), fields.uvarint()
    if kind != _CONFIG_RECORD or fields.byte() != _TOPIC:
        return
    topic, name, text = fields.compact_string(), fields.compact_string(), fields.compact_string()
    if topic is None or name is None:
        return
    if text is None:
        configs.get(topic, {}).pop(name, None)
    else:
        configs.setdefault(topic, {})[name] = text


class _Fields:
    """A record's bytes, taken one field after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def byte(self) -> int:
        """An int8 that is not negative."""
        self._at += 1
        return self._data[self._at - 1]

    def uvarint(self) -> int:
        """An unsigned varint."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def compact_string(self) -> str | None:
        """A compact nullable string."""
        size = self.uvarint() - 1
        if size < 0:
            return None
        self._at += size
        return self._data[self._at - size : self._at].decode()
