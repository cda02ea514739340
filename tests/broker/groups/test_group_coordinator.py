"""Which broker, which partition, which shard."""

from __future__ import annotations

from random import Random

import pytest

from fencepost.broker.configs.effective_configs import BrokerConfigs
from fencepost.broker.core.scheduler import ManualClock, Scheduler
from fencepost.broker.groups.group_config import GroupConfig
from fencepost.broker.groups.group_coordinator import (
    GroupCoordinator,
    GroupCoordinatorShard,
    java_hash,
    partition_of,
)
from fencepost.protocol.errors import ErrorCode
from tests.broker.groups.workbench import FakeLog, Workbench


@pytest.mark.parametrize(
    ("text", "java"),
    [
        ("", 0),
        ("a", 97),
        ("group", 98629247),
        ("my-group", -1906497762),
        ("polygenelubricants", -2147483648),
        ("é", 233),
        ("😀", 1772899),
        ("console-consumer-12345", 158455506),
    ],
)
def test_hashes_are_javas(text: str, java: int) -> None:
    assert java_hash(text) == java % 2**32


def test_the_smallest_hash_has_no_absolute_value() -> None:
    assert partition_of("polygenelubricants", 50) == 0
    assert {partition_of(f"g{n}", 4) for n in range(50)} == {0, 1, 2, 3}


def test_the_defaults_are_kafkas() -> None:
    config, kafka = GroupConfig(), BrokerConfigs(1)
    assert config.initial_rebalance_delay_ms == kafka.group_initial_rebalance_delay_ms
    assert config.min_session_timeout_ms == kafka.group_min_session_timeout_ms
    assert config.max_session_timeout_ms == kafka.group_max_session_timeout_ms
    assert config.max_size == kafka.group_max_size
    assert config.offset_metadata_max_bytes == kafka.offset_metadata_max_bytes
    assert config.offsets_retention_ms == kafka.offsets_retention_minutes * 60_000
    every = kafka.offsets_retention_check_interval_ms
    assert config.offsets_retention_check_interval_ms == every


class Setup:
    def __init__(self, partitions: int = 4) -> None:
        self.partitions = partitions
        self.scheduler = Scheduler(ManualClock())
        self.coordinator = GroupCoordinator(
            scheduler=self.scheduler,
            rng=Random(1),
            config=GroupConfig(),
            partition_count=lambda: self.partitions,
        )
        self.group = "g"
        self.partition = partition_of(self.group, 4)


def test_before_there_is_a_topic_nobody_coordinates() -> None:
    assert Setup(0).coordinator.shard_for("g") is ErrorCode.NOT_COORDINATOR


def test_only_the_leader_of_the_groups_partition_coordinates_once_it_has_loaded() -> None:
    setup = Setup()
    setup.coordinator.on_elected((setup.partition + 1) % 4, FakeLog())
    assert setup.coordinator.shard_for("g") is ErrorCode.NOT_COORDINATOR
    setup.coordinator.on_elected(setup.partition, FakeLog())
    assert setup.coordinator.shard_for("g") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    setup.scheduler.run_due()
    assert isinstance(setup.coordinator.shard_for("g"), GroupCoordinatorShard)
    setup.coordinator.on_resigned(setup.partition)
    assert setup.coordinator.shard_for("g") is ErrorCode.NOT_COORDINATOR


def test_an_election_loads_anew() -> None:
    setup = Setup()
    setup.coordinator.on_elected(setup.partition, FakeLog())
    setup.scheduler.run_due()
    bench = Workbench()
    bench.commit()
    setup.coordinator.on_elected(setup.partition, FakeLog(bench.log.records))
    setup.scheduler.run_due()
    shard = setup.coordinator.shard_for("g")
    assert isinstance(shard, GroupCoordinatorShard)
    assert shard.latest.groups.keys() == {"g"}


def test_resigning_what_was_never_led_is_nothing() -> None:
    Setup().coordinator.on_resigned(3)


def test_deleted_topics_are_forgotten_by_every_shard() -> None:
    setup = Setup()
    bench = Workbench()
    bench.commit(topic="t")
    bench.commit(topic="u")
    for partition in range(2):
        setup.coordinator.on_elected(partition, FakeLog(bench.log.records))
    setup.scheduler.run_due()
    setup.coordinator.on_elected(2, FakeLog(bench.log.records))
    setup.coordinator.on_topics_deleted({"t"})
    kept = [shard.latest.offsets for shard in setup.coordinator.shards.values() if shard.loaded]
    assert [offsets["g"].keys() for offsets in kept] == [{"u"}, {"u"}]
