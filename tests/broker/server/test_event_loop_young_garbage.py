"""Young garbage is collected a little at a time, and not when the interpreter thinks of it."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Iterator

import pytest

from fencepost.broker.core.scheduler import ManualClock, Scheduler
from fencepost.broker.server.event_loop import LoopDriver, collect_young_garbage
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.codec import encode_request
from fencepost.protocol.messages.metadata import MetadataRequest
from tests.harness.in_process_server import running
from tests.harness.turns import run_for_a_turn
from tests.harness.wait import eventually


class Cycle:
    """Garbage, once it is let go: it refers to itself."""

    def __init__(self) -> None:
        self.itself = self


def make_garbage() -> weakref.ref[Cycle]:
    return weakref.ref(Cycle())


def is_collected(garbage: weakref.ref[Cycle]) -> Callable[[], bool]:
    return lambda: garbage() is None


@pytest.fixture(autouse=True)
def _patience() -> Iterator[None]:
    """Keeps the interpreter from collecting by itself."""
    thresholds = gc.get_threshold()
    gc.set_threshold(1_000_000_000)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


async def test_it_is_collected_while_clients_are_served() -> None:
    async with running() as server:
        address = server.cluster.addresses[1][0]
        reader, writer = await asyncio.open_connection(address.host, address.port)
        try:
            is_gone = is_collected(make_garbage())
            writer.writelines(encode_request(BY_NAME["metadata"], 12, 1, "c", MetadataRequest()))
            await asyncio.wait_for(reader.readexactly(4), 5)
            await eventually(is_gone)
        finally:
            writer.close()
            await writer.wait_closed()


async def test_it_is_collected_after_a_turn_of_work_that_takes_several() -> None:
    scheduler = Scheduler(ManualClock())
    driver = LoopDriver(scheduler, asyncio.get_running_loop())
    garbage = make_garbage()
    scheduler.soon(run_for_a_turn)
    scheduler.soon(lambda: None)
    assert driver.run_turn()
    assert garbage() is None
    garbage = make_garbage()
    assert not driver.run_turn()
    assert garbage() is not None
    driver.stop()


def test_it_is_left_where_collection_is_switched_off() -> None:
    garbage = make_garbage()
    gc.disable()
    try:
        collect_young_garbage()
        assert garbage() is not None
    finally:
        gc.enable()
    collect_young_garbage()
    assert garbage() is None
