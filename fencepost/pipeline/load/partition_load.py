"""Appends the chunks of one partition at their offsets, in order, each once.

The log alone says how far earlier attempts came, and only by its content. That it ends behind a
chunk does not say that the chunk is in it: others may have appended as many records. So what it
has is compared, and what it does not have is appended where it is expected, or nowhere.

An earlier attempt may still be at it, or its last request be under way: a task that Spark believes
dead. Both send the same, and one of them is first; the other is refused, reads it back, and finds
it there.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from fencepost.client.append_outcomes import (
    AppendRefused,
    ExpectedOffsetMismatch,
    ExpectedRecords,
    NotChecked,
    Verdict,
    match_records,
)
from fencepost.client.appender import Appender
from fencepost.client.batches import NOT_SEQUENCED, EncodedRecords, decode_records
from fencepost.client.client import Client
from fencepost.client.connection import FETCH, Connection
from fencepost.client.errors import RETRIABLE, KafkaClientError
from fencepost.client.model import FoundOffset, OffsetSpec, Partition
from fencepost.client.partitions import list_offsets
from fencepost.client.retry import A, RetryFailed, retry
from fencepost.pipeline.load.options import LoadInterrupted, LoadRefused, PartitionLoaded
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from fencepost.protocol.records import CorruptBatch, iter_headers


class PartitionLoad:
    """One attempt to bring rows into a partition.

    :param partition: With the topic's id.
    :param base: The offset of the first row.
    :param patience_s: How long to go on with one request while brokers fail, in seconds.
    """

    def __init__(
        self, client: Client, partition: Partition, *, base: int, patience_s: float
    ) -> None:
        self._partition = partition
        self._name = f"{partition.topic}-{partition.index}"
        self._base = base
        self._at = base
        self._appended = 0
        self._end = -1
        self._log = PartitionLog(client, partition, patience_s=patience_s)
        self._appender = Appender(client, partition, deadline_s=patience_s)

    @property
    def loaded(self) -> PartitionLoaded:
        """What it has come to."""
        return PartitionLoaded(
            partition=self._partition.index,
            base=self._base,
            found=self._at - self._base - self._appended,
            appended=self._appended,
        )

    async def begin(self) -> None:
        """Look how far the log goes. To be called first.

        :raises LoadRefused: When it does not reach back or up to the first row.
        :raises LoadInterrupted: When no broker answers in time.
        """
        start, self._end = await self._log.bounds()
        if start > self._base:
            raise LoadRefused(
                f"{self._name} begins at offset {start}: what has been at {self._base} is not to "
                "be known any more"
            )
        if self._end < self._base:
            raise LoadRefused(
                f"{self._name} ends at offset {self._end}, before {self._base}, which the load "
                "has begun at: it has lost records"
            )

    async def append_or_verify(self, chunk: EncodedRecords) -> None:
        """See to it that the log has the next chunk.

        :raises LoadRefused: When something else is where it belongs.
        :raises LoadInterrupted: When brokers do not answer, or can't tell what they have done.
        """
        behind = self._at + len(chunk)
        if behind <= self._end:
            await self._log.require_records(chunk, self._at)
        else:
            await self._append(chunk)
        self._at = behind

    async def _append(self, chunk: EncodedRecords) -> None:
        expected = self._at
        try:
            await self._appender.append(chunk, expected=expected, may_be_there=True)
        except ExpectedOffsetMismatch as mismatch:
            if mismatch.upcoming is not None and mismatch.upcoming <= expected:
                raise LoadInterrupted(f"{mismatch}: the log has become shorter") from mismatch
            there = expected + mismatch.appended
            raise LoadRefused(
                f"{self._name} has something else at offset {there} than the source"
            ) from mismatch
        except NotChecked as error:
            raise LoadRefused(str(error)) from error
        except AppendRefused as error:
            raise self._refused(error) from error
        except KafkaClientError as error:
            # That an earlier attempt may have been taken is no reason to try for ever.
            if isinstance(error.__cause__, AppendRefused):
                raise self._refused(error.__cause__) from error
            raise LoadInterrupted(str(error)) from error
        self._appended += len(chunk)

    def _refused(self, why: AppendRefused) -> LoadRefused:
        said = f": {why.message}" if why.message else ""
        return LoadRefused(
            f"{self._name} does not take the rows from offset {self._at} on: {why.name}{said}"
        )


_ATTEMPT_S: Final = 10.0
_TOPIC_IDS: Final = 13
_RETRIABLE: Final = RETRIABLE | {ErrorCode.OFFSET_OUT_OF_RANGE}
"""The log was longer: of a leader who is behind, or an election has lost some of it. That it begins
further on is another matter, which `Log._require_kept` tells from this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _FetchResult:
    """What a fetch brought, as it came."""

    error: int
    high_watermark: int
    buffers: tuple[Buffer, ...]


class PartitionLog:
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

        :raises LoadInterrupted: When no broker answers in time.
        :raises LoadRefused: When no broker may answer.
        """
        return await self._offset(OffsetSpec.EARLIEST), await self._offset(OffsetSpec.LATEST)

    async def require_records(self, chunk: EncodedRecords, start: int) -> None:
        """Return where the log has a chunk's records from an offset on.

        :param start: The offset of the first one; the log reaches behind the last one.
        :raises LoadRefused: When it has something else, or has deleted them meanwhile.
        :raises LoadInterrupted: When no broker answers in time, or the batches are corrupt.
        """
        own = ExpectedRecords(records=chunk, first_offset=start, sequenced=NOT_SEQUENCED)
        at = start
        while at < own.end_offset:
            # No more than the chunk: what follows would be fetched again with the next one.
            fetched = partial(self._fetch, at, chunk.size)
            raw = await self._ask(fetched, lambda raw: bool(raw.buffers))
            next_offset = _same_bytes(own, chunk, raw, at)
            at = self._same_records(own, raw, at) if next_offset == at else next_offset

    def _same_records(self, own: ExpectedRecords, raw: _FetchResult, at: int) -> int:
        """How far the log has the records, though its batches are others."""
        content = decode_records(raw.buffers, at)
        compared = match_records(own, content, at, raw.high_watermark)
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

    async def _fetch(self, offset: int, max_bytes: int, connection: Connection) -> _FetchResult:
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
            return _FetchResult(
                error=error,
                high_watermark=found.high_watermark,
                buffers=tuple(found.records or ()),
            )
        return _FetchResult(error=answer.error_code, high_watermark=-1, buffers=())

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
            return await retry(
                self._client,
                once,
                deadline_s=self._patience_s,
                accepts=suits,
                retriable=_RETRIABLE,
            )
        except RetryFailed as error:
            outcome = LoadInterrupted if error.error is None else LoadRefused
            raise outcome(f"{self._name} can't be read: {error}") from error


def _same_bytes(own: ExpectedRecords, chunk: EncodedRecords, raw: _FetchResult, at: int) -> int:
    """Behind the last batch that is, byte by byte, the chunk's; `at` where the first is not."""
    meant = dict(zip(chunk.starts(own.first_offset), chunk.batches, strict=False))
    try:
        for buffer in raw.buffers:
            view = memoryview(buffer)
            for pos, header in iter_headers(buffer):
                batch = meant.get(at)
                if (
                    batch is None
                    or header.base_offset != at
                    or not batch.matches_at(view, pos, header)
                ):
                    return at
                at = header.next_offset
    except CorruptBatch:
        return at
    return at
