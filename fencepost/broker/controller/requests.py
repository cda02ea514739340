"""What brokers ask of the controller, as data: each is a message on the link to it.

Kafka has an API for each but `CreateTopic`, for which a broker forwards a CreateTopics of its own.
The type parameter is the type of the answer.
"""

from dataclasses import dataclass
from uuid import UUID

from fencepost.broker.controller.isr_proposals import IsrProposal
from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.core.context import Peer
from fencepost.broker.metadata.image import PartitionImage
from fencepost.broker.network.links import ControllerRequest
from fencepost.protocol.apis import Api
from fencepost.protocol.errors import ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope(ControllerRequest[object]):
    """A client's request that a broker forwards (KIP-590). The answer is the API's response."""

    broker_id: int
    """The broker that the client sent it to."""
    api: Api
    version: int
    client_id: str | None
    peer: Peer
    request: object


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitions(ControllerRequest[list[PartitionImage | ErrorCode]]):
    """ISRs that a leader proposes, each of another partition (KIP-497, AlterPartition).

    The answer has for each the partition as it is then, or why it is as it was.
    """

    proposals: tuple[IsrProposal, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailReplicas(ControllerRequest[None]):
    """Replicas whose logs a broker can't use, by topic, topic id and index."""

    broker_id: int
    replicas: tuple[tuple[str, UUID, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocateProducerIds(ControllerRequest[range]):
    """A block of producer ids (KIP-730)."""

    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopic(ControllerRequest[ErrorCode]):
    """A topic that a broker creates because a client needs it. The answer is NONE or the error."""

    topic: NewTopic
