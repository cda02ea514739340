"""How a load ends: loaded, refused for good, or interrupted."""

from dataclasses import dataclass


class LoadRefused(Exception):
    """The topic has something else than the source, or will not take its rows.

    To start again does not help. The text names partition and offset, where there is one.
    """


class LoadInterrupted(Exception):
    """It could not be seen through. To start again is safe, and goes on from there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLoaded:
    """A partition has all its rows."""

    partition: int
    base: int
    """Offset of the first of them."""
    found: int
    """Records that earlier attempts had brought there."""
    appended: int
    """Records that this one has."""

    @property
    def next_offset(self) -> int:
        """Behind the last of them."""
        return self.base + self.found + self.appended


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """All rows are in the topic, and every in-sync replica has them."""

    topic: str
    partitions: tuple[PartitionLoaded, ...]
    """Those that have any, by their numbers."""

    @property
    def found(self) -> int:
        """Records that earlier attempts had brought there, as the last attempt of each task saw."""
        return sum(each.found for each in self.partitions)

    @property
    def appended(self) -> int:
        """Records that this one has appended."""
        return sum(each.appended for each in self.partitions)

    @property
    def rows(self) -> int:
        """All of the source."""
        return self.found + self.appended
