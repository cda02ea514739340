"""Random damage to the files of a data directory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePath
from random import Random
from typing import Final

from fencepost.protocol.records import iter_headers
from tests.durability.scenes import Contents, Scene
from tests.harness.durable_driver import DIR


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
