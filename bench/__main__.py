"""``python -m bench``: fencepost and its peers in turns.

``python -m bench compare [OLD NEW]`` compares kept results; ``grow`` plots what the work costs as
it grows; ``profile WHAT`` shows where time goes.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import gc
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench import (
    catalogue,
    compare,
    figures,
    growth,
    history,
    load,
    process,
    profiling,
    projection,
    report,
    rounds,
    servers,
    tools,
)
from bench.results import OURS, Results

PAGE = tools.HERE.parent / "docs" / "performance.md"
AUDIT_PAGE = tools.HERE.parent / "docs" / "audit.md"
TOUCHED = 6 << 30
"""Bytes of memory touched before the first measurement: more than any server and its client."""

BASELINE = "baseline"
MINUTES = 4.5
"""How long a run goes on starting figures; a full one has no limit."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    allow_many_files()
    if options.command == "profile":
        return profiling.profile(options.what, records=options.records, tool=options.tool)
    if options.command == "compare":
        return compare_kept(options.commits)
    if options.command == "grow":
        return grow(options)
    return bench(options)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    keys = [kind.key for kind in servers.KINDS]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--only", action="append", default=[], help="this figure, or that of this row; repeatable"
    )
    parser.add_argument("--full", action="store_true", help="all figures and servers, no limit")
    parser.add_argument("--minutes", type=float, help=f"the limit, by default {MINUTES:g}")
    parser.add_argument("--servers", nargs="+", choices=keys, help="by default all but kafka")
    parser.add_argument("--rounds", type=int, default=5, help="at most")
    parser.add_argument("--slow-rounds", type=int, default=2, help="rounds with Apache Kafka")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work, two rounds")
    parser.add_argument(
        "--baseline", help="measure the fencepost of this checkout or commit as a peer, too"
    )
    parser.add_argument("--json", type=Path, help="write every value to this file")
    parser.add_argument(
        "--no-write", action="store_true", help="keep nothing, and leave the pages alone"
    )
    parser.set_defaults(command="bench")
    commands = parser.add_subparsers(dest="command")
    comparison = commands.add_parser("compare", help="two commits whose results are kept")
    comparison.add_argument("commits", nargs="*", help="the old and the new; else the last two")
    growing = commands.add_parser("grow", help="plots of what the work costs as it grows")
    growing.add_argument("--curve", action="append", choices=[c.name for c in growth.CURVES])
    growing.add_argument("--small", action="store_true", help="few points, and nothing is written")
    growing.add_argument("--each", type=int, default=1, help="measurements, the lowest counts")
    profile = commands.add_parser("profile", help="where fencepost's time goes")
    profile.add_argument("what", choices=profiling.WORK)
    profile.add_argument("--records", type=int, default=300_000)
    profile.add_argument("--tool", choices=profiling.TOOLS, default=profiling.TOOLS[0])
    options = parser.parse_args(arguments)
    options.command = options.command or "bench"
    if options.command == "compare" and len(options.commits) not in (0, 2):
        parser.error("compare takes two commits, or none")
    try:
        options.figures = catalogue.chosen(options.only, full=options.full)
    except ValueError as unknown:
        names = ", ".join(figure.name for figure in catalogue.FIGURES)
        parser.error(f"{unknown} is neither a figure nor a row; the figures are {names}")
    if options.quick:
        options.rounds = min(options.rounds, 2)
    options.servers = options.servers or [k for k in keys if options.full or k != "kafka"]
    if options.minutes is None:
        options.minutes = float("inf") if options.full else MINUTES
    return options


def allow_many_files() -> None:
    """Raises the soft limit of open files to the hard one, for us and the servers we start."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def bench(options: argparse.Namespace) -> int:
    begin = time.monotonic()
    results = Results()
    kinds = built([kind for kind in servers.KINDS if kind.key in options.servers], results)
    if options.baseline is None:
        return measured(options, kinds, results, begin)
    with checkout(options.baseline) as other:
        return measured(options, [*kinds, baseline(other)], results, begin)


def measured(
    options: argparse.Namespace, kinds: list[servers.Kind], results: Results, begin: float
) -> int:
    """Run the figures, show what they answered, and keep it; an exit code."""
    scale = figures.QUICK if options.quick else figures.Scale()
    process.touch_memory(TOUCHED)
    gc.freeze()
    rounds.run(
        options.figures,
        [rounds.Turns(kind=kind, peer=peer_of(kind), most=most(kind, options)) for kind in kinds],
        scale,
        results,
        until=begin + options.minutes * 60,
        say=say,
    )
    text = report.whole(results, about(options, kinds, scale))
    print(text)
    say(f"{time.monotonic() - begin:.0f} s")
    if options.json:
        options.json.write_text(json.dumps(results.values, indent=1))
    if not options.no_write:
        keep(options, results)
        write_projection(options, results)
    complete = options.full and not options.only and not options.quick
    complete = complete and len(kinds) == len(servers.KINDS) and options.baseline is None
    if complete and not results.failed and not options.no_write:
        report.write(PAGE, text)
        say(f"written to {PAGE.name}")
    worse = options.baseline is not None and worse_than_baseline(results)
    return 1 if results.failed or worse else 0


def write_projection(options: argparse.Namespace, results: Results) -> None:
    """Into the page of the audit, where all that it is made of was measured in one whole run."""
    slopes = projection.Slopes.of(results)
    if slopes is None or options.quick:
        return
    date = dt.datetime.now(dt.UTC).date().isoformat()
    head = f"By slopes measured on {date}; {report.machine()}."
    text = projection.page(slopes, projection.PETABYTE, head)
    report.write(AUDIT_PAGE, text, projection.BEGIN, projection.END)
    say(f"written to {AUDIT_PAGE.name}")


def most(kind: servers.Kind, options: argparse.Namespace) -> int:
    """The most rounds of a kind of server."""
    return int(min(options.rounds, options.slow_rounds) if kind.slow else options.rounds)


def peer_of(kind: servers.Kind) -> str | None:
    """Which peer a figure must have for a kind of server to take part; None: it always does.

    Another version of fencepost is measured wherever fencepost is.
    """
    return None if kind.key in (OURS, BASELINE) else kind.key


def keep(options: argparse.Namespace, results: Results) -> None:
    """By commit, for ``compare``; not the other version of fencepost."""
    values = history.rounded(results.values)
    try:
        run = history.Run(
            commit=history.current(),
            date=dt.datetime.now(dt.UTC).date().isoformat(),
            machine=report.machine(),
            scale="quick" if options.quick else "whole",
            others=round(statistics.median(results.others or [0]), 3),
            values={
                row: {kind: rounds for kind, rounds in by_kind.items() if kind != BASELINE}
                for row, by_kind in values.items()
            },
        )
        history.keep(run)
    except history.NotKept as error:
        say(f"not kept: {error}")


def compare_kept(commits: Sequence[str]) -> int:
    """Show how two commits differ; 1 when a figure has become worse, 2 when they cannot be."""
    runs = history.read()
    try:
        if commits:
            old, new = (history.find(runs, history.resolved(commit)) for commit in commits)
        else:
            old, new = history.last_two(runs)
    except history.NotKept as error:
        say(f"{error}; `make bench` at a commit keeps its results")
        return 2
    if not old.is_like(new):
        say("they are of different machines, or of different amounts of work")
        return 2
    text, worse = compare.compared(old, new)
    print(text)
    return 1 if worse else 0


def grow(options: argparse.Namespace) -> int:
    """Measure curves, and write those of a full run to the page; an exit code."""
    results = Results()
    wanted = ("fencepost", "kfake")
    kinds = built([kind for kind in servers.KINDS if kind.key in wanted], results)
    chosen = [c for c in growth.CURVES if not options.curve or c.name in options.curve]
    others = process.Others()
    found = growth.run(chosen, kinds, small=options.small, rounds=options.each, say=say)
    results.others.append(others.share())
    date = dt.datetime.now(dt.UTC).date().isoformat()
    versions = "; ".join(f"{kind.title} {kind.version()}" for kind in kinds)
    head = (
        f"Made by `python -m bench grow --each {options.each}` on {date}; {report.machine()}; "
        f"{versions}. Other processes used {results.others[0]:.0%} of the machine."
    )
    print(growth.page(found, head))
    if not options.small and not options.curve and not results.failed:
        growth.write(PAGE, found, head)
    missing = [c.name for c in chosen if servers.Fencepost().title not in found[c.name]]
    return 1 if missing or results.failed else 0


def worse_than_baseline(results: Results) -> bool:
    """Show how fencepost differs from the other version that was measured in turns with it."""
    values = history.rounded(results.values)
    changes = list(compare.changes(values, values, BASELINE))
    print("\n" + compare.table(changes, BASELINE, OURS))
    return any(change.verdict is compare.Verdict.WORSE for change in changes)


@contextlib.contextmanager
def checkout(given: str) -> Iterator[Path]:
    """The directory that was named, or a temporary one with the commit.

    :raises subprocess.CalledProcessError: When it is neither.
    """
    if Path(given).is_dir():
        yield Path(given).resolve()
        return
    git = ["git", "-C", str(tools.HERE.parent), "worktree"]
    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as folder:
        path = Path(folder) / "checkout"
        subprocess.run([*git, "add", "--quiet", "--detach", str(path), given], check=True)
        try:
            yield path
        finally:
            subprocess.run([*git, "remove", "--force", str(path)], check=True)


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


def about(
    options: argparse.Namespace, kinds: Sequence[servers.Kind], scale: figures.Scale
) -> report.About:
    rounds = (
        f"Median (smallest-largest) of at most {options.rounds} rounds, {options.slow_rounds} for "
        "Apache Kafka; ratios are of values measured one right after the other."
    )
    load_shape = (
        f"{scale.records:,} records of {load.RECORD_BYTES:,} random bytes, uncompressed, "
        f"{servers.PARTITIONS} partitions, RF 1 unless said; {scale.python_records:,} with "
        f"confluent-kafka, {scale.transaction_records:,} in transactions; "
        f"{scale.connections:,} idle connections, {scale.busy_connections:,} busy ones; "
        f"{scale.mixed_s:g} s of mixed load; "
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
