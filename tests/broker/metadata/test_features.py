"""Features of the cluster: which levels may follow on each other, in Kafka's words."""

from __future__ import annotations

import pytest

from fencepost.broker.metadata.features import (
    ELR_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    NEWEST,
    SUPPORTED,
    SUPPORTED_UNSTABLE,
    TRANSACTION_VERSION,
    FeatureUpdate,
    MetadataVersion,
    UnstableFeatures,
    UpgradeType,
    initial_levels,
    initial_levels_problem,
    limit_versions,
    update_error,
)
from fencepost.protocol.apis import release_ceilings

UP = UpgradeType.UPGRADE
SAFE = UpgradeType.SAFE_DOWNGRADE
UNSAFE = UpgradeType.UNSAFE_DOWNGRADE


def refused(
    level: int,
    kind: int,
    now: int,
    *,
    unsafely: bool = False,
    unstable: UnstableFeatures = UnstableFeatures(),  # noqa: B008  # it is frozen
) -> str | None:
    update = FeatureUpdate(feature=METADATA_VERSION, level=level, upgrade_type=kind)
    return update_error(
        update,
        {METADATA_VERSION: now},
        updated={METADATA_VERSION: level},
        unstable=unstable,
        controller_id=1,
        downgrades_unsafely=unsafely,
    )


def test_the_levels_are_those_of_kafka_4_3() -> None:
    assert SUPPORTED == {
        KRAFT_VERSION: (0, 1),
        METADATA_VERSION: (7, 30),
        ELR_VERSION: (0, 1),
        TRANSACTION_VERSION: (0, 2),
    }
    assert NEWEST == {
        KRAFT_VERSION: 1,
        METADATA_VERSION: 30,
        ELR_VERSION: 1,
        TRANSACTION_VERSION: 2,
    }
    assert SUPPORTED_UNSTABLE == {**SUPPORTED, METADATA_VERSION: (7, 31)}
    assert list(MetadataVersion) == list(range(7, 32))


def test_an_unstable_level_is_finalized_where_all_nodes_support_it() -> None:
    everywhere = UnstableFeatures(controller=True, brokers={1: True, 2: True})
    assert refused(31, UP, 30, unstable=everywhere) is None
    assert refused(30, SAFE, 31, unstable=everywhere) is None
    reason = "Invalid update version 31 for feature metadata.version. {} only supports versions "
    but_one = UnstableFeatures(controller=True, brokers={1: True, 2: False, 3: False})
    assert refused(31, UP, 30, unstable=but_one) == f"{reason.format('Broker 2')}7-30"
    brokers = UnstableFeatures(brokers={1: True})
    assert refused(31, UP, 30, unstable=brokers) == f"{reason.format('Local controller 1')}7-30"
    assert refused(32, UP, 30, unstable=everywhere) == (
        "Invalid update version 32 for feature metadata.version. "
        "Local controller 1 only supports versions 7-31"
    )


@pytest.mark.parametrize(
    ("given", "unstable", "metadata", "kraft", "elr", "transaction"),
    [
        ({}, False, 30, 1, 1, 2),
        ({}, True, 31, 1, 1, 2),
        ({METADATA_VERSION: 25}, False, 25, 1, 0, 2),
        ({METADATA_VERSION: 26}, False, 26, 1, 1, 2),
        ({METADATA_VERSION: 20}, False, 20, 0, 0, 0),
        ({METADATA_VERSION: 21}, True, 21, 1, 0, 0),
        ({METADATA_VERSION: 23, ELR_VERSION: 1, KRAFT_VERSION: 0}, False, 23, 0, 1, 0),
    ],
)
def test_a_cluster_starts_with_the_levels_that_a_metadata_version_brings(
    given: dict[str, int], unstable: bool, metadata: int, kraft: int, elr: int, transaction: int
) -> None:
    assert initial_levels_problem(given, unstable=unstable) is None
    assert initial_levels(given, unstable=unstable) == {
        METADATA_VERSION: metadata,
        KRAFT_VERSION: kraft,
        ELR_VERSION: elr,
        TRANSACTION_VERSION: transaction,
    }


def test_releases_without_the_feature_start_at_transaction_version_0() -> None:
    def level(release: str, **given: int) -> int:
        levels = initial_levels(
            {name.replace("_", "."): each for name, each in given.items()},
            unstable=False,
            ceilings=release_ceilings(release),
        )
        return levels[TRANSACTION_VERSION]

    assert [level(release) for release in ("2.4", "3.9", "4.0", "4.3")] == [0, 0, 2, 2]
    assert level("3.9", transaction_version=1) == 1


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"group.version": 1}, "there is no feature group.version; there are eligible.leader"),
        ({METADATA_VERSION: 31}, "metadata.version has the levels 7 to 30, and not 31"),
        (
            {METADATA_VERSION: 22, ELR_VERSION: 1},
            "eligible.leader.replicas.version could not be set to 1 because it depends on metadata",
        ),
    ],
)
def test_no_cluster_starts_with_levels_that_do_not_go_together(
    given: dict[str, int], why: str
) -> None:
    problem = initial_levels_problem(given, unstable=False)
    assert problem is not None
    assert problem.startswith(why)


@pytest.mark.parametrize(
    ("level", "kind", "now"),
    [
        (30, UP, 30),
        (30, SAFE, 30),
        (30, UNSAFE, 30),
        (30, UP, 7),
        (29, UP, 28),
        (28, SAFE, 29),
        (26, UNSAFE, 29),
        (24, SAFE, 29),
        (23, SAFE, 29),
        (19, SAFE, 22),
    ],
)
def test_a_level_follows_where_no_metadata_is_lost(level: int, kind: int, now: int) -> None:
    assert refused(level, kind, now) is None


@pytest.mark.parametrize(("level", "now"), [(29, 30), (22, 29), (22, 23), (7, 8), (16, 22)])
def test_metadata_is_lost_only_where_somebody_says_so(level: int, now: int) -> None:
    unsupported = f"Unsupported metadata.version downgrade from {now} to {level}. "
    assert refused(level, SAFE, now, unsafely=True) == (
        f"{unsupported}Refusing to perform the requested downgrade because it might delete "
        "metadata information."
    )
    assert refused(level, UNSAFE, now, unsafely=True) is None
    assert refused(level, UNSAFE, now) == (
        f"{unsupported}Unsafe metadata downgrade is not supported in this version."
    )


@pytest.mark.parametrize(
    ("level", "kind", "why"),
    [
        (28, UP, "without setting the upgrade type to either safe or unsafe downgrade."),
        (30, SAFE, "Can't downgrade to a newer version."),
        (30, UNSAFE, "Can't downgrade to a newer version."),
        (31, UP, "Local controller 1 only supports versions 7-30"),
        (31, SAFE, "Local controller 1 only supports versions 7-30"),
        (6, UNSAFE, "Local controller 1 only supports versions 7-30"),
        (-1, UNSAFE, "A feature version cannot be less than 0."),
        (29, 0, "The controller does not support the given upgrade type."),
        (-1, 4, "The controller does not support the given upgrade type."),
    ],
)
def test_what_makes_no_sense_is_refused(level: int, kind: int, why: str) -> None:
    refusal = refused(level, kind, now=29)
    assert refusal is not None
    assert refusal.startswith(f"Invalid update version {level} for feature metadata.version. ")
    assert refusal.endswith(why)


def test_list_offsets_stops_where_kip_1023_is_not_finalized() -> None:
    for level in MetadataVersion:
        lowered = limit_versions({METADATA_VERSION: level}, {"fetch": 8})
        expected = {} if level >= MetadataVersion.V4_2_IV1 else {"list_offsets": 10}
        assert lowered == {"fetch": 8, **expected}


def test_a_lower_ceiling_of_list_offsets_stays() -> None:
    assert limit_versions({METADATA_VERSION: 28}, {"list_offsets": 3}) == {"list_offsets": 3}
