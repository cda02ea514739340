"""Features of the cluster: which levels there are, and who may go from one to another (KIP-584).

They have the levels of Apache Kafka 4.3.1:

- ``metadata.version`` (KIP-778): its enum ``MetadataVersion`` says what the levels are called,
  which of them changed the metadata, and that a broker below 4.2-IV1 asks its leader by ListOffsets
  v10. An upgrade goes to any higher level, a downgrade to any lower one between which and the
  present no level changed the metadata. One that would lose metadata needs to be asked for as
  unsafe; Apache Kafka 4.3.1 refuses it even so.
- ``kraft.version`` (KIP-853): with 1 the quorum's voters may change. It never goes back.
- ``eligible.leader.replicas.version`` (KIP-966): with 1 a replica that left an ISR too small for
  acks=all may lead. It comes and goes as one likes.
- ``transaction.version`` (KIP-890): with 1 the transaction log has flexible records, with 2 each
  end of a transaction bumps the producer's epoch. It comes and goes as one likes. Releases before
  4.0 do not have it, and so it is 0 where the ceiling of EndTxn is theirs.

Apache Kafka's ``group.version``, ``share.version`` and ``streams.version`` stand for what is not
served here, and clients would believe them: they are only at level 0.

A node supports the levels that a release calls unstable where its config
``unstable.feature.versions.enable`` says so.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field

KRAFT_VERSION: Final = "kraft.version"
METADATA_VERSION: Final = "metadata.version"
ELR_VERSION: Final = "eligible.leader.replicas.version"
TRANSACTION_VERSION: Final = "transaction.version"
Levels = Mapping[str, int]
"""Levels by the names of features; one at level 0 is not finalized."""


class MetadataVersion(IntEnum):
    """Levels of ``metadata.version``, by what Kafka calls them."""

    V3_3_IV3 = 7
    V3_4_IV0 = 8
    V3_5_IV0 = 9
    V3_5_IV1 = 10
    V3_5_IV2 = 11
    V3_6_IV0 = 12
    V3_6_IV1 = 13
    V3_6_IV2 = 14
    V3_7_IV0 = 15
    V3_7_IV1 = 16
    V3_7_IV2 = 17
    V3_7_IV3 = 18
    V3_7_IV4 = 19
    V3_8_IV0 = 20
    V3_9_IV0 = 21
    V4_0_IV0 = 22
    V4_0_IV1 = 23
    V4_0_IV2 = 24
    V4_0_IV3 = 25
    V4_1_IV0 = 26
    V4_1_IV1 = 27
    V4_2_IV0 = 28
    V4_2_IV1 = 29
    """ListOffsets v11, with the earliest offset that waits to be tiered (KIP-1023)."""
    V4_3_IV0 = 30
    V4_4_IV0 = 31
    """Unstable in 4.3.1."""


LATEST_PRODUCTION: Final = MetadataVersion.V4_3_IV0
"""The highest level that 4.3.1 does not call unstable."""
PENDING_UPLOAD: Final = MetadataVersion.V4_2_IV1
"""The level that brought KIP-1023."""
_LIST_OFFSETS: Final = "list_offsets"
_END_TXN: Final = "end_txn"
_FIRST_WITH_EPOCH_BUMP: Final = 5
"""The version of EndTxn that answers the next epoch: the first release with it has 4.0."""
_LAST_WITHOUT: Final = 10
"""The last version of ListOffsets without KIP-1023."""
_CHANGED: Final = frozenset({7, 8, 11, 13, 14, 15, 16, 17, 23, 30})
"""The levels that changed the metadata: a downgrade below one of them may lose some."""
_NOT_SERVED: Final = frozenset({"group.version", "share.version", "streams.version"})
"""Kafka's features that are at level 0 here."""
_DEPENDENCIES: Final = {ELR_VERSION: MetadataVersion.V4_0_IV1}
"""The lowest ``metadata.version`` with which other features may be above 0."""
_FROM: Final = {
    KRAFT_VERSION: MetadataVersion.V3_9_IV0,
    ELR_VERSION: MetadataVersion.V4_1_IV0,
    TRANSACTION_VERSION: MetadataVersion.V4_0_IV2,
}
"""The ``metadata.version`` from which on new clusters have other features at their highest."""
Ranges = Mapping[str, tuple[int, int]]
"""Lowest and highest level of features by name, both inclusive."""


def _ranges(highest: MetadataVersion) -> Ranges:
    return MappingProxyType(
        {
            KRAFT_VERSION: (0, 1),
            METADATA_VERSION: (min(MetadataVersion), highest),
            ELR_VERSION: (0, 1),
            TRANSACTION_VERSION: (0, 2),
        }
    )


SUPPORTED: Final = _ranges(LATEST_PRODUCTION)
"""The levels that are not unstable."""
SUPPORTED_UNSTABLE: Final = _ranges(max(MetadataVersion))
"""All levels."""
NEWEST: Final[Levels] = MappingProxyType({name: high for name, (_, high) in SUPPORTED.items()})
"""The levels that a cluster starts with by default."""


def supported_features(*, unstable: bool) -> Ranges:
    """The levels that a node supports, with unstable ones or without."""
    return SUPPORTED_UNSTABLE if unstable else SUPPORTED


class UpgradeType(IntEnum):
    """What an update may do."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    """Without loss of metadata."""
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(Struct, frozen=True, kw_only=True):
    """What a client wants of one feature.

    :ivar upgrade_type: One of `UpgradeType`, or a number that means nothing.
    """

    feature: str
    level: int
    upgrade_type: int


class UnstableFeatures(Struct, frozen=True, kw_only=True):
    """Which nodes support unstable levels (``unstable.feature.versions.enable``)."""

    controller: bool = False
    brokers: Mapping[int, bool] = field(default_factory=dict)
    """By broker id."""

    @property
    def everywhere(self) -> bool:
        """Whether all nodes do."""
        return self.controller and all(self.brokers.values())


def initial_levels(
    given: Levels, *, unstable: bool, ceilings: Mapping[str, int] = MappingProxyType({})
) -> Levels:
    """The levels that a cluster starts with, as ``kafka-storage format`` chooses them.

    :param given: Levels that are chosen; `initial_levels_problem` finds nothing wrong with them.
    :param unstable: Whether all nodes support unstable levels.
    :param ceilings: The highest versions that brokers serve, by API name, where not the highest.
    """
    if ceilings.get(_END_TXN, _FIRST_WITH_EPOCH_BUMP) < _FIRST_WITH_EPOCH_BUMP:
        given = {TRANSACTION_VERSION: 0, **given}
    highest = supported_features(unstable=unstable)
    version = given.get(METADATA_VERSION, highest[METADATA_VERSION][1])
    defaults = {name: highest[name][1] * (version >= first) for name, first in _FROM.items()}
    levels = {METADATA_VERSION: version, **defaults, **given}
    return MappingProxyType({name: levels[name] for name in highest})


def initial_levels_problem(given: Levels, *, unstable: bool) -> str | None:
    """Why a cluster can't start with chosen levels; None where it can."""
    ranges = supported_features(unstable=unstable)
    for name, level in given.items():
        if name not in ranges:
            return f"there is no feature {name}; there are {', '.join(sorted(ranges))}"
        low, high = ranges[name]
        if not low <= level <= high:
            return f"{name} has the levels {low} to {high}, and not {level}"
    levels = initial_levels(given, unstable=unstable)
    return next(filter(None, (_dependency_problem(name, levels) for name in given)), None)


def _dependency_problem(name: str, levels: Levels) -> str | None:
    """Why a feature can't have its level beside the others, in Kafka's words."""
    least = _DEPENDENCIES.get(name, 0)
    if levels[METADATA_VERSION] >= least or not levels[name]:
        return None
    return (
        f"{name} could not be set to {levels[name]} because it depends on {METADATA_VERSION} "
        f"level {least}"
    )


def finalized(levels: Levels) -> Levels:
    """The features that are finalized, with their levels."""
    return {name: level for name, level in levels.items() if level > 0}


def keeps_eligible_replicas(levels: Levels) -> bool:
    """Whether replicas outside of the ISR may be eligible leaders (KIP-966)."""
    return levels[ELR_VERSION] > 0


def transaction_version(levels: Levels) -> int:
    """The level of ``transaction.version``."""
    return levels[TRANSACTION_VERSION]


def allows_pending_upload(levels: Levels) -> bool:
    """Whether KIP-1023 is to be used, as far as ``metadata.version`` says."""
    return levels[METADATA_VERSION] >= PENDING_UPLOAD


def limit_versions(levels: Levels, ceilings: Mapping[str, int]) -> Mapping[str, int]:
    """The highest versions to serve where these features are finalized, by the names of APIs.

    :param ceilings: Those that hold whatever the features.
    """
    if allows_pending_upload(levels):
        return ceilings
    highest = min(ceilings.get(_LIST_OFFSETS, _LAST_WITHOUT), _LAST_WITHOUT)
    return {**ceilings, _LIST_OFFSETS: highest}


def update_error(
    update: FeatureUpdate,
    levels: Levels,
    *,
    updated: Levels,
    unstable: UnstableFeatures,
    controller_id: int,
    downgrades_unsafely: bool,
) -> str | None:
    """Why a feature does not get the level that it is to have, in Kafka's words; None if it does.

    :param updated: The levels of all features if all updates of the request are done.
    :param unstable: Which nodes support unstable levels.
    :param downgrades_unsafely: Whether a downgrade may lose metadata, where that is asked for.
    """
    name, wanted, now = update.feature, update.level, levels.get(update.feature, 0)
    problem = (
        _value_problem(update)
        or next(_support_problems(update, unstable, controller_id), None)
        or _direction_problem(update, now)
        or _dependency_problem(name, updated)
    )
    if problem is not None:
        return f"Invalid update version {wanted} for feature {name}. {problem}"
    if name != METADATA_VERSION or not any(wanted < level <= now for level in _CHANGED):
        return None
    if update.upgrade_type != UpgradeType.UNSAFE_DOWNGRADE:
        why = "Refusing to perform the requested downgrade because it might delete metadata"
        why = f"{why} information."
    elif downgrades_unsafely:
        return None
    else:
        why = "Unsafe metadata downgrade is not supported in this version."
    return f"Unsupported {name} downgrade from {now} to {wanted}. {why}"


def _value_problem(update: FeatureUpdate) -> str | None:
    """What is wrong with an update whatever the cluster."""
    if update.upgrade_type not in tuple(UpgradeType):
        return "The controller does not support the given upgrade type."
    if update.level < 0:
        return "A feature version cannot be less than 0."
    if not update.level and update.feature not in SUPPORTED.keys() | _NOT_SERVED:
        return f"Feature {update.feature} not found."
    return None


def _support_problems(
    update: FeatureUpdate, unstable: UnstableFeatures, controller_id: int
) -> Iterator[str]:
    """Which nodes do not support the level of an update, the controller first."""
    nodes = [(f"Local controller {controller_id}", unstable.controller)]
    nodes += [(f"Broker {broker}", each) for broker, each in sorted(unstable.brokers.items())]
    for node, has_unstable in nodes:
        ranges = supported_features(unstable=has_unstable)
        low, high = ranges.get(update.feature, (0, 0))
        if not high and update.level:
            yield f"{node} does not support this feature."
        elif not low <= update.level <= high:
            yield f"{node} only supports versions {low}-{high}"


def _direction_problem(update: FeatureUpdate, now: int) -> str | None:
    """Whether an update goes the other way than its type says."""
    wanted, is_upgrade = update.level, update.upgrade_type == UpgradeType.UPGRADE
    if wanted < now and is_upgrade:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    if wanted < now and update.feature == KRAFT_VERSION:
        return "Can't downgrade the version of this feature."
    if wanted > now and not is_upgrade:
        return "Can't downgrade to a newer version."
    return None
