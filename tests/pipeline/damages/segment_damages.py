"""Damages to segments: their bytes, and which batches there are."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import Final
from uuid import UUID

from fencepost.pipeline.audit.rule import Severity
from fencepost.storage.formats import file_names
from fencepost.storage.formats.checkpoints import encode_partition_metadata
from tests.pipeline.audit import damage
from tests.pipeline.damages.model import Damage, Target
from tests.pipeline.damages.written import END


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


def _clean_away(path: Path) -> None:
    """Take the last batch from a segment and from its indexes, as a cleaner does what is old."""
    position, header = damage.batches(path)[-1]
    path.write_bytes(path.read_bytes()[:position])
    for suffix, entry in ((".index", ">ii"), (".timeindex", ">qi")):
        index = path.with_suffix(suffix)
        entries = list(struct.iter_unpack(entry, index.read_bytes()))
        of_offset = 0 if suffix == ".index" else 1
        kept = [each for each in entries if each[of_offset] + int(path.stem) < header.base_offset]
        index.write_bytes(b"".join(struct.pack(entry, *each) for each in kept))


def _append_head(path: Path, source: Path, number: int) -> None:
    """Write the first batches of a segment at the end of a segment once more."""
    position, _ = damage.batches(source)[number]
    path.write_bytes(path.read_bytes() + source.read_bytes()[:position])


def _base_offset(path: Path, number: int, offset: int) -> None:
    position, _ = damage.batches(path)[number]
    damage.overwrite(path, position, struct.pack(">q", offset))


def _rename(path: Path, base: int) -> None:
    for each in path.parent.glob(f"{path.stem}.*"):
        each.rename(each.with_name(f"{base:020d}{each.suffix}"))


def _empty_directory(target: Target) -> None:
    for each in target.log.iterdir():
        each.unlink()


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
        do=lambda to: damage.restate(to.segments()[0], 1, 21, b"\0\x07"),
        rule="crc-and-structure",
        cause="the codec is none that there is",
    ),
    Damage(
        name="wrong-count",
        do=lambda to: damage.restate(to.segments()[0], 1, 57, struct.pack(">i", 2)),
        rule="crc-and-structure",
        cause="records",
    ),
    Damage(
        name="huge-count",
        do=lambda to: damage.restate(to.segments()[0], 1, 57, struct.pack(">i", 30_000)),
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
    Damage(
        name="value-of-a-key-lost",
        do=lambda to: _clean_away(to.segments()[0]),
        rule="keys-agree",
        cause="key 'key 3', at offset 33, is on brokers 2 and 3 and not on broker 1",
        replicas=(3,),
        compacted=True,
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
        name="stretch-twice",
        do=lambda to: _append_head(to.segments()[0], to.segments()[0], 2),
        rule="contiguous-offsets",
        cause="a batch from offset 0 on follows one that ends at 11",
        alone=Severity.DAMAGE,
    ),
    Damage(
        name="segments-overlap",
        do=lambda to: _append_head(to.segments()[0], to.segments()[1], 2),
        rule="contiguous-offsets",
        cause="the segment from offset 0 on has offsets 12 to 17, and the next one begins at 12",
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
)
