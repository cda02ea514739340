"""Damages to what producers wrote, and to what a broker keeps of them."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from fencepost.pipeline.audit.rule import Severity
from fencepost.protocol.records import HEADER_SIZE
from fencepost.storage.formats.checkpoints import decode_snapshot, encode_snapshot
from tests.pipeline.audit import damage
from tests.pipeline.damages.model import Damage, Target


def _turn_last_marker(target: Target) -> None:
    """Let the last marker, which aborts, commit."""
    path, number = [
        (path, number)
        for path in target.segments()
        for number, (_, header) in enumerate(damage.batches(path))
        if header.is_control
    ][-1]
    # Five fields of a byte each stand before the key, which begins with its version.
    damage.restate(path, number, HEADER_SIZE + 5 + 2, b"\0\1")


def _change_snapshot(target: Target) -> None:
    """Let the last snapshot say a newer epoch of a producer, with a right checksum."""
    path = target.segments(".snapshot")[-1]
    first, *rest = decode_snapshot(path.read_bytes())
    path.write_bytes(encode_snapshot((replace(first, producer_epoch=7), *rest)))


def _aborted(target: Target) -> Path:
    """The first transaction index that has an entry."""
    return next(each for each in target.segments(".txnindex") if each.stat().st_size)


DAMAGES: Final[tuple[Damage, ...]] = (
    Damage(
        name="sequence-left-out",
        do=lambda to: damage.restate(to.segments()[0], 2, 53, struct.pack(">i", 9)),
        rule="producer-sequences",
        rule_beside_others="replicas-agree",
        cause="9 to 11 of producer .* come where 6 is next|at offset 6 brokers 1 and 2",
        alone=Severity.DAMAGE,
    ),
    Damage(
        name="producer-epoch-raised",
        do=lambda to: damage.restate(to.segments()[0], 1, 51, struct.pack(">h", 7)),
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
        do=lambda to: damage.restate(to.segments()[0], 1, 21, b"\0\x10"),
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
