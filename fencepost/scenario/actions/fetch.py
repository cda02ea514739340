"""Fetch, as a client of a scenario does it; and what a follower was sent, as the journal has it."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, cast

from msgspec import Meta

from fencepost.client.batches import FetchedRecord
from fencepost.client.model import Fetched, Isolation
from fencepost.client.partitions import fetch
from fencepost.scenario.actions.context import (
    Action,
    ActionAnswer,
    ActionContext,
    IsolationLevel,
    LeaderAnswer,
    Milliseconds,
    PartitionBody,
    ScenarioClients,
)
from fencepost.verbs.answers import Answer
from fencepost.verbs.answers.topics import PartitionState

_MAX_EXCHANGES: Final = 1000
"""Exchanges of the journal that are looked at, the newest."""


class FetchBody(PartitionBody):
    """Records from a partition."""

    offset: Annotated[int, Meta(ge=0)] = 0
    epoch: int = -1
    """The current leader epoch, as the client believes; -1: not said."""
    last_epoch: int = -1
    """The epoch of the record before the offset; -1: not said."""
    isolation: IsolationLevel = "read_uncommitted"
    wait_ms: Milliseconds = 0
    """How long the broker may wait for ``min_bytes``."""
    min_bytes: Annotated[int, Meta(ge=0)] = 1
    max_bytes: Annotated[int, Meta(ge=0)] = 1 << 20
    rack: str = ""


class DivergingAnswer(Answer):
    """Where the logs part."""

    epoch: int
    end_offset: int


class RecordAnswer(Answer):
    """A record as text."""

    offset: int
    epoch: int
    timestamp: int
    key: str | None
    value: str | None
    headers: dict[str, str | None]


class FetchAnswer(ActionAnswer):
    """Records and offsets."""

    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    diverging: DivergingAnswer | None
    leader: LeaderAnswer | None
    preferred_read_replica: int
    values: tuple[str | None, ...]
    """Of the records."""
    records: tuple[RecordAnswer, ...]
    next_offset: int
    """Where to go on."""
    corrupt: bool
    """Whether a batch is broken; it and all behind it are left out."""
    corruption: str | None
    """What is wrong with it."""


async def _fetch(clients: ScenarioClients, context: ActionContext, body: FetchBody) -> FetchAnswer:
    connection, partition = await clients.partition_connection(context, body)
    fetched = await fetch(
        connection,
        partition,
        body.offset,
        epoch=body.epoch,
        last_epoch=body.last_epoch,
        isolation=Isolation[body.isolation.upper()],
        wait_ms=body.wait_ms,
        min_bytes=body.min_bytes,
        max_bytes=body.max_bytes,
        rack=body.rack,
        version=body.version,
        timeout_s=context.timeout_s,
    )
    return _fetch_answer(context, fetched, body.offset)


def _fetch_answer(context: ActionContext, fetched: Fetched, offset: int) -> FetchAnswer:
    content, diverging, leader = fetched.content, fetched.diverging, fetched.leader
    records = tuple(map(_record_answer, content.records))
    return FetchAnswer(
        **context.answer_fields(fetched.error, fetched),
        high_watermark=fetched.high_watermark,
        last_stable_offset=fetched.last_stable_offset,
        log_start_offset=fetched.log_start_offset,
        diverging=None
        if diverging is None
        else DivergingAnswer(epoch=diverging[0], end_offset=diverging[1]),
        leader=None if leader is None else LeaderAnswer(id=leader[0], epoch=leader[1]),
        preferred_read_replica=fetched.preferred_read_replica,
        values=tuple(each.value for each in records),
        records=records,
        next_offset=offset if content.next_offset is None else content.next_offset,
        corrupt=content.corrupt is not None,
        corruption=content.corrupt,
    )


def _record_answer(record: FetchedRecord) -> RecordAnswer:
    return RecordAnswer(
        offset=record.offset,
        epoch=record.epoch,
        timestamp=record.timestamp,
        key=as_text(record.key),
        value=as_text(record.value),
        headers={name: as_text(value) for name, value in record.headers},
    )


def as_text(value: bytes | None) -> str | None:
    """A key, a value or a header for a reader: what is not UTF-8 is escaped."""
    return None if value is None else value.decode("utf-8", "backslashreplace")


class ReplicatedBody(PartitionBody):
    """A follower, of which is told what it was sent."""

    replica: int
    """Broker id."""


class ReplicatedAnswer(ActionAnswer):
    """What a follower was sent since the scenario began, as far back as the journal goes."""

    first_offset: int
    """Of the first batch; -1 where it was sent nothing."""
    last_offset: int
    records: int
    bytes: int
    """Of all batches that it was sent."""
    of_bytes: int
    """Of the whole log: in the tier, and here where it is not tiered yet."""
    percent: float
    """The one of the other."""


async def _replicated(
    clients: ScenarioClients, context: ActionContext, body: ReplicatedBody
) -> ReplicatedAnswer:
    """Add up the batches that a replica's Fetches were answered with."""
    verbs = clients.control.verbs
    state = await verbs.partition(body.topic, body.partition)
    exchanges = await verbs.trace(
        api="Fetch",
        client_id=f"broker-{body.replica}-fetcher-0",
        topic=body.topic,
        source="brokers",
        since=clients.control.began_at,
        limit=_MAX_EXCHANGES,
    )
    batches = [
        batch
        for exchange in exchanges
        if exchange.response is not None
        for batch in _sent_batches(exchange.response, body.partition)
    ]
    sent, there = sum(each["bytes"] for each in batches), _log_bytes(state)
    return ReplicatedAnswer(
        error="NONE",
        failed=None,
        broker=context.broker,
        version=None,
        throttle_time_ms=0,
        elapsed_ms=0,
        first_offset=min((each["base_offset"] for each in batches), default=-1),
        last_offset=max((each["last_offset"] for each in batches), default=-1),
        records=sum(each["count"] for each in batches),
        bytes=sent,
        of_bytes=there,
        percent=round(100 * sent / there, 1) if there else 0.0,
    )


def _sent_batches(response: Mapping[str, object], index: int) -> Iterator[Mapping[str, int]]:
    for topic in cast("list[Mapping[str, object]]", response["responses"]):
        for partition in cast("list[Mapping[str, object]]", topic["partitions"]):
            records = cast("Mapping[str, object] | None", partition["records"])
            if partition["partition_index"] == index and records is not None:
                yield from cast("list[Mapping[str, int]]", records["batches"])


def _log_bytes(state: PartitionState) -> int:
    """Of the whole log: what is in the tier, and what only the leader has."""
    leader = next(each for each in state.replicas if each.broker == state.leader)
    tiered = () if state.remote is None else state.remote.segments
    end = max((each.end_offset for each in tiered), default=-1)
    local = sum(each.bytes for each in leader.segments if each.base_offset > end)
    return local + sum(each.bytes for each in tiered)


def _share_sent(given: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    return (
        f"broker {given['replica']} was sent offsets {answer['first_offset']} to "
        f"{answer['last_offset']}, {answer['bytes']} of {answer['of_bytes']} bytes: "
        f"{answer['percent']} %"
    )


ACTIONS: Final = (
    Action("fetch", "Fetch", FetchBody, FetchAnswer, "Fetch records from an offset on.", _fetch),
    Action(
        "replicated",
        None,
        ReplicatedBody,
        ReplicatedAnswer,
        "Tell what a follower was sent, and which share of the data that is; asks no broker.",
        _replicated,
        _share_sent,
    ),
)
