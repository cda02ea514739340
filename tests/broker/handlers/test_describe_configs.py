"""DescribeConfigs, beyond what Apache Kafka's recorded answers show (tests/broker/configs)."""

from __future__ import annotations

import pytest

from fencepost.broker.configs.broker_configs import broker_configs
from fencepost.broker.configs.config_layers import ConfigSource
from fencepost.broker.configs.config_table import (
    FENCEPOST_CONFIGS,
    data_file,
    own_configs,
    read_sections,
)
from fencepost.broker.configs.effective_configs import static_configs
from fencepost.broker.handlers import describe_configs
from fencepost.broker.metadata.image import Address
from fencepost.protocol.errors import MALFORMED_REQUEST, ErrorCode
from fencepost.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from tests.harness.fake_broker import FakeBroker, broker

TOPIC, BROKER = 2, 4


def describe(
    asked: FakeBroker,
    resource_type: int,
    name: str,
    *keys: str,
    synonyms: bool = False,
    documentation: bool = False,
) -> DescribeConfigsResult:
    request = DescribeConfigsRequest(
        resources=(
            DescribeConfigsResource(
                resource_type=resource_type, resource_name=name, configuration_keys=keys or None
            ),
        ),
        include_synonyms=synonyms,
        include_documentation=documentation,
    )
    (result,) = asked.ask("describe_configs", 4, request).results
    assert isinstance(result, DescribeConfigsResult)
    return result


def only(result: DescribeConfigsResult) -> DescribeConfigsResourceResult:
    (entry,) = result.configs
    return entry


def test_synonyms_and_documentation_come_when_asked_for() -> None:
    asked = broker()
    asked.create("t", {})
    bare = only(describe(asked, TOPIC, "t", "segment.bytes"))
    assert (bare.synonyms, bare.documentation) == ((), None)
    assert len(only(describe(asked, TOPIC, "t", "segment.bytes", synonyms=True)).synonyms) == 1
    documented = only(describe(asked, TOPIC, "t", "segment.bytes", documentation=True))
    assert documented.documentation
    assert documented.synonyms == ()


def test_no_keys_and_an_empty_list_of_keys_both_mean_all() -> None:
    asked = broker()
    asked.create("t", {})
    resource = DescribeConfigsResource(
        resource_type=TOPIC, resource_name="t", configuration_keys=()
    )
    request = DescribeConfigsRequest(resources=(resource,))
    (result,) = asked.ask("describe_configs", 4, request).results
    own = read_sections(data_file(FENCEPOST_CONFIGS))["topic"]
    kafkas = {config.name for config in result.configs} - own.keys()
    assert len(kafkas) == 33
    assert result.configs == describe(asked, TOPIC, "t").configs


def test_a_broker_says_where_it_listens() -> None:
    inside = Address(host="0.0.0.0", port=9092, advertised_host="kafka.test")
    asked = broker(static_configs({}, broker_id=1, addresses=[inside]))
    entry = only(describe(asked, BROKER, "1", "advertised.listeners"))
    assert entry.value == "PLAINTEXT://kafka.test:9092"
    assert entry.config_source == ConfigSource.STATIC_BROKER_CONFIG
    assert entry.read_only


def test_a_broker_says_where_each_of_its_listeners_is() -> None:
    addresses = [
        Address(listener="INSIDE", host="0.0.0.0", port=9092, advertised_host="kafka.test"),
        Address(
            listener="OUTSIDE",
            host="::1",
            port=9192,
            advertised_host="127.0.0.1",
            advertised_port=31192,
        ),
    ]
    asked = broker(static_configs({}, broker_id=1, addresses=addresses))
    values = {
        name: only(describe(asked, BROKER, "1", name)).value
        for name in (
            "listeners",
            "advertised.listeners",
            "listener.security.protocol.map",
            "inter.broker.listener.name",
        )
    }
    assert values == {
        "listeners": "INSIDE://0.0.0.0:9092,OUTSIDE://[::1]:9192",
        "advertised.listeners": "INSIDE://kafka.test:9092,OUTSIDE://127.0.0.1:31192",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
    }


def test_every_broker_config_that_is_not_hidden_is_described_in_order() -> None:
    names = [entry.name for entry in describe(broker(), BROKER, "1").configs]
    shown = [name for name, config in broker_configs().items() if not config.hidden]
    assert names == [name for name in shown if name not in own_configs()]


def test_own_configs_are_described_where_they_are_set_or_asked_for() -> None:
    name = "check.expected.offsets.scope"
    for asked in (broker({name: "key"}), broker(apache=True), broker()):
        asked.create("t", {})
        asked.create("own", {name: "partition"})
        is_static = name in asked.configs.layers.static
        for kind, resource, listed in (
            (BROKER, "1", is_static),
            (TOPIC, "t", is_static),
            (TOPIC, "own", True),
        ):
            names = {entry.name for entry in describe(asked, kind, resource).configs}
            assert names & own_configs() == ({name} if listed else set()), resource
            (entry,) = describe(asked, kind, resource, name).configs
            assert entry.name == name


def test_a_secret_is_never_shown() -> None:
    # No secret acts here yet, so none can be set but by the cluster's own hand.
    asked = broker({"ssl.key.password": "hunter2"})
    entry = only(describe(asked, BROKER, "1", "ssl.key.password", synonyms=True))
    assert entry.is_sensitive
    assert entry.value is None
    assert [synonym.value for synonym in entry.synonyms] == [None]


def test_a_topic_that_is_not_in_the_view_is_unknown() -> None:
    result = describe(broker(), TOPIC, "t")
    assert result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert result.configs == ()


def test_refuses_every_resource() -> None:
    request = DescribeConfigsRequest(
        resources=(
            DescribeConfigsResource(resource_type=TOPIC, resource_name="a"),
            DescribeConfigsResource(resource_type=BROKER, resource_name="1"),
        )
    )
    results = describe_configs.refuse(request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED).results
    assert [(r.resource_type, r.resource_name, r.error_code) for r in results] == [
        (TOPIC, "a", ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (BROKER, "1", ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ]


@pytest.mark.parametrize("kind", [0, 1, 64])
def test_an_unknown_kind_of_resource_refuses_all_in_kafkas_words(kind: int) -> None:
    asked = broker()
    resources = tuple(
        DescribeConfigsResource(resource_type=each, resource_name="1", configuration_keys=None)
        for each in (BROKER, kind)
    )
    request = DescribeConfigsRequest(resources=resources)
    results = asked.ask("describe_configs", 4, request).results
    assert {(each.error_code, each.error_message) for each in results} == {
        (ErrorCode.INVALID_REQUEST, MALFORMED_REQUEST)
    }
