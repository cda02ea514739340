"""The servers measured: how each is prepared, started, found ready, and stopped.

Every server is a child process on loopback, on ports chosen free beforehand, so that all of them
are found ready in the same way: by a raw client asking for Metadata until every broker is in it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bench import process, tools, wire

HOST = "127.0.0.1"
TOPIC = "bench"
PARTITIONS = 3
BROKERS = 3
START_TIMEOUT_S = 60.0
POLL_S = 0.001
READY = b'{"bootstrap"'
"""How the ready line begins."""
TRANSACTION_CONFIGS = (
    "transaction.state.log.replication.factor=1",
    "transaction.state.log.min.isr=1",
)
"""The transaction log has one replica: peers have no more."""


class DidNotStart(Exception):
    """A server ended, or did not answer Metadata in time; carries the end of its output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What one start of a server is given: an empty directory and the first of its free ports."""

    directory: Path
    port: int

    @property
    def control_port(self) -> int:
        return self.port + BROKERS

    @property
    def output(self) -> Path:
        """What the server writes to its standard streams."""
        return self.directory / "output"

    @property
    def pulses(self) -> Path:
        """What :mod:`bench.watched` writes."""
        return self.directory / "pulses"


class Kind(Protocol):
    """One sort of server. ``key`` names it on the command line, ``title`` in the table."""

    @property
    def key(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def brokers(self) -> int: ...
    @property
    def seeds_topic(self) -> bool:
        """Whether :data:`TOPIC` exists from the start."""
        ...

    @property
    def slow(self) -> bool:
        """Whether a start takes seconds: it then takes part in fewer rounds."""
        ...

    def version(self) -> str: ...
    def build(self) -> None:
        """:raises bench.tools.Missing: When this machine cannot run it."""
        ...

    def prepare(self, launch: Launch) -> None:
        """What must happen before the clock of a start runs."""
        ...

    def command(self, launch: Launch) -> list[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Fencepost:
    key: str = "fencepost"
    title: str = "fencepost"
    brokers: int = BROKERS
    seeds_topic: bool = False
    slow: bool = False
    interpreter: Sequence[str] = field(default=(sys.executable,))
    """The interpreter and its options; the profiler puts itself in here."""
    watched: bool = False
    """Whether its loop has a pulse, which is written to ``Launch.pulses``."""
    durable: bool = False
    """Whether logs lie in files."""
    topics: Sequence[str] = ()
    """Those that are there from the start, as ``NAME:PARTITIONS:RF``."""
    configs: Sequence[str] = ()
    """Broker configs, as ``NAME=VALUE``."""
    options: Sequence[str] = ()
    """Others of ``serve``."""
    checkout: Path | None = None
    """Another version of fencepost, to be served in place of this one; with the same libraries."""

    def version(self) -> str:
        code = "import importlib.metadata as m; print(m.version('fencepost'))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
        return done.stdout.decode().strip() or "from the tree"

    def build(self) -> None:
        code = "import importlib.util as u, sys; sys.exit(u.find_spec('fencepost.cli') is None)"
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
        if found.returncode:
            raise tools.Missing("fencepost is not installed for this interpreter")

    def prepare(self, launch: Launch) -> None:
        pass

    def command(self, launch: Launch) -> list[str]:
        ports = ["--port", str(launch.port), "--control-port", str(launch.control_port)]
        module = "bench.watched" if self.watched else "fencepost"
        arguments = [str(launch.pulses)] if self.watched else []
        arguments += ["serve", "--brokers", str(self.brokers), *ports]
        arguments += ["--data-dir", str(launch.directory / "data")] if self.durable else []
        arguments += [part for config in self.configs for part in ("--config", config)]
        arguments += [part for topic in self.topics for part in ("--topic", topic)]
        if self.checkout is None:
            return [*self.interpreter, "-m", module, *arguments, *self.options]
        # Before the directory of this process and before what is installed; the bench is ours.
        run = f"import runpy, sys; sys.path.insert(0, {str(tools.HERE.parent)!r}); import bench; "
        run += f"sys.path.insert(0, {str(self.checkout)!r}); "
        run += f"sys.argv = {[module, *arguments, *self.options]!r}; "
        run += f"runpy.run_module({module!r}, run_name='__main__')"
        return [*self.interpreter, "-P", "-c", run]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kfake:
    key: str = "kfake"
    title: str = "kfake"
    brokers: int = BROKERS
    seeds_topic: bool = True  # only a seeded topic's leaders can be spread over the brokers
    slow: bool = False

    def version(self) -> str:
        lines = (tools.HERE / "go" / "go.mod").read_text().splitlines()
        found = [line.split() for line in lines if "pkg/kfake v" in line]
        go = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, check=False)
        return f"{found[0][-1]}, {go.stdout.decode().strip()}"

    def build(self) -> None:
        tools.kfake()

    def prepare(self, launch: Launch) -> None:
        pass

    def command(self, launch: Launch) -> list[str]:
        options = ["-port", str(launch.port), "-brokers", str(self.brokers)]
        return [str(tools.kfake()), *options, "-topic", f"{TOPIC}:{PARTITIONS}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kafka:
    """Apache Kafka, one node in combined mode: what a test would start."""

    key: str = "kafka"
    title: str = "Apache Kafka (1 node)"
    brokers: int = 1
    seeds_topic: bool = False
    slow: bool = True

    def version(self) -> str:
        done = subprocess.run(["java", "-version"], capture_output=True, check=False)
        first = done.stderr.decode().splitlines()[0].split('"')
        return f"{tools.KAFKA_VERSION}, Java {first[1] if len(first) > 1 else '?'}, heap 1 GiB"

    def build(self) -> None:
        tools.kafka_jars()

    def prepare(self, launch: Launch) -> None:
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{launch.port},"
            f"CONTROLLER://127.0.0.1:{launch.port + 1}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{launch.port}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{launch.port + 1}",
            "log.dirs": str(launch.directory / "logs"),
            "num.network.threads": "2",
            "num.io.threads": "4",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
        }
        text = "".join(f"{key}={value}\n" for key, value in settings.items())
        self._properties(launch).write_text(text)
        options = ["format", "--standalone", "-t", "MkU3OEVBNTcwNTJENDM2Qg"]
        format_storage = [*self._java(), "kafka.tools.StorageTool", *options]
        command = [*format_storage, "-c", str(self._properties(launch))]
        done = subprocess.run(command, capture_output=True, timeout=60, check=False)
        if done.returncode:
            raise DidNotStart(f"format: {done.stderr.decode()[-400:]}")

    def command(self, launch: Launch) -> list[str]:
        return [*self._java(), "kafka.Kafka", str(self._properties(launch))]

    @staticmethod
    def _properties(launch: Launch) -> Path:
        return launch.directory / "server.properties"

    @staticmethod
    def _java() -> list[str]:
        logging = f"-Dlog4j2.configurationFile={tools.HERE / 'kafka' / 'log4j2.properties'}"
        memory = ["-Xms256m", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
        return ["java", "-server", *memory, logging, "-cp", f"{tools.kafka_jars()}/*"]


KINDS: tuple[Kind, ...] = (Fencepost(), Kfake(), Kafka())


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running server. ``first_metadata_s``: from exec to the first complete Metadata answer."""

    kind: Kind
    pid: int
    launch: Launch
    first_metadata_s: float

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.launch.port}"

    def wait_until_ready(self) -> None:
        """Until the ready line of fencepost is there; a peer has none, and answered Metadata.

        :raises DidNotStart: When it does not come.
        """
        deadline = time.monotonic() + START_TIMEOUT_S
        while isinstance(self.kind, Fencepost) and READY not in self.launch.output.read_bytes():
            if time.monotonic() > deadline:
                raise DidNotStart("no ready line")
            time.sleep(POLL_S)

    def connect(self) -> wire.Connection:
        return wire.Connection.open(HOST, self.launch.port)

    def connect_to_leader(self, topic: str, partition: int) -> wire.Connection:
        with self.connect() as first:
            answer = first.metadata((topic,))
        leader = next(p.leader for p in answer.topics[topic] if p.index == partition)
        return wire.Connection.open(*answer.brokers[leader])

    def create(self, names: tuple[str, ...], partitions: int, replication: int = 1) -> None:
        """Creates topics and waits until Metadata shows a leader for all their partitions.

        :raises bench.wire.BadAnswer: When one is refused or has no leader after 30 s.
        """
        with self._controller() as controller:
            request = wire.create_topics_request(names, partitions, replication)
            wire.check_create_topics(controller.ask(request))
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline:
                seen = controller.metadata(names).topics.values()
                if all(len(found) == partitions for found in seen) and all(
                    p.leader >= 0 for found in seen for p in found
                ):
                    return
                time.sleep(0.05)
        raise wire.BadAnswer(f"{names[0]} has no leaders after 30 s")

    def create_bench_topic(self) -> None:
        """Makes :data:`TOPIC` with :data:`PARTITIONS` partitions, RF 1, unless it was seeded."""
        if not self.kind.seeds_topic:
            self.create((TOPIC,), PARTITIONS)

    def _controller(self) -> wire.Connection:
        """A broker that takes CreateTopics (kfake's only does on its controller)."""
        with self.connect() as first:
            answer = first.metadata(())
        return wire.Connection.open(
            *answer.brokers.get(answer.controller, (HOST, self.launch.port))
        )


@contextlib.contextmanager
def launching() -> Iterator[Launch]:
    """A directory, removed afterwards, and ports for one start."""
    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as directory:
        yield Launch(directory=Path(directory), port=process.free_ports(BROKERS + 1))


@contextlib.contextmanager
def running(kind: Kind) -> Iterator[Server]:
    """A fresh server, stopped by its own pid.

    :raises DidNotStart: When it ends or does not answer within :data:`START_TIMEOUT_S`.
    """
    with launching() as launch:
        kind.prepare(launch)
        with started(kind, launch) as server:
            yield server


@contextlib.contextmanager
def started(kind: Kind, launch: Launch, *, kill: bool = False) -> Iterator[Server]:
    """Starts a prepared server; ``kill`` ends it by SIGKILL instead of asking it to leave."""
    with launch.output.open("wb") as out:
        begin = time.perf_counter()
        child = subprocess.Popen(
            kind.command(launch),
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            env=_environment(),
        )
        try:
            _wait_for_metadata(kind, launch, child)
            elapsed = time.perf_counter() - begin
            yield Server(kind=kind, pid=child.pid, launch=launch, first_metadata_s=elapsed)
        finally:
            process.stop(child, at_once=kill)


def _environment() -> dict[str, str]:
    """This process's, without the variable that lets Python compile all modules at every start."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def _wait_for_metadata(kind: Kind, launch: Launch, child: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and child.poll() is None:
        try:
            with wire.Connection.open(HOST, launch.port) as connection:
                while time.monotonic() < deadline:
                    if len(connection.metadata(()).brokers) >= kind.brokers:
                        return
                    time.sleep(POLL_S)
        except (OSError, wire.BadAnswer):  # not listening yet
            time.sleep(POLL_S)
    tail = launch.output.read_text(errors="replace")[-800:]
    raise DidNotStart(f"{kind.key} did not answer Metadata; it said: {tail}")
