"""fencepost's control API as the benchmarks use it: one open connection, and how long it takes."""

from __future__ import annotations

import contextlib
import http.client
import json
import time
from collections.abc import Mapping
from typing import Any, Self

from bench import rows, servers, wire

TIMEOUT_S = 30.0
REPLICAS = 3


class Control:
    """An HTTP connection that stays open. A refusal is a :class:`bench.wire.BadAnswer`."""

    def __init__(self, server: servers.Server) -> None:
        port = server.launch.control_port
        self._connection = http.client.HTTPConnection(servers.HOST, port, timeout=TIMEOUT_S)
        self.ask("GET", "/healthz")

    def ask(self, method: str, path: str, body: Mapping[str, object] | None = None) -> float:
        """Milliseconds from the request to the end of its answer."""
        return self._call(method, path, body)[0]

    def get(self, path: str) -> Any:
        """What is answered, decoded."""
        return json.loads(self._call("GET", path, None)[1])

    def _call(
        self, method: str, path: str, body: Mapping[str, object] | None
    ) -> tuple[float, bytes]:
        sent, headers = None, {}
        if body is not None:
            sent, headers = json.dumps(body), {"Content-Type": "application/json"}
        begin = time.perf_counter()
        self._connection.request(method, path, sent, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        elapsed = (time.perf_counter() - begin) * 1e3
        if answer.status >= 300:
            raise wire.BadAnswer(f"{method} {path} answered {answer.status}: {text[:200]!r}")
        return elapsed, text

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def first_verb(server: servers.Server) -> float:
    """Milliseconds until a server that has just started has created a topic, connecting included.

    What the control API has put off until it is asked for the first time is in them.
    """
    begin = time.perf_counter()
    port = server.launch.control_port
    connection = http.client.HTTPConnection(servers.HOST, port, timeout=TIMEOUT_S)
    with contextlib.closing(connection):
        body, headers = json.dumps({"name": "first"}), {"Content-Type": "application/json"}
        connection.request("POST", "/v1/topics", body, headers)
        answer = connection.getresponse()
        text = answer.read()
    elapsed = (time.perf_counter() - begin) * 1e3
    if answer.status != 200:
        raise wire.BadAnswer(f"the first verb was answered {answer.status}: {text[:200]!r}")
    return elapsed


def steer(control: Control, topic: str, calls: int) -> dict[str, list[float]]:
    """Milliseconds of each call, by verb: ``calls`` of every one, in turns, on partition 0.

    A follower is held, takes a step, is released, and becomes the leader.
    """
    partition = f"/v1/topics/{topic}/partitions/0"
    control.ask("POST", f"{partition}/elect", {"leader": 1})
    times: dict[str, list[float]] = {verb: [] for verb in rows.VERBS}
    for turn in range(calls):
        follower = (turn + 1) % REPLICAS + 1  # the last turn's is the leader
        for verb in ("hold", "step", "release"):
            path = f"{partition}/replicas/{follower}/{verb}"
            times[verb].append(control.ask("POST", path))
        times["elect"].append(control.ask("POST", f"{partition}/elect", {"leader": follower}))
    return times
