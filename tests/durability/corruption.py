"""Random damage to the files of a data directory, and what a start on it may do.

A `Scene` is a directory that a cluster has left, with what its clients were told. `Damage` is one
thing that happened to its files. `judge` starts on them, and finds out whether everything that was
acknowledged is there, or the start was refused, or the loss was told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import PurePath
from random import Random
from typing import Final

from fencepost.broker.core.errors import DataDirUnusable
from fencepost.broker.core.events import OF_THE_DISK, Event, Kind
from fencepost.broker.data_dir.directory import open_data_dir
from fencepost.broker.node import operator_actions
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.produce import PartitionProduceResponse
from fencepost.protocol.records import CorruptBatch, crc_ok, iter_headers, iter_records
from fencepost.storage.files.file_system import StorageFailure
from tests.harness.driver import Driver, content
from tests.harness.driver_requests import create, fetch
from tests.harness.durable_driver import DIR, DurableDriver
from tests.harness.faulty_file_system import FaultyFileSystem
from tests.harness.records import batch
from tests.harness.typed_requests import produce_request, produced

Place = tuple[str, int]
"""Topic and partition."""
Contents = dict[PurePath, bytes | None]
"""The bytes of every file by its path; None is a directory."""
PARTITIONS: Final[tuple[Place, ...]] = (("t", 0), ("t", 1), ("u", 0), ("c", 0))
REPLICAS: Final = {1: ((1,), (2,)), 3: ((1, 2, 3), (2, 3, 1))}


@dataclass(slots=True)
class Acknowledged:
    """What the clients of one partition were told."""

    values: dict[int, bytes] = field(default_factory=dict)
    start: int = 0
    """DeleteRecords went so far."""
    checkpointed: int = 0
    """The offset up to which some file has said that records are there."""
    last: tuple[int, bytearray] | None = None
    """The last batch of the idempotent producer, and its offset."""

    @property
    def end(self) -> int:
        return max(self.values, default=-1) + 1


@dataclass(slots=True)
class Scene:
    """A directory at the end of a process, and earlier ones."""

    factor: int
    is_clean: bool
    contents: Contents
    earlier: list[Contents]
    told: dict[Place, Acknowledged]

    @property
    def files(self) -> list[PurePath]:
        return [p for p, data in self.contents.items() if data is not None and p.name != ".lock"]

    @property
    def directories(self) -> list[PurePath]:
        return [p for p, data in self.contents.items() if data is None and p != DIR]


class _Player:
    """Does what clients do, and takes note of what they are told."""

    def __init__(self, factor: int, rng: Random) -> None:
        self.rng = rng
        self.factor = factor
        self.lasting = DurableDriver(3, min_insync_replicas="2" if factor > 1 else "1")
        self.told = {place: Acknowledged() for place in PARTITIONS}
        self.sequences = dict.fromkeys(PARTITIONS, 0)
        self.earlier: list[Contents] = []
        one, other = REPLICAS[factor]
        driver = self.lasting.driver
        create(driver, "t", (one, other))
        create(driver, "u", (other,), retention_ms="-1")
        create(driver, "c", (one,), cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")

    def produce(self, count: int) -> None:
        for place in PARTITIONS:
            for _ in range(count):
                self._produce(place)

    def _produce(self, place: Place) -> None:
        told, sequence = self.told[place], self.sequences[place]
        values = [b"%s-%d-%06d" % (place[0].encode(), place[1], sequence + i) for i in range(2)]
        if place[0] == "u":
            values[0] += b"x" * self.rng.randrange(40)
        sent = batch(*values, producer=(1000 + PARTITIONS.index(place), 0, sequence))
        driver = self.lasting.driver
        leader = driver.leader(*place).broker_id
        request = produce_request((*place, bytearray(sent)), acks=-1)
        answer = produced(driver.send(leader, "produce", 12, request).response)
        assert answer.error_code == 0, answer
        self.sequences[place] += 2
        for i, value in enumerate(values):
            told.values[answer.base_offset + i] = value
        told.last = (answer.base_offset, sent)

    def roll(self) -> None:
        for topic, index in PARTITIONS:
            if self.rng.random() < 0.8:
                operator_actions.roll(self.lasting.driver.cluster, topic, index)

    def delete_records(self) -> None:
        place = ("u", 0)
        told, replica = self.told[place], self.lasting.driver.leader("u")
        told.start = self.rng.randrange(told.start, replica.high_watermark)
        replica.delete_records(told.start)
        self.lasting.driver.cluster.scheduler.run_due()

    def compact(self) -> None:
        operator_actions.compact(self.lasting.driver.cluster, "c", 0)

    def wait(self) -> None:
        """Long enough for all checkpoints."""
        self.lasting.driver.advance(61_000)
        for told in self.told.values():
            told.checkpointed = told.end

    def keep(self) -> None:
        self.earlier.append(contents_of(self.lasting.files))


def play(factor: int, *, is_clean: bool, seed: int) -> Scene:
    """A cluster that has lived twice, with elections, retention and compaction."""
    rng = Random(f"scene {factor} {is_clean} {seed}")
    player = _Player(factor, rng)
    lasting = player.lasting
    player.produce(rng.randrange(1, 4))
    player.keep()
    player.roll()
    player.produce(rng.randrange(1, 4))
    player.wait()
    player.compact()
    player.keep()
    lasting.stop()
    player.keep()
    lasting.begin()
    player.produce(2)
    player.roll()
    if factor > 1:
        lasting.driver.elect("t", 0, 2)
    player.produce(rng.randrange(1, 4))
    player.delete_records()
    player.wait()
    player.keep()
    if rng.random() < 0.5:
        player.roll()
    player.produce(rng.randrange(4))
    if is_clean:
        lasting.stop()
        for told in player.told.values():
            told.checkpointed = told.end
    else:
        lasting.kill()
    scene = Scene(factor, is_clean, contents_of(lasting.files), player.earlier, player.told)
    _forget_compacted(scene)
    return scene


def _forget_compacted(scene: Scene) -> None:
    """Only the records that compaction has left are expected to be there."""
    place = ("c", 0)
    untouched = Damage("none", DIR, "", scene.contents)
    judged = _Judge(scene, untouched, _start(file_system(scene.contents), scene))
    _, left, _ = judged.read(place)
    told = scene.told[place]
    assert told.values.items() >= left.items(), "compaction writes nothing of its own"
    assert told.end - 2 in left, "the last batch is in the active segment"
    told.values = {offset: told.values[offset] for offset in left}
    told.start = min(left)


def contents_of(files: FaultyFileSystem) -> Contents:
    """All files below the data directory."""
    found: Contents = {}

    def walk(directory: PurePath) -> None:
        found[directory] = None
        for name in files.names(directory):
            path = directory / name
            if files.is_dir(path):
                walk(path)
            else:
                found[path] = files.read(path)

    walk(DIR)
    return found


def file_system(contents: Contents) -> FaultyFileSystem:
    """A file system with these files."""
    files = FaultyFileSystem()
    for path, data in contents.items():
        if data is None:
            files.make_dirs(path)
        else:
            file = files.open(path)
            file.append((data,))
            file.close()
    return files


# -- damage -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that happened to the files."""

    kind: str
    path: PurePath
    detail: str
    contents: Contents = field(repr=False, hash=False, compare=False)
    keeps_sizes: bool = False
    """Whether only bytes within a file have changed."""
    other: PurePath | None = None

    def concerns_bytes_of_a_segment(self) -> bool:
        return self.keeps_sizes and self.path.suffix == ".log" and self.path.name != "registry.log"

    def is_in_the_way(self) -> bool:
        """Whether something is there that has to go before anything can be read or written."""
        return self.kind.endswith("in place of")

    def __str__(self) -> str:
        return f"{self.kind} {self.path} {self.detail}"


def damage(scene: Scene, rng: Random) -> Damage:
    """One damage, drawn."""
    while True:
        kind = rng.choice(_KINDS)
        made = kind(scene, rng)
        if made is not None and made.contents != scene.contents:
            return made


def _some_file(scene: Scene, rng: Random) -> PurePath:
    """Logs and the files of the directories as often as the many small ones beside the logs."""
    files = scene.files
    group = rng.choice(("log", "top", "any"))
    if group == "log":
        files = [p for p in files if p.suffix == ".log" and p.parent != DIR]
    elif group == "top":
        files = [p for p in files if len(p.parts) <= len(DIR.parts) + 2]
    return rng.choice(files)


def _flip(scene: Scene, rng: Random) -> Damage | None:
    path = _some_file(scene, rng)
    data = bytearray(scene.contents[path] or b"")
    if not data:
        return None
    at, bit = rng.randrange(len(data)), rng.randrange(8)
    data[at] ^= 1 << bit
    return _changed(scene, "flip", path, f"bit {bit} of byte {at}", bytes(data), keeps_sizes=True)


def _zeros(scene: Scene, rng: Random) -> Damage | None:
    path = _some_file(scene, rng)
    data = bytearray(scene.contents[path] or b"")
    if not data:
        return None
    at = rng.randrange(len(data))
    end = min(len(data), at + rng.choice((4, 16, 512)))
    data[at:end] = bytes(end - at)
    return _changed(scene, "zeros", path, f"{at} to {end}", bytes(data), keeps_sizes=True)


def _cut(scene: Scene, rng: Random) -> Damage | None:
    path = _some_file(scene, rng)
    data = scene.contents[path] or b""
    if not data:
        return None
    borders = _borders(path, data)
    size = rng.choice((0, rng.randrange(len(data)), rng.choice(borders)))
    return _changed(scene, "cut", path, f"to {size} of {len(data)}", data[:size])


def _borders(path: PurePath, data: bytes) -> list[int]:
    if path.suffix == ".log" and path.name[:1].isdigit():
        return [at for at, _ in iter_headers(data)]
    lines = [len(line) for line in data.splitlines(keepends=True)]
    return [sum(lines[:i]) for i in range(len(lines))]


def _delete(scene: Scene, rng: Random) -> Damage | None:
    path = _some_file(scene, rng)
    contents = {p: data for p, data in scene.contents.items() if p != path}
    return Damage("delete", path, "", contents)


def _delete_directory(scene: Scene, rng: Random) -> Damage | None:
    path = rng.choice(scene.directories)
    contents = {p: data for p, data in scene.contents.items() if not p.is_relative_to(path)}
    return Damage("delete all of", path, "", contents)


def _exchange_kind(scene: Scene, rng: Random) -> Damage | None:
    """A directory where a file was, or the other way round."""
    if rng.random() < 0.7:
        path = _some_file(scene, rng)
        return _changed(scene, "a directory in place of", path, "", None)
    path = rng.choice(scene.directories)
    contents = {p: data for p, data in scene.contents.items() if not p.is_relative_to(path)}
    return Damage("a file in place of", path, "", {**contents, path: b"file"})


def _swap(scene: Scene, rng: Random) -> Damage | None:
    path = _some_file(scene, rng)
    alike = [p for p in scene.files if p.suffix == path.suffix and p != path]
    other = rng.choice(alike if alike and rng.random() < 0.8 else scene.files)
    contents = dict(scene.contents)
    contents[path], contents[other] = contents[other], contents[path]
    return Damage("swap", path, f"with {other}", contents, other=other)


def _swap_directories(scene: Scene, rng: Random) -> Damage | None:
    path, other = rng.sample(scene.directories, 2)
    if path.is_relative_to(other) or other.is_relative_to(path):
        return None

    def moved(p: PurePath) -> PurePath:
        for old, new in ((path, other), (other, path)):
            if p.is_relative_to(old):
                return new / p.relative_to(old)
        return p

    contents = {moved(p): data for p, data in scene.contents.items()}
    return Damage("swap all of", path, f"with {other}", contents, other=other)


def _old_copy(scene: Scene, rng: Random) -> Damage | None:
    number = rng.randrange(len(scene.earlier))
    earlier = scene.earlier[number]
    path = rng.choice([p for p, d in earlier.items() if d is not None and p.name != ".lock"])
    if path.parent not in scene.contents:
        return None
    return _changed(scene, "old copy", path, f"number {number}", earlier[path])


def _old_directory(scene: Scene, rng: Random) -> Damage | None:
    number = rng.randrange(len(scene.earlier))
    earlier = scene.earlier[number]
    path = rng.choice([p for p, d in earlier.items() if d is None and p != DIR])
    return as_before(scene, path, number)


def _changed(
    scene: Scene,
    kind: str,
    path: PurePath,
    detail: str,
    data: bytes | None,
    *,
    keeps_sizes: bool = False,
) -> Damage:
    return Damage(kind, path, detail, {**scene.contents, path: data}, keeps_sizes)


_KINDS: Final[tuple[Callable[[Scene, Random], Damage | None], ...]] = (
    _flip,
    _flip,
    _zeros,
    _cut,
    _cut,
    _delete,
    _delete,
    _delete_directory,
    _swap,
    _swap,
    _swap_directories,
    _exchange_kind,
    _old_copy,
    _old_copy,
    _old_directory,
)


def swapped(scene: Scene, one: PurePath, other: PurePath) -> Damage:
    """Two files in each other's place."""
    contents = {**scene.contents, one: scene.contents[other], other: scene.contents[one]}
    return Damage("swap", one, f"with {other}", contents, other=other)


def without(scene: Scene, path: PurePath) -> Damage:
    """A file is gone."""
    return Damage("delete", path, "", {p: d for p, d in scene.contents.items() if p != path})


def as_before(scene: Scene, directory: PurePath, number: int) -> Damage:
    """An old copy of a directory."""
    contents = {p: d for p, d in scene.contents.items() if not p.is_relative_to(directory)}
    earlier = scene.earlier[number]
    contents |= {p: d for p, d in earlier.items() if p.is_relative_to(directory)}
    return Damage("old copy of all of", directory, f"number {number}", contents)


def flipped(scene: Scene, path: PurePath, at: int) -> Damage:
    """A bit of a byte is another one."""
    data = bytearray(scene.contents[path] or b"")
    data[at] ^= 1
    return _changed(scene, "flip", path, f"bit 0 of byte {at}", bytes(data), keeps_sizes=True)


# -- judging ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Verdict:
    """What a start on damaged files did.

    :ivar outcome: ``whole``: everything is there, and nothing was said; ``healed``: everything is
        there, and an event says what was not; ``refused``, ``told``, ``excepted``.
    :ivar wrong: What may not be, in words; empty where nothing is.
    """

    outcome: str
    wrong: list[str] = field(default_factory=list)


def judge(scene: Scene, harm: Damage) -> Verdict:
    """Start on the damaged files, and compare with what clients were told."""
    files = file_system(harm.contents)
    try:
        driver = _start(files, scene)
    except DataDirUnusable as refusal:
        text = str(refusal)
        return Verdict("refused", [f"no line: {text!r}"] if "\n" in text or not text else [])
    judged = _Judge(scene, harm, driver)
    for place, told in scene.told.items():
        judged.check(place, told)
    return judged.verdict


def judge_accepting(scene: Scene, harm: Damage) -> list[str]:
    """Start on the damaged files and accept that records are lost; what is wrong then."""
    files = file_system(harm.contents)
    try:
        driver = _start(files, scene, accepts_loss=True)
    except DataDirUnusable:
        return []
    judged = _Judge(scene, harm, driver)
    wrong = []
    for place, told in scene.told.items():
        if driver.cluster.controller.image.partition(*place) is None or judged.is_of_bytes(place):
            continue
        image = driver.partition(*place)
        if image.leader < 0 and not harm.is_in_the_way():
            wrong.append(f"{place} is offline all the same")
        if image.leader < 0:
            continue
        wrong += judged.other_records(place, told)
        if not _is_led(driver, place):
            if not harm.is_in_the_way():
                wrong.append(f"{place} is offline now")
            continue
        answer = judged.produce(place, batch(b"next"))
        if answer.error_code == 0 and answer.base_offset < told.checkpointed:
            wrong.append(f"offset {answer.base_offset} of {place} is given out twice")
    return wrong


def unnoticed(scene: Scene, harm: Damage) -> list[str]:
    """What a start does not say of records that a damaged segment had, and that were written down.

    Also where another replica has them.
    """
    lost = _lost_records(scene, harm)
    if lost is None:
        return []
    broker_id, place, first = lost
    try:
        events = events_of(scene, harm)
    except DataDirUnusable:
        return []
    for event in events:
        if (event.kind, event.broker) != (Kind.RECORDS_MISSING, broker_id):
            continue
        ranges = event.details["offsets"]
        assert isinstance(ranges, list)
        if (event.topic, event.partition) == place and any(a <= first <= b for a, b in ranges):
            return []
    return [f"no event says that broker {broker_id} misses offset {first} of {place}: {events}"]


def _lost_records(scene: Scene, harm: Damage) -> tuple[int, Place, int] | None:
    """Broker, partition and first offset of what a segment that is cut or gone had; None if none.

    Only of what had to be written down, and was not deleted by a client.
    """
    path = harm.path
    if harm.kind not in ("cut", "delete") or path.suffix != ".log" or path.parent == DIR:
        return None
    before, after = scene.contents[path] or b"", harm.contents.get(path) or b""
    topic, _, index = path.parent.name.rpartition("-")
    place = topic, int(index)
    told = scene.told[place]
    for at, header in iter_headers(before):
        is_cut = at + header.size > len(after)
        if is_cut and told.start <= header.last_offset < told.checkpointed:
            return int(path.parts[-3].removeprefix("broker-")), place, header.base_offset
    return None


def events_of(scene: Scene, harm: Damage) -> list[Event]:
    """What a start on these files tells."""
    return list(_start(file_system(harm.contents), scene).cluster.events.at_start)


def start_again(scene: Scene, harm: Damage) -> list[str]:
    """Start on the damaged files, stop in order, and start once more; what that finds still."""
    files = file_system(harm.contents)
    try:
        driver = _start(files, scene)
    except DataDirUnusable:
        return []
    offline = {p for p in scene.told if _is_offline(driver, p)}
    driver.cluster.close()
    files.end_process()
    driver = _start(files, scene)
    return [
        f"{event.kind} again: {event.topic}-{event.partition} {event.details}"
        for event in driver.cluster.events.at_start
        if event.kind is not Kind.STORAGE_FAILED and (event.topic, event.partition) not in offline
    ]


def _is_led(driver: Driver, place: Place) -> bool:
    return driver.partition(*place).leader >= 0


def _is_offline(driver: Driver, place: Place) -> bool:
    image = driver.cluster.controller.image.partition(*place)
    return image is None or image.leader < 0 or bool(image.failed)


def _start(files: FaultyFileSystem, scene: Scene, *, accepts_loss: bool = False) -> Driver:
    data_dir = open_data_dir(files, DIR, brokers=3, sync=False, accepts_loss=accepts_loss)
    configs = {"min.insync.replicas": "2" if scene.factor > 1 else "1"}
    return Driver(3, configs, data_dir=data_dir)


class _Judge:
    def __init__(self, scene: Scene, harm: Damage, driver: Driver) -> None:
        self.scene = scene
        self.harm = harm
        self.driver = driver
        self.events = list(driver.cluster.events.at_start)
        driver.cluster.events.listeners.append(self.events.append)
        self.verdict = Verdict("healed" if self.events else "whole")

    def check(self, place: Place, told: Acknowledged) -> None:
        name = f"{place[0]}-{place[1]}"
        image = self.driver.cluster.controller.image
        if image.partition(*place) is None:
            self._excuse(place, f"{name} is not there")
            return
        if self.driver.partition(*place).leader < 0:
            self._excuse(place, f"{name} is offline")
            return
        start, found, stopped = self.read(place)
        if stopped:
            self._reader_noticed(place, f"{name}: {stopped}")
            return
        missing = [o for o in told.values if o >= told.start and found.get(o) != told.values[o]]
        if missing:
            self._lost(
                place, told, f"{name} lacks or has other records at {_short(missing)}", missing
            )
        elif start > told.start:
            self._excuse(place, f"{name} starts at {start}, not {told.start}")
        doubled = [o for o in found if o >= told.end]
        if doubled:
            self._excuse(place, f"{name} has records that no client sent at {_short(doubled)}")
        self._check_in_sync_replicas(place, told, start)
        if _is_led(self.driver, place):
            self._check_producer(place, told, bool(missing))
        if _is_led(self.driver, place):
            self._check_next(place, told)

    def read(self, place: Place) -> tuple[int, dict[int, bytes | None], str]:
        leader = self.driver.leader(*place)
        start, offset = leader.log.log_start_offset, leader.log.log_start_offset
        found: dict[int, bytes | None] = {}
        while offset < leader.high_watermark:
            if not _is_led(self.driver, place):
                return start, found, f"offline at {offset}"
            answer = fetch(self.driver, place[0], offset, index=place[1])
            if answer.error_code:
                return start, found, f"error {answer.error_code} at {offset}"
            before = offset
            for buffer in answer.records or ():
                try:
                    for at, header in iter_headers(buffer):
                        if not crc_ok(buffer, at, header):
                            return start, found, f"CRC at {offset}"
                        for record in iter_records(buffer, at):
                            found[record.offset] = record.value
                        offset = max(offset, header.last_offset + 1)
                except CorruptBatch as error:
                    return start, found, str(error)
            if offset == before:
                break
        return start, found, ""

    def other_records(self, place: Place, told: Acknowledged) -> list[str]:
        """What is served of a partition whose losses are accepted, and was not written so."""
        _, found, _ = self.read(place)
        wrong = []
        others = [o for o in found if o in told.values and found[o] != told.values[o]]
        if others:
            wrong.append(f"{place} has other records at {_short(others)}")
        lacking = [o for o in told.values if o >= told.start and o not in found]
        if lacking and self.scene.factor > 1:
            wrong.append(f"{place} lacks {_short(lacking)}")
        return wrong

    def _check_producer(self, place: Place, told: Acknowledged, is_missing: bool) -> None:
        """What the producer sends again is known to be there."""
        if told.last is None or is_missing:
            return
        offset, sent = told.last
        answer = self.produce(place, sent)
        if (answer.error_code, answer.base_offset) != (0, offset):
            self._excuse(place, f"{place} takes a batch twice: {answer.error_code}")

    def _check_in_sync_replicas(self, place: Place, told: Acknowledged, start: int) -> None:
        """Any of them may lead next."""
        if self.scene.factor == 1 or self.is_of_bytes(place):
            return
        for broker_id in self.driver.partition(*place).isr:
            replica = self.driver.broker(broker_id).replicas.get(place)
            if replica is None:
                continue
            try:
                found = {offset: value for offset, _, value in content(replica)}
            except StorageFailure:
                continue  # it is told, and no record is served
            lacking = [o for o in told.values if o >= start and found.get(o) != told.values[o]]
            if lacking:
                self.verdict.wrong.append(
                    f"{place} on broker {broker_id}, which is in sync, lacks {_short(lacking)}"
                )

    def _check_next(self, place: Place, told: Acknowledged) -> None:
        answer = self.produce(place, batch(b"next"))
        if answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
            self._excuse(place, f"{place} can't be written")
        elif answer.error_code:
            self.verdict.wrong.append(f"{place}: error {answer.error_code} for a produce")
        elif answer.base_offset < told.end:
            text = f"offset {answer.base_offset} of {place} is given out twice"
            if self.scene.factor > 1 or answer.base_offset < told.checkpointed:
                self.verdict.wrong.append(text)
            else:
                self._except(place, text)

    def produce(self, place: Place, sent: bytearray) -> PartitionProduceResponse:
        leader = self.driver.leader(*place).broker_id
        request = produce_request((*place, bytearray(sent)), acks=-1)
        return produced(self.driver.send(leader, "produce", 12, request).response)

    # -- what excuses what -----------------------------------------------------------------------

    def _lost(self, place: Place, told: Acknowledged, text: str, missing: list[int]) -> None:
        if self.scene.factor > 1 and not self.is_of_bytes(place):
            self.verdict.wrong.append(text)
        elif min(missing) >= told.checkpointed:
            self._except(place, text)
        else:
            self._excuse(place, text)

    def _except(self, place: Place, text: str) -> None:
        """At RF 1 after a kill, behind all checkpoints."""
        if self.scene.is_clean and not self.is_of_bytes(place):
            self.verdict.wrong.append(text)
        elif not self._is_told(place):
            self._set("excepted")
        else:
            self._set("told")

    def _reader_noticed(self, place: Place, text: str) -> None:
        if self.is_of_bytes(place) or self._is_told(place):
            self._set("told")
        else:
            self.verdict.wrong.append(f"only a reader notices: {text}")

    def _excuse(self, place: Place, text: str) -> None:
        if self._is_told(place) or self.is_of_bytes(place):
            self._set("told")
        else:
            self.verdict.wrong.append(text)

    def is_of_bytes(self, place: Place) -> bool:
        """Bytes within a segment are the business of the readers' checksums and of the audit."""
        harm = self.harm
        return (
            harm.concerns_bytes_of_a_segment() and harm.path.parent.name == f"{place[0]}-{place[1]}"
        )

    def _is_told(self, place: Place) -> bool:
        of_the_disk = (event for event in self.events if event.kind in OF_THE_DISK)
        return any(_names(event, place) for event in of_the_disk)

    def _set(self, outcome: str) -> None:
        order = ("whole", "healed", "excepted", "told")
        self.verdict.outcome = max(self.verdict.outcome, outcome, key=order.index)


def _names(event: Event, place: Place) -> bool:
    """Whether an event names a partition."""
    return (event.topic, event.partition) == place or f"{place[0]}-{place[1]}" in str(event.details)


def _short(offsets: Iterable[int]) -> str:
    found = sorted(offsets)
    return f"{found[0]} to {found[-1]}"
