"""The ``fencepost`` command.

``serve`` has 300 ms until its first Metadata answer, so it is dispatched here, before typer, rich
or anything else that only a person needs is imported; everything else is in ``commands``.
"""

import sys
from collections.abc import Sequence
from importlib import import_module

from fencepost.optional_packages import as_if_missing

_HELP = frozenset({"--help", "-h"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    :param arguments: Without the program's name; None takes the process's own.
    :returns: The exit code: 0, 1 for what failed, 2 for what was asked wrongly.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] == ["serve"] and _HELP.isdisjoint(given):
        # msgspec does without it; a sixth of the time of its import.
        with as_if_missing("typing_extensions"):
            import_module("msgspec")
        # No listener has TLS, and OpenSSL would take 4 MB.
        with as_if_missing("ssl"):
            import_module("asyncio")
        from fencepost.cli.serve import serve

        return serve(given[1:])
    from fencepost.cli.commands import run

    return run(given)
