"""CreateTopics: what is created, what is refused, in whose words."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.create_topics import CreatableTopic
from tests.harness.driver import Driver
from tests.harness.driver_requests import create, create_topics, fetch, produce
from tests.harness.typed_requests import creatable, values


def refusals(driver: Driver, *topics: CreatableTopic) -> list[tuple[str, ErrorCode, str | None]]:
    results = create_topics(driver, *topics)
    return [(r.name, ErrorCode(r.error_code), r.error_message) for r in results]


def test_a_topic_is_there_for_every_broker_when_the_answer_is() -> None:
    driver = Driver(3)
    (result,) = create_topics(driver, creatable("t", 6, 3))
    assert (result.error_code, result.error_message) == (ErrorCode.NONE, None)
    assert (result.num_partitions, result.replication_factor) == (6, 3)
    for broker_id in (1, 2, 3):
        topic = driver.broker(broker_id).view.topics["t"]
        assert topic.topic_id == result.topic_id
        assert {index for _, index in driver.broker(broker_id).replicas} == set(range(6))
    assert {partition.leader for partition in topic.partitions} == {1, 2, 3}
    assert all(sorted(partition.isr) == [1, 2, 3] for partition in topic.partitions)


@pytest.mark.parametrize("version", [2, 4, 7])
def test_minus_one_stands_for_the_brokers_defaults(version: int) -> None:
    driver = Driver(3, {"num.partitions": "4", "default.replication.factor": "2"})
    create_topics(driver, creatable("t", -1, -1), version=version)
    partitions = driver.broker(1).view.topics["t"].partitions
    assert [len(partition.replicas) for partition in partitions] == [2, 2, 2, 2]


def test_assignments_are_taken_by_their_index() -> None:
    driver = Driver(3)
    (result,) = create_topics(
        driver, creatable("t", assignments=[(1, (3, 1)), (0, (2, 3)), (2, (1, 2))])
    )
    assert (result.num_partitions, result.replication_factor) == (3, 2)
    partitions = driver.broker(1).view.topics["t"].partitions
    assert [partition.replicas for partition in partitions] == [(2, 3), (3, 1), (1, 2)]
    assert [partition.leader for partition in partitions] == [2, 3, 1]


def test_configs_come_back_with_their_sources_from_v5() -> None:
    driver = Driver(1, {"log.retention.ms": "5000"})
    topic = creatable("t", configs=[("cleanup.policy", "compact"), ("segment.ms", "7")])
    (result,) = create_topics(driver, topic)
    configs = {c.name: (c.value, c.config_source, c.read_only) for c in result.configs}
    assert list(configs) == sorted(configs)
    assert configs["cleanup.policy"] == ("compact", 1, False)
    assert configs["segment.ms"] == ("7", 1, False)
    assert configs["retention.ms"] == ("5000", 4, False)
    assert configs["max.message.bytes"] == ("1048588", 5, False)
    assert driver.replica(1, "t").log.config.segment_ms == 7
    (older,) = create_topics(driver, creatable("u", configs=[("segment.ms", "8")]), version=4)
    assert (older.configs, older.num_partitions) == ((), -1)
    assert driver.replica(1, "u").log.config.segment_ms == 8


def test_they_are_those_of_the_controller_wherever_it_is_asked() -> None:
    driver = Driver(2)
    driver.cluster.controller.set_broker_configs(2, {"log.retention.ms": "5000"})
    for broker_id in (1, 2):
        (result,) = create_topics(driver, creatable("t"), validate_only=True, broker_id=broker_id)
        assert {c.value for c in result.configs if c.name == "retention.ms"} == {"604800000"}
    driver.cluster.controller.set_broker_configs(1, {"log.retention.ms": "6000"})
    (result,) = create_topics(driver, creatable("t"), validate_only=True, broker_id=2)
    sources = {(c.value, c.config_source) for c in result.configs if c.name == "retention.ms"}
    assert sources == {("6000", 2)}


def test_the_last_of_two_values_of_a_config_holds() -> None:
    driver = Driver(1)
    create_topics(driver, creatable("t", configs=[("segment.ms", "7"), ("segment.ms", "9")]))
    assert driver.broker(1).view.configs_of("t") == {"segment.ms": "9"}


def test_validate_only_answers_the_same_and_creates_nothing() -> None:
    driver = Driver(1)
    before = driver.broker(1).view
    topics = (creatable("t", 2), creatable("t b"))
    good, bad = create_topics(driver, *topics, validate_only=True)
    assert (good.error_code, good.num_partitions) == (ErrorCode.NONE, 2)
    assert good.topic_id is not None
    assert bad.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert driver.broker(1).view is before


def test_good_topics_are_created_beside_bad_ones_in_one_view() -> None:
    driver = Driver(1)
    create(driver, "old")
    version = driver.broker(1).view.version
    results = create_topics(
        driver, creatable("a"), creatable("old"), creatable("b"), creatable("c", 0)
    )
    assert [(r.name, r.error_code) for r in results] == [
        ("a", ErrorCode.NONE),
        ("old", ErrorCode.TOPIC_ALREADY_EXISTS),
        ("b", ErrorCode.NONE),
        ("c", ErrorCode.INVALID_PARTITIONS),
    ]
    assert driver.broker(1).view.version == version + 1
    assert set(driver.broker(1).view.topics) == {"old", "a", "b"}


def test_a_name_that_stands_twice_is_answered_once_and_not_created() -> None:
    driver = Driver(1)
    assert refusals(driver, creatable("t"), creatable("u"), creatable("t", 2)) == [
        ("u", ErrorCode.NONE, None),
        ("t", ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
    ]
    assert set(driver.broker(1).view.topics) == {"u"}


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION, "the empty string is not allowed"),
        ("..", ErrorCode.INVALID_TOPIC_EXCEPTION, "'..' is not allowed"),
        (
            "x" * 250,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"the length of '{'x' * 250}' is longer than the max allowed length 249",
        ),
        (
            "a b",
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            (
                "'a b' contains one or more characters other than ASCII alphanumerics, "
                "'.', '_' and '-'"
            ),
        ),
    ],
)
def test_an_illegal_name_is_refused_in_kafkas_words(
    name: str, code: ErrorCode, message: str
) -> None:
    refused = refusals(Driver(1), creatable(name))
    assert refused == [(name, code, f"Topic name is invalid: {message}")]


def test_names_that_metrics_could_not_tell_apart_collide() -> None:
    driver = Driver(1)
    create(driver, "a.b")
    collision = "Topic 'a_b' collides with existing topic: a.b"
    assert refusals(driver, creatable("a_b")) == [
        ("a_b", ErrorCode.INVALID_TOPIC_EXCEPTION, collision)
    ]


def test_kafkas_own_topics_may_be_created_but_not_the_metadata_log() -> None:
    assert refusals(
        Driver(1), creatable("__consumer_offsets"), creatable("__cluster_metadata")
    ) == [
        ("__consumer_offsets", ErrorCode.NONE, None),
        (
            "__cluster_metadata",
            ErrorCode.INVALID_REQUEST,
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
    ]


@pytest.mark.parametrize(
    ("partitions", "factor", "code", "message"),
    [
        (
            0,
            1,
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            0,
            0,
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (
            1,
            2,
            ErrorCode.INVALID_REPLICATION_FACTOR,
            (
                "Unable to replicate the partition 2 time(s): The target replication factor of 2 "
                "cannot be reached because only 1 broker(s) are registered or some brokers have "
                "all their log directories cordoned."
            ),
        ),
        (
            10_001,
            1,
            ErrorCode.POLICY_VIOLATION,
            "Excessively large number of partitions per request.",
        ),
        (
            10_000,
            1,
            ErrorCode.POLICY_VIOLATION,
            "Unable to perform excessively large batch operation.",
        ),
    ],
)
def test_counts_that_cannot_be_are_refused(
    partitions: int, factor: int, code: ErrorCode, message: str
) -> None:
    assert refusals(Driver(1), creatable("t", partitions, factor)) == [("t", code, message)]


def test_too_many_partitions_in_all_refuse_every_topic_of_the_request() -> None:
    driver = Driver(1)
    refused = refusals(driver, creatable("a", 6000), creatable("b", 4001), creatable("c d"))
    message = "Excessively large number of partitions per request."
    assert {(code, text) for _, code, text in refused} == {(ErrorCode.POLICY_VIOLATION, message)}
    assert not driver.broker(1).view.topics


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        ([(0, [1]), (2, [1])], "partitions should be a consecutive 0-based integer sequence"),
        ([(1, [1])], "partitions should be a consecutive 0-based integer sequence"),
        ([(0, [1]), (0, [2])], "Found multiple manual partition assignments for partition 0"),
        (
            [(0, [2, 2]), (0, [2])],
            "The manual partition assignment includes the broker 2 more than once.",
        ),
        (
            [(0, [7, 2, 2])],
            "The manual partition assignment includes the broker 2 more than once.",
        ),
        (
            [(1, [7])],
            "The manual partition assignment includes broker 7, but no such broker is registered.",
        ),
        ([(0, [])], "The manual partition assignment includes an empty replica list."),
        (
            [(0, [2, 2])],
            "The manual partition assignment includes the broker 2 more than once.",
        ),
        (
            [(0, [1]), (1, [1, 2])],
            (
                "The manual partition assignment includes a partition with 2 replica(s), but this "
                "is not consistent with previous partitions, which have 1 replica(s)."
            ),
        ),
    ],
)
def test_assignments_that_make_no_topic_are_refused(
    assignments: Sequence[tuple[int, Sequence[int]]], message: str
) -> None:
    refused = refusals(Driver(2), creatable("t", assignments=assignments))
    assert refused == [("t", ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)]


@pytest.mark.parametrize(
    ("partitions", "factor", "what"),
    [(1, -1, "numPartitions"), (-1, 1, "replication factor"), (1, 1, "replication factor")],
)
def test_assignments_and_counts_exclude_each_other(partitions: int, factor: int, what: str) -> None:
    topic = CreatableTopic(
        name="t",
        num_partitions=partitions,
        replication_factor=factor,
        assignments=creatable("t", assignments=[(0, [1])]).assignments,
    )
    message = f"A manual partition assignment was specified, but {what} was not set to -1."
    assert refusals(Driver(1), topic) == [("t", ErrorCode.INVALID_REQUEST, message)]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "retention.ms",
            "x",
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
        ("retention.ms", None, "Null value not supported for topic configs: retention.ms"),
    ],
)
def test_configs_are_judged_before_counts(name: str, value: str | None, message: str) -> None:
    refused = refusals(Driver(1), creatable("t", 0, configs=[(name, value)]))
    assert refused == [("t", ErrorCode.INVALID_CONFIG, message)]


def test_a_null_is_refused_where_the_config_is_named_again() -> None:
    configs = [("retention.ms", None), ("retention.ms", "5")]
    message = "Null value not supported for topic configs: retention.ms"
    refused = refusals(Driver(1), creatable("t", configs=configs))
    assert refused == [("t", ErrorCode.INVALID_CONFIG, message)]


def test_a_taken_name_is_refused_before_configs_are_judged() -> None:
    driver = Driver(1)
    create(driver, "t")
    refused = refusals(driver, creatable("t", 0, configs=[("retention.ms", "x")]))
    assert refused == [("t", ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 't' already exists.")]


def test_a_deleted_topics_name_comes_back_with_another_id_and_nothing_in_it() -> None:
    driver = Driver(2)
    (first,) = create_topics(driver, creatable("t", 1, 2))
    produce(driver, "t", b"old")
    driver.cluster.controller.delete_topics(["t"])
    (second,) = create_topics(driver, creatable("t", 1, 2))
    assert second.topic_id != first.topic_id
    assert values(fetch(driver, "t", 0)) == []
