"""The rows of one partition, cut into chunks: each the batches of one request.

Where a batch ends and where a chunk ends is a matter of the rows alone, in their order. It is the
same however they come: all at once, or a few at a time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from fencepost.client.encoded import EncodedBatch, EncodedRecords
from fencepost.pipeline.load.encoding import encode, most_bytes
from fencepost.protocol.compression import Codec
from fencepost.protocol.records import HEADER_SIZE

DEFAULT_BATCH_RECORDS: Final = 10_000
DEFAULT_BATCH_BYTES: Final = 1 << 18
DEFAULT_CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Where one batch ends, and where one chunk does. Bytes are those before compression."""

    batch_records: int = DEFAULT_BATCH_RECORDS
    batch_bytes: int = DEFAULT_BATCH_BYTES
    """At most, unless one record is larger by itself."""
    chunk_bytes: int = DEFAULT_CHUNK_BYTES
    """A chunk ends with the batch that reaches it."""
    codec: Codec = Codec.NONE

    def __post_init__(self) -> None:
        if min(self.batch_records, self.batch_bytes, self.chunk_bytes) < 1:
            raise ValueError("a batch holds one record at least")


class Chunks:
    """Takes rows, and gives chunks as soon as it is clear where they end."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._rest: pa.RecordBatch | None = None
        """Rows whose batch may go on."""
        self._batches: list[EncodedBatch] = []
        self._bytes = 0

    def add(self, rows: pa.RecordBatch) -> Iterator[EncodedRecords]:
        """The chunks that these rows complete."""
        if self._rest is not None:
            rows = pa.concat_batches([self._rest, rows])
        sums = np.concatenate([[0], np.cumsum(most_bytes(rows))])
        bounds = [0]
        while (end := self._end(sums, bounds[-1])) is not None:
            bounds.append(end)
        whole = bounds[-1]
        self._rest = rows.slice(whole) if whole < rows.num_rows else None
        if whole:
            yield from self._encode(rows.slice(0, whole), bounds, np.diff(sums[bounds]).tolist())

    def finish(self) -> Iterator[EncodedRecords]:
        """The chunk that is left, if there is one."""
        if self._rest is not None:
            rest, self._rest = self._rest, None
            yield from self._encode(rest, [0, rest.num_rows], [0])
        if self._batches:
            yield self._chunk()

    def _end(self, sums: "np.ndarray[tuple[int], np.dtype[np.int64]]", start: int) -> int | None:
        """Where the batch ends that begins with a row (exclusive), None while it may go on."""
        room = sums[start] + self._limits.batch_bytes - HEADER_SIZE
        fits = int(np.searchsorted(sums, room, side="right")) - 1
        end = min(max(fits, start + 1), start + self._limits.batch_records)
        # With all rows in it, the next one could still fit, unless one row alone is too large.
        return end if end < len(sums) - 1 else None

    def _encode(
        self, rows: pa.RecordBatch, bounds: Sequence[int], sizes: Sequence[int]
    ) -> Iterator[EncodedRecords]:
        for batch, size in zip(encode(rows, bounds, self._limits.codec), sizes, strict=True):
            self._batches.append(batch)
            self._bytes += size
            if self._bytes >= self._limits.chunk_bytes:
                yield self._chunk()

    def _chunk(self) -> EncodedRecords:
        batches, self._batches, self._bytes = self._batches, [], 0
        return EncodedRecords(batches)
