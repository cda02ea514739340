"""A cluster's data directory: every broker's log directory, and what the controller knows.

    DIR/.lock           held while a process uses it
    DIR/registry.log    the controller's metadata (`fencepost.broker.data_dir.metadata_log`)
    DIR/broker-N.inventory
                        what there is of its logs (`fencepost.broker.data_dir.log_inventory`)
    DIR/broker-N/       broker N's log directory (`fencepost.broker.data_dir.log_dir`)
    DIR/broker-N.dK/, DIR/broker-N.dK.inventory
                        with ``--log-dirs``: its further directories, from K=1 on

DIR may also be the log directory of a real Kafka. Then it is that of the broker which has the id
that ``meta.properties`` says; the topics are those whose directories are there, and the cluster is
the one that it was of.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from typing import Final
from uuid import UUID

from msgspec import Struct

from fencepost.broker.configs.topic_configs import validate_topic_configs
from fencepost.broker.controller import MAX_BROKER_ID, MAX_BROKERS
from fencepost.broker.core.errors import DataDirUnusable
from fencepost.broker.data_dir import metadata_log
from fencepost.broker.data_dir.kafka_metadata import topic_configs
from fencepost.broker.data_dir.log_checkpoints import LogInventories
from fencepost.broker.data_dir.log_dir import LogDir
from fencepost.broker.data_dir.log_dirs import LogDirs
from fencepost.broker.data_dir.log_inventory import ClusterPosition, InventoryFile
from fencepost.broker.data_dir.metadata_log import (
    FIRST_WITH_INVENTORY,
    ControllerState,
    CorruptMetadataLog,
    MetadataLog,
)
from fencepost.broker.metadata.image import PartitionImage, TopicImage
from fencepost.protocol.byte_utils import format_uuid
from fencepost.storage.files.file_system import FileSystem, Lock
from fencepost.storage.files.process_limits import ProcessLimits
from fencepost.storage.formats import file_names
from fencepost.storage.formats.checkpoints import decode_properties, encode_properties

METADATA_LOG_FILE: Final = "registry.log"
_BROKER_DIR: Final = "broker-"
_PROPERTIES_VERSIONS: Final = ("0", "1")
"""Of ``meta.properties``."""


class RecoveryReport(Struct, frozen=True, kw_only=True):
    """What a data directory held when it was opened."""

    adopted: bool
    """Whether a real Kafka wrote it, and fencepost has not used it since."""
    clean: bool
    """Whether every broker had ended in order."""
    torn_bytes: int
    """What was cut from the end of the registry."""
    strays: tuple[str, ...]
    """Logs that belong to no topic, and were put aside."""
    missing: tuple[str, ...]
    """Partitions that a real Kafka's directory does not have: they begin empty."""
    dropped_configs: tuple[str, ...]
    """Configs of its topics that have no effect here, as ``topic: name=text``."""


class DataDir:
    """A data directory that this process has for itself.

    :ivar known: What the controller knew; None where the directory is new.
    """

    def __init__(
        self,
        fs: FileSystem,
        path: PurePath,
        *,
        sync: bool,
        lock: Lock,
        accepts_loss: bool = False,
    ) -> None:
        """What it is given.

        :param lock: Of it, which is given back when it is closed.
        :param accepts_loss: Whether partitions are served that have lost records.
        """
        self.position = ClusterPosition(starts=1, accepts_loss=accepts_loss)
        self.path = path
        self.sync = sync
        self.controller_state: ControllerState | None = None
        self.metadata_log: MetadataLog | None = None
        self.torn_bytes = 0
        self.kafka_broker_id: int | None = None
        """The id of the broker whose log directory it is itself."""
        self._fs = fs
        self._lock = lock
        self._cluster_id = ""

    @property
    def is_adopted(self) -> bool:
        """Whether a real Kafka wrote it, and fencepost has not used it since."""
        return self.controller_state is None and self.kafka_broker_id is not None

    @property
    def cluster_id(self) -> str:
        """Of the cluster that it is of; empty where it is of none yet."""
        return (
            self.controller_state.cluster_id
            if self.controller_state is not None
            else self._cluster_id
        )

    def log_dirs(
        self,
        broker_id: int,
        count: int,
        *,
        now_ms: Callable[[], int],
        unique: Callable[[], UUID],
        soon: Callable[[Callable[[], None]], None],
        shared: ProcessLimits,
    ) -> LogDirs:
        """A broker's log directories, made if they are missing.

        :param count: How many it is to have.
        :raises DataDirUnusable: When one can't be made, is another broker's, or has logs and is not
            to be one of them.
        """
        self._check_further_dirs(broker_id, count)
        return LogDirs(
            [
                self._log_dir(
                    broker_id, number, now_ms=now_ms, unique=unique, soon=soon, shared=shared
                )
                for number in range(count)
            ]
        )

    def _check_further_dirs(self, broker_id: int, count: int) -> None:
        """No directory may have logs behind the last one."""
        begin = f"{_BROKER_DIR}{broker_id}.d"
        for name in self._fs.names(self.path):
            number = name.removeprefix(begin)
            if not name.startswith(begin) or not number.isdecimal() or int(number) < count:
                continue
            found = map(file_names.parse_directory_name, self._fs.names(self.path / name))
            if any(each is not None for each in found):
                raise DataDirUnusable(
                    f"{self.path / name} has logs, and broker {broker_id} is to have {count} log "
                    f"director{'y' if count == 1 else 'ies'}: start with --log-dirs "
                    f"{int(number) + 1} or more"
                )

    def _log_dir(
        self,
        broker_id: int,
        number: int,
        *,
        now_ms: Callable[[], int],
        unique: Callable[[], UUID],
        soon: Callable[[Callable[[], None]], None],
        shared: ProcessLimits,
    ) -> LogDir:
        path, name = self._log_dir_path(broker_id), f"{_BROKER_DIR}{broker_id}"
        if number:
            name = f"{name}.d{number}"
            path = self.path / name
        try:
            _make_directory(self._fs, path, sync=self.sync)
            self._check_meta_properties(path, broker_id, unique)
        except OSError as error:
            raise DataDirUnusable(_reason(path, error)) from error
        file = InventoryFile(
            self._fs,
            self.path / f"{name}.inventory",
            broker_id=broker_id,
            cluster_id=lambda: self.cluster_id,
            position=self.position,
            sync=self.sync,
        )
        return LogDir(
            self._fs,
            path,
            sync=self.sync,
            now_ms=now_ms,
            unique=unique,
            soon=soon,
            shared=shared,
            broker_id=broker_id,
            inventory=LogInventories(file, self.position),
        )

    def kafka_topic_configs(self) -> tuple[dict[str, dict[str, str]], tuple[str, ...]]:
        """The configs of topics in a real Kafka's directory: those known here, and the others.

        :raises DataDirUnusable: When they can't be read.
        """
        known: dict[str, dict[str, str]] = {}
        dropped = []
        try:
            found = topic_configs(self._fs, self.path)
        except OSError as error:
            raise DataDirUnusable(_reason(self.path, error)) from error
        for topic, configs in found.items():
            for name, text in configs.items():
                if validate_topic_configs({name: text}, on_disk=True) is None:
                    known.setdefault(topic, {})[name] = text
                else:
                    dropped.append(f"{topic}: {name}={text}")
        return known, tuple(dropped)

    def create_metadata_log(self, known: ControllerState) -> MetadataLog:
        """Write a new metadata log, and keep it open for the changes.

        :raises DataDirUnusable: When that fails.
        """
        try:
            path = self.path / METADATA_LOG_FILE
            self.metadata_log = metadata_log.rewrite(self._fs, path, known, sync=self.sync)
        except OSError as error:
            raise DataDirUnusable(_reason(self.path, error)) from error
        self.position.has_inventories = True
        return self.metadata_log

    def close(self) -> None:
        """Let others have it."""
        if self.metadata_log is not None:
            self.metadata_log.close()
        self._lock.release()

    def _log_dir_path(self, broker_id: int) -> PurePath:
        return (
            self.path
            if broker_id == self.kafka_broker_id
            else self.path / f"{_BROKER_DIR}{broker_id}"
        )

    def _check_meta_properties(
        self, path: PurePath, broker_id: int, unique: Callable[[], UUID]
    ) -> None:
        """Write ``meta.properties``, or see that it is this broker's of this cluster."""
        file = path / file_names.META_PROPERTIES
        wanted = {"node.id": str(broker_id), "cluster.id": self.cluster_id}
        if not self._fs.exists(file):
            directory_id = format_uuid(unique())
            properties = {**wanted, "directory.id": directory_id, "version": "1"}
            self._fs.write_atomic(file, encode_properties(properties), sync=self.sync)
            return
        found = decode_properties(self._fs.read(file))
        if not found:  # emptied; what it says is known from elsewhere
            self._fs.remove(file)
            self._check_meta_properties(path, broker_id, unique)
            return
        _check_version(file, found)
        found.setdefault("node.id", found.get("broker.id", "nothing"))
        found.setdefault("cluster.id", "nothing")
        for name, text in wanted.items():
            if found[name] != text:
                raise DataDirUnusable(
                    f"{file} says {name}={ascii(found[name])[1:-1]}, and it is to be {text}"
                )

    def set_cluster_id(self, cluster_id: str) -> None:
        """A new directory is of this cluster."""
        self._cluster_id = cluster_id

    def load(self, broker_ids: Collection[int]) -> None:
        """Read the directory.

        :param broker_ids: The brokers that are to have their logs in it.
        :raises DataDirUnusable: When they can't.
        """
        try:
            self._load()
        except CorruptMetadataLog as error:
            raise DataDirUnusable(str(error)) from error
        except OSError as error:
            raise DataDirUnusable(_reason(self.path, error)) from error
        had = sorted(self._broker_ids())
        if not set(had) <= set(broker_ids):
            raise DataDirUnusable(
                f"{self.path} holds the logs of broker{'s'[: len(had) > 1]} {_listed(had)}, and "
                f"the brokers are to be {_listed(broker_ids)}: start with {_option_for(had)}"
            )

    def _broker_ids(self) -> set[int]:
        """The brokers that have logs in it, or are to have some."""
        ids = set() if self.kafka_broker_id is None else {self.kafka_broker_id}
        if self.controller_state is not None:
            ids |= set(self.controller_state.brokers)
            for topic in self.controller_state.topics.values():
                ids.update(*(partition.replicas for partition in topic.partitions))
        return ids

    def _load(self) -> None:
        fs, path = self._fs, self.path
        properties_file = path / file_names.META_PROPERTIES
        if fs.exists(properties_file):
            properties = decode_properties(fs.read(properties_file))
            _check_version(properties_file, properties)
            self.kafka_broker_id = _node_id(properties_file, properties)
            self._cluster_id = properties.get("cluster.id", "")
        loaded = metadata_log.load(fs, path / METADATA_LOG_FILE)
        if loaded is not None:
            self.controller_state, self.torn_bytes = loaded
            starts = self.controller_state.starts
            self.position.starts, self.position.restored_starts = starts + 1, starts
            self.position.version = self.controller_state.version
            self.position.has_inventories = self.controller_state.layout >= FIRST_WITH_INVENTORY
        elif self.kafka_broker_id is None:
            logs = [name for name in fs.names(path) if name.startswith(_BROKER_DIR)]
            if logs:
                raise DataDirUnusable(
                    f"{path} has {logs[0]}, and no {METADATA_LOG_FILE} that says what is in it"
                )


def open_data_dir(
    fs: FileSystem,
    path: PurePath,
    *,
    broker_ids: Collection[int],
    sync: bool,
    accepts_loss: bool = False,
) -> DataDir:
    """Take a data directory for this process, made if it is missing.

    :param broker_ids: The brokers that are to have their logs in it.
    :param sync: Whether what is written to it is to outlive the machine.
    :param accepts_loss: Whether partitions are served that have lost records.
    :raises DataDirUnusable: When it is no directory, can't be written, is in use, or was made by a
        newer fencepost or for other brokers.
    """
    if fs.exists(path) and not fs.is_dir(path):
        raise DataDirUnusable(f"{path} is not a directory")
    try:
        _make_directory(fs, path, sync=sync)
        lock = fs.lock(path / file_names.LOCK)
    except BlockingIOError as error:
        raise DataDirUnusable(f"{path} is in use by another process that runs") from error
    except OSError as error:
        raise DataDirUnusable(_reason(path, error)) from error
    data_dir = DataDir(fs, path, sync=sync, lock=lock, accepts_loss=accepts_loss)
    try:
        data_dir.load(broker_ids)
    except DataDirUnusable:
        lock.release()
        raise
    return data_dir


def adopt_kafka_log_dir(
    log_dir: LogDir, broker_id: int, cluster_id: str, unique: Callable[[], UUID]
) -> tuple[ControllerState, tuple[str, ...]]:
    """The state of a cluster that is adopted from the log directory of one real Kafka broker.

    Its broker has all replicas. A topic has as many partitions as the highest that is there says.

    :returns: That, and the names of the partitions that are missing.
    """
    epochs = log_dir.directories.newest_epochs()
    indexes: dict[str, set[int]] = {}
    ids: dict[str, UUID] = {}
    for (topic, index), topic_id in log_dir.directories.topic_ids().items():
        indexes.setdefault(topic, set()).add(index)
        if topic_id is not None:
            ids.setdefault(topic, topic_id)
    known = ControllerState(cluster_id=cluster_id)
    missing = []
    for topic, there in indexes.items():
        topic_id = ids.get(topic) or unique()
        for index in there:
            log_dir.directories.write_topic_id((topic, index), topic_id)
        count = max(there) + 1
        missing += [f"{topic}-{index}" for index in range(count) if index not in there]
        known.topics[topic] = TopicImage(
            name=topic,
            topic_id=topic_id,
            partitions=tuple(
                _single_replica_partition(broker_id, epochs.get((topic, index), 0))
                for index in range(count)
            ),
        )
    return known, tuple(missing)


def _single_replica_partition(broker_id: int, leader_epoch: int) -> PartitionImage:
    alone = (broker_id,)
    return PartitionImage(replicas=alone, isr=alone, leader=broker_id, leader_epoch=leader_epoch)


def _check_version(file: PurePath, properties: dict[str, str]) -> None:
    version = properties.get("version", "1")
    if version not in _PROPERTIES_VERSIONS:
        raise DataDirUnusable(
            f"{file} says version={ascii(version)[1:-1]}, and it is to be "
            f"{' or '.join(_PROPERTIES_VERSIONS)}"
        )


def _node_id(file: PurePath, properties: dict[str, str]) -> int:
    text = properties.get("node.id", properties.get("broker.id", ""))
    if not (text.isascii() and text.isdecimal() and int(text) <= MAX_BROKER_ID):
        raise DataDirUnusable(
            f"{file} says node.id={ascii(text)[1:-1] or 'nothing'}, "
            f"and the ids of brokers are 0 to {MAX_BROKER_ID}"
        )
    return int(text)


def _listed(broker_ids: Collection[int]) -> str:
    """Such as ``1 to 3``, or ``0, 2``."""
    ids = sorted(broker_ids)
    if len(ids) > 2 and ids == list(range(ids[0], ids[-1] + 1)):
        return f"{ids[0]} to {ids[-1]}"
    return ", ".join(map(str, ids))


def _option_for(broker_ids: Sequence[int]) -> str:
    """The options of ``serve`` with which there are these brokers."""
    if broker_ids[0] > 0 and broker_ids[-1] <= MAX_BROKERS:
        return f"--brokers {broker_ids[-1]} or more"
    return f"--broker-ids {','.join(map(str, broker_ids))}"


def _make_directory(fs: FileSystem, path: PurePath, *, sync: bool) -> None:
    """Make a directory where there is none, and its name durable."""
    if not fs.exists(path):
        fs.make_dirs(path)
        if sync:
            fs.sync_dir(path.parent)


@contextmanager
def data_dir_errors(path: PurePath) -> Iterator[None]:
    """Let an `OSError` be a `DataDirUnusable`.

    :param path: What can't be used, where the error does not say.
    """
    try:
        yield
    except OSError as error:
        raise DataDirUnusable(_reason(path, error)) from error


def _reason(path: PurePath, error: OSError) -> str:
    return f"{error.filename or path} can't be used: {error.strerror or error}"
