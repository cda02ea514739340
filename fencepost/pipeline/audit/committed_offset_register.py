"""The offset that a group has committed for a partition, as a register that is written and read.

A read returns the value of a write that no other write had replaced before the read began. Of
writes at the same time either may be the first. A write that failed may have happened, and one
without an answer may happen later. So may one in a transaction: nothing here says how that ends.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.broker.coordinator import partition_for
from fencepost.pipeline.audit.rule import PartitionEvidence
from fencepost.pipeline.audit.timeline import TopicIncarnation
from fencepost.pipeline.audit.trace_event import FOREVER, TraceEvent
from fencepost.pipeline.datasource.trace_files import COORDINATOR_CHANGED, COORDINATOR_WIPED
from fencepost.protocol.errors import ErrorCode

_COMMIT: Final = "OffsetCommit"
_COMMIT_IN_TRANSACTION: Final = "TxnOffsetCommit"
_FIRST_WITH_EPOCH: Final = {_COMMIT: 6, _COMMIT_IN_TRANSACTION: 2}
APIS_OF_GROUPS: Final = (*_FIRST_WITH_EPOCH, "OffsetFetch", "OffsetDelete")
"""Requests about what a group has committed for a partition."""
_FIRST_COMMIT_WITHOUT_RETENTION: Final = 5
_FIRST_FETCH_WITH_EPOCH: Final = 5
_NO_EPOCH: Final = -1
_RETENTION: Final = "offsets.retention.minutes"
_DEFAULT_RETENTION_MINUTES: Final = 7 * 24 * 60
_COORDINATOR_PARTITIONS: Final = "offsets.topic.num.partitions"
_DEFAULT_COORDINATOR_PARTITIONS: Final = 50
_MINUTE_MS: Final = 60_000
_COLUMNS: Final = (
    *("api", "version", "number", "newest", "line", "time_ms", "answered_ms"),
    *("broker", "error", "offset", "epoch"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetWrite:
    """A commit, or a deletion."""

    number: int
    completed: int
    """A request with a greater number was sent after this one was answered; none where it never
    was."""
    line: int
    time_ms: int
    broker: int
    offset: int | None
    """None of a deletion."""
    epoch: int
    is_acknowledged: bool
    """Whether it was answered without an error."""
    is_certain: bool
    """Whether it has happened by the time that it was answered: it is of no transaction."""
    may_expire_any_time: bool = False
    """Whether it came with a retention of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRead:
    """An answer to the group."""

    number: int
    newest: int
    line: int
    time_ms: int
    broker: int
    offset: int | None
    """None where nothing was committed."""
    epoch: int
    has_epoch: bool
    """Whether its version has epochs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedOffsetRegister:
    """One group's."""

    group: str
    incarnation: TopicIncarnation
    commits: tuple[OffsetWrite, ...]
    deletions: tuple[OffsetWrite, ...]
    reads: tuple[OffsetRead, ...]

    def invalid_reads(self) -> Iterator[tuple[OffsetRead, OffsetWrite]]:
        """Reads of values that were never written, or were overwritten; and the last commit before.

        One before the first commit may be of a time before the trace.
        """
        certain = sorted((w for w in self.commits if w.is_certain), key=lambda each: each.completed)
        ends = [each.completed for each in certain]
        newest = list(accumulate(certain, _later))
        by_offset: dict[int | None, list[OffsetWrite]] = {}
        for commit in self.commits:
            by_offset.setdefault(commit.offset, []).append(commit)
        for read in self.reads:
            before = bisect_left(ends, read.number)
            if not before:
                continue
            last = newest[before - 1]
            if read.offset is None:
                right = self._may_be_gone(read, last)
            else:
                right = any(_may_return(w, read, last) for w in by_offset.get(read.offset, ()))
            if not right:
                yield read, last

    def _may_be_gone(self, read: OffsetRead, last: OffsetWrite) -> bool:
        """:param last: The last of what was certainly written before the question."""
        if any(
            each.completed >= last.number and each.number <= read.newest for each in self.deletions
        ):
            return True
        if any(each.may_expire_any_time for each in self.commits):
            return True
        return read.time_ms - last.time_ms >= self._retention_ms()

    def _retention_ms(self) -> int:
        minutes = [int(text) for text in self.incarnation.configs.values(_RETENTION)]
        return min([*minutes, _DEFAULT_RETENTION_MINUTES]) * _MINUTE_MS

    def explanation(self, read: OffsetRead, last: OffsetWrite) -> str | None:
        """Why a coordinator may have returned another value."""
        for event in self._coordinator_events():
            unclean = event.kind == COORDINATOR_CHANGED and event.details.get("unclean")
            wiped = event.kind == COORDINATOR_WIPED and event.details.get("alone", True)
            if (unclean or wiped) and last.number <= event.newest and event.line < read.line:
                return "the log of its coordinator may have lost what was committed"
        if any(last.line < line < read.line for line in self.incarnation.gaps):
            return "the server was killed meanwhile, and the trace may lack what was committed then"
        leader = self._coordinator_at(read.line)
        if leader not in (None, read.broker):
            return f"broker {read.broker} had not heard yet that {leader} is the coordinator"
        return None

    def _coordinator_at(self, line: int) -> int | None:
        """Who was the coordinator at a line; None where no event tells."""
        changes = [e for e in self._coordinator_events() if e.kind == COORDINATOR_CHANGED]
        before = [e.details["leader"] for e in changes if e.line < line]
        after = [e.details["previous_leader"] for e in changes if e.line >= line]
        found: list[int] = before[-1:] or after[:1]
        return found[0] if found else None

    def _coordinator_events(self) -> Iterator[TraceEvent]:
        """What happened to the log that the group's offsets are in."""
        counts = [int(text) for text in self.incarnation.configs.values(_COORDINATOR_PARTITIONS)]
        own = {
            partition_for(self.group, count) for count in [*counts, _DEFAULT_COORDINATOR_PARTITIONS]
        }
        for event in self.incarnation.events:
            is_such = event.kind in (COORDINATOR_CHANGED, COORDINATOR_WIPED)
            if is_such and event.details["coordinator"] in own:
                yield event


def _later(one: OffsetWrite, two: OffsetWrite) -> OffsetWrite:
    return two if two.number > one.number else one


def _may_return(written: OffsetWrite, read: OffsetRead, last: OffsetWrite) -> bool:
    """Whether an answer may be of this commit of the same offset.

    :param last: The one that was requested last of all that were completed before the read: writes
        that were completed before its request are overwritten.
    """
    if read.has_epoch and written.epoch != read.epoch:
        return False
    return written.number <= read.newest and (written is last or written.completed >= last.number)


def committed_offset_registers(
    evidence: PartitionEvidence, incarnation: TopicIncarnation
) -> Iterator[CommittedOffsetRegister]:
    """Those of all groups that have committed something."""
    rows = incarnation.exchanges(*APIS_OF_GROUPS)
    deleted = _deleted_groups(evidence)
    committed = rows.filter(pc.is_in(rows["api"], pa.array(_FIRST_WITH_EPOCH)))
    for group in sorted(pc.unique(committed["group"]).drop_null().to_pylist()):
        found = rows.filter(pc.equal(rows["group"], group)).select(_COLUMNS).to_pylist()
        yield CommittedOffsetRegister(
            group=group,
            incarnation=incarnation,
            commits=tuple(_offset_write(row) for row in found if row["api"] in _FIRST_WITH_EPOCH),
            deletions=tuple(
                _offset_write({**row, "offset": None})
                for row in (*found, *deleted.get(group, ()))
                if row["api"] in ("OffsetDelete", "DeleteGroups")
            ),
            reads=tuple(_offset_read(row) for row in found if _is_offset_read(row)),
        )


def _deleted_groups(evidence: PartitionEvidence) -> dict[str, list[dict[str, Any]]]:
    """Exchanges by which groups were deleted, which are of no partition."""
    traces: pa.Table = evidence.traces
    found: dict[str, list[dict[str, Any]]] = {}
    wanted = pc.fill_null(pc.equal(traces["api"], "DeleteGroups"), fill_value=False)
    for row in traces.filter(wanted).to_pylist():
        found.setdefault(row["group"], []).append(row)
    return found


def _is_offset_read(row: dict[str, Any]) -> bool:
    return bool(
        row["api"] == "OffsetFetch"
        and row["answered_ms"] is not None
        and row["error"] == ErrorCode.NONE
    )


def _offset_write(row: dict[str, Any]) -> OffsetWrite:
    api, answered = row["api"], row["answered_ms"] is not None
    acknowledged = answered and row["error"] == ErrorCode.NONE
    certain = acknowledged and api != _COMMIT_IN_TRANSACTION
    has_epoch = row["version"] >= _FIRST_WITH_EPOCH.get(api, 0)
    epoch = row["epoch"] if has_epoch and row["epoch"] is not None else _NO_EPOCH
    return OffsetWrite(
        number=row["number"],
        completed=row["newest"] if certain else FOREVER,
        line=row["line"],
        time_ms=row["time_ms"],
        broker=row["broker"],
        offset=row["offset"],
        epoch=epoch,
        is_acknowledged=acknowledged,
        is_certain=certain,
        may_expire_any_time=api == _COMMIT and row["version"] < _FIRST_COMMIT_WITHOUT_RETENTION,
    )


def _offset_read(row: dict[str, Any]) -> OffsetRead:
    offset = row["offset"]
    return OffsetRead(
        number=row["number"],
        newest=row["newest"],
        line=row["line"],
        time_ms=row["time_ms"],
        broker=row["broker"],
        offset=None if offset is None or offset < 0 else offset,
        epoch=row["epoch"],
        has_epoch=row["version"] >= _FIRST_FETCH_WITH_EPOCH,
    )
