"""What a handler receives with each request."""

from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from fencepost.broker.metadata.image import BrokerImage
from fencepost.broker.metadata.topic_fragments import TopicFragments
from fencepost.protocol.listener_text import PLAINTEXT

if TYPE_CHECKING:
    from fencepost.protocol.codec.drafts import Draft

N_co = TypeVar("N_co", covariant=True)
N_contra = TypeVar("N_contra", contravariant=True)


class Peer(Struct, kw_only=True):
    """The client of a connection, or a broker of this cluster that sends a request to another."""

    connection_id: str
    host: str
    port: int | None = None
    """None without a socket."""
    software_name: str = "unknown"
    """From ApiVersions v3+ (KIP-511), as its version."""
    software_version: str = "unknown"
    listener: str = PLAINTEXT
    """The name of the listener that it reached."""
    listener_host: str = ""
    """The local address of the connection."""
    is_broker: bool = False
    """Whether it is a broker of this cluster."""
    dialect: "Draft | None" = None
    """The draft that it has asked for in ApiVersions; with None all versions are Kafka's."""


TopicPartition: TypeAlias = tuple[str | None, int]
"""A topic's name, None where its id is unknown, and the index of a partition."""


class PartitionRefusal(NamedTuple):
    """Partitions that are refused whatever their state, because a fault says so."""

    code: int
    topic: str | None
    """None is every topic."""
    partition: int | None
    """None is every partition of the topic."""
    is_late: bool
    """Whether they are read or appended to all the same."""
    only: frozenset[TopicPartition] | None = None
    """Topics and partitions of which one may be refused; None is every one."""

    def applies_to(self, topic: str | None, index: int) -> bool:
        """Whether a partition is refused."""
        if self.only is not None and (topic, index) not in self.only:
            return False
        return self.topic in (None, topic) and self.partition in (None, index)


class Context(NamedTuple, Generic[N_co]):
    """The context of one request: the broker that serves it, the client, the version and the time.

    Each room types ``broker`` as the Protocol of what it needs of a broker.
    """

    broker: N_co
    version: int
    """The version of the API."""
    client_id: str | None
    peer: Peer
    now_ms: int
    """When the broker began to handle the request, by the clock of timers."""
    wall_ms: int
    """The same time for timestamps: milliseconds since 1970-01-01 UTC."""
    refusal: PartitionRefusal | None = None
    """Partitions that Produce and Fetch refuse."""
    request_bytes: int = 0
    """The size of the request's frame; 0 between brokers, which exchange messages."""
    fragments: TopicFragments | None = None
    """The topics that were encoded for earlier Metadata responses; None where the response is not
    only encoded, but looked at or changed before."""

    def host_of(self, broker: BrokerImage) -> str:
        """The host under which this client reaches a broker.

        It is what the client's listener advertises, or the address of this connection where that
        advertises no host.
        """
        return broker.endpoint(self.peer.listener).host or self.peer.listener_host

    def port_of(self, broker: BrokerImage) -> int:
        """The port under which this client reaches a broker."""
        return broker.endpoint(self.peer.listener).port

    def is_drafted(self, api: str) -> bool:
        """Whether this version of an API has the schemas of the draft that the client speaks.

        :param api: Its name.
        """
        dialect = self.peer.dialect
        return dialect is not None and (api, self.version) in dialect.versions


class Handler(Protocol[N_contra]):
    """A module of ``fencepost.broker.handlers``: one API."""

    def handle(self, ctx: Context[N_contra], request: object) -> object:
        """Handle a request: return a response, a `Wait`, or None for no response."""
        ...

    def refuse(self, request: object, error_code: int) -> object:
        """Make a response with one error code in every place where this API has one."""
        ...
