"""Configs of topics, out of a metadata log that is written here as Kafka writes one."""

from __future__ import annotations

from pathlib import PurePath

from fencepost.broker.data_dir.kafka_metadata import topic_configs
from tests.harness import records
from tests.harness.faulty_file_system import FaultyFileSystem

DIR = PurePath("/kafka")
LOG = DIR / "__cluster_metadata-0"


def compact(text: str | None) -> bytes:
    if text is None:
        return b"\x00"
    data = text.encode()
    size = len(data) + 1
    length = bytes([size]) if size < 0x80 else bytes([size & 0x7F | 0x80, size >> 7])
    return length + data


def config(resource_type: int, name: str, key: str, value: str | None) -> bytes:
    fields = compact(name) + compact(key) + compact(value)
    return b"\x01\x04\x00" + bytes([resource_type]) + fields + b"\x00"


def batch(*values: bytes | None) -> bytes:
    return bytes(records.batch(*((0, None, value) for value in values)))


def written(**files: bytes) -> FaultyFileSystem:
    made = FaultyFileSystem()
    made.make_dirs(LOG)
    for name, data in files.items():
        made.write_atomic(LOG / name.replace("_", "."), data, sync=False)
    return made


def test_there_are_none_without_a_metadata_log() -> None:
    assert topic_configs(FaultyFileSystem(), DIR) == {}


def test_what_was_said_last_holds() -> None:
    long = "x" * 300
    files = written(
        a_checkpoint=batch(config(2, "t", "old", "1")),
        b_checkpoint=batch(config(2, "t", "retention.ms", "1"), config(2, "u", "a", "b")),
        c_log=batch(
            config(2, "t", "retention.ms", "2"),
            config(2, "u", "a", None),
            config(2, "t", "long", long),
            config(4, "1", "log.retention.ms", "9"),
            b"\x01\x02\x00" + compact("t") + bytes(17),
            None,
        ),
    )
    assert topic_configs(files, DIR) == {"t": {"retention.ms": "2", "long": long}, "u": {}}


def test_a_torn_or_broken_end_is_left_out() -> None:
    whole = batch(config(2, "t", "a", "1"))
    torn = batch(config(2, "t", "a", "2"))[:-3]
    for tail in (torn, b"\x00" * 100, b"\xff" * 100):
        assert topic_configs(written(c_log=whole + tail), DIR) == {"t": {"a": "1"}}
