"""A coordinator of counters: the smallest one that can stand on the shared shard.

It has a record format, a state and two requests of its own, and nothing of groups.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from fencepost.broker.coordinator.commit_queue import PartitionLog
from fencepost.broker.coordinator.record_fields import FieldReader, FieldWriter
from fencepost.broker.coordinator.shard import (
    CoordinatorRecordSerde,
    CoordinatorResult,
    CoordinatorRuntime,
    CoordinatorShard,
)
from fencepost.broker.core.scheduler import Scheduler
from fencepost.broker.core.waits import Wait
from fencepost.protocol.errors import ErrorCode

COMMIT_TIMEOUT_MS = 5000
_COUNTER_KEY = 7

Answer: TypeAlias = int | ErrorCode
"""A counter's value, or an error."""


@dataclass(frozen=True, slots=True)
class CounterRecord:
    """A counter's value; without one, its deletion."""

    name: str
    value: int | None


def encode(record: CounterRecord) -> tuple[bytes, bytes | None]:
    key = FieldWriter(flexible=False)
    key.int16(_COUNTER_KEY)
    key.string(record.name)
    if record.value is None:
        return key.to_bytes(), None
    value = FieldWriter(flexible=True)
    value.int64(record.value)
    value.tags({})
    return key.to_bytes(), value.to_bytes()


def decode(key: bytes, value: bytes | None) -> CounterRecord | None:
    fields = FieldReader(key)
    if fields.int16() != _COUNTER_KEY:
        return None
    name = fields.string()
    return CounterRecord(name, None if value is None else FieldReader(value).int64())


@dataclass(slots=True)
class Counters:
    """The values by name."""

    values: dict[str, int] = field(default_factory=dict)

    def replay(self, record: CounterRecord) -> None:
        if record.value is None:
            self.values.pop(record.name, None)
        else:
            self.values[record.name] = record.value


class CounterShard(CoordinatorShard[Counters, CounterRecord]):
    """The counters of one partition."""

    def __init__(self, log: PartitionLog, scheduler: Scheduler) -> None:
        super().__init__(
            log=log,
            scheduler=scheduler,
            serde=CoordinatorRecordSerde(encode=encode, decode=decode),
            new_state=Counters,
            commit_timeout_ms=COMMIT_TIMEOUT_MS,
        )
        self.calls: list[str] = []
        """The calls of the three hooks, in order."""

    def on_loaded(self) -> None:
        self.calls.append("loaded")

    def on_replayed(self, record: CounterRecord) -> None:
        self.calls.append(f"replayed {record.name}")

    def on_unloaded(self) -> None:
        self.calls.append("unloaded")

    def increment(self, name: str) -> Answer | Wait[Answer]:
        value = self.latest.values.get(name, 0) + 1
        return self._commit(value, CounterRecord(name, value))

    def delete(self, name: str) -> Answer | Wait[Answer]:
        if name not in self.latest.values:
            return self._commit(ErrorCode.RESOURCE_NOT_FOUND)
        return self._commit(ErrorCode.NONE, CounterRecord(name, None))

    def read(self, name: str) -> Answer | Wait[Answer]:
        """The latest value, once it is committed."""
        return self._commit(self.latest.values.get(name, 0))

    def _commit(self, answer: Answer, *records: CounterRecord) -> Answer | Wait[Answer]:
        result: CoordinatorResult[Answer, CounterRecord] = CoordinatorResult(
            response=answer, records=records
        )
        return self.commit_result(result, lambda error, _: error)


def runtime(scheduler: Scheduler, partitions: int = 2) -> CoordinatorRuntime[CounterShard]:
    """The counter coordinator of one broker."""
    return CoordinatorRuntime(
        "__counters",
        partition_count=lambda: partitions,
        new_shard=lambda log: CounterShard(log, scheduler),
    )
