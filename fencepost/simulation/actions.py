"""What each action does to a simulated cluster. One that makes no sense there does nothing."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from fencepost.broker import steering
from fencepost.broker.faults import rules
from fencepost.broker.faults.rules import Rule
from fencepost.broker.fence import Fence
from fencepost.broker.tiering import steering as tiering
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.errors import ErrorCode
from fencepost.simulation.schedule import BACK, FAILS, FAULTS, LEAVE, TOPIC, UNCLEAN, Action, Verb

if TYPE_CHECKING:
    from fencepost.simulation.world import World

FIRST_FETCH_WITH_REGISTRATION: Final = 15


def _serves(world: "World", action: Action) -> bool:
    return world.runs(action.broker) and action.partition < world.setup.partitions


# -- what clients do --------------------------------------------------------------------------


def _produce(world: "World", action: Action) -> None:
    if _serves(world, action):
        world.producers.produce(action.partition, action.broker, action.how, action.amount)


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
        world.clients.delete(action.partition, action.broker)
        world.watch.see_deletion(action.broker, action.partition)


# -- what happens to brokers ------------------------------------------------------------------


def _reassign(world: "World", action: Action) -> None:
    if action.partition < world.setup.partitions:
        back = action.how == BACK
        target = None if back else tuple(map(int, action.how.split(",")))
        world.clients.reassign(action.partition, target)


def _kill(world: "World", action: Action) -> None:
    steering.kill(world.cluster, action.broker, Fence(action.how))


def _isolate(world: "World", action: Action) -> None:
    steering.isolate(world.cluster, action.broker, from_controller=True, fence=Fence(action.how))


def _cut(world: "World", action: Action) -> None:
    steering.isolate(world.cluster, action.broker, brokers=[action.other])


# -- what happens to replicas -----------------------------------------------------------------


def _elect(world: "World", action: Action) -> None:
    unclean = action.how == UNCLEAN
    world.watch.may_be_unclean = unclean or world.setup.unclean
    try:
        steering.elect(world.cluster, TOPIC, action.partition, action.broker, unclean=unclean)
        world.look()
    finally:
        world.watch.may_be_unclean = world.setup.unclean


def _prefer(world: "World", action: Action) -> None:
    controller = world.cluster.controller
    preferred = controller.partition(TOPIC, action.partition).replicas[0]
    steering.elect(world.cluster, TOPIC, action.partition, preferred)


def _hold(world: "World", action: Action) -> None:
    leave = action.how == LEAVE
    steering.hold(world.cluster, TOPIC, action.partition, action.broker, leave_isr=leave)


def _hold_at(world: "World", action: Action) -> None:
    broker = world.cluster.brokers.get(action.broker)
    replica = None if broker is None else broker.replicas.get((TOPIC, action.partition))
    if replica is not None:
        at = replica.log.log_end_offset + action.amount
        steering.hold(world.cluster, TOPIC, action.partition, action.broker, at)


def _wipe(world: "World", action: Action) -> None:
    index, broker_id = action.partition, action.broker
    partition = world.cluster.controller.partition(TOPIC, index)
    informed = world.runs(broker_id) and world.watch.is_fully_informed(broker_id)
    if broker_id in partition.replicas and informed:
        knows = world.setup.fetch_version >= FIRST_FETCH_WITH_REGISTRATION
        world.watch.before_wipe(broker_id, index, knows_registrations=knows)
        steering.wipe(world.cluster, TOPIC, index, broker_id)


def _fault(world: "World", action: Action) -> None:
    corrupt = action.how == "corrupt"
    for api in _ASKED_BY_FOLLOWERS[:1] if corrupt else _ASKED_BY_FOLLOWERS:
        world.cluster.faults.add(
            Rule(
                api=api,
                action=_FAULTS[action.how],
                client_id=f"broker-{action.broker}-fetcher-0",
                count=max(1, action.amount),
            )
        )


# -- what happens to the tier -------------------------------------------------------------------


def _store(world: "World", action: Action) -> None:
    world.objects.carry_out(action.amount, fails=action.how == FAILS)


def _upload(world: "World", action: Action) -> None:
    tiering.upload(world.cluster, TOPIC, action.partition, _unheard)


def _delete_local(world: "World", action: Action) -> None:
    tiering.delete_local(world.cluster, TOPIC, action.partition, _unheard)


def _expire(world: "World", action: Action) -> None:
    tiering.expire(world.cluster, TOPIC, action.partition, _unheard)


def _forget(world: "World", action: Action) -> None:
    tiering.forget(world.cluster, TOPIC, action.partition, _unheard)


def _lose(world: "World", action: Action) -> None:
    if action.partition < world.setup.partitions:
        world.watch.lose_tier(action.partition)


def _unheard(_answer: object) -> None:
    """What comes of it is seen."""


_ASKED_BY_FOLLOWERS: Final = tuple(
    BY_NAME[name] for name in ("fetch", "offset_for_leader_epoch", "list_offsets")
)
_FAULTS: Final[dict[str, rules.Action]] = dict(
    zip(
        FAULTS,
        (
            rules.Refuse(ErrorCode.KAFKA_STORAGE_ERROR),
            rules.Refuse(ErrorCode.REQUEST_TIMED_OUT),
            rules.Delay(1_500),
            rules.Disconnect(rules.When.BEFORE),
            rules.Disconnect(rules.When.AFTER),
            rules.Drop(),
            rules.Corrupt(),
        ),
        strict=True,
    )
)

BY_CLIENTS: Final = frozenset({Verb.PRODUCE, Verb.CONSUME, Verb.LIST, Verb.DELETE})
"""What changes one broker's replicas at most."""
_Does = Callable[["World", Action], object]
DOES: Final[dict[Verb, _Does]] = {
    Verb.SETTLE: lambda world, _: world.settle(),
    Verb.ADVANCE: lambda world, action: world.advance(action.amount),
    Verb.PRODUCE: _produce,
    Verb.CONSUME: _consume,
    Verb.LIST: _list,
    Verb.COMMIT: _commit,
    Verb.DELETE: _delete,
    Verb.ELECT: _elect,
    Verb.PREFER: _prefer,
    Verb.REASSIGN: _reassign,
    Verb.STOP: lambda world, action: steering.stop(world.cluster, action.broker),
    Verb.KILL: _kill,
    Verb.START: lambda world, action: steering.start(world.cluster, action.broker),
    Verb.ISOLATE: _isolate,
    Verb.CUT: _cut,
    Verb.REJOIN: lambda world, action: steering.rejoin(world.cluster, action.broker),
    Verb.HOLD: _hold,
    Verb.HOLD_AT: _hold_at,
    Verb.RELEASE: lambda world, action: steering.release(
        world.cluster, TOPIC, action.partition, action.broker
    ),
    Verb.STEP: lambda world, action: steering.step(
        world.cluster, TOPIC, action.partition, action.broker
    ),
    Verb.WIPE: _wipe,
    Verb.ROLL: lambda world, action: steering.roll(world.cluster, TOPIC, action.partition),
    Verb.FAULT: _fault,
    Verb.STORE: _store,
    Verb.UPLOAD: _upload,
    Verb.DELETE_LOCAL: _delete_local,
    Verb.EXPIRE: _expire,
    Verb.FORGET: _forget,
    Verb.LOSE: _lose,
}
