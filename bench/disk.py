"""Logs on a disk: how fast they are written, opened, and recovered after ``kill -9``.

Directories lie where temporary files lie, for all servers alike; no server is set to sync.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from bench import load, process, servers, wire

SETTLE_S = 1.0
"""Between the last work and a look at memory, seconds."""


def measure(kind: servers.Kind, records: int) -> Mapping[str, float]:
    """Half of the records are written twice, then the server is killed, and started twice.

    :param records: Of a kibibyte each.
    """
    half = records // 2
    values: dict[str, float] = {}
    if isinstance(kind, servers.Fencepost):
        in_memory = _produced_in_memory(kind, half)
        kind = dataclasses.replace(kind, durable=True)
    with servers.launching() as launch:
        kind.prepare(launch)
        with servers.started(kind, launch, kill=True) as server:
            process.wait_until_idle(server.pid)
            server.create_bench_topic()
            first = load.produce(load.Client.C, server, half)
            time.sleep(SETTLE_S)
            before = process.memory(server.pid).resident
            load.produce(load.Client.C, server, half)
            time.sleep(SETTLE_S)
            values["files_growth"] = process.memory(server.pid).resident - before
        values["files_produce"] = first.per_second / 1e3
        if isinstance(kind, servers.Fencepost):
            values["files_share"] = first.per_second / in_memory
        for row in ("files_recover", "files_open"):  # the first ends in order
            with _opened(kind, launch, 2 * half) as seconds:
                values[row] = seconds * 1e3
    return values


def _produced_in_memory(kind: servers.Fencepost, records: int) -> float:
    """Records a second."""
    with servers.running(kind) as server:
        process.wait_until_idle(server.pid)
        server.create_bench_topic()
        return load.produce(load.Client.C, server, records).per_second


@contextmanager
def _opened(kind: servers.Kind, launch: servers.Launch, records: int) -> Iterator[float]:
    """How long from its start until it answers where every partition ends, seconds.

    :raises bench.wire.BadAnswer: When records are missing.
    """
    begin = time.perf_counter()
    with servers.started(kind, launch) as server:
        ends = [_end_of(server, partition) for partition in range(servers.PARTITIONS)]
        elapsed = time.perf_counter() - begin
        if sum(ends) < records:  # the client warms up with a few more
            raise wire.BadAnswer(f"partitions end at {ends}, where {records} records were written")
        yield elapsed


def _end_of(server: servers.Server, partition: int) -> int:
    deadline = time.monotonic() + servers.START_TIMEOUT_S
    request = wire.list_offsets_request(servers.TOPIC, partition)
    while True:
        try:
            with server.connect_to_leader(servers.TOPIC, partition) as connection:
                return wire.decode_list_offsets(connection.ask(request))
        except (wire.BadAnswer, KeyError, StopIteration):  # it does not lead yet
            if time.monotonic() > deadline:
                raise
            time.sleep(servers.POLL_S)
