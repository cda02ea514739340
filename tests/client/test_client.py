from __future__ import annotations

import asyncio

import pytest

from fencepost.broker.controller import Fence
from fencepost.broker.faults.kinds import Delay
from fencepost.broker.faults.rules import FaultRule
from fencepost.broker.faults.selectors import Apis
from fencepost.broker.node import operator_actions
from fencepost.broker.server.server import Server
from fencepost.client.client import Client
from fencepost.client.errors import Disconnected, KafkaClientError, NoLeader, Unreachable
from fencepost.client.model import Partition
from fencepost.client.partitions import list_offsets
from fencepost.protocol.apis import BY_NAME
from tests.harness.in_process_server import HOST, sockets

ORDERS = Partition(topic="orders", index=0)


@pytest.mark.parametrize("bootstrap", ["", "here", "here:", "here:kafka", "a:1,b"])
def test_what_is_no_list_of_addresses_is_refused(bootstrap: str) -> None:
    with pytest.raises(ValueError, match="HOST:PORT"):
        Client(bootstrap)


async def test_it_finds_the_leader_and_keeps_the_connection(client: Client) -> None:
    leader = await client.leader("orders", 0)
    assert (await list_offsets(leader, ORDERS, -1)).offset == 0
    assert await client.leader("orders", 0) is leader


async def test_those_who_come_at_once_share_a_connection(client: Client) -> None:
    first, second = await asyncio.gather(client.broker(2), client.broker(2))
    assert first is second


async def test_a_broker_that_nobody_told_of(client: Client) -> None:
    with pytest.raises(Unreachable, match="broker 9"):
        await client.broker(9)


async def test_a_broker_that_goes_and_comes_back_is_connected_anew(
    client: Client, server: Server
) -> None:
    before = await client.broker(2)
    await list_offsets(before, ORDERS, -1)
    await server.kill_broker(2, Fence.NOW)
    with pytest.raises(Disconnected):
        await list_offsets(before, ORDERS, -1)
    with pytest.raises(Unreachable):
        await client.broker(2)
    await server.start_broker(2)
    after = await client.broker(2)
    assert after is not before
    assert (await list_offsets(after, ORDERS, -1)).error == 6


async def test_metadata_comes_from_whoever_answers(client: Client, server: Server) -> None:
    await client.refresh("orders")
    await server.kill_broker(1, Fence.NOW)
    client.forget()
    seen = await client.refresh("orders")
    assert sorted(seen.brokers) == [2, 3]
    leader = seen.partition("orders", 0)
    assert leader is not None
    assert leader.leader in (2, 3)


async def test_a_partition_that_nobody_leads(client: Client) -> None:
    with pytest.raises(NoLeader, match="orders-7"):
        await client.leader("orders", 7)


async def test_nobody_of_a_whole_list_answers() -> None:
    socks = sockets(2)
    bootstrap = ",".join(f"{HOST}:{sock.getsockname()[1]}" for sock in socks)
    for sock in socks:
        sock.close()
    async with Client(bootstrap) as client:
        with pytest.raises(KafkaClientError):
            await client.refresh()


async def test_everybody_is_asked_and_says_what_it_believes(client: Client, server: Server) -> None:
    await server.kill_broker(3, Fence.NOW)
    operator_actions.isolate(server.cluster, 2, from_controller=True, fence=Fence.NEVER)
    operator_actions.elect(server.cluster, "orders", 0, 2)
    believed = [each.partition("orders", 0) for each in await client.ask_all("orders")]
    found = {(each.leader, each.leader_epoch) for each in believed if each is not None}
    assert found == {(1, 0), (2, 1)}


async def test_whoever_hangs_is_not_waited_for_once_another_has_answered(
    client: Client, server: Server
) -> None:
    await client.refresh("orders")
    delay = FaultRule(api=Apis((BY_NAME["metadata"],)), action=Delay(30_000), broker=2)
    server.cluster.faults.add(delay)
    async with asyncio.timeout(15):
        answers = await client.ask_all("orders", linger_s=1.0)
    assert len(answers) == 2


async def test_anybody_who_accepts(client: Client, server: Server, bootstrap: str) -> None:
    await server.kill_broker(1, Fence.NOW)
    assert (await client.any_broker()).is_open
    for broker in (2, 3):
        await server.kill_broker(broker, Fence.NOW)
    async with Client(bootstrap) as late:
        with pytest.raises(Unreachable):
            await late.any_broker()
        with pytest.raises(Unreachable):
            await late.ask_all("orders")
