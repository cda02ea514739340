"""The clusters of tests: the options of each, and the processes that serve them.

Options are those of ``fencepost_options``, and above them those of the test's own markers. Each
pytest process keeps its own processes of clusters; under xdist these are each worker's.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import pytest
from msgspec import Struct, field

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.topic_text import config_texts, topic_fields
from fencepost.verbs import serving
from fencepost.verbs.bodies import Listed, NewTopicBody
from fencepost.verbs.model import Before
from fencepost.verbs.problems import InvalidModel
from fencepost.verbs.serving import ClusterBody, NodeId

if TYPE_CHECKING:
    from fencepost.testing.cluster import AsyncCluster, Cluster

MARKER: Final = "fencepost"
MAX_KEPT: Final = 4
"""Processes that wait for a test with their options; of more, the one that waits longest stops."""


class InvalidOptions(Exception):
    """The options contradict each other. The text is one line, for the author of the test."""


def _read_topic(given: object) -> object:
    """``orders:3:2,retention.ms=1000`` says the same as ``serve --topic`` does with it."""
    if isinstance(given, str):
        return topic_fields(given)
    if isinstance(given, dict) and "configs" in given:
        return {**given, "configs": config_texts(given["configs"])}
    return given


_Configs: TypeAlias = Annotated[dict[str, str], Before(config_texts)]


class ClusterOptions(ClusterBody):
    """A cluster for a test. Its configs may be numbers and switches."""

    configs: _Configs = field(default_factory=dict)
    broker_configs: dict[NodeId, _Configs] = field(default_factory=dict)
    topics: Listed[Annotated[NewTopicBody, Before(_read_topic)]] = ()
    """Created before the test begins: ``"orders:3:2"``, or what ``create_topic`` takes."""

    @property
    def server_key(self) -> tuple[str, ...]:
        """Tests for which it is the same share a process."""
        return tuple(self.arguments())


def read_options(options: Mapping[str, object], item: pytest.Item | None) -> ClusterOptions:
    """The options of a test: each argument of its nearest marker that has it, else the option.

    :param options: Of the fixture ``fencepost_options``.
    :param item: The test; None for the cluster of a session.
    :raises InvalidOptions: When something is unknown or wrong.
    """
    given = dict(options)
    source = "fencepost_options"
    for mark in reversed(list(item.iter_markers(MARKER)) if item else []):
        source = f"@pytest.mark.{MARKER}"
        if mark.args:
            raise InvalidOptions(f"{source} takes arguments by name only, such as brokers=3")
        given |= mark.kwargs
    try:
        return ClusterOptions.model_validate(given)
    except InvalidModel as error:
        raise InvalidOptions(f"{source}: {error}") from None


class Server(Struct, frozen=True, kw_only=True, eq=False):
    """A process, and the sync and the async API of its cluster."""

    serving: serving.Serving
    cluster: "Cluster"
    cluster_async: "AsyncCluster"


class ServerPool:
    """Keeps a process for each kind of cluster that tests ask for.

    :param logs: The folder of their logs.
    """

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._started: list[Server] = []
        self._kept: OrderedDict[tuple[str, ...], Server] = OrderedDict()

    def fresh(self, wanted: ClusterOptions) -> Server:
        """A cluster without state except for the topics of its options.

        :raises CannotServe: When it does not come up.
        :raises VerbError: When a topic can't be created.
        """
        server = self._kept.get(wanted.server_key)
        is_reset = server is not None and _is_reset(server, wanted)
        if server is None or not is_reset:
            self._kept[wanted.server_key] = server = self._start(wanted)
        self._kept.move_to_end(wanted.server_key)
        if len(self._kept) > MAX_KEPT:
            _, oldest = self._kept.popitem(last=False)
            _stop([oldest])
        if not is_reset:
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
        log = self._logs / f"{len(self._started) + 1}.log"
        served = serving.start(wanted, log, meanwhile=_import_cluster)
        from fencepost.testing.cluster import AsyncCluster, Cluster

        server = Server(
            serving=served,
            cluster=Cluster(
                served.bootstrap,
                served.control,
                listeners=served.listeners,
                bootstrap_controllers=served.controller,
            ),
            cluster_async=AsyncCluster(
                served.bootstrap,
                served.control,
                listeners=served.listeners,
                bootstrap_controllers=served.controller,
            ),
        )
        self._started.append(server)
        return server


def _import_cluster() -> None:
    """The methods of a cluster, which take a third as long to import as a server to start."""
    for name in ("cluster", "report"):
        import_module(f"fencepost.testing.{name}")


def _is_reset(server: Server, wanted: ClusterOptions) -> bool:
    """Reset a process, unless it is of no use any more: the last test may have ended it.

    A client of that test may run on. The topics come with the reset, so that it can't have the
    broker create one of the same name before.

    :raises VerbError: When a topic can't be created.
    """
    from fencepost.verbs.remote import Refused, Unreachable  # there is a cluster, hence its methods

    try:
        if wanted.topics:
            server.cluster.reset(topics=[topic.model_dump() for topic in wanted.topics])
        else:
            server.serving.reset()
    except (serving.CannotServe, Unreachable):
        return False
    except Refused as error:
        if error.code != ErrorCode.BROKER_NOT_AVAILABLE.name:  # its port is another process's
            raise
        return False
    return True


def _create_topics(cluster: "Cluster", wanted: ClusterOptions) -> None:
    for topic in wanted.topics:
        cluster.create_topic(**topic.model_dump())


def _stop(servers: Sequence[Server]) -> None:
    """Kill processes: no state of theirs is kept."""
    for server in servers:
        server.cluster.remote.close()
        server.cluster_async.remote.close()
        server.serving.child.kill()
    for server in servers:
        server.serving.stop()
