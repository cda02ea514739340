"""A pytest plugin: a Kafka cluster for each test, fresh in milliseconds, steered from the test.

pytest loads it by itself where fencepost is installed. The fixtures and the marker are in `plugin`;
`Cluster` and `AsyncCluster` are what the fixtures give. Nothing but pytest is imported before a
test asks for a cluster.
"""

from typing import TYPE_CHECKING

try:
    from fencepost.testing.plugin import (
        async_cluster_fixture,
        cluster_fixture,
        options_fixture,
        pytest_configure,
        pytest_runtest_makereport,
        pytest_runtest_setup,
        server_fixture,
        servers_fixture,
        session_async_cluster_fixture,
        session_cluster_fixture,
        session_server_fixture,
    )
except ModuleNotFoundError as missing:
    if missing.name != "pytest":
        raise
    # Then there is no plugin either, and `Cluster` does without.

if TYPE_CHECKING:
    from fencepost.testing.cluster import AsyncCluster, Cluster

__all__ = [
    "AsyncCluster",
    "Cluster",
    "async_cluster_fixture",
    "cluster_fixture",
    "options_fixture",
    "pytest_configure",
    "pytest_runtest_makereport",
    "pytest_runtest_setup",
    "server_fixture",
    "servers_fixture",
    "session_async_cluster_fixture",
    "session_cluster_fixture",
    "session_server_fixture",
]


def __getattr__(name: str) -> object:
    if name in ("AsyncCluster", "Cluster"):
        from fencepost.testing import cluster

        return getattr(cluster, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
