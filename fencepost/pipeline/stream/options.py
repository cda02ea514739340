"""What a stream is to do, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class StartingOffsets(StrEnum):
    """Where a query begins that has no checkpoint yet; later it goes on from there."""

    EARLIEST = "earliest"
    LATEST = "latest"


class OnDataLoss(StrEnum):
    """What the connector does when offsets that it counted on are not there (failOnDataLoss)."""

    FAIL = "fail"
    GO_ON = "go-on"


class Trigger(StrEnum):
    """When batches are made."""

    MICRO_BATCHES = "micro-batches"
    """One after the other, until the query is stopped."""
    AVAILABLE_NOW = "available-now"
    """Batches up to the end offsets at the start; then the query ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The topics that are read."""

    bootstrap: str
    """``host:port,...``, of the topic that is written as well."""
    topics: tuple[str, ...]
    start: StartingOffsets = StartingOffsets.EARLIEST
    on_data_loss: OnDataLoss = OnDataLoss.FAIL
    max_offsets: int | None = None
    """Of all partitions together, that a batch may have; None for no limit."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Of the connector, by its own names; the fields above take precedence. Those that begin with
    ``kafka.`` are configs of its clients, also of those that write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerOptions:
    """When batches are made, and where it is written down which of them are done."""

    checkpoint: str
    """A folder, or a URL that every executor can write to."""
    trigger: Trigger = Trigger.MICRO_BATCHES
    interval_s: float = 0.0
    """From the start of a batch to that of the next, at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountOptions:
    """What is counted: records by their keys, of all time or in windows of it."""

    window_s: float | None = None
    """Windows follow one another without gaps; None for counts that only grow."""
    late_s: float = 0.0
    """How much older than the newest a record may be and still count in its window."""
