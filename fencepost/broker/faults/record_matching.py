"""Whether record batches have a record that a fault selects, by its key, value or header.

Records are decoded only while such a fault is set. Batches that do not decode have no such record.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final

from fencepost.broker.core.context import TopicPartition
from fencepost.broker.faults.selectors import RecordSelector, Selectors
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.messages.fetch import FetchResponse
from fencepost.protocol.messages.produce import ProduceRequest
from fencepost.protocol.record_reader import ReadBudget
from fencepost.protocol.records import CorruptBatch, Record, iter_headers


def partitions_with_record(
    selectors: Selectors, partitions: Iterable[tuple[str | None, int, Sequence[Buffer]]]
) -> frozenset[TopicPartition]:
    """The partitions with a record that is selected, of those that are selected.

    :param partitions: Each with its topic's name, its index and its batches.
    """
    assert selectors.record is not None
    wanted = _WantedRecord(selectors.record)
    budget = ReadBudget()
    return frozenset(
        (topic, index)
        for topic, index, buffers in partitions
        if selectors.topic in (None, topic)
        and selectors.partition in (None, index)
        and any(wanted.is_in(buffer, budget) for buffer in buffers)
    )


MAX_TEXT: Final = 40
"""Bytes of a key or a value that are shown."""
MAX_SHOWN: Final = 3
"""Records that are shown of a message."""


def shown_records(request: object, response: object) -> Iterator[str]:
    """The first records of a Produce, or of the response of a Fetch, for a reader."""
    if isinstance(request, ProduceRequest):
        buffers = [
            partition.records or b""
            for topic in request.topic_data
            for partition in topic.partition_data
        ]
    elif isinstance(response, FetchResponse):
        buffers = [
            buffer
            for topic in response.responses
            for partition in topic.partitions
            for buffer in partition.records or ()
        ]
    else:
        return
    budget = ReadBudget()
    yield from islice(
        (_shown(record) for each in buffers for record in _read(each, budget)), MAX_SHOWN
    )


def _read(batches: Buffer, budget: ReadBudget) -> Iterator[Record]:
    """The records of batches, up to one that does not decode."""
    view = memoryview(batches)
    with suppress(CorruptBatch):
        for at, header in iter_headers(view):
            yield from budget.read(view[at : at + header.size])


def _shown(record: Record) -> str:
    """Such as ``key "17" value "two posts" header "type" "order"``."""
    fields = [("key", record.key), ("value", record.value)]
    headers = (f"header {json.dumps(name)} {_text(value)}" for name, value in record.headers)
    return " ".join((*(f"{name} {_text(value)}" for name, value in fields), *headers))


def _text(data: bytes | None) -> str:
    if data is None:
        return "null"
    text = data[:MAX_TEXT].decode("utf-8", "backslashreplace")
    return json.dumps(text, ensure_ascii=False) + ("..." if len(data) > MAX_TEXT else "")


class _WantedRecord:
    """A selector as the bytes that records have."""

    def __init__(self, selector: RecordSelector) -> None:
        self._key = _bytes(selector.key)
        self._value = _bytes(selector.value)
        self._header: tuple[str, bytes | None] | None = None
        if selector.header is not None:
            name, value = selector.header
            self._header = name, _bytes(value)

    def is_in(self, batches: Buffer, budget: ReadBudget) -> bool:
        """Whether any of these batches has such a record."""
        return any(map(self._is, _read(batches, budget)))

    def _is(self, record: Record) -> bool:
        return (
            (self._key is None or record.key == self._key)
            and (self._value is None or record.value == self._value)
            and (self._header is None or self._header in record.headers)
        )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
