"""What the rows of each level are: ``spark.read.format("fencepost").option("level", ...)``.

Offsets are inclusive unless said otherwise, times are milliseconds since the epoch, sizes bytes.
"""

from enum import StrEnum
from typing import Final

import pyarrow as pa


class Level(StrEnum):
    """What a row is made of."""

    BATCHES = "batches"
    RECORDS = "records"
    TRACES = "traces"


class Place(StrEnum):
    """Where a segment lies."""

    LOG = "log"
    """A broker's log directory."""
    TIER = "tier"
    """The remote tier (KIP-405)."""


class Problem(StrEnum):
    """What is wrong with a segment by itself."""

    CRC = "crc"
    """The checksum of a batch is not that of its bytes."""
    STRUCTURE = "structure"
    """Bytes with whole batches behind them are no batch, or a header contradicts itself."""
    TRAILING = "trailing"
    """Behind the last whole batch there are bytes that are none: a torn tail."""
    RECORDS = "records"
    """The records of a batch do not parse, or are not what its header says."""
    OFFSET_INDEX = "offset-index"
    TIME_INDEX = "time-index"
    """An entry of the index tells what is not so."""
    MISSING = "missing"
    """A file that a closed segment must have is not there, or cannot be read."""


class Marker(StrEnum):
    """How a transaction ends in a partition (KIP-98)."""

    ABORT = "abort"
    COMMIT = "commit"


_SEGMENT: Final = (
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("place", pa.string()),
    ("broker", pa.int32()),  # null in the tier
    ("segment", pa.int64()),  # its base offset, by its name
    ("segment_id", pa.string()),  # in the tier alone
)
_PRODUCER: Final = (
    ("producer_id", pa.int64()),
    ("producer_epoch", pa.int16()),
)

BATCHES: Final = pa.schema(
    (
        *_SEGMENT,
        ("position", pa.int64()),
        ("size", pa.int64()),  # of the whole batch, or of what a problem concerns
        ("base_offset", pa.int64()),  # null, as all that follows, where a row is no batch
        ("last_offset", pa.int64()),
        ("count", pa.int32()),
        ("epoch", pa.int32()),
        ("crc", pa.int64()),  # as it is written in the header
        ("attributes", pa.int16()),
        ("base_timestamp", pa.int64()),
        ("max_timestamp", pa.int64()),
        *_PRODUCER,
        ("base_sequence", pa.int32()),
        ("problem", pa.string()),  # a `Problem`; null where the batch is sound
        ("message", pa.string()),
        ("marker", pa.string()),  # a `Marker`; null but of a control batch that ends a transaction
        ("coordinator_epoch", pa.int32()),  # of the transaction coordinator that wrote it
        ("file", pa.string()),  # with the option `beside`: the name of a producer snapshot or a
        # transaction index beside the segment; null of batches and problems
        ("content", pa.binary()),  # of that file
    )
)
"""A row for each batch, for each problem that is not one batch's, and, with the option ``beside``,
for each producer snapshot and transaction index."""

RECORDS: Final = pa.schema(
    (
        *_SEGMENT,
        ("base_offset", pa.int64()),  # of its batch
        ("offset", pa.int64()),
        ("epoch", pa.int32()),
        ("timestamp", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        (
            "headers",
            pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
        ),
        *_PRODUCER,
        ("sequence", pa.int32()),
        ("control", pa.bool_()),
        ("transactional", pa.bool_()),
    )
)
"""A row for each record of each sound batch."""

TRACED_BATCH: Final = pa.struct(
    (
        ("base_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("count", pa.int32()),
        ("size", pa.int64()),
        ("epoch", pa.int32()),
        ("crc", pa.int64()),
        *_PRODUCER,
        ("base_sequence", pa.int32()),
        ("expected_offset", pa.int64()),  # KIP-27, of its first record; null where none is stated
    )
)

TRACES: Final = pa.schema(
    (
        ("number", pa.int64()),  # of the exchange, in the order of requests; of an event its own
        ("line", pa.int64()),  # in the order of answers and events, over all files
        ("time_ms", pa.int64()),  # when it was asked, or when the event was
        ("answered_ms", pa.int64()),  # null where it never was
        ("newest", pa.int64()),  # the number of the last request taken up before the answer, or the
        # event: what has a greater number was asked after it
        ("kind", pa.string()),  # "exchange", or the kind of the event
        ("broker", pa.int32()),
        ("client_id", pa.string()),
        ("replica_id", pa.int32()),  # of a follower that asks; -1 of clients
        ("api", pa.string()),  # null of events
        ("version", pa.int16()),
        ("topic", pa.string()),  # null where an event is of no topic
        ("topic_id", pa.string()),  # where a request or an event says it, as Kafka writes it
        ("partition", pa.int32()),
        ("current_leader_epoch", pa.int32()),  # as asked; -1 where it was not said
        ("error", pa.int16()),  # null where there is no answer
        ("timestamp", pa.int64()),  # asked by ListOffsets (-1 latest ...)
        ("isolation_level", pa.int8()),
        ("session_id", pa.int32()),  # of Fetch; what is not asked again is as it was (KIP-227)
        ("fetch_offset", pa.int64()),  # asked by Fetch; null where the session has it
        ("asked_epoch", pa.int32()),  # by OffsetForLeaderEpoch, or as LastFetchedEpoch by Fetch
        ("acks", pa.int16()),
        ("group", pa.string()),
        ("offset", pa.int64()),  # answered by ListOffsets, Produce (base offset),
        # OffsetForLeaderEpoch (end offset, exclusive), Fetch (where logs part), OffsetFetch;
        # asked by OffsetCommit, TxnOffsetCommit and DeleteRecords
        ("epoch", pa.int32()),  # that belongs to `offset`
        ("high_watermark", pa.int64()),
        ("log_start_offset", pa.int64()),
        ("bytes", pa.int64()),  # of record data
        ("batches", pa.list_(TRACED_BATCH)),  # produced, or fetched
        ("details", pa.string()),  # of an event, as JSON
    )
)
"""A row for each partition of each exchange, and for each event."""

SCHEMAS: Final = {Level.BATCHES: BATCHES, Level.RECORDS: RECORDS, Level.TRACES: TRACES}
