"""All figures, with the rows that each of them answers, and which of them a short run has."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from bench import figures, rows
from fencepost.protocol.apis import APIS


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure by its name, its rows, and the peers that can be asked beside us.

    ``long``: only a full run has it, or one that names it.
    """

    name: str
    measure: figures.Measure
    rows: Sequence[str]
    peers: Container[str] = ("kfake", "kafka")
    long: bool = False


FIGURES = (
    Figure(name="startup", measure=figures.startup, rows=("first_metadata", "rss_idle")),
    Figure(
        name="first-verb",
        measure=figures.first_verb,
        rows=("first_verb", "start_and_verb", "rss_ready", "rss_verb"),
        peers=(),
    ),
    Figure(
        name="list-offsets",
        measure=figures.list_offsets,
        rows=("list_offsets_p50", "list_offsets_p99"),
    ),
    Figure(
        name="first-requests",
        measure=figures.requests_from_the_start,
        rows=tuple(
            f"{when}_requests_{statistic}"
            for when in ("first", "later")
            for statistic in ("p50", "p99", "p999")
        ),
        peers=("kfake",),
    ),
    Figure(
        name="c-client",
        measure=figures.c_client,
        rows=(
            "produce_c",
            "produce_cpu",
            "consume_c",
            "consume_cpu",
            "rss_loaded",
            "rss_consumed",
            "rss_peak",
        ),
    ),
    Figure(
        name="transactions",
        measure=figures.transactions,
        rows=("transact_c", "transact_cpu", "transact_at_once_c"),
    ),
    Figure(
        name="replicated",
        measure=figures.replicated,
        rows=("produce_rf1", "produce_rf3", "replication"),
        peers=(),
    ),
    Figure(name="python-client", measure=figures.python_client, rows=("produce_py", "consume_py")),
    Figure(
        name="busy",
        measure=figures.busy_connections,
        rows=(
            "busy_few",
            "busy_many",
            "busy_share",
            "busy_few_cpu",
            "busy_many_cpu",
            "busy_cpu_share",
        ),
        peers=("kfake",),
    ),
    Figure(
        name="mixed",
        measure=figures.mixed_load,
        rows=("mixed_pause", "mixed_busy", "mixed_p50", "mixed_p99", "mixed_max"),
        peers=(),
    ),
    Figure(
        name="connections",
        measure=figures.idle_connections,
        rows=("connection", "connected_p50", "connected_p99"),
    ),
    Figure(
        name="metadata",
        measure=figures.all_partitions,
        rows=("metadata_first", "metadata", "rss_partitions"),
    ),
    Figure(name="reset", measure=figures.reset, rows=("reset",)),
    Figure(
        name="steering",
        measure=figures.steering,
        rows=tuple(row.key for row in rows.VERB_ROWS),
        peers=(),
    ),
    Figure(
        name="plugin",
        measure=figures.plugin,
        rows=("plugin", "plugin_xdist", "plugin_first"),
        peers=(),
    ),
    Figure(
        name="files",
        measure=figures.files,
        rows=("files_produce", "files_share", "files_open", "files_recover", "files_growth"),
        peers=("kafka",),
    ),
    Figure(
        name="idle-files",
        measure=figures.idle_files,
        rows=("idle_open", "idle_open_cpu", "idle_recover", "idle_recover_cpu"),
        peers=(),
    ),
    Figure(
        name="big-cluster",
        measure=figures.brokers_of_many,
        rows=tuple(
            f"big_{what}{part}" for what in ("create", "kill", "start") for part in ("", "_pause")
        ),
        peers=(),
    ),
    Figure(name="simulation", measure=figures.simulated, rows=("simulation",), peers=()),
    Figure(
        name="layers",
        measure=figures.layers_cost,
        rows=("layers_request", "layers_produce", "layers_consume"),
        peers=(),
        long=True,
    ),
    Figure(
        name="conditional",
        measure=figures.conditional_cost,
        rows=(
            "conditional_tcp",
            "conditional_tcp_small",
            "conditional_full",
            "conditional_small",
            "conditional_request",
            "conditional_off",
            "conditional_off_share",
        ),
        peers=(),
        long=True,
    ),
    Figure(
        name="audit",
        measure=figures.audit,
        rows=("pipeline_audit_batches", "pipeline_audit_records", "pipeline_read_records"),
        peers=(),
        long=True,
    ),
    Figure(
        name="audit-partitions",
        measure=figures.audit_partitions,
        rows=(
            "pipeline_audit_partitions",
            "pipeline_audit_partition_core",
            "pipeline_audit_summary",
        ),
        peers=(),
        long=True,
    ),
    Figure(
        name="audit-scan",
        measure=figures.audit_scan,
        rows=(
            "pipeline_scan_headers",
            "pipeline_scan_records",
            "pipeline_parse_records",
            "pipeline_scan_kept",
        ),
        peers=(),
        long=True,
    ),
    Figure(
        name="audit-large-partition",
        measure=figures.audit_large_partition,
        rows=(
            "pipeline_large_partition",
            "pipeline_large_partition_share",
            "pipeline_large_partition_rss",
        ),
        peers=(),
        long=True,
    ),
    Figure(
        name="audit-incremental",
        measure=figures.audit_incremental,
        rows=("pipeline_incremental_bytes", "pipeline_incremental_time"),
        peers=(),
        long=True,
    ),
    Figure(
        name="bulk-load",
        measure=figures.bulk_load,
        rows=("pipeline_load", "pipeline_sink", "pipeline_load_share"),
        peers=(),
        long=True,
    ),
    Figure(
        name="pauses",
        measure=figures.pauses_beside,
        rows=tuple(f"pause_{api.name}" for api in APIS),
        peers=(),
        long=True,
    ),
)


def chosen(wanted: Sequence[str], *, full: bool) -> Sequence[Figure]:
    """Those that are named, by their names or by rows of theirs; without any, those of the run.

    :raises ValueError: When a name is neither a figure's nor a row's.
    """
    for name in wanted:
        if not any(name == each.name or name in each.rows for each in FIGURES):
            raise ValueError(name)
    if not wanted:
        return [each for each in FIGURES if full or not each.long]
    return [
        each for each in FIGURES if each.name in wanted or not set(wanted).isdisjoint(each.rows)
    ]
