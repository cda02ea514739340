"""Records of one partition that were fetched and not yet handed out."""

from collections.abc import Sequence

from fencepost.client.batches import FetchedRecord, FetchedRecords
from fencepost.client.consumer.cluster_metadata import NO_EPOCH
from fencepost.client.consumer.model import ConsumerRecord


class FetchBuffer:
    """The rest of a Fetch's answer.

    :param content: With one whole batch at least.
    """

    def __init__(self, content: FetchedRecords) -> None:
        assert content.next_offset is not None
        self._records = content.records
        self._taken = 0
        self._end = content.next_offset
        self._end_epoch = content.batches[-1].partition_leader_epoch

    @property
    def is_empty(self) -> bool:
        """Whether all records were handed out."""
        return self._taken == len(self._records)

    def take(self, count: int) -> Sequence[FetchedRecord]:
        """The next records, so many at most."""
        taken = self._records[self._taken : self._taken + count]
        self._taken += len(taken)
        return taken

    def position(self) -> tuple[int, int]:
        """The offset behind what was handed out, and the epoch of the record before it.

        Behind the last record that is the end of its batch, or of a batch without records for the
        application: markers of transactions, or records that compaction has removed.
        """
        if self.is_empty:
            return self._end, self._end_epoch
        if self._taken == 0:
            return self._records[0].offset, NO_EPOCH
        last = self._records[self._taken - 1]
        return last.offset + 1, last.epoch


def to_record(topic: str, partition: int, record: FetchedRecord) -> ConsumerRecord:
    """A record as the application gets it."""
    return ConsumerRecord(
        topic=topic,
        partition=partition,
        offset=record.offset,
        leader_epoch=None if record.epoch == NO_EPOCH else record.epoch,
        timestamp=record.timestamp,
        key=record.key,
        value=record.value,
        headers=record.headers,
    )
