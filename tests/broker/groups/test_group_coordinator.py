"""The group coordinator of a broker: which shard a group has."""

from __future__ import annotations

from random import Random

from fencepost.broker.configs.effective_configs import BrokerConfigs
from fencepost.broker.coordinator import partition_for
from fencepost.broker.core.scheduler import ManualClock, Scheduler
from fencepost.broker.groups.group_config import GroupConfig
from fencepost.broker.groups.group_coordinator import (
    GroupCoordinator,
    GroupCoordinatorShard,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record
from tests.broker.groups.workbench import Workbench
from tests.harness.fake_log import FakeLog


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
    assert config == GroupConfig.of_broker(kafka, config.offset_value_version)


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
        self.partition = partition_for(self.group, 4)


def test_without_the_topic_no_broker_coordinates() -> None:
    assert Setup(0).coordinator.shard_for("g") is ErrorCode.NOT_COORDINATOR


def test_only_a_named_group_can_have_members() -> None:
    setup = Setup(1)
    setup.coordinator.runtime.on_elected(0, FakeLog())
    setup.scheduler.run_due()
    assert setup.coordinator.shard_for_named_group("") is ErrorCode.INVALID_GROUP_ID
    shard = setup.coordinator.shard_for_named_group("g")
    assert isinstance(shard, GroupCoordinatorShard)
    assert setup.coordinator.shard_for("") is shard


def test_only_the_leader_of_the_groups_partition_coordinates_once_it_has_loaded() -> None:
    setup = Setup()
    setup.coordinator.runtime.on_elected((setup.partition + 1) % 4, FakeLog())
    assert setup.coordinator.shard_for("g") is ErrorCode.NOT_COORDINATOR
    log = FakeLog([Record(0, 0, None, b"not read")])
    setup.coordinator.runtime.on_elected(setup.partition, log)
    assert setup.coordinator.shard_for("g") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    setup.scheduler.run_due()
    assert isinstance(setup.coordinator.shard_for("g"), GroupCoordinatorShard)
    setup.coordinator.runtime.on_resigned(setup.partition)
    assert setup.coordinator.shard_for("g") is ErrorCode.NOT_COORDINATOR


def test_an_election_loads_the_log_again() -> None:
    setup = Setup()
    setup.coordinator.runtime.on_elected(setup.partition, FakeLog())
    setup.scheduler.run_due()
    bench = Workbench()
    bench.commit()
    setup.coordinator.runtime.on_elected(setup.partition, FakeLog(bench.log.records))
    setup.scheduler.run_due()
    shard = setup.coordinator.shard_for("g")
    assert isinstance(shard, GroupCoordinatorShard)
    assert shard.latest.groups.keys() == {"g"}


def test_a_resignation_without_an_election_changes_nothing() -> None:
    Setup().coordinator.runtime.on_resigned(3)


def test_every_shard_deletes_the_offsets_of_deleted_topics() -> None:
    setup = Setup()
    bench = Workbench()
    bench.commit(topic="t")
    bench.commit(topic="u")
    for partition in range(2):
        setup.coordinator.runtime.on_elected(partition, FakeLog(bench.log.records))
    setup.scheduler.run_due()
    setup.coordinator.runtime.on_elected(2, FakeLog(bench.log.records))
    setup.coordinator.on_topics_deleted({"t"})
    kept = [
        shard.latest.offsets for shard in setup.coordinator.runtime.shards.values() if shard.loaded
    ]
    assert [offsets["g"].keys() for offsets in kept] == [{"u"}, {"u"}]
