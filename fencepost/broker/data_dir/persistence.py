"""A cluster that is kept in a data directory: how it is restored, and what is written when.

A broker writes its checkpoints as often as Kafka does.

A restored cluster begins every partition in a leader epoch that it never had, under the leader that
it had: clients and logs can tell the records of the earlier process from new ones (KIP-101,
KIP-320), and records that only the leader had are not lost.
"""

import random
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import UUID

from msgspec.structs import replace

from fencepost.broker.controller.controller import Controller
from fencepost.broker.core.events import Events, Kind
from fencepost.broker.core.scheduler import Scheduler
from fencepost.broker.data_dir.directory import (
    METADATA_LOG_FILE,
    DataDir,
    RecoveryReport,
    adopt_kafka_log_dir,
    data_dir_errors,
)
from fencepost.broker.data_dir.log_dir import LogDir
from fencepost.broker.data_dir.log_dirs import LogDirs, all_dirs
from fencepost.broker.data_dir.log_opening import LogDamage, Repair
from fencepost.broker.data_dir.metadata_log import ControllerState, MetadataLog
from fencepost.broker.data_dir.offset_checkpoints import Key
from fencepost.broker.data_dir.restart import ReplicaState, RestartedPartition, restart_partition
from fencepost.broker.metadata.image import INTERNAL_TOPICS, ClusterImage, PartitionImage
from fencepost.storage.files.file_system import StorageFailure
from fencepost.storage.files.process_limits import ProcessLimits
from fencepost.storage.files.recovery import LogRecoveryReport

if TYPE_CHECKING:
    from fencepost.broker.node.broker import Broker


_NEVER_MS: Final = 1 << 62
"""What is due later is never due."""


class CheckpointTimers:
    """The timers of one broker; each interval is read from the configs when the timer is set."""

    def __init__(self, broker: "Broker", log_dir: LogDir, data_dir: DataDir) -> None:
        self._broker = broker
        self._checkpoints = log_dir.checkpoints
        self._checkpoints.on_log_failed = self._fail
        self._data_dir = data_dir

    def start(self) -> None:
        """Set the first timers."""
        configs = self._broker.configs
        self._every(
            lambda: configs.replica_high_watermark_checkpoint_interval_ms, self._high_watermarks
        )
        self._every(
            lambda: configs.log_flush_offset_checkpoint_interval_ms,
            self._recovery_points,
        )
        self._every(
            lambda: configs.log_flush_start_offset_checkpoint_interval_ms,
            self._checkpoints.write_log_starts,
        )
        self._every(lambda: configs.log_flush_scheduler_interval_ms, self._flush)

    def _every(self, interval_ms: Callable[[], int], work: Callable[[], None]) -> None:
        scheduler = self._broker.scheduler

        def tick() -> None:
            if self._broker.running:
                work()
            self._every(interval_ms, work)

        wait_ms = interval_ms()
        if wait_ms < _NEVER_MS:
            scheduler.at(scheduler.now_ms() + max(wait_ms, 1), tick)

    def _high_watermarks(self) -> None:
        self._checkpoints.write_high_watermarks(self._broker.replicas)
        if self._data_dir.metadata_log is not None:
            self._data_dir.metadata_log.write_pending()

    def _recovery_points(self) -> None:
        """Where nothing else is flushed, closed segments are, and need not be recovered."""
        self._checkpoints.write_recovery_points()
        self._checkpoints.sync_closed_segments()

    def _flush(self) -> None:
        for key, failure in self._checkpoints.flush_overdue(self._broker.scheduler.wall_ms()):
            self._fail(key, failure)

    def _fail(self, key: Key, failure: StorageFailure) -> None:
        replica = self._broker.replicas.get(key)
        if replica is not None:
            self._broker.mark_offline(replica, failure)


_OUTCOMES: Final = {
    Repair.REFUSE: "offline: restore the files, or start with --accept-data-loss",
    Repair.FOLLOW: "fetched again from the leader",
    Repair.ACCEPT: "lost: --accept-data-loss",
}


def _outcome(repair: Repair, damage: LogDamage, leader: ReplicaState | None) -> str:
    """What becomes of a replica that misses records, for a person."""
    text, missing = _OUTCOMES[repair], damage.missing
    if repair is not Repair.FOLLOW or leader is None or not leader.is_usable:
        return text
    if not missing or missing[-1].end <= leader.end:
        return text
    return f"{text}, which ends at offset {leader.end}: the later ones are lost"


_INTERNAL: Final = {"cleanup.policy": "compact"}
"""What Kafka's own topics always have: without it commits would expire with their records."""


class DataDirPersistence:
    """The data directory of a running cluster: see `fencepost.broker.node.persistence`.

    :ivar log_dirs: By broker id.
    :ivar found: What there was when it began; None before that.
    """

    def __init__(
        self,
        data_dir: DataDir,
        scheduler: Scheduler,
        events: Events,
        rng: random.Random,
        *,
        shared: ProcessLimits | None = None,
    ) -> None:
        """:param shared: What all logs of the process hold together; None is the default."""
        self.data_dir = data_dir
        self.log_dirs: dict[int, LogDirs] = {}
        self.recovery_report: RecoveryReport | None = None
        self._scheduler = scheduler
        self._events = events
        self._rng = rng
        self._metadata_log: MetadataLog | None = None
        """From when on changes are to be kept."""
        self._restored_state = ControllerState(cluster_id="")
        self._dropped_configs: tuple[str, ...] = ()
        self._shared = shared or ProcessLimits()

    @property
    def starts(self) -> int:
        """How many processes of the cluster have been started before; 0 for a new cluster."""
        state = self.data_dir.controller_state
        return 0 if state is None else state.starts

    @property
    def cluster_id(self) -> str:
        """The id of the cluster; empty for a new one."""
        return self.data_dir.cluster_id

    @property
    def syncs(self) -> bool:
        """Whether each append is synced to disk."""
        return self.data_dir.sync

    def set_cluster_id(self, cluster_id: str) -> None:
        """Set the cluster's id, which log directories have to have as well."""
        self.data_dir.set_cluster_id(cluster_id)

    def broker_log_dirs(self, broker_id: int, count: int) -> LogDirs:
        """A broker's log directories, made if they are missing.

        :raises DataDirUnusable: When one can't be made, or is another broker's.
        """
        made = self.log_dirs[broker_id] = self.data_dir.log_dirs(
            broker_id,
            count,
            now_ms=self._scheduler.wall_ms,
            unique=self._unique,
            soon=self._scheduler.soon,
            shared=self._shared,
        )
        self._shared.call_later = self._call_later
        self._shared.in_later_turn = self._scheduler.in_later_turn
        made.report_recoveries_to(partial(self._on_recovered, broker_id))
        return made

    def _call_later(self, delay_ms: int, callback: Callable[[], None]) -> None:
        self._scheduler.at(self._scheduler.now_ms() + delay_ms, callback)

    def start_checkpoints(self, broker: "Broker") -> None:
        """Start the timers that write a broker's checkpoints."""
        for log_dir in self.log_dirs[broker.broker_id].dirs:
            CheckpointTimers(broker, log_dir, self.data_dir).start()

    def restored_image(self, fresh: ClusterImage) -> ClusterImage:
        """The image to start with: the brokers of ``fresh``, the topics and configs on disk.

        :param fresh: The image of a new cluster.
        :raises DataDirUnusable: When a directory can't be read.
        """
        clean = True
        for log_dir in self.log_dirs.values():
            with data_dir_errors(log_dir.directory):
                log_dir.on_broker_start()
            clean = clean and log_dir.clean
        is_adopted = self.data_dir.is_adopted
        known, missing = self._load_state(fresh.cluster_id)
        ids = {topic.topic_id: name for name, topic in known.topics.items()}
        strays: list[str] = []
        if not is_adopted:
            for log_dir in self.log_dirs.values():
                with data_dir_errors(log_dir.directory):
                    strays += log_dir.rename_strays(ids, known.deleted)
        self.recovery_report = RecoveryReport(
            adopted=is_adopted,
            clean=clean,
            torn_bytes=self.data_dir.torn_bytes,
            strays=tuple(strays),
            missing=missing,
            dropped_configs=self._dropped_configs,
        )
        self._restored_state = known
        brokers = {
            broker_id: replace(broker, epoch=known.brokers.get(broker_id, 0) + 1)
            for broker_id, broker in fresh.brokers.items()
        }
        return replace(
            fresh,
            version=max(fresh.version, known.version),
            brokers=brokers,
            features={**fresh.features, **known.features},
            topics=dict(known.topics),
            names=ids,
            topic_configs={name: c for name, c in known.topic_configs.items() if c},
            broker_configs=dict(known.broker_configs),
            group_configs={name: c for name, c in known.group_configs.items() if c},
            client_metrics_configs={
                name: c for name, c in known.client_metrics_configs.items() if c
            },
        )

    def start(self, controller: Controller) -> None:
        """Go on from what is remembered, in leader epochs that no partition had, and keep it.

        :param controller: It has the remembered image, which no broker has heard of.
        :raises DataDirUnusable: When it can't be kept.
        """
        is_outdated = self._is_outdated(controller)
        next_producer_id = self._restored_state.next_producer_id
        controller.restart_partitions(
            partial(self._restart_partition, controller, is_outdated), next_producer_id
        )
        position = self.data_dir.position
        position.version = controller.image.version
        known = ControllerState.from_image(controller.image, position.starts, next_producer_id)
        registry = self.data_dir.create_metadata_log(known)
        registry.report_problem = self._report_problem
        controller.record_producer_ids = registry.append_producer_ids
        controller.publish_image()
        self._metadata_log = registry
        if self.data_dir.is_adopted or is_outdated:
            dirs = self.log_dirs.values()
            controller.skip_producer_ids(max(each.next_producer_id() for each in dirs))
        if self.data_dir.torn_bytes:
            self._report_problem(
                f"{self.data_dir.path / METADATA_LOG_FILE}: {self.data_dir.torn_bytes} bytes at "
                "its end were no whole line, and are cut"
            )
        for broker_id, log_dir in self.log_dirs.items():
            for problem in log_dir.problems:
                self._report_problem(problem, broker_id)
            log_dir.report_problems_to(partial(self._report_problem, broker_id=broker_id))

    def _restart_partition(
        self,
        controller: Controller,
        is_outdated: bool,
        topic: str,
        index: int,
        before: PartitionImage,
    ) -> PartitionImage:
        """Open the logs of a partition that are whole, elect a leader, and tell of the others."""
        image, config = controller.image.topics[topic], controller.topic_settings(topic).log
        states = {
            broker_id: self.log_dirs[broker_id].examine(image, index, config)
            for broker_id in before.replicas
            if broker_id in self.log_dirs
        }
        restarted = restart_partition(
            before,
            controller.election_rules(topic),
            states,
            is_outdated=is_outdated,
            accept_loss=self.data_dir.position.accepts_loss,
        )
        for broker_id, repair in restarted.repairs.items():
            self.log_dirs[broker_id].decide(image, index, repair, restarted.end_at_least)
        self._report_damage(topic, index, restarted, states)
        return restarted.image

    def append_changes(
        self, before: ClusterImage, after: ClusterImage, changed: frozenset[str]
    ) -> None:
        """Append what is different in a new image, before any broker applies it."""
        if self._metadata_log is not None:
            self.data_dir.position.version = after.version
            self._metadata_log.append_changes(before, after, changed)

    def _is_outdated(self, controller: Controller) -> bool:
        """Whether the controller's metadata are older than what the brokers have last seen."""
        position, path = self.data_dir.position, self.data_dir.path / METADATA_LOG_FILE
        seen = [log_dir.metadata_seen for log_dir in all_dirs(self.log_dirs)]
        version = max((each.version for each in seen), default=0)
        if self.data_dir.controller_state is None or version <= self._restored_state.version:
            return False
        position.starts = max(position.starts, *(each.starts + 1 for each in seen))
        self._report_problem(
            f"{path} is older than the logs: it ends with version "
            f"{self._restored_state.version} of the metadata, and the brokers have seen version "
            f"{version}; topics, configs and ISRs are as they were then"
        )
        # The ids that were drawn since must not be drawn again.
        self._rng.seed(f"{self._rng.random()} after {position.starts} and {version}")
        controller.load_image(replace(controller.image, version=version))
        return True

    def _on_recovered(self, broker_id: int, key: Key, report: LogRecoveryReport, end: int) -> None:
        if report.cut:
            self._events.emit(
                Kind.LOG_RECOVERED,
                topic=key[0],
                partition=key[1],
                broker=broker_id,
                offset=end,
                cut=[cut._asdict() for cut in report.cut],
            )

    def _report_damage(
        self,
        topic: str,
        index: int,
        restarted: RestartedPartition,
        states: Mapping[int, ReplicaState],
    ) -> None:
        """Tell which offsets a replica misses, before a client can read there."""
        for broker_id, repair in restarted.repairs.items():
            damage = states[broker_id].damage
            if damage is None:
                continue
            self._events.emit(
                Kind.RECORDS_MISSING,
                topic=topic,
                partition=index,
                broker=broker_id,
                offsets=[[each.start, each.end - 1] for each in damage.missing],
                reason=damage.why,
                outcome=_outcome(repair, damage, states.get(restarted.image.leader)),
            )

    def close(self, brokers: Iterable["Broker"]) -> None:
        """Stop the brokers, write every checkpoint, and release the directory."""
        for broker in brokers:
            if broker.running:
                broker.stop(crash=False)
        self.data_dir.close()

    def _load_state(self, cluster_id: str) -> tuple[ControllerState, tuple[str, ...]]:
        data_dir = self.data_dir
        if data_dir.controller_state is not None:
            return data_dir.controller_state, ()
        if data_dir.kafka_broker_id is None:
            return ControllerState(cluster_id=cluster_id), ()
        known, missing = adopt_kafka_log_dir(
            self.log_dirs[data_dir.kafka_broker_id].dirs[0],
            data_dir.kafka_broker_id,
            cluster_id,
            self._unique,
        )
        configs, self._dropped_configs = data_dir.kafka_topic_configs()
        known.topic_configs = {
            name: configs.get(name) or (dict(_INTERNAL) if name in INTERNAL_TOPICS else {})
            for name in known.topics
        }
        return known, missing

    def _unique(self) -> UUID:
        return UUID(bytes=self._rng.randbytes(16))

    def _report_problem(self, error: object, broker_id: int | None = None) -> None:
        self._events.emit(Kind.STORAGE_FAILED, broker=broker_id, error=str(error))
