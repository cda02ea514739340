"""Which worker of pytest-xdist runs a test, and in which order.

A file's tests run in one worker, and so do all files that share a fixture which takes long to make:
each worker that has such a test would make its own.
"""

from __future__ import annotations

from typing import Final

import pytest
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]  # it has no types

SHARED: Final = ("kafka_wrote", "spark", "fencepost_answers")
"""Fixtures that one worker makes, but for files that would end after all else with the others."""
GROUPS: Final = (
    ("tests/oracle/", "oracle"),
    ("tests/pipeline/audit/test_log_rules_on_kafka.py", "kafka-wrote"),
    ("tests/pipeline/datasource/test_log_directories_written.py", "kafka-wrote"),
    ("tests/durability/test_kafkas.py", "kafka-wrote"),
    ("tests/storage/files/test_file_log_read_by_kafka.py", "kafka-wrote"),
    ("tests/storage/files/test_open_log_of_kafka.py", "kafka-wrote"),
    ("tests/storage/formats/test_against_kafka.py", "kafka-wrote"),
    ("tests/pipeline/stream/", "spark"),
    ("tests/pipeline/test_", "spark"),
    ("tests/pipeline/audit/test_job.py", "spark"),
    ("tests/pipeline/audit/test_keys_agree.py", "spark"),
    ("tests/pipeline/audit/test_notebook.py", "spark"),
    ("tests/pipeline/audit/test_page.py", "spark"),
    ("tests/pipeline/audit/test_simulated_history.py", "spark"),
    ("tests/pipeline/audit/test_source_listing.py", "spark"),
    ("tests/pipeline/audit/state/test_audit_state.py", "spark"),
    ("tests/pipeline/audit/state/test_state_folder.py", "spark"),
    ("tests/pipeline/datasource/test_bench.py", "spark"),
    ("tests/pipeline/datasource/test_source.py", "spark"),
    ("tests/pipeline/datasource/test_trace_files.py", "spark"),
    ("tests/pipeline/load/test_load.py", "spark"),
    ("tests/pipeline/load/test_page.py", "spark"),
)
"""How the path of a file begins, and the group that it runs with; the first that fits."""

LONG: Final = (
    "tests/cli/test_hostile_names.py",
    "tests/scenario/test_shipped.py",
    "tests/strangers/test_strangers.py",
)
"""What takes long in all although each of its tests is short: a minute or so.

Not the oracle: beside the JVMs of the beginning a live Kafka once answered late, and so otherwise.
"""
_LONG_S: Final = 400.0
"""The time limit that a test of theirs would set if it took as long."""


def unit(nodeid: str) -> str:
    """What a test runs with in one worker: its group, or its file."""
    path = nodeid.split("::", 1)[0]
    return next((group for start, group in GROUPS if path.startswith(start)), path)


def long_ones_first(items: list[pytest.Item]) -> None:
    """Let what takes long, or has tests that set a time limit, begin first: else it ends alone."""
    limits = dict.fromkeys(LONG, _LONG_S)
    for item in items:
        limit = item.get_closest_marker("timeout")
        if limit is not None and limit.args:
            found = unit(item.nodeid)
            limits[found] = max(limits.get(found, 0), limit.args[0])
    items.sort(key=lambda item: -limits.get(unit(item.nodeid), 0))


class Scheduling(LoadFileScheduling):  # type: ignore[misc]  # likewise
    """``--dist loadfile``, but for the files of `GROUPS`."""

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)
