"""The segments of one log in its directory, in Kafka's order of writing and renaming.

A crash must not leave a hole in the log. So expired segments are removed from the first on, and
truncated ones from the last on, durably, before anything else is truncated. Compaction's segments
are written as ``.cleaned``; when all are complete and durable they are renamed to ``.swap``, from
the last on; then the segments that they replace are removed, and they get their names. A crash
before the first has become ``.swap`` leaves the old segments: see
`fencepost.storage.files.recovery`.
"""

from collections.abc import Iterable, Sequence
from pathlib import PurePath

from fencepost.storage.files.file_segment import FileSegment
from fencepost.storage.files.file_system import File, FileSystem
from fencepost.storage.files.inventory import SegmentEntry
from fencepost.storage.files.key_offset_checkpoint import KeyOffsetCheckpoint
from fencepost.storage.files.process_limits import ProcessLimits
from fencepost.storage.files.recovery import replay_producer_state
from fencepost.storage.files.segment_files import LogDirectory, ProducerSnapshots
from fencepost.storage.formats.file_names import FileKind, FileState
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.producer_state import ProducerStateEntry, ProducerStateManager
from fencepost.storage.log.segments import LogSegment


class FileSegmentStore:
    """A `SegmentStore` in one directory, which is there.

    :ivar home: What its segments have in common.
    :ivar snapshots: Its producer snapshots.
    :ivar keys: The last offsets of its keys.
    """

    __slots__ = ("_cleaning", "_live", "_names_changed", "home", "keys", "snapshots")

    def __init__(
        self, files: FileSystem, directory: PurePath, config: LogConfig, shared: ProcessLimits
    ) -> None:
        self.home = LogDirectory(
            files=files,
            directory=directory,
            shared=shared,
            config=config,
            rebuilt=[],
            producers_at=self.producers_at,
        )
        self.snapshots = ProducerSnapshots(files, directory, self.home.checksums)
        self.keys = KeyOffsetCheckpoint(files, directory, self.home.checksums)
        self._live: dict[int, FileSegment] = {}
        self._cleaning: dict[int, FileSegment] = {}
        self._names_changed = False

    def open_existing(
        self, base_offset: int, *, now_ms: int, head: int | None = None
    ) -> FileSegment:
        """The segment whose files are there.

        :param head: See `SegmentFiles.head`.
        """
        path = self.home.path(base_offset, FileKind.LOG)
        segment = FileSegment(
            self.home,
            base_offset,
            created_ms=now_ms,
            last_modified_ms=self.home.files.modified_ms(path),
            size=self.home.files.size(path),
            head=head,
        )
        self._live[base_offset] = segment
        return segment

    def create(
        self,
        base_offset: int,
        *,
        now_ms: int,
        producers: tuple[ProducerStateEntry, ...] | None = None,
    ) -> FileSegment:
        """A new, empty segment; the one before it is finished."""
        if self._live:
            self._live[max(self._live)].finish()
        if producers is not None:
            self.snapshots.write(base_offset, producers)
        segment = FileSegment(
            self.home,
            base_offset,
            created_ms=now_ms,
            last_modified_ms=now_ms,
            producers=producers or (),
        )
        self._live[base_offset] = segment
        self._names_changed = True
        self.home.on_new_segment()
        return segment

    def refusal(self, size: int, *, is_client: bool) -> str | None:  # noqa: ARG002  # as in memory
        """Nothing is refused: a disk that is full fails."""
        return None

    def create_cleaned(self, first: LogSegment) -> FileSegment:
        """A new, empty segment that compaction fills; it begins where `first` does."""
        segment = self._cleaning[first.base_offset] = FileSegment(
            self.home,
            first.base_offset,
            created_ms=first.created_ms,
            last_modified_ms=first.last_modified_ms,
            state=FileState.CLEANED,
        )
        return segment

    def swap(self, cleaned: Sequence[LogSegment], replaced: Sequence[LogSegment]) -> None:
        """Let cleaned segments take the place of others: all of them or, after a crash, none."""
        fresh = [segment for segment in cleaned if isinstance(segment, FileSegment)]
        for segment in fresh:
            segment.finish()
            segment.sync()
        self._drop_cleaned_but(fresh)
        self.home.before_loss([segment.base_offset for segment in replaced])
        for segment in reversed(fresh):
            segment.rename(FileState.SWAP)
        self._sync_names()
        bases = {segment.base_offset for segment in fresh}
        self._remove(self._held(replaced), keeping_snapshots=bases)
        self._sync_names()
        for segment in fresh:
            segment.rename(FileState.LIVE)
            self._live[segment.base_offset] = segment
        self._sync_names()

    def _drop_cleaned_but(self, fresh: Sequence[FileSegment]) -> None:
        """Remove the cleaned segments that nothing is in.

        One that was left would be taken for a sign that the next swap had not begun.
        """
        for segment in self._cleaning.values():
            if segment not in fresh:
                segment.remove(with_snapshot=False)
        self._cleaning.clear()

    def discard(self, segments: Sequence[LogSegment]) -> None:
        """Lose segments that the log has let go of."""
        gone = self._held(segments)
        if not gone:
            return
        self.home.before_loss([segment.base_offset for segment in gone])
        if gone[-1] is self._live[max(self._live)]:
            self._remove(reversed(gone))
            self._sync_names()  # what is cut must not be there again, behind what comes now
        else:
            self._remove(gone)
            self._names_changed = True

    def sync(self, segments: Sequence[LogSegment], recovery_point: int) -> None:
        """Make everything durable.

        :param segments: All of the log's, oldest first.
        :param recovery_point: Of which everything before this offset is, but for the indexes of
            a segment that was closed since.
        """
        for segment in reversed(segments):
            own = self._live[segment.base_offset]
            if own.is_synced and own.base_offset <= recovery_point:
                break
            own.sync()
        if self._names_changed:
            self._sync_names()

    def open_unsynced(self, segments: Sequence[LogSegment], *others: str) -> list[File]:
        """Files that are not durable yet: of these segments, and others of the directory."""
        files, directory = self.home.files, self.home.directory
        paths = [directory / name for name in others]
        for segment in self._held(segments):
            if not segment.is_synced:
                paths += segment.files.paths
        return [files.open(path) for path in paths if files.exists(path)]

    def mark_synced(self, segments: Sequence[LogSegment]) -> None:
        """Take it that these segments are durable, as far as they are there still."""
        for segment in segments:
            if self._live.get(segment.base_offset) is segment:
                self._live[segment.base_offset].mark_synced()

    def mark_names_unsynced(self) -> None:
        """Take it that the names of the files are not durable."""
        self._names_changed = True

    def finish(self) -> None:
        """Write what is in memory only."""
        for segment in self._live.values():
            segment.finish()

    def release(self) -> None:
        """Let go of open files and of what is in memory."""
        for segment in self._live.values():
            segment.free_some()

    def entries(self) -> tuple[SegmentEntry, ...]:
        """The segments for the log's inventory, oldest first."""
        return tuple(
            SegmentEntry(base, segment.size, segment.files.head if segment.size else None)
            for base, segment in sorted(self._live.items())
        )

    def producers_at(self, base_offset: int) -> tuple[ProducerStateEntry, ...]:
        """The producers before a segment's first record, from its snapshot or from the batches."""
        found = self.snapshots.read(base_offset)
        if found is not None:
            return found
        earlier = [base for base in self._live if base < base_offset]
        if not earlier:
            return ()
        before = max(earlier)
        states = ProducerStateManager()
        states.restore(self.producers_at(before))
        replay_producer_state([self._live[before]], states)
        views = states.snapshot()
        self.snapshots.write(base_offset, views)
        self.home.rebuilt.append(self.snapshots.path(base_offset).name)
        return views

    def _held(self, segments: Sequence[LogSegment]) -> list[FileSegment]:
        return [self._live[segment.base_offset] for segment in segments]

    def _remove(
        self, segments: Iterable[FileSegment], *, keeping_snapshots: Iterable[int] = ()
    ) -> None:
        for segment in segments:
            del self._live[segment.base_offset]
            segment.remove(with_snapshot=segment.base_offset not in keeping_snapshots)

    def _sync_names(self) -> None:
        self.home.files.sync_dir(self.home.directory)
        self._names_changed = False
