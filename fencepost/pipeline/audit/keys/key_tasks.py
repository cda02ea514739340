"""How the keys of compacted partitions are compared: which task reads what, and which compares it.

The keys of a partition are divided into parts, so that the rows of one are in memory together. Each
task reads some segments of a partition, and sends their `KEYS` to the tasks of the parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit import metadata_rows
from fencepost.pipeline.audit.keys.key_comparison import compare_keys
from fencepost.pipeline.audit.keys.key_scan import KEYS, scan_keys
from fencepost.pipeline.audit.metadata_rows import KeyPart, KeyShare, MetadataRow
from fencepost.pipeline.audit.source_listing import SourceListing, one_a_task
from fencepost.pipeline.python_workers import freeze_loaded_modules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PART: Final = ["topic", "partition", "part"]


def key_differences(listing: SourceListing) -> DataFrame | None:
    """Where replicas of compacted partitions differ by keys: `KeyPart`s, as metadata of these.

    :returns: None where no partition is to be compared so.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    def scan(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_loaded_modules()
        for batch in batches:
            for row in metadata_rows.from_arrow(batch):
                yield from _scan(row)

    def compare(rows: pa.Table) -> pa.Table:
        freeze_loaded_modules()
        return pa.Table.from_batches(metadata_rows.to_batches(_compare(rows)), metadata_rows.SCHEMA)

    if not listing.count(KeyShare):
        return None
    shares = one_a_task(listing.planned_rows(KeyShare), listing.count(KeyShare))
    rows = shares.mapInArrow(scan, from_arrow_schema(KEYS))
    return rows.groupBy(*_PART).applyInArrow(compare, from_arrow_schema(metadata_rows.SCHEMA))


def read_key_differences(planned: Iterable[MetadataRow]) -> Iterator[MetadataRow]:
    """The same, all in this process.

    :param planned: What `plan_scan` gives.
    """
    shares = [row for row in planned if isinstance(row.value, KeyShare)]
    rows = pa.Table.from_batches([batch for row in shares for batch in _scan(row)], KEYS)
    for part in rows.select(_PART).group_by(_PART).aggregate([]).to_pylist():
        of_part = [pc.equal(rows[name], part[name]) for name in _PART]
        yield from _compare(rows.filter(reduce(pc.and_, of_part)))


def _scan(row: MetadataRow) -> Iterator[pa.RecordBatch]:
    """The rows of `KEYS` of a share."""
    assert isinstance(row.value, KeyShare), "no others are asked for"
    for files in row.value.segments:
        yield from scan_keys(files, row.value.parts)


def _compare(rows: pa.Table) -> Iterator[MetadataRow]:
    """What differs by the rows of one part of a partition."""
    found = compare_keys(rows)
    if found.found:
        key = rows["topic"][0].as_py(), rows["partition"][0].as_py()
        yield MetadataRow(value=KeyPart(differences=found), partition=key)
