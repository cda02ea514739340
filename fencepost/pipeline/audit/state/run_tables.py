"""What the tables of a state say of a run: what it looked at, what it found, and the lineage.

``spark.read.parquet(f"{url}/findings")`` has the findings of all runs, with the column ``run``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final

import pyarrow as pa

from fencepost.pipeline.audit.state.kept_segments import ScanExtent
from fencepost.pipeline.requirements import CannotRunError

FORMAT: Final = 2
"""Of the state, in each row of `RUN_SCHEMA`. Another one where `KEPT`, the summaries in it, or what
a scan makes of the same bytes are others: what was kept before is of no use then. The test
``tests/pipeline/audit/state/test_format.py`` has a digest of all of these for each number."""
RUN_SCHEMA: Final = pa.schema(
    (
        ("format", pa.int32()),  # of the state
        ("version", pa.string()),  # of fencepost
        ("started", pa.timestamp("ms", "UTC")),
        ("ended", pa.timestamp("ms", "UTC")),
        ("directory", pa.string()),
        ("cluster_ids", pa.list_(pa.string())),
        ("topics", pa.list_(pa.string())),  # empty: all
        ("rules", pa.list_(pa.string())),  # that were followed
        ("level", pa.string()),
        ("with_tier", pa.bool_()),
        ("with_trace", pa.bool_()),
        ("full", pa.bool_()),
        ("reread_share", pa.float64()),
        ("next_reread", pa.int64()),  # where on the circle the next share begins
        ("partitions", pa.int64()),
        ("segments_trusted", pa.int64()),
        ("segments_read", pa.int64()),
        ("segments_reread", pa.int64()),
        ("files_trusted", pa.int64()),
        ("files_read", pa.int64()),  # those of segments that were read again too, as of bytes
        ("bytes_trusted", pa.int64()),
        ("bytes_read", pa.int64()),
        ("violations", pa.int64()),
        ("explained", pa.int64()),
        ("suppressed", pa.int64()),
        ("failures", pa.int64()),  # rules that could not be followed to their end
        ("lost_records", pa.int64()),
    )
)


def run_table(found: Mapping[str, object], extent: ScanExtent, next_reread: int) -> pa.Table:
    """The row of a run, which ends now.

    :param found: What it was asked, and what it found; by the names of columns.
    """
    row = {
        **found,
        "format": FORMAT,
        "version": version("fencepost"),
        "ended": datetime.now(UTC),
        "next_reread": next_reread,
        "segments_trusted": extent.trusted,
        "segments_read": extent.read,
        "segments_reread": extent.reread,
        "files_trusted": extent.trusted_files,
        "files_read": extent.read_files,
        "bytes_trusted": extent.trusted_bytes,
        "bytes_read": extent.read_bytes,
    }
    return pa.Table.from_pylist([row], RUN_SCHEMA)


def check_format(row: Mapping[str, Any], url: str) -> None:
    """:raises CannotRunError: When the last run of a state wrote it otherwise."""
    found = row.get("format")
    if found == FORMAT:
        return
    if found is None:
        raise CannotRunError(f"{url} is no state of an audit: its runs do not say their format")
    raise CannotRunError(
        f"the state {url} is of format {found}, written by fencepost {row.get('version')};"
        f" this one, {version('fencepost')}, has format {FORMAT}: name another --state"
    )
