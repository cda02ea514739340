"""GetTelemetrySubscriptions and PushTelemetry (KIP-714); the values are a real Kafka's."""

from __future__ import annotations

import zlib
from uuid import UUID

import pytest

from fencepost.protocol.compression import Codec, compress
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from fencepost.protocol.messages.push_telemetry import PushTelemetryRequest
from tests.harness.driver import Driver

INTERVAL_MS = 300_000
RECEIVER = {"metric.reporters": "com.example.Receiver"}
CLIENT = UUID("6f1ed002-ab5f-4d2a-9a3b-7b1d6c7e8f90")


def subscriptions(
    driver: Driver, client: UUID | None = CLIENT, broker_id: int = 1
) -> GetTelemetrySubscriptionsResponse:
    request = GetTelemetrySubscriptionsRequest(client_instance_id=client)
    response = driver.ask(broker_id, "get_telemetry_subscriptions", 0, request)
    assert isinstance(response, GetTelemetrySubscriptionsResponse)
    return response


def push(
    driver: Driver,
    subscription_id: int,
    client: UUID | None = CLIENT,
    *,
    metrics: bytes = b"",
    codec: int = 0,
    terminating: bool = False,
) -> ErrorCode:
    request = PushTelemetryRequest(
        client_instance_id=client,
        subscription_id=subscription_id,
        terminating=terminating,
        compression_type=codec,
        metrics=metrics,
    )
    return ErrorCode(driver.ask(1, "push_telemetry", 0, request).error_code)


def subscribe(driver: Driver, name: str, **configs: str) -> None:
    """Give a subscription these configs; their names have underscores for dots."""
    driver.cluster.controller.set_client_metrics_configs(
        name, {key.replace("_", "."): text for key, text in configs.items()}
    )


def test_a_client_is_asked_for_all_that_it_matches_at_the_shortest_interval() -> None:
    driver = Driver(1)
    client = UUID("2fc7b0ff-8a69-4dbc-b57d-2a56672a7b71")
    assert subscriptions(driver, client).subscription_id == -1556154438
    subscribe(driver, "slow", metrics="b,a", interval_ms="700")
    subscribe(driver, "quick", metrics="c", interval_ms="500", match="client_id=c.*")
    subscribe(driver, "other", metrics="*", match="client_id=c")
    asked = subscriptions(driver, client)
    assert (asked.requested_metrics, asked.push_interval_ms) == (("a", "b", "c"), 500)
    subscribe(driver, "other", metrics="*,a", match="")
    asked = subscriptions(driver, client)
    assert (asked.requested_metrics, asked.subscription_id) == (("*",), -591792929)


@pytest.mark.parametrize(
    ("match", "matches"),
    [
        ("client_id=c1", True),
        ("client_id=c", False),
        ("client_software_name=unknown,client_source_address=192.0.2.*", True),
        ("client_software_name=unknown,client_source_address=10.*", False),
        ("client_software_version=u.*n", True),
        ("client_instance_id=bx7QAqtfTSqaO3sdbH6PkA", True),
        ("client_source_port=.*", False),  # there is no socket
        ("client_id=a,client_id=c1", True),  # the last one holds
    ],
)
def test_patterns_match_the_whole_of_an_attribute(match: str, matches: bool) -> None:
    driver = Driver(1)
    subscribe(driver, "s", metrics="a", match=match)
    assert subscriptions(driver).requested_metrics == (("a",) if matches else ())


def test_other_subscriptions_let_clients_begin_again() -> None:
    driver = Driver(1)
    first = subscriptions(driver).subscription_id
    assert push(driver, first) == ErrorCode.NONE
    subscribe(driver, "s", metrics="a")
    assert push(driver, first) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    second = subscriptions(driver)
    assert (second.error_code, second.requested_metrics) == (ErrorCode.NONE, ("a",))
    driver.advance(INTERVAL_MS)
    assert push(driver, second.subscription_id) == ErrorCode.NONE
    subscribe(driver, "s")
    assert subscriptions(driver).subscription_id == first


def test_an_instance_goes_with_the_connection_in_which_it_was_new() -> None:
    driver = Driver(1)
    subscriptions(driver)
    early = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert subscriptions(driver).error_code == early
    driver.broker(1).client_metrics.on_disconnected("another")
    assert subscriptions(driver).error_code == early
    driver.broker(1).client_metrics.on_disconnected("c1")
    assert subscriptions(driver).error_code == ErrorCode.NONE


def test_an_instance_that_is_silent_for_three_intervals_is_forgotten() -> None:
    driver = Driver(1)
    subscribe(driver, "s", metrics="a", interval_ms="100000")
    subscription_id = subscriptions(driver).subscription_id
    push(driver, subscription_id, terminating=True)
    driver.advance(299_999)
    assert push(driver, subscription_id, terminating=True) == ErrorCode.INVALID_REQUEST
    driver.advance(300_000)
    assert subscriptions(driver).error_code == ErrorCode.NONE
    assert push(driver, subscription_id) == ErrorCode.NONE


def test_nothing_is_subscribed_to() -> None:
    driver = Driver(1, {"telemetry.max.bytes": "777"})
    answer = subscriptions(driver)
    assert (answer.error_code, answer.client_instance_id) == (ErrorCode.NONE, CLIENT)
    assert answer.requested_metrics == ()
    assert answer.accepted_compression_types == (4, 3, 1, 2)
    assert (answer.push_interval_ms, answer.telemetry_max_bytes) == (INTERVAL_MS, 777)
    assert answer.delta_temporality is True


def test_clients_without_an_id_get_one_each() -> None:
    driver = Driver(2)
    ids = [subscriptions(driver, None, broker_id).client_instance_id for broker_id in (1, 1, 2)]
    assert None not in ids
    assert len(set(ids)) == 3


def test_a_second_subscription_request_has_to_wait_for_the_interval() -> None:
    driver = Driver(1)
    first = subscriptions(driver)
    driver.advance(INTERVAL_MS - 1)
    early = subscriptions(driver)
    assert early.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert (early.client_instance_id, early.push_interval_ms) == (None, 0)
    driver.advance(1)
    assert subscriptions(driver).subscription_id == first.subscription_id


def test_one_push_after_each_subscription_and_one_in_each_interval() -> None:
    driver = Driver(1)
    subscription_id = subscriptions(driver).subscription_id
    driver.advance(10)
    assert push(driver, subscription_id) == ErrorCode.NONE
    driver.advance(INTERVAL_MS - 1)
    assert push(driver, subscription_id) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    driver.advance(1)
    assert push(driver, subscription_id) == ErrorCode.NONE


def test_the_last_push_may_come_early_and_is_the_last() -> None:
    driver = Driver(1)
    subscription_id = subscriptions(driver).subscription_id
    push(driver, subscription_id)
    assert push(driver, subscription_id, terminating=True) == ErrorCode.NONE
    driver.advance(INTERVAL_MS)
    assert push(driver, subscription_id, terminating=True) == ErrorCode.INVALID_REQUEST
    assert push(driver, subscription_id) == ErrorCode.INVALID_REQUEST
    driver.advance(INTERVAL_MS)
    assert push(driver, subscription_id) == ErrorCode.NONE, "as at a real broker"


def test_a_push_with_another_subscription_id_is_refused_and_a_new_request_allowed_at_once() -> None:
    driver = Driver(1)
    subscription_id = subscriptions(driver).subscription_id
    assert push(driver, subscription_id + 1) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert subscriptions(driver).error_code == ErrorCode.NONE
    assert subscriptions(driver).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_a_client_without_a_request_has_no_subscription() -> None:
    driver = Driver(1)
    assert push(driver, 5, UUID(int=7)) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert push(driver, 5, UUID(int=1)) == ErrorCode.INVALID_REQUEST, "the metadata topic's"
    assert push(driver, 5, None) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("codec", list(Codec))
def test_every_codec_is_unpacked(codec: Codec) -> None:
    driver = Driver(1, RECEIVER)
    metrics = bytes(compress(codec, b"metrics" * 100))
    subscription_id = subscriptions(driver).subscription_id
    assert push(driver, subscription_id, metrics=metrics, codec=codec) == ErrorCode.NONE


@pytest.mark.parametrize("receives", [False, True])
def test_bytes_that_are_not_what_their_codec_says(receives: bool) -> None:
    driver = Driver(1, RECEIVER if receives else {})
    subscription_id = subscriptions(driver).subscription_id
    broken = push(driver, subscription_id, metrics=b"\xff" * 11, codec=Codec.ZSTD)
    assert broken == (ErrorCode.INVALID_RECORD if receives else ErrorCode.NONE)


def test_an_unknown_codec_is_refused() -> None:
    driver = Driver(1)
    subscription_id = subscriptions(driver).subscription_id
    refused = push(driver, subscription_id, metrics=zlib.compress(b"x"), codec=9)
    assert refused == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize(
    ("size", "code"), [(100, ErrorCode.NONE), (101, ErrorCode.TELEMETRY_TOO_LARGE)]
)
def test_a_push_has_a_size_limit(size: int, code: ErrorCode) -> None:
    driver = Driver(1, {"telemetry.max.bytes": "100"})
    subscription_id = subscriptions(driver).subscription_id
    assert push(driver, subscription_id, metrics=b"x" * size) == code


def test_a_broker_keeps_a_bounded_number_of_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.broker.handlers.client_metrics.MAX_INSTANCES", 2)
    driver = Driver(1)
    for number in (1, 2, 1, 3):
        subscriptions(driver, UUID(int=number))
    codes = [subscriptions(driver, UUID(int=number)).error_code for number in (1, 3, 2)]
    assert codes == [
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.NONE,
    ]
