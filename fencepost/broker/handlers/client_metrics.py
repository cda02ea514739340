"""The client instances of a broker that use telemetry, and what each is asked for (KIP-714).

An instance is asked for the metrics of all subscriptions that it matches, at the shortest of their
intervals. Where subscriptions change, each instance starts again with the next request: with
another subscription id, and without having to wait. An instance is dropped with its connection, and
when nothing was heard of it for three intervals.
"""

from collections.abc import Collection, Mapping
from typing import Final
from uuid import UUID

from fencepost.broker.configs.client_metrics_configs import (
    ALL_METRICS,
    Subscription,
    parse_subscription,
)
from fencepost.broker.configs.effective_configs import BrokerConfigs
from fencepost.broker.core.context import Peer
from fencepost.broker.metadata.image import ClusterImage
from fencepost.protocol.byte_utils import crc32c, format_uuid
from fencepost.protocol.compression import Codec
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.push_telemetry import PushTelemetryRequest

PUSH_INTERVAL_MS: Final = 300_000
"""The longest, and that of an instance without a subscription."""
RECEIVES_NOTHING: Final = "org.apache.kafka.common.metrics.JmxReporter"
"""The metrics reporter of a Kafka that takes no telemetry."""
_MIN_LIFETIME_MS: Final = 60_000
_INTERVALS_OF_LIFE: Final = 3
ACCEPTED_COMPRESSION: Final[tuple[int, ...]] = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)
"""In the order of preference."""
MAX_INSTANCES: Final = 16_384
"""Client instances that a broker keeps; the least recently used is evicted."""
_RETRIABLE_AT_ONCE: Final = (
    ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
)
"""After these errors a client has to request its subscription again."""


def asks_for_telemetry(configs: BrokerConfigs, view: ClusterImage) -> bool:
    """Whether clients are told that there is telemetry.

    Apache Kafka asks for it where ``metric.reporters`` names a plugin that receives it. No class is
    loaded here: each other than the default counts as one. Unless Apache Kafka's code counts, a
    subscription is enough.
    """
    if any(name != RECEIVES_NOTHING for name in configs.metric_reporters):
        return True
    return bool(view.client_metrics_configs) and not configs.apache


class ClientMetricsInstance:
    """One client instance, with what it is asked for.

    :param subscriptions: All there are, whether it matches them or not.
    """

    __slots__ = (
        *("_error", "_pushed_ms", "_subscription_ms", "_terminating"),
        *("attributes", "metrics", "push_interval_ms", "seen_ms", "subscription_id"),
        "subscriptions",
    )

    def __init__(
        self,
        instance_id: UUID,
        attributes: Mapping[str, str | None],
        subscriptions: Collection[Subscription],
    ) -> None:
        mine = [each for each in subscriptions if each.matches(attributes)]
        metrics = frozenset[str]().union(*(each.metrics for each in mine))
        self.attributes = attributes
        self.subscriptions = subscriptions
        self.metrics = (ALL_METRICS,) if ALL_METRICS in metrics else tuple(sorted(metrics))
        """Prefixes of their names."""
        self.push_interval_ms = min([PUSH_INTERVAL_MS, *(each.interval_ms for each in mine)])
        self.subscription_id = _subscription_id(self.metrics, self.push_interval_ms, instance_id)
        self.seen_ms = 0
        """When it sent its last request."""
        self._subscription_ms: int | None = None
        self._pushed_ms: int | None = None
        self._error = ErrorCode.NONE
        self._terminating = False

    def may_get_subscription(self, now_ms: int) -> bool:
        """Whether to answer a request for the subscription; the request is recorded if so."""
        times = [t for t in (self._subscription_ms, self._pushed_ms) if t is not None]
        early = bool(times) and now_ms - max(times) < self.push_interval_ms
        if early and self._error not in _RETRIABLE_AT_ONCE:
            return False
        if not early:
            self._subscription_ms = now_ms
        self._error = ErrorCode.NONE
        return True

    def record_push(
        self, request: PushTelemetryRequest, *, now_ms: int, max_bytes: int
    ) -> ErrorCode:
        """Record a push; returns its error.

        The one after a terminating push is refused. As at a real broker it ends the termination.
        """
        if self._terminating:
            self._error = ErrorCode.INVALID_REQUEST
        else:
            self._error = self._check_push(request, now_ms, max_bytes)
        self._terminating = request.terminating
        return self._error

    def _check_push(self, request: PushTelemetryRequest, now_ms: int, max_bytes: int) -> ErrorCode:
        in_time = self._in_time(now_ms)
        if in_time:
            self._pushed_ms = now_ms
        elif not request.terminating:
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if request.subscription_id != self.subscription_id:
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if request.compression_type not in (Codec.NONE, *ACCEPTED_COMPRESSION):
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        if len(request.metrics) > max_bytes:
            return ErrorCode.TELEMETRY_TOO_LARGE
        return ErrorCode.NONE

    def _in_time(self, now_ms: int) -> bool:
        """Whether it is the first push after a subscription request, or the interval has passed."""
        if self._pushed_ms is None:
            return True
        if self._subscription_ms is not None and self._subscription_ms > self._pushed_ms:
            return True
        return now_ms - self._pushed_ms >= self.push_interval_ms


class ClientMetricsManager:
    """The client instances of one broker, the least recently used first."""

    def __init__(self) -> None:
        self._instances: dict[UUID, ClientMetricsInstance] = {}
        self._by_connection: dict[str, UUID] = {}
        """The instance that was new in a connection."""
        self._configs: Mapping[str, Mapping[str, str]] = {}
        self._subscriptions: tuple[Subscription, ...] = ()

    def instance(
        self,
        instance_id: UUID,
        *,
        configs: Mapping[str, Mapping[str, str]],
        client_id: str | None,
        peer: Peer,
        now_ms: int,
    ) -> ClientMetricsInstance:
        """A client instance by its id; created if unknown.

        :param configs: Those of all subscriptions, by name.
        """
        if configs is not self._configs:
            self._configs = configs
            self._subscriptions = tuple(map(parse_subscription, configs.values()))
        found = self._instances.pop(instance_id, None)
        if found is None or now_ms - found.seen_ms >= _lifetime_ms(found):
            attributes = _attributes(instance_id, client_id, peer)
            found = ClientMetricsInstance(instance_id, attributes, self._subscriptions)
            self._by_connection[peer.connection_id] = instance_id
        elif found.subscriptions is not self._subscriptions:
            found = ClientMetricsInstance(instance_id, found.attributes, self._subscriptions)
            self._by_connection[peer.connection_id] = instance_id
        found.seen_ms = now_ms
        self._instances[instance_id] = found
        if len(self._instances) > MAX_INSTANCES:
            del self._instances[next(iter(self._instances))]
        return found

    def on_disconnected(self, connection_id: str) -> None:
        """Drop the instance that was new in a connection which is closed now."""
        instance_id = self._by_connection.pop(connection_id, None)
        if instance_id is not None:
            self._instances.pop(instance_id, None)

    def clear(self) -> None:
        """Drop all client instances."""
        self._instances.clear()
        self._by_connection.clear()


def _lifetime_ms(instance: ClientMetricsInstance) -> int:
    return max(_MIN_LIFETIME_MS, _INTERVALS_OF_LIFE * instance.push_interval_ms)


def _attributes(instance_id: UUID, client_id: str | None, peer: Peer) -> Mapping[str, str | None]:
    """What the patterns of subscriptions look at, by name."""
    return {
        "client_instance_id": format_uuid(instance_id),
        "client_id": client_id,
        "client_software_name": peer.software_name,
        "client_software_version": peer.software_version,
        "client_source_address": peer.host,
        "client_source_port": None if peer.port is None else str(peer.port),
    }


def _subscription_id(metrics: Collection[str], interval_ms: int, instance_id: UUID) -> int:
    """As Apache Kafka computes it; it also hashes two metrics and more in an order of its own."""
    checksum = crc32c(f"[{', '.join(metrics)}]{interval_ms}".encode())
    halves = (instance_id.int >> 64) ^ instance_id.int & (1 << 64) - 1
    mixed = checksum ^ (halves >> 32) ^ halves & 0xFFFFFFFF
    return mixed - (1 << 32) if mixed >> 31 else mixed
