"""DeleteTopics: by name, by id, and what is refused."""

from __future__ import annotations

from uuid import UUID

import pytest

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from tests.harness.driver import Driver
from tests.harness.driver_requests import create, produce
from tests.harness.typed_requests import fetch_request, fetched, from_offset

UNKNOWN_ID = UUID(int=0xAB)


def delete(
    driver: Driver, *topics: str | UUID | DeleteTopicState, broker_id: int = 1
) -> list[DeletableTopicResult]:
    """At v6: names, ids, or whatever a state says."""
    states = tuple(_state(topic) for topic in topics)
    request = DeleteTopicsRequest(topics=states, timeout_ms=1000)
    return list(driver.ask(broker_id, "delete_topics", 6, request).responses)


def _state(topic: str | UUID | DeleteTopicState) -> DeleteTopicState:
    if isinstance(topic, DeleteTopicState):
        return topic
    if isinstance(topic, UUID):
        return DeleteTopicState(topic_id=topic)
    return DeleteTopicState(name=topic)


@pytest.mark.parametrize("version", [1, 3, 5])
def test_by_name_before_v6(version: int) -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    create(driver, "kept")
    request = DeleteTopicsRequest(topic_names=("t", "nope"), timeout_ms=1000)
    results = driver.ask(2, "delete_topics", version, request).responses
    assert [(r.name, r.error_code) for r in results] == [
        ("t", ErrorCode.NONE),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    says = "This server does not host this topic-partition." if version == 5 else None
    assert [r.error_message for r in results] == [None, says]
    for broker_id in (1, 2, 3):
        assert set(driver.broker(broker_id).view.topics) == {"kept"}
        assert ("t", 0) not in driver.broker(broker_id).replicas


def test_by_name_and_by_id_from_v6() -> None:
    driver = Driver(1)
    ids = {name: create(driver, name) for name in ("a", "b")}
    results = delete(driver, "a", ids["b"], UNKNOWN_ID, "nope", "")
    assert {(r.name, r.topic_id, r.error_code, r.error_message) for r in results} == {
        ("a", ids["a"], ErrorCode.NONE, None),
        ("b", ids["b"], ErrorCode.NONE, None),
        (None, UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID."),
        (
            "nope",
            None,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition.",
        ),
        (
            "",
            None,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition.",
        ),
    }
    assert not driver.broker(1).view.topics


def test_what_stands_twice_is_refused_once_and_kept() -> None:
    driver = Driver(1)
    ids = {name: create(driver, name) for name in ("name", "id", "both")}
    asked = ("name", "name", ids["id"], ids["id"], ids["both"], "both")
    results = delete(driver, *asked)
    assert {(r.name, r.topic_id, r.error_code, r.error_message) for r in results} == {
        ("name", None, ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
        (None, ids["id"], ErrorCode.INVALID_REQUEST, "Duplicate topic id."),
        (
            "both",
            ids["both"],
            ErrorCode.INVALID_REQUEST,
            "The provided topic name maps to an ID that was already supplied.",
        ),
    }
    assert len(results) == 3
    assert set(driver.broker(1).view.topics) == {"name", "id", "both"}


def test_a_topic_is_named_by_name_or_by_id_and_not_by_both_or_neither() -> None:
    driver = Driver(1)
    topic_id = create(driver, "t")
    neither = DeleteTopicState()
    both = DeleteTopicState(name="t", topic_id=topic_id)
    results = delete(driver, neither, both, neither)
    assert [(r.name, r.topic_id, r.error_code, r.error_message) for r in results] == [
        (None, None, ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified."),
        (
            "t",
            topic_id,
            ErrorCode.INVALID_REQUEST,
            "You may not specify both topic name and topic id.",
        ),
        (None, None, ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified."),
    ]
    assert "t" in driver.broker(1).view.topics


@pytest.mark.parametrize(
    ("version", "code"),
    [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)],
)
def test_deletion_may_be_disabled(version: int, code: ErrorCode) -> None:
    driver = Driver(1, {"delete.topic.enable": "false"})
    create(driver, "t")
    request = DeleteTopicsRequest(topic_names=("t", "nope"), timeout_ms=1000)
    results = driver.ask(1, "delete_topics", version, request).responses
    assert [(r.name, r.error_code) for r in results] == [("t", code), ("nope", code)]
    assert "t" in driver.broker(1).view.topics


def test_who_waits_for_a_deleted_topics_records_is_answered() -> None:
    driver = Driver(1)
    create(driver, "t")
    waiting = driver.send(1, "fetch", 12, fetch_request(("t", from_offset(0)), max_wait_ms=60_000))
    assert not waiting.done
    delete(driver, "t")
    assert fetched(waiting.response).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_configs_go_with_the_topic() -> None:
    driver = Driver(1)
    create(driver, "t", retention_ms="5")
    delete(driver, "t")
    create(driver, "t")
    assert driver.replica(1, "t").log.config.retention_ms != 5
    assert produce(driver, "t", b"v").base_offset == 0
