"""A foreign follower: a client that fetches ``t`` as if it were a broker's replica.

The own follower of that broker is held, so that it does not fetch under its id. Broker 1 leads,
2 follows, 3 is who the foreign one claims to be; 4 has no replica.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from msgspec.structs import replace

from fencepost.broker.network.links import CONTROLLER, Arrive, Link
from fencepost.broker.node import operator_actions
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from fencepost.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.harness.driver import Asked, Driver
from tests.harness.driver_requests import create, produce
from tests.harness.typed_requests import fetched

UNKNOWN: Final = -1
FIRST_WITH_SESSIONS: Final = 7
FIRST_WITH_EPOCH: Final = 9
FIRST_WITH_STATE: Final = 15
VERSIONS: Final = range(4, 19)
LAG_MS: Final = 30_000
CLAIMED: Final = 3
UNASSIGNED: Final = 4
UNKNOWN_BROKER: Final = 99
OK: Final = ErrorCode.NONE
FENCED: Final = ErrorCode.FENCED_LEADER_EPOCH
NEWER: Final = ErrorCode.UNKNOWN_LEADER_EPOCH
ELSEWHERE: Final = ErrorCode.NOT_LEADER_OR_FOLLOWER
OUT_OF_RANGE: Final = ErrorCode.OFFSET_OUT_OF_RANGE


@dataclass(slots=True, kw_only=True)
class ForeignFollower:
    """Fetches ``t`` as a replica does."""

    driver: Driver
    topic_id: UUID
    version: int = 18
    replica_id: int = CLAIMED
    broker_epoch: int = UNKNOWN
    """What it says from v15 on: the registration that it fetches in."""

    def send(
        self,
        offset: int,
        *,
        epoch: int = UNKNOWN,
        last: int = UNKNOWN,
        broker_id: int = 1,
        wait_ms: int = 0,
        session: tuple[int, int] = (0, UNKNOWN),
        read_committed: bool = False,
    ) -> Asked:
        """Fetch from ``offset``, which says that this is where its log ends.

        :param epoch: The leader epoch that it knows.
        :param last: The epoch of the last record that it has.
        :param session: Its id and epoch.
        """
        partition = FetchPartition(
            current_leader_epoch=epoch if self.version >= FIRST_WITH_EPOCH else UNKNOWN,
            fetch_offset=offset,
            last_fetched_epoch=last if self.version >= 12 else UNKNOWN,
            log_start_offset=0,
            partition_max_bytes=1 << 20,
        )
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            isolation_level=int(read_committed),
            session_id=session[0] if self.version >= FIRST_WITH_SESSIONS else 0,
            session_epoch=session[1] if self.version >= FIRST_WITH_SESSIONS else UNKNOWN,
            topics=(FetchTopic(topic="t", topic_id=self.topic_id, partitions=(partition,)),),
        )
        if self.version >= FIRST_WITH_STATE:
            state = ReplicaState(replica_id=self.replica_id, replica_epoch=self.broker_epoch)
            request = replace(request, replica_state=state)
        else:
            request = replace(request, replica_id=self.replica_id)
        return self.driver.send(broker_id, "fetch", self.version, request, client="foreign")

    def fetch(
        self, offset: int, *, epoch: int = UNKNOWN, last: int = UNKNOWN, broker_id: int = 1
    ) -> PartitionData:
        asked = self.send(offset, epoch=epoch, last=last, broker_id=broker_id)
        return fetched(asked.response)

    def code(self, offset: int, *, epoch: int = UNKNOWN, broker_id: int = 1) -> int:
        return self.fetch(offset, epoch=epoch, broker_id=broker_id).error_code


def start(
    version: int = 18, *, records: int = 0, joins: bool = True, min_insync: int = 1
) -> tuple[Driver, ForeignFollower]:
    """A leader with two followers, of which the claimed one is held; it is not yet fetched for.

    :param records: So many are committed by all three before.
    :param joins: Whether the claimed replica stays in the ISR.
    """
    driver = Driver(4, {"replica.lag.time.max.ms": str(LAG_MS)})
    topic_id = create(driver, "t", [(1, 2, CLAIMED)], min_insync_replicas=str(min_insync))
    for n in range(records):
        produce(driver, "t", b"%d" % n)
    operator_actions.hold(driver.cluster, "t", 0, CLAIMED, leave_isr=not joins)
    return driver, ForeignFollower(driver=driver, topic_id=topic_id, version=version)


def registration(driver: Driver, broker_id: int = CLAIMED) -> int:
    """The broker epoch, as the controller has it."""
    return driver.cluster.controller.image.brokers[broker_id].epoch


def elect_again(driver: Driver, times: int = 1) -> int:
    """Broker 1 leads on in a newer epoch, which is returned."""
    for _ in range(times):
        driver.elect("t", 0, 1)
    return driver.partition("t").leader_epoch


def is_answered(asked: Asked) -> bool:
    return asked.done


def isr(driver: Driver) -> set[int]:
    return set(driver.partition("t").isr)


def epoch_end(
    driver: Driver, epoch: int, *, current: int, broker_id: int = 1, version: int = 4
) -> EpochEndOffset:
    """OffsetForLeaderEpoch as the claimed replica (v3 and later say so)."""
    partition = OffsetForLeaderPartition(current_leader_epoch=current, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(
        replica_id=CLAIMED if version >= 3 else -2,
        topics=(OffsetForLeaderTopic(topic="t", partitions=(partition,)),),
    )
    response = driver.ask(broker_id, "offset_for_leader_epoch", version, request)
    ((found,),) = (topic.partitions for topic in response.topics)
    assert isinstance(found, EpochEndOffset)
    return found


class Post:
    """Carries at once, but for what is on its way to one broker while that is kept back."""

    def __init__(self) -> None:
        self._kept: deque[Arrive] = deque()
        self._target: int | None = None

    def __call__(self, link: Link, arrive: Arrive) -> None:
        if link.source is CONTROLLER and link.target == self._target:
            self._kept.append(arrive)
        else:
            arrive()

    def keep_for(self, broker_id: int) -> None:
        """Keep back what the controller sends to a broker."""
        self._target = broker_id

    def let_go(self) -> None:
        self._target = None
        while self._kept:
            self._kept.popleft()()


def start_with_post() -> tuple[Driver, ForeignFollower, Post]:
    post = Post()
    driver = Driver(4, {"replica.lag.time.max.ms": str(LAG_MS)}, carry=post)
    topic_id = create(driver, "t", [(1, 2, CLAIMED)])
    produce(driver, "t", b"a")
    operator_actions.hold(driver.cluster, "t", 0, CLAIMED, leave_isr=True)
    return driver, ForeignFollower(driver=driver, topic_id=topic_id), post
