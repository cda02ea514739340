"""Fifty ways to damage a partition, and the cause that an audit names for each."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias
from uuid import UUID

from fencepost.pipeline.audit.rule import Severity
from fencepost.protocol.byte_utils import crc32c
from fencepost.protocol.records import HEADER_SIZE
from fencepost.storage.formats import file_names
from fencepost.storage.formats.checkpoints import (
    decode_offsets,
    decode_snapshot,
    encode_offsets,
    encode_partition_metadata,
    encode_snapshot,
)
from tests.pipeline.audit import damage
from tests.pipeline.damages.written import END, Written

_CHECKSUMMED_AT: Final = 21


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The replica that is damaged: of broker 1, which leads."""

    written: Written
    topic: str
    broker: int = 1

    @property
    def top(self) -> Path:
        """The broker's log directory."""
        return self.written.log_dir(self.broker)

    @property
    def log(self) -> Path:
        """The directory of the partition."""
        return self.top / f"{self.topic}-0"

    def segments(self, suffix: str = ".log") -> list[Path]:
        """Files of the segments, by base offset."""
        return sorted(self.log.glob(f"*{suffix}"))

    def checkpoint(self, name: str, change: Callable[[int], int | None]) -> None:
        """Change the partition's line in a checkpoint of offsets."""
        path = self.top / name
        known = dict(decode_offsets(path.read_bytes())) if path.exists() else {}
        changed = change(known.pop((self.topic, 0), 0))
        if changed is not None:
            known[self.topic, 0] = changed
        path.write_bytes(encode_offsets(known))


_Do: TypeAlias = Callable[[Target], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Something that happens to a partition."""

    name: str
    """The topic's name begins with it."""
    do: _Do
    rule: str
    """Which finds the cause."""
    rule_beside_others: str | None = None
    """Which finds it where other replicas are whole, if that is another one."""
    rule_after_a_kill: str | None = None
    """Which may find it where a broker was killed: the coordinators' log may be behind then."""
    cause: str
    """A pattern that the incident's message fits."""
    alone: Severity = Severity.LOSS
    """Of the incident where the replica is the only one."""
    beside_others: Severity = Severity.DAMAGE
    """Of the incident where two others are whole."""
    replicas: tuple[int, ...] = (1, 3)
    transactional: bool = False


def _zeros(target: Target) -> None:
    path = target.segments()[0]
    position, header = damage.batches(path)[1]
    damage.overwrite(path, position, bytes(header.size))


def _zeros_at_the_end(target: Target) -> None:
    path = target.segments()[-1]
    path.write_bytes(path.read_bytes() + bytes(4096))


def _cut_within(path: Path, number: int) -> None:
    position, _ = damage.batches(path)[number]
    with path.open("r+b") as file:
        file.truncate(position + 30)


def _swap_batches(path: Path) -> None:
    (first, one), (second, other) = damage.batches(path)[1:3]
    data = path.read_bytes()
    swapped = data[second : second + other.size] + data[first : first + one.size]
    path.write_bytes(data[:first] + swapped + data[second + other.size :])


def _remove_batch(path: Path, number: int) -> None:
    position, header = damage.batches(path)[number]
    data = path.read_bytes()
    path.write_bytes(data[:position] + data[position + header.size :])


def _rewrite(path: Path, number: int, at: int, data: bytes) -> None:
    """Change a header's bytes behind the checksum, and make it right again."""
    position, header = damage.batches(path)[number]
    damage.overwrite(path, position + at, data)
    whole = path.read_bytes()
    checksum = crc32c(whole[position + _CHECKSUMMED_AT : position + header.size])
    damage.overwrite(path, position + 17, struct.pack(">I", checksum))


def _base_offset(path: Path, number: int, offset: int) -> None:
    position, _ = damage.batches(path)[number]
    damage.overwrite(path, position, struct.pack(">q", offset))


def _rename(path: Path, base: int) -> None:
    for each in path.parent.glob(f"{path.stem}.*"):
        each.rename(each.with_name(f"{base:020d}{each.suffix}"))


def _empty_directory(target: Target) -> None:
    for each in target.log.iterdir():
        each.unlink()


def _turn_last_marker(target: Target) -> None:
    """Let the last marker, which aborts, commit."""
    path, number = [
        (path, number)
        for path in target.segments()
        for number, (_, header) in enumerate(damage.batches(path))
        if header.is_control
    ][-1]
    # Five fields of a byte each stand before the key, which begins with its version.
    _rewrite(path, number, HEADER_SIZE + 5 + 2, b"\0\1")


def _change_snapshot(target: Target) -> None:
    """Let the last snapshot say a newer epoch of a producer, with a right checksum."""
    path = target.segments(".snapshot")[-1]
    first, *rest = decode_snapshot(path.read_bytes())
    path.write_bytes(encode_snapshot((replace(first, producer_epoch=7), *rest)))


def _aborted(target: Target) -> Path:
    """The first transaction index that has an entry."""
    return next(each for each in target.segments(".txnindex") if each.stat().st_size)


DAMAGES: Final[tuple[Damage, ...]] = (
    # The bytes of a segment.
    Damage(
        name="flipped-record",
        do=lambda to: damage.flip_in(to.segments()[0], 1),
        rule="crc-and-structure",
        cause="the checksum of the batch is not that of its bytes",
    ),
    Damage(
        name="flipped-last-record",
        do=lambda to: damage.flip_in(to.segments()[-1], -1),
        rule="crc-and-structure",
        cause="the checksum of the batch is not that of its bytes",
    ),
    Damage(
        name="flipped-checksum",
        do=lambda to: damage.flip(to.segments()[0], damage.batches(to.segments()[0])[2][0] + 18),
        rule="crc-and-structure",
        cause="the checksum of the batch is not that of its bytes",
    ),
    Damage(
        name="absurd-length",
        do=lambda to: damage.overwrite(
            to.segments()[0], damage.batches(to.segments()[0])[1][0] + 8, b"\x7f\0\0\0"
        ),
        rule="crc-and-structure",
        cause=r"\d+ bytes are no batch, and others follow them",
    ),
    Damage(
        name="other-magic",
        do=lambda to: damage.overwrite(
            to.segments()[1], damage.batches(to.segments()[1])[0][0] + 16, b"\x09"
        ),
        rule="crc-and-structure",
        cause=r"\d+ bytes are no batch, and others follow them",
    ),
    Damage(
        name="zeros-within",
        do=_zeros,
        rule="crc-and-structure",
        cause=r"\d+ bytes are no batch, and others follow them",
    ),
    Damage(
        name="zeros-at-the-end",
        do=_zeros_at_the_end,
        rule="torn-tail",
        cause="4096 bytes at the end are no whole batch",
        alone=Severity.DAMAGE,
    ),
    Damage(
        name="unknown-codec",
        do=lambda to: _rewrite(to.segments()[0], 1, 21, b"\0\x07"),
        rule="crc-and-structure",
        cause="the codec is none that there is",
    ),
    Damage(
        name="wrong-count",
        do=lambda to: _rewrite(to.segments()[0], 1, 57, struct.pack(">i", 2)),
        rule="crc-and-structure",
        cause="records",
    ),
    Damage(
        name="huge-count",
        do=lambda to: _rewrite(to.segments()[0], 1, 57, struct.pack(">i", 30_000)),
        rule="crc-and-structure",
        cause="the header counts more records than it has offsets",
    ),
    Damage(
        name="other-value",
        do=lambda to: damage.falsify(to.segments()[0], 1),
        rule="replicas-agree",
        cause="at offset 3 brokers 1 and 2 have different batches of leader epoch 0",
        alone=Severity.DAMAGE,
        replicas=(3,),
    ),
    # Which batches there are, and where.
    Damage(
        name="absurd-base-offset",
        do=lambda to: _base_offset(to.segments()[0], 2, 2**50 + 6),
        rule="contiguous-offsets",
        cause="a batch says base offset 1125899906842630, and its neighbours leave it 6 to 8",
    ),
    Damage(
        name="absurd-last-base-offset",
        do=lambda to: _base_offset(to.segments()[-1], -1, 2**50 + 39),
        rule="contiguous-offsets",
        cause="a batch says base offset 1125899906842663, and its neighbours leave it 39 to 41",
    ),
    Damage(
        name="earlier-base-offset",
        do=lambda to: _base_offset(to.segments()[1], 1, 3),
        rule="contiguous-offsets",
        cause="a batch says base offset 3, and its neighbours leave it 15 to 17",
    ),
    Damage(
        name="cut-closed-segment",
        do=lambda to: _cut_within(to.segments()[1], 1),
        rule="torn-tail",
        cause="30 bytes at the end are no whole batch",
    ),
    Damage(
        name="cut-active-segment",
        do=lambda to: _cut_within(to.segments()[-1], 1),
        rule="torn-tail",
        cause="30 bytes at the end are no whole batch",
    ),
    Damage(
        name="torn-tail",
        do=lambda to: damage.tear(to.segments()[-1]),
        rule="torn-tail",
        cause="40 bytes at the end are no whole batch",
        alone=Severity.DAMAGE,
    ),
    Damage(
        name="last-batch-gone",
        do=lambda to: damage.cut_last(to.segments()[-1]),
        rule="torn-tail",
        cause=f"the log ends at 39, and .* {END}",
    ),
    Damage(
        name="batch-gone",
        do=lambda to: _remove_batch(to.segments()[0], 2),
        rule="contiguous-offsets",
        cause="offsets 6 to 8 are missing",
    ),
    Damage(
        name="segment-gone",
        do=lambda to: damage.lose_segment(to.segments()[1]),
        rule="contiguous-offsets",
        cause="offsets 12 to 23 are missing",
    ),
    Damage(
        name="first-segment-gone",
        do=lambda to: damage.lose_segment(to.segments()[0]),
        rule="head-present",
        cause="the log starts at 0, and its first segment begins at 12",
    ),
    Damage(
        name="swap-left",
        do=lambda to: shutil.copyfile(
            to.segments()[0], to.segments()[0].with_name(f"{to.segments()[0].name}.swap")
        ),
        rule="leftover-files",
        cause="1 .swap file .*, though broker 1 has ended in order",
        alone=Severity.DAMAGE,
    ),
    Damage(
        name="other-topic-id",
        do=lambda to: (to.log / file_names.PARTITION_METADATA).write_bytes(
            encode_partition_metadata(UUID(int=7))
        ),
        rule="one-topic-id",
        cause="says topic id",
        alone=Severity.DAMAGE,
        replicas=(3,),
    ),
    Damage(
        name="last-segment-gone",
        do=lambda to: damage.lose_segment(to.segments()[-1]),
        rule="torn-tail",
        cause=f"the log ends at 36, and .* {END}",
    ),
    Damage(
        name="segment-emptied",
        do=lambda to: to.segments()[1].write_bytes(b""),
        rule="contiguous-offsets",
        cause="offsets 12 to 23 are missing",
    ),
    Damage(
        name="directory-emptied",
        do=_empty_directory,
        rule="torn-tail",
        cause=f"the log ends at 0, and .* {END}",
    ),
    Damage(
        name="batch-twice",
        do=lambda to: damage.write_twice(to.segments()[0]),
        rule="contiguous-offsets",
        cause="a batch from offset 9 on follows one that ends at 11",
        alone=Severity.DAMAGE,
    ),
    Damage(
        name="batches-swapped",
        do=lambda to: _swap_batches(to.segments()[0]),
        rule="contiguous-offsets",
        cause="",
        alone=Severity.DAMAGE,
    ),
    Damage(
        name="segment-renamed",
        do=lambda to: _rename(to.segments()[1], 13),
        rule="contiguous-offsets",
        cause="a batch from offset 12 on lies in the segment from 13 on",
        alone=Severity.DAMAGE,
    ),
    # Leader epochs.
    Damage(
        name="epoch-raised",
        do=lambda to: damage.give_epoch(to.segments()[0], 1, 7),
        rule="monotonic-epochs",
        cause="a batch of leader epoch 0 follows one of 7",
        alone=Severity.DAMAGE,
    ),
    Damage(
        name="last-epoch-raised",
        do=lambda to: damage.give_epoch(to.segments()[-1], -1, 7),
        rule="monotonic-epochs",
        cause="a batch of leader epoch 7, where the leader-epoch-checkpoint says epoch 0",
        alone=Severity.DAMAGE,
    ),
    Damage(
        name="epochs-not-there",
        do=lambda to: (to.log / file_names.LEADER_EPOCHS).unlink(),
        rule="monotonic-epochs",
        cause="the leader-epoch-checkpoint is not there, or is none",
        alone=Severity.DAMAGE,
    ),
    Damage(
        name="epochs-empty",
        do=lambda to: (to.log / file_names.LEADER_EPOCHS).write_text("0\n0\n"),
        rule="monotonic-epochs",
        cause="the leader-epoch-checkpoint is empty",
        alone=Severity.DAMAGE,
    ),
    Damage(
        name="epochs-garbled",
        do=lambda to: (to.log / file_names.LEADER_EPOCHS).write_text("0\n1\nx y\n"),
        rule="monotonic-epochs",
        cause="the leader-epoch-checkpoint is not there, or is none",
        alone=Severity.DAMAGE,
    ),
    Damage(
        name="epoch-beyond-the-end",
        do=lambda to: (to.log / file_names.LEADER_EPOCHS).write_text("0\n2\n0 0\n5 4500\n"),
        rule="monotonic-epochs",
        cause=f"the leader-epoch-checkpoint lets epoch 5 begin at 4500, and the log ends at {END}",
        alone=Severity.DAMAGE,
    ),
    Damage(
        name="epochs-in-disorder",
        do=lambda to: (to.log / file_names.LEADER_EPOCHS).write_text("0\n2\n3 0\n1 12\n"),
        rule="monotonic-epochs",
        cause="in the leader-epoch-checkpoint epoch 1 from offset 12 on follows epoch 3 from 0 on",
        alone=Severity.DAMAGE,
    ),
    # Checkpoints of the broker.
    Damage(
        name="log-start-beyond-the-end",
        do=lambda to: to.checkpoint(file_names.LOG_STARTS, lambda _: 99999),
        rule="log-start-in-log",
        cause=f"the log-start-offset-checkpoint says 99999, and the log ends at {END}",
        alone=Severity.DAMAGE,
    ),
    Damage(
        name="high-watermark-beyond-the-end",
        do=lambda to: to.checkpoint(file_names.HIGH_WATERMARKS, lambda _: 4500),
        rule="torn-tail",
        cause=f"the log ends at {END}, and its high watermark was 4500",
        beside_others=Severity.LOSS,
    ),
    Damage(
        name="recovery-point-beyond-the-end",
        do=lambda to: to.checkpoint(file_names.RECOVERY_POINTS, lambda _: 4500),
        rule="torn-tail",
        cause=f"the log ends at {END}, and it was durable up to 4500",
        beside_others=Severity.LOSS,
    ),
    # Indexes.
    Damage(
        name="index-entry",
        do=lambda to: damage.flip(to.segments(".index")[0], 5),
        rule="true-indexes",
        cause="offset index: ",
        alone=Severity.REBUILT,
        beside_others=Severity.REBUILT,
    ),
    Damage(
        name="time-index-entry",
        do=lambda to: damage.flip(to.segments(".timeindex")[0], 5),
        rule="true-indexes",
        cause="time index: ",
        alone=Severity.REBUILT,
        beside_others=Severity.REBUILT,
    ),
    Damage(
        name="index-gone",
        do=lambda to: to.segments(".index")[0].unlink(),
        rule="true-indexes",
        cause="index is not there",
        alone=Severity.REBUILT,
        beside_others=Severity.REBUILT,
    ),
    Damage(
        name="time-index-gone",
        do=lambda to: to.segments(".timeindex")[0].unlink(),
        rule="true-indexes",
        cause="timeindex is not there",
        alone=Severity.REBUILT,
        beside_others=Severity.REBUILT,
    ),
    Damage(
        name="index-of-zeros",
        do=lambda to: to.segments(".index")[1].write_bytes(bytes(80)),
        rule="true-indexes",
        cause="offset index: ",
        alone=Severity.REBUILT,
        beside_others=Severity.REBUILT,
    ),
    Damage(
        name="records-of-another-partition",
        do=lambda to: shutil.copyfile(
            to.written.log_dir(1) / "healthy-1-0" / to.segments()[1].name, to.segments()[1]
        ),
        rule="replicas-agree",
        cause="at offset 12 brokers 1 and 2 have different batches of leader epoch 0",
        alone=Severity.DAMAGE,
        replicas=(3,),
    ),
    # Producers and transactions.
    Damage(
        name="sequence-left-out",
        do=lambda to: _rewrite(to.segments()[0], 2, 53, struct.pack(">i", 9)),
        rule="producer-sequences",
        rule_beside_others="replicas-agree",
        cause="9 to 11 of producer .* come where 6 is next|at offset 6 brokers 1 and 2",
        alone=Severity.DAMAGE,
    ),
    Damage(
        name="producer-epoch-raised",
        do=lambda to: _rewrite(to.segments()[0], 1, 51, struct.pack(">h", 7)),
        rule="producer-sequences",
        rule_beside_others="replicas-agree",
        cause="sequence numbers 3 to 5 .* are the first of the epoch|at offset 3 brokers 1 and 2",
        alone=Severity.DAMAGE,
    ),
    Damage(
        name="marker-turned",
        do=_turn_last_marker,
        rule="transactions",
        rule_after_a_kill="transaction-index",
        rule_beside_others="replicas-agree",
        cause="",
        alone=Severity.DAMAGE,
        transactional=True,
    ),
    Damage(
        name="transactional-by-mistake",
        do=lambda to: _rewrite(to.segments()[0], 1, 21, b"\0\x10"),
        rule="transactions",
        rule_beside_others="replicas-agree",
        cause="",
        alone=Severity.DAMAGE,
    ),
    Damage(
        name="snapshot-flipped",
        do=lambda to: damage.flip(to.segments(".snapshot")[-1], 10),
        rule="producer-snapshots",
        cause="A producer snapshot fails its CRC",
        alone=Severity.REBUILT,
        beside_others=Severity.REBUILT,
    ),
    Damage(
        name="snapshot-gone",
        do=lambda to: to.segments(".snapshot")[-1].unlink(),
        rule="producer-snapshots",
        cause="it is not there",
        alone=Severity.REBUILT,
        beside_others=Severity.REBUILT,
    ),
    Damage(
        name="snapshot-of-another-epoch",
        do=_change_snapshot,
        rule="producer-snapshots",
        cause="",
        alone=Severity.REBUILT,
        beside_others=Severity.REBUILT,
    ),
    Damage(
        name="transaction-index-emptied",
        do=lambda to: _aborted(to).write_bytes(b""),
        rule="transaction-index",
        cause="the transaction of producer .* that the marker 7 aborts has no entry",
        alone=Severity.DAMAGE,
        transactional=True,
    ),
    Damage(
        name="transaction-index-flipped",
        do=lambda to: damage.flip(_aborted(to), 20),
        rule="transaction-index",
        cause="the index makes no sense",
        alone=Severity.DAMAGE,
        transactional=True,
    ),
)
