"""A simulated cluster with its clients, and what each action does to it."""

from contextlib import suppress
from typing import Final

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.scheduler import ManualClock, advance
from fencepost.broker.network.links import Link
from fencepost.broker.node import operator_actions
from fencepost.broker.node.cluster import Address, Cluster, ClusterOptions
from fencepost.simulation import invariants as must
from fencepost.simulation.actions import ACTIONS, CLIENT_ACTIONS
from fencepost.simulation.checker import ClusterChecker
from fencepost.simulation.clients import Clients
from fencepost.simulation.environment import (
    IN_MEMORY,
    RunEnvironment,
    SimulatedNetwork,
    SimulatedObjectStore,
)
from fencepost.simulation.invariants import require
from fencepost.simulation.producers import Producers
from fencepost.simulation.schedule import (
    ACKS_ALL,
    DONE,
    FROM_LAST,
    NEWEST_FETCH,
    TOPIC,
    Action,
    ActionKind,
    Setup,
)

MOST_MESSAGES: Final = 6_000
"""Ten times what a cluster of this size has to say at most without being asked anything new."""
_HEAL_ROUNDS: Final = 4
_HEAL_MS: Final = 31_000
"""Longer than any timer of the core that matters for healing."""
_COMPLETE_FIRST: Final = Action(ActionKind.STORE, how=DONE)
_TIERED_TOPIC: Final = {
    "remote.storage.enable": "true",
    "retention.bytes": "2500",
    "local.retention.bytes": "700",
}
"""Some thirty batches, and some ten of them in the local log."""
_CHECKING_TOPIC: Final = {"check.expected.offsets": "true"}
_TIERED: Final = {
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": "20000",
}
_CONFIGS: Final = {"log.cleaner.enable": "false", "log.cleaner.backoff.ms": "86400000"}


class World:
    """One cluster, with what watches it. Actions that make no sense in its state do nothing."""

    def __init__(self, setup: Setup, stage: RunEnvironment = IN_MEMORY) -> None:
        self.setup = setup
        self.clock = ManualClock()
        self.links = SimulatedNetwork()
        self.messages = 0
        """How many have arrived."""
        self.objects = SimulatedObjectStore()
        self.cluster: Cluster = Cluster(
            _options(setup, stage),
            self.clock,
            self.links.carry,
            data_dir=stage.data_dir,
            make_objects=lambda _scheduler: self.objects,
        )
        if stage.follow is not None:
            stage.follow(self.cluster)
        while (link := self.links.first()) is not None:
            self.links.deliver(link)
            self.cluster.scheduler.run_due()
        enough = min(setup.min_insync_replicas, setup.replication_factor)
        self.watch = ClusterChecker(
            self.cluster,
            enough_replicas=enough,
            objects=self.objects if setup.is_tiered else None,
        )
        self.watch.may_be_unclean = setup.unclean
        self.links.controller_speaks = self.watch.look_at_controller
        self.watch.look_at_all()
        self.clients = Clients(self.cluster, self.watch, setup, stage.ask)
        self.producers = Producers(self.cluster, self.watch, setup, stage)

    def perform(self, action: Action) -> None:
        """Take one step, and look at what came of it.

        :raises Broken: When an invariant does not hold any more.
        """
        if action.verb is ActionKind.DELIVER:
            self.deliver(Link(action.other, action.broker))
            return
        with suppress(ControllerError):  # refused: the action made no sense
            ACTIONS[action.verb](self, action)
        self.cluster.scheduler.run_due()
        if action.verb in CLIENT_ACTIONS:
            self.watch.look_at(action.broker)
            self.producers.check_acknowledged()
        else:
            self.look()

    def heal(self) -> None:
        """Mend everything, let time pass, and check that the cluster is as good as new.

        :raises Broken: When it is not.
        """
        self.cluster.faults.remove_all()
        operator_actions.restore(self.cluster)
        self.look()
        for _ in range(_HEAL_ROUNDS):
            self.settle()
            self.advance(_HEAL_MS)
        self.settle()
        self.watch.look_at_the_end()
        for index, partition in enumerate(self.cluster.controller.image.topics[TOPIC].partitions):
            self.producers.produce(index, partition.leader, ACKS_ALL, 1)
            self.look()
            self.settle()
            refused = self.producers.refused
            require(must.healed_partitions_take_records, index, refused.name if refused else None)

    # -- steps ----------------------------------------------------------------------------------

    def deliver(self, link: Link) -> None:
        """Let the oldest message of a link arrive; nothing where there is none."""
        self.watch.via = link
        if self.links.deliver(link):
            self.messages += 1
            self.cluster.scheduler.run_due()
            self.watch.look(link)
            self.producers.check_acknowledged()
        self.watch.via = None

    def settle(self) -> None:
        """Let messages arrive until there are no more."""
        count = 0
        while (link := self.links.first()) is not None or self.objects.waiting:
            count += 1
            require(must.messages_come_to_an_end, count, MOST_MESSAGES)
            if link is not None:
                self.deliver(link)
            else:
                self.perform(_COMPLETE_FIRST)

    def advance(self, by_ms: int) -> None:
        """Let time pass, and what is due by then happen."""
        advance(self.cluster.scheduler, self.clock, by_ms)
        self.look()

    def look(self) -> None:
        """See what has changed, and whether all of it is right."""
        self.watch.look_at_all()
        self.producers.check_acknowledged()

    def runs(self, broker_id: int) -> bool:
        """Whether there is such a broker, and it runs."""
        broker = self.cluster.brokers.get(broker_id)
        return broker is not None and broker.running


def _options(setup: Setup, stage: RunEnvironment) -> ClusterOptions:
    count = setup.brokers
    configs = {**_CONFIGS, **stage.configs}
    if setup.unclean:
        configs["unclean.leader.election.enable"] = "true"
    if setup.is_tiered:
        configs |= _TIERED
    if setup.tier == FROM_LAST:
        configs["follower.fetch.last.tiered.offset.enable"] = "true"
    topic = NewTopic(
        name=TOPIC,
        assignments=tuple(
            tuple((first + n) % count + 1 for n in range(setup.replication_factor))
            for first in range(setup.partitions)
        ),
        configs={
            "min.insync.replicas": str(setup.min_insync_replicas),
            **(_TIERED_TOPIC if setup.is_tiered else {}),
            **(_CHECKING_TOPIC if setup.checks_offsets else {}),
            **stage.topic_configs,
        },
    )
    return ClusterOptions(
        addresses=tuple(
            Address(host="127.0.0.1", port=9091 + n, advertised_host=f"broker-{n}")
            for n in range(1, count + 1)
        ),
        topics=(topic,),
        configs=configs,
        api_max={} if setup.fetch_version >= NEWEST_FETCH else {"fetch": setup.fetch_version},
        seed=setup.seed,
    )
