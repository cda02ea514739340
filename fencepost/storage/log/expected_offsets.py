"""Whether records arrive where their producer expects them: KIP-27, conditional publish.

A record may state the offset that it expects to get. With ``check.expected.offsets.scope=key`` it
states instead what its producer has seen: an offset beyond the last one of the record's key (the
KIP's section "Comparing Offsets by Key").
"""

import struct
from collections.abc import Callable
from typing import Final

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.expected_offsets import (
    HEADER,
    UNSPECIFIED,
    Mismatch,
    read_header_value,
)
from fencepost.protocol.record_reader import ReadBudget
from fencepost.protocol.records import HEADER_SIZE, LOG_OVERHEAD, BatchHeader, Record
from fencepost.storage.log.append_result import AppendRejected
from fencepost.storage.log.config import ExpectedOffsetsScope, ExpectedOffsetsSource, LogConfig
from fencepost.storage.log.validation import invalid_records, read_records

_STATED: Final = struct.Struct(">qi11xi30xi")
"""Of a batch's header: base offset, length, last offset delta, and number of records."""

LastOfKey = Callable[[bytes], int | None]
"""The last offset in the log of a key's records, None where there is none."""


def matches_upcoming_offset(records: Buffer, config: LogConfig, upcoming: int) -> bool:
    """Whether nothing can be mismatched, as one header says: then a `ExpectedOffsetCheck` finds
    nothing.

    There is one batch and nothing behind it, it states the offsets that its records will get, and
    it has no gaps; or offsets are not checked at all.
    """
    if not config.check_expected_offsets:
        return True
    if (
        config.check_expected_offsets_source is not ExpectedOffsetsSource.BATCH
        or config.check_expected_offsets_scope is not ExpectedOffsetsScope.PARTITION
        or len(records) < HEADER_SIZE
    ):
        return False
    base_offset, length, delta, count = _STATED.unpack_from(records)
    stated: tuple[int, int, int] = (base_offset, length + LOG_OVERHEAD, delta)
    return stated == (upcoming, len(records), count - 1)


class ExpectedOffsetCheck:
    """What one request has for one log, batch after batch.

    :ivar mismatches: Index in the request and what did not match, in the order of the records. A
        base offset is one statement about its batch, and stands at the first record.
    :ivar faults: Index and text of each record whose header states no offset.
    :ivar keys: The offsets that records get, by their keys; the last one counts. Empty where keys
        are not compared.
    """

    __slots__ = (
        "_by_header",
        "_by_key",
        "_config",
        "_last_of_key",
        "_log_start_offset",
        "invalid_headers",
        "keys",
        "mismatches",
    )

    def __init__(self, config: LogConfig, *, log_start_offset: int, last_of_key: LastOfKey) -> None:
        self._config = config
        self._log_start_offset = log_start_offset
        self._last_of_key = last_of_key
        self._by_header = config.check_expected_offsets_source is ExpectedOffsetsSource.HEADER
        self._by_key = config.check_expected_offsets_scope is ExpectedOffsetsScope.KEY
        self.mismatches: list[tuple[int, Mismatch]] = []
        self.invalid_headers: list[tuple[int, str]] = []
        self.keys: dict[bytes, int] = {}

    def add(
        self,
        batch: Buffer,
        header: BatchHeader,
        *,
        upcoming: int,
        index: int,
        budget: ReadBudget | None = None,
    ) -> AppendRejected | None:
        """Compare the next batch; why its records can't be read, where they have to be.

        :param upcoming: The offset that its first record would get.
        :param index: How many records the request has before it.
        :param budget: What the request may still unpack to; None where it has nothing else.
        """
        if not (self._by_header or self._by_key):
            base = header.base_offset
            if base == UNSPECIFIED:
                return None
            if header.last_offset_delta == header.record_count - 1:  # without a gap
                if base != upcoming:
                    self.mismatches.append((index, Mismatch(base, upcoming)))
                return None
        records = read_records(batch, self._log_start_offset, budget)
        if isinstance(records, AppendRejected):
            return records
        states_offsets = self._by_header or header.base_offset != UNSPECIFIED
        for at, record in enumerate(records):
            expected = self._stated(record, index + at) if states_offsets else UNSPECIFIED
            if expected != UNSPECIFIED:
                self._compare(record, expected, upcoming + at, index + at)
            if self._by_key and record.key is not None:
                self.keys[record.key] = upcoming + at
        return None

    def _stated(self, record: Record, index: int) -> int:
        if not self._by_header:
            return record.offset
        stated: int | None = UNSPECIFIED
        for name, value in record.headers:
            if name == HEADER:  # of several the last one counts
                stated = read_header_value(value)
        if stated is None:
            text = f"The header {HEADER} is neither decimal text nor 8 bytes"
            self.invalid_headers.append((index, text))
            return UNSPECIFIED
        return stated

    def _compare(self, record: Record, expected: int, upcoming: int, index: int) -> None:
        if not self._by_key:
            if expected != upcoming:
                self.mismatches.append((index, Mismatch(expected, upcoming)))
            return
        if record.key is None:
            return
        last = self.keys.get(record.key)
        if last is None:
            last = self._last_of_key(record.key)
        if last is not None and expected <= last:
            self.mismatches.append((index, Mismatch(expected, upcoming, last)))

    def rejected(self, name: str) -> AppendRejected | None:
        """Why nothing may be appended, None where everything matches.

        :param name: Topic and partition.
        """
        if self.mismatches:
            index, mismatch = self.mismatches[0]
            return AppendRejected(
                error=self._config.check_expected_offsets_error_code,
                message=f"Nothing was appended. Record {index} for {name}: {mismatch}",
                record_errors=tuple((at, str(each)) for at, each in self.mismatches),
                log_start_offset=self._log_start_offset,
                mismatch=mismatch,
            )
        if self.invalid_headers:
            return invalid_records(self.invalid_headers, self._log_start_offset)
        return None
