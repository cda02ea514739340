"""Listeners as text; what is refused stands in tests/cli/test_serve_options.py."""

from __future__ import annotations

import pytest

from fencepost.protocol.listener_text import (
    AdvertisedAddress,
    ListenerSpec,
    parse_advertised,
    parse_listener,
)


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("kafka.test", [("kafka.test", 9092), ("kafka.test", 9093)]),
        ("127.0.0.1:31192", [("127.0.0.1", 31192), ("127.0.0.1", 31193)]),
        ("::1", [("::1", 9092), ("::1", 9093)]),
        ("[::1]:7", [("::1", 7), ("::1", 8)]),
        ("[::1]", [("::1", 9092), ("::1", 9093)]),
        ("kafka-{broker}.test", [("kafka-0.test", 9092), ("kafka-5.test", 9093)]),
        ("kafka-{broker}:80", [("kafka-0", 80), ("kafka-5", 81)]),
        ("h:3{port}", [("h", 39092), ("h", 39093)]),
        ("h{port}:{port}", [("h9092", 9092), ("h9093", 9093)]),
        ("h:92{broker}", [("h", 920), ("h", 925)]),
    ],
)
def test_what_each_broker_advertises(text: str, addresses: list[tuple[str, int]]) -> None:
    """Brokers 0 and 5, on 9092 and 9093."""
    advertised = parse_advertised(text)
    assert [advertised.of_broker(n * 5, n, 9092 + n) for n in (0, 1)] == addresses


@pytest.mark.parametrize(
    ("text", "listener"),
    [
        ("PLAINTEXT://127.0.0.1:9092", ListenerSpec()),
        ("inside-1://:0", ListenerSpec(name="INSIDE-1", host="0.0.0.0", port=0)),
        (
            "OUT_SIDE://[::]:9192,advertised=kafka:31192",
            ListenerSpec(
                name="OUT_SIDE",
                host="::",
                port=9192,
                advertised=AdvertisedAddress(host="kafka", port="31192"),
            ),
        ),
    ],
)
def test_what_a_listener_is(text: str, listener: ListenerSpec) -> None:
    assert parse_listener(text) == listener


def test_the_ith_broker_listens_on_port_plus_i_minus_1_and_free_ports_are_free() -> None:
    assert [ListenerSpec(port=9092).port_of(index) for index in (0, 2)] == [9092, 9094]
    assert [ListenerSpec(port=0).port_of(index) for index in (0, 2)] == [0, 0]
