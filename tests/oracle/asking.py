"""The requests that the questions are made of, and the texts that their answers become.

A row is (section, request, answer). The texts are the keys and values of the recorded rows, so
they stay as they are.
"""

from __future__ import annotations

import socket
import struct
import time
from typing import Final

from fencepost.protocol.errors import ErrorCode
from tests.harness import batches
from tests.harness.wire import ZERO_UUID, Body, Connection, Value

Row = tuple[str, str, Value]

T: Final = 1_700_000_000_000
"""The time (ms) that the timestamps in the rows count from."""
NO_SUCH_ID: Final = "ab" * 16
SPECIAL_TIMESTAMPS: Final = {
    -1: "LATEST",
    -2: "EARLIEST",
    -3: "MAX_TIMESTAMP",
    -4: "EARLIEST_LOCAL",
    -5: "LATEST_TIERED",
    -6: "EARLIEST_PENDING_UPLOAD",
    -7: "undefined",
    -100: "undefined",
}

_LOOKUPS: Final = 3


def error_text(code: int) -> str:
    return f"{code} {ErrorCode(code).name}"


def named(topic: str | None, topic_id: str = ZERO_UUID) -> Body:
    return {"Name": topic, "TopicId": topic_id}


# -- ListOffsets --------------------------------------------------------------------------------


def list_offsets(
    connection: Connection,
    topic: str,
    timestamp: int,
    *,
    version: int = 11,
    partition: int = 0,
    epoch: int = -1,
    replica_id: int = -1,
    isolation: int = 0,
    timeout_ms: int = 5000,
) -> Body:
    """The answer's one partition."""
    asked = {"PartitionIndex": partition, "CurrentLeaderEpoch": epoch, "Timestamp": timestamp}
    body = {
        "ReplicaId": replica_id,
        "IsolationLevel": isolation,
        "Topics": [{"Name": topic, "Partitions": [asked]}],
        "TimeoutMs": timeout_ms,
    }
    answer: Body = connection.call("ListOffsets", version, body)["Topics"][0]["Partitions"][0]
    return answer


def tiered_offset(connection: Connection, topic: str, timestamp: int) -> Body:
    """A lookup that reads the tier, asked again after REQUEST_TIMED_OUT, as every client does.

    A real Kafka on a busy machine may not have read the segment's index by then.
    """
    for _ in range(_LOOKUPS - 1):
        answer = list_offsets(connection, topic, timestamp)
        if answer["ErrorCode"] != ErrorCode.REQUEST_TIMED_OUT:
            return answer
    return list_offsets(connection, topic, timestamp)


def offset_text(answer: Body) -> str:
    when = answer["Timestamp"]
    shown = f"T+{when - T}" if T <= when < T + 10**9 else when
    code = error_text(answer["ErrorCode"])
    epoch = answer.get("LeaderEpoch", "-")
    return f"err={code} offset={answer['Offset']} epoch={epoch} ts={shown}"


# -- OffsetForLeaderEpoch -----------------------------------------------------------------------


def epoch_end(
    connection: Connection,
    topic: str,
    leader_epoch: int,
    *,
    version: int = 4,
    partition: int = 0,
    epoch: int = -1,
    replica_id: int = -2,
) -> str:
    asked = {"Partition": partition, "CurrentLeaderEpoch": epoch, "LeaderEpoch": leader_epoch}
    body = {"ReplicaId": replica_id, "Topics": [{"Topic": topic, "Partitions": [asked]}]}
    answer = connection.call("OffsetForLeaderEpoch", version, body)["Topics"][0]["Partitions"][0]
    code = error_text(answer["ErrorCode"])
    return f"err={code} leader_epoch={answer['LeaderEpoch']} end_offset={answer['EndOffset']}"


# -- Produce ------------------------------------------------------------------------------------


def records(*timestamps: int) -> bytes:
    """A batch of one small record for each timestamp (ms after T)."""
    return batches.build([(T + each, b"k", b"v") for each in timestamps])


def send_records(
    connection: Connection,
    topic: str,
    data: bytes,
    *,
    version: int = 9,
    partition: int = 0,
    acks: int = -1,
    timeout_ms: int = 5000,
    topic_id: str = ZERO_UUID,
) -> Body | None:
    """The answer, or None where none is due (acks=0)."""
    sent = {"Index": partition, "Records": data}
    body = {
        "TransactionalId": None,
        "Acks": acks,
        "TimeoutMs": timeout_ms,
        "TopicData": [{"Name": topic, "TopicId": topic_id, "PartitionData": [sent]}],
    }
    if acks == 0:
        connection.send("Produce", version, body)
        return None
    return connection.call("Produce", version, body)


def produce_text(answer: Body | None) -> str:
    assert answer is not None
    entry = answer["Responses"][0]["PartitionResponses"][0]
    text = f"err={error_text(entry['ErrorCode'])} base_offset={entry['BaseOffset']}"
    text += f" log_append_time={entry['LogAppendTimeMs']}"
    if "LogStartOffset" in entry:
        text += f" log_start={entry['LogStartOffset']}"
    if entry.get("RecordErrors"):
        text += f" record_errors={entry['RecordErrors']}"
    if entry.get("ErrorMessage"):
        text += f" msg={entry['ErrorMessage']!r}"
    return text + _tagged_text(entry) + _tagged_text(answer)


def _tagged_text(body: Body) -> str:
    tagged = {key: value for key, value in body.items() if "(tag" in key}
    return f" {tagged}" if tagged else ""


# -- Fetch --------------------------------------------------------------------------------------


def fetch(
    connection: Connection,
    topic: str,
    offset: int,
    *,
    version: int = 12,
    partition: int = 0,
    topic_id: str = ZERO_UUID,
    epoch: int = -1,
    last_fetched_epoch: int = -1,
    max_bytes: int = 1 << 20,
    partition_max_bytes: int | None = None,
    max_wait_ms: int = 100,
    min_bytes: int = 1,
    session_epoch: int = -1,
    replica_id: int = -1,
    replica_epoch: int = -1,
    rack: str = "",
) -> Body:
    asked = {
        "Partition": partition,
        "FetchOffset": offset,
        "CurrentLeaderEpoch": epoch,
        "LastFetchedEpoch": last_fetched_epoch,
        "PartitionMaxBytes": max_bytes if partition_max_bytes is None else partition_max_bytes,
    }
    body = {
        "MaxWaitMs": max_wait_ms,
        "MinBytes": min_bytes,
        "MaxBytes": max_bytes,
        "SessionEpoch": session_epoch,
        "RackId": rack,
        "Topics": [{"Topic": topic, "TopicId": topic_id, "Partitions": [asked]}],
    }
    if replica_id != -1:
        body["ReplicaId"] = replica_id
        body["ReplicaState"] = {"ReplicaId": replica_id, "ReplicaEpoch": replica_epoch}
    return connection.call("Fetch", version, body)


def fetch_text(answer: Body) -> str:
    text = ""
    if "SessionId" in answer:
        session = "nonzero" if answer["SessionId"] else "0"
        text = f"top_err={error_text(answer['ErrorCode'])} sid={session} "
    if not answer["Responses"]:
        return text + "no responses"
    entry = answer["Responses"][0]["Partitions"][0]
    text += f"err={error_text(entry['ErrorCode'])} hw={entry['HighWatermark']}"
    text += f" lso={entry.get('LastStableOffset')} log_start={entry.get('LogStartOffset')}"
    text += f" aborted={entry.get('AbortedTransactions')} records={_records_text(entry['Records'])}"
    if entry.get("PreferredReadReplica", -1) != -1:
        text += f" prr={entry['PreferredReadReplica']}"
    return text + _tagged_text(entry) + _tagged_text(answer)


def _records_text(data: bytes | None) -> str:
    if data is None:
        return "null"
    whole, left = batches.parse(data)
    shown = [f" [{each.base_offset}-{each.last_offset} e{each.leader_epoch}]" for each in whole]
    cut = f" +{left}B partial" if left else ""
    return f"{len(data)}B{''.join(shown)}{cut}"


def seconds_blocked(
    connection: Connection, topic: str, offset: int, *, min_bytes: int = 1
) -> float:
    """How long a fetch of MaxWait=700 took: 0.0, 0.7, or (surprisingly) something else.

    A machine under load adds some tenths of a second, which say nothing of the broker.
    """
    start = time.monotonic()
    fetch(connection, topic, offset, max_wait_ms=700, min_bytes=min_bytes)
    taken = time.monotonic() - start
    if taken < 0.5:
        return 0.0
    return 0.7 if 0.69 < taken < 1.4 else round(taken, 2)


# -- bytes --------------------------------------------------------------------------------------


def send_raw(
    address: tuple[str, int], data: bytes, *, timeout_s: float = 4, half: bool = False
) -> str:
    """Send bytes on a new connection, and say what came back.

    :param half: Whether to close our sending side after them.
    """
    with socket.create_connection(address, timeout_s) as connection:
        try:
            connection.sendall(data)
            if half:
                connection.shutdown(socket.SHUT_WR)
            return _reaction(connection)
        except TimeoutError:
            return f"no answer, connection stays open ({timeout_s:g}s)"
        except ConnectionResetError:
            return "RST (connection reset)"
        except BrokenPipeError:
            return "EPIPE"


def _reaction(connection: socket.socket) -> str:
    got = b""
    while chunk := connection.recv(65536):
        got += chunk
        if len(got) >= 4 and len(got) - 4 >= struct.unpack(">i", got[:4])[0]:
            return f"response {len(got)}B: {got[:60].hex()}"
    return f"EOF (clean close) after {len(got)}B {got[:40].hex()}"
