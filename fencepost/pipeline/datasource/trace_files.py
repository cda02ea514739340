"""The files of ``serve --trace``, of one run or of several, and their lines as rows of `TRACES`.

The names of a run's files begin alike, and sort in the order in which they were written.
"""

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import BinaryIO, Final
from uuid import UUID

import pyarrow as pa

from fencepost.broker.core.events import Kind
from fencepost.pipeline.datasource.schemas import TRACES
from fencepost.pipeline.datasource.trace_exchanges import Json, Row, exchange_rows, replica_id
from fencepost.protocol.byte_utils import format_uuid

_NAME: Final = re.compile(r"(trace-.+)-(\d{4,})\.jsonl")
_FILE_BITS: Final = 32
_RUN_BITS: Final = 40


class UnreadableTrace(OSError):
    """A directory without a trace, or a file that is none; the message is one readable line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFile:
    """One file, as far as it was written when it was found."""

    path: str
    size: int
    """Bytes. What comes later is not read: it would be newer than what else is looked at."""
    file: int
    """Its place among all files."""
    run: int
    """Its run's place among all runs."""

    def number(self, number: int) -> int:
        """A number that is no other run's."""
        return self.run << _RUN_BITS | number

    def line(self, line: int) -> int:
        """The place of a line among those of all files.

        :param line: In this file, from 1.
        """
        return self.file << _FILE_BITS | line


def number_in_run(number: int) -> int:
    """The number as the trace has it."""
    return number & ((1 << _RUN_BITS) - 1)


def run_of(number: int) -> int:
    """Which run a number is of, from 0."""
    return number >> _RUN_BITS


def find_trace_files(directory: str | Path) -> tuple[TraceFile, ...]:
    """The files of all runs, in order.

    :raises UnreadableTrace: When there is none.
    """
    runs: dict[str, list[Path]] = {}
    try:
        for path in Path(directory).iterdir():
            if (match := _NAME.fullmatch(path.name)) is not None:
                runs.setdefault(match[1], []).append(path)
        found = tuple(_slices(runs))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UnreadableTrace(f"can't read a trace in {directory}: {reason}") from error
    if not found:
        raise UnreadableTrace(
            f"there is no trace in {directory}: serve --trace writes trace-*.jsonl"
        )
    return found


def cluster_id_of(file: TraceFile) -> str | None:
    """The id of the cluster whose trace a file begins; None where its first line does not say."""
    with Path(file.path).open("rb") as opened:
        text = next(_lines(opened, file.size), b"")
    try:
        event = json.loads(text)["event"]
        found = event["details"]["cluster_id"] if event["kind"] == Kind.TRACE_STARTED else None
    except (ValueError, LookupError, TypeError):
        return None
    return found if isinstance(found, str) else None


def _slices(runs: dict[str, list[Path]]) -> Iterator[TraceFile]:
    file = 0
    for run, name in enumerate(sorted(runs, key=lambda name: _start_order(name, runs[name]))):
        for path in sorted(runs[name], key=_index):
            yield TraceFile(path=str(path), size=path.stat().st_size, file=file, run=run)
            file += 1


def _start_order(name: str, paths: list[Path]) -> tuple[str, int]:
    """By the time in the name; of two in one second the one that ended first."""
    time = name.rsplit("-", 1)[0]
    return time, max(path.stat().st_mtime_ns for path in paths)


def _index(path: Path) -> int:
    match = _NAME.fullmatch(path.name)
    assert match is not None, "only such files are found"
    return int(match[2])


EXCHANGE: Final = "exchange"
"""The kind of what is no event."""
COORDINATOR_CHANGED: Final = "coordinator_changed"
COORDINATOR_WIPED: Final = "coordinator_wiped"
_COORDINATORS: Final = "__consumer_offsets"
_OF_COORDINATORS: Final = {
    Kind.LEADER_CHANGED: COORDINATOR_CHANGED,
    Kind.REPLICA_WIPED: COORDINATOR_WIPED,
}
"""Kinds of events of ``__consumer_offsets``, and their names where they are of no client."""
_ROWS: Final = 8192
"""About so many make a batch."""


def read_trace_directory(directory: str | Path) -> pa.Table:
    """All of a trace, in this process."""
    found = [batch for each in find_trace_files(directory) for batch in read_trace_file(each)]
    return pa.Table.from_batches(found, TRACES)


def read_trace_file(
    piece: TraceFile, topics: Collection[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a file.

    A last line that is not whole is none: its process was killed.

    :param topics: Names of those whose rows are wanted, besides rows of no topic; None: all.
    :raises UnreadableTrace: When a line is none of a trace.
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


def _rows(piece: TraceFile, count: int, text: bytes) -> Iterator[Row]:
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
            yield row | _coordinator_row(event)
        return
    names = line["topic_names"]
    shared = place | _exchange(piece, line)
    for row in exchange_rows(line):
        topic_id = row.get("topic_id")
        if isinstance(topic_id, str):
            row["topic"] = names.get(topic_id)
            row["topic_id"] = _kafka_uuid_text(topic_id)
        yield shared | row


def _parsed(piece: TraceFile, count: int, text: bytes) -> Json:
    try:
        line = json.loads(text)
    except ValueError as error:
        raise UnreadableTrace(f"{piece.path}, line {count} is no JSON") from error
    if not isinstance(line, dict) or "newest" not in line:
        raise UnreadableTrace(f"{piece.path}, line {count} is none of serve --trace")
    return line


def _event(piece: TraceFile, event: Json) -> Row:
    details = event["details"]
    return {
        "number": piece.number(event["number"]),
        "time_ms": event["time_ms"],
        "kind": event["kind"],
        "broker": event["broker"],
        "topic": event["topic"],
        "topic_id": _kafka_uuid_text(details["topic_id"]) if "topic_id" in details else None,
        "partition": event["partition"],
        "details": json.dumps(details),
    }


def _coordinator_row(event: Json) -> Row:
    """What happens to a coordinator's log concerns every partition that groups have offsets of."""
    return {
        "kind": _OF_COORDINATORS[event["kind"]],
        "topic": None,
        "topic_id": None,
        "partition": None,
        "details": json.dumps({**event["details"], "coordinator": event["partition"]}),
    }


def _exchange(piece: TraceFile, line: Json) -> Row:
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
def _kafka_uuid_text(topic_id: str) -> str:
    """A topic id as Kafka writes it, and as it stands in directories."""
    return format_uuid(UUID(topic_id))


def _batch(found: list[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(found, schema=TRACES)
