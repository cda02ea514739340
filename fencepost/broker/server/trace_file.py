"""``serve --trace DIR``: every request with its response, and every event, as lines in files.

The files are ``NAME-0001.jsonl`` and so on. A trace begins with the state of the cluster, from
which the later events can be followed.

A thread formats and writes the lines, so that the event loop only queues them. The loop waits when
the thread is too far behind, because no line may be lost. Lines are flushed whenever the queue is
empty, and all of them are in the files when the process ends regularly.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, BinaryIO, Final, Self, TypeAlias

from msgspec.structs import replace

from fencepost.broker.configs.broker_configs import broker_configs
from fencepost.broker.core.events import Event, Kind
from fencepost.broker.core.image_changes import topic_details
from fencepost.broker.metadata.image import ClusterImage, TopicImage
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.server import logs
from fencepost.broker.server.journal import AnyExchange

if TYPE_CHECKING:
    from fencepost.broker.server.journal import Journal
    from fencepost.broker.server.server import Server


MAX_FILE_BYTES: Final = 64 << 20
"""A file ends with the line that reaches this size."""


class RotatingFile:
    """A series of files: each is followed by the next one when it is full.

    :param name: The prefix of their names.
    :param keep: How many of the newest files are kept; None keeps all.
    :raises OSError: (as every method) When a file can't be created or written.
    """

    def __init__(self, directory: Path, name: str, *, keep: int | None = None) -> None:
        self._directory = directory
        self._name = name
        self._keep = keep
        self._paths: list[Path] = []
        self._written = 0
        """Bytes in the current file."""
        directory.mkdir(parents=True, exist_ok=True)
        self._file = self._next_file()

    def write(self, line: bytes) -> None:
        """Write a line and its line end."""
        self._file.write(line + b"\n")
        self._written += len(line) + 1
        if self._written >= MAX_FILE_BYTES:
            self._file.close()
            self._file = self._next_file()

    def flush(self) -> None:
        """Make the lines so far visible to readers."""
        self._file.flush()

    def close(self) -> None:
        """Write the buffered lines and close the current file."""
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
    """The events that describe the cluster as it is: its configs, and every topic."""
    image, wall_ms = cluster.controller.image, cluster.scheduler.wall_ms()
    details = {
        "cluster_id": image.cluster_id,
        "brokers": list(image.brokers),
        "conformance": cluster.options.conformance.value,
        "dialect": None if cluster.options.dialect is None else cluster.options.dialect.name,
        "configs": _without_secrets(cluster.options.configs),
        "dynamic_configs": {
            "" if broker is None else str(broker): _without_secrets(configs)
            for broker, configs in image.broker_configs.items()
        },
        "features": dict(image.features),
    }
    yield Event(kind=Kind.TRACE_STARTED, time_ms=wall_ms, details=details)
    for topic in image.topics.values():
        yield Event(
            kind=Kind.TOPIC_KNOWN,
            time_ms=wall_ms,
            topic=topic.name,
            details=_all_details(image, topic),
        )


def with_details(cluster: Cluster, event: Event) -> Event:
    """Add the configs and leaders of a new topic to its event; other events are unchanged."""
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
    """The configs that are not sensitive."""
    known = broker_configs()
    return {
        name: text
        for name, text in configs.items()
        if (config := known.get(name)) is not None and not config.sensitive
    }


MAX_BEHIND: Final = 4096
"""How many lines the thread may be behind."""
_POLL_INTERVAL_S: Final = 0.05
_SWITCH_INTERVAL_S: Final = 0.0005
"""With Python's 5 ms, the loop would wait so long for a thread that formats a line."""


Item: TypeAlias = AnyExchange | Event
Describe: TypeAlias = Callable[[Item], bytes]
"""Formats a line, without its end."""
MakeDescribe: TypeAlias = Callable[[], Describe]
"""Called once in the thread, before the first line."""


def subscribe(cluster: "Cluster", journal: "Journal", add: Callable[[Item], None]) -> None:
    """Add the cluster's state, and then every exchange and event."""
    for event in initial_events(cluster):
        add(replace(event, newest=journal.newest))
    journal.listeners.append(add)
    cluster.events.listeners.append(lambda event: add(with_details(cluster, event)))


class TraceUnavailable(OSError):
    """A directory can't be written to; the message is one readable line."""


class TraceFile:
    """The trace of one run.

    :param make_describe: Makes the formatter of lines.
    :param keep: How many of the newest files are kept; None keeps all.
    :raises TraceUnavailable: When the first file can't be created.
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
        # Each counter is changed by one thread alone.
        self._added = 0
        self._done = 0
        self._room = threading.Event()
        self._has_failed = False
        self._lacks_lines = False
        self._server: Server | None = None
        self._thread = threading.Thread(target=self._run, name="trace", daemon=True)

    def subscribe(self, server: "Server") -> None:
        """Write the cluster's state, and then every exchange and event."""
        self._server = server
        subscribe(server.cluster, server.journal, self.add)

    def add(self, item: Item) -> None:
        """Queue a line; blocks while the thread is too far behind."""
        self._added += 1
        self._items.put(item)
        if self._added - self._done > MAX_BEHIND:
            self._wait_for_room()

    def __enter__(self) -> Self:
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_INTERVAL_S))
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Write the rest of the queue; if no line is missing, the last line says so."""
        self._items.put(None)
        self._thread.join()
        server = self._server
        if server is not None and kind is None and not (self._has_failed or self._lacks_lines):
            now_ms, newest = server.clock.wall_ms(), server.journal.newest
            self._write(Event(kind=Kind.TRACE_ENDED, time_ms=now_ms, newest=newest))
        try:
            self._files.close()
        except OSError as error:  # also after an earlier failure: a few bytes are buffered
            self._fail(error)

    def _wait_for_room(self) -> None:
        while self._added - self._done > MAX_BEHIND // 2:
            self._room.clear()
            self._room.wait(_POLL_INTERVAL_S)

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        while (item := self._items.get()) is not None:
            if not self._has_failed:
                self._write(item)
            self._done += 1
            if self._added - self._done <= MAX_BEHIND // 2:
                self._room.set()

    def _write(self, item: Item) -> None:
        try:
            if self._describe is None:
                self._describe = self._make_describe()
            line = self._describe(item)
        except Exception:  # noqa: BLE001  # a bug costs one line, never the later ones
            self._lacks_lines = True
            logs.logger("fencepost.trace", part="trace").exception("line_failed")
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
            logs.logger("fencepost.trace", part="trace").error("trace_ended", detail=str(error))
