"""Compares replicas by the newest records of some of the keys of a partition.

A cleaner keeps the newest record of a key, of those before the offset up to which it has been. So
another replica that reaches as far has that record, or a newer one of the key. A tombstone may be
gone, and what an aborted transaction wrote.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.batch_arrays import BoolArray, Int64Array
from fencepost.pipeline.audit.keys.key_differences import (
    KeyDifference,
    KeyDifferences,
    by_offset,
    named_key,
)
from fencepost.pipeline.audit.keys.key_scan import (
    ENDED,
    OF_RECORD,
    RECORD,
    SEGMENT,
    TOMBSTONE,
    UNREAD,
)
from fencepost.pipeline.audit.keys.newest_records import (
    DECIDED,
    HEAD,
    KEYED,
    MARKER,
    Rows,
    decided,
    newest,
)

_MAX_LISTED: Final = 64
"""Differences of two replicas in one part of the keys that are told one by one; all are counted."""
_NOWHERE: Final = -1


def compare_keys(rows: pa.Table) -> KeyDifferences:
    """Where replicas differ in some keys.

    A replica of which a segment could not be read is compared with none.

    :param rows: `KEYS` of one part of a partition, of all replicas, in any order.
    """
    unread = pc.unique(rows.filter(pc.equal(rows["kind"], UNREAD))["broker"])
    rows = rows.filter(pc.invert(pc.is_in(rows["broker"], unread)))
    brokers = sorted(pc.unique(rows["broker"]).to_pylist())
    sides = [_Side.of(each, rows.filter(pc.equal(rows["broker"], each))) for each in brokers]
    found: list[KeyDifference] = []
    more = 0
    for one, other in combinations(sides, 2):
        for each in (_lacking(one, other), _lacking(other, one), _differing(one, other)):
            found += each.found
            more += each.more
    return KeyDifferences(found=tuple(sorted(found, key=by_offset)), more=more)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Side:
    """A replica: a number of each key in every array, and keys by their hashes."""

    broker: int
    start: int
    """The first offset that it may have."""
    end: int
    """Exclusive."""
    records: Rows
    """Of each key the newest that counts; its offset is `_NOWHERE` where none does."""
    reach: Int64Array
    """Of each key the newest record, also of an open transaction."""

    @classmethod
    def of(cls, broker: int, rows: pa.Table) -> _Side:
        """Of `KEYS` of it."""
        spans = rows.filter(pc.equal(rows["kind"], SEGMENT))
        found = newest(decided(_keyed(rows), _markers(rows)))
        begins = np.append(True, found["hash"][1:] != found["hash"][:-1])[: len(found)]
        firsts = np.flatnonzero(begins)
        records = found[firsts].copy()
        records["offset"][records["producer"] != DECIDED] = _NOWHERE
        reach = np.maximum.reduceat(found["offset"], firsts) if len(firsts) else firsts
        return cls(
            broker=broker,
            start=pc.min(spans["offset"]).as_py() or 0,
            end=pc.max(spans["value"]).as_py() or 0,
            records=records,
            reach=reach,
        )

    def numbers_of(self, hashes: Int64Array) -> Int64Array:
        """The number of each key here, `_NOWHERE` of one that is not."""
        own = self.records["hash"]
        if not len(own):
            return np.full(len(hashes), _NOWHERE)
        numbers = np.minimum(np.searchsorted(own, hashes), len(own) - 1)
        return np.where(own[numbers] == hashes, numbers, _NOWHERE)


def _keyed(rows: pa.Table) -> Rows:
    rows = rows.filter(pc.is_in(rows["kind"], pa.array((RECORD, TOMBSTONE), pa.int8())))
    found = np.zeros(rows.num_rows, KEYED)
    for name in OF_RECORD:
        found[name] = rows[name].to_numpy()
    found["tombstone"] = rows["kind"].to_numpy() == TOMBSTONE
    return found


def _markers(rows: pa.Table) -> Rows:
    rows = rows.filter(pc.equal(rows["kind"], ENDED))
    found = np.zeros(rows.num_rows, MARKER)
    for name, column in (("producer", "producer"), ("offset", "offset"), ("committed", "value")):
        found[name] = rows[column].to_numpy()
    return found


def _lacking(holder: _Side, other: _Side) -> KeyDifferences:
    """What another replica must have, and has neither it nor a newer one of its key."""
    records = holder.records
    numbers = other.numbers_of(records["hash"])
    reach = np.append(other.reach, _NOWHERE)[numbers]
    offsets = records["offset"]
    lacks = (offsets >= other.start) & (offsets < other.end) & (reach < offsets)
    return _told(records, lacks & ~records["tombstone"], holder, other, is_there=False)


def _differing(one: _Side, other: _Side) -> KeyDifferences:
    """Where the newest records of a key have one offset, and different values."""
    records = one.records
    numbers = other.numbers_of(records["hash"])
    if not len(other.records):
        return KeyDifferences()
    others = other.records[numbers]
    differs = (numbers != _NOWHERE) & (records["offset"] != _NOWHERE)
    differs &= records["offset"] == others["offset"]
    differs &= (records["value"] != others["value"]) | (records["tombstone"] != others["tombstone"])
    return _told(records, differs, one, other, is_there=True)


def _told(
    records: Rows, which: BoolArray, holder: _Side, other: _Side, *, is_there: bool
) -> KeyDifferences:
    chosen = records[which]
    listed = chosen[np.argsort(chosen["offset"])[:_MAX_LISTED]]
    found = tuple(
        KeyDifference(
            holder=holder.broker,
            other=other.broker,
            offset=int(record["offset"]),
            time_ms=int(record["time"]),
            key=named_key(int(record["size"]), *(int(record[name]) for name in HEAD)),
            is_there=is_there,
        )
        for record in listed
    )
    return KeyDifferences(found=found, more=len(chosen) - len(listed))
