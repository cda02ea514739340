"""Clusters with faults, fencepost or a real Kafka behind a fault proxy, and clients of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import iter_headers
from fencepost.verbs.fault_bodies import FaultBody
from fencepost.verbs.methods import Verbs
from fencepost.verbs.remote import Remote
from tests.clients.faults import CLIENTS
from tests.conftest import SETTINGS
from tests.harness import golang, java
from tests.harness.dialogue import Dialogue
from tests.harness.fault_proxy import FaultProxy, fault_proxy
from tests.harness.kafka import start_kafka
from tests.harness.served_cluster import Cluster, configs, serve
from tests.harness.wait import wait_until

WORKER: Final = Path(__file__).with_name("worker.py")


class Ground(Protocol):
    """A cluster on which requests can be met with faults."""

    @property
    def cluster(self) -> Cluster: ...

    @property
    def replication_factor(self) -> int: ...

    def set(self, fault: FaultBody) -> Callable[[], int]:
        """Set a fault; what it gives tells its hits."""

    def settle(self, client_id: str) -> None:
        """Wait until no Produce of a client is delayed any more."""


@dataclass(frozen=True, slots=True)
class Fencepost:
    cluster: Cluster
    verbs: Verbs
    replication_factor: int = 3

    def set(self, fault: FaultBody) -> Callable[[], int]:
        given = fault.model_dump(exclude_unset=True)
        number = self.verbs.add_fault(given.pop("api"), **given).id
        return lambda: self.verbs.fault(number).hits

    def settle(self, client_id: str) -> None:
        def settled() -> bool:
            asked = self.verbs.trace(api="Produce", client_id=client_id)
            return all(each.answered_ms is not None for each in asked)

        wait_until("what was delayed is carried out", settled)


@dataclass(frozen=True, slots=True)
class Kafka:
    cluster: Cluster
    proxy: FaultProxy
    replication_factor: int = 1

    def set(self, fault: FaultBody) -> Callable[[], int]:
        return self.proxy.add(fault)

    def settle(self, client_id: str) -> None:
        wait_until("what was delayed is carried out", lambda: self.proxy.delayed == 0)


@contextmanager
def fencepost(folder: Path) -> Iterator[Fencepost]:
    cluster = serve(folder / "fencepost.log", *configs(SETTINGS))
    assert cluster.control is not None
    with closing(Remote(cluster.control)) as remote:
        yield Fencepost(cluster, Verbs(remote))
    cluster.stop()


@contextmanager
def kafka(folder: Path) -> Iterator[Kafka]:
    with fault_proxy() as proxy:
        started = start_kafka(folder / "kafka", advertised=proxy.port)
        proxy.upstream = started.cluster.addresses[0][1]
        try:
            yield Kafka(Cluster(bootstrap=f"127.0.0.1:{proxy.port}"), proxy)
        finally:
            started.stop()


@dataclass(frozen=True, slots=True)
class Stand:
    """A ground and the workers on it."""

    ground: Ground
    workers: Mapping[str, Dialogue]

    def say(self, lines: Mapping[str, str]) -> None:
        """Tell each client what to do."""
        for client, line in lines.items():
            self.workers[client].say(line)

    def hear(self) -> dict[str, str]:
        """What each was told, when it is done."""
        return {
            client: worker.hear_until(lambda _: True)[-1] for client, worker in self.workers.items()
        }


@contextmanager
def stands(new_folder: Callable[[str], Path]) -> Iterator[Callable[[str], Stand]]:
    """Stands by the name of their ground; each is made once, when it is first asked for."""
    grounds: Mapping[str, Callable[[Path], AbstractContextManager[Ground]]] = {
        "fencepost": fencepost,
        "kafka": kafka,
    }
    made: dict[str, Stand] = {}
    with ExitStack() as stack:

        def get(name: str) -> Stand:
            if name not in made:
                folder = new_folder(name)
                ground = stack.enter_context(grounds[name](folder))
                workers = _start_workers(stack, ground.cluster.bootstrap, folder)
                made[name] = Stand(ground, workers)
            return made[name]

        yield get


def _start_workers(stack: ExitStack, bootstrap: str, folder: Path) -> dict[str, Dialogue]:
    commands: dict[str, Sequence[str]] = {
        "confluent": [sys.executable, str(WORKER), bootstrap],
        "java": java.story_command("WorkerStory", bootstrap),
        "go": [str(golang.build_program("worker")), bootstrap],
    }
    workers = {
        client: stack.enter_context(Dialogue(commands[client], folder / f"{client}.log"))
        for client in CLIENTS
    }
    for worker in workers.values():
        worker.hear_until("ready")
    return workers


def append(cluster: Cluster, topic: str, value: str) -> None:
    """A batch with one record, to partition 0. It is of now, or retention would delete it."""
    cluster.append(topic, (time.time_ns() // 10**6, None, value.encode()))


def stored(cluster: Cluster, topic: str, partition: int = 0) -> str:
    """The values of a partition in order, with spaces."""
    data = cluster.stored(topic, partition) if cluster.end_offset(topic, partition) else b""
    batches = [at for at, _ in iter_headers(data)]
    values = [record.value for at in batches for record in iter_records(data, at)]
    return " ".join(bytes(value or b"").decode() for value in values)
