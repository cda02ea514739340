"""What the actions of `actions.consumer` take."""

from typing import Annotated, ClassVar, Final

from msgspec import Meta

from fencepost.client.consumer.config import ConsumerParameters, make_config
from fencepost.scenario.actions.context import (
    ActionBody,
    IsolationLevel,
    Milliseconds,
    PartitionIndex,
)
from fencepost.verbs.bodies import Listed

_FETCH_WAIT_MS: Final = 100
_BACKOFF_MS: Final = 20
_MAX_BACKOFF_MS: Final = 100
"""A scenario is short. Kafka's defaults, of half a second and of 100 ms to a second, are for
clusters that are far away."""

Offset = Annotated[int, Meta(ge=0)]


class ConsumerBody(ActionBody):
    """A consumer that is open."""

    client_field: ClassVar[str] = "consumer"

    consumer: str
    """A name in this scenario."""

    def check(self) -> None:
        """It finds brokers by itself."""
        for name in self._not_taken():
            if name in self.model_fields_set:
                raise ValueError(f"a consumer chooses its {name} by itself")

    def _not_taken(self) -> tuple[str, ...]:
        return ("broker", "version")


class OpenConsumerBody(ConsumerBody):
    """A consumer that is assigned one partition. Its client id is its name, unless ``client`` is
    given; it learns the cluster from ``broker``, or from any.
    """

    topic: str
    partition: PartitionIndex = 0
    dialect: str | None = None
    """``kip-320-draft``, or Kafka's protocol."""
    auto_offset_reset: str = "none"
    """latest, earliest, none, by_duration:PnDTnHnMn.nS; with the dialect also closest."""
    group: str | None = None
    """It begins at what this group has committed."""
    offset: Offset | None = None
    """Where it begins instead."""
    epoch: int | None = None
    """The epoch of the record before that offset."""
    isolation: IsolationLevel = "read_uncommitted"
    rack: str = ""

    def check(self) -> None:
        """It makes a config."""
        super().check()
        if self.epoch is not None and self.offset is None:
            raise ValueError("an epoch is of the record before an offset, which is left out")
        make_config(**self.parameters())

    def parameters(self) -> ConsumerParameters:
        """Those of `Consumer`."""
        return ConsumerParameters(
            client_id=self.client if "client" in self.model_fields_set else self.consumer,
            group_id=self.group,
            auto_offset_reset=self.auto_offset_reset,
            isolation_level=self.isolation,
            client_rack=self.rack,
            dialect=self.dialect,
            default_api_timeout_ms=self.timeout_ms,
            fetch_max_wait_ms=_FETCH_WAIT_MS,
            retry_backoff_ms=_BACKOFF_MS,
            retry_backoff_max_ms=_MAX_BACKOFF_MS,
        )

    def _not_taken(self) -> tuple[str, ...]:
        return ("version",)


class PollBody(ConsumerBody):
    """Records that a consumer waits for."""

    count: Annotated[int, Meta(ge=1)] = 1
    """How many at least; it stops earlier when the consumer raises an error."""
    wait_ms: Milliseconds = 10_000
    """How long to wait for them."""


class SeekBody(ConsumerBody):
    """Where a consumer is to go on."""

    offset: Offset
    epoch: int | None = None
    """The epoch of the record before the offset."""
    timestamp: int | None = None
    """Its timestamp; in KIP-320's earlier draft."""


class CommitPositionBody(ConsumerBody):
    """A consumer that commits its position for its group."""


class ConsumersBody(ActionBody):
    """Consumers to be set side by side."""

    consumers: Listed[str]
    """Their names."""
