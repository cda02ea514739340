"""What a handler is given besides the request, and what it may give back."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from fencepost.broker.core.waits import Wait
from fencepost.broker.metadata.image import BrokerImage

if TYPE_CHECKING:
    from fencepost.broker.node.broker import Broker

R = TypeVar("R")


class HangUp:
    """The answer that closes the connection: acks=0 that failed has no other sign."""


HANG_UP: Final = HangUp()
Answer: TypeAlias = R | Wait[R] | None
"""A response, one to come, or none at all (acks=0)."""


@dataclass(slots=True, kw_only=True)
class Peer:
    """The other side of a connection, or a broker of this cluster that asks another."""

    connection_id: str
    host: str
    software_name: str = "unknown"
    """From ApiVersions v3+ (KIP-511), as its version."""
    software_version: str = "unknown"
    listener_host: str = ""
    """The local address that the peer reached."""
    is_broker: bool = False
    """Whether it is a broker of this cluster."""


class PartitionRefusal(NamedTuple):
    """Partitions that are refused whatever their state, because a fault says so."""

    code: int
    topic: str | None
    """None is every topic."""
    partition: int | None
    """None is every partition of the topic."""
    is_late: bool
    """Whether they are read or appended to all the same."""

    def applies_to(self, topic: str | None, index: int) -> bool:
        """Whether a partition is refused."""
        return self.topic in (None, topic) and self.partition in (None, index)


class Context(NamedTuple):
    """One request's surroundings. Handlers see this broker's view and replicas, and no other's."""

    broker: "Broker"
    version: int
    """Of the API that is being answered."""
    client_id: str | None
    peer: Peer
    now_ms: int
    """Milliseconds since 1970-01-01 UTC, when the request was taken up."""
    refusal: PartitionRefusal | None = None
    """Partitions that Produce and Fetch refuse."""

    def host_of(self, broker: BrokerImage) -> str:
        """Where this client reaches a broker: as advertised, or where it reached this one."""
        return broker.host or self.peer.listener_host


class Handler(Protocol):
    """A module of ``fencepost.broker.handlers``: one API."""

    def handle(self, ctx: Context, request: object) -> object:
        """Answer a request: a response, a wait, or None for no response."""
        ...

    def refuse(self, request: object, error_code: int) -> object:
        """Answer a request with one error code, in every place where this API has one."""
        ...
