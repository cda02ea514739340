"""What a follower was sent by its leader, as the journal has it, beside all that there is."""

from collections.abc import Iterator, Mapping
from typing import Final, cast

from fencepost.scenario.actions.context import (
    Action,
    ActionAnswer,
    ActionContext,
    PartitionBody,
    ScenarioClients,
)
from fencepost.verbs.answers.topics import PartitionState

_MAX_EXCHANGES: Final = 1000
"""Exchanges of the journal that are looked at, the newest."""


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


ACTIONS: Final = (
    Action(
        "replicated",
        None,
        ReplicatedBody,
        ReplicatedAnswer,
        "Tell what a follower was sent, and which share of the data that is; asks no broker.",
        _replicated,
    ),
)
