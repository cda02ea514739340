"""The command line: ``serve`` is a node, everything else is an operation."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from examples.kvstore.client import do
from examples.kvstore.leader import NotDone, Unknown
from examples.kvstore.node import Node, Settings
from examples.kvstore.server import Mistake, operation
from examples.kvstore.state import Kind, Operation, Result
from examples.kvstore.topic import UnfitTopic
from fencepost.client.errors import KafkaClientError

BROKERS: Final = os.environ.get("KVSTORE_BOOTSTRAP", "127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094")
NODES: Final = os.environ.get("KVSTORE_NODES", "127.0.0.1:7001,127.0.0.1:7002")
REFUSED: Final = 1
"""Exit code: a cas found another value."""
NOT_DONE: Final = 2
UNKNOWN: Final = 3


def main(arguments: Sequence[str]) -> int:
    """Run a command.

    :returns: The exit code: 0; 1 for a cas that found another value; 2 for what was not done; 3
        where that is not known.
    """
    given = _parser().parse_args(arguments)
    try:
        if given.command == "serve":
            return asyncio.run(_serve(given))
        return asyncio.run(_operate(given))
    except (NotDone, Mistake, UnfitTopic, KafkaClientError) as error:
        print(f"not done: {error}", file=sys.stderr)
        return NOT_DONE
    except Unknown as error:
        print(f"perhaps done: {error}", file=sys.stderr)
        return UNKNOWN


async def _serve(given: argparse.Namespace) -> int:
    settings = Settings(
        bootstrap=given.bootstrap,
        name=given.node,
        topic=given.topic,
        group=given.group,
        shards=given.shards,
        host=given.host,
        port=given.port,
        session_ms=given.session_ms,
        patience_s=given.patience,
    )
    node = asyncio.create_task(Node(settings, lambda text: print(text, flush=True)).run())
    with suppress(NotImplementedError):  # on Windows
        for ending in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(ending, node.cancel)
    with suppress(asyncio.CancelledError):
        await node
    return 0


async def _operate(given: argparse.Namespace) -> int:
    asked = _operation(given)
    nodes = [_address(each) for each in given.nodes.split(",")]
    result = await do(nodes, asked, given.patience)
    print(_told(asked, result))
    return 0 if result.done else REFUSED


def _operation(given: argparse.Namespace) -> Operation:
    expected = getattr(given, "expected", None)
    return operation(
        Kind(given.command),
        given.key,
        getattr(given, "value", None),
        None if expected == "" else expected,
    )


def _told(asked: Operation, result: Result) -> str:
    value = "no value" if result.value is None else result.value
    match asked.kind:
        case Kind.GET | Kind.APPEND:
            return value
        case Kind.PUT | Kind.DELETE:
            return f"done; before: {value}"
        case Kind.CAS:
            return "done" if result.done else f"refused; it is: {value}"


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m examples.kvstore", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="be a node of the store")
    serve.add_argument("--node", required=True, help="its name")
    serve.add_argument("--bootstrap", default=BROKERS, help="brokers, or KVSTORE_BOOTSTRAP")
    serve.add_argument("--topic", default="kvstore", help="the log")
    serve.add_argument("--group", default="kvstore", help="the nodes that share the shards")
    serve.add_argument("--shards", type=int, default=4, help="where the topic is not there yet")
    serve.add_argument("--host", default="127.0.0.1")
    serve.add_argument("--port", type=int, default=0, help="0 is a free one")
    serve.add_argument("--session-ms", type=int, default=6000, help="after which others take over")
    serve.add_argument("--patience", type=float, default=10.0, help="seconds for one operation")
    for kind in Kind:
        command = commands.add_parser(kind.value, help=f"{kind.value} of one key")
        command.add_argument("key")
        if kind is Kind.CAS:
            command.add_argument("expected", help="'' for no value")
        if kind in (Kind.PUT, Kind.APPEND, Kind.CAS):
            command.add_argument("value")
        command.add_argument("--nodes", default=NODES, help="nodes, or KVSTORE_NODES")
        command.add_argument("--patience", type=float, default=30.0, help="seconds in all")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
