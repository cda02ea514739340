"""Fixtures of the tests of the commands."""

from __future__ import annotations

import http.server
import os
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from fencepost.verbs.answers import Done
from fencepost.verbs.catalogue import VERBS
from fencepost.verbs.remote import ControlConnection
from tests.cli.shell import Shell, Stub
from tests.harness.cluster import Cluster, serve


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    """It is where commands look for their cluster."""
    state = Stub()

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            state.asked.append((self.command, self.path, self.rfile.read(length)))
            self.send_response(state.status)
            self.end_headers()
            self.wfile.write(state.body)

        do_GET = do_POST = do_DELETE = answer  # noqa: N815 - the names that http.server calls

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its base's name
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        state.url = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("FENCEPOST_CONTROL", state.url)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield state
        server.shutdown()
        thread.join()


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    for name in [each for each in os.environ if each.startswith("FENCEPOST_")]:
        if name != "FENCEPOST_CONTROL":
            monkeypatch.delenv(name)
    return Shell(capsys)


@pytest.fixture(scope="package")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers with a clock of their own."""
    cluster = serve(tmp_path_factory.mktemp("shared") / "log", "--clock", "manual")
    assert cluster.process is not None
    yield cluster
    cluster.process.stop(expect=0)


@pytest.fixture
def control(shared: Cluster, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where three brokers are steered, everything forgotten; broker 1 leads t-0."""
    assert shared.control is not None
    monkeypatch.setenv("FENCEPOST_CONTROL", shared.control)
    with closing(ControlConnection(shared.control)) as line:
        line.call(VERBS["reset"], Done, {}, {})
    _create(shared)
    return shared.control


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """As `control`, of this test's own: nothing has happened in it before."""
    cluster = serve(tmp_path / "log", "--clock", "manual")
    assert cluster.process is not None
    assert cluster.control is not None
    monkeypatch.setenv("FENCEPOST_CONTROL", cluster.control)
    _create(cluster)
    yield cluster.control
    cluster.process.stop(expect=0)


def _create(cluster: Cluster) -> None:
    topic = {"Name": "t", "NumPartitions": -1, "ReplicationFactor": -1}
    assignment = {"PartitionIndex": 0, "BrokerIds": [1, 2, 3]}
    body = {"Topics": [{**topic, "Assignments": [assignment]}], "timeoutMs": 20_000}
    with cluster.connect() as connection:
        answer = connection.call("CreateTopics", 7, body)
    assert answer["Topics"][0]["ErrorCode"] == 0, answer
