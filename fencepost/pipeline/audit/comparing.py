"""Where two logs of one partition, or a log and the tier, hold different batches."""

from dataclasses import dataclass

import numpy as np

from fencepost.pipeline.audit.logs import NOWHERE, Batches, Flags, Longs


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Offsets at which both have a batch, and not the same one."""

    start: int
    end: int
    """Exclusive."""
    epoch: int
    """In the first of the two, at the start."""
    other_epoch: int
    agree_again: int | None
    """The first offset behind it where they agree; None where they never do."""


def differences(
    first: Batches, second: Batches, start: int, end: int, *, compacted: bool
) -> list[Difference]:
    """The differences from `start` to `end` (exclusive), in order.

    What only one of them has is none: a gap is another matter. Both must be in the order of their
    offsets.

    :param compacted: Whether cleaners may have been over either: then batches are compared that
        both have, and bytes where no cleaner has written any.
    """
    one = first.within(start, end)
    other = second.near(one).within(start, end)
    if not len(one) or not len(other):
        return []
    numbers = other.holding(one.base)
    differs = _differs(one, other, numbers, compacted=compacted)
    if not compacted:
        # One may have a gap where the other's batch begins that holds its next one.
        back = one.holding(other.base)
        odd = (back != NOWHERE) & (one.base[back] != other.base)
        differs[back[odd]] = True
        numbers[back[odd]] = np.flatnonzero(odd)
    return _runs(one, other, numbers, differs)


def _differs(one: Batches, other: Batches, numbers: Longs, *, compacted: bool) -> Flags:
    found: Flags = numbers != NOWHERE
    base, last = other.base[numbers], other.last[numbers]
    epoch, crc = other.epoch[numbers], other.crc[numbers]
    bytes_differ: Flags = one.crc != crc
    if compacted:
        found &= one.base == base
        bytes_differ &= one.is_untouched & other.is_untouched[numbers]
    differs: Flags = found & (
        (one.base != base) | (one.last != last) | (one.epoch != epoch) | bytes_differ
    )
    return differs


def _runs(one: Batches, other: Batches, numbers: Longs, differs: Flags) -> list[Difference]:
    """Neighbours that differ are one difference."""
    common = np.flatnonzero(numbers != NOWHERE)
    flags = differs[common]
    begins = np.flatnonzero(flags & ~np.append(False, flags[:-1]))
    found = []
    for begin in begins.tolist():
        rest = np.flatnonzero(~flags[begin:])
        stop = begin + int(rest[0]) if len(rest) else len(flags)
        number = common[begin]
        found.append(
            Difference(
                start=int(one.base[number]),
                end=int(one.last[common[stop - 1]]) + 1,
                epoch=int(one.epoch[number]),
                other_epoch=int(other.epoch[numbers[number]]),
                agree_again=int(one.base[common[stop]]) if stop < len(flags) else None,
            )
        )
    return found
