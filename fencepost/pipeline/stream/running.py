"""A query watched to its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from fencepost.pipeline.stream.failures import explain
from fencepost.pipeline.stream.progress import Batch, new_batches

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

POLL_S: Final = 0.2
PATIENCE_S: Final = 10.0
"""How long a batch may take to its end when the query is to be stopped."""


class StreamFailedError(Exception):
    """A query failed. The text is one line."""


def run(
    query: StreamingQuery,
    tell: Callable[[Batch], None],
    stopped: Callable[[], bool],
    *,
    patience_s: float = PATIENCE_S,
) -> None:
    """Wait until a query ends or is to be stopped, and tell of each batch when it is done.

    A batch under way may still be finished when the query is to be stopped. If that takes longer
    than ``patience_s`` it is broken off, and done again by who goes on from the checkpoint.

    :param stopped: Whether the query is to be stopped; asked a few times a second.
    :raises StreamFailedError: When the query failed.
    """
    teller = _Teller(query, tell)
    while query.isActive and not stopped():
        teller.catch_up()
        time.sleep(POLL_S)
    if query.isActive:
        _await_batch(query, patience_s)
        query.stop()
    teller.catch_up()
    failure = query.exception()
    if failure is not None:
        raise StreamFailedError(explain(str(failure)))


class _Teller:
    """Tells of batches in their order, each once."""

    def __init__(self, query: StreamingQuery, tell: Callable[[Batch], None]) -> None:
        self._query = query
        self._tell = tell
        self._told = -1
        self._seen: str | None = None

    def catch_up(self) -> None:
        last = self._query.lastProgress
        # All that Spark remembers takes hundreds of round trips to its JVM.
        if last is None or last["timestamp"] == self._seen:
            return
        self._seen = last["timestamp"]
        for batch in new_batches(self._query.recentProgress, self._told):
            self._tell(batch)
            self._told = batch.number


def _await_batch(query: StreamingQuery, patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    under_way = _newest(query)
    while (
        query.isActive
        and query.status["isDataAvailable"]
        and query.status["isTriggerActive"]
        and _newest(query) == under_way
        and time.monotonic() < deadline
    ):
        time.sleep(POLL_S / 10)


def _newest(query: StreamingQuery) -> int:
    last = query.lastProgress
    return -1 if last is None else int(last["batchId"])
