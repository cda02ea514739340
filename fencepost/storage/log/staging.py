"""Staging: the batches of one request, checked in full before any of them is appended.

Conditional publish (KIP-27) rejects a whole request for one record in one partition. So the batches
for all logs are checked and staged first, and then the staged batches are appended.
"""

from typing import NamedTuple, Protocol, TypeAlias

from msgspec import Struct, field

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.record_reader import ReadBudget
from fencepost.protocol.records import BatchHeader
from fencepost.storage.log.append import prepare_checked_batch
from fencepost.storage.log.append_result import AppendOrigin, AppendRejected, no_room
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.expected_offsets import ExpectedOffsetCheck, LastOfKey
from fencepost.storage.log.producer_state import BatchMetadata, ProducerStateManager
from fencepost.storage.log.validation import (
    OpenedBatch,
    check_size_and_crc,
    open_batch,
    open_batches,
)
from fencepost.storage.log.verification import VerificationGuard


class Refusal(Protocol):
    """Why no batches of `size` bytes may be appended now; None if they may."""

    def __call__(self, size: int, *, is_client: bool) -> str | None:
        """As `SegmentStore.refusal`."""


class StagedBatch(NamedTuple):
    """A batch that may be appended.

    :ivar duplicate: What there is already of it, in the log or staged before it; then it is not
        appended again.
    """

    records: bytearray | memoryview
    header: BatchHeader
    duplicate: BatchMetadata | None


class StagedRecords(Struct, frozen=True):
    """What one partition of a request has, one batch at least.

    :ivar keys: The offsets that the records get, by their keys, where keys are compared.
    :ivar is_there: Whether the log had all of it before the request: then there is nothing to
        refuse.
    """

    batches: tuple[StagedBatch, ...]
    keys: dict[bytes, int] = field(default_factory=dict)
    is_duplicate: bool = False


class Staging:
    """What one request appends to one log, as long as nothing else is appended to it.

    :param producers: Those of the log. Nothing here changes them.
    :param refusal: That of the log's `SegmentStore`.
    """

    __slots__ = (
        "_config",
        "_end",
        "_first_offset",
        "_keys",
        "_last_of_key",
        "_latest",
        "_log_start_offset",
        "_name",
        "_now_ms",
        "_producers",
        "_refusal",
        "_staged",
        "_staged_bytes",
    )

    def __init__(
        self,
        name: str,
        config: LogConfig,
        *,
        now_ms: int,
        log_start_offset: int,
        log_end_offset: int,
        producers: ProducerStateManager,
        last_of_key: LastOfKey,
        refusal: Refusal,
    ) -> None:
        self._name = name
        self._config = config
        self._now_ms = now_ms
        self._log_start_offset = log_start_offset
        self._first_offset = self._end = log_end_offset
        self._producers = producers
        self._last_of_key = last_of_key
        self._refusal = refusal
        self._staged_bytes = 0
        self._staged: dict[_Sequence, BatchMetadata] = {}
        """What the log will know of the producers' batches so far."""
        self._latest: dict[int, BatchHeader] = {}
        """The last batch so far, by producer id."""
        self._keys: dict[bytes, int] = {}

    def add(
        self,
        records: Buffer,
        *,
        allow_zstd: bool,
        budget: ReadBudget | None = None,
        guard: VerificationGuard | None = None,
    ) -> StagedRecords | AppendRejected:
        """Check what the request has next for this log; all of it may be appended, or nothing.

        :param records: One batch, or several where the log checks expected offsets. They are
            stamped in place and kept, as in `Log.append_as_leader`.
        :param budget: What the request may still unpack to; None where it has nothing else.
        :param guard: As for `Log.append_as_leader`.
        """
        budget = ReadBudget() if budget is None else budget
        opened = self._open(records, allow_zstd=allow_zstd)
        if isinstance(opened, AppendRejected):
            return opened
        duplicates = self._duplicates(opened)
        keys: dict[bytes, int] = {}
        if self._config.check_expected_offsets:
            compared = self._compare(opened, duplicates, budget)
            if isinstance(compared, AppendRejected):
                return compared
            keys = compared.keys
            rejected = compared.rejected(self._name)
            if rejected is not None:
                if rejected.mismatch is not None:  # what follows is compared as if it were appended
                    self._note(opened, duplicates, keys)
                return rejected
        batches = self._make_ready(opened, duplicates, budget, guard)
        if isinstance(batches, AppendRejected):
            return batches
        self._staged_bytes += sum(len(each.records) for each in batches if each.duplicate is None)
        refusal = self._refusal(self._staged_bytes, is_client=True) if self._staged_bytes else None
        if refusal is not None:
            return no_room(refusal, self._log_start_offset)
        self._note(opened, duplicates, keys)
        is_there = all(
            each is not None and each.last_offset < self._first_offset for each in duplicates
        )
        return StagedRecords(batches, keys, is_there)

    def _open(self, records: Buffer, *, allow_zstd: bool) -> list[OpenedBatch] | AppendRejected:
        if self._config.check_expected_offsets:
            opened = open_batches(records, allow_zstd=allow_zstd)
        else:
            one = open_batch(records, allow_zstd=allow_zstd)
            opened = one if isinstance(one, AppendRejected) else [one]
        if isinstance(opened, AppendRejected):
            return opened
        for batch, header in opened:
            rejected = check_size_and_crc(batch, header, self._config, self._log_start_offset)
            if rejected is not None:
                return rejected
        return opened

    def _duplicates(self, opened: list[OpenedBatch]) -> list[BatchMetadata | None]:
        """For each batch what it repeats: of the log, or of the request."""
        found: list[BatchMetadata | None] = []
        upcoming: dict[_Sequence, BatchMetadata] = {}
        end = self._end
        for _, header in opened:
            duplicate = None
            if header.has_producer_id:
                sequence = _sequence_of(header)
                duplicate = (
                    self._producers.duplicate_of(header)
                    or self._staged.get(sequence)
                    or upcoming.get(sequence)
                )
            if duplicate is None:
                if header.has_producer_id:
                    upcoming[_sequence_of(header)] = _placed(header, end)
                end += header.record_count
            found.append(duplicate)
        return found

    def _compare(
        self,
        opened: list[OpenedBatch],
        duplicates: list[BatchMetadata | None],
        budget: ReadBudget,
    ) -> ExpectedOffsetCheck | AppendRejected:
        """What the records expect with what they would get, where they can be read."""
        comparison = ExpectedOffsetCheck(
            self._config, log_start_offset=self._log_start_offset, last_of_key=self._last
        )
        end, index = self._end, 0
        for (batch, header), duplicate in zip(opened, duplicates, strict=True):
            if duplicate is None:
                unreadable = comparison.add(batch, header, upcoming=end, index=index, budget=budget)
                if unreadable is not None:
                    return unreadable
                end += header.record_count
            index += header.record_count
        return comparison

    def _last(self, key: bytes) -> int | None:
        staged = self._keys.get(key)
        return self._last_of_key(key) if staged is None else staged

    def _make_ready(
        self,
        opened: list[OpenedBatch],
        duplicates: list[BatchMetadata | None],
        budget: ReadBudget,
        guard: VerificationGuard | None,
    ) -> tuple[StagedBatch, ...] | AppendRejected:
        staged: list[StagedBatch] = []
        latest: dict[int, BatchHeader] = {}
        for (batch, header), duplicate in zip(opened, duplicates, strict=True):
            ready = prepare_checked_batch(
                batch,
                header,
                self._config,
                name=self._name,
                now_ms=self._now_ms,
                origin=AppendOrigin.CLIENT,
                log_start_offset=self._log_start_offset,
                budget=budget,
            )
            if isinstance(ready, AppendRejected):
                return ready
            if duplicate is None and header.has_producer_id:
                after = latest.get(header.producer_id) or self._latest.get(header.producer_id)
                code = None
                if header.is_transactional:
                    code = self._verification_refusal(header, guard)
                code = code or self._producers.refusal(header, check_sequence=True, after=after)
                if code is not None:
                    return AppendRejected(error=code, log_start_offset=self._log_start_offset)
                latest[header.producer_id] = ready.header
            staged.append(StagedBatch(*ready, duplicate))
        return tuple(staged)

    def _verification_refusal(
        self, header: BatchHeader, guard: VerificationGuard | None
    ) -> ErrorCode | None:
        if not self._config.transaction_partition_verification_enable:
            return None
        return self._producers.verification_refusal(header, guard)

    def _note(
        self,
        opened: list[OpenedBatch],
        duplicates: list[BatchMetadata | None],
        keys: dict[bytes, int],
    ) -> None:
        for (_, header), duplicate in zip(opened, duplicates, strict=True):
            if duplicate is None:
                if header.has_producer_id:
                    self._staged[_sequence_of(header)] = _placed(header, self._end)
                    self._latest[header.producer_id] = header
                self._end += header.record_count
        self._keys.update(keys)


def _placed(header: BatchHeader, first_offset: int) -> BatchMetadata:
    """What the log will know of a batch that begins at an offset."""
    delta = header.record_count - 1
    return BatchMetadata(header.last_sequence, first_offset + delta, delta, header.max_timestamp)


_Sequence: TypeAlias = tuple[int, int, int, int]


def _sequence_of(header: BatchHeader) -> _Sequence:
    """What a batch that repeats another has in common with it."""
    return (
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.last_offset_delta,
    )
