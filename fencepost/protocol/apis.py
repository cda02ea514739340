"""The APIs that a fencepost broker serves, and their versions.

One table drives dispatch, ApiVersions, the version check and the support matrix in the README. What
is not in it is not advertised and closes the connection that asks for it, as at a real broker.
"""

from dataclasses import dataclass, field
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

    title: str = field(init=False, compare=False)
    """Kafka's own name, such as ``ListOffsets``."""

    def __post_init__(self) -> None:
        # Once: the title is asked for with every request.
        title = "".join(word.capitalize() for word in self.name.split("_"))
        object.__setattr__(self, "title", title)

    def is_flexible(self, version: int) -> bool:
        """Whether this version has compact types and tagged fields (KIP-482)."""
        return version >= self.first_flexible

    def serves(self, version: int) -> bool:
        """Whether a request of this version is answered."""
        return self.min_version <= version <= self.max_version


def _api(
    key: int, name: str, low: int, high: int, flexible: int, advertised: int | None = None
) -> Api:
    return Api(
        key=key,
        name=name,
        min_version=low,
        max_version=high,
        first_flexible=flexible,
        advertised_min=low if advertised is None else advertised,
    )


_NEVER: Final = 1 << 15

APIS: Final[tuple[Api, ...]] = (
    # librdkafka 2.0.2 sends gzip, snappy and lz4 uncompressed unless Produce starts at 0.
    _api(0, "produce", 3, 13, 9, advertised=0),
    _api(1, "fetch", 4, 18, 12),
    _api(2, "list_offsets", 1, 11, 6),
    _api(3, "metadata", 0, 13, 9),
    _api(8, "offset_commit", 2, 10, 8),
    _api(9, "offset_fetch", 1, 10, 6),
    _api(10, "find_coordinator", 0, 6, 3),
    _api(11, "join_group", 0, 9, 6),
    _api(12, "heartbeat", 0, 4, 4),
    _api(13, "leave_group", 0, 5, 4),
    _api(14, "sync_group", 0, 5, 4),
    _api(15, "describe_groups", 0, 6, 5),
    _api(16, "list_groups", 0, 5, 3),
    _api(18, "api_versions", 0, 4, 3),
    _api(19, "create_topics", 2, 7, 5),
    _api(20, "delete_topics", 1, 6, 4),
    _api(21, "delete_records", 0, 2, 2),
    _api(22, "init_producer_id", 0, 6, 2),
    _api(23, "offset_for_leader_epoch", 2, 4, 4),
    _api(32, "describe_configs", 1, 4, 4),
    _api(33, "alter_configs", 0, 2, 2),
    _api(35, "describe_log_dirs", 1, 5, 2),
    _api(37, "create_partitions", 0, 3, 2),
    _api(42, "delete_groups", 0, 2, 2),
    _api(43, "elect_leaders", 0, 2, 2),
    _api(44, "incremental_alter_configs", 0, 1, 1),
    _api(45, "alter_partition_reassignments", 0, 1, 0),
    _api(46, "list_partition_reassignments", 0, 0, 0),
    _api(47, "offset_delete", 0, 0, _NEVER),
    _api(55, "describe_quorum", 0, 2, 0),
    _api(57, "update_features", 0, 2, 0),
    _api(60, "describe_cluster", 0, 2, 0),
    _api(61, "describe_producers", 0, 0, 0),
    _api(71, "get_telemetry_subscriptions", 0, 0, 0),
    _api(72, "push_telemetry", 0, 0, 0),
    _api(75, "describe_topic_partitions", 0, 0, 0),
)

BY_KEY: Final[dict[int, Api]] = {api.key: api for api in APIS}
BY_NAME: Final[dict[str, Api]] = {api.name: api for api in APIS}
