"""Hashes and first bytes of many stretches of bytes at once: of the keys of a window's records."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from fencepost.pipeline.datasource.record_columns import Field
from fencepost.pipeline.datasource.segments import Bytes

Hashes: TypeAlias = npt.NDArray[np.uint64]
_WORD: Final = 8
"""Bytes that are taken in together."""
_MAX_IN_STEP: Final = 256
"""Bytes of the longest stretch that is hashed in step with others: a longer one by itself."""
_SHIFT: Final = np.uint64(33)
_FACTORS: Final = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))


def field_hashes(data: Bytes, field: Field) -> Hashes:
    """A hash of the bytes of a field of each record; of null that of no bytes.

    :param data: Goes on behind the last of them, for `_WORD` bytes at the least.
    """
    sizes = np.maximum(field.sizes, 0)
    found = _mixed(sizes.astype(np.uint64) + _FACTORS[0])
    left = np.flatnonzero((sizes > 0) & (sizes <= _MAX_IN_STEP))
    step = 0
    while len(left):
        found[left] = _mixed(found[left] ^ _word(data, field.select(left), step))
        step += _WORD
        left = left[sizes[left] > step]
    for number in np.flatnonzero(sizes > _MAX_IN_STEP).tolist():
        at = int(field.at[number])
        digest = blake2b(data.data[at : at + int(sizes[number])], digest_size=_WORD).digest()
        found[number] = np.frombuffer(digest, "<u8")[0]
    return found


def field_heads(data: Bytes, field: Field, words: int) -> list[Hashes]:
    """How a field of each record begins: `_WORD` bytes in a number, with zeros behind its end.

    :param data: Goes on behind the last of them, for as many bytes as are asked for.
    """
    return [_word(data, field, each * _WORD) for each in range(words)]


def _word(data: Bytes, field: Field, step: int) -> Hashes:
    """`_WORD` bytes of each from a place in it on, fewer at its end; 0 where it ends before."""
    word = np.ascontiguousarray(sliding_window_view(data, _WORD)[field.at + step]).view("<u8")
    beyond = np.clip(_WORD - (field.sizes - step), 0, _WORD - 1).astype(np.uint64) * np.uint64(8)
    shifted: Hashes = (word.reshape(-1) << beyond) >> beyond
    return np.where(field.sizes > step, shifted, np.uint64(0))


def _mixed(numbers: Hashes) -> Hashes:
    """Each with all its bits spread over all: the end of MurmurHash3."""
    for factor in _FACTORS:
        numbers = (numbers ^ (numbers >> _SHIFT)) * factor
    mixed: Hashes = numbers ^ (numbers >> _SHIFT)
    return mixed
