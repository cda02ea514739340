"""Three replicas: what followers have, what new leaders compare with, who else is asked."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fencepost.broker.node.operator_actions import isolate
from fencepost.protocol.compression import Codec
from fencepost.protocol.errors import ErrorCode
from tests.broker.handlers.conditional import frames
from tests.broker.handlers.conditional.frames import VERSIONS
from tests.broker.handlers.conditional.playing import stored, take
from tests.broker.handlers.conditional.rows import (
    BY_KEY,
    ON,
    UNSPECIFIED,
    Answer,
    Batch,
    again,
    appended,
    batch,
    dragged,
    mismatch,
)
from tests.harness.driver import Driver
from tests.harness.driver_requests import create

BROKERS = (1, 2, 3)


@pytest.fixture(params=VERSIONS, ids=lambda version: f"v{version}")
def version(request: pytest.FixtureRequest) -> int:
    value: int = request.param
    return value


def three(**configs: str) -> Driver:
    """Three brokers that all have the partition; "abc" is there."""
    driver = Driver(3)
    create(driver, "t", [BROKERS], **(configs or ON))
    take(driver, "t-0", "abc")
    return driver


def send(
    driver: Driver, version: int, *batches: Batch, broker_id: int | None = None, acks: int = -1
) -> frames.Asked:
    if broker_id is None:
        broker_id = driver.leader("t").broker_id
    sent = b"".join(each.encoded for each in batches)
    return frames.send(driver, [("t-0", sent)], broker_id=broker_id, version=version, acks=acks)


def assert_told(asked: frames.Asked, expected: Answer) -> None:
    """What the only partition is answered."""
    assert asked.answers == [("t-0", expected.at(asked.version, "t-0", "t-0"))]


def raw(driver: Driver, broker_id: int) -> bytes:
    """A whole log as it is stored."""
    log = driver.replica(broker_id, "t").log
    end = log.log_end_offset
    read = log.read(0, max_bytes=1 << 20, upper_bound=end, min_one_batch=True)
    return b"".join(read.buffers)


@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name)
def test_every_replica_has_the_bytes_of_the_set(version: int, codec: Codec) -> None:
    if codec is Codec.ZSTD and version < 7:
        return
    driver = three()
    before = len(raw(driver, 1))
    sent = [Batch(values="de", at=3, codec=codec), Batch(values="f", at=5, codec=codec)]
    assert_told(send(driver, version, *sent), appended(3))
    logs = {raw(driver, broker_id) for broker_id in BROKERS}
    assert len(logs) == 1, "every replica has the same bytes"
    (log,) = logs
    # Base offset, length and epoch are what a leader writes; the rest is as it was sent.
    kept = log[before:]
    for each in sent:
        size = len(each.encoded)
        assert kept[:8] == each.at.to_bytes(8, "big")
        assert kept[16:size] == each.encoded[16:]
        kept = kept[size:]
    assert kept == b""
    assert [stored(driver, "t-0", broker_id) for broker_id in BROKERS] == ["abcdef"] * 3


def test_a_new_leader_compares_with_its_own_log(version: int) -> None:
    driver = three()
    for leader, at in ((2, 3), (3, 4), (1, 5)):
        driver.elect("t", 0, leader)
        assert_told(send(driver, version, batch("x", at - 1)), mismatch((0, at - 1, at)))
        assert_told(send(driver, version, batch("x", at)), appended(at))
    assert stored(driver, "t-0", 2) == "abcxxx"


def test_what_the_last_leader_alone_had_is_not_expected_any_more(version: int) -> None:
    driver = three()
    driver.hold(2, 3)
    assert_told(send(driver, version, batch("de", 3), acks=1), appended(3))
    driver.elect("t", 0, 2)
    driver.release(2, 3)
    assert_told(send(driver, version, batch("f", 5)), mismatch((0, 5, 3)))
    assert_told(send(driver, version, batch("xyz", 3)), appended(3))
    assert [stored(driver, "t-0", broker_id) for broker_id in BROKERS] == ["abcxyz"] * 3


def test_of_a_set_that_was_not_acknowledged_a_prefix_may_stay(version: int) -> None:
    driver = three()
    driver.hold(2, 3)
    driver.release(2)
    driver.broker(2).replica_manager.hold("t", 0, 5)
    asked = send(driver, version, batch("de", 3), batch("f", 5))
    assert not asked.done
    driver.elect("t", 0, 2)
    driver.release(2, 3)
    ((_, answer),) = asked.answers
    assert answer["ErrorCode"] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert [stored(driver, "t-0", broker_id) for broker_id in BROKERS] == ["abcde"] * 3
    assert_told(
        send(driver, version, batch("de", 3), batch("f", 5)), mismatch((0, 3, 5), (2, 5, 7))
    )
    assert_told(send(driver, version, batch("f", 5)), appended(5))


def test_what_is_left_of_an_idempotent_set_is_completed(version: int) -> None:
    driver = three()
    driver.hold(2, 3)
    driver.release(2)
    driver.broker(2).replica_manager.hold("t", 0, 5)
    sent = [
        Batch(values="de", at=3, producer=(7, 0, 0)),
        Batch(values="f", at=5, producer=(7, 0, 2)),
    ]
    send(driver, version, *sent)
    driver.elect("t", 0, 2)
    driver.release(2, 3)
    assert_told(send(driver, version, *sent), again(3))
    assert [stored(driver, "t-0", broker_id) for broker_id in BROKERS] == ["abcdef"] * 3


def test_a_new_leader_knows_the_keys(version: int) -> None:
    driver = Driver(3)
    create(driver, "t", [BROKERS], **BY_KEY)
    take(driver, "t-0", batch("abc", UNSPECIFIED, "xyx"))
    driver.elect("t", 0, 3)
    assert_told(send(driver, version, batch("d", 2, "x")), mismatch((0, 2, 3, 2)))
    assert_told(send(driver, version, batch("d", 2, "y")), appended(3))
    driver.elect("t", 0, 2)
    assert_told(send(driver, version, batch("e", 3, "y")), mismatch((0, 3, 4, 3)))


def test_a_new_leader_forgets_the_keys_of_what_was_lost(version: int) -> None:
    driver = Driver(3)
    create(driver, "t", [BROKERS], **BY_KEY)
    take(driver, "t-0", batch("abc", UNSPECIFIED, "xyx"))
    driver.hold(2, 3)
    assert_told(send(driver, version, batch("d", 3, "y"), acks=1), appended(3))
    driver.elect("t", 0, 2)
    driver.release(2, 3)
    assert_told(send(driver, version, batch("D", 2, "y")), appended(3))
    driver.elect("t", 0, 1)
    assert_told(send(driver, version, batch("e", 3, "y")), mismatch((0, 3, 4, 3)))
    assert stored(driver, "t-0") == "abcD"


def test_who_does_not_lead_says_so_beside_a_mismatch(version: int) -> None:
    driver = Driver(2)
    create(driver, "t", [(1,), (2,), (1,)], **ON)
    parts = [(f"t-{index}", batch("a", at).encoded) for index, at in ((0, 0), (1, 0), (2, 7))]
    answers = frames.send(driver, parts, version=version).answers
    _, elsewhere = answers.pop(1)
    elsewhere.pop("CurrentLeader(tag0)", None)
    moved = Answer(code=ErrorCode.NOT_LEADER_OR_FOLLOWER, start=-1)
    assert elsewhere == moved.at(version, "t-1", "")
    expected = [("t-0", dragged()), ("t-2", mismatch((0, 7, 0)))]
    assert answers == [(name, each.at(version, name, "t-2")) for name, each in expected]
    assert stored(driver, "t-0") == ""


def test_who_does_not_lead_drags_nobody_down(version: int) -> None:
    driver = Driver(2)
    create(driver, "t", [(1,), (2,)], **ON)
    parts = [("t-0", batch("a", 0).encoded), ("t-1", batch("a", 9).encoded)]
    codes = [part["ErrorCode"] for _, part in frames.send(driver, parts, version=version).answers]
    assert codes == [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert stored(driver, "t-0") == "a"


@pytest.mark.parametrize("at", [0, 7], ids=["right", "wrong"])
def test_too_few_replicas_beside_another_partition(version: int, at: int) -> None:
    driver = Driver(3)
    create(driver, "t", [(1,)], **ON)
    create(driver, "few", [BROKERS], **ON, **{"min.insync.replicas": "3"})
    controller = driver.cluster.controller
    topic = controller.image.topics["few"]
    shrunk = replace(topic.partitions[0], isr=(1, 2), partition_epoch=1)
    controller.update_topics([replace(topic, partitions=(shrunk,))])
    # Its offset is wrong as well, but no check reads it.
    parts = [("few-0", batch("a", 5).encoded), ("t-0", batch("a", at).encoded)]
    answers = frames.send(driver, parts, version=version).answers
    few = Answer(code=ErrorCode.NOT_ENOUGH_REPLICAS)
    there = appended(0) if at == 0 else mismatch((0, at, 0))
    expected = [("few-0", few), ("t-0", there)]
    assert answers == [(name, each.at(version, name, "t-0")) for name, each in expected]
    assert stored(driver, "t-0") == ("a" if at == 0 else "")


def test_a_leader_that_nobody_told_of_its_successor_compares_with_its_own_log(version: int) -> None:
    driver = three()
    isolate(driver.cluster, 1, from_controller=True)
    driver.elect("t", 0, 2)
    assert_told(send(driver, version, batch("x", 3)), appended(3))
    old = send(driver, version, batch("y", 4), broker_id=1, acks=1)
    assert_told(old, mismatch((0, 4, 3)))
    old = send(driver, version, batch("y", 3), broker_id=1, acks=1)
    assert_told(old, appended(3))
