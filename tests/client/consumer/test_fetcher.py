from __future__ import annotations

import pytest
from msgspec.structs import replace

from fencepost.broker.node import operator_actions
from fencepost.client.consumer.errors import (
    CorruptRecords,
    OffsetOutOfRangeError,
    RequestRefused,
)
from fencepost.client.consumer.model import OffsetAndMetadata
from fencepost.client.model import Partition
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import FetchResponse
from fencepost.protocol.messages.list_offsets import ListOffsetsResponse
from tests.client.consumer.driven import (
    TP,
    DrivenConsumer,
    cluster,
    delete_before,
    refused,
    start,
    values,
    write,
)
from tests.harness.driver import Driver, versions
from tests.harness.driver_requests import create, produce

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def test_records_come_with_their_epochs_and_the_offsets_to_commit() -> None:
    driver = cluster()
    produce(driver, "t", b"a", b"b")
    driver.elect("t", 0, 1)
    produce(driver, "t", b"c")
    consumer = start(driver)
    consumer.run(lambda: consumer.core._assignment.get(TP).buffer)
    records = consumer.core.poll(consumer.now)
    assert [(each.offset, each.leader_epoch, each.value) for each in records] == [
        (0, 0, b"a"),
        (1, 0, b"b"),
        (2, 1, b"c"),
    ]
    assert len(records) == 3
    assert records.next_offsets == {TP: OffsetAndMetadata(offset=3, leader_epoch=1)}
    assert list(records.by_partition) == [TP]


def test_a_poll_hands_out_as_many_as_are_asked_for() -> None:
    driver = cluster()
    produce(driver, "t", b"a", b"b", b"c")
    produce(driver, "t", b"d")
    consumer = start(driver, max_poll_records=2)
    assert values(consumer.poll()) == [b"a", b"b"]
    assert consumer.position() == OffsetAndMetadata(offset=2, leader_epoch=0)
    assert values(consumer.poll()) == [b"c", b"d"]
    assert len(consumer.requests("fetch")) == 1


def test_a_batch_is_read_from_its_middle() -> None:
    driver = cluster()
    produce(driver, "t", b"a", b"b", b"c")
    assert values(start(driver, 1).poll()) == [b"b", b"c"]


@pytest.mark.parametrize("version", versions("fetch"))
def test_every_version_of_fetch_will_do(version: int) -> None:
    driver = Driver(3, api_max={"fetch": version})
    create(driver, "t", ((1, 2, 3),))
    write(driver, "a", 2)
    consumer = start(driver)
    consumer.read(2)
    assert {each.version for each in consumer.requests("fetch")} == {version}
    consumer.nothing()
    first, *_, last = consumer.partitions("fetch")
    assert (first.current_leader_epoch, last.current_leader_epoch) == (0, 0)
    assert (first.last_fetched_epoch, last.last_fetched_epoch) == (-1, 0)


def test_topics_are_named_where_their_ids_are_not_known() -> None:
    driver = Driver(3, api_max={"metadata": 9})
    create(driver, "t", ((1, 2, 3),))
    write(driver, "a", 2)
    consumer = start(driver)
    consumer.read(2)
    assert {each.version for each in consumer.requests("fetch")} == {12}


def test_one_request_asks_a_leader_for_all_its_partitions() -> None:
    driver = Driver(3)
    create(driver, "t", ((1,), (2,), (1,)))
    for index in range(3):
        produce(driver, "t", b"%d" % index, index=index)
    consumer = DrivenConsumer(driver, auto_offset_reset="earliest")
    consumer.core.assign([Partition(topic="t", index=index) for index in range(3)])
    assert {each.value for each in consumer.read(3)} == {b"0", b"1", b"2"}
    by_broker = {
        each.broker: {part.partition for topic in each.message.topics for part in topic.partitions}
        for each in consumer.requests("fetch")[:2]
    }
    assert by_broker == {1: {0, 2}, 2: {1}}


def test_no_partition_starves_another() -> None:
    driver = Driver(1)
    create(driver, "t", ((1,), (1,)))
    for index in range(2):
        for _ in range(4):
            produce(driver, "t", b"x", index=index)
    consumer = DrivenConsumer(driver, auto_offset_reset="earliest", max_poll_records=2)
    consumer.core.assign([Partition(topic="t", index=index) for index in range(2)])
    turns = [{each.partition for each in consumer.poll()} for _ in range(4)]
    assert turns == [{0}, {1}, {0}, {1}]


def test_a_paused_partition_is_not_fetched() -> None:
    driver = cluster()
    write(driver, "a", 1)
    consumer = start(driver)
    consumer.core.pause(TP, paused=True)
    consumer.nothing()
    assert consumer.requests("fetch") == []
    consumer.core.pause(TP, paused=False)
    assert values(consumer.poll()) == [b"a0"]


def test_nothing_is_fetched_unless_records_are_wanted() -> None:
    driver = cluster()
    write(driver, "a", 1)
    consumer = start(driver)
    consumer.run(lambda: consumer.core._metadata.leader(TP).leader, fetches=False)
    for _ in range(5):
        consumer.step(fetches=False)
    assert consumer.requests("fetch") == []


def test_records_that_were_fetched_before_a_seek_are_dropped() -> None:
    driver = cluster()
    write(driver, "a", 4)
    consumer = start(driver)
    consumer.run(lambda: consumer.core._assignment.get(TP).buffer)
    consumer.core.seek(TP, OffsetAndMetadata(offset=3))
    assert values(consumer.poll()) == [b"a3"]
    consumer.core.seek(TP, OffsetAndMetadata(offset=4))
    consumer.step()  # a fetch is on its way
    consumer.core.seek(TP, OffsetAndMetadata(offset=2))
    write(driver, "b", 1)
    assert values(consumer.read(3)) == [b"a2", b"a3", b"b0"]


def test_a_new_leader_is_fetched_from_in_its_epoch() -> None:
    driver = cluster()
    write(driver, "a", 1)
    consumer = start(driver)
    consumer.read(1)
    operator_actions.elect(driver.cluster, "t", 0, 2)
    write(driver, "b", 1)
    consumer.read(1)
    assert consumer.requests("fetch")[-1].broker == 2
    assert consumer.partitions("fetch")[-1].current_leader_epoch == 1


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ],
)
def test_errors_of_stale_metadata_refresh_it(code: ErrorCode) -> None:
    driver = cluster()
    write(driver, "a", 1)
    consumer = start(driver)
    consumer.alters = [("fetch", refused(code))]
    assert values(consumer.poll()) == [b"a0"]
    assert len(consumer.requests("fetch")) == 2
    consumer.nothing(200)
    assert [each.broker for each in consumer.requests("metadata")] == [1, 2], "another broker"


def test_a_broker_that_ends_is_left_for_the_new_leader() -> None:
    driver = cluster()
    write(driver, "a", 1)
    consumer = start(driver)
    consumer.read(1)
    operator_actions.kill(driver.cluster, 1)
    write(driver, "b", 1)
    assert values(consumer.poll()) == [b"b0"]


# -- out of range -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "expected"), [("earliest", [b"a3", b"a4"]), ("latest", [b"b0"])]
)
@pytest.mark.parametrize("offset", [1, 99])
def test_a_position_out_of_range_is_reset_by_policy(
    policy: str, expected: list[bytes], offset: int
) -> None:
    driver = cluster()
    write(driver, "a", 5)
    delete_before(driver, 3)
    consumer = start(driver, offset, auto_offset_reset=policy)
    consumer.run(lambda: consumer.core.position(TP) != OffsetAndMetadata(offset=offset))
    consumer.position()
    if policy == "latest":
        write(driver, "b", 1)
    assert values(consumer.read(len(expected))) == expected


def test_without_a_policy_it_is_an_error_until_a_seek() -> None:
    driver = cluster()
    write(driver, "a", 5)
    delete_before(driver, 3)
    consumer = start(driver, 1, auto_offset_reset="none")
    for _ in range(2):
        with pytest.raises(OffsetOutOfRangeError, match="out of range: t-0 at 1") as told:
            consumer.poll()
        assert type(told.value) is OffsetOutOfRangeError
        assert told.value.offsets == {TP: 1}
    consumer.core.seek(TP, OffsetAndMetadata(offset=4))
    assert values(consumer.poll()) == [b"a4"]


# -- followers (KIP-392) ------------------------------------------------------------------------


def racks() -> Driver:
    driver = Driver(3, {"replica.selector.class": RACK_AWARE}, racks=("a", "b", "c"))
    create(driver, "t", ((1, 2, 3),))
    write(driver, "a", 2)
    driver.advance(1_000)
    return driver


def test_the_follower_of_the_same_rack_is_fetched_from() -> None:
    driver = racks()
    consumer = start(driver, client_rack="c")
    assert values(consumer.read(2)) == [b"a0", b"a1"]
    assert [each.broker for each in consumer.requests("fetch")] == [1, 3]
    assert consumer.requests("fetch")[0].message.rack_id == "c"


def test_the_leader_is_asked_again_after_a_while() -> None:
    driver = racks()
    consumer = start(driver, client_rack="c", metadata_max_age_ms=500)
    consumer.read(2)
    consumer.nothing(600)
    brokers = [each.broker for each in consumer.requests("fetch")]
    assert brokers[:2] == [1, 3]
    assert 1 in brokers[2:]
    assert brokers[-1] == 3


def test_a_follower_that_is_gone_sends_it_back_to_the_leader() -> None:
    driver = racks()
    consumer = start(driver, client_rack="c")
    consumer.read(2)
    operator_actions.kill(driver.cluster, 3)
    write(driver, "b", 1)
    assert values(consumer.poll()) == [b"b0"]
    assert consumer.requests("fetch")[-1].broker != 3


def test_a_follower_whose_range_is_another_does_not_decide() -> None:
    driver = racks()
    consumer = start(driver, client_rack="c", auto_offset_reset="none")
    consumer.read(2)
    consumer.alters = [("fetch", refused(ErrorCode.OFFSET_OUT_OF_RANGE))]
    write(driver, "b", 1)
    assert values(consumer.poll()) == [b"b0"]
    assert [each.broker for each in consumer.requests("fetch")][-2:] == [1, 3]


def test_without_a_rack_the_leader_is_fetched_from() -> None:
    driver = racks()
    consumer = start(driver)
    consumer.read(2)
    assert [each.broker for each in consumer.requests("fetch")] == [1]


# -- what it cannot go on from ------------------------------------------------------------------


def test_a_broken_batch_is_an_error_and_the_position_stays_before_it() -> None:
    driver = cluster()
    produce(driver, "t", b"a")
    produce(driver, "t", b"b")

    def corrupt(response: FetchResponse) -> FetchResponse:
        ((part,),) = (each.partitions for each in response.responses)
        whole = bytearray(b"".join(map(bytes, part.records or ())))
        whole[-1] ^= 0xFF
        broken = replace(part, records=(whole,))
        return replace(response, responses=(replace(response.responses[0], partitions=(broken,)),))

    consumer = start(driver)
    consumer.alters = [("fetch", corrupt), ("fetch", corrupt)]
    assert values(consumer.poll()) == [b"a"]
    with pytest.raises(CorruptRecords, match=r"t-0 at offset 1: .*checksum") as told:
        consumer.poll()
    assert (told.value.partition, told.value.offset) == (TP, 1)
    assert values(consumer.poll()) == [b"b"], "it is fetched again"


def test_an_error_that_does_not_pass_is_raised_once_each_time() -> None:
    driver = cluster()
    write(driver, "a", 1)
    consumer = start(driver)
    consumer.alters = [("fetch", refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED))]
    with pytest.raises(RequestRefused, match="Fetch of t-0: TOPIC_AUTHORIZATION_FAILED") as told:
        consumer.poll()
    assert told.value.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert values(consumer.poll()) == [b"a0"]


def test_an_answer_of_another_api_is_a_bug() -> None:
    consumer = start(cluster())
    (request,) = consumer.core.turn(0).requests
    with pytest.raises(TypeError, match="ListOffsetsResponse is no ApiVersionsResponse"):
        consumer.core.answered(request, ListOffsetsResponse(), 0)
