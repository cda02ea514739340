"""``python -m bench``: fencepost and its peers in turns; ``python -m bench profile WHAT``."""

from __future__ import annotations

import argparse
import datetime as dt
import gc
import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench import figures, load, process, profiling, report, servers, suite, tools, wire
from bench.results import OURS, Results

PAGE = tools.HERE.parent / "docs" / "performance.md"
TOUCHED = 6 << 30
"""Bytes of memory touched before the first measurement: more than any server and its client."""

BASELINE = "baseline"
EXPECTED = (
    servers.DidNotStart,
    wire.BadAnswer,
    load.LoadFailed,
    suite.SuiteFailed,
    OSError,
    subprocess.TimeoutExpired,
)
"""What a server under test may do to a figure; it costs that value and not the run."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    allow_many_files()
    if options.command == "profile":
        return profiling.profile(options.what, records=options.records, tool=options.tool)
    return bench(options)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    names = [figure.name for figure in figures.FIGURES]
    keys = [kind.key for kind in servers.KINDS]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", action="append", choices=names, help="this figure; repeatable")
    parser.add_argument("--servers", nargs="+", choices=keys, default=keys)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--slow-rounds", type=int, default=2, help="rounds with Apache Kafka")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work, two rounds")
    parser.add_argument(
        "--baseline", type=Path, help="measure the fencepost of this checkout as a peer, too"
    )
    parser.add_argument("--json", type=Path, help="write every value to this file")
    parser.add_argument("--no-write", action="store_true", help="leave docs/performance.md alone")
    parser.set_defaults(command="bench")
    commands = parser.add_subparsers(dest="command")
    profile = commands.add_parser("profile", help="where fencepost's time goes")
    profile.add_argument("what", choices=profiling.WORK)
    profile.add_argument("--records", type=int, default=300_000)
    profile.add_argument("--tool", choices=profiling.TOOLS, default=profiling.TOOLS[0])
    options = parser.parse_args(arguments)
    options.command = options.command or "bench"
    if options.quick:
        options.rounds = min(options.rounds, 2)
    return options


def allow_many_files() -> None:
    """Raises the soft limit of open files to the hard one, for us and the servers we start."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def bench(options: argparse.Namespace) -> int:
    begin = time.monotonic()
    results = Results()
    kinds = built([kind for kind in servers.KINDS if kind.key in options.servers], results)
    if options.baseline is not None:
        kinds.append(baseline(options.baseline.resolve()))
    chosen = [f for f in figures.FIGURES if not options.only or f.name in options.only]
    scale = figures.QUICK if options.quick else figures.Scale()
    process.touch_memory(TOUCHED)
    gc.freeze()
    for figure in chosen:
        for turn in range(options.rounds):
            for kind in kinds:
                skipped = kind.slow and turn >= options.slow_rounds
                peer = "kfake" if kind.key == BASELINE else kind.key
                if not skipped and (kind.key == OURS or peer in figure.peers):
                    measure(figure, kind, turn, scale, results)
    text = report.whole(results, about(options, kinds, scale))
    print(text)
    say(f"{time.monotonic() - begin:.0f} s")
    if options.json:
        options.json.write_text(json.dumps(results.values, indent=1))
    complete = not options.only and not options.quick and len(kinds) == len(servers.KINDS)
    complete = complete and options.baseline is None
    if complete and not results.failed and not options.no_write:
        report.write(PAGE, text)
        say(f"written to {PAGE.name}")
    return 1 if results.failed else 0


def baseline(checkout: Path) -> servers.Kind:
    """Another version of fencepost, measured where a peer is."""
    revision = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=True,
    )
    title = f"fencepost at {revision.stdout.strip()}"
    return servers.Fencepost(key=BASELINE, title=title, checkout=checkout)


def built(kinds: Sequence[servers.Kind], results: Results) -> list[servers.Kind]:
    """Those that this machine can run; the others are named with what they lack."""
    usable = []
    for kind in kinds:
        say(f"{kind.key}: preparing")
        try:
            kind.build()
            usable.append(kind)
        except tools.Missing as missing:
            results.failed |= kind.key == OURS
            results.problems.append(f"{kind.title} was not measured: {missing}")
            say(f"{kind.key}: left out: {missing}")
    return usable


def measure(
    figure: figures.Figure, kind: servers.Kind, turn: int, scale: figures.Scale, results: Results
) -> None:
    label = f"{figure.name} {turn + 1} {kind.key}"
    others = process.Others()
    try:
        values = figure.measure(kind, scale)
    except (*EXPECTED, tools.Missing) as problem:
        say(f"{label}: {problem}")
        results.failed |= kind.key == OURS
        results.problems.append(
            f"{kind.title}, {figure.name}, round {turn + 1}: {type(problem).__name__}"
        )
        return
    results.add(kind.key, turn, values)
    results.others.append(others.share())
    say(f"{label}: " + ", ".join(f"{key} {value:,.2f}" for key, value in values.items()))


def about(
    options: argparse.Namespace, kinds: Sequence[servers.Kind], scale: figures.Scale
) -> report.About:
    rounds = (
        f"Median (smallest-largest) of {options.rounds} rounds, {options.slow_rounds} for Apache "
        "Kafka; ratios are of values measured one right after the other."
    )
    load_shape = (
        f"{scale.records:,} records of {load.RECORD_BYTES:,} random bytes, uncompressed, "
        f"{servers.PARTITIONS} partitions, RF 1 unless said; {scale.python_records:,} with "
        f"confluent-kafka, {scale.transaction_records:,} in transactions; "
        f"{scale.connections:,} idle connections; "
        f"{scale.topics * scale.partitions:,} partitions."
    )
    return report.About(
        command=" ".join(["python -m bench", *sys.argv[1:]]),
        date=dt.datetime.now(dt.UTC).date().isoformat(),
        titles={kind.key: kind.title for kind in kinds},
        versions=[*(f"{kind.title} {kind.version()}" for kind in kinds), load.versions()],
        notes=(rounds, load_shape),
    )


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
