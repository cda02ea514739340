"""Stores with a mistake: one makes nothing of the check, the other does not ask the log."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from examples.kvstore.kafka_wal import KafkaWal
from examples.kvstore.leader import Leader
from fencepost.client.append_outcomes import NotChecked

if TYPE_CHECKING:
    from examples.kvstore.records import Entry
    from examples.kvstore.state import Operation, Result


class TrustingWal(KafkaWal):
    """Takes entries that were appended elsewhere for appended, as producers have ever done."""

    async def append(self, expected: int, entries: Sequence[Entry]) -> None:
        with suppress(NotChecked):
            await super().append(expected, entries)


class HastyLeader(Leader):
    """Answers reads from its copy, and does not ask the log whether it still leads."""

    async def do(self, operation: Operation, patience_s: float) -> Result:
        if operation.writes:
            return await super().do(operation, patience_s)
        return self._replica.apply(operation)
