"""The bulk load of examples/ as processes of its own."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from pathlib import Path

from tests.harness.run import Finished

ROOT = Path(__file__).parents[2]


async def start(bootstrap: str, topic: str, file: Path, *options: str) -> Process:
    """Start a loader."""
    where = ("--bootstrap", bootstrap, "--topic", topic)
    command: Sequence[str] = (sys.executable, "-m", "examples.bulk_load", *where, *options)
    return await asyncio.create_subprocess_exec(
        *command, str(file), stdout=PIPE, stderr=PIPE, cwd=ROOT
    )


async def ended(process: Process) -> Finished:
    """Wait for its end: its exit code and output."""
    out, err = await process.communicate()
    assert process.returncode is not None
    return Finished(code=process.returncode, out=out.decode(), err=err.decode())


async def run(bootstrap: str, topic: str, file: Path, *options: str) -> Finished:
    """Start one, and wait for its end."""
    return await ended(await start(bootstrap, topic, file, *options))
