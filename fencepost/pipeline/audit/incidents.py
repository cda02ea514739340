"""Findings of one cause are one incident: with its consequences counted, and what can be done.

A damage is found by several rules. What was cut from a segment is missing there, an index points
behind the end, replicas disagree, acknowledged records are gone. Rules stand in the order in which
they build on one another (`Rule.order`), so a finding is a consequence of one by an earlier rule
that concerns the same offsets of the same copy, or the same file. Findings that are explained in
the same words have one cause as well.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from fencepost.pipeline.audit.batch_arrays import OffsetSpan, gaps
from fencepost.pipeline.audit.partition_logs import ReplicaLog, may_be_compacted, replica_logs
from fencepost.pipeline.audit.rule import (
    Missing,
    PartitionEvidence,
    Rule,
    Severity,
    TierSegment,
    Violation,
    place_text,
)
from fencepost.pipeline.datasource.schemas import Place

_COPY: TypeAlias = int
"""A broker's id, `_TIER`, or `_ANY`."""
_TIER: Final = -2
_ANY: Final = -1
"""A finding about the partition, and not about a copy."""
_SEVERITIES: Final = tuple(Severity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequence:
    """Findings of a rule that another one is the cause of."""

    rule: str
    findings: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Findings of one cause."""

    topic: str | None
    """None where it is about a log directory."""
    partition: int | None
    number: int
    """In the partition, from 0 on: the column ``incident`` of its findings. Of log directories it
    is below 0."""
    rule: str
    """Which found the cause."""
    severity: Severity
    message: str
    """Of the finding that is the cause."""
    explanation: str | None
    """Why it is legitimate; None where any of its findings is a violation."""
    remedy: str
    """What can be done."""
    broker: int | None
    place: str | None
    segment: int | None
    offset: int | None
    end_offset: int | None
    """Exclusive."""
    findings: int
    """All of them, the cause too."""
    lost: tuple[OffsetSpan, ...]
    """Offsets of records that no copy has any more."""
    consequences: tuple[Consequence, ...]
    """In the order of the rules."""
    suppression: str | None = None
    """Why it is accepted; None where it is not, or any of its findings is a violation that is
    not."""

    @property
    def is_open(self) -> bool:
        """Whether it counts against the cluster: nothing explains it, and it is not accepted."""
        return self.explanation is None and self.suppression is None

    @property
    def where(self) -> str:
        """What it is about: a partition, or else a broker's log directory."""
        return place_text(self.topic, self.partition, self.broker)

    @property
    def lost_records(self) -> int:
        """How many offsets are lost."""
        return sum(end - start for start, end in self.lost)


INCIDENT_SCHEMA: Final = pa.schema(
    (
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("incident", pa.int32()),
        ("rule", pa.string()),
        ("severity", pa.string()),
        ("message", pa.string()),
        ("explanation", pa.string()),
        ("remedy", pa.string()),
        ("findings", pa.int32()),
        ("consequences", pa.list_(pa.struct((("rule", pa.string()), ("findings", pa.int32()))))),
        ("lost", pa.list_(pa.struct((("offset", pa.int64()), ("end_offset", pa.int64()))))),
        ("broker", pa.int32()),
        ("place", pa.string()),
        ("segment", pa.int64()),
        ("offset", pa.int64()),
        ("end_offset", pa.int64()),
        ("suppression", pa.string()),
    )
)


def incident_table(incidents: Iterable[Incident]) -> pa.Table:
    """Incidents as Arrow, in their order."""
    rows = []
    for each in incidents:
        fields = {name: getattr(each, name, None) for name in INCIDENT_SCHEMA.names}
        fields["incident"] = each.number
        fields["consequences"] = [asdict(consequence) for consequence in each.consequences]
        fields["lost"] = [{"offset": start, "end_offset": end} for start, end in each.lost]
        rows.append(fields)
    return pa.Table.from_pylist(rows, schema=INCIDENT_SCHEMA)


def by_severity(incident: Incident) -> tuple[object, ...]:
    """Sorts the worst first, and what is explained or accepted behind all else."""
    return (
        not incident.is_open,
        _SEVERITIES.index(incident.severity),
        incident.topic or "",
        -1 if incident.partition is None else incident.partition,
        incident.number,
    )


@dataclass(slots=True)
class _Group:
    """Findings that belong together, while they are gathered."""

    copies: frozenset[_COPY]
    start: int
    end: int
    """Exclusive; no more than `start` where it concerns no offsets."""
    segment: int | None
    members: list[int] = field(default_factory=list)


def fold(
    evidence: PartitionEvidence, found: Sequence[Violation], rules: Mapping[str, Rule]
) -> tuple[tuple[Incident, ...], tuple[Violation, ...]]:
    """The incidents of a partition, and its findings with the numbers of these.

    :param found: In the order of the rules.
    :param rules: By name, in their order.
    """
    if not found:
        return (), ()
    groups = _merge_explained(_gather(found, rules), found)
    logs = replica_logs(evidence)
    numbered = list(found)
    incidents = []
    for number, group in enumerate(groups):
        members = [found[index] for index in sorted(group.members)]
        incident = _incident(evidence, number, members, logs, rules)
        incidents.append(incident)
        for index in group.members:
            numbered[index] = replace(found[index], incident=number, severity=incident.severity)
    return tuple(incidents), tuple(numbered)


# Which findings belong together.


def _gather(found: Sequence[Violation], rules: Mapping[str, Rule]) -> list[_Group]:
    groups: list[_Group] = []
    by_rule: dict[str, list[int]] = {name: [] for name in rules}
    for index, each in enumerate(found):
        by_rule[each.rule].append(index)
    for name, indices in by_rule.items():
        earlier = _Earlier(groups)
        own: list[_Group] = []
        for index in sorted(indices, key=lambda index: _area(found[index])):
            group = _new_group(found[index])
            home = earlier.find(group) or _neighbour(own, group, of_file=rules[name].is_of_file)
            if home is None:
                own.append(group)
                home = group
            home.members.append(index)
        groups += own
    return groups


def _area(finding: Violation) -> OffsetSpan:
    """The offsets that it concerns; none of them where it says none."""
    if finding.offset is None:
        return _ANY, _ANY
    return finding.offset, max(finding.offset + 1, finding.end_offset or 0)


def _new_group(finding: Violation) -> _Group:
    brokers = {each for each in (finding.broker, finding.other_broker) if each is not None}
    copies = {_TIER} | brokers if finding.place == Place.TIER else brokers or {_ANY}
    start, end = _area(finding)
    return _Group(copies=frozenset(copies), start=start, end=end, segment=finding.segment)


def _neighbour(own: Sequence[_Group], group: _Group, *, of_file: bool) -> _Group | None:
    """The last group of the same rule, where this one goes on with it.

    :param of_file: Whether it is enough that both are about a file of the same segment.
    """
    for other in reversed(own[-2:]):
        same_file = group.segment == other.segment and group.copies == other.copies
        if same_file and (of_file or group.start == other.start == _ANY):
            return other
        if _shares_copy(group, other) and _touches(group, other.start, other.end):
            other.end = max(other.end, group.end)
            other.copies = (group.copies & other.copies) or other.copies
            return other
    return None


def _shares_copy(one: _Group, other: _Group) -> bool:
    return bool(one.copies & other.copies) or _ANY in one.copies | other.copies


def _touches(group: _Group, start: int, end: int) -> bool:
    return _ANY not in (group.start, start) and group.start <= end and start <= group.end


class _Earlier:
    """Finds the group of an earlier rule that a finding is a consequence of."""

    def __init__(self, groups: Sequence[_Group]) -> None:
        self._groups = tuple(groups)
        self._starts = np.array([each.start for each in groups], np.int64)
        self._ends = np.array([each.end for each in groups], np.int64)

    def find(self, group: _Group) -> _Group | None:
        """The first whose offsets it touches, or whose file it is about."""
        if group.start == _ANY:
            candidates: Iterable[_Group] = self._groups
        else:
            near = (self._starts <= group.end) & (self._ends >= group.start)
            candidates = (self._groups[number] for number in np.flatnonzero(near).tolist())
        for each in candidates:
            if not _shares_copy(group, each):
                continue
            if group.start != _ANY != each.start or _is_in_segment(group.segment, each):
                return each
        return None


def _is_in_segment(segment: int | None, group: _Group) -> bool:
    """Whether a group is about a segment, or about the offset at which it begins."""
    return segment is not None and (segment == group.segment or group.start <= segment < group.end)


def _merge_explained(groups: Sequence[_Group], found: Sequence[Violation]) -> list[_Group]:
    """Groups whose causes are explained in the same words are one."""
    kept: list[_Group] = []
    by_explanation: dict[str, _Group] = {}
    for group in groups:
        explanation = found[group.members[0]].explanation
        first = group if explanation is None else by_explanation.setdefault(explanation, group)
        if first is group:
            kept.append(group)
        else:
            first.members += group.members
    return kept


# What there is to tell of them.


def _incident(
    evidence: PartitionEvidence,
    number: int,
    members: Sequence[Violation],
    logs: Sequence[ReplicaLog],
    rules: Mapping[str, Rule],
) -> Incident:
    unexplained = [each for each in members if each.explanation is None]
    violations = [each for each in unexplained if each.is_open]
    cause = (violations or unexplained or members)[0]
    lost, elsewhere = _lost_and_found(evidence, members, logs)
    counts = Counter(each.rule for each in members)
    severities = [rules[each.rule].severity for each in members]
    least = min(_without_loss(severities), key=_SEVERITIES.index)
    return Incident(
        topic=evidence.topic,
        partition=evidence.partition,
        number=number,
        rule=cause.rule,
        severity=Severity.LOSS if lost else least,
        message=cause.message,
        explanation=None if unexplained else cause.explanation,
        suppression=cause.suppression,
        remedy=_remedy(evidence, cause, lost, elsewhere, rules),
        broker=cause.broker,
        place=cause.place,
        segment=cause.segment,
        offset=cause.offset,
        end_offset=cause.end_offset,
        findings=len(members),
        lost=lost,
        consequences=tuple(
            Consequence(rule=name, findings=counts[name] - (name == cause.rule))
            for name in rules
            if counts[name] > (name == cause.rule)
        ),
    )


def _without_loss(severities: Sequence[Severity]) -> list[Severity]:
    """Whether records are lost is found out from the copies, not from the rule."""
    return [Severity.DAMAGE if each is Severity.LOSS else each for each in severities]


_Holders: TypeAlias = list[tuple[OffsetSpan, list[str]]]
"""Offsets that are missing from a copy, and the names of other copies that have all of them."""


def _lost_and_found(
    evidence: PartitionEvidence, members: Sequence[Violation], logs: Sequence[ReplicaLog]
) -> tuple[tuple[OffsetSpan, ...], _Holders]:
    lost: list[OffsetSpan] = []
    elsewhere: _Holders = []
    for each in members:
        if each.missing is None or each.offset is None or each.end_offset is None:
            continue
        span = (each.offset, each.end_offset)
        copies = _copies(evidence, each, logs)
        absent = gaps([other for spans in copies.values() for other in spans], *span)
        lost += absent
        own = _copy_name(each.broker) if each.missing is Missing.FROM_COPY else None
        holders = [name for name in copies if name != own and not gaps(copies[name], *span)]
        if holders and not absent:
            elsewhere.append((span, holders))
    return tuple(_union(lost)), elsewhere


def _copies(
    evidence: PartitionEvidence, finding: Violation, logs: Sequence[ReplicaLog]
) -> dict[str, list[OffsetSpan]]:
    """What copies hold that may take the place of what is missing, by their names.

    The copy itself is one of them: it may have the records elsewhere, out of order.
    """
    epoch = finding.epoch if finding.missing is Missing.OF_EPOCH else None
    found = {}
    compacted = may_be_compacted(evidence)
    for log in logs:
        batches = log.batches
        if epoch is not None:
            batches = batches.select(batches.epoch == epoch)
        elif log.broker == finding.broker:
            itself = (batches.segment == finding.segment) & (batches.position == finding.position)
            batches = batches.select(~itself)
        spans = batches.by_offset().spans
        # What a cleaner has left holds what it took.
        whole = [(spans[0][0], spans[-1][1])] if compacted and spans else spans
        found[_copy_name(log.broker)] = whole
    if finding.place != Place.TIER:
        tier = (each for each in evidence.metadata.tier if each.finished)
        found["the tier"] = [span for each in tier for span in _tier_spans(each, epoch)]
    return found


def _copy_name(broker: int | None) -> str:
    return f"broker {broker}"


def _tier_spans(segment: TierSegment, epoch: int | None) -> list[OffsetSpan]:
    if epoch is None:
        return [(segment.start_offset, segment.end_offset + 1)]
    ends = [start for _, start in segment.epochs[1:]] + [segment.end_offset + 1]
    return [
        (start, end) for (own, start), end in zip(segment.epochs, ends, strict=True) if own == epoch
    ]


def _union(spans: Iterable[OffsetSpan]) -> list[OffsetSpan]:
    merged: list[OffsetSpan] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _remedy(
    evidence: PartitionEvidence,
    cause: Violation,
    lost: Sequence[OffsetSpan],
    elsewhere: _Holders,
    rules: Mapping[str, Rule],
) -> str:
    if lost:
        return f"no copy has {offsets_text(lost)}: only a backup or their producer can bring them"
    if elsewhere and cause.place == Place.LOG:
        (span, holders), name = elsewhere[0], f"{evidence.topic}-{evidence.partition}"
        verb = "has" if len(holders) == 1 else "have"
        return (
            f"{' and '.join(holders)} {verb} {offsets_text([span])}: stop broker {cause.broker}, "
            f"delete its directory {name}, and start it, so that it copies the partition again"
        )
    return rules[cause.rule].remedy


def offsets_text(spans: Sequence[OffsetSpan]) -> str:
    """Such as ``offset 12`` or ``offsets 12 to 29 and 40 to 49``."""
    words = [f"{start}" if end == start + 1 else f"{start} to {end - 1}" for start, end in spans]
    several = len(spans) > 1 or spans[0][1] > spans[0][0] + 1
    return f"offset{'s' if several else ''} {' and '.join(words)}"
