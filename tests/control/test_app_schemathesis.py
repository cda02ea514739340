"""Whatever is asked of the control API: no 5xx, no state that is broken, no client that is harmed.

FENCEPOST_SCHEMATHESIS_S says for how many seconds; a release is worth 120.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from fencepost.verbs.methods import Verbs
from fencepost.verbs.remote import Remote
from tests.control.fuzzed import CLIENTS_BROKERS, FUZZED, FUZZED_BROKER, SAFE
from tests.harness.confluent import consumer
from tests.harness.served_cluster import Cluster, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS: Final = int(os.environ.get("FENCEPOST_SCHEMATHESIS_S", "5"))
ROOT: Final = Path(__file__).parents[2]
NOT_ASKED: Final = ("/v1/events", "/v1/reset", "/")
"""A stream that does not end, what would harm anybody, and a page for people."""
CHECKS: Final = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "missing_required_header",
)


class Client:
    """Writes and reads the topic of its own, a record at a time."""

    def __init__(self, bootstrap: str, reader: Consumer) -> None:
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 0}
        )
        self._reader = reader
        self._reader.assign([TopicPartition(SAFE, 0, 0)])
        self.sent = 0
        self.acknowledged: list[int | None] = []
        self.errors: list[KafkaError] = []
        self.read: list[bytes | None] = []

    def work(self) -> None:
        """One record there, and what has come back."""
        self._producer.produce(SAFE, b"%d" % self.sent, on_delivery=self._delivered)
        self.sent += 1
        assert self._producer.flush(60) == 0, "a record was not acknowledged in 60 s"
        self.receive(0.01)

    def receive(self, timeout_s: float) -> None:
        message = self._reader.poll(timeout_s)
        if message is None:
            return
        error = message.error()
        if error is None:
            self.read.append(message.value())
        else:
            self.errors.append(error)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(error)
        self.acknowledged.append(message.offset())


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Cluster]:
    with serving(tmp_path / "log") as started:
        yield started


@pytest.fixture
def verbs(served: Cluster) -> Iterator[Verbs]:
    assert served.control is not None
    with closing(Remote(served.control)) as remote:
        yield Verbs(remote)


@pytest.mark.timeout(SECONDS + 120)
def test_nothing_that_is_asked_breaks_the_cluster(
    served: Cluster, verbs: Verbs, tmp_path: Path
) -> None:
    assert served.control is not None
    assert served.process is not None
    assignments = [[int(broker) for broker in CLIENTS_BROKERS]]
    verbs.create_topic(name=SAFE, assignments=assignments)
    verbs.create_topic(name=FUZZED, partitions=2, replication_factor=3)
    with consumer(served) as reader, (tmp_path / "report").open("w+") as report:
        client = Client(served.bootstrap, reader)
        asking = subprocess.Popen(
            _command(served.control), stdout=report, stderr=report, cwd=tmp_path, env=_environment()
        )
        try:
            while asking.poll() is None:
                client.work()
        finally:
            asking.kill()
            asking.wait()
        report.seek(0)
        assert asking.returncode == 0, report.read()
        while len(client.read) < client.sent and not client.errors:
            client.receive(30)
    assert client.errors == []
    assert client.acknowledged == list(range(client.sent))
    assert client.read == [b"%d" % i for i in range(client.sent)]
    _is_whole(verbs)
    assert '"level": "error"' not in served.process.log_since(0, limit=1 << 30)


def _command(control: str) -> list[str]:
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{control}/openapi.json"]
    command += ["--max-time", str(SECONDS), "--request-timeout", "30", "--warnings", "off"]
    command += ["--checks", ",".join(CHECKS), "--no-color"]
    return command + [part for path in NOT_ASKED for part in ("--exclude-path", path)]


def _environment() -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "SCHEMATHESIS_HOOKS": "tests.control.schemathesis_hooks",
    }


def _is_whole(verbs: Verbs) -> None:
    """The cluster recovers from all that was done to it, and forgets it when it is told to."""
    verbs.remove_faults()
    broker = next(b for b in verbs.cluster().brokers if b.id == FUZZED_BROKER)
    verbs.rejoin_broker(FUZZED_BROKER)
    if broker.state != "running":
        verbs.start_broker(FUZZED_BROKER)
    assert [(b.state, b.fenced) for b in verbs.cluster().brokers] == [("running", False)] * 3
    for topic in verbs.topics():
        for index in range(topic.partitions):
            state = verbs.partition(topic.name, index)
            assert state.leader in state.isr, state
            assert state.high_watermark >= 0, state
    verbs.reset()
    assert verbs.topics() == []
