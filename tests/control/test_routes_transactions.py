"""Transactions over HTTP: what a test sees of them, and how it ends and holds them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

import pytest

from fencepost.broker.core.waits import Wait
from fencepost.client import (
    Client,
    NewRecord,
    Partition,
    TransactionalProducer,
    TransactionError,
)
from fencepost.control import routes_transactions
from tests.control.test_metrics import scrape
from tests.harness.control_client import Json, ok, refused

if TYPE_CHECKING:
    import httpx

    from fencepost.broker.server.server import Server

ID: Final = "/v1/transactions/copier%2F1"
"""Of a transactional id with a slash."""
PLACE: Final = {"topic": "t", "partition": 0}
TP: Final = Partition(topic="t", index=0)


@pytest.fixture
def configs() -> dict[str, str]:
    return {"transaction.state.log.num.partitions": "1"}


@pytest.fixture
async def producer(
    server: Server, control: httpx.AsyncClient
) -> AsyncIterator[TransactionalProducer]:
    """With a committed record, and another one in an open transaction."""
    await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1, 2, 3]]})
    brokers = (await ok(control, "GET", "/v1/cluster"))["brokers"]
    bootstrap = ",".join(f"{each['host']}:{each['port']}" for each in brokers)
    async with Client(bootstrap) as client:
        made = TransactionalProducer(client, "copier/1")
        await made.init()
        async with made.transaction():
            await made.send(TP, [NewRecord(value=b"a", timestamp=0)])
        await made.begin()
        await made.send(TP, [NewRecord(value=b"b", timestamp=0)])
        yield made


async def values(
    control: httpx.AsyncClient, isolation: str, query: str = ""
) -> list[tuple[Json, Json]]:
    """Value and transaction of each record."""
    path = f"/v1/topics/t/partitions/0/records?isolation={isolation}{query}"
    records = (await ok(control, "GET", path))["records"]
    return [(each["value"], each["transaction"]) for each in records]


async def test_a_transaction_is_shown(
    control: httpx.AsyncClient, producer: TransactionalProducer
) -> None:
    state = await ok(control, "GET", ID)
    assert await ok(control, "GET", "/v1/transactions") == {"transactions": [state]}
    assert state.pop("start_ms") > 0
    producer_id, epoch = producer.producer
    assert state == {
        "transactional_id": "copier/1",
        "producer_id": producer_id,
        "producer_epoch": epoch,
        "state": "Ongoing",
        "partitions": ["t-0"],
        "held": [],
        "timeout_ms": 60_000,
        "coordinator": state["coordinator"],
        "state_partition": 0,
    }
    metrics = await scrape(control)
    assert metrics.number("transactions", state="Ongoing") == 1
    assert metrics.number("transaction_markers_held") == 0


async def test_records_say_what_became_of_their_transaction(
    control: httpx.AsyncClient, producer: TransactionalProducer
) -> None:
    assert await values(control, "read_uncommitted") == [("a", "committed"), ("b", "ongoing")]
    assert await values(control, "read_committed") == [("a", "committed")]
    aborted = await ok(control, "POST", f"{ID}/abort")
    assert (aborted["state"], aborted["partitions"]) == ("CompleteAbort", [])
    assert await values(control, "read_uncommitted") == [("a", "committed"), ("b", "aborted")]
    assert await values(control, "read_committed") == [("a", "committed")]
    with pytest.raises(TransactionError):
        await producer.commit()
    expected = {"value": "b", "isolation": "read_committed", "timeout_ms": 50}
    missing = await control.post("/v1/topics/t/records/expect", json=expected)
    assert missing.status_code == 409


async def test_the_timeline_ends_with_the_transactions_that_are_open(
    control: httpx.AsyncClient, producer: TransactionalProducer
) -> None:
    producer_id, epoch = producer.producer
    coordinator = (await ok(control, "GET", ID))["coordinator"]
    assert (await ok(control, "GET", "/v1/timeline"))["transactions"] == [
        (
            f"copier/1: Ongoing of t-0, producer {producer_id} in epoch {epoch},"
            f" coordinator {coordinator}"
        )
    ]
    await producer.commit()
    assert (await ok(control, "GET", "/v1/timeline"))["transactions"] == []


async def test_as_many_committed_records_are_read_as_are_asked_for(
    control: httpx.AsyncClient, producer: TransactionalProducer
) -> None:
    await producer.abort()
    for value in (b"c", b"d"):
        async with producer.transaction():
            await producer.send(TP, [NewRecord(value=value, timestamp=0)])
    await producer.begin()
    await producer.send(TP, [NewRecord(value=b"e", timestamp=0)] * 5)
    await producer.abort()
    committed = [(value, "committed") for value in "acd"]
    assert await values(control, "read_committed", "&limit=2") == committed[:2]
    assert await values(control, "read_committed", "&limit=3") == committed
    assert await values(control, "read_committed", "&last=3") == committed
    assert await values(control, "read_committed", "&last=2") == committed[1:]


async def test_a_held_marker_is_waited_for_no_longer(
    control: httpx.AsyncClient, producer: TransactionalProducer
) -> None:
    held = await ok(control, "POST", f"{ID}/hold", PLACE)
    assert held["held"] == ["t-0"]
    await producer.commit()
    assert (await ok(control, "GET", ID))["state"] == "PrepareCommit"
    assert await values(control, "read_uncommitted") == [("a", "committed"), ("b", "ongoing")]
    metrics = await scrape(control)
    assert metrics.number("transaction_markers_held") == 1
    released = await ok(control, "POST", f"{ID}/release", PLACE)
    assert (released["state"], released["held"]) == ("CompleteCommit", [])
    assert await values(control, "read_committed") == [("a", "committed"), ("b", "committed")]


async def test_markers_that_do_not_come_in_time_are_a_refusal_with_the_transaction(
    server: Server,
    control: httpx.AsyncClient,
    producer: TransactionalProducer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert producer.producer[0] >= 0
    monkeypatch.setattr(routes_transactions, "DEFAULT_TIMEOUT_MS", 100)
    for broker in server.cluster.brokers.values():
        monkeypatch.setattr(broker.transactions.channel, "send", lambda _: Wait())
    late = await control.post(f"{ID}/abort")
    answer = late.json()
    assert (late.status_code, answer["error"]) == (409, "REQUEST_TIMED_OUT")
    assert answer["transaction"]["state"] == "PrepareAbort"
    assert "t-0 has no marker yet" in answer["message"]


async def test_what_there_is_not_is_refused(
    control: httpx.AsyncClient, producer: TransactionalProducer
) -> None:
    assert producer.producer[0] >= 0
    nowhere = "/v1/transactions/nope"
    not_found = "TRANSACTIONAL_ID_NOT_FOUND"
    assert (await refused(control, "GET", nowhere))[1] == not_found
    assert (await refused(control, "POST", f"{nowhere}/abort"))[1] == not_found
    assert (await refused(control, "POST", f"{ID}/release", PLACE))[1] == "INVALID_REQUEST"
    assert (await refused(control, "POST", f"{ID}/expire"))[1] == "INVALID_REQUEST"
    hanging = {**PLACE, "producer_id": 99}
    assert (await refused(control, "POST", "/v1/transactions/abort", hanging))[
        1
    ] == "INVALID_TXN_STATE"
