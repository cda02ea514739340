from __future__ import annotations

import socket
import struct
import threading

import pytest

from bench import wire

METADATA = bytes.fromhex(
    "00000001 00"  # correlation id, tags
    "00000000"  # throttle_time_ms
    "03"  # two brokers
    "00000001 02 61 00002384 00 00"  # 1 at a:9092, no rack
    "00000002 02 62 00002385 02 72 00"  # 2 at b:9093, rack r
    "02 63 00000002"  # cluster id c, controller 2
    "02"  # one topic
    "0000 02 74" + "00" * 15 + "07" + "00"  # t
    "03"  # two partitions
    "0000 00000000 00000002 00000005 02 00000002 02 00000002 01 00"
    "0005 00000001 ffffffff 00000006 03 00000001 00000002 01 02 00000001 01 07 02 6869"
    "80000000 00"
    "00"
)


def test_metadata_is_decoded() -> None:
    found = wire.decode_metadata(METADATA)
    assert found.brokers == {1: ("a", 9092), 2: ("b", 9093)}
    assert found.controller == 2
    partitions = (
        wire.Partition(index=0, leader=2, in_sync=1),
        wire.Partition(index=1, leader=-1, in_sync=0),
    )
    assert found.topics == {"t": partitions}


@pytest.mark.parametrize("length", [0, 4, 20, len(METADATA) - 8])
def test_a_cut_answer_is_an_error(length: int) -> None:
    with pytest.raises((wire.BadAnswer, IndexError)):
        wire.decode_metadata(METADATA[:length])


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (1 << 21, "80808001")],
)
def test_uvarint_round_trips(value: int, encoded: str) -> None:
    assert wire.uvarint(value).hex() == encoded
    assert wire.Reader(bytes.fromhex(encoded)).uvarint() == value


def list_offsets_answer(error: int, offset: int) -> bytes:
    head = bytes.fromhex("00000001 00 00000000 02 02 74 02 00000000")
    return head + struct.pack(">hqqi", error, -1, offset, 0) + b"\0\0\0"


def test_list_offsets_gives_the_offset_or_raises_its_error() -> None:
    assert wire.decode_list_offsets(list_offsets_answer(0, 1 << 33)) == 1 << 33
    with pytest.raises(wire.BadAnswer, match="error 6"):
        wire.decode_list_offsets(list_offsets_answer(6, -1))


def test_a_refused_topic_is_named() -> None:
    refused = bytes.fromhex("00000001 00000000 00000001 0001 74 0024 0002 6e6f")
    with pytest.raises(wire.BadAnswer, match="t: error 36 no"):
        wire.check_create_topics(refused)
    wire.check_create_topics(bytes.fromhex("00000001 00000000 00000001 0001 74 0000 ffff"))


def test_frames_carry_their_size_and_header() -> None:
    request = wire.metadata_request(("t",))
    assert int.from_bytes(request[:4], "big") == len(request) - 4
    assert (
        request[4:]
        == bytes.fromhex(
            "0003 000c 00000001 0005 62656e6368 00"  # flexible header
            "02" + "00" * 16 + "02 74 00"  # one topic, by name
            "00 00 00"
        )
    )
    assert wire.metadata_request()[-4:] == bytes(4)
    assert wire.metadata_request(())[-4:] == bytes.fromhex("01000000")


def test_an_answer_is_whole_however_it_is_cut() -> None:
    body = bytes(range(256)) * 400
    sent = struct.pack(">i", len(body)) + body
    ours, theirs = socket.socketpair()
    pieces = [sent[:2], sent[2:5], sent[5:70_000], sent[70_000:]]

    def serve() -> None:
        assert theirs.recv(100) == b"ask"
        for piece in pieces:
            theirs.sendall(piece)
        theirs.recv(100)
        theirs.close()

    server = threading.Thread(target=serve)
    server.start()
    with wire.Connection(ours) as connection:
        assert connection.ask(b"ask") == body
        with pytest.raises(wire.BadAnswer, match="closed"):
            connection.ask(b"again")
    server.join()
