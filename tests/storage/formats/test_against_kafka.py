"""Every file that a real Kafka left in its log directory is read, and written again as it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from fencepost.storage.formats.checkpoints import (
    decode_clean_shutdown,
    decode_epochs,
    decode_offsets,
    decode_partition_metadata,
    decode_properties,
    decode_snapshot,
    encode_clean_shutdown,
    encode_epochs,
    encode_offsets,
    encode_partition_metadata,
    encode_properties,
    encode_snapshot,
)
from fencepost.storage.formats.file_names import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    LOCK,
    LOG_STARTS,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    DirectoryState,
    FileKind,
    FileState,
    parse_directory_name,
    parse_segment_file_name,
)
from fencepost.storage.formats.indexes import OffsetIndex, TimeIndex
from tests.harness.kafka_writes import DELETED_BEFORE, KafkaWrites, KafkaWrote

METADATA: Final = "__cluster_metadata-0"
"""KRaft's own log, in which a checkpoint is called a snapshot."""

Rewrite = Callable[[bytes], bytes]
REWRITTEN: Final[dict[str, Rewrite]] = {
    LEADER_EPOCHS: lambda data: encode_epochs(decode_epochs(data)),
    PARTITION_METADATA: lambda data: encode_partition_metadata(decode_partition_metadata(data)),
    RECOVERY_POINTS: lambda data: encode_offsets(decode_offsets(data)),
    HIGH_WATERMARKS: lambda data: encode_offsets(decode_offsets(data)),
    LOG_STARTS: lambda data: encode_offsets(decode_offsets(data)),
    CLEANER_OFFSETS: lambda data: encode_offsets(decode_offsets(data)),
    CLEAN_SHUTDOWN: lambda data: encode_clean_shutdown(decode_clean_shutdown(data)),
    META_PROPERTIES: lambda data: encode_properties(
        decode_properties(data), data.decode().splitlines()[1].removeprefix("#")
    ),
}


@pytest.fixture(params=["killed", "stopped"])
def wrote(request: pytest.FixtureRequest, kafka_wrote: KafkaWrites) -> KafkaWrote:
    return kafka_wrote.killed if request.param == "killed" else kafka_wrote.stopped


def test_every_file_is_written_as_it_was(wrote: KafkaWrote) -> None:
    seen: Counter[str] = Counter()
    for path in wrote.folder.rglob("*"):
        if path.is_dir() or METADATA in path.parts:
            continue
        seen[kind := rewrite(path)] += 1
        assert kind in {*REWRITTEN, *FileKind.__members__, LOCK, "bootstrap.checkpoint"}, path
    assert {PARTITION_METADATA, LEADER_EPOCHS, META_PROPERTIES, HIGH_WATERMARKS} <= seen.keys()
    assert (CLEAN_SHUTDOWN in seen) == (wrote.folder.name == "stopped")
    assert min(seen[each.name] for each in FileKind) > 0


def rewrite(path: Path) -> str:
    """Read and write it; what it is."""
    file = parse_segment_file_name(path.name)
    data = path.read_bytes()
    if file is None:
        if path.name in REWRITTEN:
            assert REWRITTEN[path.name](data) == data, path
        return path.name
    if file.kind is FileKind.OFFSET_INDEX:
        written = OffsetIndex.decode(data, file.offset).encode()
        assert written.ljust(len(data), b"\0") == data, path
    elif file.kind is FileKind.TIME_INDEX:
        written = TimeIndex.decode(data, file.offset).encode()
        assert written.ljust(len(data), b"\0") == data, path
    elif file.kind is FileKind.PRODUCER_SNAPSHOT:
        assert encode_snapshot(decode_snapshot(data)) == data, path
    return file.kind.name


def test_every_directory_is_a_partitions(wrote: KafkaWrote) -> None:
    found = [parse_directory_name(path.name) for path in wrote.folder.iterdir() if path.is_dir()]
    states = {(each.topic, each.partition): each.state for each in found if each is not None}
    assert len(states) == len(found)
    assert states.pop(("deleted", 0)) is DirectoryState.DELETED
    assert set(states.values()) == {DirectoryState.LIVE}
    assert wrote.partitions.keys() <= states.keys()


def test_what_they_say(wrote: KafkaWrote) -> None:
    high_watermarks = decode_offsets((wrote.folder / HIGH_WATERMARKS).read_bytes())
    for (topic, partition), written in wrote.partitions.items():
        data = (wrote.folder / f"{topic}-{partition}" / PARTITION_METADATA).read_bytes()
        assert decode_partition_metadata(data) == wrote.topics[topic]
        if wrote.folder.name == "stopped":
            assert high_watermarks[topic, partition] == written.log_end_offset
        else:  # they are written down every few seconds
            assert high_watermarks.get((topic, partition), 0) <= written.log_end_offset
    starts = decode_offsets((wrote.folder / LOG_STARTS).read_bytes())
    assert starts == {("shortened", 0): DELETED_BEFORE}
    meta = decode_properties((wrote.folder / META_PROPERTIES).read_bytes())
    assert (meta["node.id"], meta["version"]) == ("1", "1")
    assert len(meta["cluster.id"]) == 22


def test_states_of_files(kafka_wrote: KafkaWrites) -> None:
    """What compaction replaced was not removed yet."""
    found = [
        parse_segment_file_name(path.name)
        for path in (kafka_wrote.killed.folder / "compacted-0").iterdir()
    ]
    states = Counter(file.state for file in found if file is not None)
    assert states[FileState.DELETED] >= 3
    assert states.keys() == {FileState.DELETED, FileState.LIVE}
