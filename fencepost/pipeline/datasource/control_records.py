"""The transaction markers of a window: which control batch commits, which aborts, and whose.

A marker is a control batch of one record (KIP-98): `fencepost.protocol.transaction_markers` has its
layout. As brokers write it, each of its fields is at a fixed place, so that all of a window are
read at once. One that compaction has written again has a longer record, and is decoded by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numpy.lib.stride_tricks import sliding_window_view

from fencepost.pipeline.datasource.batch_headers import Batches, Findings, Integers
from fencepost.pipeline.datasource.schemas import Marker
from fencepost.pipeline.datasource.segments import Window
from fencepost.protocol.records import CODEC_MASK, CONTROL_FLAG, HEADER_SIZE, InvalidRecords
from fencepost.protocol.transaction_markers import decode_marker

NO_MARKER: Final = -1
_KINDS: Final = (Marker.ABORT, Marker.COMMIT)
"""By their number in a control record's key."""
_RECORD: Final = np.dtype(
    [
        ("lengths", "S5"),
        ("key_version", ">i2"),
        ("kind", ">i2"),
        ("value_length", "i1"),
        ("value_version", ">i2"),
        ("coordinator_epoch", ">i4"),
        ("headers", "i1"),
    ]
)
"""The record of a marker as it is written."""
_LENGTHS: Final = bytes((2 * (_RECORD.itemsize - 1), 0, 0, 0, 2 * 4))
"""Its size, attributes, timestamp and offset less those of the batch, and its key's size."""
_SIZE: Final = HEADER_SIZE + _RECORD.itemsize
_VALUE_LENGTH: Final = 2 * 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Markers:
    """Of each batch of a window, in order.

    :ivar kinds: 0 where it aborts, 1 where it commits, `NO_MARKER` of all others.
    :ivar coordinator_epochs: Of the coordinator that decided; `NO_MARKER` of all others.
    """

    kinds: Integers
    coordinator_epochs: Integers

    @classmethod
    def none(cls, count: int) -> Markers:
        """So many batches without one among them."""
        return cls(
            kinds=np.full(count, NO_MARKER, np.int64),
            coordinator_epochs=np.full(count, NO_MARKER, np.int64),
        )

    @classmethod
    def concat(cls, parts: list[Markers]) -> Markers:
        """Those of windows that follow one another."""
        return cls(
            kinds=np.concatenate([part.kinds for part in parts]),
            coordinator_epochs=np.concatenate([part.coordinator_epochs for part in parts]),
        )

    def select(self, which: npt.NDArray[np.bool_]) -> Markers:
        """Those of some batches."""
        return Markers(kinds=self.kinds[which], coordinator_epochs=self.coordinator_epochs[which])

    def kind_column(self) -> pa.StringArray:
        """`Marker`, null of all others."""
        if not (self.kinds != NO_MARKER).any():
            return pa.nulls(len(self.kinds), pa.string())
        names = pa.array([kind.value for kind in _KINDS])
        mask = self.kinds == NO_MARKER
        return names.take(pa.array(np.where(mask, 0, self.kinds), mask=mask))

    def epoch_column(self) -> pa.Int32Array:
        """Of the coordinators, null of all others."""
        return pa.array(
            self.coordinator_epochs.astype(np.int32), mask=self.kinds == NO_MARKER, type=pa.int32()
        )


def read_markers(window: Window, batches: Batches, findings: Findings) -> Markers:
    """The markers among the batches of a window.

    :param findings: What is wrong with some of them: those are not read.
    """
    found = Markers.none(len(batches))
    attributes = batches.field("attributes")
    control = (attributes & CONTROL_FLAG) != 0
    control[list(findings)] = False
    numbers = np.flatnonzero(control)
    if not len(numbers):
        return found
    plain = (batches.sizes[numbers] == _SIZE) & ((attributes[numbers] & CODEC_MASK) == 0)
    usual = numbers[plain]
    records = _records(window, batches.at[usual])
    sound = _is_marker(records)
    usual, records = usual[sound], records[sound]
    found.kinds[usual] = records["kind"]
    found.coordinator_epochs[usual] = records["coordinator_epoch"]
    for number in np.setdiff1d(numbers, usual).tolist():
        _decode(window, batches, number, found)
    return found


def _records(window: Window, at: Integers) -> npt.NDArray[np.void]:
    """The bytes behind each header, as a marker's record."""
    if not len(at):
        return np.zeros(0, _RECORD)
    rows = sliding_window_view(window.data, _RECORD.itemsize)[at + HEADER_SIZE]
    return np.ascontiguousarray(rows).view(_RECORD).reshape(-1)


def _is_marker(records: npt.NDArray[np.void]) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = (
        (records["lengths"] == _LENGTHS)
        & (records["value_length"] == _VALUE_LENGTH)
        & (records["headers"] == 0)
        & np.isin(records["kind"], range(len(_KINDS)))
    )
    return found


def _decode(window: Window, batches: Batches, number: int, found: Markers) -> None:
    start = int(batches.at[number])
    try:
        marker = decode_marker(window.view[start : start + int(batches.sizes[number])])
    except InvalidRecords:
        return  # the level `records` tells of it
    if marker is not None:
        found.kinds[number] = int(marker.committed)
        found.coordinator_epochs[number] = marker.coordinator_epoch
