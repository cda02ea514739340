"""Produce: acks, waits, leaders that move, and what a version knows of it."""

from __future__ import annotations

from typing import Final

import pytest
from msgspec.structs import replace

from fencepost.broker.node import operator_actions
from fencepost.protocol.compression import Codec
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.harness.driver import Driver
from tests.harness.driver_requests import create, fetch, list_offset, produce, send_produce
from tests.harness.records import batch
from tests.harness.typed_requests import produce_request, produced, values

LATEST = -1


def test_acks_all_is_answered_when_every_in_sync_replica_has_it() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    driver.hold(3)
    asked = send_produce(driver, "t", b"a", b"b")
    assert not asked.done
    assert driver.leader("t").high_watermark == 0
    assert driver.replica(2, "t").log.log_end_offset == 2
    driver.release(3)
    answer = produced(asked.response)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)
    assert driver.leader("t").high_watermark == 2


def test_acks_all_that_takes_too_long_times_out_and_the_records_stay() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    driver.hold(3)
    asked = send_produce(driver, "t", b"a", timeout_ms=500)
    driver.advance(499)
    assert not asked.done
    driver.advance(1)
    answer = produced(asked.response)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, 0)
    driver.release(3)
    assert values(fetch(driver, "t", 0)) == [b"a"]


def test_acks_one_is_answered_when_the_leader_has_it_and_nobody_may_read_it_yet() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    driver.hold(2, 3)
    assert produce(driver, "t", b"a", acks=1).base_offset == 0
    assert values(fetch(driver, "t", 0)) == []
    driver.release(2)
    assert values(fetch(driver, "t", 0)) == []
    driver.release(3)
    assert values(fetch(driver, "t", 0)) == [b"a"]


def test_acks_none_gets_no_answer_and_an_error_hangs_up() -> None:
    driver = Driver(1)
    create(driver, "t")
    good = send_produce(driver, "t", b"a", acks=0)
    assert (good.done, good.response, good.hung_up) == (True, None, False)
    assert values(fetch(driver, "t", 0)) == [b"a"]
    bad = driver.send(1, "produce", 12, produce_request(("nope", 0, batch(b"a")), acks=0))
    assert bad.hung_up


@pytest.mark.parametrize("acks", [2, -2])
def test_any_other_acks_are_refused(acks: int) -> None:
    driver = Driver(1)
    create(driver, "t")
    answer = produce(driver, "t", b"a", acks=acks)
    assert answer.error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert driver.leader("t").log.log_end_offset == 0


_V1: Final = b"\0" * 11 + b"\x16" + b"\0" * 4 + b"\x01" + b"\0" * 17
"""A message of the format before v2."""


@pytest.mark.parametrize(
    ("topic", "records", "code"),
    [
        ("t", batch(b"a"), ErrorCode.INVALID_REQUIRED_ACKS),
        ("nope", batch(b"a"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", b"", ErrorCode.INVALID_RECORD),
        ("t", _V1, ErrorCode.INVALID_RECORD),
        ("t", batch(b"a") + batch(b"b"), ErrorCode.INVALID_RECORD),
        ("checked", batch(b"a") + batch(b"b"), ErrorCode.INVALID_REQUIRED_ACKS),
    ],
    ids=["good", "unknown", "none", "old", "several", "several-checked"],
)
def test_what_is_checked_before_an_append_is_reported_before_the_acks(
    topic: str, records: bytes, code: ErrorCode
) -> None:
    driver = Driver(1)
    create(driver, "t")
    create(driver, "checked", check_expected_offsets="true")
    request = produce_request((topic, 0, records), acks=2)
    assert produced(driver.ask(1, "produce", 12, request)).error_code == code


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (b"\0" * 61, "Record size 0 is less than the minimum record overhead (14)"),
        (batch(b"a")[:16] + b"\3" + batch(b"a")[17:], "Invalid magic found in record: 3"),
    ],
)
def test_bytes_that_begin_no_batch_fail_the_whole_request(records: bytes, message: str) -> None:
    driver = Driver(1)
    create(driver, "t")
    create(driver, "u")
    request = produce_request(("t", 0, batch(b"a")), ("u", 0, records))
    answer = driver.ask(1, "produce", 12, request)
    twice = driver.ask(1, "produce", 12, produce_request(("u", 0, records), ("u", 0, records)))
    assert [len(topic.partition_responses) for topic in twice.responses] == [1]
    found = [
        (p.error_code, p.error_message) for t in answer.responses for p in t.partition_responses
    ]
    assert found == [(ErrorCode.CORRUPT_MESSAGE, message)] * 2
    assert driver.leader("t").log.log_end_offset == 0
    assert driver.send(1, "produce", 12, replace(request, acks=0)).hung_up


def test_behind_a_batch_of_a_transaction_they_fail_their_partition_without_a_message() -> None:
    driver = Driver(1)
    create(driver, "t")
    create(driver, "u")
    first = batch(b"a", transactional=True, producer=(7, 0, 0))
    broken = batch(b"a")[:16] + b"\3" + batch(b"a")[17:]
    request = produce_request(("t", 0, first), ("u", 0, broken))
    answer = driver.ask(1, "produce", 12, replace(request, transactional_id="x"))
    (found,) = answer.responses[1].partition_responses
    assert (found.error_code, found.error_message) == (ErrorCode.CORRUPT_MESSAGE, None)


def test_only_a_whole_batch_of_the_present_format_is_transactional() -> None:
    driver = Driver(1)
    create(driver, "t")
    whole = batch(b"a", transactional=True, producer=(7, 0, 0))
    codes = [
        produced(driver.ask(1, "produce", 12, produce_request(("t", 0, records)))).error_code
        for records in (whole, whole[:-1], whole[:16] + b"\1" + whole[17:])
    ]
    assert codes == [
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_RECORD,
    ]


def test_waits_complete_in_the_order_in_which_their_records_stand() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    driver.hold(2)
    asked = [send_produce(driver, "t", b"%d" % n) for n in range(3)]
    assert not any(a.done for a in asked)
    driver.release(2)
    assert [produced(a.response).base_offset for a in asked] == [0, 1, 2]
    assert values(fetch(driver, "t", 0)) == [b"0", b"1", b"2"]


def test_one_request_waits_for_all_of_its_partitions() -> None:
    driver = Driver(2)
    create(driver, "alone", [(1,)])
    create(driver, "held", [(1, 2)])
    driver.hold(2)
    request = produce_request(("alone", 0, batch(b"a")), ("held", 0, batch(b"b")))
    asked = driver.send(1, "produce", 12, request)
    assert not asked.done
    driver.advance(1000)
    codes = {t.name: t.partition_responses[0].error_code for t in asked.response.responses}
    assert codes == {"alone": ErrorCode.NONE, "held": ErrorCode.REQUEST_TIMED_OUT}


def test_a_leader_that_resigns_answers_who_waited() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    driver.hold(3)
    asked = send_produce(driver, "t", b"a")
    driver.elect("t", 0, 2)
    assert produced(asked.response).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_the_same_leader_in_a_new_epoch_still_has_the_records_and_goes_on_waiting() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    driver.hold(2, 3)
    asked = send_produce(driver, "t", b"a")
    driver.elect("t", 0, 1)
    driver.advance(500)
    driver.release(2, 3)
    assert produced(asked.response).error_code == ErrorCode.NONE


def test_a_leader_that_comes_back_does_not_acknowledge_what_it_has_truncated() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    create(driver, "held", [(1, 2, 3)])
    driver.broker(3).replica_manager.hold("held", 0, None)
    for follower in (2, 3):  # no one else gets what is appended to t
        driver.broker(follower).replica_manager.hold("t", 0, None)
    request = produce_request(("t", 0, batch(b"lost")), ("held", 0, batch(b"a")))
    asked = driver.send(1, "produce", 12, request)
    driver.elect("t", 0, 2)
    for follower in (1, 2, 3):
        driver.broker(follower).replica_manager.release("t", 0)
    driver.elect("t", 0, 1)
    assert produce(driver, "t", b"another").base_offset == 0
    assert not asked.done
    driver.broker(3).replica_manager.release("held", 0)
    driver.cluster.scheduler.run_due()
    codes = {t.name: t.partition_responses[0].error_code for t in asked.response.responses}
    assert codes == {"t": ErrorCode.NOT_LEADER_OR_FOLLOWER, "held": ErrorCode.NONE}
    assert values(fetch(driver, "t", 0)) == [b"another"]


def test_what_was_committed_before_the_leader_resigned_is_acknowledged() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    create(driver, "held", [(1, 2, 3)])
    driver.broker(3).replica_manager.hold("held", 0, None)
    request = produce_request(("t", 0, batch(b"kept")), ("held", 0, batch(b"a")))
    asked = driver.send(1, "produce", 12, request)
    driver.elect("t", 0, 2)
    assert not asked.done
    driver.broker(3).replica_manager.release("held", 0)
    driver.cluster.scheduler.run_due()
    codes = {t.name: t.partition_responses[0].error_code for t in asked.response.responses}
    assert codes == {"t": ErrorCode.NONE, "held": ErrorCode.NONE}
    assert values(fetch(driver, "t", 0, broker_id=2)) == [b"kept"]


def test_what_was_committed_is_acknowledged_though_the_isr_has_become_too_small() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2)], min_insync_replicas="2")
    create(driver, "held", [(1, 3)])
    driver.broker(3).replica_manager.hold("held", 0, None)
    request = produce_request(("t", 0, batch(b"a")), ("held", 0, batch(b"a")))
    asked = driver.send(1, "produce", 12, request)
    operator_actions.kill(driver.cluster, 2)
    assert driver.leader("t").isr == (1,)
    assert not asked.done
    driver.broker(3).replica_manager.release("held", 0)
    driver.cluster.scheduler.run_due()
    codes = {t.name: t.partition_responses[0].error_code for t in asked.response.responses}
    assert codes == {"t": ErrorCode.NONE, "held": ErrorCode.NONE}


def test_what_waits_while_the_isr_is_too_small_is_acknowledged_when_it_is_large_again() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)], min_insync_replicas="2")
    driver.broker(2).replica_manager.hold("t", 0, None)
    asked = send_produce(driver, "t", b"a")
    operator_actions.kill(driver.cluster, 2)
    assert driver.leader("t").isr == (1,)
    assert not asked.done
    operator_actions.start(driver.cluster, 2)
    driver.broker(2).replica_manager.release("t", 0)
    driver.cluster.scheduler.run_due()
    assert produced(asked.response).error_code == ErrorCode.NONE


def test_a_deleted_topic_answers_who_waited() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    driver.hold(2)
    asked = send_produce(driver, "t", b"a")
    driver.cluster.controller.delete_topics(["t"])
    assert produced(asked.response).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("minimum", "code"),
    [("2", ErrorCode.NONE), ("3", ErrorCode.NOT_ENOUGH_REPLICAS)],
)
def test_acks_all_needs_as_many_in_sync_replicas_as_the_topic_says(
    minimum: str, code: ErrorCode
) -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)], min_insync_replicas=minimum)
    controller = driver.cluster.controller
    topic = controller.image.topics["t"]
    shrunk = replace(topic.partitions[0], isr=(1, 2), partition_epoch=1)
    controller.update_topics([replace(topic, partitions=(shrunk,))])
    answer = produce(driver, "t", b"a")
    assert answer.error_code == code
    assert driver.leader("t").log.log_end_offset == (1 if code is ErrorCode.NONE else 0)
    assert produce(driver, "t", b"b", acks=1).error_code == ErrorCode.NONE


def test_no_more_in_sync_replicas_are_asked_for_than_there_are_replicas() -> None:
    driver = Driver(1)
    create(driver, "t", min_insync_replicas="3")
    assert produce(driver, "t", b"a").error_code == ErrorCode.NONE


def test_whoever_is_not_the_leader_says_so_and_from_v10_who_is() -> None:
    driver = Driver(3)
    create(driver, "t", [(2, 3)])
    for broker_id in (1, 3):
        asked = send_produce(driver, "t", b"a", broker_id=broker_id, version=10)
        answer = produced(asked.response)
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (2, 0)
        (node,) = asked.response.node_endpoints
        assert (node.node_id, node.host, node.port) == (2, "broker-2", 9093)
    older = send_produce(driver, "t", b"a", broker_id=1, version=9).response
    assert produced(older).current_leader.leader_id == -1


def test_unknown_topics_and_partitions() -> None:
    driver = Driver(1)
    create(driver, "t")
    for name, index in (("nope", 0), ("t", 9)):
        request = produce_request((name, index, batch(b"a")))
        answer = produced(driver.ask(1, "produce", 12, request))
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert (answer.base_offset, answer.log_start_offset) == (-1, -1)


def test_topic_ids_from_v13_name_one_topic_and_not_its_successor() -> None:
    driver = Driver(1)
    old = create(driver, "t")
    driver.cluster.controller.delete_topics(["t"])
    new = create(driver, "t")
    codes = []
    for topic_id in (old, new):
        partition = PartitionProduceData(index=0, records=batch(b"a"))
        topic = TopicProduceData(topic_id=topic_id, partition_data=(partition,))
        request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=(topic,))
        response = driver.ask(1, "produce", 13, request)
        assert response.responses[0].topic_id == topic_id
        codes.append(produced(response).error_code)
    assert codes == [ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.NONE]


@pytest.mark.parametrize(
    ("version", "code"),
    [(6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (7, ErrorCode.NONE)],
)
def test_zstd_is_taken_from_v7(version: int, code: ErrorCode) -> None:
    driver = Driver(1)
    create(driver, "t")
    request = produce_request(("t", 0, batch(b"a", codec=Codec.ZSTD)))
    assert produced(driver.ask(1, "produce", version, request)).error_code == code


def test_every_version_is_answered() -> None:
    driver = Driver(1)
    create(driver, "t")
    for offset, version in enumerate(range(3, 13)):
        answer = produced(send_produce(driver, "t", b"a", version=version).response)
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, offset)


def test_every_replica_has_the_same_bytes_under_the_leaders_epoch() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    produce(driver, "t", b"a", b"b")
    driver.elect("t", 0, 3)
    produce(driver, "t", b"c")

    def stored(broker_id: int) -> bytes:
        log = driver.replica(broker_id, "t").log
        read = log.read(0, max_bytes=1 << 20, upper_bound=3, min_one_batch=True)
        return b"".join(read.buffers)

    assert stored(1) == stored(2) == stored(3)
    assert [e.epoch for e in driver.replica(1, "t").log.epoch_entries()] == [0, 1]
    assert [e.start_offset for e in driver.replica(2, "t").log.epoch_entries()] == [0, 2]


def test_a_partitions_records_are_counted_from_where_its_last_leader_ended() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    for leader in (2, 3, 1):
        produce(driver, "t", b"x", b"y")
        driver.elect("t", 0, leader)
    assert produce(driver, "t", b"z").base_offset == 6
    assert list_offset(driver, "t", LATEST).offset == 7


def test_of_a_partition_named_twice_the_last_counts() -> None:
    driver = Driver(1)
    create(driver, "t", [(1,), (1,)])
    named = (("t", 0, b"a"), ("t", 1, b"b"), ("t", 0, b"c"))
    request = produce_request(*((name, index, bytes(batch(v))) for name, index, v in named))
    (topic,) = driver.ask(1, "produce", 9, request).responses
    assert [(p.index, p.error_code) for p in topic.partition_responses] == [(0, 0), (1, 0)]
    assert values(fetch(driver, "t", 0)) == [b"c"]
