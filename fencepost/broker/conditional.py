"""Conditional publish (KIP-27): a request is appended whole, or refused whole.

Every partition of the request is staged first: checked in full, with nothing appended. Where an
expected offset does not match, in whatever partition, nothing is appended to any. Partitions that
are refused for a reason of their own answer that, and keep no other from being appended to; what
an idempotent producer sends again, and is in the log already, is a success in any company.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from fencepost.broker.context import Context
from fencepost.broker.events import Kind
from fencepost.broker.producing import Found, Outcome, Target, allows_zstd
from fencepost.broker.replica import Replica
from fencepost.storage.appends import AppendRejected
from fencepost.storage.expected import is_upcoming
from fencepost.storage.staging import Staged, Staging

_Checked: TypeAlias = tuple[Target, Staged | AppendRejected]


def append_all_or_none(ctx: Context, found: Sequence[Found], acks: int) -> list[Outcome]:
    """Append to every partition of a request, unless an expected offset does not match."""
    if _all_match(found):
        return [each if isinstance(each, Outcome) else each.append(ctx, acks) for each in found]
    checked = _stage_all(ctx, found)
    culprits = [each for each in checked if isinstance(each, tuple) and _mismatches(each)]
    if culprits:
        _tell(ctx, culprits)
        refusal = _dragged_down(culprits)
        return [
            _refuse(ctx, each, refusal, acks) if isinstance(each, tuple) else each
            for each in checked
        ]
    return [_append(ctx, each, acks) if isinstance(each, tuple) else each for each in checked]


def _all_match(found: Sequence[Found]) -> bool:
    """Whether the headers alone say so: then nothing is staged, and a request costs what it did.

    Of a partition that is named twice, the second batch is not where the first one's end is yet.
    """
    replicas = set()
    for each in found:
        if isinstance(each, Outcome):
            continue
        log = each.replica.log
        if each.replica in replicas or not is_upcoming(
            each.records, log.config, log.log_end_offset
        ):
            return False
        replicas.add(each.replica)
    return True


def _stage_all(ctx: Context, found: Sequence[Found]) -> list[_Checked | Outcome]:
    """A partition that is named twice is checked as it will be after the first time."""
    stagings: dict[Replica, Staging] = {}
    checked: list[_Checked | Outcome] = []
    for each in found:
        if isinstance(each, Outcome):
            checked.append(each)
            continue
        staging = stagings.get(each.replica)
        if staging is None:
            staging = stagings[each.replica] = each.replica.stage(now_ms=ctx.now_ms)
        result = each.replica.take(staging, each.records, allow_zstd=allows_zstd(ctx.version))
        checked.append((each, result))
    return checked


def _mismatches(checked: _Checked) -> bool:
    result = checked[1]
    return isinstance(result, AppendRejected) and result.mismatch is not None


def _tell(ctx: Context, culprits: Sequence[_Checked]) -> None:
    """Tell whoever listens, of each partition the first record that does not match."""
    for target, result in culprits:
        assert isinstance(result, AppendRejected), "that is why it is one"
        assert result.mismatch is not None, "likewise"
        ctx.broker.events.emit(
            Kind.PUBLISH_REFUSED,
            topic=target.replica.topic,
            partition=target.replica.index,
            broker=ctx.broker.broker_id,
            client_id=ctx.client_id,
            **result.mismatch._asdict(),
        )


def _dragged_down(culprits: Sequence[_Checked]) -> AppendRejected:
    """What is answered for partitions that nothing is wrong with."""
    names = ", ".join(target.replica.log.name for target, _ in culprits)
    _, first = culprits[0]
    assert isinstance(first, AppendRejected), "that is why it is one"
    return AppendRejected(
        error=first.error,
        message="Nothing was appended, because the expected offset of a record in the same request "
        f"does not match: {names}",
    )


def _refuse(ctx: Context, checked: _Checked, refusal: AppendRejected, acks: int) -> Outcome:
    target, result = checked
    if isinstance(result, AppendRejected):
        return target.outcome(result, acks)
    if result.is_there:
        return _append(ctx, checked, acks)
    log_start_offset = target.replica.log.log_start_offset
    return target.outcome(replace(refusal, log_start_offset=log_start_offset), acks)


def _append(ctx: Context, checked: _Checked, acks: int) -> Outcome:
    target, result = checked
    if isinstance(result, AppendRejected):
        return target.outcome(result, acks)
    return target.outcome(target.replica.append_staged(result, now_ms=ctx.now_ms), acks)
