"""A partition over time, small enough to be drawn: by the trace, or without one by the batches."""

import json
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.broker.core.events import Kind
from fencepost.pipeline.audit.batch_arrays import Int64Array
from fencepost.pipeline.audit.partition_summary import (
    MAX_MARKS,
    MAX_POINTS,
    Election,
    FollowerLag,
    PartitionHistory,
    TimeSeries,
)
from fencepost.pipeline.audit.trace_scan.ordering import LATEST
from fencepost.protocol.errors import ErrorCode

_LEADERS: Final = (Kind.LEADER_CHANGED, Kind.TOPIC_CREATED, Kind.TOPIC_KNOWN)
"""Events that tell who leads."""
_UNKNOWN: Final = -1
_SHOWN_PER_BIN: Final = 4
"""The first point of a bin, the last, the lowest and the highest."""


def from_traces(traces: pa.Table, partition: int) -> PartitionHistory:
    """From the answers that clients and followers got.

    :param traces: `TRACES` of one partition and of none, by line.
    """
    elections, at = _elections(traces, partition)
    log_end = _log_end(traces, at)
    clients = _answered_exchanges(traces, "ListOffsets", replicas=False)
    clients = clients.filter(pc.equal(clients["timestamp"], LATEST))
    answered = clients.filter(pc.equal(clients["error"], ErrorCode.NONE))
    gated = clients.filter(pc.equal(clients["error"], ErrorCode.OFFSET_NOT_AVAILABLE))
    fetched = _answered_exchanges(traces, "Fetch")
    fetched = fetched.filter(pc.greater_equal(fetched["high_watermark"], 0))
    return PartitionHistory(
        from_trace=True,
        log_end=downsample(log_end.times, log_end.values),
        high_watermark=downsample(_times(fetched), _longs(fetched, "high_watermark")),
        latest=downsample(_times(answered), _longs(answered, "offset")),
        gated=downsample(_times(gated), np.zeros(gated.num_rows, np.int64)),
        lag=_lags(_answered_exchanges(traces, "Fetch", replicas=True), at, log_end),
        elections=_every_nth(elections),
        elections_total=len(elections),
    )


def from_batches(batches: pa.Table) -> PartitionHistory:
    """What the timestamps of the batches tell: whatever producers took for the time.

    :param batches: `BATCHES` of one replica or of the tier, by position.
    """
    sound = batches.filter(pc.is_valid(batches["base_offset"]))
    times = np.maximum.accumulate(_longs(sound, "max_timestamp"))
    epochs = _longs(sound, "epoch")
    begins = np.flatnonzero(np.diff(epochs, prepend=epochs[:1]))
    elections = tuple(
        Election(time_ms=int(times[at]), leader=None, epoch=int(epochs[at])) for at in begins
    )
    return PartitionHistory(
        from_trace=False,
        log_end=downsample(times, _longs(sound, "last_offset") + 1),
        high_watermark=TimeSeries(),
        latest=TimeSeries(),
        gated=TimeSeries(),
        lag=(),
        elections=_every_nth(elections),
        elections_total=len(elections),
    )


def downsample(times: Int64Array, values: Int64Array) -> TimeSeries:
    """A series of at most `MAX_POINTS`: of each stretch of time what begins, ends and limits it.

    :param times: In any order.
    """
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]
    kept = np.arange(len(times))
    if len(times) > MAX_POINTS:
        span = max(int(times[-1] - times[0]), 1)
        bins = (times - times[0]) * (MAX_POINTS // _SHOWN_PER_BIN) // (span + 1)
        kept = _bin_extremes(bins, values)
    return TimeSeries(
        times=tuple(times[kept].tolist()), values=tuple(values[kept].tolist()), total=len(times)
    )


def _bin_extremes(bins: Int64Array, values: Int64Array) -> Int64Array:
    """Where each bin begins, ends, is lowest and is highest.

    :param bins: In order.
    """
    starts = np.flatnonzero(np.diff(bins, prepend=bins[0] - 1))
    ends = np.append(starts[1:], len(bins)) - 1
    by_value = np.lexsort((values, bins))
    return np.unique(np.concatenate((starts, ends, by_value[starts], by_value[ends])))


@dataclass(frozen=True, slots=True, kw_only=True)
class _LogEnd:
    """The leader's log end where it was seen, by line."""

    times: Int64Array
    values: Int64Array
    leader_terms: Int64Array
    """How many elections there were before."""


def _elections(traces: pa.Table, partition: int) -> tuple[tuple[Election, ...], Int64Array]:
    """The leader at the start, the elections, and their lines in the trace."""
    events = traces.filter(pc.is_in(traces["kind"], pa.array(_LEADERS)))
    found, lines = [], []
    for event in events.select(["line", "time_ms", "kind", "details"]).to_pylist():
        details = json.loads(event["details"])
        if event["kind"] != Kind.LEADER_CHANGED:
            leaders = details.get("leaders", ())
            if partition >= len(leaders):
                continue
            details = dict(zip(("leader", "leader_epoch"), leaders[partition], strict=True))
        leader = details.get("leader")
        found.append(
            Election(
                time_ms=event["time_ms"],
                leader=None if leader is None or leader < 0 else leader,
                epoch=details.get("leader_epoch", _UNKNOWN),
                unclean=bool(details.get("unclean")),
            )
        )
        lines.append(event["line"])
    return tuple(found), np.array(lines, np.int64)


def _log_end(traces: pa.Table, elections: Int64Array) -> _LogEnd:
    """The log end by what was produced and replicated.

    What a follower fetches may be old, so that a log end counts only while no greater one was seen
    in the same leader term.

    :param elections: The lines of the elections.
    """
    produced = _answered_exchanges(traces, "Produce")
    produced = produced.filter(pc.greater_equal(produced["offset"], 0))
    first, last, at = _spans(produced["batches"])
    sizes = np.bincount(at, weights=last - first + 1, minlength=produced.num_rows)
    fetched = _answered_exchanges(traces, "Fetch", replicas=True)
    _, ends, of = _spans(fetched["batches"])
    times = np.concatenate((_times(produced), _times(fetched)[of]))
    lines = np.concatenate((_longs(produced, "line"), _longs(fetched, "line")[of]))
    values = np.concatenate((_longs(produced, "offset") + sizes.astype(np.int64), ends + 1))
    order = np.argsort(lines, kind="stable")
    times, lines, values = times[order], lines[order], values[order]
    # A running maximum that begins again with each leader term.
    terms = np.searchsorted(elections, lines)
    lifted = values + terms * (values.max(initial=0) + 1)
    seen = lifted >= np.maximum.accumulate(lifted)
    return _LogEnd(times=times[seen], values=values[seen], leader_terms=terms[seen])


def _lags(fetches: pa.Table, elections: Int64Array, log_end: _LogEnd) -> tuple[FollowerLag, ...]:
    """How far behind each follower was when it asked for more, where that is known."""
    if not len(log_end.times):
        return ()
    order = np.argsort(log_end.times, kind="stable")
    times, offsets = _longs(fetches, "time_ms"), _longs(fetches, "fetch_offset")
    at = np.searchsorted(log_end.times[order], times, side="right") - 1
    terms = np.searchsorted(elections, _longs(fetches, "line"))
    # What the leader before had says nothing of this one.
    known = (at >= 0) & (offsets >= 0) & (log_end.leader_terms[order][at] == terms)
    behind = np.maximum(log_end.values[order][at] - offsets, 0)
    brokers = _longs(fetches, "replica_id")
    return tuple(
        FollowerLag(broker=int(broker), records=downsample(times[mine], behind[mine]))
        for broker in np.unique(brokers[known])
        for mine in [known & (brokers == broker)]
    )


def _every_nth(elections: tuple[Election, ...]) -> tuple[Election, ...]:
    """At most `MAX_MARKS` of them, evenly."""
    step = -(-len(elections) // MAX_MARKS) or 1
    return elections[::step]


def _answered_exchanges(traces: pa.Table, api: str, *, replicas: bool | None = None) -> pa.Table:
    """Answered exchanges of an API, with followers (or clients) alone if asked for."""
    rows = traces.filter(pc.and_(pc.equal(traces["api"], api), pc.is_valid(traces["answered_ms"])))
    if replicas is None:
        return rows
    asks = pc.greater_equal(pc.fill_null(rows["replica_id"], _UNKNOWN), 0)
    return rows.filter(asks if replicas else pc.invert(asks))


def _spans(lists: pa.ChunkedArray) -> tuple[Int64Array, Int64Array, Int64Array]:
    """First and last offsets of all batches in these lists, and in which list each is."""
    joined = lists.combine_chunks()
    at = pc.list_parent_indices(joined).to_numpy(zero_copy_only=False).astype(np.int64)
    batches = pc.list_flatten(joined)
    columns = pa.table(
        {name: pc.struct_field(batches, name) for name in ("base_offset", "last_offset")}
    )
    return _longs(columns, "base_offset"), _longs(columns, "last_offset"), at


def _times(answers: pa.Table) -> Int64Array:
    """When these were answered."""
    return _longs(answers, "answered_ms")


def _longs(table: pa.Table, name: str) -> Int64Array:
    """A column as 64-bit integers, -1 where it is null."""
    column = pc.fill_null(table[name].cast(pa.int64()), _UNKNOWN)
    values: Int64Array = column.to_numpy()
    return values
