"""What a failing test's report tells of its cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fencepost.testing import Cluster
from fencepost.testing.servers import (
    MAX_MESSAGE,
    ReportBaseline,
    ServerPool,
    format_exchanges,
    fresh_baseline,
    read_options,
    take_baseline,
)
from fencepost.verbs.answers.cluster import ExchangeState
from tests.harness.wire import Connection
from tests.testing.runs import UNDER_XDIST, pytest_run

if TYPE_CHECKING:
    from fencepost.testing.servers import Server


def ask(cluster: Cluster, client_id: str) -> None:
    host, _, port = cluster.bootstrap.partition(":")
    with Connection((host, int(port)), client_id=client_id) as connection:
        connection.call("Metadata", 12, {"Topics": None})


def told(watched: ReportBaseline) -> str:
    return "".join(f"{heading}\n{text}" for heading, text in watched.sections())


def test_nothing_is_told_of_a_cluster_that_nobody_used(server: Server) -> None:
    assert told(fresh_baseline(server)) == ""


def test_the_requests_of_the_test_are_told(server: Server) -> None:
    watched = fresh_baseline(server)
    ask(server.cluster, "checkout")
    text = told(watched)
    assert f"requests and answers at {server.serving.bootstrap}" in text
    assert 'checkout -> broker 1: Metadata v12 {"topics": null' in text
    assert '"cluster_id": "' in text


def test_what_was_before_the_test_is_not_told(server: Server) -> None:
    ask(server.cluster, "before")
    watched = take_baseline(server)
    ask(server.cluster, "since")
    assert "before ->" not in told(watched)
    assert "since ->" in told(watched)


def test_a_server_that_is_gone_is_told(tmp_path: Path) -> None:
    servers = ServerPool(tmp_path)
    server = servers.dedicated(read_options({}, None))
    watched = fresh_baseline(server)
    server.serving.stop()
    servers.stop()
    text = told(watched)
    assert "no control API answers at http://127.0.0.1:" in text
    assert '"event": "stopping"' in text


def exchange(**given: object) -> ExchangeState:
    example = ExchangeState.model_json_schema()["examples"][0]
    fields = {
        "number": 7,
        "time_ms": 1000,
        "answered_ms": 1012,
        "broker": 2,
        "connection": "here-there",
        "client_id": "checkout",
        "api": "Fetch",
        "version": 12,
        "request": {"a": 1},
        "response": {"b": 2},
    }
    return ExchangeState.model_validate(example | fields | given)


def test_an_exchange_is_two_lines() -> None:
    later = exchange(number=9, time_ms=1500, client_id=None, answered_ms=None, response=None)
    assert format_exchanges([exchange(), later]) == (
        '#7 +0 ms checkout -> broker 2: Fetch v12 {"a": 1}\n'
        '    after 12 ms: {"b": 2}\n'
        '#9 +500 ms here-there -> broker 2: Fetch v12 {"a": 1}\n'
        "    no answer\n"
    )
    assert format_exchanges([]) == ""


def test_a_long_message_is_clipped() -> None:
    head, answer = format_exchanges([exchange(request={"a": "x" * 1000})]).splitlines()
    assert head.endswith("xxx...")
    assert len(head) < MAX_MESSAGE + 60
    assert answer == '    after 12 ms: {"b": 2}'


# -- in a run -----------------------------------------------------------------------------------

SOURCE = """
    import socket
    import struct

    import pytest

    def ask(bootstrap, client_id):
        '''Metadata v0 of all topics.'''
        host, port = bootstrap.split(":")
        name = client_id.encode()
        head = struct.pack(">hhih", 3, 0, 1, len(name)) + name + struct.pack(">i", 0)
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(struct.pack(">i", len(head)) + head)
            assert connection.recv(4)

    def test_that_passes(fencepost, fencepost_session):
        ask(fencepost.bootstrap, "in-passing")
        ask(fencepost_session.bootstrap, "in-passing")

    def test_that_fails(fencepost):
        ask(fencepost.bootstrap, "own")
        assert fencepost.topics()

    def test_that_fails_with_the_sessions(fencepost_session):
        ask(fencepost_session.bootstrap, "shared")
        assert fencepost_session.topics()

    @pytest.fixture
    def made(fencepost):
        ask(fencepost.bootstrap, "setting-up")
        raise OSError("no more")

    def test_whose_setup_fails(made):
        pass
"""


@pytest.mark.parametrize("workers", [0, 1])
def test_a_failing_test_shows_what_its_cluster_was_asked(tmp_path: Path, workers: int) -> None:
    options = ["-rP", f"-n{workers}"]  # what is captured of tests that pass is shown as well
    done = pytest_run(tmp_path, SOURCE, *options, plugins=UNDER_XDIST, code=1)
    assert "2 failed, 1 passed, 1 error" in done.out
    for client_id in ("own", "shared", "setting-up"):
        assert done.out.count(f" {client_id} -> broker 1: Metadata v0 ") == 1
    assert "in-passing ->" not in done.out


def test_the_log_of_a_failing_test_is_shown(tmp_path: Path) -> None:
    source = """
        import pytest

        @pytest.mark.fencepost(log_level="debug", topics=["orders"])
        def test_that_fails(fencepost):
            import socket
            host, port = fencepost.bootstrap.split(":")
            with socket.create_connection((host, int(port))) as connection:
                connection.sendall(bytes.fromhex("ffffffff"))
                assert connection.recv(1) == b"what never comes"
    """
    done = pytest_run(tmp_path, source, code=1)
    assert "fencepost: its log, " in done.out
    assert '"event": "' in done.out
