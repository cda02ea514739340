"""Reads a log and the configs of its topic from the leader, also when the leader changes."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from fencepost.client import (
    Client,
    Connection,
    Fetched,
    FetchedRecord,
    FoundOffset,
    OffsetSpec,
    Partition,
    fetch,
    list_offsets,
)
from fencepost.client.cluster import TopicConfigs, topic_configs
from fencepost.client.retry import A, RetryFailed, retry

MAX_BYTES: Final = 1 << 20
_ATTEMPT_S: Final = 5.0


class NotRead(Exception):
    """The log can't be read, now or at all."""


def _is_something(answer: Fetched) -> bool:
    """A new leader may know for a moment of less than the last one told."""
    return answer.content.next_offset is not None or answer.content.corrupt is not None


class Written:
    """A partition's log, as far as every in-sync replica has it, and its topic's configs.

    :param patience_s: How long to go on without an answer. Errors are followed by another attempt
        where Kafka's clients make one.
    """

    def __init__(self, client: Client, partition: Partition, *, patience_s: float) -> None:
        self._client = client
        self._partition = partition
        self._patience_s = patience_s

    async def configs(self, *names: str) -> dict[str, str | None]:
        """The values of some of the topic's configs.

        :raises NotRead: When no broker answers in time, or none may.
        """
        return (await self._ask(partial(self._describe, names))).values

    async def bounds(self) -> tuple[int, int]:
        """The first offset, and the one behind the last.

        :raises NotRead: When no broker answers in time.
        """
        return await self._offset(OffsetSpec.EARLIEST), await self._offset(OffsetSpec.LATEST)

    async def records(self, start: int, end: int) -> AsyncIterator[Sequence[FetchedRecord]]:
        """The records of a range of offsets (`end` exclusive), some at a time.

        :raises NotRead: When no broker answers in time, or the batches are corrupt.
        """
        while start < end:
            content = (await self._ask(partial(self._fetch, start), _is_something)).content
            if content.next_offset is None:
                raise NotRead(f"what is at offset {start} is broken: {content.corrupt}")
            yield [record for record in content.records if start <= record.offset < end]
            start = content.next_offset

    async def _offset(self, of: OffsetSpec) -> int:
        return (await self._ask(partial(self._list, of))).offset

    async def _describe(self, names: tuple[str, ...], connection: Connection) -> TopicConfigs:
        return await topic_configs(connection, self._partition.topic, names, timeout_s=_ATTEMPT_S)

    async def _list(self, of: OffsetSpec, connection: Connection) -> FoundOffset:
        return await list_offsets(connection, self._partition, of, timeout_s=_ATTEMPT_S)

    async def _fetch(self, offset: int, connection: Connection) -> Fetched:
        return await fetch(
            connection, self._partition, offset, max_bytes=MAX_BYTES, timeout_s=_ATTEMPT_S
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
            return await retry(self._client, once, deadline_s=self._patience_s, accepts=suits)
        except RetryFailed as error:
            raise NotRead(str(error)) from error
