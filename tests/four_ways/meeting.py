"""What a Kafka client meets at a cluster, told so that two meetings can be compared."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any, Final, TypeAlias

from fencepost.client import Client, NewRecord, Partition, TransactionalProducer
from fencepost.client.consumer_protocol import encode_assignment, encode_subscription
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from fencepost.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from fencepost.protocol.records import crc_ok, iter_headers
from tests.harness.batches import build, produce_body
from tests.harness.typed_client import BlockingClient
from tests.harness.wire import ZERO_UUID, Body, Connection

Json: TypeAlias = Any
Meeting: TypeAlias = Callable[[tuple[str, int]], Json]
"""Meets the broker at an address."""

CLIENT_ID: Final = "tester"
TOPIC: Final = "t"
GROUP: Final = "g"
TRANSACTIONAL_ID: Final = "x"
LATE_MS: Final = 120
"""A delay that is seen, and not much more."""
_NOW_MS: Final = time.time_ns() // 10**6
_PATIENCE_S: Final = 30.0
_IN_VAIN_S: Final = 1.5
"""How long an answer is waited for that does not come."""


def connect(address: tuple[str, int], timeout_s: float = _PATIENCE_S) -> Connection:
    return Connection(address, timeout=timeout_s, client_id=CLIENT_ID)


def produce_in_vain(address: tuple[str, int]) -> Json:
    """As `produce`, by a client that expects no answer."""
    return produce(address, patience_s=_IN_VAIN_S)


def produce_to_silence(address: tuple[str, int]) -> Json:
    """As `produce`, by a client that expects that nothing is read."""
    return produce(address, patience_s=LATE_MS / 1000)


def late(meeting: Meeting) -> Meeting:
    """The same, and whether it took as long as a delay takes."""
    # Asked only where there is a delay: a busy machine may be as slow without.

    def timed(address: tuple[str, int]) -> Json:
        begun = time.monotonic()
        met = meeting(address)
        return {**met, "late": (time.monotonic() - begun) * 1000 >= LATE_MS}

    return timed


def produce_key(address: tuple[str, int]) -> Json:
    """As `produce`, a record with a key."""
    return produce(address, b"k")


def produce(
    address: tuple[str, int], key: bytes | None = None, *, patience_s: float = _PATIENCE_S
) -> Json:
    """One record to partition 0, acknowledged by its leader."""
    body = produce_body(TOPIC, build([(_NOW_MS, key, b"a")]), acks=1)

    def told(answer: Body) -> str:
        error = answer["Responses"][0]["PartitionResponses"][0]["ErrorCode"]
        return ErrorCode(error).name

    return _meet(address, "Produce", 9, body, told, patience_s)


def list_offsets(address: tuple[str, int]) -> Json:
    """Where partition 0 ends."""
    wanted = {"PartitionIndex": 0, "CurrentLeaderEpoch": -1, "Timestamp": -1}
    body: Body = {"ReplicaId": -1, "Topics": [{"Name": TOPIC, "Partitions": [wanted]}]}

    def told(answer: Body) -> str:
        entry = answer["Topics"][0]["Partitions"][0]
        return f"{ErrorCode(entry['ErrorCode']).name} {entry['Offset']}"

    return _meet(address, "ListOffsets", 7, body, told)


def join(address: tuple[str, int]) -> str:
    """Become the one member of group ``g``, with partition 0 assigned; the member's id."""
    offered = JoinGroupRequestProtocol(name="range", metadata=encode_subscription([TOPIC]))
    joining = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id="",
        protocol_type="consumer",
        protocols=(offered,),
    )
    with closing(BlockingClient(address, CLIENT_ID)) as client:
        joined = client.ask("join_group", 3, joining)
        assigned = SyncGroupRequestAssignment(
            member_id=joined.member_id, assignment=encode_assignment([(TOPIC, 0)])
        )
        syncing = SyncGroupRequest(
            group_id=GROUP,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=(assigned,),
        )
        synced = client.ask("sync_group", 3, syncing)
    assert (joined.error_code, synced.error_code) == (0, 0)
    member_id: str = joined.member_id
    return member_id


def transact(bootstrap: str) -> None:
    """Write a record to partition 0 in a transaction, which stays open."""

    async def send() -> None:
        async with Client(bootstrap, client_id=CLIENT_ID) as client:
            producer = TransactionalProducer(client, TRANSACTIONAL_ID)
            await producer.init()
            await producer.begin()
            await producer.send(
                Partition(topic=TOPIC, index=0), [NewRecord(value=b"a", timestamp=_NOW_MS)]
            )

    asyncio.run(send())


def fetch(address: tuple[str, int]) -> Json:
    """Partition 0 from its beginning."""
    wanted = {"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 1 << 20}
    body = {"MaxWaitMs": 0, "MinBytes": 0, "Topics": [{"Topic": TOPIC, "Partitions": [wanted]}]}

    def told(answer: Body) -> str:
        entry = answer["Responses"][0]["Partitions"][0]
        records = entry["Records"] or b""
        whole = all(crc_ok(records, at, header) for at, header in iter_headers(records))
        return f"{ErrorCode(entry['ErrorCode']).name}, {'whole' if whole else 'corrupt'}"

    return _meet(address, "Fetch", 12, body, told)


def metadata(address: tuple[str, int]) -> Json:
    """Who is said to lead partition 0."""
    body: Body = {
        "Topics": [{"TopicId": ZERO_UUID, "Name": TOPIC}],
        "AllowAutoTopicCreation": False,
    }

    def told(answer: Body) -> str:
        entry = answer["Topics"][0]["Partitions"][0]
        return f"{entry['LeaderId']} in epoch {entry['LeaderEpoch']}"

    return _meet(address, "Metadata", 12, body, told)


def _meet(
    address: tuple[str, int],
    api: str,
    version: int,
    body: Body,
    told: Callable[[Body], str],
    patience_s: float = _PATIENCE_S,
) -> Json:
    """What was told, and for how long it throttles."""
    try:
        connection = connect(address, patience_s)
    except ConnectionRefusedError:
        return {"told": "refused"}
    with connection:
        try:
            answer = connection.call(api, version, body)
        except TimeoutError:
            return {"told": "nothing"}
        except ConnectionError:
            return {"told": "goodbye"}
        return {"told": told(answer), "throttled": answer["ThrottleTimeMs"]}
