"""The batches of windows that were read again, in all copies of a partition, as few rows again.

Where copies differ, the rules have to see where they begin to, and where they agree again; what
lies between is of no more use than a window. So each batch is compared with those of the other
copies. Batches that follow on one another are one row where each is in the same relation to every
other copy: the other copy has the same batch, it has another one there, or it has nothing there.
Rows of all copies begin at the same offsets, so that the same batches are the same windows.

A stretch of a copy that goes back to offsets which the copy has already is put to the others as if
it were a copy of its own.

Of compacted copies that have not parted yet (`compacted_copies`) one may lack batches, and records
of batches, that another has. There it is enough to know that they agree: batches are one row
whatever is missing between them, and such a row agrees with whatever another copy has.

The number of rows goes by how often copies part and come together, and not by their batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from fencepost.pipeline.audit.batch_arrays import Batches, BoolArray, Int64Array, TracedBatches
from fencepost.pipeline.audit.condensed.compacted_copies import EVERYWHERE, NOWHERE

_ABSENT, _SAME, _CLEANED, _OTHER, _OTHER_OF_BASE = range(5)
"""What another copy has where a batch is: nothing, the same, what a cleaner has left of the same or
was left of here, another one, another one that begins there."""
_MAX_REPEATED: Final = 16
"""How often copies may go back to offsets that they have: each stretch is put to each other."""
_KEY: Final = np.dtype([(name, np.int64) for name in ("base", "last", "epoch", "crc")])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Interest:
    """What rules ask of single batches of a partition."""

    offsets: Int64Array
    """Those that they compare with the offsets of batches, in order."""
    acknowledged: TracedBatches
    """The batches that were acknowledged, by offset: a row has such alone, or none."""
    refused: Int64Array
    """The checksums of batches that were refused: each that is there is looked for by its own."""
    compacted: bool
    """Whether cleaners may have been over a copy: then batches of one base offset are compared."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Runs:
    """Which batches are a row together."""

    begins: BoolArray
    """Of each whether it begins a row; all do where copies go back too often."""
    agrees: BoolArray
    """Of each whether no copy has parted from another up to its end, if they are compacted."""
    parts_at: int
    """From which offset on copies are put to each other by batch."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stretches:
    """Batches of copies as stretches in which offsets rise; where they go back, another begins."""

    order: Int64Array
    """Their numbers, by stretch and offset."""
    stretch: Int64Array
    """Of each in that order the number of its stretch."""
    copy: Int64Array
    """Of each in that order the number of its copy."""

    @classmethod
    def of(cls, batches: Batches, copy: Int64Array) -> Self:
        """Those of some batches, in any order.

        :param copy: Of each the number of the copy that it is in.
        """
        order = np.lexsort((batches.position, batches.segment, copy))
        base, last, copy = batches.base[order], batches.last[order], copy[order]
        goes_back = np.append(False, base[1:] <= last[:-1])[: len(order)]
        return cls(order=order, stretch=np.cumsum(_changes(copy) | goes_back), copy=copy)


def runs_of(
    batches: Batches,
    stretches: Stretches,
    keeps_row: BoolArray,
    interest: Interest,
    parts_at: int,
) -> Runs:
    """Find out which batches are a row together.

    :param batches: Of all copies, in the order of the stretches, as what follows.
    :param keeps_row: Of each whether it is a row of its own in any case.
    :param parts_at: From which offset on copies are put to each other by batch at the latest.
    """
    stretch = stretches.stretch
    follows = ~_changes(stretch)
    owners = stretches.copy[~follows]
    if len(owners) > len(np.unique(owners)):
        parts_at = min(parts_at, int(batches.base.min()))
    if len(owners) > len(np.unique(owners)) + _MAX_REPEATED:
        none = np.zeros(len(batches), bool)
        return Runs(begins=~none, agrees=none, parts_at=parts_at)
    is_acknowledged, is_odd = _acknowledged(batches, interest.acknowledged)
    relations = _relations(batches, stretch, by_base=interest.compacted)
    for owner, relation in zip(owners, relations, strict=True):
        # Which of two batches a copy has at an offset is told where they are the same.
        others = (stretches.copy == owner) & (relation > _SAME)
        is_odd |= others
    for relation in relations:
        parts_at = min(parts_at, int(batches.base[relation >= _OTHER].min(initial=parts_at)))
    agrees: BoolArray = batches.last < parts_at
    single = keeps_row | is_odd | np.isin(batches.crc, interest.refused)
    single |= ~batches.is_never_compacted & ~agrees
    begins = ~follows
    begins[1:] |= (batches.base[1:] != batches.last[:-1] + 1) & ~agrees[1:]
    begins[1:] |= batches.position[1:] != batches.position[:-1] + batches.size[:-1]
    begins |= _changes(batches.segment) | _changes(batches.epoch)
    begins |= _changes(is_acknowledged) & ~agrees
    for relation in relations:
        begins |= _changes(relation) & ~agrees
    begins |= _apart(single)
    # All copies are cut where one is; what lies across a cut would be in one row and not in others.
    cuts = np.union1d(batches.base[begins], np.append(interest.offsets, parts_at))
    interval = np.searchsorted(cuts, batches.base, side="right")
    single |= np.searchsorted(cuts, batches.last, side="right") > interval
    begins |= _changes(interval) | _apart(single)
    return Runs(begins=begins, agrees=agrees, parts_at=parts_at)


def first_difference(batches: Batches, copy: Int64Array) -> int:
    """Where the first batch is of which a compacted copy has another one.

    :param batches: Of all copies, by copy and offset.
    :returns: Before all offsets where a copy has an offset twice, behind all where none differ.
    """
    follows = copy[1:] == copy[:-1]
    if (follows & (batches.base[1:] <= batches.last[:-1])).any():
        return EVERYWHERE
    differs = np.zeros(len(batches), bool)
    for relation in _relations(batches, copy, by_base=True):
        differs |= relation >= _OTHER
    return int(batches.base[differs].min(initial=NOWHERE))


def _changes(column: npt.NDArray[np.generic]) -> BoolArray:
    """Of each whether it is another than the one before it."""
    found: BoolArray = np.append(True, column[1:] != column[:-1])[: len(column)]
    return found


def _apart(single: BoolArray) -> BoolArray:
    """Of each whether it is a row of its own, or the one before it is."""
    found: BoolArray = single | np.append(False, single[:-1])[: len(single)]
    return found


def _acknowledged(batches: Batches, known: TracedBatches) -> tuple[BoolArray, BoolArray]:
    """Of each batch whether it was acknowledged, and whether another was that begins in it."""
    starts = np.sort(known.base)
    inside = np.searchsorted(starts, batches.last, side="right") - np.searchsorted(
        starts, batches.base
    )
    found: BoolArray = np.isin(_keys(batches), _keys(known))
    return found, inside > found


def _keys(batches: Batches | TracedBatches) -> npt.NDArray[np.void]:
    keys: npt.NDArray[np.void] = np.empty(len(batches), _KEY)
    for name in _KEY.names or ():
        keys[name] = getattr(batches, name)
    return keys


def _relations(batches: Batches, copy: Int64Array, *, by_base: bool) -> list[Int64Array]:
    """Of each copy what it has where each batch is.

    :param by_base: Whether another batch is told apart by whether it has the same base offset.
    """
    edges = np.flatnonzero(np.append(_changes(copy), True))
    found = []
    for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        base, last = batches.base[start:end], batches.last[start:end]
        first = np.searchsorted(last, batches.base)
        is_there = first < np.searchsorted(base, batches.last, side="right")
        near = start + np.minimum(first, end - start - 1)
        has_base = batches.base[near] == batches.base
        same = has_base.copy()
        for column in (batches.last, batches.epoch, batches.crc):
            same &= column[near] == column
        other = np.full(len(batches), _OTHER, np.int64)
        if by_base:
            cleaned = ~(batches.is_never_compacted & batches.is_never_compacted[near])
            cleaned &= has_base & (batches.last[near] == batches.last)
            cleaned &= batches.epoch[near] == batches.epoch
            other = np.where(has_base, np.where(cleaned, _CLEANED, _OTHER_OF_BASE), _OTHER)
        found.append(np.where(is_there, np.where(same, _SAME, other), _ABSENT))
    return found
