"""GetTelemetrySubscriptions and PushTelemetry without subscriptions (KIP-714)."""

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


def test_a_push_with_another_subscription_id_is_refused_and_a_new_request_allowed_at_once() -> None:
    driver = Driver(1)
    subscription_id = subscriptions(driver).subscription_id
    assert push(driver, subscription_id + 1) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert subscriptions(driver).error_code == ErrorCode.NONE
    assert subscriptions(driver).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_a_client_without_a_request_has_no_subscription() -> None:
    driver = Driver(1)
    assert push(driver, 5, UUID(int=7)) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert push(driver, 5, None) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("codec", list(Codec))
def test_every_codec_is_unpacked(codec: Codec) -> None:
    driver = Driver(1)
    metrics = bytes(compress(codec, b"metrics" * 100))
    subscription_id = subscriptions(driver).subscription_id
    assert push(driver, subscription_id, metrics=metrics, codec=codec) == ErrorCode.NONE


def test_bytes_that_are_not_what_their_codec_says() -> None:
    driver = Driver(1)
    subscription_id = subscriptions(driver).subscription_id
    broken = push(driver, subscription_id, metrics=b"\xff" * 11, codec=Codec.ZSTD)
    assert broken == ErrorCode.INVALID_RECORD


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
