"""What a real Apache Kafka 4.3.1 answered, row by row; no Java needed."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.oracle.asking import Row
from tests.oracle.comparing import (
    ADVERTISED_OTHERWISE,
    AVAILABLE,
    FAILOVER,
    Recording,
    differences,
    key_of,
    told_in_order,
)
from tests.oracle.questions import failover

NOT_LEADER = "err=6 NOT_LEADER_OR_FOLLOWER offset=-1 epoch=-1 ts=-1"
GATED = "err=78 OFFSET_NOT_AVAILABLE offset=-1 epoch=-1 ts=-1"


def test_every_recorded_row_is_answered_as_kafka_did(
    recording: Recording, fencepost_says: list[Row]
) -> None:
    different = differences(recording.rows, fencepost_says, recording.excepted)
    assert not different, f"{len(different)} rows differ\n" + "\n".join(different)
    assert told_in_order(recording.rows, fencepost_says)


def test_every_question_has_a_recorded_answer(
    recording: Recording, fencepost_says: list[Row]
) -> None:
    assert Counter(map(key_of, fencepost_says)) == Counter(map(key_of, recording.rows))


def test_kafka_advertises_the_same_versions(
    recording: Recording, fencepost_says: list[Row]
) -> None:
    """The list of keys may be shorter, and is nothing else."""

    def versions(rows: list[Row]) -> dict[int, tuple[int, int]]:
        found = [answer for _, request, answer in rows if request == "full v4 key list"]
        return {key: (low, high) for keys in found for key, low, high in keys}

    want, got = versions(recording.rows), versions(fencepost_says)
    different = {key for key in got if got[key] != want.get(key)}
    assert different <= ADVERTISED_OTHERWISE.keys()


def test_every_exception_names_a_recorded_row(recording: Recording) -> None:
    assert {key_of(row) for row in recording.rows} >= recording.excepted.keys()


def hint(leader: int, node: int, rack: int) -> str:
    endpoint = f"'NodeId': {node}, 'Host': '127.0.0.1', 'Port': 1919{node}, 'Rack': 'r{rack}'"
    current = f"{{'CurrentLeader(tag1)': {{'LeaderId': {leader}, 'LeaderEpoch': 2}}}}"
    return f"{current} {{'NodeEndpoints(tag0)': [{{{endpoint}}}]}}"


@pytest.mark.parametrize(
    ("want", "got"),
    [
        (("Fetch", "r", "err=0 hw=6"), ("Fetch", "r", "err=0 hw=7")),
        (("ApiVersions", "v0", "keys=75"), ("ApiVersions", "v0", "keys=0")),
        (("Fetch", "r", 0.7), ("Fetch", "r", 0.0)),
        (("Fetch", "r", "err=0"), ("Fetch", "another", "err=0")),
        (("Metadata", "r", "{'LeaderId': -1}"), ("Metadata", "r", "{'LeaderId': 1}")),
        (("Fetch", "r", hint(3, 3, 3)), ("Fetch", "r", hint(3, 1, 1))),
        (("Fetch", "r", hint(3, 3, 3)), ("Fetch", "r", hint(3, 3, 1))),
    ],
)
def test_a_different_answer_is_seen(want: Row, got: Row) -> None:
    assert differences([want], [got])


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ("{'Name': 'o42952-data'}", "{'Name': 'o00001-data'}"),
        ("Timestamp 1795250155303 of", "Timestamp 1700000000123 of"),
        ("p0={'LeaderId': 1}", "p0={'LeaderId': 3}"),
        ("3.02s leader=1", "0.10s leader=1"),
        (hint(3, 3, 3), hint(1, 1, 1)),
    ],
)
def test_what_differs_between_real_clusters_is_masked(want: str, got: str) -> None:
    assert not differences([("Metadata", "r", want)], [("Metadata", "r", got)])


@pytest.mark.parametrize(
    ("seen", "right"),
    [
        ([NOT_LEADER, GATED, AVAILABLE], True),
        ([GATED, AVAILABLE], True),
        ([AVAILABLE], True),
        ([GATED, NOT_LEADER, AVAILABLE], False),
        ([GATED, AVAILABLE.replace("5", "4")], False),
        (["err=3 UNKNOWN_TOPIC_OR_PARTITION offset=-1 epoch=-1 ts=-1", AVAILABLE], False),
    ],
)
def test_a_new_leader_may_tell_some_things_in_some_order(seen: list[str], right: bool) -> None:
    assert told_in_order(FAILOVER.rows, [(failover.SECTION, failover.SEQUENCE, seen)]) == right
