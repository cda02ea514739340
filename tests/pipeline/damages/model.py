"""A damage to a partition: the act, its target, and the cause that an audit names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from fencepost.pipeline.audit.rule import Severity
from fencepost.storage.formats.checkpoints import decode_offsets, encode_offsets
from tests.pipeline.damages.written import Written


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The replica that is damaged: of broker 1, which leads."""

    written: Written
    topic: str
    broker: int = 1

    @property
    def top(self) -> Path:
        """The broker's log directory."""
        return self.written.log_dir(self.broker)

    @property
    def log(self) -> Path:
        """The directory of the partition."""
        return self.top / f"{self.topic}-0"

    def segments(self, suffix: str = ".log") -> list[Path]:
        """Files of the segments, by base offset."""
        return sorted(self.log.glob(f"*{suffix}"))

    def checkpoint(self, name: str, change: Callable[[int], int | None]) -> None:
        """Change the partition's line in a checkpoint of offsets."""
        path = self.top / name
        known = dict(decode_offsets(path.read_bytes())) if path.exists() else {}
        changed = change(known.pop((self.topic, 0), 0))
        if changed is not None:
            known[self.topic, 0] = changed
        path.write_bytes(encode_offsets(known))


_Do: TypeAlias = Callable[[Target], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Something that happens to a partition."""

    name: str
    """The topic's name begins with it."""
    do: _Do
    rule: str
    """Which finds the cause."""
    rule_beside_others: str | None = None
    """Which finds it where other replicas are whole, if that is another one."""
    rule_after_a_kill: str | None = None
    """Which may find it where a broker was killed: the coordinators' log may be behind then."""
    cause: str
    """A pattern that the incident's message fits."""
    alone: Severity = Severity.LOSS
    """Of the incident where the replica is the only one."""
    beside_others: Severity = Severity.DAMAGE
    """Of the incident where two others are whole."""
    replicas: tuple[int, ...] = (1, 3)
    transactional: bool = False
    compacted: bool = False
