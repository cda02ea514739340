"""What a seed lets transactional producers and read_committed consumers do, by its own chances."""

import random
from collections.abc import Callable
from functools import partial
from typing import Final

from fencepost.broker.groups.group_coordinator import OFFSETS_TOPIC
from fencepost.broker.metadata.image import NO_LEADER, TRANSACTION_TOPIC
from fencepost.simulation.schedule import (
    ABORTS,
    ANY,
    ARRIVES,
    COMMITS,
    LATE,
    STABLE,
    TOPIC,
    Action,
    ActionKind,
)
from fencepost.simulation.transactions.producer import Phase, TransactionalProducer
from fencepost.simulation.transactions.workload import PRODUCERS, READERS, STATE_PARTITIONS
from fencepost.simulation.world import World

_FAULTS: Final = 0.4
_REPAIRS: Final = 4
_OTHER_CLIENTS: Final = 0.4
_MORE_TIME: Final = 4
_IMPATIENCE: Final = 0.03
"""How likely a producer aborts that waits for answers."""
_LEADER_SHARE: Final = 0.85
"""How often a client knows who leads."""


class TransactionActions:
    """Throws one seed's actions of transactions; none where the seed has none."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._transactions = world.transactions
        self._rng = rng = random.Random(f"transactions {world.setup.seed}")
        has_any = world.setup.has_transactions
        self.share = rng.choice((0.2, 0.3, 0.4)) if has_any else 0.0
        """Of all steps; 0 where there are none."""
        self._offsets = rng.choice((0.0, 0.2, 0.4))
        self._settles = rng.choice((0.04, 0.1, 0.25))
        self._reads = rng.choice((0.05, 0.15))
        self._elections = rng.choice((0.0, 0.01, 0.04))
        self._wipes = rng.choice((0.0, 0.0, 0.005, 0.02))
        self._restarts = rng.choice((0.0, 0.01, 0.04))
        self._late = rng.choice((0.0, 0.05, 0.2))
        self._commits = rng.choice((0.6, 0.8))
        self._ends = rng.choice((0.15, 0.3, 0.5))

    def suit(self, weights: dict[ActionKind, float]) -> None:
        """Fewer faults, each of which lasts less long: a transaction takes many messages."""
        if not self.share:
            return
        for kind in (ActionKind.KILL, ActionKind.ISOLATE, ActionKind.CUT, ActionKind.STOP):
            weights[kind] *= _FAULTS
        for kind in (ActionKind.START, ActionKind.REJOIN, ActionKind.RELEASE):
            weights[kind] *= _REPAIRS
        for kind in (ActionKind.PRODUCE, ActionKind.CONSUME, ActionKind.LIST):
            weights[kind] *= _OTHER_CLIENTS
        if self._world.setup.expires:
            weights[ActionKind.ADVANCE] *= _MORE_TIME

    def next(self) -> Action | None:
        """The next action, or None where it is for others to do something."""
        rng = self._rng
        if rng.random() >= self.share:
            return None
        chance = rng.random()
        for kind, share in (
            (ActionKind.ELECT_COORDINATOR, self._elections),
            (ActionKind.WIPE_COORDINATOR, self._wipes),
            (ActionKind.ELECT_GROUP_COORDINATOR, self._elections * bool(self._offsets)),
            (ActionKind.WIPE_GROUP_COORDINATOR, self._wipes * bool(self._offsets)),
            (ActionKind.FETCH_OFFSET, self._reads * self._offsets),
            (ActionKind.READ, self._reads),
            (ActionKind.SETTLE, self._settles),
        ):
            if chance < share:
                return _GENERATORS[kind](self)
            chance -= share
        return self._of_producer(rng.choice([*PRODUCERS]))

    def of_coordinator(self, kind: ActionKind) -> Action:
        """Something happens to a replica of a coordinator's topic."""
        index = self._rng.randrange(STATE_PARTITIONS)
        partition = self._world.cluster.controller.partition(_TOPICS[kind], index)
        return Action(kind, index, self._rng.choice(partition.replicas))

    def read(self) -> Action:
        """A consumer fetches, mostly from a leader."""
        index = self._partition()
        broker = self._leader(index)
        return Action(ActionKind.READ, index, broker, other=self._rng.choice(READERS))

    def fetch_offset(self) -> Action:
        """A consumer asks for a committed offset."""
        rng = self._rng
        number, how = rng.choice([*PRODUCERS]), rng.choice((STABLE, ANY))
        return Action(
            ActionKind.FETCH_OFFSET, self._partition(), self._broker(), other=number, how=how
        )

    def _of_producer(self, number: int) -> Action:
        rng, producer = self._rng, self._transactions.producers[number]
        if producer.late and rng.random() < self._late:
            return Action(ActionKind.ARRIVE, other=number)
        if producer.phase in (Phase.NEW, Phase.STALE) or rng.random() < self._restarts:
            return Action(ActionKind.INIT, broker=self._broker(), other=number)
        if producer.phase is not Phase.READY or rng.random() < self._end_share(producer):
            how = COMMITS if producer.may_commit and rng.random() < self._commits else ABORTS
            return Action(ActionKind.END, broker=self._broker(), other=number, how=how)
        if rng.random() < self._offsets:
            index = rng.choice(producer.unanswered_offsets or range(self._world.setup.partitions))
            return Action(ActionKind.COMMIT_OFFSET, index, self._broker(), other=number)
        index = rng.choice(producer.unanswered or range(self._world.setup.partitions))
        how = LATE if rng.random() < self._late else ARRIVES
        return Action(ActionKind.SEND, index, self._leader(index), other=number, how=how)

    def _end_share(self, producer: TransactionalProducer) -> float:
        """How likely it is that a producer ends its transaction now, however far it has come."""
        if producer.may_commit:
            return self._ends
        return 0.0 if producer.transaction is None else _IMPATIENCE

    def _broker(self) -> int:
        return self._rng.choice(self._world.setup.broker_ids)

    def _partition(self) -> int:
        return self._rng.randrange(self._world.setup.partitions)

    def _leader(self, index: int) -> int:
        """Mostly the leader, as the controller knows it."""
        partition = self._world.cluster.controller.image.topics[TOPIC].partitions[index]
        if partition.leader == NO_LEADER or self._rng.random() >= _LEADER_SHARE:
            return self._broker()
        return partition.leader


_TOPICS: Final = {
    ActionKind.ELECT_COORDINATOR: TRANSACTION_TOPIC,
    ActionKind.WIPE_COORDINATOR: TRANSACTION_TOPIC,
    ActionKind.ELECT_GROUP_COORDINATOR: OFFSETS_TOPIC,
    ActionKind.WIPE_GROUP_COORDINATOR: OFFSETS_TOPIC,
}
_GENERATORS: Final[dict[ActionKind, Callable[[TransactionActions], Action]]] = {
    **{kind: partial(TransactionActions.of_coordinator, kind=kind) for kind in _TOPICS},
    ActionKind.FETCH_OFFSET: TransactionActions.fetch_offset,
    ActionKind.READ: TransactionActions.read,
    ActionKind.SETTLE: lambda _dice: Action(ActionKind.SETTLE),
}
