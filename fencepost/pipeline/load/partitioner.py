"""Kafka's own choice of a partition by key: murmur2, for all keys of a column at once."""

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Words: TypeAlias = npt.NDArray[np.uint32]

_SEED: Final = np.uint32(0x9747B28C)
_M: Final = np.uint32(0x5BD1E995)
_POSITIVE: Final = 0x7FFFFFFF


def partitions_of(keys: pa.BinaryArray, count: int) -> pa.Array:
    """The partition of each key, as the Java client's default partitioner chooses it.

    :param keys: Of type binary; null keys have no partition, and get null.
    :param count: How many partitions the topic has.
    """
    chosen = (murmur2(keys) & np.uint32(_POSITIVE)).astype(np.int32) % np.int32(count)
    return pa.array(chosen, mask=np.asarray(keys.is_null()))


def murmur2(keys: pa.BinaryArray) -> Words:
    """The hash of each key, as Kafka's ``Utils.murmur2`` has it; null is hashed as empty."""
    starts, lengths, data = _parts(keys)
    hashes = _SEED ^ lengths.astype(np.uint32)
    blocks = lengths >> 2
    going_on = np.flatnonzero(blocks > 0)
    block = 0
    while len(going_on):
        word = _words(data, starts[going_on] + 4 * block) * _M
        word = (word ^ (word >> np.uint32(24))) * _M
        hashes[going_on] = (hashes[going_on] * _M) ^ word
        block += 1
        going_on = going_on[blocks[going_on] > block]
    _add_tails(hashes, data, starts + 4 * blocks, lengths & 3)
    hashes = (hashes ^ (hashes >> np.uint32(13))) * _M
    return hashes ^ (hashes >> np.uint32(15))


def _parts(
    keys: pa.BinaryArray,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Where each key starts, how long it is, and the bytes of all of them."""
    _, offsets, data = keys.cast(pa.binary()).buffers()
    if not len(keys) or data is None:
        none = np.zeros(len(keys), np.int64)
        return none, none, np.zeros(0, np.uint8)
    bounds = np.frombuffer(offsets, np.int32)[keys.offset : keys.offset + len(keys) + 1]
    wide = bounds.astype(np.int64)
    return wide[:-1], wide[1:] - wide[:-1], np.frombuffer(data, np.uint8)


def _words(data: npt.NDArray[np.uint8], at: npt.NDArray[np.int64]) -> Words:
    """The little-endian words at some places."""
    word = np.zeros(len(at), np.uint32)
    for byte in range(4):
        word |= data[at + byte].astype(np.uint32) << np.uint32(8 * byte)
    return word


def _add_tails(
    hashes: Words,
    data: npt.NDArray[np.uint8],
    at: npt.NDArray[np.int64],
    left: npt.NDArray[np.int64],
) -> None:
    """Add the last bytes of each key, which make no whole word."""
    for byte in (2, 1, 0):
        has = np.flatnonzero(left > byte)
        hashes[has] ^= data[at[has] + byte].astype(np.uint32) << np.uint32(8 * byte)
    has = np.flatnonzero(left > 0)
    hashes[has] *= _M
