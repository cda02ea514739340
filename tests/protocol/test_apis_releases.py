"""What releases of Kafka served: against what is on record of them elsewhere."""

from __future__ import annotations

from typing import Final

import pytest
from kafka.protocol.broker_version_data import BROKER_API_VERSIONS

from fencepost.protocol.apis import (
    APIS,
    BY_NAME,
    NOT_SERVED,
    RELEASES,
    find_release,
    highest_version,
    release_ceilings,
)

RECORDED: Final = {
    find_release(".".join(map(str, release))): {
        key: highest for key, (_, highest) in versions.items()
    }
    for release, versions in BROKER_API_VERSIONS.items()
    if release >= (0, 10)
}
"""Highest versions by API key in each release, as kafka-python has them on record."""
OPTIONAL: Final = {
    "add_raft_voter",
    "describe_quorum",
    "describe_topic_partitions",
    "get_telemetry_subscriptions",
    "list_config_resources",
    "push_telemetry",
    "remove_raft_voter",
    "unregister_broker",
}
"""Some brokers of a release did not have them: those with ZooKeeper, or without a plugin for
metrics. What is on record may be of such a broker."""
LATER_IN_KRAFT: Final = {
    "alter_user_scram_credentials": "3.5",
    "create_delegation_token": "3.6",
    "describe_delegation_token": "3.6",
    "describe_user_scram_credentials": "3.5",
    "expire_delegation_token": "3.6",
    "renew_delegation_token": "3.6",
}
"""Brokers with ZooKeeper, which are on record, had these before; and the first release with KRaft
that has each."""
FIRST_IN_KRAFT: Final = "3.3"


def came_later(name: str, release: str) -> bool:
    """Whether brokers of a release in KRaft mode did not have an API yet."""
    if name not in LATER_IN_KRAFT:
        return False
    first, position = LATER_IN_KRAFT[name], RELEASES.index(release)
    return RELEASES.index(FIRST_IN_KRAFT) <= position < RELEASES.index(first)


@pytest.mark.parametrize("release", RELEASES)
def test_a_whole_release_is_as_others_know_it(release: str) -> None:
    recorded = RECORDED[release]
    apis = [api for api in APIS if api.key in recorded or api.name not in OPTIONAL]
    assert {api.name: highest_version(api, release) for api in apis} == {
        api.name: NOT_SERVED if came_later(api.name, release) else recorded.get(api.key, NOT_SERVED)
        for api in apis
    }


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
        ("describe_quorum", 1, "3.3"),  # KIP-836
        ("describe_quorum", 2, "3.9"),  # KIP-853
        ("list_offsets", 7, "3.0"),  # KIP-734: the greatest timestamp
        ("find_coordinator", 4, "3.0"),  # KIP-699
        ("list_offsets", 8, "3.5"),  # KIP-405
        ("produce", 10, "3.7"),  # KIP-951: the new leader in the answer
        ("get_telemetry_subscriptions", 0, "3.7"),  # KIP-714
        ("push_telemetry", 0, "3.7"),  # KIP-714
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
        releases = [release for release in RELEASES if not came_later(api.name, release)]
        versions = [highest_version(api, release) for release in releases]
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
