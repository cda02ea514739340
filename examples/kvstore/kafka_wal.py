"""A shard's log in Kafka: one partition, which checks expected offsets."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from examples.kvstore.records import Entry, decode, encode
from examples.kvstore.wal import NotConfirmed, Stretch
from fencepost.client.append_outcomes import ExpectedOffsetMismatch
from fencepost.client.appender import Appender
from fencepost.client.batches import NewRecord
from fencepost.client.client import Client, Leader, find_leader
from fencepost.client.connection import Connection
from fencepost.client.errors import RETRIABLE, KafkaClientError
from fencepost.client.model import Fetched, OffsetSpec, Partition
from fencepost.client.partitions import fetch, list_offsets
from fencepost.protocol.errors import ErrorCode

PAUSE_S: Final = 0.02
"""Before the partition is asked again, after it did not answer or another broker leads it."""
_LATER: Final = RETRIABLE | {ErrorCode.OFFSET_OUT_OF_RANGE}
"""Of a broker that leads no longer, or not yet, and may not have all that there is."""


class EntriesLost(Exception):
    """The log does not begin where the store has begun to read it."""


class KafkaWal:
    """A partition as the log of a shard.

    :param client: For this alone: a fetch that waits for records delays the requests behind it.
    :param deadline_s: For one append; then its outcome is unknown.
    :param attempt_s: For one request.
    """

    def __init__(
        self,
        client: Client,
        partition: Partition,
        *,
        deadline_s: float = 5.0,
        attempt_s: float = 2.0,
    ) -> None:
        self._client = client
        self._partition = partition
        self._attempt_s = attempt_s
        self._appender = Appender(
            client, partition, deadline_s=deadline_s, request_timeout_s=attempt_s
        )
        self._leader: Leader | None = None
        """Who is read from; None: to be found."""
        self._last_leader: Leader | None = None

    async def read(self, offset: int, wait_ms: int) -> Stretch:
        """See `Wal.read`.

        :raises UnreadableLog: When another program has written to the log.
        :raises EntriesLost: When the log begins later.
        """
        while (fetched := await self._fetch(offset, wait_ms)) is None:
            self._leader = None
            await asyncio.sleep(PAUSE_S)
        content = fetched.content
        if wait_ms and not content.records:
            # A leader that was deposed, and does not know it, never has news.
            self._leader = None
        return Stretch(
            entries=tuple(decode(each.key, each.value) for each in content.records),
            next_offset=offset if content.next_offset is None else content.next_offset,
            end=fetched.high_watermark,
        )

    async def append(self, expected: int, entries: Sequence[Entry]) -> None:
        """See `Wal.append`.

        :raises AppendRefused: When it would be refused again as well.
        :raises NotChecked: When the topic does not check expected offsets, and is of no use here.
        """
        now_ms = time.time_ns() // 1_000_000
        pairs = map(encode, entries)
        records = [NewRecord(key=key, value=value, timestamp=now_ms) for key, value in pairs]
        try:
            await self._appender.append(records, expected=expected)
        except (ExpectedOffsetMismatch, KafkaClientError) as error:
            raise NotConfirmed(str(error)) from error

    async def _fetch(self, offset: int, wait_ms: int) -> Fetched | None:
        """An answer that has what there is; None where it is to be asked for again."""
        where = self._partition
        try:
            leader = await self._find_leader()
            broker = await self._client.broker(leader.broker, timeout_s=self._attempt_s)
            fetched = await fetch(
                broker,
                where,
                offset,
                epoch=leader.epoch,
                wait_ms=wait_ms,
                timeout_s=self._attempt_s + wait_ms / 1000,
            )
        except KafkaClientError:
            return None
        if fetched.error == ErrorCode.OFFSET_OUT_OF_RANGE:
            await self._require_all(broker, offset)
        if fetched.error in _LATER or fetched.content.corrupt is not None:
            return None
        if fetched.error != ErrorCode.NONE:
            raise RuntimeError(f"Fetch of {where.topic}-{where.index}: error {fetched.error}")
        return fetched

    async def _require_all(self, broker: Connection, offset: int) -> None:
        """Let a leader pass that has not got so far: it may not be the leader any more.

        :raises EntriesLost: When it has deleted the entries.
        """
        where = self._partition
        with suppress(KafkaClientError):
            found = await list_offsets(
                broker, where, OffsetSpec.EARLIEST, timeout_s=self._attempt_s
            )
            if found.error == ErrorCode.NONE and offset < found.offset:
                raise EntriesLost(f"{where.topic}-{where.index} begins at {found.offset}")

    async def _find_leader(self) -> Leader:
        if self._leader is None:
            self._leader = self._last_leader = await find_leader(
                self._client,
                self._partition,
                last=self._last_leader,
                timeout_s=self._attempt_s,
            )
        return self._leader
