"""How fast simulated clusters run: steps for each second of processor time, on one core."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Final

from bench import servers, wire

STEPS: Final = 500
"""Of a seed."""
TIMEOUT_S: Final = 600.0
_PROGRAM: Final = """
import sys, time
sys.path[:0] = sys.argv[3:]
from fencepost.simulation.report import run_seeds
seeds, steps = int(sys.argv[1]), int(sys.argv[2])
options = {"steps": steps, "consumers": False, "transactions": False, "gate": True}
run_seeds(range(2), **options)
begin = time.process_time()
total = run_seeds(range(seeds), **options)
spent = time.process_time() - begin
print(len(total.failures), spent)
"""


def measure(kind: servers.Kind, seeds: int) -> Mapping[str, float]:
    """The same seeds each time, in a process of its own, imports and first steps left out.

    :raises bench.wire.BadAnswer: When an invariant broke.
    """
    checkout = kind.checkout if isinstance(kind, servers.Fencepost) else None
    path = [] if checkout is None else [str(checkout)]
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(seeds), str(STEPS), *path],
        capture_output=True,
        check=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    failures, spent = done.stdout.split()
    if int(failures):
        raise wire.BadAnswer(f"{failures} of {seeds} simulated seeds broke an invariant")
    return {"simulation": seeds * STEPS / float(spent)}
