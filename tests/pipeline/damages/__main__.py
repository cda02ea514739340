"""``make test-damages``: each damage, done to what fencepost and a real Kafka wrote.

Exits with 1 where an audit does not name the cause, or names another one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from docs.generate import ROOT
from tests.pipeline.damages.outcome import outcomes, table, topics
from tests.pipeline.damages.written import fencepost_writes, kafka_writes

PAGE = ROOT / "docs" / "audit.md"
_BEGIN, _END = "<!-- damages -->\n", "<!-- end of damages -->\n"


def main() -> int:
    """Write, damage, audit and compare."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.pipeline.damages")
    parser.add_argument("--write-table", action="store_true", help="only write docs/audit.md's")
    if parser.parse_args().write_table:
        PAGE.write_text(with_table(PAGE.read_text()))
        return 0
    wrong = 0
    for writer, writes in (("fencepost", fencepost_writes), ("Apache Kafka", kafka_writes)):
        with tempfile.TemporaryDirectory() as folder, writes(Path(folder), topics()) as written:
            found = outcomes(written, Path(folder) / "damaged")
        print(f"written by {writer}: {sum(each.right for each in found)} of {len(found)} right")
        for each in found:
            if not each.right:
                wrong += 1
                print(f"  {each.topic}: expected {each.expected}")
                for line in each.found or ("nothing found",):
                    print(f"    {line}")
    return 1 if wrong else 0


def with_table(page: str) -> str:
    """The page with the table that the catalogue makes."""
    before, rest = page.split(_BEGIN)
    _, after = rest.split(_END)
    return before + _BEGIN + "\n" + "\n".join(table()) + "\n\n" + _END + after


if __name__ == "__main__":
    sys.exit(main())
