"""Foreign followers: whoever claims a replica id is counted, fenced or refused like a broker's own.

The own follower of that broker is held, so that nobody else fetches under its id. Broker 1 leads,
2 follows, 3 is who the foreign one claims to be; 4 has no replica.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

import pytest

from fencepost.broker import steering
from fencepost.broker.cluster import Cluster
from fencepost.broker.network import Deliver, Link
from fencepost.broker.steering import Fence
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
from tests.broker.driver import Asked, Driver
from tests.broker.talk import create, fetched, list_offset, produce, send_produce, values

UNKNOWN: Final = -1
FIRST_WITH_EPOCH: Final = 9
FIRST_WITH_STATE: Final = 15
VERSIONS: Final = range(4, 19)
LAG_MS: Final = 30_000
CLAIMED: Final = 3
UNASSIGNED: Final = 4
NOBODY: Final = 99
OK: Final = ErrorCode.NONE
FENCED: Final = ErrorCode.FENCED_LEADER_EPOCH
NEWER: Final = ErrorCode.UNKNOWN_LEADER_EPOCH
ELSEWHERE: Final = ErrorCode.NOT_LEADER_OR_FOLLOWER
OUT_OF_RANGE: Final = ErrorCode.OFFSET_OUT_OF_RANGE


@dataclass(slots=True, kw_only=True)
class Foreign:
    """A client that fetches ``t`` as if it were a broker's replica."""

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
    ) -> Asked:
        """Fetch from ``offset``, which says that this is where its log ends.

        :param epoch: The leader epoch that it knows.
        :param last: The epoch of the last record that it has.
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
) -> tuple[Driver, Foreign]:
    """A leader with two followers, of which the claimed one is held; it is not yet fetched for.

    :param records: So many are committed by all three before.
    :param joins: Whether the claimed replica stays in the ISR.
    """
    driver = Driver(4, {"replica.lag.time.max.ms": str(LAG_MS)})
    topic_id = create(driver, "t", [(1, 2, CLAIMED)], min_insync_replicas=str(min_insync))
    for n in range(records):
        produce(driver, "t", b"%d" % n)
    steering.hold(driver.cluster, "t", 0, CLAIMED, leave_isr=not joins)
    return driver, Foreign(driver=driver, topic_id=topic_id, version=version)


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


# -- counted ----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_acks_all_waits_for_a_foreign_follower_of_the_isr(version: int) -> None:
    driver, foreign = start(version)
    asked = send_produce(driver, "t", b"a", b"b")
    assert driver.replica(2, "t").log.log_end_offset == 2
    assert not is_answered(asked)
    assert driver.leader("t").high_watermark == 0
    first = foreign.fetch(0, epoch=0)
    assert (first.error_code, values(first), first.high_watermark) == (OK, [b"a", b"b"], 0)
    assert not is_answered(asked), "to be given records is not to have them"
    second = foreign.fetch(2, epoch=0, last=0)
    assert (second.error_code, values(second), second.high_watermark) == (OK, [], 2)
    assert is_answered(asked)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_foreign_follower_joins_the_isr_when_it_has_caught_up(version: int) -> None:
    driver, foreign = start(version, records=3, joins=False)
    assert isr(driver) == {1, 2}
    assert foreign.code(2, epoch=0) == OK
    assert isr(driver) == {1, 2}
    assert foreign.code(3, epoch=0) == OK
    assert isr(driver) == {1, 2, CLAIMED}
    asked = send_produce(driver, "t", b"now it counts")
    assert not is_answered(asked)
    assert foreign.code(4, epoch=0) == OK
    assert is_answered(asked)


def test_the_high_watermark_is_the_lowest_of_what_all_have_fetched() -> None:
    driver, foreign = start()
    for n in range(4):
        send_produce(driver, "t", b"%d" % n, acks=1)
    for offset, watermark in ((1, 1), (3, 3), (2, 3), (4, 4), (0, 4)):
        assert foreign.fetch(offset).high_watermark == watermark
        assert driver.leader("t").high_watermark == watermark


def test_to_reach_the_high_watermark_is_not_enough_before_the_start_of_the_epoch() -> None:
    driver, foreign = start(records=2, joins=False)
    steering.hold(driver.cluster, "t", 0, 2)
    send_produce(driver, "t", b"not committed", acks=1)
    epoch = elect_again(driver)
    assert driver.leader("t").high_watermark == 2
    assert foreign.code(2, epoch=epoch) == OK
    assert isr(driver) == {1, 2}
    assert foreign.code(3, epoch=epoch) == OK
    assert isr(driver) == {1, 2, CLAIMED}


def test_a_foreign_follower_that_stops_leaves_the_isr_and_acks_all_goes_on() -> None:
    driver, foreign = start()
    assert foreign.code(0) == OK
    asked = send_produce(driver, "t", b"a", timeout_ms=10 * LAG_MS)
    driver.advance(LAG_MS // 2)
    assert not is_answered(asked)
    driver.advance(LAG_MS + LAG_MS // 2)
    assert isr(driver) == {1, 2}
    assert is_answered(asked)


def test_a_foreign_follower_that_keeps_pace_stays_though_it_never_reaches_the_end() -> None:
    driver, foreign = start()
    for n in range(8):
        send_produce(driver, "t", b"%d" % n, acks=1)
        assert foreign.code(n) == OK, "all but the newest"
        driver.advance(LAG_MS // 2)
    assert CLAIMED in isr(driver)


@pytest.mark.parametrize("version", [4, 8, 12, 18])
def test_a_waiting_fetch_is_answered_by_the_next_append(version: int) -> None:
    driver, foreign = start(version)
    waiting = foreign.send(0, epoch=0, wait_ms=1000)
    assert not waiting.done
    send_produce(driver, "t", b"a")
    assert values(fetched(waiting.response)) == [b"a"]


# -- fenced and refused -----------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("epoch", "code"), [(-1, OK), (0, FENCED), (1, FENCED), (2, OK), (3, NEWER), (1000, NEWER)]
)
def test_the_leader_epoch_is_checked_from_v9_and_not_before(
    version: int, epoch: int, code: ErrorCode
) -> None:
    driver, foreign = start(version, joins=False)
    assert elect_again(driver, 2) == 2
    wanted = code if version >= FIRST_WITH_EPOCH else OK
    assert foreign.code(0, epoch=epoch) == wanted
    assert isr(driver) == ({1, 2, CLAIMED} if wanted is OK else {1, 2})


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("replica_id", [1, UNASSIGNED, NOBODY])
@pytest.mark.parametrize("epoch", [-1, 0])
def test_who_is_not_assigned_is_refused_and_so_is_the_leader_itself(
    version: int, replica_id: int, epoch: int
) -> None:
    driver, foreign = start(version, joins=False)
    foreign.replica_id = replica_id
    knows = version >= FIRST_WITH_EPOCH and epoch >= 0
    assert foreign.code(0, epoch=epoch) == (NEWER if knows else ELSEWHERE)
    assert isr(driver) == {1, 2}


@pytest.mark.parametrize("replica_id", [2, CLAIMED])
def test_each_assigned_replica_counts_for_itself_alone(replica_id: int) -> None:
    driver, foreign = start()
    steering.hold(driver.cluster, "t", 0, 2)
    foreign.replica_id = replica_id
    send_produce(driver, "t", b"a", acks=1)
    assert foreign.code(1) == OK
    assert driver.leader("t").high_watermark == 0
    foreign.replica_id = 2 + CLAIMED - replica_id
    assert foreign.code(1) == OK
    assert driver.leader("t").high_watermark == 1


@pytest.mark.parametrize(
    ("broker_id", "epoch", "code"),
    [
        (2, -1, ELSEWHERE),
        (2, 0, FENCED),
        (2, 1, ELSEWHERE),
        (2, 2, NEWER),
        (UNASSIGNED, -1, ELSEWHERE),
        (UNASSIGNED, 0, ELSEWHERE),
        (UNASSIGNED, 2, ELSEWHERE),
    ],
)
def test_a_replica_is_served_by_the_leader_alone(
    broker_id: int, epoch: int, code: ErrorCode
) -> None:
    driver, foreign = start()
    assert elect_again(driver) == 1
    assert foreign.code(0, epoch=epoch, broker_id=broker_id) == code


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A fetch that is not to count, and what it is answered. The log ends at 6, in epoch 2."""

    code: ErrorCode
    offset: int = 6
    epoch: int = 2
    last: int = 2
    replica_id: int = CLAIMED
    broker_epoch: int = 2
    diverging: tuple[int, int] = (-1, -1)


@pytest.mark.parametrize(
    "case",
    [
        Refusal(code=FENCED, epoch=1),
        Refusal(code=NEWER, epoch=3),
        Refusal(code=NEWER, replica_id=UNASSIGNED),
        Refusal(code=NEWER, replica_id=1),
        Refusal(code=ELSEWHERE, replica_id=1, epoch=-1),
        Refusal(code=ELSEWHERE, broker_epoch=1),
        Refusal(code=OUT_OF_RANGE, offset=7, last=-1),
        Refusal(code=OUT_OF_RANGE, last=3),
        Refusal(code=OK, last=1, diverging=(1, 4)),
        Refusal(code=OK, last=0, diverging=(0, 2)),
        Refusal(code=OK, offset=7, diverging=(2, 6)),
    ],
    ids=str,
)
def test_a_fetch_that_is_refused_or_diverges_does_not_count(case: Refusal) -> None:
    driver, foreign = start()
    steering.kill(driver.cluster, CLAIMED)
    steering.start(driver.cluster, CLAIMED)
    foreign.broker_epoch = registration(driver)
    assert foreign.broker_epoch == 2
    assert foreign.code(0) == OK
    assert isr(driver) == {1, 2, CLAIMED}
    for epoch in range(3):
        assert elect_again(driver, 1 if epoch else 0) == epoch
        asked = send_produce(driver, "t", b"a", b"b")
    foreign.replica_id, foreign.broker_epoch = case.replica_id, case.broker_epoch
    refused = foreign.fetch(case.offset, epoch=case.epoch, last=case.last)
    assert refused.error_code == case.code
    diverging = refused.diverging_epoch
    assert (diverging.epoch, diverging.end_offset) == case.diverging
    assert not values(refused)
    assert driver.leader("t").high_watermark == 0
    assert not is_answered(asked)
    foreign.replica_id, foreign.broker_epoch = CLAIMED, 2
    assert foreign.fetch(6, epoch=2, last=2).high_watermark == 6
    assert is_answered(asked)


@pytest.mark.parametrize("version", [16, 17, 18])
@pytest.mark.parametrize(("epoch", "broker_id"), [(-1, 2), (0, 1), (0, 2)])
def test_a_refused_replica_is_told_who_leads_but_no_address(
    version: int, epoch: int, broker_id: int
) -> None:
    driver, foreign = start(version)
    elect_again(driver)
    response = foreign.send(0, epoch=epoch, broker_id=broker_id).response
    leader = fetched(response).current_leader
    assert (leader.leader_id, leader.leader_epoch) == (1, 1)
    assert response.node_endpoints == ()


def test_an_election_fences_a_fetch_that_waits() -> None:
    driver, foreign = start()
    waiting = foreign.send(0, epoch=0, wait_ms=1000)
    elect_again(driver)
    assert fetched(waiting.response).error_code == FENCED


def test_whoever_comes_to_terms_with_a_new_leader_counts_again() -> None:
    """As KIP-320 has it: fenced, then the end of its own epoch under the new one, then on."""
    driver, foreign = start()
    produce(driver, "t", b"a", acks=1)
    assert foreign.code(1, epoch=0) == OK
    send_produce(driver, "t", b"only on 1 and foreign", acks=1)
    steering.hold(driver.cluster, "t", 0, 2)
    send_produce(driver, "t", b"on nobody else's", acks=1)
    assert values(foreign.fetch(2, epoch=0))
    driver.elect("t", 0, 2)
    assert foreign.code(3, epoch=0, broker_id=2) == FENCED
    assert foreign.code(3, epoch=0, broker_id=1) == FENCED
    ends = epoch_end(driver, 0, current=1, broker_id=2)
    assert (ends.leader_epoch, ends.end_offset) == (0, 2)
    asked = send_produce(driver, "t", b"new", broker_id=2)
    assert values(foreign.fetch(2, epoch=1, last=0, broker_id=2)) == [b"new"]
    assert not is_answered(asked)
    assert foreign.code(3, epoch=1, broker_id=2) == OK
    assert is_answered(asked)


# -- broker epochs (KIP-903) ------------------------------------------------------------------


def start_registered(version: int) -> tuple[Driver, Foreign]:
    """The claimed broker has registered for the third time, and is out of the ISR."""
    driver, foreign = start(version, records=2)
    for _ in range(2):
        steering.kill(driver.cluster, CLAIMED)
        steering.start(driver.cluster, CLAIMED)
    assert (registration(driver), isr(driver)) == (3, {1, 2})
    return driver, foreign


@pytest.mark.parametrize("version", [15, 16, 17, 18])
@pytest.mark.parametrize(
    ("broker_epoch", "code", "joins"),
    [
        (-1, OK, True),
        (0, ELSEWHERE, False),
        (2, ELSEWHERE, False),
        (3, OK, True),
        (4, OK, False),
    ],
)
def test_who_fetches_in_an_older_registration_is_refused_and_in_an_unknown_one_does_not_join(
    version: int, broker_epoch: int, code: ErrorCode, joins: bool
) -> None:
    driver, foreign = start_registered(version)
    foreign.broker_epoch = broker_epoch
    assert foreign.code(2, epoch=0) == code
    assert isr(driver) == ({1, 2, CLAIMED} if joins else {1, 2})


@pytest.mark.parametrize("version", [4, 9, 14])
def test_before_v15_nobody_says_in_which_registration_it_fetches(version: int) -> None:
    driver, foreign = start_registered(version)
    foreign.broker_epoch = 1
    assert foreign.code(2, epoch=0) == OK
    assert isr(driver) == {1, 2, CLAIMED}


def test_an_older_registration_than_the_controllers_is_refused_by_the_controller() -> None:
    """The leader has not heard of the new registration yet; its proposal names the old one."""
    driver, foreign, post = start_with_post()
    steering.kill(driver.cluster, CLAIMED)
    foreign.broker_epoch = registration(driver)
    post.keep_for(1)
    steering.start(driver.cluster, CLAIMED)
    assert registration(driver) == foreign.broker_epoch + 1
    assert foreign.code(1) == OK
    assert isr(driver) == {1, 2}
    post.let_go()
    assert foreign.code(1) == ELSEWHERE
    assert isr(driver) == {1, 2}


# -- marked offline ---------------------------------------------------------------------------


def kill(cluster: Cluster) -> None:
    steering.kill(cluster, CLAIMED)


def stop(cluster: Cluster) -> None:
    steering.stop(cluster, CLAIMED)


def isolate(cluster: Cluster) -> None:
    steering.isolate(cluster, CLAIMED, from_controller=True)


def start_again(cluster: Cluster) -> None:
    steering.start(cluster, CLAIMED)


def rejoin(cluster: Cluster) -> None:
    steering.rejoin(cluster, CLAIMED)


Verb = Callable[[Cluster], None]
OFFLINE: Final = pytest.mark.parametrize(
    ("leaves", "returns"), [(kill, start_again), (stop, start_again), (isolate, rejoin)]
)


@OFFLINE
@pytest.mark.parametrize("version", [4, 9, 14, 15, 18])
@pytest.mark.parametrize("tells_registration", [False, True])
def test_who_is_marked_offline_never_joins_however_well_it_fetches(
    leaves: Verb, returns: Verb, version: int, tells_registration: bool
) -> None:
    driver, foreign = start(version)
    leaves(driver.cluster)
    assert isr(driver) == {1, 2}
    if tells_registration:
        foreign.broker_epoch = registration(driver)
    for n in range(5):
        assert send_produce(driver, "t", b"%d" % n).done, "acks=all does not wait for it"
        assert values(foreign.fetch(n, epoch=0)) == [b"%d" % n]
        assert foreign.code(n + 1, epoch=0) == OK
        assert isr(driver) == {1, 2}
        driver.advance(LAG_MS)
        assert isr(driver) == {1, 2}
    returns(driver.cluster)
    assert isr(driver) == {1, 2}
    if tells_registration and version >= FIRST_WITH_STATE:
        assert foreign.code(5, epoch=0) == ELSEWHERE
        foreign.broker_epoch = registration(driver)
    assert foreign.code(5, epoch=0) == OK
    assert isr(driver) == {1, 2, CLAIMED}


@OFFLINE
def test_acks_all_does_not_count_who_is_marked_offline(leaves: Verb, returns: Verb) -> None:
    """What it has is no help: with too few others in sync, acks=all is refused."""
    driver, foreign = start(min_insync=2)
    leaves(driver.cluster)
    steering.kill(driver.cluster, 2)
    assert isr(driver) == {1}
    assert foreign.code(0, epoch=0) == OK
    refused = send_produce(driver, "t", b"a").response.responses[0].partition_responses[0]
    assert refused.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    send_produce(driver, "t", b"b", acks=1)
    assert foreign.fetch(1, epoch=0).high_watermark == 0
    returns(driver.cluster)
    assert foreign.fetch(1, epoch=0).error_code == OK
    assert isr(driver) == {1, CLAIMED}
    assert driver.leader("t").high_watermark == 1
    send_produce(driver, "t", b"c")
    assert foreign.fetch(2, epoch=0).high_watermark == 2


def test_offline_after_the_session_timeout_and_in_sync_until_then() -> None:
    driver, foreign = start()
    steering.kill(driver.cluster, CLAIMED, Fence.TIMEOUT)
    asked = send_produce(driver, "t", b"a")
    assert foreign.code(0) == OK
    assert not is_answered(asked)
    assert isr(driver) == {1, 2, CLAIMED}
    driver.advance(driver.broker(1).configs.broker_session_timeout_ms)
    assert isr(driver) == {1, 2}
    assert is_answered(asked)
    assert foreign.code(1) == OK
    assert isr(driver) == {1, 2}


@pytest.mark.parametrize("down", [True, False])
def test_whom_the_controller_goes_on_believing_in_counts(down: bool) -> None:
    driver, foreign = start(joins=False)
    if down:
        steering.kill(driver.cluster, CLAIMED, Fence.NEVER)
    else:
        steering.isolate(driver.cluster, CLAIMED, from_controller=True, fence=Fence.NEVER)
    assert foreign.code(0) == OK
    assert isr(driver) == {1, 2, CLAIMED}
    asked = send_produce(driver, "t", b"a")
    assert not is_answered(asked)
    assert foreign.code(1) == OK
    assert is_answered(asked)


def test_a_cut_between_the_brokers_is_none_for_a_foreign_follower() -> None:
    driver, foreign = start(joins=False)
    steering.isolate(driver.cluster, CLAIMED, brokers=[1, 2])
    assert foreign.code(0) == OK
    assert isr(driver) == {1, 2, CLAIMED}


def test_a_leader_without_the_controller_admits_nobody_until_it_is_back() -> None:
    driver, foreign = start(joins=False)
    steering.isolate(driver.cluster, 1, from_controller=True, fence=Fence.NEVER)
    assert foreign.code(0) == OK
    assert isr(driver) == {1, 2}
    asked = send_produce(driver, "t", b"a", broker_id=1)
    assert not is_answered(asked), "it may have been admitted: acks=all waits for it as well"
    steering.rejoin(driver.cluster, 1)
    assert isr(driver) == {1, 2, CLAIMED}
    assert not is_answered(asked)
    assert foreign.code(1) == OK
    assert is_answered(asked)


class Post:
    """Carries at once, but for what is on its way to one broker while that is kept back."""

    def __init__(self) -> None:
        self._kept: deque[Deliver] = deque()
        self._target: int | None = None

    def __call__(self, link: Link, deliver: Deliver) -> None:
        if link == Link(0, self._target or -1):
            self._kept.append(deliver)
        else:
            deliver()

    def keep_for(self, broker_id: int) -> None:
        """Keep back what the controller sends to a broker."""
        self._target = broker_id

    def let_go(self) -> None:
        self._target = None
        while self._kept:
            self._kept.popleft()()


def start_with_post() -> tuple[Driver, Foreign, Post]:
    post = Post()
    driver = Driver(4, {"replica.lag.time.max.ms": str(LAG_MS)}, carry=post)
    topic_id = create(driver, "t", [(1, 2, CLAIMED)])
    produce(driver, "t", b"a")
    steering.hold(driver.cluster, "t", 0, CLAIMED, leave_isr=True)
    return driver, Foreign(driver=driver, topic_id=topic_id), post


def test_where_the_leader_has_not_heard_yet_the_controller_refuses() -> None:
    driver, foreign, post = start_with_post()
    post.keep_for(1)
    steering.kill(driver.cluster, CLAIMED)
    assert not driver.broker(1).view.brokers[CLAIMED].fenced
    assert foreign.code(1) == OK
    assert isr(driver) == {1, 2}
    post.let_go()
    assert driver.broker(1).view.brokers[CLAIMED].fenced
    assert foreign.code(1) == OK
    assert isr(driver) == {1, 2}
    assert send_produce(driver, "t", b"b").done


@pytest.mark.parametrize("version", [14, 15])
def test_what_was_fetched_while_offline_says_nothing_of_the_log_that_comes_back(
    version: int,
) -> None:
    driver, foreign = start(version, records=2)
    steering.kill(driver.cluster, CLAIMED)
    assert foreign.code(2, epoch=0) == OK
    steering.wipe(driver.cluster, "t", 0, CLAIMED)
    steering.start(driver.cluster, CLAIMED)
    assert isr(driver) == {1, 2}, "its disk is empty"
    assert foreign.code(0, epoch=0) == OK
    assert isr(driver) == {1, 2}
    steering.release(driver.cluster, "t", 0, CLAIMED)
    assert driver.replica(CLAIMED, "t").log.log_end_offset == 2
    assert isr(driver) == {1, 2, CLAIMED}


@pytest.mark.parametrize("fetch", [14, 18])
def test_who_fetches_before_its_leader_hears_of_its_return_joins_all_the_same(fetch: int) -> None:
    post = Post()
    driver = Driver(3, api_max={"fetch": fetch}, carry=post)
    create(driver, "t", [(1, 2, CLAIMED)])
    steering.kill(driver.cluster, CLAIMED)
    post.keep_for(1)
    steering.start(driver.cluster, CLAIMED)
    assert isr(driver) == {1, 2}
    post.let_go()
    driver.cluster.scheduler.run_due()
    assert isr(driver) == {1, 2, CLAIMED}


# -- what else a follower asks ----------------------------------------------------------------


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


def start_gated() -> Driver:
    """Leader epoch 1 began at 3, and the high watermark is 1: the gate of KIP-207 is shut."""
    driver, _ = start(records=1)
    for n in range(2):
        send_produce(driver, "t", b"%d" % n, acks=1)
    driver.elect("t", 0, 2)
    steering.hold(driver.cluster, "t", 0, 1)
    assert driver.leader("t").high_watermark == 1
    return driver


@pytest.mark.parametrize("version", range(1, 12))
def test_a_replica_learns_the_log_end_and_is_not_gated(version: int) -> None:
    driver = start_gated()
    known = 1 if version >= 4 else UNKNOWN
    for replica_id in (1, CLAIMED):
        found = list_offset(
            driver, "t", -1, version=version, replica_id=replica_id, current_leader_epoch=known
        )
        assert (found.error_code, found.offset) == (OK, 3)
    refused = list_offset(driver, "t", -1, version=version)
    gate = ErrorCode.OFFSET_NOT_AVAILABLE if version >= 5 else ErrorCode.LEADER_NOT_AVAILABLE
    assert (refused.error_code, refused.offset) == (gate, -1)


@pytest.mark.parametrize("timestamp", [-2, -4])
def test_a_replica_learns_the_log_start_and_is_not_gated(timestamp: int) -> None:
    driver = start_gated()
    found = list_offset(driver, "t", timestamp, replica_id=CLAIMED, current_leader_epoch=1)
    assert (found.error_code, found.offset, found.leader_epoch) == (OK, 0, 0)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_replica_learns_where_epochs_end_and_is_not_gated(version: int) -> None:
    driver = start_gated()
    ends = [
        epoch_end(driver, epoch, current=1, broker_id=2, version=version) for epoch in (0, 1, 2)
    ]
    assert [each.error_code for each in ends] == [OK, OK, OK]
    assert [(each.leader_epoch, each.end_offset) for each in ends] == [(0, 3), (1, 3), (-1, -1)]


LOOKUPS: Final = pytest.mark.parametrize(
    ("broker_id", "known", "code"),
    [
        (2, -1, OK),
        (2, 0, FENCED),
        (2, 1, OK),
        (2, 2, NEWER),
        (1, -1, ELSEWHERE),
        (1, 0, FENCED),
        (1, 1, ELSEWHERE),
        (1, 2, NEWER),
        (UNASSIGNED, -1, ELSEWHERE),
        (UNASSIGNED, 0, ELSEWHERE),
        (UNASSIGNED, 2, ELSEWHERE),
    ],
)


@LOOKUPS
@pytest.mark.parametrize("version", range(4, 12))
def test_list_offsets_checks_what_a_replica_knows(
    broker_id: int, known: int, code: ErrorCode, version: int
) -> None:
    found = list_offset(
        start_gated(),
        "t",
        -1,
        broker_id=broker_id,
        version=version,
        replica_id=CLAIMED,
        current_leader_epoch=known,
    )
    assert found.error_code == code


@LOOKUPS
@pytest.mark.parametrize("version", [2, 3, 4])
def test_offset_for_leader_epoch_checks_what_a_replica_knows(
    broker_id: int, known: int, code: ErrorCode, version: int
) -> None:
    found = epoch_end(start_gated(), 0, current=known, broker_id=broker_id, version=version)
    assert found.error_code == code
