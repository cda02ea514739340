"""Clusters whose logs are audited: what they are told, what they leave, and what is found in it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
from confluent_kafka import Producer

from fencepost.pipeline.audit import partition_metadata
from fencepost.pipeline.audit.directory_rule import read_listings
from fencepost.pipeline.audit.directory_task import check_directories
from fencepost.pipeline.audit.lineage.model import PartitionLineage
from fencepost.pipeline.audit.rule import PartitionMetadata, TopicPartition, Violation
from fencepost.pipeline.audit.rules import RULES
from fencepost.pipeline.audit.spark_task import PartitionResult, check_partitions
from fencepost.pipeline.datasource.segment_scan import Checks, scan_folder
from fencepost.pipeline.datasource.trace_files import read_trace_directory
from tests.harness.control_client import Control, Json
from tests.harness.durable_cluster import DurableCluster
from tests.pipeline.audit.trace_scan.passed import passed

LOG_RULES: Final = tuple(name for name, rule in RULES.items() if not rule.needs_trace)
SMALL: Final = {"index.interval.bytes": "200"}
TIERED: Final = {**SMALL, "remote.storage.enable": "true"}
_NEVER: Final = str(3_600_000)
_SETTINGS: Final = {
    # The tier does what it is told, when it is told.
    "remote.log.manager.task.interval.ms": _NEVER,
    "replica.high.watermark.checkpoint.interval.ms": "100",
    "log.flush.offset.checkpoint.interval.ms": "100",
    "log.flush.start.offset.checkpoint.interval.ms": "100",
}
_WAIT_S: Final = 60.0


class Rig:
    """A cluster with a data directory, a tier and a trace.

    :param mutants: Of `tests.pipeline.audit.log_mutants`, by name.
    """

    def __init__(self, place: Path, *mutants: str) -> None:
        self.place = place
        place.mkdir(exist_ok=True)
        options = ["--remote", (place / "tier").as_uri(), "--trace", str(place / "trace")]
        for key, value in _SETTINGS.items():
            options += ["--config", f"{key}={value}"]
        program = ["fencepost"]
        if mutants:
            program = ["tests.pipeline.audit.log_mutants", ",".join(mutants)]
        self.served = DurableCluster(
            place / "data", place / "log", brokers=3, options=options, program=program
        )
        self._control: Control | None = None

    @property
    def control(self) -> Control:
        assert self._control is not None
        return self._control

    def start(self) -> None:
        self.served.start()
        self._control = Control(self.served.ready["control"])

    def kill(self) -> None:
        self._let_go()
        self.served.kill()

    def stop(self) -> None:
        self._let_go()
        self.served.stop()

    def close(self) -> None:
        self._let_go()
        self.served.close()

    def create(self, name: str, *replicas: int, **configs: str) -> None:
        """A topic of one partition; the first of its replicas leads."""
        self.tell(
            "topics",
            name=name,
            assignments=[list(replicas or (1, 2, 3))],
            configs={key.replace("_", "."): value for key, value in configs.items()},
        )

    def tell(self, path: str, **body: object) -> Json:
        """Use a verb of the control API."""
        return self.control._ask("POST", f"/v1/{path}", body or None)

    def about(self, topic: str, verb: str, **body: object) -> Json:
        """Use a verb about the topic's partition."""
        return self.tell(f"topics/{topic}/partitions/0/{verb}", **body)

    def produce(self, topic: str, count: int, *, acks: str = "all", keys: int = 1000) -> None:
        """Send records, three to a batch."""
        producer = Producer(
            {
                "bootstrap.servers": self.served.bootstrap,
                "acks": acks,
                "batch.num.messages": 3,
                "linger.ms": 1000,
                "log_level": 0,
            }
        )
        failed: list[object] = []
        for number in range(count):
            producer.produce(
                topic,
                b"value %d " % number * 10,
                b"key %d" % (number % keys),
                on_delivery=lambda error, _: failed.append(error) if error else None,
            )
        assert producer.flush(_WAIT_S) == 0
        assert not failed

    def left(self, to: str) -> Left:
        """A copy of all that is there now; files that go meanwhile may be missing."""
        copy = self.place / to
        copy.mkdir()
        for name in ("data", "tier", "trace"):
            if (self.place / name).exists():
                with suppress(shutil.Error):
                    shutil.copytree(self.place / name, copy / name)
        return Left(place=copy)

    def _let_go(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None


@contextmanager
def rig(place: Path, *mutants: str) -> Iterator[Rig]:
    """A cluster that runs."""
    made = Rig(place, *mutants)
    try:
        made.start()
        yield made
    finally:
        made.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What a cluster left: log directories, perhaps a tier and a trace."""

    place: Path

    def copy(self, to: Path) -> Left:
        """A copy, to be damaged."""
        shutil.copytree(self.place, to)
        return Left(place=to)

    def log(self, broker: int, topic: str) -> Path:
        """The directory of a replica."""
        return self.place / "data" / f"broker-{broker}" / f"{topic}-0"

    def segments(self, broker: int, topic: str, suffix: str = ".log") -> list[Path]:
        """Files of a replica, by base offset."""
        return sorted(self.log(broker, topic).glob(f"*{suffix}"))

    def objects(self, topic: str, suffix: str = ".log") -> list[Path]:
        """Objects of the tier, by start offset."""
        found = (self.place / "tier").glob(f"{topic}-*/0/*{suffix}")
        return sorted(found, key=lambda path: path.name)

    def audit(self, *topics: str, traced: bool = False, later_ms: int = 0) -> list[Violation]:
        """What the rules about logs find in it, in these topics or in all, now or later."""
        checked = self._checked(*topics, rules=LOG_RULES, traced=traced, later_ms=later_ms)
        return _unbroken(checked)

    def lineages(
        self, *topics: str, traced: bool = False
    ) -> dict[str, tuple[PartitionLineage, ...]]:
        """The lineage of the partition of each topic."""
        found = self._checked(*topics, rules=LOG_RULES[:1], traced=traced)
        return {each.summary.topic: each.summary.lineages for each in found}

    def _checked(
        self, *topics: str, rules: Collection[str], traced: bool, later_ms: int = 0
    ) -> Iterator[PartitionResult]:
        tier, data = self.place / "tier", self.place / "data"
        remote = tier.as_uri() if tier.exists() else None
        known = partition_metadata.read_partition_metadata(
            data, remote=remote, topics=topics, with_coordinators=True, with_keys=True
        )
        rows = scan_folder(data, remote=remote, topics=topics or None, checks=Checks.RECORDS)
        traces = read_trace_directory(self.place / "trace") if traced else None
        return check_partitions(rows, traces, known, rules=rules, now_ms=_now_ms() + later_ms)


def audit_directories(
    folder: Path, *, rules: Collection[str] = (), topics: Collection[str] = ()
) -> list[Violation]:
    """What the rules about log directories find in a folder of them."""
    result = check_directories(read_listings(folder), rules=rules, topics=topics)
    assert not result.failures, result.failures
    return list(result.violations)


def followed(
    rows: pa.Table,
    traces: pa.Table | None,
    known: Mapping[TopicPartition, PartitionMetadata],
    rules: Collection[str],
) -> list[Violation]:
    """What some rules find, each of which is followed to its end.

    They find it in the whole trace, and in what Spark leaves of it.
    """
    now_ms = _now_ms()
    found = _unbroken(check_partitions(rows, traces, known, rules=rules, now_ms=now_ms))
    if traces is not None:
        left = check_partitions(rows, passed(traces), known, rules=rules, now_ms=now_ms)
        assert _unbroken(left) == found
    return found


def _unbroken(results: Iterator[PartitionResult]) -> list[Violation]:
    found: list[Violation] = []
    for result in results:
        assert not result.summary.failures, result.summary.failures
        found += result.violations
    return found


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def unexplained(found: Sequence[Violation]) -> list[Violation]:
    return [each for each in found if each.explanation is None]
