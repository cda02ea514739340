"""The client instances of a broker that use telemetry (KIP-714).

There are no subscriptions. Requests are throttled and the subscription id of a push is checked all
the same, so that telemetry clients behave as they do at an Apache Kafka broker without
subscriptions.
"""

from typing import Final
from uuid import UUID

from fencepost.protocol.byte_utils import crc32c
from fencepost.protocol.compression import Codec
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.push_telemetry import PushTelemetryRequest

PUSH_INTERVAL_MS: Final = 300_000
"""Kafka's default; a subscription could set another."""
ACCEPTED_COMPRESSION: Final[tuple[int, ...]] = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)
"""In the order of preference."""
MAX_INSTANCES: Final = 16_384
"""Client instances that a broker keeps; the least recently used is evicted."""
_RETRIABLE_AT_ONCE: Final = (
    ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
)
"""After these errors a client has to request its subscription again."""


class ClientMetricsInstance:
    """One client instance."""

    __slots__ = ("_error", "_pushed_ms", "_subscription_ms", "_terminating", "subscription_id")

    def __init__(self, instance_id: UUID) -> None:
        checksum = crc32c(instance_id.bytes)
        self.subscription_id = checksum - (1 << 32) if checksum >> 31 else checksum
        """Constant for a client instance, because subscriptions never change."""
        self._subscription_ms: int | None = None
        self._pushed_ms: int | None = None
        self._error = ErrorCode.NONE
        self._terminating = False

    def may_get_subscription(self, now_ms: int) -> bool:
        """Whether to answer a request for the subscription; the request is recorded if so."""
        times = [t for t in (self._subscription_ms, self._pushed_ms) if t is not None]
        early = bool(times) and now_ms - max(times) < PUSH_INTERVAL_MS
        if early and self._error not in _RETRIABLE_AT_ONCE:
            return False
        if not early:
            self._subscription_ms = now_ms
        self._error = ErrorCode.NONE
        return True

    def record_push(
        self, request: PushTelemetryRequest, *, now_ms: int, max_bytes: int
    ) -> ErrorCode:
        """Record a push; returns its error."""
        if self._terminating:
            return ErrorCode.INVALID_REQUEST
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
        return now_ms - self._pushed_ms >= PUSH_INTERVAL_MS


class ClientMetricsManager:
    """The client instances of one broker, the least recently used first."""

    def __init__(self) -> None:
        self._instances: dict[UUID, ClientMetricsInstance] = {}

    def instance(self, instance_id: UUID) -> ClientMetricsInstance:
        """A client instance by its id; created if unknown."""
        instance = self._instances.pop(instance_id, None) or ClientMetricsInstance(instance_id)
        self._instances[instance_id] = instance
        if len(self._instances) > MAX_INSTANCES:
            del self._instances[next(iter(self._instances))]
        return instance

    def clear(self) -> None:
        """Drop all client instances."""
        self._instances.clear()
