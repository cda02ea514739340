"""The shared shard with a coordinator that is none of groups: decide, append, replay, respond."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable
from itertools import pairwise

import pytest

from fencepost.broker.coordinator.commit_queue import LoadedBatch, PartitionLog
from fencepost.broker.coordinator.shard import RECORDS_IN_A_TURN
from fencepost.broker.core.scheduler import ManualClock, Scheduler, advance
from fencepost.broker.core.waits import Wait
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record
from tests.broker.coordinator.counters import (
    COMMIT_TIMEOUT_MS,
    Answer,
    Counters,
    CounterShard,
    runtime,
)
from tests.harness.fake_log import FakeLog

NOW_MS = 1_700_000_000_000


class OnePartition:
    """A shard on a log whose high watermark the test moves."""

    def __init__(self, log: PartitionLog | None = None) -> None:
        self.clock = ManualClock(NOW_MS)
        self.scheduler = Scheduler(self.clock)
        self.log = FakeLog()
        self.shard = CounterShard(log or self.log, self.scheduler)
        self.shard.begin_load()
        self.scheduler.run_due()


def pending(answer: Answer | Wait[Answer]) -> Wait[Answer]:
    assert isinstance(answer, Wait)
    assert not answer.done
    return answer


def test_a_decision_is_appended_replayed_and_answered() -> None:
    one = OnePartition()
    assert [one.shard.increment(name) for name in "aab"] == [1, 2, 1]
    assert one.shard.delete("b") is ErrorCode.NONE
    assert one.shard.delete("b") is ErrorCode.RESOURCE_NOT_FOUND
    assert one.shard.latest == one.shard.committed == Counters({"a": 2})
    assert len(one.log.records) == 4
    assert {record.timestamp for record in one.log.records} == {NOW_MS}


def test_a_response_waits_until_its_records_are_committed() -> None:
    one = OnePartition()
    one.log.held = True
    first, second = pending(one.shard.increment("a")), pending(one.shard.increment("a"))
    assert (one.shard.latest, one.shard.committed) == (Counters({"a": 2}), Counters())
    one.log.commit(up_to=1)
    assert (first.result, second.done) == (1, False)
    assert one.shard.committed == Counters({"a": 1})
    one.log.commit()
    assert second.result == 2


def test_a_read_waits_for_the_records_that_it_has_seen() -> None:
    one = OnePartition()
    one.log.held = True
    one.shard.increment("a")
    answer = pending(one.shard.read("a"))
    one.log.commit()
    assert answer.result == 1
    assert one.shard.read("a") == 1


def test_records_that_are_not_committed_in_time_are_an_error_and_may_be_committed_later() -> None:
    one = OnePartition()
    one.log.held = True
    answer = pending(one.shard.increment("a"))
    advance(one.scheduler, one.clock, COMMIT_TIMEOUT_MS - 1)
    assert not answer.done
    advance(one.scheduler, one.clock, 1)
    assert answer.result is ErrorCode.COORDINATOR_NOT_AVAILABLE
    one.log.commit()
    assert one.shard.committed == Counters({"a": 1})


@pytest.mark.parametrize(
    ("of_log", "of_coordinator"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_a_refused_append_changes_nothing(of_log: ErrorCode, of_coordinator: ErrorCode) -> None:
    one = OnePartition()
    one.log.refusal = of_log
    assert one.shard.increment("a") is of_coordinator
    assert one.shard.latest == Counters()


def test_a_record_that_its_format_cannot_hold_is_an_error() -> None:
    one = OnePartition()
    assert one.shard.increment("a" * 40_000) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert one.log.records == []


def test_a_replay_of_the_log_has_the_same_state() -> None:
    one = OnePartition()
    for name in "abcabca":
        one.shard.increment(name)
    one.shard.delete("b")
    another = OnePartition(FakeLog(one.log.records))
    assert another.shard.latest == another.shard.committed == one.shard.latest
    assert another.shard.latest == Counters({"a": 3, "c": 2})
    assert another.shard.increment("a") == 4


def test_records_that_were_not_committed_at_the_election_are_committed_later() -> None:
    log = FakeLog()
    before = OnePartition(log)
    log.held = True
    before.shard.increment("a")
    loaded = OnePartition(log)
    assert (loaded.shard.latest, loaded.shard.committed) == (Counters({"a": 1}), Counters())
    answer = pending(loaded.shard.read("a"))
    log.commit()
    assert answer.result == 1
    assert loaded.shard.committed == Counters({"a": 1})


def test_records_that_it_cannot_read_are_skipped() -> None:
    log = FakeLog()
    OnePartition(log).shard.increment("a")
    for key, value in [(None, b""), (b"", None), (b"\0\1\0\1a", b""), (b"\0\7\0\1a", b"\0")]:
        log.records.append(Record(len(log.records), NOW_MS, key, value))
    log.high_watermark = len(log.records)
    assert OnePartition(log).shard.committed == Counters({"a": 1})


def test_the_hooks_follow_the_life_of_a_shard() -> None:
    log = FakeLog()
    OnePartition(log).shard.increment("a")
    one = OnePartition(log)
    one.shard.increment("b")
    one.shard.close()
    assert one.shard.calls == ["replayed a", "loaded", "replayed b", "unloaded"]


def test_a_closed_shard_ends_its_waits_and_writes_nothing() -> None:
    one = OnePartition()
    one.log.held = True
    answer = pending(one.shard.increment("a"))
    one.shard.close()
    assert answer.result is ErrorCode.NOT_COORDINATOR
    assert one.shard.increment("a") is ErrorCode.NOT_COORDINATOR
    one.log.commit()
    assert one.shard.committed == Counters()
    assert len(one.log.records) == 1
    assert one.scheduler.next_deadline_ms() is None, "a timer is left"


def test_a_shard_whose_log_cannot_be_read_does_not_load() -> None:
    class BrokenLog(FakeLog):
        """Its second record cannot be read, by which its leader loses the partition."""

        def read_all(self) -> Iterable[LoadedBatch]:
            yield next(iter(super().read_all()))
            shard.close()

    whole = OnePartition()
    whole.shard.increment("a")
    log = BrokenLog(whole.log.records)
    scheduler = Scheduler(ManualClock(NOW_MS))
    shard = CounterShard(log, scheduler)
    shard.begin_load()
    scheduler.run_due()
    assert not shard.loaded
    assert shard.calls == ["replayed a", "unloaded"]


def a_long_log(turns: int) -> FakeLog:
    """One that takes so many turns to load, of the counters a and b."""
    log = FakeLog()
    writer = OnePartition(log)
    for index in range(turns * RECORDS_IN_A_TURN - 1):
        writer.shard.increment("ab"[index % 2])
    return log


def test_a_long_log_is_loaded_in_several_turns_and_serves_no_request_before() -> None:
    scheduler = Scheduler(ManualClock(NOW_MS))
    broker = runtime(scheduler, partitions=1)
    log = a_long_log(turns=3)
    broker.on_elected(0, log)
    replayed = []
    while scheduler.run_turn():
        assert broker.shard_for("a") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        replayed.append(len(broker.shards[0].calls))
    shard = broker.shard_for("a")
    assert isinstance(shard, CounterShard)
    assert max(b - a for a, b in pairwise([0, *replayed])) <= 2 * RECORDS_IN_A_TURN
    half = 3 * RECORDS_IN_A_TURN // 2
    assert shard.latest == shard.committed == Counters({"a": half, "b": half - 1})


def test_a_broker_that_resigns_amid_a_load_loads_no_more() -> None:
    scheduler = Scheduler(ManualClock(NOW_MS))
    broker = runtime(scheduler, partitions=1)
    broker.on_elected(0, a_long_log(turns=4))
    scheduler.run_turn()
    shard = broker.shards[0]
    replayed = len(shard.calls)
    broker.on_resigned(0)
    scheduler.run_due()
    assert shard.calls[replayed:] == ["unloaded"]
    assert not shard.loaded


def test_what_is_committed_amid_a_load_counts_as_committed_after_it() -> None:
    scheduler = Scheduler(ManualClock(NOW_MS))
    log = a_long_log(turns=3)
    log.high_watermark = 1
    shard = CounterShard(log, scheduler)
    shard.begin_load()
    scheduler.run_turn()
    log.commit()
    scheduler.run_due()
    assert shard.loaded
    assert shard.committed == shard.latest
    assert shard.increment("c") == 1


# -- the shards of a broker ----------------------------------------------------------------------


def test_the_first_client_of_a_new_partition_waits_for_no_turn() -> None:
    broker = runtime(Scheduler(ManualClock()), partitions=1)
    broker.on_elected(0, FakeLog())
    assert isinstance(broker.shard_for("a"), CounterShard)
    assert broker.shards[0].calls == ["loaded"]


def test_without_the_topic_no_key_has_a_coordinator() -> None:
    none = runtime(Scheduler(ManualClock()), partitions=0)
    assert none.shard_for("a") is ErrorCode.NOT_COORDINATOR


def test_a_key_is_refused_unless_its_partition_is_led_and_loaded() -> None:
    scheduler = Scheduler(ManualClock())
    broker = runtime(scheduler)
    log = a_long_log(turns=1)
    broker.on_elected(0, log)  # "a" has an odd hash, "b" an even one
    assert broker.shard_for("a") is ErrorCode.NOT_COORDINATOR
    assert broker.shard_for("b") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    loading = [broker.is_loading]
    scheduler.run_due()
    loading.append(broker.is_loading)
    assert loading == [True, False]
    shard = broker.shard_for("b")
    assert isinstance(shard, CounterShard)
    assert shard.increment("b") == RECORDS_IN_A_TURN // 2
    broker.on_resigned(0)
    assert broker.shard_for("b") is ErrorCode.NOT_COORDINATOR


def test_a_second_election_loads_the_log_again() -> None:
    scheduler = Scheduler(ManualClock())
    broker = runtime(scheduler, partitions=1)
    log = FakeLog()
    broker.on_elected(0, log)
    scheduler.run_due()
    before = broker.shards[0]
    before.increment("a")
    broker.on_elected(0, log)
    assert before.calls[-1] == "unloaded"
    assert broker.shard_for("a") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    scheduler.run_due()
    assert broker.shards[0] is not before
    assert broker.shards[0].latest == Counters({"a": 1})


def test_a_broker_that_resigns_before_it_has_loaded_loads_nothing() -> None:
    scheduler = Scheduler(ManualClock())
    broker = runtime(scheduler, partitions=1)
    broker.on_elected(0, a_long_log(turns=1))
    shard = broker.shards[0]
    broker.on_resigned(0)
    broker.on_resigned(0)
    scheduler.run_due()
    assert shard.calls == ["unloaded"]


def test_a_shard_that_is_closed_is_gone_with_its_last_user() -> None:
    one = OnePartition()
    one.shard.increment("a")
    one.shard.close()
    shard = weakref.ref(one.shard)
    gc.disable()
    try:
        del one
        assert shard() is None
    finally:
        gc.enable()
