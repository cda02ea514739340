"""Ten thousand partitions: verbs that concern all of them, and how long others wait meanwhile.

Every broker has a replica of each partition. Beside the verbs that concern all of them one
connection asks another broker for ApiVersions without a break: its longest round trip is the pause.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from typing import Final

from bench import control, pauses, process, servers, wire

TOPIC_PARTITIONS: Final = 1_000
BROKER: Final = 2
"""The broker that is killed and started; the others are asked."""


def measure(kind: servers.Kind, partitions: int) -> Mapping[str, float]:
    """A broker of a big cluster is killed, and started; milliseconds by row.

    :param partitions: Of all topics together.
    """
    values: dict[str, float] = {}
    with servers.running(kind) as server, control.Control(server) as connection:
        process.wait_until_idle(server.pid)
        witness = pauses.Witness(server)
        with process.no_collector(), witness.watching():
            begin = time.perf_counter()
            _create(server, partitions, control.REPLICAS)
            values["big_create"] = (time.perf_counter() - begin) * 1e3
            values["big_create_pause"] = witness.longest_ms
            for verb in ("kill", "start"):
                process.wait_until_idle(server.pid)
                witness.longest_ms = 0.0
                path = f"/v1/brokers/{BROKER}/{verb}"
                values[f"big_{verb}"] = connection.ask("POST", path)
                values[f"big_{verb}_pause"] = witness.longest_ms
        if _in_sync(server) != partitions:
            raise wire.BadAnswer("not all replicas are in sync after the start")
    return values


def restart(kind: servers.Kind, partitions: int) -> Mapping[str, float]:
    """A start from files, of partitions that are idle and have one replica.

    :returns: Milliseconds until all have a leader, after an end in order and after ``kill -9``; and
        the CPU time of the start then, seconds.
    """
    if not isinstance(kind, servers.Fencepost):
        return {}
    kind = dataclasses.replace(kind, durable=True)
    values: dict[str, float] = {}
    with servers.launching() as launch:
        with servers.started(kind, launch) as server:
            process.wait_until_idle(server.pid)
            _create(server, partitions, 1)
        for row, kill in (("idle_open", True), ("idle_recover", False)):
            begin = time.perf_counter()
            with servers.started(kind, launch, kill=kill) as server:
                if _led(server) != partitions:
                    raise wire.BadAnswer("not all partitions have a leader after the start")
                values[row] = (time.perf_counter() - begin) * 1e3
                values[f"{row}_cpu"] = process.cpu_seconds(server.pid)
    return values


def _create(server: servers.Server, partitions: int, replicas: int) -> None:
    size = min(partitions, TOPIC_PARTITIONS)
    for number in range(partitions // size):
        server.create((f"big-{number}",), size, replicas)


def _led(server: servers.Server) -> int:
    with server.connect() as connection:
        topics = connection.metadata(None).topics.values()
    return sum(partition.leader >= 0 for found in topics for partition in found)


def _in_sync(server: servers.Server) -> int:
    with server.connect() as connection:
        topics = connection.metadata(None).topics.values()
    return sum(partition.in_sync == control.REPLICAS for found in topics for partition in found)
