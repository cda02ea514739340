"""Fetch sessions: what changed is told, and nothing starves (KIP-227)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import (
    FetchPartition,
    ForgottenTopic,
)
from tests.harness.driver import Driver, Message
from tests.harness.driver_requests import create, fetch, produce
from tests.harness.typed_requests import fetch_request, fetched, from_offset, values


class Session:
    """A client that fetches within a session."""

    def __init__(self, driver: Driver, version: int = 12) -> None:
        self.driver = driver
        self.version = version
        self.place = (0, 0)

    def fetch(
        self, *partitions: tuple[str, FetchPartition], forget: tuple[str, ...] = ()
    ) -> Message:
        request = replace(
            fetch_request(*partitions, session=self.place),
            forgotten_topics_data=tuple(ForgottenTopic(topic=t, partitions=(0,)) for t in forget),
        )
        response = self.driver.ask(1, "fetch", self.version, request)
        self.place = (response.session_id, self.place[1] + 1)
        return response


def told(response: Message) -> dict[str, list[bytes | None]]:
    """The topics that an answer names, with the values in it."""
    return {t.topic: values(t.partitions[0]) for t in response.responses}


@pytest.mark.parametrize("version", [7, 9, 12])
def test_a_session_names_only_what_changed(version: int) -> None:
    driver = Driver(1)
    for topic in ("t", "u"):
        create(driver, topic)
    session = Session(driver, version)
    first = session.fetch(("t", from_offset(0)), ("u", from_offset(0)))
    assert told(first) == {"t": [], "u": []}
    assert first.session_id > 0
    assert told(session.fetch()) == {}
    produce(driver, "u", b"a")
    assert told(session.fetch()) == {"u": [b"a"]}
    assert told(session.fetch(("u", from_offset(1)))) == {}
    produce(driver, "t", b"b")
    produce(driver, "u", b"c")
    assert told(session.fetch()) == {"t": [b"b"], "u": [b"c"]}


def test_partitions_join_and_leave_a_session() -> None:
    driver = Driver(1)
    for topic in ("t", "u"):
        create(driver, topic)
        produce(driver, topic, b"a")
    session = Session(driver)
    session.fetch(("t", from_offset(1)))
    assert told(session.fetch(("u", from_offset(0)))) == {"u": [b"a"]}
    assert told(session.fetch(("u", from_offset(1)), forget=("t",))) == {}
    produce(driver, "t", b"b")
    assert told(session.fetch()) == {}


def test_a_moved_log_start_is_news() -> None:
    driver = Driver(1)
    create(driver, "t")
    produce(driver, "t", b"a", b"b")
    session = Session(driver)
    session.fetch(("t", from_offset(2)))
    driver.leader("t").delete_records(1)
    (topic,) = session.fetch().responses
    assert topic.partitions[0].log_start_offset == 1


def test_an_error_is_told_again_until_it_is_gone() -> None:
    driver = Driver(1)
    session = Session(driver)
    for _ in range(2):
        response = session.fetch(("t", from_offset(0)))
        assert fetched(response).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    create(driver, "t")
    assert told(session.fetch()) == {"t": []}
    assert told(session.fetch()) == {}


def test_what_was_sent_goes_behind_what_waits_so_that_nothing_starves() -> None:
    driver = Driver(1)
    for topic in ("t", "u"):
        create(driver, topic)
        for _ in range(4):
            produce(driver, topic, b"x" * 100)
    one = sum(map(len, fetch(driver, "t", 3).records or ()))
    asked = [(topic, from_offset(0, max_bytes=one)) for topic in ("t", "u")]
    request = replace(fetch_request(*asked, max_bytes=one, session=(0, 0)))
    response = driver.ask(1, "fetch", 12, request)
    assert [name for name, found in told(response).items() if found] == ["t"]
    # As in Kafka the first answer moves nothing.
    for epoch, sent in ((1, "t"), (2, "u"), (3, "t")):
        following = replace(fetch_request(max_bytes=one, session=(response.session_id, epoch)))
        answer = driver.ask(1, "fetch", 12, following)
        assert [name for name, found in told(answer).items() if found] == [sent]


def test_a_session_has_the_order_of_its_first_answer() -> None:
    driver = Driver(1)
    create(driver, "t")
    session = Session(driver)
    first = session.fetch(("u", from_offset(0)), ("t", from_offset(0)))
    assert list(told(first)) == ["t", "u"]
    create(driver, "u")
    for topic in ("t", "u"):
        produce(driver, topic, b"x")
    following = fetch_request(max_bytes=1, session=session.place)
    answer = driver.ask(1, "fetch", 12, following)
    assert [name for name, found in told(answer).items() if found] == ["t"]


def test_sessions_have_an_id_and_epochs_in_order() -> None:
    driver = Driver(1)
    create(driver, "t")
    session = Session(driver)
    session_id = session.fetch(("t", from_offset(0))).session_id

    def code(place: tuple[int, int], version: int = 12) -> ErrorCode:
        response = driver.ask(1, "fetch", version, fetch_request(session=place))
        return ErrorCode(response.error_code)

    assert code((session_id, 2)) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert code((session_id + 1, 1)) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert code((session_id, 1), version=13) == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert code((session_id, 1)) == ErrorCode.NONE
    assert code((session_id, 1)) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert code((session_id, -1)) == ErrorCode.NONE
    assert code((session_id, 2)) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_poll_within_a_session_says_nothing_when_nothing_comes() -> None:
    driver = Driver(1)
    create(driver, "t")
    session_id = Session(driver).fetch(("t", from_offset(0))).session_id
    waiting = driver.send(1, "fetch", 12, fetch_request(session=(session_id, 1), max_wait_ms=500))
    assert not waiting.done
    driver.advance(500)
    assert (told(waiting.response), waiting.response.session_id) == ({}, session_id)
