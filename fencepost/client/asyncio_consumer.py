"""A consumer over sockets: the asyncio side of `consumer.core`.

One task takes the core's turns, for as long as the consumer is open: heartbeats and metadata go on
between two polls. Records are fetched only during a poll. All of it belongs to one event loop.
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping
from typing import Final, TypeVar, Unpack

from fencepost.client.client import ClosedAtExit, parse_bootstrap
from fencepost.client.consumer.config import ConsumerParameters, make_config
from fencepost.client.consumer.core import ConsumerCore
from fencepost.client.consumer.group_protocol import Revoke
from fencepost.client.consumer.model import (
    ConsumerRecords,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    Truncation,
)
from fencepost.client.consumer.operations import Operation
from fencepost.client.consumer.requests import Request
from fencepost.client.consumer.reset_policy import Target
from fencepost.client.consumer_connections import ConsumerConnections
from fencepost.client.errors import KafkaClientError, TimedOut
from fencepost.client.model import ConsumerGroupMetadata, OffsetSpec, Partition

T = TypeVar("T")
_CLOSE_S: Final = 30.0
_log: Final = logging.getLogger("fencepost.client.consumer")


class ConsumerRebalanceListener:
    """Told by `Consumer.poll` when the group assigns partitions and takes them away."""

    async def on_partitions_assigned(self, partitions: frozenset[Partition]) -> None:
        """The consumer has these partitions now, all of them."""

    async def on_partitions_revoked(self, partitions: frozenset[Partition]) -> None:
        """They go to other members afterwards; offsets can be committed still."""

    async def on_partitions_lost(self, partitions: frozenset[Partition]) -> None:
        """They are other members' already."""
        await self.on_partitions_revoked(partitions)


class Consumer(ClosedAtExit):
    """A consumer as Kafka's, or as the earlier draft of KIP-320 has it, by ``dialect``.

    As an async context it is closed in the end. Offsets are committed by `commit` alone.

    :param bootstrap_servers: ``host:port,...`` of brokers by which the others are learnt.
    :param parameters: Kafka's, in snake_case; `consumer.config.ConsumerConfig` has them all.
    :raises ValueError: When one of them is wrong.
    """

    def __init__(self, bootstrap_servers: str, **parameters: Unpack[ConsumerParameters]) -> None:
        config = make_config(**parameters)
        bootstrap = {-at: each for at, each in enumerate(parse_bootstrap(bootstrap_servers), 1)}
        self._core = ConsumerCore(config, bootstrap, _wall_ms, report=_log_truncation)
        self._timeout_s = config.default_api_timeout_ms / 1000
        self._connections = ConsumerConnections(
            config.client_id, config.dialect, config.request_timeout_ms / 1000
        )
        self._listener = ConsumerRebalanceListener()
        self._wake = asyncio.Event()
        self._progress = asyncio.Event()
        self._driving: asyncio.Task[None] | None = None
        self._carrying: set[asyncio.Task[None]] = set()
        self._polls = 0
        """Polls under way."""
        self._broken: BaseException | None = None
        self._closed = False

    # -- partitions -----------------------------------------------------------------------------

    @property
    def assignment(self) -> frozenset[Partition]:
        """The partitions that are read."""
        return self._core.assignment

    @property
    def truncations(self) -> tuple[Truncation, ...]:
        """The truncations that were detected, the oldest first, the last thousand: those too after
        which the position was reset.
        """
        return self._core.truncations

    def assign(self, partitions: Iterable[Partition]) -> None:
        """Read these partitions; those that it read before keep their positions.

        :raises ValueError: When topics are subscribed.
        """
        self._core.assign(partitions)
        self._wake.set()

    def subscribe(
        self, topics: Iterable[str], *, listener: ConsumerRebalanceListener | None = None
    ) -> None:
        """Read the partitions of these topics that the group assigns to this member.

        :raises ValueError: Without a ``group_id`` or a topic, or when partitions are assigned by
            `assign`.
        """
        self._core.subscribe(topics)
        self._listener = listener or ConsumerRebalanceListener()
        self._wake.set()

    async def unsubscribe(self) -> None:
        """Leave the group, and read nothing."""
        await self._give_up()
        await self._finish(self._core.unsubscribe(), None)

    def seek(
        self,
        partition: Partition,
        offset: OffsetAndMetadata | int,
        *,
        leader_epoch: int | None = None,
    ) -> None:
        """Go on from an offset. With an epoch, `poll` first sees whether the log was truncated.

        :param leader_epoch: Of the record before the offset, where that is an int.
        :raises ValueError: When the partition is not assigned, or the offset is negative.
        """
        if isinstance(offset, int):
            offset = OffsetAndMetadata(offset=offset, leader_epoch=leader_epoch)
        self._core.seek(partition, offset)
        self._wake.set()

    def seek_to_beginning(self, *partitions: Partition) -> None:
        """Go to where the logs begin.

        :raises ValueError: When one is not assigned.
        """
        for each in partitions:
            self._core.reset(each, Target.LOG_START)
        self._wake.set()

    def seek_to_end(self, *partitions: Partition) -> None:
        """Go to where the logs end.

        :raises ValueError: When one is not assigned.
        """
        for each in partitions:
            self._core.reset(each, Target.LOG_END)
        self._wake.set()

    def pause(self, *partitions: Partition) -> None:
        """Fetch nothing from partitions; their positions are validated meanwhile.

        :raises ValueError: When one is not assigned.
        """
        for each in partitions:
            self._core.pause(each, paused=True)

    def resume(self, *partitions: Partition) -> None:
        """Fetch from them again.

        :raises ValueError: When one is not assigned.
        """
        for each in partitions:
            self._core.pause(each, paused=False)
        self._wake.set()

    # -- records and offsets --------------------------------------------------------------------

    async def poll(self, *, timeout_s: float) -> ConsumerRecords:
        """The next records, at most ``max_poll_records``; none when no record came in time.

        :raises LogTruncationError: When a log was truncated below the position, with
            ``auto_offset_reset="none"``; `TruncatedPartitionError` in KIP-320's earlier draft.
        :raises OffsetOutOfRangeError: When a position is not in its log, with the same.
        :raises NoOffsetForPartitionError: When there is nothing to begin from, with the same.
        :raises CorruptRecords: When the batch at a position is broken.
        :raises RequestRefused: When a broker refuses for good, such as for lack of authorization.
        :raises NotServed: When a broker does not serve what is needed; `DialectNotServed`.
        """
        deadline = self._start() + timeout_s
        self._polls += 1
        self._wake.set()
        try:
            while True:
                await self._handle_events()
                self._check()
                records = self._core.poll(self._now_ms())
                if records or not await self._progressed(deadline):
                    return records
        finally:
            self._polls -= 1

    async def position(
        self, partition: Partition, *, timeout_s: float | None = None
    ) -> OffsetAndMetadata:
        """Where a partition is read next, as soon as that is known, and valid.

        :raises ValueError: When it is not assigned.
        :raises ConsumerError: As `poll`.
        :raises TimedOut: When it is not known in time; ``default_api_timeout_ms`` by default.
        """
        deadline = self._start() + (self._timeout_s if timeout_s is None else timeout_s)
        self._wake.set()  # a partition whose problem was told is validated again
        while True:
            self._check()
            self._core.raise_errors(self._now_ms())
            found = self._core.position(partition)
            if found is not None:
                return found
            if not await self._progressed(deadline):
                raise TimedOut(f"{partition.topic}-{partition.index} has no valid position yet")

    async def commit(
        self,
        offsets: Mapping[Partition, OffsetAndMetadata] | None = None,
        *,
        timeout_s: float | None = None,
    ) -> None:
        """Commit offsets; None: the positions of all partitions.

        :raises ValueError: Without a ``group_id``.
        :raises CommitFailedError: When the group has rebalanced.
        :raises RequestRefused: When a broker refuses for good.
        :raises NotServed: As `poll`.
        :raises TimedOut: When it is not answered in time; it may have been carried out.
        """
        await self._finish(self._core.commit(offsets), timeout_s)

    async def committed(
        self, partitions: Iterable[Partition], *, timeout_s: float | None = None
    ) -> dict[Partition, OffsetAndMetadata | None]:
        """What the group has committed for each partition; None where it has nothing.

        :raises ValueError: Without a ``group_id``.
        :raises RequestRefused: When a broker refuses for good.
        :raises NotServed: As `poll`.
        :raises TimedOut: When it is not answered in time.
        """
        return await self._finish(self._core.committed(partitions), timeout_s)

    async def offsets_for_times(
        self, timestamps: Mapping[Partition, int], *, timeout_s: float | None = None
    ) -> dict[Partition, OffsetAndTimestamp | None]:
        """The first record of each partition at or after a timestamp; None where there is none.

        :param timestamps: In ms since 1970-01-01 UTC, 0 or later.
        :raises ValueError: When a timestamp is negative.
        :raises RequestRefused: When a broker refuses for good.
        :raises NotServed: As `poll`.
        :raises TimedOut: When it is not known in time, such as shortly after an election (KIP-207).
        """
        if any(each < 0 for each in timestamps.values()):
            raise ValueError("a timestamp is 0 or later")
        return await self._finish(self._core.find_offsets(timestamps), timeout_s)

    async def beginning_offsets(
        self, partitions: Iterable[Partition], *, timeout_s: float | None = None
    ) -> dict[Partition, int]:
        """Where each log begins; raises as `offsets_for_times`."""
        return await self._find(partitions, OffsetSpec.EARLIEST, timeout_s)

    async def end_offsets(
        self, partitions: Iterable[Partition], *, timeout_s: float | None = None
    ) -> dict[Partition, int]:
        """Where each log ends, for a consumer of this isolation; raises as `offsets_for_times`."""
        return await self._find(partitions, OffsetSpec.LATEST, timeout_s)

    @property
    def group_metadata(self) -> ConsumerGroupMetadata:
        """As which member the consumer commits.

        :raises ValueError: Without a ``group_id``.
        """
        return self._core.group_metadata

    async def close(self, *, timeout_s: float = _CLOSE_S) -> None:
        """Leave the group, unless as a static member, and close all connections.

        The listener is told first that the partitions are revoked.
        """
        if self._closed:
            return
        try:
            if self._driving is not None and self._broken is None:
                await self._give_up()
                await self._leave(self._start() + timeout_s)
        finally:
            self._closed = True
            await self._disconnect()

    async def _give_up(self) -> None:
        if self._core.is_member and self.assignment:
            await self._listener.on_partitions_revoked(self.assignment)

    async def _leave(self, deadline: float) -> None:
        leaving = self._core.leave()
        self._wake.set()
        while not leaving.done and self._broken is None:
            if not await self._progressed(deadline):
                break

    async def _disconnect(self) -> None:
        tasks = [*self._carrying, *([] if self._driving is None else [self._driving])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._connections.close()

    # -- waiting --------------------------------------------------------------------------------

    def _start(self) -> float:
        """Begin to take turns, the first time; the time of the loop."""
        if self._closed:
            raise ValueError("the consumer is closed")
        loop = asyncio.get_running_loop()
        if self._driving is None:
            self._driving = loop.create_task(self._drive())
        return loop.time()

    async def _finish(self, operation: Operation[T], timeout_s: float | None) -> T:
        seconds = self._timeout_s if timeout_s is None else timeout_s
        deadline = self._start() + seconds
        self._wake.set()
        try:
            while not operation.done:
                self._check()
                self._core.raise_error()
                if not await self._progressed(deadline):
                    raise TimedOut(f"not within {seconds:g} s: {operation.reason}")
            return operation.result()
        finally:
            operation.cancel()

    async def _find(
        self, partitions: Iterable[Partition], spec: OffsetSpec, timeout_s: float | None
    ) -> dict[Partition, int]:
        wanted = dict.fromkeys(partitions, int(spec))
        found = await self._finish(self._core.find_offsets(wanted), timeout_s)
        return {each: at.offset for each, at in found.items() if at is not None}

    async def _progressed(self, deadline: float) -> bool:
        """Wait until something has happened; whether it did before the deadline."""
        try:
            async with asyncio.timeout_at(deadline):
                await self._progress.wait()
        except TimeoutError:
            return False
        return True

    async def _handle_events(self) -> None:
        while (event := self._core.next_event()) is not None:
            if not isinstance(event, Revoke):
                await self._listener.on_partitions_assigned(event.partitions)
            elif event.is_lost:
                await self._listener.on_partitions_lost(event.partitions)
                event.let_go()
            else:
                await self._listener.on_partitions_revoked(event.partitions)
                event.let_go()
            self._wake.set()

    def _check(self) -> None:
        if self._broken is not None:
            raise self._broken

    # -- driving --------------------------------------------------------------------------------

    async def _drive(self) -> None:
        """Take a turn whenever something has happened, or is due."""
        loop = asyncio.get_running_loop()
        while True:
            self._wake.clear()
            try:
                turn = self._core.turn(self._now_ms(), fetches=self._polls > 0)
            except Exception as error:  # noqa: BLE001  # a bug: whatever waits is to raise it
                self._fail(error)
                return
            for request in turn.requests:
                task = loop.create_task(self._carry(request))
                self._carrying.add(task)
                task.add_done_callback(self._carrying.discard)
            self._notify()
            pause_s = None if turn.wake_at is None else (turn.wake_at - turn.now + 1) / 1000
            try:
                async with asyncio.timeout(pause_s):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _carry(self, request: Request) -> None:
        """Take a request to its node, and the answer to the core."""
        try:
            try:
                address = self._core.address(request.node)
                response = await self._connections.ask(request, address)
            except KafkaClientError as error:
                self._core.failed(request, error, self._now_ms())
            else:
                self._core.answered(request, response, self._now_ms())
        except Exception as error:  # noqa: BLE001  # as above
            self._fail(error)
        self._wake.set()

    def _fail(self, error: BaseException) -> None:
        """Have all calls raise an error of this code, as the consumer stands still."""
        self._broken = error
        self._notify()

    def _notify(self) -> None:
        progress, self._progress = self._progress, asyncio.Event()
        progress.set()

    def _now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000)


def _wall_ms() -> int:
    return int(time.time() * 1000)


def _log_truncation(found: Truncation) -> None:
    _log.info(
        "%s-%s was truncated below offset %s; divergent offset: %s",
        found.partition.topic,
        found.partition.index,
        found.position.offset,
        "unknown" if found.divergent_offset is None else found.divergent_offset.offset,
    )
