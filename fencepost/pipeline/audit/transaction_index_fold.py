"""Folds the aborted transactions of a log, and compares them with its transaction indexes.

An entry of a transaction index (``.txnindex``) names a producer, the first offset of its
transaction, the offset of the marker that aborted it, and the last stable offset when the marker
was appended: where the oldest transaction began that was open then, or else behind the marker.

What a stretch can't tell by itself waits for the stretch before it: of the first marker of each
producer the beginning of its transaction, and last stable offsets that lie before the stretch. Of
these a summary has for each offset the first and the last marker that says it. Where transactions
that were open before have ended, the last stable offset never falls: so what is right at both is
right in between.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from fencepost.pipeline.audit.batch_arrays import Int64Array
from fencepost.pipeline.audit.producer_batches import (
    ABORT,
    NO_MARKER,
    ProducerBatches,
    Stretch,
    last_before,
    starts_of,
)

_NONE: Final = -1
_UNREAD: Final = -2
"""What an entry says of which the index can't be read."""
_NEVER: Final = np.iinfo(np.int64).max
ENTRY: Final = np.dtype(
    [
        ("version", ">i2"),
        ("producer", ">i8"),
        ("first", ">i8"),
        ("last", ">i8"),
        ("stable", ">i8"),
    ]
)
"""An entry of a transaction index."""
Entries: TypeAlias = npt.NDArray[np.void]
"""`ENTRY`, in the order of the markers."""


class IndexFault(Enum):
    """What is wrong with an index."""

    ABSENT = auto()
    """There is no entry for a transaction that is aborted."""
    WITHOUT_MARKER = auto()
    """An entry names a marker that is not there, or aborts nothing."""
    FIRST_OFFSET = auto()
    LAST_STABLE_OFFSET = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFinding:
    """An aborted transaction of which the index says nothing, or something else."""

    fault: IndexFault
    producer: int
    marker: int
    """The offset of the marker that aborts it, as the log or the entry says."""
    said: int
    """By the entry; -1 without one."""
    expected: int
    """By the log; -1 where there is nothing, or no entry to compare it with."""

    @property
    def is_sure(self) -> bool:
        """Whether nothing that is missing in the log could explain it: the records are there."""
        return self.fault is IndexFault.ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The first marker of a producer, which may end what began before the stretch."""

    marker: int
    """Its offset."""
    is_abort: bool
    first: int
    """Of its transaction within the stretch; -1 without data there."""
    said: int
    """The first offset by its entry; -1 without one, -2 where the index can't be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A last stable offset before the stretch, as entries say it."""

    stable: int
    first_marker: int
    last_marker: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSummary:
    """What a stretch says of aborted transactions."""

    start: int
    end: int
    """Exclusive."""
    holes: int
    endings: Mapping[int, Ending]
    """By producer id."""
    open: Mapping[int, int]
    """The first offset of each transaction that is open at the end, by producer id."""
    claims: Mapping[int, Claim]
    """By last stable offset."""
    none_before: int
    """The first marker whose entry says that nothing from before the stretch is open."""
    findings: frozenset[IndexFinding]


def summarize(stretch: Stretch, entries: Entries | None) -> IndexSummary:
    """The summary of one stretch.

    :param entries: Those of its markers; None where the index can't be read.
    """
    batches = stretch.batches
    ends = _Ends.of(batches)
    findings: set[IndexFinding] = set()
    claims: dict[int, Claim] = {}
    none_before = int(_NEVER)
    said = np.full(len(ends.marker), _UNREAD if entries is None else _NONE)
    if entries is not None:
        number = _match(ends, entries)
        found = number >= 0
        said[number[found]] = entries["first"][found]
        findings |= without_marker(entries[~found])
        findings |= _wrong_firsts(ends, said)
        claims, none_before, wrong = _stable_offsets(stretch, ends, number[found], entries[found])
        findings |= wrong
    return IndexSummary(
        start=stretch.start,
        end=stretch.end,
        holes=stretch.holes,
        endings=_endings(ends, said),
        open=_open(stretch),
        claims=claims,
        none_before=none_before,
        findings=frozenset(findings),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Ends:
    """Of each marker of a stretch, by its offset."""

    producer: Int64Array
    marker: Int64Array
    """Its offset."""
    first: Int64Array
    """Of the transaction that it ends, within the stretch; -1 without data there."""
    is_abort: npt.NDArray[np.bool_]
    is_first: npt.NDArray[np.bool_]
    """Of its producer."""

    @classmethod
    def of(cls, batches: ProducerBatches) -> "_Ends":
        numbers = np.flatnonzero(~batches.is_data)
        before = _marker_before(batches)[numbers]
        data = np.flatnonzero(batches.is_data & batches.transactional)
        begins = _begins(batches)[numbers]
        at = np.searchsorted(data, np.maximum(before + 1, begins))
        first = np.append(data, len(batches))[at]
        bases = np.append(batches.base, _NONE)
        order = np.argsort(batches.base[numbers], kind="stable")
        found = cls(
            producer=batches.producer[numbers],
            marker=batches.base[numbers],
            first=np.where(first < numbers, bases[first], _NONE),
            is_abort=batches.marker[numbers] == ABORT,
            is_first=before == _NONE,
        )
        return found.select(order)

    def select(self, which: Int64Array) -> "_Ends":
        """Some of them."""
        return _Ends(
            producer=self.producer[which],
            marker=self.marker[which],
            first=self.first[which],
            is_abort=self.is_abort[which],
            is_first=self.is_first[which],
        )


def _begins(batches: ProducerBatches) -> Int64Array:
    """For each batch the number of its producer's first."""
    return starts_of(np.append(True, batches.producer[1:] != batches.producer[:-1])[: len(batches)])


def _marker_before(batches: ProducerBatches) -> Int64Array:
    before = last_before(batches.marker != NO_MARKER)
    return np.where(before >= _begins(batches), before, _NONE)


def _match(ends: _Ends, entries: Entries) -> Int64Array:
    """For each entry the number of the marker that it names, -1 without one that aborts."""
    if not len(ends.marker):
        return np.full(len(entries), _NONE)
    at = np.minimum(np.searchsorted(ends.marker, entries["last"]), len(ends.marker) - 1)
    is_it = (ends.marker[at] == entries["last"]) & (ends.producer[at] == entries["producer"])
    found: Int64Array = np.where(is_it & ends.is_abort[at], at, _NONE)
    return found


def without_marker(entries: Entries) -> set[IndexFinding]:
    """That entries name no marker which aborts."""
    return {
        IndexFinding(
            fault=IndexFault.WITHOUT_MARKER,
            producer=int(entry["producer"]),
            marker=int(entry["last"]),
            said=int(entry["first"]),
            expected=_NONE,
        )
        for entry in entries
    }


def _wrong_firsts(ends: _Ends, said: Int64Array) -> set[IndexFinding]:
    """What is wrong with the first offsets of transactions that began in the stretch."""
    absent = (ends.first != _NONE) & (said == _NONE)
    wrong = ends.is_abort & ((said != ends.first) & ~ends.is_first | absent)
    return {
        _first_finding(
            int(ends.producer[at]),
            int(ends.marker[at]),
            int(said[at]),
            int(ends.first[at]),
        )
        for at in np.flatnonzero(wrong).tolist()
    }


def _first_finding(producer: int, marker: int, said: int, expected: int) -> IndexFinding:
    fault = IndexFault.FIRST_OFFSET
    if said == _NONE:
        fault, expected = IndexFault.ABSENT, _NONE
    elif expected == _NONE:
        fault = IndexFault.WITHOUT_MARKER
    return IndexFinding(
        fault=fault,
        producer=producer,
        marker=marker,
        said=said,
        expected=expected,
    )


def _stable_finding(producer: int, marker: int, said: int, expected: int) -> IndexFinding:
    return IndexFinding(
        fault=IndexFault.LAST_STABLE_OFFSET,
        producer=producer,
        marker=marker,
        said=said,
        expected=expected,
    )


def _stable_offsets(
    stretch: Stretch, ends: _Ends, numbers: Int64Array, entries: Entries
) -> tuple[dict[int, Claim], int, set[IndexFinding]]:
    """What entries say of last stable offsets: before the stretch, that there is none, and wrongly.

    :param numbers: Of the markers that the entries name.
    """
    marker, said = ends.marker[numbers], entries["stable"].astype(np.int64)
    expected = _stable_within(stretch, ends, marker)
    before = said < stretch.start
    claims: dict[int, Claim] = {}
    for stable in np.unique(said[before]).tolist():
        markers = marker[before & (said == stable)]
        claims[stable] = Claim(
            stable=stable, first_marker=int(markers[0]), last_marker=int(markers[-1])
        )
    wrong = ~before & (said != expected)
    findings = {
        _stable_finding(
            int(entries["producer"][at]), int(marker[at]), int(said[at]), int(expected[at])
        )
        for at in np.flatnonzero(wrong).tolist()
    }
    return claims, int(marker[~before].min(initial=_NEVER)), findings


def _stable_within(stretch: Stretch, ends: _Ends, markers: Int64Array) -> Int64Array:
    """The last stable offset at each marker, where nothing from before the stretch is open."""
    known = ends.first != _NONE
    still_open = list(_open(stretch).values())
    firsts = np.append(ends.first[known], still_open).astype(np.int64)
    behind = np.append(ends.marker[known], np.full(len(still_open), _NEVER))
    order = np.argsort(firsts, kind="stable")
    firsts = np.append(firsts[order], _NEVER)
    # The oldest one that is open at a marker is the first one that ends behind it.
    latest = np.maximum.accumulate(np.append(behind[order], _NEVER))
    oldest = firsts[np.searchsorted(latest, markers, side="right").clip(max=len(firsts) - 1)]
    stable: Int64Array = np.where(oldest < markers, oldest, markers + 1)
    return stable


def _open(stretch: Stretch) -> dict[int, int]:
    batches = stretch.batches
    data = np.flatnonzero(batches.is_data & batches.transactional)
    markers = np.flatnonzero(~batches.is_data)
    found: dict[int, int] = {}
    for producer, begin, end in stretch.producers():
        last = int(np.searchsorted(markers, end)) - 1
        start = int(markers[last]) + 1 if last >= 0 and markers[last] >= begin else begin
        first = int(np.searchsorted(data, start))
        if first < len(data) and data[first] < end:
            found[producer] = int(batches.base[data[first]])
    return found


def _endings(ends: _Ends, said: Int64Array) -> dict[int, Ending]:
    return {
        int(ends.producer[at]): Ending(
            marker=int(ends.marker[at]),
            is_abort=bool(ends.is_abort[at]),
            first=int(ends.first[at]),
            said=int(said[at]),
        )
        for at in np.flatnonzero(ends.is_first).tolist()
    }


def merge(earlier: IndexSummary, later: IndexSummary) -> IndexSummary:
    """The summary of two stretches, of which one follows on the other."""
    findings = set(earlier.findings | later.findings)
    endings = dict(earlier.endings)
    for producer, ending in later.endings.items():
        first = earlier.open.get(producer, ending.first)
        if producer in earlier.endings:
            findings |= _resolved(producer, ending, first)
        else:
            endings[producer] = replace(ending, first=first)
            # An entry that must be there whatever came before has been missed already.
            if ending.is_abort and ending.first == _NONE != first and ending.said == _NONE:
                findings.add(_first_finding(producer, ending.marker, _NONE, first))
    claims, none_before, wrong = _carried(earlier, later)
    ended = later.endings.keys()
    still_open = {key: at for key, at in earlier.open.items() if key not in ended}
    return IndexSummary(
        start=earlier.start,
        end=later.end,
        holes=earlier.holes + later.holes + (earlier.end != later.start),
        endings=endings,
        open={**later.open, **still_open},
        claims=claims,
        none_before=none_before,
        findings=frozenset(findings | wrong),
    )


def _resolved(producer: int, ending: Ending, first: int) -> set[IndexFinding]:
    """What is wrong with an entry, now that the beginning of its transaction is known."""
    if not ending.is_abort or ending.said in (first, _UNREAD):
        return set()
    if ending.said == _NONE and ending.first != _NONE:
        return set()  # that has been told
    return {_first_finding(producer, ending.marker, ending.said, first)}


def _carried(
    earlier: IndexSummary, later: IndexSummary
) -> tuple[dict[int, Claim], int, set[IndexFinding]]:
    """The last stable offsets that later entries say, compared with what was open before them."""
    wrong: set[IndexFinding] = set()
    claims = dict(earlier.claims)
    none_before = min(earlier.none_before, later.none_before)
    ends = [
        (later.endings[producer].marker if producer in later.endings else _NEVER, first)
        for producer, first in earlier.open.items()
    ]

    def stable_at(marker: int) -> int:
        return min((first for end, first in ends if end > marker), default=_NONE)

    for claim in later.claims.values():
        if claim.stable < earlier.start:
            known = claims.get(claim.stable, claim)
            claims[claim.stable] = replace(claim, first_marker=known.first_marker)
            continue
        none_before = min(none_before, claim.first_marker)
        for marker in {claim.first_marker, claim.last_marker}:
            if stable_at(marker) != claim.stable:
                wrong.add(_stable_finding(_NONE, marker, claim.stable, stable_at(marker)))
    at = later.none_before
    if at < _NEVER and stable_at(at) != _NONE:
        wrong.add(_stable_finding(_NONE, at, _NONE, stable_at(at)))
    return claims, none_before, wrong


def verdict(summary: IndexSummary) -> list[IndexFinding]:
    """The findings in a whole log: of wrong last stable offsets one alone.

    Which one is a matter of the stretches; whether there is one is not. Where offsets are missing,
    which compaction and damage leave, only what is sure.
    """
    found = set(summary.findings)
    for producer, ending in summary.endings.items():
        if summary.start == 0 or ending.said >= summary.start:
            found |= _resolved(producer, ending, ending.first)
    if summary.start == 0:
        found |= {
            _stable_finding(_NONE, claim.first_marker, claim.stable, _NONE)
            for claim in summary.claims.values()
        }
    if summary.holes:
        found = {each for each in found if each.is_sure}
    stable = [each for each in found if each.fault is IndexFault.LAST_STABLE_OFFSET]
    return sorted((found - set(stable)) | set(sorted(stable, key=_order)[:1]), key=_order)


def _order(finding: IndexFinding) -> tuple[int, int, int, int]:
    return finding.marker, finding.fault.value, finding.producer, finding.said
