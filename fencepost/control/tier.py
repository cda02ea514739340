"""What the verbs on the remote tier do (KIP-405).

The tier is somewhere else, and what it is asked takes time: these verbs wait for it, while the
cluster serves on. What was begun goes on, also where whoever asked does not wait any more.

:raises ControllerError: (all of them) When it is refused, with Kafka's code and words.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Literal, TypeAlias, TypeVar, assert_never

from fencepost.broker.cluster import Cluster
from fencepost.broker.events import Event, Kind
from fencepost.broker.refusals import ControllerError
from fencepost.broker.tiering import steering
from fencepost.control.views import remote_segment_state, remote_state
from fencepost.protocol.errors import ErrorCode
from fencepost.storage.tier.objects import TierError
from fencepost.verbs.answers.tier import LocalDeletion, RemoteSegmentState, RemoteState, TierState

T = TypeVar("T")
Action: TypeAlias = Literal["upload", "delete-local", "expire", "forget", "lose"]


async def carry_out(cluster: Cluster, topic: str, index: int, action: Action) -> TierState:
    """Do something about a partition's tier, and tell what came of it.

    The contract of this API names ``forget`` among what is done to a partition, and what it means
    there is what a partition's leader knows: the state "the leader does not know yet" of KIP-1023,
    which nothing else brings about for as long as one likes. That the tier itself loses what it
    has is another thing, and has a name of its own: ``lose``.
    """
    broker, leader = steering.find_leader(cluster, topic, index)
    deleted: Sequence[steering.LetGo] = ()
    lost = 0
    with _listening(cluster, topic, index) as told:
        match action:
            case "upload":
                await _done(lambda then: steering.upload(cluster, topic, index, then))
            case "expire":
                await _done(lambda then: steering.expire(cluster, topic, index, then))
            case "forget":
                await _done(lambda then: steering.forget(cluster, topic, index, then))
            case "lose":
                lost = await _answered(lambda then: steering.lose(cluster, topic, index, then))
            case "delete-local":
                deleted = await _answered(
                    lambda then: steering.delete_local(cluster, topic, index, then)
                )
            case _:
                assert_never(action)
    return TierState(
        uploaded=_segments(told, Kind.SEGMENT_UPLOADED),
        deleted_locally=tuple(map(_deletion, deleted)),
        expired=_segments(told, Kind.SEGMENT_EXPIRED),
        lost_objects=lost,
        remote=remote_state(broker.tiering.state(leader)) or _NOTHING,
    )


_NOTHING: Final = RemoteState(
    start_offset=-1, last_tiered_offset=-1, pending_upload_offset=-1, segments=()
)
"""What is known where the leader has lost its leadership meanwhile."""


@contextmanager
def _listening(cluster: Cluster, topic: str, index: int) -> Iterator[list[Event]]:
    """The events of a partition, as they come."""
    heard: list[Event] = []

    def note(event: Event) -> None:
        if (event.topic, event.partition) == (topic, index):
            heard.append(event)

    cluster.events.listeners.append(note)
    try:
        yield heard
    finally:
        cluster.events.listeners.remove(note)


def _segments(told: Iterable[Event], kind: Kind) -> tuple[RemoteSegmentState, ...]:
    return tuple(remote_segment_state(event.details) for event in told if event.kind is kind)


def _deletion(deleted: steering.LetGo) -> LocalDeletion:
    return LocalDeletion(
        broker=deleted.broker_id,
        segments=deleted.segments,
        local_log_start_offset=deleted.local_log_start_offset,
    )


async def _done(begin: Callable[[Callable[[TierError | None], None]], None]) -> None:
    """Begin something and wait for its end.

    :raises ControllerError: KAFKA_STORAGE_ERROR when the tier does not do it.
    """

    def begin_with_answer(then: Callable[[bool | TierError], None]) -> None:
        begin(lambda error: then(True if error is None else error))

    await _answered(begin_with_answer)


async def _answered(begin: Callable[[Callable[[T | TierError], None]], None]) -> T:
    """Begin something and wait for its answer.

    :raises ControllerError: KAFKA_STORAGE_ERROR when the tier does not do it.
    """
    answer: asyncio.Future[T | TierError] = asyncio.get_running_loop().create_future()

    def tell(given: T | TierError) -> None:
        if not answer.done():  # whoever asked may be gone
            answer.set_result(given)

    begin(tell)
    given = await answer
    if isinstance(given, TierError):
        raise ControllerError(ErrorCode.KAFKA_STORAGE_ERROR, f"the tier says: {given}")
    return given
