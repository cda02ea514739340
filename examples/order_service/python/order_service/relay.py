"""The relay: it sends what stands in the outbox to Kafka, in the order of the outbox."""

from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

from confluent_kafka import KafkaError, KafkaException, Producer, ThrottleEvent
from confluent_kafka import Message as KafkaMessage

from order_service.outbox import Acknowledged, Message, Outbox

TOPIC: Final = "orders"
CLIENT_ID: Final = "order-relay"
_SETTINGS: Final[Mapping[str, str | int | bool]] = {
    "client.id": CLIENT_ID,
    # A retry after a lost acknowledgement is stored once, and retries keep the order.
    "enable.idempotence": True,
    # Every in-sync replica; the topic's min.insync.replicas says how many these must be.
    "acks": "all",
    "linger.ms": 0,
}


class Relay:
    """Sends messages, and notes in the outbox which of them Kafka has acknowledged.

    A message whose acknowledgement is not noted is sent again: consumers skip what they have
    handled already.

    :param settings: Of the producer, besides those that the service depends on.
    """

    def __init__(
        self, outbox: Outbox, bootstrap: str, settings: Mapping[str, str | int | bool] | None = None
    ) -> None:
        self.throttled_ms = 0
        """For how long brokers have delayed the relay: a sign of a quota that is too low."""
        self._outbox = outbox
        self._settings = {
            "bootstrap.servers": bootstrap,
            "throttle_cb": self._on_throttle,
            **(settings or {}),
            **_SETTINGS,
        }
        self._producer = Producer(self._settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Forget what is in flight: it stands in the outbox."""
        self._producer.purge()
        self._producer.flush(1)

    def run_once(self, timeout_s: float = 30) -> int:
        """Send all unsent messages, and wait for their acknowledgements.

        :param timeout_s: What is not acknowledged by then stays in the outbox.
        :returns: The number of acknowledged messages.
        :raises KafkaException: When a message cannot be sent, such as one that is too large.
        """
        acknowledged: list[Acknowledged] = []
        for message in self._outbox.unsent():
            self._send(message, acknowledged)
        try:
            self._producer.flush(timeout_s)
        except (KafkaException, SystemError):
            # The error is fatal: a broker has lost messages of this producer, which then sends
            # nothing more. It is a SystemError where a callback runs while it is raised.
            self._producer = Producer(self._settings)
        self._outbox.mark_sent(acknowledged)
        return len(acknowledged)

    def _send(self, message: Message, acknowledged: list[Acknowledged]) -> None:
        def on_delivery(error: KafkaError | None, stored: KafkaMessage) -> None:
            partition, offset = stored.partition(), stored.offset()
            if error is None and partition is not None and offset is not None:
                acknowledged.append(
                    Acknowledged(number=message.number, partition=partition, offset=offset)
                )

        self._producer.produce(
            TOPIC, key=message.order_id, value=message.payload, on_delivery=on_delivery
        )

    def _on_throttle(self, event: ThrottleEvent) -> None:
        self.throttled_ms += round(event.throttle_time * 1000)
