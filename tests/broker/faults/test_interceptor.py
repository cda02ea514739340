"""What becomes of a client's request that a fault hits."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fencepost.broker.faults.interceptor import Interception
from fencepost.broker.faults.kinds import (
    Action,
    Corrupt,
    Delay,
    Disconnect,
    DisconnectWhen,
    Drop,
    Refuse,
    Throttle,
)
from fencepost.broker.handlers import produce as handler
from fencepost.broker.replication.follower.steps import FollowerState
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.create_topics import CreateTopicsRequest
from fencepost.protocol.messages.fetch import FetchRequest, ForgottenTopic
from fencepost.protocol.messages.heartbeat import HeartbeatRequest
from tests.broker.faults.faulty import CODE, set_fault
from tests.harness.driver import NEWEST, Driver, Message
from tests.harness.driver_requests import create, fetch, list_offset, produce, send_produce
from tests.harness.garbage import without_collector
from tests.harness.records import batch
from tests.harness.typed_requests import (
    creatable,
    fetch_request,
    fetched,
    from_offset,
    produce_request,
    produced,
    values,
)


@pytest.fixture
def driver() -> Driver:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3), (1, 2, 3)])
    return driver


def end(driver: Driver, index: int = 0) -> int:
    return driver.leader("t", index).log.log_end_offset


# -- error --------------------------------------------------------------------------------------


def test_an_error_refuses_the_whole_request_and_nothing_is_applied(driver: Driver) -> None:
    set_fault(driver, "produce", Refuse(ErrorCode.NOT_ENOUGH_REPLICAS))
    assert produce(driver, "t", b"a").error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert end(driver) == 0
    assert produce(driver, "t", b"a").error_code == 0


def test_an_error_may_have_a_code_that_kafka_does_not_know(driver: Driver) -> None:
    set_fault(driver, "heartbeat", Refuse(-4711))
    request = HeartbeatRequest(group_id="g", member_id="m")
    assert driver.ask(1, "heartbeat", NEWEST, request).error_code == -4711


def test_a_timeout_comes_after_the_work_was_done(driver: Driver) -> None:
    set_fault(driver, "create_topics", Refuse(ErrorCode.REQUEST_TIMED_OUT))
    request = CreateTopicsRequest(topics=(creatable("new"),), timeout_ms=1000)
    (topic,) = driver.ask(1, "create_topics", NEWEST, request).topics
    assert topic.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "new" in driver.cluster.controller.image.topics


@pytest.mark.parametrize("acks", [1, -1])
def test_a_produce_times_out_after_the_append(driver: Driver, acks: int) -> None:
    driver.hold(2, 3)
    set_fault(driver, "produce", Refuse(ErrorCode.REQUEST_TIMED_OUT))
    assert produce(driver, "t", b"a", acks=acks).error_code == ErrorCode.REQUEST_TIMED_OUT
    assert end(driver) == 1
    assert not driver.leader("t").watermark_watch.waits


def test_one_partition_times_out_after_the_append_and_the_other_waits_as_ever(
    driver: Driver,
) -> None:
    set_fault(driver, "produce", Refuse(ErrorCode.REQUEST_TIMED_OUT), topic="t", partition=1)
    driver.hold(2, 3)
    request = produce_request(("t", 0, batch(b"a")), ("t", 1, batch(b"b")))
    asked = driver.send(1, "produce", 12, request)
    assert not asked.done
    assert (end(driver, 0), end(driver, 1)) == (1, 1)
    driver.release(2, 3)
    codes = {p.index: p.error_code for t in asked.response.responses for p in t.partition_responses}
    assert codes == {0: 0, 1: ErrorCode.REQUEST_TIMED_OUT}


@pytest.mark.parametrize(
    ("code", "appended"), [(ErrorCode.NOT_ENOUGH_REPLICAS, 0), (ErrorCode.REQUEST_TIMED_OUT, 1)]
)
@pytest.mark.parametrize("selector", [{}, {"topic": "t"}])
def test_acks_0_is_told_an_error_by_the_end_of_the_connection(
    driver: Driver, code: ErrorCode, appended: int, selector: dict[str, str]
) -> None:
    set_fault(driver, "produce", Refuse(code), **selector)
    asked = send_produce(driver, "t", b"a", acks=0)
    assert (asked.hung_up, asked.done) == (True, False)
    assert end(driver) == appended


# -- fetch --------------------------------------------------------------------------------------


def test_a_fetch_is_refused_in_each_partition(driver: Driver) -> None:
    set_fault(driver, "fetch", Refuse(CODE))
    response = driver.ask(
        1, "fetch", 12, fetch_request(("t", from_offset(0)), ("t", from_offset(0, 1)))
    )
    assert response.error_code == 0
    codes = [p.error_code for t in response.responses for p in t.partitions]
    assert codes == [CODE, CODE]


def test_a_long_poll_does_not_wait_for_what_is_refused(driver: Driver) -> None:
    set_fault(driver, "fetch", Refuse(CODE), topic="t", partition=1)
    polls = [("t", from_offset(0)), ("t", from_offset(0, 1))]
    asked = driver.send(1, "fetch", 12, fetch_request(*polls, max_wait_ms=60_000))
    codes = {
        p.partition_index: p.error_code for t in asked.response.responses for p in t.partitions
    }
    assert codes == {0: 0, 1: CODE}


class Session:
    """A client's fetch session of both partitions."""

    def __init__(self, driver: Driver, version: int = 12) -> None:
        self._driver, self._version, self._epoch = driver, version, 0
        self._id = 0
        first = self.ask(("t", from_offset(0)), ("t", from_offset(0, 1)))
        self._id, self._epoch = first.session_id, 1

    def ask(self, *partitions: tuple[str, Message], forgotten: tuple[int, ...] = ()) -> Message:
        request = fetch_request(*partitions, session=(self._id, self._epoch))
        if forgotten:
            gone = ForgottenTopic(topic="t", partitions=forgotten)
            request = FetchRequest(
                session_id=self._id, session_epoch=self._epoch, forgotten_topics_data=(gone,)
            )
        self._epoch += 1
        return self._driver.ask(1, "fetch", self._version, request)


def refused(response: Message) -> dict[int, int]:
    return {
        p.partition_index: p.error_code
        for t in response.responses
        for p in t.partitions
        if p.error_code
    }


def test_a_session_names_its_partitions_without_saying_so(driver: Driver) -> None:
    session = Session(driver)
    fault = set_fault(driver, "fetch", Refuse(CODE), topic="t", partition=1, count=None)
    assert refused(session.ask()) == {1: CODE}
    assert refused(session.ask()) == {1: CODE}
    driver.cluster.faults.remove(fault.id)
    assert refused(session.ask()) == {}


def test_a_session_does_not_name_what_it_forgets(driver: Driver) -> None:
    session = Session(driver)
    fault = set_fault(driver, "fetch", Refuse(CODE), topic="t", partition=1)
    session.ask(forgotten=(1,))
    assert fault.hits == 0


@pytest.mark.parametrize(
    "code", [ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH]
)
def test_a_session_is_refused_at_the_top(driver: Driver, code: ErrorCode) -> None:
    session = Session(driver)
    set_fault(driver, "fetch", Refuse(code))
    response = session.ask()
    assert (response.error_code, response.responses) == (code, ())


def test_before_there_were_sessions_their_errors_are_the_partitions(driver: Driver) -> None:
    set_fault(driver, "fetch", Refuse(ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
    response = driver.ask(1, "fetch", 6, fetch_request(("t", from_offset(0))))
    assert refused(response) == {0: ErrorCode.FETCH_SESSION_ID_NOT_FOUND}


def test_topics_are_known_by_their_ids(driver: Driver) -> None:
    topic_id = driver.cluster.controller.image.topics["t"].topic_id
    set_fault(driver, "fetch", Refuse(CODE), topic="t", count=None)
    request = fetch_request(("", from_offset(0)))
    by_id = FetchRequest(
        session_id=0,
        session_epoch=0,
        topics=tuple(type(t)(topic_id=topic_id, partitions=t.partitions) for t in request.topics),
    )
    first = driver.ask(1, "fetch", 13, by_id)
    assert refused(first) == {0: CODE}
    again = FetchRequest(session_id=first.session_id, session_epoch=1)
    assert refused(driver.ask(1, "fetch", 13, again)) == {0: CODE}


# -- delay --------------------------------------------------------------------------------------


def test_a_delayed_request_lies_in_the_queue_before_it_is_carried_out(driver: Driver) -> None:
    set_fault(driver, "produce", Delay(200))
    asked = send_produce(driver, "t", b"a")
    driver.advance(199)
    assert (asked.done, end(driver)) == (False, 0)
    driver.advance(1)
    assert produced(asked.response).error_code == 0
    assert end(driver) == 1


def test_a_delayed_request_is_freed_without_the_garbage_collector(driver: Driver) -> None:
    set_fault(driver, "produce", Delay(200))
    with without_collector(Interception) as left:
        send_produce(driver, "t", b"a")
        driver.advance(200)
        assert left() == []


def test_what_waits_counts_its_time_from_when_it_is_taken_up(driver: Driver) -> None:
    set_fault(driver, "produce", Delay(5000))
    driver.hold(2, 3)
    asked = send_produce(driver, "t", b"a", timeout_ms=1000)
    driver.advance(5999)
    assert not asked.done
    driver.advance(1)
    assert produced(asked.response).error_code == ErrorCode.REQUEST_TIMED_OUT


def test_a_delayed_request_is_carried_out_though_its_client_is_gone(driver: Driver) -> None:
    set_fault(driver, "produce", Delay(200))
    asked = send_produce(driver, "t", b"a")
    cancel(driver)
    driver.advance(200)
    assert (asked.done, end(driver)) == (False, 1)


def test_a_dropped_long_poll_of_a_client_that_is_gone_waits_for_nothing(driver: Driver) -> None:
    set_fault(driver, "fetch", Drop())
    driver.send(1, "fetch", 12, fetch_request(("t", from_offset(0)), max_wait_ms=60_000))
    assert driver.leader("t").watermark_watch.waits
    cancel(driver)
    assert not driver.leader("t").watermark_watch.waits


def test_a_delayed_long_poll_of_a_client_that_is_gone_waits_for_nothing(driver: Driver) -> None:
    set_fault(driver, "fetch", Delay(200))
    driver.send(1, "fetch", 12, fetch_request(("t", from_offset(0)), max_wait_ms=60_000))
    cancel(driver)
    driver.advance(200)
    assert not driver.leader("t").watermark_watch.waits


def cancel(driver: Driver) -> None:
    """What connections do when they are gone."""
    for held in tuple(driver.cluster.faults.pending.blocking_responses):
        held.cancel()
    assert not driver.cluster.faults.pending.blocking_responses


# -- disconnect, drop ---------------------------------------------------------------------------


def test_a_connection_ends_before_the_request_is_carried_out(driver: Driver) -> None:
    set_fault(driver, "produce", Disconnect(DisconnectWhen.BEFORE))
    asked = send_produce(driver, "t", b"a", acks=1)
    assert (asked.hung_up, end(driver)) == (True, 0)


def test_a_connection_ends_after_the_append(driver: Driver) -> None:
    set_fault(driver, "produce", Disconnect(DisconnectWhen.AFTER))
    asked = send_produce(driver, "t", b"a", acks=1)
    assert (asked.hung_up, asked.done, end(driver)) == (True, False, 1)


def test_a_connection_ends_when_the_answer_would_go_out(driver: Driver) -> None:
    driver.hold(2, 3)
    set_fault(driver, "produce", Disconnect(DisconnectWhen.AFTER))
    asked = send_produce(driver, "t", b"a")
    assert (asked.hung_up, end(driver)) == (False, 1)
    driver.release(2, 3)
    assert (asked.hung_up, asked.done) == (True, False)


def test_a_request_that_is_dropped_is_carried_out_and_never_answered(driver: Driver) -> None:
    set_fault(driver, "produce", Drop())
    asked = send_produce(driver, "t", b"a")
    driver.advance(3_600_000)
    assert (asked.hung_up, asked.done, end(driver)) == (False, False, 1)


# -- throttle -----------------------------------------------------------------------------------


def test_a_throttled_request_is_answered_at_once_and_says_how_long(driver: Driver) -> None:
    set_fault(driver, "produce", Throttle(700))
    asked = send_produce(driver, "t", b"a")
    assert asked.response.throttle_time_ms == 700
    assert asked.until is not None
    driver.advance(699)
    assert not asked.until.done
    driver.advance(1)
    assert asked.until.done


def test_a_throttled_long_poll_waits_first(driver: Driver) -> None:
    set_fault(driver, "fetch", Throttle(700), client_id="c1")
    asked = driver.send(1, "fetch", 12, fetch_request(("t", from_offset(0)), max_wait_ms=500))
    assert not asked.done
    driver.advance(500)
    assert asked.response.throttle_time_ms == 700


def test_a_throttle_does_not_hide_that_acks_0_failed(driver: Driver) -> None:
    set_fault(driver, "produce", Throttle(700))
    request = produce_request(("nowhere", 0, batch(b"a")), acks=0)
    assert driver.send(1, "produce", 12, request).hung_up


def test_versions_without_a_throttle_time_are_not_throttled(driver: Driver) -> None:
    fault = set_fault(driver, "list_offsets", Throttle(700), count=None)
    list_offset(driver, "t", -1, version=1)
    assert fault.hits == 0
    list_offset(driver, "t", -1, version=2)
    assert fault.hits == 1


# -- corrupt ------------------------------------------------------------------------------------


def test_what_is_produced_arrives_broken(driver: Driver) -> None:
    set_fault(driver, "produce", Corrupt(), topic="t", partition=1)
    request = produce_request(("t", 0, batch(b"a")), ("t", 1, batch(b"b")), acks=1)
    response = driver.ask(1, "produce", 12, request)
    codes = {p.index: p.error_code for t in response.responses for p in t.partition_responses}
    assert codes == {0: 0, 1: ErrorCode.CORRUPT_MESSAGE}
    assert (end(driver, 0), end(driver, 1)) == (1, 0)


def test_what_is_fetched_is_broken_on_the_way_and_whole_in_the_log(driver: Driver) -> None:
    produce(driver, "t", b"a")
    whole = b"".join(fetch(driver, "t", 0).records or ())
    set_fault(driver, "fetch", Corrupt())
    broken = b"".join(fetch(driver, "t", 0).records or ())
    assert [i for i, (a, b) in enumerate(zip(whole, broken, strict=True)) if a != b] == [
        len(whole) - 1
    ]
    assert b"".join(fetch(driver, "t", 0).records or ()) == whole


def test_only_records_can_be_broken_and_so_only_they_are_hits(driver: Driver) -> None:
    fault = set_fault(driver, "fetch", Corrupt(), client_id="c1", topic="t", after=1)
    poll = fetch_request(("t", from_offset(0)), max_wait_ms=60_000)
    asked = driver.send(1, "fetch", 12, poll)
    assert values(fetch(driver, "t", 0)) == []
    produce(driver, "t", b"a")
    assert values(fetched(asked.response)) == [b"a"]
    assert fault.hits == 0
    whole = batch(b"a")
    assert b"".join(fetch(driver, "t", 0).records or ())[-1] == whole[-1] ^ 0xFF
    assert fault.hits == 1


def test_of_fetched_partitions_only_the_selected_one_is_broken(driver: Driver) -> None:
    produce(driver, "t", b"a")
    produce(driver, "t", b"a", index=1)
    set_fault(driver, "fetch", Corrupt(), topic="t", partition=1)
    request = fetch_request(("t", from_offset(0)), ("t", from_offset(0, 1)))
    found = {
        p.partition_index: b"".join(p.records or ())
        for t in driver.ask(1, "fetch", 12, request).responses
        for p in t.partitions
    }
    assert found[0][-1] == found[1][-1] ^ 0xFF


def test_a_fault_that_is_removed_breaks_no_poll_that_waits(driver: Driver) -> None:
    fault = set_fault(driver, "fetch", Corrupt(), client_id="c1")
    asked = driver.send(1, "fetch", 12, fetch_request(("t", from_offset(0)), max_wait_ms=60_000))
    driver.cluster.faults.remove(fault.id)
    produce(driver, "t", b"a")
    assert b"".join(fetched(asked.response).records or ())[-1] == batch(b"a")[-1]


# -- the broker's end, and reset ----------------------------------------------------------------


def kill(driver: Driver) -> None:
    driver.broker(1).stop(crash=True)


def reset(driver: Driver) -> None:
    driver.cluster.reset()


@pytest.mark.parametrize("ending", [kill, reset])
@pytest.mark.parametrize("action", [Delay(200), Drop()])
def test_what_is_held_back_ends_with_its_broker_and_with_a_reset(
    driver: Driver, ending: Callable[[Driver], None], action: Action
) -> None:
    set_fault(driver, "create_topics", action)
    request = CreateTopicsRequest(topics=(creatable("late"),), timeout_ms=1000)
    asked = driver.send(1, "create_topics", NEWEST, request)
    ending(driver)
    assert (asked.hung_up, asked.done) == (True, False)
    driver.advance(1000)
    assert ("late" in driver.cluster.controller.image.topics) == (
        isinstance(action, Drop) and ending is kill
    )
    assert not driver.cluster.faults.pending.blocking_responses


def test_another_brokers_end_changes_nothing(driver: Driver) -> None:
    set_fault(driver, "produce", Delay(200))
    asked = send_produce(driver, "t", b"a", acks=1)
    driver.broker(2).stop(crash=True)
    driver.advance(200)
    assert asked.done


def test_a_reset_ends_a_throttle(driver: Driver) -> None:
    set_fault(driver, "produce", Throttle(3_600_000))
    asked = send_produce(driver, "t", b"a")
    assert asked.until is not None
    driver.cluster.reset()
    assert asked.until.done


def test_a_bug_in_what_was_delayed_costs_one_connection(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_fault(driver, "produce", Delay(200))
    asked = send_produce(driver, "t", b"a")
    monkeypatch.setattr(handler, "handle", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        driver.advance(200)
    assert asked.hung_up


def test_followers_are_not_hit_where_clients_are_meant(driver: Driver) -> None:
    fault = set_fault(driver, "fetch", Refuse(CODE), source="clients")
    produce(driver, "t", b"a")
    assert fault.hits == 0
    assert fetch(driver, "t", 0).error_code == CODE
    follower = driver.broker(2).replica_manager.follower("t", 0)
    assert follower is not None
    assert follower.state is FollowerState.IDLE
