"""A remote tier in memory whose operations a test records, fails or delays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from fencepost.broker.core.events import Event, Kind
from fencepost.broker.core.scheduler import Scheduler
from fencepost.broker.node.cluster import Conformance
from fencepost.broker.replication.replica import Replica
from fencepost.broker.tiering.remote_log_manager import RemoteLogManager
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.codec.drafts import Draft
from fencepost.storage.log.append_result import AppendResult
from fencepost.storage.tier.lineage import RemoteSegments, TieredRange
from fencepost.storage.tier.object_store import (
    DoneCallback,
    ListCallback,
    MemoryObjectStore,
    ObjectKind,
    ReadCallback,
    TierError,
)
from fencepost.storage.tier.segment_metadata import RemoteSegment
from tests.harness.driver import Driver
from tests.harness.driver_requests import create
from tests.harness.records import batch

INTERVAL: Final = 30_000
"""Kafka's default of remote.log.manager.task.interval.ms."""
BATCHES_A_SEGMENT: Final = 2
PLAIN_KINDS: Final = tuple(k for k in ObjectKind if k is not ObjectKind.TRANSACTION_INDEX)
"""What there is of a segment without aborted transactions."""
Op = tuple[str, str]
"""An operation, and its key or prefix."""


class Objects(MemoryObjectStore):
    """Records the operations.

    :ivar fails: Says whether an operation fails.
    :ivar holds: Says whether one is held up, until `release`.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler.soon)
        self.later = scheduler.soon
        self.asked: list[Op] = []
        self.fails: Callable[[str, str], bool] = lambda _op, _key: False
        self.holds: Callable[[str, str], bool] = lambda _op, _key: False
        self.held: list[Callable[[], None]] = []

    def put(self, key: str, buffers: Iterable[Buffer], done: DoneCallback) -> None:
        self._meet("put", key, partial(super().put, key, buffers, done), done)

    def get(self, key: str, start: int, end: int | None, done: ReadCallback) -> None:
        self._meet("get", key, partial(super().get, key, start, end, done), done)

    def delete(self, keys: Sequence[str], done: DoneCallback) -> None:
        self._meet("delete", keys[0], partial(super().delete, keys, done), done)

    def list(self, prefix: str, done: ListCallback) -> None:
        self._meet("list", prefix, partial(super().list, prefix, done), done)

    def _meet(
        self, op: str, key: str, do: Callable[[], None], fail: Callable[[TierError], None]
    ) -> None:
        self.asked.append((op, key))
        if self.fails(op, key):
            do = partial(self.later, partial(fail, TierError(key, "it is not the day")))
        if self.holds(op, key):
            self.held.append(do)
        else:
            do()

    def release(self) -> None:
        """Do what was held up."""
        self.holds = lambda _op, _key: False
        held, self.held = self.held, []
        for do in held:
            do()

    def names(self) -> Sequence[str]:
        """Start offset and suffix of all there is, in order."""
        return [short(key) for key in sorted(self.objects)]


def short(key: str) -> str:
    """Of the key of a segment's object, the start offset and the suffix: ``12.log``."""
    name = key.rpartition("/")[2]
    return f"{int(name[:20])}{name[20 + 1 + 22 :]}"


def every(start: int) -> list[str]:
    """The short names of all objects of a segment without an abort, in their order."""
    return sorted(f"{start}{part}" for part in PLAIN_KINDS)


class Tier(Driver):
    """Brokers, and topic ``t`` with one partition that all have a replica of; broker 1 leads.

    Each batch has one record, and two fill a segment.
    """

    def __init__(
        self,
        brokers: int = 1,
        *,
        tiered: bool = True,
        topic: str = "t",
        conformance: Conformance = Conformance.KIP,
        dialect: Draft | None = None,
        **configs: str,
    ) -> None:
        super().__init__(
            brokers,
            {"remote.log.storage.system.enable": "true"},
            conformance,
            dialect=dialect,
            make_objects=Objects,
        )
        objects = self.cluster.objects
        assert isinstance(objects, Objects)
        self.objects = objects
        self.events: list[Event] = []
        self.cluster.events.listeners.append(self.events.append)
        if tiered:
            self.create(topic, **configs)

    def create(self, topic: str = "t", **configs: str) -> None:
        size = len(batch()) * BATCHES_A_SEGMENT
        all_brokers = tuple(self.cluster.brokers)
        defaults = {"remote_storage_enable": "true", "internal_segment_bytes": str(size)}
        create(self, topic, (all_brokers,), **{**defaults, **configs})

    @property
    def manager(self) -> RemoteLogManager:
        """The leader's broker's."""
        return self.broker(self.leader("t").broker_id).remote_log_manager

    def append(self, count: int, *, age_ms: int = 0, to: Replica | None = None) -> None:
        """So many records, each a batch, of as long ago."""
        for _ in range(count):
            data = batch((self.clock.now_ms() - age_ms, b"k", b"v"))
            result = (to or self.leader("t")).append(data, now_ms=self.clock.now_ms())
            assert isinstance(result, AppendResult), result
            self.cluster.scheduler.run_due()

    def run(self, *, broker: int | None = None) -> TierError | None:
        """Have a task run, the leader's by default; what came of it."""
        replica = self.leader("t") if broker is None else self.replica(broker, "t")
        told: list[TierError | None] = []
        self.broker(replica.broker_id).remote_log_manager.run_task(replica, told.append)
        self.cluster.scheduler.run_due()
        (error,) = told
        return error

    def expire(self) -> TierError | None:
        told: list[TierError | None] = []
        self.manager.expire(self.leader("t"), told.append)
        self.cluster.scheduler.run_due()
        (error,) = told
        return error

    def highest(self) -> int | None:
        return self.manager.highest_tiered(self.leader("t"))

    def tiered(self) -> list[tuple[int, int]]:
        """Start and end (inclusive) of the segments that the leader would serve."""
        view = self.manager.state(self.leader("t"))
        assert view is not None
        return [(segment.start_offset, segment.end_offset) for segment in view.segments]

    def ranges(self, replica: Replica) -> tuple[TieredRange, ...]:
        """What a replica's broker knows of its lineage."""
        known: list[tuple[TieredRange, ...]] = []

        def take(segments: RemoteSegments | TierError) -> None:
            assert not isinstance(segments, TierError)
            known.append(segments.ranges(replica.log.epoch_entries()))

        self.broker(replica.broker_id).remote_log_manager.segments(replica, take)
        self.cluster.scheduler.run_due()
        (ranges,) = known
        return ranges

    def metadata(self) -> dict[int, RemoteSegment]:
        """What the metadata in the tier say, by start offset."""
        found = [
            RemoteSegment.from_json(data)
            for key, data in sorted(self.objects.objects.items())
            if key.endswith(ObjectKind.METADATA)
        ]
        return {segment.start_offset: segment for segment in found}

    def told(self, kind: Kind) -> list[Event]:
        return [event for event in self.events if event.kind is kind]
