"""How far a load has come, as the topic itself tells: how long its partitions are."""

import asyncio
import time
from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType
from typing import Final, Self

from fencepost.client.client import Client
from fencepost.client.errors import KafkaClientError
from fencepost.client.model import OffsetSpec, Partition
from fencepost.client.partitions import list_offsets
from fencepost.pipeline.load.plan import Plan
from fencepost.pipeline.load.wanted import Target

INTERVAL_S: Final = 1.0
_ATTEMPT_S: Final = 2.0

Tell = Callable[[str], None]


class Progress:
    """Tells of it in a line now and then, from a thread of its own, while it is entered.

    It stands aside: where brokers do not answer it says nothing, and the load goes on.

    :param total: How many rows there are; None where that is not known.
    """

    def __init__(self, target: Target, plan: Plan, total: int | None, tell: Tell) -> None:
        self._target = target
        self._plan = plan
        self._total = total
        self._tell = tell
        self._ends: dict[int, int] = {}
        self._over = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        began, before = 0.0, -1
        first: int | None = None
        while not self._over.wait(INTERVAL_S):
            asyncio.run(self._look())
            if not self._ends:
                continue
            there = sum(self._ends.values())
            if first is None:
                first, began = there, time.monotonic()
            if there != before:
                self._tell(line(there, self._total, there - first, time.monotonic() - began))
            before = there

    async def _look(self) -> None:
        """Ask how long the partitions are; what is not told stays as it was last."""
        target = self._target
        async with Client(target.bootstrap, client_id="fencepost-load-progress") as client:
            for index, base in enumerate(self._plan.bases):
                if self._over.is_set():  # whoever leaves waits for this
                    return
                partition = Partition(topic=target.topic, index=index)
                try:
                    leader = await client.leader(target.topic, index, timeout_s=_ATTEMPT_S)
                    found = await list_offsets(
                        leader, partition, OffsetSpec.LATEST, timeout_s=_ATTEMPT_S
                    )
                except KafkaClientError:
                    continue
                if not found.error:
                    self._ends[index] = max(found.offset - base, 0)


def line(there: int, total: int | None, since: int, seconds: float) -> str:
    """What is told: ``120000 of 5000000 rows (2 %), 60000 rows/s``.

    :param there: Rows that are in the topic.
    :param since: How many of them came in these seconds.
    """
    of_all = "" if total is None else f" of {total}"
    share = f" ({100 * min(there, total) // total} %)" if total else ""
    return f"{there}{of_all} rows{share}, {since / max(seconds, 1e-3):.0f} rows/s"
