"""The options of a test's cluster, and the messages for a mistake in them."""

from __future__ import annotations

import re

import pytest

from fencepost.protocol.codec.drafts import DRAFTS
from fencepost.testing.servers import InvalidOptions, read_options
from fencepost.verbs.bodies import NewTopicBody


def test_nothing_asked_is_one_broker_and_no_topics() -> None:
    wanted = read_options({}, None)
    assert wanted.server_key == (
        "--brokers=1",
        "--clock=real",
        "--conformance=kip",
        "--log-level=info",
    )
    assert wanted.topics == ()


def test_every_option() -> None:
    wanted = read_options(
        {
            "brokers": 3,
            "configs": {"num.partitions": "4"},
            "racks": ["a", "b"],
            "listeners": ["A://127.0.0.1:0", "B://:0,advertised=kafka.test"],
            "api_max": {"Fetch": 8},
            "features": {"metadata.version": 29},
            "like_kafka": "2.0",
            "clock": "manual",
            "conformance": "apache",
            "dialect": "kip-320-draft",
            "seed": 7,
            "log_level": "debug",
        },
        None,
    )
    assert set(wanted.server_key) == {
        "--brokers=3",
        "--config=num.partitions=4",
        "--racks=a,b",
        "--listener=A://127.0.0.1:0",
        "--listener=B://:0,advertised=kafka.test",
        "--api-max=Fetch=8",
        "--feature=metadata.version=29",
        "--like-kafka=2.0",
        "--clock=manual",
        "--conformance=apache",
        "--dialect=kip-320-draft",
        "--seed=7",
        "--log-level=debug",
    }


def test_broker_ids_say_how_many_brokers_there_are() -> None:
    wanted = read_options(
        {"broker_ids": [2, 0, 1], "controller_ids": [3000], "controller_listener": True}, None
    )
    assert "--controller-port=0" in wanted.arguments()
    assert set(wanted.server_key) >= {
        "--brokers=3",
        "--broker-ids=2,0,1",
        "--controller-ids=3000",
    }
    assert wanted.ids == (0, 1, 2)
    assert read_options({"brokers": 2, "broker_ids": [0, 5]}, None).ids == (0, 5)
    assert read_options({"brokers": 2}, None).ids == (1, 2)


def test_configs_of_single_brokers() -> None:
    options = {"brokers": 2, "broker_configs": {2: {"broker.rack": "a", "num.partitions": "3"}}}
    assert set(read_options(options, None).server_key) >= {
        "--broker-config=2:broker.rack=a",
        "--broker-config=2:num.partitions=3",
    }


def test_topics_and_configs_are_spelled_as_on_the_command_line() -> None:
    spelled = read_options(
        {
            "configs": ["num.partitions=4", "auto.create.topics.enable=false"],
            "topics": ["orders:3:1,retention.ms=1000"],
        },
        None,
    )
    in_python = read_options(
        {
            "configs": {"num.partitions": 4, "auto.create.topics.enable": False},
            "topics": [
                {
                    "name": "orders",
                    "partitions": 3,
                    "replication_factor": 1,
                    "configs": {"retention.ms": 1000},
                }
            ],
        },
        None,
    )
    assert spelled == in_python
    assert spelled.topics[0].configs == {"retention.ms": "1000"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"broker_configs": {2: {"num.partitions": "3"}}},
            "broker_configs has 2, which is none of the brokers",
        ),
        ({"brokers": 3, "broker_ids": [0]}, "brokers is 3, and there are 1 broker_ids"),
        ({"broker_ids": [0, 0]}, "broker_ids has an id twice"),
        ({"broker_ids": [-1]}, "broker_ids[0]: "),
        ({"broker_ids": [1 << 31]}, "broker_ids[0]: "),
        ({"broker_ids": 0}, "broker_ids: "),
        ({"listeners": ["A"]}, "listeners[0]: 'A' is not NAME://HOST:PORT[,advertised=HOST:PORT]"),
        ({"advertise": "http://x"}, "advertise: 'http://x' is not HOST or HOST:PORT"),
    ],
)
def test_addresses_and_ids_that_cannot_be(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidOptions, match=re.escape(message)):
        read_options(options, None)


def test_every_dialect_can_be_named() -> None:
    for name in DRAFTS:
        assert f"--dialect={name}" in read_options({"dialect": name}, None).server_key


def test_topics_need_no_process_of_their_own() -> None:
    assert (
        read_options({"topics": ["orders"]}, None).server_key == read_options({}, None).server_key
    )


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("t", NewTopicBody(name="t")),
        ("t:3", NewTopicBody(name="t", partitions=3)),
        ("t:3:2", NewTopicBody(name="t", partitions=3, replication_factor=2)),
    ],
)
def test_topics_as_serve_takes_them(text: str, topic: NewTopicBody) -> None:
    assert read_options({"topics": [text]}, None).topics == (topic,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"broker": 3}, "there is no field 'broker'; there are brokers, broker_ids, "),
        ({"brokers": "3"}, "brokers: input should be a valid integer"),
        ({"brokers": 0}, "brokers: input should be greater than or equal to 1"),
        ({"clock": "slow"}, "clock: input should be 'real' or 'manual'"),
        ({"dialect": "kip-320"}, "dialect: there is no dialect 'kip-320'; the dialects are"),
        (
            {"configs": {"num.partitions": [4]}},
            "configs.num.partitions: input should be a valid str",
        ),
        ({"configs": ["num.partitions"]}, "configs: 'num.partitions' is not KEY=VALUE"),
        ({"topics": ["t:x"]}, "topics[0]: 't:x' is not NAME[:PARTITIONS[:RF]]"),
        ({"topics": ["t:1:1:1"]}, "topics[0]: 't:1:1:1' is not NAME[:PARTITIONS[:RF]]"),
        ({"topics": [{"names": "t"}]}, "topics[0]: there is no field 'names'"),
    ],
)
def test_a_mistake_is_one_line(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidOptions, match=re.escape(message)) as refusal:
        read_options(options, None)
    assert len(str(refusal.value).splitlines()) == 1
    assert str(refusal.value).startswith("fencepost_options: ")


@pytest.mark.fencepost(broker=3)
def test_a_mistake_in_a_marker_names_the_marker(request: pytest.FixtureRequest) -> None:
    with pytest.raises(
        InvalidOptions, match=r"^@pytest\.mark\.fencepost: there is no field 'broker"
    ):
        read_options({}, request.node)


@pytest.mark.fencepost(3)
def test_a_marker_takes_names_only(request: pytest.FixtureRequest) -> None:
    with pytest.raises(InvalidOptions, match="takes arguments by name only, such as brokers=3"):
        read_options({}, request.node)
