"""The checkpoint of the last offsets of keys, a format of fencepost's own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.protocol.byte_utils import crc32c
from fencepost.storage.formats.checkpoints import (
    HEAD_SIZE,
    CorruptKeyOffsets,
    KeyOffsetScope,
    decode_key_offsets,
    decode_scope,
    encode_key_offsets,
)

SCOPE = KeyOffsetScope(until=300, epoch=5, log_start=7)
KEYS = {b"": 7, b"key": 258, b"a": 299}
DATA = bytes.fromhex(
    """
    0001 e1d383a8
    000000000000012c 00000005 0000000000000007
    00000003
    0000000000000007 0000000000000102 000000000000012b
    00000000 00000003 00000001
    6b6579 61
    """
)


def checked(body: bytes, version: int = 1) -> bytes:
    return version.to_bytes(2, "big") + crc32c(body).to_bytes(4, "big") + body


def test_its_bytes() -> None:
    assert encode_key_offsets(SCOPE, KEYS) == DATA
    scope, keys = decode_key_offsets(DATA)
    assert scope == decode_scope(DATA[:HEAD_SIZE]) == SCOPE
    assert list(keys.items()) == list(KEYS.items())


@given(
    st.builds(KeyOffsetScope, *(st.integers(0, 2**bits - 1) for bits in (63, 31, 63))),
    st.dictionaries(st.binary(max_size=300), st.integers(0, 2**63 - 1)),
)
def test_what_is_written_is_read(scope: KeyOffsetScope, keys: dict[bytes, int]) -> None:
    data = encode_key_offsets(scope, keys)
    assert decode_scope(data) == scope
    found = decode_key_offsets(memoryview(data))
    assert found == (scope, keys)
    assert list(found[1]) == list(keys)


@pytest.mark.parametrize("size", range(len(DATA)))
def test_a_part_of_it_is_refused(size: int) -> None:
    with pytest.raises(CorruptKeyOffsets):
        decode_key_offsets(DATA[:size])
    with pytest.raises(CorruptKeyOffsets):
        decode_key_offsets(DATA + bytes(size + 1))


@pytest.mark.parametrize("bit", range(0, len(DATA) * 8, 3))
def test_a_flipped_bit_is_seen(bit: int) -> None:
    data = bytearray(DATA)
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(CorruptKeyOffsets):
        decode_key_offsets(data)


@pytest.mark.parametrize("version", [0, 2, -1 & 0xFFFF])
def test_another_version_is_refused(version: int) -> None:
    with pytest.raises(CorruptKeyOffsets, match="of version"):
        decode_key_offsets(checked(DATA[6:], version))
    with pytest.raises(CorruptKeyOffsets, match="of version"):
        decode_scope(checked(DATA[6:], version))


@pytest.mark.parametrize("size", range(len(DATA) - 6))
def test_sound_bytes_that_are_too_few_are_refused(size: int) -> None:
    with pytest.raises(CorruptKeyOffsets):
        decode_key_offsets(checked(DATA[6 : 6 + size]))


@pytest.mark.parametrize(
    ("at", "number"), [(26, -1), (26, 2), (26, 4), (26, 2**31 - 1), (54, -1), (54, 1), (58, 4)]
)
def test_numbers_that_do_not_fit_are_refused(at: int, number: int) -> None:
    data = bytearray(DATA)
    data[at : at + 4] = (number & 0xFFFFFFFF).to_bytes(4, "big")
    with pytest.raises(CorruptKeyOffsets):
        decode_key_offsets(checked(bytes(data[6:])))
