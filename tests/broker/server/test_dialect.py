"""A connection reads and writes the versions of the draft that its client speaks."""

from __future__ import annotations

from json import dumps, loads

import pytest

from fencepost.control.message_json import WHOLE, response_json
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.codec import decode_response, encode_request
from fencepost.protocol.codec.drafts import KIP_320_DRAFT, Draft, DraftVersion
from fencepost.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.broker.server.edge import Edge, PureClient

LIST_OFFSETS = BY_NAME["list_offsets"]
TOPIC = ListOffsetsTopic(name="t", partitions=(ListOffsetsPartition(timestamp=-1),))
REQUEST = ListOffsetsRequest(replica_id=-1, topics=(TOPIC,))
AS_VERSION_11 = Draft(name="later", versions={("list_offsets", 12): DraftVersion(base=11)})


def ask(edge: Edge, version: int, dialect: Draft | None) -> PureClient:
    client = edge.open()
    client.connection.dialect = dialect
    client.send(b"".join(encode_request(LIST_OFFSETS, version, 1, "c", REQUEST, dialect)))
    return client


def partition_of(shown: object) -> dict[str, object]:
    partition: dict[str, object] = loads(dumps(shown))["topics"][0]["partitions"][0]
    return partition


def test_the_answer_has_the_schema_of_the_draft() -> None:
    edge = Edge()
    (drafted,), (kafkas,) = (ask(edge, 4, dialect).frames() for dialect in (KIP_320_DRAFT, None))
    assert drafted != kafkas
    assert sorted(drafted[19:]) == sorted(kafkas[19:]), "a partition has its fields in other order"
    as_read = decode_response(LIST_OFFSETS, 4, drafted, 4, KIP_320_DRAFT)
    assert as_read == decode_response(LIST_OFFSETS, 4, kafkas, 4)
    assert as_read.topics[0].partitions[0].offset == 0


def test_the_journal_reads_exchanges_by_the_draft_of_their_connection() -> None:
    edge = Edge()
    for dialect in (KIP_320_DRAFT, None):
        ask(edge, 4, dialect)
    first, second = edge.server.journal
    assert first.response() == second.response()
    shown, other = (response_json(each, set(), WHOLE) for each in (first, second))
    assert shown == other
    assert list(partition_of(shown)) == [
        *("partition_index", "offset", "leader_epoch", "timestamp", "error_code")
    ]
    assert list(partition_of(other))[1] == "error_code"


@pytest.mark.parametrize("dialect", [None, KIP_320_DRAFT, AS_VERSION_11])
def test_a_version_that_only_a_draft_has_is_served_where_it_is_spoken(
    dialect: Draft | None,
) -> None:
    client = Edge().open()
    client.connection.dialect = dialect
    client.send(b"".join(encode_request(LIST_OFFSETS, 12, 1, "c", REQUEST, AS_VERSION_11)))
    if dialect is not AS_VERSION_11:
        assert (client.frames(), client.connection.is_closing) == ([], True)
        return
    (frame,) = client.frames()
    answer = decode_response(LIST_OFFSETS, 12, frame, 5, dialect)
    assert answer.topics[0].partitions[0].offset == 0


def test_a_brokers_ceiling_holds_for_drafts() -> None:
    client = ask(Edge(api_max={"list_offsets": 11}), 12, AS_VERSION_11)
    assert (client.frames(), client.connection.is_closing) == ([], True)
