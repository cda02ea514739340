"""What the verbs on records and groups take, and the one line about anything else."""

from __future__ import annotations

from typing import Any

import pytest

from fencepost.verbs.bodies import MAX_LISTED, Body
from fencepost.verbs.catalogue import VERBS
from fencepost.verbs.group_bodies import GroupWaitBody, OffsetsBody, TopicsBody
from fencepost.verbs.problems import InvalidModel
from fencepost.verbs.record_bodies import ExpectBody, NewRecordBody, ProduceBody, RecordsQuery
from fencepost.verbs.remote import validate_body


def test_a_text_is_a_record_with_this_value() -> None:
    body = ProduceBody.model_validate({"records": ["a", {"key": "k"}]})
    assert body.all_records() == (NewRecordBody(value="a"), NewRecordBody(key="k"))


def test_one_record_needs_no_list() -> None:
    body = ProduceBody.model_validate({"key": "k", "headers": {"a": "1"}, "timestamp": 7})
    assert body.all_records() == (NewRecordBody(key="k", headers={"a": "1"}, timestamp=7),)


@pytest.mark.parametrize(
    ("model", "given", "said"),
    [
        (ProduceBody, {}, "give records, or the key, value, headers and timestamp of one"),
        (
            ProduceBody,
            {"records": ["a"], "key": "k"},
            "give records, or the key, value, headers and timestamp of one",
        ),
        (ProduceBody, {"records": []}, "records: give at least one"),
        (ProduceBody, {"records": [7]}, "records[0]: input should be a valid string"),
        (
            ProduceBody,
            {"records": ["a", {"value": 7}]},
            "records[1].value: input should be a valid string",
        ),
        (
            ProduceBody,
            {"records": [{"val": "a"}]},
            "records[0]: there is no field 'val'; there are key, value, headers, timestamp",
        ),
        (
            ProduceBody,
            {"records": [{"value": "%"}], "encoding": "base64"},
            "records[0].value: input should be base64",
        ),
        (ProduceBody, {"records": ["%"], "encoding": "base64"}, "records[0]: input should be base"),
        (
            ProduceBody,
            {"key": "k", "headers": {"a": 1}},
            "headers.a: input should be a valid string",
        ),
        (ProduceBody, {"key": "k", "headers": 1}, "headers: input should be a valid object"),
        (ProduceBody, {"key": "k", "headers": [["a"]]}, "headers[0][1]: field required"),
        (
            ProduceBody,
            {"key": "k", "headers": [["a", "\ud800"]]},
            "headers[0]: input should be text that UTF-8 can encode",
        ),
        (ProduceBody, {"key": "k", "acks": 1}, "acks: input should be 'all' or '1'"),
        (ProduceBody, {"key": "k", "timestamp": -1}, "timestamp: input should be greater than or"),
        (
            ProduceBody,
            {"records": ["a"] * (MAX_LISTED + 1)},
            f"records: array should have at most {MAX_LISTED} items",
        ),
        (RecordsQuery, {"limit": "4097"}, "limit: input should be less than or equal to 4096"),
        (TopicsBody, {"topics": []}, "topics: give at least one"),
        (TopicsBody, {"topics": ["t"] * (MAX_LISTED + 1)}, "topics: array should have at most"),
        (OffsetsBody, {"offsets": []}, "offsets: give at least one"),
        (OffsetsBody, {"offsets": ["t:0"]}, "input should be an object, or text such as orders:0:"),
        (
            OffsetsBody,
            {"offsets": [{"topic": "t", "partition": 0}]},
            "offsets[0].offset: field required",
        ),
        (GroupWaitBody, {"state": "Stabel"}, "state: input should be 'Empty', 'PreparingRebalanc"),
        (ExpectBody, {"value": 7}, "value: input should be a valid string"),
        (ExpectBody, {"count": 0}, "count: input should be greater than or equal to 1"),
        (RecordsQuery, {"from": "1", "last": "2"}, "give from or last, not both"),
        (RecordsQuery, {"from": "3", "to": "2"}, "to: it lies before from"),
        (RecordsQuery, {"from": "-1"}, "from: input should be greater than or equal to 0"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    model: type[Body], given: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidModel) as raised:
        model.model_validate(given)
    assert str(raised.value).startswith(said)
    assert ";" not in str(raised.value).removeprefix(said)


def test_null_is_expected_and_what_is_left_out_is_not() -> None:
    verb = VERBS["expect_records"]
    left_out = validate_body(verb, {"key": "k", "value": ...})
    null = validate_body(verb, {"key": None, "value": None})
    assert left_out is not None
    assert null is not None
    assert left_out.to_json() == {"key": "k"}
    assert null.to_json() == {"key": None, "value": None}
