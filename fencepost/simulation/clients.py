"""Consumers and other clients: they send messages to handlers, and check the answers.

A client uses leader epochs as KIP-320 describes: a request carries the newest epoch that any
broker's metadata contained, older metadata is ignored, and an error makes the client refresh its
metadata. Consumers fetch on from the last batch that they read, and go back to the diverging epoch
that the broker returns; where Fetch has no such field (below v12) they send OffsetForLeaderEpoch
first.
"""

from typing import Final

from msgspec import Struct, field

from fencepost.broker.core.waits import Wait
from fencepost.broker.network.links import CONTROLLER
from fencepost.broker.node.broker import Broker
from fencepost.broker.node.cluster import Cluster
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import FetchResponse
from fencepost.protocol.messages.offset_commit import OffsetCommitResponse
from fencepost.protocol.records import iter_headers
from fencepost.simulation import client_invariants as must
from fencepost.simulation import client_requests
from fencepost.simulation.checker import ClusterChecker
from fencepost.simulation.client_requests import ClientRequests
from fencepost.simulation.environment import RequestSender
from fencepost.simulation.history import BatchLog
from fencepost.simulation.invariants import followers_copy_what_leaders_wrote, require
from fencepost.simulation.setup import Setup

FIRST_FETCH_WITH_DIVERGENCE: Final = 12
LAST_FETCH_FROM_LEADERS: Final = 10
_REFRESH_METADATA: Final = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
REREADING_CLIENT: Final = 3
"""A client that reads everything again and again."""


class SimulatedConsumer(Struct):
    """A consumer of one partition."""

    name: str
    requests: ClientRequests
    epoch: int = -1
    """Of the leader, as far as metadata told."""
    validated_epoch: int = -1
    """The leader epoch in which its position was last found to be sound (below Fetch v12)."""
    log: BatchLog = field(default_factory=BatchLog)
    """What it has read, and not been told to forget."""
    fetch_count: int = 0
    """How often it has fetched."""
    rereads: bool = False
    """Whether it reads everything again once it has read everything: of a tier, too."""


class OffsetLister(Struct):
    """A client that asks for the latest offset of one partition again and again."""

    name: str
    requests: ClientRequests
    epoch: int = -1
    latest: int = -1


class Clients:
    """All clients of one cluster."""

    def __init__(
        self, cluster: Cluster, watch: ClusterChecker, setup: Setup, ask: RequestSender
    ) -> None:
        self._cluster = cluster
        self._watch = watch
        self._ask = ask
        self._admin = ClientRequests(ask, "admin")
        self._fetch_version = _fetch_version(setup.fetch_version)
        self._is_gated = not setup.unclean
        self._readers: dict[tuple[int, int], SimulatedConsumer] = {}
        self._offset_listers: dict[tuple[int, int], OffsetLister] = {}
        self._coordinators: dict[str, int] = {}
        """Of each group, as far as a broker told."""

    # -- consuming ------------------------------------------------------------------------------

    def consume(self, client: int, index: int, broker_id: int) -> None:
        """Fetch once, from a leader or a follower."""
        broker = self._cluster.brokers[broker_id]
        reader = self._readers.get((client, index))
        if reader is None:
            reader = self._readers[client, index] = SimulatedConsumer(
                f"c{client} of p{index}",
                ClientRequests(self._ask, f"consumer-{client}"),
                rereads=client == REREADING_CLIENT,
            )
        if reader.epoch < 0:
            self._refresh_epoch(reader, broker, index)
        if not self._is_sound(reader, broker, index):
            return
        answer = self._fetch(reader, broker, index)
        if not isinstance(answer, Wait):
            self._see_answer(reader, broker, index, answer)
            return
        asked = reader.fetch_count  # it may have asked again until this one is answered

        def answered(found: FetchResponse | None) -> None:
            if found is not None and reader.fetch_count == asked and broker.running:
                self._see_answer(reader, broker, index, found)

        answer.then(answered)

    def _see_answer(
        self, reader: SimulatedConsumer, broker: Broker, index: int, response: FetchResponse
    ) -> None:
        answer = response.responses[0].partitions[0]
        if answer.error_code in _REFRESH_METADATA:
            self._refresh_epoch(reader, broker, index)
        elif answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._reset(reader, broker, index)
        elif answer.diverging_epoch.epoch >= 0:
            self._truncate(reader, answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset)
        else:
            self._read_records(reader, index, answer.records or ())
            if reader.rereads and not answer.records:
                reader.log.reset_to(0)

    def _fetch(
        self, reader: SimulatedConsumer, broker: Broker, index: int
    ) -> FetchResponse | Wait[FetchResponse]:
        reader.fetch_count += 1
        tip = reader.log.tip
        knows_last = self._fetch_version >= FIRST_FETCH_WITH_DIVERGENCE
        return reader.requests.fetch(
            broker,
            index,
            self._fetch_version,
            offset=reader.log.end,
            epoch=reader.epoch,
            last_epoch=tip.epoch if knows_last and tip is not None else client_requests.NO_EPOCH,
        )

    def _read_records(
        self, reader: SimulatedConsumer, index: int, records: tuple[Buffer, ...]
    ) -> None:
        history = self._watch.partitions[index]
        for buffer in records:
            for _, header in iter_headers(buffer):
                epoch, base = header.partition_leader_epoch, header.base_offset
                batch = history.batches.get((epoch, base))
                require(
                    followers_copy_what_leaders_wrote,
                    reader.name,
                    batch,
                    epoch,
                    base,
                    header.crc,
                )
                assert batch is not None
                if batch.next_offset <= reader.log.end:
                    continue
                if not history.tainted:
                    require(must.clients_read_what_is_committed, reader.name, history, batch)
                require(
                    must.consumers_miss_no_truncation,
                    reader.name,
                    reader.log,
                    batch,
                    history.deleted,
                )
                reader.log.append(batch)
                self._watch.add_to_digest(index, epoch, base)

    def _is_sound(self, reader: SimulatedConsumer, broker: Broker, index: int) -> bool:
        """Whether its position is one of the leader's log, where Fetch itself can't tell."""
        if (
            self._fetch_version >= FIRST_FETCH_WITH_DIVERGENCE
            or reader.validated_epoch == reader.epoch
        ):
            return True
        return self._validate(reader, broker, index)

    def _validate(self, reader: SimulatedConsumer, broker: Broker, index: int) -> bool:
        """Ask where the epoch of the last batch read ends, and whether that may be relied on."""
        tip = reader.log.tip
        if tip is not None:
            end = reader.requests.epoch_end(broker, index, epoch=reader.epoch, asked=tip.epoch)
            if end.error_code in _REFRESH_METADATA:
                self._refresh_epoch(reader, broker, index)
            if end.error_code or end.end_offset < 0:
                return False
            self._truncate(reader, end.leader_epoch, end.end_offset)
            if reader.log.tip is not tip:
                return False  # what is left is to be asked about as well (KIP-279)
        reader.validated_epoch = reader.epoch
        return True

    def _truncate(self, reader: SimulatedConsumer, epoch: int, end_offset: int) -> None:
        """Forget what a broker's log has not: what lies behind the end, or is of a later epoch."""
        reader.log.truncate(end_offset)
        while (tip := reader.log.tip) is not None and tip.epoch > epoch:
            reader.log.truncate(tip.base_offset)

    def _reset(self, reader: SimulatedConsumer, broker: Broker, index: int) -> None:
        """Start again at the log start, as ``auto.offset.reset=earliest`` has it."""
        found = reader.requests.list_offset(
            broker, index, client_requests.EARLIEST, epoch=reader.epoch
        )
        if not found.error_code:
            reader.log.reset_to(found.offset)

    # -- committing -----------------------------------------------------------------------------

    def commit(self, client: int, index: int, broker_id: int) -> None:
        """Commit how far a consumer has come, and ask what is committed.

        :param broker_id: Who is asked for the coordinator, where it is not known.
        """
        reader, group = self._readers.get((client, index)), f"group-{client}"
        if reader is None:
            return
        node = self._coordinators.get(group)
        if node is None:
            node = reader.requests.coordinator(self._cluster.brokers[broker_id], group)
        coordinator = self._cluster.brokers.get(node)
        if coordinator is None or not coordinator.running:
            self._coordinators.pop(group, None)
            return
        self._coordinators[group] = node

        def answered(response: OffsetCommitResponse | None) -> None:
            if response is None or response.topics[0].partitions[0].error_code:
                self._coordinators.pop(group, None)

        tip, end = reader.log.tip, reader.log.end
        epoch = client_requests.NO_EPOCH if tip is None else tip.epoch
        reader.requests.committed(coordinator, group, index)
        answer = reader.requests.commit(coordinator, group, index, offset=end, epoch=epoch)
        if isinstance(answer, Wait):
            answer.then(answered)
        else:
            answered(answer)

    # -- offsets --------------------------------------------------------------------------------

    def list_latest(self, client: int, index: int, broker_id: int) -> None:
        """Ask for the latest offset."""
        broker = self._cluster.brokers[broker_id]
        asker = self._offset_listers.get((client, index))
        if asker is None:
            asker = self._offset_listers[client, index] = OffsetLister(
                f"c{client} of p{index}", ClientRequests(self._ask, f"asker-{client}")
            )
        if asker.epoch < 0:
            self._refresh_epoch(asker, broker, index)
        found = asker.requests.list_offset(broker, index, client_requests.LATEST, epoch=asker.epoch)
        if found.error_code in _REFRESH_METADATA:
            self._refresh_epoch(asker, broker, index)
        elif not found.error_code:
            if self._is_gated and not self._watch.partitions[index].tainted:
                require(must.latest_offsets_never_go_back, asker.name, asker.latest, found.offset)
            asker.latest = found.offset
            self._watch.add_to_digest(index, found.offset)

    def delete(self, index: int, broker_id: int) -> None:
        """Delete all records below the high watermark."""
        self._admin.delete_records(self._cluster.brokers[broker_id], index)

    # -- administrators -------------------------------------------------------------------------

    def reassign(self, index: int, target: tuple[int, ...] | None) -> None:
        """Give a partition other replicas, or None: those that it had; by any broker that can."""
        network = self._cluster.network
        able = (
            b for b in self._cluster.brokers.values() if network.reaches(b.broker_id, CONTROLLER)
        )
        broker = next(able, None)
        if broker is not None:
            self._admin.reassign(broker, index, target)

    def elect_preferred(self, index: int, broker_id: int) -> None:
        """Have the preferred leader elected, through a broker that may not reach the controller."""
        self._admin.elect_preferred(self._cluster.brokers[broker_id], index)

    def configure(self, name: str, value: str, broker_id: int) -> None:
        """Change a config of the topic, through a broker that may not reach the controller."""
        self._admin.configure(self._cluster.brokers[broker_id], name, value)

    # -- metadata -------------------------------------------------------------------------------

    def _refresh_epoch(
        self, client: SimulatedConsumer | OffsetLister, broker: Broker, index: int
    ) -> None:
        """Take over the leader epoch of a broker's metadata, unless an older one than is known."""
        client.epoch = max(client.epoch, client.requests.leader_epoch(broker, index))


def _fetch_version(ceiling: int) -> int:
    """What consumers fetch with.

    Where Fetch does not say that logs part, a consumer that reads from followers (v11) may get what
    one of them is about to truncate, and never hear of it: there they read from leaders alone.
    """
    if ceiling >= FIRST_FETCH_WITH_DIVERGENCE:
        return min(ceiling, client_requests.NEWEST_BY_NAME)
    return min(ceiling, LAST_FETCH_FROM_LEADERS)
