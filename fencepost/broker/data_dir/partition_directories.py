"""The partitions' directories in a broker's log directory: their names, and their topics' ids.

    <topic>-<partition>/                 a log, and partition.metadata with the id of its topic
    <topic>-<partition>.<unique>-delete/ a log that is deleted, until its files are removed
    <topic>-<partition>.<unique>-stray/  a log of no topic that is known, as at a real broker
    <topic>-<partition>.<unique>-future/ a copy of a log that is in another directory of the broker

Directories with other names are left alone.
"""

from collections.abc import Callable, Iterator
from pathlib import PurePath
from uuid import UUID

from fencepost.broker.data_dir.kafka_metadata import METADATA_LOG
from fencepost.broker.data_dir.offset_checkpoints import Key
from fencepost.broker.replication.replica_storage import free_in_steps
from fencepost.storage.files.file_log import FileLog
from fencepost.storage.files.file_system import FileSystem
from fencepost.storage.formats import file_names
from fencepost.storage.formats.checkpoints import (
    CorruptCheckpoint,
    decode_epochs,
    decode_partition_metadata,
    encode_partition_metadata,
)


class PartitionDirectories:
    """The directories of one broker's logs.

    Every method raises `OSError` when the file system fails. What is returned to be iterated over
    removes files, some with each step; a file that can't be removed is reported, and stays.

    :param sync: Whether what it writes is to outlive the machine.
    :param unique: Makes the names under which logs that are lost wait for their removal.
    :ivar paths: Of every log, open or not.
    :ivar futures: Of every copy that is to take a log's place.
    :ivar report_problem: Told what can't be removed, a line each.
    """

    def __init__(
        self, fs: FileSystem, directory: PurePath, *, sync: bool, unique: Callable[[], UUID]
    ) -> None:
        self.paths: dict[Key, PurePath] = {}
        self.futures: dict[Key, PurePath] = {}
        self.report_problem: Callable[[str], None] = _ignore_problem
        self._fs = fs
        self._directory = directory
        self._sync = sync
        self._unique = unique

    def find(self) -> list[Iterator[None]]:
        """Find the logs that there are; returns the removal of those that are deleted."""
        self.paths.clear()
        self.futures.clear()
        deleted = []
        for name in self._fs.names(self._directory):
            found = file_names.parse_directory_name(name)
            path = self._directory / name
            if found is None or found.topic == METADATA_LOG or not self._fs.is_dir(path):
                continue
            if found.state is file_names.DirectoryState.LIVE:
                self.paths[found.topic, found.partition] = path
            elif found.state is file_names.DirectoryState.FUTURE:
                self.futures[found.topic, found.partition] = path
            elif found.state is file_names.DirectoryState.DELETED:
                deleted.append(self._removal(path))
        return deleted

    def path(self, key: Key) -> PurePath:
        """Where a log is, or is to be."""
        return self.paths.get(key) or self._directory / file_names.directory_name(*key)

    def make(self, key: Key, topic_id: UUID) -> None:
        """Make the directory of a new log."""
        path = self.path(key)
        self._fs.make_dirs(path)
        self._write_topic_id(path, topic_id)
        if self._sync:
            self._fs.sync_dir(self._directory)
        self.paths[key] = path

    def make_future(self, key: Key, topic_id: UUID) -> PurePath:
        """Make the directory of a copy, and remove an earlier one."""
        self.delete_future(key)
        path = self._directory / file_names.future_directory_name(*key, self._unique())
        self._fs.make_dirs(path)
        self._write_topic_id(path, topic_id)
        if self._sync:
            self._fs.sync_dir(self._directory)
        self.futures[key] = path
        return path

    def delete_future(self, key: Key) -> None:
        """Remove a copy; there may be none."""
        path = self.futures.pop(key, None)
        if path is not None:
            self._fs.remove_tree(path)

    def adopt_future(self, key: Key) -> None:
        """Let a copy have the log's name."""
        path = self._directory / file_names.directory_name(*key)
        self._fs.rename(self.futures[key], path)
        if self._sync:
            self._fs.sync_dir(self._directory)
        del self.futures[key]
        self.paths[key] = path

    def topic_id(self, key: Key) -> UUID | None:
        """The id of the topic that a log says it is of; None where it does not say."""
        path = self.paths[key] / file_names.PARTITION_METADATA
        try:
            return decode_partition_metadata(self._fs.read(path))
        except (FileNotFoundError, CorruptCheckpoint):
            return None

    def topic_ids(self) -> dict[Key, UUID | None]:
        """Every log that is here, with the id of its topic, None where it does not say."""
        return {key: self.topic_id(key) for key in self.paths}

    def write_topic_id(self, key: Key, topic_id: UUID) -> None:
        """Say which topic's a log is."""
        self._write_topic_id(self.paths[key], topic_id)

    def _write_topic_id(self, path: PurePath, topic_id: UUID) -> None:
        data = encode_partition_metadata(topic_id)
        self._fs.write_atomic(path / file_names.PARTITION_METADATA, data, sync=self._sync)

    def newest_epochs(self) -> dict[Key, int]:
        """The newest leader epoch that each log knows of; those that know of none are left out."""
        newest = {}
        for key, path in self.paths.items():
            try:
                entries = decode_epochs(self._fs.read(path / file_names.LEADER_EPOCHS))
            except (OSError, CorruptCheckpoint):
                continue
            if entries:
                newest[key] = entries[-1].epoch
        return newest

    def delete(self, key: Key, log: FileLog | None) -> Iterator[None]:
        """Take a log's directory out of the way, so that a new log may have the name.

        :param log: The log, where it is open.
        :returns: Its removal.
        :raises StorageFailure: When the directory of an open one stays where it is.
        """
        path, aside = self.paths.pop(key), self._name_when_deleted(key)
        if log is not None:
            log.delete(aside)
            return free_in_steps([log])
        self._fs.rename(path, path.with_name(aside))
        return self._removal(path.with_name(aside))

    def _removal(self, path: PurePath) -> Iterator[None]:
        try:
            self._fs.remove_tree(path)
        except OSError as error:
            self.report_problem(str(error))
        yield

    def _name_when_deleted(self, key: Key) -> str:
        return file_names.deleted_directory_name(*key, self._unique())

    def rename_stray(self, key: Key) -> None:
        """Give a log that belongs to no topic another name."""
        path = self.paths.pop(key)
        name = self._name_when_deleted(key).removesuffix("delete") + "stray"
        self._fs.rename(path, path.with_name(name))


def _ignore_problem(_why: str) -> None:
    """The default: no listener."""
