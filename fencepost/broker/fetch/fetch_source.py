"""Who sends a Fetch (a consumer, or the replica of another broker), and where it is read from:
here, from the tier, or from the replica that ``replica.selector.class`` prefers (KIP-392).

The leader sends a consumer that names its rack to an in-sync replica of that rack whose log covers
the fetch offset: to the one with the highest log end. A consumer in the leader's own rack, or in
one without such a replica, stays with the leader.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from fencepost.broker.configs.effective_configs import BrokerConfigs
from fencepost.broker.fetch.aborted_transactions import FoundRecords, end_offset, to_answer
from fencepost.broker.metadata.image import ClusterImage
from fencepost.broker.network.links import BrokerId
from fencepost.broker.replication.partition_checks import NO_EPOCH
from fencepost.broker.replication.replica import Replica
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.errors import ErrorCode
from fencepost.storage.log.transactions import AbortedTransaction

if TYPE_CHECKING:
    from fencepost.broker.tiering.remote_reader import RemoteReader
    from fencepost.protocol.messages.fetch import FetchRequest


FIRST_FROM_FOLLOWERS = 11
"""The Fetch version from which consumers name their rack and may read from followers (KIP-392)."""
FIRST_WITH_STATE = 15
_FUTURE_REPLICA = -3
"""The replica id of a log that moves to another directory of the same broker."""


class FetchSource(NamedTuple):
    """Who sent a Fetch."""

    replica_id: int
    """The follower's broker, negative for consumers."""
    broker_epoch: int
    """The registration that the follower fetches in (KIP-903); -1 where it does not say."""
    version: int
    """Of its request."""

    @property
    def is_follower(self) -> bool:
        """Whether another broker's replica asks."""
        return self.replica_id >= 0

    @property
    def reads_to_log_end(self) -> bool:
        """Whether it is given what the high watermark has not reached; consumers are not."""
        return self.is_follower or self.replica_id == _FUTURE_REPLICA

    def error_for(self, replica: Replica, current_leader_epoch: int) -> ErrorCode | None:
        """Why this replica does not serve it; None where it does.

        The leader serves consumers and the followers that are assigned to the partition. One that
        is not, and yet knows the leader's epoch, may know of a newer assignment. A follower serves
        consumers from v11 on.
        """
        if not replica.is_leader:
            if self.is_follower or self.version < FIRST_FROM_FOLLOWERS:
                return ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif self.is_follower and self.replica_id not in replica.followers:
            if current_leader_epoch == NO_EPOCH:
                return ErrorCode.NOT_LEADER_OR_FOLLOWER
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return None

    def is_stale(self, view: ClusterImage) -> bool:
        """Whether its broker has registered again since, as far as this view knows (KIP-903)."""
        if self.broker_epoch == NO_EPOCH:
            return False
        known = view.brokers.get(self.replica_id)
        return known is not None and not known.fenced and self.broker_epoch < known.epoch


def fetch_source_of(request: "FetchRequest", version: int) -> FetchSource:
    """Who sent a request."""
    if version < FIRST_WITH_STATE:
        return FetchSource(request.replica_id, NO_EPOCH, version)
    state = request.replica_state
    return FetchSource(state.replica_id, state.replica_epoch, version)


class RemoteFetch(NamedTuple):
    """What is to be read of one partition: see `Log.read`."""

    replica: Replica
    offset: int
    max_bytes: int
    upper_bound: int
    min_one_batch: bool
    committed: bool
    """Whether the aborted transactions are wanted, too."""

    def read(
        self, reader: "RemoteReader", then: Callable[[FoundRecords | ErrorCode], None]
    ) -> None:
        """Read it; `then` is told now or later: see `RemoteReader.read`.

        Where no bytes are left there is nothing, not even a first batch, as in Kafka.
        """

        def take(records: tuple[Buffer, ...] | ErrorCode) -> None:
            if isinstance(records, ErrorCode):
                then(records)
            elif self.committed and records:
                end = end_offset(records)
                reader.aborted_transactions(
                    self.replica, self.offset, end, partial(finish, records)
                )
            else:
                then((records, () if self.committed else None))

        def finish(
            records: tuple[Buffer, ...], found: tuple[AbortedTransaction, ...] | ErrorCode
        ) -> None:
            then(found if isinstance(found, ErrorCode) else (records, to_answer(found)))

        if not self.max_bytes:
            take(())
            return
        reader.read(
            self.replica,
            self.offset,
            max_bytes=self.max_bytes,
            upper_bound=self.upper_bound,
            min_one_batch=self.min_one_batch,
            then=take,
        )


RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
NO_PREFERRED_REPLICA: Final = -1


class SelectorNode(Protocol):
    """What the selection needs of the leader's broker."""

    broker_id: BrokerId
    view: ClusterImage
    configs: BrokerConfigs


def preferred_read_replica(
    broker: SelectorNode, leader: Replica, rack: str, fetch_offset: int
) -> int:
    """The broker that a consumer in ``rack`` is sent to, -1 where it is to read here.

    :param leader: The partition's replica on this ``broker``; a follower sends no consumer away.
    """
    if broker.configs.replica_selector_class != RACK_AWARE or not leader.is_leader or not rack:
        return NO_PREFERRED_REPLICA
    if _rack_of(broker, broker.broker_id) == rack:
        return NO_PREFERRED_REPLICA
    covering = [
        (progress.log_end_offset, progress.last_caught_up_ms, broker_id)
        for broker_id, progress in leader.followers.items()
        if broker_id in leader.isr
        and progress.log_start_offset <= fetch_offset <= progress.log_end_offset
        and _rack_of(broker, broker_id) == rack
    ]
    return max(covering)[-1] if covering else NO_PREFERRED_REPLICA


def _rack_of(broker: SelectorNode, broker_id: int) -> str | None:
    """The rack of a broker that is online, as far as this one knows."""
    known = broker.view.brokers.get(broker_id)
    return None if known is None or known.fenced else known.rack
