"""Directories that are copied while clients write: what an audit tells of them is true.

A copy has each file as of another time. So checkpoints may tell of records that came later than the
log was copied, and none of these is lost.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Final, TypeAlias

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from fencepost.pipeline.audit.rule import Severity
from tests.harness.durable_cluster import DurableCluster
from tests.harness.kafka import start_kafka
from tests.harness.wait import wait_until
from tests.pipeline.damages.outcome import incidents
from tests.pipeline.damages.written import BROKERS, Written

pytestmark = pytest.mark.timeout(300)

_COPIES: Final = 6
_CONFIGS: Final = {
    "replica.high.watermark.checkpoint.interval.ms": "100",
    "log.index.size.max.bytes": "65536",
    "log.retention.check.interval.ms": "100",
    "log.cleaner.backoff.ms": "100",
    "log.initial.task.delay.ms": "100",
}
_SEGMENTS: Final = {"segment.bytes": "1048576"}
_TRANSACTIONAL: Final = "transactional"
_TOPICS: Final[dict[str, tuple[int, dict[str, str]]]] = {
    "alone": (1, _SEGMENTS),
    "replicated": (3, _SEGMENTS),
    _TRANSACTIONAL: (3, _SEGMENTS),
    "retained": (3, {**_SEGMENTS, "retention.bytes": "3000000"}),
    "compacted": (
        3,
        {**_SEGMENTS, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
    ),
}
"""By name how many replicas they have, and their configs."""
_WAIT_S: Final = 60.0


class Writers:
    """Threads that send until they are stopped: one in transactions."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=run) for run in (self._write, self._transact)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Wait for both."""
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _producer(self, **options: str) -> Producer:
        common = {"bootstrap.servers": self._bootstrap, "linger.ms": 5, "log_level": 0}
        return Producer({**common, "enable.idempotence": True, **options})

    def _write(self) -> None:
        producer = self._producer()
        number = 0
        while not self._ended.is_set():
            for topic in _TOPICS.keys() - {_TRANSACTIONAL}:
                for _ in range(20):
                    number += 1
                    with suppress(BufferError):
                        producer.produce(topic, os.urandom(400), b"key %d" % (number % 50), 0)
            producer.poll(0.02)
        producer.flush(_WAIT_S)

    def _transact(self) -> None:
        producer = self._producer(**{"transactional.id": "writer"})
        producer.init_transactions(_WAIT_S)
        number = 0
        while not self._ended.is_set():
            number += 1
            producer.begin_transaction()
            for _ in range(30):
                producer.produce(_TRANSACTIONAL, os.urandom(300), None, 0)
            producer.flush(_WAIT_S)
            end = producer.abort_transaction if number % 4 == 0 else producer.commit_transaction
            end(_WAIT_S)


def _create(bootstrap: str) -> None:
    topics = [
        NewTopic(name, 1, replica_assignment=[list(BROKERS[:replicas])], config=configs)
        for name, (replicas, configs) in _TOPICS.items()
    ]
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for future in admin.create_topics(topics).values():
        future.result(_WAIT_S)


@contextmanager
def _fencepost(folder: Path) -> Iterator[tuple[str, dict[int, Path]]]:
    options = [part for pair in _CONFIGS.items() for part in ("--config", "=".join(pair))]
    served = DurableCluster(folder / "data", folder / "log", options=options)
    try:
        served.start()
        yield (
            served.bootstrap,
            {broker: folder / "data" / f"broker-{broker}" for broker in BROKERS},
        )
    finally:
        served.close()


@contextmanager
def _kafka(folder: Path) -> Iterator[tuple[str, dict[int, Path]]]:
    kafka = start_kafka(folder / "kafka", nodes=len(BROKERS), configs=_CONFIGS)
    try:
        yield (
            kafka.cluster.bootstrap,
            {broker: kafka.folders[broker] / "logs" for broker in BROKERS},
        )
    finally:
        kafka.stop()


def _copied(log_dirs: dict[int, Path], to: Path, copy: Callable[[str, str], object]) -> Written:
    """A copy, of which files may be missing that went meanwhile."""
    written = Written(folder=to)
    for broker, log_dir in log_dirs.items():
        with suppress(shutil.Error):
            shutil.copytree(log_dir, written.log_dir(broker), copy_function=copy)
    return written


def _copies(bootstrap: str, log_dirs: dict[int, Path], folder: Path) -> Sequence[Written]:
    """Some with the times of the files, others with those of the copying."""
    _create(bootstrap)
    writers = Writers(bootstrap)
    try:
        wait_until("retention was there", lambda: _lost_head(log_dirs.values()), _WAIT_S)
        wait_until("a cleaner was there", lambda: _is_cleaned(log_dirs.values()), _WAIT_S)
        copiers = (shutil.copy2, shutil.copyfile)
        return [
            _copied(log_dirs, folder / f"copy-{index}", copiers[index % 2])
            for index in range(_COPIES)
        ]
    finally:
        writers.stop()


def _lost_head(log_dirs: Iterable[Path]) -> bool:
    return not any((path / "retained-0" / f"{0:020}.log").exists() for path in log_dirs)


def _is_cleaned(log_dirs: Iterable[Path]) -> bool:
    checkpoints = [path / "cleaner-offset-checkpoint" for path in log_dirs]
    return all(each.exists() and "compacted 0 " in each.read_text() for each in checkpoints)


Writes: TypeAlias = Callable[[Path], AbstractContextManager[tuple[str, dict[int, Path]]]]


@pytest.mark.parametrize("writes", [_fencepost, _kafka])
def test_nothing_is_told_but_what_is_true_of_a_copy(writes: Writes, tmp_path: Path) -> None:
    with writes(tmp_path) as (bootstrap, log_dirs):
        copies = _copies(bootstrap, log_dirs, tmp_path)
    found = [each for copy in copies for of_topic in incidents(copy).values() for each in of_topic]
    assert [each for each in found if each.explanation is None] == []
    assert [each for each in found if each.severity is Severity.LOSS] == []
