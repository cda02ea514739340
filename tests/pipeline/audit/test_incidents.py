"""Findings of one cause are one incident; what it costs, and what can be done, go by the copies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.pipeline.audit.incidents import (
    Incident,
    by_severity,
    fold,
    incident_table,
    offsets_text,
)
from fencepost.pipeline.audit.rule import (
    Missing,
    PartitionEvidence,
    PartitionMetadata,
    ReplicaMetadata,
    Severity,
    TierSegment,
    Violation,
)
from fencepost.pipeline.audit.rules import RULES
from fencepost.pipeline.datasource.schemas import Place
from tests.pipeline.audit.summaries import NOW_MS, batches


def evidence(
    *spans: tuple[int, int, int], tier: tuple[TierSegment, ...] = (), epoch: int = 0
) -> PartitionEvidence:
    """Batches of ten records from one offset to another (exclusive), each span of a broker."""
    rows = [
        {"broker": broker, "base_offset": base, "epoch": epoch}
        for broker, start, end in spans
        for base in range(start, end, 10)
    ]
    replicas = tuple(
        ReplicaMetadata(broker=broker, clean=True, segments=(0,), epochs=((0, 0),))
        for broker in sorted({broker for broker, _, _ in spans})
    )
    return PartitionEvidence(
        topic="orders",
        partition=0,
        now_ms=NOW_MS,
        metadata=PartitionMetadata(replicas=replicas, tier=tier, with_tier=bool(tier)),
        batches=batches(*rows),
        traces=None,
    )


def finding(rule: str, offset: int | None = None, end: int | None = None) -> Violation:
    return Violation(
        rule=rule,
        topic="orders",
        partition=0,
        message=f"{rule} at {offset}",
        broker=1,
        place=Place.LOG,
        segment=0,
        offset=offset,
        end_offset=end,
    )


def folded(known: PartitionEvidence, *found: Violation) -> tuple[Incident, ...]:
    incidents, numbered = fold(known, found, RULES)
    assert [replace(each, incident=None, severity=None) for each in numbered] == list(found)
    for each in incidents:
        assert sum(other.incident == each.number for other in numbered) == each.findings
    return incidents


LOGS = evidence((1, 0, 100), (2, 0, 100))


def test_nothing_is_no_incident() -> None:
    assert folded(LOGS) == ()


def test_a_later_rule_tells_of_consequences() -> None:
    torn, gap = finding("torn-tail", 10, 30), finding("contiguous-offsets", 10, 30)
    entry = finding("true-indexes")
    (incident,) = folded(LOGS, torn, gap, entry, entry)
    assert (incident.rule, incident.message, incident.findings) == (torn.rule, torn.message, 4)
    told = [(each.rule, each.findings) for each in incident.consequences]
    assert told == [("contiguous-offsets", 1), ("true-indexes", 2)]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"broker": 2}, "another copy"),
        ({"offset": 60, "end_offset": 70}, "other offsets"),
        ({"offset": None, "end_offset": None, "segment": 60}, "another segment"),
    ],
)
def test_what_concerns_something_else_has_its_own_cause(
    change: dict[str, int | None], why: str
) -> None:
    other = replace(finding("contiguous-offsets", 10, 30), **change)  # type: ignore[arg-type]  # by name
    assert len(folded(LOGS, finding("torn-tail", 10, 30), other)) == 2, why


def test_a_finding_about_the_partition_concerns_each_copy() -> None:
    everywhere = replace(finding("latest-never-back", 20), broker=None, place=None, segment=None)
    assert len(folded(LOGS, finding("torn-tail", 10, 30), everywhere)) == 1


def test_neighbours_of_one_rule_are_one_incident() -> None:
    stretch = [finding("crc-and-structure", start, start + 10) for start in (0, 10, 20, 50)]
    one, other = folded(LOGS, *stretch)
    assert (one.offset, one.findings, other.offset) == (0, 3, 50)


def test_what_is_explained_in_the_same_words_has_one_cause() -> None:
    loss = [
        replace(finding("replicas-agree", 10, 20), explanation="an unclean election"),
        replace(finding("latest-never-back", 90), explanation="an unclean election"),
        replace(finding("latest-never-back", 70), explanation="a wiped disk"),
    ]
    assert [each.findings for each in folded(LOGS, *loss)] == [2, 1]


def test_one_violation_makes_an_incident_one_whatever_explains_the_others() -> None:
    torn = replace(finding("torn-tail", 10, 30), explanation="it was killed")
    gone = finding("acknowledged-present", 10, 20)
    (incident,) = folded(LOGS, torn, gone)
    assert (incident.rule, incident.explanation) == ("acknowledged-present", None)
    assert [each.rule for each in incident.consequences] == ["torn-tail"]


def missing(offset: int, end: int, of: Missing = Missing.FROM_COPY) -> Violation:
    return replace(finding("contiguous-offsets", offset, end), missing=of)


def test_what_another_copy_has_is_not_lost() -> None:
    known = evidence((1, 0, 20), (1, 50, 100), (2, 0, 100), (3, 0, 30))
    (incident,) = folded(known, missing(20, 50))
    assert (incident.severity, incident.lost) == (Severity.DAMAGE, ())
    assert incident.remedy.startswith("broker 2 has offsets 20 to 49: stop broker 1, delete")


def test_what_no_copy_has_is_lost() -> None:
    known = evidence((1, 0, 20), (1, 50, 100), (2, 0, 30), (3, 40, 100))
    (incident,) = folded(known, missing(20, 50))
    assert (incident.severity, incident.lost, incident.lost_records) == (
        Severity.LOSS,
        ((30, 40),),
        10,
    )
    assert incident.remedy.startswith("no copy has offsets 30 to 39: ")


def test_the_tier_is_a_copy() -> None:
    segment = TierSegment(
        id="a", start_offset=0, end_offset=59, epochs=((0, 0),), bytes=1, finished=True
    )
    known = evidence((1, 50, 100), tier=(segment,))
    (incident,) = folded(known, missing(20, 50))
    assert incident.lost == ()
    unfinished = evidence((1, 50, 100), tier=(replace(segment, finished=False),))
    (incident,) = folded(unfinished, missing(20, 50))
    assert incident.lost == ((20, 50),)


def test_other_records_at_the_same_offsets_are_no_copy() -> None:
    known = evidence((1, 0, 100), (2, 0, 100), epoch=3)
    gone = replace(missing(20, 50, Missing.OF_EPOCH), epoch=2)
    (incident,) = folded(known, gone)
    assert incident.lost == ((20, 50),)
    (incident,) = folded(known, replace(gone, epoch=3))
    assert incident.lost == ()


def test_the_worst_comes_first_and_what_is_explained_last() -> None:
    known = evidence((1, 0, 20), (1, 50, 100))
    incidents = folded(
        known,
        missing(20, 50),
        replace(finding("torn-tail", 90), explanation="it was killed"),
        replace(finding("true-indexes"), segment=70),
        finding("monotonic-epochs", 60),
    )
    ordered = sorted(incidents, key=by_severity)
    assert [each.severity for each in ordered] == ["loss", "damage", "rebuilt", "damage"]
    rows = incident_table(ordered).to_pylist()
    assert [row["incident"] for row in rows] == [each.number for each in ordered]
    assert rows[0]["lost"] == [{"offset": 20, "end_offset": 50}]
    assert rows[3]["explanation"] == "it was killed"


def test_offsets_in_words() -> None:
    assert offsets_text([(12, 13)]) == "offset 12"
    assert offsets_text([(12, 30), (40, 41)]) == "offsets 12 to 29 and 40"
