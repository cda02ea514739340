"""Segments that are gone when a broker starts: who is told, who leads, and what is served."""

from __future__ import annotations

import errno
from pathlib import PurePath

import pytest

from fencepost.broker.core.events import Kind
from fencepost.broker.data_dir.directory import open_data_dir
from fencepost.broker.node import operator_actions
from tests.harness.crash_model import Operation
from tests.harness.driver import Driver
from tests.harness.driver import content as records
from tests.harness.driver_requests import create, fetch, produce
from tests.harness.durable_driver import DIR, ENDS, DurableDriver, End

FIRST = f"{0:020d}.log"
SECOND = f"{2:020d}.log"


def written(replicas: tuple[int, ...]) -> DurableDriver:
    """Two records in each of two segments, all of which is written down."""
    lasting = DurableDriver()
    create(lasting.driver, "t", [replicas])
    produce(lasting.driver, "t", b"a", b"b")
    operator_actions.roll(lasting.driver.cluster, "t", 0)
    produce(lasting.driver, "t", b"c", b"d")
    lasting.driver.advance(6_000)
    return lasting


def begin(lasting: DurableDriver, *, accepts_loss: bool = False) -> Driver:
    data_dir = open_data_dir(
        lasting.files, DIR, broker_ids=range(1, 4), sync=False, accepts_loss=accepts_loss
    )
    lasting.driver = Driver(3, data_dir=data_dir)
    return lasting.driver


def values(driver: Driver, broker_id: int) -> list[bytes | None]:
    return [value for _, _, value in records(driver.replica(broker_id, "t"))]


def told(driver: Driver) -> list[tuple[str, int | None, object]]:
    """The kind, the broker and the offsets of what the start told."""
    events = driver.cluster.events.at_start
    return [(event.kind, event.broker, event.details.get("offsets")) for event in events]


@ENDS
@pytest.mark.parametrize(("name", "missing"), [(FIRST, [0, 1]), (SECOND, [2, 3])])
def test_a_leader_without_a_segment_follows_and_no_follower_loses_anything(
    end: End, name: str, missing: list[int]
) -> None:
    lasting = written((1, 2, 3))
    end(lasting)
    lasting.files.remove(lasting.path(1, "t") / name)
    driver = begin(lasting)
    assert driver.partition("t").leader == 2
    assert told(driver)[0] == ("records_missing", 1, [missing])
    for broker_id in (1, 2, 3):
        assert values(driver, broker_id) == [b"a", b"b", b"c", b"d"]
        assert driver.replica(broker_id, "t").log.log_start_offset == 0
    assert set(driver.partition("t").isr) == {1, 2, 3}, "it has fetched them again"
    assert produce(driver, "t", b"e").base_offset == 4


@ENDS
def test_an_emptied_segment_is_one_that_is_gone(end: End) -> None:
    lasting = written((1, 2, 3))
    end(lasting)
    lasting.files.write_atomic(lasting.path(1, "t") / SECOND, b"", sync=True)
    driver = begin(lasting)
    assert told(driver)[0] == ("records_missing", 1, [[2, 3]])
    assert driver.partition("t").leader == 2
    assert values(driver, 1) == [b"a", b"b", b"c", b"d"]


@ENDS
def test_the_only_replica_stays_offline_until_its_files_are_back(end: End) -> None:
    lasting = written((1,))
    end(lasting)
    path = lasting.path(1, "t") / SECOND
    data = lasting.files.read(path)
    lasting.files.remove(path)
    driver = begin(lasting)
    assert driver.partition("t").leader == -1
    (missing, failed) = driver.cluster.events.at_start
    assert (missing.kind, missing.details["offsets"]) == (Kind.RECORDS_MISSING, [[2, 3]])
    assert "--accept-data-loss" in str(missing.details["outcome"])
    assert failed.kind is Kind.REPLICA_FAILED
    assert failed.details["error"] == f"offsets 2 to 3 are missing: {path} is not there"
    end(lasting)
    assert lasting.files.names(lasting.path(1, "t"))[0] == FIRST.replace(".log", ".index")
    lasting.files.write_atomic(path, data, sync=True)
    driver = begin(lasting)
    assert driver.cluster.events.at_start == []
    assert values(driver, 1) == [b"a", b"b", b"c", b"d"]


@ENDS
@pytest.mark.parametrize(("name", "left"), [(FIRST, [b"c", b"d"]), (SECOND, [b"a", b"b"])])
def test_an_accepted_loss_keeps_what_is_left_and_gives_no_offset_out_twice(
    end: End, name: str, left: list[bytes]
) -> None:
    lasting = written((1,))
    end(lasting)
    lasting.files.remove(lasting.path(1, "t") / name)
    driver = begin(lasting, accepts_loss=True)
    assert driver.partition("t").leader == 1
    assert told(driver)[0][0] == "records_missing"
    assert produce(driver, "t", b"e").base_offset == 4
    assert values(driver, 1) == [*left, b"e"]
    end(lasting)
    driver = begin(lasting)
    assert driver.cluster.events.at_start == [], "what is accepted is not told again"
    assert values(driver, 1) == [*left, b"e"]


@ENDS
def test_an_accepted_loss_gives_no_offset_out_twice_under_another_leader(end: End) -> None:
    """The only replica in sync lost all: one that was behind, and is whole, has most."""
    lasting = written((1, 2))
    operator_actions.hold(lasting.driver.cluster, "t", 0, 2, leave_isr=True)
    assert lasting.driver.partition("t").isr == (1,)
    produce(lasting.driver, "t", b"e", acks=1)
    lasting.driver.advance(6_000)
    end(lasting)
    for name in (FIRST, SECOND):
        lasting.files.remove(lasting.path(1, "t") / name)
    driver = begin(lasting, accepts_loss=True)
    assert driver.partition("t").leader == 2
    (missing, *_) = driver.cluster.events.at_start
    assert missing.details["offsets"] == [[0, 1], [2, 4]]
    assert str(missing.details["outcome"]).endswith("ends at offset 4: the later ones are lost")
    assert produce(driver, "t", b"f").base_offset == 5
    assert [values(driver, each) for each in (1, 2)] == [[b"a", b"b", b"c", b"d", b"f"]] * 2
    end(lasting)
    driver = begin(lasting)
    assert driver.cluster.events.at_start == []
    assert values(driver, 2) == [b"a", b"b", b"c", b"d", b"f"]


@ENDS
def test_after_an_accepted_loss_a_follower_fetches_what_its_leader_has_left(end: End) -> None:
    lasting = written((1, 2))
    end(lasting)
    lasting.files.remove(lasting.path(1, "t") / FIRST)
    for broker_id in (1, 2):
        lasting.files.remove(lasting.path(broker_id, "t") / SECOND)
    driver = begin(lasting, accepts_loss=True)
    assert driver.partition("t").leader == 2
    assert produce(driver, "t", b"e").base_offset == 4
    assert [values(driver, each) for each in (1, 2)] == [[b"a", b"b", b"e"]] * 2


def test_an_accepted_loss_still_is_when_the_log_is_opened_again_after_descriptors_lacked() -> None:
    opened, decided, is_offline = 0, 0, True
    while is_offline:
        lasting = written((1,))
        lasting.stop()
        lasting.files.remove(lasting.path(1, "t") / SECOND)
        path = lasting.path(1, "t")
        lasting.files.fail(Operation.OPEN, errno.EMFILE, after=opened, times=None, under=path)
        driver = begin(lasting, accepts_loss=True)
        opened += 1
        is_offline = driver.partition("t").leader == -1
        if told(driver)[0][0] != Kind.RECORDS_MISSING:
            continue  # it could not be examined: nothing was decided
        decided += is_offline
        lasting.files.heal()
        driver.advance(2_000)
        assert driver.partition("t").leader == 1, f"after {opened} files were opened"
        assert produce(driver, "t", b"e").base_offset == 4
        assert values(driver, 1) == [b"a", b"b", b"e"]
    assert decided


@ENDS
def test_a_partition_without_its_directory_is_not_an_empty_one(end: End) -> None:
    lasting = written((1,))
    end(lasting)
    lasting.files.remove_tree(lasting.path(1, "t"))
    driver = begin(lasting)
    assert driver.partition("t").leader == -1
    assert told(driver)[0] == ("records_missing", 1, [[0, 3]])


@ENDS
def test_a_broker_without_its_directory_fetches_everything_again(end: End) -> None:
    lasting = written((1, 2, 3))
    end(lasting)
    lasting.files.remove_tree(DIR / "broker-1")
    driver = begin(lasting)
    assert driver.partition("t").leader == 2
    assert values(driver, 1) == [b"a", b"b", b"c", b"d"]


def test_a_tail_that_no_file_has_heard_of_is_kept_by_the_replicas_that_have_it() -> None:
    lasting = written((1, 2, 3))
    produce(lasting.driver, "t", b"e")
    size = lasting.files.size(lasting.path(1, "t") / SECOND)
    produce(lasting.driver, "t", b"f")
    lasting.kill()
    file = lasting.files.open(lasting.path(1, "t") / SECOND)
    file.truncate(size)
    driver = begin(lasting)
    assert driver.partition("t").leader == 2
    for broker_id in (1, 2, 3):
        assert values(driver, broker_id)[-2:] == [b"e", b"f"]


@ENDS
def test_a_follower_keeps_no_segment_of_another_log_that_begins_before_its_own(end: End) -> None:
    lasting = written((1, 2, 3))
    create(lasting.driver, "u", [(1,)])
    produce(lasting.driver, "u", b"w", b"x", b"y", b"z")
    lasting.driver.leader("t").delete_records(2)
    lasting.driver.advance(6_000)
    end(lasting)
    foreign = lasting.files.read(lasting.path(1, "u") / FIRST)
    lasting.files.write_atomic(lasting.path(1, "t") / FIRST, foreign, sync=True)
    lasting.files.remove(lasting.path(1, "t") / SECOND)
    driver = begin(lasting)
    assert told(driver)[0] == ("records_missing", 1, [[2, 3]])
    assert [values(driver, broker_id) for broker_id in (1, 2, 3)] == [[b"c", b"d"]] * 3


def test_a_broker_that_starts_alone_and_is_counted_on_does_not_lead_with_less() -> None:
    lasting = written((1,))
    operator_actions.stop(lasting.driver.cluster, 1)
    lasting.files.remove(lasting.path(1, "t") / SECOND)
    operator_actions.start(lasting.driver.cluster, 1)
    assert lasting.driver.partition("t").leader == -1
    assert lasting.driver.partition("t").failed == (1,)


def test_a_broker_that_starts_alone_and_follows_fetches_what_it_misses() -> None:
    lasting = written((1, 2, 3))
    operator_actions.stop(lasting.driver.cluster, 1)
    lasting.files.remove(lasting.path(1, "t") / SECOND)
    operator_actions.start(lasting.driver.cluster, 1)
    assert values(lasting.driver, 1) == [b"a", b"b", b"c", b"d"]
    assert lasting.driver.partition("t").leader == 2


def test_a_closed_segment_that_is_another_one_is_not_served() -> None:
    """It is not looked at before: the first fetch takes the replica offline."""
    lasting = written((1,))
    operator_actions.roll(lasting.driver.cluster, "t", 0)
    lasting.stop()
    first, second = (lasting.path(1, "t") / name for name in (FIRST, SECOND))
    one, other = lasting.files.read(first), lasting.files.read(second)
    assert len(one) == len(other)
    lasting.files.write_atomic(first, other, sync=True)
    lasting.files.write_atomic(second, one, sync=True)
    driver = begin(lasting)
    heard: list[object] = []
    driver.cluster.events.listeners.append(lambda event: heard.append(event.kind))
    assert fetch(driver, "t", 0, broker_id=1).error_code == 56
    assert Kind.REPLICA_FAILED in heard


def test_an_old_copy_of_the_registry_is_told_and_the_logs_are_believed() -> None:
    lasting = written((1, 2, 3))
    registry = lasting.files.read(DIR / "registry.log")
    lasting.driver.elect("t", 0, 2)
    create(lasting.driver, "u", [(3,)])
    produce(lasting.driver, "u", b"x")
    produce(lasting.driver, "t", b"e")
    lasting.stop()
    lasting.files.write_atomic(DIR / "registry.log", registry, sync=True)
    driver = begin(lasting)
    errors = [str(event.details.get("error")) for event in driver.cluster.events.at_start]
    assert any("registry.log is older than the logs" in error for error in errors)
    assert any("u-0, with offsets up to 1, belongs to no topic" in error for error in errors)
    assert [values(driver, broker_id)[-1] for broker_id in (1, 2, 3)] == [b"e"] * 3


def test_an_inventory_that_is_gone_or_old_is_told_and_the_checkpoints_are_used() -> None:
    lasting = written((1,))
    path = DIR / "broker-1.inventory"
    lasting.stop()
    old = lasting.files.read(path)
    lasting.files.remove(path)
    driver = begin(lasting)
    (event,) = driver.cluster.events.at_start
    assert "broker-1.inventory is not there" in str(event.details["error"])
    assert values(driver, 1) == [b"a", b"b", b"c", b"d"]
    lasting.stop()
    lasting.files.write_atomic(path, old, sync=True)
    driver = begin(lasting)
    (event,) = driver.cluster.events.at_start
    assert "is of an earlier start of the cluster" in str(event.details["error"])
    assert values(driver, 1) == [b"a", b"b", b"c", b"d"]


def test_an_inventory_that_is_cut_behind_its_first_line_is_told() -> None:
    lasting = written((1,))
    lasting.stop()
    path = DIR / "broker-1.inventory"
    (first, *_) = lasting.files.read(path).splitlines(keepends=True)
    lasting.files.write_atomic(path, first, sync=True)
    driver = begin(lasting)
    (event,) = driver.cluster.events.at_start
    assert "broker-1.inventory has no log" in str(event.details["error"])
    assert values(driver, 1) == [b"a", b"b", b"c", b"d"]


@pytest.mark.parametrize("size", [0, 10, 100])
def test_an_inventory_that_is_damaged_is_told(size: int) -> None:
    lasting = written((1,))
    lasting.stop()
    path: PurePath = DIR / "broker-1.inventory"
    data = bytearray(lasting.files.read(path))
    data[size : size + 4] = b"\0\0\0\0"
    lasting.files.write_atomic(path, bytes(data), sync=True)
    driver = begin(lasting)
    (event,) = driver.cluster.events.at_start
    assert (event.kind, event.broker) == (Kind.STORAGE_FAILED, 1)
    assert str(path) in str(event.details["error"])
    assert values(driver, 1) == [b"a", b"b", b"c", b"d"]


def test_the_segment_of_another_log_is_known_by_its_first_batch_without_any_checkpoint() -> None:
    """The other log's epoch is later: as its own the log would seem to be the most complete one."""
    lasting = DurableDriver()
    create(lasting.driver, "t", [(1, 2, 3)])
    create(lasting.driver, "u", [(1, 2, 3)])
    lasting.driver.elect("u", 0, 2)
    for topic in ("t", "u"):
        produce(lasting.driver, topic, b"a-%b" % topic.encode())
    produce(lasting.driver, "u", b"more")
    lasting.kill()
    foreign = lasting.files.read(lasting.path(1, "u") / FIRST)
    lasting.files.write_atomic(lasting.path(1, "t") / FIRST, foreign, sync=True)
    driver = begin(lasting)
    assert told(driver)[0] == ("records_missing", 1, [[0, 0]])
    assert driver.partition("t").leader == 2
    assert [values(driver, broker_id) for broker_id in (1, 2, 3)] == [[b"a-t"]] * 3
