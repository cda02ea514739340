"""Who is in sync: joining, leaving, and what the high watermark waits for meanwhile."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fencepost.broker.controller import Fence
from fencepost.broker.controller.requests import IsrProposal
from fencepost.broker.metadata.image import PartitionImage
from fencepost.broker.network.links import CONTROLLER, BrokerId, Link
from fencepost.broker.node import operator_actions
from fencepost.protocol.errors import ErrorCode
from tests.harness.driver import Driver, ManualTransport
from tests.harness.driver_requests import create, produce, send_produce
from tests.harness.typed_requests import produced

LAG_MS = 10_000


def start(carry: ManualTransport | None = None, **configs: str) -> Driver:
    settings = {"replica.lag.time.max.ms": str(LAG_MS)} | {
        name.replace("_", "."): value for name, value in configs.items()
    }
    driver = Driver(3, settings) if carry is None else Driver(3, settings, carry=carry)
    create(driver, "t", [(1, 2, 3)])
    return driver


def hold(driver: Driver, broker_id: int, *, leave_isr: bool = False) -> None:
    operator_actions.hold(driver.cluster, "t", 0, broker_id, leave_isr=leave_isr)


def release(driver: Driver, broker_id: int) -> None:
    operator_actions.release(driver.cluster, "t", 0, broker_id)


def fetches(driver: Driver, broker_id: int, offset: int, broker_epoch: int = -1) -> None:
    """The leader takes in a follower's fetch, and the turn ends."""
    driver.leader("t").record_fetch(
        broker_id,
        fetch_offset=offset,
        log_start_offset=0,
        now_ms=driver.clock.now_ms(),
        broker_epoch=broker_epoch,
    )
    driver.cluster.scheduler.run_due()


def isr(driver: Driver) -> tuple[int, ...]:
    return driver.partition("t").isr


def test_a_laggard_leaves_after_its_time_and_acks_all_go_on_without_it() -> None:
    driver = start()
    hold(driver, 3)
    asked = send_produce(driver, "t", b"a", timeout_ms=60_000)
    driver.advance(LAG_MS - 1)
    assert isr(driver) == (1, 2, 3)
    assert not asked.done
    driver.advance(LAG_MS // 2 + 1)
    assert isr(driver) == (1, 2)
    assert produced(asked.response).error_code == ErrorCode.NONE


def test_who_has_everything_stays_however_long_nothing_comes() -> None:
    driver = start()
    produce(driver, "t", b"a")
    hold(driver, 3)
    driver.advance(10 * LAG_MS)
    assert isr(driver) == (1, 2, 3)


def test_who_fetches_and_is_always_a_little_behind_stays() -> None:
    driver = start()
    hold(driver, 3)
    send_produce(driver, "t", b"a", acks=1)
    for n in range(10):
        driver.advance(LAG_MS // 4)
        send_produce(driver, "t", b"%d" % n, acks=1)
        operator_actions.step(driver.cluster, "t", 0, 3)
    assert driver.replica(3, "t").log.log_end_offset == 11
    assert driver.leader("t").followers[3].log_end_offset == 10
    assert isr(driver) == (1, 2, 3)


def test_it_joins_again_with_the_fetch_that_shows_that_it_has_everything() -> None:
    driver = start()
    hold(driver, 3, leave_isr=True)
    assert isr(driver) == (1, 2)
    produce(driver, "t", b"a")
    (step,) = operator_actions.step(driver.cluster, "t", 0, 3)
    assert (step.appended, isr(driver)) == (1, (1, 2))
    (step,) = operator_actions.step(driver.cluster, "t", 0, 3)
    assert (step.appended, isr(driver)) == (0, (1, 2, 3))


def test_expelled_with_everything_it_joins_with_its_next_fetch_and_not_before() -> None:
    driver = start()
    produce(driver, "t", b"a")
    hold(driver, 3, leave_isr=True)
    driver.cluster.controller.set_topic_configs("t", {"segment.ms": "5000"})
    assert isr(driver) == (1, 2)
    release(driver, 3)
    assert isr(driver) == (1, 2, 3)


def test_the_end_of_an_old_epoch_is_not_enough() -> None:
    """It must have fetched past the start of the leader's epoch (KIP-207's offset)."""
    driver = start()
    hold(driver, 3, leave_isr=True)
    hold(driver, 2)
    send_produce(driver, "t", b"a", acks=1)
    operator_actions.elect(driver.cluster, "t", 0, 1)
    leader = driver.leader("t")
    assert (leader.high_watermark, leader.epoch_start_offset) == (0, 1)
    fetches(driver, 3, 0)
    assert isr(driver) == (1, 2)
    fetches(driver, 3, 1)
    assert isr(driver) == (1, 2, 3)


def test_a_zombie_never_joins_however_well_it_fetches() -> None:
    driver = start()
    operator_actions.isolate(driver.cluster, 3, from_controller=True)
    assert isr(driver) == (1, 2)
    for n in range(5):
        produce(driver, "t", b"%d" % n)
        assert driver.replica(3, "t").log.log_end_offset == n + 1, "it fetches on"
        assert isr(driver) == (1, 2)
    driver.advance(10 * LAG_MS)
    assert isr(driver) == (1, 2)
    operator_actions.rejoin(driver.cluster, 3)
    assert isr(driver) == (1, 2, 3)


def test_fetches_of_an_earlier_registration_admit_nobody() -> None:
    driver = start()
    old_epoch = driver.broker(3).epoch
    operator_actions.kill(driver.cluster, 3)
    hold(driver, 3)
    operator_actions.start(driver.cluster, 3)
    fetches(driver, 3, 0, old_epoch)
    assert isr(driver) == (1, 2)
    fetches(driver, 3, 0, driver.broker(3).epoch)
    assert isr(driver) == (1, 2, 3)


def test_a_leader_away_from_the_controller_changes_no_isr() -> None:
    driver = start()
    operator_actions.isolate(driver.cluster, 1, from_controller=True, fence=Fence.NEVER)
    hold(driver, 3)
    asked = send_produce(driver, "t", b"a", timeout_ms=60_000, broker_id=1)
    driver.advance(3 * LAG_MS)
    assert isr(driver) == (1, 2, 3)
    assert not asked.done, "the high watermark waits for whom it could not drop"
    operator_actions.rejoin(driver.cluster, 1)
    assert isr(driver) == (1, 2)
    assert produced(asked.response).error_code == ErrorCode.NONE


def test_while_a_proposal_is_on_its_way_the_watermark_waits_for_old_and_new() -> None:
    post = ManualTransport()
    driver = start(post)
    hold(driver, 3, leave_isr=True)
    produce(driver, "t", b"a")
    leader = driver.leader("t")
    fetches(driver, 3, 1)
    assert isr(driver) == (1, 2, 3)
    hold(driver, 3, leave_isr=True)
    post.keeps = True
    fetches(driver, 3, 1)
    assert leader.pending_isr == (1, 2, 3)
    send_produce(driver, "t", b"b", acks=1)
    fetches(driver, 2, 2)
    assert (isr(driver), leader.high_watermark) == ((1, 2), 1)
    fetches(driver, 3, 2)
    assert leader.high_watermark == 2


def test_a_proposal_whose_answer_got_lost_is_settled_by_the_view() -> None:
    post = ManualTransport()
    driver = start(post)
    hold(driver, 3, leave_isr=True)
    leader = driver.leader("t")
    post.keeps = True
    fetches(driver, 3, 0)
    assert post.deliver() == [Link(BrokerId(1), CONTROLLER)]
    assert isr(driver) == (1, 2, 3)
    driver.cluster.network.cut_link(BrokerId(1), CONTROLLER)
    post.deliver(len(post.kept))
    assert (leader.isr, leader.pending_isr) == ((1, 2), (1, 2, 3))
    post.keeps = False
    operator_actions.rejoin(driver.cluster, 1)
    assert (leader.isr, leader.pending_isr) == ((1, 2, 3), None)


def test_who_is_fenced_while_it_is_proposed_is_not_waited_for_any_more() -> None:
    post = ManualTransport()
    driver = start(post)
    hold(driver, 3, leave_isr=True)
    produce(driver, "t", b"a")
    leader = driver.leader("t")
    post.keeps = True
    fetches(driver, 3, 1)
    proposal = post.kept.popleft()[1]
    driver.cluster.controller.fence(3)
    proposal()
    send_produce(driver, "t", b"b", acks=1)
    fetches(driver, 2, 2)
    assert leader.high_watermark == 1, "it may be in the ISR for all that its leader knows"
    post.keeps = False
    post.deliver(len(post.kept))
    assert (leader.pending_isr, leader.high_watermark) == (None, 2)
    assert isr(driver) == (1, 2)


def test_who_is_offline_for_the_leader_is_not_even_proposed() -> None:
    post = ManualTransport()
    driver = start(post)
    operator_actions.isolate(driver.cluster, 3, from_controller=True)
    post.keeps = True
    leader = driver.leader("t")
    fetches(driver, 3, 0)
    assert leader.pending_isr is None


def test_who_fetched_in_an_earlier_registration_is_not_even_proposed() -> None:
    post = ManualTransport()
    driver = start(post)
    hold(driver, 3)
    operator_actions.kill(driver.cluster, 3)
    operator_actions.start(driver.cluster, 3)
    post.keeps = True
    leader = driver.leader("t")
    fetches(driver, 3, 0, broker_epoch=0)
    assert leader.pending_isr is None


def test_a_proposal_that_got_lost_is_repeated_with_the_next_check() -> None:
    driver = start()
    hold(driver, 3)
    driver.cluster.network.cut_link(BrokerId(1), CONTROLLER)
    leader = driver.leader("t")
    driver.broker(1).isr_manager.remove_from_isr(leader, 3)
    driver.cluster.scheduler.run_due()
    assert (isr(driver), leader.pending_isr) == ((1, 2, 3), (1, 2))
    driver.cluster.network.restore_link(BrokerId(1), CONTROLLER)
    assert isr(driver) == (1, 2, 3)
    driver.advance(LAG_MS // 2)
    assert (isr(driver), leader.pending_isr) == ((1, 2), None)


def proposal(driver: Driver) -> IsrProposal:
    topic = driver.cluster.controller.image.topics["t"]
    return IsrProposal(
        topic="t",
        topic_id=topic.topic_id,
        index=0,
        leader=1,
        broker_epoch=driver.broker(1).epoch,
        leader_epoch=0,
        partition_epoch=topic.partitions[0].partition_epoch,
        isr=((1, -1), (2, -1)),
    )


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"topic": "u"}, ErrorCode.UNKNOWN_TOPIC_ID),
        ({"index": 1}, ErrorCode.UNKNOWN_TOPIC_ID),
        ({"broker_epoch": 7}, ErrorCode.STALE_BROKER_EPOCH),
        ({"leader": 2}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"partition_epoch": 9}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"isr": ((1, -1), (4, -1))}, ErrorCode.INVALID_REQUEST),
        ({"isr": ((1, -1), (2, 5))}, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_the_controller_takes_no_proposal_that_is_not_of_now(
    change: dict[str, object], code: ErrorCode
) -> None:
    driver = start()
    before = driver.partition("t")
    asked = replace(proposal(driver), **change)
    assert driver.cluster.controller.alter_partitions([asked]) == [code]
    assert driver.partition("t") is before


def test_the_controller_takes_what_the_leader_of_now_proposes() -> None:
    driver = start()
    (answer,) = driver.cluster.controller.alter_partitions([proposal(driver)])
    assert isinstance(answer, PartitionImage)
    assert (answer.isr, answer.leader_epoch, answer.partition_epoch) == ((1, 2), 0, 1)
    assert driver.partition("t") is answer


def test_below_min_insync_replicas_the_watermark_stands_and_who_left_stays_eligible() -> None:
    driver = start(min_insync_replicas="2")
    produce(driver, "t", b"a")
    hold(driver, 2, leave_isr=True)
    hold(driver, 3, leave_isr=True)
    partition = driver.partition("t")
    assert (partition.isr, partition.elr) == ((1,), (3,)), "2 left while the ISR was large enough"
    assert produce(driver, "t", b"b", acks=1).base_offset == 1
    assert driver.leader("t").high_watermark == 1
    operator_actions.kill(driver.cluster, 1)
    assert driver.partition("t").leader == 3
    release(driver, 2)
    assert driver.leader("t").high_watermark == 1
    produce(driver, "t", b"c")
    assert driver.leader("t").high_watermark == 2
