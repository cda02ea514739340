"""What the controller knows, written down and read again, and what a torn or damaged file says."""

from __future__ import annotations

import errno
import json
from binascii import crc32
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from fencepost.broker.data_dir import metadata_log
from fencepost.broker.data_dir.metadata_log import (
    LAYOUT,
    ControllerState,
    CorruptMetadataLog,
    MetadataLog,
)
from fencepost.broker.metadata.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from fencepost.storage.files.file_system import RealFileSystem

FILES = RealFileSystem()
BROKERS = {b: BrokerImage(broker_id=b, host="h", port=b) for b in (1, 2, 3)}
EMPTY = ClusterImage(version=1, cluster_id="c" * 22, controller_id=1, brokers=BROKERS)
ALONE = PartitionImage(replicas=(1,), isr=(1,), leader=1)
EVERYTHING = PartitionImage(
    replicas=(1, 2, 3),
    isr=(2,),
    leader=2,
    leader_epoch=7,
    partition_epoch=19,
    elr=(3,),
    last_known_elr=(1,),
    adding=(3,),
    removing=(1,),
)


def topic(name: str, number: int, *partitions: PartitionImage) -> TopicImage:
    return TopicImage(name=name, topic_id=UUID(int=number), partitions=partitions)


def having(image: ClusterImage, *topics: TopicImage) -> ClusterImage:
    return replace(
        image,
        version=image.version + 1,
        topics={each.name: each for each in topics},
        names={each.topic_id: each.name for each in topics},
    )


class Kept:
    """A registry that is written as a controller writes it."""

    def __init__(self, path: Path) -> None:
        self.path = path / "registry.log"
        known = ControllerState.from_image(EMPTY, 1, 0)
        self.file: MetadataLog = metadata_log.rewrite(FILES, self.path, known, sync=False)
        self.image = EMPTY

    def publish(self, image: ClusterImage) -> None:
        names = {*self.image.topics, *image.topics}
        self.file.append_changes(self.image, image, frozenset(names))
        self.image = image

    def load(self) -> ControllerState:
        loaded = metadata_log.load(FILES, self.path)
        assert loaded is not None
        return loaded[0]


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    kept = Kept(tmp_path)
    yield kept
    kept.file.close()


def test_there_is_nothing_where_there_is_no_file(tmp_path: Path) -> None:
    assert metadata_log.load(FILES, tmp_path / "registry.log") is None


def test_every_change_is_there_again(kept: Kept) -> None:
    one, two = topic("one", 1, ALONE, EVERYTHING), topic("two", 2, ALONE)
    kept.publish(replace(having(EMPTY, one, two), topic_configs={"one": {"retention.ms": "5"}}))
    led = topic("one", 1, replace(ALONE, leader_epoch=4, partition_epoch=9), EVERYTHING)
    kept.publish(
        replace(
            having(kept.image, led, two),
            topic_configs={"two": {"cleanup.policy": "compact"}},
            broker_configs={None: {"log.retention.ms": "7"}, 2: {"message.max.bytes": "9"}},
            group_configs={"g": {"consumer.session.timeout.ms": "50000"}},
            client_metrics_configs={"s": {"metrics": "*"}},
            brokers={**BROKERS, 2: replace(BROKERS[2], epoch=6)},
            features={"metadata.version": 29},
        )
    )
    kept.file.append_producer_ids(3000)
    known = kept.load()
    assert known.topics == {"one": led, "two": two}
    assert {n: c for n, c in known.topic_configs.items() if c} == {
        "two": {"cleanup.policy": "compact"}
    }
    assert known.broker_configs == {
        None: {"log.retention.ms": "7"},
        2: {"message.max.bytes": "9"},
    }
    assert known.group_configs == {"g": {"consumer.session.timeout.ms": "50000"}}
    assert known.client_metrics_configs == {"s": {"metrics": "*"}}
    assert known.brokers == {1: 1, 2: 6, 3: 1}
    assert known.features == {"metadata.version": 29}
    assert (known.version, known.next_producer_id, known.cluster_id) == (3, 3000, "c" * 22)


def test_a_topic_that_grows_and_one_that_is_there_again_by_another_id(kept: Kept) -> None:
    kept.publish(having(EMPTY, topic("t", 1, ALONE)))
    kept.publish(having(kept.image, topic("t", 1, ALONE, EVERYTHING)))
    assert kept.load().topics == {"t": topic("t", 1, ALONE, EVERYTHING)}
    kept.publish(having(kept.image, topic("t", 2, ALONE)))
    assert kept.load().topics == {"t": topic("t", 2, ALONE)}
    assert kept.load().deleted == {UUID(int=1)}
    kept.publish(having(kept.image))
    assert kept.load().topics == {}
    assert kept.load().deleted == {UUID(int=1), UUID(int=2)}


def test_it_is_written_anew_as_short_as_can_be_and_says_the_same(kept: Kept) -> None:
    partition = ALONE
    for epoch in range(100):
        partition = replace(partition, leader_epoch=epoch)
        kept.publish(having(kept.image, topic("t", 1, partition)))
    before, long = kept.load(), kept.path.stat().st_size
    again = metadata_log.rewrite(FILES, kept.path, before, sync=True)
    again.close()
    assert kept.load() == before
    assert kept.path.stat().st_size * 10 < long


def test_a_change_of_one_partition_costs_a_line_however_many_there_are(kept: Kept) -> None:
    many = [ALONE] * 1000
    kept.publish(having(kept.image, topic("t", 1, *many)))
    before = kept.path.stat().st_size
    many[500] = replace(ALONE, isr=(), partition_epoch=1)
    kept.publish(having(kept.image, topic("t", 1, *many)))
    assert kept.path.stat().st_size - before < 100
    assert kept.load().topics["t"].partitions[500].partition_epoch == 1


def test_a_torn_line_is_cut_wherever_it_is_torn(kept: Kept) -> None:
    kept.publish(having(kept.image, topic("one", 1, ALONE)))
    before, whole = kept.load(), kept.path.read_bytes()
    kept.publish(having(kept.image, topic("one", 1, ALONE), topic("two", 2, ALONE)))
    line = kept.path.read_bytes()[len(whole) :]
    for size in range(1, len(line)):
        kept.path.write_bytes(whole + line[:size])
        assert metadata_log.load(FILES, kept.path) == (before, size)
    kept.path.write_bytes(whole + bytes(100))
    assert metadata_log.load(FILES, kept.path) == (before, 100)


def test_damage_before_a_good_line_is_refused(kept: Kept) -> None:
    kept.publish(having(kept.image, topic("one", 1, ALONE)))
    at = kept.path.stat().st_size - 20
    kept.publish(having(kept.image, topic("one", 1, ALONE), topic("two", 2, ALONE)))
    data = bytearray(kept.path.read_bytes())
    data[at] ^= 1
    kept.path.write_bytes(data)
    with pytest.raises(CorruptMetadataLog, match="line 2 is damaged, and others follow"):
        metadata_log.load(FILES, kept.path)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([["cluster", LAYOUT + 1, "c", 1]], "made by a newer fencepost: its layout is"),
        ([["cluster", LAYOUT, "c", 1], ["colour", "red"]], "says what is not known"),
        ([["cluster", LAYOUT, "c", 1], ["partition", "t", 0, []]], "says what is not known"),
        ([["version", 3]], "does not say which cluster"),
    ],
)
def test_what_can_not_be_is_refused_in_a_line(
    tmp_path: Path, records: list[Any], message: str
) -> None:
    path = tmp_path / "registry.log"
    line = json.dumps(records).encode()
    path.write_bytes(b"%08x %b\n" % (crc32(line), line))
    with pytest.raises(CorruptMetadataLog, match=message) as caught:
        metadata_log.load(FILES, path)
    assert "\n" not in str(caught.value)


class FullFile:
    """A file on a disk that is full for a while."""

    size = 0

    def __init__(self) -> None:
        self.full = True
        self.data = b""

    def append(self, buffers: list[bytes]) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.data += b"".join(buffers)

    def sync(self) -> None:
        pass

    def close(self) -> None:
        pass


def test_what_can_not_be_written_is_written_later_and_in_order(tmp_path: Path) -> None:
    told: list[OSError] = []
    file = FullFile()
    registry = MetadataLog(file, sync=True, complain=told.append)  # type: ignore[arg-type]  # never read
    registry.append_producer_ids(1000)
    registry.append_producer_ids(2000)
    assert registry.has_unwritten, "the disk is full"
    assert [error.errno for error in told] == [errno.ENOSPC] * 2
    file.full = False
    registry.write_pending()
    registry.write_pending()
    lines = [json.loads(line[9:]) for line in file.data.splitlines()]
    assert lines == [[["producer_ids", 1000]], [["producer_ids", 2000]]]
