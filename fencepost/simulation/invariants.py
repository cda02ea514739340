"""The invariants of every step. Each function checks one; it returns the violation, or None.

Some hold in every case. Those about records that must not be lost hold until an event that loses
records legitimately taints the partition (docs/simulation.md). The checker
(`fencepost.simulation.checker`) calls a function when the state that it reads has changed.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, ParamSpec

from fencepost.broker.metadata.image import NO_LEADER, BrokerImage, PartitionImage
from fencepost.simulation import client_invariants as clients
from fencepost.simulation import tier_invariants as tier
from fencepost.simulation.consumers import invariants as consumers
from fencepost.simulation.history import Batch, BatchLog, PartitionHistory
from fencepost.simulation.transactions import invariants as transactions

P = ParamSpec("P")
Problem = str | None


class InvariantViolation(Exception):
    """An invariant does not hold.

    :ivar invariant: Its name.
    :ivar seen: What was seen instead.
    """

    def __init__(self, invariant: str, seen: str) -> None:
        super().__init__(f"{invariant}: {seen}")
        self.invariant = invariant
        self.observed = seen


# -- leaders and epochs -------------------------------------------------------------------------


def one_leader_per_epoch(history: PartitionHistory, epoch: int, broker_id: int) -> Problem:
    """No two brokers ever lead a partition in the same leader epoch."""
    known = history.leaders.setdefault(epoch, broker_id)
    if known == broker_id:
        return None
    return f"p{history.index}: brokers {known} and {broker_id} both lead in epoch {epoch}"


def epochs_only_rise(where: str, before: int, after: int) -> Problem:
    """No leader epoch, partition epoch or broker epoch that anybody knows ever falls."""
    return f"{where}: epoch {after} after {before}" if after < before else None


def changes_have_epochs(index: int, before: PartitionImage, after: PartitionImage) -> Problem:
    """The controller changes a partition in a new partition epoch, its leader in a new one too."""
    if after.partition_epoch <= before.partition_epoch:
        return f"p{index}: changed within a partition epoch: {before}, then {after}"
    if after.leader != before.leader and after.leader_epoch <= before.leader_epoch:
        return f"p{index}: another leader within a leader epoch: {before}, then {after}"
    return None


def leaders_are_in_sync(
    index: int, partition: PartitionImage, brokers: Mapping[int, BrokerImage]
) -> Problem:
    """The controller's leader is in the ISR and online."""
    leader = partition.leader
    if leader == NO_LEADER:
        return None
    if leader not in partition.isr:
        return f"p{index}: leader {leader} is not in the ISR {partition.isr}"
    return f"p{index}: leader {leader} is fenced" if brokers[leader].fenced else None


def elections_are_clean(
    index: int, was: PartitionImage, now: PartitionImage, unclean: bool
) -> Problem:
    """Unless told otherwise the controller elects from the ISR and the ELR (KIP-966).

    Where neither is left, who led last may lead again: it has what there is.

    :param unclean: Whether an unclean election was allowed.
    """
    if unclean or now.leader in (*was.isr, *was.elr, *was.last_known_elr):
        return None
    return f"p{index}: leader {now.leader} was neither in the ISR nor eligible: {was}"


def leaders_hold_what_is_committed(
    history: PartitionHistory, epoch: int, broker_id: int, log: BatchLog
) -> Problem:
    """A new leader has every record that was committed in earlier epochs."""
    tip = history.committed_before(epoch)
    if tip is None or tip.next_offset <= history.deleted or log.holds(tip):
        return None
    return (
        f"p{history.index}: broker {broker_id} leads in epoch {epoch} with a log that ends "
        f"with {log.tip}, committed is {tip}"
    )


def acknowledged_records_are_not_lost(
    history: PartitionHistory, epoch: int, broker_id: int, log: BatchLog
) -> Problem:
    """A new leader has every record acknowledged to acks=all in earlier epochs."""
    batch = history.acknowledged_before(epoch)
    if batch is None or batch.next_offset <= history.deleted or log.holds(batch):
        return None
    return (
        f"p{history.index}: broker {broker_id} leads in epoch {epoch} with a log that ends "
        f"with {log.tip}, and lacks {batch}, which acks=all was told to be safe"
    )


def leaders_never_truncate(where: str, before: int, after: int) -> Problem:
    """A leader's log only grows as long as it leads."""
    return f"{where}: a leader's log ends at {after} after {before}" if after < before else None


# -- logs ---------------------------------------------------------------------------------------


def offsets_are_contiguous(where: str, end: int, base_offset: int, copied: bool) -> Problem:
    """A leader appends at its log's end; a follower there, or behind what its leader lacks too."""
    if base_offset == end or (copied and base_offset > end):
        return None
    return f"{where}: a batch from {base_offset} in a log that ends at {end}"


def records_lie_where_they_are_expected(
    history: PartitionHistory, base_offset: int, crc: int
) -> Problem:
    """A batch whose producer states an offset is appended there or nowhere (KIP-27)."""
    expected = history.expected.get(crc, base_offset)
    if expected == base_offset:
        return None
    return f"p{history.index}: a batch at {base_offset} that was expected at {expected}"


def refused_publishes_leave_nothing(
    history: PartitionHistory, base_offset: int, crc: int
) -> Problem:
    """Nothing is appended of a request that is refused for its expected offsets (KIP-27)."""
    if crc not in history.refused:
        return None
    return f"p{history.index}: a batch at {base_offset} whose producer was told that it was refused"


def epochs_in_a_log_only_rise(where: str, log: BatchLog, epoch: int) -> Problem:
    """No batch in a log is of an older leader epoch than the one before it."""
    if not log.all or log.all[-1].epoch <= epoch:
        return None
    return f"{where}: a batch of epoch {epoch} follows {log.tip}"


def followers_copy_what_leaders_wrote(
    where: str, batch: Batch | None, epoch: int, base_offset: int, crc: int
) -> Problem:
    """Every batch of a follower was appended by the leader of its epoch, at that very offset."""
    if batch is None:
        return f"{where}: no leader appended {base_offset} in epoch {epoch}"
    return f"{where}: {batch} has other records than its leader's" if batch.crc != crc else None


def truncated_logs_are_prefixes(where: str, log: BatchLog, batch: Batch) -> Problem:
    """A follower appends only to a log that is, once truncated, a prefix of its leader's."""
    if batch.may_follow(log.tip):
        return None
    return f"{where}: {batch} follows {log.tip}, in its leader's log it followed {batch.before}"


def epoch_caches_match_records(where: str, epoch: int, cached: int | None) -> Problem:
    """The leader-epoch cache says of each batch the epoch that is written in it."""
    if epoch == cached:
        return None
    return f"{where}: written in epoch {epoch}, the leader-epoch cache says {cached}"


# -- high watermarks ----------------------------------------------------------------------------


def high_watermarks_never_fall(where: str, before: int, after: int) -> Problem:
    """As long as its broker runs, a replica's high watermark never falls without data loss."""
    return f"{where}: high watermark {after} after {before}" if after < before else None


def high_watermarks_lie_in_the_log(where: str, high_watermark: int, end: int) -> Problem:
    """No high watermark lies behind its log's end."""
    if high_watermark <= end:
        return None
    return f"{where}: high watermark {high_watermark} of a log that ends at {end}"


def logs_agree_below_the_high_watermark(
    where: str, history: PartitionHistory, log: BatchLog, high_watermark: int
) -> Problem:
    """Below their high watermarks all replicas of a partition have the same records."""
    last = log.until(high_watermark)
    if last is None or last.next_offset <= history.deleted:
        return None
    committed = history.committed.until(high_watermark)
    if committed is None or last.next_offset > history.committed.end:
        return f"{where}: {last} lies below its high watermark and was never committed"
    return None if committed is last else f"{where}: holds {last}, committed is {committed}"


def in_sync_replicas_hold_what_is_committed(
    history: PartitionHistory, members: Iterable[int], logs: Mapping[int, BatchLog]
) -> Problem:
    """Every member of the controller's ISR and ELR has all that is committed."""
    tip = history.committed.tip
    for broker_id in members if tip is not None else ():
        log = logs[broker_id]
        if tip is not None and not log.holds(tip):
            if tip.next_offset <= history.deleted:
                history.taint(f"broker {broker_id} has old records where others were deleted")
                return None
            return (
                f"p{history.index}: broker {broker_id} may lead with a log that ends with "
                f"{log.tip}, committed is {tip}"
            )
    return None


def laggards_leave_the_isr(where: str, lag_ms: int, most_ms: int) -> Problem:
    """No follower that lags longer than 1.5 times replica.lag.time.max.ms is in a leader's ISR.

    :param most_ms: More than that where the leader waited for the fate of another proposal.
    """
    if lag_ms <= most_ms:
        return None
    return f"{where} lags for {lag_ms} ms, and may for {most_ms} ms"


def fenced_replicas_are_not_in_sync(
    index: int, partition: PartitionImage, brokers: Mapping[int, BrokerImage]
) -> Problem:
    """No broker that the controller marks offline is in an ISR, however well it fetches."""
    fenced = [b for b in partition.isr if brokers[b].fenced]
    return f"p{index}: ISR {partition.isr}, of which {fenced} are fenced" if fenced else None


def fenced_replicas_move_no_high_watermark(
    where: str, source: int, counted: Collection[int], before: int, after: int
) -> Problem:
    """No fetch of a replica that its leader knows to be offline moves the high watermark.

    :param counted: The ISR, and the proposed one: a member of either may hold it back.
    """
    if source in counted:
        return None
    return f"{where}: high watermark {after} after {before} by a fetch of broker {source}, fenced"


def too_small_an_isr_moves_no_high_watermark(
    where: str, lacks: bool, before: int, after: int
) -> Problem:
    """No high watermark of a leader rises while it has too few in sync (KIP-966).

    :param lacks: Whether it has fewer than ``min.insync.replicas``.
    """
    if not lacks:
        return None
    return f"{where}: high watermark {after} after {before}, with too few in sync"


# -- in the end ---------------------------------------------------------------------------------


def messages_come_to_an_end(count: int, most: int) -> Problem:
    """With nothing new to do, brokers stop talking."""
    return f"{count} messages, and still there are more" if count > most else None


def healed_partitions_converge(
    index: int,
    partition: PartitionImage,
    ends: Mapping[int, tuple[BatchLog, int, int]],
    *,
    is_tiered: bool = False,
) -> Problem:
    """Once all is well again every partition has a leader, a full ISR, and equal replicas.

    :param ends: Each replica's log, log end and high watermark.
    :param is_tiered: Whether a leader may have let go of all that it has in the tier.
    """
    if partition.leader == NO_LEADER or set(partition.isr) != set(partition.replicas):
        return f"p{index}: leader {partition.leader}, ISR {partition.isr} of {partition.replicas}"
    model, end, _ = ends[partition.leader]
    for broker_id, (log, log_end, watermark) in ends.items():
        # Who leads may not have heard of what its predecessor deleted, and who follows has.
        may_be = [model.all[-1:], []]
        same = log_end == end and (log.all[-1:] in may_be or (is_tiered and not model.all))
        if not same or watermark != end:
            return (
                f"p{index}: broker {broker_id} ends with {log.tip} at {log_end} and has high "
                f"watermark {watermark}, its leader {partition.leader} ends with {model.tip} "
                f"at {end}"
            )
    return None


def healed_partitions_take_records(index: int, error: str | None) -> Problem:
    """Once all is well again acks=all is acknowledged."""
    return f"p{index}: {error}" if error else None


def logs_are_as_they_were_watched(where: str, held: list[int], watched: list[int]) -> Problem:
    """In the end each log holds what was appended and not truncated, byte for byte."""
    return None if held == watched else f"{where}: checksums {held}, expected {watched}"


def nothing_fails(error: str) -> Problem:
    """No step raises an exception."""
    return error


INVARIANTS: Final[tuple[Callable[..., Problem], ...]] = (
    one_leader_per_epoch,
    epochs_only_rise,
    changes_have_epochs,
    leaders_are_in_sync,
    elections_are_clean,
    leaders_hold_what_is_committed,
    acknowledged_records_are_not_lost,
    leaders_never_truncate,
    offsets_are_contiguous,
    records_lie_where_they_are_expected,
    refused_publishes_leave_nothing,
    epochs_in_a_log_only_rise,
    followers_copy_what_leaders_wrote,
    truncated_logs_are_prefixes,
    epoch_caches_match_records,
    high_watermarks_never_fall,
    high_watermarks_lie_in_the_log,
    logs_agree_below_the_high_watermark,
    in_sync_replicas_hold_what_is_committed,
    laggards_leave_the_isr,
    fenced_replicas_are_not_in_sync,
    fenced_replicas_move_no_high_watermark,
    too_small_an_isr_moves_no_high_watermark,
    messages_come_to_an_end,
    healed_partitions_converge,
    healed_partitions_take_records,
    logs_are_as_they_were_watched,
    nothing_fails,
    *clients.INVARIANTS,
    *tier.INVARIANTS,
    *consumers.INVARIANTS,
    *transactions.INVARIANTS,
)
"""All of them."""


def require(invariant: Callable[P, Problem], *args: P.args, **kwargs: P.kwargs) -> None:
    """Stop where an invariant has a problem.

    :raises InvariantViolation: When it has.
    """
    problem = invariant(*args, **kwargs)
    if problem is not None:
        raise InvariantViolation(invariant.__name__, problem)
