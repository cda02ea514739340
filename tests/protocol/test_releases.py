"""What releases of Kafka served: against what is on record of them elsewhere."""

from __future__ import annotations

from typing import Final

import pytest

from fencepost.protocol.apis import APIS, BY_KEY, BY_NAME
from fencepost.protocol.releases import (
    NOT_SERVED,
    RELEASES,
    find_release,
    highest_version,
    release_ceilings,
)

WHOLE_RELEASES: Final = {
    "0.10.2": "0:2 1:3 2:1 3:2 8:2 9:2 10:0 11:1 12:0 13:0 14:0 15:0 16:0 18:0 19:1 20:0",
    "1.1": "0:5 1:7 2:2 3:5 8:3 9:3 10:1 11:2 12:1 13:1 14:1 15:1 16:1 18:1 19:2 20:1 21:0 22:0"
    " 23:0 32:1 33:0 35:0 37:0 42:0",
    "2.0": "0:6 1:8 2:3 3:6 8:4 9:4 10:2 11:3 12:2 13:2 14:2 15:2 16:2 18:2 19:3 20:2 21:1 22:1"
    " 23:1 32:2 33:1 35:1 37:1 42:1",
    "2.4": "0:8 1:11 2:5 3:9 8:8 9:6 10:3 11:6 12:4 13:4 14:4 15:5 16:3 18:3 19:5 20:4 21:1 22:2"
    " 23:3 32:2 33:1 35:1 37:1 42:2 43:2 44:1 45:0 46:0 47:0",
    "3.3": "0:9 1:13 2:7 3:12 8:8 9:8 10:4 11:9 12:4 13:5 14:5 15:5 16:4 18:3 19:7 20:6 21:2 22:4"
    " 23:4 32:4 33:2 35:4 37:3 42:2 43:2 44:1 45:0 46:0 47:0 55:1 57:1 60:0 61:0",
    "3.9": "0:11 1:17 2:9 3:12 8:9 9:9 10:6 11:9 12:4 13:5 14:5 15:5 16:5 18:4 19:7 20:6 21:2 22:5"
    " 23:4 32:4 33:2 35:4 37:3 42:2 43:2 44:1 45:0 46:0 47:0 55:2 57:1 60:1 61:0 71:0 72:0 75:0",
    "4.2": "0:13 1:18 2:11 3:13 8:10 9:10 10:6 11:9 12:4 13:5 14:5 15:6 16:5 18:4 19:7 20:6 21:2"
    " 22:5 23:4 32:4 33:2 35:4 37:3 42:2 43:2 44:1 45:1 46:0 47:0 55:2 57:2 60:2 61:0 71:0 72:0"
    " 75:0",
}
"""Highest versions by API key, of what is served here, as other clients' tables of releases say."""


@pytest.mark.parametrize("release", WHOLE_RELEASES)
def test_a_whole_release_is_as_others_know_it(release: str) -> None:
    known = {api.key: highest_version(api, release) for api in APIS}
    expected = dict.fromkeys(BY_KEY, NOT_SERVED)
    for pair in WHOLE_RELEASES[release].split():
        key, _, version = pair.partition(":")
        expected[int(key)] = int(version)
    assert known == expected


@pytest.mark.parametrize(
    ("name", "version", "release"),
    [
        ("produce", 3, "0.11.0"),  # KIP-98: the batches of today
        ("fetch", 7, "1.1"),  # KIP-227: incremental sessions
        ("fetch", 8, "2.0"),  # KIP-219: throttling
        ("fetch", 9, "2.1"),  # KIP-320
        ("metadata", 7, "2.1"),  # KIP-320
        ("offset_commit", 6, "2.1"),  # KIP-320
        ("offset_for_leader_epoch", 2, "2.1"),  # KIP-320
        ("list_offsets", 5, "2.2"),  # KIP-207
        ("fetch", 11, "2.3"),  # KIP-392
        ("incremental_alter_configs", 0, "2.3"),  # KIP-339
        ("offset_delete", 0, "2.4"),  # KIP-496
        ("alter_partition_reassignments", 0, "2.4"),  # KIP-455
        ("fetch", 12, "2.7"),  # KIP-595: the epoch that was fetched last
        ("metadata", 10, "2.8"),  # KIP-516: topic ids
        ("describe_cluster", 0, "2.8"),  # KIP-700
        ("update_features", 0, "2.7"),  # KIP-584
        ("update_features", 1, "3.3"),  # KIP-778
        ("list_offsets", 7, "3.0"),  # KIP-734: the greatest timestamp
        ("find_coordinator", 4, "3.0"),  # KIP-699
        ("list_offsets", 8, "3.5"),  # KIP-405
        ("produce", 10, "3.7"),  # KIP-951: the new leader in the answer
        ("get_telemetry_subscriptions", 0, "3.7"),  # KIP-714
        ("describe_topic_partitions", 0, "3.8"),  # KIP-966
        ("list_offsets", 10, "4.0"),  # KIP-1075
        ("produce", 13, "4.1"),  # KIP-516: topic ids
        ("list_offsets", 11, "4.2"),  # KIP-1023
    ],
)
def test_a_kip_came_with_its_release(name: str, version: int, release: str) -> None:
    before = RELEASES[RELEASES.index(release) - 1]
    api = BY_NAME[name]
    assert highest_version(api, before) < version <= highest_version(api, release)


def test_no_release_takes_a_version_back() -> None:
    for api in APIS:
        versions = [highest_version(api, release) for release in RELEASES]
        assert versions == sorted(versions), api.title


def test_the_newest_release_is_all_that_is_served_but_for_its_unstable_versions() -> None:
    ours = {api.name: api.max_version for api in APIS}
    assert release_ceilings(RELEASES[-1]) == ours | {"init_producer_id": 5}


def test_what_was_too_old_to_be_spoken_here_is_not_served() -> None:
    ceilings = release_ceilings("2.0")
    assert ceilings["fetch"] == 8
    assert highest_version(BY_NAME["offset_for_leader_epoch"], "2.0") == 1
    assert ceilings["offset_for_leader_epoch"] == NOT_SERVED
    assert ceilings["incremental_alter_configs"] == NOT_SERVED


def test_what_nobody_can_do_without_is_served_as_low_as_can_be() -> None:
    ceilings = release_ceilings("0.10.0")
    lowest = {name: BY_NAME[name].min_version for name in ("produce", "fetch", "list_offsets")}
    assert {name: ceilings[name] for name in lowest} == lowest
    assert ceilings["metadata"] == 1


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("2.0", "2.0"),
        ("v2.0", "2.0"),
        ("2.0.1", "2.0"),
        ("3.9.2", "3.9"),
        ("0.10", "0.10.2"),
        ("0.10.1", "0.10.1"),
        ("0.10.1.1", "0.10.1"),
        ("0.11", "0.11.0"),
        ("0.11.0.3", "0.11.0"),
    ],
)
def test_releases_are_known_by_what_they_are_called(text: str, release: str) -> None:
    assert find_release(text) == release


@pytest.mark.parametrize("text", ["", "2", "2.x", "newest", "2.0.1.1", "-1.0", "0.10.0-rc1"])
def test_what_is_no_release_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a release of Kafka, such as 2\.0"):
        find_release(text)


@pytest.mark.parametrize("text", ["0.9", "0.9.0.1", "2.9", "3.10", "4.44", "5.0"])
def test_a_release_that_never_was_or_is_not_known_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"they are 0\.10\.0, .*, 4\.3$"):
        find_release(text)
