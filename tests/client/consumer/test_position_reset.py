from __future__ import annotations

import pytest
from msgspec.structs import replace

from fencepost.broker.node import operator_actions
from fencepost.client.consumer.errors import NoOffsetForPartitionError, RequestRefused
from fencepost.client.consumer.model import OffsetAndMetadata
from fencepost.client.consumer.reset_policy import Target
from fencepost.client.model import Partition
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.list_offsets import ListOffsetsResponse
from tests.client.consumer.driven import (
    TP,
    DrivenConsumer,
    cluster,
    delete_before,
    start,
    values,
    write,
)
from tests.harness.driver import Driver
from tests.harness.driver_requests import create, send_produce
from tests.harness.records import batch
from tests.harness.typed_requests import produce_request


def at(offset: int, epoch: int | None = None) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset=offset, leader_epoch=epoch)


def aged(driver: Driver, *ages_ms: int) -> None:
    """A record of each age."""
    for age in ages_ms:
        made = batch(b"%d" % age, timestamp=driver.clock.wall_ms() - age)
        driver.ask(1, "produce", 12, produce_request(("t", 0, made)))
    driver.advance(1)


@pytest.mark.parametrize(("policy", "offset"), [("earliest", 2), ("latest", 5)])
def test_a_new_consumer_begins_where_its_policy_says(policy: str, offset: int) -> None:
    driver = cluster()
    write(driver, "a", 5)
    delete_before(driver, 2)
    assert start(driver, None, auto_offset_reset=policy).position() == at(offset)


def test_without_a_policy_it_has_to_be_told() -> None:
    driver = cluster()
    write(driver, "a", 1)
    consumer = start(driver, None, auto_offset_reset="none")
    for _ in range(2):
        with pytest.raises(NoOffsetForPartitionError, match=r"no offset is committed.*t-0") as told:
            consumer.poll()
        assert told.value.partitions == {TP}
    consumer.core.seek(TP, at(0))
    assert values(consumer.poll()) == [b"a0"]


# -- by_duration (KIP-1106) ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "offset"), [("PT1H", 2), ("PT2H30M", 1), ("P1D", 0), ("PT1S", 3), ("P40000D", 0)]
)
def test_it_begins_with_the_first_record_that_is_young_enough(policy: str, offset: int) -> None:
    driver = cluster()
    aged(driver, 10_000_000, 7_300_000, 60_000)
    consumer = start(driver, None, auto_offset_reset=f"by_duration:{policy}")
    assert consumer.position() == at(offset)


def test_records_that_come_during_the_lookup_are_not_skipped() -> None:
    driver = cluster()
    aged(driver, 10_000_000)
    consumer = start(driver, None, auto_offset_reset="by_duration:PT1S")

    def produced_meanwhile(response: ListOffsetsResponse) -> ListOffsetsResponse:
        aged(driver, 0)
        return response

    consumer.alters = [
        ("list_offsets", lambda response: response),
        ("list_offsets", produced_meanwhile),
    ]
    assert values(consumer.poll()) == [b"0"]


# -- committed offsets --------------------------------------------------------------------------


def test_it_goes_on_from_the_offset_and_epoch_that_its_group_committed() -> None:
    driver = cluster()
    write(driver, "a", 5)
    first = start(driver, group_id="g", auto_offset_reset="none")
    first.read(5)
    first.result(first.core.commit({TP: at(3, 0)}))
    consumer = start(driver, None, group_id="g", auto_offset_reset="none")
    assert consumer.position() == at(3, 0)
    (asked,) = consumer.partitions("offset_for_leader_epoch")
    assert asked.leader_epoch == 0
    assert values(consumer.poll()) == [b"a3", b"a4"]


def test_where_nothing_is_committed_the_policy_decides() -> None:
    driver = cluster()
    write(driver, "a", 2)
    assert start(driver, None, group_id="g", auto_offset_reset="earliest").position() == at(0)
    with pytest.raises(NoOffsetForPartitionError):
        start(driver, None, group_id="g", auto_offset_reset="none").poll()


def test_a_commit_that_is_newer_than_the_metadata_waits_for_it() -> None:
    driver = cluster()
    write(driver, "a", 2)
    first = start(driver, group_id="g")
    first.result(first.core.commit({TP: at(2, 1)}))
    consumer = start(driver, None, group_id="g", auto_offset_reset="none")
    consumer.nothing()
    assert consumer.requests("offset_for_leader_epoch") == []
    assert consumer.requests("fetch") == []
    operator_actions.elect(driver.cluster, "t", 0, 2)
    assert consumer.position() == at(2, 1)


def test_a_refused_lookup_of_commits_is_an_error() -> None:
    driver = cluster()
    consumer = start(driver, None, group_id="g")

    def refuse(response: object) -> object:
        (group,) = response.groups  # type: ignore[attr-defined]  # of any message
        groups = (replace(group, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED),)
        return replace(response, groups=groups)  # type: ignore[type-var]  # of any message

    consumer.alters = [("offset_fetch", refuse)]
    with pytest.raises(RequestRefused, match="OffsetFetch of g: GROUP_AUTHORIZATION_FAILED"):
        consumer.poll()
    assert consumer.position() == at(0)


# -- seek meanwhile -----------------------------------------------------------------------------


def test_a_seek_wins_over_a_lookup_that_is_under_way() -> None:
    driver = cluster()
    write(driver, "a", 5)
    consumer = start(driver, None, auto_offset_reset="latest")
    consumer.run(lambda: consumer.core._assignment.get(TP).pending)
    consumer.core.seek(TP, at(1))
    assert values(consumer.poll())[0] == b"a1"


def test_a_lookup_for_a_partition_that_is_gone_is_given_up() -> None:
    driver = cluster()
    consumer = DrivenConsumer(driver, auto_offset_reset="latest")
    consumer.core.assign([Partition(topic="none-such", index=0)])
    consumer.run(lambda: consumer.requests("metadata"))
    consumer.core.assign([TP])
    consumer.position()
    metadata = consumer.requests("metadata")[-1].message
    assert [each.name for each in metadata.topics] == ["t"]


def test_a_consumer_can_go_to_the_beginning_and_to_the_end() -> None:
    driver = cluster()
    write(driver, "a", 5)
    delete_before(driver, 2)
    consumer = start(driver, 3)
    consumer.core.reset(TP, Target.LOG_END)
    assert consumer.position() == at(5)
    consumer.core.reset(TP, Target.LOG_START)
    assert consumer.position() == at(2)


def test_resets_wait_for_the_gate_after_an_election() -> None:
    driver = Driver(3)
    create(driver, "t", ((1, 2, 3),))
    write(driver, "a", 1)
    driver.hold(3)
    send_produce(driver, "t", b"b", acks=1, broker_id=1)
    driver.elect("t", 0, 2)
    consumer = start(driver, None, auto_offset_reset="latest")
    consumer.nothing()
    driver.release(3)
    assert consumer.position() == at(2)
