"""The newest record of each key, of many records at once.

Which records of a key count follows the cleaner: a record of an aborted transaction never does, and
one of a transaction that is open may come to (KIP-98). So the newest one that counts is known of
each key, and of each key and producer the newest one whose transaction is open.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from fencepost.pipeline.audit.batch_arrays import BoolArray, Int64Array

HEAD: Final = ("head_1", "head_2", "head_3")
"""The first bytes of a key, eight in each, little-endian; zeros behind its end."""
KEYED: Final = np.dtype(
    [
        ("hash", np.int64),  # of the key
        ("offset", np.int64),
        ("value", np.int64),  # a hash of the value
        ("tombstone", np.bool_),  # whether the value is null
        ("time", np.int64),
        ("producer", np.int64),  # whose open transaction it is of; `DECIDED` where it is of none
        ("size", np.int64),  # of the key, in bytes
        *((name, np.int64) for name in HEAD),  # how it begins
    ]
)
"""A record with a key."""
MARKER: Final = np.dtype([("producer", np.int64), ("offset", np.int64), ("committed", np.bool_)])
"""The end of a transaction."""
DECIDED: Final = -1
Rows: TypeAlias = npt.NDArray[np.void]


def newest(records: Rows) -> Rows:
    """Of each key the newest record that counts, and the newest of each open transaction.

    :param records: `KEYED`, in any order.
    :returns: By key, and in it those that count before those of open transactions.
    """
    offsets, producers, hashes = (
        np.ascontiguousarray(records[name]) for name in ("offset", "producer", "hash")
    )
    if (producers == DECIDED).all() and (offsets[1:] > offsets[:-1]).all():
        order = np.argsort(hashes, kind="stable")  # the same, in less time
    else:
        order = np.lexsort((offsets, producers, hashes))
    hashes, producers = hashes[order], producers[order]
    is_last = np.ones(len(records), bool)
    is_last[:-1] = (hashes[1:] != hashes[:-1]) | (producers[1:] != producers[:-1])
    return records[order[is_last]]


def decided(records: Rows, markers: Rows) -> Rows:
    """The records as they are once markers have come: without those that these abort.

    :param records: `KEYED`, in any order.
    :param markers: `MARKER`, in any order. A transaction ends with the next one of its producer.
    """
    is_open = records["producer"] != DECIDED
    if not len(markers) or not is_open.any():
        return records
    ends, committed = _ends_of(records[is_open], markers)
    waiting = records[is_open].copy()
    waiting["producer"][ends] = DECIDED
    return np.concatenate((records[~is_open], waiting[~ends | committed]))


def _ends_of(records: Rows, markers: Rows) -> tuple[BoolArray, BoolArray]:
    """Of each record whether a marker ends its transaction, and whether that commits it."""
    producer = np.concatenate((records["producer"], markers["producer"]))
    order = np.lexsort((np.concatenate((records["offset"], markers["offset"])), producer))
    count = len(order)
    is_marker = order >= len(records)
    places: Int64Array = np.where(is_marker, np.arange(count), count)
    following = np.minimum.accumulate(places[::-1])[::-1]
    following_marker = np.append(order, 0)[following]
    has_end = np.zeros(len(records), bool)
    commits = np.zeros(len(records), bool)
    of_record = ~is_marker
    numbers, ends = order[of_record], following_marker[of_record]
    own = (following[of_record] < count) & (producer[ends] == producer[numbers])
    has_end[numbers] = own
    commits[numbers[own]] = markers["committed"][ends[own] - len(records)]
    return has_end, commits


def first_markers(markers: Rows) -> Rows:
    """Of each producer the first: it ends what was open before all of them."""
    markers = markers[np.lexsort((markers["offset"], markers["producer"]))]
    _, firsts = np.unique(markers["producer"], return_index=True)
    return markers[firsts]
