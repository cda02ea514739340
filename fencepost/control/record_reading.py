"""Records of a partition, read from its leader's log and decoded a portion at a time.

To decode a batch takes longer than to serve it. Between two portions the loop serves the clients,
so the log may change meanwhile: it may be truncated, or its oldest segments may go.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Final, NamedTuple

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.node import record_actions
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.node.record_actions import ReadableRange, StoredRecord
from fencepost.control.record_transactions import TransactionsInRange, transactions_in
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import CorruptBatch
from fencepost.storage.log.interface import OffsetOutOfRange

PORTION_BYTES: Final = 1 << 18
"""What is read before the loop serves others; a batch is read whole."""
MAX_BYTES: Final = 8 << 20
"""Keys, values and headers of one answer."""


class ReadBatch(NamedTuple):
    """The records of a batch that lie in a range, and the offset behind it."""

    records: list[StoredRecord]
    next_offset: int


async def batches_between(
    cluster: Cluster, readable: ReadableRange, start: int, end: int
) -> AsyncGenerator[ReadBatch, None]:
    """The batches with records from one offset (inclusive) to another (exclusive).

    To a read_committed consumer the batches of aborted transactions have no records.

    :raises ControllerError: OFFSET_OUT_OF_RANGE when the log does not have an offset any more,
        CORRUPT_MESSAGE when a batch is broken, or what the log or the tier fails with.
    """
    offset = start
    while offset < end:
        before = offset
        portion = await _portion(cluster, readable, offset)
        known: TransactionsInRange | None = None
        try:
            for header, records in record_actions.stored_records(portion):
                if offset < header.next_offset:
                    if header.is_transactional and known is None:
                        known = await transactions_in(cluster, readable, offset)
                    state = None if known is None else known.state_of(header)
                    left_out = readable.committed and state == "aborted"
                    wanted = [
                        each if state is None else each._replace(transaction=state)
                        for each in records
                        if offset <= each.record.offset < end and not left_out
                    ]
                    offset = header.next_offset
                    yield ReadBatch(wanted, min(offset, end))
                if offset >= end:
                    return
        except CorruptBatch as error:
            replica = readable.replica
            raise ControllerError(
                ErrorCode.CORRUPT_MESSAGE, f"{replica.log.name} at offset {offset}: {error}"
            ) from error
        if offset == before:
            return
        await asyncio.sleep(0)


async def _portion(cluster: Cluster, readable: ReadableRange, offset: int) -> tuple[Buffer, ...]:
    name = readable.replica.log.name
    answer: asyncio.Future[tuple[Buffer, ...] | ErrorCode]
    answer = asyncio.get_running_loop().create_future()

    def set_result(result: tuple[Buffer, ...] | ErrorCode) -> None:
        if not answer.done():  # the client may be gone
            answer.set_result(result)

    try:
        record_actions.read(
            cluster,
            readable.replica,
            offset,
            readable.end,
            max_bytes=PORTION_BYTES,
            then=set_result,
        )
    except OffsetOutOfRange as error:
        raise ControllerError(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"{name} does not have offset {offset} any more"
        ) from error
    found = await answer
    if isinstance(found, ErrorCode):
        raise ControllerError(found, f"{name} cannot be read at offset {offset}: {found.name}")
    return found


class ReadRecords(NamedTuple):
    """Records, and where to read on."""

    records: list[StoredRecord]
    next_offset: int


async def read_forward(
    cluster: Cluster, readable: ReadableRange, start: int, end: int, limit: int
) -> ReadRecords:
    """The records of a range, as many as `limit` and `MAX_BYTES` allow, and one at least.

    :raises ControllerError: As `batches_between`.
    """
    found: list[StoredRecord] = []
    size, next_offset = 0, start
    async with aclosing(batches_between(cluster, readable, start, end)) as batches:
        async for batch in batches:
            for each in batch.records:
                size += _size(each)
                if len(found) == limit or (found and size > MAX_BYTES):
                    return ReadRecords(found, next_offset)
                found.append(each)
                next_offset = each.record.offset + 1
            next_offset = batch.next_offset
    return ReadRecords(found, max(next_offset, end))


async def read_last(cluster: Cluster, readable: ReadableRange, end: int, count: int) -> ReadRecords:
    """The last records before an offset, as many as `count` and `MAX_BYTES` allow.

    Not every offset has a record: where some are missing, a range twice as long is read.

    :raises ControllerError: As `batches_between`.
    """
    span = count
    while True:
        start = max(end - span, readable.start)
        newest = _Newest(count)
        async for batch in batches_between(cluster, readable, start, end):
            newest.add(batch.records)
        if newest.is_full or start == readable.start:
            return ReadRecords(list(newest.records), end)
        span *= 2


class _Newest:
    """The last records of those added: as many as may be, and no larger together."""

    def __init__(self, count: int) -> None:
        self.records: deque[StoredRecord] = deque()
        self._count = count
        self._size = 0
        self._has_dropped = False

    @property
    def is_full(self) -> bool:
        """Whether no record before these would be kept."""
        return self._has_dropped or len(self.records) == self._count

    def add(self, records: Iterable[StoredRecord]) -> None:
        """Add records that come after those before, and drop the oldest."""
        for each in records:
            self.records.append(each)
            self._size += _size(each)
            while len(self.records) > self._count or self._is_too_large:
                self._size -= _size(self.records.popleft())
                self._has_dropped = True

    @property
    def _is_too_large(self) -> bool:
        return self._size > MAX_BYTES and len(self.records) > 1


def _size(each: StoredRecord) -> int:
    record = each.record
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers
