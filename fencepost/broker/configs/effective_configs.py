"""The configs of one broker as it reads them: its own and each topic's, parsed.

`BrokerConfigs` lives as long as its broker and follows its view. Texts are parsed when they change,
not when they are read: produce and fetch pay for an attribute or a dict lookup.

`BrokerConfigs`, `TopicSettings` and `LogConfig` declare the configs that the broker reads: the
attribute ``num_partitions: int`` has the value of ``num.partitions``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, StrEnum
from functools import cache
from typing import Any, Final, NamedTuple, get_origin

from msgspec import Struct
from msgspec.structs import replace

from fencepost.broker.configs.broker_configs import broker_configs
from fencepost.broker.configs.config_def import Effect, Value, has_leader_epochs
from fencepost.broker.configs.config_layers import NO_CONFIGS, ConfigLayers
from fencepost.broker.metadata.features import UnstableFeatures
from fencepost.broker.metadata.image import Address, ClusterImage
from fencepost.protocol.listener_text import PLAINTEXT, in_uri
from fencepost.storage.log.config import LogConfig, TopicLogConfig

_NO_EPOCH: Final = -1
_CHECKS: Final = "check.expected.offsets"
_UNSTABLE: Final = "unstable.feature.versions.enable"
_MAX_CACHED_SETTINGS: Final = 1024
"""Different sets of topic configs that are kept parsed."""


KIP_DEFAULTS: Final = {
    "auto.leader.rebalance.enable": "false",
    "log.segment.delete.delay.ms": "0",
}
"""Defaults that are not Kafka's: a leader that a test has moved stays, and files go at once."""
APACHE_DEFAULTS: Final = {"list.offsets.gate": "kafka"}
"""Defaults with ``conformance=apache``."""


class ListOffsetsGate(StrEnum):
    """Values of ``list.offsets.gate``."""

    KIP = "kip"
    """Every lookup."""
    KAFKA = "kafka"
    """Those that Apache Kafka refuses: latest, and by time where the answer is not committed."""
    OFF = "off"


class TopicSettings(Struct, frozen=True, kw_only=True):
    """A topic's configs on one broker, as the broker and its logs read them."""

    log: LogConfig
    min_insync_replicas: int
    list_offsets_gate: ListOffsetsGate
    """As it holds (KIP-207): off where leaders are elected uncleanly, whatever the config says."""
    unclean_leader_election_enable: bool
    leader_replication_throttled_replicas: frozenset[str]
    follower_replication_throttled_replicas: frozenset[str]


class BrokerConfigs:
    """One broker's configs, by Kafka's names with underscores; times are ms, sizes bytes.

    Configs that are only defaults of topic configs are part of `topic` instead.

    :param static: What the broker was started with: `static_configs`.
    :param log_template: A log's options that are not configs of Kafka's.
    :param apache: Whether Apache Kafka's code counts where a KIP's text says otherwise: then the
        KIP-207 gate applies where leaders are elected uncleanly too.
    :param strict: Whether a config without effect is refused.
    """

    add_partitions_to_txn_retry_backoff_max_ms: int
    add_partitions_to_txn_retry_backoff_ms: int
    alter_log_dirs_replication_quota_window_num: int
    alter_log_dirs_replication_quota_window_size_seconds: int
    auto_create_topics_enable: bool
    auto_leader_rebalance_enable: bool
    broker_rack: str | None
    broker_session_timeout_ms: int
    check_expected_offsets: bool
    connections_max_idle_ms: int
    cordoned_log_dirs: frozenset[str]
    default_replication_factor: int
    delete_topic_enable: bool
    fetch_max_bytes: int
    follower_fetch_last_tiered_offset_enable: bool
    follower_replication_throttled_rate: int
    group_initial_rebalance_delay_ms: int
    group_max_session_timeout_ms: int
    group_max_size: int
    group_min_session_timeout_ms: int
    leader_imbalance_check_interval_seconds: int
    leader_replication_throttled_rate: int
    log_cleaner_backoff_ms: int
    log_cleaner_enable: bool
    log_flush_offset_checkpoint_interval_ms: int
    log_flush_scheduler_interval_ms: int
    log_flush_start_offset_checkpoint_interval_ms: int
    log_retention_check_interval_ms: int
    log_segment_delete_delay_ms: int
    max_connection_creation_rate: int
    max_connections: int
    max_connections_per_ip: int
    max_connections_per_ip_overrides: str
    max_incremental_fetch_session_cache_slots: int
    max_request_partition_size_limit: int
    metric_reporters: frozenset[str]
    num_partitions: int
    offset_metadata_max_bytes: int
    offsets_commit_timeout_ms: int
    offsets_retention_check_interval_ms: int
    offsets_retention_minutes: int
    offsets_topic_num_partitions: int
    offsets_topic_replication_factor: int
    offsets_topic_segment_bytes: int
    producer_id_expiration_check_interval_ms: int
    producer_id_expiration_ms: int
    quota_window_num: int
    quota_window_size_seconds: int
    remote_fetch_max_wait_ms: int
    remote_list_offsets_request_timeout_ms: int
    remote_log_index_file_cache_total_size_bytes: int
    remote_log_manager_task_interval_ms: int
    remote_log_storage_system_enable: bool
    replica_alter_log_dirs_io_max_bytes_per_second: int
    replica_fetch_backoff_ms: int
    replica_fetch_max_bytes: int
    replica_fetch_response_max_bytes: int
    replica_high_watermark_checkpoint_interval_ms: int
    replica_lag_time_max_ms: int
    replica_selector_class: str | None
    replication_quota_window_num: int
    replication_quota_window_size_seconds: int
    request_timeout_ms: int
    socket_listen_backlog_size: int
    socket_request_max_bytes: int
    telemetry_max_bytes: int
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int
    transaction_max_timeout_ms: int
    transaction_partition_verification_enable: bool
    transaction_remove_expired_transaction_cleanup_interval_ms: int
    transaction_state_log_min_isr: int
    transaction_state_log_num_partitions: int
    transaction_state_log_replication_factor: int
    transaction_state_log_segment_bytes: int
    transactional_id_expiration_ms: int
    unstable_api_versions_enable: bool
    unstable_feature_versions_enable: bool

    def __init__(
        self,
        broker_id: int,
        static: Mapping[str, str] = NO_CONFIGS,
        *,
        log_template: LogConfig | None = None,
        apache: bool = False,
        strict: bool = False,
    ) -> None:
        defaults = APACHE_DEFAULTS if apache else KIP_DEFAULTS
        self.layers = ConfigLayers(static=static, defaults=defaults, strict=strict)
        self._broker_id = broker_id
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
            self.layers = self.layers.replaced(cluster_default=cluster_default, own=own)
            self._read()

    def layers_of(self, broker_id: int) -> ConfigLayers:
        """The configs of a broker of the same cluster, which has the same static ones."""
        own = self._seen.get(broker_id, NO_CONFIGS)
        if own == self.layers.own:
            return self.layers
        return self.layers.replaced(cluster_default=self.layers.cluster_default, own=own)

    def topic(self, name: str) -> TopicSettings:
        """The configs of a topic of the view; the broker's defaults for one that is not in it.

        Topics with the same configs share one object.
        """
        found = self._by_name.get(name)
        if found is None:
            configs = self._topic_configs.get(name, NO_CONFIGS)
            found = self._shared(configs)
            if configs:  # requests for unknown topics must not fill it
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
        """Whether any topic may check them: where none does, no produce request is checked."""
        may_check = self._may_check_offsets
        if may_check is None:
            may_check = self._may_check_offsets = self.check_expected_offsets or any(
                _CHECKS in configs for configs in self._topic_configs.values()
            )
        return may_check

    def log_config(self, topic: str) -> LogConfig:
        """What the logs of a topic act on."""
        return self.topic(topic).log

    def client_leader_epoch(self, topic: str, epoch: int) -> int:
        """The leader epoch that clients see: -1 in the old message format (KIP-320)."""
        return epoch if self.topic(topic).log.keeps_leader_epochs else _NO_EPOCH

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

    def transaction_topic_configs(self, replication_factor: int) -> dict[str, str]:
        """The dynamic configs that ``__transaction_state`` is created with.

        With fewer replicas than ``transaction.state.log.min.isr`` all have to be in sync, as the
        file that Kafka ships says for one broker.
        """
        return {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(min(self.transaction_state_log_min_isr, replication_factor)),
            "segment.bytes": str(self.transaction_state_log_segment_bytes),
            "unclean.leader.election.enable": "false",
        }

    def _read(self) -> None:
        self._topics.clear()
        self._by_name.clear()
        self._may_check_offsets = None
        vars(self).update(_default_attributes())
        given = [each for each in _BROKER_ATTRIBUTES if self.layers.has_text(each.config)]
        vars(self).update(_parsed(given, self.layers.value))
        directories = self.layers.value("log.dirs" if self.layers.on_disk else "log.dir")
        assert isinstance(directories, tuple)
        self.log_dirs: tuple[str, ...] = directories

    def _topic_settings(self, configs: Mapping[str, str]) -> TopicSettings:
        values = self.layers.topic_values(configs)
        settings = TopicSettings(
            log=self._log_config(values), **_parsed(_TOPIC_ATTRIBUTES, values.__getitem__)
        )
        if settings.unclean_leader_election_enable and not self.apache:
            return replace(settings, list_offsets_gate=ListOffsetsGate.OFF)
        return settings

    def _log_config(self, values: Mapping[str, Value]) -> LogConfig:
        template = self._log_template
        attributes = _parsed(_LOG_ATTRIBUTES, values.__getitem__)
        if values["internal.segment.bytes"] is not None:
            attributes["segment_bytes"] = values["internal.segment.bytes"]
        if template.flush_messages == 1:
            del attributes["flush_messages"]
        return replace(
            template,
            **attributes,
            keeps_leader_epochs=has_leader_epochs(str(values["message.format.version"])),
            producer_id_expiration_ms=self.producer_id_expiration_ms,
            transaction_partition_verification_enable=(
                self.transaction_partition_verification_enable
            ),
            directory_delete_delay_ms=self.log_segment_delete_delay_ms,
        )


class _Attribute(NamedTuple):
    """An attribute that has the value of a config."""

    name: str
    config: str
    convert: Callable[[Any], object] | None
    """What makes a parsed value one of the attribute's type, None where it is one already."""


def _attributes(types: Mapping[str, object]) -> tuple[_Attribute, ...]:
    """The configs behind attributes, whose types are given by name."""
    return tuple(
        _Attribute(name, name.replace("_", "."), _converter(type_)) for name, type_ in types.items()
    )


def _converter(type_: object) -> Callable[[Any], object] | None:
    if isinstance(type_, type) and issubclass(type_, Enum):
        return type_
    return frozenset if get_origin(type_) is frozenset else None


def _parsed(attributes: Iterable[_Attribute], value_of: Callable[[str], Value]) -> dict[str, Any]:
    """The values of attributes by name."""
    return {
        name: value_of(config) if convert is None else convert(value_of(config))
        for name, config, convert in attributes
    }


_BROKER_ATTRIBUTES: Final = _attributes(BrokerConfigs.__annotations__)
_TOPIC_ATTRIBUTES: Final = _attributes(
    {name: kind for name, kind in TopicSettings.__annotations__.items() if name != "log"}
)
_LOG_ATTRIBUTES: Final = _attributes(TopicLogConfig.__annotations__)


@cache
def _default_attributes() -> Mapping[str, Any]:
    """The attributes of a broker without any config: most brokers have few."""
    table = broker_configs()
    return _parsed(_BROKER_ATTRIBUTES, lambda name: table[name].default_value)


def settable_configs(given: Mapping[str, str]) -> dict[str, str]:
    """Those of some broker configs that fencepost does not give their values itself."""
    if not given:  # a start without configs does not read their table
        return {}
    table = broker_configs()
    return {
        name: text
        for name, text in given.items()
        if name not in table or table[name].effect is not Effect.FIXED
    }


def unstable_features(
    configs: Mapping[str, str],
    node_configs: Mapping[int, Mapping[str, str]],
    *,
    broker_ids: Iterable[int],
    controller_ids: Sequence[int],
) -> UnstableFeatures:
    """Which nodes support unstable levels of features, by their static configs.

    :param node_configs: Those of single nodes, by node id, which take precedence.
    :param controller_ids: The active controller's first; empty where a broker is the controller.
    """

    def is_enabled(node_id: int | None) -> bool:
        static = {**configs, **({} if node_id is None else node_configs.get(node_id, {}))}
        # A start without it does not read the table of the configs.
        return _UNSTABLE in static and ConfigLayers(static=static).value(_UNSTABLE) is True

    return UnstableFeatures(
        controller=is_enabled(controller_ids[0] if controller_ids else None),
        brokers={broker_id: is_enabled(broker_id) for broker_id in broker_ids},
    )


def static_configs(
    given: Mapping[str, str],
    *,
    broker_id: int,
    addresses: Sequence[Address],
    rack: str | None = None,
    sync: bool = False,
) -> dict[str, str]:
    """The static configs of a broker: those ``given``, and those of its addresses and id.

    ``given`` has passed `broker_configs.validate_static_configs` and `settable_configs`. A ``rack``
    has precedence over ``broker.rack``. With ``sync`` each append is forced to disk.

    :param addresses: One for each listener.
    """
    names = [each.listener for each in addresses]
    configs = {
        **given,
        "advertised.listeners": ",".join(map(_advertised_listener, addresses)),
        "broker.id": str(broker_id),
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": names[0],
        "listeners": ",".join(map(_listener, addresses)),
        "node.id": str(broker_id),
        "process.roles": "broker,controller",
    }
    if names != [PLAINTEXT]:
        protocols = [f"{name}:{PLAINTEXT}" for name in names]
        configs["listener.security.protocol.map"] = ",".join(protocols)
    if rack is not None:
        configs["broker.rack"] = rack
    if sync:
        configs["log.flush.interval.messages"] = "1"
    return configs


def controller_configs(
    given: Mapping[str, str],
    *,
    node_id: int,
    is_broker: bool,
    address: Address,
) -> dict[str, str]:
    """The static configs of the controller that listens on an address: as `static_configs`."""
    return {
        **given,
        "advertised.listeners": _advertised_listener(address),
        "broker.id": str(node_id),
        "controller.listener.names": "CONTROLLER",
        "listeners": _listener(address),
        "node.id": str(node_id),
        "process.roles": "broker,controller" if is_broker else "controller",
    }


def _listener(address: Address) -> str:
    return f"{address.listener}://{in_uri(address.host)}:{address.port}"


def _advertised_listener(address: Address) -> str:
    advertised = address.advertised
    return f"{address.listener}://{in_uri(advertised.host)}:{advertised.port}"
