"""``fencepost serve``: read the options, run the cluster, say when it is ready."""

import json
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Final

from fencepost.broker.refusals import ControllerError, DataDirUnusable
from fencepost.broker.server.listener import PortUnavailable
from fencepost.broker.server.remote_urls import RemoteUnavailable
from fencepost.broker.server.run import Ready, ServeOptions, run
from fencepost.broker.server.tracefile import TraceUnavailable
from fencepost.cli.arguments import OptionError, parse
from fencepost.control import plane

CANNOT_START: Final = 2
_STANDARD: Final = range(3)
"""Input, output and error."""


def serve(arguments: Sequence[str]) -> int:
    """Serve until SIGTERM or SIGINT.

    :returns: 0 after a clean stop, 2 with one line on standard error when it cannot start.
    """
    _fill_standard_streams()
    try:
        options = parse(arguments, os.environ)
        run(options, plane.serve, partial(announce, options), plane.lines_of_trace)
    except (
        OptionError,
        PortUnavailable,
        TraceUnavailable,
        DataDirUnusable,
        RemoteUnavailable,
        ControllerError,
    ) as error:
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


def _fill_standard_streams() -> None:
    """Open what whoever started this process has closed, or a listener would take its number."""
    for descriptor in _STANDARD:
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w")
