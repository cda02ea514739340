"""Runs a load client (C or Python) against a server and reads what it measured."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from dataclasses import dataclass
from enum import Enum
from importlib import metadata

from bench import servers, tools

RECORD_BYTES = 1024
TRANSACTION_RECORDS = 100
"""In each transaction."""
DEADLINE_S = 120.0
"""A client that has not finished by then has failed, seconds."""


class LoadFailed(Exception):
    """A client did not move every record; the message says how far it came."""


class Client(Enum):
    """Which load client: both take the same arguments and print the same answer."""

    C = "C"
    PYTHON = "Python"

    def command(self) -> list[str]:
        """:raises bench.tools.Missing: When it cannot be built here."""
        if self is Client.C:
            return [str(tools.compiled("load"))]
        return [sys.executable, str(tools.HERE / "python_client.py")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What a client moved, and in how many seconds."""

    records: int
    seconds: float

    @property
    def per_second(self) -> float:
        return self.records / self.seconds


def versions() -> str:
    """The clients' libraries, as far as they are here."""
    found = []
    with contextlib.suppress(tools.Missing, OSError):
        command = [*Client.C.command(), "version"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found.append(f"C client: librdkafka {done.stdout.strip()}")
    with contextlib.suppress(metadata.PackageNotFoundError):
        found.append(f"confluent-kafka {metadata.version('confluent-kafka')}")
    return "; ".join(found)


def parse(text: str, wanted: int) -> Moved:
    """Reads a client's line of JSON.

    :raises LoadFailed: When it moved fewer than ``wanted`` records whole.
    """
    try:
        answer = json.loads(text)
    except ValueError:
        raise LoadFailed(f"no answer from the client: {text[:200]!r}") from None
    records, seconds = int(answer["records"]), float(answer["seconds"])
    if records < wanted or answer["failed"] or answer["bytes"] != records * RECORD_BYTES:
        raise LoadFailed(f"{records} of {wanted} records, error {answer['error'] or 'none'}")
    if seconds <= 0:
        raise LoadFailed("all records came at once: too few to measure")
    return Moved(records=records, seconds=seconds)


def produce(
    client: Client, server: servers.Server, records: int, *, topic: str = "", acks: str = "1"
) -> Moved:
    """Produces ``records`` values of :data:`RECORD_BYTES` bytes to the bench topic's partitions.

    :raises LoadFailed: When any is refused, or the deadline passes.
    """
    return _run(client, "produce", server, topic or servers.TOPIC, records, acks)


def transact(server: servers.Server, records: int, *, producers: int = 1) -> Moved:
    """C clients produce to the bench topic in transactions of :data:`TRANSACTION_RECORDS`.

    :param producers: That share the records, each with one transaction after the other.
    :raises LoadFailed: When one is not committed, or the deadline passes.
    """
    shape = (str(TRANSACTION_RECORDS), str(producers))
    return _run(Client.C, "transact", server, servers.TOPIC, records, *shape)


def consume(client: Client, server: servers.Server, records: int) -> Moved:
    """Consumes the bench topic from its start until ``records`` have come.

    :raises LoadFailed: When they do not come whole and in time.
    """
    return _run(client, "consume", server, servers.TOPIC, records, str(DEADLINE_S))


def _run(
    client: Client, what: str, server: servers.Server, topic: str, records: int, *more: str
) -> Moved:
    shape = [str(servers.PARTITIONS), str(records), str(RECORD_BYTES)]
    command = [*client.command(), what, server.bootstrap, topic, *shape, *more]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=DEADLINE_S + 10, check=False
        )
    except subprocess.TimeoutExpired:
        raise LoadFailed(f"{client.value} {what} did not end in time") from None
    if done.returncode:
        raise LoadFailed(f"{client.value} {what}: {done.stderr.strip()[-300:]}")
    return parse(done.stdout, records)
