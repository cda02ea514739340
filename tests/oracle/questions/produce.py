"""Produce: every version, acks, batches that must be refused, idempotence, append time."""

from __future__ import annotations

import time

from tests.harness import batches
from tests.harness.wait import wait_until
from tests.harness.wire import Body
from tests.oracle.asker import RETAINED, Asker
from tests.oracle.asking import (
    NO_SUCH_ID,
    T,
    error_text,
    fetch,
    list_offsets,
    offset_text,
    produce_text,
    send_records,
)

SECTION = "Produce"
FIRST_PRODUCER_ID = (
    "v4 first answer (14 = COORDINATOR_LOAD_IN_PROGRESS while the first pid block is fetched)"
)
TWO_HOURS_MS = 7_200_000
SEQUENCES = (
    (0, "first"),
    (0, "duplicate of first"),
    (1, "next"),
    (5, "gap"),
    (1, "duplicate"),
    (0, "older duplicate"),
)


def ask(asker: Asker) -> None:
    topic, topic_id = asker.create("p", RETAINED)
    for version in range(3, 14):
        data = batches.build([(T, b"k", b"v")])
        answer = send_records(asker.connection, topic, data, version=version, topic_id=topic_id)
        asker.row(SECTION, f"v{version} acks=-1", produce_text(answer))
    for version in (0, 1, 2, 14):
        asker.row(SECTION, f"unsupported v{version}", _unsupported(asker, version))
    _acks(asker, topic)
    _unknown(asker, topic)
    if asker.others:
        _elsewhere(asker, topic)
    _refused(asker, topic)
    producer_id = _init_producer_id(asker)
    _idempotence(asker, topic, producer_id)
    if asker.others:
        _more_in_sync_than_replicas(asker)
    _append_time(asker)


def one(timestamp: int = T) -> bytes:
    return batches.build([(timestamp, None, b"v")])


def _row(asker: Asker, request: str, topic: str, data: bytes) -> None:
    try:
        answer = produce_text(send_records(asker.connection, topic, data))
    except ConnectionError as closed:
        answer = repr(closed)
        asker.reconnect()
    asker.row(SECTION, request, answer)


def _unsupported(asker: Asker, version: int) -> str:
    body: Body = {"Acks": 1, "TimeoutMs": 1000, "TopicData": []}
    with asker.fresh() as connection:
        connection.send("Produce", version, body, encode_as=3)
        try:
            return connection.receive().hex()
        except ConnectionError as closed:
            return repr(closed)


def _acks(asker: Asker, topic: str) -> None:
    for acks in (1, 0, 2, -2, -1):
        data = batches.build([(T, b"k", b"v")])
        try:
            answer = send_records(asker.connection, topic, data, acks=acks)
            text = produce_text(answer) if answer else _after_no_answer(asker, topic)
        except ConnectionError as closed:
            text = repr(closed)
            asker.reconnect()
        asker.row(SECTION, f"acks={acks}", text)


def _after_no_answer(asker: Asker, topic: str) -> str:
    after = offset_text(list_offsets(asker.connection, topic, -1))
    return f"no response; next ListOffsets(-1) on the connection: {after}"


def _unknown(asker: Asker, topic: str) -> None:
    connection = asker.connection
    for request, answer in (
        ("unknown topic v9", send_records(connection, "nope", one())),
        (
            "unknown topic id v13",
            send_records(connection, topic, one(), version=13, topic_id=NO_SUCH_ID),
        ),
        ("partition 5", send_records(connection, topic, one(), partition=5)),
    ):
        asker.row(SECTION, request, produce_text(answer))


def _elsewhere(asker: Asker, topic: str) -> None:
    other = asker.to(asker.others[0])
    for version in (9, 12):
        answer = send_records(other, topic, one(), version=version)
        asker.row(SECTION, f"NON-LEADER v{version}", produce_text(answer))


def _refused(asker: Asker, topic: str) -> None:
    soon = int(time.time() * 1000) + TWO_HOURS_MS
    for request, data in (
        ("bad CRC", _changed(-2, one()[-2] ^ 1)),
        ("magic 1", _changed(16, 1)),
        ("magic 3", _changed(16, 3)),
        ("two batches in one partition", one() * 2),
        ("empty records", b""),
        ("truncated batch", one()[:-3]),
        ("base_offset=77 in batch", batches.build([(T, None, b"v")], base_offset=77)),
        (
            "record > max.message.bytes (1.1MB)",
            batches.build([(T, None, b"v" * 1_100_000)]),
        ),
        ("leader epoch 9 in batch", batches.build([(T, None, b"v")], leader_epoch=9)),
        ("future ts (+2h)", one(soon)),
        ("ts=-1", one(-1)),
        ("control batch bit", batches.build([(T, b"\0\0\0\0", b"v")], attributes=0x20)),
        (
            "transactional bit, no txn id",
            batches.build(
                [(T, None, b"v")],
                attributes=0x10,
                producer_id=1,
                producer_epoch=0,
                base_sequence=0,
            ),
        ),
    ):
        _row(asker, request, topic, data)


def _changed(index: int, value: int) -> bytes:
    data = bytearray(one())
    data[index] = value
    return bytes(data)


def _init_producer_id(asker: Asker) -> int:
    """A producer id; the rows are the first answer of a young broker, and the good one."""
    body: Body = {"TransactionalId": None, "TransactionTimeoutMs": 60_000, "ProducerId": -1}
    body["ProducerEpoch"] = -1

    def ask_once() -> Body:
        return asker.connection.call("InitProducerId", 4, body)

    first = ask_once()
    asker.row(
        "InitProducerId",
        FIRST_PRODUCER_ID,
        error_text(first["ErrorCode"]),
    )
    answer = first

    def good() -> bool:
        nonlocal answer
        answer = answer if answer["ErrorCode"] == 0 else ask_once()
        return bool(answer["ErrorCode"] == 0)

    wait_until("a producer id", good)
    text = str({key: value for key, value in answer.items() if key != "ProducerId"})
    asker.row("InitProducerId", "v4 idempotent", text)
    return int(answer["ProducerId"])


def _idempotence(asker: Asker, topic: str, producer_id: int) -> None:
    def row(request: str, epoch: int, sequence: int, producer: int = producer_id) -> None:
        data = batches.build(
            [(T, None, b"v")],
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        _row(asker, request, topic, data)

    for sequence, name in SEQUENCES:
        row(f"idempotent seq={sequence} ({name})", 0, sequence)
    row("idempotent epoch 1 seq 3 (bump, nonzero seq)", 1, 3)
    row("idempotent epoch 1 seq 0", 1, 0)
    row("idempotent epoch 0 (old) seq 2", 0, 2)
    row("unknown pid 999999 seq 5", 0, 5, 999_999)


def _more_in_sync_than_replicas(asker: Asker) -> None:
    configs = {"min.insync.replicas": "2"}
    topic, _ = asker.create("mi2", configs, replicas=[asker.facing])
    answer = produce_text(send_records(asker.connection, topic, one()))
    request = "acks=-1, RF=1 min.insync.replicas=2 (NB effective minISR=min(minISR,RF))"
    asker.row(SECTION, request, answer)


def _append_time(asker: Asker) -> None:
    topic, _ = asker.create("lat", {"message.timestamp.type": "LogAppendTime"})
    answer = send_records(asker.connection, topic, one())
    assert answer is not None
    appended = answer["Responses"][0]["PartitionResponses"][0]["LogAppendTimeMs"]
    near = abs(appended / 1000 - time.time()) < 5
    request = "LogAppendTime topic: LogAppendTimeMs"
    asker.row(SECTION, request, "now" if near else appended)
    fetched = fetch(asker.connection, topic, 0)["Responses"][0]["Partitions"][0]["Records"]
    stored = batches.parse(fetched)[0][0]
    stamped, kept = stored.max_timestamp == appended, stored.base_timestamp == T
    request = "LogAppendTime batch attrs / maxTs==LogAppendTime / t0 kept"
    asker.row("Fetch", request, f"{stored.attributes:#x} {stamped} {kept}")
