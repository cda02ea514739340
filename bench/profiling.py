"""Where fencepost's time goes under one kind of load: cProfile's or perf's answer, printed.

cProfile counts Python functions and slows them two- to fourfold: read the shares, not the times.
perf sees native code as well, at no cost to the server, but names Python functions only from
Python 3.12 on.
"""

from __future__ import annotations

import pstats
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from bench import load, process, servers, tools, wire

WORK = ("produce", "consume", "transactions", "list-offsets")
TOOLS = ("cprofile", "perf")
LINES = 40


def profile(what: str, *, records: int, tool: str) -> int:
    """Runs the load on a fresh fencepost and prints the busiest functions; an exit code."""
    if tool == "perf" and shutil.which("perf") is None:
        print("perf not found", file=sys.stderr)
        return 2
    with servers.launching() as launch:
        data = launch.directory / "profile"
        interpreter = [sys.executable]
        if tool == "cprofile":
            interpreter += ["-m", "cProfile", "-o", str(data)]
        elif sys.version_info >= (3, 12):
            interpreter += ["-X", "perf"]
        configs = servers.TRANSACTION_CONFIGS if what == "transactions" else ()
        kind = servers.Fencepost(interpreter=interpreter, configs=configs)
        try:
            kind.build()
            with servers.started(kind, launch) as server:
                _run(what, server, records, data if tool == "perf" else None)
        except (tools.Missing, servers.DidNotStart, wire.BadAnswer, load.LoadFailed) as problem:
            print(problem, file=sys.stderr)
            return 1
        _show(tool, data)
    return 0


def _run(what: str, server: servers.Server, records: int, perf_data: Path | None) -> None:
    server.create_bench_topic()
    if what in ("consume", "list-offsets"):
        load.produce(load.Client.C, server, records)
    recorder = None
    if perf_data is not None:
        command = ["perf", "record", "-q", "-F", "499", "-g", "-p", str(server.pid)]
        recorder = subprocess.Popen([*command, "-o", str(perf_data)])
    cpu = process.cpu_seconds(server.pid)
    try:
        _work(what, server, records)
    finally:
        cpu = process.cpu_seconds(server.pid) - cpu
        if recorder is not None:
            recorder.send_signal(signal.SIGINT)
            recorder.wait(30)
    print(
        f"{what}: {records:,} in {cpu:.2f} s of the server's CPU, {cpu / records * 1e6:.2f} us each"
    )


def _work(what: str, server: servers.Server, records: int) -> None:
    if what == "produce":
        load.produce(load.Client.C, server, records)
    elif what == "transactions":
        load.transact(server, records)
    elif what == "consume":
        load.consume(load.Client.C, server, records)
    else:
        request = wire.list_offsets_request(servers.TOPIC, 0)
        with server.connect_to_leader(servers.TOPIC, 0) as connection:
            for _ in range(records):
                connection.ask(request)


def _show(tool: str, data: Path) -> None:
    if tool == "cprofile":
        if not data.exists():
            print("fencepost left no profile: it did not end cleanly", file=sys.stderr)
            return
        pstats.Stats(str(data)).sort_stats("tottime").print_stats(LINES)
        return
    command = ["perf", "report", "-i", str(data), "--stdio", "--no-children", "-g", "none"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line and not line.startswith("#")]
    print("\n".join(lines[:LINES]))
