"""The processes that serve the tests of one pytest process; under xdist each worker has its own."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fencepost.testing.cluster import AsyncCluster, Cluster
from fencepost.testing.options import ClusterOptions
from fencepost.verbs import serving

MAX_KEPT: Final = 4
"""Processes that wait for a test with their options; of more, the one that waits longest stops."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Server:
    """A process, and the two faces that tests see of it."""

    serving: serving.Serving
    cluster: Cluster
    cluster_async: AsyncCluster


class ServerPool:
    """Keeps a process for each kind of cluster that tests ask for.

    :param logs: The folder of their logs.
    """

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._started: list[Server] = []
        self._kept: OrderedDict[tuple[str, ...], Server] = OrderedDict()

    def fresh(self, wanted: ClusterOptions) -> Server:
        """A cluster in which there is nothing but the topics that are wanted.

        :raises CannotServe: When it does not come up.
        :raises VerbError: When a topic can't be created.
        """
        server = self._kept.pop(wanted.server_key, None)
        if server is None or not _is_reset(server):
            server = self._start(wanted)
        self._kept[wanted.server_key] = server
        if len(self._kept) > MAX_KEPT:
            _, oldest = self._kept.popitem(last=False)
            _stop([oldest])
        _create_topics(server.cluster, wanted)
        return server

    def dedicated(self, wanted: ClusterOptions) -> Server:
        """A cluster that no other test uses, and that is never reset.

        :raises CannotServe: When it does not come up.
        :raises VerbError: When a topic can't be created.
        """
        server = self._start(wanted)
        _create_topics(server.cluster, wanted)
        return server

    def stop(self) -> None:
        """Stop all processes."""
        _stop(self._started)

    def _start(self, wanted: ClusterOptions) -> Server:
        served = serving.start(wanted, self._logs / f"{len(self._started) + 1}.log")
        server = Server(
            serving=served,
            cluster=Cluster(served.bootstrap, served.control),
            cluster_async=AsyncCluster(served.bootstrap, served.control),
        )
        self._started.append(server)
        return server


def _is_reset(server: Server) -> bool:
    try:
        server.serving.reset()
    except serving.CannotServe:  # it has ended, perhaps by the hand of the last test
        return False
    return True


def _create_topics(cluster: Cluster, wanted: ClusterOptions) -> None:
    for topic in wanted.topics:
        cluster.create_topic(**topic.model_dump())


def _stop(servers: Sequence[Server]) -> None:
    """Stop processes, at once: there is nothing in them that anybody wants to keep."""
    for server in servers:
        server.cluster.remote.close()
        server.cluster_async.remote.close()
        server.serving.child.kill()
    for server in servers:
        server.serving.stop()
