"""The memory of logs: what counts, what is counted no more, and what is refused at the limit."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

import pytest

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record, build_batch
from fencepost.storage.log.append_result import AppendOrigin, AppendRejected, AppendResult
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.segmented_log import SegmentedLog
from fencepost.storage.log_memory import BATCH_BYTES, CHUNK_BYTES, LogMemory
from fencepost.storage.memory import MemorySegmentStore, memory_log

NOW = 1_700_000_000_000
NO_LIMIT = 1 << 40
LARGE = 2_000
"""Bytes of a value whose batch is kept in the buffer that brought it."""


def one_batch(size: int) -> bytearray:
    return build_batch([Record(0, NOW, None, bytes(size))])


def logs(memory: LogMemory, count: int = 1, config: LogConfig | None = None) -> list[SegmentedLog]:
    store = MemorySegmentStore(memory)
    return [memory_log(f"t-{i}", config or LogConfig(), store=store) for i in range(count)]


def append(log: SegmentedLog, size: int = LARGE) -> AppendResult | AppendRejected:
    return log.append_as_leader(one_batch(size), leader_epoch=0, now_ms=NOW)


def replicate(leader: SegmentedLog, follower: SegmentedLog) -> None:
    while follower.log_end_offset < leader.log_end_offset:
        read = leader.read(
            follower.log_end_offset, max_bytes=1 << 20, upper_bound=1 << 40, min_one_batch=True
        )
        follower.append_as_follower(read.buffers, now_ms=NOW)


@pytest.mark.parametrize("size", [10, 500, LARGE, 100_000])
@pytest.mark.parametrize("replicas", [1, 3])
def test_what_counts_is_near_what_is_taken(size: int, replicas: int) -> None:
    memory = LogMemory(NO_LIMIT)
    leader, *followers = logs(memory, replicas)
    count = max(12_800 // size, 640)
    append(leader, size)
    gc.collect()
    tracemalloc.start()
    before = memory.used
    try:
        for _ in range(count):
            append(leader, size)
            for follower in followers:
                replicate(leader, follower)
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 0.8 * taken < memory.used - before < 1.6 * taken


def test_a_buffer_of_several_replicas_counts_once_and_until_the_last_lets_go() -> None:
    memory = LogMemory(NO_LIMIT)
    leader, follower = logs(memory, 2)
    batch = len(one_batch(LARGE))
    append(leader)
    alone = memory.used
    assert alone == batch + CHUNK_BYTES + BATCH_BYTES
    replicate(leader, follower)
    assert memory.used == alone + CHUNK_BYTES + BATCH_BYTES
    leader.truncate_to(0)
    assert memory.used == alone
    follower.truncate_to(0)
    assert memory.used == 0


def test_a_batch_counts_with_the_frame_that_it_keeps_alive() -> None:
    memory = LogMemory(NO_LIMIT)
    (log,) = logs(memory)
    batch = one_batch(10)
    frame = bytearray(1 << 20)
    frame[: len(batch)] = batch
    log.append_as_leader(memoryview(frame)[: len(batch)], leader_epoch=0, now_ms=NOW)
    assert memory.used > 1 << 20


@pytest.mark.parametrize("size", [10, LARGE])
@pytest.mark.parametrize("way", ["truncate", "log start", "retention", "compact", "drop", "steps"])
def test_what_a_log_lets_go_of_counts_no_more(size: int, way: str) -> None:
    memory = LogMemory(NO_LIMIT)
    config = LogConfig(
        segment_bytes=20 * size + 2_000,
        retention_bytes=0 if way == "retention" else -1,
        cleanup_policy=frozenset({"compact" if way == "compact" else "delete"}),
    )
    (log,) = logs(memory, config=config)
    for _ in range(300):
        batch = build_batch([Record(0, NOW, b"key", bytes(size))])
        log.append_as_leader(batch, leader_epoch=0, now_ms=NOW)
    log.roll(NOW)
    assert memory.used > 300 * size
    end = log.log_end_offset
    match way:
        case "truncate":
            log.truncate_to(150)
            assert memory.used > 100 * size
            log.truncate_to(0)
        case "log start":
            log.advance_log_start(end)
        case "retention":
            log.delete_expired(NOW, end)
        case "compact":
            log.compact(NOW, end, at_once=True)
            assert 0 < memory.used < 20 * size + 20_000
            return
        case "drop":
            del log
        case _:
            for _ in log.dismantle():
                pass
            del log
    assert memory.used == 0


def test_beyond_the_limit_a_client_is_refused_with_what_to_do() -> None:
    told: list[int] = []
    memory = LogMemory(50_000)
    memory.on_full = told.append
    (log,) = logs(memory)
    while isinstance(result := append(log), AppendResult):
        assert memory.used < 50_000 + CHUNK_BYTES + BATCH_BYTES
    assert result.error == ErrorCode.POLICY_VIOLATION
    assert result.message is not None
    assert "of 50000 bytes" in result.message
    assert "--max-memory" in result.message
    end = log.log_end_offset
    assert append(log) == result
    assert log.log_end_offset == end
    assert told == [memory.used]


def test_it_is_told_again_only_after_there_was_room() -> None:
    told: list[int] = []
    memory = LogMemory(100_000)
    memory.on_full = told.append
    (log,) = logs(memory)
    for _ in range(3):
        while isinstance(append(log), AppendResult):
            pass
        log.truncate_to(log.log_end_offset - 1)
    assert len(told) == 1
    log.truncate_to(0)
    while isinstance(append(log), AppendResult):
        pass
    assert len(told) == 2


def test_a_coordinator_that_goes_on_is_no_room_for_clients() -> None:
    told: list[int] = []
    memory = LogMemory(80_000)
    memory.on_full = told.append
    memory.add(80_000)
    for _ in range(3):
        assert memory.refusal(1_000) is not None
        assert memory.refusal(1_000, is_client=False) is None
    assert told == [80_000]


def test_a_batch_that_the_log_has_already_is_no_reason_to_refuse() -> None:
    memory = LogMemory(10_000)
    (log,) = logs(memory)
    batch = build_batch(
        [Record(0, NOW, None, bytes(LARGE))], producer_id=7, producer_epoch=0, base_sequence=0
    )
    first = log.append_as_leader(bytearray(batch), leader_epoch=0, now_ms=NOW)
    while isinstance(append(log), AppendResult):
        pass
    again = log.append_as_leader(bytearray(batch), leader_epoch=0, now_ms=NOW)
    assert isinstance(first, AppendResult)
    assert isinstance(again, AppendResult)
    assert (again.duplicate, again.first_offset) == (True, first.first_offset)


def test_what_is_staged_counts_before_it_is_appended() -> None:
    (log,) = logs(LogMemory(10_000))
    staging = log.stage(now_ms=NOW)
    results = [staging.add(one_batch(LARGE), allow_zstd=True) for _ in range(6)]
    refused = [each for each in results if isinstance(each, AppendRejected)]
    assert 1 <= len(refused) <= 2
    assert {each.error for each in refused} == {ErrorCode.POLICY_VIOLATION}


def test_coordinators_have_a_reserve_and_an_end() -> None:
    memory = LogMemory(80_000)
    (log,) = logs(memory)
    while isinstance(append(log), AppendResult):
        pass

    def commit() -> AppendResult | AppendRejected:
        return log.append_as_leader(
            one_batch(LARGE), leader_epoch=0, now_ms=NOW, origin=AppendOrigin.COORDINATOR
        )

    assert isinstance(commit(), AppendResult)
    while isinstance(commit(), AppendResult):
        assert memory.used < 100_000
    assert memory.used > 85_000


def test_memory_that_is_freed_later_is_freed_at_once_when_it_is_needed() -> None:
    memory = LogMemory(50_000)
    (log,) = logs(memory)
    pending = log.dismantle()

    def reclaim(is_enough: Callable[[], bool]) -> None:
        while not is_enough() and next(pending, "done") != "done":
            pass

    while isinstance(append(log), AppendResult):
        pass
    memory.reclaim = reclaim
    (other,) = logs(memory)
    assert isinstance(append(other), AppendResult)


def test_without_a_limit_nothing_is_refused() -> None:
    assert LogMemory(None).refusal(1 << 60) is None
