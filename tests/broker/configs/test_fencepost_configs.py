"""The configs that Kafka does not have, or has no more."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fencepost.broker.configs.broker_configs import (
    validate_dynamic_configs,
    validate_static_configs,
)
from fencepost.broker.configs.config_def import has_leader_epochs, release_of
from fencepost.broker.configs.effective_configs import BrokerConfigs, ListOffsetsGate
from fencepost.broker.configs.topic_configs import validate_topic_configs
from fencepost.broker.metadata.image import BrokerImage, ClusterImage

IMAGE = ClusterImage(
    version=1,
    cluster_id="c",
    controller_id=1,
    brokers={1: BrokerImage(broker_id=1, host="h", port=1)},
)
GATE, FORMAT = "list.offsets.gate", "message.format.version"
SELECTOR = "replica.selector.class"
UNCLEAN = "unclean.leader.election.enable"


@pytest.mark.parametrize(
    ("version", "release", "epochs"),
    [
        ("0.8.0", "0.8.0", False),
        ("0.8.2.2", "0.8.2", False),
        ("0.9.0", "0.9.0", False),
        ("0.10.2", "0.10.2", False),
        ("0.10.2-IV0", "0.10.2", False),
        ("0.10.2.1", "0.10.2", False),
        ("0.11.0", "0.11.0", True),
        ("0.11.0-IV2", "0.11.0", True),
        ("1.0", "1.0", True),
        ("2.8.1", "2.8", True),
        ("3.0-IV1", "3.0", True),
        ("4.3", "4.3", True),
    ],
)
def test_versions_of_kafka_belong_to_a_release(version: str, release: str, epochs: bool) -> None:
    assert release_of(version) == release
    assert has_leader_epochs(version) == epochs
    assert validate_topic_configs({FORMAT: version}) is None


@pytest.mark.parametrize(
    "version",
    [
        "",
        "0",
        "0.7.2",
        "0.10",
        "0.11.1",
        "1",
        "1.2",
        "4.4",
        "5.0",
        "4.x",
        "v2.0",
        "2.0-IV",
        "2.0-1",
    ],
)
def test_others_are_refused(version: str) -> None:
    error = validate_topic_configs({FORMAT: version})
    assert error is not None
    assert error.message == (
        f"Invalid value {version} for configuration message.format.version: "
        "Expected a release of Kafka from 0.8.0 to 4.3, as in 0.10.2"
    )


def test_only_topics_have_a_message_format() -> None:
    error = validate_static_configs({FORMAT: "0.10.2"})
    assert error is not None
    assert error.message.startswith("Unknown config name: message.format.version")


CHECKED = {
    "check.expected.offsets": "true",
    "check.expected.offsets.source": "header",
    "check.expected.offsets.scope": "key",
    "check.expected.offsets.error.code": "87",
}


@pytest.mark.parametrize("of_topic", [False, True])
def test_expected_offsets_are_checked_as_broker_or_topic_say(of_topic: bool) -> None:
    assert validate_static_configs(CHECKED) is None
    assert validate_dynamic_configs(CHECKED, per_broker=False) is None
    assert validate_topic_configs(CHECKED) is None
    configs = BrokerConfigs(1, {} if of_topic else CHECKED)
    if of_topic:
        configs.update(replace(IMAGE, topic_configs={"t": CHECKED}))
    log = configs.log_config("t")
    assert log.check_expected_offsets
    assert log.check_expected_offsets_source == "header"
    assert log.check_expected_offsets_scope == "key"
    assert log.check_expected_offsets_error_code == 87


def test_a_topic_may_switch_off_the_check_of_its_broker() -> None:
    configs = BrokerConfigs(1, CHECKED)
    configs.update(replace(IMAGE, topic_configs={"t": {"check.expected.offsets": "false"}}))
    assert not configs.log_config("t").check_expected_offsets


def test_expected_offsets_are_not_checked_by_default() -> None:
    log = BrokerConfigs(1).log_config("t")
    assert not log.check_expected_offsets
    assert (log.check_expected_offsets_source, log.check_expected_offsets_scope) == (
        "batch",
        "partition",
    )
    assert log.check_expected_offsets_error_code == 2701


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("check.expected.offsets", "maybe", "Expected value to be either true or false"),
        ("check.expected.offsets.source", "key", "String must be one of: batch, header"),
        ("check.expected.offsets.scope", "topic", "String must be one of: partition, key"),
        (
            "check.expected.offsets.error.code",
            "0",
            "Value must be between 1 and 32767 or equal to -1",
        ),
        ("check.expected.offsets.error.code", "32768", "Not a number of type SHORT"),
    ],
)
def test_other_values_of_expected_offsets_are_refused(name: str, text: str, problem: str) -> None:
    for error in (validate_static_configs({name: text}), validate_topic_configs({name: text})):
        assert error is not None
        assert error.message == f"Invalid value {text} for configuration {name}: {problem}"


@pytest.mark.parametrize("gate", ["kip", "kafka", "off"])
def test_brokers_and_topics_take_every_value_of_the_gate(gate: str) -> None:
    assert validate_static_configs({GATE: gate}) is None
    assert validate_dynamic_configs({GATE: gate}, per_broker=False) is None
    assert validate_topic_configs({GATE: gate}) is None
    assert BrokerConfigs(1, {GATE: gate}).topic("t").list_offsets_gate is ListOffsetsGate(gate)


def test_other_values_of_the_gate_are_refused() -> None:
    for error in (validate_static_configs({GATE: "wide"}), validate_topic_configs({GATE: "wide"})):
        assert error is not None
        assert error.message == (
            "Invalid value wide for configuration list.offsets.gate: "
            "String must be one of: kip, kafka, off"
        )


@pytest.mark.parametrize("gate", ["kip", "kafka"])
def test_the_gate_is_off_where_leaders_are_elected_uncleanly_but_for_apache(gate: str) -> None:
    static = {GATE: gate, UNCLEAN: "true"}
    assert BrokerConfigs(1, static).topic("t").list_offsets_gate is ListOffsetsGate.OFF
    apache = BrokerConfigs(1, static, apache=True)
    assert apache.topic("t").list_offsets_gate is ListOffsetsGate(gate)
    assert apache.topic("t").unclean_leader_election_enable
    clean_topic = BrokerConfigs(1, static)
    clean_topic.update(replace(IMAGE, topic_configs={"t": {UNCLEAN: "false"}}))
    assert clean_topic.topic("t").list_offsets_gate is ListOffsetsGate(gate)


@pytest.mark.parametrize("name", ["LeaderSelector", "RackAwareReplicaSelector"])
def test_kafkas_own_replica_selectors_are_served(name: str) -> None:
    full = f"org.apache.kafka.common.replica.{name}"
    assert validate_static_configs({SELECTOR: full}) is None
    assert BrokerConfigs(1, {SELECTOR: full}).replica_selector_class == full


@pytest.mark.parametrize("name", ["RackAwareReplicaSelector", "com.example.Mine", ""])
def test_other_replica_selectors_are_refused_with_those_that_are_served(name: str) -> None:
    error = validate_static_configs({SELECTOR: name})
    assert error is not None
    assert error.message == (
        f"Invalid value {name} for configuration replica.selector.class: String must be one of: "
        "org.apache.kafka.common.replica.LeaderSelector, "
        "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    )


@pytest.mark.parametrize(
    ("name", "below"),
    [
        ("broker.session.timeout.ms", 0),
        ("replica.fetch.backoff.ms", -1),
        ("replica.high.watermark.checkpoint.interval.ms", 0),
        ("replica.lag.time.max.ms", 0),
    ],
)
def test_times_of_replication_have_a_minimum(name: str, below: int) -> None:
    assert validate_static_configs({name: str(below + 1)}) is None
    assert getattr(BrokerConfigs(1, {name: "17"}), name.replace(".", "_")) == 17
    error = validate_static_configs({name: str(below)})
    assert error is not None
    assert f"Value must be at least {below + 1}" in error.message
