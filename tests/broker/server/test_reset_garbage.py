"""What replicas leave after resets is collected, although the interpreter hardly looks there."""

from __future__ import annotations

import gc
import weakref

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.server.server import WORTH_COLLECTING, Server
from tests.harness.in_process_server import running
from tests.harness.wait import eventually

PARTITIONS = WORTH_COLLECTING // 3 + 1


def number_of_replicas(server: Server) -> int:
    return sum(len(broker.replicas) for broker in server.cluster.brokers.values())


class Cycle:
    """Garbage, once it is let go: it refers to itself."""

    def __init__(self) -> None:
        self.itself = self


async def test_garbage_is_collected_after_a_reset_of_a_large_cluster() -> None:
    topic = NewTopic(name="wide", partitions=PARTITIONS, replication_factor=3, configs={})
    async with running() as server:
        gc.disable()
        try:
            server.cluster.controller.create_topic(topic)
            await eventually(lambda: number_of_replicas(server) > WORTH_COLLECTING)
            cycle = Cycle()
            gc.collect()  # from now on it has lived for long
            garbage = weakref.ref(cycle)
            del cycle
            await server.reset()
            await eventually(lambda: garbage() is None)
        finally:
            gc.enable()
