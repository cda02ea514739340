"""Faults of several APIs, in sequences, and that only count; and what is wrong with one."""

from __future__ import annotations

from typing import Any

import pytest

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.events import Kind
from fencepost.broker.faults.kinds import (
    Action,
    Bandwidth,
    Corrupt,
    Delay,
    Drop,
    Observe,
    Pass,
    Pieces,
    Refuse,
    RefuseConnections,
    Silent,
)
from fencepost.broker.faults.selectors import RecordSelector, Versions
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.heartbeat import HeartbeatRequest
from fencepost.protocol.records import crc_ok, iter_headers
from tests.broker.faults.faulty import CODE, listen, rule, set_fault
from tests.harness.driver import NEWEST, Driver, Message
from tests.harness.driver_requests import create, fetch, list_offset, produce, send_produce
from tests.harness.typed_requests import fetch_request, fetched, from_offset

OTHER = ErrorCode.POLICY_VIOLATION


@pytest.fixture
def driver() -> Driver:
    driver = Driver(1)
    create(driver, "t", [(1,)])
    return driver


def codes(driver: Driver, count: int) -> list[int]:
    return [list_offset(driver, "t", -1).error_code for _ in range(count)]


# -- several APIs -------------------------------------------------------------------------------


def test_a_fault_of_several_apis_hits_each_of_them_and_no_other(driver: Driver) -> None:
    fault = set_fault(driver, "list_offsets produce", Refuse(CODE), count=None)
    assert codes(driver, 1) == [CODE]
    assert produce(driver, "t", b"a").error_code == CODE
    assert fetch(driver, "t", 0).error_code == 0
    assert fault.hits == 2


def test_several_apis_share_one_count(driver: Driver) -> None:
    set_fault(driver, "list_offsets produce", Refuse(CODE), count=2)
    assert codes(driver, 1) == [CODE]
    assert produce(driver, "t", b"a").error_code == CODE
    assert codes(driver, 1) == [0]


def test_a_fault_of_every_api_hits_those_that_can_meet_it(driver: Driver) -> None:
    fault = set_fault(driver, "*", Refuse(CODE), topic="t", count=None)
    assert codes(driver, 1) == [CODE]
    assert produce(driver, "t", b"a").error_code == CODE
    request = HeartbeatRequest(group_id="g", member_id="m")
    assert driver.ask(1, "heartbeat", NEWEST, request).error_code != CODE
    assert fault.hits == 2


def test_an_event_has_the_apis_of_the_fault_and_the_api_of_a_hit(driver: Driver) -> None:
    events = listen(driver)
    set_fault(driver, "list_offsets produce", Refuse(CODE))
    set_fault(driver, "*", Delay(5))
    codes(driver, 1)
    assert [each.details["api"] for each in events] == [
        ("ListOffsets", "Produce"),
        "*",
        "ListOffsets",
    ]


# -- sequences ----------------------------------------------------------------------------------


def test_each_request_meets_the_next_action_of_a_sequence(driver: Driver) -> None:
    fault = set_fault(driver, "list_offsets", sequence=(Refuse(CODE), Pass(), Refuse(OTHER)))
    assert fault.left == 3
    assert codes(driver, 4) == [CODE, 0, OTHER, 0]
    assert (fault.hits, fault.left) == (3, 0)


def test_a_sequence_is_gone_through_as_often_as_its_count_says(driver: Driver) -> None:
    twice = set_fault(driver, "list_offsets", sequence=(Refuse(CODE), Pass()), count=2)
    assert twice.left == 4
    assert codes(driver, 5) == [CODE, 0, CODE, 0, 0]
    endless = set_fault(driver, "list_offsets", sequence=(Pass(), Refuse(CODE)), count=None)
    assert codes(driver, 4) == [0, CODE, 0, CODE]
    assert endless.left is None


def test_the_hits_of_a_sequence_are_told_with_their_actions(driver: Driver) -> None:
    events = listen(driver)
    set_fault(driver, "list_offsets", sequence=(Refuse(CODE), Pass()))
    codes(driver, 2)
    added, *hits = events
    steps = ({"error": CODE.name}, {"pass": True})
    assert added.details["sequence"] == steps
    assert "action" not in added.details
    assert [(hit.kind, hit.details["action"]) for hit in hits] == [
        (Kind.FAULT_HIT, step) for step in steps
    ]


def test_two_fetches_that_wait_for_records_do_not_meet_the_same_action(driver: Driver) -> None:
    fault = set_fault(driver, "fetch", sequence=(Corrupt(), Drop()))
    request = fetch_request(("t", from_offset(0)), max_wait_ms=500)
    waiting = [driver.send(1, "fetch", 12, request) for _ in range(2)]
    produce(driver, "t", b"a")
    assert [is_whole(each.response) for each in waiting] == [False, True]
    assert (fault.hits, fault.next_action) == (1, Drop())


def is_whole(response: Message) -> bool:
    """Whether the records of the only partition of a Fetch have their checksum."""
    records = b"".join(fetched(response).records or ())
    return all(crc_ok(records, at, header) for at, header in iter_headers(records))


# -- those that change nothing ------------------------------------------------------------------


def test_a_fault_that_observes_counts_and_lets_other_faults_hit(driver: Driver) -> None:
    observer = set_fault(driver, "list_offsets", Observe(), count=None)
    set_fault(driver, "list_offsets", Refuse(CODE))
    last = set_fault(driver, "list_offsets", Observe(), count=None)
    assert codes(driver, 3) == [CODE, 0, 0]
    assert (observer.hits, observer.left) == (3, None)
    assert last.hits == 2, "a request is hit once, by the first that does something"


def test_a_fault_that_passes_keeps_a_request_from_later_ones(driver: Driver) -> None:
    set_fault(driver, "list_offsets", Pass(), count=None, client_id="c1")
    later = set_fault(driver, "list_offsets", Refuse(CODE), count=None)
    assert codes(driver, 2) == [0, 0]
    assert later.hits == 0


# -- what makes no sense ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("apis", "selectors", "problem"),
    [
        ("produce", {}, "action, sequence: name one of the two"),
        ("produce", {"sequence": ()}, "sequence: name 1 to 1000 actions"),
        ("produce", {"sequence": (Pass(),) * 1001}, "sequence: name 1 to 1000 actions"),
        (
            "produce heartbeat",
            {"action": Corrupt()},
            "action: corrupt is for Produce and Fetch, which bring records; Heartbeat does not",
        ),
        (
            "heartbeat",
            {"sequence": (Pass(), Corrupt())},
            "sequence[1]: corrupt is for Produce and Fetch",
        ),
        (
            "*",
            {"action": Drop(), "group": "g", "record": RecordSelector(key="k")},
            "api: no API can meet it: ",
        ),
        ("*", {"action": Observe()}, "count: observe has no end; leave it out, and remove"),
        (
            "*",
            {"sequence": (Observe(), Pass()), "count": None},
            "sequence: observe has no end, so that no action comes after it",
        ),
        ("*", {"action": RefuseConnections()}, "count: refuse has no end; leave it out"),
        (
            "fetch",
            {"action": RefuseConnections(), "count": None},
            "api: refuse hits connections before any request of them; write '*'",
        ),
        (
            "*",
            {"action": Silent(), "client_id": "c"},
            "client_id: silent hits connections before any request of them, which only broker ",
        ),
        (
            "*",
            {"action": RefuseConnections(), "count": None, "after": 1},
            "after, probability: refuse closes the port, and no connection is counted",
        ),
        (
            "*",
            {"sequence": (Silent(), Drop())},
            "sequence: silent and drop do not hit the same: one hits connections, the other ",
        ),
        (
            "fetch",
            {"action": Bandwidth(1), "source": "brokers"},
            "source: bandwidth acts on bytes, and brokers exchange messages without any",
        ),
        ("fetch", {"action": Pieces(1), "source": "brokers"}, "source: pieces acts on bytes"),
        (
            "fetch",
            {"action": Drop(), "record": RecordSelector()},
            "record: name a key, a value or a header",
        ),
        (
            "heartbeat",
            {"action": Drop(), "record": RecordSelector(key="k")},
            "record: Heartbeat brings no records; Produce and Fetch do",
        ),
        (
            "produce fetch",
            {"action": Drop(), "versions": Versions(14, None)},
            "versions: Produce is served in versions 3 to 13, and 14- is none of them",
        ),
    ],
)
def test_what_nothing_could_meet_is_refused_in_one_line(
    driver: Driver, apis: str, selectors: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ControllerError) as error:
        driver.cluster.faults.add(rule(apis, **selectors))
    assert error.value.message.startswith(problem)
    assert "\n" not in error.value.message
    assert error.value.code is ErrorCode.INVALID_REQUEST
    assert driver.cluster.faults.all() == ()


@pytest.mark.parametrize(
    "action", [Bandwidth(1), Pieces(1), Silent(), RefuseConnections(), Observe()]
)
def test_what_acts_on_bytes_or_connections_does_nothing_between_brokers(action: Action) -> None:
    """Of these only an observer counts what followers fetch."""
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    apis = "*" if isinstance(action, Silent | RefuseConnections) else "fetch"
    count = None if isinstance(action, Observe | RefuseConnections) else 1
    fault = set_fault(driver, apis, action, count=count)
    assert send_produce(driver, "t", b"a").done, "the follower's Fetch is answered at once"
    assert (fault.hits > 0) is isinstance(action, Observe)
