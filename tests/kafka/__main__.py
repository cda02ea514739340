"""``python -m tests.kafka [CLASS[#METHOD] ...]``: Kafka's own tests on fencepost.

Compares with ``expected.txt`` both ways: a test that fails and is not listed, and a listed one that
passes, end the run with 1. Without names it runs all.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from tests.kafka import expected, suite
from tests.kafka.selection import ARTIFACTS, classes_of, methods_not_run, simple_name
from tests.kafka.suite import Result, Work

_NEEDED: Final = ("java", "javac", "mvn")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    if missing := [program for program in _NEEDED if shutil.which(program) is None]:
        print(f"{' and '.join(missing)} must be installed", file=sys.stderr)
        return 2
    listed = expected.read(expected.LIST.read_text())
    names: Sequence[str] = options.tests
    if options.again:
        before = _read(options.results)
        wrong = expected.problems(before.values(), listed)
        names = sorted({problem.split()[0].partition("[")[0] for problem in wrong})
    results = suite.run(works(names), options.jobs, _reporter(options.results))
    for artifact in ARTIFACTS:
        classes = {simple_name(each) for each in classes_of(artifact)}
        own = [result for result in results if result.test.partition("#")[0] in classes]
        if own:
            print(f"{artifact}: {expected.summary(own, listed)}")
    found = list(expected.problems(results, listed))
    if not names:
        found += expected.absent(results, listed)
    print("\n".join(found or ["as listed"]))
    return 1 if found else 0


def works(names: Sequence[str]) -> list[Work]:
    """The classes and methods of these names, or all; those with most code first.

    :raises SystemExit: When there is no class of a name.
    """
    classes = [each for artifact in ARTIFACTS for each in classes_of(artifact)]
    wanted: dict[str, list[str]] = {}
    for name in names:
        of_class, _, method = name.partition("#")
        wanted.setdefault(of_class, []).extend([method] if method else [])
    if unknown := wanted.keys() - {simple_name(each) for each in classes}:
        raise SystemExit(f"there is no test class {', '.join(sorted(unknown))}")
    return [
        Work(
            class_name=each,
            methods=wanted.get(simple_name(each), ()),
            without=methods_not_run(each),
        )
        for each in classes
        if not wanted or simple_name(each) in wanted
    ]


def _reporter(file: Path | None) -> Callable[[Result], None]:
    """Prints each result, and adds it to ``file`` as a line of JSON."""

    def report(result: Result) -> None:
        first = f": {expected.first_line(result.trace)}" if result.outcome == "fail" else ""
        print(f"{result.outcome} {result.test} {result.seconds:.1f} s{first}", flush=True)
        if file is not None:
            with file.open("a") as lines:
                lines.write(json.dumps(asdict(result)) + "\n")

    return report


def _read(file: Path) -> dict[str, Result]:
    """The results in a file, by test; the last of each."""
    results = (Result.from_json(json.loads(line)) for line in file.read_text().splitlines())
    return {result.test: result for result in results}


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.kafka", description=__doc__)
    parser.add_argument("tests", nargs="*", metavar="CLASS[#METHOD]")
    parser.add_argument("--jobs", type=int, default=3, help="the number of JVMs")
    parser.add_argument("--results", type=Path, help="add every result to this file, a line each")
    parser.add_argument(
        "--again", action="store_true", help="run what was not as listed in the file of --results"
    )
    options = parser.parse_args(arguments)
    if options.again and options.results is None:
        parser.error("--again needs --results")
    return options


if __name__ == "__main__":
    sys.exit(main())
