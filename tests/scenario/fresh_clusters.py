"""Clusters of their own for many runs of scenarios: each a fork of a process that has imported
everything, as a new interpreter takes longer than most scenarios.

As a program it reads the options of ``fencepost serve``, a JSON array a line, and serves such a
cluster, which prints its ready line; the next line stops it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from docs.generate import ROOT
from tests.harness.dialogue import Dialogue

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_ALWAYS: Final = ("--port=0", "--control-port=0", "--log-level=error")
_STOPPED: Final = "stopped"


class FreshClusters:
    """Serves one cluster after the other, each from its start."""

    def __init__(self, program: Dialogue) -> None:
        self._program = program

    @contextmanager
    def serving(self, options: Sequence[str]) -> Iterator[str]:
        """A new cluster: the URL of its control API."""
        ready = json.loads(self._program.ask(json.dumps([*_ALWAYS, *options])))
        try:
            yield ready["control"]
        finally:
            self._program.say()
            self._program.hear_until(_STOPPED)


@contextmanager
def fresh_clusters(log: Path, hash_seed: int) -> Iterator[FreshClusters]:
    """A process that serves them.

    :param hash_seed: Of Python's hashes, so that processes differ in the order of their sets.
    """
    environment = {
        **{name: text for name, text in os.environ.items() if not name.startswith("FENCEPOST_")},
        "PYTHONHASHSEED": str(hash_seed),
        "PYTHONPATH": str(ROOT),
    }
    with Dialogue([sys.executable, "-m", __name__], log, env=environment) as program:
        yield FreshClusters(program)
        program.end()


def _serve_each() -> None:
    # What a cluster imports when its control API is asked for the first time.
    import fencepost.control.app  # noqa: F401
    from fencepost.cli.serve import serve

    for line in sys.stdin:
        child = os.fork()
        if not child:
            os._exit(serve(json.loads(line)))
        sys.stdin.readline()
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
        sys.stdout.write(f"{_STOPPED}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve_each()
