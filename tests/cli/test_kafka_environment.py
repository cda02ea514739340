"""Kafka's container variables, as the compose files of real brokers have them."""

from __future__ import annotations

from typing import Final

import pytest

from fencepost.broker.server.run import ServeOptions
from fencepost.cli.option_values import OptionError
from fencepost.cli.serve import parse_options
from fencepost.protocol.listener_text import AdvertisedAddress, ListenerSpec

ALONE: Final = "and this process is a cluster of its own: --brokers says how many brokers it has"
READ: Final = {"FENCEPOST_KAFKA_ENV": "true", "FENCEPOST_SEED": "0", "FENCEPOST_HOST": "0.0.0.0"}
# As in docker/examples of Apache Kafka.
APACHE: Final = {
    "KAFKA_NODE_ID": "7",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
    "PLAINTEXT_HOST:PLAINTEXT",
    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT_HOST://localhost:9092,PLAINTEXT://broker:19092",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "7@broker:29093",
    "KAFKA_LISTENERS": "CONTROLLER://:29093,PLAINTEXT_HOST://:9092,PLAINTEXT://:19092",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "PLAINTEXT",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
}
CONFIGS: Final = {
    "offsets.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
}
LISTENERS: Final = (
    ListenerSpec(
        name="PLAINTEXT_HOST",
        host="0.0.0.0",
        port=9092,
        advertised=AdvertisedAddress(host="localhost", port="9092"),
    ),
    ListenerSpec(
        name="PLAINTEXT",
        host="0.0.0.0",
        port=19092,
        advertised=AdvertisedAddress(host="broker", port="19092"),
    ),
)


def test_the_compose_file_of_a_real_broker() -> None:
    assert parse_options([], READ | APACHE) == ServeOptions(
        broker_ids=(7,),
        controller=ListenerSpec(name="CONTROLLER", host="0.0.0.0", port=29093),
        listeners=LISTENERS,
        configs=CONFIGS,
        seed=0,
    )


def test_the_controllers_listener_is_advertised_whatever_its_name() -> None:
    environment = {
        "KAFKA_LISTENERS": "PLAINTEXT://:9092,CTRL://:9093",
        "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:9092,CTRL://kafka:19093",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CTRL",
    }
    assert parse_options([], READ | environment).controller == ListenerSpec(
        name="CONTROLLER",
        host="0.0.0.0",
        port=9093,
        advertised=AdvertisedAddress(host="kafka", port="19093"),
    )


def test_without_the_switch_they_say_nothing() -> None:
    environment = {"FENCEPOST_SEED": "0"}
    assert parse_options([], environment | APACHE) == ServeOptions(seed=0)


def test_an_option_comes_before_them() -> None:
    typed = ["--brokers=2", "--port=0", "--config=offsets.topic.replication.factor=2"]
    options = parse_options(typed, READ | APACHE)
    assert (options.brokers, options.broker_ids, options.controller) == (2, (), None)
    assert options.listeners == (ListenerSpec(host="0.0.0.0", port=0),)
    assert options.configs == CONFIGS | {"offsets.topic.replication.factor": "2"}


def test_underscores_and_dashes_in_a_name_and_the_names_of_bitnami() -> None:
    environment = {"KAFKA_LISTENER_NAME_A__B___C_MAX_CONNECTIONS": "5"}
    environment["KAFKA_CFG_NUM_PARTITIONS"] = "3"
    configs = parse_options([], READ | environment).configs
    assert configs == {"listener.name.a_b-c.max.connections": "5", "num.partitions": "3"}


@pytest.mark.parametrize(
    "name",
    [
        "KAFKA_VERSION",
        "KAFKA_OPTS",
        "KAFKA_HEAP_OPTS",
        "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_JMX_PORT",
        "KAFKA_LOG4J_ROOT_LOGLEVEL",
        "KAFKA_TOOLS_LOG4J_LOGLEVEL",
        "KAFKA_SERVICE_HOST",
        "KAFKA_PORT_9092_TCP_ADDR",
    ],
)
def test_those_of_the_jvm_and_of_a_service_named_kafka_are_skipped(name: str) -> None:
    expected = parse_options([], READ)
    assert parse_options([], READ | {name: "x", "KAFKA_PORT": "tcp://10.0.0.1:9092"}) == expected


def test_advertised_listeners_alone_are_those_of_kafkas_default_listener() -> None:
    environment = {"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:31192"}
    assert parse_options([], READ | environment).listeners == (
        ListenerSpec(host="0.0.0.0", advertised=AdvertisedAddress(host="kafka", port="31192")),
    )


@pytest.mark.parametrize(
    ("variable", "text", "reason"),
    [
        (
            "KAFKA_ZOOKEEPER_CONNECT",
            "zookeeper:2181",
            "Kafka has no broker config zookeeper.connect",
        ),
        (
            "KAFKA_NUM_PARTITION",
            "2",
            "Kafka has no broker config num.partition; did you mean num.partitions?",
        ),
        (
            "KAFKA_CONTROLLER_QUORUM_VOTERS",
            "1@a:9093,2@b:9093,3@c:9093",
            f"it names 3 controllers, {ALONE}",
        ),
    ],
)
def test_what_has_no_effect_is_told(variable: str, text: str, reason: str) -> None:
    options = parse_options([], READ | {variable: text})
    assert options.ignored_variables == {variable: reason}
    assert options.configs == {}


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"KAFKA_NODE_ID": "x"}, "^KAFKA_NODE_ID: 'x' is not a number from 0 to 2147483647$"),
        (
            {"KAFKA_PROCESS_ROLES": "controller"},
            "^KAFKA_PROCESS_ROLES: 'controller' names no broker; the controller is part of",
        ),
        (
            {"KAFKA_LISTENERS": "PLAINTEXT:9092"},
            "^KAFKA_LISTENERS: 'PLAINTEXT:9092' is not NAME://HOST:PORT",
        ),
        (
            {
                "KAFKA_LISTENERS": "SECURE://:9092",
                "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "SECURE:SASL_SSL",
            },
            "^KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: the listener SECURE has the security prot",
        ),
        ({"KAFKA_NUM_PARTITIONS": "x"}, "Invalid value x for configuration num.partitions"),
    ],
)
def test_what_is_wrong_is_refused_in_one_line(environment: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message) as error:
        parse_options([], READ | environment)
    assert "\n" not in str(error.value)
