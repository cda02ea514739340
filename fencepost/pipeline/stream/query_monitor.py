"""A streaming query, watched until it ends: its batches as they are done, and why it failed."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


MAX_SHOWN: Final = 8
"""Partitions that a line tells of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """The offsets of a partition that a batch goes over."""

    topic: str
    partition: int
    start: int | None
    """Inclusive; None where the partition is new to the query."""
    end: int
    """Exclusive."""

    @property
    def gone_back(self) -> bool:
        """Whether the log ended before what had been read: by KIP-207 it never does."""
        return self.start is not None and self.end < self.start

    def __str__(self) -> str:
        name = f"{self.topic}-{self.partition}"
        if self.gone_back:
            return f"{name} went back from {self.start} to {self.end}"
        return f"{name} to {self.end}" if self.start is None else f"{name} {self.start}..{self.end}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """A batch that is done."""

    number: int
    records: int
    ranges: tuple[OffsetRange, ...]
    """Those with offsets to go over, by topic and partition."""

    @property
    def gone_back(self) -> tuple[OffsetRange, ...]:
        """Where the end of the log was before what had been read."""
        return tuple(each for each in self.ranges if each.gone_back)

    @property
    def offsets(self) -> int:
        """How many there were to go over, as far as it is known where the partitions began.

        There are fewer records where some were deleted, compacted away, or never read.
        """
        return sum(max(0, each.end - each.start) for each in self.ranges if each.start is not None)

    def __str__(self) -> str:
        shown = sorted(self.ranges, key=lambda each: not each.gone_back)[:MAX_SHOWN]
        more = len(self.ranges) - len(shown)
        ranges = ", ".join(map(str, shown)) + (f" and {more} more" if more else "")
        noun = "record" if self.records == 1 else "records"
        of = f" at {self.offsets} offsets" if self.offsets > self.records else ""
        return f"batch {self.number}: {self.records} {noun}{of}, {ranges}"

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        partitions = [
            {"topic": each.topic, "partition": each.partition, "from": each.start, "to": each.end}
            for each in self.ranges
        ]
        return {"batch": self.number, "records": self.records, "partitions": partitions}


def read_batch(progress: Mapping[str, Any]) -> MicroBatch:
    """What Spark's progress of a batch says, of its one source.

    It has no ranges where nothing was to be read, which Spark tells now and then.
    """
    (source,) = progress["sources"]
    before, after = _offsets(source["startOffset"]), _offsets(source["endOffset"])
    ranges = (
        OffsetRange(topic=topic, partition=partition, start=before.get((topic, partition)), end=end)
        for (topic, partition), end in sorted(after.items())
    )
    return MicroBatch(
        number=int(progress["batchId"]),
        records=int(progress["numInputRows"]),
        ranges=tuple(each for each in ranges if each.end != (each.start or 0)),
    )


def new_batches(seen: Sequence[Mapping[str, Any]], after: int) -> list[MicroBatch]:
    """The batches with anything to read whose number is greater than ``after``."""
    batches = (read_batch(each) for each in seen)
    return [each for each in batches if each.number > after and each.ranges]


def _offsets(text: str | None) -> dict[tuple[str, int], int]:
    """By topic and partition; from ``{"orders": {"0": 10}}``, or nothing at all."""
    found = json.loads(text) if text else None
    return {
        (topic, int(partition)): int(offset)
        for topic, partitions in (found or {}).items()
        for partition, offset in partitions.items()
    }


_PLAN_MARK: Final = "=== Streaming Query ==="
"""What follows is for who debugs Spark."""
_TERMINATED: Final = re.compile(r"^\[STREAM_FAILED\].*? terminated with exception: ", re.DOTALL)
_REASON: Final = re.compile(
    r"\nReason: (.*?)\.?(?:\nThis could be|\nwith consumer group|\Z)", re.DOTALL
)
"""Of a KafkaIllegalStateException: what was lost, between advice and guesses."""
_PY4J_PREFIX: Final = re.compile(r"^An error occurred while calling \S+\n: ")
"""What pyspark puts before an exception of the JVM that it has no class for."""
_PACKAGE: Final = re.compile(r"^(?:[a-z]\w*\.)+(?=[A-Z])")


def explain_failure(message: str) -> str:
    """The cause of a failure, from the text of the exception."""
    text = _PY4J_PREFIX.sub("", message.partition(_PLAN_MARK)[0])
    text = _TERMINATED.sub("", text).strip()
    lost = _REASON.search(text)
    if lost is not None:
        return f"data loss: {' '.join(lost[1].split())}"
    first = text.partition("\n")[0]
    return _PACKAGE.sub("", first) or "Spark does not say why"


POLL_S: Final = 0.2
STOP_TIMEOUT_S: Final = 10.0
"""How long a batch may take to its end when the query is to be stopped."""


class StreamFailedError(Exception):
    """A query failed. The text is one line."""


def monitor_query(
    query: StreamingQuery,
    tell: Callable[[MicroBatch], None],
    stopped: Callable[[], bool],
    *,
    patience_s: float = STOP_TIMEOUT_S,
) -> None:
    """Wait until a query ends or is to be stopped, and tell of each batch when it is done.

    A batch under way may still be finished when the query is to be stopped. If that takes longer
    than ``patience_s`` it is broken off, and done again by who goes on from the checkpoint.

    :param stopped: Whether the query is to be stopped; asked a few times a second.
    :raises StreamFailedError: When the query failed.
    """
    teller = _BatchReporter(query, tell)
    while query.isActive and not stopped():
        teller.report_new_batches()
        time.sleep(POLL_S)
    if query.isActive:
        _await_batch(query, patience_s)
        query.stop()
    teller.report_new_batches()
    failure = query.exception()
    if failure is not None:
        raise StreamFailedError(explain_failure(str(failure)))


class _BatchReporter:
    """Tells of batches in their order, each once."""

    def __init__(self, query: StreamingQuery, tell: Callable[[MicroBatch], None]) -> None:
        self._query = query
        self._tell = tell
        self._told = -1
        self._seen: str | None = None

    def report_new_batches(self) -> None:
        last = self._query.lastProgress
        # All that Spark remembers takes hundreds of round trips to its JVM.
        if last is None or last["timestamp"] == self._seen:
            return
        self._seen = last["timestamp"]
        for batch in new_batches(self._query.recentProgress, self._told):
            self._tell(batch)
            self._told = batch.number


def _await_batch(query: StreamingQuery, patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    under_way = _last_batch_number(query)
    while (
        query.isActive
        and query.status["isDataAvailable"]
        and query.status["isTriggerActive"]
        and _last_batch_number(query) == under_way
        and time.monotonic() < deadline
    ):
        time.sleep(POLL_S / 10)


def _last_batch_number(query: StreamingQuery) -> int:
    last = query.lastProgress
    return -1 if last is None else int(last["batchId"])
