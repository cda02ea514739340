from __future__ import annotations

import pytest
from msgspec.structs import replace

from fencepost.broker.node import operator_actions
from fencepost.client.consumer.errors import RequestRefused
from fencepost.client.consumer.model import OffsetAndTimestamp
from fencepost.client.model import OffsetSpec, Partition
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.list_offsets import ListOffsetsResponse
from tests.client.consumer.driven import TP, DrivenConsumer, cluster, fall_behind, start, write
from tests.harness.driver import Driver, versions
from tests.harness.driver_requests import create, produce, send_produce
from tests.harness.records import TIMESTAMP


def ends_with(code: int) -> tuple[str, object]:
    """Alters the next answer to ListOffsets: this error."""

    def alter(response: ListOffsetsResponse) -> ListOffsetsResponse:
        topic = response.topics[0]
        part = replace(topic.partitions[0], error_code=code, offset=-1)
        return replace(response, topics=(replace(topic, partitions=(part,)),))

    return "list_offsets", alter


def find(
    consumer: DrivenConsumer, timestamp: int, partition: Partition = TP
) -> OffsetAndTimestamp | None:
    return consumer.result(consumer.core.find_offsets({partition: timestamp}))[partition]


def test_records_are_found_by_time_with_their_epochs() -> None:
    driver = cluster()
    produce(driver, "t", b"a", b"b")  # a millisecond apart
    driver.elect("t", 0, 1)
    produce(driver, "t", b"c", b"d", b"e")
    consumer = DrivenConsumer(driver)
    found = OffsetAndTimestamp(offset=1, timestamp=TIMESTAMP + 1, leader_epoch=0)
    assert find(consumer, TIMESTAMP + 1) == found
    found = OffsetAndTimestamp(offset=4, timestamp=TIMESTAMP + 2, leader_epoch=1)
    assert find(consumer, TIMESTAMP + 2) == found
    assert find(consumer, TIMESTAMP + 3) is None


@pytest.mark.parametrize("version", versions("list_offsets"))
def test_every_version_of_list_offsets_will_do(version: int) -> None:
    driver = Driver(3, api_max={"list_offsets": version})
    create(driver, "t", ((1, 2, 3),))
    write(driver, "a", 3)
    consumer = DrivenConsumer(driver)
    end = find(consumer, OffsetSpec.LATEST)
    assert end is not None
    assert (end.offset, end.leader_epoch) == (3, 0 if version >= 4 else None)
    (request,) = consumer.requests("list_offsets")
    assert (request.version, request.message.replica_id) == (version, -1)
    assert consumer.partitions("list_offsets")[0].current_leader_epoch == 0


def test_nothing_to_find_is_found_at_once() -> None:
    consumer = DrivenConsumer(cluster())
    assert consumer.core.find_offsets({}).result() == {}


def test_several_partitions_of_several_leaders_and_the_same_one_twice() -> None:
    driver = Driver(3)
    create(driver, "t", ((1,), (2,), (1,)))
    for index in range(3):
        for _ in range(index + 1):
            produce(driver, "t", b"x", index=index)
    consumer = DrivenConsumer(driver)
    partitions = [Partition(topic="t", index=index) for index in range(3)]
    ends = consumer.core.find_offsets(dict.fromkeys(partitions, -1))
    starts = consumer.core.find_offsets(dict.fromkeys(partitions, -2))
    found = consumer.result(ends), consumer.result(starts)
    offsets = [[at.offset for at in map(each.get, partitions) if at] for each in found]
    assert offsets == [[1, 2, 3], [0, 0, 0]]
    assert len(consumer.requests("list_offsets")) == 4


# -- KIP-207 ------------------------------------------------------------------------------------


def test_offsets_that_are_not_available_after_an_election_are_asked_for_again() -> None:
    driver = cluster()
    write(driver, "a", 1)
    driver.hold(3)
    send_produce(driver, "t", b"b", acks=1, broker_id=1)
    driver.advance(1)
    driver.elect("t", 0, 2)
    consumer = DrivenConsumer(driver)
    operation = consumer.core.find_offsets({TP: OffsetSpec.LATEST})
    for _ in range(1_000):
        consumer.step()
        driver.advance(1)
    assert not operation.done
    assert operation.reason == "OFFSET_NOT_AVAILABLE"
    asked = len(consumer.requests("list_offsets"))
    assert 3 <= asked <= 10, "with pauses that grow"
    assert len(consumer.requests("metadata")) == 1, "the leader is the right one"
    driver.release(3)
    found = consumer.result(operation)[TP]
    assert found is not None
    assert found.offset == 2


def test_before_version_5_the_error_asks_for_metadata_too() -> None:
    driver = Driver(3, api_max={"list_offsets": 4})
    create(driver, "t", ((1, 2, 3),))
    write(driver, "a", 1)
    driver.hold(3)
    send_produce(driver, "t", b"b", acks=1, broker_id=1)
    driver.elect("t", 0, 2)
    consumer = DrivenConsumer(driver)
    operation = consumer.core.find_offsets({TP: OffsetSpec.LATEST})
    consumer.run(lambda: len(consumer.requests("list_offsets")) == 3)
    assert operation.reason == "LEADER_NOT_AVAILABLE"
    assert len(consumer.requests("metadata")) > 1
    driver.release(3)
    assert consumer.result(operation)[TP] is not None


# -- errors -------------------------------------------------------------------------------------


def test_the_leader_is_asked_in_the_epoch_that_is_known() -> None:
    driver = cluster()
    write(driver, "a", 1)
    consumer = DrivenConsumer(driver)
    find(consumer, OffsetSpec.LATEST)
    operator_actions.elect(driver.cluster, "t", 0, 2)
    assert find(consumer, OffsetSpec.LATEST) is not None
    brokers = [each.broker for each in consumer.requests("list_offsets")]
    epochs = [each.current_leader_epoch for each in consumer.partitions("list_offsets")]
    assert (brokers[0], epochs[0]) == (1, 0)
    assert (brokers[-1], epochs[-1]) == (2, 1)


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.UNKNOWN_LEADER_EPOCH])
def test_errors_that_pass_are_waited_for(code: ErrorCode) -> None:
    driver = cluster()
    write(driver, "a", 1)
    consumer = DrivenConsumer(driver)
    consumer.alters = [ends_with(code)]  # type: ignore[list-item]  # of any message
    assert find(consumer, OffsetSpec.LATEST) is not None
    assert len(consumer.requests("list_offsets")) == 2


def test_a_lost_request_is_sent_again() -> None:
    driver = cluster()
    consumer = DrivenConsumer(driver)
    consumer.loses = {"list_offsets"}
    operation = consumer.core.find_offsets({TP: OffsetSpec.LATEST})
    consumer.run(lambda: len(consumer.requests("list_offsets")) == 3)
    assert operation.reason == "the test lost it"
    consumer.loses = set()
    assert consumer.result(operation)[TP] is not None


def test_an_old_message_format_has_no_times() -> None:
    driver = cluster()
    consumer = DrivenConsumer(driver)
    consumer.alters = [ends_with(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)]  # type: ignore[list-item]  # of any message
    assert find(consumer, 5) is None


def test_a_refusal_ends_the_operation() -> None:
    driver = cluster()
    consumer = DrivenConsumer(driver)
    consumer.alters = [ends_with(ErrorCode.TOPIC_AUTHORIZATION_FAILED)]  # type: ignore[list-item]  # of any message
    with pytest.raises(RequestRefused, match="ListOffsets of t-0: TOPIC_AUTHORIZATION_FAILED"):
        find(consumer, OffsetSpec.LATEST)


def test_an_operation_that_was_dropped_is_not_asked_for_any_more() -> None:
    consumer = DrivenConsumer(cluster())
    consumer.core.find_offsets({Partition(topic="none-such", index=0): -1}).cancel()
    for _ in range(10):
        consumer.step()
    assert consumer.sent == []


def test_the_log_end_of_an_unclean_leader_is_its_own() -> None:
    driver = cluster()
    write(driver, "a", 2)
    fall_behind(driver, 3)
    write(driver, "b", 2)
    consumer = start(driver)
    consumer.read(4)
    operator_actions.elect(driver.cluster, "t", 0, 3, unclean=True)
    end = find(consumer, OffsetSpec.LATEST)
    assert end == OffsetAndTimestamp(offset=2, timestamp=-1, leader_epoch=1)
