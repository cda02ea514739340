"""What arrays over all partitions of a bucket prove: that rules find nothing in most of them.

A rule takes milliseconds for a partition, however small. Most partitions are as they should be, and
that is seen of thousands at a time. A rule's screen (`Rule.screen`) tells of each partition whether
it certainly finds nothing there; where it does not, or a rule has none, its own code runs.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.batch_arrays import Batches, BoolArray, Int64Array
from fencepost.pipeline.audit.condensed.segment_folds import SegmentFolds
from fencepost.pipeline.audit.condensed.window_rows import WINDOWS
from fencepost.pipeline.audit.rule import PartitionEvidence, PartitionMetadata, ReplicaMetadata
from fencepost.pipeline.datasource.schemas import Place
from fencepost.protocol.records import CONTROL_FLAG
from fencepost.storage.formats.checkpoints import encode_snapshot
from fencepost.storage.formats.file_names import FileKind

_COLUMNS: Final = [
    *("place", "broker", "producer_id", "problem", "file", "content", "batches"),
    *Batches.columns().values(),
]
_NO_ROWS: Final = WINDOWS.empty_table().select(_COLUMNS)
_EMPTY_SNAPSHOT: Final = encode_snapshot(())
_NO_EPOCH: Final = -1
_NOT_THERE: Final = -1


class BucketScreen:
    """The partitions of a bucket as arrays; each property has a flag for each of them.

    :param rows: Columns of `WINDOWS`, those of each partition together, by place, broker, segment
        and position.
    :param edges: Where in the rows each partition begins and, of the last one, ends.
    :param metadata: Of each partition.
    :param folds: Of the segments of each partition; none where they were not folded.
    """

    def __init__(
        self,
        rows: pa.Table,
        edges: Sequence[int],
        metadata: Sequence[PartitionMetadata],
        folds: Sequence[Collection[SegmentFolds]],
    ) -> None:
        self._rows = rows
        self._metadata = metadata
        self._folds = folds
        self._count = len(metadata)
        self.partition_of_row: Int64Array = np.repeat(np.arange(self._count), np.diff(edges))
        self.replicas = BucketReplicas(metadata)

    @classmethod
    def of(cls, found: Sequence[PartitionEvidence]) -> Self:
        """The arrays of some partitions."""
        tables = [
            each.batches.select([name for name in _COLUMNS if name in each.batches.schema.names])
            for each in found
            if each.batches.num_rows
        ]
        # Without windows there is no column that says how many batches each row stands for.
        rows = pa.concat_tables([_NO_ROWS, *tables], promote_options="default").combine_chunks()
        edges = np.cumsum([0, *(each.batches.num_rows for each in found)])
        return cls(
            rows,
            edges.tolist(),
            [each.metadata for each in found],
            [each.folds.values() for each in found],
        )

    # -- what a partition is without ------------------------------------------------------------

    @cached_property
    def has_no_problem(self) -> BoolArray:
        """No row tells of a problem."""
        return self._none(self.partition_of_row, _numpy(pc.is_valid(self._rows["problem"])))

    @cached_property
    def has_no_tier(self) -> BoolArray:
        """Nothing of it is in the tier, as far as is known."""
        in_tier = _numpy(pc.not_equal(self._rows["place"], Place.LOG))
        return self._each(lambda known: not known.tier) & self._none(self.partition_of_row, in_tier)

    @cached_property
    def has_no_unread_tier(self) -> BoolArray:
        """Nothing of it was looked for in the tier."""
        return self.has_no_tier & self._each(
            lambda known: not (known.with_tier or known.unreadable)
        )

    @cached_property
    def has_no_producer(self) -> BoolArray:
        """It is plain, and no batch is an idempotent producer's or a transaction's.

        A window does not say whose its batches are: the folds of its segment do.
        """
        batches = self.batches
        numbered = (batches["producer_id"] >= 0) | ((batches["attributes"] & CONTROL_FLAG) != 0)
        has_folds = np.fromiter(map(bool, self._folds), bool, self._count)
        numbered |= (batches["batches"] > 1) & ~has_folds[batches["partition"]]
        are_empty = (all(each.is_empty for each in folds) for folds in self._folds)
        found = self.is_plain & self._none(batches["partition"], numbered)
        found &= np.fromiter(are_empty, bool, self._count)
        return found

    @cached_property
    def has_no_aborted_transaction(self) -> BoolArray:
        """It has no producer, and no transaction index has an entry."""
        length = pc.fill_null(pc.binary_length(self._files["content"]), _NOT_THERE)
        filled = _numpy(pc.not_equal(length, 0))
        is_index = ~self._is_snapshot
        return self.has_no_producer & self._none(self._file_partitions, is_index & filled)

    @cached_property
    def has_no_absent_replica(self) -> BoolArray:
        """Every replica that must be there is."""
        return self._each(lambda known: not known.absent)

    @cached_property
    def has_no_key_difference(self) -> BoolArray:
        """Its replicas do not differ by keys, or were not compared so."""
        return self._each(lambda known: not known.key_differences.found)

    @cached_property
    def has_no_leftover(self) -> BoolArray:
        """No file is on its way in or out."""
        replicas = self.replicas
        return self._none(replicas.partition, replicas.flags(lambda each: bool(each.leftovers)))

    @cached_property
    def has_one_replica(self) -> BoolArray:
        """It is plain, and there is nothing to compare its log with."""
        count = np.bincount(self.replicas.partition, minlength=self._count)
        return self.is_plain & (count < 2)

    @cached_property
    def has_one_topic_id(self) -> BoolArray:
        """All replicas that say a topic id say the same."""
        return self._all_known & self._each(
            lambda known: len({each.topic_id for each in known.replicas} - {None}) < 2
        )

    # -- what a partition is -----------------------------------------------------------------------

    @cached_property
    def is_plain(self) -> BoolArray:
        """It lies in logs alone, without a problem, and each offset follows on the one before it.

        The first of a log, and of each segment, is the one that the segment is named for.
        """
        batches, log = self.batches, self.log_of_batch
        segment, base = batches["segment"], batches["base_offset"]
        same_log = _follows(log)
        ended = np.append(0, batches["last_offset"][:-1] + 1)[: len(base)]
        begins = ~same_log | ~_follows(segment)
        odd = (same_log & (base != ended)) | (begins & (base != segment))
        odd |= (batches["batches"] > 1) & (batches["count"] != batches["last_offset"] - base + 1)
        return (
            self.has_no_problem
            & self.has_no_tier
            & self._all_known
            & self._none(batches["partition"], odd)
        )

    @cached_property
    def ends_late_enough(self) -> BoolArray:
        """It is plain, and each log has what it had by its checkpoints."""
        replicas = self.replicas
        least = replicas.numbers(
            lambda each: max(each.high_watermark or 0, each.recovery_point or 0)
        )
        return self.is_plain & self._none(replicas.partition, self._log_end < least)

    @cached_property
    def starts_in_log(self) -> BoolArray:
        """It is plain, and no checkpointed log start lies beyond the log end."""
        replicas = self.replicas
        return self.is_plain & self._none(replicas.partition, self._log_start > self._log_end)

    @cached_property
    def starts_early_enough(self) -> BoolArray:
        """It is plain, and each log begins where its checkpoints say that it starts, or before."""
        replicas, end = self.replicas, self._log_end
        checkpointed = np.where(self._log_start <= end, self._log_start, 0)
        by_epochs = replicas.numbers(lambda each: each.epochs[0][1] if each.epochs else 0)
        has_epochs = replicas.flags(lambda each: bool(each.epochs)) & (by_epochs <= end)
        start = np.where(has_epochs, np.maximum(checkpointed, by_epochs), checkpointed)
        first = replicas.numbers(lambda each: each.segments[0] if each.segments else 0)
        late = (has_epochs | (checkpointed > 0)) & (start < first)
        return self.is_plain & self._none(replicas.partition, late)

    @cached_property
    def has_its_epochs(self) -> BoolArray:
        """It is plain, and each batch is of the leader epoch that the checkpoint says."""
        replicas, batches, log = self.replicas, self.batches, self.log_of_batch
        owners, epochs, starts = replicas.epochs
        same = _follows(owners)
        falls = same & ~(
            (np.diff(epochs, prepend=_NO_EPOCH) > 0) & (np.diff(starts, prepend=_NOT_THERE) > 0)
        )
        epoch = batches["epoch"]
        wrong = epoch < 0
        for name in ("base_offset", "last_offset"):
            number = _as_of(owners, starts, log, batches[name])
            said = np.where(number >= 0, np.append(epochs, _NO_EPOCH)[number], _NO_EPOCH)
            wrong |= said != epoch
        behind = starts > self._log_end[owners]
        return (
            self.is_plain
            & self._none(replicas.partition[owners], falls | behind)
            & self._none(batches["partition"], wrong)
        )

    @cached_property
    def has_its_snapshots(self) -> BoolArray:
        """It has no producer, no snapshot names one, and none is missing or behind the log end."""
        content = self._files["content"]
        full = ~_numpy(pc.fill_null(pc.equal(content, _EMPTY_SNAPSHOT), fill_value=False))
        replicas = self.replicas
        ends = self._log_end.tolist()
        wrong = [
            _lacks_snapshot(each, end) for each, end in zip(replicas.replicas, ends, strict=True)
        ]
        return (
            self.has_no_producer
            & self._none(self._file_partitions, self._is_snapshot & full)
            & self._none(replicas.partition, np.array(wrong, bool))
        )

    # -- arrays ------------------------------------------------------------------------------------

    @cached_property
    def batches(self) -> Mapping[str, Int64Array]:
        """The rows that are batches or windows of them, by column.

        There are two columns more: ``partition`` is the number of theirs, and ``batches`` how many
        each stands for.
        """
        is_batch = pc.is_valid(self._rows["base_offset"])
        rows = self._rows.filter(is_batch)
        found = {name: _integers(rows[name], 0) for name in Batches.columns().values()}
        for name in ("broker", "producer_id"):
            found[name] = _integers(rows[name], _NOT_THERE)
        found["partition"] = self.partition_of_row[_numpy(is_batch)]
        found["batches"] = _integers(rows["batches"], 1)
        return found

    @cached_property
    def log_of_batch(self) -> Int64Array:
        """The replica that each batch is of; `_NOT_THERE` in the tier, or where none is known."""
        return self.replicas.find(self.batches["partition"], self.batches["broker"])

    @cached_property
    def log_of_row(self) -> Int64Array:
        """The replica that each row is of, as `log_of_batch`."""
        brokers = _integers(self._rows["broker"], _NOT_THERE)
        return self.replicas.find(self.partition_of_row, brokers)

    @cached_property
    def _all_known(self) -> BoolArray:
        """Each log that has rows is a known replica's, and each segment one of its, in order."""
        owner = self.log_of_row
        segment = _integers(self._rows["segment"], _NOT_THERE)
        owners, bases = self.replicas.segments
        unsorted = _follows(owners) & (np.diff(bases, prepend=_NOT_THERE) <= 0)
        number = _as_of(owners, bases, owner, segment)
        known = (owner >= 0) & (number >= 0)
        known &= np.append(bases, _NOT_THERE)[number] == segment
        in_order = self._none(self.replicas.partition[owners], unsorted)
        return in_order & self._none(self.partition_of_row, ~known)

    @cached_property
    def _log_end(self) -> Int64Array:
        """Of each replica, behind its last batch (exclusive); where its last segment begins."""
        end = self.replicas.numbers(lambda each: each.segments[-1] if each.segments else 0)
        log = self.log_of_batch
        known = log >= 0
        np.maximum.at(end, log[known], self.batches["last_offset"][known] + 1)
        return end

    @cached_property
    def _log_start(self) -> Int64Array:
        return self.replicas.numbers(lambda each: each.log_start or 0)

    @cached_property
    def _files(self) -> pa.Table:
        """The rows that are files beside segments."""
        return self._rows.filter(pc.is_valid(self._rows["file"])).select(["file", "content"])

    @cached_property
    def _file_partitions(self) -> Int64Array:
        return self.partition_of_row[_numpy(pc.is_valid(self._rows["file"]))]

    @cached_property
    def _is_snapshot(self) -> BoolArray:
        kind = FileKind.PRODUCER_SNAPSHOT.value
        return _numpy(pc.ends_with(self._files["file"], kind))

    def _none(self, partition: Int64Array, flags: BoolArray) -> BoolArray:
        """The partitions that have no flag."""
        found: BoolArray = np.bincount(partition[flags], minlength=self._count) == 0
        return found

    def _each(self, is_so: Callable[[PartitionMetadata], bool]) -> BoolArray:
        return np.fromiter(map(is_so, self._metadata), bool, self._count)


class BucketReplicas:
    """The replicas of all partitions, by partition and broker.

    :ivar replicas: They.
    :ivar partition: Of each the number of its partition.
    """

    def __init__(self, metadata: Sequence[PartitionMetadata]) -> None:
        found = [
            (number, each)
            for number, known in enumerate(metadata)
            for _, each in sorted({each.broker: each for each in known.replicas}.items())
        ]
        self.replicas = [each for _, each in found]
        self.partition: Int64Array = np.array([number for number, _ in found], np.int64)
        self._keys = _replica_keys(self.partition, self.numbers(lambda each: each.broker))

    def numbers(self, number_of: Callable[[ReplicaMetadata], int]) -> Int64Array:
        """A number of each."""
        return np.fromiter(map(number_of, self.replicas), np.int64, len(self.replicas))

    def flags(self, is_so: Callable[[ReplicaMetadata], bool]) -> BoolArray:
        """A flag of each."""
        return np.fromiter(map(is_so, self.replicas), bool, len(self.replicas))

    def find(self, partition: Int64Array, broker: Int64Array) -> Int64Array:
        """The numbers of replicas; `_NOT_THERE` where there is no such one."""
        if not self.replicas:
            return np.full(len(partition), _NOT_THERE)
        keys = _replica_keys(partition, broker)
        number = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[number] == keys, number, _NOT_THERE)

    @cached_property
    def segments(self) -> tuple[Int64Array, Int64Array]:
        """Of each segment the number of its replica, and its base offset."""
        owners = np.repeat(
            np.arange(len(self.replicas)), self.numbers(lambda each: len(each.segments))
        )
        bases = [base for each in self.replicas for base in each.segments]
        return owners, np.array(bases, np.int64)

    @cached_property
    def epochs(self) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Of each checkpointed leader epoch the number of its replica, it, and its start offset."""
        of_each = [each.epochs or () for each in self.replicas]
        entries = np.array([entry for entries in of_each for entry in entries], np.int64)
        pairs = entries.reshape(-1, 2)
        owners = np.repeat(np.arange(len(of_each)), [len(entries) for entries in of_each])
        return owners, pairs[:, 0], pairs[:, 1]


def _replica_keys(partition: Int64Array, broker: Int64Array) -> Int64Array:
    """One number for both: broker ids are 32 bits wide."""
    return (partition << 32) + broker


def _lacks_snapshot(replica: ReplicaMetadata, end: int) -> bool:
    """Whether a snapshot may be missing, or lies behind the log end.

    Each segment but the first has one, whatever of the log is deleted, and the log end has.
    """
    if not replica.clean or replica.snapshots is None:
        return False
    there = replica.snapshots
    return max(there, default=0) > end or not {*replica.segments[1:], end} <= {*there, 0}


def _as_of(
    owners: Int64Array, values: Int64Array, asked_owners: Int64Array, asked: Int64Array
) -> Int64Array:
    """For each value that is asked for, the number of its owner's last one up to it; -1 without.

    :param values: Of each owner, ascending.
    """
    owner, value = np.append(owners, asked_owners), np.append(values, asked)
    is_asked = np.arange(len(owner)) >= len(owners)
    order = np.lexsort((is_asked, value, owner))
    is_asked = is_asked[order]
    latest = np.maximum.accumulate(np.where(is_asked, -1, np.arange(len(order))))
    number = order[latest]
    own = (latest >= 0) & (owner[number] == owner[order])
    found = np.full(len(asked), -1)
    found[order[is_asked] - len(owners)] = np.where(own, number, -1)[is_asked]
    return found


def _follows(values: Int64Array) -> BoolArray:
    """Of each whether it is the same as the one before it."""
    found: BoolArray = np.append(False, values[1:] == values[:-1])[: len(values)]
    return found


def _integers(column: pa.ChunkedArray, absent: int) -> Int64Array:
    found: Int64Array = pc.fill_null(column.cast(pa.int64()), absent).to_numpy()
    return found


def _numpy(flags: pa.ChunkedArray) -> BoolArray:
    found: BoolArray = flags.to_numpy()
    return found
