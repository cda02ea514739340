"""What replicas leave after resets is collected, although the interpreter hardly looks there."""

from __future__ import annotations

import gc
import weakref

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.server.server import WORTH_COLLECTING, Server
from fencepost.storage.log.segmented_log import SegmentedLog
from tests.harness.in_process_server import running
from tests.harness.wait import eventually

PARTITIONS = WORTH_COLLECTING // 3 + 1


def number_of_replicas(server: Server) -> int:
    return sum(len(broker.replicas) for broker in server.cluster.brokers.values())


def number_of_logs() -> int:
    return sum(type(each) is SegmentedLog for each in gc.get_objects())


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
            logs: list[int] = []
            garbage = weakref.ref(cycle, lambda _: logs.append(number_of_logs()))
            del cycle
            before, dropped = number_of_logs(), number_of_replicas(server)
            await server.reset()
            await eventually(lambda: garbage() is None)
            assert logs[0] <= before - dropped, "logs that are yet to be freed were scanned as well"
        finally:
            gc.enable()
