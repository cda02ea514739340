"""Compacted copies of a partition: from which offset on they have to be put to each other by batch.

Cleaners of brokers run when they like. So replicas of a compacted topic have other batches, and
other records in the same batches, and agree all the same. Before the first offset at which copies
really part, no rule cares which batches a cleaner has left to which copy: they need not be told
apart, however many gaps there are. From that offset on they must.

They part at the first batch of which another copy has another one, and where one copy has records
of a leader epoch behind the beginning of a newer one in another. What is found here may lie before
that offset, and never behind it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow.compute as pc

from fencepost.pipeline.audit.batch_arrays import Batches, Int64Array
from fencepost.pipeline.audit.partition_logs import may_be_compacted
from fencepost.pipeline.audit.rule import PartitionEvidence, PartitionMetadata
from fencepost.pipeline.datasource.schemas import Place

EVERYWHERE: Final = np.iinfo(np.int64).min
"""They part before all offsets."""
NOWHERE: Final = np.iinfo(np.int64).max


def agree_across_gaps(evidence: PartitionEvidence) -> bool:
    """Whether it is enough to know that compacted copies agree.

    It is not where the tier has some of it, as each batch is counted once there; with a trace, as
    batches are looked for that were acknowledged; nor where logs may be of several topics, which
    are told apart by the batches that they have in common.
    """
    topic_ids = {each.topic_id for each in evidence.metadata.replicas} - {None}
    rows = evidence.batches
    return bool(
        evidence.traces is None
        and not evidence.metadata.tier
        and len(topic_ids) < 2
        and may_be_compacted(evidence)
        and pc.all(pc.equal(rows["place"], Place.LOG)).as_py()
    )


def epochs_part_at(metadata: PartitionMetadata, batches: Batches, brokers: Int64Array) -> int:
    """An offset before which no log has records that the leader epochs of another would truncate.

    :param batches: Of all logs, in any order; some may be windows.
    :param brokers: Of each batch whose log it is in.
    """
    spans = _spans(batches, brokers)
    claims = []
    for replica in metadata.replicas:
        own = spans[spans[:, 0] == replica.broker]
        checkpoint = np.array(replica.epochs or (), np.int64).reshape(-1, 2)
        if not _fits(checkpoint, own):
            return EVERYWHERE
        # Of what lies before a log, its checkpoint alone says the epoch.
        begins = int(own[:, 2].min()) if len(own) else max(replica.segments, default=0)
        ends = np.append(checkpoint[1:, 1], begins)[: len(checkpoint)]
        claims.append(np.column_stack((checkpoint, np.maximum(checkpoint[:, 1], ends))))
    known = np.concatenate((spans[:, 1:], *claims))
    known = known[np.argsort(known[:, 0])]
    epochs, firsts = np.unique(known[:, 0], return_index=True)
    if len(epochs) < 2:
        return NOWHERE
    ends = np.maximum.reduceat(known[:, 2], firsts)
    starts = np.minimum.accumulate(np.minimum.reduceat(known[:, 1], firsts)[::-1])[::-1]
    newer = starts[1:]
    return int(newer[ends[:-1] > newer].min(initial=NOWHERE))


def _spans(batches: Batches, brokers: Int64Array) -> Int64Array:
    """Of each leader epoch of each log: broker, epoch, first offset and end (exclusive)."""
    known = batches.epoch >= 0
    keys = np.column_stack((brokers, batches.epoch))[known]
    distinct, numbers = np.unique(keys, axis=0, return_inverse=True)
    numbers = numbers.reshape(-1)
    starts = np.full(len(distinct), NOWHERE)
    ends = np.full(len(distinct), EVERYWHERE)
    np.minimum.at(starts, numbers, batches.base[known])
    np.maximum.at(ends, numbers, batches.last[known] + 1)
    return np.column_stack((distinct, starts, ends))


def _fits(checkpoint: Int64Array, spans: Int64Array) -> bool:
    """Whether the leader epochs of a checkpoint rise, and no batch of its log contradicts them."""
    epochs, starts = checkpoint.T
    if (np.diff(epochs) <= 0).any() or (np.diff(starts) <= 0).any() or (epochs < 0).any():
        return False
    # Entries up to the epoch of each span begin before it, and those behind it at its end or later.
    behind = np.searchsorted(epochs, spans[:, 1], side="right")
    latest = np.append(EVERYWHERE, starts)[behind]
    following = np.append(starts, NOWHERE)[behind]
    return bool((latest <= spans[:, 2]).all() and (spans[:, 3] <= following).all())


def ends_of(batches: Batches, copy: Int64Array) -> Int64Array:
    """The first offset of each copy, and the one behind its last.

    :param batches: By copy.
    """
    firsts = np.flatnonzero(np.diff(copy, prepend=-1))
    if not len(firsts):
        return firsts
    begins = np.minimum.reduceat(batches.base, firsts)
    return np.unique(np.concatenate((begins, np.maximum.reduceat(batches.last, firsts) + 1)))
