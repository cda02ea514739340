"""A coordinator's log in memory; the test moves its high watermark."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import Record


class FakeLog:
    """The log of a leader; appended records are committed at once unless ``held`` is set."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.records = list(records)
        self.held = False
        self.leader_epoch = 0
        self.refusal: ErrorCode | None = None
        self.high_watermark = len(self.records)
        self._waiting: list[tuple[int, Callable[[], None]]] = []

    def append(self, batch: bytearray) -> int | ErrorCode:
        if self.refusal is not None:
            return self.refusal
        for record in iter_records(batch):
            self.records.append(record._replace(offset=len(self.records)))
        if not self.held:
            self.high_watermark = len(self.records)
        return len(self.records) - 1

    def read_all(self) -> Iterable[Record]:
        return tuple(self.records)

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
