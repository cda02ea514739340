"""``python -m bench.bare serve``: fencepost without what watches requests or meddles with them.

The fault layer, the journal and what is counted for metrics are replaced by nothing, here and
nowhere else: what they cost is the difference. It serves Kafka clients all the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from fencepost.broker.broker import Broker, handler_of
from fencepost.broker.context import Context
from fencepost.broker.refusals import ControllerUnreachable
from fencepost.broker.server.journal import Exchange, Journal
from fencepost.cli import main
from fencepost.protocol.apis import Api
from fencepost.protocol.buffers import Buffer
from fencepost.protocol.errors import ErrorCode


def strip() -> None:
    """Take the layers away, for as long as this process lives."""
    for owner, name, replacement in (
        (Broker, "handle", _handle),
        (Journal, "open", _nothing),
        (Journal, "close", _close),
        (Journal, "abandon", _nothing),
        (Journal, "observe", _observe),
    ):
        assert hasattr(owner, name), f"{owner} has no {name} any more: what is measured here?"
        setattr(owner, name, replacement)


def _handle(_: Broker, api: Api, ctx: Context, request: object) -> object:
    """Hand a request to its handler, without a look at faults."""
    handler = handler_of(api)
    try:
        return handler.handle(ctx, request)
    except ControllerUnreachable:
        return handler.refuse(request, ErrorCode.REQUEST_TIMED_OUT)


def _nothing(*_: object) -> None:
    pass


def _close(
    _: Journal, exchange: Exchange, chunks: list[Buffer] | None, _answer: object, _now_ms: int
) -> None:
    """As much as a connection needs to send answers in their order."""
    exchange.chunks = chunks
    exchange.done = True
    exchange.wait = None


def _observe(*_: object) -> Callable[..., None]:
    return _nothing


if __name__ == "__main__":
    strip()
    sys.exit(main(sys.argv[1:]))
