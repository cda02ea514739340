"""Brokers of an older day (``--api-max``): below the versions of KIP-320 no epoch is checked."""

from __future__ import annotations

from typing import Final

import pytest
from msgspec.structs import replace

from fencepost.broker.node import operator_actions
from fencepost.protocol.apis import BY_NAME, release_ceilings
from fencepost.protocol.errors import ErrorCode
from tests.harness.driver import Driver
from tests.harness.driver_requests import create, fetch, list_offset, produce
from tests.harness.typed_requests import fetch_request, fetched, from_offset, values

LATEST = -1


def after_an_election(**api_max: int) -> Driver:
    driver = Driver(2, api_max=api_max)
    create(driver, "t", [(1, 2)])
    produce(driver, "t", b"a")
    driver.elect("t", 0, 2)
    return driver


@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_fetch_up_to_v8_is_served_whatever_epoch_its_client_knows(epoch: int) -> None:
    driver = after_an_election(fetch=8)
    version = driver.broker(2).max_version(BY_NAME["fetch"])
    assert version == 8
    old = fetch(driver, "t", 0, version=version, current_leader_epoch=epoch)
    assert (old.error_code, values(old)) == (ErrorCode.NONE, [b"a"])
    checked = {0: ErrorCode.FENCED_LEADER_EPOCH, 2: ErrorCode.UNKNOWN_LEADER_EPOCH}
    new = fetch(after_an_election(), "t", 0, version=9, current_leader_epoch=epoch)
    assert new.error_code == checked.get(epoch, ErrorCode.NONE)


@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_list_offsets_up_to_v3_as_well_and_it_tells_no_epoch(epoch: int) -> None:
    driver = after_an_election(list_offsets=3)
    version = driver.broker(2).max_version(BY_NAME["list_offsets"])
    assert version == 3
    found = list_offset(driver, "t", LATEST, version=version, current_leader_epoch=epoch)
    assert (found.error_code, found.offset, found.leader_epoch) == (ErrorCode.NONE, 1, -1)


def truncated_and_overwritten(driver: Driver) -> None:
    """A consumer has read "a" and "lost", to offset 2; another record took the place of "lost"."""
    create(driver, "t", [(1, 2)], min_insync_replicas="1")
    produce(driver, "t", b"a")
    operator_actions.hold(driver.cluster, "t", 0, 2, leave_isr=True)
    produce(driver, "t", b"lost")
    assert values(fetch(driver, "t", 0)) == [b"a", b"lost"]
    operator_actions.elect(driver.cluster, "t", 0, 2, unclean=True)
    produce(driver, "t", b"missed", acks=1)
    produce(driver, "t", b"seen", acks=1)


def test_a_consumer_behind_fetch_v8_silently_misses_what_was_lost() -> None:
    driver = Driver(2, api_max={"fetch": 8})
    truncated_and_overwritten(driver)
    answer = fetch(driver, "t", 2, version=8, current_leader_epoch=0)
    assert (answer.error_code, values(answer)) == (ErrorCode.NONE, [b"seen"])


@pytest.mark.parametrize("version", [9, 11, 12])
def test_so_does_a_consumer_of_today_that_sends_no_epoch(version: int) -> None:
    driver = Driver(2)
    truncated_and_overwritten(driver)
    answer = fetch(driver, "t", 2, version=version, current_leader_epoch=-1)
    assert (answer.error_code, values(answer)) == (ErrorCode.NONE, [b"seen"])


@pytest.mark.parametrize("version", [8, 12])
def test_without_an_epoch_it_is_out_of_range_until_as_much_is_written_as_was_lost(
    version: int,
) -> None:
    driver = Driver(2)
    truncated_and_overwritten(driver)
    errors = []
    for _ in range(2):
        errors.append(fetch(driver, "t", 4, version=version).error_code)
        produce(driver, "t", b"one more", acks=1)
    assert errors == [ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.NONE]


def test_a_consumer_of_today_is_fenced_and_then_told_where_the_logs_part() -> None:
    driver = Driver(2)
    truncated_and_overwritten(driver)
    fenced = fetch(driver, "t", 2, current_leader_epoch=0)
    assert fenced.error_code == ErrorCode.FENCED_LEADER_EPOCH
    asked = replace(from_offset(2), current_leader_epoch=1, last_fetched_epoch=0)
    answer = fetched(driver.ask(2, "fetch", 12, fetch_request(("t", asked))))
    diverging = (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset)
    assert (answer.error_code, diverging, values(answer)) == (ErrorCode.NONE, (0, 1), [])


OLD_LOOKUPS: Final = {"list_offsets": 1, "offset_for_leader_epoch": 2}


@pytest.mark.parametrize(
    "ceilings",
    [
        *({"fetch": ceiling, **OLD_LOOKUPS} for ceiling in (4, 8, 9, 11, 12, 14, 18)),
        *(release_ceilings(release) for release in ("0.10.0", "2.0", "3.0")),
    ],
    ids=lambda ceilings: f"fetch up to v{ceilings['fetch']}",
)
def test_brokers_replicate_and_truncate_under_any_ceiling(ceilings: dict[str, int]) -> None:
    driver = Driver(2, api_max=ceilings)
    truncated_and_overwritten(driver)
    driver.release(2)
    assert driver.partition("t").isr == (2, 1)
    for broker_id in (1, 2):
        assert driver.replica(broker_id, "t").log.log_end_offset == 3
        assert driver.replica(broker_id, "t").high_watermark == 3
        assert driver.replica(broker_id, "t").log.epoch_entries() == ((0, 0), (1, 1))
