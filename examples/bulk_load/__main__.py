"""The command line: ``python -m examples.bulk_load --bootstrap HOST:PORT --topic TOPIC FILE``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from examples.bulk_load.loading import Loaded

IMPOSSIBLE: Final = 1
"""Exit code: the log has something else, or will not take the lines. To start again won't help."""
AGAIN: Final = 75
"""Exit code: brokers fail. Start again; it is safe (``EX_TEMPFAIL``)."""


def main(arguments: Sequence[str]) -> int:
    """Load a file.

    :returns: The exit code; 2 where something was asked wrongly.
    """
    given = _parser().parse_args(arguments)
    # What follows takes most of the start, and is not needed to say what was asked wrongly.
    import asyncio

    from examples.bulk_load.loading import Impossible, Interrupted

    try:
        loaded = asyncio.run(_load(given))
    except (OSError, ValueError) as error:
        return _failed(str(error), 2)
    except Impossible as error:
        return _failed(str(error), IMPOSSIBLE)
    except Interrupted as error:
        return _failed(f"{error}; start again to go on", AGAIN)
    except KeyboardInterrupt:
        return _failed("stopped; start again to go on", AGAIN)
    where = f"{given.topic}-{given.partition}, offsets {given.base} to {loaded.next_offset - 1}"
    print(f"{loaded.appended} lines were appended; all {loaded.lines} are at {where}")
    return 0


async def _load(given: argparse.Namespace) -> "Loaded":
    from examples.bulk_load.loading import Load
    from examples.bulk_load.source import Source
    from fencepost.client import Client, Partition

    source = Source(given.file)
    async with Client(given.bootstrap, client_id="bulk-load") as client:
        load = Load(
            client,
            Partition(topic=given.topic, index=given.partition),
            source,
            base=given.base,
            chunk=given.chunk,
            patience_s=given.patience,
        )
        return await load.run(lambda text: print(text, flush=True))


def _failed(text: str, code: int) -> int:
    print(f"bulk_load: {text}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m examples.bulk_load",
        description="Bring the lines of a file into a partition, each once and in their order.",
    )
    parser.add_argument("--bootstrap", default="127.0.0.1:9092", help="brokers, as host:port,...")
    parser.add_argument("--topic", required=True, help="one with check.expected.offsets=true")
    parser.add_argument("--partition", type=int, default=0)
    parser.add_argument("--base", type=int, default=0, help="offset of the first line")
    parser.add_argument("--chunk", type=int, default=500, help="lines to append together")
    parser.add_argument("--patience", type=float, default=60.0, help="seconds for one request")
    parser.add_argument("file", type=Path, metavar="FILE")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
