"""An audit of what a simulated cluster left, in which everything happened: no false alarm.

``FENCEPOST_AUDIT_MINUTES`` says how much simulated time, ten minutes in full.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from fencepost.pipeline.audit.job import AuditOptions, AuditResult, audit
from fencepost.pipeline.audit.rules import RULES
from tests.harness.recorded_cluster import Recorded, recorded
from tests.pipeline.audit.summaries import result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MINUTES: Final = float(os.environ.get("FENCEPOST_AUDIT_MINUTES", "1"))
WITH_TIER_LAST: Final = 2
"""Seeds whose followers begin behind the tier (KIP-1023) ..."""
WITH_EXPECTED_OFFSETS: Final = 4
"""... and whose producers state offsets (KIP-27)."""
SEEDS: Final = (WITH_TIER_LAST, 3, WITH_EXPECTED_OFFSETS, 105)
"""The last is one in which an audit has found a stale index."""
_AT_LEAST: Final = 100
"""Batches and exchanges of a minute."""

pytestmark = pytest.mark.unmeasured


def nothing_is_found(findings: AuditResult) -> None:
    """All rules were followed to their end, and what they found is explained."""
    assert findings.failures == ()
    unexplained = [row for row in findings.violations.to_pylist() if row["explanation"] is None]
    assert unexplained == []
    assert findings.violation_count == 0
    followed = {count.rule for summary in findings.summaries for count in summary.rule_counts}
    assert followed == set(RULES)


def there_was_something_to_look_at(findings: AuditResult) -> None:
    batches = sum(held.batches for summary in findings.summaries for held in summary.replicas)
    assert batches > _AT_LEAST
    assert sum(summary.trace_rows for summary in findings.summaries) > _AT_LEAST


@pytest.mark.timeout(300 + 120 * MINUTES)
def test_an_audit_of_a_history_with_every_fault_finds_nothing(
    tmp_path: Path, spark: SparkSession
) -> None:
    left = _recorded(tmp_path, WITH_EXPECTED_OFFSETS, heals=True)
    case = AuditOptions(directory=str(left.data), trace=str(left.trace), remote=left.tier)
    findings = audit(spark, case)
    nothing_is_found(findings)
    there_was_something_to_look_at(findings)


@pytest.mark.timeout(300 + 120 * MINUTES)
@pytest.mark.parametrize("heals", [True, False], ids=["mended", "killed"])
@pytest.mark.parametrize("seed", SEEDS)
def test_its_rules_find_nothing_whatever_the_seed(
    tmp_path: Path, seed: int, *, heals: bool
) -> None:
    findings = result(_recorded(tmp_path, seed, heals=heals))
    nothing_is_found(findings)
    there_was_something_to_look_at(findings)


def _recorded(tmp_path: Path, seed: int, *, heals: bool) -> Recorded:
    left = recorded(tmp_path / "history", seed, MINUTES, heals=heals)
    assert left.outcome.failure is None
    return left
