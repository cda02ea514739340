"""Ten failures that an order service survives, made with fencepost's verbs and nothing else."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from fencepost.testing import Cluster
from order_service.order import Order
from order_service.outbox import Outbox
from order_service.relay import Relay
from order_service.shipping import CannotShip, Shipping, ship_nothing

StartShipping = Callable[..., AbstractContextManager[Shipping]]

QUICK = {"retry.backoff.ms": 10, "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50}
QUICK_RELAY = {**QUICK, "retry.backoff.max.ms": 50}
QUICK_SHIPPING = {**QUICK, "heartbeat.interval.ms": 50, "fetch.error.backoff.ms": 10}
TIMEOUT_MS = 60_000
"""For a machine that has much else to do."""
IDS = ["17", "18", "19", "20", "21"]


@pytest.fixture(scope="session")
def fencepost_options() -> dict[str, object]:
    """One kind of cluster, so that all tests share its process."""
    return {
        "brokers": 3,
        "topics": [
            {
                "name": "orders",
                "assignments": [[1, 2, 3]],
                "configs": {"min.insync.replicas": "2"},
            },
            "orders.dead-letters:1:3",
        ],
        "configs": {"group.initial.rebalance.delay.ms": "0"},
    }


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    """An empty outbox."""
    return Outbox(tmp_path / "orders.db")


@pytest.fixture
def relay(fencepost: Cluster, outbox: Outbox) -> Iterator[Relay]:
    """A relay of this outbox."""
    with Relay(outbox, fencepost.bootstrap, QUICK_RELAY) as relay:
        yield relay


@pytest.fixture
def start_shipping(fencepost: Cluster, outbox: Outbox, tmp_path: Path) -> StartShipping:
    """Start a member of the group on a thread; it is stopped at the end of the block."""

    @contextmanager
    def start(ship: Callable[[Order], None] = ship_nothing) -> Iterator[Shipping]:
        with (
            Shipping(
                tmp_path / "shipments.db",
                fencepost.bootstrap,
                ship=ship,
                on_lost=outbox.send_again,
                retry_pause_s=0,
                settings=QUICK_SHIPPING,
            ) as shipping,
            ThreadPoolExecutor(1) as threads,
        ):
            running = threads.submit(shipping.run)
            try:
                yield shipping
            finally:
                shipping.stop()
                running.result()

    return start


def order(order_id: str) -> Order:
    return Order(order_id=order_id, quantity=2, article="fence posts")


def place_all(outbox: Outbox) -> None:
    for order_id in IDS:
        outbox.place(order(order_id))


def stored(fencepost: Cluster) -> list[object]:
    """The keys of all records of the topic."""
    return [record.key for record in fencepost.read_records("orders", 0).records]


def wait_until_handled(fencepost: Cluster, *, offset: int) -> None:
    """Wait until the group has committed this offset."""

    def is_committed() -> bool:
        rows = fencepost.group("shipping").offsets
        return [row.committed_offset for row in rows if row.topic == "orders"] == [offset]

    fencepost.wait_for_group("shipping", members=1, timeout_ms=TIMEOUT_MS)
    fencepost.wait_until(is_committed, timeout_ms=TIMEOUT_MS)


@contextmanager
def in_background(relay: Relay) -> Iterator[None]:
    """Send all that is in the outbox; at the end of the block everything has to be sent."""
    with ThreadPoolExecutor(1) as threads:
        sending = threads.submit(relay.run_once)
        yield
        assert sending.result() == len(IDS)


# -- the relay ----------------------------------------------------------------------------------


def test_the_leader_is_killed_while_the_relay_sends(
    fencepost: Cluster, outbox: Outbox, relay: Relay
) -> None:
    place_all(outbox)
    unanswered = fencepost.add_fault("Produce", topic="orders", action="drop")
    with in_background(relay):
        fencepost.wait_for_fault(unanswered.id, timeout_ms=TIMEOUT_MS)
        fencepost.kill_broker(1)
    assert fencepost.partition("orders", 0).leader != 1
    assert stored(fencepost) == IDS
    assert outbox.unsent() == []


def test_an_acknowledgement_is_lost_and_the_order_is_stored_once(
    fencepost: Cluster, outbox: Outbox, relay: Relay
) -> None:
    outbox.place(order("17"))
    fencepost.add_fault("Produce", topic="orders", action={"disconnect": "after"})
    assert relay.run_once() == 1
    fencepost.verify("Produce", client_id="order-relay", topic="orders", count=2)
    assert stored(fencepost) == ["17"]


def test_orders_wait_in_the_outbox_while_replicas_are_missing(
    fencepost: Cluster, outbox: Outbox, relay: Relay
) -> None:
    fencepost.stop_broker(2)
    fencepost.stop_broker(3)
    place_all(outbox)
    with in_background(relay):
        fencepost.wait_for_trace(api="Produce", error="NOT_ENOUGH_REPLICAS", timeout_ms=TIMEOUT_MS)
        assert len(outbox.unsent()) == len(IDS)
        assert stored(fencepost) == []
        fencepost.start_broker(2)
    assert stored(fencepost) == IDS


def test_a_throttled_broker_delays_the_relay_and_loses_no_order(
    fencepost: Cluster, outbox: Outbox, relay: Relay
) -> None:
    fencepost.add_fault("Produce", topic="orders", action={"throttle": 300})
    outbox.place(order("17"))
    assert relay.run_once() == 1
    outbox.place(order("18"))
    assert relay.run_once() == 1
    assert relay.throttled_ms == 300
    first, second = fencepost.trace(api="Produce", client_id="order-relay")
    assert second.time_ms - first.time_ms >= 300
    assert stored(fencepost) == ["17", "18"]


# -- shipping -----------------------------------------------------------------------------------


def test_a_poison_record_becomes_a_dead_letter_after_all_retries(
    fencepost: Cluster, start_shipping: StartShipping
) -> None:
    attempts: list[str] = []

    def ship(order: Order) -> None:
        attempts.append(order.order_id)
        if order.order_id == "17":
            raise CannotShip("there is no such street")

    for order_id, value in (("17", "2 posts"), ("18", "1 gate"), ("19", "some posts")):
        fencepost.produce_records("orders", key=order_id, value=value)
    with start_shipping(ship) as shipping:
        wait_until_handled(fencepost, offset=3)
    fencepost.expect_records(
        "orders.dead-letters",
        key="17",
        headers={"origin": "orders-0@0", "error": "there is no such street"},
    )
    fencepost.expect_records("orders.dead-letters", key="19", value="some posts")
    assert attempts == ["17"] * 4 + ["18"]
    assert shipping.shipped() == ["18"]


def test_the_coordinator_moves_while_an_order_is_handled(
    fencepost: Cluster, outbox: Outbox, relay: Relay, start_shipping: StartShipping
) -> None:
    handled: list[str] = []

    def ship(order: Order) -> None:
        if order.order_id == "18":
            others = {1, 2, 3} - {fencepost.group("shipping").coordinator}
            fencepost.move_coordinator("shipping", broker=min(others))
        handled.append(order.order_id)

    place_all(outbox)
    relay.run_once()
    with start_shipping(ship):
        wait_until_handled(fencepost, offset=len(IDS))
    assert handled == IDS
    fencepost.verify("OffsetCommit", group="shipping", count={"at_least": len(IDS)})


def test_a_consumer_is_killed_between_handling_and_commit(
    fencepost: Cluster,
    outbox: Outbox,
    relay: Relay,
    start_shipping: StartShipping,
    tmp_path: Path,
) -> None:
    outbox.place(order("17"))
    relay.run_once()
    pending = fencepost.add_fault("OffsetCommit", group="shipping", action={"delay": 600_000})
    program = [sys.executable, "-m", "order_service", "--folder", str(tmp_path)]
    address = ["--bootstrap", fencepost.bootstrap]
    with subprocess.Popen([*program, *address, "ship"], cwd=Path(__file__).parent) as killed:
        try:
            fencepost.wait_for_fault(pending.id, timeout_ms=TIMEOUT_MS)
        finally:
            killed.kill()
    (member,) = fencepost.group("shipping").members
    fencepost.remove_member("shipping", member.member_id)
    handled_again: list[Order] = []
    with start_shipping(handled_again.append) as shipping:
        wait_until_handled(fencepost, offset=1)
        assert shipping.shipped() == ["17"]
    assert handled_again == []
    fencepost.verify("OffsetCommit", group="shipping", count=2)


def test_rebalances_in_a_row_lose_no_order(
    fencepost: Cluster, outbox: Outbox, relay: Relay, start_shipping: StartShipping
) -> None:
    place_all(outbox)
    with start_shipping() as shipping:
        fencepost.wait_for_group("shipping", members=1, timeout_ms=TIMEOUT_MS)
        with in_background(relay), start_shipping():
            generation = fencepost.wait_for_group(
                "shipping", members=2, timeout_ms=TIMEOUT_MS
            ).generation
            for _ in range(3):
                fencepost.rebalance_group("shipping")
                fencepost.wait_for_group("shipping", members=2, timeout_ms=TIMEOUT_MS)
        wait_until_handled(fencepost, offset=len(IDS))
        assert fencepost.group("shipping").generation >= generation + 3
        assert shipping.shipped() == IDS


def test_a_corrupt_record_is_fetched_again(
    fencepost: Cluster, outbox: Outbox, relay: Relay, start_shipping: StartShipping
) -> None:
    place_all(outbox)
    relay.run_once()
    corrupt = fencepost.add_fault("Fetch", client_id="shipping", action="corrupt")
    handled: list[Order] = []
    with start_shipping(handled.append):
        wait_until_handled(fencepost, offset=len(IDS))
    assert fencepost.fault(corrupt.id).hits == 1
    assert handled == [order(order_id) for order_id in IDS]
    lines = [line for line in fencepost.timeline().lines if "5 records, from 0" in line.text]
    assert sum(line.times for line in lines) >= 2


def test_orders_that_an_unclean_election_loses_are_sent_again(
    fencepost: Cluster, outbox: Outbox, relay: Relay, start_shipping: StartShipping
) -> None:
    outbox.place(order("17"))
    relay.run_once()
    with start_shipping() as shipping:
        fencepost.hold("orders", 0, 3, leave_isr=True)
        outbox.place(order("18"))
        relay.run_once()
        wait_until_handled(fencepost, offset=2)
        lost = fencepost.elect("orders", 0, leader=3, unclean=True).lost
        assert lost is not None
        assert lost.committed_records == 1
        fencepost.wait_until(outbox.unsent, timeout_ms=TIMEOUT_MS)
        fencepost.wait_until(relay.run_once, timeout_ms=TIMEOUT_MS)
        fencepost.expect_records("orders", key="18")
        wait_until_handled(fencepost, offset=3)
        assert shipping.shipped() == ["17", "18"]
