"""Runs the rules about log directories.

They need names and small files alone, and no Spark. `check_broker` is what a task does for the
directories of one broker, `check_directories` does it for all of them.
"""

import traceback
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from fencepost.pipeline.audit.directory_rule import (
    DirectoryEvidence,
    DirectoryIdentity,
    DirectoryListing,
    DirectoryRule,
)
from fencepost.pipeline.audit.directory_rules import DIRECTORY_RULES
from fencepost.pipeline.audit.incidents import Consequence, Incident
from fencepost.pipeline.audit.partition_summary import RuleCount, RuleFailure
from fencepost.pipeline.audit.rule import Violation
from fencepost.pipeline.audit.spark_task import count_findings
from fencepost.pipeline.audit.suppressions import Suppression


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryResult:
    """What the rules found in log directories."""

    directories: int = 0
    """How many were looked at."""
    violations: tuple[Violation, ...] = ()
    rule_counts: tuple[RuleCount, ...] = ()
    """One a rule that was followed, in the order of the rules."""
    failures: tuple[RuleFailure, ...] = ()
    incidents: tuple[Incident, ...] = ()
    """The causes of the violations."""


def check_directories(
    listings: Sequence[DirectoryListing],
    *,
    rules: Collection[str] = (),
    topics: Collection[str] = (),
) -> DirectoryResult:
    """Run rules on log directories.

    :param rules: Names of `DIRECTORY_RULES`, others among them; none: all.
    :param topics: Only findings about partitions of these; none: all findings.
    """
    identities = tuple(each.identity for each in listings)
    by_broker: dict[int | None, list[DirectoryListing]] = defaultdict(list)
    for each in listings:
        by_broker[each.broker].append(each)
    results = [
        check_broker(of_one, identities, rules=rules, topics=topics)
        for of_one in by_broker.values()
    ]
    return merge_brokers(results)


def merge_brokers(results: Iterable[DirectoryResult]) -> DirectoryResult:
    """The results of different brokers as one, with the incidents that findings are of."""
    return _fold(_merge(results))


def check_broker(
    listings: Sequence[DirectoryListing],
    identities: tuple[DirectoryIdentity, ...],
    *,
    rules: Collection[str] = (),
    topics: Collection[str] = (),
    suppressions: Sequence[Suppression] = (),
) -> DirectoryResult:
    """Run rules on the log directories of one broker, or on those of which none is known.

    A rule that raises ends there alone: the result has the failure.

    :param identities: Of all directories, by path.
    :param suppressions: Of findings that are accepted.
    """
    results = []
    for listing in listings:
        siblings = (each for each in listings if each is not listing and each.broker is not None)
        evidence = DirectoryEvidence(
            listing=listing, siblings=tuple(siblings), identities=identities
        )
        chosen = (rule for name, rule in DIRECTORY_RULES.items() if not rules or name in rules)
        results += [_check_rule(rule, evidence, topics, suppressions) for rule in chosen]
    return replace(_merge(results), directories=len(listings))


def _check_rule(
    rule: DirectoryRule,
    evidence: DirectoryEvidence,
    topics: Collection[str],
    suppressions: Sequence[Suppression],
) -> DirectoryResult:
    try:
        found = [each for each in rule.check(evidence) if not topics or each.topic in topics]
    except Exception:  # noqa: BLE001  # a rule that fails must not hide what others find
        reason = traceback.format_exc()
        failure = RuleFailure(rule=rule.name, topic=None, partition=None, reason=reason)
        return DirectoryResult(failures=(failure,))
    count, kept = count_findings(rule.name, found, suppressions)
    return DirectoryResult(violations=tuple(kept), rule_counts=(count,))


def _fold(result: DirectoryResult) -> DirectoryResult:
    """The same, with incidents: findings that are explained in the same words are of one."""
    members: dict[tuple[str, str | int], list[int]] = defaultdict(list)
    for index, each in enumerate(result.violations):
        members[each.rule, index if each.explanation is None else each.explanation].append(index)
    violations = list(result.violations)
    incidents = []
    for number, indices in enumerate(members.values(), 1):
        first = violations[indices[0]]
        incident = _incident(first, -number, len(indices))
        incidents.append(incident)
        for index in indices:
            violations[index] = replace(
                violations[index], incident=incident.number, severity=incident.severity
            )
    return replace(result, violations=tuple(violations), incidents=tuple(incidents))


def _incident(finding: Violation, number: int, findings: int) -> Incident:
    rule = DIRECTORY_RULES[finding.rule]
    others = (Consequence(rule=rule.name, findings=findings - 1),) if findings > 1 else ()
    return Incident(
        topic=finding.topic,
        partition=finding.partition,
        number=number,
        rule=rule.name,
        severity=rule.severity,
        message=finding.message,
        explanation=finding.explanation,
        suppression=finding.suppression,
        remedy=rule.remedy,
        broker=finding.broker,
        place=finding.place,
        segment=finding.segment,
        offset=finding.offset,
        end_offset=finding.end_offset,
        findings=findings,
        lost=(),
        consequences=others,
    )


def _merge(results: Iterable[DirectoryResult]) -> DirectoryResult:
    """The results of different directories, or of different rules."""
    counts: dict[str, list[RuleCount]] = defaultdict(list)
    merged = DirectoryResult()
    for each in results:
        merged = replace(
            merged,
            directories=merged.directories + each.directories,
            violations=merged.violations + each.violations,
            failures=merged.failures + each.failures,
        )
        for count in each.rule_counts:
            counts[count.rule].append(count)
    return replace(
        merged,
        rule_counts=tuple(_sum(counts[name]) for name in DIRECTORY_RULES if name in counts),
    )


def _sum(counts: Sequence[RuleCount]) -> RuleCount:
    return RuleCount(
        rule=counts[0].rule,
        found=sum(each.found for each in counts),
        explained=sum(each.explained for each in counts),
        listed=sum(each.listed for each in counts),
        suppressed=sum(each.suppressed for each in counts),
    )
