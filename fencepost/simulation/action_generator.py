"""The decisions of a seed: the frequencies of actions, and each step in its turn.

Every seed has habits of its own: it never does some things and does others often, because bugs hide
behind combinations that a fair mixture hardly ever makes. Most steps deliver a message. Some links
are stalled for a while, so that news of an election, say, reaches one broker long after the others.
"""

import random
from bisect import bisect
from collections.abc import Callable, Iterator
from functools import cache
from itertools import accumulate
from typing import Final

from fencepost.broker.metadata.image import NO_LEADER
from fencepost.broker.network.links import Link, NodeId
from fencepost.simulation.clients import REREADING_CLIENT
from fencepost.simulation.consumers.generator import ApplicationActions
from fencepost.simulation.environment import node_number, node_of
from fencepost.simulation.schedule import (
    ACKS_ALL,
    ACKS_LEADER,
    BACK,
    CLEAN,
    CONTROLLER_NUMBER,
    DONE,
    FAILS,
    FAULTS,
    LEAVE,
    STAY,
    TOPIC,
    UNCLEAN,
    Action,
    ActionKind,
)
from fencepost.simulation.setup import NO_CONSUMERS
from fencepost.simulation.transactions.generator import TransactionActions
from fencepost.simulation.world import World

_FENCES: Final = ("now", "now", "timeout", "never")
_TIMES_MS: Final = (1, 1_000, 1_000, 5_000, 10_000, 16_000, 31_000, 46_000)
"""Around ``replica.fetch.backoff.ms``, checkpoints, the session timeout, and the lag time."""
_STEADY: Final = {
    ActionKind.PRODUCE: 30,
    ActionKind.CONSUME: 14,
    ActionKind.LIST: 12,
    ActionKind.ADVANCE: 4,
}
_FAULTS: Final = {
    ActionKind.ELECT: 4,
    ActionKind.PREFER: 2,
    ActionKind.REASSIGN: 1,
    ActionKind.STOP: 1,
    ActionKind.KILL: 3,
    ActionKind.ISOLATE: 3,
    ActionKind.CUT: 2,
    ActionKind.HOLD: 2,
    ActionKind.HOLD_AT: 1,
    ActionKind.STEP: 2,
    ActionKind.DELETE: 1,
    ActionKind.ROLL: 1,
    ActionKind.SETTLE: 2,
}
_TIER: Final = {ActionKind.ROLL: 4, ActionKind.UPLOAD: 4, ActionKind.DELETE_LOCAL: 2}
_FAULTY: Final = (0, 0, 0, 2, 6)
"""How often followers meet faults."""
_ADMIN: Final = (0, 0, 1, 3)
"""How often administrators ask for leaders, and for configs."""
_EACH_SHARE: Final = 0.3
"""Of seeds with several partitions: in these one request is for all of them now and then."""
_EACH: Final = 20
_HELD_FOR_EACH: Final = 4
_SEGMENTS_MS: Final = (1, 1_000, 30_000, 604_800_000)
_REPAIRS: Final = {ActionKind.START: 6, ActionKind.REJOIN: 5, ActionKind.RELEASE: 4}
_UNCLEAN_SHARE_FOR_CONSUMERS: Final = 0.8
_ELECT_FOR_CONSUMERS: Final = 6
"""Consumers read what is committed, which elections by name take away at most."""
_REPAIRS_FOR_CONSUMERS: Final = 4
_RECORDS_FOR_CONSUMERS: Final = 2
_FAULTS_FOR_CONSUMERS: Final = 0.4
_ELECTED_FROM_HELD: Final = 0.6
_RISKY_SHARE: Final = 0.3
"""Of seeds that may lose data: by unclean elections, or disks."""


class ActionGenerator:
    """Throws one seed's actions, each in the light of what the ones before have led to."""

    def __init__(self, rng: random.Random, world: World) -> None:
        self.rng = rng
        self.world = world
        self._stalled: dict[NodeId, int] = {}
        """Nodes that no message reaches, and until which step."""
        self._step = 0
        self._delivers = rng.choice((0.6, 0.75, 0.85, 0.92))
        self._stalls = rng.choice((0.0, 0.01, 0.03))
        weights = {verb: weight * rng.choice((0.5, 1, 2)) for verb, weight in _STEADY.items()}
        weights |= {verb: weight * rng.choice((0, 0, 1, 2, 4)) for verb, weight in _FAULTS.items()}
        weights |= {verb: weight * rng.choice((0.5, 1, 2)) for verb, weight in _REPAIRS.items()}
        risky = rng.random() < _RISKY_SHARE
        weights[ActionKind.WIPE] = rng.choice((0, 1, 2)) if risky else 0
        # From chances of its own, so that seeds without faults do what they did before there were.
        weights[ActionKind.FAULT] = random.Random(f"faults {world.setup.seed}").choice(_FAULTY)
        tier = random.Random(f"tier {world.setup.seed}")
        self._stores = 0.0
        """How likely it is that the tier does something where it has something to do."""
        if world.setup.is_tiered:
            weights |= {verb: weight * tier.choice((1, 2)) for verb, weight in _TIER.items()}
            weights[ActionKind.EXPIRE] = tier.choice((0, 1, 2))
            weights[ActionKind.FORGET] = tier.choice((0, 0, 1))
            weights[ActionKind.LOSE] = tier.choice((0, 0, 1, 2))
            weights[ActionKind.WIPE] = max(weights[ActionKind.WIPE], tier.choice((0, 1, 2)))
            self._stores = tier.choice((0.15, 0.3, 0.5))
        self._fails = tier.choice((0.0, 0.0, 0.02, 0.1))
        """How likely it is that the tier fails to do it."""
        # As well from chances of its own.
        admin = random.Random(f"admin {world.setup.seed}")
        weights[ActionKind.ELECT_LEADERS] = admin.choice(_ADMIN)
        weights[ActionKind.CONFIGURE] = admin.choice(_ADMIN)
        self._suit_requests_for_all_partitions(weights)
        self.unclean_share = rng.choice((0, 0.3)) if risky else 0.0
        self.unclean_share *= not world.setup.has_transactions
        applications, transactions = ApplicationActions(world), TransactionActions(world)
        self._own = [each for each in (applications, transactions) if each.share]
        self.has_consumers = bool(applications.numbers)
        if self.has_consumers:
            self._suit_consumers(weights)
        transactions.suit(weights)
        self._verbs = list(weights)
        self._weights = list(accumulate(weights.values()))

    def _suit_requests_for_all_partitions(self, weights: dict[ActionKind, float]) -> None:
        """From chances of its own, too: requests that wait for one of their partitions.

        Where offsets are checked each request is of one partition.
        """
        setup = self.world.setup
        is_possible = setup.partitions > 1 and not setup.checks_offsets
        chance = random.Random(f"each {setup.seed}").random()
        if not is_possible or setup.consumers != NO_CONSUMERS or chance > _EACH_SHARE:
            weights[ActionKind.PRODUCE_EACH] = 0
            return
        weights[ActionKind.PRODUCE_EACH] = _EACH
        weights[ActionKind.HOLD] = max(weights[ActionKind.HOLD], _HELD_FOR_EACH)
        weights[ActionKind.KILL] = max(weights[ActionKind.KILL], _HELD_FOR_EACH)

    def _suit_consumers(self, weights: dict[ActionKind, float]) -> None:
        """More records, and more of what takes them away again."""
        weights[ActionKind.ELECT] = max(weights[ActionKind.ELECT], _ELECT_FOR_CONSUMERS)
        weights[ActionKind.HOLD] = max(weights[ActionKind.HOLD], _ELECT_FOR_CONSUMERS)
        weights[ActionKind.CONSUME] = 0
        weights[ActionKind.PRODUCE] *= _RECORDS_FOR_CONSUMERS
        for verb in (ActionKind.KILL, ActionKind.ISOLATE, ActionKind.CUT):
            weights[verb] *= _FAULTS_FOR_CONSUMERS
        weights[ActionKind.START] *= _REPAIRS_FOR_CONSUMERS
        weights[ActionKind.REJOIN] *= _REPAIRS_FOR_CONSUMERS
        self.unclean_share = max(self.unclean_share, _UNCLEAN_SHARE_FOR_CONSUMERS)

    def generate(self, steps: int) -> Iterator[Action]:
        """So many actions; each is to be performed before the next is asked for."""
        for self._step in range(steps):
            yield self._next()

    def _next(self) -> Action:
        rng = self.rng
        for own in self._own:
            action = own.next()
            if action is not None:
                return action
        if self._stores and self.world.object_store.pending and rng.random() < self._stores:
            return self._store()
        if rng.random() < self._delivers:
            action = self._deliver()
            if action is not None:
                return action
        if rng.random() < self._stalls:
            node = (CONTROLLER_NUMBER, *self.world.setup.broker_ids)[
                rng.randint(0, self.world.setup.brokers)
            ]
            self._stalled[node_of(node)] = self._step + rng.randint(20, 200)
        # As `random.choices` does, which takes a list of weights apart each time.
        at = bisect(self._weights, rng.random() * self._weights[-1], 0, len(self._verbs) - 1)
        verb = self._verbs[at]
        return _GENERATORS[verb](self, verb)

    def _deliver(self) -> Action | None:
        stalled, step = self._stalled, self._step
        links = [*self.world.network]
        if stalled:
            links = [link for link in links if stalled.get(link.target, 0) <= step]
        if not links:
            return None
        return _delivery(links[int(self.rng.random() * len(links))])

    def _store(self) -> Action:
        """One of the first that wait: the store has no order, and yet does not forget any."""
        rng = self.rng
        number = int(rng.random() * min(4, len(self.world.object_store.pending)))
        return Action(
            ActionKind.STORE, amount=number, how=FAILS if rng.random() < self._fails else DONE
        )

    # -- what actions are about -------------------------------------------------------------------

    def broker(self) -> int:
        """Any broker."""
        return self.rng.choice(self.world.setup.broker_ids)

    def partition(self) -> int:
        """Any partition."""
        return self.rng.randrange(self.world.setup.partitions)

    def replica(self) -> tuple[int, int]:
        """A partition and a broker that has a replica of it."""
        index = self.partition()
        partition = self.world.cluster.controller.image.topics[TOPIC].partitions[index]
        return index, self.rng.choice(partition.replicas)

    def leader(self) -> tuple[int, int]:
        """A partition and mostly its leader, as the controller knows it; at times another."""
        index, replica = self.replica()
        partition = self.world.cluster.controller.image.topics[TOPIC].partitions[index]
        if partition.leader == NO_LEADER or self.rng.random() < 0.25:
            return index, replica
        return index, partition.leader

    def held(self) -> tuple[int, int] | None:
        """A partition and a broker whose replica of it is held; None where there is none."""
        held = [
            (key[1], broker_id)
            for broker_id, broker in self.world.cluster.brokers.items()
            for key in broker.replica_manager.holds
            if key[0] == TOPIC
        ]
        return self.rng.choice(held) if held else None


# -- actions ----------------------------------------------------------------------------------


@cache
def _delivery(link: Link) -> Action:
    source, target = link
    return Action(ActionKind.DELIVER, broker=node_number(target), other=node_number(source))


def _produce(dice: ActionGenerator, verb: ActionKind) -> Action:
    index, broker = dice.leader()
    rng = dice.rng
    acks = ACKS_ALL if rng.random() < 0.7 else ACKS_LEADER
    return Action(verb, index, broker, amount=rng.choice((1, 1, 2, 3)), how=acks)


def _produce_each(dice: ActionGenerator, verb: ActionKind) -> Action:
    partitions = dice.world.cluster.controller.image.topics[TOPIC].partitions
    leaders = [p.leader for p in partitions if p.leader != NO_LEADER] or [dice.broker()]
    broker = max(leaders, key=leaders.count)
    return Action(verb, broker=broker, how=ACKS_ALL if dice.rng.random() < 0.7 else ACKS_LEADER)


def _of_client(dice: ActionGenerator, verb: ActionKind) -> Action:
    index, broker = dice.leader()
    clients = (1, 2, REREADING_CLIENT) if dice.world.setup.is_tiered else (1, 2)
    return Action(verb, index, broker, other=dice.rng.choice(clients))


def _at_leader(dice: ActionGenerator, verb: ActionKind) -> Action:
    index, broker = dice.leader()
    return Action(verb, index, broker)


def _advance(dice: ActionGenerator, verb: ActionKind) -> Action:
    return Action(verb, amount=dice.rng.choice(_TIMES_MS))


def _elect(dice: ActionGenerator, verb: ActionKind) -> Action:
    index, broker = dice.replica()
    if dice.has_consumers and dice.rng.random() < _ELECTED_FROM_HELD:
        index, broker = dice.held() or (index, broker)
    unclean = dice.rng.random() < dice.unclean_share
    return Action(verb, index, broker, how=UNCLEAN if unclean else CLEAN)


def _reassign(dice: ActionGenerator, verb: ActionKind) -> Action:
    rng, setup = dice.rng, dice.world.setup
    if rng.random() < 0.15:
        return Action(verb, dice.partition(), how=BACK)
    count = setup.replication_factor + rng.choice((-1, 0, 0, 0, 1))
    target = rng.sample(setup.broker_ids, min(setup.brokers, max(1, count)))
    return Action(verb, dice.partition(), how=",".join(map(str, target)))


def _via_broker(dice: ActionGenerator, verb: ActionKind) -> Action:
    return Action(verb, dice.partition(), dice.broker())


def _configure(dice: ActionGenerator, verb: ActionKind) -> Action:
    return Action(verb, broker=dice.broker(), amount=dice.rng.choice(_SEGMENTS_MS))


def _of_broker(dice: ActionGenerator, verb: ActionKind) -> Action:
    return Action(verb, broker=dice.broker())


def _fenced(dice: ActionGenerator, verb: ActionKind) -> Action:
    return Action(verb, broker=dice.broker(), how=dice.rng.choice(_FENCES))


def _cut(dice: ActionGenerator, verb: ActionKind) -> Action:
    one, other = dice.rng.sample(dice.world.setup.broker_ids, 2)
    return Action(verb, broker=one, other=other)


def _start(dice: ActionGenerator, verb: ActionKind) -> Action:
    return _one_of(
        dice, verb, [b for b in dice.world.cluster.brokers if not dice.world.is_running(b)]
    )


def _rejoin(dice: ActionGenerator, verb: ActionKind) -> Action:
    cluster = dice.world.cluster
    cut_off = [
        b.broker_id
        for b in cluster.brokers.values()
        if cluster.network.unreachable_nodes(b.broker_id)
    ]
    return _one_of(dice, verb, list[int](cut_off))


def _one_of(dice: ActionGenerator, verb: ActionKind, brokers: list[int]) -> Action:
    """The action on one of these brokers; where there is none, time passes instead."""
    if not brokers:
        return Action(ActionKind.ADVANCE, amount=1)
    return Action(verb, broker=dice.rng.choice(brokers))


def _of_replica(dice: ActionGenerator, verb: ActionKind) -> Action:
    index, broker = dice.replica()
    return Action(verb, index, broker)


def _hold(dice: ActionGenerator, verb: ActionKind) -> Action:
    index, broker = dice.replica()
    if dice.has_consumers:
        return Action(verb, index, broker, how=dice.rng.choice((STAY, LEAVE, LEAVE, LEAVE)))
    return Action(verb, index, broker, how=dice.rng.choice((STAY, STAY, LEAVE)))


def _hold_at(dice: ActionGenerator, verb: ActionKind) -> Action:
    index, broker = dice.replica()
    return Action(verb, index, broker, amount=dice.rng.randint(0, 6))


def _release(dice: ActionGenerator, verb: ActionKind) -> Action:
    held = dice.held()
    if held is None:
        return Action(ActionKind.ADVANCE, amount=1)
    return Action(verb, *held)


def _fault(dice: ActionGenerator, verb: ActionKind) -> Action:
    how = dice.rng.choice(FAULTS)
    return Action(verb, broker=dice.broker(), amount=dice.rng.choice((1, 1, 2, 5)), how=how)


def _of_partition(dice: ActionGenerator, verb: ActionKind) -> Action:
    return Action(verb, dice.partition())


def _plain(_dice: ActionGenerator, verb: ActionKind) -> Action:
    return Action(verb)


_GENERATORS: Final[dict[ActionKind, Callable[[ActionGenerator, ActionKind], Action]]] = {
    ActionKind.SETTLE: _plain,
    ActionKind.ADVANCE: _advance,
    ActionKind.PRODUCE: _produce,
    ActionKind.PRODUCE_EACH: _produce_each,
    ActionKind.CONSUME: _of_client,
    ActionKind.LIST: _of_client,
    ActionKind.COMMIT: _of_client,
    ActionKind.DELETE: _at_leader,
    ActionKind.ELECT: _elect,
    ActionKind.PREFER: _of_partition,
    ActionKind.REASSIGN: _reassign,
    ActionKind.ELECT_LEADERS: _via_broker,
    ActionKind.CONFIGURE: _configure,
    ActionKind.STOP: _of_broker,
    ActionKind.KILL: _fenced,
    ActionKind.START: _start,
    ActionKind.ISOLATE: _fenced,
    ActionKind.CUT: _cut,
    ActionKind.REJOIN: _rejoin,
    ActionKind.HOLD: _hold,
    ActionKind.HOLD_AT: _hold_at,
    ActionKind.RELEASE: _release,
    ActionKind.STEP: _of_replica,
    ActionKind.WIPE: _of_replica,
    ActionKind.ROLL: _of_partition,
    ActionKind.FAULT: _fault,
    ActionKind.UPLOAD: _of_partition,
    ActionKind.DELETE_LOCAL: _of_partition,
    ActionKind.EXPIRE: _of_partition,
    ActionKind.FORGET: _of_partition,
    ActionKind.LOSE: _of_partition,
}
