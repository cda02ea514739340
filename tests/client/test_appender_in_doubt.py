"""Conditional appends of which an answer was lost: what the log says decides."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fencepost.client import (
    Appended,
    AppendRefused,
    Disconnected,
    ExpectedOffsetMismatch,
    NewRecord,
    OutcomeUnknown,
)
from fencepost.client.batches import encode_records
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record, build_batch
from tests.harness.scripted_broker import (
    Log,
    Step,
    answered,
    appended_but,
    appender,
    before,
    carried_out,
    cluster_with,
    first_batches_only,
    hurried,
    lost_answer,
    lost_request,
    nothing,
    records,
    then,
)

__all__ = ["hurried"]
pytestmark = pytest.mark.usefixtures("hurried")

MINE = records("a", "b", "c", "d")
LATER = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)


def unsettled(error: OutcomeUnknown) -> tuple[int, int | None, int]:
    return error.expected, error.upcoming, error.appended


# -- in doubt -------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [13, 3])
@pytest.mark.parametrize("lost", [lost_answer, *map(appended_but, LATER)])
async def test_ones_own_records_are_found(lost: Step, version: int) -> None:
    cluster = cluster_with("x", script=[lost], version=version)
    done = await appender(cluster, max_batch_records=2).append(MINE, expected=1)
    assert done == Appended(first_offset=1, next_offset=5)
    assert cluster.log.values == ["x", "a", "b", "c", "d"]
    assert cluster.sent == [1, 1]
    assert cluster.fetched == [1]


@pytest.mark.parametrize("lost", [lost_request, *map(answered, LATER)])
async def test_what_was_not_appended_is_sent_again(lost: Step) -> None:
    cluster = cluster_with("x", script=[lost, lost])
    done = await appender(cluster).append(MINE, expected=1)
    assert done.next_offset == 5
    assert cluster.log.values == ["x", "a", "b", "c", "d"]
    assert cluster.sent == [1, 1, 1]
    assert cluster.fetched == []


@pytest.mark.parametrize("version", [13, 3])
@pytest.mark.parametrize("chunks", [1, 2, 3])
async def test_others_of_a_multiple_of_the_chunk_are_a_mismatch(chunks: int, version: int) -> None:
    def others(log: Log) -> None:
        for chunk in range(chunks):
            log.write(*(f"{chunk}{at}" for at in range(len(MINE))))

    cluster = cluster_with("x", script=[then(lost_request, others)], version=version)
    with pytest.raises(ExpectedOffsetMismatch) as told:
        await appender(cluster).append(MINE, expected=1)
    assert told.value.appended == 0
    assert told.value.upcoming == (1 + 4 * chunks if version >= 8 else None)


async def test_ones_own_with_others_behind_are_appended() -> None:
    cluster = cluster_with("x", script=[then(lost_answer, lambda log: log.write("y", "z"))])
    done = await appender(cluster).append(MINE, expected=1)
    assert done.next_offset == 5
    assert cluster.log.values[-2:] == ["y", "z"]


@pytest.mark.parametrize("version", [13, 3])
async def test_a_part_and_then_others(version: int) -> None:
    torn = then(first_batches_only(1), lambda log: log.write("y", "z", "w"))
    cluster = cluster_with("x", script=[torn], version=version)
    with pytest.raises(ExpectedOffsetMismatch, match="3 of the records are there") as told:
        await appender(cluster, max_batch_records=3).append(MINE, expected=1)
    assert (told.value.expected, told.value.appended) == (1, 3)
    assert cluster.log.values == ["x", "a", "b", "c", "y", "z", "w"]


@pytest.mark.parametrize("version", [13, 3])
async def test_a_part_and_then_the_end_is_gone_on_from(version: int) -> None:
    cluster = cluster_with("x", script=[first_batches_only(1)], version=version)
    done = await appender(cluster, max_batch_records=3).append(MINE, expected=1)
    assert done == Appended(first_offset=1, next_offset=5)
    assert cluster.log.values == ["x", "a", "b", "c", "d"]
    assert cluster.sent == [1, 1, 4]
    # Where the answer tells where the log ends, nothing is waited for there.
    assert cluster.fetched == ([1] if version >= 8 else [1, 4])


async def test_a_part_and_then_others_before_the_rest_comes() -> None:
    overtaken = before(lambda log: log.write("y"), carried_out)
    cluster = cluster_with("x", script=[first_batches_only(1), carried_out, overtaken])
    with pytest.raises(ExpectedOffsetMismatch) as told:
        await appender(cluster, max_batch_records=3).append(MINE, expected=1)
    assert told.value.appended == 3
    assert told.value.upcoming == 5
    assert cluster.sent == [1, 1, 4]


@pytest.mark.parametrize("start", ["x", ""])
async def test_a_dead_process_cut_the_batches_elsewhere(start: str) -> None:
    cluster = cluster_with(*start)
    cluster.log.write("a")
    cluster.log.write("b")
    expected = len(start)
    again = appender(cluster, max_batch_records=3)
    done = await again.append(MINE, expected=expected, may_be_there=True)
    assert done.next_offset == expected + 4
    assert cluster.log.values == [*start, "a", "b", "c", "d"]
    assert cluster.sent == [expected, expected + 2]


async def test_without_the_word_of_an_earlier_attempt_it_is_a_mismatch() -> None:
    cluster = cluster_with("a", "b", "c", "d")
    with pytest.raises(ExpectedOffsetMismatch):
        await appender(cluster).append(MINE, expected=0)
    assert (await appender(cluster).append(MINE, expected=0, may_be_there=True)).next_offset == 4


@pytest.mark.parametrize(
    "other",
    [
        replace(MINE[2], key=b"k"),
        replace(MINE[2], key=None),
        replace(MINE[2], value=b"v"),
        replace(MINE[2], value=None),
        replace(MINE[2], timestamp=1),
        replace(MINE[2], headers=(("h", None),)),
    ],
)
async def test_everything_of_a_record_is_compared(other: NewRecord) -> None:
    cluster = cluster_with()
    cluster.log.put(encode_records([*MINE[:2], other, MINE[3]]))
    with pytest.raises(ExpectedOffsetMismatch) as told:
        await appender(cluster).append(MINE, expected=0, may_be_there=True)
    assert told.value.appended == 2


async def test_the_same_records_in_another_order_are_others() -> None:
    cluster = cluster_with("a", "c", "b", "d")
    with pytest.raises(ExpectedOffsetMismatch) as told:
        await appender(cluster).append(MINE, expected=0, may_be_there=True)
    assert told.value.appended == 1


async def test_brokers_timestamps_say_nothing() -> None:
    cluster = cluster_with()
    stamped = [Record(at, each.timestamp, each.key, each.value) for at, each in enumerate(MINE)]
    cluster.log.put(build_batch(stamped, log_append_time_ms=9))
    done = await appender(cluster).append(MINE, expected=0, may_be_there=True)
    assert done.next_offset == 4


async def test_control_records_are_others() -> None:
    cluster = cluster_with("a", "b")
    marker = [Record(0, 1, b"\0\0\0\0", b"")]
    cluster.log.put(build_batch(marker, control=True, transactional=True, producer_id=5))
    with pytest.raises(ExpectedOffsetMismatch) as told:
        await appender(cluster).append(MINE, expected=0, may_be_there=True)
    assert told.value.appended == 2


# -- what is not replicated yet, or lost ----------------------------------------------------------


async def test_only_what_is_below_the_high_watermark_counts() -> None:
    cluster = cluster_with("x", script=[lost_answer])
    cluster.log.replicated = 1
    cluster.reads = [nothing, lambda log: setattr(log, "replicated", None)]
    done = await appender(cluster).append(MINE, expected=1)
    assert done.next_offset == 5
    assert len(cluster.fetched) == 2, "it was not waited for"


async def test_what_is_never_replicated_is_not_known() -> None:
    cluster = cluster_with("x", script=[lost_answer])
    cluster.log.replicated = 1
    with pytest.raises(OutcomeUnknown, match="not found in the log") as told:
        await appender(cluster).append(MINE, expected=1)
    assert unsettled(told.value) == (1, 5, 0)


async def test_others_that_are_not_replicated_are_not_known_either() -> None:
    cluster = cluster_with("x", script=[then(lost_request, lambda log: log.write("y"))])
    cluster.log.replicated = 1
    with pytest.raises(OutcomeUnknown) as told:
        await appender(cluster).append(MINE, expected=1)
    assert unsettled(told.value) == (1, 2, 0)


async def test_what_is_lost_before_it_is_replicated_is_sent_again() -> None:
    def election(log: Log) -> None:
        log.truncate(1)
        log.replicated = None

    cluster = cluster_with("x", script=[lost_answer])
    cluster.log.replicated = 1
    cluster.reads = [nothing, election]
    done = await appender(cluster).append(MINE, expected=1)
    assert done.next_offset == 5
    assert cluster.log.values == ["x", "a", "b", "c", "d"]
    assert cluster.sent == [1, 1, 1, 1]


@pytest.mark.parametrize("batch", [1, 2, 4])
async def test_a_high_watermark_that_has_come_half_way(batch: int) -> None:
    cluster = cluster_with("x", script=[lost_answer])
    cluster.log.replicated = 3
    append = appender(cluster, max_batch_records=batch)
    with pytest.raises(OutcomeUnknown) as told:
        await append.append(MINE, expected=1)
    assert unsettled(told.value) == (1, 5, 2)


@pytest.mark.parametrize("version", [13, 3])
async def test_in_doubt_a_log_that_is_too_short_proves_nothing(version: int) -> None:
    cluster = cluster_with("x", script=[lost_request], version=version)
    with pytest.raises(OutcomeUnknown, match=r"the log (ends at 1|does not reach 3)") as told:
        await appender(cluster).append(MINE, expected=3)
    assert unsettled(told.value) == (3, 1 if version >= 8 else None, 0)


@pytest.mark.parametrize("version", [13, 3])
async def test_what_was_seen_and_lost_is_sent_again(version: int) -> None:
    unclean = before(lambda log: log.truncate(1), carried_out)
    script = [first_batches_only(2), carried_out, unclean]
    cluster = cluster_with("x", script=script, version=version)
    done = await appender(cluster, max_batch_records=1).append(MINE, expected=1)
    assert done == Appended(first_offset=1, next_offset=5)
    assert cluster.log.values == ["x", "a", "b", "c", "d"]
    assert cluster.sent == [1, 1, 3, 1]


@pytest.mark.parametrize("version", [13, 3])
async def test_records_that_were_deleted_are_not_known(version: int) -> None:
    def deleted(log: Log) -> None:
        log.start = 3

    cluster = cluster_with("x", script=[then(lost_answer, deleted)], version=version)
    with pytest.raises(OutcomeUnknown, match="begins at 3"):
        await appender(cluster).append(MINE, expected=1)


async def test_records_that_were_compacted_are_not_known() -> None:
    def compacted(log: Log) -> None:
        kept = [Record(at, each.timestamp, each.key, each.value) for at, each in enumerate(MINE)]
        log.batches = [build_batch([kept[0], kept[2], kept[3]], leader_epoch=0)]

    cluster = cluster_with(script=[then(lost_answer, compacted)])
    with pytest.raises(OutcomeUnknown, match="record at 1 is no longer in the log") as told:
        await appender(cluster).append(MINE, expected=0)
    assert told.value.appended == 1


async def test_a_batch_that_compaction_removed_whole() -> None:
    cluster = cluster_with(script=[then(lost_answer, lambda log: log.batches.pop(0))])
    with pytest.raises(OutcomeUnknown, match="record at 0 is no longer"):
        await appender(cluster, max_batch_records=2).append(MINE, expected=0)


async def test_a_refusal_for_good_does_not_settle_what_is_in_doubt() -> None:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    cluster = cluster_with(script=[lost_answer, answered(code)])
    with pytest.raises(OutcomeUnknown, match="TOPIC_AUTHORIZATION_FAILED") as told:
        await appender(cluster).append(MINE, expected=0)
    assert isinstance(told.value.__cause__, AppendRefused)


async def test_nor_does_a_log_that_may_not_be_read() -> None:
    cluster = cluster_with(script=[lost_answer])
    cluster.fetch_error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(OutcomeUnknown, match="reading back"):
        await appender(cluster).append(MINE, expected=0)


async def test_reading_back_is_tried_again() -> None:
    def moved(log: Log) -> None:
        cluster.fetch_error = ErrorCode.NOT_LEADER_OR_FOLLOWER

    def gone(log: Log) -> None:
        raise Disconnected("while reading")

    def damaged(log: Log) -> None:
        cluster.fetch_error = 0
        log.batches[0][-1] ^= 1

    cluster = cluster_with(script=[lost_answer])
    cluster.reads = [moved, gone, damaged, damaged]
    done = await appender(cluster).append(MINE, expected=0)
    assert done.next_offset == 4
    assert cluster.sent == [0] * 5
