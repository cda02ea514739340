"""Replicas that move between the log directories of their broker."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from fencepost.broker.core.errors import DataDirUnusable
from fencepost.broker.replication.log_dir_placement import directory_names
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from fencepost.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from tests.harness.driver import NEWEST, Driver
from tests.harness.driver_requests import create, produce
from tests.harness.durable_driver import DIR, DurableDriver, content
from tests.harness.records import batch

MEMORY = directory_names("/tmp/kafka-logs", 3)
FILES = directory_names(str(DIR / "broker-1"), 3)
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
SLOW = {RATE: "1"}


def alter(
    driver: Driver, directory: str, *partitions: tuple[str, int], broker: int = 1
) -> list[int]:
    topics = tuple(AlterReplicaLogDirTopic(name=t, partitions=(p,)) for t, p in partitions)
    request = AlterReplicaLogDirsRequest(dirs=(AlterReplicaLogDir(path=directory, topics=topics),))
    answer = driver.ask(broker, "alter_replica_log_dirs", NEWEST, request)
    return [each.error_code for topic in answer.results for each in topic.partitions]


def where(driver: Driver, broker: int = 1) -> dict[tuple[str, int], list[tuple[int, int]]]:
    """Directories of each partition by number, with the lag where it is a copy, else 0."""
    answer = driver.ask(broker, "describe_log_dirs", NEWEST, DescribeLogDirsRequest(topics=None))
    found: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for number, directory in enumerate(answer.results):
        for topic in directory.topics:
            for each in topic.partitions:
                key = (topic.name, each.partition_index)
                found.setdefault(key, []).append((number, each.offset_lag))
                assert each.is_future_key == (each.offset_lag > 0)
    return found


def move(driver: Driver, directory: str, topic: str = "t") -> None:
    assert alter(driver, directory, (topic, 0)) == [ErrorCode.NONE]
    driver.cluster.scheduler.run_due()


def test_new_replicas_go_where_the_fewest_are() -> None:
    driver = Driver(1, log_dirs=3)
    create(driver, "t", [(1,)] * 4)
    assert where(driver) == {("t", index): [(index % 3, 0)] for index in range(4)}
    create(driver, "u", [(1,)])
    assert where(driver)["u", 0] == [(1, 0)]


def test_a_replica_moves_with_all_that_it_has() -> None:
    driver = Driver(1, log_dirs=3)
    create(driver, "t", [(1,)])
    for value in (b"a", b"b"):
        produce(driver, "t", value)
    log = driver.leader("t", 0).log
    move(driver, MEMORY[2])
    assert where(driver) == {("t", 0): [(2, 0)]}
    moved = driver.leader("t", 0).log
    assert moved is not log
    assert content(driver) == [b"a", b"b"]
    assert moved.epoch_entries() == log.epoch_entries()
    produce(driver, "t", b"c")
    assert content(driver) == [b"a", b"b", b"c"]


def test_a_copy_is_shown_until_it_is_whole_and_the_replica_is_served_meanwhile() -> None:
    driver = Driver(1, SLOW, log_dirs=2)
    create(driver, "t", [(1,)])
    for value in (b"a", b"b", b"c"):
        produce(driver, "t", value)
    move(driver, MEMORY[1])
    assert where(driver) == {("t", 0): [(0, 0), (1, 2)]}
    produce(driver, "t", b"d")
    assert where(driver) == {("t", 0): [(0, 0), (1, 3)]}
    assert content(driver) == [b"a", b"b", b"c", b"d"]
    driver.advance(1_000_000)
    assert where(driver) == {("t", 0): [(1, 0)]}
    assert content(driver) == [b"a", b"b", b"c", b"d"]


def test_when_the_rate_rises_a_move_goes_on_within_the_backoff() -> None:
    driver = Driver(1, log_dirs=2)
    driver.cluster.controller.set_broker_configs(1, SLOW)
    create(driver, "t", [(1,)])
    for value in (b"a", b"b", b"c"):
        produce(driver, "t", value)
    move(driver, MEMORY[1])
    assert where(driver) == {("t", 0): [(0, 0), (1, 2)]}
    driver.cluster.controller.set_broker_configs(1, {RATE: "1000000"})
    driver.advance(1000)
    assert where(driver) == {("t", 0): [(1, 0)]}


def test_another_directory_takes_the_place_of_the_first_choice_and_its_own_ends_the_move() -> None:
    driver = Driver(1, SLOW, log_dirs=3)
    create(driver, "t", [(1,)])
    for value in (b"a", b"b"):
        produce(driver, "t", value)
    move(driver, MEMORY[1])
    move(driver, MEMORY[2])
    assert where(driver) == {("t", 0): [(0, 0), (2, 2)]}
    move(driver, MEMORY[0])
    assert where(driver) == {("t", 0): [(0, 0)]}


def test_what_is_refused() -> None:
    driver = Driver(2, log_dirs=2)
    create(driver, "t", [(2,)])
    assert alter(driver, "/nope", ("t", 0)) == [ErrorCode.LOG_DIR_NOT_FOUND]
    assert alter(driver, MEMORY[1], ("t", 0)) == [ErrorCode.REPLICA_NOT_AVAILABLE]
    assert alter(driver, MEMORY[1], ("u", 0)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert alter(driver, MEMORY[1], ("t" * 214, 0)) == [ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert alter(driver, MEMORY[1], ("t" * 213, 0)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_broker_with_one_directory_knows_no_other() -> None:
    driver = Driver(1)
    create(driver, "t", [(1,)])
    assert alter(driver, MEMORY[1], ("t", 0)) == [ErrorCode.LOG_DIR_NOT_FOUND]
    assert alter(driver, MEMORY[0], ("t", 0)) == [ErrorCode.NONE]


def test_a_partition_that_comes_later_goes_where_it_was_asked_to() -> None:
    driver = Driver(1, log_dirs=3)
    assert (
        alter(driver, MEMORY[2], ("t", 0), ("t", 1)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    )
    create(driver, "t", [(1,)] * 2)
    assert where(driver) == {("t", 0): [(2, 0)], ("t", 1): [(2, 0)]}


def test_cordoned_directories_take_no_new_replicas() -> None:
    driver = Driver(1, {"cordoned.log.dirs": f"{MEMORY[0]},{MEMORY[1]}"}, log_dirs=3)
    create(driver, "t", [(1,)] * 2)
    assert where(driver) == {("t", 0): [(2, 0)], ("t", 1): [(2, 0)]}
    assert alter(driver, MEMORY[0], ("t", 0)) == [ErrorCode.INVALID_REPLICA_ASSIGNMENT]
    answer = driver.ask(1, "describe_log_dirs", NEWEST, DescribeLogDirsRequest(topics=None))
    assert [each.is_cordoned for each in answer.results] == [True, True, False]


def test_where_all_are_cordoned_the_first_takes_them() -> None:
    driver = Driver(1, {"cordoned.log.dirs": "*"}, log_dirs=2)
    create(driver, "t", [(1,)] * 2)
    assert where(driver) == {("t", 0): [(0, 0)], ("t", 1): [(0, 0)]}


def test_a_copy_follows_what_its_log_truncates_and_deletes() -> None:
    driver = Driver(1, SLOW, log_dirs=2)
    create(driver, "t", [(1,)])
    for value in (b"a", b"b", b"c"):
        produce(driver, "t", value)
    move(driver, MEMORY[1])
    driver.advance(15_000)  # the windows of the rate, and a little
    assert where(driver)["t", 0] == [(0, 0), (1, 1)]
    log = driver.leader("t", 0).log
    now_ms = driver.cluster.scheduler.wall_ms()
    log.truncate_to(1)
    log.assign_epoch_start(7, 1)
    log.append_as_leader(batch(b"x"), leader_epoch=7, now_ms=now_ms)
    log.append_as_leader(batch(b"y"), leader_epoch=7, now_ms=now_ms)
    driver.advance(1_000_000)
    moved = driver.leader("t", 0).log
    assert moved is not log
    assert moved.epoch_entries() == log.epoch_entries()
    assert moved.log_end_offset == 3
    assert moved.read(1, max_bytes=1 << 20, upper_bound=3, min_one_batch=True).size == (
        log.read(1, max_bytes=1 << 20, upper_bound=3, min_one_batch=True).size
    )


def test_a_topic_that_is_deleted_is_moved_no_further() -> None:
    driver = Driver(1, SLOW, log_dirs=2)
    create(driver, "t", [(1,)])
    for value in (b"a", b"b"):
        produce(driver, "t", value)
    move(driver, MEMORY[1])
    driver.cluster.controller.delete_topics(["t"])
    driver.advance(1_000_000)
    assert where(driver) == {}
    create(driver, "t", [(1,)])
    assert where(driver) == {("t", 0): [(0, 0)]}


@pytest.mark.parametrize("crash", [False, True])
def test_a_broker_that_stops_goes_on_with_its_moves(crash: bool) -> None:
    driver = Driver(1, SLOW, log_dirs=2)
    create(driver, "t", [(1,)])
    for value in (b"a", b"b"):
        produce(driver, "t", value)
    move(driver, MEMORY[1])
    broker = driver.broker(1)
    broker.stop(crash=crash)
    broker.start(driver.cluster.controller.image)
    assert where(driver)["t", 0] == [(0, 0), (1, 2)]
    driver.advance(1_000_000)
    assert where(driver)["t", 0] == [(1, 0)]
    assert content(driver) == [b"a", b"b"]


# -- in files -------------------------------------------------------------------------------------


def test_files_of_a_replica_move_to_the_other_directory() -> None:
    lasting = DurableDriver(1, log_dirs=3)
    create(lasting.driver, "t", [(1,)])
    produce(lasting.driver, "t", b"a")
    move(lasting.driver, FILES[1])
    produce(lasting.driver, "t", b"b")
    assert where(lasting.driver) == {("t", 0): [(1, 0)]}
    assert content(lasting.driver) == [b"a", b"b"]
    assert _directories(lasting, "broker-1") == set()
    assert _directories(lasting, "broker-1.d1") == {"t-0"}


ENDS = [DurableDriver.stop, DurableDriver.kill]


@pytest.mark.parametrize("end", ENDS)
def test_replicas_are_found_in_every_directory(end: Callable[[DurableDriver], None]) -> None:
    lasting = DurableDriver(1, log_dirs=3)
    create(lasting.driver, "t", [(1,)] * 4)
    for index in range(4):
        produce(lasting.driver, "t", b"a", index=index)
    move(lasting.driver, FILES[2])
    before = where(lasting.driver)
    end(lasting)
    lasting.begin()
    assert where(lasting.driver) == before
    assert [content(lasting.driver, index=index) for index in range(4)] == [[b"a"]] * 4


@pytest.mark.parametrize("end", ENDS)
def test_a_move_goes_on_after_the_process_has_ended(end: Callable[[DurableDriver], None]) -> None:
    lasting = DurableDriver(1, log_dirs=2, replica_alter_log_dirs_io_max_bytes_per_second="1")
    create(lasting.driver, "t", [(1,)])
    for value in (b"a", b"b"):
        produce(lasting.driver, "t", value)
    move(lasting.driver, FILES[1])
    assert where(lasting.driver)["t", 0] == [(0, 0), (1, 1)]
    end(lasting)
    lasting.begin()
    assert where(lasting.driver)["t", 0] == [(0, 0), (1, 1)]
    lasting.driver.advance(1_000_000)
    assert where(lasting.driver)["t", 0] == [(1, 0)]
    assert content(lasting.driver) == [b"a", b"b"]
    assert _directories(lasting, "broker-1") == set()
    assert _directories(lasting, "broker-1.d1") == {"t-0"}


def test_directories_may_be_added_and_none_that_has_logs_left_out() -> None:
    lasting = DurableDriver(1)
    create(lasting.driver, "t", [(1,)])
    produce(lasting.driver, "t", b"a")
    lasting.stop()
    lasting.log_dirs = 3
    lasting.begin()
    assert where(lasting.driver)["t", 0] == [(0, 0)]
    move(lasting.driver, FILES[1])
    lasting.stop()
    lasting.log_dirs = 1
    with pytest.raises(DataDirUnusable, match="start with --log-dirs 2 or more"):
        lasting.begin()
    lasting.files.end_process()
    lasting.log_dirs = 2
    lasting.begin()
    assert content(lasting.driver) == [b"a"]


def _directories(lasting: DurableDriver, name: str) -> set[str]:
    folder = DIR / name
    return {each for each in lasting.files.names(folder) if lasting.files.is_dir(folder / each)}


class _Killed(BaseException):
    """The process ends before an operation on files."""


CHANGES = ("rename", "write_atomic", "remove", "remove_tree", "make_dirs")
MAX_CHANGES = 60


def test_whenever_a_kill_ends_a_move_every_record_is_there_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moved = []
    for survivors in range(MAX_CHANGES):
        lasting = DurableDriver(1, log_dirs=2)
        create(lasting.driver, "t", [(1,)])
        for value in (b"a", b"b", b"c"):
            produce(lasting.driver, "t", value)
        left = survivors

        def count(operation: Callable[..., object]) -> Callable[..., object]:
            def run(*args: object, **named: object) -> object:
                nonlocal left
                if not left:
                    raise _Killed
                left -= 1
                return operation(*args, **named)

            return run

        with monkeypatch.context() as patch:
            for name in CHANGES:
                patch.setattr(lasting.files, name, count(getattr(lasting.files, name)))
            with suppress(_Killed):
                move(lasting.driver, FILES[1])
        lasting.kill()
        lasting.begin()
        assert content(lasting.driver) == [b"a", b"b", b"c"]
        lasting.driver.advance(1_000)
        ((number, _),) = where(lasting.driver)["t", 0]
        moved.append(number)
        produce(lasting.driver, "t", b"d")
        lasting.kill()
        lasting.begin()
        assert content(lasting.driver) == [b"a", b"b", b"c", b"d"]
        if left:
            break
    assert moved[-1] == 1
    assert 0 in moved
