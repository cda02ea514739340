"""Events of a trace that say something to a rule."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.broker.core.events import Kind
from fencepost.pipeline.datasource.trace_files import COORDINATOR_CHANGED, COORDINATOR_WIPED

FOREVER: Final = 1 << 62
"""No line, and no number of an exchange, is as great."""
_RELEVANT_KINDS: Final = (
    Kind.TRACE_STARTED,
    Kind.TOPIC_KNOWN,
    Kind.TRACE_ENDED,
    Kind.TOPIC_CREATED,
    Kind.CONFIGS_CHANGED,
    Kind.LEADER_CHANGED,
    Kind.REPLICAS_CHANGED,
    Kind.BROKER_CHANGED,
    Kind.REPLICA_WIPED,
    Kind.LOG_TRUNCATED,
    Kind.LOG_STARTED_FROM_TIER,
    COORDINATOR_CHANGED,
    COORDINATOR_WIPED,
)
"""Events that say something to a rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEvent:
    """An event that concerns the partition."""

    kind: str
    line: int
    number: int
    newest: int
    time_ms: int
    broker: int | None
    topic: str | None
    topic_id: str | None
    partition: int | None
    details: Mapping[str, Any]


def trace_events(traces: pa.Table) -> Iterator[TraceEvent]:
    """The events among rows of a trace, `TRACES`, in their order."""
    events = traces.filter(pc.is_in(traces["kind"], pa.array(_RELEVANT_KINDS)))
    for row in events.select([each.name for each in fields(TraceEvent)]).to_pylist():
        row["details"] = json.loads(row["details"] or "{}")
        yield TraceEvent(**row)
