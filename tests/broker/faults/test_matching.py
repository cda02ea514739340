"""Which requests a fault hits, how often, and the events of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.events import Kind
from fencepost.broker.faults.interceptor import Interception
from fencepost.broker.faults.kinds import Action, Corrupt, Delay, Refuse, StaleMetadata, Throttle
from fencepost.broker.faults.request_fields import TopicFields, topic_fields
from fencepost.broker.faults.selectors import Versions
from fencepost.protocol.apis import APIS, BY_NAME
from fencepost.protocol.codec.schema import message_schema
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.heartbeat import HeartbeatRequest
from fencepost.protocol.messages.init_producer_id import InitProducerIdRequest
from fencepost.protocol.messages.metadata import MetadataRequest
from tests.broker.faults.faulty import CODE, listen, set_fault
from tests.harness.driver import NEWEST, Driver
from tests.harness.driver_requests import create, fetch, list_offset, produce, send_produce
from tests.protocol.messages import ours, smallest

OTHER = ErrorCode.POLICY_VIOLATION


@pytest.fixture
def driver() -> Driver:
    return new_driver()


def new_driver() -> Driver:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    create(driver, "u", [(2, 3)])
    return driver


def codes(driver: Driver, count: int) -> list[int]:
    return [list_offset(driver, "t", -1).error_code for _ in range(count)]


# -- selectors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selector", "fits"),
    [
        ({"versions": Versions(4, 6)}, [4, 5, 6]),
        ({"versions": Versions(6, None)}, [6, 7]),
        ({"versions": Versions(None, 3)}, [3]),
        ({"versions": Versions(5, 5)}, [5]),
    ],
)
def test_versions_are_inclusive(
    driver: Driver, selector: dict[str, Versions], fits: list[int]
) -> None:
    set_fault(driver, "list_offsets", Refuse(CODE), count=None, **selector)
    asked = range(3, 8)
    found = [v for v in asked if list_offset(driver, "t", -1, version=v).error_code == CODE]
    assert found == fits


@pytest.mark.parametrize(
    ("selector", "hits"),
    [
        ({"broker": 1}, 1),
        ({"broker": 2}, 1),
        ({"broker": 3}, 0),
        ({"client_id": "c1"}, 2),
        ({"client_id": "c2"}, 0),
        ({"topic": "t"}, 1),
        ({"topic": "t", "partition": 0, "broker": 1, "client_id": "c1"}, 1),
        ({"topic": "t", "partition": 1}, 0),
        ({"topic": "t", "broker": 2}, 0),
        ({"source": "brokers"}, 0),
    ],
)
def test_every_selector_is_to_fit(driver: Driver, selector: dict[str, Any], hits: int) -> None:
    fault = set_fault(driver, "list_offsets", Refuse(CODE), count=None, **selector)
    list_offset(driver, "t", -1)
    list_offset(driver, "u", -1)
    assert fault.hits == hits


def test_a_group_and_a_transactional_id_select(driver: Driver) -> None:
    set_fault(driver, "heartbeat", Refuse(CODE), group="g", count=None)
    set_fault(driver, "init_producer_id", Refuse(CODE), transactional_id="x", count=None)
    beats = [
        driver.ask(1, "heartbeat", NEWEST, HeartbeatRequest(group_id=group)).error_code == CODE
        for group in ("g", "h")
    ]
    ids = [
        driver.ask(
            1, "init_producer_id", 4, InitProducerIdRequest(transactional_id=name)
        ).error_code
        == CODE
        for name in ("x", None)
    ]
    assert (beats, ids) == ([True, False], [True, False])


def test_another_api_does_not_fit(driver: Driver) -> None:
    fault = set_fault(driver, "fetch", Refuse(CODE), source="clients")
    list_offset(driver, "t", -1)
    assert fault.hits == 0


# -- triggers -----------------------------------------------------------------------------------


def test_a_fault_hits_once_if_nothing_else_is_said(driver: Driver) -> None:
    fault = set_fault(driver, "list_offsets", Refuse(CODE))
    assert fault.left == 1
    assert codes(driver, 3) == [CODE, 0, 0]
    assert (fault.hits, fault.left) == (1, 0)
    assert driver.cluster.faults.all() == (fault,)


def test_count_ends_a_fault_and_null_does_not(driver: Driver) -> None:
    set_fault(driver, "list_offsets", Refuse(CODE), count=2)
    endless = set_fault(driver, "list_offsets", Refuse(OTHER), count=None)
    assert codes(driver, 4) == [CODE, CODE, OTHER, OTHER]
    assert endless.left is None


def test_the_first_fault_that_fits_wins(driver: Driver) -> None:
    set_fault(driver, "list_offsets", Refuse(CODE), count=None)
    second = set_fault(driver, "list_offsets", Refuse(OTHER), count=None)
    assert codes(driver, 2) == [CODE, CODE]
    assert second.hits == 0


def test_after_lets_requests_through_and_to_the_next_fault(driver: Driver) -> None:
    set_fault(driver, "list_offsets", Refuse(CODE), after=2, topic="t")
    list_offset(driver, "u", -1)
    assert codes(driver, 4) == [0, 0, CODE, 0]
    set_fault(driver, "list_offsets", Refuse(CODE), after=1)
    set_fault(driver, "list_offsets", Refuse(OTHER), count=None)
    assert codes(driver, 3) == [OTHER, CODE, OTHER]


def chances(driver: Driver) -> list[int]:
    set_fault(driver, "list_offsets", Refuse(CODE), probability=0.3, count=None)
    return codes(driver, 200)


def test_probability_is_drawn_from_the_seed_and_again_after_a_reset(driver: Driver) -> None:
    drawn = chances(driver)
    assert 35 <= drawn.count(CODE) <= 85
    again = Driver(3)
    create(again, "t", [(1, 2, 3)])
    assert chances(again) == drawn
    driver.cluster.reset()
    create(driver, "t", [(1, 2, 3)])
    assert chances(driver) == drawn


def test_chances_take_nothing_from_the_clusters_own(driver: Driver) -> None:
    state = driver.cluster.rng.getstate()
    chances(driver)
    assert driver.cluster.rng.getstate() == state


def test_only_requests_that_are_hit_are_counted(driver: Driver) -> None:
    fault = set_fault(driver, "list_offsets", Refuse(CODE), probability=0.5, count=3, after=5)
    assert codes(driver, 60).count(CODE) == fault.hits == 3


# -- the list -----------------------------------------------------------------------------------


def test_a_fault_that_is_removed_hits_no_more(driver: Driver) -> None:
    fault = set_fault(driver, "list_offsets", Refuse(CODE), count=None)
    assert codes(driver, 1) == [CODE]
    assert driver.cluster.faults.remove(fault.id) is fault
    assert codes(driver, 1) == [0]
    with pytest.raises(ControllerError, match=f"there is no fault {fault.id}") as error:
        driver.cluster.faults.get(fault.id)
    assert error.value.code is ErrorCode.RESOURCE_NOT_FOUND


def remove_all(driver: Driver) -> None:
    driver.cluster.faults.remove_all()


def reset(driver: Driver) -> None:
    driver.cluster.reset()
    create(driver, "t", [(1, 2, 3)])


@pytest.mark.parametrize("end", [remove_all, reset])
def test_all_faults_go_and_their_numbers_go_on(
    driver: Driver, end: Callable[[Driver], None]
) -> None:
    last = [set_fault(driver, "list_offsets", Refuse(CODE)).id for _ in range(3)][-1]
    end(driver)
    assert driver.cluster.faults.all() == ()
    assert codes(driver, 1) == [0]
    assert set_fault(driver, "list_offsets", Refuse(CODE)).id == last + 1


def test_with_no_fault_left_nothing_is_looked_at(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = driver.cluster.faults
    monkeypatch.setattr(type(faults), "intercept", lambda *_: pytest.fail("looked at"))
    assert not faults.active
    assert codes(driver, 1) == [0]
    monkeypatch.undo()
    set_fault(driver, "list_offsets", Refuse(CODE))
    assert len(faults.active) == 1
    codes(driver, 1)
    assert not faults.active


def test_a_delayed_request_is_not_hit_twice(driver: Driver) -> None:
    set_fault(driver, "produce", Delay(10))
    second = set_fault(driver, "produce", Refuse(CODE))
    asked = send_produce(driver, "t", b"a", acks=1)
    driver.advance(10)
    assert asked.response.responses[0].partition_responses[0].error_code == 0
    assert second.hits == 0


# -- events -------------------------------------------------------------------------------------


def test_what_faults_do_is_told(driver: Driver) -> None:
    events = listen(driver)
    fault = set_fault(
        driver, "produce", Refuse(ErrorCode.NOT_ENOUGH_REPLICAS), topic="t", partition=0
    )
    produce(driver, "t", b"a")
    driver.cluster.faults.remove(fault.id)
    told = [(e.kind, e.topic, e.partition, e.broker) for e in events]
    assert told == [
        (Kind.FAULT_ADDED, "t", 0, None),
        (Kind.FAULT_HIT, "t", 0, 1),
        (Kind.FAULT_REMOVED, "t", 0, None),
    ]
    assert events[1].details == {
        "id": fault.id,
        "api": "Produce",
        "action": {"error": "NOT_ENOUGH_REPLICAS"},
        "client_id": "c1",
    }


def test_an_error_without_a_name_is_told_by_its_number(driver: Driver) -> None:
    events = listen(driver)
    set_fault(driver, "fetch", Refuse(999))
    assert events[0].details["action"] == {"error": 999}


# -- what makes no sense ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api", "action", "selectors", "problem"),
    [
        ("produce", Refuse(0), {}, "action: error: NONE is no error"),
        (
            "produce",
            StaleMetadata(1),
            {},
            "action: stale_metadata is for Metadata, not for Produce",
        ),
        (
            "heartbeat",
            Corrupt(),
            {},
            "action: corrupt is for Produce and Fetch, which bring records; Heartbeat does not",
        ),
        (
            "describe_quorum",
            Throttle(1),
            {},
            "action: throttle: answers to DescribeQuorum have no throttle_time_ms",
        ),
        (
            "list_offsets",
            Throttle(1),
            {"versions": Versions(1, 1)},
            (
                "action: throttle: answers to ListOffsets have throttle_time_ms from version 2 on, "
                "and versions says 1"
            ),
        ),
        ("heartbeat", Refuse(1), {"topic": "t"}, "topic: Heartbeat names no topics"),
        ("fetch", Refuse(1), {"group": "g"}, "group: Fetch names no group; "),
        (
            "fetch",
            Refuse(1),
            {"transactional_id": "x"},
            (
                "transactional_id: Fetch names no transactional id; Produce, FindCoordinator, "
                "InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, TxnOffsetCommit and "
                "DescribeTransactions do"
            ),
        ),
        (
            "find_coordinator",
            Refuse(1),
            {"transactional_id": "x", "group": "g"},
            "group, transactional_id: no request names both",
        ),
        ("fetch", Refuse(1), {"partition": 1}, "partition: name its topic too"),
        (
            "create_topics",
            Refuse(1),
            {"topic": "t", "partition": 1},
            "partition: CreateTopics names topics and no partitions; leave it out",
        ),
        (
            "metadata",
            Delay(1),
            {"topic": "t", "partition": 1},
            "partition: Metadata names topics and no partitions; leave it out",
        ),
        (
            "describe_log_dirs",
            Refuse(1),
            {"topic": "t"},
            "topic: DescribeLogDirs has no error for one topic, only for all; leave it out",
        ),
        (
            "produce",
            Refuse(1),
            {"versions": Versions(None, 2)},
            "versions: Produce is served in versions 3 to 13, and -2 is none of them",
        ),
    ],
)
def test_what_no_request_could_meet_is_refused_in_one_line(
    driver: Driver, api: str, action: Action, selectors: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ControllerError) as error:
        set_fault(driver, api, action, **selectors)
    assert error.value.message.startswith(problem)
    assert "\n" not in error.value.message
    assert error.value.code is ErrorCode.INVALID_REQUEST
    assert driver.cluster.faults.all() == ()


def test_a_kind_of_fault_without_checks_cannot_be_made() -> None:
    class Unchecked(Action):
        name = "unchecked"

        def intercept(self, hit: Interception) -> object:
            return hit.carry_out()

    unchecked: Any = Unchecked
    with pytest.raises(TypeError, match="abstract method"):
        unchecked()


def test_a_request_for_all_topics_names_each() -> None:
    """Of each API whose requests name no topics where they mean all of them."""
    # Reading all schemas takes a second, too long for the parameters that each worker collects.
    found = [(api, fields) for api in APIS if (fields := topic_fields(api)) is not None]
    for_all = {api.name: fields for api, fields in found if fields.null_is_all}
    assert for_all
    assert {name: _hits(name, for_all[name]) for name in for_all} == dict.fromkeys(for_all, 1)


def _hits(name: str, fields: TopicFields) -> int:
    """How often a fault for one topic of a new cluster is hit by a request for all of them."""
    driver = new_driver()
    api = BY_NAME[name]
    wire = message_schema(name, "request", api.max_version)
    everything = dict.fromkeys(fields.request_fields)
    content = smallest(wire)
    if name == "offset_fetch":
        content["groups"] = ({**content["groups"][0], "group_id": "g", **everything},)
    else:
        content.update(everything)
    fault = set_fault(driver, name, Delay(10), topic="t")
    driver.send(1, name, api.max_version, ours(wire, content))
    return fault.hits


def test_a_request_of_metadata_that_names_no_topic_is_refused_as_a_whole(driver: Driver) -> None:
    set_fault(driver, "metadata", Refuse(CODE))
    answer = driver.ask(1, "metadata", 12, MetadataRequest(topics=()))
    assert answer.brokers == ()
    assert fetch(driver, "t", 0).error_code == 0
