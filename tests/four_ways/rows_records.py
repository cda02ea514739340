"""Records that a test produces, reads and expects."""

from __future__ import annotations

from typing import Final

from tests.four_ways.meeting import TOPIC
from tests.four_ways.row import HOLD_THIRD, NEW_TOPIC, PLACE, THIRD, Row, Step, partition

_TOPIC: Final = {"topic": TOPIC}
_RECORD: Final = {"key": "17", "value": "two", "headers": {"a": "1"}, "timestamp": 7}
_TOMBSTONE: Final = {"key": "17", "timestamp": 7}
_PRODUCE: Final[Step] = ("produce_records", {**_TOPIC, "records": [_RECORD, _TOMBSTONE]})
_JSON: Final[Step] = (
    "produce_records",
    {**_TOPIC, "records": [{"value": {"id": 17}, "timestamp": 7}], "encoding": "json"},
)
_SHOWN: Final = {
    **_RECORD,
    "partition": 0,
    "offset": 0,
    "leader_epoch": 0,
    "encoding": "text",
    "transaction": None,
}

RECORDS: Final = (
    Row(
        verb="produce_records",
        command="records produce t --key 17 --value two --header a=1 --header a=2 --timestamp 7",
        given={
            **_TOPIC,
            "key": "17",
            "value": "two",
            "headers": [["a", "1"], ["a", "2"]],
            "timestamp": 7,
        },
        answers={"records": [{"partition": 0, "offset": 0}]},
        changes=partition(high_watermark=1),
        after=("read_records", PLACE),
        then={"records": [{"key": "17", "headers": [["a", "1"], ["a", "2"]]}]},
    ),
    Row(
        verb="produce_records",
        command="records produce t --record"
        ' {"value":"a","timestamp":7} --record {"key":"17","timestamp":7} --partition 0 --acks 1',
        given={
            **_TOPIC,
            "records": [{"value": "a", "timestamp": 7}, _TOMBSTONE],
            "partition": 0,
            "acks": "1",
        },
        answers={"records": [{"offset": 0}, {"offset": 1}]},
        after=("read_records", PLACE),
        then={"records": [{"key": None, "value": "a"}, {"key": "17", "value": None}]},
    ),
    Row(
        verb="produce_records",
        command='records produce t --value {"id":17} --encoding json --timestamp 7',
        given={**_TOPIC, "value": {"id": 17}, "encoding": "json", "timestamp": 7},
        after=("read_records", {**PLACE, "encoding": "json"}),
        then={"records": [{"value": {"id": 17}}]},
    ),
    Row(
        verb="produce_records",
        command="records produce t --value a --timeout-ms 1",
        given={**_TOPIC, "value": "a", "timeout_ms": 1},
        before=(NEW_TOPIC, ("hold", THIRD)),
        refused="REQUEST_TIMED_OUT",
        changes=partition(high_watermark=0),
    ),
    Row(
        verb="produce_records",
        command="records produce u --value a",
        given={"topic": "u", "value": "a"},
        refused="UNKNOWN_TOPIC_OR_PARTITION",
    ),
    Row(
        verb="read_records",
        command="records read t 0 --from 0 --to 1",
        given={**PLACE, "from": 0, "to": 1},
        before=(NEW_TOPIC, _PRODUCE),
        answers={"records": [_SHOWN], "next_offset": 1},
    ),
    Row(
        verb="read_records",
        command="records read t 0 --last 1 --encoding json --isolation read_committed",
        given={**PLACE, "last": 1, "encoding": "json", "isolation": "read_committed"},
        before=(NEW_TOPIC, _PRODUCE, _JSON),
        answers={"records": [{"offset": 2, "value": {"id": 17}}], "next_offset": 3},
    ),
    Row(
        verb="expect_records",
        command="records expect t --key 17 --value two --header a=1",
        given={**_TOPIC, "key": "17", "value": "two", "headers": {"a": "1"}},
        before=(NEW_TOPIC, _PRODUCE),
        answers={"records": [_SHOWN]},
    ),
    Row(
        verb="expect_records",
        command="records expect t --key 17 --no-value",
        given={**_TOPIC, "key": "17", "value": None},
        before=(NEW_TOPIC, _PRODUCE),
        answers={"records": [{"offset": 1, "value": None}]},
    ),
    Row(
        verb="expect_records",
        command='records expect t --value {"id":17} --encoding json',
        given={**_TOPIC, "value": {"id": 17}, "encoding": "json"},
        before=(NEW_TOPIC, HOLD_THIRD, _PRODUCE, _JSON),
        answers={"records": [{"offset": 2, "value": {"id": 17}}]},
    ),
    Row(
        verb="expect_records",
        command="records expect t --key 18 --timeout-ms 1",
        given={**_TOPIC, "key": "18", "timeout_ms": 1},
        before=(NEW_TOPIC, _PRODUCE),
        refused="REQUEST_TIMED_OUT",
    ),
)
