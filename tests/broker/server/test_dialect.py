"""A connection speaks the dialect that its client has asked for in ApiVersions, and no other."""

from __future__ import annotations

from json import dumps, loads
from struct import pack
from typing import Any

import pytest

from fencepost.broker.faults.kinds import Refuse
from fencepost.broker.handlers import metadata
from fencepost.broker.handlers.context import Context
from fencepost.control.message_json import WHOLE, exchange_state, response_json
from fencepost.protocol.apis import APIS, BY_KEY, BY_NAME
from fencepost.protocol.codec import decode_response, encode_request
from fencepost.protocol.codec.drafts import KIP_320_DRAFT, Draft, DraftVersion
from fencepost.protocol.codec.error_codes import error_code_finder
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.api_versions import ApiVersionsRequest
from fencepost.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from fencepost.protocol.messages.find_coordinator import FindCoordinatorRequest
from fencepost.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from fencepost.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from fencepost.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from fencepost.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.broker.faults.faulty import rule
from tests.harness.driver import versions
from tests.harness.socketless_server import PureClient, SocketlessServer

LIST_OFFSETS = BY_NAME["list_offsets"]
TOPIC = ListOffsetsTopic(name="t", partitions=(ListOffsetsPartition(timestamp=-1),))
REQUEST = ListOffsetsRequest(replica_id=-1, topics=(TOPIC,))
AS_VERSION_11 = Draft(name="later", versions={("list_offsets", 12): DraftVersion(base=11)})
ASKING = ApiVersionsRequest(
    client_software_name="tests", client_software_version="1", dialect_requested=True
)
REPLACED = [("fetch", 9), ("list_offsets", 4), ("offset_commit", 6), ("offset_fetch", 5)]


def requests(name: str, version: int) -> object:
    """A request about partition 0 of topic t, for each of the four APIs."""
    match name:
        case "fetch":
            partition = FetchPartition(partition_max_bytes=1000)
            return FetchRequest(topics=(FetchTopic(topic="t", partitions=(partition,)),))
        case "list_offsets":
            return REQUEST
        case "offset_commit":
            commit = OffsetCommitRequestTopic(
                name="t", partitions=(OffsetCommitRequestPartition(committed_offset=1),)
            )
            return OffsetCommitRequest(
                group_id="g", generation_id_or_member_epoch=-1, topics=(commit,)
            )
        case _ if version < 8:
            wanted = OffsetFetchRequestTopic(name="t", partition_indexes=(0,))
            return OffsetFetchRequest(group_id="g", topics=(wanted,))
        case _:
            topics = (OffsetFetchRequestTopics(name="t", partition_indexes=(0,)),)
            return OffsetFetchRequest(
                groups=(OffsetFetchRequestGroup(group_id="g", topics=topics),)
            )


def served(dialect: Draft | None = KIP_320_DRAFT) -> SocketlessServer:
    """A server whose broker coordinates all groups."""
    edge = SocketlessServer(dialect=dialect)
    edge.open().ask("find_coordinator", 1, FindCoordinatorRequest(key="g"))
    edge.cluster.scheduler.run_due()
    return edge


def ask_for_dialect(client: PureClient, version: int = 3) -> None:
    client.dialect = KIP_320_DRAFT
    client.ask("api_versions", version, ASKING)


def asked(edge: SocketlessServer, version: int = 3) -> PureClient:
    """A client that has asked for the dialect."""
    client = edge.open()
    ask_for_dialect(client, version)
    return client


def errors_in(client: PureClient, number: int, name: str, version: int) -> tuple[int, ...]:
    answer = client.answer(number, name, version)
    return error_code_finder(BY_NAME[name], version, client.dialect)(answer)


# -- bytes, by hand -----------------------------------------------------------------------------

TIME = 1_600_000_000_000
T = pack(">ih1si", 1, 1, b"t", 1)
"""An array of one topic t, and the size of its array of partitions, which is one."""
ASKS = b"\x02f\x020\x01\xd0\x50\x00"
"""Two compact strings, and one tagged field: number 10320, of no bytes."""
FRAMES = {
    "fetch": (
        pack(">iiiibii", -1, 0, 1, 1000, 0, 0, -1)
        + T
        + pack(">iqqii", 0, 4, 0, 0, 99)
        # no forgotten topics
        + pack(">i", 0),
        # LOG_TRUNCATION, no watermarks, null for aborted transactions, and no records
        pack(">ihi", 0, 0, 0) + T + pack(">ihqqqii", 0, 2702, -1, -1, -1, -1, 0),
    ),
    "list_offsets": (
        pack(">ib", -1, 0) + T + pack(">iq", 0, -1),
        pack(">i", 0) + T + pack(">iqiqh", 0, 0, 0, -1, 0),
    ),
    "offset_commit": (
        pack(">h1sih", 1, b"g", -1, 0) + T + pack(">iqqih1s", 0, 40, TIME, 5, 1, b"x"),
        pack(">i", 0) + T + pack(">ih", 0, 0),
    ),
    "offset_fetch": (
        pack(">h1s", 1, b"g") + T + pack(">i", 0),
        pack(">i", 0) + T + pack(">iqqih1sh", 0, 40, TIME, 5, 1, b"x", 0) + pack(">h", 0),
    ),
}
"""Bodies of a request and of its answer, in the order in which they are sent."""


def frame(key: int, version: int, number: int, body: bytes) -> bytes:
    head = pack(">hhih1s", key, version, number, 1, b"c")
    head += b"\0" if key == 18 else b""
    return pack(">i", len(head + body)) + head + body


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("in_one_piece", [True, False])
def test_frames_of_the_draft_are_these_bytes(version: int, *, in_one_piece: bool) -> None:
    client = served().open()
    frames = [frame(18, version, 1, ASKS)]
    for number, (name, draft) in enumerate(REPLACED, start=2):
        frames.append(frame(BY_NAME[name].key, draft, number, FRAMES[name][0]))
    for part in [b"".join(frames)] if in_one_piece else frames:
        client.send(part)
    first, *answers = client.frames()
    named = b"\x0ekip.320.draft\x00\x01\x00\x01\x00"
    assert named in first, "a compact string, the lowest and the highest level, no tagged fields"
    assert answers == [
        pack(">i", number) + FRAMES[name][1] for number, (name, _) in enumerate(REPLACED, start=2)
    ]


# -- negotiation --------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions("api_versions"))
@pytest.mark.parametrize("dialect", [KIP_320_DRAFT, None])
def test_the_feature_is_named_where_the_dialect_is_served(
    dialect: Draft | None, version: int
) -> None:
    client = SocketlessServer(dialect=dialect).open()
    request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    client.ask("api_versions", version, request)
    answer = client.answer(0, "api_versions", version)
    levels = [
        (each.min_version, each.max_version)
        for each in answer.supported_features
        if each.name == "kip.320.draft"
    ]
    assert levels == ([(1, 1)] if dialect and version >= 3 else [])
    assert all(each.name != "kip.320.draft" for each in answer.finalized_features)


@pytest.mark.parametrize("name", [name for name, _ in REPLACED])
def test_exactly_four_versions_are_refused_on_a_connection_that_did_not_ask(name: str) -> None:
    edge = served()
    client = edge.open()
    for number, version in enumerate(versions(name)):
        client.ask(name, version, requests(name, version))
        edge.pass_time(1)
        errors = errors_in(client, number, name, version)
        is_refused = ErrorCode.UNSUPPORTED_VERSION in errors
        assert is_refused is ((name, version) in REPLACED), version
    assert not client.connection.is_closing


@pytest.mark.parametrize(("name", "version"), REPLACED)
def test_a_refusal_has_kafkas_schema(name: str, version: int) -> None:
    client = served().open()
    client.ask(name, version, requests(name, version))
    (refused,) = client.frames()
    partition = {
        "fetch": pack(">ihqqqii", 0, 35, -1, -1, -1, 0, 0),
        "list_offsets": pack(">ihqqi", 0, 35, -1, -1, -1),
        "offset_commit": pack(">ih", 0, 35),
        "offset_fetch": pack(">iqihh", 0, -1, -1, 0, 35) + pack(">h", 35),
    }[name]
    head = pack(">ihi", 0, 35, 0) if name == "fetch" else pack(">i", 0)
    assert refused == pack(">i", 1) + head + T + partition


def test_nothing_is_committed_by_a_refused_version() -> None:
    client = served().open()
    client.ask("offset_commit", 6, requests("offset_commit", 6))
    client.ask("offset_fetch", 4, requests("offset_fetch", 4))
    ((partition,),) = (topic.partitions for topic in client.answer(1, "offset_fetch", 4).topics)
    assert partition.committed_offset == -1


@pytest.mark.parametrize("name", [name for name, _ in REPLACED])
def test_every_version_is_served_on_a_connection_that_asked(name: str) -> None:
    edge = served()
    client = asked(edge)
    for number, version in enumerate(versions(name), start=1):
        client.ask(name, version, requests(name, version))
        edge.pass_time(1)
        assert ErrorCode.UNSUPPORTED_VERSION not in errors_in(client, number, name, version)


def test_a_connection_speaks_the_dialect_until_it_ends() -> None:
    client = asked(served())
    plain = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    client.ask("api_versions", 3, plain)
    client.ask("list_offsets", 4, REQUEST)
    assert client.answer(2, "list_offsets", 4).topics[0].partitions[0].error_code == 0


@pytest.mark.parametrize("version", [0, 2, 3, 4])
def test_a_client_that_does_not_ask_speaks_kafkas_versions(version: int) -> None:
    client = served().open()
    plain = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    client.ask("api_versions", version, plain)
    client.ask("list_offsets", 4, REQUEST)
    assert errors_in(client, 1, "list_offsets", 4) == (ErrorCode.UNSUPPORTED_VERSION,)


def test_each_connection_asks_for_itself() -> None:
    edge = served()
    asked(edge)
    other = edge.open()
    other.ask("list_offsets", 4, REQUEST)
    assert errors_in(other, 0, "list_offsets", 4) == (ErrorCode.UNSUPPORTED_VERSION,)


@pytest.mark.parametrize("version", [3, 4])
def test_a_cluster_without_the_dialect_passes_the_field_over(version: int) -> None:
    edge = served(None)
    asking, plain = edge.open(), edge.open()
    asking.send(frame(18, version, 1, ASKS))
    plain.send(frame(18, version, 1, ASKS[:4] + b"\0"))
    for client in (asking, plain):
        client.ask("list_offsets", 4, REQUEST)
        client.ask("fetch", 9, requests("fetch", 9))
    assert asking.frames() == plain.frames()
    assert asking.answer(1, "list_offsets", 4).topics[0].partitions[0].offset == 0


def test_a_request_that_is_refused_asks_for_nothing() -> None:
    edge = served()
    client = edge.open()
    client.dialect = KIP_320_DRAFT
    client.ask("api_versions", 3, ApiVersionsRequest(dialect_requested=True))  # without a name
    client.dialect = None
    client.ask("list_offsets", 4, REQUEST)
    assert errors_in(client, 0, "api_versions", 3) == (ErrorCode.INVALID_REQUEST,)
    assert errors_in(client, 1, "list_offsets", 4) == (ErrorCode.UNSUPPORTED_VERSION,)


def test_a_request_that_a_fault_refuses_asks_for_nothing() -> None:
    edge = served()
    edge.cluster.faults.add(rule("api_versions", Refuse(code=41)))
    client = asked(edge)
    assert errors_in(client, 0, "api_versions", 3) == (41,)
    client.dialect = None
    client.ask("list_offsets", 4, REQUEST)
    assert errors_in(client, 1, "list_offsets", 4) == (ErrorCode.UNSUPPORTED_VERSION,)


@pytest.mark.parametrize("is_asked", [True, False])
def test_large_requests_are_read_by_the_dialect_too(*, is_asked: bool) -> None:
    """Of OffsetCommit, whose partitions have other sizes in the draft."""
    edge = served()
    client = asked(edge) if is_asked else edge.open()
    partitions = tuple(
        OffsetCommitRequestPartition(partition_index=index, committed_offset=index)
        for index in range(30_000)
    )
    topic = OffsetCommitRequestTopic(name="t", partitions=partitions)
    request = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=(topic,))
    client.ask("offset_commit", 6, request)
    while len(client.frames()) <= is_asked and not client.connection.is_closing:
        edge.cluster.scheduler.run_due()
        client.turn()
    errors = errors_in(client, int(is_asked), "offset_commit", 6)
    assert (ErrorCode.UNSUPPORTED_VERSION in errors) is not is_asked
    assert len(errors) == 30_000 - is_asked, "there is partition 0"


def test_metadata_is_cached_for_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    handled: list[object] = []
    handle = metadata.handle

    def counted(ctx: Context, request: MetadataRequest) -> object:
        handled.append(request)
        return handle(ctx, request)

    monkeypatch.setattr(metadata, "handle", counted)
    edge = served()
    request = MetadataRequest(topics=(MetadataRequestTopic(name="t"),))
    for client in (edge.open(), asked(edge), asked(edge)):
        client.ask("metadata", 9, request)
    first, second, third = (
        exchange for exchange in edge.server.journal if exchange.api.name == "metadata"
    )
    assert first.response() == second.response() == third.response()
    assert len(handled) == 1


# -- the journal, and drafts with versions of their own -----------------------------------------


def partition_of(shown: object) -> dict[str, Any]:
    partition: dict[str, Any] = loads(dumps(shown))["topics"][0]["partitions"][0]
    return partition


def test_the_journal_reads_exchanges_by_the_dialect_of_their_connection() -> None:
    edge = served()
    client = asked(edge)
    client.ask("list_offsets", 4, REQUEST)
    client.ask("list_offsets", 5, REQUEST)
    edge.open().ask("list_offsets", 4, REQUEST)
    *_, asks, first, second, refused = edge.server.journal
    states = [
        exchange_state(each, set(), lambda _: None, WHOLE)
        for each in (asks, first, second, refused)
    ]
    assert [each.dialect for each in states] == [None, "kip-320-draft", None, None]
    assert states[0].request["dialect_requested"] is True
    answer, other, none = (
        partition_of(response_json(each, set(), WHOLE)) for each in (first, second, refused)
    )
    assert answer == other
    assert list(answer) == [
        *("partition_index", "offset", "leader_epoch", "timestamp", "error_code")
    ]
    assert list(other)[1] == "error_code"
    assert none["error_code"] == ErrorCode.UNSUPPORTED_VERSION


def test_the_journal_shows_a_commits_timestamp() -> None:
    edge = served()
    client = asked(edge)
    partition = OffsetCommitRequestPartition(committed_offset=1, timestamp=TIME)
    topic = OffsetCommitRequestTopic(name="t", partitions=(partition,))
    request = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=(topic,))
    client.ask("offset_commit", 6, request)
    *_, exchange = edge.server.journal
    shown = exchange_state(exchange, set(), lambda _: None, WHOLE)
    assert partition_of(shown.request)["timestamp"] == TIME


@pytest.mark.parametrize("dialect", [None, KIP_320_DRAFT, AS_VERSION_11])
def test_a_version_that_only_a_draft_has_is_served_where_it_is_spoken(
    dialect: Draft | None,
) -> None:
    client = SocketlessServer(dialect=dialect).open()
    client.connection.peer.dialect = dialect
    client.send(b"".join(encode_request(LIST_OFFSETS, 12, 1, "c", REQUEST, AS_VERSION_11)))
    if dialect is not AS_VERSION_11:
        assert (client.frames(), client.connection.is_closing) == ([], True)
        return
    (answered,) = client.frames()
    answer = decode_response(LIST_OFFSETS, 12, answered, 5, dialect)
    assert answer.topics[0].partitions[0].offset == 0


def test_a_brokers_ceiling_holds_for_drafts() -> None:
    for name, version in REPLACED:
        edge = SocketlessServer(api_max={name: version - 1}, dialect=KIP_320_DRAFT)
        client = asked(edge)
        client.ask(name, version, requests(name, version))
        assert (len(client.frames()), client.connection.is_closing) == (1, True)


def test_no_other_api_is_refused() -> None:
    replaced = [
        (api.name, version)
        for api in APIS
        for version in range(api.min_version, api.max_version + 1)
        if KIP_320_DRAFT.replaces(BY_KEY[api.key], version)
    ]
    assert replaced == REPLACED
