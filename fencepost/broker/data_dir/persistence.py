"""A cluster that is kept in a data directory: how it is restored, and what is written when.

A broker writes its checkpoints as often as Kafka does.

A restored cluster begins every partition in a leader epoch that it never had, under the leader that
it had: clients and logs can tell the records of the earlier process from new ones (KIP-101,
KIP-320), and records that only the leader had are not lost.
"""

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import UUID

from fencepost.broker.controller.controller import Controller
from fencepost.broker.controller.elections import (
    ElectionRules,
    ElectionType,
    change_partition,
    elect_leader,
)
from fencepost.broker.core.events import Events, Kind
from fencepost.broker.core.scheduler import Scheduler
from fencepost.broker.data_dir.directory import DataDir, RecoveryReport, adopt_kafka_log_dir
from fencepost.broker.data_dir.log_dir import LogDir
from fencepost.broker.data_dir.metadata_log import ControllerState, MetadataLog
from fencepost.broker.data_dir.offset_checkpoints import Key
from fencepost.broker.metadata.image import INTERNAL_TOPICS, ClusterImage, PartitionImage
from fencepost.storage.files.file_system import StorageFailure
from fencepost.storage.files.process_limits import ProcessLimits

if TYPE_CHECKING:
    from fencepost.broker.node.broker import Broker


NewestEpochs = Mapping[int, int]
"""The newest leader epoch that each broker's log of a partition knows, by broker id."""


def restart_partition(
    before: PartitionImage, rules: ElectionRules, newest: NewestEpochs
) -> PartitionImage:
    """A partition in the process that comes after.

    :param rules: As all brokers are online.
    :param newest: Where a log knows of a later epoch than ``before``, the controller's knowledge
        did not outlive the machine: then the broker with that log leads, alone.
    """
    latest = max(newest.values(), default=-1)
    if latest > before.leader_epoch:
        has_it = [b for b in before.replicas if newest.get(b) == latest]
        leader = before.leader if before.leader in has_it else has_it[0]
        after = elect_leader(before, leader, rules)
        if before.leader not in has_it:
            after = replace(after, isr=(leader,), elr=())
    else:
        election = ElectionType.UNCLEAN if rules.unclean else ElectionType.ANY
        after = change_partition(before, rules, election=election)
    return replace(
        after,
        leader_epoch=max(before.leader_epoch, latest) + 1,
        partition_epoch=before.partition_epoch + 1,
    )


def newest_epochs_by_partition(
    newest: Iterable[tuple[int, Mapping[tuple[str, int], int]]],
) -> Callable[[str, int], NewestEpochs]:
    """The newest epochs of logs, sorted by partition.

    :param newest: Broker ids, each with the newest epoch of its logs by topic and index.
    """
    found: dict[tuple[str, int], dict[int, int]] = {}
    for broker_id, epochs in newest:
        for key, epoch in epochs.items():
            found.setdefault(key, {})[broker_id] = epoch
    return lambda topic, index: found.get((topic, index), {})


_NEVER_MS: Final = 1 << 62
"""What is due later is never due."""


class CheckpointTimers:
    """The timers of one broker; each interval is read from the configs when the timer is set."""

    def __init__(self, broker: "Broker", log_dir: LogDir, data_dir: DataDir) -> None:
        self._broker = broker
        self._log_dir = log_dir
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
            self._log_dir.write_log_starts,
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
        self._log_dir.write_high_watermarks(self._broker.replicas)
        if self._data_dir.metadata_log is not None:
            self._data_dir.metadata_log.write_pending()

    def _recovery_points(self) -> None:
        """Where nothing else is flushed, closed segments are, and need not be recovered."""
        self._log_dir.write_recovery_points()
        self._log_dir.sync_closed_segments(self._fail)

    def _flush(self) -> None:
        for key, failure in self._log_dir.flush_overdue(self._broker.scheduler.wall_ms()):
            self._fail(key, failure)

    def _fail(self, key: Key, failure: StorageFailure) -> None:
        replica = self._broker.replicas.get(key)
        if replica is not None:
            self._broker.mark_offline(replica, failure)


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
        self.log_dirs: dict[int, LogDir] = {}
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

    def log_dir(self, broker_id: int) -> LogDir:
        """A broker's log directory, made if it is missing.

        :raises DataDirUnusable: When it can't be made, or is another broker's.
        """
        made = self.log_dirs[broker_id] = self.data_dir.log_dir(
            broker_id,
            now_ms=self._scheduler.wall_ms,
            unique=self._unique,
            soon=self._scheduler.soon,
            shared=self._shared,
        )
        return made

    def start_checkpoints(self, broker: "Broker") -> None:
        """Start the timers that write a broker's checkpoints."""
        CheckpointTimers(broker, self.log_dirs[broker.broker_id], self.data_dir).start()

    def restored_image(self, fresh: ClusterImage) -> ClusterImage:
        """The image to start with: the brokers of ``fresh``, the topics and configs on disk.

        :param fresh: The image of a new cluster.
        """
        clean = True
        for log_dir in self.log_dirs.values():
            log_dir.on_broker_start()
            clean = clean and (log_dir.clean or not log_dir.log_count)
        is_adopted = self.data_dir.is_adopted
        known, missing = self._load_state(fresh.cluster_id)
        ids = {topic.topic_id: name for name, topic in known.topics.items()}
        strays: list[str] = []
        if not is_adopted:
            for log_dir in self.log_dirs.values():
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
        )

    def start(self, controller: Controller) -> None:
        """Go on from what is remembered, in leader epochs that no partition had, and keep it.

        :param controller: It has the remembered image, which no broker has heard of.
        :raises DataDirUnusable: When it can't be kept.
        """
        newest = newest_epochs_by_partition(
            (broker_id, log_dir.newest_epochs()) for broker_id, log_dir in self.log_dirs.items()
        )
        controller.restart_partitions(
            lambda topic, index, before: restart_partition(
                before, controller.election_rules(topic), newest(topic, index)
            ),
            self._restored_state.next_producer_id,
        )
        known = ControllerState.from_image(
            controller.image, self._restored_state.starts + 1, self._restored_state.next_producer_id
        )
        registry = self.data_dir.create_metadata_log(known)
        registry.report_problem = self._report_problem
        controller.record_producer_ids = registry.append_producer_ids
        controller.publish_image()
        self._metadata_log = registry
        if self.data_dir.is_adopted:
            dirs = self.log_dirs.values()
            controller.skip_producer_ids(max(each.next_producer_id() for each in dirs))
        for broker_id, log_dir in self.log_dirs.items():
            log_dir.report_problems_to(partial(self._report_problem, broker_id=broker_id))

    def append_changes(
        self, before: ClusterImage, after: ClusterImage, changed: frozenset[str]
    ) -> None:
        """Append what is different in a new image, before any broker applies it."""
        if self._metadata_log is not None:
            self._metadata_log.append_changes(before, after, changed)

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
            self.log_dirs[data_dir.kafka_broker_id],
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
