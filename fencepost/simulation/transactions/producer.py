"""One transactional producer, as careful as Kafka's: what it sends, and what answers make of it.

It commits only what was acknowledged, sends a batch without an answer again with the same sequence,
and asks for another epoch where it cannot know what became of a batch. Its requests reach brokers
at once, but for batches that are late; answers that it no longer waits for are noted in the ledger
alone.
"""

from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.end_txn import EndTxnResponse
from fencepost.protocol.messages.init_producer_id import InitProducerIdResponse
from fencepost.protocol.records import Record, build_batch, read_header
from fencepost.simulation.transactions.ledger import (
    SUCCESSORS_EPOCH,
    GroupPartition,
    Ledger,
    ProducerEpoch,
    SentBatch,
    SentOffset,
    SentTransaction,
)
from fencepost.simulation.transactions.messages import TransactionalRequests
from fencepost.simulation.transactions.offset_messages import OffsetRequests

if TYPE_CHECKING:
    from fencepost.broker.node.broker import Broker
    from fencepost.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
    from fencepost.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
    from fencepost.protocol.messages.produce import ProduceResponse
    from fencepost.protocol.messages.txn_offset_commit import TxnOffsetCommitResponse

_MOST_RECORDS: Final = 3
_ACKNOWLEDGED: Final = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})
_ABORTABLE: Final = frozenset(
    {
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)
"""Of Produce, TxnOffsetCommit and what adds to a transaction: it can only be aborted."""
_FATAL: Final = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING})
_END_FATAL: Final = _FATAL | {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE}


class Phase(Enum):
    """What a producer may do next."""

    NEW = "new"
    """It needs a producer id, or is fenced: it begins as another producer of its id."""
    STALE = "stale"
    """It needs another epoch before it goes on (KIP-360)."""
    READY = "ready"
    """It may begin a transaction, or send more of it."""
    ABORTABLE = "abortable"
    """It can only abort."""
    ENDING = "ending"
    """It has sent EndTxn and waits, or sends it again."""


class TransactionalProducer:
    """One producer of a transactional id, perhaps beside others of the same id.

    It commits offsets of a group that is named as the id.
    """

    def __init__(
        self,
        name: str,
        transactional_id: str,
        requests: TransactionalRequests,
        offsets: OffsetRequests,
        ledger: Ledger,
        *,
        is_new_flow: bool,
    ) -> None:
        self.transactional_id = transactional_id
        self.phase = Phase.NEW
        self.transaction: SentTransaction | None = None
        """The one that is open, as far as the producer knows."""
        self.late: list[tuple[int, SentBatch]] = []
        """Batches on their way, oldest first, each with the broker that it goes to."""
        self._name = name
        self._requests = requests
        self._offsets = offsets
        self._ledger = ledger
        self._is_new_flow = is_new_flow
        self._producer = ProducerEpoch(-1, -1)
        self._sequences: dict[int, int] = {}
        self._unanswered: dict[int, SentBatch] = {}
        """At most one batch of each partition."""
        self._unanswered_offsets: dict[int, SentOffset] = {}
        """Likewise."""
        self._added: set[int] = set()
        self._is_group_added = False
        self._commits = False
        """What the producer does that is ENDING."""
        self._ends_sent = 0
        self._life = 0
        """Rises where answers to what was sent before do not matter any more."""
        self._batch_count = 0

    # -- InitProducerId --------------------------------------------------------------------------

    def init(self, broker: "Broker") -> None:
        """Begin again with another epoch; what was open is given up."""
        expected = self._producer if self.phase is Phase.STALE else None
        if expected is None:
            self.phase = Phase.NEW
        self._life += 1
        self._drop_transaction()
        answer = self._requests.init(broker, self.transactional_id, expected)
        answer.then(partial(self._see_init, self._life, expected))

    def _see_init(
        self, life: int, expected: ProducerEpoch | None, answer: InitProducerIdResponse | None
    ) -> None:
        if answer is None:
            return
        if answer.error_code == ErrorCode.NONE:
            given = ProducerEpoch(answer.producer_id, answer.producer_epoch)
            self._give(given, is_repeated=expected is not None)
            if life == self._life:
                self._take(given)
        elif life == self._life and answer.error_code in _END_FATAL:
            self.phase = Phase.NEW

    def _give(self, given: ProducerEpoch, *, is_repeated: bool) -> None:
        self._ledger.give(
            self.transactional_id,
            given,
            self._name,
            is_new_flow=self._is_new_flow,
            is_repeated=is_repeated,
        )

    def _take(self, given: ProducerEpoch) -> None:
        if given != self._producer:
            self._sequences.clear()
        self._producer = given
        self.phase = Phase.READY
        self._life += 1

    def _drop_transaction(self) -> None:
        self.transaction = None
        self._unanswered.clear()
        self._unanswered_offsets.clear()
        self._added.clear()
        self._is_group_added = False
        self._ends_sent = 0

    # -- batches ---------------------------------------------------------------------------------

    def send(self, index: int, coordinator: "Broker | None", wall_ms: int) -> SentBatch | None:
        """Send a batch, or the one again that has no answer yet; add its partition first.

        :param coordinator: Who coordinates, as the broker knows.
        :param wall_ms: The timestamp of the records.
        :returns: The batch that is to be sent; None where there is none yet.
        """
        if self.phase is not Phase.READY:
            return None
        transaction = self._begun()
        if not self._is_new_flow and index not in self._added:
            if coordinator is not None:
                answer = self._requests.add_partition(
                    coordinator, self.transactional_id, self._producer, index
                )
                answer.then(partial(self._see_addition, self._life, index))
            return None
        batch = self._unanswered.get(index)
        if batch is None:
            batch = self._unanswered[index] = self._next_batch(transaction, index, wall_ms)
        return batch

    def _begun(self) -> SentTransaction:
        """The transaction, which begins with what is sent first."""
        if self.transaction is None:
            self.transaction = self._ledger.begin(self._name, self.transactional_id)
        return self.transaction

    def _see_addition(
        self, life: int, index: int, answer: "AddPartitionsToTxnResponse | None"
    ) -> None:
        if answer is None or life != self._life:
            return
        results = answer.results_by_topic_v3_and_below[0].results_by_partition
        error = ErrorCode(results[0].partition_error_code)
        if error is ErrorCode.NONE:
            self._added.add(index)
        else:
            self._see_error(error)

    def _next_batch(self, transaction: SentTransaction, index: int, wall_ms: int) -> SentBatch:
        self._batch_count += 1
        value = f"{transaction.name} b{self._batch_count}".encode()
        count = self._batch_count % _MOST_RECORDS + 1
        sequence = self._sequences.get(index, 0)
        self._sequences[index] = sequence + count
        data = build_batch(
            [Record(n, wall_ms, None, value) for n in range(count)],
            producer_id=self._producer.producer_id,
            producer_epoch=self._producer.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        batch = SentBatch(transaction, index, bytes(data), read_header(data).crc, count, wall_ms)
        transaction.batches.append(batch)
        self._ledger.batches[batch.crc] = batch
        return batch

    def deliver(self, broker: "Broker", batch: SentBatch) -> None:
        """A batch arrives at a broker, now or late."""
        answer = self._requests.produce(broker, self.transactional_id, batch.index, batch.data)
        answer.then(partial(self._see_produced, self._life, batch))

    def _see_produced(self, life: int, batch: SentBatch, answer: "ProduceResponse | None") -> None:
        if answer is None:
            return
        error = ErrorCode(answer.responses[0].partition_responses[0].error_code)
        if error in _ACKNOWLEDGED:
            batch.is_acknowledged = True
            if self._unanswered.get(batch.index) is batch:
                del self._unanswered[batch.index]
        elif life == self._life and batch.transaction is self.transaction:
            self._see_error(error)

    def _see_error(self, error: ErrorCode) -> None:
        """All others are worth another try."""
        if self.phase is Phase.READY:
            if error in _FATAL:
                self.phase = Phase.NEW
            elif error in _ABORTABLE:
                self.phase = Phase.ABORTABLE

    # -- offsets ---------------------------------------------------------------------------------

    def commit_offset(
        self, index: int, coordinator: "Broker | None", group_coordinator: "Broker | None"
    ) -> None:
        """Commit an offset for a partition, or send the commit again that has no answer yet.

        A transaction has one for each partition at most: commits have no order of their own, and
        one without an answer may be carried out behind the next.

        :param coordinator: Who coordinates the transactional id, as far as it is known.
        """
        if self.phase is not Phase.READY:
            return
        transaction = self._begun()
        if not self._is_new_flow and not self._is_group_added:
            if coordinator is not None:
                added = self._offsets.add_group(
                    coordinator, self.transactional_id, self._producer, self.transactional_id
                )
                added.then(partial(self._see_group, self._life))
            return
        is_sent = index in transaction.offsets and index not in self._unanswered_offsets
        if is_sent or group_coordinator is None:
            return
        key = GroupPartition(self.transactional_id, index)
        sent = transaction.offsets.get(index) or self._ledger.commit_offset(transaction, key)
        self._unanswered_offsets[index] = sent
        answer = self._offsets.commit(
            group_coordinator, self.transactional_id, self._producer, *key, sent.offset
        )
        answer.then(partial(self._see_committed, self._life, sent))

    def _see_group(self, life: int, answer: "AddOffsetsToTxnResponse | None") -> None:
        if answer is None or life != self._life:
            return
        if answer.error_code == ErrorCode.NONE:
            self._is_group_added = True
        else:
            self._see_error(ErrorCode(answer.error_code))

    def _see_committed(
        self, life: int, sent: SentOffset, answer: "TxnOffsetCommitResponse | None"
    ) -> None:
        if answer is None or life != self._life:
            return
        error = ErrorCode(answer.topics[0].partitions[0].error_code)
        if error is ErrorCode.NONE:
            sent.is_acknowledged = True
            self._unanswered_offsets.pop(sent.key.partition, None)
        else:
            self._see_error(error)

    # -- EndTxn ----------------------------------------------------------------------------------

    @property
    def unanswered(self) -> list[int]:
        """The partitions with a batch that has no answer yet."""
        return [*self._unanswered]

    @property
    def unanswered_offsets(self) -> list[int]:
        """The partitions with a committed offset that has no answer yet."""
        return [*self._unanswered_offsets]

    @property
    def may_commit(self) -> bool:
        """Whether there is a transaction, and all of it is acknowledged."""
        return bool(
            self.phase is Phase.READY
            and self.transaction is not None
            and (self.transaction.batches or self.transaction.offsets)
            and not self._unanswered
            and not self._unanswered_offsets
        )

    def end(self, coordinator: "Broker", *, commits: bool) -> None:
        """End the transaction, or ask again for the end that it has asked for."""
        transaction = self.transaction
        if transaction is None or self.phase not in (Phase.READY, Phase.ABORTABLE, Phase.ENDING):
            return
        if self.phase is not Phase.ENDING:
            if commits and not self.may_commit:
                return
            self._commits = commits
            self.phase = Phase.ENDING
        transaction.asked_to_commit |= self._commits
        self._ends_sent += 1
        answer = self._requests.end(
            coordinator, self.transactional_id, self._producer, commits=self._commits
        )
        answer.then(partial(self._see_end, self._life, transaction, self._commits))

    def _see_end(
        self,
        life: int,
        transaction: SentTransaction,
        commits: bool,
        answer: EndTxnResponse | None,
    ) -> None:
        if answer is None:
            return
        error = ErrorCode(answer.error_code)
        if error is ErrorCode.NONE:
            self._ledger.end(transaction, commits=commits)
            given = ProducerEpoch(answer.producer_id, answer.producer_epoch)
            if self._is_new_flow and self._ledger.is_given_to_successor(given, self._name):
                self._ledger.admitted[SUCCESSORS_EPOCH] += 1
                self._begin_again(life)
                return
            if self._is_new_flow:
                self._give(given, is_repeated=life != self._life or self._ends_sent > 1)
            if life == self._life:
                self._go_on(answer)
        elif error in _END_FATAL:
            self._begin_again(life)

    def _begin_again(self, life: int) -> None:
        """It needs another epoch, as another producer of its id."""
        if life == self._life:
            self.phase = Phase.NEW
            self._life += 1
            self._drop_transaction()

    def _go_on(self, answer: EndTxnResponse) -> None:
        """The transaction has ended."""
        is_certain = not self._unanswered
        self._drop_transaction()
        if self._is_new_flow:
            self._take(ProducerEpoch(answer.producer_id, answer.producer_epoch))
            return
        self._life += 1
        self.phase = Phase.READY if is_certain else Phase.STALE
