"""A transactional producer: records and offsets that are committed together, or not at all.

It follows the flow of the cluster's ``transaction.version``, which it asks with each transaction:

        version 0 or 1 (KIP-98)                     version 2 (KIP-890)
send    AddPartitionsToTxn, then Produce to v11     Produce v12 and later
offsets AddOffsetsToTxn, TxnOffsetCommit to v4      TxnOffsetCommit v5 and later
end     EndTxn to v4; the epoch stays               EndTxn v5 and later answers the next epoch

A request is repeated until its answer says what became of it; Produce by its sequence numbers, so
that nothing is written twice. After an error that leaves a sequence number in doubt an old cluster
is asked for the next epoch once the transaction is aborted (KIP-360).
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from enum import Enum, auto
from typing import Final, TypeVar

from msgspec.structs import replace

from fencepost.client.append_outcomes import Appended
from fencepost.client.batches import NOT_SEQUENCED, NewRecord, Sequenced, encode_records
from fencepost.client.client import Client
from fencepost.client.cluster import (
    Coordinator,
    CoordinatorType,
    ProducerId,
    find_coordinator,
    init_producer_id,
)
from fencepost.client.connection import END_TXN, PRODUCE, TXN_OFFSET_COMMIT, Connection
from fencepost.client.consumer.model import OffsetAndMetadata
from fencepost.client.errors import KafkaClientError, MalformedAnswer, TimedOut
from fencepost.client.groups import GroupResponse
from fencepost.client.model import ConsumerGroupMetadata, Partition, Produced
from fencepost.client.partitions import produce
from fencepost.client.retry import RetryFailed, retry
from fencepost.client.transaction_errors import (
    COORDINATOR_MOVED,
    RETRIED,
    TransactionAbortable,
    TransactionError,
    error_of_coordinator,
    error_of_produce,
)
from fencepost.client.transactions import (
    Ended,
    add_offsets_to_txn,
    add_partitions_to_txn,
    end_txn,
    txn_offset_commit,
)
from fencepost.protocol.compression import Codec
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import increment_sequence

_FEATURE: Final = "transaction.version"
_EPOCH_BUMP_LEVEL: Final = 2
_LAST_PRODUCE_BEFORE: Final = 11
_LAST_TXN_OFFSET_COMMIT_BEFORE: Final = 4
_LAST_END_TXN_BEFORE: Final = 4
"""The last versions of the flow before level 2."""

A = TypeVar("A", GroupResponse, Ended, ProducerId)


class ProducerState(Enum):
    """What a producer may do next."""

    UNINITIALIZED = auto()
    """`TransactionalProducer.init`."""
    READY = auto()
    """`TransactionalProducer.begin`."""
    IN_TRANSACTION = auto()
    """Send, commit or abort."""
    ABORTABLE = auto()
    """Abort."""
    COMMITTING = auto()
    """Commit again: the outcome of the last attempt is not known."""
    ABORTING = auto()
    """Abort again: the same."""
    FAILED = auto()
    """Nothing."""


class TransactionalProducer:
    """Produces in transactions, one request at a time.

    Connections are the client's. Methods that are called out of turn raise RuntimeError.

    :param transaction_timeout_ms: When the coordinator aborts an open transaction.
    :param deadline_s: Seconds for one call.
    :param request_timeout_s: Seconds for one attempt.
    :param level: The ``transaction.version`` whose flow it follows; None is the cluster's.
    """

    def __init__(
        self,
        client: Client,
        transactional_id: str,
        *,
        transaction_timeout_ms: int = 60_000,
        deadline_s: float = 60.0,
        request_timeout_s: float = 30.0,
        codec: Codec = Codec.NONE,
        level: int | None = None,
    ) -> None:
        self.transactional_id = transactional_id
        self.state = ProducerState.UNINITIALIZED
        self._client = client
        self._transaction_timeout_ms = transaction_timeout_ms
        self._deadline_s = deadline_s
        self._request_timeout_s = request_timeout_s
        self._codec = codec
        self._forced_level = level
        self._bumps_epoch = False
        """Whether the present transaction follows the flow of level 2."""
        self._producer = NOT_SEQUENCED
        self._sequences: dict[Partition, int] = {}
        self._added: set[Partition | str] = set()
        """Partitions and groups that the transaction has, or may have."""
        self._in_doubt = False
        """Whether a sequence number may be used, or not."""
        self._brokers: dict[tuple[CoordinatorType, str], int] = {}
        self._lock = asyncio.Lock()

    @property
    def producer(self) -> tuple[int, int]:
        """The producer id and epoch; -1 before `init`."""
        return self._producer.producer_id, self._producer.producer_epoch

    async def init(self) -> None:
        """Get a producer id and epoch: an open transaction is aborted, older producers are fenced.

        :raises ProducerFenced: When another producer was initialized at the same time.
        :raises TransactionError: When it is refused for another reason.
        :raises TimedOut: When no coordinator answers in time; it may be called again.
        """
        async with self._lock:
            self._expect(ProducerState.UNINITIALIZED)
            await self._init(NOT_SEQUENCED)
            self.state = ProducerState.READY

    async def begin(self) -> None:
        """Begin a transaction. No request is sent but to learn the cluster's flow.

        :raises TimedOut: When no broker answers in time.
        """
        async with self._lock:
            self._expect(ProducerState.READY)
            self._bumps_epoch = await self._level() >= _EPOCH_BUMP_LEVEL
            self._added.clear()
            self.state = ProducerState.IN_TRANSACTION

    async def send(self, partition: Partition, records: Sequence[NewRecord]) -> Appended:
        """Write records to a partition, all in one batch; they are not committed yet.

        Where it is cancelled, the transaction can only be aborted.

        :returns: Where they are; -1 for both offsets where an earlier attempt was successful and
            the broker does not know any more where it put them.
        :raises ProducerFenced: When another producer has the transactional id.
        :raises TransactionAbortable: When the transaction has to be aborted.
        :raises TimedOut: When it is not known in time whether they are written: the same.
        """
        if not records:
            raise ValueError("there are no records to send")
        async with self._lock:
            self._expect(ProducerState.IN_TRANSACTION)
            if not self._bumps_epoch and partition not in self._added:
                await self._ask_coordinator("AddPartitionsToTxn", self._add_partition(partition))
            self._added.add(partition)
            sequence = self._sequences.get(partition, 0)
            produced = await self._produce(partition, records, sequence)
            self._sequences[partition] = increment_sequence(sequence, len(records))
        if produced.base_offset < 0:
            return Appended(first_offset=-1, next_offset=-1)
        return Appended(
            first_offset=produced.base_offset, next_offset=produced.base_offset + len(records)
        )

    def next_sequenced(self, partition: Partition, count: int) -> Sequenced:
        """Take the sequence numbers of records that the caller sends by itself.

        Whether they are written, and whether their partition belongs to the transaction, is the
        caller's concern as well.
        """
        taken = replace(self._producer, base_sequence=self._sequences.get(partition, 0))
        self._sequences[partition] = increment_sequence(taken.base_sequence, count)
        return taken

    async def send_offsets(
        self, offsets: Mapping[Partition, OffsetAndMetadata], group: ConsumerGroupMetadata | str
    ) -> None:
        """Commit offsets of a consumer's group with the transaction.

        :param group: `Consumer.group_metadata`, by which a consumer that has lost its partitions is
            refused (KIP-447), or the name of a group alone.
        :raises TransactionError: As `send`.
        :raises TimedOut: As `send`.
        """
        if not offsets:
            return
        who = ConsumerGroupMetadata(group=group) if isinstance(group, str) else group
        async with self._lock:
            self._expect(ProducerState.IN_TRANSACTION)
            if not self._bumps_epoch and who.group not in self._added:
                await self._ask_coordinator("AddOffsetsToTxn", self._add_offsets(who.group))
            self._added.add(who.group)
            await self._ask(
                CoordinatorType.GROUP,
                who.group,
                "TxnOffsetCommit",
                self._commit_offsets(who, offsets),
            )

    async def commit(self) -> None:
        """Commit the transaction: all of it is to be seen by ``read_committed``.

        :raises ProducerFenced: When another producer has the transactional id.
        :raises TransactionAbortable: When it can only be aborted.
        :raises TimedOut: When the outcome is not known in time: call it again.
        """
        async with self._lock:
            self._expect(ProducerState.IN_TRANSACTION, ProducerState.COMMITTING)
            await self._end(committed=True)

    async def abort(self) -> None:
        """Abort the transaction: nothing of it is to be seen by ``read_committed``.

        :raises ProducerFenced: When another producer has the transactional id.
        :raises TimedOut: When the outcome is not known in time: call it again.
        """
        async with self._lock:
            self._expect(
                ProducerState.IN_TRANSACTION, ProducerState.ABORTABLE, ProducerState.ABORTING
            )
            await self._end(committed=False)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """A transaction that is committed in the end, and aborted by an exception."""
        await self.begin()
        try:
            yield
        except BaseException:
            if self.state in (ProducerState.IN_TRANSACTION, ProducerState.ABORTABLE):
                await self.abort()
            raise
        await self.commit()

    # -- inside ---------------------------------------------------------------------------------

    def _expect(self, *states: ProducerState) -> None:
        if self.state not in states:
            raise RuntimeError(f"not while the producer is {self.state.name}")

    async def _level(self) -> int:
        if self._forced_level is not None:
            return self._forced_level
        timeout_s = self._request_timeout_s
        connection = await self._client.any_broker(timeout_s=timeout_s)
        return await connection.finalized_level(_FEATURE, timeout_s=timeout_s)

    async def _init(self, present: Sequenced) -> None:
        def ask(connection: Connection) -> Awaitable[ProducerId]:
            return init_producer_id(
                connection,
                transactional_id=self.transactional_id,
                transaction_timeout_ms=self._transaction_timeout_ms,
                producer=present,
                timeout_s=self._request_timeout_s,
            )

        found = await self._ask_coordinator("InitProducerId", ask)
        self._use(found.producer_id, found.producer_epoch)

    def _use(self, producer_id: int, epoch: int) -> None:
        """Go on with another epoch, in which sequence numbers begin at 0."""
        self._producer = Sequenced(producer_id=producer_id, producer_epoch=epoch, base_sequence=0)
        self._sequences.clear()
        self._in_doubt = False

    def _add_partition(
        self, partition: Partition
    ) -> Callable[[Connection], Awaitable[GroupResponse]]:
        return lambda connection: add_partitions_to_txn(
            connection,
            self.transactional_id,
            self._producer,
            (partition,),
            timeout_s=self._request_timeout_s,
        )

    def _add_offsets(self, group: str) -> Callable[[Connection], Awaitable[GroupResponse]]:
        return lambda connection: add_offsets_to_txn(
            connection,
            self.transactional_id,
            self._producer,
            group,
            timeout_s=self._request_timeout_s,
        )

    def _commit_offsets(
        self, who: ConsumerGroupMetadata, offsets: Mapping[Partition, OffsetAndMetadata]
    ) -> Callable[[Connection], Awaitable[GroupResponse]]:
        async def ask(connection: Connection) -> GroupResponse:
            best = await connection.best_version(TXN_OFFSET_COMMIT.api)
            return await txn_offset_commit(
                connection,
                self.transactional_id,
                self._producer,
                who,
                offsets,
                version=best if self._bumps_epoch else min(best, _LAST_TXN_OFFSET_COMMIT_BEFORE),
                timeout_s=self._request_timeout_s,
            )

        return ask

    async def _produce(
        self, partition: Partition, records: Sequence[NewRecord], sequence: int
    ) -> Produced:
        """Write one batch, and find out what became of it."""
        sequenced = replace(self._producer, base_sequence=sequence)
        batch = bytes(
            encode_records(records, codec=self._codec, sequenced=sequenced, transactional=True)
        )

        async def attempt() -> Produced:
            timeout_s = self._request_timeout_s
            leader = await self._client.leader(partition.topic, partition.index)
            best = await leader.best_version(PRODUCE.api, timeout_s=timeout_s)
            produced = await produce(
                leader,
                partition,
                batch,
                transactional_id=self.transactional_id,
                wait_ms=round(timeout_s * 1000),
                version=best if self._bumps_epoch else min(best, _LAST_PRODUCE_BEFORE),
                timeout_s=timeout_s,
            )
            if produced is None:
                raise MalformedAnswer("acks=-1 is answered")
            if produced.error == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                return replace(produced, error=0, base_offset=-1)
            return produced

        try:
            return await retry(
                self._client, attempt, deadline_s=self._deadline_s, retriable=RETRIED
            )
        except asyncio.CancelledError:
            self._in_doubt = True
            self.state = ProducerState.ABORTABLE
            raise
        except RetryFailed as failed:
            self._in_doubt = True
            refused = None if failed.error is None else error_of_produce(failed.error)
            raise self._failed("Produce", failed, refused) from failed

    async def _end(self, *, committed: bool) -> None:
        """Send EndTxn, unless the transaction has nothing."""
        if self._added:
            self.state = ProducerState.COMMITTING if committed else ProducerState.ABORTING

            async def ask(connection: Connection) -> Ended:
                best = await connection.best_version(END_TXN.api)
                return await end_txn(
                    connection,
                    self.transactional_id,
                    self._producer,
                    committed=committed,
                    version=best if self._bumps_epoch else min(best, _LAST_END_TXN_BEFORE),
                    timeout_s=self._request_timeout_s,
                )

            ended = await self._ask_coordinator("EndTxn", ask)
            if ended.producer_id >= 0:
                self._use(ended.producer_id, ended.producer_epoch)
        if self._in_doubt:
            self.state = ProducerState.ABORTING
            await self._init(self._producer)
        self._added.clear()
        self.state = ProducerState.READY

    # -- requests to coordinators ---------------------------------------------------------------

    async def _ask_coordinator(self, what: str, ask: Callable[[Connection], Awaitable[A]]) -> A:
        """The answer of the transaction's coordinator."""
        return await self._ask(CoordinatorType.TRANSACTION, self.transactional_id, what, ask)

    async def _ask(
        self,
        of: CoordinatorType,
        key: str,
        what: str,
        ask: Callable[[Connection], Awaitable[A]],
    ) -> A:
        """The answer of a coordinator, which is looked for until it gives one."""
        answered: list[A] = []

        async def attempt() -> A | Coordinator:
            try:
                found = await self._find_coordinator(of, key)
                if isinstance(found, Coordinator):
                    return found
                answer = await ask(await self._client.broker(found))
            except KafkaClientError:
                self._brokers.pop((of, key), None)
                raise
            if answer.error in COORDINATOR_MOVED:
                self._brokers.pop((of, key), None)
            answered.append(answer)
            return answer

        try:
            await retry(self._client, attempt, deadline_s=self._deadline_s, retriable=RETRIED)
        except RetryFailed as failed:
            refused = None if failed.error is None else error_of_coordinator(what, failed.error)
            raise self._failed(what, failed, refused) from failed
        return answered[-1]

    async def _find_coordinator(self, of: CoordinatorType, key: str) -> int | Coordinator:
        """The broker id of a coordinator, or the answer that there is none."""
        known = self._brokers.get((of, key))
        if known is not None:
            return known
        timeout_s = self._request_timeout_s
        anyone = await self._client.any_broker(timeout_s=timeout_s)
        found = await find_coordinator(anyone, key, of=of, timeout_s=timeout_s)
        if found.error:
            return found
        self._client.add_addresses({found.broker: (found.host, found.port)})
        self._brokers[of, key] = found.broker
        return found.broker

    def _failed(
        self, what: str, failed: RetryFailed, refused: TransactionError | None
    ) -> TransactionError | TimedOut:
        """The error of a request that failed; the producer's state is what it leaves."""
        may_abort = self.state in (ProducerState.IN_TRANSACTION, ProducerState.COMMITTING)
        if refused is None:
            if self.state is ProducerState.IN_TRANSACTION:
                self.state = ProducerState.ABORTABLE
            return TimedOut(f"{what}: {failed}")
        is_abortable = isinstance(refused, TransactionAbortable) and may_abort
        self.state = ProducerState.ABORTABLE if is_abortable else ProducerState.FAILED
        return refused
