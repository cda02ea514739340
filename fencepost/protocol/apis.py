"""The APIs that a fencepost broker serves, and their versions.

One table drives dispatch, ApiVersions, the version check, the ceilings of ``--like-kafka`` and the
support matrix in the README. An API that is not in it is not advertised, and a request of it closes
the connection, as at a real broker.

The versions of a release of Apache Kafka (`Api.releases`, for ``--like-kafka``) are those of the
message definitions (``common/message`` in kafka-clients; before 2.2 the schemas of ``Protocol`` and
of the requests) of a release's brokers: with ZooKeeper to 3.2, in KRaft mode from 3.3 on, where it
left preview. Versions that a release called unstable do not count.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """One API: ``min_version`` and ``max_version`` are served, both inclusive."""

    key: int
    name: str
    min_version: int
    max_version: int
    first_flexible: int
    """The first version with compact types and tagged fields; beyond ``max_version`` where none."""
    advertised_min: int
    """What ApiVersions says; lower than ``min_version`` for Produce alone (KAFKA-18659)."""
    releases: str
    """The releases of Kafka that raised the highest version, in order, each as RELEASE:VERSION.
    Before the first there was no such API, nor from one with version -1 on: brokers in KRaft mode
    got some later. `fencepost.protocol.apis` reads it."""

    title: str = field(init=False, compare=False)
    """Kafka's own name, such as ``ListOffsets``."""

    def __post_init__(self) -> None:
        # Computed once: every request reads the title.
        title = "".join(word.capitalize() for word in self.name.split("_"))
        object.__setattr__(self, "title", title)

    def is_flexible(self, version: int) -> bool:
        """Whether this version has compact types and tagged fields (KIP-482)."""
        return version >= self.first_flexible

    def serves(self, version: int) -> bool:
        """Whether a request of this version is answered."""
        return self.min_version <= version <= self.max_version


def _api(
    key: int,
    name: str,
    low: int,
    high: int,
    flexible: int,
    releases: str,
    *,
    advertised: int | None = None,
) -> Api:
    return Api(
        key=key,
        name=name,
        min_version=low,
        max_version=high,
        first_flexible=flexible,
        advertised_min=low if advertised is None else advertised,
        releases=releases,
    )


_NEVER: Final = 1 << 15

APIS: Final[tuple[Api, ...]] = (
    # librdkafka 2.0.2 sends gzip, snappy and lz4 uncompressed unless Produce starts at 0.
    _api(
        key=0,
        name="produce",
        low=3,
        high=13,
        flexible=9,
        releases="0.10.0:2 0.11.0:3 1.0:5 2.0:6 2.1:7 2.4:8 2.8:9 3.7:10 3.8:11 4.0:12 4.1:13",
        advertised=0,
    ),
    _api(
        key=1,
        name="fetch",
        low=4,
        high=18,
        flexible=12,
        releases=(
            "0.10.0:2 0.10.1:3 0.11.0:5 1.0:6 1.1:7 2.0:8 2.1:10 2.3:11 2.7:12 3.1:13 3.5:15 "
            "3.7:16 3.9:17 4.1:18"
        ),
    ),
    _api(
        key=2,
        name="list_offsets",
        low=1,
        high=11,
        flexible=6,
        releases=(
            "0.10.0:0 0.10.1:1 0.11.0:2 2.0:3 2.1:4 2.2:5 2.8:6 3.0:7 3.5:8 3.9:9 4.0:10 4.2:11"
        ),
    ),
    _api(
        key=3,
        name="metadata",
        low=0,
        high=13,
        flexible=9,
        releases="0.10.0:1 0.10.1:2 0.11.0:4 1.0:5 2.0:6 2.1:7 2.3:8 2.4:9 2.8:11 3.1:12 4.0:13",
    ),
    _api(8, "offset_commit", 2, 10, 8, "0.10.0:2 0.11.0:3 2.0:4 2.1:6 2.3:7 2.4:8 3.7:9 4.2:10"),
    _api(
        key=9,
        name="offset_fetch",
        low=1,
        high=10,
        flexible=6,
        releases="0.10.0:1 0.10.2:2 0.11.0:3 2.0:4 2.1:5 2.4:6 2.5:7 3.0:8 3.7:9 4.2:10",
    ),
    _api(10, "find_coordinator", 0, 6, 3, "0.10.0:0 0.11.0:1 2.0:2 2.4:3 3.0:4 3.8:5 3.9:6"),
    _api(
        11, "join_group", 0, 9, 6, "0.10.0:0 0.10.1:1 0.11.0:2 2.0:3 2.2:4 2.3:5 2.4:6 2.5:7 3.2:9"
    ),
    _api(12, "heartbeat", 0, 4, 4, "0.10.0:0 0.11.0:1 2.0:2 2.3:3 2.4:4"),
    _api(13, "leave_group", 0, 5, 4, "0.10.0:0 0.11.0:1 2.0:2 2.4:4 3.2:5"),
    _api(14, "sync_group", 0, 5, 4, "0.10.0:0 0.11.0:1 2.0:2 2.3:3 2.4:4 2.5:5"),
    _api(15, "describe_groups", 0, 6, 5, "0.10.0:0 0.11.0:1 2.0:2 2.3:3 2.4:5 4.0:6"),
    _api(16, "list_groups", 0, 5, 3, "0.10.0:0 0.11.0:1 2.0:2 2.4:3 2.6:4 3.8:5"),
    _api(17, "sasl_handshake", 0, 1, _NEVER, "0.10.0:0 1.0:1"),
    _api(18, "api_versions", 0, 4, 3, "0.10.0:0 0.11.0:1 2.0:2 2.4:3 3.9:4"),
    _api(19, "create_topics", 2, 7, 5, "0.10.1:0 0.10.2:1 0.11.0:2 2.0:3 2.4:5 2.7:6 2.8:7"),
    _api(20, "delete_topics", 1, 6, 4, "0.10.1:0 0.11.0:1 2.0:2 2.1:3 2.4:4 2.7:5 2.8:6"),
    _api(21, "delete_records", 0, 2, 2, "0.11.0:0 2.0:1 2.6:2"),
    _api(22, "init_producer_id", 0, 6, 2, "0.11.0:0 2.0:1 2.4:2 2.5:3 2.7:4 3.8:5"),
    _api(23, "offset_for_leader_epoch", 2, 4, 4, "0.11.0:0 2.0:1 2.1:2 2.3:3 2.8:4"),
    _api(24, "add_partitions_to_txn", 0, 5, 3, "0.11.0:0 2.0:1 2.7:2 2.8:3 3.6:4 3.8:5"),
    _api(25, "add_offsets_to_txn", 0, 4, 3, "0.11.0:0 2.0:1 2.7:2 2.8:3 3.8:4"),
    _api(26, "end_txn", 0, 5, 3, "0.11.0:0 2.0:1 2.7:2 2.8:3 3.8:4 4.0:5"),
    _api(27, "write_txn_markers", 1, 2, 1, "0.11.0:0 2.8:1 4.2:2"),
    _api(28, "txn_offset_commit", 0, 5, 3, "0.11.0:0 2.0:1 2.1:2 2.5:3 3.8:4 4.0:5"),
    _api(29, "describe_acls", 1, 3, 2, "0.11.0:0 2.0:1 2.5:2 3.3:3"),
    _api(30, "create_acls", 1, 3, 2, "0.11.0:0 2.0:1 2.5:2 3.3:3"),
    _api(31, "delete_acls", 1, 3, 2, "0.11.0:0 2.0:1 2.5:2 3.3:3"),
    _api(32, "describe_configs", 1, 4, 4, "0.11.0:0 1.1:1 2.0:2 2.6:3 2.8:4"),
    _api(33, "alter_configs", 0, 2, 2, "0.11.0:0 2.0:1 2.8:2"),
    _api(34, "alter_replica_log_dirs", 1, 2, 2, "1.0:0 2.0:1 2.8:2"),
    _api(35, "describe_log_dirs", 1, 5, 2, "1.0:0 2.0:1 2.6:2 3.2:3 3.3:4 4.3:5"),
    _api(36, "sasl_authenticate", 0, 2, 2, "1.0:0 2.2:1 2.5:2"),
    _api(37, "create_partitions", 0, 3, 2, "1.0:0 2.0:1 2.5:2 2.7:3"),
    _api(38, "create_delegation_token", 1, 3, 2, "1.1:0 2.0:1 2.4:2 3.3:-1 3.6:3"),
    _api(39, "renew_delegation_token", 1, 2, 2, "1.1:0 2.0:1 2.5:2 3.3:-1 3.6:2"),
    _api(40, "expire_delegation_token", 1, 2, 2, "1.1:0 2.0:1 2.5:2 3.3:-1 3.6:2"),
    _api(41, "describe_delegation_token", 1, 3, 2, "1.1:0 2.0:1 2.5:2 3.3:-1 3.6:3"),
    _api(42, "delete_groups", 0, 2, 2, "1.1:0 2.0:1 2.4:2"),
    _api(43, "elect_leaders", 0, 2, 2, "2.2:0 2.4:2"),
    _api(44, "incremental_alter_configs", 0, 1, 1, "2.3:0 2.4:1"),
    _api(45, "alter_partition_reassignments", 0, 1, 0, "2.4:0 4.1:1"),
    _api(46, "list_partition_reassignments", 0, 0, 0, "2.4:0"),
    _api(47, "offset_delete", 0, 0, _NEVER, "2.4:0"),
    _api(48, "describe_client_quotas", 0, 1, 1, "2.6:0 2.8:1"),
    _api(49, "alter_client_quotas", 0, 1, 1, "2.6:0 2.8:1"),
    _api(50, "describe_user_scram_credentials", 0, 0, 0, "2.7:0 3.3:-1 3.5:0"),
    _api(51, "alter_user_scram_credentials", 0, 0, 0, "2.7:0 3.3:-1 3.5:0"),
    _api(55, "describe_quorum", 0, 2, 0, "3.3:1 3.9:2"),
    _api(57, "update_features", 0, 2, 0, "2.7:0 3.3:1 4.0:2"),
    _api(60, "describe_cluster", 0, 2, 0, "2.8:0 3.7:1 4.0:2"),
    _api(61, "describe_producers", 0, 0, 0, "2.8:0"),
    _api(64, "unregister_broker", 0, 0, 0, "3.3:0"),
    _api(65, "describe_transactions", 0, 0, 0, "3.0:0"),
    _api(66, "list_transactions", 0, 2, 0, "3.0:0 3.8:1 4.1:2"),
    _api(71, "get_telemetry_subscriptions", 0, 0, 0, "3.7:0"),
    _api(72, "push_telemetry", 0, 0, 0, "3.7:0"),
    # To 4.0 it was ListClientMetricsResources.
    _api(74, "list_config_resources", 0, 1, 0, "3.7:0 4.1:1"),
    _api(75, "describe_topic_partitions", 0, 0, 0, "3.8:0"),
    _api(80, "add_raft_voter", 0, 1, 0, "3.9:0 4.2:1"),
    _api(81, "remove_raft_voter", 0, 0, 0, "3.9:0"),
)

BY_KEY: Final[dict[int, Api]] = {api.key: api for api in APIS}
BY_NAME: Final[dict[str, Api]] = {api.name: api for api in APIS}


NOT_SERVED: Final = -1
"""In place of a highest version: the API is not served at all."""

FIRST_METADATA_WITH_TOPIC_IDS: Final = 10
"""The first version of Metadata from which clients learn the ids of topics (KIP-516)."""
LAST_WITH_TOPIC_NAMES: Final = MappingProxyType(
    {"produce": 12, "fetch": 12, "offset_commit": 9, "offset_fetch": 9}
)
"""The last versions whose requests have the names of topics; later ones have their ids alone."""

RELEASES: Final = (
    *("0.10.0", "0.10.1", "0.10.2", "0.11.0", "1.0", "1.1"),
    *("2.0", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8"),
    *("3.0", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9"),
    *("4.0", "4.1", "4.2", "4.3"),
)
"""Every release that changed or kept the APIs, from the first that has ApiVersions on, in order."""

_INDISPENSABLE: Final = frozenset({"produce", "fetch", "list_offsets"})
"""Served in their lowest version where a release had none that is spoken here (0.10)."""

_RELEASE: Final = re.compile(r"v?(0\.\d+(?:\.\d+)?|[1-9]\d*\.\d+)(?:\.\d+)?")


def find_release(text: str) -> str:
    """The release that a text names: ``2.0`` for ``2.0``, ``2.0.1`` or ``v2.0``.

    A text that names several, as ``0.10`` does, is the last of them.

    :raises ValueError: With what is wrong, as the end of a sentence about the text.
    """
    found = _RELEASE.fullmatch(text)
    if found is None:
        raise ValueError("is not a release of Kafka, such as 2.0")
    release = found[1]
    for known in reversed(RELEASES):
        if known == release or known.startswith(f"{release}."):
            return known
    raise ValueError(f"is not a release that is known; they are {', '.join(RELEASES)}")


def highest_version(api: Api, release: str) -> int:
    """What a release's brokers served of an API (inclusive); NOT_SERVED where it had none.

    :param release: One of RELEASES.
    """
    position = RELEASES.index(release)
    highest = NOT_SERVED
    for change in api.releases.split():
        since, _, version = change.partition(":")
        if RELEASES.index(since) > position:
            break
        highest = int(version)
    return highest


def release_ceilings(release: str) -> dict[str, int]:
    """The highest versions to serve as a release did, by API name; NOT_SERVED for none.

    An API that a release had in versions only that are too old to be spoken here is not served,
    except those that no client can do without.

    :param release: One of RELEASES.
    """
    return {api.name: _ceiling(api, highest_version(api, release)) for api in APIS}


def ceilings_without_topic_ids(ceilings: Mapping[str, int]) -> dict[str, int]:
    """The ceilings that follow, by API name, where clients learn no topic ids from Metadata.

    Clients take it that a broker with the newer versions of the others has those of Metadata as
    well: a Java producer would send the id zero again and again.

    :param ceilings: The highest versions that are served, by API name, where not the highest.
    """
    metadata = ceilings.get("metadata", FIRST_METADATA_WITH_TOPIC_IDS)
    if metadata >= FIRST_METADATA_WITH_TOPIC_IDS:
        return {}
    return {
        name: last
        for name, last in LAST_WITH_TOPIC_NAMES.items()
        if ceilings.get(name, BY_NAME[name].max_version) > last
    }


STABLE_VERSIONS: Final[dict[str, int]] = {
    api.name: highest
    for api in APIS
    if (highest := highest_version(api, RELEASES[-1])) < api.max_version
}
"""The highest versions that the newest release advertises, by API name, of the APIs that have later
ones: those it calls unstable."""


def _ceiling(api: Api, highest: int) -> int:
    if highest >= api.min_version:
        return min(highest, api.max_version)
    return api.min_version if api.name in _INDISPENSABLE else NOT_SERVED
