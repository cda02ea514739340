"""Directories of a real Kafka: nothing is found while it runs, killed, or shut down; damage is."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from fencepost.pipeline.audit import partition_metadata
from fencepost.pipeline.audit.rule import Violation
from fencepost.pipeline.datasource.segment_scan import Checks, scan_folder
from fencepost.storage.formats.checkpoints import decode_properties, encode_properties
from tests.harness.kafka import Kafka, start_kafka
from tests.harness.wait import wait_until
from tests.pipeline.audit import damage
from tests.pipeline.audit.rigs import LOG_RULES, audit_directories, followed, unexplained

pytestmark = pytest.mark.timeout(300)

NEW_RULES: Final = ("head-present", "one-topic-id", "leftover-files")
_WAIT_S: Final = 30.0
_STEP_MS: Final = 1000
_PARTITIONS: Final = 4
_SEGMENTS: Final = {"segment.ms": str(10 * _STEP_MS)}
_TOPICS: Final = {
    "kept": {**_SEGMENTS, "retention.ms": "-1"},
    "cut": {**_SEGMENTS, "retention.ms": "-1"},
    "usual": _SEGMENTS,
    "expired": {**_SEGMENTS, "retention.ms": "1000"},
    "compacted": {
        **_SEGMENTS,
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
    },
    "dropped": {},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """What a broker with two log directories had: while it was written to, killed, shut down."""

    running: Path
    killed: Path
    stopped: Path


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copies]:
    folder = tmp_path_factory.mktemp("kafka")
    place = folder / "kafka" / "1"
    configs = {
        "log.dirs": f"{place / 'logs'},{place / 'more'}",
        "log.retention.ms": "-1",
        "log.retention.check.interval.ms": "100",
        "log.cleaner.backoff.ms": "100",
        "log.initial.task.delay.ms": "100",
    }
    kafka = start_kafka(folder / "kafka", configs=configs)
    try:
        live(kafka)
        with writing(kafka):
            running = copied(place, folder / "running")
        kafka.kill(1)
        killed = copied(place, folder / "killed")
        kafka.start(1)
        kafka.wait()
        wait_until("it is led", lambda: kafka.cluster.end_offset("kept") >= 0)
        send(kafka, "kept", 3)
        kafka.shut_down(1)
        yield Copies(running=running, killed=killed, stopped=copied(place, folder / "stopped"))
    finally:
        kafka.stop()


def live(kafka: Kafka) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.cluster.bootstrap, "log_level": 0})
    topics = [NewTopic(name, _PARTITIONS, 1, config=each) for name, each in _TOPICS.items()]
    for future in admin.create_topics(topics).values():
        future.result(_WAIT_S)
    for topic in _TOPICS:
        send(kafka, topic, 45)
    starts = [TopicPartition("cut", index, 30) for index in range(_PARTITIONS)]
    for future in admin.delete_records(starts).values():
        future.result(_WAIT_S)
    for future in admin.delete_topics(["dropped"]).values():
        future.result(_WAIT_S)
    wait_until("retention was there", lambda: kafka.cluster.end_offset("expired", timestamp=-2) > 0)
    logs = kafka.folders[1]
    wait_until("a file is deleted", lambda: any(logs.glob("*/cut-*/*.log.deleted")))
    wait_until("a cleaner was there", lambda: any(logs.glob("*/compacted-*/*.log.deleted")))


def send(kafka: Kafka, topic: str, count: int) -> None:
    """So many records to each partition, three to a batch, a second apart and long ago."""
    producer = Producer(
        {
            "bootstrap.servers": kafka.cluster.bootstrap,
            "batch.num.messages": 3,
            "linger.ms": 500,
            # A retry would go behind later batches, and these decide when a segment is full.
            "max.in.flight": 1,
            "log_level": 0,
        }
    )
    began_ms = int(time.time() * 1000) - 3600 * 1000
    for number in range(count):
        for partition in range(_PARTITIONS):
            producer.produce(
                topic,
                b"value %d " % number * 5,
                b"key %d" % (number % 4),
                partition,
                timestamp=began_ms + number * _STEP_MS,
            )
    assert producer.flush(_WAIT_S) == 0


class writing:  # noqa: N801  # reads as a statement
    """A producer that sends as fast as it can."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def _write(self) -> None:
        while not self._ended.is_set():
            for topic in ("kept", "expired", "compacted"):
                send(self._kafka, topic, 12)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


def copied(place: Path, to: Path) -> Path:
    """A copy, of which files may be missing that went meanwhile."""
    with suppress(shutil.Error):
        shutil.copytree(place, to)
    return to


def audit(folder: Path, rules: Sequence[str] = LOG_RULES) -> list[Violation]:
    known = partition_metadata.read_partition_metadata(folder)
    rows = scan_folder(folder, checks=Checks.RECORDS)
    return [*audit_directories(folder), *followed(rows, None, known, rules)]


def test_nothing_is_found(copies: Copies) -> None:
    for folder in (copies.killed, copies.stopped):
        assert unexplained(audit(folder)) == []
        assert len(list(folder.glob("*/meta.properties"))) == 2
    assert unexplained(audit(copies.running, NEW_RULES)) == []


def test_what_is_left_over_is_told(copies: Copies) -> None:
    told = {(each.rule, each.topic) for each in audit(copies.killed)}
    assert told >= {
        ("leftover-directories", "dropped"),
        ("leftover-files", "cut"),
        ("leftover-files", "compacted"),
    }


def test_a_head_that_retention_may_have_taken_before_a_kill(stopped: Path) -> None:
    damage.lose_segment(min(partition(stopped, "usual-0").glob("*.log")))
    (found,) = (each for each in audit(stopped) if each.topic == "usual")
    assert found.rule == "head-present"
    assert "while retention deleted" in (found.explanation or "")


@pytest.fixture
def stopped(copies: Copies, tmp_path: Path) -> Path:
    return Path(shutil.copytree(copies.stopped, tmp_path / "stopped"))


def partition(folder: Path, name: str) -> Path:
    (found,) = folder.glob(f"*/{name}")
    return found


def lose_directory(folder: Path) -> None:
    shutil.rmtree(partition(folder, "kept-2"))


def lose_head(folder: Path) -> None:
    segments = sorted(partition(folder, "kept-2").glob("*.log"))
    assert len(segments) > 2
    damage.lose_segment(segments[0])


def lose_head_behind_deleted_records(folder: Path) -> None:
    damage.lose_segment(min(partition(folder, "cut-1").glob("*.log")))


def leave_swap(folder: Path) -> None:
    path = min(partition(folder, "kept-2").glob("*.log"))
    shutil.copy(path, path.with_name(f"{path.name}.swap"))


def lose_properties(folder: Path) -> None:
    (folder / "more" / "meta.properties").unlink()


def copy_directory_id(folder: Path) -> None:
    shutil.copy(folder / "logs" / "meta.properties", folder / "more" / "meta.properties")


def change_cluster_id(folder: Path) -> None:
    path = folder / "more" / "meta.properties"
    properties = decode_properties(path.read_bytes())
    path.write_bytes(encode_properties({**properties, "cluster.id": "another"}))


@pytest.mark.parametrize(
    ("harm", "rule"),
    [
        (lose_directory, "partition-directories"),
        (lose_head, "head-present"),
        (lose_head_behind_deleted_records, "head-present"),
        (leave_swap, "leftover-files"),
        (lose_properties, "meta-properties"),
        (copy_directory_id, "meta-properties"),
        (change_cluster_id, "meta-properties"),
    ],
)
def test_damage(stopped: Path, harm: Callable[[Path], None], rule: str) -> None:
    harm(stopped)
    assert [each.rule for each in unexplained(audit(stopped))] == [rule]
