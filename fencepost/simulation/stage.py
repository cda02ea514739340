"""Where a simulated run takes place: in memory with nobody looking on, unless somebody says more.

A run that is to leave something behind is given a data directory, and what sees every request, by
whoever starts it: the simulation itself writes nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from fencepost.broker.broker import Broker
from fencepost.broker.cluster import Cluster
from fencepost.broker.context import Context, Peer
from fencepost.protocol.apis import Api

if TYPE_CHECKING:
    from fencepost.broker.data_dir import DataDir

Ask: TypeAlias = Callable[[Broker, Api, int, object, Peer], object]
"""Takes a client's request to a broker: by API, version, message, and whose it is. What comes back
is a response, a wait for one, or None where there never will be any."""


def directly(broker: Broker, api: Api, version: int, request: object, peer: Peer) -> object:
    """Ask without a look at what is asked."""
    now_ms = broker.scheduler.now_ms()
    return broker.handle(api, Context(broker, version, peer.connection_id, peer, now_ms), request)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What a run is given besides its seed."""

    data_dir: "DataDir | None" = None
    """Where the cluster is kept; None is in memory."""
    ask: Ask = directly
    """What carries clients' requests."""
    follow: Callable[[Cluster], None] | None = None
    """Is given the cluster when it has begun, to look on."""
    is_lifelike: bool = False
    """Whether records bear the time, and are compressed now and then."""
    configs: Mapping[str, str] = field(default_factory=dict)
    """Of all brokers, besides those that every run has."""
    topic_configs: Mapping[str, str] = field(default_factory=dict)
    """Likewise, of the topic."""


IN_MEMORY: Final = Stage()
