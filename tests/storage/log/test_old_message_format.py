"""Logs in a message format without leader epochs (``message.format.version`` below 0.11)."""

from __future__ import annotations

from msgspec.structs import replace

from fencepost.protocol.records import NO_LEADER_EPOCH, iter_headers
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.interface import Log
from tests.harness.logs import NOW, append, new_log, read_all

NEW = LogConfig()
OLD = replace(NEW, keeps_leader_epochs=False)


def stored_epochs(log: Log) -> list[int]:
    return [
        header.partition_leader_epoch
        for buffer in read_all(log).buffers
        for _, header in iter_headers(buffer)
    ]


def test_batches_are_stored_without_an_epoch_and_none_is_known() -> None:
    log = new_log(OLD)
    log.assign_epoch_start(3, 0)
    append(log, epoch=3)
    append(log, epoch=4)
    assert stored_epochs(log) == [NO_LEADER_EPOCH, NO_LEADER_EPOCH]
    assert log.epoch_entries() == ()
    assert log.latest_epoch is None
    assert log.epoch_for_offset(0) is None
    assert log.end_offset_for_epoch(3) == (-1, -1)


def test_what_is_found_by_time_has_no_epoch() -> None:
    log = new_log(OLD)
    append(log, epoch=3)
    found = log.offset_for_timestamp(0)
    assert found is not None
    assert (found.offset, found.epoch) == (0, -1)


def test_a_change_to_the_old_format_holds_from_the_next_append_and_forgets_the_epochs() -> None:
    log = new_log(NEW)
    append(log, epoch=3)
    log.config = OLD
    assert log.epoch_entries() == ((3, 0),)
    append(log, epoch=3)
    assert stored_epochs(log) == [3, NO_LEADER_EPOCH]
    assert log.epoch_entries() == ()


def test_or_from_the_next_election() -> None:
    log = new_log(NEW)
    append(log, epoch=3)
    log.config = OLD
    log.assign_epoch_start(4, 1)
    assert log.epoch_entries() == ()


def test_a_change_back_begins_epochs_with_the_next_append_or_election() -> None:
    log = new_log(OLD)
    append(log, epoch=3)
    log.config = NEW
    append(log, epoch=3)
    log.assign_epoch_start(4, 2)
    assert stored_epochs(log) == [NO_LEADER_EPOCH, 3]
    assert log.epoch_entries() == ((3, 1), (4, 2))
    assert log.epoch_for_offset(0) is None


def test_a_follower_forgets_its_epochs_with_the_first_batch_that_has_none() -> None:
    leader, follower = new_log(NEW), new_log(NEW)
    append(leader, epoch=3)
    leader.config = OLD
    append(leader, epoch=3)
    for offset, known in ((0, ((3, 0),)), (1, ())):
        batches = read_all(leader, offset, max_bytes=1).buffers
        follower.append_as_follower(batches, now_ms=NOW)
        assert follower.epoch_entries() == known
    assert stored_epochs(follower) == stored_epochs(leader)
