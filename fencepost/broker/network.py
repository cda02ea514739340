"""How brokers reach each other: a request and a response, and nothing else.

Served or simulated, it is the same network. In service it delivers at once, in the same turn.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from fencepost.broker.context import Context, Peer
from fencepost.broker.waits import Wait
from fencepost.protocol.apis import Api

if TYPE_CHECKING:
    from fencepost.broker.broker import Broker


class Network:
    """The links between the brokers of one cluster."""

    def __init__(self) -> None:
        self._brokers: dict[int, Broker] = {}

    def join(self, broker: "Broker") -> None:
        """Connect a broker to all others."""
        self._brokers[broker.broker_id] = broker

    def request(
        self,
        source: "Broker",
        target_id: int,
        api: Api,
        message: object,
        answered: Callable[[object], None],
    ) -> None:
        """Send a request of the API's newest version to another broker's handlers.

        :param answered: Called with the response, in this turn or a later one.
        """
        target = self._brokers.get(target_id)
        if target is None:
            return
        ctx = Context(
            broker=target,
            version=api.max_version,
            client_id=f"broker-{source.broker_id}-fetcher-0",
            peer=Peer(connection_id=f"broker-{source.broker_id}", host=source.host),
            now_ms=target.scheduler.now_ms(),
        )
        answer = target.handle(api, ctx, message)
        if isinstance(answer, Wait):
            answer.then(answered)
        elif answer is not None:
            answered(answer)

    def ring(self, target_id: int, topic: str, index: int) -> None:
        """Tell a follower that its leader has something new. It carries nothing but that.

        A real follower's fetch would be waiting at the leader; this one is not kept there, because
        ten thousand idle partitions would each keep one.
        """
        target = self._brokers.get(target_id)
        if target is not None:
            target.poke_follower(topic, index)
