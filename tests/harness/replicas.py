"""What the replicas of a partition have."""

from __future__ import annotations

from fencepost.broker.replication.replica import Replica
from fencepost.protocol.records import iter_headers, iter_records
from fencepost.storage.log.leader_epoch_cache import EpochEntry
from tests.broker.driver import Driver


def content(replica: Replica, offset: int | None = None) -> list[tuple[int, int, bytes | None]]:
    """Offset, leader epoch and value of every record, from the log start or an offset on."""
    log = replica.log
    found = []
    offset = log.log_start_offset if offset is None else offset
    while offset < log.log_end_offset:
        read = log.read(
            offset, max_bytes=1 << 20, upper_bound=log.log_end_offset, min_one_batch=True
        )
        for buffer in read.buffers:
            for at, header in iter_headers(buffer):
                records = iter_records(buffer, at)
                found += [(r.offset, header.partition_leader_epoch, r.value) for r in records]
                offset = header.last_offset + 1
    return found


def written_epochs(replica: Replica) -> list[EpochEntry]:
    """The epochs with records: a follower learns of another epoch with its first record."""
    entries = replica.log.epoch_entries()
    return [entry for entry in entries if entry.start_offset < replica.log.log_end_offset]


def assert_same(driver: Driver, topic: str = "t") -> None:
    """All replicas have the same records and epochs, and the high watermark is their end."""
    leader = driver.leader(topic)
    for broker_id in leader.assigned:
        replica = driver.replica(broker_id, topic)
        assert content(replica) == content(leader)
        assert written_epochs(replica) == written_epochs(leader)
        assert replica.high_watermark == leader.high_watermark == leader.log.log_end_offset
