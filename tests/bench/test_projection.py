"""The projection of an audit: what bytes and partitions take, added up."""

from __future__ import annotations

from bench import projection, rows
from bench.projection import Cluster, Slopes, page, project
from bench.results import OURS, Results

VALUES = {
    "pipeline_scan_headers": 2_000.0,
    "pipeline_scan_records": 500.0,
    "pipeline_scan_kept": 10.0,
    "pipeline_audit_partition_core": 4.0,
    "pipeline_audit_summary": 1_000.0,
}
CLUSTER = Cluster(brokers=10, partitions=1_000, copies=3, bytes=10**12)


def slopes(*left_out: str) -> Slopes | None:
    results = Results()
    results.add(OURS, 0, {name: value for name, value in VALUES.items() if name not in left_out})
    return Slopes.of(results)


def test_bytes_and_partitions_are_added_up() -> None:
    known = slopes()
    assert known is not None
    found = project(known, CLUSTER)
    assert found.headers_s == 500 + 12
    assert found.records_s == 2_000 + 12
    assert found.rows == 3 * 10**7
    assert found.driver == 10**6


def test_it_needs_all_of_its_rows() -> None:
    assert {row.key for row in rows.ROWS} >= set(projection.ROWS) == set(VALUES)
    for name in VALUES:
        assert slopes(name) is None


def test_the_page_says_what_it_is_made_of() -> None:
    known = slopes()
    assert known is not None
    text = page(known, CLUSTER, "As measured.")
    assert "2,000 MB of headers" in text
    assert "| rows of windows that executors exchange, GB | 0 |" in text
    assert "10 brokers with 0.001 PB in 1,000 partitions of 3 copies" in text
