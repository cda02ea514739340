"""Ask for known vulnerabilities: ``python -m tools.audit_dependencies ARGS`` runs pip-audit.

Where pip-audit cannot reach its service it ends with a traceback of hundreds of lines. Of that only
the last one is shown, which says why; the exit code stays pip-audit's.
"""

import subprocess
import sys
from collections.abc import Sequence
from typing import Final

_TRACEBACK: Final = "Traceback (most recent call last):"


def without_traceback(complaint: str) -> str:
    """What a program wrote to standard error; of tracebacks the last line alone."""
    before, traceback, rest = complaint.partition(_TRACEBACK)
    if not traceback:
        return complaint
    return f"{before}{rest.rstrip().splitlines()[-1]}\n"


def main(arguments: Sequence[str]) -> int:
    """Run pip-audit of this environment; returns its exit code."""
    command = [sys.executable, "-m", "pip_audit", *arguments]
    run = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    sys.stderr.write(without_traceback(run.stderr))
    return run.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
