from __future__ import annotations

import json
from itertools import product
from uuid import UUID

import pytest
from msgspec.structs import replace

from fencepost.protocol.byte_utils import format_uuid, parse_uuid
from fencepost.storage.tier.segment_metadata import (
    TRANSITIONS,
    CorruptMetadata,
    RemoteLogSegmentState,
    RemoteSegment,
)
from tests.storage.tier.segments import lineage, segment

STARTED, FINISHED, DELETING, DELETED = RemoteLogSegmentState


def test_metadata_come_back_from_their_json() -> None:
    whole = segment(30, 59, (1, 30), (2, 45), number=2**127 + 5, state=DELETING)
    assert RemoteSegment.from_json(whole.to_json()) == whole


def test_metadata_without_the_epoch_of_the_copy_are_older_than_it() -> None:
    copied = replace(segment(30, 59, (1, 30)), leader_epoch=3)
    fields = json.loads(copied.to_json())
    assert RemoteSegment.from_json(json.dumps(fields).encode()).leader_epoch == 3
    del fields["leaderEpoch"]
    assert RemoteSegment.from_json(json.dumps(fields).encode()).leader_epoch == -1


def test_the_json_has_kafkas_fields() -> None:
    fields = json.loads(segment(30, 59, (1, 30), (2, 45)).to_json())
    assert fields["remoteLogSegmentId"]["topicIdPartition"] == {
        "name": "t",
        "id": format_uuid(UUID(int=7)),
        "partition": 0,
    }
    assert fields["segmentLeaderEpochs"] == [
        {"leaderEpoch": 1, "offset": 30},
        {"leaderEpoch": 2, "offset": 45},
    ]
    assert (fields["startOffset"], fields["endOffset"]) == (30, 59)
    assert fields["remoteLogSegmentState"] == "COPY_SEGMENT_FINISHED"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"{}",
        segment(0, 1).to_json().replace(b'"startOffset": 0', b'"startOffset": "0"'),
        segment(0, 1).to_json().replace(b'"startOffset": 0', b'"startOffset": true'),
        segment(0, 1).to_json().replace(b"COPY_SEGMENT_FINISHED", b"COPIED"),
        segment(0, 1).to_json().replace(b'[{"leaderEpoch": 0, "offset": 0}]', b"[]"),
        segment(0, 1).to_json().replace(format_uuid(UUID(int=7)).encode(), b"x"),
    ],
)
def test_what_is_no_metadata_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptMetadata):
        RemoteSegment.from_json(data)


def test_states_follow_on_each_other_in_one_direction() -> None:
    ways = {(before, after) for before, all_after in TRANSITIONS.items() for after in all_after}
    assert ways == {
        (STARTED, FINISHED),
        (STARTED, DELETING),
        (FINISHED, DELETING),
        (DELETING, DELETED),
    }
    for before, after in product(RemoteLogSegmentState, repeat=2):
        if (before, after) in ways or before is after:
            became = segment(0, 1, state=before).with_state(after, broker_id=3, now_ms=5)
            assert (became.state, became.broker_id, became.event_ms) == (after, 3, 5)
        else:
            with pytest.raises(ValueError, match="cannot be"):
                segment(0, 1, state=before).with_state(after, broker_id=3, now_ms=5)


def test_only_what_is_whole_is_served() -> None:
    assert [segment(0, 1, state=state).is_served for state in RemoteLogSegmentState] == [0, 1, 0, 0]


def test_an_id_is_22_characters_that_no_path_minds() -> None:
    number = UUID(bytes=b"\xff\xef" * 8)
    assert len(format_uuid(number)) == 22
    assert not set(format_uuid(number)) & set("+/=")
    assert parse_uuid(format_uuid(number)) == number


def test_the_last_epoch_is_that_of_the_last_record() -> None:
    assert segment(0, 9, (1, 0), (4, 5)).last_epoch == 4
    assert lineage((1, 2))[0].epoch == 1
