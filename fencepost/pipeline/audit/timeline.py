"""The trace of one partition by incarnations: one for each topic id that had the topic's name.

A topic that is deleted and created again has another id, and begins at offset 0 in epoch 0.
Exchanges that were sent before an incarnation began, or answered after its end, are left out, and
so are answers of brokers that had not learnt of it yet.

One exchange came before another only if it was answered before the other was asked: `newest` of the
one is below `number` of the other. The same holds of events. Everything else was at the same time.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.broker.core.events import Kind
from fencepost.pipeline.audit.cluster_metadata import PartitionIncarnation
from fencepost.pipeline.audit.config_history import ConfigHistory
from fencepost.pipeline.audit.trace_event import FOREVER, TraceEvent, trace_events
from fencepost.pipeline.audit.trace_rows import ACKNOWLEDGED, rows_where
from fencepost.pipeline.datasource.trace_files import (
    EXCHANGE,
)
from fencepost.protocol.errors import ErrorCode

_FIRST_FETCH_WITH_REPLICA_EPOCH: Final = 15
"""The Fetch version from which a follower says in which registration it asks (KIP-903)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderTerm:
    """An election, and the leader and epoch that resulted."""

    leader: int
    """-1 where there is none."""
    epoch: int
    unclean: bool
    line: int
    """0 for the first, which no event tells of."""


@dataclass(frozen=True, kw_only=True)
class TopicIncarnation:
    """What the trace tells of the partition while one topic had the name."""

    topic: str
    partition: int
    topic_id: str | None
    """None where the trace does not say."""
    is_last: bool
    from_start: bool
    """Whether the trace has all of it, from when it was empty."""
    rows: pa.Table
    """Its exchanges, by line."""
    events: tuple[TraceEvent, ...]
    """All of the trace that concern it, those of the cluster too, by line."""
    configs: ConfigHistory
    cluster: PartitionIncarnation | None = None
    """What the cluster metadata say of it; None where they say nothing."""
    acknowledged: tuple[str, ...] = ()
    """Details of rows that stand for exchanges: see `acknowledged_batches`."""

    def exchanges(self, *apis: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Exchanges of some APIs.

        :param columns: Which are wanted; None: all.
        """
        return rows_where(self._selected(columns), self._is_of(apis))

    def succeeded(self, *apis: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Those that were answered without an error."""
        succeeded = pc.and_(
            pc.is_valid(self.rows["answered_ms"]), pc.equal(self.rows["error"], ErrorCode.NONE)
        )
        return rows_where(self._selected(columns), pc.and_(self._is_of(apis), succeeded))

    def _selected(self, columns: Sequence[str] | None) -> pa.Table:
        return self.rows if columns is None else self.rows.select(columns)

    def _is_of(self, apis: Sequence[str]) -> pa.ChunkedArray:
        return pc.is_in(self.rows["api"], pa.array(apis, pa.string()))

    @cached_property
    def leader_terms(self) -> tuple[LeaderTerm, ...]:
        """All elections, the first leader too where it is known."""
        return tuple(self._leader_terms())

    @cached_property
    def gaps(self) -> tuple[int, ...]:
        """Lines in front of which some may be missing: the server was killed before."""
        turns = [e for e in self.events if e.kind in (Kind.TRACE_STARTED, Kind.TRACE_ENDED)]
        return tuple(
            later.line
            for earlier, later in pairwise(turns)
            if earlier.kind == later.kind == Kind.TRACE_STARTED
        )

    def _leader_terms(self) -> Iterator[LeaderTerm]:
        for event in self.events:
            details = event.details
            if event.kind in (Kind.TOPIC_CREATED, Kind.TOPIC_KNOWN):
                leaders = details.get("leaders", ())
                if self.partition < len(leaders):
                    leader, epoch = leaders[self.partition]
                    yield LeaderTerm(leader=leader, epoch=epoch, unclean=False, line=event.line)
            elif event.kind == Kind.LEADER_CHANGED:
                yield LeaderTerm(
                    leader=details["leader"],
                    epoch=details["leader_epoch"],
                    unclean=bool(details.get("unclean")),
                    line=event.line,
                )

    def explain_loss(
        self, *, epoch: int | None, number: int, until: int = -1, before: int = FOREVER
    ) -> str | None:
        """Why records may be gone that were written in an epoch, by a request of this number.

        :param epoch: None where it is not known.
        :param until: The newest epoch that logs, or an answer, tell of.
        :param before: The line in which they were seen to be gone: what happened later is no
            reason.
        :returns: None where nothing that happened explains it, and the trace tells of all.
        """
        for term in self.leader_terms:
            if term.line < before and term.unclean and (epoch is None or term.epoch > epoch):
                return f"the election of broker {term.leader} in epoch {term.epoch} was unclean"
        for event in self.events:
            if event.kind != Kind.REPLICA_WIPED or event.line >= before:
                continue
            if self._is_later(event, epoch, number):
                continue
            if event.details.get("alone", True):
                return f"broker {event.broker} lost its disk, and no other was in sync"
            if self._admits_wiped_replicas:
                return f"broker {event.broker} lost its disk, and its fetches do not tell"
        return None if epoch is None else self._missing_election(epoch + 1, until)

    def _is_later(self, event: TraceEvent, epoch: int | None, number: int) -> bool:
        """Whether what was written is of later than an event.

        A disk that is lost has what was written in the epoch of that time or before; who has read
        it may tell of it long after.
        """
        if epoch is None:
            return event.newest < number
        present = max(
            (each.epoch for each in self.leader_terms if each.line < event.line), default=epoch
        )
        return epoch > present

    def _missing_election(self, first: int, last: int) -> str | None:
        """That the trace lacks an election, as it does where its process was killed.

        None where the cluster metadata say that it was clean.
        """
        traced_epochs = {term.epoch for term in self.leader_terms}
        for epoch in (each for each in range(first, last + 1) if each not in traced_epochs):
            election = None if self.cluster is None else self.cluster.election(epoch)
            if election is None or election.is_unclean is None:
                return f"the trace does not tell of the election of epoch {epoch}"
            if election.is_unclean:
                return election.unclean_text
        return None

    @cached_property
    def _admits_wiped_replicas(self) -> bool:
        return bool(self.has_no_replica_epoch.any())

    @property
    def has_no_replica_epoch(self) -> npt.NDArray[np.bool_]:
        """Of each exchange whether it is a follower's Fetch that doesn't say its registration."""
        by_old = pc.and_(
            pc.greater_equal(self.rows["replica_id"], 0),
            pc.less(self.rows["version"], _FIRST_FETCH_WITH_REPLICA_EPOCH),
        )
        of_fetch = pc.and_(pc.equal(self.rows["api"], "Fetch"), by_old)
        found: npt.NDArray[np.bool_] = pc.fill_null(of_fetch, fill_value=False).to_numpy()
        return found


# -- incarnations -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _IncarnationSpan:
    topic_id: str | None
    line: int
    newest: int
    created: bool
    """Whether it begins there, and was not there before."""


def incarnations(traces: pa.Table, topic: str, partition: int) -> tuple[TopicIncarnation, ...]:
    """Every incarnation of a partition, in order; one at least.

    :param traces: `TRACES` of the partition and of no partition at all; events are by line, and so
        are exchanges.
    """
    is_exchange = pc.equal(traces["kind"], EXCHANGE)
    exchanges = rows_where(traces, pc.and_(is_exchange, pc.is_valid(traces["partition"])))
    *others, last = PartitionTimeline(traces, topic, partition).incarnations(exchanges)
    stands_for_some = pc.equal(traces["kind"], ACKNOWLEDGED)
    details = rows_where(traces, stands_for_some)["details"].to_pylist()
    return (*others, replace(last, acknowledged=tuple(details)))


class PartitionTimeline:
    """The incarnations of a partition, by events alone: exchanges may come little by little.

    :param traces: `TRACES`; the events among them are those that concern the partition, by line.
    """

    def __init__(self, traces: pa.Table, topic: str, partition: int) -> None:
        self._topic, self._partition = topic, partition
        self._events = tuple(trace_events(traces))
        spans = tuple(_spans(self._events))
        ends = [*(span.line for span in spans[1:]), FOREVER]
        self._parts = [
            self._part(span, end, is_first=span is spans[0])
            for span, end in zip(spans, ends, strict=True)
        ]

    def incarnations(self, exchanges: pa.Table) -> tuple[TopicIncarnation, ...]:
        """All of them, in order, each with those of the exchanges that are within it."""
        return tuple(
            TopicIncarnation(
                topic=self._topic,
                partition=self._partition,
                topic_id=part.span.topic_id,
                is_last=part.end == FOREVER,
                from_start=part.span.created,
                rows=_within(exchanges, part),
                events=part.events,
                configs=part.configs,
            )
            for part in self._parts
        )

    def _part(self, span: _IncarnationSpan, end: int, *, is_first: bool) -> "_TimelinePart":
        start = 0 if is_first and not span.created else span.line
        events = tuple(
            each
            for each in self._events
            if each.line < end and (each.line >= start or _is_cluster_event(each))
        )
        return _TimelinePart(
            span=span,
            start=start,
            end=end,
            events=events,
            configs=ConfigHistory(events),
            unreachable=_unreachable_brokers(self._events, span.line),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _TimelinePart:
    """Where one incarnation lies."""

    span: _IncarnationSpan
    start: int
    """Its first line."""
    end: int
    """The line behind it; `FOREVER` of the last."""
    events: tuple[TraceEvent, ...]
    configs: ConfigHistory
    unreachable: Mapping[int, int]
    """Brokers that could not hear of it, and until which line."""


def _is_cluster_event(event: TraceEvent) -> bool:
    return event.topic is None


def _spans(events: Iterable[TraceEvent]) -> Iterator[_IncarnationSpan]:
    """Where another topic id begins; one span of no id where the trace does not say."""
    present = _IncarnationSpan(topic_id=None, line=0, newest=-1, created=False)
    is_first = True
    for event in events:
        if event.kind not in (Kind.TOPIC_CREATED, Kind.TOPIC_KNOWN) or event.topic is None:
            continue
        topic_id = event.topic_id
        if topic_id == present.topic_id:
            continue
        if not is_first:
            yield present
        is_first = False
        present = _IncarnationSpan(
            topic_id=topic_id,
            line=event.line,
            newest=event.newest,
            created=event.kind == Kind.TOPIC_CREATED,
        )
    yield present


def _within(exchanges: pa.Table, part: _TimelinePart) -> pa.Table:
    """The exchanges within an incarnation, with brokers that had learnt of it."""
    lines, numbers = exchanges["line"].to_numpy(), exchanges["number"].to_numpy()
    found: npt.NDArray[np.bool_] = (lines >= part.start) & (lines < part.end)
    if part.start:
        found &= numbers > part.span.newest
    brokers = exchanges["broker"].to_numpy()
    for broker, until in part.unreachable.items():
        found &= (brokers != broker) | (lines >= until)
    return rows_where(exchanges, pa.array(found))


def _unreachable_brokers(events: Iterable[TraceEvent], line: int) -> dict[int, int]:
    """Brokers that could not hear of what happened at a line, and until when."""
    away: set[int] = set()
    until: dict[int, int] = {}
    for event in events:
        if event.kind == Kind.TRACE_STARTED:
            back = set(away)
        elif event.kind != Kind.BROKER_CHANGED or event.broker is None:
            continue
        else:
            state = event.details.get("state")
            if state == "isolated" and event.details.get("from_controller", True):
                away.add(event.broker)
                if event.line < line:
                    until[event.broker] = FOREVER
                continue
            back = {event.broker} if state in ("rejoined", "running") else set()
        for broker in back & away:
            away.discard(broker)
            if event.line < line:
                until.pop(broker, None)
            elif until.get(broker) == FOREVER:
                until[broker] = event.line
    return until
