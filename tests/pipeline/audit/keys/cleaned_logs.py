"""Logs of keys, and what a cleaner leaves of them: as Kafka's does, at other times on each broker.

A pass goes from the begin of a log to an offset before which no transaction is open. It takes each
record that a newer one of its key follows there, and what aborted transactions have written;
tombstones that a pass before has left; markers of whose transaction nothing is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

from fencepost.pipeline.audit.keys.key_comparison import compare_keys
from fencepost.pipeline.audit.keys.key_differences import KeyDifferences, joined
from fencepost.pipeline.audit.keys.key_scan import KEYS, scan_keys
from fencepost.pipeline.datasource.segments import SegmentFiles
from fencepost.protocol.compression import Codec
from fencepost.protocol.records import Record, build_batch, iter_headers, stamp
from fencepost.protocol.transaction_markers import TransactionMarker
from tests.pipeline.datasource.segments import write

OPEN, ABORTED, COMMITTED = None, False, True
T: Final = 1_700_000_000_000
"""The timestamp of offset 0; each record is a second younger than the one before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch of a log, or a marker."""

    base: int
    last: int
    """Inclusive."""
    records: tuple[Record, ...] = ()
    producer: int = -1
    """Of the transaction that it is of, or that it ends."""
    marker: bool | None = None
    """Whether it commits; None where it is no marker."""
    is_cleaned: bool = False

    def to_bytes(self, codec: Codec) -> bytes:
        """As a broker has it on its disk."""
        if self.marker is not None:
            end = TransactionMarker(
                producer_id=self.producer,
                producer_epoch=0,
                coordinator_epoch=0,
                committed=self.marker,
                transaction_version=0,
            )
            data = end.to_batch(T + 1000 * self.base)
            ((_, header),) = iter_headers(data)
            stamp(data, 0, header, base_offset=self.base, leader_epoch=0)
            return bytes(data)
        return bytes(
            build_batch(
                self.records,
                base_offset=self.base,
                last_offset=self.last,
                leader_epoch=0,
                codec=codec,
                producer_id=self.producer,
                producer_epoch=0 if self.producer >= 0 else -1,
                base_sequence=self.base if self.producer >= 0 else -1,
                transactional=self.producer >= 0,
                delete_horizon_ms=T if self.is_cleaned else None,
                max_timestamp=T,
            )
        )


Log = tuple[Batch, ...]


def end_of(log: Log) -> int:
    """Behind its last offset (exclusive)."""
    return log[-1].last + 1 if log else 0


def fates(log: Iterable[Batch]) -> dict[int, bool | None]:
    """Of each offset of a record whether it counts: not where its transaction was aborted; None
    where that is open.
    """
    found: dict[int, bool | None] = {}
    waiting: dict[int, list[int]] = {}
    for batch in log:
        if batch.marker is not None:
            found |= dict.fromkeys(waiting.pop(batch.producer, ()), batch.marker)
            continue
        offsets = [record.offset for record in batch.records]
        found |= dict.fromkeys(offsets, COMMITTED if batch.producer < 0 else OPEN)
        if batch.producer >= 0:
            waiting.setdefault(batch.producer, []).extend(offsets)
    return found


def newest_values(log: Log) -> dict[bytes, Record]:
    """The newest record that counts of each key, without tombstones."""
    fate = fates(log)
    found: dict[bytes, Record] = {}
    for batch in log:
        for record in batch.records if batch.marker is None else ():
            if record.key is not None and fate[record.offset]:
                found[record.key] = record
    return {key: record for key, record in found.items() if record.value is not None}


def stable_end(log: Log) -> int:
    """Where the first open transaction begins; the log end where there is none."""
    fate = fates(log)
    return min((offset for offset, each in fate.items() if each is OPEN), default=end_of(log))


def cleaned(log: Log, until: int, *, tombstones_until: int, keeps_empty: bool) -> Log:
    """What a pass leaves.

    :param until: It goes no further (exclusive).
    :param tombstones_until: Up to where (exclusive) the time of tombstones and markers is over.
    :param keeps_empty: Whether batches stay of which no record is left.
    """
    fate = fates(log)
    head = tuple(each for each in log if each.last < until)
    latest = {
        record.key: record.offset
        for batch in head
        for record in batch.records
        if fate[record.offset]
    }

    def stays(record: Record) -> bool:
        is_gone = record.value is None and record.offset < tombstones_until
        return (
            fate[record.offset] is COMMITTED and latest[record.key] == record.offset and not is_gone
        )

    left = tuple(
        replace(
            each,
            records=tuple(filter(stays, each.records)),
            is_cleaned=any(record.value is None for record in each.records),
        )
        for each in head
        if each.marker is None
    )
    alive = {offset for each in left for offset in (record.offset for record in each.records)}
    found: dict[int, Batch] = {each.base: each for each in left if each.records or keeps_empty}
    of_transaction: dict[int, list[int]] = {}
    for each in head:
        if each.marker is None:
            of_transaction.setdefault(each.producer, []).extend(r.offset for r in each.records)
            continue
        offsets = of_transaction.pop(each.producer, [])
        if alive.intersection(offsets) or each.base >= tombstones_until:
            found[each.base] = each
    return (*(found[base] for base in sorted(found)), *log[len(head) :])


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """A log as its leader has written it."""
    found: list[Batch] = []
    offset = 0
    for _ in range(draw(st.integers(2, 16))):
        kind = draw(st.sampled_from(("plain", "plain", "sent", "ended")))
        producer = draw(st.integers(1, 2)) if kind != "plain" else -1
        if kind == "ended":
            marker = draw(st.booleans())
            found.append(Batch(base=offset, last=offset, producer=producer, marker=marker))
            offset += 1
            continue
        count = draw(st.integers(1, 4))
        records = tuple(
            Record(
                each,
                T + 1000 * each,
                draw(st.sampled_from((b"a", b"bb", b"c" * 9, b"d" * 300))),
                draw(st.sampled_from((None, b"v%d" % each, b"v%d" % each * 100))),
            )
            for each in range(offset, offset + count)
        )
        found.append(
            Batch(base=offset, last=offset + count - 1, records=records, producer=producer)
        )
        offset += count
    return tuple(found)


@st.composite
def copies(draw: st.DrawFn, log: Log) -> Log:
    """A replica that has fetched so much of a log, and cleaned it twice, or not so often."""
    own = log[: draw(st.integers(1, len(log)))] if draw(st.booleans()) else log
    first = draw(st.integers(0, stable_end(own)))
    second = draw(st.integers(first, stable_end(own)))
    keeps_empty = draw(st.booleans())
    own = cleaned(own, first, tombstones_until=0, keeps_empty=keeps_empty)
    gone = draw(st.integers(0, first))
    return cleaned(own, second, tombstones_until=gone, keeps_empty=keeps_empty)


def without(log: Log, offset: int) -> Log:
    """A log that has lost one record."""
    return tuple(
        replace(each, records=tuple(r for r in each.records if r.offset != offset)) for each in log
    )


def write_log(folder: Path, log: Log, broker: int, *, segments: int) -> list[SegmentFiles]:
    """A log in files: so many segments at most.

    An empty one follows that begins at the log end, as after a roll.
    """
    size = -(-len(log) // segments) or 1
    parts: list[Log] = [log[at : at + size] for at in range(0, len(log), size)]
    bases = [0, *(part[0].base for part in parts[1:])]
    data: Mapping[int, Sequence[bytes]] = {
        base: [each.to_bytes(Codec(number % 5)) for number, each in enumerate(part)]
        for base, part in zip(bases, parts, strict=False)
    }
    where = folder / f"broker-{broker}"
    return [
        replace(write(where, own, base_offset=base).files, broker=broker)
        for base, own in data.items()
    ]


def differences(files: Iterable[SegmentFiles], parts: int, most: int = 1_000) -> KeyDifferences:
    """What is found by the keys in segments of several replicas.

    :param most: As `scan_keys` has it, like ``parts``.
    """
    batches = [batch for each in files for batch in scan_keys(each, parts, most=most)]
    rows = pa.Table.from_batches(batches, KEYS)
    return joined(compare_keys(rows.filter(pc.equal(rows["part"], each))) for each in range(parts))
