"""franz-go: the client's own test suite, as its authors run it against Kafka."""

from __future__ import annotations

import os
import re
from typing import Final

import pytest

from tests.harness.golang import build_tests, source_dir
from tests.harness.run import Finished, run
from tests.harness.served_cluster import Cluster

KGO: Final = "github.com/twmb/franz-go/pkg/kgo"
RECORDS: Final = 20_000

EXCLUDED: Final = {
    "TestSCRAMAuth": "SASL is not served yet",
    "TestSCRAMAuthBadCredentials": "SASL is not served yet",
}
"""Tests that are not run, each with its reason."""

SKIPS_ITSELF: Final = {
    "TestIssueProduceBrokerTooOldFailsRecords": "needs a broker that advertises no Produce v2",
    "TestShareGroup": "share groups (KIP-932) are not served",
    "TestShareGroupETL": "share groups (KIP-932) are not served",
    "TestShareGroupAckOnClose": "share groups (KIP-932) are not served",
    "TestShareGroupOffsetsAdmin": "share groups (KIP-932) are not served",
    "TestConsumeRegexShareSkipsInternal": "share groups (KIP-932) are not served",
    "Test848RegexBrokerResolves": "the new group protocol (KIP-848) is not served yet",
    "TestGroupSimple/848": "the new group protocol (KIP-848) is not served yet",
    "TestGroupETL/range/848": "the new group protocol (KIP-848) is not served yet",
    "TestGroupETL/sticky/848": "the new group protocol (KIP-848) is not served yet",
    "TestGroupETL/sticky/848/static": "the new group protocol (KIP-848) is not served yet",
    "TestTxnEtl/range/848": "the new group protocol (KIP-848) is not served yet",
    "TestTxnEtl/sticky/848": "the new group protocol (KIP-848) is not served yet",
    "TestTxnEtl/sticky/848/static": "the new group protocol (KIP-848) is not served yet",
}
"""Tests that ask the broker what it serves, and may skip themselves."""

NEEDS_A_BROKER: Final = (
    "TestPing",
    "TestClient_Produce",
    "TestGroupSimple/classic",
    "TestGroupETL/range",
    "TestGroupETL/cooperative-sticky",
    "TestGroupETL/cooperative-sticky/static",
    "TestTxnEtl/range",
    "TestTxnEtl/cooperative-sticky",
    "TestTxnEtl/cooperative-sticky/static",
    "TestConsumeRegex",
    "TestPauseIssue489",
)
"""Some that must have passed, so that a run which tested nothing does not go unseen."""


@pytest.fixture(scope="module")
def finished(cluster: Cluster) -> Finished:
    settings = {
        "KGO_SEEDS": cluster.bootstrap,
        "KGO_TEST_RF": "3",
        "KGO_TEST_RECORDS": str(RECORDS),
    }
    excluded = "|".join(f"^{name}$" for name in EXCLUDED)
    options = ["-test.v", "-test.timeout=400s", f"-test.skip={excluded}"]
    return run(
        [str(build_tests(KGO)), *options],
        env={**os.environ, **settings},
        cwd=source_dir(KGO),
        timeout_s=450,
        code=None,
    )


def results(finished: Finished, outcome: str) -> set[str]:
    return set(re.findall(rf"^\s*--- {outcome}: (\S+)", finished.out, re.MULTILINE))


@pytest.mark.timeout(800)
def test_kgo_passes(finished: Finished) -> None:
    failed = results(finished, "FAIL")
    told = "\n".join(_output_of(finished, name) for name in sorted(failed))
    ending = finished.out[-3000:] + finished.err[-3000:]
    assert not failed, f"failed: {sorted(failed)}\n{told}\n{ending}"
    assert finished.code == 0, ending
    assert results(finished, "PASS") >= set(NEEDS_A_BROKER)


@pytest.mark.timeout(800)
def test_kgo_skips_nothing_else(finished: Finished) -> None:
    assert results(finished, "SKIP") <= SKIPS_ITSELF.keys()


def _output_of(finished: Finished, test: str) -> str:
    """The lines that one test printed, beginning with its result."""
    pattern = rf"^\s*--- FAIL: {re.escape(test)} .*(?:\n\s+[^-\s].*)*"
    found = re.search(pattern, finished.out, re.MULTILINE)
    return found.group(0)[:4000] if found else test
