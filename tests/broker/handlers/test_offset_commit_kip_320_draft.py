"""The timestamps of committed offsets in the dialect kip-320-draft outlive their coordinator."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.groups.group_coordinator import OFFSETS_TOPIC
from fencepost.broker.node import operator_actions
from fencepost.protocol.codec.drafts import KIP_320_DRAFT
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.find_coordinator import FindCoordinatorRequest
from fencepost.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from fencepost.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponsePartition,
)
from tests.broker.groups.scripts import fetch as fetch_step
from tests.harness.driver import Driver
from tests.harness.durable_driver import DurableDriver
from tests.harness.records import records_of

TIME = 1_600_000_000_000
ONE_LOG = {"offsets.topic.num.partitions": "1"}


def coordinator(driver: Driver) -> int:
    found = driver.ask(1, "find_coordinator", 1, FindCoordinatorRequest(key="g"))
    assert found.error_code == ErrorCode.NONE
    broker: int = found.node_id
    return broker


def cluster() -> Driver:
    """Three brokers with topic t."""
    driver = Driver(3, ONE_LOG, dialect=KIP_320_DRAFT)
    create_topic(driver)
    return driver


def create_topic(driver: Driver) -> None:
    topic = NewTopic(name="t", partitions=2, replication_factor=1, configs={})
    driver.cluster.controller.create_topic(topic)
    driver.cluster.scheduler.run_due()


def commit(driver: Driver, index: int, *, timestamp: int, epoch: int = 3, version: int = 6) -> None:
    partition = OffsetCommitRequestPartition(
        partition_index=index,
        committed_offset=40 + index,
        committed_leader_epoch=epoch,
        timestamp=timestamp,
        committed_metadata="md",
    )
    topic = OffsetCommitRequestTopic(name="t", partitions=(partition,))
    request = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=(topic,))
    answer = driver.ask(coordinator(driver), "offset_commit", version, request)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE


def fetch(driver: Driver, *, version: int = 5) -> list[OffsetFetchResponsePartition]:
    wanted = OffsetFetchRequestTopic(name="t", partition_indexes=(0, 1))
    request = OffsetFetchRequest(group_id="g", topics=(wanted,))
    answer = driver.ask(coordinator(driver), "offset_fetch", version, request)
    assert answer.error_code == ErrorCode.NONE
    (topic,) = answer.topics
    return list(topic.partitions)


def committed(index: int, timestamp: int) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        partition_index=index,
        committed_offset=40 + index,
        timestamp=timestamp,
        committed_leader_epoch=3,
        metadata="md",
    )


def stored_values(driver: Driver) -> list[bytes]:
    """The values in ``__consumer_offsets`` from the beginning."""
    log = driver.leader(OFFSETS_TOPIC).log
    found = log.read(0, max_bytes=1 << 20, upper_bound=log.log_end_offset, min_one_batch=True)
    return [bytes(record.value or b"") for record in records_of(found.buffers)]


# -- what is stored -----------------------------------------------------------------------------


def test_a_commit_has_its_timestamp_and_another_has_none() -> None:
    driver = cluster()
    commit(driver, 0, timestamp=TIME)
    commit(driver, 1, timestamp=-1)
    assert fetch(driver) == [committed(0, TIME), committed(1, -1)]
    nothing = OffsetFetchResponsePartition(partition_index=0, committed_offset=-1)
    assert fetch(Driver(1, ONE_LOG, dialect=KIP_320_DRAFT))[0] == nothing


def test_a_later_commit_without_a_timestamp_has_none() -> None:
    driver = cluster()
    commit(driver, 0, timestamp=TIME)
    commit(driver, 0, timestamp=-1)
    assert fetch(driver)[0] == committed(0, -1)
    commit(driver, 0, timestamp=0)
    assert fetch(driver)[0] == committed(0, 0), "the beginning of 1970 is a time"


def test_all_offsets_of_a_group_have_their_timestamps() -> None:
    driver = cluster()
    commit(driver, 1, timestamp=TIME)
    request = OffsetFetchRequest(group_id="g", topics=None)
    answer = driver.ask(coordinator(driver), "offset_fetch", 5, request)
    assert answer.topics[0].partitions == (committed(1, TIME),)


@pytest.mark.parametrize("version", [2, 5, 7, 9])
def test_other_versions_of_offset_commit_have_no_timestamp(version: int) -> None:
    driver = cluster()
    epoch = 3 if version >= 6 else -1
    commit(driver, 0, timestamp=TIME, epoch=epoch, version=version)
    assert fetch(driver)[0].timestamp == -1


@pytest.mark.parametrize("version", [4, 6, 7, 8, 9])
def test_other_versions_of_offset_fetch_find_the_offset(version: int) -> None:
    driver = cluster()
    commit(driver, 0, timestamp=TIME)
    step = fetch_step("g", version, (("t", (0,)),))
    answer = driver.ask(coordinator(driver), "offset_fetch", version, step.request)
    holder = answer.groups[0] if version >= 8 else answer
    (found,) = holder.topics[0].partitions
    assert (found.committed_offset, found.metadata) == (40, "md")
    assert found.committed_leader_epoch == (3 if version >= 5 else -1)


def test_only_commits_with_a_timestamp_are_stored_otherwise_than_ever() -> None:
    driver, plain = cluster(), Driver(3, ONE_LOG)
    create_topic(plain)
    commit(driver, 0, timestamp=-1)
    commit(plain, 0, timestamp=TIME)
    assert stored_values(driver) == stored_values(plain)
    assert stored_values(plain)[-1].startswith(b"\0\3")
    commit(driver, 0, timestamp=TIME)
    assert stored_values(driver)[-1].startswith(b"\0\4")
    assert stored_values(driver)[-1].endswith(b"\x01\xd0\x50\x08" + TIME.to_bytes(8))


# -- what it outlives ---------------------------------------------------------------------------


def test_a_timestamp_outlives_a_move_of_the_coordinator() -> None:
    driver = cluster()
    commit(driver, 0, timestamp=TIME)
    before = coordinator(driver)
    for other in sorted({1, 2, 3} - {before}):
        driver.elect(OFFSETS_TOPIC, 0, other)
        assert coordinator(driver) == other
        assert fetch(driver)[0] == committed(0, TIME)


def test_a_timestamp_outlives_the_coordinator() -> None:
    driver = cluster()
    commit(driver, 0, timestamp=TIME)
    before = coordinator(driver)
    operator_actions.kill(driver.cluster, before)
    asker = next(iter({1, 2, 3} - {before}))
    found = driver.ask(asker, "find_coordinator", 1, FindCoordinatorRequest(key="g"))
    assert found.node_id not in (before, -1)
    wanted = OffsetFetchRequestTopic(name="t", partition_indexes=(0,))
    request = OffsetFetchRequest(group_id="g", topics=(wanted,))
    answer = driver.ask(found.node_id, "offset_fetch", 5, request)
    assert answer.topics[0].partitions == (committed(0, TIME),)


@pytest.mark.parametrize(
    "end", [DurableDriver.stop, DurableDriver.kill], ids=["in order", "killed"]
)
def test_a_timestamp_outlives_a_restart_from_files(end: Callable[[DurableDriver], None]) -> None:
    lasting = DurableDriver(3, offsets_topic_num_partitions="1")
    end(lasting)
    lasting.dialect = KIP_320_DRAFT
    driver = lasting.begin()
    create_topic(driver)
    commit(driver, 0, timestamp=TIME)
    commit(driver, 1, timestamp=-1)
    end(lasting)
    assert fetch(lasting.begin()) == [committed(0, TIME), committed(1, -1)]


def test_a_cluster_without_the_dialect_keeps_what_it_finds_in_files() -> None:
    lasting = DurableDriver(1, offsets_topic_num_partitions="1")
    lasting.stop()
    lasting.dialect = KIP_320_DRAFT
    create_topic(lasting.begin())
    commit(lasting.driver, 0, timestamp=TIME)
    lasting.stop()
    lasting.dialect = None
    found = fetch(lasting.begin())[0]
    assert (found.committed_offset, found.committed_leader_epoch) == (40, 3)
    lasting.stop()
    lasting.dialect = KIP_320_DRAFT
    assert fetch(lasting.begin())[0] == committed(0, TIME)
