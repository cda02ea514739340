"""Rows of logs and of the tier, and their metadata, for tests of the rules."""

from __future__ import annotations

from dataclasses import replace

from fencepost.pipeline.audit.rule import ReplicaMetadata, TierSegment

Row = dict[str, object]


def batch(base: int, last: int, epoch: int = 0, **other: object) -> Row:
    """A row of broker 1, unless it is said to be of another one or of the tier."""
    row: Row = {
        "place": "log",
        "broker": 1,
        "segment": 0,
        "position": base * 100,
        "size": (last - base + 1) * 100,
        "base_offset": base,
        "last_offset": last,
        "count": last - base + 1,
        "epoch": epoch,
        "crc": base * 10 + epoch,
        "attributes": 0,
        **other,
    }
    if row["place"] == "tier":
        row["broker"] = None
    return row


def of_broker(broker: int, *rows: Row) -> list[Row]:
    return [{**row, "broker": broker} for row in rows]


def in_tier(segment_id: str, *rows: Row) -> list[Row]:
    first = rows[0]["base_offset"]
    where: Row = {"place": "tier", "broker": None, "segment_id": segment_id, "segment": first}
    return [{**row, **where} for row in rows]


def missing(name: str, segment: int) -> Row:
    return {
        "place": "log",
        "broker": 1,
        "segment": segment,
        "problem": "missing",
        "message": f"{segment:020d}{name} is not there",
    }


def replica(broker: int = 1, **what: object) -> ReplicaMetadata:
    known = ReplicaMetadata(
        broker=broker, clean=True, segments=(0,), epochs=((0, 0),), recovery_point=0, topic_id="a"
    )
    return replace(known, **what)  # type: ignore[arg-type]  # as the tests say


def copied(segment_id: str, start: int, end: int, *epochs: tuple[int, int]) -> TierSegment:
    return TierSegment(
        id=segment_id,
        topic_id="a",
        start_offset=start,
        end_offset=end,
        epochs=epochs or ((0, start),),
        bytes=(end - start + 1) * 100,
        finished=True,
    )
