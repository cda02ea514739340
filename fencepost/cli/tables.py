"""What the command line shows of each answer: tables, and a row for each journal exchange."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from fencepost.cli.group_tables import group_answer
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
    line,
    moment,
)
from fencepost.cli.partition_tables import (
    partition_answer,
    partition_line,
    replica_parts,
    state_style,
)
from fencepost.cli.record_tables import record_answer
from fencepost.cli.transaction_tables import transaction_line, transaction_table
from fencepost.verbs import exchange_text
from fencepost.verbs.answers import Answer, Done, Health
from fencepost.verbs.answers.cluster import (
    BrokerState,
    ClockState,
    ClusterState,
    EventState,
    ExchangeState,
    TimelineState,
)
from fencepost.verbs.answers.faults import FaultState, TierFaultState
from fencepost.verbs.answers.groups import GroupsState, GroupState
from fencepost.verbs.answers.records import ExpectedRecords, ProducedRecords, RecordsState
from fencepost.verbs.answers.topics import (
    CompactionState,
    PartitionState,
    StepState,
    TierState,
    TopicState,
)
from fencepost.verbs.answers.transactions import TransactionsState, TransactionState
from fencepost.verbs.partition_text import join_numbers
from fencepost.verbs.timeline_text import timeline_text

EXCHANGE_HEADERS: Final = ("#", "time", "broker", "client", "request", "answer", "about")


def exchange_row(state: ExchangeState) -> tuple[Cell, ...]:
    """One row: a request, its answer, and whom and what it was about."""
    when = datetime.fromtimestamp(state.time_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
    return (
        str(state.number),
        Text(when, QUIET),
        str(state.broker),
        state.client_id or "-",
        Text(exchange_text.request_name(state), STRONG),
        _outcome(state),
        exchange_text.shortened(exchange_text.subjects(state)),
    )


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
    outcome = exchange_text.outcome(state)
    took = "" if state.elapsed_us is None else f", {state.elapsed_us / 1000:.1f} ms"
    style = ODD if state.response is None else GOOD if outcome == exchange_text.OK else BAD
    return Text(outcome if state.response is None else f"{outcome}{took}", style)


def one(answer: Answer) -> Sequence[Block]:
    """What is shown of an answer."""
    match answer:
        case PartitionState() | StepState() | TierState() | CompactionState():
            return partition_answer(answer)
        case ClusterState():
            return _cluster(answer)
        case ProducedRecords() | RecordsState() | ExpectedRecords():
            return record_answer(answer)
        case GroupsState() | GroupState():
            return group_answer(answer)
        case TransactionsState() | TransactionState():
            return [transaction_table(answer)]
        case BrokerState() | TopicState() | FaultState() | TierFaultState():
            return [many(type(answer), [answer])]
        case ClockState():
            return [_clock(answer)]
        case TimelineState() | EventState() | ExchangeState():
            return _history(answer)
        case Health() | Done():
            return [line("ok" if isinstance(answer, Health) else "done")]
        case _:
            return [line(f"{name}: {value}") for name, value in answer]


def _history(answer: TimelineState | EventState | ExchangeState) -> Sequence[Block]:
    match answer:
        case TimelineState():
            return [line(text) for text in timeline_text(answer)]
        case EventState():
            return [event(answer)]
        case ExchangeState():
            return exchange(answer)


def short(answer: Answer) -> Line:
    """An answer in one line, for lists."""
    match answer:
        case PartitionState():
            why = () if answer.explanation is None else (Text(f"; {answer.explanation}", ODD),)
            replicas = ("; replicas ", *replica_parts(answer))
            return line(*partition_line(answer).parts, *replicas, *why)
        case BrokerState():
            return line(Text(f"broker {answer.id}", STRONG), ": ", *broker_parts(answer))
        case FaultState():
            return line(Text(f"fault {answer.id}", STRONG), ": ", *fault_parts(answer))
        case EventState():
            return event(answer)
        case TransactionState():
            return transaction_line(answer)
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
    """Number, time, kind, and the line that words it."""
    return line(
        f"{state.number} ",
        Text(moment(state.time_ms), QUIET),
        " ",
        Text(state.kind, STRONG),
        f" {state.text}",
    )


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
