"""Whether record batches have a record that a fault selects, by its key, value or header.

Records are decoded only while such a fault is set. Batches that do not decode have no such record.
"""

from collections.abc import Iterable, Sequence

from fencepost.broker.core.context import TopicPartition
from fencepost.broker.faults.selectors import RecordSelector, Selectors
from fencepost.protocol.byte_utils import Buffer
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
        view = memoryview(batches)
        try:
            return any(
                self._is(record)
                for at, header in iter_headers(view)
                for record in budget.read(view[at : at + header.size])
            )
        except CorruptBatch:
            return False

    def _is(self, record: Record) -> bool:
        return (
            (self._key is None or record.key == self._key)
            and (self._value is None or record.value == self._value)
            and (self._header is None or self._header in record.headers)
        )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
