"""What the report of a failing test says of its clusters.

It has what happened since the test began, in one order of time, the state at the end, and the
warnings in the log.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from fencepost.broker.core.events import Kind
from fencepost.protocol.shown_text import escaped, escaped_lines
from fencepost.testing.servers import Server
from fencepost.verbs.answers.cluster import EventState
from fencepost.verbs.remote import VerbError
from fencepost.verbs.timeline_text import state_at_the_end, what_happened

MAX_LINES: Final = 200
"""Lines of the timeline; ``fencepost timeline`` has more while the test runs."""
_ROUTINE: Final = frozenset({"debug", "info"})
"""Levels of the log's lines that a report leaves out."""


class ReportBaseline(Struct, frozen=True, kw_only=True):
    """A cluster, and where its log, its events and its journal were when the test began."""

    server: Server
    log_position: int
    last_event: int | None
    """The number of the last event before the test; None: the last of the reset before it."""
    last_exchange: int
    """The number of the last exchange before the test."""

    def sections(self) -> Iterator[tuple[str, str]]:
        """Headings and texts."""
        served, cluster = self.server.serving, self.server.cluster
        try:
            since = self.last_event
            if since is None:
                since = last_reset(cluster.events(follow=False))
            state = cluster.timeline(
                since=since, requests_since=self.last_exchange, limit=MAX_LINES
            )
        except VerbError as error:
            yield f"fencepost: {served.bootstrap} at the end", f"{escaped(str(error))}\n"
        else:
            yield f"fencepost: what happened at {served.bootstrap}", as_text(what_happened(state))
            yield f"fencepost: {served.bootstrap} at the end", as_text(state_at_the_end(state))
        log = _unusual_lines(served.log_since(self.log_position))
        if log:
            yield f"fencepost: warnings of its log, {served.log}", escaped_lines(log)


def take_baseline(server: Server) -> ReportBaseline:
    """A cluster from now on."""
    exchanges = server.cluster.trace(limit=1, source="all")
    events = server.cluster.events(follow=False)
    return ReportBaseline(
        server=server,
        log_position=server.serving.log_size(),
        last_event=max((event.number for event in events), default=0),
        last_exchange=exchanges[-1].number if exchanges else 0,
    )


def fresh_baseline(server: Server) -> ReportBaseline:
    """A cluster that has had no request yet since it was reset."""
    return ReportBaseline(
        server=server,
        log_position=server.serving.log_size(),
        last_event=None,
        last_exchange=0,
    )


def last_reset(events: Iterable[EventState]) -> int:
    """The number of the last event of the last reset by the plugin, which is no verb, unlike a
    test's; 0 for none.
    """
    found = 0
    is_by_test = False
    for event in events:
        if event.kind == Kind.VERB and event.details["verb"] == "reset":
            is_by_test = True
        elif event.kind == Kind.RESET:
            found = found if is_by_test else event.end_of_reset
            is_by_test = False
    return found


def as_text(lines: Iterator[str]) -> str:
    """A section: names that clients have chosen act on no terminal."""
    return "".join(f"{escaped(line)}\n" for line in lines)


def _unusual_lines(log: str) -> str:
    """The lines of a log that are warnings or worse, or none of its own."""
    return "".join(line for line in log.splitlines(keepends=True) if _level(line) not in _ROUTINE)


def _level(line: str) -> object:
    try:
        return json.loads(line)["level"]
    except (ValueError, LookupError, TypeError):  # such as of a traceback
        return None
