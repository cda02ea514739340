"""What holds on one broker: its own settings and each topic's, parsed, as the broker reads them.

`BrokerConfigs` lives as long as its broker and follows its view. Texts are parsed when they change,
not when they are asked for: produce and fetch pay an attribute or a dict lookup.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from fencepost.broker.configs.config_def import Value
from fencepost.broker.configs.config_layers import NO_CONFIGS, ConfigLayers, TypedConfigs
from fencepost.broker.configs.fencepost_configs import ListOffsetsGate, has_leader_epochs
from fencepost.broker.metadata.image import ClusterImage
from fencepost.storage.log.config import (
    ExpectedOffsetsScope,
    ExpectedOffsetsSource,
    LogConfig,
    TimestampType,
)

_CHECKS: Final = "check.expected.offsets"
_MAX_CACHED_SETTINGS: Final = 1024
"""Different sets of topic configs that are kept parsed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """A topic's configs on one broker, as the broker and its logs read them."""

    log: LogConfig
    min_insync_replicas: int
    list_offsets_gate: ListOffsetsGate
    """What holds (KIP-207): off where leaders are elected uncleanly, whatever the config says."""
    unclean_leader_election_enable: bool


class BrokerConfigs:
    """One broker's configs, by Kafka's names with underscores; times are ms, sizes bytes.

    Configs that are only defaults of topic configs are part of `topic` instead.

    :param static: What the broker was started with: `static_configs`.
    :param log_template: A log's options that are not configs of Kafka's.
    :param apache: Whether Apache Kafka's code counts where a KIP's text says otherwise: then the
        KIP-207 gate stands where leaders are elected uncleanly too.
    """

    auto_create_topics_enable: bool
    broker_rack: str | None
    broker_session_timeout_ms: int
    connections_max_idle_ms: int
    default_replication_factor: int
    delete_topic_enable: bool
    fetch_max_bytes: int
    follower_fetch_last_tiered_offset_enable: bool
    group_initial_rebalance_delay_ms: int
    group_max_session_timeout_ms: int
    group_max_size: int
    group_min_session_timeout_ms: int
    log_cleaner_backoff_ms: int
    log_cleaner_enable: bool
    log_dir: str
    log_flush_offset_checkpoint_interval_ms: int
    log_flush_scheduler_interval_ms: int
    log_flush_start_offset_checkpoint_interval_ms: int
    log_retention_check_interval_ms: int
    max_connections: int
    max_connections_per_ip: int
    max_incremental_fetch_session_cache_slots: int
    max_request_partition_size_limit: int
    num_partitions: int
    offset_metadata_max_bytes: int
    offsets_commit_timeout_ms: int
    offsets_retention_check_interval_ms: int
    offsets_retention_minutes: int
    offsets_topic_num_partitions: int
    offsets_topic_replication_factor: int
    offsets_topic_segment_bytes: int
    producer_id_expiration_ms: int
    remote_fetch_max_wait_ms: int
    remote_list_offsets_request_timeout_ms: int
    remote_log_index_file_cache_total_size_bytes: int
    remote_log_manager_task_interval_ms: int
    remote_log_storage_system_enable: bool
    replica_fetch_backoff_ms: int
    replica_fetch_max_bytes: int
    replica_fetch_response_max_bytes: int
    replica_high_watermark_checkpoint_interval_ms: int
    replica_lag_time_max_ms: int
    replica_selector_class: str | None
    socket_listen_backlog_size: int
    socket_request_max_bytes: int
    telemetry_max_bytes: int

    def __init__(
        self,
        broker_id: int,
        static: Mapping[str, str] = NO_CONFIGS,
        *,
        log_template: LogConfig | None = None,
        apache: bool = False,
    ) -> None:
        self.layers = ConfigLayers(static=static)
        self._broker_id = broker_id
        self._static = static
        self._log_template = log_template or LogConfig()
        self.apache = apache
        self._seen: Mapping[int | None, Mapping[str, str]] = {}
        self._topic_configs: Mapping[str, Mapping[str, str]] = {}
        self._topics: dict[tuple[tuple[str, str], ...], TopicSettings] = {}
        self._by_name: dict[str, TopicSettings] = {}
        self._may_check_offsets: bool | None = None
        self._read()

    def update(self, image: ClusterImage) -> None:
        """Follow the broker's view: its dynamic configs are now those of this image."""
        if image.topic_configs is not self._topic_configs:
            self._topic_configs = image.topic_configs
            self._by_name.clear()
            self._may_check_offsets = None
        if image.broker_configs is self._seen:
            return
        self._seen = image.broker_configs
        cluster_default = image.broker_configs.get(None, NO_CONFIGS)
        own = image.broker_configs.get(self._broker_id, NO_CONFIGS)
        if (cluster_default, own) != (self.layers.cluster_default, self.layers.own):
            self.layers = ConfigLayers(
                static=self._static, cluster_default=cluster_default, own=own
            )
            self._read()

    def layers_of(self, broker_id: int) -> ConfigLayers:
        """The configs of a broker of the same cluster, which has the same static ones."""
        own = self._seen.get(broker_id, NO_CONFIGS)
        if own == self.layers.own:
            return self.layers
        return ConfigLayers(
            static=self._static, cluster_default=self.layers.cluster_default, own=own
        )

    def topic(self, name: str) -> TopicSettings:
        """What holds for a topic of the view; the broker's defaults for one that is not in it.

        Topics with the same configs share one object.
        """
        found = self._by_name.get(name)
        if found is None:
            configs = self._topic_configs.get(name, NO_CONFIGS)
            found = self._shared(configs)
            if configs:  # or whoever asks for topics that there are not would fill it
                self._by_name[name] = found
        return found

    def _shared(self, configs: Mapping[str, str]) -> TopicSettings:
        key = tuple(sorted(configs.items())) if configs else ()
        found = self._topics.get(key)
        if found is None:
            if len(self._topics) >= _MAX_CACHED_SETTINGS:
                self._topics.clear()
            found = self._topics[key] = self._topic_settings(configs)
        return found

    @property
    def may_check_expected_offsets(self) -> bool:
        """Whether any topic may check them: where none does, a produce is spared the question."""
        known = self._may_check_offsets
        if known is None:
            known = self._may_check_offsets = self._checks_offsets or any(
                _CHECKS in configs for configs in self._topic_configs.values()
            )
        return known

    def log_config(self, topic: str) -> LogConfig:
        """What the logs of a topic act on."""
        return self.topic(topic).log

    def min_insync_replicas(self, topic: str) -> int:
        """The in-sync replicas that an acks=all produce to a topic needs."""
        return self.topic(topic).min_insync_replicas

    @property
    def offsets_topic_configs(self) -> dict[str, str]:
        """The dynamic configs that ``__consumer_offsets`` is created with."""
        return {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(self.offsets_topic_segment_bytes),
        }

    def _read(self) -> None:
        self._topics.clear()
        self._by_name.clear()
        typed = TypedConfigs(self.layers.value)
        flag, number = typed.flag, typed.number
        self._checks_offsets = flag(_CHECKS)
        self._may_check_offsets = None
        self.auto_create_topics_enable = flag("auto.create.topics.enable")
        self.broker_rack = typed.optional_text("broker.rack")
        self.broker_session_timeout_ms = number("broker.session.timeout.ms")
        self.connections_max_idle_ms = number("connections.max.idle.ms")
        self.default_replication_factor = number("default.replication.factor")
        self.delete_topic_enable = flag("delete.topic.enable")
        self.fetch_max_bytes = number("fetch.max.bytes")
        self.follower_fetch_last_tiered_offset_enable = flag(
            "follower.fetch.last.tiered.offset.enable"
        )
        self.group_initial_rebalance_delay_ms = number("group.initial.rebalance.delay.ms")
        self.group_max_session_timeout_ms = number("group.max.session.timeout.ms")
        self.group_max_size = number("group.max.size")
        self.group_min_session_timeout_ms = number("group.min.session.timeout.ms")
        self.log_cleaner_backoff_ms = number("log.cleaner.backoff.ms")
        self.log_cleaner_enable = flag("log.cleaner.enable")
        self._read_files(typed)
        self.log_retention_check_interval_ms = number("log.retention.check.interval.ms")
        self.max_connections = number("max.connections")
        self.max_connections_per_ip = number("max.connections.per.ip")
        self.max_incremental_fetch_session_cache_slots = number(
            "max.incremental.fetch.session.cache.slots"
        )
        self.max_request_partition_size_limit = number("max.request.partition.size.limit")
        self.num_partitions = number("num.partitions")
        self.offset_metadata_max_bytes = number("offset.metadata.max.bytes")
        self.offsets_commit_timeout_ms = number("offsets.commit.timeout.ms")
        self.offsets_retention_check_interval_ms = number("offsets.retention.check.interval.ms")
        self.offsets_retention_minutes = number("offsets.retention.minutes")
        self.offsets_topic_num_partitions = number("offsets.topic.num.partitions")
        self.offsets_topic_replication_factor = number("offsets.topic.replication.factor")
        self.offsets_topic_segment_bytes = number("offsets.topic.segment.bytes")
        self.producer_id_expiration_ms = number("producer.id.expiration.ms")
        self._read_remote(typed)
        self._read_replication(typed)
        self.socket_listen_backlog_size = number("socket.listen.backlog.size")
        self.socket_request_max_bytes = number("socket.request.max.bytes")
        self.telemetry_max_bytes = number("telemetry.max.bytes")

    def _read_files(self, typed: TypedConfigs) -> None:
        number, on_disk = typed.number, self.layers.on_disk
        self.log_dir = typed.entries("log.dirs" if on_disk else "log.dir")[0]
        self.log_flush_offset_checkpoint_interval_ms = number(
            "log.flush.offset.checkpoint.interval.ms"
        )
        self.log_flush_scheduler_interval_ms = number("log.flush.scheduler.interval.ms")
        self.log_flush_start_offset_checkpoint_interval_ms = number(
            "log.flush.start.offset.checkpoint.interval.ms"
        )

    def _read_remote(self, typed: TypedConfigs) -> None:
        number = typed.number
        self.remote_fetch_max_wait_ms = number("remote.fetch.max.wait.ms")
        self.remote_list_offsets_request_timeout_ms = number(
            "remote.list.offsets.request.timeout.ms"
        )
        self.remote_log_index_file_cache_total_size_bytes = number(
            "remote.log.index.file.cache.total.size.bytes"
        )
        self.remote_log_manager_task_interval_ms = number("remote.log.manager.task.interval.ms")
        self.remote_log_storage_system_enable = self.layers.has_tier

    def _read_replication(self, typed: TypedConfigs) -> None:
        number = typed.number
        self.replica_fetch_backoff_ms = number("replica.fetch.backoff.ms")
        self.replica_fetch_max_bytes = number("replica.fetch.max.bytes")
        self.replica_fetch_response_max_bytes = number("replica.fetch.response.max.bytes")
        self.replica_high_watermark_checkpoint_interval_ms = number(
            "replica.high.watermark.checkpoint.interval.ms"
        )
        self.replica_lag_time_max_ms = number("replica.lag.time.max.ms")
        self.replica_selector_class = typed.optional_text("replica.selector.class")

    def _topic_settings(self, configs: Mapping[str, str]) -> TopicSettings:
        values = self.layers.topic_values(configs)
        template = replace(
            self._log_template, producer_id_expiration_ms=self.producer_id_expiration_ms
        )
        typed = TypedConfigs(values.__getitem__)
        unclean = typed.flag("unclean.leader.election.enable")
        gate = ListOffsetsGate(typed.text("list.offsets.gate"))
        if unclean and not self.apache:
            gate = ListOffsetsGate.OFF
        return TopicSettings(
            log=_log_config(values, template),
            min_insync_replicas=typed.number("min.insync.replicas"),
            list_offsets_gate=gate,
            unclean_leader_election_enable=unclean,
        )


def static_configs(
    given: Mapping[str, str],
    *,
    broker_id: int,
    host: str,
    port: int,
    advertised_host: str,
    rack: str | None = None,
    log_dir: str | None = None,
    sync: bool = False,
) -> dict[str, str]:
    """The static configs of a broker: those that were ``given``, and those that it has of itself.

    ``given`` has passed `broker.validate_static_configs`. A ``rack`` outdoes ``broker.rack``.
    ``log_dir`` is None where logs are kept in memory; with ``sync`` each append is forced to disk.
    """
    configs = {
        **given,
        "advertised.listeners": f"PLAINTEXT://{_in_uri(advertised_host)}:{port}",
        "broker.id": str(broker_id),
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listeners": f"PLAINTEXT://{_in_uri(host)}:{port}",
        "node.id": str(broker_id),
        "process.roles": "broker,controller",
    }
    if rack is not None:
        configs["broker.rack"] = rack
    if log_dir is not None:
        configs["log.dirs"] = log_dir
    if sync:
        configs["log.flush.interval.messages"] = "1"
    return configs


def _log_config(values: Mapping[str, Value], template: LogConfig) -> LogConfig:
    typed = TypedConfigs(values.__getitem__)
    number = typed.number
    internal = typed.optional_number("internal.segment.bytes")
    return replace(
        template,
        check_expected_offsets=typed.flag("check.expected.offsets"),
        check_expected_offsets_error_code=number("check.expected.offsets.error.code"),
        check_expected_offsets_scope=ExpectedOffsetsScope(
            typed.text("check.expected.offsets.scope")
        ),
        check_expected_offsets_source=ExpectedOffsetsSource(
            typed.text("check.expected.offsets.source")
        ),
        cleanup_policy=frozenset(typed.entries("cleanup.policy")),
        compression_gzip_level=number("compression.gzip.level"),
        compression_lz4_level=number("compression.lz4.level"),
        compression_type=typed.text("compression.type"),
        compression_zstd_level=number("compression.zstd.level"),
        delete_retention_ms=number("delete.retention.ms"),
        flush_messages=1 if template.flush_messages == 1 else number("flush.messages"),
        flush_ms=number("flush.ms"),
        index_interval_bytes=number("index.interval.bytes"),
        keeps_leader_epochs=has_leader_epochs(typed.text("message.format.version")),
        local_retention_bytes=number("local.retention.bytes"),
        local_retention_ms=number("local.retention.ms"),
        max_compaction_lag_ms=number("max.compaction.lag.ms"),
        max_message_bytes=number("max.message.bytes"),
        message_timestamp_after_max_ms=number("message.timestamp.after.max.ms"),
        message_timestamp_before_max_ms=number("message.timestamp.before.max.ms"),
        message_timestamp_type=TimestampType(typed.text("message.timestamp.type")),
        min_cleanable_dirty_ratio=typed.ratio("min.cleanable.dirty.ratio"),
        min_compaction_lag_ms=number("min.compaction.lag.ms"),
        remote_log_copy_disable=typed.flag("remote.log.copy.disable"),
        remote_log_delete_on_disable=typed.flag("remote.log.delete.on.disable"),
        remote_storage_enable=typed.flag("remote.storage.enable"),
        retention_bytes=number("retention.bytes"),
        retention_ms=number("retention.ms"),
        segment_bytes=number("segment.bytes") if internal is None else internal,
        segment_index_bytes=number("segment.index.bytes"),
        segment_ms=number("segment.ms"),
    )


def _in_uri(host: str) -> str:
    return f"[{host}]" if ":" in host else host
