"""Fetch v9 in the dialect kip-320-draft: each error of the draft, and that there are no others."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fencepost.broker.node import operator_actions
from fencepost.broker.node.cluster import Conformance
from fencepost.protocol.codec.drafts import KIP_320_DRAFT
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import EpochEndOffset, FetchRequest, PartitionData
from tests.harness.driver import Asked, Driver
from tests.harness.driver_requests import create, fetch, list_offset, produce
from tests.harness.remote_tier import Tier
from tests.harness.typed_requests import fetch_request, fetched, from_offset, values

NEVER_MS = 60_000
END = 2
"""Of the log of `diverged`."""
NONE, OUT_OF_RANGE = ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE
TRUNCATED, UNKNOWN = ErrorCode.LOG_TRUNCATION, ErrorCode.UNKNOWN_LEADER_EPOCH


def request(offset: int, epoch: int, session: tuple[int, int] = (0, -1)) -> FetchRequest:
    asked = replace(from_offset(offset), last_fetched_epoch=epoch)
    return fetch_request(("t", asked), max_wait_ms=NEVER_MS, session=session)


def send(driver: Driver, offset: int, epoch: int, *, version: int = 9) -> Asked:
    """A request to the leader that waits for records."""
    leader = driver.leader("t").broker_id
    return driver.send(leader, "fetch", version, request(offset, epoch))


def ask(driver: Driver, offset: int, epoch: int, *, version: int = 9) -> PartitionData:
    """The answer, which comes at once."""
    return fetched(send(driver, offset, epoch, version=version).response)


def diverged(
    conformance: Conformance = Conformance.KIP, *, is_drafted: bool = True, **configs: str
) -> Driver:
    """Broker 2 has lost "b" and "c" of epoch 0, leads in a later one, and has written "x"."""
    driver = Driver(2, conformance=conformance, dialect=KIP_320_DRAFT if is_drafted else None)
    create(driver, "t", [(1, 2)], **configs)
    produce(driver, "t", b"a")
    driver.hold(2)
    produce(driver, "t", b"b", b"c", acks=1)
    operator_actions.kill(driver.cluster, 1)
    driver.cluster.controller.elect("t", 0, 2, unclean=True)
    driver.cluster.scheduler.run_due()
    assert driver.leader("t").log.log_end_offset == 1
    produce(driver, "t", b"x")
    return driver


both = pytest.mark.parametrize("conformance", Conformance)


# -- the errors of the draft --------------------------------------------------------------------


@both
def test_an_offset_behind_where_a_larger_epoch_began_is_truncated(conformance: Conformance) -> None:
    driver = diverged(conformance)
    for offset in (2, 3, 99):
        answer = ask(driver, offset, 0)
        assert (answer.error_code, values(answer)) == (TRUNCATED, [])
        assert (answer.high_watermark, answer.log_start_offset) == (-1, -1)
        assert answer.diverging_epoch == EpochEndOffset(), "to be found by OffsetForLeaderEpoch"
    assert values(ask(driver, 1, 0)) == [b"x"], "where it began itself nothing is lost"


@both
def test_an_epoch_larger_than_all_is_unknown(conformance: Conformance) -> None:
    driver = diverged(conformance)
    newest = driver.leader("t").leader_epoch
    assert ask(driver, 0, newest).error_code == NONE
    for offset in (0, END, 99):
        assert ask(driver, offset, newest + 1).error_code == UNKNOWN


@both
def test_above_the_log_end_a_known_epoch_is_a_truncation(conformance: Conformance) -> None:
    driver = diverged(conformance)
    newest = driver.leader("t").leader_epoch
    assert not send(driver, END, newest).done, "at the log end it waits"
    assert ask(driver, END + 1, newest).error_code == TRUNCATED


@both
def test_above_the_log_end_without_an_epoch_it_waits_for_the_log_to_reach_it(
    conformance: Conformance,
) -> None:
    driver = diverged(conformance)
    behind, at_end = send(driver, END + 2, -1), send(driver, END, -1)
    produce(driver, "t", b"y", b"z")
    assert values(fetched(at_end.response)) == [b"y", b"z"]
    assert not behind.done
    produce(driver, "t", b"seen")
    answer = fetched(behind.response)
    assert (answer.error_code, values(answer)) == (NONE, [b"seen"])


def test_above_the_log_end_without_an_epoch_the_empty_answer_has_the_watermarks() -> None:
    driver = diverged()
    asked = send(driver, 99, -1)
    driver.advance(NEVER_MS)
    answer = fetched(asked.response)
    assert (answer.error_code, values(answer)) == (NONE, [])
    assert (answer.high_watermark, answer.log_start_offset) == (END, 0)


@pytest.mark.parametrize("epoch", [-1, 0])
def test_only_below_the_log_start_an_offset_is_out_of_range(epoch: int) -> None:
    driver = diverged()
    driver.leader("t").log.advance_log_start(1)
    assert ask(driver, 0, epoch).error_code == OUT_OF_RANGE
    assert ask(driver, -1, epoch).error_code == OUT_OF_RANGE
    assert ask(driver, 1, epoch).error_code == NONE


def test_a_leader_that_was_deposed_serves_it_unfenced() -> None:
    driver = Driver(3, dialect=KIP_320_DRAFT)
    create(driver, "t", [(1, 2, 3)])
    produce(driver, "t", b"a")
    operator_actions.isolate(driver.cluster, 1, from_controller=True)
    epoch = driver.partition("t").leader_epoch
    assert driver.partition("t").leader == 2
    drafted = fetched(driver.ask(1, "fetch", 9, request(0, 0)))
    assert (drafted.error_code, values(drafted)) == (NONE, [b"a"])
    final = fetch(driver, "t", 0, broker_id=1, version=12, current_leader_epoch=epoch)
    assert final.error_code == UNKNOWN, "by the epoch that the final KIP's consumer sends"


def test_the_schema_has_no_current_epoch_to_fence() -> None:
    driver = diverged()
    for epoch in (0, driver.leader("t").leader_epoch + 1):
        assert fetch(driver, "t", 0, version=9, current_leader_epoch=epoch).error_code == NONE
        assert fetch(driver, "t", 0, version=10, current_leader_epoch=epoch).error_code != NONE


def test_a_fetch_session_remembers_the_epoch() -> None:
    driver = diverged()
    leader = driver.leader("t")
    first = driver.ask(2, "fetch", 9, request(1, 0, session=(0, 0)))
    assert values(fetched(first)) == [b"x"]
    moved = replace(request(2, leader.leader_epoch, (first.session_id, 1)), max_wait_ms=0)
    assert driver.ask(2, "fetch", 9, moved).responses == ()
    leader.log.truncate_to(1)
    again = fetch_request(max_wait_ms=0, session=(first.session_id, 2))
    assert fetched(driver.ask(2, "fetch", 9, again)).error_code == TRUNCATED


def test_one_truncated_partition_answers_at_once_and_the_others_are_read() -> None:
    driver = diverged()
    create(driver, "u", [(2,)])
    produce(driver, "u", b"u")
    asked = (("u", from_offset(0)), ("t", replace(from_offset(3), last_fetched_epoch=0)))
    answer = driver.ask(2, "fetch", 9, fetch_request(*asked, min_bytes=1 << 20, max_wait_ms=9))
    found = {
        topic.topic: (part.error_code, values(part))
        for topic in answer.responses
        for part in topic.partitions
    }
    assert found == {"u": (NONE, [b"u"]), "t": (TRUNCATED, [])}


def test_a_topic_of_the_old_message_format_is_not_checked() -> None:
    driver = diverged(message_format_version="0.10.2")
    assert ask(driver, 1, 7).error_code == NONE
    assert not send(driver, 99, 0).done


def test_records_in_the_tier_are_checked_by_the_epochs_of_the_whole_log() -> None:
    tier = Tier(2, dialect=KIP_320_DRAFT)
    tier.append(4)
    tier.elect("t", 0, 2)
    tier.append(4)
    for broker in tier.cluster.brokers:
        tier.run(broker=broker)
        tier.broker(broker).remote_log_manager.delete_local(tier.replica(broker, "t"))
    leader = tier.leader("t")
    assert leader.log.local_log_start_offset > 5
    served = send(tier, 4, 0)
    tier.advance(1000)
    assert len(values(fetched(served.response))) > 0
    assert ask(tier, 5, 0).error_code == TRUNCATED
    assert ask(tier, 5, leader.leader_epoch + 1).error_code == UNKNOWN


# -- and no others ------------------------------------------------------------------------------


def test_all_other_versions_on_the_same_connection_are_kafkas() -> None:
    driver = diverged()
    for version in (4, 8, 10, 11, 12):
        assert ask(driver, 99, -1, version=version).error_code == OUT_OF_RANGE
    for version in (8, 10, 11):
        assert ask(driver, 1, 7, version=version).error_code == NONE, "it has no such field"
    assert ask(driver, 3, 0, version=12).diverging_epoch == EpochEndOffset(epoch=0, end_offset=1)
    assert ask(driver, 1, 7, version=12).error_code == OUT_OF_RANGE


def test_without_the_dialect_version_9_is_kafkas() -> None:
    driver = diverged(is_drafted=False)
    assert ask(driver, 99, -1).error_code == OUT_OF_RANGE
    assert ask(driver, 1, 7).error_code == NONE
    old = fetch(driver, "t", 0, version=9, current_leader_epoch=0)
    assert old.error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_replica_that_speaks_the_dialect_is_answered_by_the_final_protocol() -> None:
    driver = diverged()
    for offset, epoch in ((99, -1), (99, 0)):
        asked = replace(request(offset, epoch), replica_id=1)
        assert fetched(driver.ask(2, "fetch", 9, asked)).error_code != TRUNCATED


@pytest.mark.parametrize("timestamp", [-1, -2, 0])
def test_list_offsets_version_4_has_the_epoch_and_fences_nobody(timestamp: int) -> None:
    driver = diverged()
    newest = driver.leader("t").leader_epoch
    for epoch in (-1, 0, newest, newest + 1):
        found = list_offset(driver, "t", timestamp, version=4, current_leader_epoch=epoch)
        same = list_offset(driver, "t", timestamp, version=5)
        assert found == same
    assert found.leader_epoch == (newest if timestamp == -1 else 0)
