"""The lineage of a partition that tests make up of rows, and short words for what is in it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from fencepost.broker.metadata.image import PartitionImage
from fencepost.pipeline.audit.cluster_metadata import (
    LeaderElection,
    PartitionClusterMetadata,
    PartitionIncarnation,
)
from fencepost.pipeline.audit.lineage.model import PartitionLineage, SidePair, SingleRange
from fencepost.pipeline.audit.lineage.partition_lineage import partition_lineages
from fencepost.pipeline.audit.rule import (
    PartitionEvidence,
    PartitionMetadata,
    ReplicaMetadata,
    TierSegment,
)
from fencepost.pipeline.datasource.schemas import BATCHES, TRACES
from tests.pipeline.audit.log_rows import Row, batch
from tests.pipeline.audit.summaries import NOW_MS


def lineages(
    rows: Sequence[Row],
    *replicas: ReplicaMetadata,
    tier: Sequence[TierSegment] = (),
    trace: pa.Table | None = None,
    compacted: bool = False,
    elections: Sequence[tuple[int, int]] = (),
    with_objects: bool = True,
) -> tuple[PartitionLineage, ...]:
    """What rows come to.

    :param elections: Leaders and their epochs, by the cluster metadata.
    :param with_objects: Whether the objects of the tier were read.
    """
    evidence = PartitionEvidence(
        topic="orders",
        partition=0,
        metadata=PartitionMetadata(
            replicas=replicas,
            tier=tuple(tier),
            with_tier=bool(tier),
            with_objects=with_objects,
            compacted=compacted,
            cluster=PartitionClusterMetadata(incarnations=(_elected(elections),)),
        ),
        batches=pa.Table.from_pylist(list(rows), schema=BATCHES),
        now_ms=NOW_MS,
        traces=None if trace is None else trace.cast(TRACES),
    )
    return partition_lineages(evidence)


def written(broker: int, *epochs: tuple[int, int, int], size: int = 1) -> list[Row]:
    """A log: of each epoch the records of some offsets, the last one exclusive.

    :param size: Records of a batch.
    """
    return [
        batch(base, min(base + size, end) - 1, epoch, broker=broker)
        for epoch, start, end in epochs
        for base in range(start, end, size)
    ]


def pair(lineage: PartitionLineage, broker: int | None, other: int | None) -> SidePair:
    found = lineage.pair(broker, other)
    assert found is not None
    return found


def ranges(found: SidePair) -> list[tuple[str, int, int, int]]:
    """What the first side has alone: relation, epoch, start and end."""
    return [(each.relation, each.epoch, each.start, each.end) for each in found.single]


def committed(single: SingleRange) -> tuple[int | None, int | None]:
    return single.committed_end, single.committed_by


def _elected(elections: Sequence[tuple[int, int]]) -> PartitionIncarnation:
    return PartitionIncarnation(
        topic_id="a",
        created=None,
        deleted=None,
        elections=tuple(
            LeaderElection(
                offset=epoch,
                time_ms=None,
                leader=leader,
                leader_epoch=epoch,
                partition_epoch=epoch,
                isr=(leader,),
                elr=(),
                is_recovering=False,
                is_unclean=None,
            )
            for leader, epoch in elections
        ),
        assignments=(),
        last=PartitionImage(replicas=(), isr=(), leader=-1),
    )
