"""The events of a cluster: every change of state, in order.

Events about elections, ISRs, topics and the registration of brokers are derived from the images:
`image_changes` compares each image with the one before. What no image shows, such as a follower
that is held or a log that is truncated, is emitted by the code that does it. Events are numbered
and kept from the start on (`event_history`), through a reset too.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Final

from msgspec import Struct, field
from msgspec.structs import astuple, replace

from fencepost.broker.core.event_history import MAX_OF_KIND, EventHistory
from fencepost.broker.core.scheduler import Scheduler


class Kind(StrEnum):
    """What may happen. What ``details`` says of it stands in brackets."""

    TOPIC_CREATED = "topic_created"
    """[topic_id, partitions, replication_factor; in the files of a trace also configs, leaders: of
    each partition its leader and leader epoch, isrs]"""
    TOPIC_DELETED = "topic_deleted"
    """[topic_id]"""
    PARTITIONS_ADDED = "partitions_added"
    """[partitions, how many there are now]"""
    CONFIGS_CHANGED = "configs_changed"
    """The dynamic configs of a topic or a broker, of all brokers where none is named. [configs that
    are different now, null for one that was removed]"""
    CONFIG_WITHOUT_EFFECT = "config_without_effect"
    """A config was set that changes nothing here, of what ``configs_changed`` names; one event for
    each name. [config, value: null where it is secret; reason; group, client_metrics]"""
    LEADER_CHANGED = "leader_changed"
    """An election; ``broker`` is the leader, None where there is none. [leader, previous_leader,
    leader_epoch; unclean: whether records that were acknowledged may be lost by it]"""
    ISR_CHANGED = "isr_changed"
    """[isr, previous_isr, elr]"""
    REPLICAS_CHANGED = "replicas_changed"
    """A reassignment begins, goes on or ends. [replicas, adding, removing]"""
    BROKER_CHANGED = "broker_changed"
    """[state: running, stopped, killed, fenced, unfenced, unregistered, isolated, rejoined; and
    what it takes to understand it]"""
    REPLICA_HELD = "replica_held"
    """[at]"""
    REPLICA_RELEASED = "replica_released"
    REPLICA_WIPED = "replica_wiped"
    """[alone: whether no other replica was sure to have what it lost]"""
    REPLICA_FAILED = "replica_failed"
    """A replica's log can't be read or written any more: it is offline until its broker is started
    again; one that lacked descriptors, until files can be opened again. [error]"""
    STORAGE_FAILED = "storage_failed"
    """A file beside the logs, such as a checkpoint, can't be read or written; it is tried again.
    [error]"""
    MEMORY_FULL = "memory_full"
    """Logs in memory have reached ``--max-memory``: Produce is answered with POLICY_VIOLATION until
    some is freed. [used_bytes, limit_bytes]"""
    RECORDS_MISSING = "records_missing"
    """A start found that a replica's files miss records that they had. [offsets: the first and the
    last of each range, inclusive; reason: which file is not what it was; outcome: how the broker
    goes on]"""
    LOG_RECOVERED = "log_recovered"
    """A start cut what was no whole record batch from a replica's log. [offset: the log end now,
    cut: the segments, with position, size and reason]"""
    LOG_TRUNCATED = "log_truncated"
    """[offset: the log end now, previous_offset]"""
    LOG_STARTED_FROM_TIER = "log_started_from_tier"
    """A follower leaves to the tier what comes before. [offset: where it goes on,
    log_start_offset, previous_offset]"""
    SEGMENT_ROLLED = "segment_rolled"
    """[base_offset of the new active segment]"""
    LOG_COMPACTED = "log_compacted"
    """[records that were dropped]"""
    SEGMENT_UPLOADED = "segment_uploaded"
    """A segment is in the tier, whole; ``broker`` is the leader. [id, start_offset, end_offset:
    inclusive, epochs, bytes]"""
    LOCAL_SEGMENTS_DELETED = "local_segments_deleted"
    """A replica let go of segments that the tier has. [segments: how many,
    local_log_start_offset now]"""
    SEGMENT_EXPIRED = "segment_expired"
    """Retention took a segment from the tier; ``broker`` is the leader. [id, start_offset,
    end_offset: inclusive, epochs, bytes]"""
    TIER_FORGOTTEN = "tier_forgotten"
    """A leader has forgotten what it knew of the tier; ``broker`` is that leader."""
    TIER_LOST = "tier_lost"
    """The tier has lost what it had of a partition. [objects: how many]"""
    TIER_FAILED = "tier_failed"
    """A task on ``broker`` could not do what it had to, and will try again. [error]"""
    TIER_FAULT_ADDED = "tier_fault_added"
    """[id, operation, error, delay_ms]"""
    TIER_FAULT_REMOVED = "tier_fault_removed"
    """[id, operation, error, delay_ms, hits]"""
    TIER_FAULT_HIT = "tier_fault_hit"
    """An operation on the tier met a fault. [id, operation, error, delay_ms, key of the object]"""
    PUBLISH_REFUSED = "publish_refused"
    """A request was refused whole for the expected offset of a record (KIP-27); one event for each
    partition with such a record, of its first one. ``broker`` is the leader. [expected, upcoming,
    last_of_key: null unless keys are compared, client_id]"""
    TRANSACTION_CHANGED = "transaction_changed"
    """A transactional id has another state, or another producer id or epoch; ``broker`` is its
    coordinator. [transactional_id, producer_id, producer_epoch, state: as Kafka names it,
    partitions: how many its transaction has]"""
    FAULT_ADDED = "fault_added"
    """[id, api, action; topic, partition and broker are those that it is about]"""
    FAULT_REMOVED = "fault_removed"
    """[id, api, action, hits]"""
    FAULT_HIT = "fault_hit"
    """A request met a fault; ``broker`` is the one that was asked. [id, api, action, client_id]"""
    OTHER_PROTOCOL = "other_protocol"
    """A client did not speak Kafka's protocol to ``broker``, or began to authenticate where it
    need not. The connection is closed, but after a SaslHandshake. [protocol: tls_hello,
    http_request, sasl_token or sasl_handshake; connection; client_id, null where it gave none]"""
    CLOCK_ADVANCED = "clock_advanced"
    """[ms]"""
    VERB = "verb"
    """A verb that changes something begins; the events of its effect follow. Of its parameters,
    topic, partition and broker stand where those of other events do. [verb: its name, arguments]"""
    VERB_REFUSED = "verb_refused"
    """A verb was refused, without effect. [verb, arguments, error, message]"""
    RECORDS_LOST = "records_lost"
    """An unclean election lost records that ``broker`` had and the new leader lacks. [start_offset,
    end_offset: exclusive, records, committed_records]"""
    EVENTS_DROPPED = "events_dropped"
    """Not an event: stands first where some of the events that were asked for are not kept any
    more. [events: how many, kinds]"""
    RESET = "reset"
    """Everything is as it was at the start. The events of what a reset deletes and creates follow.
    [events: how many they are]"""
    TRACE_STARTED = "trace_started"
    """A run begins. [brokers, conformance, dialect, configs,
    dynamic_configs: by broker, "" of all; features]"""
    TOPIC_KNOWN = "topic_known"
    """A topic that was there before the trace. [as of topic_created]"""
    TRACE_ENDED = "trace_ended"
    """A run has ended in order: nothing is missing."""


TRACE_FILE_ONLY: Final = frozenset((Kind.TRACE_STARTED, Kind.TOPIC_KNOWN, Kind.TRACE_ENDED))
"""Events that no listener receives: they begin and end the files of a trace."""
NEVER_EMITTED: Final = TRACE_FILE_ONLY | {Kind.EVENTS_DROPPED}
"""Kinds that nothing in the cluster emits."""


OF_THE_DISK: Final = frozenset(
    (Kind.RECORDS_MISSING, Kind.LOG_RECOVERED, Kind.REPLICA_FAILED, Kind.STORAGE_FAILED)
)
"""What a start finds in files."""
_KEPT: Final = OF_THE_DISK | {Kind.CONFIG_WITHOUT_EFFECT}
"""Events that are kept while there is no listener: a start finds them before there can be one."""
_MOST_AT_START: Final = 10_000
GROUP: Final = "group"
CLIENT_METRICS: Final = "client_metrics"
OTHER_RESOURCES: Final = frozenset((GROUP, CLIENT_METRICS))
"""Keys of the details that name what changed configs are of, where that is no topic nor broker."""


class Event(Struct, frozen=True, kw_only=True, gc=False):
    """One change of state.

    Thousands are kept for as long as the process lives, so the garbage collector leaves them out,
    and the most frequent ones have details that it need not look at: numbers, text and tuples of
    these. A full collection takes the longer the more it looks at, and no client is served in it.
    """

    kind: Kind
    time_ms: int
    """Of the cluster's clock, since 1970-01-01 UTC."""
    topic: str | None = None
    partition: int | None = None
    broker: int | None = None
    details: Mapping[str, object] = field(default_factory=dict)
    """Numbers, text, None, and sequences and mappings of these."""
    number: int = 0
    """Its place among all events of the process, from 1; 0 for those of trace files alone."""
    newest: int = 0
    """The number of the newest request that was received before it."""

    def __eq__(self, other: object) -> bool:
        """Whether the same happened; its place among events and requests does not count."""
        return isinstance(other, Event) and _content(self) == _content(other)

    def __hash__(self) -> int:
        return hash((self.kind, self.time_ms, self.topic, self.partition, self.broker))


def _content(event: Event) -> tuple[object, ...]:
    return astuple(replace(event, number=0, newest=0))


Listener = Callable[[Event], None]


class Events:
    """The events of a cluster so far, and the listeners of those to come.

    A listener is called during the change: it records the event and does nothing else.
    """

    def __init__(self, scheduler: Scheduler, *, max_of_kind: int = MAX_OF_KIND) -> None:
        self._scheduler = scheduler
        self._history: EventHistory[Event] = EventHistory(max_of_kind)
        self.newest_request: Callable[[], int] = lambda: 0
        """Gives the number of the newest request, where requests are numbered."""
        self.listeners: list[Listener] = []
        self.at_start: list[Event] = []
        """What a start found before there was a listener; the first ones only."""
        self._held_back: list[Event] | None = None
        """Events of a reset, which wait for its mark."""

    def emit(
        self,
        kind: Kind,
        *,
        topic: str | None = None,
        partition: int | None = None,
        broker: int | None = None,
        **details: object,
    ) -> None:
        """Emit an event with the present time."""
        event = Event(
            kind=kind,
            time_ms=self._scheduler.wall_ms(),
            topic=topic,
            partition=partition,
            broker=broker,
            details=details,
            number=self._history.newest + 1,
            newest=self.newest_request(),
        )
        self._record(event)

    @property
    def found_on_disk(self) -> list[Event]:
        """What the start found in files that was not as it should be."""
        return [event for event in self.at_start if event.kind in OF_THE_DISK]

    def tell_start(self) -> None:
        """Tell the listeners, which there are now, what the start found."""
        for event in self.at_start:
            self._notify(event)

    @property
    def newest(self) -> int:
        """The number of the last event."""
        return self._history.newest

    def since(self, number: int) -> list[Event]:
        """The events of a higher number that are kept, the oldest first.

        Where some are not kept any more, an event of the kind EVENTS_DROPPED is the first; its
        number is the one that was given, after which they came.
        """
        found = self._history.since(number)
        missing = self.newest - number - len(found)
        if missing <= 0:
            return found
        dropped = Event(
            kind=Kind.EVENTS_DROPPED,
            time_ms=found[0].time_ms,  # the newest event of a kind is always kept
            details={"events": missing, "kinds": self._history.dropped_since(number)},
            number=number,
        )
        return [dropped, *found]

    def emit_all(self, events: Iterable[Event]) -> None:
        """Emit events that have their time, but no place among others yet."""
        newest = self.newest_request()
        for event in events:
            self._record(replace(event, number=self._history.newest + 1, newest=newest))

    @contextmanager
    def resetting(self) -> Iterator[None]:
        """Emit RESET before the events that are emitted inside, with their number."""
        held_back = self._held_back = []
        try:
            yield
        finally:
            self._held_back = None
            self.emit(Kind.RESET, events=len(held_back))
            for event in held_back:
                self._record(event)

    def _record(self, event: Event) -> None:
        if self._held_back is not None:
            self._held_back.append(event)
            return
        number = self._history.newest + 1
        if event.number != number:
            event = replace(event, number=number)
        if not self.listeners and event.kind in _KEPT and len(self.at_start) < _MOST_AT_START:
            self.at_start.append(event)
        self._history.add(event)
        self._notify(event)

    def _notify(self, event: Event) -> None:
        for listener in tuple(self.listeners):
            listener(event)
