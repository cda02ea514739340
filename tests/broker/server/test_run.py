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
