"""What releases of Apache Kafka served, for ``--like-kafka``: the highest version of each API.

The versions are those of the message definitions (``common/message`` in kafka-clients; before 2.2
the schemas of ``Protocol`` and of the requests) of a release's brokers: with ZooKeeper to 3.2, in
KRaft mode from 3.3 on, where it left preview. Versions that a release called unstable do not count.
"""

import re
from collections.abc import Mapping
from typing import Final

from fencepost.protocol.apis import APIS, Api

NOT_SERVED: Final = -1
"""In place of a highest version: the API is not there at all."""

RELEASES: Final = (
    *("0.10.0", "0.10.1", "0.10.2", "0.11.0", "1.0", "1.1"),
    *("2.0", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8"),
    *("3.0", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9"),
    *("4.0", "4.1", "4.2", "4.3"),
)
"""Every release that changed or kept the APIs, from the first that has ApiVersions on, in order."""

_INDISPENSABLE: Final = frozenset({"produce", "fetch", "list_offsets"})
"""Served in their lowest version where a release had none that is spoken here (0.10)."""

_CHANGES: Final[Mapping[str, str]] = {
    "produce": "0.10.0:2 0.11.0:3 1.0:5 2.0:6 2.1:7 2.4:8 2.8:9 3.7:10 3.8:11 4.0:12 4.1:13",
    "fetch": "0.10.0:2 0.10.1:3 0.11.0:5 1.0:6 1.1:7 2.0:8 2.1:10 2.3:11 2.7:12 3.1:13 3.5:15"
    " 3.7:16 3.9:17 4.1:18",
    "list_offsets": "0.10.0:0 0.10.1:1 0.11.0:2 2.0:3 2.1:4 2.2:5 2.8:6 3.0:7 3.5:8 3.9:9 4.0:10"
    " 4.2:11",
    "metadata": "0.10.0:1 0.10.1:2 0.11.0:4 1.0:5 2.0:6 2.1:7 2.3:8 2.4:9 2.8:11 3.1:12 4.0:13",
    "offset_commit": "0.10.0:2 0.11.0:3 2.0:4 2.1:6 2.3:7 2.4:8 3.7:9 4.2:10",
    "offset_fetch": "0.10.0:1 0.10.2:2 0.11.0:3 2.0:4 2.1:5 2.4:6 2.5:7 3.0:8 3.7:9 4.2:10",
    "find_coordinator": "0.10.0:0 0.11.0:1 2.0:2 2.4:3 3.0:4 3.8:5 3.9:6",
    "join_group": "0.10.0:0 0.10.1:1 0.11.0:2 2.0:3 2.2:4 2.3:5 2.4:6 2.5:7 3.2:9",
    "heartbeat": "0.10.0:0 0.11.0:1 2.0:2 2.3:3 2.4:4",
    "leave_group": "0.10.0:0 0.11.0:1 2.0:2 2.4:4 3.2:5",
    "sync_group": "0.10.0:0 0.11.0:1 2.0:2 2.3:3 2.4:4 2.5:5",
    "describe_groups": "0.10.0:0 0.11.0:1 2.0:2 2.3:3 2.4:5 4.0:6",
    "list_groups": "0.10.0:0 0.11.0:1 2.0:2 2.4:3 2.6:4 3.8:5",
    "api_versions": "0.10.0:0 0.11.0:1 2.0:2 2.4:3 3.9:4",
    "create_topics": "0.10.1:0 0.10.2:1 0.11.0:2 2.0:3 2.4:5 2.7:6 2.8:7",
    "delete_topics": "0.10.1:0 0.11.0:1 2.0:2 2.1:3 2.4:4 2.7:5 2.8:6",
    "delete_records": "0.11.0:0 2.0:1 2.6:2",
    "init_producer_id": "0.11.0:0 2.0:1 2.4:2 2.5:3 2.7:4 3.8:5",
    "offset_for_leader_epoch": "0.11.0:0 2.0:1 2.1:2 2.3:3 2.8:4",
    "describe_configs": "0.11.0:0 1.1:1 2.0:2 2.6:3 2.8:4",
    "alter_configs": "0.11.0:0 2.0:1 2.8:2",
    "describe_log_dirs": "1.0:0 2.0:1 2.6:2 3.2:3 3.3:4 4.3:5",
    "create_partitions": "1.0:0 2.0:1 2.5:2 2.7:3",
    "delete_groups": "1.1:0 2.0:1 2.4:2",
    "elect_leaders": "2.2:0 2.4:2",
    "incremental_alter_configs": "2.3:0 2.4:1",
    "alter_partition_reassignments": "2.4:0 4.1:1",
    "list_partition_reassignments": "2.4:0",
    "offset_delete": "2.4:0",
    "describe_quorum": "3.3:1 3.9:2",
    "update_features": "2.7:0 3.3:1 4.0:2",
    "describe_cluster": "2.8:0 3.7:1 4.0:2",
    "describe_producers": "2.8:0",
    "get_telemetry_subscriptions": "3.7:0",
    "push_telemetry": "3.7:0",
    "describe_topic_partitions": "3.8:0",
}
"""Which release brought which highest version, in order; before the first there was no such API."""

_RELEASE: Final = re.compile(r"v?(0\.\d+(?:\.\d+)?|[1-9]\d*\.\d+)(?:\.\d+)?")


def find_release(text: str) -> str:
    """The release that is meant: ``2.0`` by ``2.0``, ``2.0.1`` or ``v2.0``.

    What ``0.10`` leaves open is the last of them.

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
    for change in _CHANGES[api.name].split():
        since, _, version = change.partition(":")
        if RELEASES.index(since) > position:
            break
        highest = int(version)
    return highest


def release_ceilings(release: str) -> dict[str, int]:
    """The highest versions to serve as a release did, by API name; NOT_SERVED for none.

    An API that a release had in versions only that are too old to be spoken here is not served,
    except those that nobody can do without.

    :param release: One of RELEASES.
    """
    return {api.name: _ceiling(api, highest_version(api, release)) for api in APIS}


def _ceiling(api: Api, highest: int) -> int:
    if highest >= api.min_version:
        return min(highest, api.max_version)
    return api.min_version if api.name in _INDISPENSABLE else NOT_SERVED
