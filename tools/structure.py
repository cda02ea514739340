"""Counts the package's structure: ``python -m tools.structure [--checkout DIR]``.

Prints files, lines, small modules, and how many files some requests pass. ``--checkout`` counts
another checkout, such as an older commit in a git worktree, with this environment's dependencies.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

PACKAGE: Final = "fencepost"
SMALL_LINES: Final = 50
_EXEMPT_NAMES: Final = frozenset({"__init__.py", "__main__.py"})
GROWING_FOLDERS: Final = ("protocol/messages", "broker/handlers")
"""One module an API: their number grows with the APIs, and their sizes follow Kafka's messages."""


def modules(package: Path) -> list[Path]:
    """All modules of a package, as paths relative to it."""
    return sorted(path.relative_to(package) for path in package.rglob("*.py"))


def line_count(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def small_modules(package: Path) -> Iterator[str]:
    """The modules under 50 lines, except packages' own and those of the growing folders."""
    for path in modules(package):
        is_exempt = path.name in _EXEMPT_NAMES or path.parent.as_posix() in GROWING_FOLDERS
        if not is_exempt and line_count(package / path) < SMALL_LINES:
            yield path.as_posix()


def static_counts(package: Path) -> dict[str, int]:
    paths = modules(package)
    return {
        f"files under {PACKAGE}/": len(paths),
        "lines": sum(line_count(package / path) for path in paths),
        f"modules under {SMALL_LINES} lines": len(list(small_modules(package))),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkout", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--static", action="store_true", help="start no process")
    parser.add_argument("--list", action="store_true", help="also print the files passed")
    options = parser.parse_args(arguments)
    checkout: Path = options.checkout.resolve()
    counts = static_counts(checkout / PACKAGE)
    passed: dict[str, frozenset[str]] = {}
    if not options.static:
        from tools.passed_files import passed_files

        passed = passed_files(checkout)
    counts |= {f"files passed by {name}": len(files) for name, files in passed.items()}
    print("| | count |\n| --- | ---: |")
    for name, count in counts.items():
        print(f"| {name} | {count:,} |")
    if options.list:
        for name, files in passed.items():
            print(f"\n{name}:", *sorted(files), sep="\n    ")


if __name__ == "__main__":
    main()
