"""Counters of requests and events, read when the metrics are requested.

They only rise while the process lives; a reset of the cluster does not change them.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field

from fencepost.broker.core.events import Event, Kind
from fencepost.protocol.apis import Api

BOUNDS_US: Final = (
    *(50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000),
    *(1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000),
)
"""Upper bounds of the buckets of elapsed times, in microseconds; one more is for the rest."""

_COUNTED_BY_DETAILS: Final = frozenset((Kind.ISR_CHANGED, Kind.FAULT_HIT, Kind.PUBLISH_REFUSED))


class ApiMetrics(Struct, kw_only=True):
    """The requests of one API to one broker."""

    broker_id: int
    """The broker that handled the requests."""
    api: Api
    bytes_in: int = 0
    """Of requests, without their size fields."""
    bytes_out: int = 0
    """Of responses, with their size fields."""
    elapsed_us: int = 0
    """The sum of all answered requests."""
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_US) + 1))
    """Answered requests by bucket."""
    unanswered: int = 0
    errors: Counter[int] = field(default_factory=Counter)
    """How often each error code was in a response."""

    @property
    def requests(self) -> int:
        """The number of requests that are done."""
        return sum(self.buckets) + self.unanswered

    def count(
        self, elapsed_us: int | None, bytes_in: int, bytes_out: int, errors: tuple[int, ...]
    ) -> None:
        """Count a request that is done.

        :param elapsed_us: None for an abandoned request.
        """
        self.bytes_in += bytes_in
        self.bytes_out += bytes_out
        if elapsed_us is None:
            self.unanswered += 1
        else:
            self.elapsed_us += elapsed_us
            self.buckets[bisect_left(BOUNDS_US, elapsed_us)] += 1
        if errors:
            self.errors.update(errors)


class RequestMetrics:
    """Counts requests for each broker and API."""

    __slots__ = ("_by_api",)

    def __init__(self) -> None:
        self._by_api: dict[tuple[int, int], ApiMetrics] = {}

    def __iter__(self) -> Iterator[ApiMetrics]:
        return iter(tuple(self._by_api.values()))

    def of(self, broker_id: int, api: Api) -> ApiMetrics:
        """The metrics of one API and broker."""
        metrics = self._by_api.get((broker_id, api.key))
        if metrics is None:
            metrics = self._by_api[broker_id, api.key] = ApiMetrics(broker_id=broker_id, api=api)
        return metrics


class EventMetrics:
    """Counts the cluster's events."""

    __slots__ = ("events", "fault_hits", "isr", "publishes_refused")

    def __init__(self) -> None:
        self.events: Counter[Kind] = Counter()
        self.isr: Counter[str] = Counter()
        """By kind of change: ``expand``, ``shrink``, or ``swap`` (other members, same number)."""
        self.fault_hits: Counter[tuple[str, str]] = Counter()
        """By API and action."""
        self.publishes_refused: Counter[str] = Counter()
        """Produce requests refused for their expected offsets, by topic."""

    def record(self, event: Event) -> None:
        """Count an event."""
        self.events[event.kind] += 1
        if event.kind in _COUNTED_BY_DETAILS:
            self._count_details(event)

    def _count_details(self, event: Event) -> None:
        if event.kind is Kind.ISR_CHANGED:
            self.isr[_change_of_isr(event)] += 1
        elif event.kind is Kind.FAULT_HIT:
            api, action = event.details["api"], event.details["action"]
            assert isinstance(action, dict)
            self.fault_hits[str(api), next(iter(action))] += 1
        elif event.kind is Kind.PUBLISH_REFUSED:
            assert event.topic is not None
            self.publishes_refused[event.topic] += 1


def _change_of_isr(event: Event) -> str:
    now, before = event.details["isr"], event.details["previous_isr"]
    assert isinstance(now, tuple)
    assert isinstance(before, tuple)
    if len(now) == len(before):
        return "swap"
    return "expand" if len(now) > len(before) else "shrink"
