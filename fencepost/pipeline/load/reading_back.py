"""What a partition's log has already, compared with what belongs there."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from fencepost.client.asking import A, NotTold, until_told
from fencepost.client.batches import NOT_SEQUENCED, decode_records
from fencepost.client.calls import FETCH
from fencepost.client.client import Client
from fencepost.client.comparing import Own, Verdict, compare
from fencepost.client.connection import Connection
from fencepost.client.encoded import EncodedRecords
from fencepost.client.errors import RETRIABLE
from fencepost.client.model import FoundOffset, OffsetSpec, Partition
from fencepost.client.partitions import list_offsets
from fencepost.pipeline.load.outcomes import LoadInterrupted, LoadRefused
from fencepost.protocol.buffers import Buffer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from fencepost.protocol.records import CorruptBatch, iter_headers

_ATTEMPT_S: Final = 10.0
_TOPIC_IDS: Final = 13
_MAY_COME_RIGHT: Final = RETRIABLE | {ErrorCode.OFFSET_OUT_OF_RANGE}
"""The log was longer: of a leader who is behind, or an election has lost some of it. That it begins
further on is another matter, which `Log._require_kept` tells from this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Raw:
    """What a fetch brought, as it came."""

    error: int
    high_watermark: int
    buffers: tuple[Buffer, ...]


class Log:
    """A partition's log, as far as every in-sync replica has it: what its leader tells.

    :param partition: With the topic's id, where brokers tell it.
    :param patience_s: How long to go on without an answer. Errors are followed by another attempt
        where Kafka's clients make one.
    """

    def __init__(self, client: Client, partition: Partition, *, patience_s: float) -> None:
        self._client = client
        self._partition = partition
        self._patience_s = patience_s
        self._name = f"{partition.topic}-{partition.index}"

    async def bounds(self) -> tuple[int, int]:
        """The first offset, and the one behind the last.

        :raises LoadInterrupted: When nobody tells in time.
        :raises LoadRefused: When nobody may tell.
        """
        return await self._offset(OffsetSpec.EARLIEST), await self._offset(OffsetSpec.LATEST)

    async def require(self, chunk: EncodedRecords, start: int) -> None:
        """Return where the log has a chunk's records from an offset on.

        :param start: The offset of the first one; the log reaches behind the last one.
        :raises LoadRefused: When it has something else, or has deleted them meanwhile.
        :raises LoadInterrupted: When nobody tells in time, or what comes is broken.
        """
        own = Own(records=chunk, first_offset=start, sequenced=NOT_SEQUENCED)
        at = start
        while at < own.end_offset:
            # No more than the chunk: what follows would be fetched again with the next one.
            fetched = partial(self._fetch, at, chunk.size)
            raw = await self._ask(fetched, lambda raw: bool(raw.buffers))
            next_offset = _same_bytes(own, chunk, raw, at)
            at = self._same_records(own, raw, at) if next_offset == at else next_offset

    def _same_records(self, own: Own, raw: _Raw, at: int) -> int:
        """How far the log has the records, though its batches are others."""
        content = decode_records(raw.buffers, at)
        compared = compare(own, content, at, raw.high_watermark)
        there = compared.next_offset
        if compared.verdict is Verdict.FOREIGN:
            raise LoadRefused(f"{self._name} has something else at offset {there} than the source")
        if compared.verdict is Verdict.MISSING:
            raise LoadRefused(f"{self._name} does not have the record at offset {there} any more")
        if there == at:
            why = content.corrupt or "nothing is there yet"
            raise LoadInterrupted(f"{self._name} can't be read at offset {at}: {why}")
        return there

    # -- asking ---------------------------------------------------------------------------------

    async def _offset(self, of: OffsetSpec) -> int:
        def ask(connection: Connection) -> Awaitable[FoundOffset]:
            return list_offsets(connection, self._partition, of, timeout_s=_ATTEMPT_S)

        return (await self._ask(ask)).offset

    async def _fetch(self, offset: int, max_bytes: int, connection: Connection) -> _Raw:
        version = await connection.best_version(FETCH.api, timeout_s=_ATTEMPT_S)
        if self._partition.topic_id is None:
            version = min(version, _TOPIC_IDS - 1)
        part = FetchPartition(
            partition=self._partition.index,
            fetch_offset=offset,
            partition_max_bytes=max_bytes,
        )
        topic = (
            FetchTopic(topic_id=self._partition.topic_id, partitions=(part,))
            if version >= _TOPIC_IDS
            else FetchTopic(topic=self._partition.topic, partitions=(part,))
        )
        request = FetchRequest(min_bytes=1, max_bytes=max_bytes, topics=(topic,))
        answer = await connection.ask(FETCH, request, version, timeout_s=_ATTEMPT_S)
        for found in (each for topic in answer.responses for each in topic.partitions):
            error = found.error_code or answer.error_code
            if error == ErrorCode.OFFSET_OUT_OF_RANGE:
                await self._require_kept(offset, connection)
            return _Raw(
                error=error,
                high_watermark=found.high_watermark,
                buffers=tuple(found.records or ()),
            )
        return _Raw(error=answer.error_code, high_watermark=-1, buffers=())

    async def _require_kept(self, offset: int, connection: Connection) -> None:
        """Look whether an offset is out of range since the log begins behind it now.

        Then no leader gets it back, and to ask on is in vain. The refusal itself does not tell
        where the log begins.
        """
        start = await list_offsets(
            connection, self._partition, OffsetSpec.EARLIEST, timeout_s=_ATTEMPT_S
        )
        if not start.error and start.offset > offset:
            raise LoadRefused(
                f"{self._name} does not have the record at offset {offset} any more: it begins at "
                f"offset {start.offset} now; retention (retention.ms, retention.bytes) or "
                "DeleteRecords took what was before"
            )

    async def _ask(
        self,
        ask: Callable[[Connection], Awaitable[A]],
        suits: Callable[[A], bool] = lambda _: True,
    ) -> A:
        """Ask the leader until there is an answer that suits."""
        topic, index = self._partition.topic, self._partition.index

        async def once() -> A:
            return await ask(await self._client.leader(topic, index, timeout_s=_ATTEMPT_S))

        try:
            return await until_told(
                self._client,
                once,
                patience_s=self._patience_s,
                suits=suits,
                may_come_right=_MAY_COME_RIGHT,
            )
        except NotTold as error:
            outcome = LoadInterrupted if error.error is None else LoadRefused
            raise outcome(f"{self._name} can't be read: {error}") from error


def _same_bytes(own: Own, chunk: EncodedRecords, raw: _Raw, at: int) -> int:
    """Behind the last batch that is, byte by byte, the chunk's; `at` where the first is not."""
    meant = dict(zip(chunk.starts(own.first_offset), chunk.batches, strict=False))
    try:
        for buffer in raw.buffers:
            view = memoryview(buffer)
            for pos, header in iter_headers(buffer):
                batch = meant.get(at)
                if batch is None or header.base_offset != at or not batch.is_at(view, pos, header):
                    return at
                at = header.next_offset
    except CorruptBatch:
        return at
    return at
