import gzip
import random
import zlib

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.protocol.compression import (
    Codec,
    CompressionError,
    TooLargeUnpacked,
    compress,
    decompress,
)

PACKING = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
NOISE = random.Random(1).randbytes(200_000)


@given(data=st.binary(max_size=5_000), codec=st.sampled_from(list(Codec)))
def test_what_is_packed_unpacks(data: bytes, codec: Codec) -> None:
    assert bytes(decompress(codec, compress(codec, data))) == data


@pytest.mark.parametrize("codec", PACKING)
@pytest.mark.parametrize("data", [NOISE, bytes(3_000_000), b"fence post " * 40_000])
def test_many_blocks(codec: Codec, data: bytes) -> None:
    assert bytes(decompress(codec, compress(codec, data))) == data


@pytest.mark.parametrize(
    ("codec", "low", "high"), [(Codec.GZIP, 1, 9), (Codec.LZ4, 9, 17), (Codec.ZSTD, 1, 19)]
)
def test_a_higher_level_packs_tighter(codec: Codec, low: int, high: int) -> None:
    words = random.Random(2).choices([b"fence", b"post", b"rail", b"gate", b"wire"], k=20_000)
    data = b" ".join(words)
    loose, tight = compress(codec, data, level=low), compress(codec, data, level=high)
    assert len(tight) < len(loose)
    assert bytes(decompress(codec, tight)) == bytes(decompress(codec, loose)) == data


@pytest.mark.parametrize("codec", PACKING)
def test_no_more_comes_out_than_allowed(codec: Codec) -> None:
    bomb = compress(codec, bytes(1_000_000))
    assert len(decompress(codec, bomb, limit=1_000_000)) == 1_000_000
    with pytest.raises(CompressionError, match="more bytes"):
        decompress(codec, bomb, limit=999_999)


def test_a_raw_snappy_length_is_not_believed_beyond_the_limit() -> None:
    with pytest.raises(CompressionError, match="more bytes"):
        decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f\x00\x00\x00", limit=1_000_000)


@pytest.mark.parametrize("codec", PACKING)
def test_bytes_cut_short_are_refused(codec: Codec) -> None:
    packed = compress(codec, NOISE[:1_000] * 3)
    for length in (0, 5, len(packed) // 2, len(packed) - 1):
        with pytest.raises(CompressionError):
            decompress(codec, packed[:length])


@pytest.mark.parametrize("codec", [*PACKING, 5, 7])
def test_garbage_and_unknown_codecs_are_refused(codec: int) -> None:
    with pytest.raises(CompressionError):
        decompress(codec, b"\xfegarbage, and not a little of it")


def test_an_unknown_codec_packs_nothing() -> None:
    with pytest.raises(CompressionError, match="unknown"):
        compress(6, b"")


def test_snappy_is_written_as_kafka_s_producer_does_and_read_raw_too() -> None:
    data = b"abc" * 30_000
    packed = compress(Codec.SNAPPY, data)
    assert bytes(packed[:16]) == b"\x82SNAPPY\0" + bytes.fromhex("0000000100000001")
    assert bytes(decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(data)))) == data


@pytest.mark.parametrize("broken", [b"\0\0", b"\xff\xff\xff\xff", b"\0\0\0\x09abc"])
def test_a_broken_snappy_block_is_refused(broken: bytes) -> None:
    packed = bytes(compress(Codec.SNAPPY, b"abc"))
    with pytest.raises(CompressionError, match="cut short"):
        decompress(Codec.SNAPPY, packed + broken)


def test_lz4_frames_have_independent_blocks() -> None:
    # The third byte of the descriptor is its checksum, which Kafka writes the same.
    packed = bytes(compress(Codec.LZ4, NOISE))
    assert packed[:7].hex() == "04224d18604082"
    assert packed[4] & 0b0010_0000
    # Independent: the second block alone unpacks, behind the same header.
    first = int.from_bytes(packed[7:11], "little") & 0x7FFF_FFFF
    assert first <= 65_536
    assert bytes(decompress(Codec.LZ4, packed[:7] + packed[11 + first :])) == NOISE[65_536:]


def test_lz4_frames_with_checksums_and_dependent_blocks_are_read() -> None:
    data = b"abc" * 100_000
    assert bytes(decompress(Codec.LZ4, bytes(cramjam.lz4.compress(data)))) == data


def test_several_gzip_members_are_one_text() -> None:
    assert bytes(decompress(Codec.GZIP, gzip.compress(b"fence") + gzip.compress(b"post"))) == (
        b"fencepost"
    )


def test_gzip_members_share_the_limit() -> None:
    with pytest.raises(CompressionError):
        decompress(Codec.GZIP, gzip.compress(bytes(600)) * 2, limit=1_000)


@pytest.mark.parametrize(
    ("codec", "before", "member"),
    [
        (Codec.GZIP, b"", gzip.compress(b"", mtime=0)),
        (Codec.SNAPPY, b"\x82SNAPPY\0" + bytes(8), b"\0\0\0\x01\0"),
    ],
    ids=["gzip", "snappy"],
)
def test_members_and_blocks_are_limited_in_number(
    codec: Codec, before: bytes, member: bytes
) -> None:
    assert decompress(codec, before + member * 10_000) == b""
    with pytest.raises(TooLargeUnpacked, match="10000 compressed members"):
        decompress(codec, before + member * 10_001)


def test_each_byte_of_gzip_is_passed_on_once_and_a_chunk_for_each_member(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = 0

    class Counted:
        """Counts what it is given: what a member leaves of that is a copy."""

        def __init__(self, wbits: int) -> None:
            self._inner = plain(wbits=wbits)

        def decompress(self, data: bytes, limit: int) -> bytes:
            nonlocal given
            given += len(data)
            return self._inner.decompress(data, limit)

        def __getattr__(self, name: str) -> object:
            return getattr(self._inner, name)

    plain = zlib.decompressobj
    monkeypatch.setattr(zlib, "decompressobj", Counted)
    member = gzip.compress(b"", mtime=0)
    counts = []
    for members in (2_000, 8_000):
        given = 0
        decompress(Codec.GZIP, member * members)
        counts.append(given)
    assert counts[1] < 5 * counts[0]
