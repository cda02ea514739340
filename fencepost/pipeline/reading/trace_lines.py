"""Lines of a trace as rows of `TRACES`."""

import json
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import BinaryIO, Final
from uuid import UUID

import pyarrow as pa

from fencepost.broker.events import Kind
from fencepost.pipeline.reading.exchanges import Json, Row, replica_id, rows
from fencepost.pipeline.reading.schemas import TRACES
from fencepost.pipeline.reading.trace_files import NoTrace, TraceSlice, find_traces
from fencepost.storage.tier.segments import uuid_text

EXCHANGE: Final = "exchange"
"""The kind of what is no event."""
COORDINATOR_CHANGED: Final = "coordinator_changed"
COORDINATOR_WIPED: Final = "coordinator_wiped"
_COORDINATORS: Final = "__consumer_offsets"
_OF_COORDINATORS: Final = {
    Kind.LEADER_CHANGED: COORDINATOR_CHANGED,
    Kind.REPLICA_WIPED: COORDINATOR_WIPED,
}
"""Kinds of events of ``__consumer_offsets``, and what they are called where they are of nobody."""
_ROWS: Final = 8192
"""About so many make a batch."""


def read_directory(directory: str | Path) -> pa.Table:
    """All of a trace, in this process."""
    found = [batch for each in find_traces(directory) for batch in read_traces(each)]
    return pa.Table.from_batches(found, TRACES)


def read_traces(
    piece: TraceSlice, topics: Collection[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a file.

    A last line that is not whole is none: its process was killed.

    :param topics: Names of those whose rows are wanted, besides rows of no topic; None: all.
    :raises NoTrace: When a line is none of a trace.
    """
    found: list[Row] = []
    with Path(piece.path).open("rb") as file:
        for count, text in enumerate(_lines(file, piece.size), start=1):
            for row in _rows(piece, count, text):
                topic = row.get("topic")
                if topics is None or topic is None or topic in topics:
                    found.append(row)
            if len(found) >= _ROWS:
                yield _batch(found)
                found = []
    if found:
        yield _batch(found)


def _lines(file: BinaryIO, size: int) -> Iterator[bytes]:
    for text in file:
        size -= len(text)
        if size < 0 or not text.endswith(b"\n"):
            return
        yield text


def _rows(piece: TraceSlice, count: int, text: bytes) -> Iterator[Row]:
    line = _parsed(piece, count, text)
    place: Row = {
        "line": piece.line(count),
        "newest": piece.number(line["newest"]),
    }
    event = line.get("event")
    if event is not None:
        row = place | _event(piece, event)
        yield row
        if event["topic"] == _COORDINATORS and event["kind"] in _OF_COORDINATORS:
            yield row | _of_coordinator(event)
        return
    names = line["topic_names"]
    shared = place | _exchange(piece, line)
    for row in rows(line):
        topic_id = row.get("topic_id")
        if isinstance(topic_id, str):
            row["topic"] = names.get(topic_id)
            row["topic_id"] = _kafkas(topic_id)
        yield shared | row


def _parsed(piece: TraceSlice, count: int, text: bytes) -> Json:
    try:
        line = json.loads(text)
    except ValueError as error:
        raise NoTrace(f"{piece.path}, line {count} is no JSON") from error
    if not isinstance(line, dict) or "newest" not in line:
        raise NoTrace(f"{piece.path}, line {count} is none of serve --trace")
    return line


def _event(piece: TraceSlice, event: Json) -> Row:
    details = event["details"]
    return {
        "number": piece.number(event["number"]),
        "time_ms": event["time_ms"],
        "kind": event["kind"],
        "broker": event["broker"],
        "topic": event["topic"],
        "topic_id": _kafkas(details["topic_id"]) if "topic_id" in details else None,
        "partition": event["partition"],
        "details": json.dumps(details),
    }


def _of_coordinator(event: Json) -> Row:
    """What happens to a coordinator's log concerns every partition that groups have offsets of."""
    return {
        "kind": _OF_COORDINATORS[event["kind"]],
        "topic": None,
        "topic_id": None,
        "partition": None,
        "details": json.dumps({**event["details"], "coordinator": event["partition"]}),
    }


def _exchange(piece: TraceSlice, line: Json) -> Row:
    return {
        "number": piece.number(line["number"]),
        "time_ms": line["time_ms"],
        "answered_ms": line["answered_ms"],
        "kind": EXCHANGE,
        "broker": line["broker"],
        "client_id": line["client_id"],
        "replica_id": replica_id(line),
        "api": line["api"],
        "version": line["version"],
    }


@cache
def _kafkas(topic_id: str) -> str:
    """A topic id as Kafka writes it, and as it stands in directories."""
    return uuid_text(UUID(topic_id))


def _batch(found: list[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(found, schema=TRACES)
