"""Verbs, events and requests in one order of time, as few lines as tell all of it.

A request stands where it was received. Repetitions share a line: of answered requests within a run
of such, and of whole groups of lines that follow each other, such as a fault's hit, the request
that fails, and its next attempt. Telemetry and what happens to internal topics are left out unless
they matter.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from fencepost.broker.core.events import Kind
from fencepost.broker.metadata.image import INTERNAL_TOPICS
from fencepost.verbs.answers.cluster import EventState, ExchangeState, TimelineLine
from fencepost.verbs.exchange_text import ExchangeText, exchange_line, exchange_text

MAX_GROUP: Final = 6
"""Lines of a group whose repetitions are found."""
MAX_ALIKE: Final = 3
"""Events of one kind and topic that are shown where they follow each other."""
_TELEMETRY: Final = frozenset({"GetTelemetrySubscriptions", "PushTelemetry"})
_ROUTINE_OF_INTERNAL: Final = frozenset(
    {
        Kind.TOPIC_CREATED,
        Kind.LEADER_CHANGED,
        Kind.ISR_CHANGED,
        Kind.REPLICAS_CHANGED,
        Kind.SEGMENT_ROLLED,
        Kind.LOG_COMPACTED,
        Kind.LOG_TRUNCATED,
        Kind.CONFIGS_CHANGED,
        Kind.TOPIC_DELETED,
    }
)
"""Events of internal topics that say nothing of the test, unless the partition lost its leader."""
_VERBS: Final = frozenset({Kind.VERB, Kind.VERB_REFUSED})
_REPEATED: Final = frozenset({Kind.FAULT_HIT, Kind.TIER_FAULT_HIT, Kind.PUBLISH_REFUSED})
"""Events that requests cause."""
_Item: TypeAlias = EventState | ExchangeState


class _Line(Struct, kw_only=True):
    """A line that may stand for more than one item."""

    kind: Literal["verb", "event", "request"]
    key: tuple[object, ...] | None
    """Lines of the same key may share a line; None: never."""
    time_ms: int
    until_ms: int
    text: str = ""
    crowd: tuple[object, ...] | None = None
    """Kind and topic of an event that may come in crowds."""
    first: ExchangeText | None = None
    last: ExchangeText | None = None
    records: int = 0
    times: int = 1

    @property
    def is_answered(self) -> bool:
        """Whether it is of a request that was answered without an error."""
        return self.first is not None and self.first.is_ok

    def add(self, other: "_Line") -> None:
        """Let it stand for the items of a later line too."""
        self.until_ms = max(self.until_ms, other.until_ms)
        self.last = other.last
        self.records += other.records
        self.times += other.times

    def to_answer(self) -> TimelineLine:
        """The line as it is shown."""
        text = self.text
        if self.first is not None and self.last is not None:
            text = exchange_line(self.first, self.last, self.records)
        return TimelineLine(
            time_ms=self.time_ms,
            until_ms=self.until_ms,
            times=self.times,
            kind=self.kind,
            text=text,
        )


def timeline_lines(
    events: Iterable[EventState], exchanges: Iterable[ExchangeState], left_out: Counter[str]
) -> list[TimelineLine]:
    """All of it in order.

    :param left_out: Counts what is not shown.
    """
    lines: list[_Line] = []
    for item in _shown(sorted([*events, *exchanges], key=_place), left_out):
        made = _event_line(item) if isinstance(item, EventState) else _exchange_line(item)
        earlier = _in_run(lines, made) if made.is_answered else None
        if earlier is not None:
            earlier.add(made)
            continue
        lines.append(made)
        _merge_repetition(lines)
    return [line.to_answer() for line in _without_crowds(lines)]


def trimmed(lines: Sequence[TimelineLine], limit: int) -> list[TimelineLine]:
    """The first and the last of too many lines, and in between how many are left out."""
    if len(lines) <= limit:
        return list(lines)
    head = limit // 4
    tail = limit - head - 1
    left_out = lines[head : len(lines) - tail]
    note = TimelineLine(
        time_ms=left_out[0].time_ms,
        until_ms=left_out[-1].until_ms,
        times=1,
        kind="event",
        text=f"... {len(left_out)} lines are left out ...",
    )
    return [*lines[:head], note, *lines[len(lines) - tail :]]


def _place(item: _Item) -> tuple[int, int, int]:
    """A request by its number, an event behind the newest request before it."""
    if isinstance(item, EventState):
        return item.newest, 1, item.number
    return item.number, 0, 0


def _shown(items: Iterable[_Item], left_out: Counter[str]) -> Iterator[_Item]:
    for item in items:
        if isinstance(item, EventState):
            if item.topic in INTERNAL_TOPICS and _is_routine(item):
                left_out["events of internal topics"] += 1
                continue
        elif item.api in _TELEMETRY and exchange_text(item).is_ok:
            left_out["telemetry requests"] += 1
            continue
        yield item


def _is_routine(event: EventState) -> bool:
    has_leader = event.details.get("leader", 0) != -1
    return event.kind in _ROUTINE_OF_INTERNAL and has_leader and not event.details.get("unclean")


def _event_line(event: EventState) -> _Line:
    key: tuple[object, ...] | None = None
    if event.kind in _REPEATED:
        by = event.details.get("client_id")
        key = (event.kind, event.topic, event.partition, event.broker, by, event.details.get("id"))
    return _Line(
        kind="verb" if event.kind in _VERBS else "event",
        key=key,
        time_ms=event.time_ms,
        until_ms=event.time_ms,
        text=event.text,
        crowd=None if key or event.kind in _VERBS else (event.kind, event.topic),
    )


def _exchange_line(exchange: ExchangeState) -> _Line:
    words = exchange_text(exchange)
    return _Line(
        kind="request",
        key=words.key,
        time_ms=exchange.time_ms,
        until_ms=exchange.time_ms,
        first=words,
        last=words,
        records=words.records,
    )


def _in_run(lines: Sequence[_Line], made: _Line) -> _Line | None:
    """The line of the same key in the run of answered requests that the lines end with."""
    for line in reversed(lines):
        if not line.is_answered:
            return None
        if line.key == made.key:
            return line
    return None


def _merge_repetition(lines: list[_Line]) -> None:
    """Merge the last lines with those before them that they repeat."""
    for size in range(1, min(MAX_GROUP, len(lines) // 2) + 1):
        repeated, before = lines[-size:], lines[-2 * size : -size]
        keys = [line.key for line in repeated]
        if None not in keys and keys == [line.key for line in before]:
            for line, again in zip(before, repeated, strict=True):
                line.add(again)
            del lines[-size:]
            return


def _without_crowds(lines: Iterable[_Line]) -> Iterator[_Line]:
    """Of many events of one kind and topic that follow each other, the first and how many more."""
    seen: Counter[tuple[object, ...]] = Counter()
    hidden: dict[tuple[object, ...], _Line] = {}
    for line in lines:
        if line.crowd is None:
            yield from hidden.values()
            seen.clear()
            hidden.clear()
            yield line
            continue
        seen[line.crowd] += 1
        if seen[line.crowd] <= MAX_ALIKE:
            yield line
        elif line.crowd in hidden:
            first = hidden[line.crowd]
            first.until_ms = line.until_ms
            kind, topic = line.crowd
            where = "" if topic is None else f" of {topic}"
            first.text = f"{seen[line.crowd] - MAX_ALIKE} more {kind}{where}"
        else:
            hidden[line.crowd] = line
    yield from hidden.values()
