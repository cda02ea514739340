"""The files of a trace: ``NAME-0001.jsonl`` and so on, each of some size.

What a trace tells besides requests and changes: how the cluster was when it began.

Without that nobody could tell what a change is one from.

``serve --trace DIR``: every request with its answer, and every event, as lines in files.

A thread of its own describes and writes them, so that the loop only hands them over. It may fall
behind for a while; then the loop waits for it, because nothing is to be lost. Lines are in the file
as soon as there is nothing more to write, and all of them when the process has ended in order.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, BinaryIO, Final, Self, TypeAlias

from fencepost.broker.configs.broker_configs import broker_configs
from fencepost.broker.core.events import Event, Kind, topic_details
from fencepost.broker.metadata.image import ClusterImage, TopicImage
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.server import logs
from fencepost.broker.server.journal import AnyExchange

if TYPE_CHECKING:
    from fencepost.broker.server.journal import Journal
    from fencepost.broker.server.server import Server


MAX_FILE_BYTES: Final = 64 << 20
"""A file ends with the line that takes it there."""


class RotatingFile:
    """Files that are written one after the other.

    :param name: Of all of them.
    :param keep: How many of them are kept, the newest; None: all.
    :raises OSError: (as every method) When a file can't be made or written.
    """

    def __init__(self, directory: Path, name: str, *, keep: int | None = None) -> None:
        self._directory = directory
        self._name = name
        self._keep = keep
        self._paths: list[Path] = []
        self._written = 0
        """Bytes in the present file."""
        directory.mkdir(parents=True, exist_ok=True)
        self._file = self._next_file()

    def write(self, line: bytes) -> None:
        """Add a line, which is given without its end."""
        self._file.write(line + b"\n")
        self._written += len(line) + 1
        if self._written >= MAX_FILE_BYTES:
            self._file.close()
            self._file = self._next_file()

    def flush(self) -> None:
        """Let others read what was written so far."""
        self._file.flush()

    def close(self) -> None:
        """Write all that is left."""
        self._file.close()

    def _next_file(self) -> BinaryIO:
        path = self._directory / f"{self._name}-{len(self._paths) + 1:04}.jsonl"
        file = path.open("xb")
        self._paths.append(path)
        self._written = 0
        if self._keep is not None and len(self._paths) > self._keep:
            self._paths[-self._keep - 1].unlink(missing_ok=True)
        return file


def initial_events(cluster: Cluster) -> Iterator[Event]:
    """The configs, and every topic."""
    image, now_ms = cluster.controller.image, cluster.scheduler.now_ms()
    details = {
        "brokers": list(image.brokers),
        "conformance": cluster.options.conformance.value,
        "configs": _without_secrets(cluster.options.configs),
        "dynamic_configs": {
            "" if broker is None else str(broker): _without_secrets(configs)
            for broker, configs in image.broker_configs.items()
        },
        "features": dict(image.features),
    }
    yield Event(kind=Kind.TRACE_STARTED, time_ms=now_ms, details=details)
    for topic in image.topics.values():
        yield Event(
            kind=Kind.TOPIC_KNOWN,
            time_ms=now_ms,
            topic=topic.name,
            details=_all_details(image, topic),
        )


def with_details(cluster: Cluster, event: Event) -> Event:
    """An event with all that there is to say: of a new topic its configs, and who leads."""
    image = cluster.controller.image
    topic = image.topics.get(event.topic or "")
    if event.kind is not Kind.TOPIC_CREATED or topic is None:
        return event
    return replace(event, details=_all_details(image, topic))


def _all_details(image: ClusterImage, topic: TopicImage) -> Mapping[str, object]:
    return {
        **topic_details(topic),
        "configs": dict(image.configs_of(topic.name)),
        "leaders": [[each.leader, each.leader_epoch] for each in topic.partitions],
        "isrs": [list(each.isr) for each in topic.partitions],
    }


def _without_secrets(configs: Mapping[str, str]) -> dict[str, str]:
    """What is no secret."""
    known = broker_configs()
    return {
        name: text
        for name, text in configs.items()
        if (config := known.get(name)) is not None and not config.sensitive
    }


MAX_BEHIND: Final = 4096
"""Lines that the thread may be behind."""
_POLL_INTERVAL_S: Final = 0.05
_SWITCH_INTERVAL_S: Final = 0.0005
"""While the thread describes something, the loop would wait for Python's 5 ms to serve a client."""


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """An event among the requests."""

    event: Event
    newest: int
    """Number of the last request that was taken up before."""


Item: TypeAlias = AnyExchange | TraceEvent
Describe: TypeAlias = Callable[[Item], bytes]
"""Makes a line of what happened, without its end."""
MakeDescribe: TypeAlias = Callable[[], Describe]
"""Called in the thread when there is something to describe."""


def subscribe(cluster: "Cluster", journal: "Journal", add: Callable[[Item], None]) -> None:
    """Hand over what there is, and what happens from now on."""
    # MOVED  # few write a trace

    def happened(event: Event) -> None:
        add(TraceEvent(with_details(cluster, event), journal.newest))

    for event in initial_events(cluster):
        happened(event)
    journal.listeners.append(add)
    cluster.events.listeners.append(happened)


class TraceUnavailable(OSError):
    """A directory that can't be written to; the message is one readable line."""


class TraceFile:
    """The files of one run.

    :param make_describe: Gives what makes lines.
    :param keep: How many of them are kept, the newest; None: all.
    :raises TraceUnavailable: When the first can't be made.
    """

    def __init__(
        self, directory: Path, make_describe: MakeDescribe, *, keep: int | None = None
    ) -> None:
        self._make_describe = make_describe
        self._describe: Describe | None = None
        start = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        try:
            self._files = RotatingFile(directory, f"trace-{start}-{os.getpid()}", keep=keep)
        except OSError as error:
            is_file = isinstance(error, FileExistsError)
            reason = "not a directory" if is_file else (error.strerror or str(error)).lower()
            raise TraceUnavailable(f"can't write to {directory}: {reason}") from error
        self._items: SimpleQueue[Item | None] = SimpleQueue()
        # Each is changed by one thread alone.
        self._taken = 0
        self._done = 0
        self._room = threading.Event()
        self._has_failed = False
        self._lacks_lines = False
        self._server: Server | None = None
        self._thread = threading.Thread(target=self._run, name="trace", daemon=True)

    def subscribe(self, server: "Server") -> None:
        """Write down what there is, and what happens from now on."""
        self._server = server
        subscribe(server.cluster, server.journal, self.add)

    def add(self, item: Item) -> None:
        """Hand something over; it waits while the thread is too far behind."""
        self._taken += 1
        self._items.put(item)
        if self._taken - self._done > MAX_BEHIND:
            self._wait_for_room()

    def __enter__(self) -> Self:
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_INTERVAL_S))
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Write all that is left, and that there is no more, unless something is missing."""
        self._items.put(None)
        self._thread.join()
        server = self._server
        if server is not None and kind is None and not (self._has_failed or self._lacks_lines):
            ended = Event(kind=Kind.TRACE_ENDED, time_ms=server.clock.now_ms())
            self._write(TraceEvent(ended, server.journal.newest))
        try:
            self._files.close()
        except OSError as error:  # also of a disk that failed before: it has a few bytes left
            self._fail(error)

    def _wait_for_room(self) -> None:
        while self._taken - self._done > MAX_BEHIND // 2:
            self._room.clear()
            self._room.wait(_POLL_INTERVAL_S)

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        while (item := self._items.get()) is not None:
            if not self._has_failed:
                self._write(item)
            self._done += 1
            if self._taken - self._done <= MAX_BEHIND // 2:
                self._room.set()

    def _write(self, item: Item) -> None:
        try:
            if self._describe is None:
                self._describe = self._make_describe()
            line = self._describe(item)
        except Exception:  # noqa: BLE001  # a bug costs one line, never those behind it
            self._lacks_lines = True
            logs.logger(part="trace").exception("line_failed")
            return
        try:
            self._files.write(line)
            if self._items.empty():
                self._files.flush()
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        if not self._has_failed:
            self._has_failed = True
            logs.logger(part="trace").error("trace_ended", detail=str(error))
