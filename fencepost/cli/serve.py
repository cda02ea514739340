"""``fencepost serve``: read the options, run the cluster, say when it is ready."""

import json
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Final

from fencepost.broker.refusals import ControllerError
from fencepost.broker.server.listener import PortUnavailable
from fencepost.broker.server.run import Ready, ServeOptions, run
from fencepost.cli.arguments import OptionError, parse
from fencepost.control import plane

CANNOT_START: Final = 2


def serve(arguments: Sequence[str]) -> int:
    """Serve until SIGTERM or SIGINT.

    :returns: 0 after a clean stop, 2 with one line on standard error when it cannot start.
    """
    try:
        options = parse(arguments, os.environ)
        run(options, plane.serve, partial(announce, options))
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
