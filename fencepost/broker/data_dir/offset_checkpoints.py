"""The offset checkpoints of a log directory: one number for each log, in Kafka's format.

A file is written only when it would say something new. What is in it was read when the broker
began; until it is written again it is older than the values here.
"""

from collections.abc import Callable, Container
from pathlib import PurePath

from fencepost.broker.data_dir.log_opening import CheckpointedOffsets
from fencepost.storage.files.file_log import FileLog
from fencepost.storage.files.file_system import FileSystem
from fencepost.storage.formats import file_names
from fencepost.storage.formats.checkpoints import (
    CorruptCheckpoint,
    decode_offsets,
    encode_offsets,
)

Key = tuple[str, int]
"""Topic and partition."""
Offsets = dict[Key, int]


class OffsetCheckpoints:
    """What the checkpoints are to say when they are next written.

    :ivar high_watermarks: Of ``replication-offset-checkpoint``.
    :ivar recovery_points: Of ``recovery-point-offset-checkpoint``.
    :ivar log_starts: Of ``log-start-offset-checkpoint``.
    :ivar cleaned: Of ``cleaner-offset-checkpoint``.
    :ivar complain: Told what can't be read or written, a line each.
    :param sync: Whether what it writes is to outlive the machine.
    """

    def __init__(
        self,
        fs: FileSystem,
        directory: PurePath,
        *,
        sync: bool,
        complain: Callable[[str], None],
    ) -> None:
        self._fs = fs
        self._directory = directory
        self._sync = sync
        self.report_problem = complain
        self.high_watermarks: Offsets = {}
        self.recovery_points: Offsets = {}
        self.log_starts: Offsets = {}
        self.cleaned: Offsets = {}
        self._written: dict[str, Offsets] = {}
        """What each file says, by its name."""

    def read(self) -> None:
        """Take what the files say for what is so."""
        self.high_watermarks = self._read(file_names.HIGH_WATERMARKS)
        self.recovery_points = self._read(file_names.RECOVERY_POINTS)
        self.log_starts = self._read(file_names.LOG_STARTS)
        self.cleaned = self._read(file_names.CLEANER_OFFSETS)

    def of(self, key: Key) -> CheckpointedOffsets:
        """What they say of a log."""
        return CheckpointedOffsets(
            recovery_point=self.recovery_points.get(key, 0),
            log_start_offset=self.log_starts.get(key, 0),
            high_watermark=self.high_watermarks.get(key, 0),
            cleaned_until=self.cleaned.get(key, 0),
        )

    def record_log_start(self, key: Key, log: FileLog) -> None:
        """Take note of where a log starts, and up to where it has been compacted."""
        self.record_cleaned(key, log)
        self.log_starts.pop(key, None)
        if log.log_start_offset:
            self.log_starts[key] = log.log_start_offset

    def record_cleaned(self, key: Key, log: FileLog) -> None:
        """Take note of up to where a log has been compacted."""
        self.cleaned.pop(key, None)
        if log.config.is_compacted and log.cleaned_until > 0:
            self.cleaned[key] = log.cleaned_until

    def remove(self, key: Key) -> None:
        """Say nothing more of a log."""
        for _, offsets in self._all():
            offsets.pop(key, None)

    def keep_only(self, keys: Container[Key]) -> None:
        """Say nothing more of logs other than these."""
        for _, offsets in self._all():
            for key in [key for key in offsets if key not in keys]:
                del offsets[key]

    def write_all(self) -> None:
        """Write all of them, durably.

        :raises OSError: When one can't be written.
        """
        for name, offsets in self._all():
            self._write(name, offsets, sync=True)

    def write_high_watermarks(self) -> None:
        """Write ``replication-offset-checkpoint``."""
        self._write_quietly(file_names.HIGH_WATERMARKS, self.high_watermarks)

    def write_recovery_points(self) -> None:
        """Write ``recovery-point-offset-checkpoint``."""
        self._write_quietly(file_names.RECOVERY_POINTS, self.recovery_points)

    def write_log_starts(self) -> None:
        """Write ``log-start-offset-checkpoint`` and ``cleaner-offset-checkpoint``."""
        self._write_quietly(file_names.LOG_STARTS, self.log_starts)
        self.write_cleaned()

    def write_cleaned(self) -> None:
        """Write ``cleaner-offset-checkpoint``."""
        self._write_quietly(file_names.CLEANER_OFFSETS, self.cleaned)

    def _all(self) -> tuple[tuple[str, Offsets], ...]:
        return (
            (file_names.HIGH_WATERMARKS, self.high_watermarks),
            (file_names.RECOVERY_POINTS, self.recovery_points),
            (file_names.LOG_STARTS, self.log_starts),
            (file_names.CLEANER_OFFSETS, self.cleaned),
        )

    def _write_quietly(self, name: str, offsets: Offsets) -> None:
        try:
            self._write(name, offsets, sync=self._sync)
        except OSError as error:
            self.report_problem(str(error))

    def _write(self, name: str, offsets: Offsets, *, sync: bool) -> None:
        if self._written.get(name) != offsets:
            self._fs.write_atomic(self._directory / name, encode_offsets(offsets), sync=sync)
            self._written[name] = dict(offsets)

    def _read(self, name: str) -> Offsets:
        self._written.pop(name, None)
        try:
            offsets = decode_offsets(self._fs.read(self._directory / name))
        except FileNotFoundError:
            return {}
        except (OSError, CorruptCheckpoint) as error:
            self.report_problem(f"{self._directory / name}: {error}")
            return {}
        self._written[name] = dict(offsets)
        return offsets
