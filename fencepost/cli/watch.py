"""``fencepost watch``: a cluster as it changes, until Ctrl-C or its end.

On a terminal it is one screen, which is redrawn; anywhere else it is lines. Events say when to
refresh the state; changes without an event, such as new records, are read every second.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Annotated, Final, NamedTuple, TypeAlias

import typer

from fencepost.cli import tables
from fencepost.cli.output import is_rich_terminal, show, show_json
from fencepost.cli.typer_options import (
    AsJson,
    ControlToken,
    ControlUrl,
    control_connection,
    ignoring_errors,
    topics,
)
from fencepost.verbs.answers import Answer
from fencepost.verbs.answers.cluster import ClusterState, EventState
from fencepost.verbs.answers.faults import FaultState
from fencepost.verbs.answers.topics import PartitionState, TopicState
from fencepost.verbs.answers.transactions import TransactionsState, TransactionState
from fencepost.verbs.catalogue import VERBS
from fencepost.verbs.remote import ControlConnection, Refused, Unreachable, VerbError
from fencepost.verbs.transaction_text import is_open

MAX_EVENTS: Final = 4096
"""Events that are kept."""
MAX_PARTITIONS: Final = 200
"""How many partitions are shown: to describe one takes the cluster a moment."""
REFRESH_BATCH: Final = 20
"""How many partitions are read again each second: no event says that records were appended."""

_CLUSTER_WIDE_KINDS: Final = frozenset(
    {"broker_changed", "partitions_added", "reset", "topic_created", "topic_deleted"}
)
"""Kinds of events that concern more than one partition."""


class TopicPartition(NamedTuple):
    """A partition. Those of Kafka's own topics sort last."""

    internal: bool
    topic: str
    partition: int


class WatchState:
    """The last state of a cluster that was read.

    :param topics: The topics to watch; none stands for all.
    :raises Unreachable: From every method, when the cluster is gone.
    """

    def __init__(self, line: ControlConnection, topics: Sequence[str]) -> None:
        self._line = line
        self.cluster: ClusterState
        self.partitions: dict[TopicPartition, PartitionState] = {}
        self.faults: Sequence[FaultState] = ()
        self.transactions: Sequence[TransactionState] = ()
        """Those that are open, of the watched topics."""
        self.events: deque[EventState] = deque(maxlen=MAX_EVENTS)
        self.omitted = 0
        """How many partitions are beyond `MAX_PARTITIONS`."""
        self._topics = frozenset(topics)
        self._next = 0
        self.refresh_all()

    def is_watched(self, event: EventState) -> bool:
        """Whether an event concerns the watched topics."""
        return event.topic is None or not self._topics or event.topic in self._topics

    def record(self, events: Iterable[EventState]) -> None:
        """Keep events, and read the partitions that they concern."""
        news = list(filter(self.is_watched, events))
        self.events += news
        if any(each.kind in _CLUSTER_WIDE_KINDS for each in news):
            self.refresh_all()
            return
        if any(each.partition is None for each in news):
            self._refresh_cluster()
        names = {(each.topic, each.partition) for each in news}
        self._refresh_partitions(
            [each for each in sorted(self.partitions) if (each.topic, each.partition) in names]
        )

    def refresh_some(self) -> None:
        """Read the cluster, faults, open transactions, and the next `REFRESH_BATCH` partitions."""
        self._refresh_cluster()
        names = sorted(self.partitions)
        self._next = self._next if self._next < len(names) else 0
        self._refresh_partitions(names[self._next : self._next + REFRESH_BATCH])
        self._next += REFRESH_BATCH

    def refresh_all(self) -> None:
        """Read the cluster, faults, open transactions, and all watched partitions."""
        self._refresh_cluster()
        topics = self._line.call_list(VERBS["topics"], TopicState, {}, {})
        names = [
            TopicPartition(topic.internal, topic.name, index)
            for topic in topics
            if topic.name in (self._topics or {topic.name})
            for index in range(topic.partitions)
        ]
        names.sort()
        wanted = list(islice(names, MAX_PARTITIONS))
        self.omitted = len(names) - len(wanted)
        for gone in self.partitions.keys() - set(wanted):
            del self.partitions[gone]
        self._refresh_partitions(wanted)

    def _refresh_cluster(self) -> None:
        self.cluster = self._line.call(VERBS["cluster"], ClusterState, {}, {})
        self.faults = self._line.call_list(VERBS["faults"], FaultState, {}, {})
        found = self._line.call(VERBS["transactions"], TransactionsState, {}, {})
        self.transactions = [*filter(self._is_watched_and_open, found.transactions)]

    def _is_watched_and_open(self, state: TransactionState) -> bool:
        topics = {each.rpartition("-")[0] for each in (*state.partitions, *state.held)}
        return is_open(state) and not (self._topics and topics.isdisjoint(self._topics))

    def _refresh_partitions(self, names: Iterable[TopicPartition]) -> None:
        for name in names:
            path = {"topic": name.topic, "partition": name.partition}
            try:
                state = self._line.call(VERBS["partition"], PartitionState, path, {})
            except Refused:  # it is gone by now
                self.partitions.pop(name, None)
            else:
                self.partitions[name] = state
        self.partitions = dict(sorted(self.partitions.items()))


TICK_S: Final = 1.0
"""The interval of refreshes while no events arrive."""
BURST_S: Final = 0.1
"""Events within it are shown together."""

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
    control_token: ControlToken = None,
    as_json: AsJson = False,
) -> None:
    """Watch brokers, partitions, open transactions, faults and events, until Ctrl-C."""
    is_screen = is_rich_terminal() and not as_json
    with suppress(KeyboardInterrupt), control_connection(control, control_token) as line:
        # Listen first and read the state then, so that no change is missed in between.
        news = EventListener(line.url, since=0 if is_screen else None, token=line.token)
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
    """The cluster's events from now on, received by a thread.

    :param since: Begin with the kept events of a higher number.
    :param token: What the control API needs where other machines can reach it.
    :raises VerbError: When the cluster refuses the stream.
    """

    def __init__(self, url: str, *, since: int | None, token: str | None = None) -> None:
        self._line = ControlConnection(url, token=token)
        given = {} if since is None else {"since": since}
        self._events = self._line.call_stream(VERBS["events"], EventState, {}, given)
        self._queue: SimpleQueue[EventState | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def wait(self, timeout_s: float) -> EventState | None:
        """The next event; None when the cluster has ended.

        :raises Empty: When none arrives in time.
        """
        return self._queue.get(timeout=timeout_s)

    def close(self) -> None:
        """Close the stream."""
        self._line.abort()
        self._thread.join(TICK_S)

    def _listen(self) -> None:
        with suppress(VerbError):
            for event in self._events:
                self._queue.put(event)
        self._queue.put(None)


def _follow(watched: WatchState, news: EventListener, draw: Show) -> None:
    """Show the state and then its changes, until the cluster ends."""
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
    """Events that arrive together, none after `TICK_S` of silence; None when the cluster ends."""
    with suppress(Empty):
        event = news.wait(TICK_S)
        until = monotonic() + BURST_S
        while event is not None:
            yield event
            event = news.wait(max(0.0, until - monotonic()))
        yield None


class LinePrinter:
    """Prints each change of a broker, partition, open transaction or fault, and each event, as one
    line.

    :param as_json: As JSON: an object of one field, whose name is the kind.
    """

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._printed: dict[tuple[str, object], Answer] = {}
        self._newest_event = 0

    def print(self, watched: WatchState) -> None:
        """Print the changes since the last call."""
        for event in watched.events:
            if event.number > self._newest_event:
                self._newest_event = event.number
                self._print("event", event)
        for broker in watched.cluster.brokers:
            self._print_changed("broker", broker.id, broker)
        for name, partition in watched.partitions.items():
            self._print_changed("partition", name, partition)
        for transaction in watched.transactions:
            self._print_changed("transaction", transaction.transactional_id, transaction)
        for fault in watched.faults:
            self._print_changed("fault", fault.id, fault)

    def _print_changed(self, kind: str, key: object, answer: Answer) -> None:
        if self._printed.get((kind, key)) != answer:
            self._printed[kind, key] = answer
            self._print(kind, answer)

    def _print(self, kind: str, answer: Answer) -> None:
        if self._as_json:
            show_json(f'{{"{kind}":{answer.model_dump_json()}}}')
        else:
            show([tables.short(answer)])
