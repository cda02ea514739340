"""The fixtures, the marker, and what is added to the report of a failing test.

``fencepost``
    A `Cluster` of the test's own: empty but for the topics that the marker names. The process
    behind it is kept and reset, so that it costs some milliseconds.
``fencepost_session``
    A `Cluster` for the whole run (under xdist: for a worker), which is never reset.
``fencepost_async``, ``fencepost_session_async``
    The same two clusters for ``async`` tests, as an `AsyncCluster`, whatever runs them on asyncio.
``fencepost_options``
    What clusters are like where no marker says otherwise; a suite has its own fixture of this name.
``@pytest.mark.fencepost(brokers=3, topics=["orders:3:3"], ...)``
    What the cluster of ``fencepost`` is like: the arguments of `servers.ClusterOptions`.

This module is imported by every run of pytest where fencepost is installed, so all else is imported
when a test first asks for a cluster.
"""

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from fencepost.testing.cluster import AsyncCluster, Cluster
    from fencepost.testing.report import ReportBaseline
    from fencepost.testing.servers import Server, ServerPool

_MARKER: Final = (
    "fencepost(brokers=1, topics=[], configs={}, clock='real', ...): what the cluster of the"
    " fixture `fencepost` is like; the arguments of fencepost.testing.servers.ClusterOptions"
)
_OF_SESSION: Final = frozenset({"fencepost_session", "fencepost_session_async"})

_baselines: Final[pytest.StashKey["list[ReportBaseline]"]] = pytest.StashKey()
_session: Final[pytest.StashKey["Server"]] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", _MARKER)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note how far the session's cluster is, if the test uses it."""
    item.stash[_baselines] = []
    server = item.config.stash.get(_session, None)
    if server is not None and not _OF_SESSION.isdisjoint(getattr(item, "fixturenames", ())):
        from fencepost.testing.report import take_baseline

        item.stash[_baselines].append(take_baseline(server))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to a failing test's report what happened at its clusters, and what they warn of."""
    report = yield
    if report.failed and call.when != "teardown":
        for each in item.stash.get(_baselines, []):
            report.sections.extend(each.sections())
    return report


@pytest.fixture(scope="session", name="fencepost_options")
def options_fixture() -> Mapping[str, object]:
    """What clusters are like where no marker says otherwise: arguments of the marker."""
    return {}


@pytest.fixture(name="fencepost")
def cluster_fixture(_fencepost_server: "Server") -> "Cluster":
    """A Kafka cluster of the test's own, as its markers say."""
    return _fencepost_server.cluster


@pytest.fixture(name="fencepost_async")
def async_cluster_fixture(_fencepost_server: "Server") -> "AsyncCluster":
    """The cluster of ``fencepost``, for an async test."""
    return _fencepost_server.cluster_async


@pytest.fixture(scope="session", name="fencepost_session")
def session_cluster_fixture(_fencepost_session_server: "Server") -> "Cluster":
    """A Kafka cluster for the whole run, as ``fencepost_options`` say."""
    return _fencepost_session_server.cluster


@pytest.fixture(scope="session", name="fencepost_session_async")
def session_async_cluster_fixture(_fencepost_session_server: "Server") -> "AsyncCluster":
    """The cluster of ``fencepost_session``, for async tests."""
    return _fencepost_session_server.cluster_async


@pytest.fixture(scope="session", name="_fencepost_servers")
def servers_fixture(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[ServerPool]":
    """The processes of this run."""
    from fencepost.testing.servers import ServerPool

    servers = ServerPool(tmp_path_factory.mktemp("fencepost"))
    yield servers
    servers.stop()


@pytest.fixture(name="_fencepost_server")
def server_fixture(
    request: pytest.FixtureRequest,
    fencepost_options: Mapping[str, object],
    _fencepost_servers: "ServerPool",
) -> "Server":
    """A process with a fresh cluster."""
    from fencepost.testing.servers import read_options

    with _reporting_setup_errors():
        server = _fencepost_servers.fresh(read_options(fencepost_options, request.node))
    from fencepost.testing.report import fresh_baseline  # imported while the first server started

    request.node.stash[_baselines].append(fresh_baseline(server))
    return server


@pytest.fixture(scope="session", name="_fencepost_session_server")
def session_server_fixture(
    request: pytest.FixtureRequest,
    fencepost_options: Mapping[str, object],
    _fencepost_servers: "ServerPool",
) -> "Server":
    """A process for the session's cluster."""
    from fencepost.testing.servers import read_options

    with _reporting_setup_errors():
        server = _fencepost_servers.dedicated(read_options(fencepost_options, None))
    request.config.stash[_session] = server
    return server


@contextmanager
def _reporting_setup_errors() -> Iterator[None]:
    """Say in one line what the test's author, or the machine, has got wrong."""
    try:
        yield
    except Exception as error:
        from fencepost.testing.servers import InvalidOptions
        from fencepost.verbs.remote import VerbError
        from fencepost.verbs.serving import CannotServe

        if isinstance(error, CannotServe | VerbError | InvalidOptions):
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        raise
