"""Who is told what, and when: acks 0, 1 and all."""

from __future__ import annotations

import pytest

from fencepost.protocol.errors import ErrorCode
from tests.broker.driver import Driver
from tests.broker.handlers.conditional import frames
from tests.broker.handlers.conditional.frames import VERSIONS
from tests.broker.handlers.conditional.playing import stored, take
from tests.broker.handlers.conditional.rows import MISMATCH, ON, batch
from tests.broker.talk import create

pytestmark = pytest.mark.parametrize("version", VERSIONS)


@pytest.fixture
def driver() -> Driver:
    """Three brokers, and two partitions that all of them have; "abc" is in the first."""
    made = Driver(3)
    create(made, "t", [(1, 2, 3), (1, 2, 3)], **ON)
    take(made, "t-0", "abc")
    return made


def codes(asked: frames.Asked) -> list[int]:
    return [part["ErrorCode"] for _, part in asked.answers]


def test_without_an_answer_a_mismatch_closes_the_connection(driver: Driver, version: int) -> None:
    parts = [("t-1", batch("x", 0).encoded), ("t-0", batch("d", 4).encoded)]
    asked = frames.send(driver, parts, version=version, acks=0)
    assert asked.hung_up
    assert (stored(driver, "t-0"), stored(driver, "t-1")) == ("abc", "")


def test_without_an_answer_what_matches_is_appended(driver: Driver, version: int) -> None:
    parts = [("t-1", batch("x", 0).encoded), ("t-0", batch("d", 3).encoded)]
    assert frames.send(driver, parts, version=version, acks=0).silent
    assert (stored(driver, "t-0"), stored(driver, "t-1")) == ("abcd", "x")


@pytest.mark.parametrize("acks", [1, -1])
def test_a_mismatch_is_answered_at_once(driver: Driver, version: int, acks: int) -> None:
    driver.hold(2, 3)
    parts = [("t-1", batch("x", 0).encoded), ("t-0", batch("d", 4).encoded)]
    asked = frames.send(driver, parts, version=version, acks=acks)
    assert codes(asked) == [MISMATCH, MISMATCH]


def test_the_leaders_acknowledgement_does_not_wait(driver: Driver, version: int) -> None:
    driver.hold(2, 3)
    asked = frames.send(driver, [("t-0", batch("d", 3).encoded)], version=version, acks=1)
    assert codes(asked) == [ErrorCode.NONE]
    assert (stored(driver, "t-0"), stored(driver, "t-0", 2)) == ("abcd", "abc")


def test_all_wait_for_the_last_batch_of_every_partition(driver: Driver, version: int) -> None:
    driver.hold(2, 3)
    set_ = batch("d", 3).encoded + batch("ef", 4).encoded
    asked = frames.send(driver, [("t-1", batch("x", 0).encoded), ("t-0", set_)], version=version)
    driver.release(2)
    assert not asked.done
    driver.broker(3).replica_manager.hold("t", 0, 4)
    driver.broker(3).replica_manager.release("t", 1)
    driver.cluster.scheduler.run_due()
    assert not asked.done, "a part of the set is not all of it"
    driver.release(3)
    bases = [(name, part["ErrorCode"], part["BaseOffset"]) for name, part in asked.answers]
    assert bases == [("t-1", 0, 0), ("t-0", 0, 3)]


def test_the_next_set_is_compared_with_what_is_not_replicated_yet(
    driver: Driver, version: int
) -> None:
    driver.hold(2, 3)
    first = frames.send(driver, [("t-0", batch("de", 3).encoded)], version=version)
    again = frames.send(driver, [("t-0", batch("xy", 3).encoded)], version=version)
    after = frames.send(driver, [("t-0", batch("f", 5).encoded)], version=version)
    assert codes(again) == [MISMATCH]
    assert not first.done
    assert not after.done
    driver.release(2, 3)
    assert [part["BaseOffset"] for asked in (first, after) for _, part in asked.answers] == [3, 5]
    assert stored(driver, "t-0") == "abcdef"


def test_what_times_out_is_there_and_expected_again_is_a_mismatch(
    driver: Driver, version: int
) -> None:
    driver.hold(2, 3)
    asked = frames.send(driver, [("t-0", batch("d", 3).encoded)], version=version, timeout_ms=500)
    driver.advance(500)
    assert codes(asked) == [ErrorCode.REQUEST_TIMED_OUT]
    again = frames.send(driver, [("t-0", batch("d", 3).encoded)], version=version)
    assert codes(again) == [MISMATCH]
    assert stored(driver, "t-0") == "abcd"
