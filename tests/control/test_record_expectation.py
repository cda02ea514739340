"""A search for records, over what becomes of a log between two of its looks."""

from __future__ import annotations

import pytest

from fencepost.broker.node import operator_actions, record_actions
from fencepost.broker.node.record_actions import LEADER, NewRecord
from fencepost.control.record_expectation import MAX_NEAREST, RecordSearch
from fencepost.verbs.record_bodies import ExpectBody
from tests.harness.driver import Driver
from tests.harness.driver_requests import create


@pytest.fixture
def driver() -> Driver:
    made = Driver()
    create(made, "t", [(1, 2, 3)])
    return made


def append(driver: Driver, *values: bytes, acks: int = -1) -> None:
    records = [NewRecord(value=value) for value in values]
    record_actions.append(driver.cluster, "t", records, acks=acks).offsets()


def search(driver: Driver, **expected: object) -> RecordSearch:
    return RecordSearch(driver.cluster, "t", ExpectBody.model_validate(expected))


def offsets(found: RecordSearch) -> list[int]:
    return [each.stored.record.offset for each in found.matching()]


async def test_only_what_is_new_is_read_again(driver: Driver) -> None:
    append(driver, b"v")
    found = search(driver, value="v", count=3)
    for expected in ([0], [0, 1], [0, 1, 2]):
        await found.read_on()
        assert offsets(found) == expected
        append(driver, b"v")
    assert found.is_met


async def test_another_leader_may_have_other_records(driver: Driver) -> None:
    """As many as were truncated are appended before the next look."""
    append(driver, b"x")
    for broker_id in (2, 3):
        operator_actions.hold(driver.cluster, "t", 0, broker_id, leave_isr=True)
    append(driver, b"v")
    found = search(driver, value="v", count=2)
    await found.read_on()
    assert offsets(found) == [1]
    operator_actions.elect(driver.cluster, "t", 0, 2, unclean=True)
    append(driver, b"y", acks=LEADER)
    operator_actions.release(driver.cluster, "t", 0, 3)
    await found.read_on()
    assert offsets(found) == []
    assert [each.stored.record.value for each in found.nearest()] == [b"y", b"x"]


async def test_a_topic_of_the_same_name_is_another_one(driver: Driver) -> None:
    append(driver, b"v")
    found = search(driver, value="v", count=2)
    await found.read_on()
    driver.cluster.controller.delete_topics(["t"])
    driver.cluster.scheduler.run_due()
    create(driver, "t", [(1, 2, 3)])
    append(driver, b"x")
    await found.read_on()
    assert offsets(found) == []


async def test_the_nearest_are_few_and_the_newest_of_the_same(driver: Driver) -> None:
    append(driver, *[b"x"] * 100)
    found = search(driver, value="v")
    await found.read_on()
    newest = [99 - at for at in range(MAX_NEAREST)]
    assert [each.stored.record.offset for each in found.nearest()] == newest
