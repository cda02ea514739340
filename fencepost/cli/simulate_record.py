"""``fencepost simulate --record DIR``: writes the files that a served cluster would.

    DIR/data           as of ``serve --data-dir DIR/data``
    DIR/tier           as of ``--remote file://DIR/tier``
    DIR/trace          as of ``--trace DIR/trace``
    DIR/schedule.txt   what was done, step by step

The same seed leaves the same bytes. So there is nothing in them of the real time or of the user:
how long an answer took is told in simulated time.
"""

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path, PurePath
from typing import Final, cast

from fencepost.broker.core.context import Context, Peer
from fencepost.broker.core.errors import DataDirUnusable
from fencepost.broker.core.events import Event, Kind
from fencepost.broker.core.waits import Wait
from fencepost.broker.data_dir.directory import open_data_dir
from fencepost.broker.data_dir.persistence import DataDirPersistence
from fencepost.broker.node.broker import Broker
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.produce.expected_offsets import extract_expected_offsets
from fencepost.broker.server.journal import Exchange, Journal
from fencepost.broker.server.remote_urls import RemoteUnavailable, open_remote
from fencepost.broker.server.trace_file import Item, RotatingFile, subscribe
from fencepost.control.message_json import TraceLines
from fencepost.protocol.apis import BY_NAME, Api
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.codec import decode_request, encode_request, encode_response
from fencepost.protocol.frames import read_header, skip_tags
from fencepost.protocol.messages.produce import ProduceRequest
from fencepost.simulation.environment import RunEnvironment
from fencepost.simulation.runner import Outcome, run_long
from fencepost.storage.files.file_system import RealFile, RealFileSystem

_PRODUCE: Final = BY_NAME["produce"]
_SIZE_BYTES: Final = 4
_US_PER_MS: Final = 1000
_TOPIC_CONFIGS: Final = {
    "index.interval.bytes": "200",
    "retention.bytes": "30000",
    "local.retention.bytes": "3000",
}
"""Segments are small, and still have something in their indexes; much of ten minutes stays."""
_CONFIGS: Final = {"offsets.topic.num.partitions": "2"}
"""Two groups need no more."""


class CannotRecord(Exception):
    """A directory that can't be written to; the message is one readable line."""


def record(directory: Path, seed: int, minutes: float, *, heals: bool = True) -> Outcome:
    """Run a seed for some time, and write the files that a served cluster would.

    :param directory: Empty, or not there.
    :param minutes: Of simulated time.
    :param heals: Whether the cluster is mended and ends in order, or is left as by ``kill -9``.
    :raises CannotRecord: When the directory can't be used.
    """
    try:
        directory = directory.absolute()
        if directory.exists() and any(directory.iterdir()):
            raise CannotRecord(f"{directory} is not empty")
        return _record(directory, seed, minutes, heals=heals)
    except (DataDirUnusable, RemoteUnavailable) as error:
        raise CannotRecord(str(error)) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise CannotRecord(f"can't write to {error.filename or directory}: {reason}") from error


def _record(directory: Path, seed: int, minutes: float, *, heals: bool) -> Outcome:
    data = directory / "data"
    data_dir = open_data_dir(_Files(), data, broker_ids=(), sync=False)  # it is new: any ids do
    trace = _Trace(directory / "trace", seed)
    try:
        stage = RunEnvironment(
            make_persistence=partial(DataDirPersistence, data_dir),
            send=trace.ask,
            observe=trace.follow,
            is_realistic=True,
            configs=_CONFIGS,
            topic_configs=_TOPIC_CONFIGS,
        )
        outcome, objects = run_long(seed, minutes, stage, heals=heals)
        if heals:
            trace.end()
    finally:
        trace.close()
        data_dir.close()
    _store(directory / "tier", objects)
    (directory / "schedule.txt").write_text(f"{outcome.schedule}\n", encoding="utf-8")
    return outcome


def _store(folder: Path, objects: Mapping[str, bytes]) -> None:
    """Write the tier's objects as a cluster with a folder for its tier does."""
    store = open_remote(folder.as_uri(), os.environ)
    for key, data in objects.items():
        store.put(key, data, use_multipart=False)


class _Trace:
    """Clients' connections, the journal, and the lines of what both see."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.journal = Journal()
        self._directory = directory
        self._seed = seed
        self._lines = TraceLines()
        self._parts: RotatingFile | None = None
        self._correlation_ids = count(1)
        self._open: dict[int, Exchange] = {}
        """What is not answered yet, by correlation id."""
        self._wall_ms: Callable[[], int] = int

    def follow(self, cluster: Cluster) -> None:
        """Write down what there is, and what happens from now on."""
        self._wall_ms = cluster.scheduler.wall_ms
        cluster.network.observe = self.journal.observe
        cluster.events.newest_request = lambda: self.journal.newest
        subscribe(cluster, self.journal, self._write)

    def end(self) -> None:
        """Write what was never answered, and that there is no more."""
        for exchange in self._open.values():
            self.journal.abandon(exchange)
        newest = self.journal.newest
        self._write(Event(kind=Kind.TRACE_ENDED, time_ms=self._wall_ms(), newest=newest))

    def ask(self, broker: Broker, api: Api, version: int, request: object, peer: Peer) -> object:
        """Take a client's request to a broker, as bytes, and note both that and the answer."""
        exchange = self._begin(broker, api, version, request, peer)
        decoded = decode_request(
            api, version, exchange.frame, exchange.body_offset, exchange.dialect
        )
        now_ms = broker.scheduler.now_ms()
        ctx = Context(broker, version, peer.connection_id, peer, now_ms, exchange.time_ms)
        if api is _PRODUCE and broker.configs.may_check_expected_offsets:
            exchange.expected_offsets = extract_expected_offsets(
                broker, cast(ProduceRequest, decoded)
            )
        answer = broker.handle(api, ctx, decoded)
        if not isinstance(answer, Wait):
            self._end(exchange, broker, answer)
            return answer
        told: Wait[object] = Wait()
        self._open[exchange.correlation_id] = exchange

        def answered(response: object | None) -> None:
            del self._open[exchange.correlation_id]
            self._end(exchange, broker, response)
            told.complete(response)

        answer.then(answered)
        return told

    def _begin(
        self, broker: Broker, api: Api, version: int, request: object, peer: Peer
    ) -> Exchange:
        name, number = peer.connection_id, next(self._correlation_ids)
        chunks = encode_request(api, version, number, name, request, peer.dialect)
        frame = bytearray().join(chunks)[_SIZE_BYTES:]
        offset = skip_tags(frame, read_header(frame), api)
        wall_ms = broker.scheduler.wall_ms()
        exchange = Exchange(
            wall_ms, broker.broker_id, name, name, api, version, number, frame, offset, peer.dialect
        )
        self.journal.open(exchange)
        return exchange

    def _end(self, exchange: Exchange, broker: Broker, answer: object | None) -> None:
        chunks: list[Buffer] | None = None
        if answer is not None:
            number = exchange.correlation_id
            chunks = encode_response(
                exchange.api, exchange.version, number, answer, exchange.dialect
            )
        self.journal.close(exchange, chunks, answer, broker.scheduler.wall_ms())

    def _write(self, item: Item) -> None:
        if not isinstance(item, Event) and item.answered_ms is not None:
            item.elapsed_us = (item.answered_ms - item.time_ms) * _US_PER_MS
        if self._parts is None:
            start = datetime.fromtimestamp(self._wall_ms() / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
            self._parts = RotatingFile(self._directory, f"trace-{start}-{self._seed}")
        self._parts.write(self._lines(item))

    def close(self) -> None:
        """Write all that is left."""
        if self._parts is not None:
            self._parts.close()


class _File(RealFile):
    """A file that need not outlast a power failure."""

    __slots__ = ()

    def sync(self) -> None:
        """Nothing: it takes long, and brokers do it often."""


class _Files(RealFileSystem):
    """Files that need not outlast a power failure."""

    def open(self, path: PurePath) -> RealFile:
        """A file for reading and appending, made if it is missing."""
        return _File(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))

    def sync_dir(self, directory: PurePath) -> None:
        """Nothing, as with files."""

    def sync_all(self) -> None:
        """Nothing: it would sync the whole machine."""
