"""Reads the transaction coordinators' log in tasks: each partition of it is folded by one of them.

What a coordinator knows of a partition's transaction goes to that partition. The rest, a few
numbers for each producer, goes to every bucket: a producer whose transaction is open in a log may
be one that the coordinator has no partition of.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.coordinator_log import (
    COLUMNS,
    SCHEMA,
    CoordinatedProducer,
    coordinator_log,
    last_records,
)
from fencepost.pipeline.audit.metadata_rows import (
    CoordinatorFacts,
    CoordinatorReplica,
    MetadataRow,
    TransactionPart,
)
from fencepost.pipeline.datasource.segment_scan import scan_records

if TYPE_CHECKING:
    from fencepost.pipeline.audit.metadata_tasks import Wanted
    from fencepost.pipeline.audit.rule import TopicPartition


def scan_replica(replica: CoordinatorReplica) -> Iterator[pa.RecordBatch]:
    """Of each part of a replica the records that count, after a row without a key: it is there.

    :returns: `SCHEMA`.
    """
    yield pa.RecordBatch.from_pylist([{"partition": replica.partition}], schema=SCHEMA)
    for files in replica.segments:
        for each in scan_records(files):
            table = pa.Table.from_batches([each]).select(COLUMNS).cast(SCHEMA)
            yield from last_records(table).to_batches()


def fold_partitions(wanted: Wanted, rows: pa.Table) -> Iterator[MetadataRow]:
    """What some partitions of the log say.

    :param rows: `SCHEMA`: all that `scan_replica` left of these partitions.
    """
    for partition in sorted(pc.unique(rows["partition"]).to_pylist()):
        of_it = rows.filter(pc.equal(rows["partition"], partition))
        known = coordinator_log(last_records(of_it), (partition,), clean=False)
        assert known is not None, "a partition was named"
        yield MetadataRow(
            value=CoordinatorFacts(
                partition=partition,
                latest_ms=known.latest_ms,
                producers={
                    producer: replace(each, partitions=frozenset(), decision=None)
                    for producer, each in known.producers.items()
                },
            )
        )
        for key, producers in _by_partition(known.producers).items():
            if wanted.is_audited(key[0]):
                yield MetadataRow(value=TransactionPart(producers=producers), partition=key)


def _by_partition(
    producers: Mapping[int, CoordinatedProducer],
) -> dict[TopicPartition, dict[int, CoordinatedProducer]]:
    """The producers of each partition, of whose partitions only that one is named."""
    found: dict[TopicPartition, dict[int, CoordinatedProducer]] = defaultdict(dict)
    for producer, known in producers.items():
        decided = frozenset() if known.decision is None else known.decision.partitions
        for key in known.partitions | decided:
            only = frozenset((key,))
            found[key][producer] = replace(
                known,
                partitions=only & known.partitions,
                decision=replace(known.decision, partitions=only)
                if known.decision is not None and key in decided
                else None,
            )
    return found


def read_coordinators(
    wanted: Wanted, replicas: Iterable[CoordinatorReplica]
) -> Iterator[MetadataRow]:
    """What all coordinators know, in this process."""
    batches = [batch for each in replicas for batch in scan_replica(each)]
    yield from fold_partitions(wanted, pa.Table.from_batches(batches, SCHEMA))
