"""What a consumer needs of the protocol by which its group shares the partitions.

`classic_group.ClassicGroup` is one; others (KIP-848) have the same surface.
"""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from msgspec import Struct

from fencepost.client.consumer.cluster_metadata import ClusterMetadata
from fencepost.client.consumer.config import ConsumerConfig
from fencepost.client.consumer.coordinator import Coordinator
from fencepost.client.consumer.nodes import Nodes
from fencepost.client.consumer.operations import Operation
from fencepost.client.consumer.requests import Turn
from fencepost.client.model import ConsumerGroupMetadata, Partition


class Revoke(Struct, frozen=True, kw_only=True):
    """Partitions go to other members, once the application has let go of them."""

    partitions: frozenset[Partition]
    is_lost: bool
    """Whether they are others' already, so that nothing can be committed for them."""
    let_go: Callable[[], None]
    """To be called when the application has let go."""


class Assign(Struct, frozen=True, kw_only=True):
    """The partitions of a new generation, all of them."""

    partitions: frozenset[Partition]


class GroupProtocol(Protocol):
    """A member of a group."""

    @property
    def identity(self) -> ConsumerGroupMetadata:
        """As what the consumer commits offsets."""
        ...

    @property
    def topics(self) -> set[str]:
        """Of which metadata is needed."""
        ...

    def subscribe(self, topics: frozenset[str]) -> None:
        """Join the group for these topics; join again where they have changed."""
        ...

    def next_event(self) -> Revoke | Assign | None:
        """What happened to the assignment, the oldest event first; None: nothing more."""
        ...

    def polled(self, now: int) -> None:
        """The application has polled: it is alive."""
        ...

    def refused(self, code: int) -> None:
        """A commit was refused with an error of this member or its generation."""
        ...

    def leave(self) -> Operation[None]:
        """Leave the group; done when the coordinator has answered, or did not."""
        ...

    def run(self, turn: Turn) -> None:
        """Send the requests that are due."""
        ...


MakeGroup: TypeAlias = Callable[
    [Coordinator, ClusterMetadata, Nodes, ConsumerConfig, Callable[[Exception], None]],
    GroupProtocol,
]
"""Makes a member. The last argument takes an error after which the consumer cannot go on."""
