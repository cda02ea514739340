"""Fetch: bounds, long polls, sessions, followers that serve consumers, and topic ids."""

from __future__ import annotations

from uuid import UUID

import pytest
from msgspec.structs import replace

from fencepost.broker.node import operator_actions
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import (
    FetchRequest,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from tests.harness.driver import Asked, Driver
from tests.harness.driver_requests import create, fetch, produce, send_produce
from tests.harness.typed_requests import fetch_request, fetched, from_offset, values

NEVER_MS = 60_000


def size(partition: PartitionData) -> int:
    return sum(map(len, partition.records or ()))


def poll(
    driver: Driver, offset: int, *, min_bytes: int = 1, wait_ms: int = NEVER_MS, broker_id: int = 1
) -> Asked:
    request = fetch_request(("t", from_offset(offset)), max_wait_ms=wait_ms, min_bytes=min_bytes)
    return driver.send(broker_id, "fetch", 12, request)


# -- bounds ---------------------------------------------------------------------------------------


def test_a_consumer_reads_to_the_high_watermark_and_a_follower_to_the_end() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    produce(driver, "t", b"committed")
    driver.hold(2)
    produce(driver, "t", b"not yet", acks=1)
    consumer = fetch(driver, "t", 0)
    assert (values(consumer), consumer.high_watermark) == ([b"committed"], 1)
    as_follower = replace(
        fetch_request(("t", from_offset(0))),
        replica_id=2,
        replica_state=ReplicaState(replica_id=2, replica_epoch=0),
    )
    follower = fetched(driver.ask(1, "fetch", 12, as_follower))
    assert values(follower) == [b"committed", b"not yet"]


@pytest.mark.parametrize(
    ("replica_id", "seen"),
    [(-1, []), (-2, []), (-3, [b"not yet"])],
    ids=["consumer", "debugging consumer", "log that moves to another directory"],
)
def test_who_is_no_follower_of_another_broker(replica_id: int, seen: list[bytes]) -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    driver.hold(2)
    produce(driver, "t", b"not yet", acks=1)
    asked = replace(fetch_request(("t", from_offset(0)), max_wait_ms=1000), replica_id=replica_id)
    answer = driver.send(1, "fetch", 12, asked)
    assert answer.done is bool(seen)
    driver.release(2)
    assert values(fetched(answer.response)) == [b"not yet"]


@pytest.mark.parametrize("offset", [-1, 3])
def test_out_of_range_answers_at_once_and_tells_no_watermark(offset: int) -> None:
    driver = Driver(1)
    create(driver, "t")
    produce(driver, "t", b"a", b"b")
    answer = fetched(poll(driver, offset).response)
    assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (answer.high_watermark, answer.log_start_offset) == (-1, -1)
    assert size(answer) == 0


def test_a_log_end_beyond_the_high_watermark_is_not_out_of_range() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    driver.hold(2)
    produce(driver, "t", b"a", acks=1)
    answer = fetch(driver, "t", 1)
    assert (answer.error_code, values(answer)) == (ErrorCode.NONE, [])


def test_an_offset_within_a_batch_gets_the_whole_batch() -> None:
    driver = Driver(1)
    create(driver, "t")
    produce(driver, "t", b"a", b"b", b"c")
    assert values(fetch(driver, "t", 2)) == [b"a", b"b", b"c"]


def test_the_first_batch_comes_whole_and_the_limits_cut_what_follows() -> None:
    driver = Driver(1)
    create(driver, "t", [(1,), (1,)])
    for index in (0, 1):
        for _ in range(3):
            produce(driver, "t", b"x" * 1000, index=index)
    one = size(fetch(driver, "t", 2))

    def sizes(partition_bytes: int, request_bytes: int) -> list[int]:
        asked = [("t", from_offset(0, index, partition_bytes)) for index in (0, 1)]
        request = fetch_request(*asked, max_bytes=request_bytes)
        (topic,) = driver.ask(1, "fetch", 12, request).responses
        return [size(partition) for partition in topic.partitions]

    assert sizes(1, 1 << 20) == [one, 0]
    assert sizes(1 << 20, 1) == [one, 0]
    assert sizes(one + 10, 1 << 20) == [one + 10, one + 10]
    assert sizes(1 << 20, 3 * one + 5) == [3 * one, 0]
    assert sizes(1 << 20, 4 * one + 5) == [3 * one, one + 5]
    assert sizes(1 << 20, 1 << 20) == [3 * one, 3 * one]


def test_the_brokers_limit_holds_for_consumers() -> None:
    driver = Driver(1, {"fetch.max.bytes": "1500"})
    create(driver, "t")
    for _ in range(3):
        produce(driver, "t", b"x" * 1000)
    assert size(fetch(driver, "t", 0)) == 1500


# -- long polls -----------------------------------------------------------------------------------


def test_a_poll_is_answered_as_soon_as_there_is_something() -> None:
    driver = Driver(1)
    create(driver, "t")
    asked = poll(driver, 0)
    driver.advance(10)
    assert not asked.done
    produce(driver, "t", b"a")
    assert values(fetched(asked.response)) == [b"a"]


def test_a_poll_that_nothing_comes_for_is_answered_empty_at_its_time() -> None:
    driver = Driver(1)
    create(driver, "t")
    asked = poll(driver, 0, wait_ms=500)
    driver.advance(499)
    assert not asked.done
    driver.advance(1)
    answer = fetched(asked.response)
    assert (answer.error_code, answer.high_watermark, size(answer)) == (ErrorCode.NONE, 0, 0)


def test_a_poll_waits_until_there_are_as_many_bytes_as_it_wants() -> None:
    driver = Driver(1)
    create(driver, "t")
    produce(driver, "t", b"x" * 100)
    enough = 2 * size(fetch(driver, "t", 0))
    asked = poll(driver, 0, min_bytes=enough)
    assert not asked.done
    produce(driver, "t", b"y" * 100)
    assert values(fetched(asked.response)) == [b"x" * 100, b"y" * 100]


def test_a_poll_gets_what_there_is_at_its_time_though_it_is_too_little() -> None:
    driver = Driver(1)
    create(driver, "t")
    asked = poll(driver, 0, min_bytes=1 << 20, wait_ms=500)
    produce(driver, "t", b"a")
    assert not asked.done
    driver.advance(500)
    assert values(fetched(asked.response)) == [b"a"]


def test_a_poll_does_not_hear_of_records_before_they_are_committed() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    driver.hold(2)
    asked = poll(driver, 0)
    produce(driver, "t", b"a", acks=1)
    assert not asked.done
    driver.release(2)
    assert values(fetched(asked.response)) == [b"a"]


def test_a_poll_on_several_partitions_is_answered_by_any_of_them() -> None:
    driver = Driver(1)
    create(driver, "t", [(1,), (1,)])
    asked = [("t", from_offset(0, index)) for index in (0, 1)]
    waiting = driver.send(1, "fetch", 12, fetch_request(*asked, max_wait_ms=NEVER_MS))
    produce(driver, "t", b"a", index=1)
    (topic,) = waiting.response.responses
    assert [values(partition) for partition in topic.partitions] == [[], [b"a"]]


def test_an_error_answers_at_once() -> None:
    driver = Driver(1)
    create(driver, "t")
    asked = [("t", from_offset(0)), ("nope", from_offset(0))]
    response = driver.ask(1, "fetch", 12, fetch_request(*asked, max_wait_ms=NEVER_MS))
    codes = {t.topic: t.partitions[0].error_code for t in response.responses}
    assert codes == {"t": ErrorCode.NONE, "nope": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_an_election_ends_the_wait_of_who_knows_the_epoch() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    knows = replace(from_offset(0), current_leader_epoch=0)
    asked = driver.send(1, "fetch", 12, fetch_request(("t", knows), max_wait_ms=NEVER_MS))
    driver.elect("t", 0, 1)
    assert fetched(asked.response).error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_poll_beyond_a_truncation_that_ended_nothing_is_out_of_range_at_its_time() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)], message_format_version="0.10.2")  # clients know no epoch
    produce(driver, "t", b"a")
    operator_actions.hold(driver.cluster, "t", 0, 2, leave_isr=True)
    produce(driver, "t", b"b")
    asked = poll(driver, 2, wait_ms=500)
    operator_actions.elect(driver.cluster, "t", 0, 2, unclean=True)
    assert driver.replica(1, "t").log.log_end_offset == 1
    assert not asked.done
    driver.advance(500)
    assert fetched(asked.response).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_what_has_been_cancelled_is_not_tried_again() -> None:
    driver = Driver(1)
    create(driver, "t")
    asked = poll(driver, 0, wait_ms=500)
    driver.advance(500)
    assert asked.done
    produce(driver, "t", b"a")
    assert not driver.leader("t").watermark_watch.waits


@pytest.mark.parametrize("version", [12, 13])
def test_an_unknown_isolation_level_fails_the_request_where_there_is_something_to_read(
    version: int,
) -> None:
    driver = Driver(1)
    topic_id = create(driver, "t")
    topic = FetchTopic(topic="t", topic_id=topic_id, partitions=(from_offset(0),))
    request = FetchRequest(isolation_level=2, session_epoch=0, topics=(topic,))
    answer = driver.ask(1, "fetch", version, request)
    assert (answer.error_code, answer.session_id) == (ErrorCode.UNKNOWN_SERVER_ERROR, 0)
    codes = [p.error_code for t in answer.responses for p in t.partitions]
    assert codes == ([ErrorCode.UNKNOWN_SERVER_ERROR] if version < 13 else [])
    unknown = replace(topic, partitions=(replace(from_offset(0), partition=5),))
    answer = driver.ask(1, "fetch", version, replace(request, topics=(unknown,)))
    assert answer.error_code == ErrorCode.NONE


# -- epochs and leaders ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epoch", "code"),
    [
        (-2, ErrorCode.NONE),
        (-1, ErrorCode.NONE),
        (0, ErrorCode.FENCED_LEADER_EPOCH),
        (1, ErrorCode.NONE),
        (2, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_the_epoch_that_a_client_knows_is_checked(epoch: int, code: ErrorCode) -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    driver.elect("t", 0, 2)
    assert fetch(driver, "t", 0, current_leader_epoch=epoch).error_code == code


@pytest.mark.parametrize(
    ("version", "code"),
    [(10, ErrorCode.NOT_LEADER_OR_FOLLOWER), (11, ErrorCode.NONE)],
)
def test_a_follower_serves_consumers_from_v11(version: int, code: ErrorCode) -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    produce(driver, "t", b"a")
    answer = fetch(driver, "t", 0, broker_id=2, version=version)
    assert answer.error_code == code
    assert values(answer) == ([b"a"] if code is ErrorCode.NONE else [])


def test_a_follower_serves_up_to_its_own_high_watermark() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    driver.hold(3)
    send_produce(driver, "t", b"a")
    follower = fetch(driver, "t", 0, broker_id=2)
    assert (values(follower), follower.high_watermark) == ([], 0)
    waiting = poll(driver, 0, broker_id=2)
    assert not waiting.done
    driver.release(3)
    assert values(fetched(waiting.response)) == [b"a"]


def test_another_replicas_fetch_is_for_the_leader() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    request = replace(fetch_request(("t", from_offset(0))), replica_id=3)
    refused = fetched(driver.ask(2, "fetch", 12, request))
    assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_who_holds_no_replica_says_from_v16_who_leads() -> None:
    driver = Driver(3)
    topic_id = create(driver, "t", [(2, 3)])
    topic = FetchTopic(topic_id=topic_id, partitions=(from_offset(0),))
    for version in (15, 16):
        response = driver.ask(1, "fetch", version, FetchRequest(session_epoch=-1, topics=(topic,)))
        answer = fetched(response)
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        hint = (answer.current_leader.leader_id, [n.node_id for n in response.node_endpoints])
        assert hint == ((2, [2]) if version >= 16 else (-1, []))


def test_logs_that_parted_are_told_where() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    produce(driver, "t", b"a", b"b")
    driver.elect("t", 0, 2)
    produce(driver, "t", b"c")
    ahead = replace(from_offset(5), last_fetched_epoch=0)
    answer = fetched(driver.ask(2, "fetch", 12, fetch_request(("t", ahead))))
    assert (answer.error_code, size(answer)) == (ErrorCode.NONE, 0)
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (0, 2)
    committed = replace(fetch_request(("t", ahead)), isolation_level=1)
    assert fetched(driver.ask(2, "fetch", 12, committed)).aborted_transactions is None
    same = replace(from_offset(2), last_fetched_epoch=0)
    assert values(fetched(driver.ask(2, "fetch", 12, fetch_request(("t", same))))) == [b"c"]


def test_topic_ids_from_v13_name_one_topic_and_not_its_successor() -> None:
    driver = Driver(1)
    old = create(driver, "t")
    driver.cluster.controller.delete_topics(["t"])
    new = create(driver, "t")
    produce(driver, "t", b"a")
    for topic_id, code in ((old, ErrorCode.UNKNOWN_TOPIC_ID), (new, ErrorCode.NONE)):
        topic = FetchTopic(topic_id=topic_id, partitions=(from_offset(0),))
        response = driver.ask(1, "fetch", 13, FetchRequest(session_epoch=-1, topics=(topic,)))
        assert response.responses[0].topic_id == topic_id
        assert fetched(response).error_code == code


def test_unknown_partitions_come_last_and_a_topic_may_come_twice() -> None:
    driver = Driver(1)
    for name in ("t", "u"):
        create(driver, name)
    asked = [
        ("t", from_offset(0, 7)),
        ("no", from_offset(0)),
        ("t", from_offset(9)),
        ("u", from_offset(0)),
    ]
    response = driver.ask(1, "fetch", 12, fetch_request(*asked))
    assert [
        (topic.topic, [(p.partition_index, p.error_code) for p in topic.partitions])
        for topic in response.responses
    ] == [
        ("t", [(0, ErrorCode.OFFSET_OUT_OF_RANGE)]),
        ("u", [(0, ErrorCode.NONE)]),
        ("t", [(7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]),
        ("no", [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]),
    ]


def test_unknown_topic_ids_come_before_other_unknown_partitions() -> None:
    driver = Driver(1)
    known, unknown = create(driver, "t"), UUID(int=7)
    asked = tuple(
        FetchTopic(topic_id=topic_id, partitions=(from_offset(0, index),))
        for topic_id, index in ((known, 9), (unknown, 0))
    )
    response = driver.ask(1, "fetch", 13, FetchRequest(session_epoch=-1, topics=asked))
    assert [topic.topic_id for topic in response.responses] == [unknown, known]


def test_a_negative_limit_fails_where_there_is_something_to_read() -> None:
    driver = Driver(1)
    create(driver, "t")
    produce(driver, "t", b"a")
    for offset, code in ((0, ErrorCode.UNKNOWN_SERVER_ERROR), (1, ErrorCode.NONE)):
        of_partition = fetch_request(("t", from_offset(offset, max_bytes=-1)))
        of_request = fetch_request(("t", from_offset(offset)), max_bytes=-1)
        for asked in (of_partition, of_request):
            assert fetched(driver.ask(1, "fetch", 12, asked)).error_code == code


@pytest.mark.parametrize("replaced", [False, True])
def test_a_session_keeps_the_name_of_a_topic_id(*, replaced: bool) -> None:
    driver = Driver(1)
    topic = FetchTopic(topic_id=create(driver, "t"), partitions=(from_offset(0),))
    response = driver.ask(1, "fetch", 13, FetchRequest(topics=(topic,), session_epoch=0))
    driver.cluster.controller.delete_topics(["t"])
    if replaced:
        create(driver, "t")
    following = FetchRequest(session_id=response.session_id, session_epoch=1)
    code = ErrorCode(fetched(driver.ask(1, "fetch", 13, following)).error_code)
    kept, other = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INCONSISTENT_TOPIC_ID
    assert code is (other if replaced else kept)
