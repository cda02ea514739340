"""Compares what a consumer reads, and what it reports, with what the leaders' logs held.

The checker sees each answer before the consumer does, each report, and each record that the
application gets. It knows nothing of the consumer's state.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from fencepost.client.consumer.model import ConsumerRecord, OffsetAndMetadata, Truncation
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from fencepost.protocol.messages.list_offsets import ListOffsetsResponse
from fencepost.protocol.messages.metadata import MetadataResponse
from fencepost.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from fencepost.simulation.checker import ClusterChecker
from fencepost.simulation.client_invariants import clients_read_what_is_committed
from fencepost.simulation.consumers import admitted
from fencepost.simulation.consumers import invariants as must
from fencepost.simulation.consumers.admitted import Admitted
from fencepost.simulation.consumers.consumed import Consumed, LogView, Saved, lineage
from fencepost.simulation.history import Batch, PartitionHistory
from fencepost.simulation.invariants import require

NO_EPOCH: Final = -1
_MOST_RECORDS: Final = 3
"""Of a batch that a producer of the simulation sends."""
LogViews: TypeAlias = Mapping[int, LogView]
CommittedPartition: TypeAlias = OffsetFetchResponsePartition | OffsetFetchResponsePartitions


class ConsumptionChecker:
    """What one consumer has read of each partition.

    :param met: Counts the admitted exceptions that were met, by name.
    """

    def __init__(
        self,
        name: str,
        checker: ClusterChecker,
        met: Counter[str],
        *,
        is_drafted: bool,
        resets: bool,
    ) -> None:
        self._name = name
        self._checker = checker
        self._met = met
        self._is_drafted = is_drafted
        self._resets = resets
        self.partitions = [Consumed() for _ in checker.partitions]
        self._logs: LogViews = {}
        """Those of the broker whose answer the consumer takes now."""
        self._served: Mapping[int, int] = {}
        self._takers: Mapping[str, Callable[[Any, Any], None]] = {
            "fetch": self._take_fetch,
            "list_offsets": self._take_offsets,
            "metadata": self._take_metadata,
            "offset_fetch": self._take_committed,
        }

    def restart(self) -> None:
        """The consumer begins again: its group's committed offsets say where."""
        self.partitions = [Consumed(saved=each.saved) for each in self.partitions]

    def _who(self, index: int) -> str:
        return f"{self._name} of p{index}"

    def _admit(self, exception: Admitted) -> None:
        self._met[exception.name] += 1

    # -- requests and answers -------------------------------------------------------------------

    def sends(self, request: object) -> None:
        """The consumer sends a request."""
        if not isinstance(request, FetchRequest) or self._is_drafted:
            return
        for part in request.topics[0].partitions:
            known = self.partitions[part.partition].seen_epoch
            who = self._who(part.partition)
            require(must.metadata_epochs_never_go_back, who, known, part.current_leader_epoch)

    def takes(
        self, api: str, request: object, answer: object, logs: LogViews, served: Mapping[int, int]
    ) -> None:
        """An answer arrives.

        :param logs: The broker's, when it answered.
        :param served: The leader epochs in which the request came to the broker.
        """
        self._logs, self._served = logs, served
        if api in self._takers:
            self._takers[api](request, answer)

    def _take_fetch(self, request: FetchRequest, answer: FetchResponse) -> None:
        asked = {part.partition: part for part in request.topics[0].partitions}
        for topic in answer.responses:
            for part in topic.partitions:
                self._take_fetched(part, asked[part.partition_index])

    def _take_offsets(self, _request: object, answer: ListOffsetsResponse) -> None:
        for part in answer.topics[0].partitions:
            found = self.partitions[part.partition_index].resets
            if found is not None and not part.error_code and part.offset >= 0:
                found.add(part.offset)

    def _take_metadata(self, _request: object, answer: MetadataResponse) -> None:
        for topic in answer.topics:
            for part in topic.partitions:
                consumed = self.partitions[part.partition_index]
                consumed.seen_epoch = max(consumed.seen_epoch, part.leader_epoch)

    def _take_fetched(self, part: PartitionData, asked: FetchPartition) -> None:
        index = part.partition_index
        consumed, log = self.partitions[index], self._logs.get(index)
        if part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            if asked.fetch_offset == consumed.next and log is not None and consumed.resets is None:
                self._take_out_of_range(index, consumed, log)
        elif not part.error_code and any(map(len, part.records or ())) and log is not None:
            served = self._served.get(index, log.leader_epoch)
            if not self._is_drafted:
                sent = asked.current_leader_epoch
                require(must.leaders_serve_their_own_epoch, self._who(index), sent, served)
            elif served < consumed.seen_epoch:
                self._admit(admitted.DEPOSED_LEADER)

    def _take_out_of_range(self, index: int, consumed: Consumed, log: LogView) -> None:
        assert consumed.next is not None
        tip = consumed.tip
        start = max(log.start, self._checker.partitions[index].lost_until)
        if consumed.next >= start and tip is not None:
            require(must.truncations_are_reported, self._who(index), tip, None, consumed.next)
        if self._resets:
            consumed.lose_position()

    def _take_committed(self, _request: object, answer: OffsetFetchResponse) -> None:
        whole = answer.groups[0] if answer.groups else answer
        codes = [part.error_code for topic in whole.topics for part in topic.partitions]
        if whole.error_code or any(codes):
            return
        for topic in whole.topics:
            for part in topic.partitions:
                consumed = self.partitions[part.partition_index]
                if consumed.next is None and consumed.resets is None:
                    self._begin(part, consumed)

    def _begin(self, part: CommittedPartition, consumed: Consumed) -> None:
        if part.committed_offset < 0:
            if self._resets:
                consumed.lose_position()
            return
        found = (part.committed_offset, part.committed_leader_epoch)
        who = self._who(part.partition_index)
        require(must.committed_positions_come_back, who, found, consumed.saved)
        saved = consumed.saved[found]
        consumed.next, consumed.is_bound = part.committed_offset, True
        consumed.begin(saved.start)
        consumed.tip, consumed.memory = saved.tip, found[0] - 1

    # -- what the application does --------------------------------------------------------------

    def saves(self, index: int, position: OffsetAndMetadata) -> None:
        """The application commits a position."""
        consumed = self.partitions[index]
        was_reset = self._check_offset(index, position.offset)
        saved = Saved(None, position.offset) if was_reset else Saved(consumed.tip, consumed.start)
        epoch = NO_EPOCH if position.leader_epoch is None else position.leader_epoch
        consumed.saved[position.offset, epoch] = saved

    def seeks(self, index: int, offset: int) -> None:
        """The application heeds a truncation, and goes to the divergent offset."""
        consumed = self.partitions[index]
        if not consumed.go_to(offset, consumed.log):
            self._admit(admitted.EARLIER_DIVERGENCE)
        if self._is_drafted:  # whose error has no epoch to go on with
            consumed.forget_tip()

    def resets(self, index: int) -> None:
        """The application goes to where the log begins."""
        self.partitions[index].lose_position()

    def raises(self, index: int, offset: int | None) -> None:
        """The application is told of a truncation, and of the divergent offset."""
        consumed = self.partitions[index]
        found = consumed.truncation
        at = None if found is None or found.divergent_offset is None else found.divergent_offset
        expected = None if at is None else at.offset
        who = self._who(index)
        require(must.truncations_are_reported_where_they_are, who, offset, expected)

    def ignores(self, index: int) -> None:
        """The application ignores a truncation."""
        if self._is_drafted:
            self._admit(admitted.IGNORED)
            self.partitions[index].forget_tip()

    # -- truncations ----------------------------------------------------------------------------

    def reports(self, truncation: Truncation) -> None:
        """The consumer has detected a truncation, by the answer that it takes now."""
        index = truncation.partition.index
        consumed, log, who = self.partitions[index], self._logs.get(index), self._who(index)
        position, at = truncation.position, truncation.divergent_offset
        if self._check_offset(index, position.offset):
            consumed.tip, consumed.is_bound = None, True
            consumed.begin(position.offset)
        consumed.next, consumed.resets = position.offset, None
        if log is not None:
            told = None if at is None else at.offset
            if consumed.tip is not None and consumed.is_in(log):
                require(must.only_truncations_are_reported, who, consumed.tip, position.offset)
            if self._is_drafted:
                self._check_precise(who, consumed, log, told)
            else:
                self._check_by_epoch(who, consumed, log, position, told)
        consumed.truncation, consumed.log = truncation, log
        if not self._resets:
            return
        if at is None:
            consumed.lose_position()
        else:
            if not consumed.go_to(at.offset, log):
                self._admit(admitted.EARLIER_DIVERGENCE)
            if at.leader_epoch is None:
                consumed.forget_tip()

    def _check_by_epoch(
        self,
        who: str,
        consumed: Consumed,
        log: LogView,
        position: OffsetAndMetadata,
        told: int | None,
    ) -> None:
        """The final KIP: where the largest epoch that is not above the position's ends."""
        epoch = NO_EPOCH if position.leader_epoch is None else position.leader_epoch
        last, end = log.epoch_end(epoch)
        if last is None or last.next_offset <= log.start:
            self._admit(admitted.NOTHING_KNOWN)
            return
        expected: int | None = end
        if end >= position.offset:
            is_older = consumed.tip is not None and not consumed.is_bound and last.epoch < epoch
            expected = position.offset - 1 if is_older else None
        require(must.truncations_are_reported_where_they_are, who, told, expected)

    def _check_precise(self, who: str, consumed: Consumed, log: LogView, told: int | None) -> None:
        """The draft: where the logs differ first, or unknown where they have nothing in common."""
        common = consumed.common_end(log)
        if common is None or (told is None and not consumed.remembers_epoch_of(log)):
            self._admit(admitted.UNKNOWN_OFFSET)
        elif common > log.start:
            require(must.truncations_are_reported_where_they_are, who, told, common)

    def _check_offset(self, index: int, offset: int) -> bool:
        """Check where the consumer goes on.

        :returns: Whether it was reset. It may not have heeded an answer that came too late, and be
            where it was.
        """
        consumed, who = self.partitions[index], self._who(index)
        found = consumed.resets
        if found is None:
            require(must.consumers_skip_and_repeat_nothing, who, consumed.next, offset)
        elif offset not in found and offset != consumed.next:
            require(must.consumers_go_where_lookups_say, who, found, offset)
        return found is not None and offset in found

    # -- records --------------------------------------------------------------------------------

    def gets(self, index: int, record: ConsumerRecord) -> None:
        """The application gets a record."""
        history, who = self._checker.partitions[index], self._who(index)
        consumed = self.partitions[index]
        epoch = NO_EPOCH if record.leader_epoch is None else record.leader_epoch
        batch = _find(history, epoch, record.offset)
        require(must.consumers_get_what_leaders_wrote, who, batch, record.offset, epoch)
        assert batch is not None
        if not history.tainted:
            require(clients_read_what_is_committed, who, history, batch)
        if self._check_offset(index, record.offset):
            consumed.begin(record.offset)
        else:
            self._check_continues(who, history, consumed, batch, record.offset)
        consumed.resets = None
        consumed.tip, consumed.next, consumed.is_bound = batch, record.offset + 1, False
        self._checker.add_to_digest(index, record.offset, epoch)

    def _check_continues(
        self, who: str, history: PartitionHistory, consumed: Consumed, batch: Batch, offset: int
    ) -> None:
        tip = consumed.tip
        if tip is None or batch is tip:
            return
        if batch.base_offset <= history.deleted:
            if batch.before is not None and not any(each is tip for each in lineage(batch)):
                consumed.begin_run(offset)
            return
        if batch.base_offset == offset and batch.may_follow(tip):
            return
        before = LogView(tip=batch, start=0, end=batch.next_offset, leader_epoch=0).before(offset)
        is_older = before is not None and before.epoch < tip.epoch
        if is_older and consumed.is_bound:
            self._admit(admitted.BOUND)
        elif is_older and self._is_drafted:
            self._admit(admitted.OLDER_EPOCH)
            consumed.begin_run(offset)
        else:
            require(must.truncations_are_reported, who, tip, batch, offset)


def _find(history: PartitionHistory, epoch: int, offset: int) -> Batch | None:
    """The batch that the leader of an epoch appended with the record of an offset."""
    for base in range(offset, offset - _MOST_RECORDS, -1):
        batch = history.batches.get((epoch, base))
        if batch is not None:
            return batch if offset < batch.next_offset else None
    return None
