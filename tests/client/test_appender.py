"""Conditional appends, against a cluster that follows a script."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fencepost.client import (
    Appended,
    AppendRefused,
    ExpectedOffsetMismatch,
    KafkaClientError,
    NotChecked,
    OutcomeUnknown,
    Sequenced,
    Unreachable,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import FetchRequest
from fencepost.protocol.messages.produce import ProduceRequest
from fencepost.protocol.records import peek_header
from tests.harness.scripted_broker import (
    ORDERS,
    Cluster,
    Log,
    and_nobody_answers,
    answered,
    appended_but,
    appender,
    cluster_with,
    first_batches_only,
    hurried,
    lost_answer,
    lost_request,
    records,
    then,
)

__all__ = ["hurried"]
pytestmark = pytest.mark.usefixtures("hurried")

MINE = records("a", "b", "c", "d")


# -- the first attempt ----------------------------------------------------------------------------


async def test_what_is_expected_is_appended() -> None:
    cluster = cluster_with("x")
    done = await appender(cluster).append(MINE, expected=1)
    assert done == Appended(first_offset=1, next_offset=5)
    assert cluster.log.values == ["x", "a", "b", "c", "d"]
    assert cluster.fetched == []


async def test_a_set_is_several_batches_in_one_request() -> None:
    cluster = cluster_with("x")
    await appender(cluster, max_batch_records=3).append(MINE, expected=1)
    headers = [peek_header(each) for each in cluster.log.batches]
    assert [(each.base_offset, each.record_count) for each in headers] == [(0, 1), (1, 3), (4, 1)]
    assert cluster.sent == [1]


@pytest.mark.parametrize(("version", "upcoming"), [(13, 2), (8, 2), (7, None), (3, None)])
async def test_a_mismatch_that_nothing_went_before_is_told_at_once(
    version: int, upcoming: int | None
) -> None:
    cluster = cluster_with("a", "b", version=version)
    with pytest.raises(ExpectedOffsetMismatch) as told:
        await appender(cluster).append(MINE, expected=0)
    error = told.value
    assert (error.partition, error.expected, error.upcoming, error.appended) == (
        ORDERS,
        0,
        upcoming,
        0,
    )
    assert cluster.fetched == [], "the log was read, though nothing was in doubt"
    assert cluster.sent == [0]


async def test_a_mismatch_on_a_log_that_is_too_short() -> None:
    cluster = cluster_with("x")
    with pytest.raises(
        ExpectedOffsetMismatch, match="expected offset 7, upcoming offset 1"
    ) as told:
        await appender(cluster).append(MINE, expected=7)
    assert told.value.appended == 0


async def test_the_code_of_a_mismatch_is_the_topics_own_and_known_by_its_text() -> None:
    cluster = cluster_with("x")
    cluster.log.code = ErrorCode.INVALID_RECORD
    with pytest.raises(ExpectedOffsetMismatch) as told:
        await appender(cluster).append(MINE, expected=0)
    assert told.value.upcoming == 1


@pytest.mark.parametrize("version", [7, 8])
async def test_below_version_8_it_has_to_be_given(version: int) -> None:
    cluster = cluster_with("x", version=version)
    cluster.log.code = 4711
    with pytest.raises(ExpectedOffsetMismatch):
        await appender(cluster, mismatch_code=4711).append(MINE, expected=0)
    untold: type[Exception] = AppendRefused if version < 8 else ExpectedOffsetMismatch
    with pytest.raises(untold):
        await appender(cluster).append(MINE, expected=0)


async def test_the_code_that_kafka_has_not_says_it_without_a_text() -> None:
    cluster = cluster_with(script=[answered(ErrorCode.EXPECTED_OFFSET_MISMATCH)])
    with pytest.raises(ExpectedOffsetMismatch) as told:
        await appender(cluster, mismatch_code=87).append(MINE, expected=0)
    assert told.value.upcoming is None


async def test_a_given_code_does_not_stand_for_a_mismatch_where_there_are_texts() -> None:
    cluster = cluster_with(script=[answered(ErrorCode.INVALID_RECORD)])
    with pytest.raises(AppendRefused):
        await appender(cluster, mismatch_code=ErrorCode.INVALID_RECORD).append(MINE, expected=0)


async def test_a_code_that_also_says_later_is_looked_into() -> None:
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    cluster = cluster_with("x", version=7)
    cluster.log.code = code
    with pytest.raises(ExpectedOffsetMismatch):
        await appender(cluster, mismatch_code=code).append(MINE, expected=0)
    assert cluster.fetched == [0]
    moved = cluster_with(version=7, script=[appended_but(code)])
    done = await appender(moved, mismatch_code=code).append(MINE, expected=0)
    assert done.next_offset == 4
    assert moved.log.values == ["a", "b", "c", "d"]


async def test_refused_for_good() -> None:
    cluster = cluster_with(script=[answered(ErrorCode.MESSAGE_TOO_LARGE)])
    with pytest.raises(AppendRefused, match="orders-0: MESSAGE_TOO_LARGE") as told:
        await appender(cluster).append(MINE, expected=0)
    assert (told.value.code, told.value.name) == (10, "MESSAGE_TOO_LARGE")
    assert not isinstance(told.value, KafkaClientError)


@pytest.mark.parametrize("expected", [0, 1])
async def test_a_topic_that_checks_nothing(expected: int) -> None:
    cluster = cluster_with("x")
    cluster.log.checks = False
    if expected == 1:  # as it happens
        assert (await appender(cluster).append(MINE, expected=1)).first_offset == 1
        return
    with pytest.raises(NotChecked, match="expected at 0 are at 1") as told:
        await appender(cluster).append(MINE, expected=0)
    assert (told.value.expected, told.value.first_offset) == (0, 1)


@pytest.mark.parametrize(
    ("settings", "arguments"),
    [
        ({"acks": 0}, {}),
        ({"max_batch_records": 0}, {}),
        ({"max_batch_bytes": 0}, {}),
        ({}, {"records": []}),
        ({}, {"expected": -1}),
        ({"idempotent": True}, {"may_be_there": True}),
    ],
    ids=str,
)
async def test_what_makes_no_sense(settings: dict[str, Any], arguments: dict[str, Any]) -> None:
    cluster = cluster_with()
    given: dict[str, Any] = {"records": MINE, "expected": 0} | arguments
    with pytest.raises(ValueError, match=r"."):
        await appender(cluster, **settings).append(**given)
    assert cluster.sent == []


# -- leaders --------------------------------------------------------------------------------------


async def test_the_newest_epoch_leads() -> None:
    cluster = cluster_with(script=[lost_request])
    cluster.leaders = {1: (1, 4), 2: (2, 5), 3: (1, 4)}
    await appender(cluster).append(MINE, expected=0)
    assert cluster.asked == [2, 2]


async def test_a_leader_who_was_deposed_is_not_asked_again() -> None:
    """A client that still believes in it has a log without what was appended since."""

    def only_the_zombie_answers(log: Log) -> None:
        cluster.leaders = {1: (1, 4)}

    cluster = cluster_with(script=[then(lost_answer, only_the_zombie_answers)])
    cluster.leaders = {1: (1, 4), 2: (2, 5)}
    with pytest.raises(OutcomeUnknown, match="no broker knows of a leader"):
        await appender(cluster).append(MINE, expected=0)
    assert cluster.asked == [2]


@pytest.mark.parametrize("in_doubt", [False, True])
async def test_nobody_answers(in_doubt: bool) -> None:
    cluster = cluster_with()
    cluster.leaders = {}
    told = OutcomeUnknown if in_doubt else Unreachable
    append = appender(cluster)
    with pytest.raises(told, match="no broker accepts"):
        await append.append(MINE, expected=0, may_be_there=in_doubt)


async def test_it_is_read_from_the_leader_of_that_epoch() -> None:
    cluster = cluster_with(script=[lost_answer])
    cluster.leaders = {1: (1, 7)}
    await appender(cluster).append(MINE, expected=0)
    (read,) = (each for each in cluster.requests if isinstance(each, FetchRequest))
    assert read.topics[0].partitions[0].current_leader_epoch == 7


async def test_brokers_are_to_answer_before_they_are_given_up() -> None:
    cluster = cluster_with(script=[lost_answer])
    await appender(cluster, request_timeout_s=0.4).append(MINE, expected=0)
    sent, again, read = cluster.requests
    assert isinstance(sent, ProduceRequest)
    assert isinstance(again, ProduceRequest)
    assert isinstance(read, FetchRequest)
    assert (sent.timeout_ms, again.timeout_ms, read.max_wait_ms) == (300, 300, 300)


# -- one after another ----------------------------------------------------------------------------


async def test_one_is_in_flight_and_the_others_wait_in_their_order() -> None:
    cluster = cluster_with()
    append = appender(cluster)
    done = await asyncio.gather(
        *(append.append(records(str(at)), expected=at) for at in range(5)), return_exceptions=True
    )
    assert [each for each in done if isinstance(each, BaseException)] == []
    assert cluster.sent == [0, 1, 2, 3, 4]
    assert cluster.most_under_way == 1


async def test_after_a_failure_the_same_append_is_in_doubt_by_itself() -> None:
    cluster = cluster_with(script=[and_nobody_answers(lost_answer)])
    append = appender(cluster)
    with pytest.raises(OutcomeUnknown):
        await append.append(MINE, expected=0)
    cluster.leaders[1] = (1, 0)
    assert (await append.append(MINE, expected=0)).next_offset == 4
    assert cluster.log.values == ["a", "b", "c", "d"]
    with pytest.raises(ExpectedOffsetMismatch):
        await append.append(MINE, expected=0)


async def test_another_append_after_a_failure_is_not() -> None:
    cluster = cluster_with(script=[and_nobody_answers(lost_answer)])
    append = appender(cluster)
    with pytest.raises(OutcomeUnknown):
        await append.append(MINE, expected=0)
    cluster.leaders[1] = (1, 0)
    with pytest.raises(ExpectedOffsetMismatch):
        await append.append(MINE[:2], expected=0)


async def test_after_a_cancellation_too() -> None:
    cluster = cluster_with()
    append = appender(cluster)

    def cancel(log: Log) -> None:
        task.cancel()

    cluster.script = [then(lost_answer, cancel)]
    task = asyncio.create_task(append.append(MINE, expected=0))
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await append.append(MINE, expected=0)).next_offset == 4
    assert cluster.log.values == ["a", "b", "c", "d"]


# -- idempotent -----------------------------------------------------------------------------------


def sequences(cluster: Cluster) -> list[tuple[int, int, int]]:
    headers = (peek_header(each) for each in cluster.log.batches)
    return [(each.producer_id, each.base_sequence, each.record_count) for each in headers]


async def test_an_idempotent_producer_counts_its_records() -> None:
    cluster = cluster_with()
    append = appender(cluster, idempotent=True, max_batch_records=3)
    assert append.producer is None
    await append.append(MINE, expected=0)
    await append.append(MINE[:1], expected=4)
    assert sequences(cluster) == [(1001, 0, 3), (1001, 3, 1), (1001, 4, 1)]
    assert append.producer == Sequenced(producer_id=1001, producer_epoch=0, base_sequence=5)


async def test_a_producer_id_is_asked_for_until_there_is_one() -> None:
    cluster = cluster_with()
    cluster.no_producer_id = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 2
    await appender(cluster, idempotent=True).append(MINE, expected=0)
    assert sequences(cluster) == [(1001, 0, 4)]


async def test_there_is_no_producer_id() -> None:
    cluster = cluster_with()
    append = appender(cluster, idempotent=True)
    cluster.no_producer_id = [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    with pytest.raises(AppendRefused, match="CLUSTER_AUTHORIZATION_FAILED: InitProducerId"):
        await append.append(MINE, expected=0)
    cluster.no_producer_id = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 1000
    with pytest.raises(Unreachable, match="COORDINATOR_LOAD_IN_PROGRESS"):
        await append.append(MINE, expected=0)
    cluster.leaders = {}
    with pytest.raises(Unreachable, match="no producer id: no broker accepts"):
        await append.append(MINE, expected=0)
    assert cluster.sent == []


@pytest.mark.parametrize(
    "other", [Sequenced(), Sequenced(producer_id=7, producer_epoch=0, base_sequence=0)]
)
async def test_the_same_content_of_another_producer_is_another_record(other: Sequenced) -> None:
    same = then(lost_request, lambda log: log.write("a", "b", "c", "d", by=other))
    cluster = cluster_with(script=[same])
    append = appender(cluster, idempotent=True)
    with pytest.raises(ExpectedOffsetMismatch) as told:
        await append.append(MINE, expected=0)
    assert told.value.appended == 0
    assert append.producer == Sequenced(producer_id=1001, producer_epoch=0, base_sequence=0)


@pytest.mark.parametrize(
    "other",
    [
        Sequenced(producer_id=1001, producer_epoch=1, base_sequence=0),
        Sequenced(producer_id=1001, producer_epoch=0, base_sequence=4),
    ],
)
async def test_so_is_that_of_another_epoch_or_sequence(other: Sequenced) -> None:
    same = then(lost_request, lambda log: log.write("a", "b", "c", "d", by=other))
    cluster = cluster_with(script=[same])
    with pytest.raises(ExpectedOffsetMismatch):
        await appender(cluster, idempotent=True).append(MINE, expected=0)


async def test_an_idempotent_producers_content_is_not_that_of_one_without_an_id() -> None:
    idempotent = Sequenced(producer_id=7, producer_epoch=0, base_sequence=0)
    cluster = cluster_with()
    cluster.log.write("a", "b", "c", "d", by=idempotent)
    with pytest.raises(ExpectedOffsetMismatch):
        await appender(cluster).append(MINE, expected=0, may_be_there=True)


async def test_after_a_mismatch_it_goes_on_with_what_is_not_used() -> None:
    torn = then(first_batches_only(1), lambda log: log.write("y"))
    cluster = cluster_with(script=[torn])
    append = appender(cluster, idempotent=True, max_batch_records=3)
    with pytest.raises(ExpectedOffsetMismatch) as told:
        await append.append(MINE, expected=0)
    assert told.value.appended == 3
    await append.append(MINE[3:], expected=4)
    assert sequences(cluster) == [(1001, 0, 3), (-1, -1, 1), (1001, 3, 1)]


async def test_after_a_refusal_it_goes_on_with_the_same_numbers() -> None:
    cluster = cluster_with(script=[answered(ErrorCode.MESSAGE_TOO_LARGE)])
    append = appender(cluster, idempotent=True)
    with pytest.raises(AppendRefused):
        await append.append(MINE, expected=0)
    await append.append(MINE[:1], expected=0)
    assert sequences(cluster) == [(1001, 0, 1)]


async def test_after_records_went_elsewhere_it_goes_on_with_the_next() -> None:
    cluster = cluster_with("x")
    cluster.log.checks = False
    append = appender(cluster, idempotent=True)
    with pytest.raises(NotChecked):
        await append.append(MINE, expected=0)
    await append.append(MINE[:1], expected=5)
    assert sequences(cluster)[1:] == [(1001, 0, 4), (1001, 4, 1)]


async def test_the_rest_goes_on_in_the_sequence() -> None:
    cluster = cluster_with(script=[first_batches_only(1)])
    await appender(cluster, idempotent=True, max_batch_records=3).append(MINE, expected=0)
    assert sequences(cluster) == [(1001, 0, 3), (1001, 3, 1)]


async def test_sequence_numbers_that_may_be_used_are_not_used_for_other_records() -> None:
    cluster = cluster_with(script=[and_nobody_answers(lost_request)])
    append = appender(cluster, idempotent=True)
    with pytest.raises(OutcomeUnknown):
        await append.append(MINE, expected=0)
    cluster.leaders[1] = (1, 0)
    await append.append(MINE[:1], expected=0)
    assert sequences(cluster) == [(1002, 0, 1)]


async def test_the_same_append_uses_the_same_again() -> None:
    cluster = cluster_with(script=[and_nobody_answers(lost_answer)])
    append = appender(cluster, idempotent=True)
    with pytest.raises(OutcomeUnknown):
        await append.append(MINE, expected=0)
    cluster.leaders[1] = (1, 0)
    await append.append(MINE, expected=0, may_be_there=True)
    assert sequences(cluster) == [(1001, 0, 4)]


async def test_a_successor_takes_over_the_producer() -> None:
    left = Sequenced(producer_id=7, producer_epoch=3, base_sequence=2**31 - 2)
    cluster = cluster_with(script=[first_batches_only(1)])
    first = appender(cluster, producer=left, max_batch_records=3)
    cluster.script.append(and_nobody_answers(lost_request))
    with pytest.raises(OutcomeUnknown):
        await first.append(MINE, expected=0)
    assert first.producer == left
    cluster.leaders[1] = (1, 0)
    second = appender(cluster, producer=first.producer, max_batch_records=3)
    assert (await second.append(MINE, expected=0, may_be_there=True)).next_offset == 4
    assert sequences(cluster) == [(7, 2**31 - 2, 3), (7, 1, 1)]
    assert second.producer == Sequenced(producer_id=7, producer_epoch=3, base_sequence=2)
    assert cluster.producer_ids == 0
