"""A request of the journal and its answer, in a row: what it was about, and what came of it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from fencepost.cli.blocks import BAD, GOOD, ODD, QUIET, STRONG, Block, Cell, Text, line
from fencepost.protocol.errors import ErrorCode
from fencepost.verbs.answers.seen import ExchangeState

EXCHANGE_HEADERS: Final = ("#", "time", "broker", "client", "request", "answer", "about")

_TOPICS: Final = ("name", "topic", "topic_name", "topic_id")
_PARTITIONS: Final = ("partition_index", "partition", "index", "partition_id")
_WHOSE: Final = ("group_id", "transactional_id", "key", "coordinator_keys")
_SHORT_ID: Final = 8
_MOST: Final = 6
"""Topics and partitions that a row names."""


def exchange_row(state: ExchangeState) -> tuple[Cell, ...]:
    """One row: a request, its answer, and whom and what it was about."""
    when = datetime.fromtimestamp(state.time_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
    return (
        str(state.number),
        Text(when, QUIET),
        str(state.broker),
        state.client_id or "-",
        Text(f"{state.api} v{state.version}", STRONG),
        _outcome(state),
        _shortened(list(dict.fromkeys(_about(state.request)))),
    )


def exchange(state: ExchangeState) -> Sequence[Block]:
    """All of one: a line, then the request and its answer as JSON."""
    number, when, broker, client, request, outcome, _ = exchange_row(state)
    head = line(number, " ", when, " broker ", broker, " ", client, " ", request, ": ", outcome)
    bodies = (("request", state.request), ("answer", state.response))
    return [
        head,
        *(line(Text(f"{name} ", QUIET), json.dumps(body, indent=2)) for name, body in bodies),
    ]


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
    for each in _inside(value):
        yield from _errors(each)


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:  # a fault may answer any code
        return f"error {code}"


def _about(value: object) -> Iterator[str]:
    """Groups, transactions, topics and partitions that a request names."""
    if isinstance(value, Mapping):
        for name in _WHOSE:
            if value.get(name):
                yield str(value[name])
        topic = _topic(value)
        if topic is not None:
            partitions = list(_partitions(value))
            yield from (f"{topic}-{each}" for each in partitions)
            if not partitions:
                yield topic
    for each in _inside(value):
        yield from _about(each)


def _inside(value: object) -> Iterator[object]:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _topic(value: Mapping[str, object]) -> str | None:
    """The topic that an element is about, by its name if that is there."""
    for name in _TOPICS:
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
                found = (each[name] for name in _PARTITIONS if isinstance(each.get(name), int))
                yield from (index for index in found if isinstance(index, int))


def _shortened(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more
