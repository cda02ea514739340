"""Consumers of the groups of transactional producers, and the checks of what they find there."""

from collections.abc import Collection, Iterable
from functools import partial
from typing import TYPE_CHECKING

from fencepost.broker.coordinator import partition_for
from fencepost.broker.groups.group_coordinator import OFFSETS_TOPIC
from fencepost.broker.node.cluster import Cluster
from fencepost.simulation.environment import RequestSender
from fencepost.simulation.invariants import require
from fencepost.simulation.transactions import invariants as must
from fencepost.simulation.transactions.ledger import (
    GroupPartition,
    Ledger,
    SentBatch,
    SentOffset,
)
from fencepost.simulation.transactions.offset_messages import OffsetRequests, offset_of

if TYPE_CHECKING:
    from fencepost.broker.node.broker import Broker
    from fencepost.protocol.messages.offset_fetch import OffsetFetchResponse


class GroupOffsets:
    """What the groups of one cluster have committed.

    :param partitions: How many ``__consumer_offsets`` has.
    """

    def __init__(
        self, cluster: Cluster, ledger: Ledger, ask: RequestSender, partitions: int
    ) -> None:
        self._cluster = cluster
        self._ledger = ledger
        self._partitions = partitions
        self._requests = OffsetRequests(ask, "reader", is_new_flow=True)
        self.found = 0
        """How many offsets consumers have found."""

    def coordinator(self, broker: "Broker", group: str) -> int:
        """The broker that coordinates a group, as another one knows; -1 where there is none."""
        return self._requests.find_coordinator(broker, group)

    def fetch(self, coordinator: "Broker", key: GroupPartition, *, is_stable: bool) -> None:
        """A consumer asks what is committed; the answer is checked when it comes."""
        known: Collection[SentOffset] = ()
        if is_stable and self._leads(coordinator, key):
            known = [*self._known(key, seen=())]
        answer = self._requests.committed(coordinator, *key, is_stable=is_stable)
        answer.then(partial(self._see, coordinator, key, known))

    def _see(
        self,
        coordinator: "Broker",
        key: GroupPartition,
        known: Collection[SentOffset],
        answer: "OffsetFetchResponse | None",
    ) -> None:
        offset = None if answer is None else offset_of(answer)
        if offset is None:
            return
        shown = self._shown(f"broker {coordinator.broker_id}", key, offset)
        # One that has been deposed since may know less.
        if known and self._leads(coordinator, key):
            require(must.offsets_are_atomic, key, shown, known, None)

    def check_healed(
        self,
        groups: Iterable[GroupPartition],
        seen: Collection[SentBatch],
        visible: Collection[SentBatch],
    ) -> None:
        """Of all that was committed in transactions what is committed is shown.

        :param seen: The batches that read_committed consumers see.
        :param visible: These, and those that need not be seen.
        """
        for key in groups:
            coordinator = self._cluster.brokers[self._leader(key)]
            answer = self._requests.committed(coordinator, *key, is_stable=True).result
            offset = None if answer is None else offset_of(answer)
            require(must.offsets_become_stable, key, offset)
            assert offset is not None
            shown = self._shown("in the end", key, offset)
            known = [*self._known(key, seen)]
            require(must.offsets_are_atomic, key, shown, known, visible)

    def _shown(self, who: str, key: GroupPartition, offset: int) -> SentOffset | None:
        if offset < 0:
            return None
        self.found += 1
        sent = self._ledger.offsets.get((key, offset))
        require(must.offsets_are_isolated, who, key, sent)
        return sent

    def _known(self, key: GroupPartition, seen: Collection[SentBatch]) -> Iterable[SentOffset]:
        """The offsets of transactions that are known to be committed."""
        for sent in self._ledger.offsets.values():
            if sent.key == key and sent.is_acknowledged:
                transaction = sent.transaction
                if transaction.told or any(batch in seen for batch in transaction.batches):
                    yield sent

    def _leads(self, broker: "Broker", key: GroupPartition) -> bool:
        return self._leader(key) == broker.broker_id

    def _leader(self, key: GroupPartition) -> int:
        """Who coordinates a group, as the controller knows."""
        index = partition_for(key.group, self._partitions)
        return self._cluster.controller.partition(OFFSETS_TOPIC, index).leader
