"""A simulated cluster with its clients, and what each action does to it."""

from typing import Final, TypeVar

from fencepost.broker.controller.auto_topic_creation import create_internal_topic
from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.scheduler import ManualClock, advance
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups.group_coordinator import OFFSETS_TOPIC
from fencepost.broker.metadata.image import TRANSACTION_TOPIC, Address
from fencepost.broker.network.links import BrokerId, ControllerEndpoint, ControllerRequest, Link
from fencepost.broker.node import operator_actions
from fencepost.broker.node.cluster import Cluster, ClusterOptions
from fencepost.protocol.codec.drafts import KIP_320_DRAFT
from fencepost.simulation import invariants as must
from fencepost.simulation.actions import ACTIONS, APPLICATION_ACTIONS, CLIENT_ACTIONS
from fencepost.simulation.checker import ClusterChecker
from fencepost.simulation.clients import Clients
from fencepost.simulation.consumers.applications import FINAL_ROUNDS, Applications
from fencepost.simulation.environment import (
    IN_MEMORY,
    RunEnvironment,
    SimulatedNetwork,
    SimulatedObjectStore,
    link_of,
    reached_brokers,
)
from fencepost.simulation.invariants import require
from fencepost.simulation.producers import Producers
from fencepost.simulation.schedule import (
    ACKS_ALL,
    DONE,
    TOPIC,
    Action,
    ActionKind,
)
from fencepost.simulation.setup import (
    DRAFT_CONSUMERS,
    FROM_LAST,
    NEWEST_FETCH,
    NO_CONSUMERS,
    Setup,
)
from fencepost.simulation.transactions.used_up_epochs import use_up_epochs
from fencepost.simulation.transactions.workload import (
    EXPIRATION_CONFIGS,
    TRANSACTION_CONFIGS,
    Transactions,
)

MOST_MESSAGES: Final = 6_000
"""Ten times what a cluster of this size has to say at most without being asked anything new."""
_HEAL_ROUNDS: Final = 4
_HEAL_MS: Final = 31_000
"""Longer than any timer of the core that matters for healing."""
_POLL_MS: Final = 1_000
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
_OFFSETS_REPLICAS: Final = 3
_CONSUMERS: Final = {"offsets.topic.num.partitions": "1"}
_CONFIGS: Final = {"log.cleaner.enable": "false", "log.cleaner.backoff.ms": "86400000"}


R = TypeVar("R")


class CheckedController:
    """The controller as an end of links, whose checker sees what it answers."""

    def __init__(self, controller: ControllerEndpoint, checker: ClusterChecker) -> None:
        self._controller = controller
        self._checker = checker

    def handle(self, request: ControllerRequest[R]) -> R | Wait[R]:
        """Answer a broker, and check each image that it makes."""
        self._checker.current_request = request
        try:
            return self._controller.handle(request)
        finally:
            self._checker.current_request = None


class World:
    """One cluster, with what watches it. Actions that make no sense in its state do nothing."""

    def __init__(self, setup: Setup, stage: RunEnvironment = IN_MEMORY) -> None:
        self.setup = setup
        self.clock = ManualClock()
        self.network = SimulatedNetwork()
        self.messages = 0
        """How many have arrived."""
        self.object_store = SimulatedObjectStore()
        self.cluster: Cluster = Cluster(
            _options(setup, stage),
            self.clock,
            self.network.send,
            make_persistence=stage.make_persistence,
            make_objects=lambda _scheduler: self.object_store,
        )
        if stage.observe is not None:
            stage.observe(self.cluster)
        self._deliver_unseen()
        if setup.has_transactions:
            for internal in (TRANSACTION_TOPIC, OFFSETS_TOPIC):
                create_internal_topic(self.cluster.brokers[BrokerId(setup.first_id)], internal)
            self._deliver_unseen()
        if setup.few_epochs:
            use_up_epochs(self.cluster, setup.seed, self._deliver_unseen)
        enough = min(setup.min_insync_replicas, setup.replication_factor)
        self.checker = ClusterChecker(
            self.cluster,
            enough_replicas=enough,
            objects=self.object_store if setup.is_tiered else None,
        )
        self.checker.allows_unclean = setup.unclean
        self.cluster.network.observe = self.checker.watching(self.cluster.network.observe)
        self.network.on_controller_send = self.checker.check_controller
        self.cluster.network.attach_controller(
            CheckedController(self.cluster.controller_apis, self.checker)
        )
        self.checker.check_all()
        self.clients = Clients(self.cluster, self.checker, setup, stage.send)
        self.producers = Producers(self.cluster, self.checker, setup, stage)
        self.applications: Applications = Applications(
            self.cluster, self.checker, setup, stage.send
        )
        self.transactions: Transactions = Transactions(
            self.cluster, self.checker, setup, stage.send
        )

    def _deliver_unseen(self) -> None:
        """Let messages arrive until none is left, before there is anything to check."""
        while (link := self.network.first()) is not None:
            self.network.deliver(link)
            self.cluster.scheduler.run_due()

    def perform(self, action: Action) -> None:
        """Take one step, and look at what came of it.

        :raises InvariantViolation: When an invariant does not hold any more.
        """
        if action.kind is ActionKind.DELIVER:
            self.deliver(link_of(action.other, action.broker))
            return
        has_succeeded = self._attempt(action)
        self.cluster.scheduler.run_due()
        if action.kind is ActionKind.ADVANCE and has_succeeded:
            return  # it has looked, and nothing was due any more
        if action.kind in APPLICATION_ACTIONS:
            self.producers.check_answers()
        elif action.kind in CLIENT_ACTIONS:
            self.checker.check_broker(action.broker)
            self.producers.check_answers()
            self.transactions.check()
        else:
            self.check()

    def _attempt(self, action: Action) -> bool:
        """Do what an action says; whether it made any sense, or was refused."""
        try:
            ACTIONS[action.kind](self, action)
        except ControllerError:
            return False
        return True

    def heal(self) -> None:
        """Mend everything, let time pass, and check that the cluster is as good as new.

        :raises InvariantViolation: When it is not.
        """
        self.cluster.faults.remove_all()
        operator_actions.restore(self.cluster)
        self.check()
        for _ in range(_HEAL_ROUNDS):
            self.settle()
            self.advance(_HEAL_MS)
        self.settle()
        while self.transactions.may_be_open():
            self.advance(_HEAL_MS)
            self.settle()
        self.checker.check_healed()
        for index, partition in enumerate(self.cluster.controller.image.topics[TOPIC].partitions):
            self.producers.produce(index, partition.leader, ACKS_ALL, 1)
            self.check()
            self.settle()
            refused = self.producers.last_error
            require(must.healed_partitions_take_records, index, refused.name if refused else None)
        while self.transactions.read_on():
            self.settle()
        self.transactions.check_healed()
        self._read_to_the_end()

    def _read_to_the_end(self) -> None:
        """Have all consumers read what there is."""
        for _ in range(FINAL_ROUNDS):
            if self.applications.is_done():
                return
            self.applications.poll_all()
            self.settle()
            self.advance(_POLL_MS)
        self.applications.check_done()

    # -- steps ----------------------------------------------------------------------------------

    def deliver(self, link: Link) -> None:
        """Let the oldest message of a link arrive; nothing where there is none."""
        self.checker.current_link, self.checker.current_api = link, None
        has_arrived = self.network.deliver(link)
        if has_arrived is not None:
            self.messages += 1
            self.cluster.scheduler.run_due()
            self.checker.check_link(link, has_arrived=has_arrived)
            self.producers.check_answers()
            self.transactions.check(reached_brokers(link, has_arrived=has_arrived))
        self.checker.current_link = None

    def settle(self) -> None:
        """Let messages arrive until there are no more."""
        count = 0
        while (link := self.network.first()) is not None or self.object_store.pending:
            count += 1
            if count > MOST_MESSAGES:
                require(must.messages_come_to_an_end, count, MOST_MESSAGES)
            if link is not None:
                self.deliver(link)
            else:
                self.perform(_COMPLETE_FIRST)

    def advance(self, by_ms: int) -> None:
        """Let time pass, and what is due by then happen."""
        before_ms = self.clock.now_ms()
        advance(self.cluster.scheduler, self.clock, by_ms)
        self.check()
        self.checker.check_time(before_ms)

    def check(self) -> None:
        """See what has changed, and whether all of it is right."""
        self.checker.check_all()
        self.producers.check_answers()
        self.transactions.check()

    def is_running(self, broker_id: int) -> bool:
        """Whether there is such a broker, and it runs."""
        broker = self.cluster.brokers.get(broker_id)
        return broker is not None and broker.running


def _options(setup: Setup, stage: RunEnvironment) -> ClusterOptions:
    ids = setup.broker_ids
    configs = {**_CONFIGS, **stage.configs}
    if setup.unclean:
        configs["unclean.leader.election.enable"] = "true"
    if not setup.gate:
        configs["list.offsets.gate"] = "off"
    if setup.is_tiered:
        configs |= _TIERED
    if setup.consumers != NO_CONSUMERS:
        factor = min(_OFFSETS_REPLICAS, setup.brokers)
        configs |= {**_CONSUMERS, "offsets.topic.replication.factor": str(factor)}
    if setup.has_transactions:
        configs |= TRANSACTION_CONFIGS
    if setup.expires:
        configs |= EXPIRATION_CONFIGS
    if setup.tier == FROM_LAST:
        configs["follower.fetch.last.tiered.offset.enable"] = "true"
    topic = NewTopic(
        name=TOPIC,
        assignments=tuple(
            tuple(ids[(first + n) % len(ids)] for n in range(setup.replication_factor))
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
            Address(host="127.0.0.1", port=9092 + n, advertised_host=f"broker-{broker_id}")
            for n, broker_id in enumerate(ids)
        ),
        broker_ids=tuple(ids),
        topics=(topic,),
        configs=configs,
        api_max={} if setup.fetch_version >= NEWEST_FETCH else {"fetch": setup.fetch_version},
        seed=setup.seed,
        dialect=KIP_320_DRAFT if setup.consumers == DRAFT_CONSUMERS else None,
    )
