"""A transactional producer, as the clients of a scenario have one.

A producer gets its producer id and epoch with its first ``begin_transaction``, and keeps them. A
second producer with the same ``transactional_id`` is as another process of the same application: it
fences the first one, which is a zombie then.
"""

from collections.abc import Awaitable
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from msgspec import Meta

from fencepost.client.consumer.model import OffsetAndMetadata
from fencepost.client.model import ConsumerGroupMetadata, Partition
from fencepost.client.transaction_errors import ProducerFenced, TransactionError
from fencepost.client.transactional_producer import ProducerState, TransactionalProducer
from fencepost.protocol.errors import ErrorCode, error_name
from fencepost.scenario.actions.batches import Records, new_record
from fencepost.scenario.actions.context import (
    Action,
    ActionAnswer,
    ActionBody,
    ActionContext,
    InvalidAction,
    Milliseconds,
    PartitionIndex,
    ScenarioClients,
)
from fencepost.scenario.actions.group_membership import GroupMembers
from fencepost.scenario.actions.producers import TransactionalProducers

_NO_OFFSET: Final = -1
Outcome: TypeAlias = Literal["done", "fenced", "must_abort", "failed"]


class TransactionBody(ActionBody):
    """The producer of a transaction."""

    client_field: ClassVar[str] = "producer"

    producer: str
    """Its name in the scenario; the first time also the name of the client, unless ``client`` is
    given."""

    def check(self) -> None:
        """It finds its way."""
        if self.broker is not None or self.version is not None:
            raise ValueError("a transactional producer finds its brokers and versions by itself")


class BeginTransactionBody(TransactionBody):
    """A transaction that begins."""

    transactional_id: str | None = None
    """Left out: the name of the producer."""
    transaction_timeout_ms: Milliseconds = 60_000
    """When the coordinator aborts what is open."""
    level: Annotated[int, Meta(ge=0, le=2)] | None = None
    """The ``transaction.version`` whose flow the producer follows; left out: the cluster's."""


class SendInTransactionBody(TransactionBody):
    """Records that belong to the open transaction."""

    topic: str
    partition: PartitionIndex = 0
    records: Records
    """Texts, or more of each; ``a0..a9`` stands for a0 to a9."""


class SendOffsetsBody(TransactionBody):
    """An offset that is committed with the open transaction."""

    group: str
    member: str | None = None
    """In the name of a member that has joined."""
    topic: str
    partition: PartitionIndex = 0
    offset: Annotated[int, Meta(ge=0)]
    epoch: Annotated[int, Meta(ge=0)] | None = None
    """The epoch of the record before the offset; left out: not said."""


class EndTransactionBody(TransactionBody):
    """How the open transaction ends."""

    commit: bool = True
    """False aborts it."""


class TransactionAnswer(ActionAnswer):
    """The producer after a step of its transaction."""

    outcome: Outcome
    """``fenced``: another producer has the transactional id. ``must_abort``: the transaction can
    only be aborted. ``failed``: the producer is over."""
    producer_id: int
    producer_epoch: int
    base_offset: int
    """Of the first record that was sent; -1 of other steps, and where it is not known."""


async def _begin(
    clients: ScenarioClients, context: ActionContext, body: BeginTransactionBody
) -> TransactionAnswer:
    producers = clients.state(TransactionalProducers).by_name
    producer = producers.get(body.producer)
    if producer is None:
        producer = producers[body.producer] = TransactionalProducer(
            clients.client(body.client if "client" in body.model_fields_set else body.producer),
            body.transactional_id or body.producer,
            transaction_timeout_ms=body.transaction_timeout_ms,
            deadline_s=context.timeout_s,
            request_timeout_s=context.timeout_s,
            level=body.level,
        )

    async def begin() -> int:
        if producer.state is ProducerState.UNINITIALIZED:
            await producer.init()
        await producer.begin()
        return _NO_OFFSET

    return await _answered(producer, begin())


async def _send(
    clients: ScenarioClients, _context: ActionContext, body: SendInTransactionBody
) -> TransactionAnswer:
    producer = clients.state(TransactionalProducers).get(body.producer)
    now_ms = await clients.control.now_ms()
    records = [new_record(each, now_ms) for each in body.records]

    async def send() -> int:
        partition = Partition(topic=body.topic, index=body.partition)
        return (await producer.send(partition, records)).first_offset

    return await _answered(producer, send())


async def _send_offsets(
    clients: ScenarioClients, _context: ActionContext, body: SendOffsetsBody
) -> TransactionAnswer:
    producer = clients.state(TransactionalProducers).get(body.producer)
    who = ConsumerGroupMetadata(group=body.group)
    if body.member is not None:
        who = clients.state(GroupMembers).identity(body.member)

    async def send() -> int:
        partition = Partition(topic=body.topic, index=body.partition)
        offset = OffsetAndMetadata(offset=body.offset, leader_epoch=body.epoch)
        await producer.send_offsets({partition: offset}, who)
        return _NO_OFFSET

    return await _answered(producer, send())


async def _end(
    clients: ScenarioClients, _context: ActionContext, body: EndTransactionBody
) -> TransactionAnswer:
    producer = clients.state(TransactionalProducers).get(body.producer)

    async def end() -> int:
        await (producer.commit() if body.commit else producer.abort())
        return _NO_OFFSET

    return await _answered(producer, end())


async def _answered(producer: TransactionalProducer, step: Awaitable[int]) -> TransactionAnswer:
    """What a step came to. That it came out of turn is a mistake in the file."""
    outcome: Outcome = "done"
    code, base_offset = int(ErrorCode.NONE), _NO_OFFSET
    try:
        base_offset = await step
    except TransactionError as refused:
        code, outcome = refused.error, _outcome_of(refused, producer)
    except RuntimeError as out_of_turn:
        raise InvalidAction(str(out_of_turn)) from out_of_turn
    producer_id, producer_epoch = producer.producer
    return TransactionAnswer(
        error=error_name(code),
        failed=None,
        broker=None,
        version=None,
        throttle_time_ms=0,
        elapsed_ms=0,
        outcome=outcome,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_offset=base_offset,
    )


def _outcome_of(refused: TransactionError, producer: TransactionalProducer) -> Outcome:
    if isinstance(refused, ProducerFenced):
        return "fenced"
    return "must_abort" if producer.state is ProducerState.ABORTABLE else "failed"


ACTIONS: Final = (
    Action(
        "begin_transaction",
        "InitProducerId",
        BeginTransactionBody,
        TransactionAnswer,
        "Begin a transaction; a producer that is new fences those that had its transactional id.",
        _begin,
    ),
    Action(
        "send_in_transaction",
        "Produce",
        SendInTransactionBody,
        TransactionAnswer,
        "Write records that are committed with the transaction, or not at all.",
        _send,
    ),
    Action(
        "send_offsets",
        "TxnOffsetCommit",
        SendOffsetsBody,
        TransactionAnswer,
        "Commit an offset of a group with the transaction.",
        _send_offsets,
    ),
    Action(
        "end_transaction",
        "EndTxn",
        EndTransactionBody,
        TransactionAnswer,
        "Commit or abort the transaction.",
        _end,
    ),
)
