import pytest

from fencepost.protocol.records import CorruptBatch, Record, build_batch
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.interface import Log, UnexpectedAppendOffset
from tests.harness.logs import NOW, Kind, T, append, new_log, only, read_all, records_of
from tests.harness.records import batch


def led(count: int = 3, *, start_offset: int = 0) -> Log:
    """A leader's log of `count` batches of two records, each of an epoch of its own."""
    log = new_log(start_offset=start_offset)
    for n in range(count):
        append(
            log,
            batch((T + n, b"k", b"v" * 2_000), (T, b"k", b"w"), producer=(7, 0, 2 * n)),
            epoch=n,
        )
    return log


def stored(base_offset: int, *, epoch: int = 0, count: int = 1) -> bytearray:
    records = [Record(base_offset + n, T, b"k", b"v") for n in range(count)]
    return build_batch(records, base_offset=base_offset, leader_epoch=epoch)


@only(Kind.MEMORY, Kind.RECENT)
def test_the_leader_s_buffers_are_kept_as_they_are() -> None:
    leader, follower = led(), new_log()
    buffers = read_all(leader).buffers
    result = follower.append_as_follower(buffers, now_ms=NOW)
    assert result == (0, 5, -1, 0, False, 6, T + 2)
    assert all(
        mine is theirs for mine, theirs in zip(read_all(follower).buffers, buffers, strict=True)
    )
    assert follower.epoch_entries() == leader.epoch_entries() == ((0, 0), (1, 2), (2, 4))
    assert follower.producers() == leader.producers()
    assert follower.log_end_offset == 6


@only(Kind.MEMORY, Kind.RECENT)
def test_a_partial_batch_at_the_end_is_left_out() -> None:
    leader, follower = led(), new_log()
    size = len(read_all(leader).buffers[0])
    result = read_all(leader, max_bytes=size + 100)
    assert result.size == size + 100
    follower.append_as_follower(result.buffers, now_ms=NOW)
    assert follower.log_end_offset == 2
    assert follower.size_bytes == size
    follower.append_as_follower(read_all(leader, 2).buffers, now_ms=NOW)
    assert records_of(follower) == records_of(leader)


@only(Kind.MEMORY, Kind.RECENT)
def test_one_buffer_of_many_batches_is_kept_whole() -> None:
    data = stored(0) + stored(1, epoch=2) + stored(2, epoch=2, count=3)
    follower = new_log()
    follower.append_as_follower([data], now_ms=NOW)
    (kept,) = read_all(follower).buffers
    assert kept is data
    assert follower.log_end_offset == 5
    assert follower.epoch_entries() == ((0, 0), (2, 1))
    assert read_all(follower, 2).first_offset == 2


def test_one_buffer_is_cut_where_a_segment_ends() -> None:
    data = stored(0) + stored(1) + stored(2)
    follower = new_log(LogConfig(segment_bytes=2 * len(stored(0))))
    follower.append_as_follower([data + stored(3)[:20]], now_ms=NOW)
    assert [(view.base_offset, view.records) for view in follower.segments()] == [(0, 2), (2, 1)]
    assert len(records_of(follower)) == 3
    assert b"".join(read_all(follower, 0).buffers + read_all(follower, 2).buffers) == data


def test_gaps_are_what_compaction_leaves() -> None:
    follower = new_log()
    follower.append_as_follower([stored(4), stored(9)], now_ms=NOW)
    assert follower.log_end_offset == 10
    assert [record.offset for record in records_of(follower)] == [4, 9]


def test_going_back_is_refused() -> None:
    follower = new_log()
    follower.append_as_follower([stored(0, count=3)], now_ms=NOW)
    for base in (0, 2):
        with pytest.raises(UnexpectedAppendOffset):
            follower.append_as_follower([stored(base, count=9)], now_ms=NOW)
    assert follower.log_end_offset == 3


def test_an_empty_follower_takes_the_batch_its_log_start_lies_in() -> None:
    follower = new_log(start_offset=4)
    follower.append_as_follower([stored(2, epoch=1, count=5), stored(7, epoch=1)], now_ms=NOW)
    assert (follower.log_start_offset, follower.log_end_offset) == (4, 8)
    assert [record.offset for record in records_of(follower)] == [4, 5, 6, 7]
    assert follower.epoch_entries() == ((1, 2),)


def test_a_damaged_batch_is_refused_and_those_before_it_stay() -> None:
    damaged = stored(1)
    damaged[-1] ^= 1
    follower = new_log()
    with pytest.raises(CorruptBatch, match="checksum"):
        follower.append_as_follower([stored(0) + damaged + stored(2)], now_ms=NOW)
    assert follower.log_end_offset == 1
    assert [record.offset for record in records_of(follower)] == [0]
    follower.append_as_follower([stored(1)], now_ms=NOW)
    assert [record.offset for record in records_of(follower)] == [0, 1]


def test_nothing_appended_says_so() -> None:
    result = new_log(start_offset=3).append_as_follower([], now_ms=NOW)
    assert (result.first_offset, result.last_offset, result.records_count) == (3, 2, 0)


def test_batches_without_an_epoch_leave_none() -> None:
    follower = new_log()
    follower.append_as_follower([stored(0, epoch=-1)], now_ms=NOW)
    assert follower.epoch_entries() == ()


def test_a_batch_larger_than_a_segment_gets_one_of_its_own() -> None:
    follower = new_log(LogConfig(segment_bytes=10))
    follower.append_as_follower([stored(0), stored(1)], now_ms=NOW)
    ends = [(view.base_offset, view.next_offset) for view in follower.segments()]
    assert ends == [(0, 1), (1, 2)]
