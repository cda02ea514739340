"""The logs of plain partitions (`BucketScreen.is_plain`), cut out of the arrays of their bucket.

What is made of them is what `replica_logs`, `may_be_compacted` and `replica_inventories` make of
the rows of one partition, which takes a millisecond for each.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from fencepost.pipeline.audit.batch_arrays import Batches, BoolArray, Int64Array
from fencepost.pipeline.audit.bucket_screen import BucketScreen
from fencepost.pipeline.audit.partition_logs import ReplicaLog, may_be_compacted, replica_logs
from fencepost.pipeline.audit.partition_summary import (
    ReplicaInventory,
    SegmentSpan,
    merge_neighbours,
)
from fencepost.pipeline.audit.rule import PartitionEvidence, ReplicaMetadata, remember
from fencepost.pipeline.datasource.schemas import Place


class PlainLogs:
    """The logs of the plain partitions of a bucket."""

    def __init__(self, bucket: BucketScreen) -> None:
        replicas = bucket.replicas
        arrays = bucket.batches
        kept = bucket.is_plain[arrays["partition"]]
        self._arrays = {name: array[kept] for name, array in arrays.items()}
        self._is_plain: list[bool] = bucket.is_plain.tolist()
        self._is_without_producer: list[bool] = bucket.has_no_producer.tolist()
        self._replicas = replicas.replicas
        numbers = np.arange(len(self._replicas) + 1)
        # Those of a partition follow each other, and so do the batches and the rows of each.
        self._first_replica: list[int] = np.searchsorted(
            replicas.partition, np.arange(len(self._is_plain) + 1)
        ).tolist()
        self._log = bucket.log_of_batch[kept]
        self._edges: list[int] = np.searchsorted(self._log, numbers).tolist()
        owner = bucket.log_of_row[bucket.is_plain[bucket.partition_of_row]]
        self._row_edges: list[int] = np.searchsorted(owner, numbers).tolist()

    def remember(self, number: int, evidence: PartitionEvidence) -> None:
        """Let rules have the logs of a partition, if it is plain."""
        if not self._is_plain[number]:
            return
        logs = tuple(self._logs(number, evidence))
        remember(evidence, replica_logs, logs)
        never = all(log.batches.is_never_compacted.all() for log in logs)
        remember(evidence, may_be_compacted, evidence.metadata.compacted or not never)

    def inventories(self, number: int) -> tuple[ReplicaInventory, ...] | None:
        """What the replicas of a partition hold; None where that is to be found out of its rows."""
        if not self._is_without_producer[number]:
            return None
        first, behind = self._first_replica[number : number + 2]
        return tuple(
            self._inventory(each)
            for each in range(first, behind)
            if self._edges[each] < self._edges[each + 1]
        )

    def _logs(self, number: int, evidence: PartitionEvidence) -> Iterator[ReplicaLog]:
        first, behind = self._first_replica[number : number + 2]
        for each in range(first, behind):
            start, end = self._edges[each : each + 2]
            row, row_behind = (edge - self._row_edges[first] for edge in self._row_edges[each:][:2])
            yield ReplicaLog(
                metadata=_in_order(self._replicas[each]),
                rows=evidence.batches.slice(row, row_behind - row),
                batches=Batches(
                    **{
                        field: self._arrays[column][start:end]
                        for field, column in Batches.columns().items()
                    },
                    batches=self._arrays["batches"][start:end],
                ),
            )

    @cached_property
    def _segments(self) -> tuple[Int64Array, list[SegmentSpan]]:
        """Of each segment with a batch the number of its replica, and what it has."""
        segment, log = self._arrays["segment"], self._log
        begins: BoolArray = np.append(True, (np.diff(segment) != 0) | (np.diff(log) != 0))
        starts = np.flatnonzero(begins[: len(segment)])
        if not len(starts):
            return starts, []
        behind = np.append(starts[1:], len(segment)) - 1
        spans = zip(
            segment[starts].tolist(),
            (self._arrays["last_offset"][behind] + 1).tolist(),
            np.add.reduceat(self._arrays["size"], starts).tolist(),
            strict=True,
        )
        return log[starts], [SegmentSpan(start=s, end=end, bytes=size) for s, end, size in spans]

    @cached_property
    def _segment_edges(self) -> list[int]:
        edges: list[int] = np.searchsorted(
            self._segments[0], np.arange(len(self._replicas) + 1)
        ).tolist()
        return edges

    def _inventory(self, replica: int) -> ReplicaInventory:
        start, end = self._edges[replica : replica + 2]
        first, behind = self._segment_edges[replica : replica + 2]
        spans = self._segments[1][first:behind]
        return ReplicaInventory(
            place=Place.LOG.value,
            broker=self._replicas[replica].broker,
            batches=int(self._arrays["batches"][start:end].sum()),
            records=int(self._arrays["count"][start:end].sum()),
            bytes=sum(each.bytes for each in spans),
            problems=0,
            start=spans[0].start,
            end=spans[-1].end,
            segments=len(spans),
            largest=max(each.bytes for each in spans),
            spans=merge_neighbours(spans),
        )


def _in_order(replica: ReplicaMetadata) -> ReplicaMetadata:
    """It, as `replica_logs` has it: all segments with a row are among those that it names."""
    assert list(replica.segments) == sorted(set(replica.segments)), "they are by base offset"
    return replica
