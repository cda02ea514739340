"""Clusters whose files are damaged: what their files are at the end, and what clients were told."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath
from random import Random
from typing import Final

from fencepost.broker.node import operator_actions
from tests.harness.driver import content
from tests.harness.driver_requests import create
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

    def forget_compacted(self) -> None:
        """Only the records that compaction has left are expected to be there."""
        told = self.told["c", 0]
        left = [offset for offset, _, _ in content(self.lasting.driver.leader("c"))]
        assert told.end - 2 in left, "the last batch is in the active segment"
        told.values = {offset: told.values[offset] for offset in left}
        told.start = min(left)

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
    player.forget_compacted()
    if is_clean:
        lasting.stop()
        for told in player.told.values():
            told.checkpointed = told.end
    else:
        lasting.kill()
    return Scene(factor, is_clean, contents_of(lasting.files), player.earlier, player.told)


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
