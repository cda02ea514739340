from __future__ import annotations

from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from bench import control, rows, servers, wire


class Answering(BaseHTTPRequestHandler):
    """Answers an election by 409 and anything else by 200."""

    protocol_version = "HTTP/1.1"
    asked: list[tuple[str, str, bytes]]

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.asked.append((self.command, self.path, body))
        self.send_response(409 if self.path.endswith("/elect") else 200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def asked() -> list[tuple[str, str, bytes]]:
    return []


@pytest.fixture
def server(asked: list[tuple[str, str, bytes]]) -> Iterator[servers.Server]:
    """A server of which only the control port answers."""
    handler = type("Handler", (Answering,), {"asked": asked})
    listening = HTTPServer((servers.HOST, 0), handler)
    thread = Thread(target=listening.serve_forever)
    thread.start()
    first_port = listening.server_port - servers.BROKERS
    launch = servers.Launch(directory=Path(), port=first_port)
    yield servers.Server(kind=servers.Fencepost(), pid=0, launch=launch, first_metadata_s=0.0)
    listening.shutdown()
    thread.join()
    listening.server_close()


def test_a_call_is_timed_and_a_refusal_is_an_error(
    server: servers.Server, asked: list[tuple[str, str, bytes]]
) -> None:
    with control.Control(server) as connection:
        assert 0 < connection.ask("POST", "/hold", {"at": 3}) < 10_000
        with pytest.raises(wire.BadAnswer, match="/elect answered 409"):
            connection.ask("POST", "/elect")
        connection.ask("GET", "/after")
    assert asked == [
        ("GET", "/healthz", b""),
        ("POST", "/hold", b'{"at": 3}'),
        ("POST", "/elect", b""),
        ("GET", "/after", b""),
    ]


class Recording(control.Control):
    """Takes as many milliseconds as there were calls before."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Mapping[str, object] | None]] = []

    def ask(self, method: str, path: str, body: Mapping[str, object] | None = None) -> float:
        assert method == "POST"
        assert path.startswith("/v1/topics/t/partitions/0/")
        self.calls.append((path.removeprefix("/v1/topics/t/partitions/0/"), body))
        return float(len(self.calls) - 1)


def test_verbs_come_in_turns_and_only_a_follower_is_held() -> None:
    recording = Recording()
    times = control.steer(recording, "t", 4)
    leader = 1
    assert recording.calls.pop(0) == ("elect", {"leader": leader})
    for turn in range(4):
        hold, step, release, elect = recording.calls[4 * turn : 4 * turn + 4]
        follower = elect[1]["leader"] if elect[1] else None
        assert follower in {1, 2, 3} - {leader}
        replica = f"replicas/{follower}"
        assert [hold[0], step[0], release[0], elect[0]] == [
            f"{replica}/hold",
            f"{replica}/step",
            f"{replica}/release",
            "elect",
        ]
        leader = follower
    assert times.keys() == rows.VERBS.keys()
    assert times["hold"] == [1.0, 5.0, 9.0, 13.0]
    assert times["elect"] == [4.0, 8.0, 12.0, 16.0]


def test_the_first_verb_creates_a_topic_over_a_connection_of_its_own(
    server: servers.Server, asked: list[tuple[str, str, bytes]]
) -> None:
    assert control.first_verb(server) > 0
    assert asked == [("POST", "/v1/topics", b'{"name": "first"}')]
