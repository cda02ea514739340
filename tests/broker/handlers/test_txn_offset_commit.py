"""TxnOffsetCommit on a cluster: versions, refused partitions, markers, and the next coordinator."""

from __future__ import annotations

import pytest

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups.group_coordinator import OFFSETS_TOPIC
from fencepost.broker.groups.records import OffsetRecord, decode
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from fencepost.protocol.messages.find_coordinator import FindCoordinatorRequest
from fencepost.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from fencepost.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import iter_headers
from fencepost.protocol.transaction_markers import TransactionMarker
from tests.broker.transactions.workbench import Producer
from tests.harness.driver import Driver, Message, versions

NONE = ErrorCode.NONE
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT
UNKNOWN_PARTITION = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
TXN_VERSIONS = versions("txn_offset_commit")
FIRST_WITH_ABORTABLE = 4
FIRST_THAT_ADDS = 5


def cluster(**configs: str) -> Driver:
    """Three brokers, topic t with two partitions, and one partition of all groups."""
    driver = Driver(3, {"offsets.topic.num.partitions": "1", **configs})
    topic = NewTopic(name="t", partitions=2, replication_factor=1, configs={})
    driver.cluster.controller.create_topic(topic)
    driver.ask(1, "find_coordinator", 1, FindCoordinatorRequest(key="g"))
    return driver


def coordinator(driver: Driver) -> int:
    return driver.partition(OFFSETS_TOPIC).leader


def begin(driver: Driver, version: int, transactional_id: str = "x") -> Producer:
    """A producer whose transaction may commit offsets of group g by a version."""
    producer = new_producer(driver, version, transactional_id)
    if version < FIRST_THAT_ADDS:
        asked = AddOffsetsToTxnRequest(
            transactional_id=transactional_id,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            group_id="g",
        )
        answer = driver.ask(producer.coordinator, "add_offsets_to_txn", 3, asked)
        assert answer.error_code == NONE
    return producer


def new_producer(driver: Driver, version: int, transactional_id: str = "x") -> Producer:
    producer = Producer(driver, transactional_id, version=5 if version >= FIRST_THAT_ADDS else 4)
    assert producer.init()[0] is NONE
    return producer


def request(
    *topics: tuple[str, tuple[int, ...]],
    by: Producer | None = None,
    group: str = "g",
    offset: int = 5,
    generation: int = -1,
) -> TxnOffsetCommitRequest:
    return TxnOffsetCommitRequest(
        transactional_id="x" if by is None else by.transactional_id,
        group_id=group,
        producer_id=7 if by is None else by.id,
        producer_epoch=0 if by is None else by.epoch,
        generation_id=generation,
        topics=tuple(
            TxnOffsetCommitRequestTopic(
                name=name,
                partitions=tuple(
                    TxnOffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offset,
                        committed_leader_epoch=3,
                        committed_metadata="md",
                    )
                    for index in indexes
                ),
            )
            for name, indexes in topics or (("t", (0,)),)
        ),
    )


def commit(
    driver: Driver, version: int, what: TxnOffsetCommitRequest, broker: int | None = None
) -> list[tuple[str, list[tuple[int, int]]]]:
    """The answer: topics, and index and error of their partitions."""
    to = coordinator(driver) if broker is None else broker
    answer: Message = driver.ask(to, "txn_offset_commit", version, what)
    return [
        (topic.name, [(each.partition_index, each.error_code) for each in topic.partitions])
        for topic in answer.topics
    ]


def end(producer: Producer, *, committed: bool) -> None:
    """End the transaction, and let the markers arrive."""
    assert producer.end(commit=committed) is NONE
    producer.driver.advance(0)


def elect_another(driver: Driver) -> None:
    """Make another broker the coordinator."""
    before = coordinator(driver)
    driver.elect(OFFSETS_TOPIC, 0, next(each for each in (1, 2, 3) if each != before))
    driver.advance(0)
    assert coordinator(driver) != before


def fetched(driver: Driver, *, stable: bool, everything: bool = False) -> list[Message]:
    """The partitions of OffsetFetch."""
    topics = (OffsetFetchRequestTopics(name="t", partition_indexes=(0, 1)),)
    asked = OffsetFetchRequestGroup(group_id="g", topics=None if everything else topics)
    answer = driver.ask(
        coordinator(driver),
        "offset_fetch",
        8,
        OffsetFetchRequest(groups=(asked,), require_stable=stable),
    )
    return [each for topic in answer.groups[0].topics for each in topic.partitions]


@pytest.mark.parametrize("version", TXN_VERSIONS)
def test_an_offset_is_the_groups_when_the_transaction_is_committed(version: int) -> None:
    driver = cluster()
    producer = begin(driver, version)
    assert commit(driver, version, request(by=producer)) == [("t", [(0, NONE)])]
    assert [each.committed_offset for each in fetched(driver, stable=False)] == [-1, -1]
    end(producer, committed=True)
    first = fetched(driver, stable=True)[0]
    epoch = 3 if version >= 2 else -1
    assert (first.committed_offset, first.metadata) == (5, "md")
    assert first.committed_leader_epoch == epoch, "v2 has the leader epoch (KIP-320)"


def test_an_unstable_offset_is_seen_by_those_who_require_stable_ones() -> None:
    driver = cluster()
    producer = begin(driver, 5)
    commit(driver, 5, request(("t", (0, 1)), offset=4, by=producer))
    end(producer, committed=True)
    commit(driver, 5, request(("t", (1,)), by=producer))
    for everything in (False, True):
        seen = fetched(driver, stable=True, everything=everything)
        assert [each.error_code for each in seen] == [NONE, UNSTABLE]
        assert [each.committed_offset for each in seen] == [4, -1]
        seen = fetched(driver, stable=False, everything=everything)
        assert [each.committed_offset for each in seen] == [4, 4]
    end(producer, committed=False)
    assert [each.committed_offset for each in fetched(driver, stable=True)] == [4, 4]


def test_an_unstable_offset_without_a_committed_one_is_seen_where_it_is_named() -> None:
    driver = cluster()
    commit(driver, 5, request(by=begin(driver, 5)))
    seen = fetched(driver, stable=True)
    assert [each.error_code for each in seen] == [UNSTABLE, NONE]
    assert fetched(driver, stable=True, everything=True) == []


@pytest.mark.parametrize("version", TXN_VERSIONS)
def test_partitions_that_there_are_not_are_refused_and_come_first(version: int) -> None:
    driver = cluster()
    producer = begin(driver, version)
    asked = request(("t", (0, 9)), ("u", (0,)), ("v", ()), ("t", (1,)), by=producer)
    assert commit(driver, version, asked) == [
        ("t", [(9, UNKNOWN_PARTITION), (0, NONE), (1, NONE)]),
        ("u", [(0, UNKNOWN_PARTITION)]),
        ("v", []),
    ]


def test_a_topic_that_is_named_twice_is_answered_twice_where_no_partition_is_refused() -> None:
    driver = cluster()
    asked = request(("t", (1,)), ("t", ()), ("t", (0,)), by=begin(driver, 5))
    assert commit(driver, 5, asked) == [("t", [(1, NONE)]), ("t", [(0, NONE)])]


def test_without_any_partition_no_group_is_looked_for() -> None:
    driver = cluster()
    asked = request(("u", (0,)), group="")
    assert commit(driver, 5, asked) == [("u", [(0, UNKNOWN_PARTITION)])]
    assert commit(driver, 5, request(group="")) == [("t", [(0, ErrorCode.INVALID_GROUP_ID)])]


@pytest.mark.parametrize("version", TXN_VERSIONS)
def test_only_the_coordinator_of_the_group_answers(version: int) -> None:
    driver = cluster()
    other = next(each for each in (1, 2, 3) if each != coordinator(driver))
    answer = commit(driver, version, request(), other)
    assert answer == [("t", [(0, ErrorCode.NOT_COORDINATOR)])]


@pytest.mark.parametrize("version", TXN_VERSIONS)
def test_old_producers_see_a_coordinator_that_loads_as_not_available(version: int) -> None:
    driver = cluster()
    shard = driver.broker(coordinator(driver)).coordinator.runtime.shards[0]
    shard.loaded = False
    unavailable = ErrorCode.COORDINATOR_NOT_AVAILABLE
    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if version >= 2 else unavailable
    assert commit(driver, version, request()) == [("t", [(0, code)])]


@pytest.mark.parametrize("version", versions("txn_offset_commit", 3))
def test_the_generation_is_checked_from_v3_on(version: int) -> None:
    driver = cluster()
    illegal = ErrorCode.ILLEGAL_GENERATION
    asked = request(generation=4, by=begin(driver, version))
    assert commit(driver, version, asked) == [("t", [(0, illegal)])]
    assert commit(driver, 2, request(by=begin(driver, 2, "y"))) == [("t", [(0, NONE)])]


# -- verification (KIP-890) -----------------------------------------------------------------------


@pytest.mark.parametrize("version", range(FIRST_THAT_ADDS))
def test_offsets_of_a_group_that_was_not_added_are_refused(version: int) -> None:
    driver = cluster()
    producer = new_producer(driver, version)
    producer.add(0)
    abortable, invalid = ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE
    code = abortable if version >= FIRST_WITH_ABORTABLE else invalid
    assert commit(driver, version, request(by=producer)) == [("t", [(0, code)])]
    assert driver.leader(OFFSETS_TOPIC).log.log_end_offset == 0


def test_without_verification_they_are_accepted() -> None:
    driver = cluster(**{"transaction.partition.verification.enable": "false"})
    producer = new_producer(driver, 3)
    assert commit(driver, 3, request(by=producer)) == [("t", [(0, NONE)])]


def test_v5_adds_the_groups_partition_to_the_transaction() -> None:
    driver = cluster(**{"transaction.partition.verification.enable": "false"})
    producer = new_producer(driver, 5)
    assert commit(driver, 5, request(by=producer)) == [("t", [(0, NONE)])]
    assert producer.metadata.partitions == {(OFFSETS_TOPIC, 0)}


def test_a_fenced_producer_commits_no_offsets() -> None:
    driver = cluster()
    old = begin(driver, 5)
    begin(driver, 5)
    fenced = ErrorCode.INVALID_PRODUCER_EPOCH
    assert commit(driver, 5, request(by=old)) == [("t", [(0, fenced)])]


def test_only_the_first_commit_of_a_transaction_is_verified() -> None:
    driver = cluster()
    producer = begin(driver, 5)
    commit(driver, 5, request(by=producer))
    driver.broker(producer.coordinator).transactions.runtime.shards.clear()
    assert commit(driver, 5, request(by=producer)) == [("t", [(0, NONE)])]


def test_a_coordinator_that_is_cut_off_is_to_be_asked_once_more() -> None:
    driver = cluster()
    producer = begin(driver, 5)
    driver.broker(producer.coordinator).transactions.runtime.shards.clear()
    moved = ErrorCode.NOT_COORDINATOR
    assert commit(driver, 5, request(by=producer)) == [("t", [(0, moved)])]


# -- the next coordinator -------------------------------------------------------------------------


def test_the_next_coordinator_ends_the_transaction() -> None:
    driver = cluster()
    producer = begin(driver, 5)
    commit(driver, 5, request(by=producer))
    elect_another(driver)
    assert [each.error_code for each in fetched(driver, stable=True)] == [UNSTABLE, NONE]
    end(producer, committed=True)
    elect_another(driver)
    assert fetched(driver, stable=True)[0].committed_offset == 5


def test_a_marker_is_refused_where_the_groups_have_no_coordinator() -> None:
    driver = cluster()
    not_leader = ErrorCode.NOT_LEADER_OR_FOLLOWER
    marker = TransactionMarker(
        producer_id=7,
        producer_epoch=0,
        coordinator_epoch=0,
        committed=True,
        transaction_version=1,
    )
    other = next(each for each in (1, 2, 3) if each != coordinator(driver))
    assert driver.broker(other).coordinator.complete_transaction(0, marker) is not_leader
    groups = driver.broker(coordinator(driver)).coordinator
    groups.runtime.shards[0].loaded = False
    assert groups.complete_transaction(0, marker) is not_leader


def test_a_marker_that_is_not_replicated_in_time_is_asked_for_once_more() -> None:
    driver = cluster(**{"replica.lag.time.max.ms": "100000"})
    producer = begin(driver, 5)
    commit(driver, 5, request(by=producer))
    driver.hold(*({1, 2, 3} - {coordinator(driver)}))
    groups = driver.broker(coordinator(driver)).coordinator
    marker = TransactionMarker(
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        coordinator_epoch=0,
        committed=True,
        transaction_version=1,
    )
    again = groups.complete_transaction(0, marker)
    assert isinstance(again, Wait)
    driver.advance(30_000)
    assert again.result is ErrorCode.REQUEST_TIMED_OUT
    driver.release(1, 2, 3)
    assert fetched(driver, stable=True)[0].committed_offset == 5


def test_the_record_is_kafkas_in_a_transactional_batch() -> None:
    driver = cluster()
    producer = begin(driver, 5)
    commit(driver, 5, request(by=producer))
    log = driver.leader(OFFSETS_TOPIC).log
    end_offset = log.log_end_offset
    (buffer,) = log.read(0, max_bytes=1 << 20, upper_bound=end_offset, min_one_batch=True).buffers
    (at, header), *_ = iter_headers(buffer)
    assert header.is_transactional
    assert not header.is_control
    assert (header.producer_id, header.producer_epoch) == producer.producer
    assert header.base_sequence == 0
    (record,) = iter_records(buffer, at)
    assert record.key is not None
    found = decode(record.key, record.value)
    assert isinstance(found, OffsetRecord)
    assert found.value is not None
    assert (found.topic, found.value.offset, found.value.leader_epoch) == ("t", 5, 3)
