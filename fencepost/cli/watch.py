"""``fencepost watch``: a cluster as it changes, until Ctrl-C or its end.

On a terminal it is one screen, drawn again and again; anywhere else it is lines. Events tell when
to look, and what no event tells, such as records that come, is looked at every second.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Annotated, Final, TypeAlias

import typer

from fencepost.cli import tables
from fencepost.cli.completion import ignoring_errors, topics
from fencepost.cli.output import is_rich_terminal, show
from fencepost.cli.typer_options import AsJson, ControlUrl, control_connection
from fencepost.cli.watch_state import WatchState
from fencepost.verbs.answers.base import Answer
from fencepost.verbs.answers.journal import EventState
from fencepost.verbs.catalogue import VERBS
from fencepost.verbs.remote import ControlConnection, Unreachable, VerbError

TICK_S: Final = 1.0
"""How long nothing is looked at where nothing happens."""
BURST_S: Final = 0.1
"""What happens within it is shown at once."""

Show: TypeAlias = Callable[[WatchState], None]


def register(app: typer.Typer) -> None:
    """Add the command to the others."""
    app.command(rich_help_panel="See")(watch)


def watch(
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="TOPIC",
            help="Only this topic's partitions. May be repeated.",
            autocompletion=ignoring_errors(topics),
        ),
    ] = None,
    control: ControlUrl = None,
    as_json: AsJson = False,
) -> None:
    """Watch brokers, partitions, faults and events as they change, until Ctrl-C."""
    is_screen = is_rich_terminal() and not as_json
    with suppress(KeyboardInterrupt), control_connection(control) as line:
        # Listened first and looked then, so that nothing is missed in between.
        news = EventListener(line.url, since=0 if is_screen else None)
        try:
            watched = WatchState(line, topic or ())
            if is_screen:
                from fencepost.cli.watch_screen import screen

                with screen(line.url) as draw:
                    _follow(watched, news, draw)
            else:
                _follow(watched, news, LinePrinter(as_json=as_json).print)
        finally:
            news.close()


class EventListener:
    """The cluster's events from now on, from a thread that waits for them.

    :param since: Begin with those that are kept and have a higher number.
    :raises VerbError: When the cluster does not tell them.
    """

    def __init__(self, url: str, *, since: int | None) -> None:
        self._line = ControlConnection(url)
        given = {} if since is None else {"since": since}
        self._events = self._line.call_stream(VERBS["events"], EventState, {}, given)
        self._queue: SimpleQueue[EventState | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def wait(self, timeout_s: float) -> EventState | None:
        """The next one; None where there will be no more, because the cluster has ended.

        :raises Empty: When there is none for so long.
        """
        return self._queue.get(timeout=timeout_s)

    def close(self) -> None:
        """Listen no more."""
        self._line.abort()
        self._thread.join(TICK_S)

    def _listen(self) -> None:
        with suppress(VerbError):
            for event in self._events:
                self._queue.put(event)
        self._queue.put(None)


def _follow(watched: WatchState, news: EventListener, draw: Show) -> None:
    """Show what there is and then what changes, until the cluster ends."""
    looked_at = monotonic()
    with suppress(Unreachable):
        while True:
            draw(watched)
            events = list(_burst(news))
            watched.record(event for event in events if event is not None)
            if events[-1:] == [None]:
                draw(watched)
                return
            if monotonic() - looked_at >= TICK_S:
                watched.refresh_some()
                looked_at = monotonic()


def _burst(news: EventListener) -> Iterator[EventState | None]:
    """What happens together; nothing where nothing happens for a while, None as the very last."""
    with suppress(Empty):
        event = news.wait(TICK_S)
        until = monotonic() + BURST_S
        while event is not None:
            yield event
            event = news.wait(max(0.0, until - monotonic()))
        yield None


class LinePrinter:
    """Prints what is new, a line each: of brokers, partitions, faults and events.

    :param as_json: As JSON: an object of one field, which is named after what it is.
    """

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._printed: dict[tuple[str, object], Answer] = {}
        self._newest_event = 0

    def print(self, watched: WatchState) -> None:
        """Print what is different from the last time."""
        for event in watched.events:
            if event.number > self._newest_event:
                self._newest_event = event.number
                self._print("event", event)
        for broker in watched.cluster.brokers:
            self._print_changed("broker", broker.id, broker)
        for name, partition in watched.partitions.items():
            self._print_changed("partition", name, partition)
        for fault in watched.faults:
            self._print_changed("fault", fault.id, fault)

    def _print_changed(self, kind: str, key: object, answer: Answer) -> None:
        if self._printed.get((kind, key)) != answer:
            self._printed[kind, key] = answer
            self._print(kind, answer)

    def _print(self, kind: str, answer: Answer) -> None:
        if self._as_json:
            print(f'{{"{kind}":{answer.model_dump_json()}}}', flush=True)
        else:
            show([tables.short(answer)])
