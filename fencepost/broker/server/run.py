"""Runs a cluster in this process until a signal, or the end of standard input, stops it.

With ``--stop-with-stdin`` standard input is a lifeline: the server stops when the process at its
other end closes it or dies. A line ``reset`` on it resets the cluster, and a line on standard
output confirms it, so that a test harness need not wait until the control API is imported.
"""

import asyncio
import gc
import os
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from enum import StrEnum
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct, field

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.scheduler import Clock, ManualClock
from fencepost.broker.metadata.image import Address
from fencepost.broker.node.cluster import (
    Cluster,
    ClusterOptions,
    Conformance,
    MakeObjectStore,
)
from fencepost.broker.server import logs
from fencepost.broker.server.addresses import (
    LOOPBACK,
    WILDCARDS,
    Sockets,
    bind_all,
    bootstrap,
    broker_addresses,
    controller_address,
)
from fencepost.broker.server.event_loop import SystemClock
from fencepost.broker.server.idle_work import PREPARE_AFTER_S, IdleWork, prepare_apis
from fencepost.broker.server.remote_urls import is_in_memory
from fencepost.broker.server.resources import (
    DescriptorBudget,
    available_memory,
    descriptor_budget,
    descriptor_limit,
    memory_shares,
)
from fencepost.broker.server.server import Server
from fencepost.broker.server.trace_file import MakeDescribe, TraceFile
from fencepost.optional_packages import as_if_unused
from fencepost.protocol.apis import ceilings_without_topic_ids
from fencepost.protocol.listener_text import ListenerSpec, in_uri

if TYPE_CHECKING:
    from fencepost.broker.node.persistence import MakePersistence
    from fencepost.protocol.codec.drafts import Draft


RESET: Final = b"reset"
_STDIN: Final = 0
_CHUNK: Final = 65536


def follow_stdin(
    reset: Callable[[], Coroutine[None, None, None]], stop: Callable[[], None]
) -> None:
    """Execute the commands on standard input in the running loop; other lines are ignored.

    A daemon thread reads it, because an event loop can wait for pipes, but not for files or
    ``/dev/null``.

    :param reset: Resets the cluster and confirms it. When the reset is refused, the server stops,
        because its state would be unknown to the harness.
    :param stop: Called when standard input ends.
    """
    loop = asyncio.get_running_loop()

    def follow() -> None:
        try:
            for line in _lines():
                if line == RESET:
                    asyncio.run_coroutine_threadsafe(reset(), loop).result()
        except ControllerError as error:
            logs.logger().error("reset_refused", detail=str(error))
        with suppress(RuntimeError):  # the loop has ended before
            loop.call_soon_threadsafe(stop)

    threading.Thread(target=follow, name="stdin", daemon=True).start()


def _lines() -> Iterator[bytes]:
    """The complete lines of standard input, as they arrive."""
    if sys.stdin is None:  # it was closed, and its descriptor may be another file's now
        return
    partial_line = b""
    with suppress(OSError):
        while chunk := os.read(_STDIN, _CHUNK):
            *lines, partial_line = (partial_line + chunk).split(b"\n")
            yield from lines


NO_LIMIT: Final = 0

ControlPlane: TypeAlias = Callable[[Server, socket.socket, asyncio.Event], Awaitable[None]]
"""Serves the control API on a listening socket until the event is set."""


class ClockMode(StrEnum):
    """The clock of a cluster."""

    REAL = "real"
    """The wall clock."""
    MANUAL = "manual"
    """Starts at the wall clock's time and stands still until a caller advances it."""


class ServeOptions(Struct, frozen=True, kw_only=True):
    """The validated options of ``fencepost serve``."""

    brokers: int = 1
    broker_ids: tuple[int, ...] = ()
    """One for each broker, in ascending order; empty: from 1 on."""
    controller_ids: tuple[int, ...] = ()
    """The quorum's voters, the active one first; empty: a broker is the only one."""
    listeners: tuple[ListenerSpec, ...] = (ListenerSpec(),)
    """Those of each broker, the bootstrap's first; their names and ports are distinct."""
    controller: ListenerSpec | None = None
    """Where the controller listens for tools; None is nowhere."""
    control_port: int = 9644
    control_host: str = "127.0.0.1"
    control_token: str | None = None
    """What requests to the control API have to carry; None where they need nothing."""
    control_token_drawn: bool = False
    """Whether it was drawn, so that its owner has it from the ready line or the log."""
    max_memory: int | None = None
    """The most bytes of logs in memory, `NO_LIMIT` for any number; None is a share of what the
    process may have. With a data directory it has no effect."""
    data_dir: Path | None = None
    """The data directory, absolute; None keeps the cluster in memory."""
    fsync: bool = False
    """Whether every append is synced to disk before its response."""
    accept_data_loss: bool = False
    """Whether partitions are served whose files miss records that they had."""
    remote: str | None = None
    """The URL of the remote tier, valid by `remote_problem`; None leaves it to the configs."""
    topics: tuple[NewTopic, ...] = ()
    configs: Mapping[str, str] = field(default_factory=dict)
    broker_configs: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    """Configs of single brokers, and of the active controller, by node id."""
    features: Mapping[str, int] = field(default_factory=dict)
    """Levels of features to start with, by name; where not the highest."""
    racks: tuple[str, ...] = ()
    """The racks of the brokers in the order of their ids, repeated where there are fewer."""
    log_dirs: int = 1
    """How many log directories each broker has."""
    api_max: Mapping[str, int] = field(default_factory=dict)
    """Lower limits of the highest version, by API name; below the lowest version the API is not
    served."""
    trace: Path | None = None
    """The directory of the trace; None writes none."""
    trace_files: int | None = None
    """How many of its newest files are kept; None keeps all."""
    clock: ClockMode = ClockMode.REAL
    conformance: Conformance = Conformance.KIP
    dialect: "Draft | None" = None
    """The draft that is served to clients that ask for it."""
    strict_configs: bool = False
    """Whether a config without effect is refused, and an unknown one."""
    seed: int = 0
    ignored_variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that have no effect, with the reason, for the log."""
    log_level: str = "info"
    """One of ``logs.LEVELS``."""
    stop_with_stdin: bool = False
    """Whether the end of standard input stops the server, and a line ``reset`` resets it."""

    @property
    def ids(self) -> Sequence[int]:
        """The brokers' ids, in ascending order."""
        return self.broker_ids or range(1, self.brokers + 1)


class Ready(Struct, frozen=True, kw_only=True):
    """The addresses that ``serve`` prints once every listener accepts."""

    bootstrap: str
    """Of the first listener."""
    listeners: Mapping[str, str]
    """The bootstrap of each listener, by name: ``host:port,...`` as brokers advertise them."""
    control: str
    pid: int
    controller: str | None = None
    """Where the controller listens for tools; None where it does not."""


def tune_garbage_collection() -> None:
    """Let the garbage collector scan less, and less often.

    The objects of start-up live as long as the process, and few others are in cycles: scans after
    every 700 allocations would only delay requests, and a start with thousands of logs. A large
    request makes a million objects: they are scanned in parts, as a scan of all of them would hold
    every connection up for 0.1 s. A part has about 14,000 of them at most, which takes less than
    half a millisecond. While clients are served it is done more often (`BusyPoll`), and the last
    threshold is of that.
    """
    gc.freeze()
    gc.set_threshold(2_000, 5, 200_000)


def run(
    options: ServeOptions,
    control_plane: ControlPlane,
    on_ready: Callable[[Ready], None],
    make_describe: MakeDescribe,
) -> None:
    """Serve until SIGTERM or SIGINT, or until standard input ends if the options say so.

    :param on_ready: Called once every port accepts.
    :param make_describe: Makes the formatter of a trace's lines.
    :raises PortUnavailable: When a port can't be listened on.
    :raises TraceUnavailable: When the directory of the trace can't be written to.
    :raises TooFewDescriptors: When the process may open too few files and connections.
    :raises DataDirUnusable: When the data directory can't be used.
    :raises RemoteUnavailable: When the remote tier can't be used.
    :raises ControllerError: When a topic of the options can't be created.
    """
    logs.set_level(options.log_level)
    for variable, reason in options.ignored_variables.items():
        logs.logger().warning("variable_ignored", variable=variable, detail=reason)
    logs.protect_stderr()
    new_event_loop = _event_loops().new_event_loop
    with (
        _trace_file(options, make_describe) as trace,
        asyncio.Runner(loop_factory=new_event_loop) as runner,
    ):
        runner.run(_serve_with_tier(options, control_plane, on_ready, trace))


def _trace_file(
    options: ServeOptions, make_describe: MakeDescribe
) -> AbstractContextManager[TraceFile | None]:
    if options.trace is None:
        return nullcontext()
    return TraceFile(options.trace, make_describe, keep=options.trace_files)


def _event_loops() -> ModuleType:
    """Choose uvloop, or asyncio on Windows, where there is no uvloop."""
    try:
        with as_if_unused("ssl"):  # no listener has TLS
            return import_module("uvloop")
    except ModuleNotFoundError:
        return asyncio


async def _serve_with_tier(
    options: ServeOptions,
    control_plane: ControlPlane,
    on_ready: Callable[[Ready], None],
    trace: TraceFile | None,
) -> None:
    with _open_objects(options) as make_objects:
        await _serve(options, control_plane, on_ready, trace, make_objects)


def _open_objects(options: ServeOptions) -> AbstractContextManager[MakeObjectStore | None]:
    """The object store of ``--remote``; the cluster makes one in memory itself if it needs one."""
    if options.remote is None or is_in_memory(options.remote):
        return nullcontext()
    # A late import: start-up time counts, and few clusters have one.
    from fencepost.broker.server.object_store import open_objects

    return open_objects(options.remote, at_once=options.clock is ClockMode.MANUAL)


async def _serve(
    options: ServeOptions,
    control_plane: ControlPlane,
    on_ready: Callable[[Ready], None],
    trace: TraceFile | None,
    make_objects: MakeObjectStore | None,
) -> None:
    descriptors = _descriptors(options)
    sockets = bind_all(
        options.listeners,
        brokers=options.brokers,
        controller=options.controller,
        control=(options.control_host, options.control_port),
    )
    tune_garbage_collection()  # of what is imported; again when the cluster is there
    clock = _make_clock(options.clock)
    shares = memory_shares(available_memory())
    cluster = _make_cluster(options, sockets, clock, make_objects, shares.logs, descriptors)
    server = Server(
        cluster,
        clock,
        sockets.brokers,
        controller_socket=sockets.controller,
        max_request_bytes=shares.requests,
        descriptors=descriptors,
    )
    if trace is not None:
        trace.subscribe(server)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    with _serving_files(cluster):
        await server.start()
        tune_garbage_collection()
        ready = partial(on_ready, _ready(server, options.control_host, sockets.control))
        ready()
        logs.protect_stdout()  # a reset writes to it as well
        if cluster.persistence is None:
            cluster.events.tell_start()
        else:
            from fencepost.broker.server.persistence import log_recovery

            log_recovery(cluster)
        if options.stop_with_stdin:
            follow_stdin(partial(_reset, server, ready), stop.set)
        preparation = IdleWork(loop, prepare_apis(), PREPARE_AFTER_S)
        plane = asyncio.ensure_future(control_plane(server, sockets.control, stop))
        plane.add_done_callback(lambda _: stop.set())  # if it fails, the server stops
        await stop.wait()
        preparation.stop()
        server.event_log.begin()
        logs.logger().info("stopping")
        await server.stop()
    cluster.close()
    await plane


def _descriptors(options: ServeOptions) -> DescriptorBudget:
    return descriptor_budget(
        descriptor_limit(),
        brokers=options.brokers,
        listeners=len(options.listeners),
        has_files=options.data_dir is not None,
        has_remote=options.remote is not None and not is_in_memory(options.remote),
    )


def _serving_files(cluster: Cluster) -> AbstractContextManager[None]:
    if cluster.persistence is None:
        return nullcontext()
    from fencepost.broker.server.persistence import serve_files

    return serve_files(cluster)


async def _reset(server: Server, ready: Callable[[], None]) -> None:
    await server.reset()
    ready()


def _make_clock(mode: ClockMode) -> Clock:
    real = SystemClock()
    return ManualClock(real.now_ms()) if mode is ClockMode.MANUAL else real


def _make_cluster(
    options: ServeOptions,
    sockets: Sockets,
    clock: Clock,
    make_objects: MakeObjectStore | None,
    log_share: int,
    descriptors: DescriptorBudget,
) -> Cluster:
    first, *others = broker_addresses(options.listeners, options.ids, sockets.brokers)
    max_log_bytes = log_share if options.max_memory is None else options.max_memory
    cluster_options = ClusterOptions(
        addresses=first,
        other_addresses=tuple(others),
        broker_ids=tuple(options.ids),
        controller_ids=options.controller_ids,
        controller_address=_controller_address(options, sockets.controller),
        topics=options.topics,
        configs=options.configs,
        broker_configs=options.broker_configs,
        features=options.features,
        racks=options.racks,
        log_dirs=options.log_dirs,
        api_max=_with_what_follows(options.api_max),
        conformance=options.conformance,
        dialect=options.dialect,
        strict_configs=options.strict_configs,
        seed=options.seed,
    )
    return Cluster(
        cluster_options,
        clock,
        make_persistence=_open_data_dir(options, descriptors),
        make_objects=make_objects,
        max_log_bytes=None if max_log_bytes == NO_LIMIT or options.data_dir else max_log_bytes,
        log_levels=logs.levels,
    )


def _with_what_follows(api_max: Mapping[str, int]) -> Mapping[str, int]:
    """The ceilings, and lower ones for APIs that clients could not use otherwise."""
    lowered = ceilings_without_topic_ids(api_max)
    if lowered:
        logs.logger().info(
            "versions_lowered",
            detail=f"Metadata is served up to version {api_max['metadata']}, from which clients"
            " learn no topic ids",
            **lowered,
        )
    return {**api_max, **lowered}


def _open_data_dir(
    options: ServeOptions, descriptors: DescriptorBudget
) -> "MakePersistence | None":
    if options.data_dir is None:
        return None
    # A late import: start-up time counts, and few clusters have one.
    from fencepost.broker.data_dir.directory import open_data_dir
    from fencepost.broker.data_dir.persistence import DataDirPersistence
    from fencepost.storage.files.file_system import RealFileSystem
    from fencepost.storage.files.process_limits import ProcessLimits

    data_dir = open_data_dir(
        RealFileSystem(),
        options.data_dir,
        broker_ids=options.ids,
        sync=options.fsync,
        accepts_loss=options.accept_data_loss,
    )
    shared = ProcessLimits(open_files=descriptors.files)
    descriptors.resize_files = shared.open_files.resize
    return partial(DataDirPersistence, data_dir, shared=shared)


def _controller_address(options: ServeOptions, sock: socket.socket | None) -> Address | None:
    if options.controller is None or sock is None:
        return None
    return controller_address(options.controller, (*options.controller_ids, *options.ids)[0], sock)


def _ready(server: Server, control_host: str, control_socket: socket.socket) -> Ready:
    options = server.cluster.options
    controller = options.controller_address
    if control_host in WILDCARDS:
        control_host = options.addresses[0].advertised_host or LOOPBACK
    return Ready(
        bootstrap=bootstrap(options.addresses),
        listeners={each[0].listener: bootstrap(each) for each in options.listeners},
        controller=None if controller is None else bootstrap([controller]),
        control=f"http://{in_uri(control_host)}:{control_socket.getsockname()[1]}",
        pid=os.getpid(),
    )
