"""What a scan over exchanges is: it sees a stretch after the other, and says which rows are left.

A scan is of one incarnation of a partition, and belongs to a rule, or to what rules share. It keeps
numbers from one stretch to the next, and lets single rows be held that may be wanted later: as
many as there are events and leader epochs, and not as there are exchanges.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from fencepost.pipeline.audit.batch_arrays import BoolArray
from fencepost.pipeline.audit.timeline import TopicIncarnation
from fencepost.pipeline.audit.trace_scan.ordering import TURNS


def standing_for(rows: pa.Table, **columns: object) -> pa.Table:
    """A row of whom the first one is of, and of the same bucket, that stands for exchanges."""
    names = [name for name in rows.schema.names if name not in TURNS.names]
    own = {name: rows[name][0].as_py() for name in ("topic", "partition", *names)}
    return pa.Table.from_pylist([{**own, **columns}], rows.schema)


class KeptRows:
    """Which exchanges of an incarnation are left."""

    def __init__(self) -> None:
        self._rows: pa.Table | None = None
        self._flags: BoolArray = np.zeros(0, bool)
        self._held: dict[Hashable, _HeldRow] = {}
        self._held_here: dict[Hashable, int] = {}
        self._found: list[pa.Table] = []
        self._added: list[pa.Table] = []

    def begin(self, rows: pa.Table) -> None:
        """Go on to the next rows."""
        self._rows, self._flags = rows, np.zeros(rows.num_rows, bool)

    def keep(self, flags: BoolArray) -> None:
        """Leave the rows that have a flag."""
        self._flags |= flags

    def hold(self, key: Hashable, index: int) -> None:
        """Hold a row until another is held for the same key, or all exchanges were seen.

        The last one that is held for a key is left.
        """
        self._held_here[key] = index

    def keep_held(self, key: Hashable) -> None:
        """Leave the row that is held for a key since an earlier stretch, whatever is held then."""
        held = self._held.get(key)
        if held is not None:
            self._found += held.taken()

    def add(self, kind: str, details: str) -> None:
        """Add a row that stands for some of the exchanges, which need not be left then."""
        assert self._rows is not None, "there is a stretch"
        self._added.append(standing_for(self._rows, kind=kind, line=0, details=details))

    def added(self) -> list[pa.Table]:
        """The rows that were added since this was asked last."""
        added, self._added = self._added, []
        return added

    def left(self) -> list[pa.Table]:
        """What is left of the rows, and held rows that are wanted by now."""
        rows = self._rows
        assert rows is not None, "there was a stretch"
        # Two keys may hold one row, which is left once.
        fresh = {
            index: _HeldRow(None if self._flags[index] else rows.take([index]))
            for index in {*self._held_here.values()}
        }
        self._held |= {key: fresh[index] for key, index in self._held_here.items()}
        found = self._found
        if self._flags.any():
            found.append(rows.filter(pa.array(self._flags)))
        self._rows, self._held_here, self._found = None, {}, []
        return found

    def held(self) -> list[pa.Table]:
        """The rows that are held in the end."""
        return [row for held in self._held.values() for row in held.taken()]


class _HeldRow:
    """A row that is held, until it is left.

    :param row: None where it was left already.
    """

    def __init__(self, row: pa.Table | None) -> None:
        self._row = row

    def taken(self) -> list[pa.Table]:
        """The row; nothing where it was left already."""
        row, self._row = self._row, None
        return [] if row is None else [row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Exchanges of one incarnation that follow on one another."""

    incarnation: TopicIncarnation
    """Its rows are the exchanges: those of Produce that failed come first of all stretches, the
    others as they were answered."""
    turns: pa.Table
    """Questions for offsets as they were asked, and as they were answered: `ordering.TURNS`."""
    kept: KeptRows
    """What is left."""


class TraceScan(Protocol):
    """A scan over the exchanges of one incarnation."""

    def next(self, stretch: Stretch) -> None:
        """Go on, and say what is left."""


NewScan: TypeAlias = Callable[[], TraceScan]
"""Begins a scan."""
