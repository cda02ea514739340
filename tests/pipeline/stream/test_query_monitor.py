"""A query watched to its end; one that only says what it is told to say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import pytest

from fencepost.pipeline.stream import query_monitor
from fencepost.pipeline.stream.query_monitor import StreamFailedError, monitor_query

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from fencepost.pipeline.stream.query_monitor import MicroBatch


class Scripted:
    """Does a batch each time that it is asked whether it is active, up to ``batches``."""

    def __init__(self, batches: int, *, fails: str | None = None) -> None:
        self.recentProgress: list[dict[str, Any]] = []
        self.isStopped = False
        self.status = {"isDataAvailable": True, "isTriggerActive": True}
        self._batches = batches
        self._fails = fails

    @property
    def isActive(self) -> bool:  # noqa: N802  # Spark's own name
        if self.isStopped or len(self.recentProgress) == self._batches:
            return False
        self.done()
        return True

    def done(self) -> None:
        number = len(self.recentProgress)
        ends = (json.dumps({"orders": {"0": 10 * n}}) for n in (number, number + 1))
        source = dict(zip(("startOffset", "endOffset"), ends, strict=True))
        progress = {"batchId": number, "timestamp": str(number), "numInputRows": 10}
        self.recentProgress.append({**progress, "sources": [source]})

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802  # Spark's own name
        return self.recentProgress[-1] if self.recentProgress else None

    def stop(self) -> None:
        self.isStopped = True

    def exception(self) -> str | None:
        return self._fails


class Stuck(Scripted):
    """Its batch never ends."""

    @property
    def isActive(self) -> bool:  # noqa: N802  # Spark's own name
        return not self.isStopped


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_monitor, "POLL_S", 0.001)


def watch(query: Scripted, *, stop: bool = False, patience_s: float = 10.0) -> list[int]:
    """The numbers of the batches that were told."""
    told: list[MicroBatch] = []
    monitor_query(cast("StreamingQuery", query), told.append, lambda: stop, patience_s=patience_s)
    return [batch.number for batch in told]


def test_each_batch_is_told_once_also_the_last() -> None:
    assert watch(Scripted(3)) == [0, 1, 2]


def test_a_batch_under_way_is_finished_and_told() -> None:
    query = Scripted(1000)
    told = watch(query, stop=True)
    assert query.isStopped
    assert told == list(range(len(query.recentProgress)))
    assert 1 <= len(told) < 10


def test_a_stop_does_not_wait_where_no_batch_is_under_way() -> None:
    query = Stuck(0)
    query.status = {"isDataAvailable": False, "isTriggerActive": True}
    assert watch(query, stop=True) == []
    assert query.isStopped


def test_a_batch_that_does_not_end_is_broken_off() -> None:
    query = Stuck(0)
    assert watch(query, stop=True, patience_s=0.05) == []
    assert query.isStopped


def test_a_failure_is_raised_after_what_was_done_is_told() -> None:
    told: list[MicroBatch] = []
    query = cast("StreamingQuery", Scripted(2, fails="a.b.C: no more\n=== Streaming Query ==="))
    with pytest.raises(StreamFailedError, match=r"^C: no more$"):
        monitor_query(query, told.append, lambda: False)
    assert [batch.number for batch in told] == [0, 1]
