"""The evidence of one partition that every rule is given: batches, traces and metadata.

Batches and traces are grouped by partition, and each group goes to every rule as Arrow tables.
Metadata (checkpoints, the tier's metadata) are small: the driver reads them once, and they are
sent along as `PartitionMetadata`.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit import timeline
from fencepost.pipeline.audit.timeline import TopicIncarnation
from fencepost.pipeline.datasource.schemas import Place

TopicPartition: TypeAlias = tuple[str, int]
"""A topic's name and the index of a partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaMetadata:
    """What a broker's directory says of its replica besides the segments."""

    broker: int
    clean: bool
    """Whether the broker ended in order."""
    segments: tuple[int, ...]
    """Base offsets, by the names of the files, in order. The last is the active one."""
    epochs: tuple[tuple[int, int], ...] | None
    """Epochs and their start offsets, from ``leader-epoch-checkpoint``; None without the file."""
    high_watermark: int | None = None
    """Checkpointed: the replica had at least this one (exclusive)."""
    recovery_point: int | None = None
    log_start: int | None = None
    topic_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TierSegment:
    """What the tier's metadata says of a segment."""

    id: str
    start_offset: int
    end_offset: int
    """Inclusive."""
    epochs: tuple[tuple[int, int], ...]
    """Epochs and their start offsets within the segment."""
    bytes: int
    finished: bool
    """Whether its copy was completed and its deletion not begun: readers may rely on it."""
    topic_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMetadata:
    """The checkpoints and metadata of one partition."""

    replicas: tuple[ReplicaMetadata, ...] = ()
    tier: tuple[TierSegment, ...] = ()
    with_tier: bool = False
    """Whether the tier was read; else its segments are unknown."""
    compacted: bool = False
    """Whether offsets may be missing because of ``cleanup.policy=compact``."""
    unreadable: tuple[str, ...] = ()
    """Metadata in the tier that make no sense: which, and why."""


@dataclass(frozen=True, kw_only=True)
class PartitionEvidence:
    """All that is known of one partition."""

    topic: str
    partition: int
    now_ms: int
    """When the audit was begun, by the clock of where it was: what was written later is newer. No
    rule reads a clock, as executors have many and start at many times."""
    metadata: PartitionMetadata
    batches: pa.Table
    """`BATCHES`, by place, broker, segment and position."""
    traces: pa.Table | None
    """`TRACES` of this partition and of no partition at all, by line; None without a trace."""

    def select(self, place: Place, broker: int | None = None) -> pa.Table:
        """The rows of one replica, or of the tier, in order.

        :param broker: Whose replica; None for those of all, and for the tier.
        """
        wanted = pc.equal(self.batches["place"], place)
        if broker is not None:
            wanted = pc.and_(wanted, pc.equal(self.batches["broker"], broker))
        return self.batches.filter(wanted)

    @cached_property
    def incarnations(self) -> tuple[TopicIncarnation, ...]:
        """Every incarnation of the partition in the trace, in order; one at least.

        Each rule about traces looks at them, and to find them takes a pass over the whole trace.
        """
        assert self.traces is not None, "the rules that look at it need a trace"
        return tuple(timeline.incarnations(self.traces, self.topic, self.partition))

    @property
    def last_incarnation(self) -> TopicIncarnation | None:
        """The incarnation that the logs are of; None where the trace does not have their topic."""
        incarnation = self.incarnations[-1]
        ids = {each.topic_id for each in self.metadata.replicas} - {None}
        if ids and incarnation.topic_id is not None and incarnation.topic_id not in ids:
            return None
        return incarnation
