"""The bodies of the verbs on transactions."""

from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec import Meta

from fencepost.verbs.bodies import Body
from fencepost.verbs.model import Examples
from fencepost.verbs.record_bodies import MAX_INT64, Index

TransactionStateName: TypeAlias = Literal[
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
]
"""As Kafka names the states of a transactional id."""


class MarkerBody(Body):
    """The partition to which a marker is on its way."""

    topic: str
    partition: Index
    """Of the transaction, or that it may still write to."""

    examples: ClassVar[Examples] = [{"topic": "orders", "partition": 0}]


class HangingTransactionBody(Body):
    """A transaction that is open in a partition, and that no coordinator knows."""

    topic: str
    partition: Index
    """Where the transaction is open."""
    producer_id: Annotated[int, Meta(ge=0, le=MAX_INT64)]
    """As DescribeProducers and the partition's records name it."""

    examples: ClassVar[Examples] = [{"topic": "orders", "partition": 0, "producer_id": 1000}]
