"""The controller's metadata in a file that is appended to, and the records that it consists of.

A record is a JSON array that begins with its kind. Replayed in their order they rebuild the
metadata: `ControllerState.apply` is the only way in which it changes.

    ["cluster", layout, cluster id, starts]         what the directory is
    ["brokers", {id: epoch of its registration}]
    ["version", number of the image]
    ["features", {name: level}]
    ["producer_ids", the next one]
    ["broker_configs", id or null, {name: text}]    all that are dynamic
    ["group_configs", group id, {name: text}]
    ["client_metrics_configs", subscription, {name: text}]
    ["topic", name, id, {name: text}, [partition]]  a topic, and all there is to it
    ["partition", topic's name, index, partition]
    ["configs", topic's name, {name: text}]
    ["deleted", name, id]

A partition is an array in the order of `PartitionImage`'s fields; empty ones at its end are left
out. Nothing of what only holds while the process runs is kept: who is fenced, and whose log failed.

Each line of the file is a CRC-32 (eight hexadecimal digits), a space, and a JSON array: the records
of one image, so that what changed together is there together or not at all. At a start the file is
rewritten as short as can be; from then on only changes are appended. A process that ends in the
midst of a line leaves a torn one at the end, which is cut: it was never acted upon. A bad line
before a good one is damage, and nothing to guess about.
"""

import json
from binascii import crc32
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final, TypeAlias, TypeVar
from uuid import UUID

from msgspec import Struct, field

from fencepost.broker.data_dir.metadata_checks import InvalidRecord, check_record
from fencepost.broker.metadata.image import ClusterImage, PartitionImage, TopicImage
from fencepost.storage.files.file_system import File, FileSystem

LAYOUT: Final = 2
"""Of the data directory; rises when an older fencepost could not read it, or would spoil it."""
FIRST_WITH_INVENTORY: Final = 2
"""From this layout on a broker's directory has an inventory of its logs."""
Record: TypeAlias = list[Any]
"""As JSON has it; what is in it depends on its kind."""
Named = TypeVar("Named", int | None, str)
"""What names a resource that has configs."""


class UnknownRecord(ValueError):
    """A record of a kind, or a form, that is not known here."""


class ControllerState(Struct, kw_only=True):
    """What the controller knew."""

    cluster_id: str
    layout: int = LAYOUT
    starts: int = 0
    """How often a process began with it."""
    brokers: dict[int, int] = field(default_factory=dict)
    """The epoch of each broker's last registration."""
    version: int = 0
    """Of the newest image: the next one's is higher, and clients tell features apart by it."""
    features: dict[str, int] = field(default_factory=dict)
    next_producer_id: int = 0
    broker_configs: dict[int | None, dict[str, str]] = field(default_factory=dict)
    group_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    client_metrics_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    topics: dict[str, TopicImage] = field(default_factory=dict)
    topic_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    deleted: set[UUID] = field(default_factory=set)
    """The ids of topics that were deleted since the file was compacted."""

    @classmethod
    def from_image(
        cls, image: ClusterImage, starts: int, next_producer_id: int
    ) -> "ControllerState":
        """What a controller knows that has this image."""
        return cls(
            cluster_id=image.cluster_id,
            starts=starts,
            version=image.version,
            brokers={b: broker.epoch for b, broker in image.registrations.items()},
            features=dict(image.features),
            next_producer_id=next_producer_id,
            broker_configs={b: dict(configs) for b, configs in image.broker_configs.items()},
            group_configs={name: dict(c) for name, c in image.group_configs.items()},
            client_metrics_configs={
                name: dict(c) for name, c in image.client_metrics_configs.items()
            },
            topics=dict(image.topics),
            topic_configs={name: dict(configs) for name, configs in image.topic_configs.items()},
        )

    def apply(self, record: Record) -> None:
        """Take one record in.

        :raises UnknownRecord: When it can't be.
        """
        try:
            check_record(record, self.topics)
            self._apply(record)
        except InvalidRecord as error:
            raise UnknownRecord(str(error)) from error
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise UnknownRecord(f"{record!r}"[:200]) from error

    def _apply(self, record: Record) -> None:
        match record:
            case ["version", version]:
                self.version = int(version)
            case ["partition", name, index, partition]:
                topic = self.topics[name]
                partitions = list(topic.partitions)
                partitions[index] = _partition(partition)
                self._put_topic(name, topic.topic_id, partitions)
            case ["topic", name, topic_id, configs, partitions]:
                self._put_topic(name, UUID(topic_id), [_partition(each) for each in partitions])
                self.topic_configs[name] = configs
            case ["configs", name, configs]:
                self.topic_configs[name] = configs
            case ["deleted", name, topic_id]:
                del self.topics[name]
                self.topic_configs.pop(name, None)
                self.deleted.add(UUID(topic_id))
            case _:
                self._apply_of_cluster(record)

    def _apply_of_cluster(self, record: Record) -> None:
        match record:
            case ["cluster", layout, cluster_id, starts]:
                self.layout, self.cluster_id, self.starts = int(layout), str(cluster_id), starts
            case ["brokers", brokers]:
                self.brokers = {int(broker_id): epoch for broker_id, epoch in brokers.items()}
            case ["features", features]:
                self.features = features
            case ["producer_ids", next_producer_id]:
                self.next_producer_id = int(next_producer_id)
            case ["broker_configs", broker_id, configs]:
                self.broker_configs[broker_id] = configs
            case ["group_configs", group, configs]:
                self.group_configs[group] = configs
            case ["client_metrics_configs", subscription, configs]:
                self.client_metrics_configs[subscription] = configs
            case _:
                raise UnknownRecord

    def _put_topic(self, name: str, topic_id: UUID, partitions: list[PartitionImage]) -> None:
        self.topics[name] = TopicImage(name=name, topic_id=topic_id, partitions=tuple(partitions))

    def records(self) -> Iterator[Record]:
        """All of it, as few records as can be; who was deleted is not told any more."""
        yield ["cluster", self.layout, self.cluster_id, self.starts]
        yield ["brokers", {str(broker_id): epoch for broker_id, epoch in self.brokers.items()}]
        yield ["version", self.version]
        yield ["features", self.features]
        yield ["producer_ids", self.next_producer_id]
        for broker_id, configs in self.broker_configs.items():
            yield ["broker_configs", broker_id, dict(configs)]
        for group, configs in self.group_configs.items():
            if configs:
                yield ["group_configs", group, dict(configs)]
        for subscription, configs in self.client_metrics_configs.items():
            if configs:
                yield ["client_metrics_configs", subscription, dict(configs)]
        for topic in self.topics.values():
            yield _topic_record(topic, self.topic_configs.get(topic.name, {}))


def changed_records(
    before: ClusterImage, after: ClusterImage, changed: frozenset[str]
) -> Iterator[Record]:
    """The records of ``after``: its version, and what is different in it.

    :param changed: Names of topics that are new, gone or different; no others are looked at.
    """
    yield ["version", after.version]
    if after.brokers is not before.brokers:
        epochs = {str(b): broker.epoch for b, broker in after.registrations.items()}
        if epochs != {str(b): broker.epoch for b, broker in before.registrations.items()}:
            yield ["brokers", epochs]
    if after.features != before.features:
        yield ["features", dict(after.features)]
    yield from _config_changes("broker_configs", before.broker_configs, after.broker_configs)
    yield from _config_changes("group_configs", before.group_configs, after.group_configs)
    yield from _config_changes(
        "client_metrics_configs", before.client_metrics_configs, after.client_metrics_configs
    )
    for name in sorted(changed):
        yield from _topic_changes(
            before.topics.get(name),
            after.topics.get(name),
            before.configs_of(name),
            after.configs_of(name),
        )


def _config_changes(
    kind: str,
    before: Mapping[Named, Mapping[str, str]],
    after: Mapping[Named, Mapping[str, str]],
) -> Iterator[Record]:
    """A record of ``kind`` for each resource with other configs than before."""
    if after is not before:
        for name in {**before, **after}:
            configs = after.get(name, {})
            if configs != before.get(name, {}):
                yield [kind, name, dict(configs)]


def _topic_changes(
    old: TopicImage | None,
    new: TopicImage | None,
    old_configs: Mapping[str, str],
    new_configs: Mapping[str, str],
) -> Iterator[Record]:
    if old is not None and (new is None or new.topic_id != old.topic_id):
        yield ["deleted", old.name, old.topic_id.hex]
        old = None
    if new is None:
        return
    if old is None or len(old.partitions) != len(new.partitions):
        yield _topic_record(new, new_configs)
        return
    for index, (was, now) in enumerate(zip(old.partitions, new.partitions, strict=True)):
        if was is not now:
            yield ["partition", new.name, index, _partition_fields(now)]
    if new_configs != old_configs:
        yield ["configs", new.name, dict(new_configs)]


def _topic_record(topic: TopicImage, configs: Mapping[str, str]) -> Record:
    partitions = [_partition_fields(each) for each in topic.partitions]
    return ["topic", topic.name, topic.topic_id.hex, dict(configs), partitions]


def _partition_fields(partition: PartitionImage) -> list[Any]:
    fields: list[Any] = [
        partition.replicas,
        partition.isr,
        partition.leader,
        partition.leader_epoch,
        partition.partition_epoch,
        partition.elr,
        partition.last_known_elr,
        partition.adding,
        partition.removing,
    ]
    while not fields[-1] and len(fields) > _ALWAYS:
        fields.pop()
    return fields


_ALWAYS: Final = 5
"""The fields of a partition that are never left out."""


def _partition(fields: list[Any]) -> PartitionImage:
    replicas, isr, leader, leader_epoch, partition_epoch, *lists = fields
    elr, last_known_elr, adding, removing = [*map(tuple, lists), (), (), (), ()][:4]
    return PartitionImage(
        replicas=tuple(replicas),
        isr=tuple(isr),
        leader=leader,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        elr=elr,
        last_known_elr=last_known_elr,
        adding=adding,
        removing=removing,
    )


_CRC_DIGITS: Final = 8


class CorruptMetadataLog(Exception):
    """The file can't be what was written. The text is one line."""


class MetadataLog:
    """The file, open.

    What can't be written, as on a full disk, is kept and written before whatever comes next: the
    cluster goes on, and only an end of the process before that loses it.

    :param complain: Told what could not be written, at each attempt.
    """

    def __init__(
        self, file: File, *, sync: bool, complain: Callable[[OSError], None] = lambda _: None
    ) -> None:
        self.report_problem = complain
        self._file = file
        self._sync = sync
        self._unwritten: list[bytes] = []

    @property
    def has_unwritten(self) -> bool:
        """Whether something could not be written yet."""
        return bool(self._unwritten)

    def append_changes(
        self, before: ClusterImage, after: ClusterImage, changed: frozenset[str]
    ) -> None:
        """Keep what is different in a new image, before anybody acts on it."""
        self._append(list(changed_records(before, after, changed)))

    def append_producer_ids(self, next_producer_id: int) -> None:
        """Append the next unused producer id, before a lower one is given to a client."""
        self._append([["producer_ids", next_producer_id]])

    def write_pending(self) -> None:
        """Write what could not be written before."""
        if self._unwritten:
            self._write()

    def close(self) -> None:
        """Write what is left, if that goes, and close the file."""
        self.write_pending()
        self._file.close()

    def _append(self, records: list[Record]) -> None:
        if records:
            self._unwritten.append(encode_line(records))
            self._write()

    def _write(self) -> None:
        try:
            self._file.append(self._unwritten)
            self._unwritten = []
            if self._sync:
                self._file.sync()
        except OSError as error:
            self.report_problem(error)


def load(fs: FileSystem, path: PurePath) -> tuple[ControllerState, int] | None:
    """What a file says, and how many torn bytes at its end were left out; None without a file.

    :raises CorruptMetadataLog: When it is damaged, or made by a newer fencepost.
    :raises OSError: When it can't be read.
    """
    if not fs.exists(path):
        return None
    data = fs.read(path)
    known = ControllerState(cluster_id="")
    kept = sum(size for _, size in replay(path, data, known))
    return known, len(data) - kept


def replay(
    path: PurePath, data: bytes, known: ControllerState
) -> Iterator[tuple[list[Record], int]]:
    """The records of each whole line, and its bytes, as it is taken in; a torn end is left out.

    :param path: Of the file, for errors.
    :param known: Takes them in; new.
    :raises CorruptMetadataLog: As `load`.
    """
    kept = 0
    for number, line in enumerate(data.splitlines(keepends=True), start=1):
        records = decode_line(line)
        if records is None:
            if any(
                decode_line(later) is not None
                for later in data[kept + len(line) :].splitlines(keepends=True)
            ):
                raise CorruptMetadataLog(
                    f"{path}: line {number} is damaged, and others follow it; a line is 8 "
                    "hexadecimal digits, the CRC-32 of the JSON array behind them"
                )
            break
        try:
            for record in records:
                known.apply(record)
                if known.layout > LAYOUT:
                    raise CorruptMetadataLog(
                        f"{path.parent} was made by a newer fencepost: its layout is "
                        f"{known.layout}, and {LAYOUT} is the newest that this one knows"
                    )
        except UnknownRecord as error:
            raise CorruptMetadataLog(
                f"{path}: line {number} says what is not known: {error}"
            ) from error
        kept += len(line)
        yield records, len(line)
    if not known.cluster_id:
        raise CorruptMetadataLog(f"{path} does not say which cluster it is of")


def rewrite(fs: FileSystem, path: PurePath, known: ControllerState, *, sync: bool) -> MetadataLog:
    """Rewrite the file with the present state, and open it to append to.

    :raises OSError: When that fails.
    """
    fs.write_atomic(path, encode_line(known.records()), sync=sync)
    return MetadataLog(fs.open(path), sync=sync)


def encode_line(records: Iterable[Record]) -> bytes:
    """A line of the file: a checksum, and records that hold together or not at all."""
    text = json.dumps(list(records), ensure_ascii=False, separators=(",", ":")).encode()
    return b"%08x %b\n" % (crc32(text), text)


def decode_line(line: bytes) -> list[Record] | None:
    """The records of a line, which ends with its end of line; None where it is not whole."""
    crc, text = line[:_CRC_DIGITS], line[_CRC_DIGITS + 1 : -1]
    if line[-1:] != b"\n" or crc != b"%08x" % crc32(text):
        return None
    try:
        records: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(records, list) or not all(isinstance(each, list) for each in records):
        return None
    return records
