"""A coordinator's log in memory; the test moves its high watermark."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from fencepost.broker.coordinator.commit_queue import LoadedBatch
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import BatchHeader, Record, build_batch, read_header
from fencepost.protocol.transaction_markers import TransactionMarker, decode_marker
from fencepost.storage.log.verification import VerificationGuard

_PLAIN: Final = read_header(build_batch([]))


class FakeLog:
    """The log of a leader; appended records are committed at once unless ``held`` is set."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.records = list(records)
        """Markers are among them."""
        self.headers: dict[int, BatchHeader] = {}
        """Of the batches of transactions, and of markers, by the offset of each record."""
        self.held = False
        self.leader_epoch = 0
        self.refusal: ErrorCode | None = None
        self.high_watermark = len(self.records)
        self._markers: dict[int, bytearray] = {}
        self._waiting: list[tuple[int, Callable[[], None]]] = []

    def copy(self) -> FakeLog:
        """The log as the next leader has it: all of it is committed."""
        log = FakeLog(self.records)
        log.headers, log._markers = dict(self.headers), dict(self._markers)
        return log

    @property
    def is_empty(self) -> bool:
        return not self.records

    def start_verification(
        self, producer_id: int, epoch: int, *, supports_epoch_bump: bool
    ) -> VerificationGuard | ErrorCode | None:
        """None is needed."""

    def append(self, batch: bytearray, guard: VerificationGuard | None = None) -> int | ErrorCode:
        if self.refusal is not None:
            return self.refusal
        header = read_header(batch)
        for record in iter_records(batch):
            if header.has_producer_id:
                self.headers[len(self.records)] = header
            self.records.append(record._replace(offset=len(self.records)))
        if not self.held:
            self.high_watermark = len(self.records)
        return len(self.records) - 1

    def append_marker(self, marker: TransactionMarker) -> int | ErrorCode:
        batch = marker.to_batch(0)
        if self.refusal is None:
            self._markers[len(self.records)] = batch
        return self.append(batch)

    def read_all(self) -> Iterable[LoadedBatch]:
        """One batch for each record."""
        return tuple(self._batch(record) for record in self.records)

    def _batch(self, record: Record) -> LoadedBatch:
        header = self.headers.get(record.offset, _PLAIN)
        if header.is_control:
            marker = decode_marker(self._markers[record.offset])
            header = header._replace(base_offset=record.offset)
            return LoadedBatch(header, marker=marker)
        return LoadedBatch(header, (record,))

    def when_committed(self, offset: int, callback: Callable[[], None]) -> None:
        if offset < self.high_watermark:
            callback()
        else:
            self._waiting.append((offset, callback))

    def commit(self, up_to: int | None = None) -> None:
        """Raise the high watermark: to the end, or to an offset (exclusive)."""
        self.high_watermark = len(self.records) if up_to is None else up_to
        due = [each for each in self._waiting if each[0] < self.high_watermark]
        self._waiting = [each for each in self._waiting if each[0] >= self.high_watermark]
        for _, callback in due:
            callback()
