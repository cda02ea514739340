"""What a read_committed consumer gets: records up to the last stable offset, and what to skip."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fencepost.broker.node import operator_actions
from fencepost.protocol.messages.fetch import PartitionData, ReplicaState
from tests.harness.driver import Asked, Driver, versions
from tests.harness.driver_requests import create, list_offset, produce
from tests.harness.transactions import append_in_transaction, marker, write_markers
from tests.harness.typed_requests import fetch_request, fetched, from_offset, values


def send(
    driver: Driver,
    offset: int,
    *,
    broker_id: int = 1,
    version: int = 12,
    max_wait_ms: int = 0,
    isolation_level: int = 1,
    max_bytes: int = 1 << 20,
) -> Asked:
    request = fetch_request(("t", from_offset(offset, 0, max_bytes)), max_wait_ms=max_wait_ms)
    by_id = tuple(
        replace(topic, topic_id=driver.broker(1).view.topics["t"].topic_id)
        for topic in request.topics
    )
    request = replace(request, isolation_level=isolation_level, topics=by_id)
    return driver.send(broker_id, "fetch", version, request)


def fetch(driver: Driver, offset: int, **options: int) -> PartitionData:
    return fetched(send(driver, offset, **options).response)


def end(driver: Driver, producer_id: int, *, committed: bool) -> Asked:
    return write_markers(driver, marker(producer_id, ("t", (0,)), committed=committed))


def aborted(answer: PartitionData) -> list[tuple[int, int]] | None:
    found = answer.aborted_transactions
    return None if found is None else [(each.producer_id, each.first_offset) for each in found]


@pytest.mark.parametrize("version", versions("fetch"))
def test_an_aborted_transaction_is_listed_for_read_committed_consumers(version: int) -> None:
    driver = Driver(1)
    create(driver, "t")
    produce(driver, "t", b"plain")
    append_in_transaction(driver, "t", (7, 0, 0), b"aborted")
    append_in_transaction(driver, "t", (8, 0, 0), b"committed")
    end(driver, 7, committed=False)
    end(driver, 8, committed=True)
    answer = fetch(driver, 0, version=version)
    assert values(answer)[:3] == [b"plain", b"aborted", b"committed"]
    assert (answer.last_stable_offset, answer.high_watermark) == (5, 5)
    assert aborted(answer) == [(7, 1)]
    assert aborted(fetch(driver, 0, version=version, isolation_level=0)) is None


def test_an_open_transaction_holds_back_what_comes_after_it() -> None:
    driver = Driver(1)
    create(driver, "t")
    produce(driver, "t", b"before")
    append_in_transaction(driver, "t", (7, 0, 0), b"open")
    produce(driver, "t", b"after")
    answer = fetch(driver, 0)
    assert (values(answer), aborted(answer)) == ([b"before"], [])
    assert (answer.last_stable_offset, answer.high_watermark) == (1, 3)
    assert values(fetch(driver, 0, isolation_level=0)) == [b"before", b"open", b"after"]


def test_a_waiting_consumer_is_answered_when_the_marker_is_committed() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    append_in_transaction(driver, "t", (7, 0, 0), b"aborted")
    waiting = send(driver, 0, max_wait_ms=10_000)
    driver.hold(2)
    end(driver, 7, committed=False)
    assert not waiting.done
    driver.release(2)
    answer = fetched(waiting.response)
    assert (values(answer)[0], aborted(answer)) == (b"aborted", [(7, 0)])


def test_a_transaction_that_began_before_the_fetch_offset_is_listed() -> None:
    driver = Driver(1)
    create(driver, "t")
    append_in_transaction(driver, "t", (7, 0, 0), b"a")
    driver.leader("t").log.roll(driver.clock.wall_ms())
    produce(driver, "t", b"plain")
    driver.leader("t").log.roll(driver.clock.wall_ms())
    append_in_transaction(driver, "t", (7, 0, 1), b"b")
    end(driver, 7, committed=False)
    produce(driver, "t", b"plain")
    assert [aborted(fetch(driver, offset)) for offset in range(5)] == [[(7, 0)]] * 4 + [[]]


def test_nothing_to_read_has_an_empty_list() -> None:
    driver = Driver(1)
    create(driver, "t")
    append_in_transaction(driver, "t", (7, 0, 0), b"a")
    answer = fetch(driver, 0)
    assert (values(answer), aborted(answer)) == ([], [])


def test_a_long_list_is_cut_where_the_records_end() -> None:
    driver = Driver(1)
    create(driver, "t")
    for number in range(60):
        append_in_transaction(driver, "t", (7, 0, number), b"aborted")
        end(driver, 7, committed=False)
    assert len(aborted(fetch(driver, 0)) or ()) == 60
    assert aborted(fetch(driver, 10, max_bytes=1)) == [(7, 10)]
    assert len(aborted(fetch(driver, 110, max_bytes=1)) or ()) == 5


def test_followers_and_debugging_consumers_get_no_list() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    append_in_transaction(driver, "t", (7, 0, 0), b"aborted")
    end(driver, 7, committed=False)
    request = replace(fetch_request(("t", from_offset(0))), isolation_level=1)
    follower = replace(request, replica_state=ReplicaState(replica_id=2), replica_id=2)
    answer = fetched(driver.ask(1, "fetch", 12, follower))
    assert (len(values(answer)), aborted(answer)) == (2, None)


def test_a_follower_serves_read_committed_consumers_from_its_own_log() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    append_in_transaction(driver, "t", (7, 0, 0), b"aborted")
    append_in_transaction(driver, "t", (8, 0, 0), b"open")
    end(driver, 7, committed=False)
    answer = fetch(driver, 0, broker_id=2)
    assert (values(answer), aborted(answer)) == ([b"aborted"], [(7, 0)])
    assert answer.last_stable_offset == 1


def test_the_new_leader_goes_on_with_the_transactions_of_the_old_one() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    append_in_transaction(driver, "t", (7, 0, 0), b"aborted")
    append_in_transaction(driver, "t", (8, 0, 0), b"open")
    end(driver, 7, committed=False)
    driver.elect("t", 0, 2)
    answer = fetch(driver, 0, broker_id=2)
    assert (answer.last_stable_offset, aborted(answer)) == (1, [(7, 0)])
    write_markers(driver, marker(8, ("t", (0,)), committed=False), broker_id=2)
    assert aborted(fetch(driver, 1, broker_id=2)) == [(7, 0), (8, 1)]


def test_an_unclean_election_forgets_the_marker_and_leaves_the_transaction_open() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    append_in_transaction(driver, "t", (7, 0, 0), b"open again")
    driver.hold(2)
    end(driver, 7, committed=False)
    driver.advance(60_000)
    assert driver.partition("t").isr == (1, 3)
    operator_actions.elect(driver.cluster, "t", 0, 2, unclean=True)
    driver.release(2)
    driver.advance(1_000)
    for broker_id in (1, 2, 3):
        log = driver.replica(broker_id, "t").log
        assert log.log_end_offset == 1
        assert log.has_ongoing_transaction(7, 0)
        assert log.aborted_transactions(0, 10) == ()


def test_list_offsets_answers_the_last_stable_offset() -> None:
    driver = Driver(1)
    create(driver, "t")
    produce(driver, "t", b"before")
    append_in_transaction(driver, "t", (7, 0, 0), b"open")
    produce(driver, "t", b"after")
    for version in versions("list_offsets", 2):
        assert list_offset(driver, "t", -1, version=version, isolation_level=1).offset == 1
        assert list_offset(driver, "t", -1, version=version, isolation_level=0).offset == 3
    by_time = list_offset(driver, "t", 0, isolation_level=1)
    assert by_time.offset == 0
    end(driver, 7, committed=True)
    assert list_offset(driver, "t", -1, isolation_level=1).offset == 4
