"""What no client should send, and what the broker does: close, wait, or answer all the same."""

from __future__ import annotations

import struct

from tests.harness.wire import encode, frame
from tests.oracle.asker import Asker
from tests.oracle.asking import send_raw

SECTION = "Malformed"
MOST = 104_857_600
"""socket.request.max.bytes."""


def sized(*values: int, layout: str, tail: bytes = b"") -> bytes:
    """A frame with its right size."""
    content = struct.pack(">" + layout, *values) + tail
    return struct.pack(">i", len(content)) + content


def header(key: int, version: int, client_id: int = -1, correlation_id: int = 1) -> bytes:
    """A frame that is only a header, its client id's length as given."""
    return sized(key, version, correlation_id, client_id, layout="hhih")


def ask(asker: Asker) -> None:
    for request, data in (*_versions(), *_keys(), *_sizes(), *_bodies(), *_client_ids()):
        asker.row(SECTION, request, send_raw(asker.address, data))
    _half_frames(asker)
    reference = frame("Metadata", 12, b"\x01\x01\x01\x00", client_id="oracle")
    answer = send_raw(asker.address, reference)[:60]
    asker.row(SECTION, "ok Metadata v12 empty topics reference", answer)
    tagged = sized(3, 12, 9, -1, layout="hhih", tail=b"\x01\x05\x02ab\x01\x01\x00\x00")
    answer = send_raw(asker.address, tagged)[:60]
    asker.row(SECTION, "unknown tagged field in the header", answer)
    _pipelining(asker)


def _versions() -> list[tuple[str, bytes]]:
    rows = []
    for version, written in ((0, 1), (12, 11), (99, 11), (-1, 11)):
        body = encode("ListOffsetsRequest", written, {"ReplicaId": -1, "Topics": []})
        data = frame("ListOffsets", version, body, client_id="oracle")
        rows.append((f"ListOffsets v{version} (unsupported)", data))
    return [
        *rows,
        ("OffsetForLeaderEpoch v1 (removed)", frame("OffsetForLeaderEpoch", 1, bytes(4))),
        ("Fetch v3 (removed)", frame("Fetch", 3, bytes(30))),
        ("Metadata v14", frame("Metadata", 14, bytes(8))),
        ("CreateTopics v99", frame("CreateTopics", 99, bytes(8))),
    ]


def _keys() -> list[tuple[str, bytes]]:
    return [
        ("unknown api key 999 v0", header(999, 0)),
        ("api key -1", header(-1, 0)),
        ("controller-only api 52 Vote v0 on broker listener", header(52, 0)),
        ("removed api 4 LeaderAndIsr v0", header(4, 0)),
    ]


def _sizes() -> list[tuple[str, bytes]]:
    return [
        ("size=0 frame", struct.pack(">i", 0)),
        ("size=-1 frame", struct.pack(">i", -1)),
        ("size=0x80000000", b"\x80\0\0\0"),
        ("size=100MiB+1 (104857601)", struct.pack(">i", MOST + 1) + bytes(100)),
        ("size=0x7fffffff", b"\x7f\xff\xff\xff"),
        ("HTTP GET", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
        ("TLS ClientHello bytes 16 03 01", bytes.fromhex("16030102000100")),
        ("size=4 frame with 4 bytes", sized(3, 1, layout="hh")),
    ]


def _bodies() -> list[tuple[str, bytes]]:
    def metadata(count: int, tail: bytes = b"") -> bytes:
        return sized(3, 1, 7, -1, count, layout="hhihi", tail=tail)

    return [
        (
            "header only, truncated body (Metadata v1, no array len)",
            header(3, 1, correlation_id=7),
        ),
        ("Metadata v1 array length 2^31-1", metadata(0x7FFFFFFF)),
        ("Metadata v1 array length 5 but no data", metadata(5)),
        ("Metadata v1 + 5 trailing bytes", metadata(0, b"hello")),
    ]


def _client_ids() -> list[tuple[str, bytes]]:
    return [
        ("client id length beyond frame", header(3, 1, 500, 7)),
        ("client id length -2", sized(3, 1, 7, -2, 0, layout="hhihi")),
        ("client id invalid utf8", sized(3, 1, 7, 2, layout="hhih", tail=b"\xff\xfe\0\0\0\0")),
    ]


def _half_frames(asker: Asker) -> None:
    most = struct.pack(">i", MOST) + bytes(100)
    request = "size=100MiB exactly, then 100 bytes only"
    asker.row(SECTION, request, send_raw(asker.address, most, timeout_s=3))
    part = struct.pack(">ih", 50, 3)
    answer = send_raw(asker.address, part, half=True)
    asker.row(SECTION, "partial frame then half close", answer)
    answer = send_raw(asker.address, part, timeout_s=2)
    asker.row(SECTION, "partial frame, stays open", answer)


def _pipelining(asker: Asker) -> None:
    with asker.fresh() as connection:
        frames = [
            frame("Metadata", 1, {"Topics": []}, correlation_id=i, client_id="oracle")
            for i in range(1, 6)
        ]
        connection.socket.sendall(b"".join(frames))
        ids = [struct.unpack(">i", connection.receive()[:4])[0] for _ in frames]
        request = "5 Metadata in one write: correlation ids"
        asker.row("Pipelining", request, str(ids))
        connection.socket.sendall(frame("Metadata", 1, {"Topics": []}, correlation_id=-5))
        echoed = struct.unpack(">i", connection.receive()[:4])[0]
        asker.row("Pipelining", "correlation id -5 echoed", echoed)
