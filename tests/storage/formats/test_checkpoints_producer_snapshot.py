"""Snapshots of a log's producers, with files that Kafka 4.3.1 wrote."""

from __future__ import annotations

import struct

import pytest
from msgspec.structs import replace

from fencepost.protocol.byte_utils import crc32c
from fencepost.storage.formats.checkpoints import CorruptSnapshot, decode_snapshot, encode_snapshot
from fencepost.storage.log.producer_state import (
    BatchMetadata,
    ProducerStateEntry,
    ProducerStateManager,
)


def producer(
    producer_id: int,
    *batches: BatchMetadata,
    last_timestamp: int,
    epoch: int = 0,
    coordinator_epoch: int = -1,
    begun: int | None = None,
) -> ProducerStateEntry:
    return ProducerStateEntry(
        producer_id=producer_id,
        producer_epoch=epoch,
        last_timestamp=last_timestamp,
        coordinator_epoch=coordinator_epoch,
        txn_first_offset=begun,
        batches=batches,
    )


T = 1_795_287_800_000
NO_PRODUCER = "0001 48674bc7 00000000"
TWO_PRODUCERS = """
    0001 349fc2a8 00000002
    0000000000000000 0000 0000002c 000000000000002c 00000002 000001a1ff7ec624 ffffffff
    ffffffffffffffff
    00000000000003e8 0000 0000000e 000000000000003b 00000002 000001a1ff7f00bc ffffffff
    ffffffffffffffff
"""
OPEN_TRANSACTION = """
    0001 0448801d 00000001
    000000000000000a 0000 00000008 000000000000000a 00000002 000001a1ff7e3984 00000000
    0000000000000008
"""
BY_A_MARKER = """
    0001 e49b5144 00000001
    0000000000000000 0001 ffffffff ffffffffffffffff 00000000 000001a1ffb6b880 00000000
    ffffffffffffffff
"""
KAFKA: dict[str, tuple[str, tuple[ProducerStateEntry, ...]]] = {
    "no producer": (NO_PRODUCER, ()),
    "two idempotent producers": (
        TWO_PRODUCERS,
        (
            producer(0, BatchMetadata(44, 44, 2, T + 60_772), last_timestamp=T + 60_772),
            producer(1000, BatchMetadata(14, 59, 2, T + 75_772), last_timestamp=T + 75_772),
        ),
    ),
    "an open transaction": (
        OPEN_TRANSACTION,
        (
            producer(
                10,
                BatchMetadata(8, 10, 2, T + 24_772),
                last_timestamp=T + 24_772,
                coordinator_epoch=0,
                begun=8,
            ),
        ),
    ),
    "a new epoch by a marker": (
        BY_A_MARKER,
        (producer(0, epoch=1, last_timestamp=1_795_291_527_296, coordinator_epoch=0),),
    ),
}
TWO = bytes.fromhex(TWO_PRODUCERS)


@pytest.mark.parametrize("name", KAFKA)
def test_kafkas_snapshot_is_read(name: str) -> None:
    data, producers = KAFKA[name]
    assert decode_snapshot(bytes.fromhex(data)) == producers
    assert decode_snapshot(memoryview(bytearray.fromhex(data))) == producers


@pytest.mark.parametrize("name", KAFKA)
def test_what_kafka_wrote_is_written(name: str) -> None:
    data, producers = KAFKA[name]
    assert encode_snapshot(producers) == bytes.fromhex(data)


def test_only_the_last_batch_is_kept() -> None:
    batches = [BatchMetadata(3 * n + 2, 3 * n + 2, 2, T + n) for n in range(5)]
    many = producer(7, *batches, last_timestamp=T + 4)
    assert decode_snapshot(encode_snapshot([many])) == (replace(many, batches=(batches[-1],)),)


def test_a_producer_goes_on_after_a_snapshot() -> None:
    states = ProducerStateManager()
    states.restore(decode_snapshot(TWO))
    assert encode_snapshot(states.snapshot()) == TWO


@pytest.mark.parametrize("size", [0, 1, 5, 9, 10, len(TWO) - 1])
def test_a_torn_snapshot_is_corrupt(size: int) -> None:
    with pytest.raises(CorruptSnapshot):
        decode_snapshot(TWO[:size])


@pytest.mark.parametrize("position", range(2, len(TWO)))
def test_a_changed_byte_is_noticed(position: int) -> None:
    data = bytearray(TWO)
    data[position] ^= 0x40
    with pytest.raises(CorruptSnapshot, match="fails its CRC"):
        decode_snapshot(data)


@pytest.mark.parametrize("version", [0, 2, -1])
def test_another_version_is_not_read(version: int) -> None:
    with pytest.raises(CorruptSnapshot, match=f"version {version}"):
        decode_snapshot(struct.pack(">h", version) + TWO[2:])


@pytest.mark.parametrize("count", [0, 1, 3, -1, 2**31 - 1])
def test_a_count_that_is_wrong_is_noticed(count: int) -> None:
    body = struct.pack(">i", count) + TWO[10:]
    with pytest.raises(CorruptSnapshot, match=f"not {count} producers"):
        decode_snapshot(struct.pack(">hI", 1, crc32c(body)) + body)
