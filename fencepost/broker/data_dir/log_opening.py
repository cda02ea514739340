"""How a replica's log is opened: whether its files are what they were, and how it goes on if not.

    INTACT   all that the inventory has is there: the log is opened, and recovered after a kill
    FOLLOW   records are missing, and another replica leads: all from the first missing offset on is
             removed, and fetched from the leader
    ACCEPT   records are missing everywhere, and that is accepted: what is left is kept, with a gap
             where they were, and the log goes on behind the last offset that was given out, be it
             by another replica

Without a decision a log that misses records is not opened, and no file is touched.
"""

from enum import Enum
from pathlib import PurePath
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from fencepost.storage.files.file_system import DamagedSegment, FileSystem, StorageFailure
from fencepost.storage.files.inventory import (
    Examination,
    LogInventory,
    MissingRecords,
    describe_missing,
    examine,
    remove_from,
    remove_segments,
    set_aside,
    unknown_segments,
)
from fencepost.storage.files.open_log import OpenedLog, open_log
from fencepost.storage.files.process_limits import ProcessLimits
from fencepost.storage.files.recovery import TruncatedSegment
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.leader_epoch_cache import EpochEntry


class Repair(Enum):
    """How a log goes on that misses records."""

    REFUSE = "refuse"
    FOLLOW = "follow"
    ACCEPT = "accept"


class LogDamage(Exception):
    """A log can't be opened as it is; the text is one line, for a person."""

    def __init__(self, why: str, missing: tuple[MissingRecords, ...]) -> None:
        super().__init__(why)
        self.why = why
        self.missing = missing


class CheckpointedOffsets(NamedTuple):
    """What Kafka's checkpoints say of a log; of use where no inventory has it."""

    recovery_point: int = 0
    log_start_offset: int = 0
    high_watermark: int = 0
    cleaned_until: int = 0


class LogOpening(Struct, frozen=True, kw_only=True):
    """One log, its files and its inventory.

    :ivar is_there: Whether its directory is.
    :ivar is_clean: Whether it was closed, and nothing was written since.
    :ivar inventory: What there was of it; None where that is not known.
    :ivar is_thorough: Whether the first batch of every segment is looked at. Otherwise that is done
        when a segment is first used, and takes the replica offline.
    """

    fs: FileSystem
    path: PurePath
    name: str
    config: LogConfig
    now_ms: int
    shared: ProcessLimits
    is_there: bool
    is_clean: bool
    inventory: LogInventory | None
    checkpointed: CheckpointedOffsets
    is_thorough: bool = False

    def open(self, repair: Repair, *, end_at_least: int = 0) -> OpenedLog:
        """The log.

        :param repair: What to do if records are missing or damaged.
        :param end_at_least: With ACCEPT: no offset below this one may be given out again.
        :raises LogDamage: With REFUSE, when records are missing or damaged; no segment is changed.
        :raises StorageFailure: When the files can't be read or written.
        """
        try:
            missing: tuple[MissingRecords, ...] = ()
            try:
                opened = self._open_whole(self._examine(every_head=self.is_thorough))
                if repair is not Repair.ACCEPT or opened.log.log_end_offset >= end_at_least:
                    return opened
                opened.log.abandon()
            except LogDamage as damage:
                if repair is Repair.REFUSE:
                    raise
                missing = damage.missing
            return self._open_rest(missing, repair, end_at_least)
        except OSError as error:
            raise StorageFailure(self.name, error) from error

    def _examine(self, *, every_head: bool) -> Examination:
        inventory = self.inventory
        if inventory is None:
            return Examination()
        if self.is_there:
            exact = self.is_clean
            return examine(self.fs, self.path, inventory, exact=exact, every_head=every_head)
        start, end = inventory.log_start_offset, inventory.log_end_offset
        if start >= end or not any(entry.size for entry in inventory.segments):
            return Examination()
        return Examination((MissingRecords(start, end, f"{self.path} is not there"),))

    def _open_whole(self, found: Examination) -> OpenedLog:
        if found.missing:
            raise LogDamage(describe_missing(found.missing), found.missing)
        tidied = remove_segments(self.fs, self.path, found.surplus) if found.surplus else []
        offsets = self._offsets()
        if found.grown:
            offsets = offsets._replace(recovery_point=0)
        safe_until = 0 if self.inventory is None else self.inventory.safe_until
        try:
            opened = self._open_log(
                offsets,
                self._without_checksums() if found else self.inventory,
                clean=self.is_clean and not found,
                safe_until=safe_until,
            )
        except StorageFailure as failure:
            damage = failure.__cause__
            if isinstance(damage, DamagedSegment):
                raise self._damage(damage.offset, failure.why) from failure
            raise
        end = opened.log.log_end_offset
        if end < safe_until:
            opened.log.abandon()
            raise self._damage(end, f"{self.path} ends at offset {end}")
        opened.recovery.tidied += tidied
        return opened

    def _open_rest(
        self, missing: tuple[MissingRecords, ...], repair: Repair, end_at_least: int
    ) -> OpenedLog:
        """What is left of a log; every batch of it is validated."""
        found = self._examine(every_head=True)
        missing = found.missing or missing
        removed: list[str] = []
        offsets = self._offsets()
        log_start = offsets.log_start_offset
        if repair is Repair.FOLLOW and missing:
            # A follower without its first records has none from before them either.
            log_start = min(log_start, missing[0].start)
            if self.is_there:
                removed = remove_from(self.fs, self.path, missing[0].start, found.surplus)
        elif found.foreign and self.inventory is not None:
            unknown = unknown_segments(self.fs, self.path, self.inventory)
            removed = set_aside(self.fs, self.path, (*found.foreign, *unknown))
        elif found.surplus:
            removed = remove_segments(self.fs, self.path, found.surplus)
        opened = self._open_log(
            offsets._replace(recovery_point=0, log_start_offset=log_start),
            LogInventory(epochs=self._epochs),
            end_at_least=max(end_at_least, self._end) if repair is Repair.ACCEPT else 0,
        )
        opened.recovery.cut += [
            TruncatedSegment(name, 0, 0, missing[0].start if missing else 0, "it is not as it was")
            for name in removed
        ]
        return opened

    def _open_log(
        self,
        offsets: CheckpointedOffsets,
        inventory: LogInventory | None,
        *,
        clean: bool = False,
        safe_until: int = 0,
        end_at_least: int = 0,
    ) -> OpenedLog:
        return open_log(
            self.fs,
            self.path,
            self.name,
            self.config,
            now_ms=self.now_ms,
            shared=self.shared,
            clean=clean,
            recovery_point=offsets.recovery_point,
            log_start_offset=offsets.log_start_offset,
            cleaned_until=offsets.cleaned_until,
            inventory=inventory,
            safe_until=safe_until,
            end_at_least=end_at_least,
        )

    def _without_checksums(self) -> LogInventory | None:
        return None if self.inventory is None else replace(self.inventory, checksums={})

    @property
    def _epochs(self) -> tuple[EpochEntry, ...]:
        return () if self.inventory is None else self.inventory.epochs

    @property
    def _end(self) -> int:
        return 0 if self.inventory is None else self.inventory.log_end_offset

    def _damage(self, offset: int | None, why: str) -> LogDamage:
        """What is wrong from an offset on; None where only the file is known."""
        if offset is None or offset >= self._end:
            return LogDamage(why, ())
        missing = (MissingRecords(offset, self._end, why),)
        return LogDamage(describe_missing(missing), missing)

    def _offsets(self) -> CheckpointedOffsets:
        known = self.inventory
        if known is None:
            return self.checkpointed
        return CheckpointedOffsets(
            known.recovery_point, known.log_start_offset, known.high_watermark, known.cleaned_until
        )
