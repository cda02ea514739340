"""The verbs on the remote tier (KIP-405).

Operations of the tier take time: these verbs wait for them, while the cluster goes on serving. An
operation that has begun goes on when the client closes its connection.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, TypeAlias, TypeVar, assert_never

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.events import Event, Kind
from fencepost.broker.faults.remote_storage import RemoteFault, RemoteFaultRule, RemoteOperation
from fencepost.broker.node import tier_actions
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.server.server import Server
from fencepost.control.cluster_state import remote_segment_state, remote_state
from fencepost.control.routing import listening, serves
from fencepost.protocol.errors import ErrorCode
from fencepost.storage.tier.object_store import TierError
from fencepost.verbs.answers import Done
from fencepost.verbs.answers.faults import TierFaultState
from fencepost.verbs.answers.topics import LocalDeletion, RemoteSegmentState, RemoteState, TierState
from fencepost.verbs.bodies import TierBody, TierFaultBody

T = TypeVar("T")
Action: TypeAlias = Literal["upload", "delete-local", "expire", "forget", "lose"]


async def run_tier_action(cluster: Cluster, topic: str, index: int, action: Action) -> TierState:
    """Carry out an action on a partition's tier and answer its effect.

    ``forget`` removes segments from the leader's view of the tier, for tests of the state "the
    leader does not know yet" of KIP-1023. ``lose`` removes objects from the tier itself.

    :raises ControllerError: When it is refused, with Kafka's code and message.
    """
    broker, leader = tier_actions.find_leader(cluster, topic, index)
    deleted: Sequence[tier_actions.DeletedSegments] = ()
    lost = 0

    def is_of_partition(event: Event) -> bool:
        return (event.topic, event.partition) == (topic, index)

    with listening(cluster.events.listeners, is_of_partition) as received:
        match action:
            case "upload":
                await _completed(lambda then: tier_actions.upload(cluster, topic, index, then))
            case "expire":
                await _completed(lambda then: tier_actions.expire(cluster, topic, index, then))
            case "forget":
                await _completed(lambda then: tier_actions.forget(cluster, topic, index, then))
            case "lose":
                lost = await _answered(lambda then: tier_actions.lose(cluster, topic, index, then))
            case "delete-local":
                deleted = await _answered(
                    lambda then: tier_actions.delete_local(cluster, topic, index, then)
                )
            case _:
                assert_never(action)
    return TierState(
        uploaded=_segments(received.items, Kind.SEGMENT_UPLOADED),
        deleted_locally=tuple(map(_deletion, deleted)),
        expired=_segments(received.items, Kind.SEGMENT_EXPIRED),
        lost_objects=lost,
        remote=remote_state(broker.remote_log_manager.state(leader)) or _NOTHING,
    )


_NOTHING: Final = RemoteState(
    start_offset=-1, last_tiered_offset=-1, pending_upload_offset=-1, segments=()
)
"""The answer when the leader has lost its leadership meanwhile."""


def _segments(events: Iterable[Event], kind: Kind) -> tuple[RemoteSegmentState, ...]:
    return tuple(remote_segment_state(event.details) for event in events if event.kind is kind)


def _deletion(deleted: tier_actions.DeletedSegments) -> LocalDeletion:
    return LocalDeletion(
        broker=deleted.broker_id,
        segments=deleted.segments,
        local_log_start_offset=deleted.local_log_start_offset,
    )


async def _completed(begin: Callable[[Callable[[TierError | None], None]], None]) -> None:
    """Begin an operation and wait for its end.

    :raises ControllerError: KAFKA_STORAGE_ERROR when the tier fails.
    """

    def begin_with_answer(then: Callable[[bool | TierError], None]) -> None:
        begin(lambda error: then(True if error is None else error))

    await _answered(begin_with_answer)


async def _answered(begin: Callable[[Callable[[T | TierError], None]], None]) -> T:
    """Begin an operation and wait for its result.

    :raises ControllerError: KAFKA_STORAGE_ERROR when the tier fails.
    """
    answer: asyncio.Future[T | TierError] = asyncio.get_running_loop().create_future()

    def set_result(result: T | TierError) -> None:
        if not answer.done():  # the client may be gone
            answer.set_result(result)

    begin(set_result)
    given = await answer
    if isinstance(given, TierError):
        raise ControllerError(ErrorCode.KAFKA_STORAGE_ERROR, f"the tier says: {given}")
    return given


_SOME_ERROR = "a test lets it fail"


@serves("tier")
async def tier(server: Server, topic: str, partition: int, body: TierBody) -> TierState:
    return await run_tier_action(server.cluster, topic, partition, body.action)


@serves("add_tier_fault")
async def add_tier_fault(server: Server, body: TierFaultBody) -> TierFaultState:
    rule = RemoteFaultRule(
        operation=RemoteOperation(body.operation),
        error=_SOME_ERROR if body.error is True else body.error,
        delay_ms=body.delay_ms or 0,
        count=body.count,
    )
    return _tier_fault_state(server.cluster.tier_faults.add(rule))


@serves("tier_faults")
async def tier_faults(server: Server) -> list[TierFaultState]:
    return [_tier_fault_state(each) for each in server.cluster.tier_faults.all()]


@serves("remove_tier_fault")
async def remove_tier_fault(server: Server, id: int) -> TierFaultState:  # noqa: A002  # in the path
    fault = _find_tier_fault(server.cluster, id)
    server.cluster.tier_faults.remove(id)
    return _tier_fault_state(fault)


@serves("remove_tier_faults")
async def remove_tier_faults(server: Server) -> Done:
    for fault in server.cluster.tier_faults.all():
        server.cluster.tier_faults.remove(fault.id)
    return Done()


def _find_tier_fault(cluster: Cluster, number: int) -> RemoteFault:
    fault = cluster.tier_faults.get(number)
    if fault is None:
        raise ControllerError(ErrorCode.RESOURCE_NOT_FOUND, f"there is no tier fault {number}")
    return fault


def _tier_fault_state(fault: RemoteFault) -> TierFaultState:
    rule = fault.rule
    return TierFaultState(
        id=fault.id,
        hits=fault.hits,
        left=fault.left,
        operation=rule.operation.value,
        error=rule.error,
        delay_ms=rule.delay_ms or (0 if rule.error is None else None),
        count=rule.count,
    )
