"""The tables of records."""

import json
from collections.abc import Sequence
from typing import Final

from fencepost.cli.output import QUIET, STRONG, Block, Cell, Table, Text, line, moment
from fencepost.verbs.answers.records import (
    ExpectedRecords,
    ProducedRecords,
    RecordsState,
    RecordState,
)

_HEADERS: Final = ("partition", "offset", "epoch", "time", "key", "value", "headers")
_NULL: Final = Text("null", QUIET)


def record_answer(
    answer: ProducedRecords | RecordsState | ExpectedRecords,
) -> Sequence[Block]:
    """What is shown of an answer about records."""
    match answer:
        case ProducedRecords():
            rows = tuple((str(each.partition), str(each.offset)) for each in answer.records)
            return [Table(("partition", "offset"), rows)]
        case RecordsState():
            return [_table(answer.records), line(f"next offset {answer.next_offset}")]
        case ExpectedRecords():
            return [_table(answer.records)]


def _table(records: Sequence[RecordState]) -> Table:
    return Table(_HEADERS, tuple(map(_row, records)))


def _row(record: RecordState) -> tuple[Cell, ...]:
    return (
        str(record.partition),
        Text(str(record.offset), STRONG),
        str(record.leader_epoch),
        Text(moment(record.timestamp), QUIET),
        _NULL if record.key is None else record.key,
        _value(record),
        _headers(record),
    )


def _value(record: RecordState) -> Cell:
    if record.value is None:
        return _NULL
    if record.encoding != "json":
        return str(record.value)
    return json.dumps(record.value, ensure_ascii=False)


def _headers(record: RecordState) -> str:
    pairs = record.headers.items() if isinstance(record.headers, dict) else record.headers
    return ", ".join(f"{name}={'null' if text is None else text}" for name, text in pairs) or "-"
