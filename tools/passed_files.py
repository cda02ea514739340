"""Which files of the package one warm request passes, from the first byte to the response.

A file is passed if one of its functions runs; what runs at import does not count. The processes
under test run the package's public ``main`` under a profile function, and record while a request
is under way. Each request is sent twice before it is recorded, so that late imports are done; what
a server does in idle moments does not count. The clusters' clocks are manual: no timer fires while
a request is recorded.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias
from urllib.request import ProxyHandler, build_opener
from uuid import UUID

from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.codec import decode_response, encode_request, response_body_offset
from fencepost.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from fencepost.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from fencepost.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from fencepost.protocol.records import Record, build_batch

Files: TypeAlias = frozenset[str]

WARM_UPS: Final = 2
TOPIC: Final = "t"
_TIMEOUT_S: Final = 120.0
_REST_S: Final = 0.1
"""How long a server records after a response: it ends its turn of the loop."""
_RECORDER: Final = """
import json, os, sys, threading
package = os.path.join(os.getcwd(), "fencepost") + os.sep
files, recording, idle = set(), False, False
def profile(frame, event, argument):
    global idle
    code = frame.f_code
    if code.co_filename.endswith("idle_work.py") and event in ("call", "return"):
        idle = event == "call"
    elif recording and not idle and event == "call" and code.co_name != "<module>":
        files.add(code.co_filename)
def start(*_):
    global recording
    files.clear()
    recording = True
    tell({})
def stop(*_):
    global recording
    recording = False
    tell(sorted(path[len(package):] for path in files if path.startswith(package)))
def tell(message):
    os.write(TO, json.dumps(message).encode() + b"\\n")
TO = int(sys.argv.pop(1))
threading.setprofile(profile)
sys.setprofile(profile)
from fencepost.cli import main
"""
"""Reports over a pipe that it records, or what it recorded."""
_SERVER: Final = f"""{_RECORDER}
import asyncio, signal
def stop_soon(*_):
    asyncio.get_running_loop().call_later({_REST_S}, stop)
signal.signal(signal.SIGUSR1, start)
signal.signal(signal.SIGUSR2, stop_soon)
sys.exit(main(sys.argv[1:]))
"""
_COMMAND: Final = f"""{_RECORDER}
import io
FROM, TO_MARK = sys.argv.pop(1), sys.argv.pop(1)
class Output(io.StringIO):
    def write(self, text):
        if is_last and FROM and FROM in text:
            resume()
        if is_last and TO_MARK and TO_MARK in text:
            pause()
        return len(text)
def resume():
    tell({{}})
    control.readline()
    start()
def pause():
    stop()
    control.readline()
control, sys.stdout = sys.stdin, Output()
arguments = sys.argv[1:]
for run in range({WARM_UPS} + 1):
    is_last = run == {WARM_UPS}
    if is_last and not FROM:
        resume()
    try:
        code = main(list(arguments))
    except SystemExit as ended:
        code = ended.code
    assert not code, code
if not TO_MARK:
    pause()
"""
"""Runs a command some times, and records its last run: all of it, or its part from when it prints
one text until it prints another."""
_STEPS: Final = ("step-1", "step-2", "step-3")
_SCENARIO: Final = "\n".join(
    [
        "summary: The same step again and again.",
        "teaches: Nothing.",
        "cluster: {brokers: 1, clock: manual}",
        f"topics: [{{name: {TOPIC}}}]",
        "steps:",
        *(f"  - {{say: {name}, produce: {{topic: {TOPIC}, records: [a]}}}}" for name in _STEPS),
    ]
)


def passed_files(checkout: Path) -> dict[str, Files]:
    """The files of a checkout's package that each kind of request passes."""
    passed: dict[str, Files] = {}
    with _serving(checkout, brokers=1) as server:
        passed["Fetch v13"] = _fetch(server)
        arguments = "fault", "add", "Heartbeat", "--error", "REBALANCE_IN_PROGRESS"
        passed["`fault add`"] = _command(server, *arguments, "--control", server.control)
    with _serving(checkout, brokers=3) as server:
        passed["Produce v9, acks=all, RF 3"] = _produce(server, replicas=3)
    with _serving(checkout, brokers=1) as server, tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder, "steps.yaml")
        scenario.write_text(_SCENARIO, encoding="utf-8")
        against = "scenario", "run", str(scenario), "--against", server.control, "--reset"
        passed["a scenario's step (produce)"] = _command(server, *against, part=_STEPS[1:])
    return passed


class _Process:
    """A Python process of a checkout, and the pipe that it reports over."""

    def __init__(self, checkout: Path, program: str, *arguments: str) -> None:
        self.checkout = checkout
        receiver, sender = os.pipe()
        self._reports: BinaryIO = os.fdopen(receiver, "rb")
        self._popen = subprocess.Popen(
            [sys.executable, "-c", program, str(sender), *arguments],
            cwd=checkout,
            env={**os.environ, "PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[sender],
        )
        os.close(sender)

    def report(self) -> Any:
        """The next report."""
        line = self._reports.readline()
        assert line, "the process ended"
        return json.loads(line)

    def go_on(self) -> None:
        """Let a command that waits go on."""
        assert self._popen.stdin is not None
        self._popen.stdin.write(b"\n")
        self._popen.stdin.flush()

    def close(self) -> None:
        """Wait until it has ended."""
        self._popen.communicate()
        self._reports.close()


class _Server(_Process):
    """A served cluster, and a connection to its broker 1."""

    def __init__(self, checkout: Path, brokers: int) -> None:
        ports = "--port", "0", "--control-port", "0"
        options = "--brokers", str(brokers), "--clock", "manual"
        log = "--log-level", "warning"
        super().__init__(checkout, _SERVER, "serve", *ports, *options, *log)
        assert self._popen.stdout is not None
        ready = json.loads(self._popen.stdout.readline())
        self.control: str = ready["control"]
        # Else the control API may be imported at any moment.
        build_opener(ProxyHandler({})).open(f"{self.control}/healthz").close()
        host, port = ready["bootstrap"].split(",")[0].rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), _TIMEOUT_S)

    def call(self, name: str, version: int, message: object) -> Any:
        """Send a request, and decode its response."""
        api = BY_NAME[name]
        self._socket.sendall(b"".join(encode_request(api, version, 1, "structure", message)))
        (size,) = struct.unpack(">i", self._receive(4))
        offset = response_body_offset(api, version)
        return decode_response(api, version, self._receive(size), offset)

    def create_topic(self, replicas: int) -> UUID:
        """Create the topic with a partition that broker 1 leads; returns its id."""
        brokers = tuple(range(1, replicas + 1))
        assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=brokers)
        topic = CreatableTopic(
            name=TOPIC, num_partitions=-1, replication_factor=-1, assignments=(assignment,)
        )
        response = self.call("create_topics", 7, CreateTopicsRequest(topics=(topic,)))
        assert response.topics[0].error_code == 0
        topic_id: UUID = response.topics[0].topic_id
        return topic_id

    def produce(self) -> None:
        """Produce a record with acks=all."""
        batch = bytes(build_batch([Record(0, 1_700_000_000_000, None, b"v")]))
        partition = PartitionProduceData(index=0, records=batch)
        topic = TopicProduceData(name=TOPIC, partition_data=(partition,))
        request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=(topic,))
        response = self.call("produce", 9, request)
        assert response.responses[0].partition_responses[0].error_code == 0

    def fetch(self, topic_id: UUID) -> None:
        """Fetch the records of the topic."""
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        topic = FetchTopic(topic_id=topic_id, partitions=(partition,))
        response = self.call("fetch", 13, FetchRequest(min_bytes=1, topics=(topic,)))
        assert any(response.responses[0].partitions[0].records)

    @contextmanager
    def recording(self, files: set[str]) -> Iterator[None]:
        """Add to `files` those that the process passes meanwhile."""
        self._popen.send_signal(signal.SIGUSR1)
        self.report()
        yield
        self._popen.send_signal(signal.SIGUSR2)
        files.update(self.report())

    def close(self) -> None:
        self._socket.close()
        self._popen.terminate()
        super().close()

    def _receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            chunk = self._socket.recv(size - len(data))
            assert chunk, "the server closed the connection"
            data += chunk
        return bytes(data)


@contextmanager
def _serving(checkout: Path, brokers: int) -> Iterator[_Server]:
    with closing(_Server(checkout, brokers)) as server:
        yield server


def _fetch(server: _Server) -> Files:
    topic_id = server.create_topic(replicas=1)
    server.produce()
    return _request(server, partial(server.fetch, topic_id))


def _produce(server: _Server, replicas: int) -> Files:
    server.create_topic(replicas)
    return _request(server, server.produce)


def _request(server: _Server, send: Callable[[], None]) -> Files:
    for _ in range(WARM_UPS):
        send()
    files: set[str] = set()
    with server.recording(files):
        send()
    return frozenset(files)


def _command(server: _Server, *arguments: str, part: Sequence[str] = ("", "")) -> Files:
    """The files that a command passes, in its own process and in the server's.

    :param part: Texts that the command prints; its files in between are recorded. Empty: all.
    """
    files: set[str] = set()
    with closing(_Process(server.checkout, _COMMAND, *part, *arguments)) as command:
        command.report()
        with server.recording(files):
            command.go_on()
            command.report()
            files.update(command.report())
        command.go_on()
    return frozenset(files)
