"""A served process: it does not go on without a part that it needs."""

import sys
from typing import Final

from tests.harness.run import run

WITHOUT_CONTROL: Final = """
from fencepost.broker.server.run import ServeOptions, run
from fencepost.protocol.listener_text import ListenerSpec

async def control(server, sock, stop):
    raise RuntimeError("no control API here")

options = ServeOptions(listeners=(ListenerSpec(port=0),), control_port=0)
run(options, control, lambda ready: print("ready"), lambda: None)
"""


def test_a_control_api_that_fails_ends_the_process_and_says_why() -> None:
    done = run([sys.executable, "-c", WITHOUT_CONTROL], code=1)
    assert done.out == "ready\n"
    assert done.err.endswith("RuntimeError: no control API here\n")


COLLECTING: Final = """
import gc
from fencepost.broker.server.run import tune_garbage_collection

largest = 0

def look(phase, info):
    global largest
    if phase == "start":
        young = range(info["generation"] + 1)
        largest = max(largest, sum(len(gc.get_objects(generation)) for generation in young))

tune_garbage_collection()
gc.callbacks.append(look)
kept = [[] for _ in range(300_000)]
print(largest)
"""


def test_the_garbage_collector_looks_at_few_objects_at_a_time_however_many_a_request_makes() -> (
    None
):
    done = run([sys.executable, "-c", COLLECTING])
    assert 0 < int(done.out) < 15_000, "all connections wait as long as that takes"
