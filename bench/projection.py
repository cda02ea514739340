"""What an audit of a whole cluster takes, by the slopes that were measured on one machine.

The work of an audit is that of its bytes and that of its partitions, and no task waits for another
but where rows are exchanged. So the time of processors is added up, and divided by how many there
are. What is left out: that a disk or a network reads slower than a core looks at what was read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Final

from bench import report
from bench.results import OURS, Results

BEGIN: Final = "<!-- projection: written by the benchmarks, do not edit -->"
END: Final = "<!-- end of projection -->"
ROWS: Final = (
    "pipeline_scan_headers",
    "pipeline_scan_records",
    "pipeline_scan_kept",
    "pipeline_audit_partition_core",
    "pipeline_audit_summary",
)
"""All that it is made of."""
_WIDTH: Final = 118
"""Of a line of the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slopes:
    """What a unit of work takes.

    :ivar headers: Bytes for a second of a core, at the level ``batches``.
    :ivar records: Bytes for a second of a core, at the level ``records``.
    :ivar kept: Bytes of rows that are left of a copy of a partition: about a thousand windows, from
        some megabytes to some gigabytes.
    :ivar partition_s: Seconds of a core for a copy of a partition.
    :ivar summary: Bytes that come to the driver for a partition.
    """

    headers: float
    records: float
    kept: float
    partition_s: float
    summary: float

    @classmethod
    def of(cls, results: Results) -> Slopes | None:
        """Those that were measured; None where a row is missing."""
        spreads = [results.spread(row, OURS) for row in ROWS]
        known = [each.median for each in spreads if each is not None]
        if len(known) < len(ROWS):
            return None
        headers, records, kept, partition, summary = known
        return cls(
            headers=headers * 1e6,
            records=records * 1e6,
            kept=kept * 1e3,
            partition_s=partition / 1e3,
            summary=summary,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """How large a cluster is.

    :ivar partitions: Without their copies.
    :ivar bytes: Of all copies together.
    """

    brokers: int
    partitions: int
    copies: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """What an audit of a cluster takes.

    :ivar headers_s: Seconds of a core, at the level ``batches``.
    :ivar records_s: Seconds of a core, at the level ``records``.
    :ivar rows: Bytes that tasks hand to one another.
    :ivar driver: Bytes that come to the driver where little is found.
    """

    headers_s: float
    records_s: float
    rows: float
    driver: float


PETABYTE: Final = Cluster(brokers=1_000, partitions=200_000, copies=3, bytes=10**15)


def project(slopes: Slopes, cluster: Cluster) -> Projection:
    """Add up what its bytes and its partitions take."""
    of_partitions = slopes.partition_s * cluster.partitions * cluster.copies
    return Projection(
        headers_s=cluster.bytes / slopes.headers + of_partitions,
        records_s=cluster.bytes / slopes.records + of_partitions,
        rows=slopes.kept * cluster.partitions * cluster.copies,
        driver=slopes.summary * cluster.partitions,
    )


def page(slopes: Slopes, cluster: Cluster, head: str) -> str:
    """What stands between the markers of docs/audit.md."""
    found = project(slopes, cluster)
    what = (
        f"{cluster.brokers:,} brokers with {cluster.bytes / 1e15:g} PB in {cluster.partitions:,} "
        f"partitions of {cluster.copies} copies"
    )
    lines: Sequence[tuple[str, float]] = [
        ("headers and checksums, hours of a core", found.headers_s / 3600),
        ("records as well, hours of a core", found.records_s / 3600),
        ("headers, minutes with a core for each broker", found.headers_s / cluster.brokers / 60),
        ("records, minutes with a core for each broker", found.records_s / cluster.brokers / 60),
        ("rows of windows that executors exchange, GB", found.rows / 1e9),
        ("summaries that come to the driver, MB", found.driver / 1e6),
    ]
    table = report.table([what, ""], [[name, report.number(value, 0)] for name, value in lines])
    basis = (
        f"A core looks at {slopes.headers / 1e6:,.0f} MB of headers or {slopes.records / 1e6:,.0f} "
        f"MB of records in a second and at a copy of a partition in "
        f"{slopes.partition_s * 1e3:.1f} ms; {slopes.kept / 1e3:,.0f} KB of rows are left of one, "
        f"and {slopes.summary:,.0f} bytes of a partition for the driver."
    )
    return f"{fill(head, _WIDTH)}\n\n{fill(basis, _WIDTH)}\n\n{table}"
