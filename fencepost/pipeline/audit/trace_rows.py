"""Rows of a trace in little memory: what no rule asks of is left out, and nothing is copied twice.

Those that read are most exchanges, and each lists the batches that were read: every consumer and
follower brings each batch once more.
"""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.batch_arrays import BoolArray, Int64Array
from fencepost.pipeline.datasource.schemas import TRACES

ACKNOWLEDGED: Final = "acknowledged"
"""The kind of a row that stands for exchanges: see `acknowledged_batches`."""
_BATCHES: Final = TRACES.get_field_index("batches")
_CLIENT_ID: Final = TRACES.get_field_index("client_id")
_UNKNOWN: Final = -1


def slimmed(rows: pa.RecordBatch, *, all_of_followers: bool) -> pa.RecordBatch:
    """Rows without what no rule asks of: names of clients, and most batches that were fetched.

    Of an answer to a Fetch the last batch is left, and the last of the newest leader epoch.

    :param rows: `TRACES`.
    :param all_of_followers: Whether all batches are left that followers were given, as a chart of
        log ends shows them.
    """
    lists = rows.column(_BATCHES)
    is_slim = pc.fill_null(pc.equal(rows["api"], "Fetch"), fill_value=False)
    if all_of_followers:
        is_followers = pc.fill_null(pc.greater_equal(rows["replica_id"], 0), fill_value=False)
        is_slim = pc.and_not(is_slim, is_followers)
    row = pc.list_parent_indices(lists).to_numpy()
    batches = lists.flatten()
    epochs = pc.fill_null(batches.field("epoch").cast(pa.int64()), _UNKNOWN).to_numpy()
    kept = ~is_slim.to_numpy(zero_copy_only=False)[row] | _tells(row, epochs)
    sizes = np.bincount(row[kept], minlength=rows.num_rows)
    is_null = np.append(lists.is_null().to_numpy(zero_copy_only=False), False)
    offsets = pa.array(np.append(0, np.cumsum(sizes)).astype(np.int32), mask=is_null)
    columns = rows.columns
    columns[_BATCHES] = pa.ListArray.from_arrays(offsets, batches.filter(pa.array(kept)))
    columns[_CLIENT_ID] = pa.nulls(rows.num_rows, pa.string())
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _tells(row: Int64Array, epochs: Int64Array) -> BoolArray:
    """Of each batch whether it is the last of its answer, or the last of its newest epoch.

    :param row: Of each the answer that it is in, in order.
    """
    newest = np.full(int(row[-1]) + 1 if len(row) else 0, _UNKNOWN)
    np.maximum.at(newest, row, epochs)
    of_newest = np.flatnonzero(epochs == newest[row])
    tells = _is_last(row)
    tells[of_newest[_is_last(row[of_newest])]] = True
    return tells


def _is_last(row: Int64Array) -> BoolArray:
    found: BoolArray = np.append(row[1:] != row[:-1], True)[: len(row)]
    return found


def rows_where(rows: pa.Table, wanted: pa.ChunkedArray | pa.Array) -> pa.Table:
    """The rows with a flag, not copied where these follow on one another.

    :param wanted: A flag of each; null counts as none.
    """
    flags = pc.fill_null(wanted, fill_value=False).to_numpy(zero_copy_only=False)
    return rows.slice(*run) if (run := _run(flags)) is not None else rows.filter(pa.array(flags))


def _run(flags: BoolArray) -> tuple[int, int] | None:
    """The number of the first flag and how many there are, where no other is between them."""
    count = int(np.count_nonzero(flags))
    first = int(np.argmax(flags)) if count else 0
    return (first, count) if flags[first : first + count].all() else None
