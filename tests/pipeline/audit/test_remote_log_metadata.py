"""A real Kafka's tier by its topic ``__remote_log_metadata``: what it says, and what follows."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final
from uuid import UUID

import pytest

from fencepost.pipeline.audit.metadata_sources import read_cluster_metadata
from fencepost.pipeline.audit.partition_metadata import read_partition_metadata
from fencepost.pipeline.audit.remote_log_metadata import (
    RemoteLogMetadata,
    read_remote_log_metadata,
)
from fencepost.pipeline.audit.rule import TierSegment, Violation
from fencepost.pipeline.datasource.log_directories import find_log_dirs, find_replicas
from fencepost.pipeline.datasource.segment_scan import Checks, scan_folder
from fencepost.protocol.byte_utils import format_uuid
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import iter_headers
from fencepost.protocol.remote_log_metadata_records import (
    REMOTE_LOG_METADATA_RECORDS,
    RemoteLogSegmentIdEntry,
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataUpdateRecord,
    RemotePartitionDeleteMetadataRecord,
    SegmentLeaderEpochEntry,
    TopicIdPartitionEntry,
)
from tests.harness import batches, records
from tests.harness.kafka import start_kafka
from tests.harness.metadata_logs import TOPIC_ID, value
from tests.harness.wait import wait_until
from tests.oracle.asker import Asker
from tests.oracle.asking import T, list_offsets
from tests.oracle.comparing import KAFKA_TIERED
from tests.oracle.steering import KafkaSteering
from tests.pipeline.audit import damage
from tests.pipeline.audit.rigs import LOG_RULES, followed, unexplained

TOPIC: Final = "__remote_log_metadata"
STARTED, FINISHED, DELETING, DELETED = range(4)
PARTITION: Final = TopicIdPartitionEntry("t", TOPIC_ID, 0)


def copy_of(number: int) -> RemoteLogSegmentIdEntry:
    return RemoteLogSegmentIdEntry(PARTITION, UUID(int=number))


def started(number: int) -> RemoteLogSegmentMetadataRecord:
    """A copy of ten offsets."""
    return RemoteLogSegmentMetadataRecord(
        copy_of(number),
        start_offset=10 * number,
        end_offset=10 * number + 9,
        broker_id=1,
        max_timestamp_ms=5,
        event_timestamp_ms=6,
        segment_leader_epochs=(SegmentLeaderEpochEntry(3, 10 * number),),
        segment_size_in_bytes=700,
        custom_metadata=b"c",
        txn_index_empty=True,
    )


def became(number: int, state: int) -> RemoteLogSegmentMetadataUpdateRecord:
    return RemoteLogSegmentMetadataUpdateRecord(copy_of(number), 1, 7, None, state)


def removed(state: int, topic_id: UUID = TOPIC_ID) -> RemotePartitionDeleteMetadataRecord:
    entry = TopicIdPartitionEntry("t", topic_id, 0)
    return RemotePartitionDeleteMetadataRecord(entry, 1, 8, state)


def segment(number: int, *, finished: bool = True) -> TierSegment:
    return TierSegment(
        id=format_uuid(UUID(int=number)),
        topic_id=format_uuid(TOPIC_ID),
        start_offset=10 * number,
        end_offset=10 * number + 9,
        epochs=((3, 10 * number),),
        bytes=700,
        finished=finished,
    )


def write(
    folder: Path,
    *values: object,
    broker: int = 1,
    partition: int = 0,
    base: int = 0,
    epoch: int = 0,
) -> Path:
    """A broker's replica of a partition of the topic, which has one segment."""
    log_dir = folder / f"broker-{broker}" / f"{TOPIC}-{partition}"
    log_dir.mkdir(parents=True, exist_ok=True)
    rows = [(T, None, value(each, types=REMOTE_LOG_METADATA_RECORDS)) for each in values]
    data = b"".join(
        bytes(records.batch(row, base_offset=base + place, leader_epoch=epoch))
        for place, row in enumerate(rows)
    )
    path = log_dir / f"{base:020d}.log"
    path.write_bytes(data)
    return path


def read(folder: Path, *topics: str) -> RemoteLogMetadata:
    replicas = find_replicas(find_log_dirs(folder), {TOPIC})
    return read_remote_log_metadata(replicas, topics=topics or None)


@pytest.mark.parametrize(
    ("kind", "record"), [(0, started(1)), (1, became(1, FINISHED)), (2, removed(1))]
)
def test_the_bytes_of_records(kind: int, record: object) -> None:
    data = value(record, types=REMOTE_LOG_METADATA_RECORDS)
    assert REMOTE_LOG_METADATA_RECORDS.decode(data) == record
    assert data.startswith(bytes([1, kind, 0]))


def test_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "broker-1").mkdir()
    assert read(tmp_path) == RemoteLogMetadata()


def test_a_segment_is_there_while_its_copy_is_finished(tmp_path: Path) -> None:
    write(
        tmp_path,
        *(started(number) for number in (4, 3, 2, 1)),
        *(became(number, FINISHED) for number in (1, 2, 3)),
        became(2, DELETING),
        became(3, DELETING),
        became(3, DELETED),
        became(9, FINISHED),
    )
    found = read(tmp_path)
    assert found.segments == {
        ("t", 0): (segment(1), segment(2, finished=False), segment(4, finished=False))
    }
    assert (found.is_complete, found.problems) == (True, ())
    assert found.text == f"1 of 1 partitions of {TOPIC}, 3 segments"
    assert read(tmp_path, "u").segments == {}
    assert read(tmp_path, "t").segments == found.segments


def test_a_partition_that_is_deleted(tmp_path: Path) -> None:
    values = (started(1), became(1, FINISHED), removed(0), removed(1))
    write(tmp_path / "a", *values, removed(2, UUID(int=5)))
    assert read(tmp_path / "a").segments == {("t", 0): (segment(1),)}
    write(tmp_path / "b", *values, removed(2))
    assert read(tmp_path / "b").segments == {}


def test_the_replica_that_goes_furthest(tmp_path: Path) -> None:
    write(tmp_path, started(1), became(1, FINISHED), epoch=1)
    write(tmp_path, started(1), epoch=1, broker=2)
    write(tmp_path, started(1), started(2), started(3), broker=3)
    assert read(tmp_path).segments == {("t", 0): (segment(1),)}


def test_a_topic_that_is_not_all_there(tmp_path: Path) -> None:
    write(tmp_path, started(1), partition=1)
    found = read(tmp_path)
    assert not found.is_complete
    assert found.text == f"1 of 2 partitions of {TOPIC}, 1 segment"
    assert found.problems == (f"1 of 2 partitions of {TOPIC} are not there",)


@pytest.mark.parametrize("partition", [0, 1])
def test_the_tier_is_known_where_all_of_the_topic_is(tmp_path: Path, partition: int) -> None:
    write(tmp_path, started(1), became(1, FINISHED), partition=partition)
    known = read_partition_metadata(tmp_path)["t", 0]
    assert known.tier == (segment(1),)
    assert (known.with_tier, known.with_objects) == (partition == 0, False)
    assert len(known.cluster.reading.lines) == 2 + partition


def test_what_can_not_be_read(tmp_path: Path) -> None:
    damaged = write(tmp_path / "a", started(1), started(2))
    damage.flip_in(damaged, 1)
    beheaded = write(tmp_path / "b", started(2), base=5)
    for path, segments, why in (
        (damaged, {("t", 0): (segment(1, finished=False),)}, "the checksum of the batch at"),
        (beheaded, {}, "the records before offset 5 are not there"),
    ):
        found = read(path.parents[2])
        assert found.segments == segments
        assert not found.is_complete
        (problem,) = found.problems
        assert problem.startswith(f"{path.parent} can't be read to its end: {why}")


# -- a real Kafka's -----------------------------------------------------------------------------

_TOPIC_CONFIGS: Final = {
    "remote.storage.enable": "true",
    "local.retention.bytes": "1",
    "retention.ms": "-1",
    "segment.ms": "3999",
}
_RECORDS: Final = 18


class Tiered:
    """What a Kafka left, whose topic has all but its last segment in the tier alone."""

    def __init__(self, folder: Path, topic: str, local_start: int) -> None:
        self.folder = folder
        self.topic = topic
        self.local_start = local_start

    def audit(self) -> list[Violation]:
        """What nothing explains: files that retention is about to delete may still be there."""
        known = read_partition_metadata(self.folder, topics=[self.topic])
        rows = scan_folder(self.folder, topics=[self.topic], checks=Checks.RECORDS)
        return unexplained(followed(rows, None, known, LOG_RULES))


@pytest.fixture(scope="module")
def tiered(tmp_path_factory: pytest.TempPathFactory) -> Tiered:
    folder = tmp_path_factory.mktemp("tiered")
    configs = {key: text.format(folder=folder) for key, text in KAFKA_TIERED.items()}
    kafka = start_kafka(folder / "kafka", configs=configs)
    asker = Asker(kafka.cluster, KafkaSteering(kafka))
    try:
        topic, _ = asker.create("t", _TOPIC_CONFIGS)
        for each in range(_RECORDS):
            asker.produce(topic, batches.build([(T + 1000 * each, b"k", b"v")]))

        def local_start() -> int:
            start: int = list_offsets(asker.connection, topic, -4)["Offset"]
            return start

        last = _RECORDS - _RECORDS % 4
        wait_until("its closed segments are in the tier alone", lambda: local_start() == last, 60)
        kafka.shut_down(1)
    finally:
        asker.close()
        kafka.stop()
    return Tiered(kafka.folders[1] / "logs", topic, last)


def test_a_real_tier(tiered: Tiered) -> None:
    log_dirs = find_log_dirs(tiered.folder)
    cluster = read_cluster_metadata(log_dirs)
    found = read_remote_log_metadata(find_replicas(log_dirs, {TOPIC}))
    assert (found.is_complete, found.problems) == (True, ())
    segments = [each for each in found.segments[tiered.topic, 0] if each.finished]
    assert [each.start_offset for each in segments] == [0, 4, 8, 12]
    assert [each.end_offset for each in segments] == [3, 7, 11, 15]
    (incarnation,) = cluster.partition(tiered.topic, 0).incarnations
    assert {each.topic_id for each in segments} == {incarnation.topic_id}
    assert {each.epochs[0][0] for each in segments} == {0}
    known = read_partition_metadata(tiered.folder)[tiered.topic, 0]
    assert known.cluster.reading.tier == f"2 of 2 partitions of {TOPIC}, {len(segments)} segments"
    assert (known.with_tier, known.with_objects) == (True, False)


def test_nothing_is_found_in_a_real_tier(tiered: Tiered) -> None:
    assert tiered.audit() == []


def test_a_segment_that_the_tier_never_got(tiered: Tiered, tmp_path: Path) -> None:
    """As if the copy of offsets 4 to 7 had not been finished before the log was deleted."""
    lacking = Tiered(Path(shutil.copytree(tiered.folder, tmp_path / "logs")), tiered.topic, 0)
    for path in lacking.folder.glob(f"{TOPIC}-*/*.log"):
        path.write_bytes(without_update(path.read_bytes(), 4))
    (found,) = lacking.audit()
    assert (found.rule, found.offset, found.end_offset) == ("tier-and-log", 4, 8)
    assert "neither in the tier nor in the log of broker 1" in found.message


def without_update(data: bytes, start_offset: int) -> bytes:
    """Without the batches that tell of the end of a copy."""
    kept = b""
    wanted: set[UUID | None] = set()
    for position, header in iter_headers(data):
        left_out = False
        for each in iter_records(data, position):
            match REMOTE_LOG_METADATA_RECORDS.decode(each.value or b""):
                case RemoteLogSegmentMetadataRecord(start_offset=start) as record:
                    if start == start_offset:
                        wanted.add(record.remote_log_segment_id.id)
                case RemoteLogSegmentMetadataUpdateRecord(remote_log_segment_id=copy):
                    left_out = copy.id in wanted
        kept += b"" if left_out else data[position : position + header.size]
    return kept
