"""``fencepost serve``: read the options, run the cluster, say when it is ready."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import Sequence
from functools import partial
from typing import Final

from fencepost.broker.controller import ControllerError
from fencepost.broker.server.listener import PortUnavailable
from fencepost.broker.server.run import ControlPlane, Ready, ServeOptions, run
from fencepost.broker.server.server import Server
from fencepost.cli.arguments import OptionError, parse

CANNOT_START: Final = 2


def serve(arguments: Sequence[str]) -> int:
    """Serve until SIGTERM or SIGINT.

    :returns: 0 after a clean stop, 2 with one line on standard error when it cannot start.
    """
    try:
        options = parse(arguments, os.environ)
        run(options, control_plane, partial(announce, options))
    except (OptionError, PortUnavailable, ControllerError) as error:
        print(f"fencepost serve: {error}", file=sys.stderr)
        return CANNOT_START
    return 0


def announce(options: ServeOptions, ready: Ready) -> None:
    """Tell whoever started this process where everything listens: one line of JSON."""
    line = {
        "bootstrap": ready.bootstrap,
        "control": ready.control,
        "pid": ready.pid,
        "seed": options.seed,
    }
    print(json.dumps(line), flush=True)


async def control_plane(server: Server, sock: socket.socket, stop: asyncio.Event) -> None:
    """Serve the control API. Its imports take longer than all else, so nobody waits for them."""
    serve_control = await asyncio.to_thread(_load_control)
    await serve_control(server, sock, stop)


def _load_control() -> ControlPlane:
    from fencepost.control.plane import serve as serve_control

    return serve_control
