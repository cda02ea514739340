"""The trace of one partition by incarnations: one for each topic id that had the topic's name.

A topic that is deleted and created again has another id, and begins at offset 0 in epoch 0.
Exchanges that were sent before an incarnation began, or answered after its end, are left out, and
so are answers of brokers that had not learnt of it yet.

One exchange came before another only if it was answered before the other was asked: `newest` of the
one is below `number` of the other. The same holds of events. Everything else was at the same time.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.broker.core.events import OTHER_RESOURCES, Kind
from fencepost.pipeline.audit.cluster_metadata import PartitionIncarnation
from fencepost.pipeline.audit.trace_rows import rows_where
from fencepost.pipeline.datasource.trace_files import (
    COORDINATOR_CHANGED,
    COORDINATOR_WIPED,
    EXCHANGE,
)
from fencepost.protocol.errors import ErrorCode

FOREVER: Final = 1 << 62
"""No line, and no number of an exchange, is as great."""
_RELEVANT_KINDS: Final = (
    Kind.TRACE_STARTED,
    Kind.TOPIC_KNOWN,
    Kind.TRACE_ENDED,
    Kind.TOPIC_CREATED,
    Kind.CONFIGS_CHANGED,
    Kind.LEADER_CHANGED,
    Kind.REPLICAS_CHANGED,
    Kind.BROKER_CHANGED,
    Kind.REPLICA_WIPED,
    Kind.LOG_TRUNCATED,
    Kind.LOG_STARTED_FROM_TIER,
    COORDINATOR_CHANGED,
    COORDINATOR_WIPED,
)
"""Events that say something to a rule."""
_FIRST_FETCH_WITH_REPLICA_EPOCH: Final = 15
"""The Fetch version from which a follower says in which registration it asks (KIP-903)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEvent:
    """An event that concerns the partition."""

    kind: str
    line: int
    number: int
    newest: int
    time_ms: int
    broker: int | None
    topic: str | None
    topic_id: str | None
    partition: int | None
    details: Mapping[str, Any]


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
    configs: "ConfigHistory"
    cluster: PartitionIncarnation | None = None
    """What the cluster metadata say of it; None where they say nothing."""

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
        fetches = self.exchanges("Fetch")
        by_old = pc.and_(
            pc.greater_equal(fetches["replica_id"], 0),
            pc.less(fetches["version"], _FIRST_FETCH_WITH_REPLICA_EPOCH),
        )
        return bool(pc.any(by_old).as_py())


class ConfigHistory:
    """The configs that a topic had, and when."""

    def __init__(self, events: Iterable[TraceEvent]) -> None:
        self._layers: list[tuple[int, dict[str, Mapping[str, str | None]]]] = []
        """From which line on, and then by where they are set."""
        self.is_apache = False
        """Whether the cluster answers as Apache Kafka does, not as the KIPs say."""
        present: dict[str, Mapping[str, str | None]] = {}
        for event in events:
            self.is_apache |= event.details.get("conformance") == "apache"
            changed = _changed(event, present)
            if changed is not None:
                present = changed
                self._layers.append((event.line, present))

    def values(self, name: str, *, since: int = 0, until: int = FOREVER) -> frozenset[str]:
        """The values that a config had between two lines, the default left out.

        :param name: As of the topic; brokers may set it by the same name.
        """
        found = set()
        for (line, layers), (end, _) in pairwise([*self._layers, (FOREVER, {})]):
            if line <= until and end > since:
                found |= _values(layers, name)
        return frozenset(found)


_TOPIC: Final = "topic"
_STATIC: Final = "static"


def _changed(
    event: TraceEvent, present: Mapping[str, Mapping[str, str | None]]
) -> dict[str, Mapping[str, str | None]] | None:
    """What the configs are after an event; None where it is not about any."""
    details = event.details
    if event.kind == Kind.TRACE_STARTED:
        kept = {_TOPIC: present[_TOPIC]} if _TOPIC in present else {}
        dynamic = {f"broker {name}": each for name, each in details["dynamic_configs"].items()}
        return {**kept, **dynamic, _STATIC: details["configs"]}
    if event.kind in (Kind.TOPIC_CREATED, Kind.TOPIC_KNOWN):
        return {**present, _TOPIC: details.get("configs", {})}
    if event.kind == Kind.CONFIGS_CHANGED and not OTHER_RESOURCES & details.keys():
        broker = "" if event.broker is None else event.broker
        where = f"broker {broker}" if event.topic is None else _TOPIC
        return {**present, where: {**present.get(where, {}), **details["configs"]}}
    return None


def _values(layers: Mapping[str, Mapping[str, str | None]], name: str) -> set[str]:
    """What holds for one broker or another; what the topic says holds for all."""
    own = layers.get(_TOPIC, {}).get(name)
    if own is not None:
        return {own}
    return {text for each in layers.values() if (text := each.get(name)) is not None}


# -- incarnations -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _IncarnationSpan:
    topic_id: str | None
    line: int
    newest: int
    created: bool
    """Whether it begins there, and was not there before."""


def incarnations(traces: pa.Table, topic: str, partition: int) -> Iterator[TopicIncarnation]:
    """Every incarnation of a partition, in order; one at least.

    :param traces: `TRACES` of the partition and of no partition at all; events are by line, and so
        are exchanges.
    """
    happenings = tuple(_trace_events(traces))
    is_exchange = pc.equal(traces["kind"], EXCHANGE)
    exchanges = rows_where(traces, pc.and_(is_exchange, pc.is_valid(traces["partition"])))
    spans = list(_spans(happenings))
    for span, next_span in pairwise([*spans, None]):
        assert span is not None, "it is the last that has none behind it"
        end = FOREVER if next_span is None else next_span.line
        start = 0 if span is spans[0] and not span.created else span.line
        events = tuple(
            each
            for each in happenings
            if each.line < end and (each.line >= start or _is_cluster_event(each))
        )
        yield TopicIncarnation(
            topic=topic,
            partition=partition,
            topic_id=span.topic_id,
            is_last=next_span is None,
            from_start=span.created,
            rows=_within(exchanges, span, start, end, happenings),
            events=events,
            configs=ConfigHistory(events),
        )


def _trace_events(traces: pa.Table) -> Iterator[TraceEvent]:
    events = traces.filter(pc.is_in(traces["kind"], pa.array(_RELEVANT_KINDS)))
    for row in events.select([each.name for each in fields(TraceEvent)]).to_pylist():
        row["details"] = json.loads(row["details"] or "{}")
        yield TraceEvent(**row)


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


def _within(
    exchanges: pa.Table, span: _IncarnationSpan, start: int, end: int, events: Iterable[TraceEvent]
) -> pa.Table:
    """The exchanges within an incarnation, with brokers that had learnt of it."""
    lines, numbers = exchanges["line"].to_numpy(), exchanges["number"].to_numpy()
    found: npt.NDArray[np.bool_] = (lines >= start) & (lines < end)
    if start:
        found &= numbers > span.newest
    brokers = exchanges["broker"].to_numpy()
    for broker, until in _unreachable_brokers(events, span.line).items():
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
