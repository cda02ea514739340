"""What each action does to a simulated cluster. One that makes no sense there does nothing."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from fencepost.broker.controller import Fence
from fencepost.broker.faults import kinds
from fencepost.broker.faults.rules import FaultRule
from fencepost.broker.faults.selectors import Apis
from fencepost.broker.groups.group_coordinator import OFFSETS_TOPIC
from fencepost.broker.metadata.image import TRANSACTION_TOPIC
from fencepost.broker.node import operator_actions
from fencepost.broker.node import tier_actions as tiering
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.errors import ErrorCode
from fencepost.simulation.schedule import (
    BACK,
    COMMITS,
    FAILS,
    FAULTS,
    HEED,
    LATE,
    LEAVE,
    LOST,
    STABLE,
    TOPIC,
    UNCLEAN,
    Action,
    ActionKind,
)

if TYPE_CHECKING:
    from fencepost.simulation.world import World

FIRST_FETCH_WITH_REGISTRATION: Final = 15
SEGMENT_MS: Final = "segment.ms"


def _serves(world: "World", action: Action) -> bool:
    return world.is_running(action.broker) and action.partition < world.setup.partitions


# -- what clients do --------------------------------------------------------------------------


def _produce(world: "World", action: Action) -> None:
    if _serves(world, action):
        world.producers.produce(action.partition, action.broker, action.how, action.amount)


def _produce_each(world: "World", action: Action) -> None:
    # Where offsets are checked a mismatch of one partition would refuse them all (KIP-27).
    if world.is_running(action.broker) and not world.setup.checks_offsets:
        world.producers.produce_each(action.broker, action.how)


def _consume(world: "World", action: Action) -> None:
    if _serves(world, action):
        world.clients.consume(action.other, action.partition, action.broker)


def _list(world: "World", action: Action) -> None:
    if _serves(world, action):
        world.clients.list_latest(action.other, action.partition, action.broker)


def _commit(world: "World", action: Action) -> None:
    if _serves(world, action):
        world.clients.commit(action.other, action.partition, action.broker)


def _delete(world: "World", action: Action) -> None:
    if _serves(world, action):
        world.checker.before_deletion(action.broker, action.partition)
        world.clients.delete(action.partition, action.broker)


# -- what administrators ask for ---------------------------------------------------------------


def _reassign(world: "World", action: Action) -> None:
    if action.partition < world.setup.partitions:
        back = action.how == BACK
        target = None if back else tuple(map(int, action.how.split(",")))
        world.clients.reassign(action.partition, target)


def _elect_leaders(world: "World", action: Action) -> None:
    if _serves(world, action):
        world.clients.elect_preferred(action.partition, action.broker)


def _configure(world: "World", action: Action) -> None:
    if world.is_running(action.broker):
        world.clients.configure(SEGMENT_MS, str(action.amount), action.broker)


# -- what happens to brokers ------------------------------------------------------------------


def _kill(world: "World", action: Action) -> None:
    operator_actions.kill(world.cluster, action.broker, Fence(action.how))


def _isolate(world: "World", action: Action) -> None:
    operator_actions.isolate(
        world.cluster, action.broker, from_controller=True, fence=Fence(action.how)
    )


def _cut(world: "World", action: Action) -> None:
    operator_actions.isolate(world.cluster, action.broker, brokers=[action.other])


# -- what happens to replicas -----------------------------------------------------------------


def _elect(world: "World", action: Action) -> None:
    unclean = action.how == UNCLEAN
    world.checker.allows_unclean = unclean or world.setup.unclean
    try:
        operator_actions.elect(
            world.cluster, TOPIC, action.partition, action.broker, unclean=unclean
        )
        world.check()
    finally:
        world.checker.allows_unclean = world.setup.unclean


def _prefer(world: "World", action: Action) -> None:
    controller = world.cluster.controller
    preferred = controller.partition(TOPIC, action.partition).replicas[0]
    operator_actions.elect(world.cluster, TOPIC, action.partition, preferred)


def _hold(world: "World", action: Action) -> None:
    leave = action.how == LEAVE
    operator_actions.hold(world.cluster, TOPIC, action.partition, action.broker, leave_isr=leave)


def _hold_at(world: "World", action: Action) -> None:
    broker = world.cluster.brokers.get(action.broker)
    replica = None if broker is None else broker.replicas.get((TOPIC, action.partition))
    if replica is not None:
        at = replica.log.log_end_offset + action.amount
        operator_actions.hold(world.cluster, TOPIC, action.partition, action.broker, at)


def _wipe(world: "World", action: Action) -> None:
    index, broker_id = action.partition, action.broker
    partition = world.cluster.controller.partition(TOPIC, index)
    informed = world.is_running(broker_id) and world.checker.is_fully_informed(broker_id)
    if broker_id in partition.replicas and informed:
        knows = world.setup.fetch_version >= FIRST_FETCH_WITH_REGISTRATION
        world.checker.before_wipe(broker_id, index, knows_registrations=knows)
        operator_actions.wipe(world.cluster, TOPIC, index, broker_id)


def _fault(world: "World", action: Action) -> None:
    corrupt = action.how == "corrupt"
    for api in _FOLLOWER_APIS[:1] if corrupt else _FOLLOWER_APIS:
        world.cluster.faults.add(
            FaultRule(
                api=Apis((api,)),
                action=_FAULTS[action.how],
                client_id=f"broker-{action.broker}-fetcher-0",
                count=max(1, action.amount),
            )
        )


# -- what happens to the tier -------------------------------------------------------------------


def _store(world: "World", action: Action) -> None:
    world.object_store.complete(action.amount, fails=action.how == FAILS)


def _upload(world: "World", action: Action) -> None:
    tiering.upload(world.cluster, TOPIC, action.partition, _ignore_answer)


def _delete_local(world: "World", action: Action) -> None:
    tiering.delete_local(world.cluster, TOPIC, action.partition, _ignore_answer)


def _expire(world: "World", action: Action) -> None:
    tiering.expire(world.cluster, TOPIC, action.partition, _ignore_answer)


def _forget(world: "World", action: Action) -> None:
    tiering.forget(world.cluster, TOPIC, action.partition, _ignore_answer)


def _lose(world: "World", action: Action) -> None:
    if action.partition < world.setup.partitions:
        world.checker.lose_tier(action.partition)


def _ignore_answer(_answer: object) -> None:
    """The checker sees the effect."""


_FOLLOWER_APIS: Final = tuple(
    BY_NAME[name] for name in ("fetch", "offset_for_leader_epoch", "list_offsets")
)
_FAULTS: Final[dict[str, kinds.Action]] = dict(
    zip(
        FAULTS,
        (
            kinds.Refuse(ErrorCode.KAFKA_STORAGE_ERROR),
            kinds.Refuse(ErrorCode.REQUEST_TIMED_OUT),
            kinds.Delay(1_500),
            kinds.Disconnect(kinds.DisconnectWhen.BEFORE),
            kinds.Disconnect(kinds.DisconnectWhen.AFTER),
            kinds.Drop(),
            kinds.Corrupt(),
        ),
        strict=True,
    )
)

APPLICATION_ACTIONS: Final = frozenset(
    {ActionKind.POLL, ActionKind.CARRY, ActionKind.SAVE, ActionKind.RESTART}
)
"""What applications do; what changes at brokers is looked at there."""
CLIENT_ACTIONS: Final = frozenset(
    {
        ActionKind.PRODUCE,
        ActionKind.PRODUCE_EACH,
        ActionKind.CONSUME,
        ActionKind.LIST,
        ActionKind.DELETE,
    }
)
"""What changes one broker's replicas at most."""
TRANSACTION_ACTIONS: Final = frozenset(
    {
        ActionKind.INIT,
        ActionKind.SEND,
        ActionKind.ARRIVE,
        ActionKind.END,
        ActionKind.READ,
        ActionKind.COMMIT_OFFSET,
        ActionKind.FETCH_OFFSET,
        ActionKind.ELECT_COORDINATOR,
        ActionKind.WIPE_COORDINATOR,
        ActionKind.ELECT_GROUP_COORDINATOR,
        ActionKind.WIPE_GROUP_COORDINATOR,
    }
)
"""What seeds with transactions do besides."""
_Performer = Callable[["World", Action], object]
ACTIONS: Final[dict[ActionKind, _Performer]] = {
    ActionKind.SETTLE: lambda world, _: world.settle(),
    ActionKind.ADVANCE: lambda world, action: world.advance(action.amount),
    ActionKind.PRODUCE: _produce,
    ActionKind.PRODUCE_EACH: _produce_each,
    ActionKind.CONSUME: _consume,
    ActionKind.LIST: _list,
    ActionKind.COMMIT: _commit,
    ActionKind.DELETE: _delete,
    ActionKind.ELECT: _elect,
    ActionKind.PREFER: _prefer,
    ActionKind.REASSIGN: _reassign,
    ActionKind.ELECT_LEADERS: _elect_leaders,
    ActionKind.CONFIGURE: _configure,
    ActionKind.STOP: lambda world, action: operator_actions.stop(world.cluster, action.broker),
    ActionKind.KILL: _kill,
    ActionKind.START: lambda world, action: operator_actions.start(world.cluster, action.broker),
    ActionKind.ISOLATE: _isolate,
    ActionKind.CUT: _cut,
    ActionKind.REJOIN: lambda world, action: operator_actions.rejoin(world.cluster, action.broker),
    ActionKind.HOLD: _hold,
    ActionKind.HOLD_AT: _hold_at,
    ActionKind.RELEASE: lambda world, action: operator_actions.release(
        world.cluster, TOPIC, action.partition, action.broker
    ),
    ActionKind.STEP: lambda world, action: operator_actions.step(
        world.cluster, TOPIC, action.partition, action.broker
    ),
    ActionKind.WIPE: _wipe,
    ActionKind.ROLL: lambda world, action: operator_actions.roll(
        world.cluster, TOPIC, action.partition
    ),
    ActionKind.FAULT: _fault,
    ActionKind.STORE: _store,
    ActionKind.UPLOAD: _upload,
    ActionKind.DELETE_LOCAL: _delete_local,
    ActionKind.EXPIRE: _expire,
    ActionKind.FORGET: _forget,
    ActionKind.LOSE: _lose,
    ActionKind.POLL: lambda world, action: world.applications.poll(
        action.other, heeds=action.how == HEED
    ),
    ActionKind.CARRY: lambda world, action: world.applications.carry(
        action.other, action.amount, is_lost=action.how == LOST
    ),
    ActionKind.SAVE: lambda world, action: world.applications.save(action.other),
    ActionKind.RESTART: lambda world, action: world.applications.restart(action.other),
    ActionKind.INIT: lambda world, action: world.transactions.init(action.other, action.broker),
    ActionKind.SEND: lambda world, action: world.transactions.send(
        action.other, action.partition, action.broker, is_late=action.how == LATE
    ),
    ActionKind.ARRIVE: lambda world, action: world.transactions.arrive(action.other),
    ActionKind.END: lambda world, action: world.transactions.end(
        action.other, action.broker, commits=action.how == COMMITS
    ),
    ActionKind.READ: lambda world, action: world.transactions.read(
        action.other, action.partition, action.broker
    ),
    ActionKind.COMMIT_OFFSET: lambda world, action: world.transactions.commit_offset(
        action.other, action.partition, action.broker
    ),
    ActionKind.FETCH_OFFSET: lambda world, action: world.transactions.fetch_offset(
        action.other, action.partition, action.broker, is_stable=action.how == STABLE
    ),
    ActionKind.ELECT_COORDINATOR: lambda world, action: world.transactions.elect_coordinator(
        TRANSACTION_TOPIC, action.partition, action.broker
    ),
    ActionKind.WIPE_COORDINATOR: lambda world, action: world.transactions.wipe_coordinator(
        TRANSACTION_TOPIC, action.partition, action.broker
    ),
    ActionKind.ELECT_GROUP_COORDINATOR: lambda world, action: world.transactions.elect_coordinator(
        OFFSETS_TOPIC, action.partition, action.broker
    ),
    ActionKind.WIPE_GROUP_COORDINATOR: lambda world, action: world.transactions.wipe_coordinator(
        OFFSETS_TOPIC, action.partition, action.broker
    ),
}
