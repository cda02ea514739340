"""Frames: any chunking gives the same, and no claim takes memory."""

from __future__ import annotations

import struct
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.protocol import codec, frames
from fencepost.protocol.apis import APIS, BY_NAME, Api
from fencepost.protocol.codec.schema import message_schema
from fencepost.protocol.frames import (
    FrameAssembler,
    InvalidFrame,
    RequestMemory,
    RequestMemoryFull,
    read_header,
    skip_tags,
)

SCRATCH = 64


def framed(*payloads: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(payload)) + payload for payload in payloads)


def feed(assembler: FrameAssembler, data: bytes, sizes: list[int] | None = None) -> list[bytes]:
    """Hand bytes over in pieces of these sizes, or as large as they are taken."""
    found: list[bytes] = []
    at = 0
    pieces = iter(sizes or [])
    while at < len(data):
        room = assembler.buffer()
        assert len(room) > 0
        size = min(next(pieces, len(room)), len(room), len(data) - at)
        room[:size] = data[at : at + size]
        at += size
        found += map(bytes, assembler.received(size))
    return found


def assembler(limit: int = frames.DEFAULT_LIMIT, scratch: int = SCRATCH) -> FrameAssembler:
    return FrameAssembler(memoryview(bytearray(scratch)), limit)


@settings(database=None)
@given(
    st.lists(st.binary(min_size=1, max_size=400), max_size=8),
    st.lists(st.integers(1, 80), max_size=400),
    st.integers(4, 100),
)
def test_frames_come_out_as_they_went_in_however_they_were_cut(
    payloads: list[bytes], sizes: list[int], scratch: int
) -> None:
    assert feed(assembler(scratch=scratch), framed(*payloads), sizes) == payloads


def test_one_byte_at_a_time() -> None:
    payloads = [b"a", b"b" * 300, b"c"]
    assert feed(assembler(), framed(*payloads), [1] * 1000) == payloads


def test_connections_may_share_the_scratch() -> None:
    scratch = memoryview(bytearray(SCRATCH))
    one, two = FrameAssembler(scratch), FrameAssembler(scratch)
    first, second = framed(b"x" * 40), framed(b"y" * 40)
    assert feed(one, first[:2]) == []
    assert feed(two, second[:30]) == []
    assert feed(one, first[2:]) == [b"x" * 40]
    assert feed(two, second[30:]) == [b"y" * 40]


def test_a_frame_is_a_buffer_of_its_own_that_may_be_written_to() -> None:
    scratch = bytearray(SCRATCH)
    cut = FrameAssembler(memoryview(scratch))
    data = framed(b"first", b"second")
    cut.buffer()[: len(data)] = data
    first, second = cut.received(len(data))
    first[0:1] = b"F"
    scratch[:] = bytes(SCRATCH)
    assert [bytes(first), bytes(second)] == [b"First", b"second"]


@settings(database=None)
@given(st.binary(min_size=1, max_size=300), st.integers(1, 50))
def test_noise_is_frames_or_refused(noise: bytes, piece: int) -> None:
    try:
        found = feed(assembler(limit=100), noise, [piece] * len(noise))
    except InvalidFrame:
        return
    assert framed(*found) == noise[: len(framed(*found))]


@pytest.mark.parametrize("size", [0, -1, -(1 << 31), 101, (1 << 31) - 1])
def test_a_size_out_of_bounds_is_refused_as_soon_as_it_is_there(size: int) -> None:
    with pytest.raises(InvalidFrame, match="1 to 100 are accepted"):
        feed(assembler(limit=100), struct.pack(">i", size))


def test_a_frame_of_the_limit_is_taken() -> None:
    assert feed(assembler(limit=100), framed(b"x" * 100)) == [b"x" * 100]


@pytest.mark.parametrize("arrived", [1, 100, 5_000, 70_000, 300_000, 2 << 20])
def test_room_is_taken_as_bytes_come(arrived: int) -> None:
    cut = assembler(scratch=256 << 10)
    data = struct.pack(">i", frames.DEFAULT_LIMIT) + bytes(arrived)
    tracemalloc.start()
    try:
        assert feed(cut, data) == []
        # Of this module alone: threads of the process, and coverage, allocate as well.
        here = tracemalloc.Filter(inclusive=True, filename_pattern=frames.__file__)
        taken = tracemalloc.take_snapshot().filter_traces([here]).statistics("filename")
        assert sum(each.size for each in taken) < 4 * arrived + 1_000
    finally:
        tracemalloc.stop()


# -- what all frames take -----------------------------------------------------------------------


def test_incomplete_frames_count_and_complete_ones_do_not() -> None:
    memory = RequestMemory()
    one, two = (FrameAssembler(memoryview(bytearray(SCRATCH)), memory=memory) for _ in range(2))
    payload = bytes(200_000)
    data = framed(payload, b"next")
    feed(one, data[:50])
    feed(two, data[:150_000])
    assert 150_000 <= memory.used <= 400_100
    assert feed(one, data[50:]) == [payload, b"next"]
    two.discard()
    assert memory.used == 0


@pytest.mark.parametrize("arrived", [10, 60_000, 70_000])
def test_a_frame_that_may_not_grow_is_refused(arrived: int) -> None:
    memory = RequestMemory(arrived // 2)
    cut = FrameAssembler(memoryview(bytearray(SCRATCH)), memory=memory)
    with pytest.raises(RequestMemoryFull):
        feed(cut, framed(bytes(100_000))[: arrived + 4])
    cut.discard()
    assert memory.used == 0
    assert feed(cut, framed(b"x")) == [b"x"]


@pytest.mark.parametrize("arrived", [0, 1_000, 70_000])
def test_memory_that_is_not_given_does_not_count(
    monkeypatch: pytest.MonkeyPatch, arrived: int
) -> None:
    def exhausted(*_: object) -> bytearray:
        raise MemoryError

    memory = RequestMemory()
    cut = FrameAssembler(memoryview(bytearray(SCRATCH)), memory=memory)
    data = framed(bytes(1_000_000))
    feed(cut, data[:arrived])
    monkeypatch.setattr(frames, "bytearray", exhausted, raising=False)
    with pytest.raises(MemoryError):
        feed(cut, data[arrived:-1])
    cut.discard()
    assert memory.used == 0


@settings(database=None)
@given(
    st.lists(st.integers(1, 300_000), min_size=1, max_size=4),
    st.lists(st.integers(1, 200_000), max_size=20),
)
def test_nothing_counts_after_the_last_frame(lengths: list[int], sizes: list[int]) -> None:
    memory = RequestMemory()
    cut = FrameAssembler(memoryview(bytearray(1 << 16)), memory=memory)
    payloads = [bytes([n]) * length for n, length in enumerate(lengths)]
    assert feed(cut, framed(*payloads), sizes) == payloads
    assert memory.used == 0


@settings(database=None)
@given(st.lists(st.tuples(st.integers(8_000, 10_000) | st.integers(1, 70_000), st.integers(0, 3))))
def test_frames_are_the_same_in_memory_that_was_made_ready(frames_: list[tuple[int, int]]) -> None:
    memory = RequestMemory()
    cut = FrameAssembler(memoryview(bytearray(1 << 17)), memory=memory)
    kept: list[bytes] = []
    made: list[bytearray] = []
    for number, (size, moments) in enumerate(frames_):
        kept.append(bytes([number % 256]) * size)
        cut.buffer()[: size + 4] = framed(kept[-1])
        made += cut.received(size + 4)
        for _ in range(moments):
            memory.make_ready()
    assert made == kept


def test_memory_is_made_ready_for_a_few_frames_as_large_as_the_last_ones() -> None:
    memory = RequestMemory()
    data = memoryview(bytes(30_000))
    tracemalloc.start()
    try:
        memory.frame(data)
        for _ in range(9):
            memory.make_ready()
        assert tracemalloc.get_traced_memory()[0] < 30_000, "the next may have another size"
        frames_ = [memory.frame(data)]
        for _ in range(9):
            memory.make_ready()
        before = tracemalloc.get_traced_memory()[0]
        assert 4 * 30_000 < before < 7 * 30_000
        frames_ += [memory.frame(data[: 30_000 - n]) for n in range(4)]
        assert tracemalloc.get_traced_memory()[0] - before < 30_000
    finally:
        tracemalloc.stop()
    assert list(map(len, frames_)) == [30_000, 30_000, 29_999, 29_998, 29_997]


@pytest.mark.parametrize("size", [30_000, 29_000])
def test_a_frame_in_memory_that_was_made_ready_takes_no_other_memory_meanwhile(size: int) -> None:
    memory = RequestMemory()
    data = memoryview(bytes(30_000))
    memory.frame(data)
    memory.frame(data)
    memory.make_ready()
    tracemalloc.start()
    try:
        frame = memory.frame(data[:size])
        assert tracemalloc.get_traced_memory()[1] < 5_000, "a copy beside it has pages of its own"
    finally:
        tracemalloc.stop()
    assert frame == data[:size]


def test_a_large_frame_is_put_together_from_its_growing_room() -> None:
    payload = bytes(range(256)) * (20 << 10)
    assert feed(assembler(scratch=1 << 16), framed(payload, b"next")) == [payload, b"next"]


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.title)
def test_the_header_of_every_request_is_read(api: Api) -> None:
    for version in range(api.min_version, api.max_version + 1):
        message = message_schema(api.name, "request", version).cls()
        whole = b"".join(codec.encode_request(api, version, 7, "client-ü", message))
        frame = bytearray(whole[4:])
        header = read_header(frame)
        assert (header.api_key, header.version, header.correlation_id, header.client_id) == (
            api.key,
            version,
            7,
            "client-ü",
        )
        offset = skip_tags(frame, header, api)
        assert codec.decode_request(api, version, frame, offset) == message


@pytest.mark.parametrize(
    ("client_id", "read"),
    [(None, None), (b"", ""), (b"a\xffb", "a�b")],
)
def test_a_client_id_is_never_a_reason_to_refuse(client_id: bytes | None, read: str | None) -> None:
    length = -1 if client_id is None else len(client_id)
    frame = bytearray(struct.pack(">hhih", 3, 4, 1, length) + (client_id or b"") + b"\0")
    assert read_header(frame).client_id == read


@pytest.mark.parametrize("frame", [b"", b"\0" * 9, struct.pack(">hhih", 3, 4, 1, 5) + b"four"])
def test_a_header_that_is_cut_short_is_refused(frame: bytes) -> None:
    with pytest.raises(InvalidFrame):
        read_header(bytearray(frame))


HEADER = struct.pack(">hhih", 3, 12, 1, -1)


@pytest.mark.parametrize(
    ("tags", "skipped"),
    [
        (b"\0", 1),
        (b"\x01\x00\x03abc", 6),
        (b"\x02\x00\x00\x81\x01\x01x", 7),
    ],
)
def test_tagged_fields_of_a_header_are_passed_over(tags: bytes, skipped: int) -> None:
    frame = bytearray(HEADER + tags + b"body")
    at = skip_tags(frame, read_header(frame), BY_NAME["metadata"])
    assert at == len(HEADER) + skipped
    assert frame[at:] == b"body"


@pytest.mark.parametrize(
    "tags", [b"", b"\x01", b"\x01\x00\x09abc", b"\x80" * 5, b"\xff\xff\xff\xff\x0f"]
)
def test_tagged_fields_that_are_cut_short_are_refused(tags: bytes) -> None:
    frame = bytearray(HEADER + tags)
    with pytest.raises(InvalidFrame):
        skip_tags(frame, read_header(frame), BY_NAME["metadata"])


def test_headers_of_versions_without_tags_end_with_the_client_id() -> None:
    frame = bytearray(struct.pack(">hhih", 3, 4, 1, -1) + b"\x05body")
    at = skip_tags(frame, read_header(frame), BY_NAME["metadata"])
    assert frame[at:] == b"\x05body"


def test_a_header_has_a_limited_number_of_tagged_fields() -> None:
    for count, body in ((1_000, b"\xe8\x07"), (1_001, b"\xe9\x07")):
        frame = bytearray(HEADER + body + b"\x63\0" * count)
        if count == 1_000:
            assert skip_tags(frame, read_header(frame), BY_NAME["metadata"]) == len(frame)
        else:
            with pytest.raises(InvalidFrame, match="1001 tagged fields"):
                skip_tags(frame, read_header(frame), BY_NAME["metadata"])
