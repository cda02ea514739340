"""Faults on requests of the dialect kip-320-draft: what they leave keeps the draft's fields."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fencepost.broker.faults.kinds import Corrupt, Refuse, Throttle
from fencepost.broker.faults.rules import FaultRule
from fencepost.broker.faults.selectors import Versions
from fencepost.protocol.codec.drafts import KIP_320_DRAFT
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import FetchRequest
from fencepost.protocol.messages.find_coordinator import FindCoordinatorRequest
from fencepost.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from fencepost.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from fencepost.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from tests.broker.faults.faulty import CODE, rule, set_fault
from tests.harness.driver import Driver, Message
from tests.harness.driver_requests import create, produce
from tests.harness.typed_requests import fetch_request, from_offset, values

TIME = 1_600_000_000_000
NONE, TRUNCATED = ErrorCode.NONE, ErrorCode.LOG_TRUNCATION


@pytest.fixture
def driver() -> Driver:
    """One broker, that has two partitions of topic t, and coordinates group g."""
    driver = Driver(1, dialect=KIP_320_DRAFT)
    create(driver, "t", [(1,), (1,)])
    for index in (0, 1):
        produce(driver, "t", b"a", b"b", index=index)
    driver.ask(1, "find_coordinator", 1, FindCoordinatorRequest(key="g"))
    return driver


def ask(driver: Driver, api: str, version: int, request: Message) -> dict[int, Message]:
    """The partitions of the answer."""
    answer = driver.ask(1, api, version, request)
    topics = answer.responses if api == "fetch" else answer.topics
    return {part.partition_index: part for topic in topics for part in topic.partitions}


def fetch(*asked: tuple[int, int]) -> FetchRequest:
    """Offsets and last fetched epochs, by partition."""
    return fetch_request(
        *(
            ("t", replace(from_offset(offset, index), last_fetched_epoch=epoch))
            for index, (offset, epoch) in enumerate(asked)
        )
    )


def commit(driver: Driver) -> dict[int, Message]:
    partitions = tuple(
        OffsetCommitRequestPartition(
            partition_index=index,
            committed_offset=2,
            committed_leader_epoch=0,
            timestamp=TIME + index,
        )
        for index in (0, 1)
    )
    topic = OffsetCommitRequestTopic(name="t", partitions=partitions)
    request = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=(topic,))
    return ask(driver, "offset_commit", 6, request)


def committed(driver: Driver) -> dict[int, Message]:
    topic = OffsetFetchRequestTopic(name="t", partition_indexes=(0, 1))
    return ask(driver, "offset_fetch", 5, OffsetFetchRequest(group_id="g", topics=(topic,)))


def one(api: str, version: int, code: int = CODE) -> FaultRule:
    """A fault on partition 1 of one version."""
    return rule(api, Refuse(code), topic="t", partition=1, versions=Versions(version, version))


def test_fetch_of_one_partition_is_refused_and_the_other_is_checked(driver: Driver) -> None:
    driver.cluster.faults.add(one("fetch", 9))
    assert ask(driver, "fetch", 10, fetch((0, 0), (0, 0)))[1].error_code == NONE
    found = ask(driver, "fetch", 9, fetch((9, 0), (0, 0)))
    assert {index: part.error_code for index, part in found.items()} == {0: TRUNCATED, 1: CODE}


def test_a_fault_can_answer_a_truncation_that_there_was_not(driver: Driver) -> None:
    driver.cluster.faults.add(one("fetch", 9, TRUNCATED))
    found = ask(driver, "fetch", 9, fetch((0, 0), (0, 0)))
    assert (values(found[0]), found[1].error_code) == ([b"a", b"b"], TRUNCATED)


def test_records_of_a_fetch_are_corrupted(driver: Driver) -> None:
    set_fault(driver, "fetch", Corrupt(), topic="t", partition=1)
    sound, corrupt = (
        part for _, part in sorted(ask(driver, "fetch", 9, fetch((0, 0), (0, 0))).items())
    )
    assert bytes(sound.records[0])[-1] != bytes(corrupt.records[0])[-1]


def test_list_offsets_of_one_partition_is_refused(driver: Driver) -> None:
    driver.cluster.faults.add(one("list_offsets", 4))
    partitions = tuple(ListOffsetsPartition(partition_index=i, timestamp=-1) for i in (0, 1))
    topic = ListOffsetsTopic(name="t", partitions=partitions)
    request = ListOffsetsRequest(replica_id=-1, topics=(topic,))
    found = ask(driver, "list_offsets", 4, request)
    fields = {i: (p.error_code, p.offset, p.leader_epoch) for i, p in found.items()}
    assert fields == {0: (NONE, 2, 0), 1: (CODE, -1, -1)}


def test_a_refused_commit_stores_no_timestamp_and_the_other_does(driver: Driver) -> None:
    driver.cluster.faults.add(one("offset_commit", 6))
    assert {i: p.error_code for i, p in commit(driver).items()} == {0: NONE, 1: CODE}
    fields = {i: (p.committed_offset, p.timestamp) for i, p in committed(driver).items()}
    assert fields == {0: (2, TIME), 1: (-1, -1)}


def test_offset_fetch_of_one_partition_is_refused(driver: Driver) -> None:
    commit(driver)
    driver.cluster.faults.add(one("offset_fetch", 5))
    fields = {i: (p.error_code, p.timestamp) for i, p in committed(driver).items()}
    assert fields == {0: (NONE, TIME), 1: (CODE, -1)}
    assert committed(driver)[1].timestamp == TIME + 1


@pytest.mark.parametrize("is_named", [True, False])
def test_an_error_in_place_of_a_committed_offset_has_no_field_of_it(
    driver: Driver, *, is_named: bool
) -> None:
    commit(driver)
    driver.cluster.faults.add(one("offset_fetch", 5))
    topic = OffsetFetchRequestTopic(name="t", partition_indexes=(0, 1))
    request = OffsetFetchRequest(group_id="g", topics=(topic,) if is_named else None)
    found = ask(driver, "offset_fetch", 5, request)
    assert (found[0].committed_offset, found[0].timestamp) == (2, TIME)
    refused = found[1]
    assert (refused.committed_offset, refused.timestamp) == (-1, -1)
    assert (refused.committed_leader_epoch, refused.error_code) == (-1, CODE)


def test_an_answer_is_throttled_and_keeps_its_fields(driver: Driver) -> None:
    commit(driver)
    set_fault(driver, "offset_fetch", Throttle(500))
    topic = OffsetFetchRequestTopic(name="t", partition_indexes=(0,))
    request = OffsetFetchRequest(group_id="g", topics=(topic,))
    answer = driver.ask(1, "offset_fetch", 5, request)
    assert answer.throttle_time_ms == 500
    assert answer.topics[0].partitions[0].timestamp == TIME
