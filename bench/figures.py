"""What is measured: one function a figure, each on a fresh server of the kind it is given.

A figure answers a value for each of its rows; ``bench/catalogue.py`` lists the figures.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from bench import (
    big_cluster,
    busy,
    conditional,
    control,
    disk,
    first_requests,
    layers,
    load,
    mixed,
    pauses,
    pipeline_audit,
    pipeline_incremental,
    pipeline_large_partition,
    pipeline_load,
    pipeline_partitions,
    pipeline_scan,
    process,
    servers,
    simulation,
    stats,
    suite,
    wire,
)

SETTLE_S = 1.0
"""Between the last work and a look at memory, seconds."""

RESETS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much work the figures do."""

    records: int = 1_500_000
    python_records: int = 200_000
    transaction_records: int = 300_000
    requests: int = 10_000
    connections: int = 1_000
    topics: int = 10
    partitions: int = 1_000
    metadata_requests: int = 30
    used_records: int = 100_000
    calls: int = 200
    idle_partitions: int = 5_000
    file_records: int = 1 << 20
    audit_records: int = 976_640  # a gigabyte
    audit_partitions: int = 20_000
    scanned_mebibytes: int = 1_024
    partition_mebibytes: int = 10_240
    grown_mebibytes: int = 16_384
    load_records: int = 976_640
    request_bytes: int = 1_000_000
    first_requests: int = 20_000
    busy_connections: int = 1_000
    busy_requests: int = 40_000
    mixed_s: float = 20.0
    seeds: int = 40


QUICK = Scale(
    records=150_000,
    python_records=50_000,
    transaction_records=50_000,
    requests=2_000,
    connections=100,
    topics=2,
    partitions=500,
    metadata_requests=10,
    used_records=10_000,
    calls=50,
    idle_partitions=500,
    file_records=1 << 17,
    audit_records=97_664,
    audit_partitions=2_000,
    scanned_mebibytes=128,
    partition_mebibytes=1_024,
    grown_mebibytes=1_024,
    load_records=97_664,
    request_bytes=100_000,
    first_requests=2_000,
    busy_connections=100,
    busy_requests=4_000,
    mixed_s=5.0,
    seeds=10,
)


Values = Mapping[str, float]
Measure = Callable[[servers.Kind, Scale], Values]


def startup(kind: servers.Kind, _: Scale) -> Values:
    with servers.running(kind) as server:
        time.sleep(SETTLE_S)
        idle = process.memory(server.pid).resident
        return {"first_metadata": server.first_metadata_s * 1e3, "rss_idle": idle}


def first_verb(kind: servers.Kind, _: Scale) -> Values:
    """How long a test waits for its cluster and its topic; memory before and after."""
    with servers.running(kind) as server:
        before = process.memory(server.pid).resident
        elapsed = control.first_verb(server)
        after = process.memory(server.pid).resident
        return {
            "first_verb": elapsed,
            "start_and_verb": server.first_metadata_s * 1e3 + elapsed,
            "rss_ready": before,
            "rss_verb": after,
        }


@contextlib.contextmanager
def settled(kind: servers.Kind) -> Iterator[servers.Server]:
    """A server that has finished starting: how fast it starts is a figure of its own."""
    with servers.running(kind) as server:
        process.wait_until_idle(server.pid)
        yield server


def list_offsets(kind: servers.Kind, scale: Scale) -> Values:
    with settled(kind) as server:
        _some_records(server)
        p50, p99 = _round_trips(server, scale.requests)
        return {"list_offsets_p50": p50, "list_offsets_p99": p99}


def c_client(kind: servers.Kind, scale: Scale) -> Values:
    """Produce, look at memory, consume, look again; CPU time is of the whole process."""
    with settled(kind) as server:
        server.create_bench_topic()
        gigabytes = scale.records * load.RECORD_BYTES / 1e9
        before = process.cpu_seconds(server.pid)
        produced = load.produce(load.Client.C, server, scale.records)
        between = process.cpu_seconds(server.pid)
        time.sleep(SETTLE_S)
        loaded = process.memory(server.pid).resident
        rested = process.cpu_seconds(server.pid)
        consumed = load.consume(load.Client.C, server, scale.records)
        spent = process.cpu_seconds(server.pid) - rested
        time.sleep(SETTLE_S)
        after = process.memory(server.pid)
        return {
            "produce_c": produced.per_second / 1e3,
            "produce_cpu": (between - before) / gigabytes,
            "rss_loaded": loaded,
            "consume_c": consumed.per_second / 1e3,
            "consume_cpu": spent / gigabytes,
            "rss_consumed": after.resident,
            "rss_peak": after.peak,
        }


PRODUCERS_AT_ONCE = 8


def transactions(kind: servers.Kind, scale: Scale) -> Values:
    """Transactions one after the other, each with its commit, of one producer and of several.

    CPU time is of the whole process.
    """
    if isinstance(kind, servers.Fencepost):
        kind = replace(kind, configs=servers.TRANSACTION_CONFIGS)
    with settled(kind) as server:
        server.create_bench_topic()
        before = process.cpu_seconds(server.pid)
        moved = load.transact(server, scale.transaction_records)
        spent = process.cpu_seconds(server.pid) - before
        at_once = load.transact(server, scale.transaction_records, producers=PRODUCERS_AT_ONCE)
        return {
            "transact_c": moved.per_second / 1e3,
            "transact_cpu": spent * 1e3 / (moved.records / load.TRANSACTION_RECORDS),
            "transact_at_once_c": at_once.per_second / 1e3,
        }


def python_client(kind: servers.Kind, scale: Scale) -> Values:
    with settled(kind) as server:
        server.create_bench_topic()
        produced = load.produce(load.Client.PYTHON, server, scale.python_records)
        consumed = load.consume(load.Client.PYTHON, server, scale.python_records)
        return {
            "produce_py": produced.per_second / 1e3,
            "consume_py": consumed.per_second / 1e3,
        }


def replicated(kind: servers.Kind, scale: Scale) -> Values:
    """The same load with one replica and with three, each on a server of its own."""
    single, triple = (_produced(kind, scale, replication) for replication in (1, 3))
    return {
        "produce_rf1": single / 1e3,
        "produce_rf3": triple / 1e3,
        "replication": single / triple,
    }


def _produced(kind: servers.Kind, scale: Scale, replication: int) -> float:
    """Records a second with ``acks=all``."""
    topic = "replicated"
    with settled(kind) as server:
        server.create((topic,), servers.PARTITIONS, replication)
        moved = load.produce(load.Client.C, server, scale.records, topic=topic, acks="all")
    return moved.per_second


def steering(kind: servers.Kind, scale: Scale) -> Values:
    """The control API's verbs, on a cluster that has nothing else to do."""
    with settled(kind) as server:
        server.create((servers.TOPIC,), 1, replication=control.REPLICAS)
        with control.Control(server) as connection, process.no_collector():
            times = control.steer(connection, servers.TOPIC, scale.calls)
    return {
        f"{verb}_{statistic}": value
        for verb, each in times.items()
        for statistic, value in stats.summary(each).items()
    }


def idle_connections(kind: servers.Kind, scale: Scale) -> Values:
    """Each idle connection has had one ApiVersions answered, so that its state exists."""
    with settled(kind) as server, contextlib.ExitStack() as idle:
        _some_records(server)
        _round_trips(server, scale.requests // 10)
        time.sleep(SETTLE_S)
        before = process.memory(server.pid).resident
        for _ in range(scale.connections):
            idle.enter_context(server.connect()).ask(wire.api_versions_request())
        time.sleep(SETTLE_S)
        each = (process.memory(server.pid).resident - before) * 1024 / scale.connections
        p50, p99 = _round_trips(server, scale.requests)
        return {"connection": each, "connected_p50": p50, "connected_p99": p99}


def all_partitions(kind: servers.Kind, scale: Scale) -> Values:
    """Metadata of every topic over one connection; the times include reading the answer whole."""
    names = tuple(f"wide-{i}" for i in range(scale.topics))
    request = wire.metadata_request(None)
    with settled(kind) as server:
        for name in names:
            server.create((name,), scale.partitions)
        with server.connect() as connection, process.no_collector():
            times = []
            for _ in range(scale.metadata_requests):
                begin = time.perf_counter()
                answer = connection.ask(request)
                times.append((time.perf_counter() - begin) * 1e3)
        found = wire.decode_metadata(answer).topics
        if sum(len(found[name]) for name in names) != scale.topics * scale.partitions:
            raise wire.BadAnswer("partitions are missing from Metadata")
        return {
            "metadata_first": times[0],
            "metadata": statistics.median(times[1:]),
            "rss_partitions": process.memory(server.pid).resident,
        }


def reset(kind: servers.Kind, scale: Scale) -> Values:
    """From a used cluster to an empty one that answers.

    fencepost has ``POST /v1/reset`` for it. A peer is killed and a new one started, which is what
    its users do; what must be formatted first is part of that.
    """
    if isinstance(kind, servers.Fencepost):
        with servers.running(kind) as server:
            times = [_reset_once(server, scale) for _ in range(RESETS)]
        return {"reset": statistics.median(times)}
    with servers.launching() as old, servers.launching() as new:
        kind.prepare(old)
        with servers.started(kind, old, kill=True) as server:
            _use(server, scale, replication=1)
            begin = time.perf_counter()
        kind.prepare(new)
        with servers.started(kind, new):
            return {"reset": (time.perf_counter() - begin) * 1e3}


def files(kind: servers.Kind, scale: Scale) -> Values:
    """Logs on a disk, a gibibyte of them."""
    return disk.measure(kind, scale.file_records)


def brokers_of_many(kind: servers.Kind, scale: Scale) -> Values:
    """A broker with a replica of each of very many partitions comes and goes."""
    return big_cluster.measure(kind, scale.topics * scale.partitions)


def idle_files(kind: servers.Kind, scale: Scale) -> Values:
    """A start from the files of partitions without a record."""
    return big_cluster.restart(kind, scale.idle_partitions)


def layers_cost(kind: servers.Kind, scale: Scale) -> Values:
    """What watches requests and meddles with them, beside fencepost without it."""
    return layers.measure(kind, records=scale.records // 2, requests=4 * scale.requests)


def conditional_cost(kind: servers.Kind, scale: Scale) -> Values:
    """Conditional publish: its check, and what it costs those who do not use it."""
    return conditional.measure(kind, requests=2 * scale.requests)


def audit(kind: servers.Kind, scale: Scale) -> Values:
    """The Spark job that looks at every batch, and at every record."""
    return pipeline_audit.measure(kind, scale.audit_records)


def audit_partitions(kind: servers.Kind, scale: Scale) -> Values:
    """The same job where there are many small partitions."""
    return pipeline_partitions.measure(kind, scale.audit_partitions)


def audit_scan(kind: servers.Kind, scale: Scale) -> Values:
    """What a core reads of segments, without Spark."""
    return pipeline_scan.measure(kind, scale.scanned_mebibytes)


def audit_large_partition(kind: servers.Kind, scale: Scale) -> Values:
    """The same job, of one large partition: its memory, and what a second core is good for."""
    return pipeline_large_partition.measure(kind, scale.partition_mebibytes)


def audit_incremental(kind: servers.Kind, scale: Scale) -> Values:
    """The same job, of a larger one that has grown by 1 %, beside one that reads all of it."""
    return pipeline_incremental.measure(kind, scale.grown_mebibytes)


def bulk_load(kind: servers.Kind, scale: Scale) -> Values:
    """The Spark job that brings files into a topic, beside the Kafka connector's own sink."""
    return pipeline_load.measure(kind, scale.load_records)


def pauses_beside(kind: servers.Kind, scale: Scale) -> Values:
    """What other connections wait for while the costliest megabyte of an API is handled."""
    return pauses.measure(kind, scale.request_bytes)


def requests_from_the_start(kind: servers.Kind, scale: Scale) -> Values:
    """ListOffsets without anything before, and five seconds later."""
    return first_requests.measure(kind, scale.first_requests)


def busy_connections(kind: servers.Kind, scale: Scale) -> Values:
    """Connections that produce and fetch at once, many beside few."""
    connections, requests = scale.busy_connections, scale.busy_requests
    return busy.measure(kind, connections=connections, requests=requests)


def mixed_load(kind: servers.Kind, scale: Scale) -> Values:
    """Pauses of the loop while clients do everything at once."""
    return mixed.measure(kind, scale.mixed_s)


def simulated(kind: servers.Kind, scale: Scale) -> Values:
    """Steps of simulated clusters."""
    return simulation.measure(kind, scale.seeds)


def plugin(_kind: servers.Kind, _scale: Scale) -> Values:
    """The pytest plugin: what a fresh cluster costs each of a hundred tests, and the first one."""
    return {
        "plugin": suite.overhead(0),
        "plugin_xdist": suite.overhead(2),
        "plugin_first": suite.first_test(),
    }


def _some_records(server: servers.Server) -> None:
    server.create_bench_topic()
    load.produce(load.Client.C, server, 3_000)


def _round_trips(server: servers.Server, count: int) -> tuple[float, float]:
    """p50 and p99 of ListOffsets(latest) one after the other on one connection, microseconds."""
    request = wire.list_offsets_request(servers.TOPIC, 0)
    times = []
    with server.connect_to_leader(servers.TOPIC, 0) as connection, process.no_collector():
        for _ in range(count // 10):
            connection.ask(request)
        for _ in range(count):
            begin = time.perf_counter_ns()
            answer = connection.ask(request)
            times.append((time.perf_counter_ns() - begin) / 1e3)
    if wire.decode_list_offsets(answer) < 1:
        raise wire.BadAnswer("ListOffsets does not see the records")
    return stats.percentile(times, 50), stats.percentile(times, 99)


def _use(server: servers.Server, scale: Scale, *, replication: int) -> None:
    """Ten topics of ten partitions, and records in one more."""
    server.create(tuple(f"used-{i}" for i in range(10)), 10, replication)
    server.create_bench_topic()
    load.produce(load.Client.C, server, scale.used_records)


def _reset_once(server: servers.Server, scale: Scale) -> float:
    """Milliseconds of one reset over an HTTP connection that is already open."""
    _use(server, scale, replication=3)
    with control.Control(server) as connection:
        elapsed = connection.ask("POST", "/v1/reset")
    with server.connect() as broker:
        left = broker.metadata().topics
    if left:
        raise wire.BadAnswer(f"reset left {len(left)} topics")
    return elapsed
