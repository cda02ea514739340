"""One line of plain text for each kind of event, without its time and number.

It is the one place that words events: the control API sends the line with the event, and the page,
``watch``, ``events``, the log and the report of a failing test show it.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from fencepost.broker.core.events import CLIENT_METRICS, GROUP, Event, Kind

NO_LEADER: Final = -1
_Words = Callable[[Event], str]


def event_text(event: Event) -> str:
    """Such as ``orders-0: leader 1 -> 2 in epoch 3``."""
    subject = _subject(event)
    try:
        words = _WORDS[event.kind](event)
    except LookupError:  # details that these words do not know must not stop who shows them
        words = shown_value(event.details)
    return f"{subject}: {words}" if subject and words else subject or words


def shown_value(value: object) -> str:
    """A value of an event's details, or an argument of a verb, in a line."""
    if isinstance(value, Mapping):
        return " ".join(
            name if each is True else f"{name} {shown_value(each)}"
            for name, each in value.items()
            if each is not None
        )
    if isinstance(value, list | tuple):
        return _list(value)
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else str(value)


def _subject(event: Event) -> str:
    """What an event is about, before the colon."""
    if event.kind in _NAME_THEIR_SUBJECT:
        return ""
    if event.topic is None:
        return "" if event.broker is None else f"broker {event.broker}"
    return place(event.topic, event.partition)


def place(topic: str | None, partition: int | None) -> str:
    """``orders-0``, or ``orders`` where no partition is named."""
    if topic is None:
        return ""
    return topic if partition is None else f"{topic}-{partition}"


def _list(values: Iterable[object]) -> str:
    return ",".join(map(shown_value, values)) or "none"


def _count(number: object, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


# -- topics and partitions ----------------------------------------------------------------------


def _topic_created(event: Event) -> str:
    partitions = _count(event.details["partitions"], "partition")
    return f"created, {partitions}, replication factor {event.details['replication_factor']}"


def _configs_changed(event: Event) -> str:
    configs = event.details["configs"]
    assert isinstance(configs, Mapping)
    changes = ", ".join(
        f"{name} removed" if value is None else f"{name}={value}" for name, value in configs.items()
    )
    for resource, noun in ((GROUP, "group"), (CLIENT_METRICS, "client metrics")):
        if resource in event.details:
            return f"{noun} {event.details[resource]}: {changes}"
    return changes if event.topic or event.broker is not None else f"all brokers: {changes}"


def _config_without_effect(event: Event) -> str:
    value = event.details["value"]
    setting = event.details["config"] if value is None else f"{event.details['config']}={value}"
    return f"{setting} has no effect: {event.details['reason']}"


def _leader(leader: object) -> str:
    return "none" if leader == NO_LEADER else str(leader)


def _leader_changed(event: Event) -> str:
    leader, before = event.details["leader"], event.details["previous_leader"]
    change = f"leader {_leader(before)} -> {_leader(leader)}"
    if leader == before:
        change = f"leader {_leader(leader)} stays"
    unclean = ", unclean" if event.details["unclean"] else ""
    return f"{change} in epoch {event.details['leader_epoch']}{unclean}"


def _isr_changed(event: Event) -> str:
    isr, before, elr = (event.details[name] for name in ("isr", "previous_isr", "elr"))
    eligible = f", ELR {shown_value(elr)}" if elr else ""
    return f"ISR {shown_value(before)} -> {shown_value(isr)}{eligible}"


def _replicas_changed(event: Event) -> str:
    parts = ((name, event.details[name]) for name in ("replicas", "adding", "removing"))
    return ", ".join(f"{name} {shown_value(value)}" for name, value in parts if value)


# -- brokers and replicas -----------------------------------------------------------------------


def _broker_changed(event: Event) -> str:
    state = str(event.details["state"])
    if state != "isolated":
        return state
    brokers = event.details["from_brokers"]
    assert isinstance(brokers, list)
    nodes = [*(["controller"] if event.details["from_controller"] else []), *brokers]
    return f"isolated from {shown_value(nodes)}"


def _replica_held(event: Event) -> str:
    at = event.details["at"]
    return f"broker {event.broker} is held{'' if at is None else f' at {at}'}"


def _replica_wiped(event: Event) -> str:
    alone = ", no other replica was sure to have its records" if event.details["alone"] else ""
    return f"broker {event.broker} lost its log{alone}"


def _records_missing(event: Event) -> str:
    ranges = event.details["offsets"]
    assert isinstance(ranges, list)
    offsets = ", ".join(f"{first} to {last}" for first, last in ranges)
    reason, outcome = event.details["reason"], event.details["outcome"]
    return f"broker {event.broker} misses offsets {offsets}: {reason}; {outcome}"


def _records_lost(event: Event) -> str:
    details = event.details
    offsets = f"offsets {details['start_offset']} to {details['end_offset']} (exclusive)"
    text = f"{offsets} of broker {event.broker} are lost"
    if details["records"] is None:
        return text
    records = _count(details["records"], "record")
    return f"{text}: {records}, {details['committed_records']} committed"


def _log_started_from_tier(event: Event) -> str:
    offset, start = event.details["offset"], event.details["log_start_offset"]
    return f"broker {event.broker} goes on at {offset}, the tier has it from {start} on"


# -- verbs, faults, and the rest ----------------------------------------------------------------


def _verb(event: Event) -> str:
    arguments = event.details["arguments"]
    assert isinstance(arguments, Mapping)
    broker = [] if event.broker is None else [f"broker {event.broker}"]
    subject = " ".join(filter(None, (place(event.topic, event.partition), *broker)))
    given = ", ".join(f"{name}={shown_value(value)}" for name, value in arguments.items())
    return " ".join(filter(None, (str(event.details["verb"]), subject, given)))


def _verb_refused(event: Event) -> str:
    return f"{_verb(event)}: refused, {event.details['message']} ({event.details['error']})"


def _fault(event: Event) -> str:
    details = event.details
    steps = details.get("sequence")
    effect = (
        " then ".join(map(shown_value, steps))
        if isinstance(steps, list | tuple)
        else shown_value(details["action"])
    )
    return f"fault {details['id']}: {shown_value(details['api'])} {effect}"


def _fault_hit(event: Event) -> str:
    client = event.details["client_id"]
    sender = "" if client is None else f" of {client}"
    api = shown_value(event.details["api"])
    return (
        f"fault {event.details['id']} hits {api}{sender} at broker {event.broker}:"
        f" {shown_value(event.details['action'])}"
    )


def _tier_fault(event: Event) -> str:
    error, delay = event.details["error"], event.details["delay_ms"]
    effect = [*([] if error is None else [f"error {error}"])]
    effect += [] if delay is None else [f"delay {delay} ms"]
    return f"tier fault {event.details['id']}: {event.details['operation']} {', '.join(effect)}"


def _publish_refused(event: Event) -> str:
    details = event.details
    client = details["client_id"] or "a producer"
    return f"{client} expected offset {details['expected']}, it is {details['upcoming']}"


def _transaction_changed(event: Event) -> str:
    details = event.details
    partitions = details["partitions"]
    of = f" of {_count(partitions, 'partition')}" if partitions else ""
    return (
        f"transaction {details['transactional_id']}: {details['state']}{of}, producer"
        f" {details['producer_id']} in epoch {details['producer_epoch']}, coordinator"
        f" {event.broker}"
    )


_NAME_THEIR_SUBJECT: Final = frozenset(
    {
        Kind.VERB,
        Kind.VERB_REFUSED,
        Kind.TRANSACTION_CHANGED,
        Kind.FAULT_ADDED,
        Kind.FAULT_REMOVED,
        Kind.FAULT_HIT,
        Kind.TIER_FAULT_ADDED,
        Kind.TIER_FAULT_REMOVED,
        Kind.TIER_FAULT_HIT,
    }
)
_WORDS: Final[Mapping[Kind, _Words]] = {
    Kind.TOPIC_CREATED: _topic_created,
    Kind.TOPIC_DELETED: lambda _: "deleted",
    Kind.PARTITIONS_ADDED: lambda event: f"{event.details['partitions']} partitions now",
    Kind.CONFIGS_CHANGED: _configs_changed,
    Kind.CONFIG_WITHOUT_EFFECT: _config_without_effect,
    Kind.LEADER_CHANGED: _leader_changed,
    Kind.ISR_CHANGED: _isr_changed,
    Kind.REPLICAS_CHANGED: _replicas_changed,
    Kind.BROKER_CHANGED: _broker_changed,
    Kind.REPLICA_HELD: _replica_held,
    Kind.REPLICA_RELEASED: lambda event: f"broker {event.broker} is released",
    Kind.REPLICA_WIPED: _replica_wiped,
    Kind.REPLICA_FAILED: lambda e: f"broker {e.broker} is offline: {e.details['error']}",
    Kind.STORAGE_FAILED: lambda event: f"storage failed: {event.details['error']}",
    Kind.MEMORY_FULL: lambda event: (
        f"logs in memory take {event.details['used_bytes']} of {event.details['limit_bytes']} bytes"
    ),
    Kind.RECORDS_MISSING: _records_missing,
    Kind.LOG_RECOVERED: lambda e: (
        f"broker {e.broker} cut what is no record batch, the log ends at {e.details['offset']}"
    ),
    Kind.LOG_TRUNCATED: lambda event: (
        f"broker {event.broker} truncates its log from {event.details['previous_offset']}"
        f" to {event.details['offset']}"
    ),
    Kind.LOG_STARTED_FROM_TIER: _log_started_from_tier,
    Kind.SEGMENT_ROLLED: lambda e: (
        f"broker {e.broker} closes a segment, the next begins at {e.details['base_offset']}"
    ),
    Kind.LOG_COMPACTED: lambda event: (
        f"broker {event.broker} compacts its log, {_count(event.details['records'], 'record')} gone"
    ),
    Kind.SEGMENT_UPLOADED: lambda event: (
        f"offsets {event.details['start_offset']} to {event.details['end_offset']} are in the tier"
    ),
    Kind.LOCAL_SEGMENTS_DELETED: lambda event: (
        f"broker {event.broker} deletes {_count(event.details['segments'], 'segment')} that the"
        f" tier has, its log begins at {event.details['local_log_start_offset']}"
    ),
    Kind.SEGMENT_EXPIRED: lambda event: (
        f"offsets {event.details['start_offset']} to {event.details['end_offset']} leave the tier"
    ),
    Kind.TIER_FORGOTTEN: lambda event: f"broker {event.broker} forgets the tier",
    Kind.TIER_LOST: lambda e: f"the tier loses {_count(e.details['objects'], 'object')}",
    Kind.TIER_FAILED: lambda e: f"broker {e.broker} fails with the tier: {e.details['error']}",
    Kind.TIER_FAULT_ADDED: _tier_fault,
    Kind.TIER_FAULT_REMOVED: lambda event: f"{_tier_fault(event)}, removed",
    Kind.TIER_FAULT_HIT: lambda event: f"{_tier_fault(event)}, hits {event.details['key']}",
    Kind.PUBLISH_REFUSED: _publish_refused,
    Kind.TRANSACTION_CHANGED: _transaction_changed,
    Kind.FAULT_ADDED: lambda event: f"{_fault(event)}, added",
    Kind.FAULT_REMOVED: lambda event: (
        f"{_fault(event)}, removed after {_count(event.details['hits'], 'hit')}"
    ),
    Kind.FAULT_HIT: _fault_hit,
    Kind.OTHER_PROTOCOL: lambda event: (
        f"{event.details['client_id'] or event.details['connection']} speaks another protocol,"
        f" {event.details['protocol']}"
    ),
    Kind.CLOCK_ADVANCED: lambda event: f"the clock advanced by {event.details['ms']} ms",
    Kind.VERB: _verb,
    Kind.VERB_REFUSED: _verb_refused,
    Kind.RECORDS_LOST: _records_lost,
    Kind.EVENTS_DROPPED: lambda event: (
        f"{_count(event.details['events'], 'event')} are not kept any more:"
        f" {shown_value(event.details['kinds'])}"
    ),
    Kind.RESET: lambda _: "---- reset ----",
    Kind.TRACE_STARTED: lambda _: "the trace begins",
    Kind.TOPIC_KNOWN: _topic_created,
    Kind.TRACE_ENDED: lambda _: "the trace ends",
}
