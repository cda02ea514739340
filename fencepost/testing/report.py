"""What a failing test's report tells of its cluster: what was asked of it, and what it logged."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from fencepost.protocol.shown_text import escaped, escaped_lines
from fencepost.testing.servers import Server
from fencepost.verbs.answers.journal import ExchangeState
from fencepost.verbs.remote import VerbError

MAX_EXCHANGES: Final = 50
"""The last ones; more can be asked of the journal while the test runs."""
MAX_MESSAGE: Final = 300
"""Characters of a request, and of an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportBaseline:
    """A cluster, and how far its log and its journal were when the test began."""

    server: Server
    log_position: int
    last_exchange: int
    """Of the last exchange before."""

    def sections(self) -> Iterator[tuple[str, str]]:
        """Headings and texts."""
        served = self.server.serving
        try:
            cluster = self.server.cluster
            found = cluster.trace(since=self.last_exchange, limit=MAX_EXCHANGES)
            journal = format_exchanges(found)
        except VerbError as error:
            journal = f"{escaped(str(error))}\n"
        if journal:
            yield f"fencepost: the last requests and answers at {served.bootstrap}", journal
        log = served.log_since(self.log_position)
        if log:
            yield f"fencepost: its log, {served.log}", escaped_lines(log)


def take_baseline(server: Server) -> ReportBaseline:
    """A cluster from now on."""
    last = server.cluster.trace(limit=1, source="all")
    return ReportBaseline(
        server=server,
        log_position=server.serving.log_size(),
        last_exchange=last[-1].number if last else 0,
    )


def fresh_baseline(server: Server) -> ReportBaseline:
    """A cluster that has had no request yet."""
    return ReportBaseline(server=server, log_position=server.serving.log_size(), last_exchange=0)


def format_exchanges(exchanges: Sequence[ExchangeState]) -> str:
    """Exchanges in two lines each: who asked whom for what and how long it took, and the answer."""
    if not exchanges:
        return ""
    begin = exchanges[0].time_ms
    return "".join(_line(each, begin) for each in exchanges)


def _line(exchange: ExchangeState, begin: int) -> str:
    head = (
        f"#{exchange.number} +{exchange.time_ms - begin} ms"
        f" {exchange.client_id or exchange.connection} -> broker {exchange.broker}:"
        f" {exchange.api} v{exchange.version} {_clipped(exchange.request)}"
    )
    if exchange.answered_ms is None:
        answer = "no answer"
    else:
        took = exchange.answered_ms - exchange.time_ms
        answer = f"after {took} ms: {_clipped(exchange.response)}"
    return f"{escaped(head)}\n    {escaped(answer)}\n"


def _clipped(message: dict[str, object] | None) -> str:
    text = json.dumps(message)
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}..."
