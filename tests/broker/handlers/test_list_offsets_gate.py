"""The gate after an election (KIP-207): who is refused what, until the high watermark is there.

The scenes: record 0 was committed. Record 1 is on brokers 1 and 2; broker 3, in the ISR, lacks it.
Broker 2 is elected then, and its high watermark stays behind its log until broker 3 fetches on.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fencepost.broker.node import operator_actions
from fencepost.broker.node.cluster import Conformance
from fencepost.protocol.errors import ErrorCode
from tests.harness.driver import Driver
from tests.harness.driver_requests import create, fetch, list_offset, produce
from tests.harness.records import TIMESTAMP, batch
from tests.harness.typed_requests import list_offsets_request, produce_request, values

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, TIERED, PENDING = -1, -2, -3, -4, -5, -6
OF_0, OF_1, BEHIND_ALL = TIMESTAMP, TIMESTAMP + 1, TIMESTAMP + 2
"""Times that find record 0, record 1, and nothing."""
EVERYTHING = (
    *(LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, TIERED, PENDING),
    *(OF_0, OF_1, BEHIND_ALL),
)
REFUSED = ErrorCode.OFFSET_NOT_AVAILABLE
UNCLEAN = "unclean.leader.election.enable"
KIP, APACHE = Conformance.KIP, Conformance.APACHE


def lagging(
    gate: str | None = None,
    conformance: Conformance = KIP,
    *,
    unclean_brokers: bool = False,
    unclean_topic: bool | None = None,
) -> Driver:
    """The scene, on brokers and a topic that say so about the gate and unclean elections."""
    static = {UNCLEAN: "true"} if unclean_brokers else {}
    if gate is not None:
        static["list.offsets.gate"] = gate
    own = {} if unclean_topic is None else {UNCLEAN: str(unclean_topic)}
    driver = Driver(3, static, conformance)
    create(driver, "t", [(1, 2, 3)], **own)
    append(driver, OF_0)
    driver.hold(3)
    append(driver, OF_1)
    driver.elect("t", 0, 2)
    leader = driver.leader("t")
    assert (leader.broker_id, leader.high_watermark, leader.log.log_end_offset) == (2, 1, 2)
    return driver


def append(driver: Driver, timestamp: int) -> None:
    request = produce_request(("t", 0, batch(b"%d" % timestamp, timestamp=timestamp)), acks=1)
    driver.ask(1, "produce", 12, request)


def refused(driver: Driver, *, isolation_level: int = 0) -> set[int]:
    """Of all lookups those that the gate refuses."""
    found = {
        timestamp: ErrorCode(
            list_offset(driver, "t", timestamp, isolation_level=isolation_level).error_code
        )
        for timestamp in EVERYTHING
    }
    assert set(found.values()) <= {ErrorCode.NONE, REFUSED}
    return {timestamp for timestamp, error in found.items() if error}


def offset(driver: Driver, timestamp: int = LATEST) -> int:
    found = list_offset(driver, "t", timestamp)
    assert found.error_code == ErrorCode.NONE
    return found.offset


# -- breadths -------------------------------------------------------------------------------------


@pytest.mark.parametrize("isolation_level", [0, 1])
@pytest.mark.parametrize(("gate", "conformance"), [(None, KIP), ("kip", KIP), ("kip", APACHE)])
def test_kip_refuses_every_lookup(
    gate: str | None, conformance: Conformance, isolation_level: int
) -> None:
    driver = lagging(gate, conformance)
    assert refused(driver, isolation_level=isolation_level) == set(EVERYTHING)


@pytest.mark.parametrize("isolation_level", [0, 1])
@pytest.mark.parametrize(("gate", "conformance"), [("kafka", KIP), (None, APACHE)])
def test_kafka_refuses_what_may_not_be_committed(
    gate: str | None, conformance: Conformance, isolation_level: int
) -> None:
    driver = lagging(gate, conformance)
    assert refused(driver, isolation_level=isolation_level) == {
        LATEST,
        MAX_TIMESTAMP,
        OF_1,
        BEHIND_ALL,
    }
    assert (offset(driver, EARLIEST), offset(driver, OF_0)) == (0, 0)


def test_kafka_answers_the_maximum_timestamp_where_it_is_committed() -> None:
    driver = Driver(3, {"list.offsets.gate": "kafka"})
    create(driver, "t", [(1, 2, 3)])
    append(driver, OF_1)
    driver.hold(3)
    append(driver, OF_0)
    driver.elect("t", 0, 2)
    assert refused(driver) == {LATEST, BEHIND_ALL}
    assert (offset(driver, MAX_TIMESTAMP), offset(driver, OF_1)) == (0, 0)


@pytest.mark.parametrize("conformance", Conformance)
def test_off_refuses_nothing(conformance: Conformance) -> None:
    driver = lagging("off", conformance)
    assert refused(driver) == set()
    assert (offset(driver), offset(driver, OF_1)) == (1, -1)


@pytest.mark.parametrize(
    ("gate", "after"),
    [("off", (ErrorCode.NONE, 0)), ("kafka", (REFUSED, -1)), ("kip", (REFUSED, -1))],
)
def test_without_the_gate_offsets_go_back(gate: str, after: tuple[ErrorCode, int]) -> None:
    driver = Driver(3, {"list.offsets.gate": gate})
    create(driver, "t", [(1, 2, 3)])
    driver.hold(2, 3)
    append(driver, OF_0)
    # Both fetch the record; that it is committed is told to broker 3 alone.
    for broker_id in (2, 3, 2, 3):
        operator_actions.step(driver.cluster, "t", 0, broker_id)
    assert offset(driver) == 1
    driver.elect("t", 0, 2)
    found = list_offset(driver, "t", LATEST)
    assert (found.error_code, found.offset) == after
    driver.release(2, 3)
    assert offset(driver) == 1


# -- when it stands -------------------------------------------------------------------------------


def test_it_opens_as_soon_as_the_isr_has_what_the_leader_had_at_its_election() -> None:
    driver = lagging()
    append_to_new_leader = produce_request(("t", 0, batch(b"later")), acks=1)
    driver.ask(2, "produce", 12, append_to_new_leader)
    assert refused(driver) == set(EVERYTHING)
    # It may have what was there at the election, and not what came later.
    operator_actions.hold(driver.cluster, "t", 0, 3, at=2)
    assert driver.leader("t").log.log_end_offset == 3
    assert refused(driver) == set()
    assert offset(driver) == 2
    driver.release(3)
    assert offset(driver) == 3


def test_it_opens_when_who_lags_leaves_the_isr() -> None:
    driver = lagging()
    operator_actions.hold(driver.cluster, "t", 0, 3, leave_isr=True)
    assert refused(driver) == set()
    assert offset(driver) == 2


def test_an_election_without_a_lag_closes_nothing() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    produce(driver, "t", b"a")
    driver.elect("t", 0, 2)
    assert refused(driver) == set()


def test_it_follows_the_config_at_run_time_and_the_topics_own_comes_first() -> None:
    driver = lagging()
    controller = driver.cluster.controller
    controller.set_broker_configs(None, {"list.offsets.gate": "off"})
    assert refused(driver) == set()
    controller.set_topic_configs("t", {"list.offsets.gate": "kafka"})
    assert LATEST in refused(driver)
    assert EARLIEST not in refused(driver)
    controller.set_topic_configs("t", {})
    controller.set_broker_configs(None, {})
    assert refused(driver) == set(EVERYTHING)


# -- unclean elections ----------------------------------------------------------------------------


@pytest.mark.parametrize("gate", ["kip", "kafka"])
def test_where_leaders_are_elected_uncleanly_it_is_open(gate: str) -> None:
    assert refused(lagging(gate, unclean_topic=True)) == set()
    assert refused(lagging(gate, unclean_brokers=True)) == set()
    assert LATEST in refused(lagging(gate, unclean_brokers=True, unclean_topic=False))


def test_apache_keeps_it_nevertheless() -> None:
    assert LATEST in refused(lagging(conformance=APACHE, unclean_topic=True))
    assert LATEST in refused(lagging("kip", APACHE, unclean_brokers=True))


# -- whom it is for, and in which words -----------------------------------------------------------


@pytest.mark.parametrize("gate", ["kip", "kafka"])
@pytest.mark.parametrize("replica_id", [3, -2])
def test_other_brokers_and_debuggers_are_answered(gate: str, replica_id: int) -> None:
    driver = lagging(gate)
    for timestamp in EVERYTHING:
        found = list_offset(driver, "t", timestamp, replica_id=replica_id)
        assert found.error_code == ErrorCode.NONE
    assert list_offset(driver, "t", LATEST, replica_id=replica_id).offset == 2


@pytest.mark.parametrize("gate", ["kip", "kafka"])
@pytest.mark.parametrize("version", range(1, 12))
def test_before_v5_its_error_is_leader_not_available(gate: str, version: int) -> None:
    found = list_offset(lagging(gate), "t", LATEST, version=version)
    expected = REFUSED if version >= 5 else ErrorCode.LEADER_NOT_AVAILABLE
    assert (found.error_code, found.offset, found.timestamp) == (expected, -1, -1)
    assert found.leader_epoch == -1


def test_it_comes_behind_every_other_check() -> None:
    driver = lagging()
    too_early = list_offset(driver, "t", MAX_TIMESTAMP, version=6)
    assert too_early.error_code == ErrorCode.UNSUPPORTED_VERSION
    fenced = list_offset(driver, "t", LATEST, current_leader_epoch=0)
    assert fenced.error_code == ErrorCode.FENCED_LEADER_EPOCH
    unknown = list_offset(driver, "t", LATEST, current_leader_epoch=2)
    assert unknown.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    elsewhere = list_offset(driver, "t", LATEST, broker_id=1)
    assert elsewhere.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_other_partitions_are_answered_at_once_beside_it() -> None:
    """No lookup waits for the gate, and none for another partition's."""
    driver = lagging()
    create(driver, "open", [(2, 1)])
    produce(driver, "open", b"a", b"b")
    request = list_offsets_request("t")
    both = (*request.topics, *list_offsets_request("open").topics)
    answer = driver.ask(2, "list_offsets", 5, replace(request, topics=both))
    found = {t.name: (t.partitions[0].error_code, t.partitions[0].offset) for t in answer.topics}
    assert found == {"t": (REFUSED, -1), "open": (ErrorCode.NONE, 2)}


def test_records_are_fetched_meanwhile() -> None:
    fetched = fetch(lagging(), "t", 0)
    assert fetched.error_code == ErrorCode.NONE
    assert values(fetched) == [b"%d" % OF_0]
