"""Keys, values and headers of records: where their bytes lie, for many records at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from fencepost.pipeline.reading.blobs import Bytes
from fencepost.pipeline.reading.headers import Integers
from fencepost.pipeline.reading.varints import LONGEST, read_varints


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of each record.

    :ivar at: Where its bytes begin.
    :ivar sizes: How many they are; -1 where it is null.
    """

    at: Integers
    sizes: Integers

    def take(self, records: npt.NDArray[np.intp]) -> Self:
        """That of some records."""
        return type(self)(at=self.at[records], sizes=self.sizes[records])


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordHeaders:
    """The headers of some records, in order.

    :ivar record: Whose each is.
    :ivar wrong: Whether those of a record do not parse. They have no meaning then.
    """

    record: Integers
    names: Field
    values: Field
    wrong: npt.NDArray[np.bool_]


def read_field(data: Bytes, at: Integers, ends: Integers) -> tuple[Field, Integers]:
    """A field at positions, and where it ends.

    :param ends: Where the records end (exclusive).
    :returns: Where a field reaches beyond its record, an end that does, too.
    """
    sizes, begin = read_varints(data, np.minimum(at, ends))
    sizes = np.maximum(sizes, -1)
    beyond = (at > ends) | (begin - at > LONGEST) | (sizes > ends - begin)
    after = np.where(beyond, ends + 1, begin + np.maximum(sizes, 0))
    return Field(at=np.minimum(begin, ends), sizes=np.where(beyond, -1, sizes)), after


def read_headers(data: Bytes, at: Integers, ends: Integers, counts: Integers) -> RecordHeaders:
    """The headers of records, in step: the first of each, then the second.

    :param at: Where the first begins.
    :param ends: Where the records end (exclusive).
    :param counts: How many headers each has; no more than it has bytes.
    """
    total = int(counts.sum())
    columns = [np.zeros(total, np.int64) for _ in range(4)]
    first = np.cumsum(counts) - counts
    after = at.copy()
    lanes, step = np.flatnonzero(counts > 0), 0
    while len(lanes):
        names, end = read_field(data, after[lanes], ends[lanes])
        values, end = read_field(data, end, ends[lanes])
        place = first[lanes] + step
        for column, part in zip(
            columns, (names.at, names.sizes, values.at, values.sizes), strict=True
        ):
            column[place] = part
        after[lanes] = np.where(names.sizes < 0, ends[lanes] + 1, end)
        step += 1
        lanes = lanes[(counts[lanes] > step) & (after[lanes] <= ends[lanes])]
    return RecordHeaders(
        record=np.repeat(np.arange(len(counts)), counts),
        names=Field(at=columns[0], sizes=columns[1]),
        values=Field(at=columns[2], sizes=columns[3]),
        wrong=after != ends,
    )
