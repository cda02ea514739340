"""A log that is given up frees its buffers a little at a time."""

from __future__ import annotations

import weakref

from fencepost.protocol.records import Record, build_batch
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log_memory import MemoryBytes
from fencepost.storage.memory import memory_log


class Buffer(bytearray):
    """One that can be watched."""


def test_a_log_is_empty_after_its_last_step_and_not_before() -> None:
    log = memory_log("t-0", LogConfig(segment_bytes=1 << 20))
    watched: list[weakref.ref[Buffer]] = []

    def alive() -> int:
        return sum(ref() is not None for ref in watched)

    for _ in range(40):
        buffer = Buffer(build_batch([Record(0, 0, None, bytes(200_000))]))
        watched.append(weakref.ref(buffer))
        log.append_as_leader(buffer, leader_epoch=0, now_ms=0)
    del buffer
    assert len(log.segments()) > 1
    work = log.dismantle()
    assert alive() == 40
    counts = [alive() for _ in work]
    assert counts == sorted(counts, reverse=True)
    assert max(a - b for a, b in zip([40, *counts], counts, strict=False)) <= 3
    assert alive() == 0


def test_many_small_buffers_are_freed_by_the_dozen() -> None:
    content = MemoryBytes()
    for _ in range(1000):
        content.append(bytes(2000))
    steps = 1
    while content.free_some():
        steps += 1
    assert 10 < steps < 50
    assert content.free_some() is False
