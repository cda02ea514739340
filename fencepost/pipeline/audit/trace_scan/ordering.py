"""In which order exchanges are seen, by columns that are added where a trace is read.

One exchange came before another only if it was answered before the other was asked. So what was
answered before a question is known where questions and answers are seen in turn: an answer after
all requests up to its `newest`, a question at its own `number`. A question for the latest offset
has a row for the one, and a row for the other.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.batch_arrays import BoolArray
from fencepost.pipeline.datasource.schemas import TRACES
from fencepost.pipeline.datasource.trace_exchanges import CLIENT_REPLICA_ID
from fencepost.pipeline.datasource.trace_files import EXCHANGE
from fencepost.protocol.errors import ErrorCode

LATEST: Final = -1
"""The timestamp in a ListOffsets request that means the latest offset."""
RANK: Final = "rank"
AT: Final = "at"
IS_ANSWERED: Final = "is_answered"
TURNS: Final = pa.schema(
    (
        *TRACES,
        (RANK, pa.int8()),  # 0 of events, 1 of Produce that failed, 2 of other exchanges
        (AT, pa.int64()),  # its turn: `number` of a question, `newest` of an answer
        (IS_ANSWERED, pa.bool_()),  # whether it is the exchange; else it is its question alone
    )
)
"""`TRACES` as scans see them."""
_EVENT, _FAILED_PRODUCE, _OTHER = range(3)
SESSION_ORDER: Final = (*("topic", "partition", RANK, "broker", "session_id", "number", "line"),)
"""The order in which what a fetch session said comes before what it left out."""
TURN_ORDER: Final = ("topic", "partition", RANK, AT, IS_ANSWERED, "line")
"""The order of questions and answers."""


def with_turns(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of a trace, `TRACES`, as `TURNS`."""
    exchange = pc.equal(rows["kind"], EXCHANGE)
    failed = pc.and_(pc.equal(rows["api"], "Produce"), pc.not_equal(rows["error"], ErrorCode.NONE))
    rank = np.where(_flags(exchange), np.where(_flags(failed), _FAILED_PRODUCE, _OTHER), _EVENT)
    asked = rows.filter(pa.array(is_latest(rows)))
    parts = (
        _turns(rows, rank, rows["newest"], is_answered=True),
        _turns(asked, np.full(asked.num_rows, _OTHER), asked["number"], is_answered=False),
    )
    return pa.concat_batches(parts)


def is_latest(rows: pa.Table | pa.RecordBatch) -> BoolArray:
    """Of each exchange whether a client was told the latest offset."""
    asked = pc.and_(
        pc.and_(pc.equal(rows["api"], "ListOffsets"), pc.equal(rows["timestamp"], LATEST)),
        pc.equal(rows["replica_id"], CLIENT_REPLICA_ID),
    )
    told = pc.and_(pc.is_valid(rows["answered_ms"]), pc.equal(rows["error"], ErrorCode.NONE))
    return _flags(pc.and_(asked, told))


def _turns(
    rows: pa.RecordBatch, rank: npt.NDArray[np.int64], at: pa.Array, *, is_answered: bool
) -> pa.RecordBatch:
    columns = [
        *rows.columns,
        pa.array(rank, pa.int8()),
        at,
        pa.array(np.full(rows.num_rows, is_answered)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=TURNS)


def _flags(column: pa.Array | pa.ChunkedArray) -> BoolArray:
    found: BoolArray = pc.fill_null(column, fill_value=False).to_numpy(zero_copy_only=False)
    return found
