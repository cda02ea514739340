"""What a broker remembers of the clients that ask where to push their metrics (KIP-714).

Nothing is subscribed to. Clients are bounded in how often they ask and push all the same, and a
push under another subscription than the one that was answered is refused, so that a client's
telemetry behaves here as it does at a real broker without subscriptions.
"""

from typing import Final
from uuid import UUID

from fencepost.protocol.byte_utils import crc32c
from fencepost.protocol.compression import Codec
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.push_telemetry import PushTelemetryRequest

PUSH_INTERVAL_MS: Final = 300_000
"""Kafka's default; a subscription could ask for another."""
ACCEPTED_COMPRESSION: Final[tuple[int, ...]] = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)
"""In the order in which clients should prefer them."""
_MAX_INSTANCES: Final = 16_384
"""Client instances that a broker keeps; those unused for longest make room."""
_AT_ONCE: Final = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
"""A client that was refused so has to ask for its subscription again."""


class ClientMetricsInstance:
    """One client, by the instance id that it goes by."""

    __slots__ = ("_asked_ms", "_error", "_pushed_ms", "_terminating", "subscription_id")

    def __init__(self, instance_id: UUID) -> None:
        checksum = crc32c(instance_id.bytes)
        self.subscription_id = checksum - (1 << 32) if checksum >> 31 else checksum
        """The same for a client whenever it asks: nothing that it stands for ever changes."""
        self._asked_ms: int | None = None
        self._pushed_ms: int | None = None
        self._error = ErrorCode.NONE
        self._terminating = False

    def may_get_subscription(self, now_ms: int) -> bool:
        """Whether to answer a request for the subscription, which is then noted."""
        times = [t for t in (self._asked_ms, self._pushed_ms) if t is not None]
        early = bool(times) and now_ms - max(times) < PUSH_INTERVAL_MS
        if early and self._error not in _AT_ONCE:
            return False
        if not early:
            self._asked_ms = now_ms
        self._error = ErrorCode.NONE
        return True

    def record_push(
        self, request: PushTelemetryRequest, *, now_ms: int, max_bytes: int
    ) -> ErrorCode:
        """Note a push, and say what is wrong with it."""
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
        """The first push behind an answered request is, and then one in each interval."""
        if self._pushed_ms is None:
            return True
        if self._asked_ms is not None and self._asked_ms > self._pushed_ms:
            return True
        return now_ms - self._pushed_ms >= PUSH_INTERVAL_MS


class ClientMetricsManager:
    """The client instances that one broker knows, those unused for longest first."""

    def __init__(self) -> None:
        self._instances: dict[UUID, ClientMetricsInstance] = {}

    def instance(self, instance_id: UUID) -> ClientMetricsInstance:
        """A client by its instance id; one that is not known is new."""
        instance = self._instances.pop(instance_id, None) or ClientMetricsInstance(instance_id)
        self._instances[instance_id] = instance
        if len(self._instances) > _MAX_INSTANCES:
            del self._instances[next(iter(self._instances))]
        return instance

    def clear(self) -> None:
        """Forget all."""
        self._instances.clear()
