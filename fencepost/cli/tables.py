"""What the command line shows of each answer: tables, and a row for each journal exchange."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from fencepost.cli.output import (
    BAD,
    GOOD,
    ODD,
    QUIET,
    STRONG,
    Block,
    Cell,
    Line,
    Table,
    Text,
    join_numbers,
    line,
)
from fencepost.cli.partition_tables import (
    partition_answer,
    partition_line,
    replica_parts,
    state_style,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.verbs.answers import Answer, Done, Health
from fencepost.verbs.answers.cluster import (
    BrokerState,
    ClockState,
    ClusterState,
    EventState,
    ExchangeState,
    FaultState,
    TierFaultState,
)
from fencepost.verbs.answers.topics import (
    CompactionState,
    PartitionState,
    StepState,
    TierState,
    TopicState,
)

EXCHANGE_HEADERS: Final = ("#", "time", "broker", "client", "request", "answer", "about")

_TOPIC_FIELDS: Final = ("name", "topic", "topic_name", "topic_id")
_PARTITION_FIELDS: Final = ("partition_index", "partition", "index", "partition_id")
_ID_FIELDS: Final = ("group_id", "transactional_id", "key", "coordinator_keys")
_SHORT_ID: Final = 8
_MAX_SUBJECTS: Final = 6
"""Topics and partitions that a row names."""


def exchange_row(state: ExchangeState) -> tuple[Cell, ...]:
    """One row: a request, its answer, and whom and what it was about."""
    when = datetime.fromtimestamp(state.time_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
    return (
        str(state.number),
        Text(when, QUIET),
        str(state.broker),
        state.client_id or "-",
        Text(f"{state.api} v{state.version}{_in_dialect(state)}", STRONG),
        _outcome(state),
        _shortened(list(dict.fromkeys(_subjects(state.request)))),
    )


def _in_dialect(state: ExchangeState) -> str:
    return "" if state.dialect is None else f" of {state.dialect}"


def exchange(state: ExchangeState) -> Sequence[Block]:
    """All of one: a line, then the request and its answer as JSON."""
    number, when, broker, client, request, outcome, _ = exchange_row(state)
    head = line(number, " ", when, " broker ", broker, " ", client, " ", request, ": ", outcome)
    bodies = (("request", state.request), ("answer", state.response))
    return [head, *(each for name, body in bodies for each in _json_lines(name, body))]


def _json_lines(name: str, body: object) -> Iterator[Line]:
    first, *others = json.dumps(body, indent=2).splitlines()
    yield line(Text(f"{name} ", QUIET), first)
    yield from map(line, others)


def _outcome(state: ExchangeState) -> Text:
    """The errors in the answer, by name, each once; and how long it took."""
    if state.response is None:
        return Text("no answer", ODD)
    took = "" if state.elapsed_us is None else f", {state.elapsed_us / 1000:.1f} ms"
    errors = ", ".join(dict.fromkeys(_errors(state.response)))
    return Text(f"{errors or 'ok'}{took}", BAD if errors else GOOD)


def _errors(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        code = value.get("error_code")
        if isinstance(code, int) and code:
            yield _error_name(code)
    for each in _values_of(value):
        yield from _errors(each)


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:  # a fault may answer any code
        return f"error {code}"


def _subjects(value: object) -> Iterator[str]:
    """Groups, transactions, topics and partitions that a request names."""
    if isinstance(value, Mapping):
        for name in _ID_FIELDS:
            if value.get(name):
                yield str(value[name])
        topic = _topic(value)
        if topic is not None:
            partitions = list(_partitions(value))
            yield from (f"{topic}-{each}" for each in partitions)
            if not partitions:
                yield topic
    for each in _values_of(value):
        yield from _subjects(each)


def _values_of(value: object) -> Iterator[object]:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _topic(value: Mapping[str, object]) -> str | None:
    """The topic that an element is about, by its name if that is there."""
    for name in _TOPIC_FIELDS:
        found = value.get(name)
        if isinstance(found, str):
            return found[:_SHORT_ID] if name == "topic_id" else found
    return None


def _partitions(value: Mapping[str, object]) -> Iterator[int]:
    """Indices of the partitions listed in an element."""
    for listed in value.values():
        for each in listed if isinstance(listed, list) else ():
            if isinstance(each, int):
                yield each
            elif isinstance(each, Mapping):
                found = (
                    each[name] for name in _PARTITION_FIELDS if isinstance(each.get(name), int)
                )
                yield from (index for index in found if isinstance(index, int))


def _shortened(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_SUBJECTS} more" if len(names) > _MAX_SUBJECTS else ""
    return ", ".join(names[:_MAX_SUBJECTS]) + more


def one(answer: Answer) -> Sequence[Block]:
    """What is shown of an answer."""
    match answer:
        case PartitionState() | StepState() | TierState() | CompactionState():
            return partition_answer(answer)
        case ClusterState():
            return _cluster(answer)
        case BrokerState() | TopicState() | FaultState() | TierFaultState():
            return [many(type(answer), [answer])]
        case ClockState():
            return [_clock(answer)]
        case EventState():
            return [event(answer)]
        case ExchangeState():
            return exchange(answer)
        case Health() | Done():
            return [line("ok" if isinstance(answer, Health) else "done")]
        case _:
            return [line(f"{name}: {value}") for name, value in answer]


def short(answer: Answer) -> Line:
    """An answer in one line, for lists."""
    match answer:
        case PartitionState():
            return line(*partition_line(answer).parts, "; replicas ", *replica_parts(answer))
        case BrokerState():
            return line(Text(f"broker {answer.id}", STRONG), ": ", *broker_parts(answer))
        case FaultState():
            return line(Text(f"fault {answer.id}", STRONG), ": ", *fault_parts(answer))
        case EventState():
            return event(answer)
        case _:
            return line(", ".join(f"{name}: {value}" for name, value in answer))


def many(kind: type[Answer], answers: Sequence[Answer]) -> Table:
    """One row an answer.

    :param kind: Of all of them.
    """
    if kind not in _ROWS:
        headers = tuple(kind.model_fields)
        rows = (tuple(str(value) for _, value in each) for each in answers)
        return Table(headers, tuple(rows))
    headers, row = _ROWS[kind]
    return Table(headers, tuple(row(each) for each in answers))


# -- topics ----------------------------------------------------------------------


def _topic_row(state: TopicState) -> tuple[Cell, ...]:
    configs = ", ".join(f"{name}={value}" for name, value in state.configs.items())
    return (
        Text(state.name, QUIET if state.internal else STRONG),
        str(state.partitions),
        str(state.replication_factor),
        configs or "-",
        state.topic_id,
    )


# -- the cluster --------------------------------------------------------------------------------


def _cluster(state: ClusterState) -> Sequence[Block]:
    features = ", ".join(f"{name} {level}" for name, level in state.features.items())
    return [
        line(
            f"cluster {state.cluster_id}: controller {state.controller}",
            *_featured(features),
            "" if state.dialect is None else f", dialect {state.dialect}",
        ),
        _clock(state.clock),
        many(BrokerState, state.brokers),
    ]


def _featured(features: str) -> Iterator[str]:
    if features:
        yield f", features {features}"


def _broker_row(state: BrokerState) -> tuple[Cell, ...]:
    return (
        str(state.id),
        f"{state.host}:{state.port}",
        Text(state.state, state_style(state.state)),
        Text("yes" if state.registered else "unregistered", BAD) if state.fenced else "no",
        str(state.epoch),
        Text(", ".join(map(str, state.isolated_from)) or "-", ODD if state.isolated_from else ""),
    )


def broker_parts(state: BrokerState) -> Iterator[Cell]:
    """What a broker is doing: ``running, fenced, isolated from controller``."""
    yield Text(state.state, state_style(state.state))
    if state.fenced:
        yield Text(", fenced" if state.registered else ", unregistered", BAD)
    if state.isolated_from:
        yield Text(f", isolated from {join_numbers(state.isolated_from)}", ODD)


def _clock(clock: ClockState) -> Line:
    """What time it is."""
    return line(f"{moment(clock.now_ms)}, {clock.now_ms} ms, {clock.mode} clock")


def moment(time_ms: int) -> str:
    """Such as ``2026-01-31T12:00:00.000Z``.

    :param time_ms: Since 1970-01-01 UTC.
    """
    when = datetime.fromtimestamp(time_ms / 1000, UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


# -- faults -------------------------------------------------------------------------------------


def _fault_row(state: FaultState) -> tuple[Cell, ...]:
    return (
        str(state.id),
        Text(_apis(state), STRONG),
        _actions(state),
        Text(str(state.hits), ODD if state.hits else ""),
        Text("always" if state.left is None else str(state.left), "" if state.left != 0 else QUIET),
        ", ".join(_selectors(state)) or "all",
    )


def _tier_fault_row(state: TierFaultState) -> tuple[Cell, ...]:
    told = {"error": state.error, "delay": state.delay_ms}
    return (
        str(state.id),
        Text(state.operation, STRONG),
        _action(told),
        Text(str(state.hits), ODD if state.hits else ""),
        Text("always" if state.left is None else str(state.left), "" if state.left != 0 else QUIET),
    )


def fault_parts(state: FaultState) -> Iterator[Cell]:
    """``Produce: delay 200, hits 3, left 2, topic orders``."""
    yield Text(_apis(state), STRONG)
    yield f" {_actions(state)}, hits {state.hits}"
    if state.left is not None:
        yield Text(f", left {state.left}", "" if state.left else QUIET)
    yield "".join(f", {each}" for each in _selectors(state))


def _apis(state: FaultState) -> str:
    return state.api if isinstance(state.api, str) else ", ".join(state.api)


def _actions(state: FaultState) -> str:
    """Such as ``delay 200``; those of a sequence one after the other."""
    steps = [state.action] if state.sequence is None else state.sequence
    return ", ".join(map(_action, steps))


def _action(action: Mapping[str, object]) -> str:
    """Such as ``delay 200``."""
    return ", ".join(
        name if value is True else f"{name} {value}"
        for name, value in action.items()
        if value is not None
    )


def _selectors(state: FaultState) -> Iterator[str]:
    """Which requests it hits."""
    for name, value in state:
        if name == "record" and value is not None:
            yield from (f"record {field} {_header_text(each)}" for field, each in value.items())
        elif name not in _NO_SELECTORS and value is not None:
            yield f"{name.replace('_', ' ')} {value}"
    if state.after:
        yield f"after {state.after}"
    if state.probability != 1:
        yield f"probability {state.probability}"


def _header_text(value: object) -> str:
    """A header as NAME=VALUE, and any other text as it is."""
    return "=".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


# -- events -------------------------------------------------------------------------------------


def event(state: EventState) -> Line:
    """Number, time, what happened, where, and all that there is to say of it."""
    where = "" if state.topic is None else f" {state.topic}"
    if state.partition is not None:
        where += f"-{state.partition}"
    if state.broker is not None:
        where += f" broker {state.broker}"
    details = "".join(f" {name}={_plain(value)}" for name, value in state.details.items())
    return line(
        f"{state.number} ",
        Text(moment(state.time_ms), QUIET),
        " ",
        Text(state.kind, STRONG),
        where,
        Text(details, QUIET),
    )


def _plain(value: object) -> str:
    if isinstance(value, Mapping):
        return _action(value)
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


_NO_SELECTORS: Final = frozenset(
    {"id", "hits", "left", "api", "count", "after", "probability", "action", "sequence"}
)
"""What a fault consists of besides."""
_Row = Callable[..., tuple[Cell, ...]]
_ROWS: Final[Mapping[type[Answer], tuple[tuple[str, ...], _Row]]] = {
    TopicState: (("topic", "partitions", "replicas", "configs", "topic id"), _topic_row),
    BrokerState: (
        ("broker", "address", "state", "fenced", "epoch", "isolated from"),
        _broker_row,
    ),
    FaultState: (("fault", "api", "action", "hits", "left", "hits requests of"), _fault_row),
    TierFaultState: (("tier fault", "operation", "action", "hits", "left"), _tier_fault_row),
    ExchangeState: (EXCHANGE_HEADERS, exchange_row),
}
