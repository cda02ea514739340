"""The part of a Fetch that is in the tier."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from fencepost.broker.replica import Replica
from fencepost.protocol.buffers import Buffer
from fencepost.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from fencepost.broker.broker import Broker


class TieredPart(NamedTuple):
    """What is to be read of one partition: see `Log.read`."""

    replica: Replica
    offset: int
    max_bytes: int
    upper_bound: int
    min_one_batch: bool

    def read(
        self, broker: "Broker", then: Callable[[tuple[Buffer, ...] | ErrorCode], None]
    ) -> None:
        """Read it; `then` is told now or later: see `RemoteReader.read`.

        Where no bytes are left there is nothing, not even a first batch, as in Kafka.
        """
        if not self.max_bytes:
            then(())
            return
        broker.tiering.reader.read(
            self.replica,
            self.offset,
            max_bytes=self.max_bytes,
            upper_bound=self.upper_bound,
            min_one_batch=self.min_one_batch,
            then=then,
        )
